"""Messages that stand in the events of a log, one in each, beside what the log says of it. Pure.

Claude Code keeps its sessions so, an event a line; so do tables of chats, a row a message. Events are one
conversation where they name it, and where nothing else comes between them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agenteval.messages.calls import Tell, word
from agenteval.messages.entry import Entry, Record, Unreadable
from agenteval.messages.exchanges import MESSAGES
from agenteval.messages.speakers import event_opened, is_event, is_message

_NAMES = (
    "conversation_id", "conversationId", "thread_id", "threadId", "chat_id", "chatId",
    "dialogue_id", "dialog_id", "session_id", "sessionId",
)  # fmt: skip
"""What a message may name its conversation by, the widest first."""
_OF_MORE = ("session_id", "sessionId", "thread_id", "threadId")
"""Those that something else than a conversation may have, such as a browser that a tool uses."""
_MOST_ASIDES = 64
"""Events that may come before the first one with a message, and are kept until then."""


# ── the messages of one conversation ─────────────────────────────────────────────────────────────


def messages_in(events: Sequence[Any], tell: Tell) -> list[Any]:
    """The messages of events, without what no user and no agent of this conversation said."""
    kept = [event for event in events if not _is_notice(event)]
    if len(kept) < len(events):
        tell("notices of the log, events of the type 'system', were left out")
    own = [event for event in kept if not _is_of_another(event)]
    if own and len(own) < len(kept):
        tell("the messages of an agent that was asked by the agent were left out")
    kept = own or kept
    gone = _taken_back(kept)
    if gone:
        tell("messages that the user took back, and the answers to them, were left out")
        kept = [event for event in kept if word(event, "uuid") not in gone]
    return _joined(map(event_opened, kept))


def _is_notice(event: Any) -> bool:
    return isinstance(event, dict) and event.get("type") == "system" and "subtype" in event


def _is_of_another(event: Any) -> bool:
    return isinstance(event, dict) and (
        event.get("isSidechain") is True or bool(event.get("parent_tool_use_id"))
    )


def _taken_back(events: Iterable[Any]) -> set[str]:
    """The events that follow from a message of the user in whose place he wrote another one later."""
    latest: dict[str, str] = {}
    for event in filter(_is_asked, events):
        latest[event["parentUuid"]] = word(event, "uuid")
    gone: set[str] = set()
    for event in events:
        parent = word(event, "parentUuid") if isinstance(event, dict) else ""
        is_replaced = parent in latest and _is_asked(event) and latest[parent] != word(event, "uuid")
        if is_replaced or parent in gone:
            gone.add(word(event, "uuid"))
    return gone - {""}


def _is_asked(event: Any) -> bool:
    """Whether an event is of what the user wrote, and not of what a tool gave back."""
    if not is_event(event) or not word(event, "parentUuid") or not word(event, "uuid"):
        return False
    message = event["message"]
    content = message.get("content")
    parts = content if isinstance(content, list) else ()
    is_result = any(isinstance(part, dict) and word(part, "type") == "tool_result" for part in parts)
    return message.get("role") == "user" and not is_result


def _joined(messages: Iterable[Any]) -> list[Any]:
    """A message whose blocks are events of their own is one again; so is one that is logged as it grows."""
    joined: list[Any] = []
    for message in messages:
        if joined and _is_same(joined[-1], message):
            before, after = joined[-1]["content"], message["content"]
            content = after if after[: len(before)] == before else before + after
            joined[-1] = {**message, "content": content}
        else:
            joined.append(message)
    return joined


def _is_same(one: Any, other: Any) -> bool:
    if not (isinstance(one, dict) and isinstance(other, dict)):
        return False
    is_listed = isinstance(one.get("content"), list) and isinstance(other.get("content"), list)
    is_agents = one.get("role") == other.get("role") == "assistant"
    return is_agents and is_listed and bool(word(one, "id")) and one["id"] == other.get("id")


# ── which events are one conversation ────────────────────────────────────────────────────────────


@dataclass(slots=True)
class _Session:
    """Events in a row that name one conversation, and those between them that name none."""

    records: list[Record] = field(default_factory=list)
    key: str = ""
    name: str = ""
    has_messages: bool = False

    def is_other(self, name: str) -> bool:
        return bool(self.name and name and name != self.name)

    def add(self, record: Record) -> None:
        self.records.append(record)
        self.has_messages = self.has_messages or is_event(record.value)
        if not self.name:
            self.key, self.name = _named(record.value)

    def whole(self) -> Record:
        values = [record.value for record in self.records]
        first = next(record for record in self.records if is_event(record.value))
        return Record({"id": self.name, self.key: self.name, "messages": values}, first.where)


def whole_sessions(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Events that are entries of their own put together by the conversation that they name, and lists of the
    messages of several taken apart; all else as it is."""
    held = _Session()
    ended: set[str] = set()
    for entry in entries:
        if not held.records and _is_plain(entry):
            yield entry
            continue
        is_held = not isinstance(entry, Unreadable) and _belongs(entry.value, held)
        if held.records and not is_held:
            yield from _ended(held, ended)
            held = _Session()
            is_held = not isinstance(entry, Unreadable) and _belongs(entry.value, held)
        if isinstance(entry, Unreadable):
            yield entry
        elif is_held:
            held.add(entry)
        else:
            yield from _apart(entry)
    yield from _ended(held, ended)


