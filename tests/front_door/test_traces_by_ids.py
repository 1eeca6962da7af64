"""Traces are put together by ids: in whatever order, lines and batches their spans come, an agent that calls
what it must not is red, at its turn, and the same agent without that call green."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.kit import Done, Project

T1, T2 = "1" * 32, "2" * 32
FORBIDDEN = "tool_calls: {forbidden: [{name: cancel}]}"
TOOLS = [{"type": "function", "name": name} for name in ("cancel", "look", "ask_helper")]
Spans = list[dict[str, Any]]


def span(key: str, parent: str, at: int, name: str, trace: str = T1, /, **attributes: Any) -> dict[str, Any]:
    named = {k.replace("__", "."): v if isinstance(v, str) else json.dumps(v) for k, v in attributes.items()}
    listed = [{"key": k, "value": {"stringValue": v}} for k, v in named.items()]
    own = {
        "traceId": trace,
        "spanId": key,
        "name": name,
        "startTimeUnixNano": 1000 + at,
        "endTimeUnixNano": 1005 + at,
    }
    return {**own, **({"parentSpanId": parent} if parent else {}), "attributes": listed}


def said(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": text}]}


def calling(name: str, key: str, **args: Any) -> dict[str, Any]:
    return {
        "role": "assistant",
        "parts": [{"type": "tool_call", "id": key, "name": name, "arguments": args}],
    }


def back(key: str, value: str) -> dict[str, Any]:
    return {"role": "tool", "parts": [{"type": "tool_call_response", "id": key, "response": value}]}


def chat(key: str, parent: str, at: int, asked: list[Any], answer: Any, trace: str = T1) -> dict[str, Any]:
    heard = {"gen_ai__input__messages": asked, "gen_ai__output__messages": [answer]}
    return span(
        key,
        parent,
        at,
        "chat m",
        trace,
        gen_ai__operation__name="chat",
        **heard,
        gen_ai__tool__definitions=TOOLS,
    )


def agent(key: str, parent: str, at: int, name: str = "desk", trace: str = T1, **more: Any) -> dict[str, Any]:
    kind = {"gen_ai__operation__name": "invoke_agent", "gen_ai__agent__name": name}
    return span(key, parent, at, f"invoke_agent {name}", trace, **kind, **more)


def ran(key: str, parent: str, at: int, name: str, call: str, result: str = "ok", trace: str = T1) -> Any:
    more = {"gen_ai__tool__call__id": call, "gen_ai__tool__call__result": result}
    kind = {"gen_ai__operation__name": "execute_tool", "gen_ai__tool__name": name}
    return span(
        key,
        parent,
        at,
        f"execute_tool {name}",
        trace,
        **kind,
        **more,
        gen_ai__tool__call__arguments={"id": "A-7"},
    )


def exported(spans: Spans) -> dict[str, Any]:
    return {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}


HELLO, HI = said("user", "Hello."), said("assistant", "Hi.")
NAMED = {"key": "session.id", "value": {"stringValue": "s"}}
PLEASE, DONE = said("user", "Cancel A-7?"), said("assistant", "Not needed.")


def two_turns(tool: str) -> Spans:
    """The second turn calls ``tool``, and the first what is harmless."""
    first = [HELLO, calling("look", "c1", id="A-7"), back("c1", "open")]
    second = [*first, HI, PLEASE]
    return [
        span("r", "", 0, "session"),
        agent("a1", "r", 1),
        chat("m1", "a1", 2, first[:1], first[1]),
        ran("t1", "a1", 10, "look", "c1", "open"),
        chat("m2", "a1", 20, first, HI),
        agent("a2", "r", 30),
        chat("m3", "a2", 31, second, calling(tool, "c2", id="A-7")),
        ran("t2", "a2", 40, tool, "c2"),
        chat("m4", "a2", 50, [*second, calling(tool, "c2", id="A-7"), back("c2", "ok")], DONE),
    ]


def other_trace() -> Spans:
    """Another conversation, which does what is forbidden in the first."""
    asked = [said("user", "Cancel B-1.")]
    called = calling("cancel", "c1", id="B-1")
    return [
        chat("m1", "", 3, asked, called, T2),
        ran("t1", "m1", 9, "cancel", "c1", trace=T2),
        chat("m2", "", 15, [*asked, called, back("c1", "ok")], DONE, T2),
    ]


def lines(*values: Any) -> str:
    return "".join(f"{json.dumps(each)}\n" for each in values)


def interleaved(spans: Spans) -> Spans:
    other = other_trace()
    return [*spans[:2], *other[:1], *spans[2:5], *other[1:], *spans[5:]]


WRITTEN: dict[str, Callable[[Spans], str]] = {
    "one document": lambda spans: lines(exported(spans)),
    "a span a line": lambda spans: lines(*spans),
    "children before parents": lambda spans: lines(*reversed(spans)),
    "batches": lambda spans: lines(*(exported(spans[at::4]) for at in range(4))),
    "batches of several traces": lambda spans: lines(
        *(exported(interleaved(spans)[at : at + 3]) for at in range(0, 12, 3))
    ),
    "two traces in one document": lambda spans: lines(exported([*other_trace(), *spans])),
    "each span twice": lambda spans: lines(exported(spans), exported(spans[::-1])),
    "without the root": lambda spans: lines(*spans[1:]),
    "tools of another clock": lambda spans: lines(*map(early_if_tool, spans)),
    "without the spans of tools": lambda spans: lines(*without("t1", "t2", spans=spans)),
}


def early_if_tool(each: dict[str, Any]) -> dict[str, Any]:
    start = each["startTimeUnixNano"] - 25 * each["name"].startswith("execute")
    return {**each, "startTimeUnixNano": start}


def without(*keys: str, spans: Spans) -> Spans:
    return [each for each in spans if each["spanId"] not in keys]


def score(project: Project, text: str, *rules: str, turns: int = 2) -> Done:
    project.write("log.jsonl", text)
    asked = [f"user: {json.dumps(user)}" for user in ("Hello.", *["Cancel A-7?"] * 2)]
    rows = "".join(
        f"  - {{{user}, expect: {{{rule}}}}}\n" if rule else f"  - {{{user}}}\n"
        for user, rule in zip(asked, rules, strict=False)
    )
    tools = "tools: {cancel: {}, look: {}, ask_helper: {}}"
    project.write("suite.yaml", f"id: '{T1}'\n{tools}\nturns:\n{rows}")
    project.write("agenteval.yaml", "metrics: []\ndetectors: []\n")
    done = project.call(
        "score", "log.jsonl", "--scenarios", "suite.yaml", "--report", "json=results.json", "-s", T1
    )
    assert len(project.sample(T1)["turns"]) == turns
    return done


@pytest.mark.parametrize("name", WRITTEN)
def test_a_trace_is_one_record_however_its_spans_are_written(project: Project, name: str) -> None:
    write = WRITTEN[name]
    assert score(project, write(two_turns("look")), FORBIDDEN, FORBIDDEN).code == 0
    assert score(project, write(two_turns("cancel")), "", FORBIDDEN).code == 1
    called = [[call["name"] for call in turn["tool_calls"]] for turn in project.sample(T1)["turns"]]
    assert called == [["look"], ["cancel"]]
    assert score(project, write(two_turns("cancel")), FORBIDDEN, "").code == 0


def test_what_led_to_a_message_and_is_in_no_span_is_not_fully_seen(project: Project) -> None:
    """A model's span is lost: its call is in what the next one was asked with. Others may be lost, too."""
    for tool, code in (("look", 3), ("cancel", 1)):
        spans = without("m3", spans=two_turns(tool))
        assert score(project, lines(*spans), "", FORBIDDEN).code == code
        assert [len(turn["tool_calls"]) for turn in project.sample(T1)["turns"]] == [1, 1]


