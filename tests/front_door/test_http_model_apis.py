"""Agents behind the Responses API and the Messages API."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.agent_servers import SCENARIO, Shop, calls_of, okay, played, served
from tests.support.http_runs import SAYS_HELLO, HttpAgent, HttpRun, error_of, run_http_agents
from tests.support.kit import Project
from tests.support.local_servers import Behaviour, Request, respond, sse

both = pytest.mark.parametrize("has_bug", [True, False], ids=["bug", "fix"])
streamed = pytest.mark.parametrize("streaming", [False, True])

# ── the Responses API ────────────────────────────────────────────────────────────────────────────

RESPONSES = """
agent:
  endpoint: {url}/v1/responses
  body: {model: m, instructions: Be brief., input: [{role: developer, content: Look it up.}]}
"""


def response(*output: Any, status: str = "completed", **more: Any) -> dict[str, Any]:
    usage = {"input_tokens": 6, "output_tokens": 2, "input_tokens_details": {"cached_tokens": 4}}
    given = {"id": "resp_1", "object": "response", "status": status, "error": None, "output": list(output)}
    return {**given, "usage": usage, **more}


def message(text: str) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": []}
    return {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}


REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "xyz"}


def responses(shop: Shop, request: Request) -> Behaviour:
    asked = request.json
    assert asked["input"][0] == {"role": "developer", "content": "Look it up."}
    last = asked["input"][-1]
    if last.get("type") == "function_call_output":
        call, thought = asked["input"][-2], asked["input"][-3]
        assert (call["type"], call["call_id"], thought) == ("function_call", last["call_id"], REASONING)
        made = response(message(shop.answer(last["output"])))
    else:
        call = shop.call(last["content"])
        arguments = json.dumps(call["args"])
        item = {"type": "function_call", "id": "fc_1", "call_id": f"c{len(shop.made)}", "name": call["name"]}
        made = response(REASONING, {**item, "arguments": arguments, "status": "completed"})
    if not asked.get("stream"):
        return okay(made)
    created = {"type": "response.created", "response": {**made, "status": "in_progress", "output": []}}
    return sse(created, {"type": "response.completed", "response": made}, done=False)


@both
@streamed
def test_the_responses_api(project: Project, has_bug: bool, streaming: bool) -> None:
    config = RESPONSES + (f"  streaming: {str(streaming).lower()}\n")
    _, server = played(project, responses, config, has_bug=has_bug)
    asked = [request.json for request in server.requests]
    (tool,) = asked[0]["tools"]
    assert (tool["type"], tool["name"], asked[0]["instructions"]) == ("function", "get_order", "Be brief.")
    assert [item.get("role") or item["type"] for item in asked[-1]["input"]] == [
        *("developer", "user", "reasoning", "function_call", "function_call_output", "assistant"),
        *("user", "reasoning", "function_call", "function_call_output"),
    ]
    usage = project.sample()["usage"]
    assert (usage["input_tokens"], usage["cached_tokens"], usage["estimated"]) == (24, 16, False)


# ── the Messages API ─────────────────────────────────────────────────────────────────────────────

MESSAGES = """
agent:
  endpoint: {url}/v1/messages
  headers: {x-api-key: "k-0123456789"}
  body: {model: m, system: Be brief.}
