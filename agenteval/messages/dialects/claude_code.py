"""Messages that stand in the events of a log, one in each, beside what the log says of it. Pure.

Claude Code keeps its sessions so, an event a line; so do tables of chats, a row a message. Events are one
conversation where they name it, and where nothing else comes between them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agenteval.core.errors import AuthorError, Problem
from agenteval.messages.calls import Tell, word
from agenteval.messages.exchanges import MESSAGES
from agenteval.messages.placed import Unplaced
from agenteval.messages.said import marked
from agenteval.messages.speakers import event_opened, is_event, is_message

_NAMES = (
    "conversation_id", "conversationId", "thread_id", "threadId", "chat_id", "chatId",
    "dialogue_id", "dialog_id", "session_id", "sessionId",
)  # fmt: skip
"""What a message may name its conversation by, the widest first."""
_OF_MORE = ("session_id", "sessionId", "thread_id", "threadId")
"""Those that something else than a conversation may have, such as a browser that a tool uses."""
_BEFORE = ("summary", "file-history-snapshot")
"""Events before the messages that name no conversation."""
_MOST_ASIDES = 64
"""Events that may come before the first one with a message, and are kept until then."""


# ── the messages of one conversation ─────────────────────────────────────────────────────────────


def _messages_in(events: Sequence[Any], tell: Tell) -> list[Any]:
    """The messages of events, without what no user and no agent of this conversation said."""
    kept = [event for event in events if not _is_notice(event)]
    if len(kept) < len(events):
        tell("notices of the log, events of the type 'system', were left out")
    own = [event for event in kept if not _is_of_another(event)]
    others = bool(own) and len(own) < len(kept)
    if others:
        tell("the messages of an agent that was asked by the agent were left out")
        # What it does is done, too: where it called a tool, that call was not read.
        kept = [event for event in kept if not _is_of_another(event) or _has_calls(event)]
    gone = _taken_back(kept)
    if gone:
        tell("messages that the user took back, and the answers to them, were left out")
        kept = [event for event in kept if word(event, "uuid") not in gone]
    kept = [event for event in kept if not _is_placed(event)]
    return _joined(
        [_call_of(event) if others and _is_of_another(event) else _opened(event) for event in kept]
    )


def _is_notice(event: Any) -> bool:
    return isinstance(event, dict) and event.get("type") == "system" and "subtype" in event


def _is_of_another(event: Any) -> bool:
    return isinstance(event, dict) and (
        event.get("isSidechain") is True
        or bool(event.get("parent_tool_use_id"))
        or (event.get("type") == "progress" and word(_data_of(event), "type") == "agent_progress")
    )


def _data_of(event: Mapping[str, Any]) -> Mapping[str, Any]:
    data = event.get("data")
    return data if isinstance(data, dict) else {}


def _has_calls(event: Mapping[str, Any]) -> bool:
    inner = _data_of(event).get("message", event.get("message"))
    inner = inner.get("message", inner) if isinstance(inner, dict) else {}
    content = inner.get("content") if isinstance(inner, dict) else None
    parts = content if isinstance(content, list) else ()
    return any(isinstance(part, dict) and word(part, "type").endswith("tool_use") for part in parts)


_PLACED = frozenset(
    (
        *("summary", "file-history-snapshot", "queue-operation", "custom-title", "ai-title", "agent-name"),
        *("last-prompt", "tag", "mode", "permission-mode", "pr-link", "progress", "attachment", "result"),
        *("rate_limit_event", "tool_progress", "auth_status", "stream_event"),
    )
)
"""Events that are no messages, and in which no call is."""
_OF_EVENTS = frozenset(
    (
        "toolUseResult",
        "tool_use_result",
        "mcpMeta",
        "thinkingMetadata",
        "todos",
        "compactMetadata",
        "snapshot",
    )
)
"""What stands beside a message: of a result, what the program made of it."""


def _is_placed(event: Any) -> bool:
    is_known = isinstance(event, dict) and event.get("type") in _PLACED and not is_event(event)
    return is_known and not _is_of_another(event)


def _call_of(event: Mapping[str, Any]) -> dict[str, Any]:
    what = "a call of an agent that the agent asked"
    return marked(Unplaced(what, ("isSidechain", word(event, "type")), event.get("message")))


def _opened(event: Any) -> Any:
    opened = event_opened(event)
    if opened is event or not isinstance(opened, dict):
        return opened
    return {key: value for key, value in opened.items() if key not in _OF_EVENTS}


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


class _ClaudeCode:
    name = "claude-code"

    def matches(self, record: Any) -> bool:
        if isinstance(record, list):
            return _are_events(record) or len(_groups_in(record)) > 1
        if not isinstance(record, dict):
            return False
        if isinstance(messages := record.get("messages"), list):
            return _are_events(messages)
        return _begins(record)

    def goes_on(self, held: Sequence[Any], record: Any) -> bool:
        if not isinstance(record, dict):
            return False
        if not held:
            return _begins(record)
        ahead = held[: _MOST_ASIDES + 1]
        name, other = _named(record)[1], _name_in(ahead)[1]
        if name and other and name != other:
            return False
        if is_event(record):
            return bool(name)
        return _is_aside(record) and (len(held) < _MOST_ASIDES or any(map(is_event, ahead)))

    def read(self, record: Any) -> list[dict[str, Any]]:
        notes: dict[str, None] = {}
        fields: list[dict[str, Any]]
        if isinstance(record, tuple):
            key, name = _name_in(record)
            fields = [{"id": name, key: name, "messages": record}] if any(map(is_event, record)) else []
        elif isinstance(record, list):
            fields = _conversations_in(record)
        else:
            fields = [record]
        found = [{**each, "messages": _messages_in(each["messages"], notes.setdefault)} for each in fields]
        return [{**each, "notes": list(notes)} for each in found]


importer = _ClaudeCode()


def _are_events(messages: Sequence[Any]) -> bool:
    """Looked at first: nearly all messages name a role, and events do not."""
    first = messages[0] if messages else None
    return isinstance(first, dict) and "role" not in first and any(map(is_event, messages))


def _begins(record: Mapping[str, Any]) -> bool:
    is_named = bool(_named(record)[1])
    if is_event(record):
        return is_named
    return _is_aside(record) and (is_named or record["type"] in _BEFORE)


def _is_aside(record: Mapping[str, Any]) -> bool:
    """Whether a record may be one of those between the messages: of a summary, a snapshot."""
    return bool(word(record, "type")) and _OF_RECORDS.isdisjoint(record)


_OF_RECORDS = frozenset(
    (*MESSAGES, "message", "role", "request", "response", "attributes", "spans", "resourceSpans", "payload")
)


def _named(value: Mapping[str, Any]) -> tuple[str, str]:
    """The key by which a record names its conversation, and the name."""
    for key in _NAMES:
        name = value.get(key)
        if isinstance(name, str | int) and not isinstance(name, bool) and str(name).strip():
            return key, str(name).strip()
    return "", ""


def _name_in(records: Iterable[Any]) -> tuple[str, str]:
    return next(filter(lambda found: found[1], map(_named, records)), ("", ""))


# ── lists of the messages of several conversations ───────────────────────────────────────────────


def _conversations_in(rows: list[Any]) -> list[dict[str, Any]]:
    """Raises ``AuthorError`` (without a place) for messages of several, and some that name none."""
    groups = _groups_in(rows)
    if len(groups) < 2:
        return [{"messages": rows}]
    names = [name for _, name in groups]
    if "" in names:
        key = next(key for key, _ in groups)
        first = ", ".join([name for name in names if name][:3])
        why = f"messages of several conversations ({key}: {first}), and some that name none"
        raise AuthorError(Problem(f"{why}: write each conversation as a list of its own"))
    return [{"id": name, key: name, "messages": messages} for (key, name), messages in groups.items()]


def _groups_in(rows: Sequence[Any]) -> Mapping[tuple[str, str], list[Any]]:
    """The messages of a list whose ends name a conversation, by the key and the name that they have for it;
    empty where they name but one."""
    if not any(isinstance(each, dict) and _named(each)[1] for each in (*rows[:1], *rows[-1:])):
        return {}
    # Without what else a log tells between them.
    said = [each for each in rows if is_event(each)] or [each for each in rows if is_message(each)]
    key = next((key for key in _NAMES if any(key in each for each in said)), "")
    groups: dict[tuple[str, str], list[Any]] = {}
    for each in said if key else ():
        groups.setdefault((key, _named({key: each.get(key)})[1]), []).append(each)
    is_one = sum(bool(name) for _, name in groups) < 2 or ((key, "") in groups and key in _OF_MORE)
    return {} if is_one else groups
