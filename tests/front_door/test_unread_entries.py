"""What a reader could not place may hold calls: in its turn no check rests on a call that was not seen."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests.support.kit import Project
from tests.support.local_servers import Behaviour, LocalServer, completion, delta, respond_json, sse
from tests.support.returned_values import play_values
from tests.support.scored_logs import calling, expect, log, samples, score, summary, verdicts
from tests.support.scored_traces import (
    FAILED,
    FORBIDDEN,
    OPEN,
    PASSED,
    Row,
    calls_of,
    check_traces,
    reasons_of,
)

ARGS = {"id": "A-7"}
DONE = {"role": "assistant", "content": "Done."}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "ok"}
CANCELS = [calling("cancel", json.dumps(ARGS), "c1"), RESULT, DONE]
LOOKS = [calling("look", json.dumps(ARGS), "c1"), RESULT, DONE]
CALL, LOOK = CANCELS[0]["tool_calls"][0], LOOKS[0]["tool_calls"][0]
DID = {"tool": "cancel"}
STRICT = "tool_calls: {match: strict, calls: []}"
TEXT = {"type": "text", "text": "Done."}
BARE = {"text": "Done."}


def said(**fields: Any) -> list[Any]:
    return [{**DONE, **fields}]


def parts(*content: Any) -> list[Any]:
    return [{"role": "assistant", "content": [*content]}]


def made(call: Any, **beside: Any) -> list[Any]:
    return [{**CANCELS[0], "tool_calls": [call], **beside}, *CANCELS[1:]]


# ── agents ───────────────────────────────────────────────────────────────────────────────────────

UNPLACED: dict[str, Any] = {
    "an entry of its own": [{"command": "cancel", "parameters": ARGS, "status": "ok"}, DONE],
    "a flat entry": [{"command": "cancel", "status": "ok"}, DONE],
    "an unknown role": [{"role": "action", "content": "cancel A-7"}, DONE],
    "an unknown role with calls": [{"role": "planner", "content": "", "tool_calls": [CALL]}, DONE],
    "an event": [{"type": "tool_start", "tool": "cancel"}, DONE],
    "an item of a later kind": [{"type": "tool_thing", "name": "cancel", "data": ARGS}, DONE],
    "a completion in the list": [{"choices": [{"message": CANCELS[0]}]}, DONE],
    "a part of an unknown kind": parts({"type": "action"}, TEXT),
    "a part of no kind": [{"role": "model", "parts": [{"cancel": ARGS}, {"text": "Done."}]}],
    "an object as content": [{"role": "assistant", "content": {"command": "cancel"}}, DONE],
    "thoughts that do something": [{"type": "reasoning", "summary": [], "steps": [DID]}, DONE],
    "a call among thoughts": [
        {"type": "reasoning", "content": [{"type": "function_call", "name": "cancel", "args": {}}]}, DONE,
    ],
    "a call in a summary": [{"type": "reasoning", "summary": [{"type": "tool_use", "name": "cancel"}]}, DONE],
    "thoughts of an unknown kind": said(reasoning_details=[{"type": "reasoning.action", "tool": "cancel"}]),
    "thoughts that are none": said(reasoning_content=[DID]),
    "thoughts in steps": said(reasoning={"steps": [DID]}),
    "a call in place of a thought": parts({"type": "thinking", "thinking": DID}, TEXT),
    "a thought of an unknown kind": parts({"type": "thought_action", "tool": "cancel"}, TEXT),
    "a file that is written": parts({"type": "file_delete", "path": "a"}, TEXT),
    "an object in place of a text": parts({"type": "text", "text": DID}, TEXT),
    "an object in place of a name": said(name=DID),
    "an object in place of an id": said(id=DID),
    "a refusal that is none": said(refusal=DID),
    "calls among counts": said(usage={"total_tokens": 1, "tool_calls": [DID]}),
    "a list in place of counts": said(usage=[DID]),
    "a call as a citation": said(citations=[{"type": "tool_use", "name": "cancel", "input": ARGS}]),
    "a call as a source": said(sources=[{"id": "c1", "name": "cancel", "args": "{}"}]),
    "events of a recording": said(audio={"id": "a", "events": [DID]}),
    "a call of a picture": parts({"type": "image_url", "image_url": {"url": "u", "calls": [DID]}}, TEXT),
    "a list of lists": said(actions=[["cancel", {}]]),
    "a call in a result": [
        *LOOKS[:1], {**LOOKS[1], "content": [{"type": "tool_use", "name": "cancel", "input": ARGS}]}, DONE,
    ],
    "parts beside a content": said(parts=[{"type": "act"}]),
    "a list under another key": said(actions=[DID]),
    "an object under another key": said(action={"name": "cancel", "id": "A-7"}),
    "lists in lists": said(log=[[DID]]),
    "in its metadata": said(metadata={"trace": {"steps": [DID]}}),
    "in additional_kwargs": said(additional_kwargs={"actions": [DID]}),
    "as an annotation": said(annotations=[{"type": "action", "tool": "cancel"}]),
    "items of an output": said(output=[{"type": "function_call", "name": "cancel", "arguments": "{}"}]),
    "a call of a user": [{"role": "user", "content": [{"type": "tool_use", "name": "cancel"}]}, DONE],
    "of a user": [{"role": "user", "content": "?", "action": DID}, DONE],
    "without a role": [{"content": "Done.", "tool": "cancel"}],
    "a result without its call": [{"role": "tool", "name": "cancel", "content": "ok"}, DONE],
    "a call within a call": made({**LOOK, "then": [DID]}),
    "one message": {**DONE, "trace": [DID]},
    "a completion": {**completion("Done."), "tool_events": [DID]},
    "a choice": {"choices": [{"message": DONE, "steps": [DID]}]},
    "a state": {"messages": [DONE], "intermediate_steps": [DID]},
}  # fmt: skip
READ: dict[str, Any] = {
    "as OpenAI writes it": CANCELS,
    "its arguments elsewhere": made({"id": "c1", "name": "cancel", "payload": ARGS}),
    "in a second place": made(LOOK, toolInvocations=[{"toolName": "cancel", "args": ARGS}]),
    "by the provider": [{"type": "cancel_call", "status": "completed"}, DONE],
    "a call that waits": [{"type": "mcp_approval_request", "name": "cancel", "arguments": "{}"}, DONE],
}  # fmt: skip
PLACED: dict[str, Any] = {
    "a text": "Done.",
    "a text that holds a list": said(content='[{"command": "cancel"}] Done.'),
    "plain values under other keys": said(action="none", tags=["a"], metadata={"a": 1, "b": {}}),
    "what a model thought": parts({"type": "thinking", "thinking": "Hm."}, TEXT),
    "items": [{"type": "reasoning", "summary": [{"text": "Hm."}]}, {"type": "message", **DONE}],
    "citations": said(annotations=[{"type": "url_citation", "url": "u"}]),
    "Google's parts": [{"role": "model", "parts": [{**BARE, "thought": True}, {"fileData": {"a": 1}}, BARE]}],
    "LangChain's": said(type="ai", additional_kwargs={}, response_metadata={"usage": {"a": {"b": 1}}}),
    "the AI SDK's": parts({"type": "step-start"}, {**TEXT, "providerMetadata": {"openai": {"itemId": "x"}}}),
    "a completion": {**completion("Done."), "usage": {"prompt_tokens": 1, "details": {"a": 1}}},
    "a state": {"messages": [DONE], "structured_response": {"a": {"b": 1}}},
}  # fmt: skip


def play(project: Project, shapes: Mapping[str, Any], rule: str, keys: str = "") -> dict[str, str]:
    return play_values(project, shapes, rule, seen=LOOKS, keys=keys)


@pytest.mark.parametrize("rule", [STRICT, FORBIDDEN])
def test_a_turn_with_what_nobody_could_place_decides_no_check_of_calls(project: Project, rule: str) -> None:
    # Those that made a call besides have broken the stricter rule.
    both = ("a call within a call", "a call in a result")
    broken = dict.fromkeys(both, FAILED) if rule == STRICT else {}
    assert play(project, UNPLACED, rule) == {**dict.fromkeys(UNPLACED, OPEN), **broken}
    assert '{"command": "cancel", ' in project.sample("s0")["checks"][-1]["detail"]


def test_a_call_that_was_read_counts_and_what_is_known_to_hold_none_is_placed(project: Project) -> None:
    assert play(project, READ, FORBIDDEN) == dict.fromkeys(READ, FAILED)
    assert play(project, PLACED, STRICT) == dict.fromkeys(PLACED, PASSED)


def test_a_recording_keeps_what_nobody_could_place(project: Project) -> None:
    class_of = "class Action:\n    def __init__(self):\n        self.name = 'cancel'\n\n"
    action = "[{'role': 'assistant', 'content': 'Done.', 'action': Action()}]"
    looks = f"({LOOKS!r} if len(messages) > 1 else {action})"
    project.agent(f"{class_of}def agent(messages):\n    return {looks}\n")
    project.write("agenteval.yaml", "agent: {target: 'agent.py:agent'}\nmetrics: []\n")
    project.scenarios(f"{{id: a, turns: [one, two], expect: {{{FORBIDDEN}}}}}")
    for option in ("--record", "--replay"):
        done = project.run(option, "recorded.jsonl")
        assert done.code == 3
        assert all(fact in reasons_of(project.sample()) for fact in ("'action'", '{"name": "cancel"}'))


def test_the_answer_is_checked_all_the_same(project: Project) -> None:
    names = ("an entry of its own", "a list under another key", "one message", "a completion")
    shapes = {name: UNPLACED[name] for name in names}
    for word, verdict in (("Done", PASSED), ("Gone", FAILED)):
        assert play(project, shapes, f"output: {{contains: [{word}]}}") == dict.fromkeys(shapes, verdict)


def test_the_author_may_declare_that_all_calls_are_seen(project: Project) -> None:
    shapes = {name: shape for name, shape in UNPLACED.items() if "look" not in json.dumps(shape)}
    assert play(project, shapes, STRICT, ", calls: all") == dict.fromkeys(shapes, PASSED)


HISTORY = f"""
HIDDEN = {{"command": "cancel", "parameters": {{"id": "A-7"}}}}
DONE = {DONE!r}
LOOKS = {LOOKS!r}
KEPT = []

