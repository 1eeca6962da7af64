"""A list of messages that is not one conversation in its order is refused. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from agenteval.core.errors import AuthorError, Problem
from agenteval.messages.speakers import role_of

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
    keys = {key for each in (said[0], said[-1]) for key in each}
    for key in (key for key in (*_OF_CONVERSATIONS, *_OF_MORE) if key in keys):
        names = list(dict.fromkeys(str(each[key]) for each in said if each.get(key) not in (None, "")))
        is_everywhere = all(each.get(key) not in (None, "") for each in said)
        if len(names) > 1 and (is_everywhere or key in _OF_CONVERSATIONS):
            shown = ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
            what = f"the messages are of {len(names)} conversations ({key}: {shown})"
            raise AuthorError(Problem(what, "write each conversation as a record of its own"))
        if is_everywhere:
            break  # a wider name of the one conversation
    for key in keys.intersection(_TIMES):
        if _runs_backwards([each.get(key) for each in said]):
            what = f"the latest message stands first ({key} runs backwards)"
            raise AuthorError(Problem(what, "write the messages in the order of time"))


def _runs_backwards(times: Sequence[Any]) -> bool:
    """Whether each is earlier than the one before it: numbers, or texts that begin with a date."""
    if all(isinstance(each, int | float) for each in times):
        return all(later < earlier for earlier, later in pairwise(times))
    is_dated = all(isinstance(each, str) and each[:4].isdecimal() and each[4:5] == "-" for each in times)
    return is_dated and all(later < earlier for earlier, later in pairwise(times))


def users_in(messages: Sequence[Any]) -> list[str]:
    """The names of the people who write as the user: in a group chat there are several."""
    return list(dict.fromkeys(_names(messages)))


def _names(messages: Sequence[Any]) -> Iterator[str]:
    for each in messages:
        if isinstance(each, Mapping) and len(each) > 2 and role_of(each) == "user":
            name = next((each[key] for key in _NAMES if isinstance(each.get(key), str) and each[key]), "")
            if name:
                yield " ".join(name.split())[:40]