def test_results_belong_to_the_call_of_their_id(project: Project) -> None:
    """The spans of two calls that ran at once end in another order than they were asked for."""
    parts = [calling("look", key, id=key)["parts"][0] for key in ("c1", "c2")]
    calls = {"role": "assistant", "parts": parts}
    tools = [
        span("t2", "m", 5, "look", openinference__span__kind="TOOL", tool__name="look", tool__id="c2",
             input__value={"id": "c2"}, output__value="second"),
        span("t1", "m", 6, "look", openinference__span__kind="TOOL", tool__name="look", tool__id="c1",
             input__value={"id": "c1"}, output__value="first"),
    ]  # fmt: skip
    spans = [chat("m", "", 1, [HELLO], calls), *tools, chat("m2", "", 20, [HELLO, calls], HI)]
    for each in (spans, spans[::-1]):
        score(project, lines(*each), "", turns=1)
        made = project.sample(T1)["turns"][0]["tool_calls"]
        assert [(call["args"]["id"], call["result"]) for call in made] == [("c1", "first"), ("c2", "second")]


def helped(tool: str, around: str) -> Spans:
    """An agent asks another one, which calls ``tool``. ``around``: the span that the helper stands in."""
    asked = [HELLO, calling("ask_helper", "c1", q="x")]
    inner = [said("user", "x"), calling(tool, "c9", id="A-7"), back("c9", "ok")]
    return [
        agent("a", "", 0),
        chat("m1", "a", 1, asked[:1], asked[1]),
        ran("t1", "a", 10, "ask_helper", "c1", "done"),
        agent("h", around, 11, "helper"),
        chat("h1", "h", 12, inner[:1], inner[1]),
        ran("t2", "h", 13, tool, "c9"),
        chat("h2", "h", 14, inner, said("assistant", "It is done, x.")),
        chat("m2", "a", 30, [*asked, back("c1", "done")], DONE),
    ]


