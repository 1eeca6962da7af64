"""Sessions that are logged as envelopes, a line each: ``{"type": …, "payload": …}``. Pure.

Codex keeps its sessions so. The items that its model was given and gave back are the conversation; events,
which tell most of it once more to the terminal, are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from agenteval.messages.calls import word
from agenteval.messages.entry import Entry, Record

_BEGIN, _ITEM, _SETTINGS = "session_meta", "response_item", "turn_context"
_KINDS = frozenset((_BEGIN, _ITEM, _SETTINGS, "event_msg", "compacted"))
_SPOKEN = ("message", "reasoning")
_ENDS = ("_call", "_call_output")


@dataclass(slots=True)
class _Rollout:
    where: str
    fields: dict[str, Any] = field(default_factory=dict)
    messages: list[Any] = field(default_factory=list)

    def add(self, value: dict[str, Any]) -> None:
        kind, payload = value["type"], value["payload"]
        if kind == _ITEM and _is_said(payload):
            self.messages.append(payload)
        elif kind == _BEGIN:
            told = payload.get("base_instructions") or payload.get("instructions")
            text = told.get("text") if isinstance(told, dict) else told
            self._know(id=payload.get("id"), instructions=text)
        elif kind == _SETTINGS:
            self._know(model=payload.get("model"))

    def _know(self, **fields: Any) -> None:
        """What is told first counts: the sessions that one goes on from are told after it."""
        self.fields = {**{key: value for key, value in fields.items() if value}, **self.fields}

    def whole(self) -> Record:
        return Record({**self.fields, "messages": self.messages}, self.where)


def whole_rollouts(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Envelopes in a row put together, a conversation for each session; all else as it is."""
    held: _Rollout | None = None
    for entry in entries:
        line = _envelope_in(entry, is_held=held is not None)
        if held is not None and (line is None or (line["type"] == _BEGIN and held.messages)):
            yield held.whole()
            held = None
        if line is None:
            yield entry
        else:
            held = held or _Rollout(entry.where)
            held.add(line)
    if held is not None:
        yield held.whole()


def _envelope_in(entry: Entry, *, is_held: bool) -> dict[str, Any] | None:
    """One of a known type begins; of the others that come between, nothing is read."""
    value = entry.value if isinstance(entry, Record) else None
    if not isinstance(value, dict) or not isinstance(value.get("payload"), dict):
        return None
    return value if value.get("type") in _KINDS or (is_held and "type" in value) else None


def _is_said(item: dict[str, Any]) -> bool:
    """Whether an item is of a conversation, and none of what the program keeps for itself."""
    kind = word(item, "type")
    return kind in _SPOKEN or kind.endswith(_ENDS)
