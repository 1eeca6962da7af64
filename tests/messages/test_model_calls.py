"""What requests to models show of a turn, with what is known of its calls otherwise."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agenteval.agentside.world import RequestedCall
from agenteval.core.protocols import ReadReply
from agenteval.core.trajectory import CallEvidence
from agenteval.messages.model_calls import KnownCalls, merge_model_calls, parse_model_turn


def call(name: str, args: dict[str, Any], call_id: str = "") -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(args)}
    return {**({"id": call_id} if call_id else {}), "type": "function", "function": function}


def chat(*calls: dict[str, Any], tokens: int = 10, **more: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": None if calls else "Done.", "tool_calls": list(calls)}
    usage = {"prompt_tokens": tokens, "completion_tokens": 2}
    reply = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage}
    return {"dialect": "chat", "results": [], "offers_tools": True, "reply": json.dumps(reply), **more}


def listed(reply: ReadReply) -> list[tuple[str, str, bool]]:
    return [
        (each["function"]["name"], each["id"], each.get("attempted", False))
        for message in reply.messages
        for each in message.get("tool_calls") or ()
    ]


def made(known: KnownCalls, *exchanges: dict[str, Any], reply: ReadReply | None = None) -> ReadReply:
    return merge_model_calls(reply or ReadReply("Done."), parse_model_turn(exchanges), known)


def asked(name: str, args: dict[str, Any], call_id: str = "") -> RequestedCall:
    return RequestedCall(name, json.dumps(args), call_id)


def test_in_a_plain_loop_what_nothing_met_is_the_agents_own_with_what_came_of_it() -> None:
    brought = [{"role": "tool", "tool_call_id": "c1", "content": "found"}]
    reply = made(KnownCalls(), chat(call("look", {"a": 1}, "c1")), chat(results=brought))
    assert listed(reply) == [("look", "c1", False)]
    assert [m["content"] for m in reply.messages if m["role"] == "tool"] == ["found"]
    assert (reply.apart, reply.evidence) == ({"c1"}, CallEvidence.RECORDED)
    assert reply.usage.tokens == 24  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "known", [asked("look", {"a": 2}, "c2"), asked("look", {"a": 2}), asked("look", {"a": 2, "more": 3})]
)
def test_a_call_that_the_scenario_was_asked_for_is_found_by_id_then_arguments_then_name(
    known: RequestedCall,
) -> None:
    exchange = chat(call("see", {"a": 1}, "c1"), call("look", {"a": 2}, "c2"))
    reply = made(KnownCalls([known, asked("see", {"a": 1})]), exchange)
    assert listed(reply) == [("see", "c1", False), ("look", "c2", False)]
    given = [each["function"]["arguments"] for m in reply.messages for each in m.get("tool_calls") or ()]
    assert given == ['{"a": 1}', known.arguments]
    assert not any(m["role"] == "tool" for m in reply.messages)
    assert reply.apart == frozenset()


def test_of_two_calls_each_is_found_once() -> None:
    exchange = chat(call("look", {"a": 1}, "c1"), call("look", {"a": 1}, "c2"))
    reply = made(KnownCalls([asked("look", {"a": 1})], intercepted_tools={"look"}), exchange)
    assert listed(reply) == [("look", "c1", False), ("look", "c2", True)]


def test_in_a_framework_only_what_the_scenario_names_is_a_call() -> None:
    exchange = chat(
        call("hand_over", {}, "c1"), call("look", {}, "c2"), call("note", {}, "c3"), framework="f"
    )
    reply = made(KnownCalls([], intercepted_tools={"note"}, scenario_tools={"look", "note"}), exchange)
    assert listed(reply) == [("look", "c2", False), ("note", "c3", True)]
    own = {"role": "assistant", "content": None, "tool_calls": [call("look", {}, "c2")]}
    shown = ReadReply(messages=[own, {"role": "assistant", "content": "Done."}])
    adapters = KnownCalls(
        [asked("look", {}, "c2")],
        intercepted_tools={"look"},
        scenario_tools={"look", "note"},
        is_framework_object=True,
    )
    reply = made(adapters, {**exchange, "framework": ""}, reply=shown)
    assert listed(reply) == [("look", "c2", False), ("note", "c3", False)]


def test_what_the_reply_shows_counts_once_whatever_its_ids() -> None:
    handed = ReadReply(tool_calls=[call("look", {"a": 1}, "own")])
    reply = made(KnownCalls(), chat(call("look", {"a": 1}, "c1")), reply=handed)
    assert listed(reply) == []
    assert len(reply.tool_calls) == 1


def test_a_forced_form_is_no_call_unless_something_came_of_it_or_the_scenario_names_it() -> None:
    exchange = chat(call("Form", {}, "c1"), forced="Form")
    brought = chat(results=[{"role": "tool", "tool_call_id": "c1", "content": "x"}])
    assert listed(made(KnownCalls(), exchange)) == []
    assert listed(made(KnownCalls(), exchange, brought)) == [("Form", "c1", False)]
    assert listed(made(KnownCalls(scenario_tools={"Form"}), exchange)) == [("Form", "c1", False)]


def test_the_larger_usage_counts_and_an_unknown_one_is_no_sum() -> None:
    small, large = {"input_tokens": 1, "output_tokens": 1}, {"input_tokens": 99, "output_tokens": 1}
    for reported, tokens in ((None, 12), (small, 12), (large, 100)):
        reply = made(KnownCalls(), chat(), reply=ReadReply("Done.", usage=reported))
        found = reply.usage
        assert (found["input_tokens"] + 1 if isinstance(found, dict) else found.tokens) == tokens  # type: ignore[union-attr]
    by_message = ReadReply(messages=[{"role": "assistant", "content": "Done.", "usage": small}])
    assert made(KnownCalls(), chat(), reply=by_message).usage.tokens == 12  # type: ignore[union-attr]
    silent = {**chat(), "reply": '{"choices": [{"message": {"role": "assistant", "content": "Hi"}}]}'}
    assert made(KnownCalls(), chat(), silent).usage is None
    assert made(KnownCalls(), chat(), {**chat(), "reply": "", "failed": "HTTP 429"}).usage.tokens == 12  # type: ignore[union-attr]


def test_what_was_not_read_leaves_the_turn_open_but_for_an_object_whose_adapter_lists_its_calls() -> None:
    unread = {"results": [], "unread": "an unsupported request to /v2/chat"}
    assert made(KnownCalls(), chat(), unread).unplaced == (unread["unread"],)
    listing = made(KnownCalls(is_framework_object=True), chat(), unread)
    assert (listing.unplaced, listing.evidence) == ((), None)
    (phrase,) = made(KnownCalls(), {**chat(), "reply": "<html>"}).unplaced
    assert phrase.startswith("a model reply is a web page")


def test_a_forked_process_matters_where_the_agent_does_not_list_its_messages() -> None:
    forked = {"results": [], "unread": "the agent forked a process", "forked": True}
    shown = ReadReply(messages=[{"role": "assistant", "content": "Done."}])
    assert made(KnownCalls(), forked).unplaced == ("the agent forked a process",)
    assert made(KnownCalls(), forked, reply=shown).unplaced == ()


# ── streams that were not read to their end ──────────────────────────────────────────────────────


def events(*pieces: dict[str, Any]) -> str:
    return "".join(f"data: {json.dumps(piece)}\n\n" for piece in pieces)


def block(at: int, name: str, *json_pieces: str, is_closed: bool = True) -> list[dict[str, Any]]:
    start = {"type": "tool_use", "id": f"t{at}", "name": name, "input": {}}
    deltas = [
        {
            "type": "content_block_delta",
            "index": at,
            "delta": {"type": "input_json_delta", "partial_json": piece},
        }
        for piece in json_pieces
    ]
    end = [{"type": "content_block_stop", "index": at}] * is_closed
    return [{"type": "content_block_start", "index": at, "content_block": start}, *deltas, *end]


def test_a_call_of_which_not_all_was_read_was_none() -> None:
    start = {"type": "message_start", "message": {"role": "assistant", "content": [], "usage": {}}}
    anthropic = events(start, *block(0, "look", '{"a":', " 1}"), *block(1, "note", '{"b"', is_closed=False))
    first, second = {"functionCall": {"name": "look", "args": {}}}, '{"candidates": [{"content": {"pa'
    google = events({"candidates": [{"content": {"role": "model", "parts": [first]}}]}) + f"data: {second}"
    in_list = (
        "[" + json.dumps({"candidates": [{"content": {"role": "model", "parts": [first]}}]}) + "," + second
    )
    delta = {"index": 0, "delta": {"tool_calls": [{"index": 0, **call("look", {}, "c")}]}}
    half = {"index": 1, "id": "d", "function": {"name": "note", "arguments": '{"b'}}
    openai = events({"choices": [delta]}, {"choices": [{"index": 0, "delta": {"tool_calls": [half]}}]})
    ollama = json.dumps({"message": {"role": "assistant", "tool_calls": [call("look", {})]}, "done": False})
    item = {"type": "function_call", "id": "f", "call_id": "c", "name": "look", "arguments": "{}"}
    responses = events({"type": "response.output_item.done", "output_index": 0, "item": item})
    for dialect, text in (
        ("anthropic", anthropic),
        ("gemini", google),
        ("gemini", in_list),
        ("chat", openai),
        ("ollama", ollama + '\n{"message": {"rol'),
        ("responses", responses + 'data: {"type": "resp'),
    ):
        turn = parse_model_turn([{"dialect": dialect, "results": [], "reply": text}])
        assert [heard.name for calls in turn.rounds for heard in calls] == ["look"], (dialect, turn)
        assert turn.unreadable == (), (dialect, turn)


def test_a_response_that_was_fetched_again_is_one() -> None:
    def response(status: str, **more: Any) -> dict[str, Any]:
        item = {"type": "function_call", "id": "f", "call_id": "c", "name": "look", "arguments": "{}"}
        reply = {
            "id": "resp_1",
            "object": "response",
            "status": status,
            "output": [item] if status == "completed" else [],
            "usage": {"input_tokens": 10, "output_tokens": 2} if status == "completed" else None,
        }
        return {"dialect": "responses", "results": [], "reply": json.dumps(reply), **more}

    again = {"is_fetched": True}
    turn = parse_model_turn(
        [response("queued"), response("completed", **again), response("completed", **again)]
    )
    assert [heard.name for calls in turn.rounds for heard in calls] == ["look"]
    assert turn.usage
    assert turn.usage.tokens == 12
