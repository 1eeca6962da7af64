"""The transcripts of Retell's calls, with the calls of tools between what was said. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agenteval.messages.dialects.message_lists import unread_of

_PLACE = "transcript_with_tool_calls"
_CALL, _RESULT = "tool_call_invocation", "tool_call_result"
_OF_RECORDS = frozenset(
    (
        *(_PLACE, "transcript", "transcript_object", "scrubbed_transcript_with_tool_calls", "call_analysis"),
        *("latency", "call_cost", "llm_token_usage", "retell_llm_dynamic_variables", "metadata"),
        *("collected_dynamic_variables", "custom_analysis_data"),
    )
)
_WORDS = "words"
"""When each word of a message was heard."""
_ROLES = {"agent": "assistant", _CALL: "assistant", _RESULT: "tool"}


class _Retell:
    name = "retell"

    def matches(self, record: Any) -> bool:
        return isinstance(record, dict) and isinstance(record.get(_PLACE), list)

    def read(self, record: Mapping[str, Any]) -> list[dict[str, Any]]:
        rest = {key: value for key, value in record.items() if key not in _OF_RECORDS}
        return [{**rest, "messages": list(map(_message, record[_PLACE]))}]


def _message(message: Any) -> Any:
    if not isinstance(message, dict):
        return message
    role = message.get("role")
    if role != _CALL:
        said = {key: message[key] for key in message if key != _WORDS}
        return {**said, "role": _ROLES.get(str(role), role)}
    function = {"name": message.get("name"), "arguments": message.get("arguments")}
    call = {"id": message.get("tool_call_id"), "type": "function", "function": function}
    return {**unread_of(message, (_WORDS, "arguments")), "role": "assistant", "tool_calls": [call]}


importer = _Retell()
