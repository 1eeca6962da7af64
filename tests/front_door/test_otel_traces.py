"""Traces are put together by ids: in whatever order, lines and batches their spans come, an agent that calls
what it must not is red, at its turn, and the same agent without that call green."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.kit import Project
from tests.support.scored_logs import samples, score
from tests.support.scored_traces import (
    FAILED,
    FORBIDDEN,
    OPEN,
    PASSED,
    Row,
    answers_of,
    calls_of,
    check_traces,
    lines,
    reasons_of,
)

T1, T2, T3 = "1" * 32, "2" * 32, "3" * 32
USERS = ("Hello.", "Cancel A-7?", "Cancel A-7?")
TOOLS = [{"type": "function", "name": name} for name in ("cancel", "look", "ask_helper")]
Spans = list[dict[str, Any]]


def check(project: Project, rows: dict[str, Row], *, turns: int = 2) -> dict[str, dict[str, Any]]:
    found = check_traces(project, rows, USERS, T1, T2, T3, "s")
    assert {len(sample["turns"]) for sample in found.values()} == {turns}
    return found


def span(key: str, parent: str, at: int, name: str, trace: str = T1, /, **attributes: Any) -> dict[str, Any]:
    named = {k.replace("__", "."): v if isinstance(v, str) else json.dumps(v) for k, v in attributes.items()}
    listed = [{"key": k, "value": {"stringValue": v}} for k, v in named.items()]
    own = {"traceId": trace, "spanId": key, "name": name}
    times = {"startTimeUnixNano": 1000 + at, "endTimeUnixNano": 1005 + at}
    return {**own, **times, **({"parentSpanId": parent} if parent else {}), "attributes": listed}


def said(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": text}]}


def calling(name: str, key: str, **args: Any) -> dict[str, Any]:
    part = {"type": "tool_call", "id": key, "name": name, "arguments": args or {"id": "A-7"}}
    return {"role": "assistant", "parts": [part]}


def back(key: str, value: str = "ok") -> dict[str, Any]:
    return {"role": "tool", "parts": [{"type": "tool_call_response", "id": key, "response": value}]}


def chat(key: str, parent: str, at: int, asked: list[Any], answer: Any, trace: str = T1) -> dict[str, Any]:
    heard = {"gen_ai__input__messages": asked, "gen_ai__output__messages": [answer]}
    kind = {"gen_ai__operation__name": "chat", "gen_ai__tool__definitions": TOOLS}
    return span(key, parent, at, "chat m", trace, **kind, **heard)


def agent(key: str, parent: str, at: int, name: str = "desk", trace: str = T1, **more: Any) -> dict[str, Any]:
    kind = {"gen_ai__operation__name": "invoke_agent", "gen_ai__agent__name": name}
    return span(key, parent, at, f"invoke_agent {name}", trace, **kind, **more)


def ran(key: str, parent: str, at: int, name: str, call: str, result: str = "ok", trace: str = T1) -> Any:
    kind = {"gen_ai__operation__name": "execute_tool", "gen_ai__tool__name": name}
    given = {"gen_ai__tool__call__id": call, "gen_ai__tool__call__arguments": {"id": "A-7"}}
    result_ = {"gen_ai__tool__call__result": result}
    return span(key, parent, at, f"execute_tool {name}", trace, **kind, **given, **result_)


def exported(spans: Spans) -> dict[str, Any]:
    return {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}


HELLO, HI = said("user", "Hello."), said("assistant", "Hi.")
NAMED = {"key": "session.id", "value": {"stringValue": "s"}}
PLEASE, DONE = said("user", "Cancel A-7?"), said("assistant", "Not needed.")


def two_turns(tool: str) -> Spans:
    """The second turn calls ``tool``, and the first what is harmless."""
    first = [HELLO, calling("look", "c1"), back("c1", "open")]
    second = [*first, HI, PLEASE]
    return [
        span("r", "", 0, "session"),
        agent("a1", "r", 1),
        chat("m1", "a1", 2, first[:1], first[1]),
        ran("t1", "a1", 10, "look", "c1", "open"),
        chat("m2", "a1", 20, first, HI),
        agent("a2", "r", 30),
        chat("m3", "a2", 31, second, calling(tool, "c2")),
        ran("t2", "a2", 40, tool, "c2"),
        chat("m4", "a2", 50, [*second, calling(tool, "c2"), back("c2")], DONE),
    ]


def other_trace() -> Spans:
    """Another conversation, which does what is forbidden in the first."""
    asked = [said("user", "Cancel B-1.")]
    called = calling("cancel", "c1", id="B-1")
    return [
        chat("m1", "", 3, asked, called, T2),
        ran("t1", "m1", 9, "cancel", "c1", trace=T2),
        chat("m2", "", 15, [*asked, called, back("c1")], DONE, T2),
    ]


def interleaved(spans: Spans) -> Spans:
    other = other_trace()
    return [*spans[:2], *other[:1], *spans[2:5], *other[1:], *spans[5:]]


def early_if_tool(each: dict[str, Any]) -> dict[str, Any]:
    start = each["startTimeUnixNano"] - 25 * each["name"].startswith("execute")
    return {**each, "startTimeUnixNano": start}


def without(*keys: str, spans: Spans) -> Spans:
    return [each for each in spans if each["spanId"] not in keys]


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


def test_a_trace_is_one_record_however_its_spans_are_written(project: Project) -> None:
    rows = {}
    for name, write in WRITTEN.items():
        rows[f"{name}, look"] = Row(write(two_turns("look")), (FORBIDDEN, FORBIDDEN), PASSED)
        rows[f"{name}, cancel"] = Row(write(two_turns("cancel")), ("", FORBIDDEN), FAILED)
        rows[f"{name}, cancel later"] = Row(write(two_turns("cancel")), (FORBIDDEN, ""), PASSED)
    found = check(project, rows)
    for name in WRITTEN:
        assert calls_of(found[f"{name}, cancel"]) == [["look"], ["cancel"]]


def test_what_led_to_a_message_and_is_in_no_span_is_not_fully_seen(project: Project) -> None:
    """A model's span is lost: its call is in what the next one was asked with. Others may be lost, too."""
    rows = {
        tool: Row(lines(*without("m3", spans=two_turns(tool))), ("", FORBIDDEN), verdict)
        for tool, verdict in (("look", OPEN), ("cancel", FAILED))
    }
    for sample in check(project, rows).values():
        assert [len(calls) for calls in calls_of(sample)] == [1, 1]