@pytest.mark.parametrize("around", ["t1", "a"])
def test_the_calls_of_an_agent_that_an_agent_asked_are_of_the_users_turn(
    project: Project, around: str
) -> None:
    assert score(project, lines(*helped("look", around)), FORBIDDEN, turns=1).code == 0
    assert score(project, lines(*helped("cancel", around)), FORBIDDEN, turns=1).code == 1
    (turn,) = project.sample(T1)["turns"]
    assert (turn["user"], turn["agent"]) == ("Hello.", "Not needed.")
    assert [call["name"] for call in turn["tool_calls"]] == ["ask_helper", "cancel"]
    without = [each for each in helped("cancel", around) if each["spanId"] != "t2"]
    assert score(project, lines(*without), FORBIDDEN, turns=1).code == 1
    told = [
        each for each in without if each["spanId"] != "h1"
    ]  # only what the helper was asked with shows it
    assert score(project, lines(*told), FORBIDDEN, turns=1).code == 3


def test_an_agent_that_takes_over_answers_the_user(project: Project) -> None:
    asked = [HELLO, calling("ask_helper", "c1"), back("c1", "over to billing")]
    called = calling("cancel", "c2", id="A-7")
    spans = [
        agent("a", "", 0),
        chat("m1", "a", 1, asked[:1], asked[1]),
        agent("b", "a", 10, "billing"),
        chat("m2", "b", 11, asked, called),
        ran("t2", "b", 12, "cancel", "c2"),
        chat("m3", "b", 30, [*asked, called, back("c2", "ok")], DONE),
    ]
    assert score(project, lines(*spans), FORBIDDEN, turns=1).code == 1
    assert project.sample(T1)["turns"][0]["agent"] == "Not needed."
    # Its framework tells it in other words what was said; the first agent says nothing more.
    context = [HELLO, said("user", "For context: [desk] called ask_helper.")]
    spans[3:] = [chat("m2", "b", 11, context, DONE)]
    assert score(project, lines(*spans), "output: {contains: [Not needed]}", turns=1).code == 0
    assert score(project, lines(*spans), FORBIDDEN, turns=1).code == 3


