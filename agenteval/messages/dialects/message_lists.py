"""Recognizes and converts message lists whose elements all have the same format. Such a list may be the whole
record, or the value of a key in the record. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from agenteval.messages.calls import OnWarning
from agenteval.messages.field_shapes import calls_in, holds_objects

_LIST_KEYS = ("conversation", "conversations", "events", "turns", "data")
"""Keys that contain the message list in a record without ``messages``."""
_IMPORTER_KEYS = ("notes", "outcome")


class CandidateList(NamedTuple):
    """A list in a record that may consist of messages."""

    messages: Sequence[Any]
    record: Mapping[str, Any] = {}
    """The record that contains the list, or an empty mapping if the list is the whole record."""
    key: str = ""
    """The key in the record that contains the list."""

    @property
    def rest(self) -> dict[str, Any]:
        """The remaining fields of the record."""
        fields = self.record
        return {key: fields[key] for key in fields if key not in (self.key, *_IMPORTER_KEYS)}


def unread_fields(
    entry: Mapping[str, Any], read: Collection[str], known: Collection[str] = ()
) -> dict[str, Any]:
    """Return the fields of an entry that its dialect does not support and that may contain calls.

    These fields are passed on unchanged, and the message parser places them if it can. Fields in ``known``
    are assumed, by their names alone, to contain no calls; a known field that does contain a call is also
    passed on."""
    return {
        key: value
        for key, value in entry.items()
        if key not in read and (calls_in(value) if key in known else holds_objects(value))
    }


@dataclass(frozen=True)
class MessageList:
    """A dialect in which a conversation is a list of messages with the same format."""

    name: str
    is_message: Callable[[Mapping[str, Any]], bool]
    """A function that returns true if an object may be a message in this format. All elements of a list must
    be such messages."""
    to_openai: Callable[[Sequence[Any], OnWarning], Iterable[Any]]
    """A function that converts the messages to OpenAI's format and leaves unknown messages unchanged. Its
    callback receives a warning for anything that is omitted."""
    known_record_fields: frozenset[str] = frozenset()
    """The fields of a record that contain no calls."""

    def matches(self, record: Any) -> bool:
        return self._find_list(record) is not None

    def read(self, record: Any) -> list[dict[str, Any]]:
        found = self._find_list(record)
        if found is None:
            return []
        notes: dict[str, None] = {}
        messages = list(self.to_openai(found.messages, notes.setdefault))
        rest = {key: value for key, value in found.rest.items() if key not in self.known_record_fields}
        return [{**rest, "messages": messages, "notes": list(notes)}]

    def _find_list(self, record: Any) -> CandidateList | None:
        if isinstance(record, dict) and isinstance(usual := record.get("messages"), list):
            return CandidateList(usual, record, "messages") if self._matches_all(usual) else None
        return next((each for each in _candidate_lists(record) if self._matches_all(each.messages)), None)

    def _matches_all(self, messages: Sequence[Any]) -> bool:
        first = messages[0] if messages else None
        # A quick test first: nearly all messages have a role, but those of a dialect do not.
        if not isinstance(first, dict) or "role" in first or not self.is_message(first):
            return False
        return all(isinstance(each, dict) and self.is_message(each) for each in messages)


def _candidate_lists(record: Any) -> Iterator[CandidateList]:
    if isinstance(record, list):
        yield CandidateList(record)
    elif isinstance(record, dict):
        for key in _LIST_KEYS:
            if isinstance(inside := record.get(key), list):
                yield CandidateList(inside, record, key)
