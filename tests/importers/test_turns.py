"""Turns of recorded messages: their steps, calls and results, and what could not be placed."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.core.errors import AuthorError
from agenteval.core.scenario import Tool
from agenteval.core.trajectory import CallEvidence, Turn
from agenteval.importers.exchanges import LoggedMessages
from agenteval.importers.turns import ParsedConversation, parse_conversation
from agenteval.messages.unplaced_entries import CallFreeNames, Unplaced

HI, HELLO = {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}
ODD = {"role": "critic", "content": "?"}


def call(name: str, id: str = "1") -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": "{}"}}


def calls(*names: str) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": [call(n, n) for n in names]}


def result(id: str = "find", **more: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": "7", **more}


def parse(*messages: Any, **more: Any) -> tuple[ParsedConversation, list[str]]:
    """A conversation, and what was told of it."""
    told: list[str] = []
    options = {key: more.pop(key) for key in ("tools", "no_calls_in") if key in more}
    return parse_conversation(LoggedMessages([*messages], **more), told.append, **options), told


def turns(*messages: Any, **more: Any) -> list[tuple[str, list[Any]]]:
    """The user's text of each turn, and the texts and calls of its steps."""
    return [
        (turn.user, [(step.text, [c.name for c in step.tool_calls]) for step in turn.steps])
        for turn in parse(*messages, **more)[0].trajectory.turns
    ]


@pytest.mark.parametrize(
    ("messages", "found"),
    [
        ([HI, HELLO], [("Hi", [("Hello", [])])]),
        ([HI, HI, HELLO], [("Hi\nHi", [("Hello", [])])]),
        ([HI, HELLO, HELLO], [("Hi", [("Hello", []), ("Hello", [])])]),
        ([HELLO], [("", [("Hello", [])])]),
        ([HELLO, HI, HELLO], [("", [("Hello", [])]), ("Hi", [("Hello", [])])]),
        (
            [HI, calls("find", "look"), result(), HELLO],
            [("Hi", [(None, ["find", "look"]), ("Hello", [])])],
        ),
        ([HI, calls("find")], [("Hi", [(None, ["find"])])]),  # alone, it is taken as it is
    ],
)
def test_messages_in_turns(messages: list[Any], found: Any) -> None:
    assert turns(*messages) == found


@pytest.mark.parametrize(
    ("messages", "lost", "kept", "unfinished"),
    [
        ([HI, HELLO], "", 1, None),
        ([HI, HELLO, HI], "", 1, "Hi"),
        ([HI, HELLO, HI, calls("find")], "", 1, "Hi"),
        ([HI, HELLO, HI, calls("find"), result()], "", 1, "Hi"),
        ([HI, HELLO, HI, {**calls("find"), "content": "I look."}], "", 2, None),
        ([HI, HELLO, HI, {**calls("find"), "content": "<think>x</think>"}], "", 1, "Hi"),
        ([HI, calls("find")], "", 1, None),
        ([HI, calls("find")], "status 503", 0, "Hi"),
        ([HI], "status 503", 0, "Hi"),
        ([HI, HELLO], "status 503", 1, None),
    ],
)
def test_a_last_turn_without_an_answer_is_unfinished(
    messages: list[Any], lost: str, kept: int, unfinished: str | None
) -> None:
    trajectory = parse(*messages, lost=lost)[0].trajectory
    assert len(trajectory.turns) == kept
    assert (trajectory.unfinished and trajectory.unfinished.user) == unfinished
    if trajectory.unfinished:
        assert trajectory.unfinished.error
        assert lost in trajectory.unfinished.error
    assert all(turn.error is None for turn in trajectory.turns)


@pytest.mark.parametrize(
    ("messages", "is_partial"),
    [
        ([HI, HELLO], False),
        ([HI, calls("find"), HI, HELLO], True),
        ([HI, calls("find"), result(), HI, HELLO], True),
        ([HI, HELLO, HI, calls("find")], False),
        ([HI, calls("find")], True),
        ([HI, {**calls("find"), "content": "I look."}, HI, HELLO], False),
    ],
)
def test_a_turn_that_ends_in_calls_makes_the_log_partial(messages: list[Any], is_partial: bool) -> None:
    assert parse(*messages)[0].is_partial is is_partial


# ── calls and results ────────────────────────────────────────────────────────────────────────────


def results(*messages: Any) -> list[Any]:
    trajectory = parse(HI, *messages, HELLO)[0].trajectory
    return [(c.name, c.result and (c.result.value, c.result.is_error)) for c in trajectory.tool_calls]