def test_traces_of_a_session_are_its_turns(project: Project) -> None:
    def session(tool: str, **named: str) -> Spans:
        second = [PLEASE, calling(tool, "c2", id="A-7"), back("c2", "ok")]
        return [
            agent("a", "", 0, **named),
            chat("m", "a", 1, [HELLO], HI),
            agent("b", "", 30, "desk", T2, **named),
            chat("n1", "b", 31, second[:1], second[1], T2),
            ran("t", "b", 33, tool, "c2", trace=T2),
            chat("n2", "b", 40, second, DONE, T2),
        ]

    for key in ("gen_ai__conversation__id", "session__id", "langfuse__session__id"):
        assert score(project, lines(*session("look", **{key: "s"})), FORBIDDEN, FORBIDDEN).code == 0
        assert score(project, lines(*session("cancel", **{key: "s"})), "", FORBIDDEN).code == 1
        assert score(project, lines(*session("cancel", **{key: "s"})), FORBIDDEN, "").code == 0
    assert score(project, lines(*session("cancel")), "", turns=1).code == 0


def session_of_tool_spans(tool: str, first: Any = HI) -> Spans:
    """A trace for each turn, whose model is given its instructions and none of the turns before; only the
    spans of tools show the calls. ``first``: what the model answers in the first turn; ``None``: no span of
    it is there."""
    told = said("system", "You are the desk.")
    answer = [chat("m1", "a", 9, [told, HELLO], first)] if first else []
    return [
        agent("a", "", 0, session__id="s", gen_ai__input__messages=[HELLO]),
        ran("t1", "a", 3, tool, "c1"),
        *answer,
        agent("b", "", 30, "desk", T2, session__id="s", gen_ai__input__messages=[PLEASE]),
        ran("t2", "b", 33, "look", "c2", trace=T2),
        chat("n1", "b", 40, [told, PLEASE], DONE, T2),
    ]


def test_calls_of_spans_stand_before_the_answer_of_their_turn(project: Project) -> None:
    answered = "output: {contains: [Hi]}"
    assert (
        score(project, lines(*session_of_tool_spans("look")), f"{FORBIDDEN}, {answered}", FORBIDDEN).code == 0
    )
    assert score(project, lines(*session_of_tool_spans("cancel")), FORBIDDEN).code == 1
    assert [turn["agent"] for turn in project.sample(T1)["turns"]] == ["Hi.", "Not needed."]
    assert score(project, lines(*session_of_tool_spans("cancel")), answered, FORBIDDEN).code == 0
    assert score(project, lines(*session_of_tool_spans("look", said("assistant", "No."))), answered).code == 1


def in_texts(tool: str, first: str = "Hi.", models: bool = True) -> Spans:
    """As OpenInference has it: what an agent was asked and answered are texts of its span. Its model's answer
    in the first turn is not recorded, or none of its models is (``models``)."""

    def turn(key: str, at: int, user: str, answer: str, used: str, trace: str) -> Spans:
        texts = {"input__value": user, "output__value": answer, "session__id": "s"}
        kind = {"openinference__span__kind": "TOOL", "tool__name": used, "input__value": {"id": "A-7"}}
        made = [
            span(key, "", at, "run", trace, openinference__span__kind="AGENT", **texts),
            span(f"{key}t", key, at + 1, used, trace, **kind, output__value="ok"),
        ]
        made[0]["endTimeUnixNano"] += 25
        if models:
            asked = {"llm__input_messages__0__message__role": "user",
                     "llm__input_messages__0__message__content": user}  # fmt: skip
            if key == "b":
                asked |= {"llm__output_messages__0__message__role": "assistant",
                          "llm__output_messages__0__message__content": answer}  # fmt: skip
            made.append(span(f"{key}m", key, at + 9, "m", trace, openinference__span__kind="LLM", **asked))
        return made

    second = turn("b", 40, "Cancel A-7?", "Not needed.", "look", T2)
    return [*turn("a", 0, "Hello.", first, tool, T1), *second]