# ── results ──────────────────────────────────────────────────────────────────────────────────────


def test_results_belong_to_the_call_of_their_id(project: Project) -> None:
    """The spans of two calls that ran at once end in another order than they were asked for."""
    calls = {"role": "assistant", "parts": [calling("look", key, id=key)["parts"][0] for key in ("c1", "c2")]}
    tools = [
        span(f"t{key}", "m", at, "look", openinference__span__kind="TOOL", tool__name="look", tool__id=key,
             input__value={"id": key}, output__value=result)
        for key, at, result in (("c2", 5, "second"), ("c1", 6, "first"))
    ]  # fmt: skip
    spans = [chat("m", "", 1, [HELLO], calls), *tools, chat("m2", "", 20, [HELLO, calls], HI)]
    rows = {
        "as written": Row(lines(*spans), [""], PASSED),
        "reversed": Row(lines(*spans[::-1]), [""], PASSED),
    }
    for sample in check(project, rows, turns=1).values():
        made = sample["turns"][0]["tool_calls"]
        assert [(call["args"]["id"], call["result"]) for call in made] == [("c1", "first"), ("c2", "second")]


def test_results_of_google_belong_to_the_call_of_their_id(project: Project) -> None:
    """Two tools ran at once and ended in another order; only messages show them."""

    def parts(kind: str, inner: str, *keys: str) -> list[Any]:
        return [{kind: {"id": key, "name": "look", inner: {"id": key}}} for key in keys]

    user = {"role": "user", "parts": [{"text": "Hello."}]}
    calls = {"role": "model", "parts": parts("function_call", "args", "c1", "c2")}
    given = {"role": "user", "parts": parts("function_response", "response", "c2", "c1")}
    done = {"role": "model", "parts": [{"text": "Done."}]}
    spans = [agent("a", "", 0), *adk_models(([user], calls), ([user, calls, given], done))]
    (sample,) = check(project, {"a": Row(lines(*spans), [""], PASSED)}, turns=1).values()
    made = sample["turns"][0]["tool_calls"]
    assert [(call["args"]["id"], call["result"]["id"]) for call in made] == [("c1", "c1"), ("c2", "c2")]


