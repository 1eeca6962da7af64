"""Agents behind the Responses API and the Messages API."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.agent_servers import SCENARIO, Shop, calls_of, okay, played, served
from tests.support.kit import Project
from tests.support.local_servers import Behaviour, LocalServer, Request, respond, sse

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


def test_several_calls_and_their_results_are_one_message_each(project: Project) -> None:
    """Both APIs get what was asked for at once, and the results together."""
    calls = [
        {"type": "tool_use", "id": f"t{n}", "name": "get_order", "input": {"id": f"ORD-{n}"}} for n in (1, 2)
    ]
    text = {"type": "text", "text": "Both are shipped."}
    with LocalServer(okay(messages_reply(*calls, stop="tool_use")), okay(messages_reply(text))) as server:
        project.write("agenteval.yaml", MESSAGES.replace("{url}", server.address) + "\nmetrics: []\n")
        project.scenarios("""
            scenarios:
              - name: s
                turns: [Where are my orders?]
                tools: {get_order: {returns: shipped}}
                expect: {limits: {steps: 2}, tool_calls: {calls: [{name: get_order}, {name: get_order}]}}
        """)
        assert project.run().code == 0
    last = server.requests[1].json["messages"][-1]
    assert [part["tool_use_id"] for part in last["content"]] == ["t1", "t2"]


def test_calls_that_the_provider_ran_are_observed(project: Project) -> None:
    search = {
        "type": "mcp_call",
        "id": "m",
        "name": "get_order",
        "arguments": '{"id": 1}',
        "output": "shipped",
    }
    with LocalServer(okay(response(search, message("It is shipped.")))) as server:
        project.write("agenteval.yaml", RESPONSES.replace("{url}", server.address) + "\nmetrics: []\n")
        project.scenarios("""
            scenarios:
              - {name: s, turns: [hi], expect: {tool_calls: {calls: [{name: get_order, args: {id: 1}}]}}}
        """)
        assert project.run().code == 0
    (made,) = project.sample()["turns"][0]["tool_calls"]
    assert made["observed"]
    assert len(server.requests) == 1


def cut_response(reason: str) -> dict[str, Any]:
    return response(message("It is"), status="incomplete", incomplete_details={"reason": reason})


def test_what_the_provider_ran_and_what_it_asks_for_stand_side_by_side(project: Project) -> None:
    ran = {"type": "mcp_call", "id": "m", "name": "search", "arguments": "{}", "output": "found"}
    asks = [
        {"type": "function_call", "call_id": f"c{n}", "name": "get_order", "arguments": f'{{"id": {n}}}'}
        for n in (1, 2)
    ]
    with LocalServer(okay(response(ran, *asks)), okay(response(message("Both are shipped.")))) as server:
        project.write("agenteval.yaml", RESPONSES.replace("{url}", server.address) + "\nmetrics: []\n")
        project.scenarios("""
            scenarios:
              - name: s
                turns: [hi]
                tools: {get_order: {returns: shipped}}
                expect: {tool_calls: {calls: [{name: search}, {name: get_order}, {name: get_order}]}}
        """)
        assert project.run().code == 0
    calls = project.sample()["turns"][0]["tool_calls"]
    assert [(call["name"], call["observed"]) for call in calls] == [
        ("search", True),
        ("get_order", False),
        ("get_order", False),
    ]
    sent = server.requests[1].json["input"]
    assert [item["output"] for item in sent if item.get("type") == "function_call_output"][-2:] == [
        "shipped"
    ] * 2


ERROR = {"type": "error", "error": {"type": "unforeseen_error", "message": "Overloaded"}}
BROKEN = {
    "responses: failed": (RESPONSES, okay(response(status="failed", error={"message": "boom"})), "boom"),
    "responses: cut": (
        RESPONSES,
        okay(
            response(
                message("It is"), status="incomplete", incomplete_details={"reason": "max_output_tokens"}
            )
        ),
        "was cut off (max_output_tokens) — raise the agent's token limit, `body.max_output_tokens`?",
    ),
    "responses: filtered": (
        RESPONSES,
        okay(cut_response("content_filter")),
        "was cut off (content_filter)",
    ),
    "responses: queued": (RESPONSES, okay(response(status="queued")), "is not complete (status=queued)"),
    "responses: nothing": (RESPONSES, okay({"hello": 1}), "has no message"),
    "responses: cut stream": (RESPONSES, sse({"type": "response.created"}, done=False), "cut off"),
    "responses: error event": (RESPONSES, sse({"type": "error", "message": "boom", "code": "x"}), "boom"),
    "responses: a call without a name": (
        RESPONSES,
        okay(response({"type": "function_call", "call_id": "c", "arguments": "{}"})),
        "call",
    ),
    "messages: an error": (MESSAGES, okay(ERROR), "Overloaded"),
    "messages: cut": (
        MESSAGES,
        okay(messages_reply({"type": "text", "text": "It is"}, stop="max_tokens")),
        "`body.max_tokens`?",
    ),
    "messages: cut stream": (MESSAGES, sse({"type": "message_start", "message": {}}, done=False), "cut off"),
    "messages: error event": (
        MESSAGES,
        sse({"type": "message_start", "message": {}}, ERROR, done=False),
        "Overloaded",
    ),
    "messages: no JSON": (MESSAGES, respond("hello"), "is not JSON"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_breaks_is_the_agents_failure(project: Project, case: str) -> None:
    config, behaviour, says = BROKEN[case]
    with LocalServer(behaviour) as server:
        project.write("agenteval.yaml", config.replace("{url}", server.address) + "\nmetrics: []\n")
        project.scenarios("scenarios: [{name: s, turns: [hi], expect: {output: {contains: [hello]}}}]")
        done = project.run()
    sample = project.sample()
    assert (done.code, sample["verdict"], sample["fault"]) == (1, "failed", "agent"), done.all
    assert says in sample["turns"][0]["error"], sample["turns"]


def test_a_refusal_is_an_answer(project: Project) -> None:
    refused = {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "refusal", "refusal": "I will not."}],
    }
    with LocalServer(okay(response(refused))) as server:
        project.write("agenteval.yaml", RESPONSES.replace("{url}", server.address) + "\nmetrics: []\n")
        project.scenarios("scenarios: [{name: s, turns: [hi], expect: {output: {contains: [I will not]}}}]")
        assert project.run().code == 0


def test_an_endpoint_with_such_a_path_may_speak_chat_completions(project: Project) -> None:
    made = {"choices": [{"message": {"role": "assistant", "content": "hello"}}]}
    with LocalServer(okay(made)) as server:
        project.write(
            "agenteval.yaml",
            f"agent: {{endpoint: '{server.address}/v1/messages', api: chat_completions}}\nmetrics: []\n",
        )
        project.scenarios("scenarios: [{name: s, turns: [hi], expect: {output: {contains: [hello]}}}]")
        assert project.run().code == 0
    assert server.requests[0].json == {"messages": [{"role": "user", "content": "hi"}]}


def test_such_a_conversation_is_replayed_from_a_recording(project: Project) -> None:
    shop = Shop()
    with served(shop, responses) as server:
        project.write("agenteval.yaml", RESPONSES.replace("{url}", server.address) + "\nmetrics: []\n")
        project.scenarios(SCENARIO)
        assert project.run("--record", "tape.jsonl").code == 0
    assert project.run("--replay", "tape.jsonl").code == 0
    assert calls_of(project) == shop.made