@pytest.mark.parametrize("models", [True, False])
def test_what_an_agent_was_asked_and_answered_may_be_texts_of_its_span(
    project: Project, models: bool
) -> None:
    answered = "output: {contains: [Hi]}"
    looked = lines(*in_texts("look", models=models))
    assert score(project, looked, f"{FORBIDDEN}, {answered}", FORBIDDEN).code == 0
    assert [turn["agent"] for turn in project.sample(T1)["turns"]] == ["Hi.", "Not needed."]
    assert score(project, lines(*in_texts("cancel", models=models)), FORBIDDEN).code == 1
    assert score(project, lines(*in_texts("cancel", models=models)), answered, FORBIDDEN).code == 0
    assert score(project, lines(*in_texts("look", "No.", models=models)), answered).code == 1


def test_what_a_user_says_twice_in_a_session_is_two_turns(project: Project) -> None:
    def session(tool: str) -> Spans:
        found: Spans = []
        for n, (user, used) in enumerate([(HELLO, "look"), (PLEASE, "look"), (PLEASE, tool)]):
            trace, at = str(n + 1) * 32, 100 * n
            calls = [user, calling(used, f"c{n}", id="A-7"), back(f"c{n}", "ok")]
            texts = {"gen_ai__input__messages": [user], "gen_ai__output__messages": [DONE]}
            made = [
                agent("a", "", at, trace=trace, session__id="s", **texts),
                chat("m1", "a", at + 1, calls[:1], calls[1], trace),
                ran("t", "a", at + 8, used, f"c{n}", trace=trace),
                chat("m2", "a", at + 15, calls, DONE, trace),
            ]
            made[0]["endTimeUnixNano"] += 50
            found += made
        return found

    assert score(project, lines(*session("look")), *[FORBIDDEN] * 3, turns=3).code == 0
    assert score(project, lines(*session("cancel")), *[FORBIDDEN] * 3, turns=3).code == 1
    assert score(project, lines(*session("cancel")), FORBIDDEN, FORBIDDEN, turns=3).code == 0
    called = [[call["name"] for call in turn["tool_calls"]] for turn in project.sample(T1)["turns"]]
    assert called == [["look"], ["look"], ["cancel"]]


def test_an_answer_that_no_span_holds_is_not_fully_seen_and_an_empty_one_is_red(project: Project) -> None:
    """Only the turns before the last: what a trace ends with is not known to be all."""
    done = score(project, lines(*session_of_tool_spans("look", first=None)), FORBIDDEN)
    assert done.code == 3
    assert "the answer before the span" in " ".join(done.out.split())
    assert score(project, lines(*session_of_tool_spans("look", first=None)), "", FORBIDDEN).code == 0
    silent = lines(*session_of_tool_spans("look", said("assistant", "")))
    assert score(project, silent, FORBIDDEN, FORBIDDEN).code == 1
    assert [turn["agent"] for turn in project.sample(T1)["turns"]] == ["", "Not needed."]


def test_what_goes_on_from_nothing_that_was_said_is_not_fully_seen(project: Project) -> None:
    """An agent's second model has other words: of whom they are, and what was said before, no span says."""
    spans = [agent("a", "", 0), chat("m1", "a", 1, [HELLO], HI), chat("m2", "a", 20, [PLEASE], DONE)]
    for rules in ((FORBIDDEN, ""), ("", FORBIDDEN)):
        done = score(project, lines(*spans), *rules)
        assert done.code == 3
        assert "whose input does not continue them" in " ".join(done.out.split())
    # That both are of one session does not tell turns from steps within one trace.
    session = [{**each, "attributes": [*each["attributes"], NAMED]} for each in spans[1:]]
    assert score(project, lines(*session), FORBIDDEN, FORBIDDEN).code == 3
    known = [agent("a", "", 0), spans[1], chat("m2", "a", 20, [HELLO, HI, PLEASE], DONE)]
    assert score(project, lines(*known), FORBIDDEN, FORBIDDEN).code == 0


