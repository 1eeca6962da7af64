"""A list of messages that is not one conversation in its order is refused. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from agenteval.core.errors import AuthorError, Problem
from agenteval.messages.json_fields import first_text, object_of
from agenteval.messages.roles import role_of

_OF_CONVERSATIONS = ("conversation_id", "conversationId", "chat_id", "chatId", "dialogue_id", "dialog_id")
_OF_MORE = ("session_id", "sessionId", "thread_id", "threadId")
"""What something else than a conversation may have, such as a browser that a tool uses: it counts where every
message has it."""
_TIMES = ("created_at", "createdAt", "timestamp", "created")
_NAMES = ("name", "sender", "author", "user_name", "username")
_SHOWN = 3


def require_one_conversation(messages: Sequence[Any]) -> None:
    """Raises ``AuthorError`` (without a place) for the messages of several conversations in one list, and for
    messages of which the latest stands first."""
    said = [each for each in messages if isinstance(each, Mapping)]
    if len(said) < 2 or len(said) < len(messages):
        return
    keys = {*said[0], *said[-1]}
    _require_one_name(said, [key for key in (*_OF_CONVERSATIONS, *_OF_MORE) if key in keys])
    for key in keys.intersection(_TIMES):
        if _runs_backwards([each.get(key) for each in said]):
            what = f"the latest message stands first ({key} runs backwards)"
            raise AuthorError(Problem(what, "write the messages in the order of time"))


def _require_one_name(said: Sequence[Mapping[str, Any]], keys: Sequence[str]) -> None:
    """``keys``: those that may name a conversation."""
    for key in keys:
        named = [each[key] for each in said if each.get(key) not in (None, "")]
        names, is_everywhere = list(dict.fromkeys(map(str, named))), len(named) == len(said)
        if len(names) > 1 and (is_everywhere or key in _OF_CONVERSATIONS):
            shown = ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
            what = f"the messages are of {len(names)} conversations ({key}: {shown})"
            raise AuthorError(Problem(what, "write each conversation as a record of its own"))
        if is_everywhere:
            return  # a wider name of the one conversation


def _runs_backwards(times: Sequence[Any]) -> bool:
    """Whether each is earlier than the one before it: numbers, or texts that begin with a date."""
    are_comparable = all(isinstance(each, int | float) for each in times) or all(map(_is_date, times))
    return are_comparable and all(later < earlier for earlier, later in pairwise(times))


def _is_date(value: Any) -> bool:
    return isinstance(value, str) and value[:4].isdecimal() and value[4:5] == "-"


def users_in(messages: Sequence[Any]) -> list[str]:
    """The names of the people who write as the user: in a group chat there are several."""
    users = [each for each in messages if len(object_of(each)) > 2 and role_of(each) == "user"]
    names = (" ".join(first_text(each, *_NAMES).split())[:40] for each in users)
    return list(dict.fromkeys(filter(None, names)))
