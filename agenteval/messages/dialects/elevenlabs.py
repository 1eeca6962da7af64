"""The transcripts of ElevenLabs' conversations: calls and results beside an empty message. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agenteval.messages.dialects.message_lists import unread_of

_PLACE = "transcript"
_OF_RECORDS = frozenset((_PLACE, "analysis", "metadata", "conversation_initiation_client_data"))
_OF_TURNS = frozenset(
    (
        *("message", "tool_calls", "tool_results", "conversation_turn_metrics", "rag_retrieval_info"),
        *("llm_usage", "agent_metadata", "multivoice_message", "feedback"),
    )
)
_OF_CALLS = frozenset(("tool_details",))


class _ElevenLabs:
    name = "elevenlabs"

    def matches(self, record: Any) -> bool:
        turns = record.get(_PLACE) if isinstance(record, dict) and "messages" not in record else None
        return isinstance(turns, list) and bool(turns) and all(map(_is_turn, turns))

    def read(self, record: Mapping[str, Any]) -> list[dict[str, Any]]:
        rest = {key: value for key, value in record.items() if key not in _OF_RECORDS}
        return [{**rest, "messages": [each for turn in record[_PLACE] for each in _messages(turn)]}]


importer = _ElevenLabs()


def _is_turn(value: Any) -> bool:
    return isinstance(value, dict) and "message" in value and value.get("role") in ("user", "agent")


def _messages(turn: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    unread = unread_of(turn, _OF_TURNS)
    if turn["role"] == "user":
        yield {**unread, "role": "user", "content": turn["message"]}
        return
    calls = [_call(each) for each in turn.get("tool_calls") or ()]
    results = turn.get("tool_results") or ()
    if calls or turn["message"] or unread or not results:
        called = {"tool_calls": calls} if calls else {}
        yield {**unread, "role": "assistant", "content": turn["message"], **called}
    for each in results:
        named = {"tool_call_id": each.get("request_id"), "name": each.get("tool_name")}
        failed = {"is_error": True} if each.get("is_error") else {}
        unread = unread_of(each, (*_OF_CALLS, "result_value"))
        yield {**unread, "role": "tool", **named, **failed, "content": each.get("result_value")}


def _call(given: Mapping[str, Any]) -> dict[str, Any]:
    function = {"name": given.get("tool_name"), "arguments": given.get("params_as_json")}
    return {**unread_of(given, _OF_CALLS), "id": given.get("request_id"), "function": function}