@pytest.mark.parametrize(
    ("messages", "found"),
    [
        ([calls("find")], [("find", None)]),
        ([calls("find"), result()], [("find", ("7", False))]),
        ([calls("find"), result(content={"a": 1})], [("find", ({"a": 1}, False))]),
        ([calls("find"), result(status="error")], [("find", ("7", True))]),
        (
            [calls("find", "look"), result("look", content="b"), result("find", content="a")],
            [("find", ("a", False)), ("look", ("b", False))],
        ),
        ([calls("find"), calls("look"), result("look")], [("find", None), ("look", ("7", False))]),
        ([calls("find"), HELLO, HI, result()], [("find", ("7", False))]),
    ],
)
def test_results_go_to_their_calls(messages: list[Any], found: Any) -> None:
    assert results(*messages) == found


def test_arguments_and_ids_of_calls() -> None:
    message = calls("find")
    message["tool_calls"][0]["function"]["arguments"] = '{"a": 1}'
    (found,) = parse(HI, message, HELLO)[0].trajectory.tool_calls
    assert (found.id, found.args, found.raw_args, found.observed) == ("find", {"a": 1}, None, True)


def test_a_result_without_a_call_is_a_fact_and_leaves_its_turn_not_fully_seen() -> None:
    found, told = parse(HI, result(name="find"), HELLO)
    (orphan,) = found.orphans
    assert "find" in orphan
    assert "7" in orphan
    (turn,) = found.trajectory.turns
    assert len(turn.unplaced) == 1
    assert "'find'" in turn.unplaced[0]
    assert len(told) == 2


def test_a_second_result_of_a_call_is_a_fact_only() -> None:
    found, told = parse(HI, calls("find"), result(), result(content="8"), HELLO)
    assert results(calls("find"), result(), result(content="8")) == [("find", ("7", False))]
    assert [("8" in each) for each in found.orphans] == [True]
    assert found.trajectory.turns[0].unplaced == ()
    assert len(told) == 1


@pytest.mark.parametrize(("name", "is_told"), [("", False), ("find", True)])
def test_that_no_call_was_made_cannot_be_said_of_a_named_tool(name: str, is_told: bool) -> None:
    free = CallFreeNames(frozenset({"tool"}))
    found, _ = parse(HI, result(name=name), HELLO, no_calls_in=free)
    assert bool(found.trajectory.turns[0].unplaced) is is_told
    assert len(found.orphans) == 1


@pytest.mark.parametrize("name", ["final_answer", "Finish"])
def test_an_answer_in_the_call_that_ends_a_turn_is_said(name: str) -> None:
    message = calls(name)
    message["tool_calls"][0]["function"]["arguments"] = '{"answer": "7"}'
    for text, said in ((None, "7"), ("It is", "It is\n7")):
        (found,) = turns(HI, {**message, "content": text})
        assert found == ("Hi", [(said, [name])])


def test_tools_of_the_provider_are_named() -> None:
    block = {"type": "server_tool_use", "id": "1", "name": "web_search", "input": {"query": "x"}}
    found, _ = parse(HI, {"role": "assistant", "content": [block, {"type": "text", "text": "Hello"}]})
    assert found.provider_tools == {"web_search"}
    assert parse(HI, calls("find"), HELLO)[0].provider_tools == frozenset()


def test_calls_that_may_be_of_another_turn() -> None:
    found, _ = parse(HI, calls("find", "look"), HELLO, of_unknown_turn=frozenset({"look"}))
    assert [c.of_unknown_turn for c in found.trajectory.tool_calls] == [False, True]


@pytest.mark.parametrize(
    ("messages", "tools", "evidence"),
    [
        ([HI, HELLO], {}, None),
        ([HI, HELLO], {"find": Tool()}, CallEvidence.LISTED),
        ([HI, calls("find"), HELLO], {}, CallEvidence.REPORTED),
        ([HI, calls("find"), HELLO], {"find": Tool()}, CallEvidence.REPORTED),
    ],
)
def test_what_shows_the_calls(messages: list[Any], tools: dict[str, Tool], evidence: Any) -> None:
    assert [turn.evidence for turn in parse(*messages, tools=tools)[0].trajectory.turns] == [evidence]


def test_instructions_are_the_policy() -> None:
    system = [
        {"role": role, "content": text}
        for role, text in (("system", "A"), ("developer", "B"), ("system", " "))
    ]
    assert parse(system[0], HI, *system[1:], HELLO)[0].policy == "A\n\nB"
    assert parse(HI, HELLO)[0].policy == ""


def test_what_a_message_says_of_usage_is_kept() -> None:
    found, _ = parse(HI, {**HELLO, "usage": {"prompt_tokens": 3, "completion_tokens": 2}})
    usage = found.trajectory.turns[0].steps[0].usage
    assert (usage.input_tokens, usage.output_tokens) == (3, 2)