def test_results_without_ids_are_those_of_the_spans(project: Project) -> None:
    """A model is sent the result of a call, and neither names the call; the tool's span has it, too."""

    def asking(tool: str) -> str:
        call, given = calling(tool, ""), {"role": "tool", "content": "ok"}
        more = {"openinference__span__kind": "TOOL", "tool__name": tool, "output__value": "ok"}
        ran_once = span("t", "a", 8, tool, T1, **more, input__value={"id": "A-7"})
        models = [chat("m1", "a", 1, [HELLO], call), chat("m2", "a", 20, [HELLO, call, given], DONE)]
        return lines(agent("a", "", 0), *models, ran_once)

    found = check(project, by_tool(asking), turns=1)
    assert [call["result"] for call in found["cancel"]["turns"][0]["tool_calls"]] == ["ok"]


def by_tool(text: Callable[[str], str]) -> dict[str, Row]:
    """A trace whose only turn calls what it may, and one whose turn does not."""
    verdicts = {"look": PASSED, "cancel": FAILED}
    return {tool: Row(text(tool), [FORBIDDEN], verdict) for tool, verdict in verdicts.items()}


# ── several agents ───────────────────────────────────────────────────────────────────────────────


def helped(tool: str, around: str) -> Spans:
    """An agent asks another one, which calls ``tool``. ``around``: the span that the helper stands in."""
    asked = [HELLO, calling("ask_helper", "c1", q="x")]
    inner = [said("user", "x"), calling(tool, "c9"), back("c9")]
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
def test_calls_of_an_agent_that_an_agent_asked_are_of_the_user_s_turn(project: Project, around: str) -> None:
    spans = helped("cancel", around)
    rows = by_tool(lambda tool: lines(*helped(tool, around))) | {
        "without the tool's span": Row(lines(*without("t2", spans=spans)), [FORBIDDEN], FAILED),
        # Only what the helper was asked with shows it.
        "without its model's, too": Row(lines(*without("t2", "h1", spans=spans)), [FORBIDDEN], OPEN),
    }
    (turn,) = check(project, rows, turns=1)["cancel"]["turns"]
    assert (turn["user"], turn["agent"]) == ("Hello.", "Not needed.")
    assert [call["name"] for call in turn["tool_calls"]] == ["ask_helper", "cancel"]


def test_an_agent_that_takes_over_answers_the_user(project: Project) -> None:
    asked = [HELLO, calling("ask_helper", "c1"), back("c1", "over to billing")]
    called = calling("cancel", "c2")
    start = [agent("a", "", 0), chat("m1", "a", 1, asked[:1], asked[1]), agent("b", "a", 10, "billing")]
    calls = [
        chat("m2", "b", 11, asked, called),
        ran("t2", "b", 12, "cancel", "c2"),
        chat("m3", "b", 30, [*asked, called, back("c2")], DONE),
    ]
    # Its framework has other words for the conversation so far; the first agent says nothing more.
    context = [HELLO, said("user", "For context: [desk] called ask_helper.")]
    retold = lines(*start, chat("m2", "b", 11, context, DONE))
    rows = {
        "the same words": Row(lines(*start, *calls), [FORBIDDEN], FAILED),
        "other words, answer": Row(retold, ["output: {contains: [Not needed]}"], PASSED),
        "other words, calls": Row(retold, [FORBIDDEN], OPEN),
    }
    assert answers_of(check(project, rows, turns=1)["the same words"]) == ["Not needed."]


# ── sessions ─────────────────────────────────────────────────────────────────────────────────────


def session(tool: str, **named: str) -> str:
    second = [PLEASE, calling(tool, "c2"), back("c2")]
    return lines(
        agent("a", "", 0, **named),
        chat("m", "a", 1, [HELLO], HI),
        agent("b", "", 30, "desk", T2, **named),
        chat("n1", "b", 31, second[:1], second[1], T2),
        ran("t", "b", 33, tool, "c2", trace=T2),
        chat("n2", "b", 40, second, DONE, T2),
    )