def agent(messages):
    if len(messages) == 1:
        KEPT.clear()
    KEPT.append(messages[-1])
    KEPT.extend([HIDDEN, *LOOKS] if len(messages) == TURN else LOOKS)
    return list(KEPT)
"""
AT_TURNS = (
    f"{{id: a, turns: [{{user: one, expect: {{{FORBIDDEN}}}}}, {{user: two, expect: {{{FORBIDDEN}}}}}]}}"
)


@pytest.mark.parametrize(("turn", "expected"), [(0, [None, True]), (1, [True, None])])
def test_the_history_of_a_turn_does_not_taint_the_next(
    project: Project, turn: int, expected: list[Any]
) -> None:
    project.agent(HISTORY.replace("TURN", "1" if turn == 0 else "5"))
    project.write("agenteval.yaml", "agent: {target: 'agent.py:agent'}\nmetrics: []\n")
    project.scenarios(AT_TURNS)
    assert project.run().code == 3
    found = [each["checks"] for each in project.sample()["turns"]]
    assert [[c["passed"] for c in checks if c["name"] == "tool_calls"] for checks in found] == [
        [each] for each in expected
    ]


# ── endpoints ────────────────────────────────────────────────────────────────────────────────────

HIDDEN = {"command": "cancel", "parameters": ARGS}
TEMPLATE = "request: {m: '${message}'}, reply: {text: t, messages: log}"
COMPLETIONS = "observed_messages: log"
STREAM = "streaming: true, request: {m: '${message}'}, reply: {delta: d, tool_calls: 'c?', done: {type: end}}"
EVENTS = [{"type": "start"}, {"type": "text", "d": "Done."}, {"type": "end"}]
ENDPOINTS: dict[str, tuple[str, Behaviour, Behaviour]] = {
    "reply.messages": (
        TEMPLATE,
        respond_json({"t": "Done.", "log": [HIDDEN, *LOOKS]}),
        respond_json({"t": "Done.", "log": LOOKS}),
    ),
    "observed_messages": (
        COMPLETIONS,
        respond_json({**completion("Done."), "log": [HIDDEN, *LOOKS]}),
        respond_json({**completion("Done."), "log": LOOKS}),
    ),
    "a completion's own key": (
        COMPLETIONS,
        respond_json({**completion("Done.", executed_tools=[DID]), "log": LOOKS}),
        respond_json({**completion("Done."), "log": LOOKS}),
    ),
    "a stream": (
        "streaming: true, calls: null",
        sse(delta("Done."), {"type": "tool_started", "tool": "cancel"}, delta(finish_reason="stop")),
        sse(delta("Done."), {"type": "ping"}, delta(finish_reason="stop")),
    ),
    "the events of a reply": (
        STREAM,
        sse(*EVENTS[:1], {"type": "tool", "name": "cancel"}, *EVENTS[1:]),
        sse(*EVENTS),
    ),
}
ASKS: dict[str, Behaviour] = {
    "a stream": sse(delta(tool_calls=[{"index": 0, **LOOK}]), delta(finish_reason="tool_calls")),
    "the events of a reply": sse({"type": "call", "c": [{"name": "look", "arguments": {}}]}, {"type": "end"}),
}  # fmt: skip


@pytest.mark.parametrize("name", ENDPOINTS)
def test_an_endpoint_that_reports_what_nobody_knows(project: Project, name: str) -> None:
    options, hides, shows = ENDPOINTS[name]
    # Whoever asks agenteval gets its answer; who only reports calls has tools of its own.
    tools = "tools: {look: {returns: 1}, cancel: {returns: 1}}, " if name in ASKS else ""
    project.scenarios(f"{{id: a, turns: [Hi], {tools}expect: {{{FORBIDDEN}}}}}")
    for reply, code in ((hides, 3), (shows, 0)):
        with LocalServer(*([ASKS[name]] if name in ASKS else []), reply) as server:
            project.write("agenteval.yaml", f"agent: {{endpoint: '{server.url}', {options}}}\nmetrics: []\n")
            done = project.run()
        assert done.code == code, done.all
        if code:
            assert reasons_of(project.sample())


# ── logs ─────────────────────────────────────────────────────────────────────────────────────────

ASKED = {"role": "user", "content": "Hi"}
TOOLS = [{"name": "cancel"}, {"name": "look"}]


def record(name: str, *messages: Any, **more: Any) -> dict[str, Any]:
    return {"id": name, "tools": TOOLS, "messages": [ASKED, *messages], **more}


def scored(
    project: Project, records: Sequence[Any], *options: str, rules: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The verdicts of records, each of which must not call ``cancel``, or must keep its own rule."""
    log(project, *records)
    score(project, "log.jsonl", *expect(project, rules or {r["id"]: FORBIDDEN for r in records}), *options)
    return verdicts(project)


