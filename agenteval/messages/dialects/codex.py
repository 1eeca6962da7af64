"""Sessions of Codex: envelopes, a line each: ``{"type": …, "payload": …}``. Pure.

The items that its model was given and gave back are the conversation; events, which tell most of it once
more to the terminal, are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agenteval.messages.calls import word
from agenteval.messages.dialects.message_lists import unread_of

_BEGIN, _ITEM, _SETTINGS = "session_meta", "response_item", "turn_context"
_KINDS = frozenset((_BEGIN, _ITEM, _SETTINGS, "event_msg", "compacted"))
_PLACED = frozenset(("ghost_snapshot", "compaction", "compaction_summary", "other"))
"""Items that the program keeps for itself."""


class _Codex:
    name = "codex"

    def matches(self, record: Any) -> bool:
        return _is_envelope(record) and record["type"] in _KINDS

    def goes_on(self, held: Sequence[Any], record: Any) -> bool:
        """The sessions that one goes on from are told after it, before its first message."""
        if not _is_envelope(record):
            return False
        return record["type"] != _BEGIN or not any(map(_is_said, held))

    def read(self, record: Any) -> list[dict[str, Any]]:
        lines = record if isinstance(record, tuple) else (record,)
        fields: dict[str, Any] = {}
        for line in lines:  # what is reported first counts
            fields = {**_fields(line["type"], line["payload"]), **fields}
        messages = [
            _opened(line) if line["type"] == _ITEM else line for line in lines if not _is_left_out(line)
        ]
        return [{**fields, "messages": messages}]


def _opened(line: dict[str, Any]) -> dict[str, Any]:
    return {**unread_of(line, ("payload",)), **line["payload"]}


def _is_envelope(record: Any) -> bool:
    return isinstance(record, dict) and isinstance(record.get("payload"), dict) and bool(word(record, "type"))


def _is_said(line: dict[str, Any]) -> bool:
    """Whether a line is of the conversation."""
    return bool(line["type"] == _ITEM) and word(line["payload"], "type") not in _PLACED


def _is_left_out(line: dict[str, Any]) -> bool:
    """Whether a line tells nothing of the conversation that its items do not; of an unknown kind nobody knows
    it."""
    return bool(line["type"] in _KINDS) and not _is_said(line)


def _fields(kind: str, payload: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if kind == _BEGIN:
        told = payload.get("base_instructions") or payload.get("instructions")
        text = told.get("text") if isinstance(told, dict) else told
        found = {"id": payload.get("id"), "instructions": text}
    elif kind == _SETTINGS:
        found = {"model": payload.get("model")}
    return {key: value for key, value in found.items() if value}


importer = _Codex()