def test_traces_of_a_session_are_its_turns(project: Project) -> None:
    rows = {}
    for key in ("gen_ai__conversation__id", "session__id", "langfuse__session__id"):
        look, cancel = (session(tool, **{key: "s"}) for tool in ("look", "cancel"))
        rows[f"{key}, look"] = Row(look, (FORBIDDEN, FORBIDDEN), PASSED)
        rows[f"{key}, cancel"] = Row(cancel, ("", FORBIDDEN), FAILED)
        rows[f"{key}, cancel later"] = Row(cancel, (FORBIDDEN, ""), PASSED)
    check(project, rows)
    check(project, {"no session": Row(session("cancel"), [""], PASSED)}, turns=1)


def session_of_tool_spans(tool: str, first: Any = HI) -> str:
    """A trace for each turn, whose model is given its instructions and none of the turns before; only the
    spans of tools show the calls. ``first``: what the model answers in the first turn; ``None``: no span of
    it is there."""
    policy = said("system", "You are the desk.")
    return lines(
        agent("a", "", 0, session__id="s", gen_ai__input__messages=[HELLO]),
        ran("t1", "a", 3, tool, "c1"),
        *([chat("m1", "a", 9, [policy, HELLO], first)] if first else []),
        agent("b", "", 30, "desk", T2, session__id="s", gen_ai__input__messages=[PLEASE]),
        ran("t2", "b", 33, "look", "c2", trace=T2),
        chat("n1", "b", 40, [policy, PLEASE], DONE, T2),
    )


ANSWERED = "output: {contains: [Hi]}"


def test_calls_of_spans_stand_before_the_answer_of_their_turn(project: Project) -> None:
    look, cancel = map(session_of_tool_spans, ("look", "cancel"))
    no = session_of_tool_spans("look", said("assistant", "No."))
    silent = session_of_tool_spans("look", said("assistant", ""))
    lost = session_of_tool_spans("look", None)
    found = check(
        project,
        {
            "look": Row(look, (f"{FORBIDDEN}, {ANSWERED}", FORBIDDEN), PASSED),
            "cancel": Row(cancel, [FORBIDDEN], FAILED),
            "the answer after cancel": Row(cancel, (ANSWERED, FORBIDDEN), PASSED),
            "another answer": Row(no, [ANSWERED], FAILED),
            # Only the turns before the last: what a trace ends with is not known to be all.
            "no answer in a span, first": Row(lost, [FORBIDDEN], OPEN),
            "no answer in a span, second": Row(lost, ("", FORBIDDEN), PASSED),
            "an empty answer": Row(silent, (FORBIDDEN, FORBIDDEN), FAILED),
        },
    )
    assert answers_of(found["cancel"]) == ["Hi.", "Not needed."]
    assert "span" in reasons_of(found["no answer in a span, first"])
    assert answers_of(found["an empty answer"]) == ["", "Not needed."]


def in_texts(tool: str, first: str = "Hi.", models: bool = True) -> str:
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
    return lines(*turn("a", 0, "Hello.", first, tool, T1), *second)


def test_what_an_agent_was_asked_and_answered_may_be_texts_of_its_span(project: Project) -> None:
    rows = {}
    for models in (True, False):
        look, cancel = (in_texts(tool, models=models) for tool in ("look", "cancel"))
        rows[f"look {models}"] = Row(look, (f"{FORBIDDEN}, {ANSWERED}", FORBIDDEN), PASSED)
        rows[f"cancel {models}"] = Row(cancel, [FORBIDDEN], FAILED)
        rows[f"the answer after cancel {models}"] = Row(cancel, (ANSWERED, FORBIDDEN), PASSED)
        rows[f"another answer {models}"] = Row(in_texts("look", "No.", models), [ANSWERED], FAILED)
    found = check(project, rows)
    for models in (True, False):
        assert answers_of(found[f"look {models}"]) == ["Hi.", "Not needed."]


