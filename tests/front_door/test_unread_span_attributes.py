"""A call that stands in a span's attributes or events which nobody reads was made: it is never "no call"."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.support.kit import Project
from tests.support.scored_logs import score
from tests.support.scored_traces import FAILED, FORBIDDEN, OPEN, PASSED, Row, check_traces, reasons_of

STRICT = "tool_calls: {match: strict, calls: []}"
LOOKED_UP = "tool_calls: {match: strict, calls: [{name: look, args: {id: A-7}}]}"
CANCELS = "tool_calls: {match: strict, calls: [{name: cancel, args: {id: A-7}}]}"
ARGS = {"id": "A-7"}
FUNCTION = {"name": "cancel", "arguments": json.dumps(ARGS)}
CALL = {"id": "c1", "type": "function", "function": FUNCTION}
CALLING = {"role": "assistant", "content": None, "tool_calls": [CALL]}
USER = {"role": "user", "content": "Hi"}
DONE = {"role": "assistant", "content": "Done."}
PART = {"type": "tool_call", "id": "c1", "name": "cancel", "arguments": ARGS}
BACK = {"type": "tool_call_response", "id": "c1", "response": "ok"}
SCHEMA = {"type": "object", "properties": {"id": {"type": "string"}}}
DECLARED = {"name": "cancel", "description": "Cancels an order.", "parameters": SCHEMA}


TOOLS = [DECLARED, {**DECLARED, "name": "look"}]
CHAT = {"gen_ai__operation__name": "chat", "gen_ai__tool__definitions": TOOLS}


def span(number: int, name: str, parent: int = 1, events: Any = (), /, **attributes: Any) -> dict[str, Any]:
    named = {
        key.replace("__", "."): value if isinstance(value, str) else json.dumps(value)
        for key, value in attributes.items()
    }
    above = {"parent_id": str(parent)} if parent else {}
    own = {"trace_id": "a", "span_id": str(number), "name": name, "start_time": number, **above}
    return {**own, "attributes": named, "events": [{"name": n, "attributes": a} for n, a in events]}


def agent(*events: Any, **more: Any) -> dict[str, Any]:
    return span(1, "invoke_agent shop", 0, events, gen_ai__operation__name="invoke_agent", **more)


def chat(*events: Any, number: int = 9, asked: Any = (USER,), answer: Any = DONE, **more: Any) -> Any:
    messages = {"gen_ai__input__messages": asked, "gen_ai__output__messages": [answer]}
    return span(number, "chat m", 1, events, **CHAT, **messages, **more)


def row(spans: Any, rule: str, verdict: str) -> Row:
    return Row(json.dumps({"spans": spans}), [""], verdict, whole=rule)


def check(project: Project, rows: Mapping[str, Row]) -> dict[str, Any]:
    return check_traces(project, rows, ["Hi"], "a")


# ── calls that nobody reads ──────────────────────────────────────────────────────────────────────

ALL = [USER, {"role": "assistant", "parts": [PART]}, {"role": "tool", "parts": [BACK]}, DONE]
DUMPED = {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", "AIMessage"],
          "kwargs": {"content": "", "type": "ai", "tool_calls": [{"name": "cancel", "args": ARGS,
                     "id": "c1", "type": "tool_call"}]}}  # fmt: skip
GEMINI = {"candidates": [{"content": {"parts": [{"functionCall": {"name": "cancel", "args": ARGS}}]}}]}
SPREAD = {
    "gen_ai__completion": "Done.",
    "gen_ai__completion__0__role": "assistant",
    "gen_ai__completion__0__tool_calls__0__name": "cancel",
    "gen_ai__completion__0__tool_calls__0__arguments": json.dumps(ARGS),
}
UNREAD: dict[str, list[Any]] = {
    "all messages of an agent": [agent(pydantic_ai__all_messages=ALL), chat()],
    "a state of a graph": [agent(output__value={"messages": [USER, CALLING]}), chat()],
    "messages that were dumped": [agent(output__value={"messages": [DUMPED]}), chat()],
    "a response of Google's": [agent(), chat(gcp__vertex__agent__llm_response=GEMINI)],
    "blocks of Anthropic's": [
        agent(), chat(output__value={"content": [{"type": "tool_use", "name": "cancel", "input": ARGS}]}),
    ],
    "items of a response": [
        agent(), chat(output__value=[{"type": "function_call", "call_id": "c1", **FUNCTION}]),
    ],
    "the AI SDK's calls": [
        agent(), chat(ai__response__toolCalls=[{"toolCallId": "c1", "toolName": "cancel", "input": "{}"}]),
    ],
    "spread over attributes": [agent(), chat(**SPREAD)],
    "JSON in JSON": [agent(), chat(request__body={"response": json.dumps({"choices": [CALLING]})})],
    "JSON as JSON": [agent(), chat(request__body=json.dumps(json.dumps(CALLING)))],
    "an event with an answer": [
        agent(), chat(("gen_ai.choice", {"index": 0, "message": json.dumps(CALLING)})),
    ],
    "an event with a result": [agent(), chat(("gen_ai.tool.message", {"id": "c1", "content": "ok"}))],
    "a result alone": [agent(output__value={"messages": [{"type": "tool_result", "tool_use_id": "c1"}]}),
                       chat()],
    "a span with the id of a call": [
        agent(), span(2, "cancel", server__address="h", gen_ai__tool__call__id="c1"), chat(),
    ],
    "the tools that are run": [agent(), {**span(2, "running 1 tool"), "attributes": {"tools": ["cancel"]}},
                               chat()],
    "an embedding of a tool": [
        agent(), span(2, "e", gen_ai__operation__name="embeddings", gen_ai__tool__name="cancel"), chat(),
    ],
    **{
        f"a span of the kind {kind}": [
            agent(), span(2, "x", openinference__span__kind=kind, tool__name="cancel"), chat(),
        ]
        for kind in ("CHAIN", "AGENT", "RETRIEVER", "GUARDRAIL", "EVALUATOR")
    },
}  # fmt: skip


KEPT = ("gen_ai.tool.definitions",)


def without_calls(spans: Any) -> Any:
    """The same spans of a model that only says something."""
    kept = []
    for each in spans:
        attributes = each["attributes"].items()
        written = {k: v for k, v in attributes if k in KEPT or not ("cancel" in str(v) or "c1" in v)}
        events = [event for event in each["events"] if "c1" not in json.dumps(event)]
        kept.append({**each, "attributes": written, "events": events})
    return kept


def test_a_call_that_nobody_reads_leaves_checks_of_calls_open(project: Project) -> None:
    rows = {}
    for name, spans in UNREAD.items():
        for kind, rule in (("forbidden", FORBIDDEN), ("strict", STRICT)):
            rows[f"{name}, {kind}"] = row(spans, rule, OPEN)
            rows[f"{name}, {kind}, no call"] = row(without_calls(spans), rule, PASSED)
    found = check(project, rows)
    for name, spans in UNREAD.items():
        for kind in ("forbidden", "strict"):
            reasons = reasons_of(found[f"{name}, {kind}"])
            assert any(f"'{each['name']}'" in reasons for each in spans), name


def test_a_tool_is_named_by_its_call_and_not_by_the_library(project: Project) -> None:
    rows = {}
    for name, verdict in (("cancel", FAILED), ("look", PASSED)):
        used = {"openinference__span__kind": "TOOL", "tool_call__function__name": name}
        rows[name] = row([agent(), span(2, "ToolUsage._use", **used), chat()], FORBIDDEN, verdict)
    check(project, rows)


def test_the_author_may_declare_that_an_attribute_holds_no_calls(project: Project) -> None:
    spans = UNREAD["all messages of an agent"]
    check(project, {"undeclared": row(spans, FORBIDDEN, OPEN)})
    asked = ("row1.jsonl", "--scenarios", "suite.yaml")
    named = ("--no-calls-in", "pydantic_ai.all_messages")
    assert " ".join(named) in score(project, *asked).all
    assert score(project, *asked, *named).code == 0


# ── calls that are known ─────────────────────────────────────────────────────────────────────────

RESULT = {"role": "tool", "tool_call_id": "c1", "content": '{"name": "cancel", "parameters": {"x": 1}}'}
AS_LOOK = {"id": "c1", "type": "function", "function": {**FUNCTION, "name": "look"}}
LOOKING = {**CALLING, "tool_calls": [AS_LOOK]}
LOOKS = [chat(number=2, answer=LOOKING), chat(asked=[USER, LOOKING, RESULT])]
BEFORE = [USER, CALLING, {**RESULT, "content": "ok"}, DONE]
KNOWN: dict[str, dict[str, Any]] = {
    "the same messages": {"pydantic_ai__all_messages": [USER, LOOKING, RESULT, DONE]},
    "without ids": {"output__value": [{"toolName": "look", "args": ARGS}]},
    "the tools of a request": {
        "llm__invocation_parameters": {"tools": [{"type": "function", "function": DECLARED}]},
    },
    "tools as Anthropic has them": {"input__value": {"tools": [{"name": "cancel", "input_schema": SCHEMA}]}},
    "tools of which one must be called": {
        "input__value": {"tool_choice": {"type": "function", "function": {"name": "cancel"}}},
    },
    "tools over attributes": {
        "llm__request__functions__0__name": "cancel", "llm__request__functions__0__parameters": SCHEMA,
    },
    "what was said before": {"input__value": {"messages": [*BEFORE, USER]}},
    "a name and a text": {"llm__prompt_template__variables": {"name": "Bob", "input": "which tool?"}},
    "a text": {"input__value": "[the user asks to cancel, with a tool]"},
    "what a tool gave back": {"output__value": {"messages": [RESULT]}},
}  # fmt: skip


def test_what_is_known_is_neither_counted_twice_nor_open(project: Project) -> None:
    rows = {}
    for name, more in KNOWN.items():
        spans = [agent(**more), *LOOKS]
        for kind, rule, verdict in (
            ("once", LOOKED_UP, PASSED), ("forbidden", FORBIDDEN, PASSED), ("none", STRICT, FAILED)
        ):  # fmt: skip
            rows[f"{name}, {kind}"] = row(spans, rule, verdict)
    check(project, rows)


def test_earlier_messages_hide_no_call_of_the_turn(project: Project) -> None:
    before = [USER, {**CALLING, "tool_calls": [{**CALL, "id": "c0"}]}, DONE]
    now = [USER, {**CALLING, "tool_calls": [{**CALL, "id": "c9"}]}, DONE]
    known = [*before, USER, LOOKING, DONE]
    rows = {
        "a call more": row([agent(state=[*before, *now]), *LOOKS], FORBIDDEN, OPEN),
        "the known call": row([agent(state=known), *LOOKS], FORBIDDEN, PASSED),
    }
    check(project, rows)


def test_a_call_before_a_later_message_is_of_the_turn_before(project: Project) -> None:
    again = {"role": "user", "content": "And now?"}
    second = chat(number=9, asked=[USER, DONE, again], input__value=[USER, CALLING, DONE, again])
    text = json.dumps({"spans": [agent(), chat(number=2), second]})
    rows = {"first": Row(text, (FORBIDDEN, ""), OPEN), "second": Row(text, ("", FORBIDDEN), PASSED)}
    check_traces(project, rows, ["Hi", "And now?"], "a")


def test_calls_of_another_agent_in_the_trace_are_known(project: Project) -> None:
    """The state of the outermost span holds what all agents did; each is a record of its own."""
    asked = {"role": "user", "content": "Sub-question"}
    calling = {**CALLING, "tool_calls": [{**CALL, "id": "c2"}]}
    inner = [asked, calling, {**RESULT, "tool_call_id": "c2"}]
    around = agent(output__value={"messages": [USER, LOOKING, RESULT, *inner[1:], DONE]})
    helper = [chat(number=3, asked=[asked], answer=calling), chat(number=4, asked=inner)]
    for n, each in enumerate(helper):
        helper[n] = {**each, "attributes": {**each["attributes"], "gen_ai.agent.name": "helper"}}
    shop = {**around, "attributes": {**around["attributes"], "gen_ai.agent.name": "shop"}}
    both = [shop, LOOKS[0], *helper, LOOKS[1]]
    rows = {
        "both": row(both, LOOKED_UP, FAILED),
        "the helper is missing": row([shop, *LOOKS], LOOKED_UP, OPEN),
    }
    check(project, rows)


# ── messages in other words ──────────────────────────────────────────────────────────────────────


def events(called: Mapping[str, Any] | None) -> list[Any]:
    """As instrumentations wrote them before messages were attributes."""
    user = ("gen_ai.user.message", {"content": "Hi"})
    done = ("gen_ai.choice", {"index": 0, "finish_reason": "stop", "message": json.dumps(DONE)})
    if called is None:
        return [agent(), span(9, "chat m", 1, [user, done], **CHAT)]
    odd = ("gen_ai.client.note", {"0": "a plain value"})
    asks = ("gen_ai.choice", {"finish_reason": "tool_calls", "message": json.dumps(called)})
    again = ("gen_ai.assistant.message", {"tool_calls": json.dumps(called["tool_calls"])})
    result = ("gen_ai.tool.message", {"id": "c1", "content": "ok"})
    last = span(9, "chat m", 1, [user, again, result, done], **CHAT)
    return [agent(), span(2, "chat m", 1, [user, odd, asks], **CHAT), last]


def ai_sdk(called: Mapping[str, Any] | None) -> list[Any]:
    user = {"role": "user", "content": [{"type": "text", "text": "Hi"}]}
    whole = {"ai__operationId": "ai.generateText", "ai__prompt": {"prompt": "Hi"}}
    around = span(1, "ai.generateText", 0, **whole, ai__response__text="Done.")
    kind = {"ai__operationId": "ai.generateText.doGenerate"}
    if called is None:
        said = {"ai__prompt__messages": [user], "ai__response__text": "Done."}
        given = [json.dumps({"type": "function", **each}) for each in TOOLS]
        only = span(9, "do", **said, **kind)
        return [around, {**only, "attributes": {**only["attributes"], "ai.prompt.tools": given}}]
    call = {"toolCallId": "c1", "toolName": called["tool_calls"][0]["function"]["name"]}
    asks = [{**call, "input": json.dumps(ARGS)}]
    again = {"role": "assistant", "content": [{"type": "tool-call", **call, "input": ARGS}]}
    output = {"type": "text", "value": "ok"}
    result = {"role": "tool", "content": [{"type": "tool-result", **call, "output": output}]}
    ran = {"ai__toolCall__name": call["toolName"], "ai__toolCall__id": "c1", "ai__toolCall__args": ARGS}
    return [
        around,
        span(2, "do", ai__prompt__messages=[user], ai__response__toolCalls=asks, **kind),
        span(3, "ai.toolCall", ai__operationId="ai.toolCall", **ran),
        span(9, "do", ai__prompt__messages=[user, again, result], ai__response__text="Done.", **kind),
    ]


def test_an_event_beside_messages_in_events_is_searched(project: Project) -> None:
    spans = events(LOOKING)
    calls = json.dumps([{"tool": "cancel", "args": {}}])
    note = {"name": "gen_ai.client.note", "attributes": {"calls": calls}}
    noted = [spans[0], {**spans[1], "events": [*spans[1]["events"], note]}, *spans[2:]]
    check(project, {"as it is": row(spans, FORBIDDEN, PASSED), "noted": row(noted, FORBIDDEN, OPEN)})


def test_texts_that_are_json_are_texts(project: Project) -> None:
    text = json.dumps([{"name": "cancel", "arguments": {}}])
    user, result = ("gen_ai.user.message", {"content": "Hi"}), {"id": "c1", "content": text}
    asks = ("gen_ai.choice", {"message": json.dumps(LOOKING)})
    again = ("gen_ai.assistant.message", {"tool_calls": json.dumps(LOOKING["tool_calls"])})
    done = ("gen_ai.choice", {"message": json.dumps(DONE)})
    last = span(9, "chat", 1, [user, again, ("gen_ai.tool.message", result), done], **CHAT)
    spans = [agent(("gen_ai.tool.message", result)), span(2, "chat", 1, [user, asks], **CHAT), last]
    check(project, {"a": row(spans, LOOKED_UP, PASSED)})


def test_messages_in_events_and_of_the_ai_sdk_are_read(project: Project) -> None:
    rows = {}
    for written in (events, ai_sdk):
        for called, rule, verdict in (
            (CALLING, CANCELS, PASSED),
            (CALLING, FORBIDDEN, FAILED),
            (LOOKING, FORBIDDEN, PASSED),
            (None, STRICT, PASSED),
            (None, "output: {contains: [Done]}", PASSED),
            (None, CANCELS, FAILED),
        ):
            rows[f"{written.__name__} {len(rows)}"] = row(written(called), rule, verdict)
    check(project, rows)


PARTS = {"role": "assistant", "parts": [PART]}


def test_messages_that_are_cut_off_are_no_answer(project: Project) -> None:
    """Where more is said after it, and where it is all that a model answered."""
    whole = json.dumps([PARTS])
    said = {"ai__prompt__messages": [USER], "ai__response__text": "Done."}
    asked = {"gen_ai__input__messages": [USER]}
    rows = {}
    for key, messages, intact in (
        ("gen_ai__output__messages", asked, {**asked, "gen_ai__output__messages": [DONE]}),
        ("gen_ai__completion", asked, {**asked, "gen_ai__completion": [DONE]}),
        ("ai__response__toolCalls", said, said),
    ):
        rows[f"{key}, whole"] = row(
            [agent(), chat(number=2), span(9, "m", **CHAT, **intact)], FORBIDDEN, PASSED
        )
        for at in range(3, len(whole), 40):
            if key == "gen_ai__completion" and at < 20:
                continue  # nobody can decide of what it is the beginning
            for end in ("", "…"):
                cut = span(9, "chat m", **CHAT, **messages, **{key: whole[:at] + end})
                rows[f"{key}, {at}{end}"] = row([agent(), chat(number=2), cut], FORBIDDEN, OPEN)
    for name, sample in check(project, rows).items():
        key = name.partition(",")[0].replace("__", ".")
        assert name.endswith("whole") or key in reasons_of(sample), name


def test_what_a_model_was_asked_may_be_cut_off(project: Project) -> None:
    rows = {}
    cut = json.dumps([USER, CALLING, DONE, USER])[:-20]
    for name, written, verdict in (("cut", cut, OPEN), ("whole", json.dumps([USER]), PASSED)):
        given = {"gen_ai__input__messages": written, "gen_ai__output__messages": [DONE]}
        rows[name] = row([agent(), chat(number=2), span(9, "chat m", **CHAT, **given)], FORBIDDEN, verdict)
    check(project, rows)


def test_a_call_in_fields_of_a_message_is_one(project: Project) -> None:
    """OpenInference has that of OpenAI's older API so."""
    asked = {
        "llm__input_messages__0__message__role": "user",
        "llm__input_messages__0__message__content": "Hi",
    }
    out = "llm__output_messages__0__message__"
    done = {f"{out}role": "assistant", f"{out}content": "Done."}
    name, given = f"{out}function_call_name", f"{out}function_call_arguments_json"
    called = {name: "cancel", given: json.dumps(ARGS)}
    kind = {"openinference__span__kind": "LLM", "llm__tools": TOOLS}
    rows = {}
    for more, verdict, rule in (
        (called, FAILED, FORBIDDEN),
        (called, PASSED, CANCELS),
        ({**called, name: "look"}, PASSED, FORBIDDEN),
        ({given: json.dumps(ARGS)}, OPEN, FORBIDDEN),
        ({}, PASSED, FORBIDDEN),
    ):
        spans = [agent(), span(9, "llm", **kind, **asked, **done, **more)]
        rows[f"{[*more.values()]}, {rule}"] = row(spans, rule, verdict)
    check(project, rows)
