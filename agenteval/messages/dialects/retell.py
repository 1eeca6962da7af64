"""The transcripts of Retell's calls, with the calls of tools between what was said. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_PLACE = "transcript_with_tool_calls"
_CALL, _RESULT = "tool_call_invocation", "tool_call_result"
_ROLES = {"agent": "assistant", _CALL: "assistant", _RESULT: "tool"}


class _Retell:
    name = "retell"

    def matches(self, record: Any) -> bool:
        return isinstance(record, dict) and isinstance(record.get(_PLACE), list)

    def read(self, record: Mapping[str, Any]) -> list[dict[str, Any]]:
        rest = {key: value for key, value in record.items() if key not in (_PLACE, "transcript")}
        return [{**rest, "messages": list(map(_message, record[_PLACE]))}]


def _message(message: Any) -> Any:
    if not isinstance(message, dict):
        return message
    role = message.get("role")
    said = {**message, "role": _ROLES.get(str(role), role)}
    if role != _CALL:
        return said
    function = {"name": message.get("name"), "arguments": message.get("arguments")}
    call = {"id": message.get("tool_call_id"), "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


importer = _Retell()