BESIDE: dict[str, Any] = {
    "events": [DID],
    "steps": [[DID]],
    "run": {"of": {"tools": [DID]}},
    "metadata": {"tool_log": [DID]},
    "trajectory": [DID],
    "output": [DID],
}


def test_a_list_beside_the_messages_that_nobody_reads(project: Project) -> None:
    records = [record(f"{name}, {answer}", *messages, **{name: value})
               for name, value in BESIDE.items()
               for answer, messages in (("done", [DONE]), ("cancels", CANCELS))]  # fmt: skip
    verdict = {"done": OPEN, "cancels": FAILED}
    found = scored(project, records)
    assert found == {name: verdict[name.partition(", ")[2]] for name in found}
    for name, sample in samples(project).items():
        if name.endswith("done"):
            assert f"'{name.partition(',')[0]}'" in reasons_of(sample)
    named = [word for name in BESIDE for word in ("--no-calls-in", name)]
    found = scored(project, records, *named)
    assert found == {name: FAILED if name.endswith("cancels") else PASSED for name in found}
    done = score(project, "log.jsonl", "--scenarios", "expected.yaml", "-s", "events, done")
    assert "--no-calls-in events" in done.all


def lines(*events: Any) -> str:
    return "\n".join(map(json.dumps, events))


def of_anthropic(*blocks: Any) -> list[Any]:
    begun = {"type": "message_start", "message": {"role": "assistant", "content": []}}
    grown = [
        {"type": "content_block_start", "index": n, "content_block": block} for n, block in enumerate(blocks)
    ]
    return [begun, *grown, {"type": "message_stop"}]