def _is_plain(entry: Entry) -> bool:
    """Whether an entry is neither an event nor a list, as nearly all are."""
    if isinstance(entry, Unreadable):
        return True
    value = entry.value
    return isinstance(value, dict) and "message" not in value and "type" not in value


def _belongs(value: Any, held: _Session) -> bool:
    """Whether a value goes on with the events that are held, or begins them."""
    if not isinstance(value, dict):
        return False
    name = _named(value)[1]
    if is_event(value):
        return bool(name) and not held.is_other(name)
    is_aside = bool(word(value, "type")) and _OF_RECORDS.isdisjoint(value)
    has_room = held.has_messages or len(held.records) < _MOST_ASIDES
    return is_aside and has_room and not held.is_other(name)


_OF_RECORDS = frozenset(
    (*MESSAGES, "message", "role", "request", "response", "attributes", "spans", "resourceSpans")
)


def _named(value: Mapping[str, Any]) -> tuple[str, str]:
    for key in _NAMES:
        name = value.get(key)
        if isinstance(name, str | int) and not isinstance(name, bool) and str(name).strip():
            return key, str(name).strip()
    return "", ""


def _ended(held: _Session, ended: set[str]) -> Iterator[Entry]:
    if not held.has_messages:
        yield from held.records
        return
    if held.name in ended:
        why = f"{held.key} {held.name} began further up, and other lines came between: sort the lines by it"
        yield Unreadable(held.records[0].where, why)
        return
    ended.add(held.name)
    yield held.whole()


def _apart(record: Record) -> Iterator[Entry]:
    """The conversations of a list of messages that name several."""
    rows = _rows(record.value)
    key = next((key for key in _NAMES if any(key in row for row in rows)), "")
    groups: dict[str, list[Any]] = {}
    for row in rows if key else ():
        groups.setdefault(_named({key: row.get(key)})[1], []).append(row)
    names = [name for name in groups if name]
    if len(names) < 2 or ("" in groups and key in _OF_MORE):
        yield record
    elif "" in groups:
        why = f"messages of several conversations ({key}: {', '.join(names[:3])}), and some that name none"
        yield Unreadable(record.where, f"{why}: write each conversation as a list of its own")
    else:
        for name in names:
            yield Record({"id": name, key: name, "messages": groups[name]}, record.where)


def _rows(value: Any) -> list[Any]:
    """The messages of a list whose ends name a conversation, without what else a log tells between them."""
    if not isinstance(value, list) or not any(map(_is_named, (*value[:1], *value[-1:]))):
        return []
    return [each for each in value if is_event(each)] or [each for each in value if is_message(each)]


def _is_named(value: Any) -> bool:
    return isinstance(value, dict) and bool(_named(value)[1])