def test_what_a_user_writes_twice_in_a_session_is_two_turns(project: Project) -> None:
    def three(tool: str) -> str:
        found: Spans = []
        for n, (user, used) in enumerate([(HELLO, "look"), (PLEASE, "look"), (PLEASE, tool)]):
            trace, at = (T1, T2, T3)[n], 100 * n
            calls = [user, calling(used, f"c{n}"), back(f"c{n}")]
            texts = {"gen_ai__input__messages": [user], "gen_ai__output__messages": [DONE]}
            around = agent("a", "", at, trace=trace, session__id="s", **texts)
            around["endTimeUnixNano"] += 50
            models = [
                chat("m1", "a", at + 1, calls[:1], calls[1], trace),
                chat("m2", "a", at + 15, calls, DONE, trace),
            ]
            found += [around, *models, ran("t", "a", at + 8, used, f"c{n}", trace=trace)]
        return lines(*found)

    rows = {
        "look": Row(three("look"), [FORBIDDEN] * 3, PASSED),
        "cancel": Row(three("cancel"), [FORBIDDEN] * 3, FAILED),
        "cancel later": Row(three("cancel"), [FORBIDDEN] * 2, PASSED),
    }
    found = check(project, rows, turns=3)
    assert calls_of(found["cancel later"]) == [["look"], ["look"], ["cancel"]]


def test_messages_that_continue_nothing_are_not_fully_seen(project: Project) -> None:
    """An agent's second model has other words: of whom they are, and what was said before, no span holds."""
    first = [agent("a", "", 0), chat("m1", "a", 1, [HELLO], HI)]
    apart = [*first, chat("m2", "a", 20, [PLEASE], DONE)]
    known = [*first, chat("m2", "a", 20, [HELLO, HI, PLEASE], DONE)]
    # That both are of one session does not tell turns from steps within one trace.
    named = [{**each, "attributes": [*each["attributes"], NAMED]} for each in apart[1:]]
    rows = {
        "apart, first": Row(lines(*apart), (FORBIDDEN, ""), OPEN),
        "apart, second": Row(lines(*apart), ("", FORBIDDEN), OPEN),
        "of one session": Row(lines(*named), (FORBIDDEN, FORBIDDEN), OPEN),
        "continued": Row(lines(*known), (FORBIDDEN, FORBIDDEN), PASSED),
    }
    found = check(project, rows)
    for name in ("apart, first", "apart, second"):
        assert "'chat m'" in reasons_of(found[name])


def test_what_is_asked_again_has_each_of_its_answers_in_one_turn(project: Project) -> None:
    def tried(tool: str) -> str:
        over = [HELLO, calling("look", "c2"), back("c2", "open")]
        return lines(
            agent("a", "", 0),
            chat("m1", "a", 1, [HELLO], calling(tool, "c1")),
            chat("m2", "a", 7, [HELLO], over[1]),
            ran("t2", "a", 20, "look", "c2", "open"),
            chat("m3", "a", 30, over, DONE),
        )

    assert answers_of(check(project, by_tool(tried), turns=1)["cancel"]) == ["Not needed."]


# ── other libraries ──────────────────────────────────────────────────────────────────────────────


def adk_models(*asked_and_answered: tuple[list[Any], Any], **config: Any) -> Spans:
    """As Google's ADK records requests and responses of models."""
    return [
        span(f"m{n}", "a", 10 * n + 1, "call_llm",
             gcp__vertex__agent__llm_request={"contents": asked, **({"config": config} if config else {})},
             gcp__vertex__agent__llm_response={"content": answer})
        for n, (asked, answer) in enumerate(asked_and_answered)
    ]  # fmt: skip


def test_messages_of_adk_are_read(project: Project) -> None:
    def adk(tool: str) -> str:
        user = {"role": "user", "parts": [{"text": "Hello."}]}
        call = {
            "role": "model",
            "parts": [{"function_call": {"id": "c1", "name": tool, "args": {"id": "A-7"}}}],
        }
        response = {"function_response": {"id": "c1", "name": tool, "response": {"r": 1}}}
        asked = [user, call, {"role": "user", "parts": [response]}]
        done = {"role": "model", "parts": [{"text": "Done."}]}
        declared = [{"function_declarations": [{"name": "cancel"}, {"name": "look"}]}]
        models = adk_models(([user], call), (asked, done), system_instruction="Be brief.", tools=declared)
        empty = {"gcp__vertex__agent__llm_request": "{}", "gcp__vertex__agent__tool_call_args": {"id": "A-7"}}
        kind = {"gen_ai__operation__name": "execute_tool", "gen_ai__tool__name": tool}
        used = span("t", "m0", 5, f"execute_tool {tool}", **kind, gen_ai__tool__call__id="c1", **empty)
        return lines(agent("a", "", 0), *models, used)

    (turn,) = check(project, by_tool(adk), turns=1)["cancel"]["turns"]
    assert (turn["agent"], len(turn["tool_calls"])) == ("Done.", 1)