def of_responses(*items: Any) -> Any:
    return {"type": "response.completed", "response": {"status": "completed", "output": [*items]}}


TOOL_USE = {"type": "tool_use", "id": "t", "name": "cancel", "input": ARGS}
SAYS = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}
ITEM = {"type": "function_call", "call_id": "c", "name": "cancel", "arguments": "{}"}
OF_BEDROCK = (
    {"messageStart": {"role": "assistant"}},
    {"contentBlockStart": {"start": {"toolUse": {"name": "cancel"}}}},
)
SAYS_ITEM = {"type": "response.output_item.done", "item": SAYS}
STREAMED: dict[str, tuple[str, str]] = {
    "of an unknown kind": (lines(*OF_BEDROCK, {"messageStop": {}}), "unreadable"),
    "with a line that is broken": (lines(of_responses(SAYS)) + '\n{"type": "resp', "unreadable"),
    "with a second response": (lines(*of_anthropic(TEXT), *of_anthropic(TOOL_USE)), OPEN),
    "with an item that its end leaves out": (lines({**SAYS_ITEM, "item": ITEM}, of_responses(SAYS)), FAILED),
    "as JSON of an unknown kind": (json.dumps({"text": "Done.", "tool_calls": [{"name": "cancel"}]}), OPEN),
    "of one response": (lines(*of_anthropic(TEXT)), PASSED),
    "with its item at the end": (lines(SAYS_ITEM, of_responses(SAYS)), PASSED),
    "as JSON without a list": (json.dumps({"text": "Done."}), PASSED),
}


