"""Defines a parsed message, and parses the simple formats of most messages. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

from agenteval.messages.calls import ParsedCall
from agenteval.messages.json_fields import first_nonempty
from agenteval.messages.results import UNFLAGGED_KEYS, parse_outcome
from agenteval.messages.unplaced_entries import Unplaced

Role: TypeAlias = Literal["user", "assistant", "tool", "system", "unplaced"]


class ParsedMessage(NamedTuple):
    """A message in its normalized form."""

    role: Role
    text: str | None = None
    calls: tuple[ParsedCall, ...] = ()
    value: Any = None
    """The value of a tool result or, for the role ``unplaced``, the content that could not be placed."""
    id: str = ""
    """The id of the call to which a result belongs."""
    name: str = ""
    """The name of the tool that returned a result."""
    is_error: bool = False
    usage: Any = None
    is_inline_result: bool = False
    """True for a result that was next to its call."""
    is_passage: bool = False
    """True for a retrieved passage (RAG), which needs no call."""
    is_unread: bool = False
    """True if the message consists of parts that could not be read."""
    agent: str = ""
    """The name of the agent in a multi-agent system that wrote the message."""

    @property
    def has_text(self) -> bool:
        return bool(self.text and self.text.strip())

    @property
    def is_user_text(self) -> bool:
        """True if the message contains text from a user."""
        return self.role == "user" and self.has_text


UNPLACED: Literal["unplaced"] = "unplaced"
_ENTRY_KEY = "entry"


def unplaced_message(unplaced: Unplaced, *, is_whole_message: bool = False) -> ParsedMessage:
    """Return the message that represents unplaced content.

    If ``is_whole_message`` is true, no part of the original message was parsed."""
    return ParsedMessage(UNPLACED, value=unplaced, is_unread=is_whole_message)


def mark_unplaced(unplaced: Unplaced) -> dict[str, Any]:
    """Return unplaced content as an entry of a message list, to be passed on by dialects."""
    return {"role": UNPLACED, _ENTRY_KEY: unplaced}


def unplaced_in(message: Any) -> Unplaced | None:
    """Return the content that a message marks as unplaced, or ``None`` for any other message."""
    found = message.get(_ENTRY_KEY) if isinstance(message, dict) and message.get("role") == UNPLACED else None
    return found if isinstance(found, Unplaced) else None


# ── the plain shapes ─────────────────────────────────────────────────────────────────────────────


def plain_message(message: dict[str, Any]) -> ParsedMessage | None:
    """Parse a message or a result that is a single text. Return ``None`` for any other message.

    This is a fast path because such messages make up most of a log."""
    role, content = message.get("role"), message.get("content")
    if (
        not isinstance(content, str)
        or not content
        or not message.keys() <= UNFLAGGED_KEYS
        or "type" in message
    ):
        return None
    if role == "tool" and all(key == "content" or _is_plain_text(each) for key, each in message.items()):
        return result_message(message, content)
    return (
        ParsedMessage(role, content)
        if len(message) == 2 and role in ("user", "assistant", "system")
        else None
    )


def _is_plain_text(value: Any) -> bool:
    """Check whether a value is text, excluding JSON that may contain a call."""
    return isinstance(value, str) and not value.lstrip().startswith(("[", "{"))


def result_message(message: Mapping[str, Any], content: Any) -> ParsedMessage:
    """Return the result of a tool. ``message`` is the message or part that contains the ``content``."""
    if isinstance(content, str) and message.keys() <= UNFLAGGED_KEYS:
        identity, name = message.get("tool_call_id") or "", message.get("name") or ""
        return ParsedMessage("tool", None, (), content, str(identity), str(name))
    identity, name = first_nonempty(RESULT_IDS, message) or "", first_nonempty(_NAME_KEYS, message) or ""
    value, failed = parse_outcome(message, content)
    return ParsedMessage("tool", value=value, id=str(identity), name=str(name), is_error=failed)


_NAME_KEYS = ("name", "toolName", "tool_name")
PASSAGES = "passages"
"""The type of a tool message with passages (RAG context) that were retrieved before the agent was asked."""
RESULT_IDS = ("tool_call_id", "tool_use_id", "call_id", "callId", "toolCallId", "toolUseId")