def test_what_is_asked_again_has_each_of_its_answers_in_one_turn(project: Project) -> None:
    def tried(tool: str) -> Spans:
        over = [HELLO, calling("look", "c2", id="A-7"), back("c2", "open")]
        return [
            agent("a", "", 0),
            chat("m1", "a", 1, [HELLO], calling(tool, "c1", id="A-7")),
            chat("m2", "a", 7, [HELLO], over[1]),
            ran("t2", "a", 20, "look", "c2", "open"),
            chat("m3", "a", 30, over, DONE),
        ]

    assert score(project, lines(*tried("look")), FORBIDDEN, turns=1).code == 0
    assert score(project, lines(*tried("cancel")), FORBIDDEN, turns=1).code == 1
    assert project.sample(T1)["turns"][0]["agent"] == "Not needed."


def test_messages_of_adk_are_read(project: Project) -> None:
    def adk(tool: str) -> Spans:
        user = {"role": "user", "parts": [{"text": "Hello."}]}
        call = {
            "role": "model",
            "parts": [{"function_call": {"id": "c1", "name": tool, "args": {"id": "A-7"}}}],
        }
        given = {
            "role": "user",
            "parts": [{"function_response": {"id": "c1", "name": tool, "response": {"r": 1}}}],
        }
        declared = [{"function_declarations": [{"name": "cancel"}, {"name": "look"}]}]
        config = {"system_instruction": "Be brief.", "tools": declared}
        asked = [{"contents": [user], "config": config}, {"contents": [user, call, given], "config": config}]
        answers = [call, {"role": "model", "parts": [{"text": "Done."}]}]
        models = [
            span(f"m{n}", "a", 10 * n + 1, "call_llm", gcp__vertex__agent__llm_request=request,
                 gcp__vertex__agent__llm_response={"content": answer})
            for n, (request, answer) in enumerate(zip(asked, answers, strict=True))
        ]  # fmt: skip
        empty = {"gcp__vertex__agent__llm_request": "{}", "gcp__vertex__agent__tool_call_args": {"id": "A-7"}}
        kind = {
            "gen_ai__operation__name": "execute_tool",
            "gen_ai__tool__name": tool,
            "gen_ai__tool__call__id": "c1",
        }
        return [agent("a", "", 0), *models, span("t", "m0", 5, f"execute_tool {tool}", **kind, **empty)]

    assert score(project, lines(*adk("look")), FORBIDDEN, turns=1).code == 0
    assert score(project, lines(*adk("cancel")), FORBIDDEN, turns=1).code == 1
    (turn,) = project.sample(T1)["turns"]
    assert (turn["agent"], len(turn["tool_calls"])) == ("Done.", 1)


def test_results_of_google_belong_to_the_call_of_their_id(project: Project) -> None:
    """Two tools ran at once and ended in another order; only messages show them."""

    def parts(kind: str, inner: str, *keys: str) -> list[Any]:
        return [{kind: {"id": key, "name": "look", inner: {"id": key}}} for key in keys]

    user = {"role": "user", "parts": [{"text": "Hello."}]}
    calls = {"role": "model", "parts": parts("function_call", "args", "c1", "c2")}
    given = {"role": "user", "parts": parts("function_response", "response", "c2", "c1")}
    done = {"role": "model", "parts": [{"text": "Done."}]}
    answers = [([user], calls), ([user, calls, given], done)]
    models = [
        span(f"m{n}", "a", 10 * n + 1, "call_llm", gcp__vertex__agent__llm_request={"contents": asked},
             gcp__vertex__agent__llm_response={"content": answer})
        for n, (asked, answer) in enumerate(answers)
    ]  # fmt: skip
    score(project, lines(agent("a", "", 0), *models), "", turns=1)
    made = project.sample(T1)["turns"][0]["tool_calls"]
    assert [(call["args"]["id"], call["result"]["id"]) for call in made] == [("c1", "c1"), ("c2", "c2")]