def test_a_logged_response_that_was_not_read_to_its_end(project: Project) -> None:
    request = {"model": "m", "messages": [ASKED, *LOOKS[:2]], "tools": TOOLS}
    records = [{"id": name, "request": request, "response": text} for name, (text, _) in STREAMED.items()]
    scored(project, records)
    found = {
        name: "unreadable" if sample["fault"] == "recording" else sample["verdict"]
        for name, sample in samples(project).items()
    }
    lost = [
        f"log.jsonl:{n}" for n, (_, verdict) in enumerate(STREAMED.values(), 1) if verdict == "unreadable"
    ]
    expected = {name: verdict for name, (_, verdict) in STREAMED.items() if verdict != "unreadable"}
    assert found == expected | dict.fromkeys(lost, "unreadable")


def test_what_describes_a_record_is_placed(project: Project) -> None:
    described = {"labels": {"reward": 1, "actions": [DID]}, "scores": [{"name": "a", "value": 1}]}
    flat = {"metadata": {"a": 1, "b": {"c": 2}}, "user": {"name": "x"}, "tags": ["a"], "run_time": 4.5}
    assert scored(project, [record("a", DONE, **described, **flat)]) == {"a": PASSED}
    assert any(" 2 messages" in each["text"] for each in summary(project)["notices"])


TAINTED = {
    "an entry of its own": "command",
    "an unknown role": "action",
    "an event": "tool_start",
    "a list under another key": "actions",
}
"""What ``--no-calls-in`` names for entries of UNPLACED."""