"""
THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "s"}


def messages_reply(*content: Any, stop: str = "end_turn", **more: Any) -> dict[str, Any]:
    usage = {"input_tokens": 2, "output_tokens": 2, "cache_read_input_tokens": 4}
    given = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": list(content)}
    return {**given, "stop_reason": stop, "usage": usage, **more}


def messages(shop: Shop, request: Request) -> Behaviour:
    asked = request.json
    assert request.headers["anthropic-version"]
    assert request.headers["x-api-key"] == "k-0123456789"
    roles = [each["role"] for each in asked["messages"]]
    assert roles == ["user", "assistant"] * (len(roles) // 2) + ["user"]
    last = asked["messages"][-1]["content"]
    if isinstance(last, list):
        asks = asked["messages"][-2]["content"]
        assert asks[0] == THOUGHT
        assert asks[-1]["id"] == last[0]["tool_use_id"]
        made = messages_reply({"type": "text", "text": shop.answer(last[0]["content"])})
    else:
        call = shop.call(last)
        asks = {"type": "tool_use", "id": f"t{len(shop.made)}", "name": call["name"], "input": call["args"]}
        made = messages_reply(THOUGHT, asks, stop="tool_use")
    return _as_events(made) if asked.get("stream") else okay(made)


def _as_events(made: dict[str, Any]) -> Behaviour:
    """As the API streams it: blocks begin empty, and the usage comes in two parts."""
    usage = {**made["usage"], "output_tokens": 1}
    begun = {**made, "content": [], "stop_reason": None, "usage": usage}
    events: list[Any] = [{"type": "message_start", "message": begun}]
    for index, block in enumerate(made["content"]):
        empty, deltas = _in_pieces(block)
        events.append({"type": "content_block_start", "index": index, "content_block": empty})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    end = {"stop_reason": made["stop_reason"]}
    events.append(
        {"type": "message_delta", "delta": end, "usage": {"input_tokens": None, "output_tokens": 2}}
    )
    return sse(*events, {"type": "message_stop"}, done=False)


def _in_pieces(block: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    match block["type"]:
        case "tool_use":
            given = json.dumps(block["input"])
            pieces = [{"type": "input_json_delta", "partial_json": part} for part in (given[:5], given[5:])]
            return {**block, "input": {}}, pieces
        case "thinking":
            thought = {"type": "thinking_delta", "thinking": block["thinking"]}
            signed = {"type": "signature_delta", "signature": block["signature"]}
            return {**block, "thinking": "", "signature": ""}, [thought, signed]
        case _:
            return {**block, "text": ""}, [{"type": "text_delta", "text": block["text"]}]


@both
@streamed
def test_the_messages_api(project: Project, has_bug: bool, streaming: bool) -> None:
    config = MESSAGES + (f"  streaming: {str(streaming).lower()}\n")
    _, server = played(project, messages, config, has_bug=has_bug)
    asked = server.requests[0].json
    (tool,) = asked["tools"]
    assert (tool["name"], tool["input_schema"]["required"]) == ("get_order", ["id"])
    assert (asked["max_tokens"], asked["system"]) == (4096, "Be brief.")
    usage = project.sample()["usage"]
    assert (usage["input_tokens"], usage["cached_tokens"], usage["output_tokens"]) == (24, 16, 8)


# ── single replies of both ───────────────────────────────────────────────────────────────────────

BODY = "body: {model: m, input: [{role: developer, content: Look it up.}]}"


def by_responses(*behaviours: Behaviour, scenario: str = SAYS_HELLO) -> HttpAgent:
    return HttpAgent(BODY, behaviours, "/v1/responses", scenario)


def by_messages(*behaviours: Behaviour, scenario: str = SAYS_HELLO, options: str = "") -> HttpAgent:
    return HttpAgent(options or "body: {model: m}", behaviours, "/v1/messages", scenario)


def text_block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


SEARCHED = {"type": "mcp_call", "id": "m", "name": "search", "arguments": '{"id": 1}', "output": "found"}
ASKED_AT_ONCE = [
    {"type": "function_call", "call_id": f"c{n}", "name": "get_order", "arguments": f'{{"id": {n}}}'}
    for n in (1, 2)
]
USED_AT_ONCE = [
    {"type": "tool_use", "id": f"t{n}", "name": "get_order", "input": {"id": f"ORD-{n}"}} for n in (1, 2)
]
REFUSAL = {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "I will not."}]}
SHIPPED = "turns: [hi], tools: {get_order: {returns: shipped}}"
TWO_CALLS = "calls: [{name: get_order}, {name: get_order}]"
READ = {
    "messages: calls at once": by_messages(okay(messages_reply(*USED_AT_ONCE, stop="tool_use")),
        okay(messages_reply(text_block("Both are shipped."))),
        scenario=f"{SHIPPED}, expect: {{limits: {{steps: 2}}, tool_calls: {{{TWO_CALLS}}}}}"),
    "responses: a call of the provider": by_responses(okay(response(SEARCHED, message("It is shipped."))),
        scenario="turns: [hi], expect: {tool_calls: {calls: [{name: search, args: {id: 1}}]}}"),
    "responses: calls of both": by_responses(okay(response(SEARCHED, *ASKED_AT_ONCE)),
        okay(response(message("Both are shipped."))),
        scenario=f"{SHIPPED}, expect: {{tool_calls: {{{TWO_CALLS.replace('[', '[{name: search}, ')}}}}}"),
    "responses: a refusal": by_responses(okay(response(REFUSAL)),
        scenario="turns: [hi], expect: {output: {contains: [I will not]}}"),
    "chat completions at such a path": by_messages(
        okay({"choices": [{"message": {"role": "assistant", "content": "hello"}}]}),
        options="api: chat_completions"),
}  # fmt: skip


def cut(reason: str) -> Behaviour:
    return okay(response(message("It is"), status="incomplete", incomplete_details={"reason": reason}))


ERROR = {"type": "error", "error": {"type": "unforeseen_error", "message": "Overloaded"}}
NAMELESS = {"type": "function_call", "call_id": "c", "arguments": "{}"}
BEGUN = {"type": "message_start", "message": {}}
BROKEN = {
    "responses: failed": ("boom", by_responses(okay(response(status="failed", error={"message": "boom"})))),
    "responses: cut": ("`body.max_output_tokens`", by_responses(cut("max_output_tokens"))),
    "responses: filtered": ("content_filter", by_responses(cut("content_filter"))),
    "responses: queued": ("status=queued", by_responses(okay(response(status="queued")))),
    "responses: nothing": ('{"hello": 1}', by_responses(okay({"hello": 1}))),
    "responses: cut stream": ("stream", by_responses(sse({"type": "response.created"}, done=False))),
    "responses: error event": ("boom", by_responses(sse({"type": "error", "message": "boom", "code": "x"}))),
    "responses: a call without a name": ("function_call", by_responses(okay(response(NAMELESS)))),
    "messages: an error": ("Overloaded", by_messages(okay(ERROR))),
    "messages: cut": ("`body.max_tokens`",
        by_messages(okay(messages_reply(text_block("It is"), stop="max_tokens")))),
    "messages: cut stream": ("stream", by_messages(sse(BEGUN, done=False))),
    "messages: error event": ("Overloaded", by_messages(sse(BEGUN, ERROR, done=False))),
    "messages: no JSON": ("JSON", by_messages(respond("hello"))),
}  # fmt: skip


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> HttpRun:
    rows = READ | {name: agent for name, (_, agent) in BROKEN.items()}
    return run_http_agents(Project(tmp_path_factory.mktemp("apis")), rows)


@pytest.mark.parametrize("name", READ)
def test_a_reply_is_read(ran: HttpRun, name: str) -> None:
    assert ran.samples[name]["verdict"] == "passed", ran.samples[name]
    assert len(ran.asked[name]) == len(READ[name].behaviours)


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_reply_is_the_agents_failure(ran: HttpRun, name: str) -> None:
    sample = ran.samples[name]
    assert (sample["verdict"], sample["fault"]) == ("failed", "agent")
    assert BROKEN[name][0] in error_of(sample)


def test_results_of_calls_at_once_are_sent_together(ran: HttpRun) -> None:
    last = ran.asked["messages: calls at once"][1].json["messages"][-1]
    assert [part["tool_use_id"] for part in last["content"]] == ["t1", "t2"]
    sent = ran.asked["responses: calls of both"][1].json["input"]
    results = [item["output"] for item in sent if item.get("type") == "function_call_output"]
    assert results[-2:] == ["shipped"] * 2


def test_calls_that_the_provider_ran_are_observed(ran: HttpRun) -> None:
    found = {
        name: [(call["name"], call["observed"]) for call in ran.samples[name]["turns"][0]["tool_calls"]]
        for name in ("responses: a call of the provider", "responses: calls of both")
    }
    assert [*found.values()] == [
        [("search", True)],
        [("search", True), ("get_order", False), ("get_order", False)],
    ]


def test_an_endpoint_with_such_a_path_may_speak_chat_completions(ran: HttpRun) -> None:
    (request,) = ran.asked["chat completions at such a path"]
    assert request.json == {"messages": [{"role": "user", "content": "hi"}]}


def test_such_a_conversation_is_replayed_from_a_recording(project: Project) -> None:
    shop = Shop()
    with served(shop, responses) as server:
        project.write("agenteval.yaml", RESPONSES.replace("{url}", server.address) + "\nmetrics: []\n")
        project.scenarios(SCENARIO)
        assert project.run("--record", "tape.jsonl").code == 0
    assert project.run("--replay", "tape.jsonl").code == 0
    assert calls_of(project) == shop.made
