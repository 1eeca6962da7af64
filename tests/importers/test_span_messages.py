"""Messages of all spans of a trace as one conversation: each once, in its turn, and gaps are told."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.importers.span_messages import SpanMessages, messages_of
from agenteval.importers.span_tree import SpanTree
from agenteval.messages.parsed_message import unplaced_in

KIND = "gen_ai.operation.name"
SYSTEM = {"role": "system", "content": "Be brief."}
HI, HELLO = {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}
HO, YES = {"role": "user", "content": "Ho"}, {"role": "assistant", "content": "Yes"}
BYE, ENDED = {"role": "user", "content": "Bye"}, {"role": "assistant", "content": "Ended"}
SILENT = {"role": "assistant", "content": ""}
FOUND = {"role": "tool", "tool_call_id": "1", "content": "7"}


def calls(*ids: str, name: str = "find") -> dict[str, Any]:
    listed = [{"id": id, "type": "function", "function": {"name": name, "arguments": "{}"}} for id in ids]
    return {"role": "assistant", "content": None, "tool_calls": listed}


CALL = calls("1")


def span(
    id: str, asked: Any, answered: Any, parent: str = "", kind: str = "chat", **more: Any
) -> dict[str, Any]:
    """A span whose place in time is its number (``s1``)."""
    attributes = {KIND: kind, "gen_ai.input.messages": asked, "gen_ai.output.messages": answered}
    attributes = {key: value for key, value in attributes.items() if value is not None}
    raw = {
        "trace_id": "t",
        "span_id": id,
        "parent_id": parent,
        "name": id,
        "start_time": id.strip("sx") + "0",
    }
    return {**raw, "attributes": {**attributes, **more.pop("attributes", {})}, **more}


def around(id: str, kind: str, parent: str = "", **more: Any) -> dict[str, Any]:
    return span(id, None, None, parent, kind, **more)


def read(*spans: dict[str, Any]) -> SpanMessages:
    found = messages_of(SpanTree(spans))
    assert found is not None
    return found


def said(*spans: dict[str, Any]) -> list[str]:
    """The texts of all messages, ``call`` for calls, and ``?`` for what could not be placed."""
    return [shown(each) for each in read(*spans).messages]


def shown(message: Any) -> str:
    if unplaced_in(message) is not None:
        return "?"
    return "call" if message.get("tool_calls") else str(message.get("content"))


def turns(*spans: dict[str, Any]) -> dict[str, int]:
    return {each.name: turn for each, turn in read(*spans).turns.items()}


def separate(*spans: dict[str, Any]) -> list[str]:
    return [each.name for each in read(*spans).separate_spans]


def test_a_trace_without_messages() -> None:
    assert messages_of(SpanTree([])) is None
    assert messages_of(SpanTree([around("s1", "chat"), around("s2", "execute_tool")])) is None


# ── one span after another ───────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("spans", "texts"),
    [
        ([span("s1", [HI], [HELLO])], ["Hi", "Hello"]),
        ([span("s1", [HI], None)], ["Hi"]),
        # each span repeats what was said before
        ([span("s1", [HI], [HELLO]), span("s2", [HI, HELLO, HO], [YES])], ["Hi", "Hello", "Ho", "Yes"]),
        ([span("s2", [HI, HELLO, HO], [YES]), span("s1", [HI], [HELLO])], ["Hi", "Hello", "Ho", "Yes"]),
        ([span("s1", [HI], [CALL]), span("s2", [HI, CALL, FOUND], [HELLO])], ["Hi", "call", "7", "Hello"]),
        (
            [
                span("s1", [HI], [HELLO]),
                span("s2", [HI, HELLO, HO], [YES]),
                span("s3", [HI, HELLO, HO, YES, BYE], [ENDED]),
            ],
            ["Hi", "Hello", "Ho", "Yes", "Bye", "Ended"],
        ),
        # the same was asked and answered twice
        ([span("s1", [HI], [HELLO]), span("s2", [HI, HELLO, HI], [HELLO])], ["Hi", "Hello", "Hi", "Hello"]),
        ([span("s1", [HI], [HELLO]), span("s2", [HI], [YES])], ["Hi", "Hello", "Yes"]),
        # instructions are told once
        ([span("s1", [SYSTEM, HI], [HELLO]), span("s2", [SYSTEM, HI, HELLO, HO], [YES])],
         ["Be brief.", "Hi", "Hello", "Ho", "Yes"]),
        # an answer that is empty stands in no later input
        ([span("s1", [HI], [SILENT]), span("s2", [HI, HO], [YES])], ["Hi", "", "Ho", "Yes"]),
        ([span("s1", [HI], [SILENT])], ["Hi", ""]),
        # an answer that no span has
        ([span("s1", [HI], None), span("s2", [HI, HELLO, HO], [YES])], ["Hi", "Hello", "Ho", "Yes"]),
    ],
)  # fmt: skip
def test_each_message_once_and_in_order(spans: list[Any], texts: list[str]) -> None:
    assert said(*spans) == texts


def test_calls_of_one_answer_that_are_written_one_by_one() -> None:
    both, one, other = calls("1", "2"), calls("1"), calls("2")
    spans = [span("s1", [HI], [both]), span("s2", [HI, one, other, FOUND], [HELLO])]
    assert said(*spans) == ["Hi", "call", "7", "Hello"]


def test_calls_with_new_ids_are_new_calls() -> None:
    spans = [span("s1", [HI], [CALL]), span("s2", [HI, CALL, FOUND], [calls("2")])]
    assert said(*spans) == ["Hi", "call", "7", "call"]


@pytest.mark.parametrize(
    ("second", "is_told"),
    [
        ([HO], True),
        ([HELLO, HO], True),  # only the last messages are repeated
        ([HI, HELLO, HO], False),
        ([HI, BYE], True),
    ],
)
def test_messages_that_may_be_missing_between_two_spans(second: Any, is_told: bool) -> None:
    found = said(span("s1", [HI], [HELLO]), span("s2", second, [YES]))
    assert ("?" in found) is is_told
    assert [each for each in found if each in ("Hi", "Hello", "Yes")] == ["Hi", "Hello", "Yes"]


NAMED = {"gen_ai.conversation.id": "c"}


@pytest.mark.parametrize(
    ("first", "second", "is_told"),
    [
        ({}, {}, True),
        ({"attributes": NAMED}, {"attributes": NAMED, "trace_id": "u"}, False),
        ({"attributes": NAMED}, {"attributes": NAMED}, True),
        ({"attributes": NAMED}, {"attributes": {"gen_ai.conversation.id": "d"}, "trace_id": "u"}, True),
        ({"attributes": NAMED, "end_time": "90"}, {"attributes": NAMED, "trace_id": "u"}, True),
    ],
)
def test_traces_of_one_conversation_are_its_turns(first: Any, second: Any, is_told: bool) -> None:
    spans = [span("s1", [HI], [HELLO], **first), span("s2", [HO], [YES], **second)]
    assert said(*spans) == (
        ["Hi", "Hello", "?", "Ho", "?", "Yes"] if is_told else ["Hi", "Hello", "Ho", "Yes"]
    )
    assert turns(*spans) == {"s1": 1, "s2": 2}


# ── agents ───────────────────────────────────────────────────────────────────────────────────────


def test_a_model_of_a_tool_is_no_part_of_the_conversation() -> None:
    spans = [
        span("s1", [HI], [CALL]),
        around("s2", "execute_tool", attributes={"gen_ai.tool.name": "find"}),
        span("s3", [HO], [YES], "s2"),
        span("s4", [HI, CALL, FOUND], [HELLO]),
    ]
    assert said(*spans) == ["Hi", "call", "7", "Hello"]
    assert separate(*spans) == ["s3"]
    assert "s3" not in turns(*spans)


def agents(second: Any, **more: Any) -> list[dict[str, Any]]:
    return [
        around("s1", "invoke_agent", attributes={"gen_ai.agent.name": "a"}),
        span("s2", [HI], [CALL], "s1", end_time="25"),
        around("s3", "invoke_agent", "s1", attributes={"gen_ai.agent.name": "b"}),
        span("s4", second, [HELLO], "s3", **more),
    ]


def test_an_agent_that_goes_on_with_all_messages_took_over() -> None:
    spans = agents([HI, CALL, FOUND])
    assert said(*spans) == ["Hi", "call", "7", "Hello"]
    assert separate(*spans) == []


def test_an_agent_whose_caller_does_not_go_on_answers_for_it() -> None:
    spans = agents([HO])
    assert [each for each in said(*spans) if each != "?"] == ["Hi", "call", "Hello"]
    assert "?" in said(*spans)
    assert separate(*spans) == []


def test_an_agent_whose_caller_goes_on_is_separate() -> None:
    spans = [*agents([HO]), span("s5", [HI, CALL, FOUND], [YES], "s1")]
    assert said(*spans) == ["Hi", "call", "7", "Yes"]
    assert separate(*spans) == ["s4"]


# ── spans around others ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("outer", "texts"),
    [
        (([HI], [HELLO]), ["Hi", "call", "7", "Hello"]),
        (([HI], None), ["Hi", "call", "7", "Hello"]),
        (([HI, CALL, FOUND], [HELLO]), ["Hi", "call", "7", "Hello"]),
        (([HI], [YES]), ["Hi", "call", "7", "Hello", "Yes"]),
    ],
)
def test_a_span_around_its_models_repeats_their_messages(outer: Any, texts: list[str]) -> None:
    spans = [
        span("s1", outer[0], outer[1], "", "invoke_agent"),
        span("s2", [HI], [CALL], "s1"),
        span("s3", [HI, CALL, FOUND], [HELLO], "s1"),
    ]
    assert said(*spans) == texts


def test_a_span_around_two_turns_shows_that_nothing_is_missing() -> None:
    inner = [span("s2", [HI], [HELLO], "s1"), span("s3", [HO], [YES], "s1")]
    assert "?" in said(around("s1", "invoke_agent"), *inner)
    outer = span("s1", [HI, HELLO, HO], [YES], "", "invoke_agent")
    assert said(outer, *inner) == ["Hi", "Hello", "Ho", "Yes"]


@pytest.mark.parametrize(
    ("answer", "texts"),
    [(HELLO, ["Hi", "Hello"]), (YES, ["Hi", "Hello", "Yes"]), (CALL, ["Hi", "Hello", "call"])],
)
def test_a_span_with_an_answer_alone_takes_no_message_from_its_models(answer: Any, texts: list[str]) -> None:
    spans = [span("1", None, [answer], kind="invoke_agent"), span("2", [HI], [HELLO], "1")]
    assert said(*spans) == said(*spans[::-1]) == texts
    assert separate(*spans) == []
    assert turns(*spans) == {"1": 1, "2": 1}


def test_what_an_outer_span_holds_and_nobody_placed_is_told() -> None:
    odd = {"role": "odd", "action": {"name": "cancel"}}
    inner = span("s2", [HI], [HELLO], "s1")
    assert said(span("s1", [HI], [HELLO, odd], "", "invoke_agent"), inner) == ["Hi", "Hello", "None"]
    assert said(span("s1", [HI, odd], [HELLO], "", "invoke_agent"), inner) == ["Hi", "None", "Hello"]
    assert said(span("s1", None, [HELLO, odd], "", "invoke_agent"), inner) == ["Hi", "Hello", "None"]


def test_an_agents_plain_answer_is_used_only_without_one_of_its_models() -> None:
    io = {"input.value": "Hi", "output.value": "In other words"}
    agent = around("s1", "invoke_agent", attributes=io)
    assert said(agent, span("s2", [HI], [HELLO], "s1")) == ["Hi", "Hello"]
    assert said(agent, span("s2", [HI], [CALL], "s1")) == ["Hi", "call", "In other words"]
    assert said(agent) == ["Hi", "In other words"]


def test_an_agents_plain_request_in_other_words_than_its_models() -> None:
    io = {"input.value": "Hi", "output.value": "Hello"}
    agent = around("s1", "invoke_agent", attributes=io)
    assert said(agent, span("s2", [HO], [YES], "s1")) == ["Ho", "Yes"]
    assert separate(agent, span("s2", [HO], [YES], "s1")) == ["s1"]


def test_a_whole_request_is_what_the_user_said() -> None:
    spans = [span("s1", [HI], [HELLO], "", "chain", whole="said"), span("s2", [HO], [YES], "s1")]
    assert said(*spans) == ["Hi", "Hello"]
    assert separate(*spans) == ["s2"]


@pytest.mark.parametrize(("whole", "texts"), [("said", ["Hi", "Yes", "Hello"]), ("object", ["Hi", "Yes"])])
def test_a_state_is_no_answer_beside_those_of_models(whole: str, texts: list[str]) -> None:
    spans = [span("s1", [HI], [HELLO], "", "chain", whole=whole), span("s2", [HI], [YES], "s1")]
    assert said(*spans) == texts


# ── what else the spans say ──────────────────────────────────────────────────────────────────────


def test_the_turn_of_each_span() -> None:
    asked = [HI, CALL, FOUND]
    spans = [span("s1", [HI], [CALL]), span("s2", asked, [HELLO]), span("s3", [*asked, HELLO, HO], [YES])]
    assert turns(*spans) == {"s1": 1, "s2": 1, "s3": 2}
    assert turns(span("s1", None, [HELLO]), span("s2", [HELLO, HI], [YES])) == {"s1": 0, "s2": 1}


@pytest.mark.parametrize(
    ("errors", "error"),
    [(("", ""), ""), (("late", ""), ""), (("", "late"), "late"), (("first", "late"), "late")],
)
def test_the_error_of_the_last_span(errors: tuple[str, str], error: str) -> None:
    statuses = [{"code": 2, "message": each} if each else {} for each in errors]
    spans = [
        span("s1", [HI], [HELLO], status=statuses[0]),
        span("s2", [HI, HELLO, HO], [YES], status=statuses[1]),
    ]
    assert read(*spans).error == error


MODEL, TOOLS, INSTRUCTIONS = "gen_ai.request.model", "gen_ai.tool.definitions", "gen_ai.system_instructions"


def test_the_request_is_that_of_the_last_span_and_the_tools_are_those_of_all() -> None:
    spans = [
        span("s1", [HI], [CALL], attributes={MODEL: "m", TOOLS: [{"name": "find"}], INSTRUCTIONS: "x"}),
        around("s2", "execute_tool", attributes={"gen_ai.tool.name": "look"}),
        around("s3", "execute_tool", attributes={"gen_ai.tool.name": "gone"}, status={"code": 2}),
        span(
            "s4", [HI, CALL], [HELLO], attributes={MODEL: "n", TOOLS: [{"name": "find"}, {"name": "cancel"}]}
        ),
    ]
    request = read(*spans).request
    assert (request["model"], request["system"]) == ("n", "x")
    assert request["tools"] == ["look", {"name": "find"}, {"name": "cancel"}]
    assert read(span("s1", [HI], [HELLO]), spans[1]).request["tools"] == []


def test_a_tool_that_failed_exists_if_its_tracer_knows_only_those_that_do() -> None:
    known = {"langsmith.span.kind": "tool", "gen_ai.tool.name": "gone"}
    spans = [
        span("s1", [HI], [CALL], attributes={TOOLS: [{"name": "find"}]}),
        span("s2", None, None, "", "tool", attributes=known, status={"code": 2}),
    ]
    assert read(*spans).request["tools"] == ["gone", {"name": "find"}]