def test_an_entry_of_a_log_taints_its_turn_alone(project: Project) -> None:
    again = {"role": "user", "content": "And now?"}
    log(project, *({"id": name, "messages": [ASKED, *UNPLACED[name], again, *LOOKS]} for name in TAINTED))
    turns = [{"user": each["content"], "expect": "RULE"} for each in (ASKED, again)]
    text = json.dumps({"scenarios": [{"id": name, "turns": turns} for name in TAINTED]})
    project.write("expected.yaml", text.replace('"RULE"', f"{{{FORBIDDEN}}}"))
    command = ("log.jsonl", "--scenarios", "expected.yaml")
    assert score(project, *command).code == 3
    for sample in samples(project).values():
        checks = [check for turn in sample["turns"] for check in turn["checks"]]
        assert [each["passed"] for each in checks if each["name"] == "tool_calls"] == [None, True]
    named = [word for key in TAINTED.values() for word in ("--no-calls-in", key)]
    assert score(project, *command, *named).code == 0


def test_a_record_of_which_most_was_not_read_is_unreadable(project: Project) -> None:
    thought = {"role": "Orchestrator (thought)", "content": "Hm."}
    records = [record("a", *[thought] * 60, DONE)]
    log(project, *records)
    rules = expect(project, {"a": FORBIDDEN})
    score(project, "log.jsonl", *rules).refuses("log.jsonl:1", " 2 ", " 62 ")
    assert scored(project, records, "--no-calls-in", thought["role"]) == {"a": PASSED}
    assert scored(project, [record("a", thought, DONE)]) == {"a": OPEN}
    notices = [each["text"] for each in summary(project)["notices"]]
    assert any("2 of 3" in text and "log.jsonl:1 (67%)" in text for text in notices)


def test_a_name_that_nothing_has_is_reported(project: Project) -> None:
    assert scored(project, [record("a", DONE, events=[DID])], "--no-calls-in", "event") == {"a": OPEN}
    notices = [each["text"] for each in summary(project)["notices"]]
    assert any("--no-calls-in event:" in text and "'events'?" in text for text in notices)


MATCHES = ("strict", "unordered", "in_order", "contains", "within")
KNOWN, OTHER = "{name: cancel, args: {id: A-7}}", "{name: look, args: {id: A-7}}"


UNKNOWN_ARGUMENTS = (
    (FORBIDDEN, FAILED),
    ("tool_calls: {calls: [{name: cancel}]}", PASSED),
    ("limits: {tool_calls: 0}", FAILED),
    ("limits: {tool_calls: 1}", PASSED),
    ("tool_calls: {forbidden: [{name: cancel, args: {id: A-7}}]}", OPEN),
    *((f"tool_calls: {{match: {match}, calls: [{KNOWN}]}}", OPEN) for match in MATCHES),
    *((f"tool_calls: {{match: {match}, calls: [{KNOWN}, {OTHER}]}}", FAILED) for match in MATCHES[:4]),
    ("tool_calls: {calls: [{name: cancel, args: {id: A-7}, times: 1}]}", OPEN),
    ("tool_calls: {calls: [{name: cancel, args: {id: A-7}, times: 2}]}", FAILED),
    (f"tool_calls: {{any_of: [{{calls: [{KNOWN}]}}, {{calls: [{OTHER}]}}]}}", OPEN),
    (f"tool_calls: {{any_of: [{{calls: [{KNOWN}]}}, {{calls: [{{name: cancel}}]}}]}}", PASSED),
)


def test_arguments_that_nobody_knows_leave_name_and_number_to_decide(project: Project) -> None:
    messages = made({"id": "c1", "name": "cancel", "payload": ARGS})
    rules = {f"{n}": rule for n, (rule, _) in enumerate(UNKNOWN_ARGUMENTS)}
    found = scored(project, [record(name, *messages) for name in rules], rules=rules)
    assert [(rules[name], verdict) for name, verdict in found.items()] == list(UNKNOWN_ARGUMENTS)
    for sample in samples(project).values():
        if sample["verdict"] == OPEN:
            assert "cancel(" in reasons_of(sample)


# ── traces ───────────────────────────────────────────────────────────────────────────────────────


def span(number: int, name: str, parent: int = 1, **attributes: Any) -> dict[str, Any]:
    named = {key.replace("__", "."): value for key, value in attributes.items()}
    above = {"parent_id": str(parent)} if parent else {}
    own = {"trace_id": "a", "span_id": str(number), "name": name, "start_time": number, **above}
    return {**own, "attributes": named}


def talk(*users: str) -> list[Any]:
    return [{"role": "user", "content": user} for user in users]