def test_a_cycle_of_strands_is_a_step(project: Project) -> None:
    rows = {}
    for name, verdict in (("execute_event_loop_cycle", PASSED), ("execute_something", OPEN)):
        cycle = span("e", "a2", 35, name, **{"event_loop.cycle_id": "1"})
        rows[name] = Row(lines(*two_turns("look"), cycle), ("", FORBIDDEN), verdict)
    check(project, rows)


KEPT = {"tool_calls": [{"id": "c9", "type": "function", "function": {"name": "cancel", "arguments": "{}"}}]}
ATTRIBUTES = {
    "calls": {"attributes": [{"key": "kept", "value": {"stringValue": json.dumps(KEPT)}}]},
    "a name": {"attributes": [{"key": "service.name", "value": {"stringValue": "shop"}}]},
}


def test_what_an_export_holds_around_spans_is_searched(project: Project) -> None:
    rows = {}
    for place, around, verdict in (
        ("resource", ATTRIBUTES["a name"], PASSED),
        ("resource", ATTRIBUTES["calls"], OPEN),
        ("scope", {"name": "tracer", "version": "1"}, PASSED),
        ("scope", ATTRIBUTES["calls"], OPEN),
        ("more", [{"name": "execute_tool cancel"}], OPEN),
        ("schemaUrl", "https://opentelemetry.io/schemas/1.37.0", PASSED),
    ):
        export = exported(two_turns("look")[2:])
        group = export["resourceSpans"][0]
        (group if place == "resource" else group["scopeSpans"][0])[place] = around
        rows[f"{place}, {verdict}"] = Row(lines(export), ("", FORBIDDEN), verdict)
    check(project, rows)


# ── traces that are not whole ────────────────────────────────────────────────────────────────────


def test_a_trace_of_which_a_part_is_in_another_file_is_not_fully_seen(project: Project) -> None:
    spans = two_turns("look")
    project.write("agenteval.yaml", "metrics: []\ndetectors: []\n")
    project.write("suite.yaml", f"{{id: '{T1}', turns: [Hello., Cancel A-7?], expect: {{{FORBIDDEN}}}}}")
    for name, part in (("a.json", spans[:5]), ("b.json", spans[5:]), ("other.json", other_trace())):
        project.write(name, json.dumps(exported(part)))
    done = score(project, "a.json", "b.json", "--scenarios", "suite.yaml")
    assert done.code == 3
    reasons = "".join(map(reasons_of, next(s["samples"] for s in project.results()["scenarios"])))
    assert all(fact in reasons for fact in (T1, "a.json:1"))
    score(project, "a.json", "other.json", "--scenarios", "suite.yaml")
    assert "a.json:1" not in reasons_of(samples(project)[T1])


def test_spans_that_come_too_late_are_named(project: Project) -> None:
    """After a thousand others, which are tools that ran in traces without a message."""
    rest = two_turns("cancel")[1:]
    between = [{**rest[2], "traceId": f"{number:032x}", "spanId": "x"} for number in range(1, 1_010)]
    project.write("log.jsonl", lines(*rest[:4], *between, *rest[4:]))
    score(project, "log.jsonl", "--no-judge")
    (late,) = (each["reason"] for each in samples(project).values() if T1 in each["reason"])
    assert re.search(r"\blog\.jsonl:1\b", late)


def test_a_trace_without_messages_is_refused_with_the_attribute_to_record(project: Project) -> None:
    project.write("log.jsonl", lines(two_turns("cancel")[0], ran("t", "r", 5, "cancel", "c1")))
    done = project.call("score", "log.jsonl", "--no-judge")
    done.refuses("log.jsonl:1", "'session'", "'execute_tool cancel'", "gen_ai.input.messages")
