"""Rejects a list of messages that is not one conversation in chronological order. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from agenteval.core.errors import AuthorError, Problem
from agenteval.messages.json_fields import first_text, object_of
from agenteval.messages.roles import role_of

_CONVERSATION_KEYS = ("conversation_id", "conversationId", "chat_id", "chatId", "dialogue_id", "dialog_id")
_SESSION_KEYS = ("session_id", "sessionId", "thread_id", "threadId")
"""Keys that may identify something other than a conversation, such as the session of a browser used by a
tool. These keys are considered only if every message contains one of them."""
_TIME_KEYS = ("created_at", "createdAt", "timestamp", "created")
_USER_NAME_KEYS = ("name", "sender", "author", "user_name", "username")
_MOST_SHOWN = 3


def require_one_conversation(messages: Sequence[Any]) -> None:
    """Raise ``AuthorError`` (without a location) if the list mixes messages from several conversations or
    starts with the latest message."""
    objects = [each for each in messages if isinstance(each, Mapping)]
    if len(objects) < 2 or len(objects) < len(messages):
        return
    keys = {*objects[0], *objects[-1]}
    _require_one_name(objects, [key for key in (*_CONVERSATION_KEYS, *_SESSION_KEYS) if key in keys])
    for key in keys.intersection(_TIME_KEYS):
        if _runs_backwards([each.get(key) for each in objects]):
            what = f"the messages are in reverse chronological order (by `{key}`)"
            raise AuthorError(Problem(what, "sort the messages in chronological order"))


def _require_one_name(messages: Sequence[Mapping[str, Any]], keys: Sequence[str]) -> None:
    """Raise ``AuthorError`` if the messages contain different conversation ids. ``keys`` lists the keys under
    which such an id may be stored."""
    for key in keys:
        values = [each[key] for each in messages if each.get(key) not in (None, "")]
        names, is_everywhere = list(dict.fromkeys(map(str, values))), len(values) == len(messages)
        if len(names) > 1 and (is_everywhere or key in _CONVERSATION_KEYS):
            shown = ", ".join(names[:_MOST_SHOWN]) + (", …" if len(names) > _MOST_SHOWN else "")
            what = f"the messages belong to {len(names)} conversations ({key}: {shown})"
            raise AuthorError(Problem(what, "store each conversation as a separate record"))
        if is_everywhere:
            return  # an outer id that the whole conversation shares


def _runs_backwards(times: Sequence[Any]) -> bool:
    """Check whether the times are in descending order. Only numbers and strings that begin with a date can be
    compared."""
    are_comparable = all(isinstance(each, int | float) for each in times) or all(map(_is_date, times))
    return are_comparable and all(later < earlier for earlier, later in pairwise(times))


def _is_date(value: Any) -> bool:
    return isinstance(value, str) and value[:4].isdecimal() and value[4:5] == "-"


def users_in(messages: Sequence[Any]) -> list[str]:
    """Return the names of the people who write as the user. A group chat may contain several."""
    users = [each for each in messages if len(object_of(each)) > 2 and role_of(each) == "user"]
    names = (" ".join(first_text(each, *_USER_NAME_KEYS).split())[:40] for each in users)
    return list(dict.fromkeys(filter(None, names)))