def agent(*asked: Any) -> dict[str, Any]:
    messages = {"gen_ai__input__messages": asked or talk("Hi"), "gen_ai__output__messages": [DONE]}
    declared = {"gen_ai__tool__definitions": TOOLS}
    return span(1, "invoke_agent", 0, gen_ai__operation__name="invoke_agent", **messages, **declared)


WRITTEN = json.dumps(ARGS)
TOOL_SPANS = {
    "conventions": span(2, "execute_tool cancel", gen_ai__operation__name="execute_tool",
                        gen_ai__tool__name="cancel", gen_ai__tool__call__arguments=WRITTEN),
    "without contents": span(2, "execute_tool cancel", gen_ai__operation__name="execute_tool"),
    "OpenInference": span(2, "cancel", openinference__span__kind="TOOL", input__value=WRITTEN),
    "OpenLLMetry": span(2, "cancel.tool", traceloop__span__kind="tool", traceloop__entity__name="cancel",
                        traceloop__entity__input=json.dumps({"args": [], "kwargs": ARGS})),
    "the AI SDK": span(2, "ai.toolCall", ai__operationId="ai.toolCall", **{"ai__toolCall__name": "cancel"}),
    "Langfuse": span(2, "cancel", **{"langfuse__observation__type": "tool"}),
    "MLflow": span(2, "cancel", mlflow__spanType='"TOOL"', mlflow__spanInputs=WRITTEN),
    "LangSmith": span(2, "cancel", langsmith__span__kind="tool"),
    "MCP": span(2, "tools/call cancel", mcp__method__name="tools/call"),
    "within a span that is none": span(3, "cancel", 2, openinference__span__kind="TOOL"),
}  # fmt: skip
UNKNOWN_SPANS = {
    "of no kind": span(2, "cancel", order="A-7"),
    "without attributes": span(2, "cancel"),
    "of an unknown kind": span(2, "cancel", gen_ai__operation__name="carry_out"),
    "an event of the agent": {**agent(), "events": [{"name": "cancelled", "attributes": ARGS}]},
    "an answer with calls": span(2, "chat", gen_ai__operation__name="chat",
                                 gen_ai__response__finish_reasons=["tool_calls"]),
}  # fmt: skip
KNOWN_SPANS = {
    "a request": span(2, "POST /orders", http__request__method="POST"),
    "a data base": span(2, "SELECT", db__system="sqlite"),
    "a model": span(2, "chat", gen_ai__operation__name="chat", gen_ai__response__finish_reasons=["stop"]),
    "a step of a framework": span(2, "agent_step", openinference__span__kind="CHAIN"),
    "around its tools": span(2, "running 2 tools"),
}


def traced(*spans: Any, rule: str = FORBIDDEN, verdict: str) -> Row:
    return Row(json.dumps({"spans": spans}), [""], verdict, whole=rule)


def check(project: Project, rows: Mapping[str, Row]) -> dict[str, Any]:
    return check_traces(project, rows, ["Hi"], "a")


def test_a_tool_that_ran_in_a_span_was_called(project: Project) -> None:
    rows = {}
    for name, tool_span in TOOL_SPANS.items():
        spans = [agent(), *([KNOWN_SPANS["a step of a framework"]] if name.startswith("within") else [])]
        rows[f"{name}, forbidden"] = traced(*spans, tool_span, verdict=FAILED)
        expected = "tool_calls: {calls: [{name: cancel}]}"
        rows[f"{name}, expected"] = traced(*spans, tool_span, rule=expected, verdict=PASSED)
        rows[f"{name}, without it"] = traced(*spans, verdict=PASSED)
    check(project, rows)


def test_a_span_that_nobody_knows_leaves_checks_of_calls_open(project: Project) -> None:
    rows = {}
    for name, unknown in UNKNOWN_SPANS.items():
        first = [] if name == "an event of the agent" else [agent()]
        rows[name] = traced(*first, unknown, verdict=OPEN)
    check(project, rows | {"spans of known kinds": traced(agent(), *KNOWN_SPANS.values(), verdict=PASSED)})


