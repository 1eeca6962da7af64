"""What most dialects are: a list of messages that all have one shape, alone or below a key. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from agenteval.messages.calls import Tell

_PLACES = ("messages", "conversation", "events", "steps", "turns", "data")
"""Where a record may have the messages."""
_OF_IMPORTERS = ("notes", "outcome")


class _Found(NamedTuple):
    key: str
    messages: Sequence[Any]


@dataclass(frozen=True)
class MessageList:
    """``is_one``: whether something may be a message of it, which all must be; ``in_openai``: the messages in
    OpenAI's form, ``tell`` hears what is not read."""

    name: str
    is_one: Callable[[Mapping[str, Any]], bool]
    in_openai: Callable[[Sequence[Any], Tell], Iterable[Any]]

    def matches(self, record: Any) -> bool:
        return self._found(record) is not None

    def read(self, record: Any) -> list[dict[str, Any]]:
        found = self._found(record)
        if found is None:
            return []
        notes: dict[str, None] = {}
        messages = list(self.in_openai(found.messages, notes.setdefault))
        fields = record if isinstance(record, dict) else {}
        rest = {key: fields[key] for key in fields if key not in (found.key, *_OF_IMPORTERS)}
        return [{**rest, "messages": messages, "notes": list(notes)}]

    def _found(self, record: Any) -> _Found | None:
        return next((each for each in _lists_in(record) if self._is_all(each.messages)), None)

    def _is_all(self, messages: Sequence[Any]) -> bool:
        first = messages[0] if messages else None
        # Nearly all messages name a role, and of these dialects only that of threads does.
        if not isinstance(first, dict) or ("role" in first and "object" not in first):
            return False
        return self.is_one(first) and all(isinstance(each, dict) and self.is_one(each) for each in messages)


def _lists_in(record: Any) -> Iterator[_Found]:
    if isinstance(record, list):
        yield _Found("", record)
    elif isinstance(record, dict):
        for key in _PLACES:
            if isinstance(inside := record.get(key), list):
                yield _Found(key, inside)
                if key == "messages":
                    return