def test_results_without_ids_are_those_of_the_spans(project: Project) -> None:
    """A model is sent the result of a call, and neither says of which; the tool's span has it, too."""

    def asking(tool: str) -> Spans:
        call = calling(tool, "", id="A-7")
        given = {"role": "tool", "content": "ok"}
        more = {"openinference__span__kind": "TOOL", "tool__name": tool, "output__value": "ok"}
        ran_once = span("t", "a", 8, tool, T1, **more, input__value={"id": "A-7"})
        models = [chat("m1", "a", 1, [HELLO], call), chat("m2", "a", 20, [HELLO, call, given], DONE)]
        return [agent("a", "", 0), *models, ran_once]

    assert score(project, lines(*asking("look")), FORBIDDEN, turns=1).code == 0
    assert score(project, lines(*asking("cancel")), FORBIDDEN, turns=1).code == 1
    assert [call["result"] for call in project.sample(T1)["turns"][0]["tool_calls"]] == ["ok"]


def test_a_trace_of_which_a_part_is_in_another_file_is_not_fully_seen(project: Project) -> None:
    spans = two_turns("look")
    project.write("agenteval.yaml", "metrics: []\ndetectors: []\n")
    project.write("suite.yaml", f"{{id: '{T1}', turns: [Hello., Cancel A-7?], expect: {{{FORBIDDEN}}}}}")
    project.write("a.json", json.dumps(exported(spans[:5])))
    project.write("b.json", json.dumps(exported(spans[5:])))
    project.write("other.json", json.dumps(exported(other_trace())))
    done = project.call("score", "a.json", "b.json", "--scenarios", "suite.yaml")
    assert done.code == 3
    assert f"the part of the trace {T1} at a.json:1, in another file" in " ".join(done.all.split())
    done = project.call("score", "a.json", "other.json", "--no-judge")
    assert "in another file" not in done.all


def test_spans_that_come_too_late_and_traces_without_messages_are_refused_in_words(project: Project) -> None:
    first, *rest = two_turns("cancel")
    between = [{**rest[1], "traceId": f"{number:032x}", "spanId": "x"} for number in range(1, 1_100)]
    project.write("log.jsonl", lines(*rest[:4], *between, *rest[4:]))
    done = project.call("score", "log.jsonl", "--no-judge", "--report", "json=results.json")
    (late,) = (
        each["samples"][0]["reason"]
        for each in project.results()["scenarios"]
        if each["samples"][0]["reason"]
    )
    assert "log.jsonl:1, far from these; sort the log by trace" in late
    project.write("log.jsonl", lines(first, ran("t", "r", 5, "cancel", "c1")))
    done = project.call("score", "log.jsonl", "--no-judge")
    assert done.code == 2
    assert "no span ('session', 'execute_tool cancel') contains a request or an answer" in done.all
    assert "gen_ai.input.messages" in done.all


ASKS = [{"id": "c9", "type": "function", "function": {"name": "cancel", "arguments": "{}"}}]
KEPT = {"attributes": [{"key": "kept", "value": {"stringValue": json.dumps({"tool_calls": ASKS})}}]}


def test_what_an_export_holds_around_spans_is_searched(project: Project) -> None:
    for place, around, code in (
        ("resource", {"attributes": [{"key": "service.name", "value": {"stringValue": "shop"}}]}, 0),
        ("resource", KEPT, 3),
        ("scope", {"name": "tracer", "version": "1"}, 0),
        ("scope", KEPT, 3),
        ("more", [{"name": "execute_tool cancel"}], 3),
        ("schemaUrl", "https://opentelemetry.io/schemas/1.37.0", 0),
    ):
        export = exported(two_turns("look")[2:])
        group = export["resourceSpans"][0]
        (group if place == "resource" else group["scopeSpans"][0])[place] = around
        done = score(project, lines(export), "", FORBIDDEN)
        assert (done.code, place) == (code, place), done.all


def test_a_cycle_of_strands_is_a_step(project: Project) -> None:
    for name, code in (("execute_event_loop_cycle", 0), ("execute_something", 3)):
        cycle = span("e", "a2", 35, name, **{"event_loop.cycle_id": "1"})
        assert score(project, lines(*two_turns("look"), cycle), "", FORBIDDEN).code == code