# ── what could not be placed ─────────────────────────────────────────────────────────────────────


def unplaced(found: ParsedConversation) -> list[int]:
    trajectory = found.trajectory
    all_turns: tuple[Turn, ...] = trajectory.all_turns
    return [len(turn.unplaced) for turn in all_turns]


@pytest.mark.parametrize(
    ("messages", "counts"),
    [
        ([HI, ODD, HELLO, HI, HELLO], [1, 0]),
        ([HI, HELLO, ODD, HI, HELLO], [1, 0]),
        ([HI, HELLO, HI, ODD, HELLO], [0, 1]),
        ([ODD, HI, HELLO, HI, HELLO], [1, 0]),
        ([HI, ODD, ODD, HELLO], [1]),  # the same is told once
        ([HI, ODD, {**ODD, "content": "!"}, HELLO], [2]),
        ([HI, HELLO, HI, HELLO], [0, 0]),
    ],
)
def test_what_has_no_place_belongs_to_its_turn(messages: list[Any], counts: list[int]) -> None:
    assert unplaced(parse(*messages)[0]) == counts


def test_what_surrounds_the_messages_belongs_to_every_turn() -> None:
    around = (Unplaced("steps in the record", ("steps",), [{"x": 1}]),)
    found, told = parse(HI, HELLO, HI, HELLO, unplaced=around)
    assert unplaced(found) == [1, 1]
    assert len(told) == 1
    found, told = parse(HI, HELLO, unplaced=around, no_calls_in=CallFreeNames(frozenset({"steps"})))
    assert (unplaced(found), told) == ([0], [])


def test_what_surely_holds_no_calls_has_no_effect() -> None:
    found, told = parse(HI, ODD, HELLO, no_calls_in=CallFreeNames(frozenset({"critic"})))
    assert (unplaced(found), told, found.coverage) == ([0], [], (3, 3))


@pytest.mark.parametrize(
    ("messages", "coverage"),
    [
        ([HI, HELLO], (2, 2)),
        ([HI, ODD, HELLO], (3, 2)),
        ([HI, ODD, ODD, HELLO], (4, 2)),
        ([HI, result(name="x"), HELLO], (3, 3)),
        ([{"role": "unplaced", "entry": Unplaced("x")}, HI, HELLO], (2, 2)),
    ],
)
def test_how_many_messages_were_read(messages: list[Any], coverage: tuple[int, int]) -> None:
    assert parse(*messages)[0].coverage == coverage


@pytest.mark.parametrize(
    ("messages", "lost", "words"),
    [
        ([HI, ODD, ODD, ODD, HELLO], "", ["2 of 5", "critic", "3×", "role", "content"]),
        ([HI, *[ODD] * 1200, HELLO], "", ["2 of 1,202", "1,200×"]),
        ([], "", ["no message"]),
        ([HI], "", ["an agent"]),
        ([{"role": "system", "content": "x"}], "", ["no message"]),
        ([{"role": "system", "content": "x"}], "busy", ["no message"]),
        ([HI, calls("find"), result(), ODD], "", ["no answer", "critic"]),
        ([HI, {"role": "assistant", "content": [{"type": "odd", "data": "x"}]}], "", ["[odd]"]),
    ],
)
def test_too_little_was_read(messages: list[Any], lost: str, words: list[str]) -> None:
    with pytest.raises(AuthorError) as error:
        parse(*messages, lost=lost)
    (problem,) = error.value.problems
    assert [word for word in words if word not in problem.what] == []


def test_only_the_first_keys_and_reasons_of_what_was_not_read_are_told() -> None:
    odd = {"role": "critic", **{f"key{n}": n for n in range(9)}}
    others = [{"role": role, "x": 1} for role in ("b", "b", "b", "c", "c")]
    with pytest.raises(AuthorError) as error:
        parse(HI, odd, *others, HELLO)
    what = error.value.problems[0].what
    assert ("key6" in what, "key7" in what) == (True, False)
    assert ("'b'" in what, "'c'" in what, "'critic'" in what) == (True, True, False)


@pytest.mark.parametrize(
    "messages", [[HI, calls("find"), result(), ODD, HELLO], [HI, calls("find"), result()]]
)
def test_calls_without_an_unread_answer_are_read(messages: list[Any]) -> None:
    assert parse(*messages)[0].trajectory.tool_calls


def test_an_unread_answer_of_a_lost_conversation_is_no_problem() -> None:
    assert parse(HI, calls("find"), result(), ODD, lost="busy")[0].trajectory.unfinished