BROKEN_CALLS: dict[str, Any] = {
    "without a name": {"tool_calls": [{"id": "c1", "type": "function", "function": {"arguments": "{}"}}]},
    "that is no object": {"tool_calls": [5]},
    "not in a list": {"tool_calls": "cancel"},
    "a part": {"parts": [{"type": "tool_call", "id": "c1", "arguments": ARGS}]},
    "Anthropic's": {"content": [{"type": "tool_use", "id": "c1", "input": ARGS}]},
    "Google's": {"parts": [{"functionCall": {"args": ARGS}}]},
}


def answers(number: int, *answer: Any) -> dict[str, Any]:
    asked = {"gen_ai__input__messages": talk("Hi")}
    return span(number, "chat", 1, gen_ai__operation__name="chat", **asked, gen_ai__output__messages=answer)


def test_a_call_of_a_model_that_cannot_be_read_is_one_more_thing_that_nobody_could_place(
    project: Project,
) -> None:
    """Of a span: neither an end of the command nor the agent's failure. A call beside it counts."""
    rows = {"no call": traced(agent(), answers(2, DONE), verdict=PASSED)}
    for name, call in BROKEN_CALLS.items():
        broken = answers(2, {"role": "assistant", **call})
        rows[name] = traced(agent(), broken, answers(3, DONE), verdict=OPEN)
        rows[f"{name}, beside a call"] = traced(agent(), broken, model(3, "cancel"), verdict=FAILED)
    check(project, rows)


def test_items_of_a_reply_in_a_span_are_read_and_no_text(project: Project) -> None:
    item = {"type": "function_call", "call_id": "c1", "arguments": "{oops"}
    rows = {
        "without a name": traced(agent(), answers(2, item), verdict=OPEN),
        "cancel": traced(agent(), answers(2, {**item, "name": "cancel"}), verdict=FAILED),
        "look": traced(agent(), answers(2, {**item, "name": "look"}), verdict=PASSED),
    }
    check(project, rows)


def model(number: int, asks: str, *users: str) -> dict[str, Any]:
    asked = {"gen_ai__input__messages": talk(*users or ("Hi",))}
    call = {"id": asks, "name": asks, "arguments": "{}"}
    answer = {"gen_ai__output__messages": [{"role": "assistant", "content": None, "tool_calls": [call]}]}
    return span(number, "chat", gen_ai__operation__name="chat", **asked, **answer)


def tool(number: int, name: str) -> dict[str, Any]:
    return span(number, name, openinference__span__kind="TOOL")


def test_calls_of_spans_and_of_messages_stand_in_the_order_of_time(project: Project) -> None:
    messages = [*talk("Hi"), calling("look", key="look"), {**RESULT, "tool_call_id": "look"}]
    last = span(5, "chat", gen_ai__operation__name="chat", gen_ai__input__messages=messages,
                gen_ai__output__messages=[DONE])  # fmt: skip
    order = "tool_calls: {match: strict, calls: [{name: %s}, {name: %s}]}"
    spans = (model(1, "look"), tool(3, "look"), last)
    cancel_first, look_first = order % ("cancel", "look"), order % ("look", "cancel")
    rows = {
        "before": traced(*spans, tool(2, "cancel"), rule=cancel_first, verdict=PASSED),
        "after": traced(*spans, tool(4, "cancel"), rule=look_first, verdict=PASSED),
        "never": traced(*spans, rule=look_first, verdict=FAILED),
    }
    check(project, rows)


def test_tools_of_an_agent_that_an_agent_asked_are_called_in_the_turn_of_the_user(project: Project) -> None:
    inner = {**agent(*talk("Sub-question")), "span_id": "2", "parent_id": "1", "start_time": 2}
    spans = [agent(), inner, span(3, "cancel", 2, openinference__span__kind="TOOL")]
    project.write("trace.json", json.dumps({"spans": spans}))
    assert score(project, "trace.json").code in (0, 3)
    (sample,) = samples(project).values()
    assert ([turn["user"] for turn in sample["turns"]], calls_of(sample)) == (["Hi"], [["cancel"]])
