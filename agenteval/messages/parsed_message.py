"""What a recorded message comes to, and the plain shapes that nearly all of them have. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

from agenteval.messages.calls import ParsedCall
from agenteval.messages.json_fields import first_nonempty
from agenteval.messages.results import UNFLAGGED_KEYS, parse_outcome
from agenteval.messages.unplaced_entries import Unplaced

Role: TypeAlias = Literal["user", "assistant", "tool", "system", "unplaced"]


class ParsedMessage(NamedTuple):
    """A message in its plain form. ``value``, ``id`` and ``name`` are of a tool's result;
    ``is_inline_result``: it stood beside its call; ``is_passage``: it is of a source, and no call is missed.
    ``is_unread``: parts are all that there is of it, and none could be read. ``agent``: which of a
    multi-agent system says it. Of the role ``unplaced``, ``value`` says what nobody could place."""

    role: Role
    text: str | None = None
    calls: tuple[ParsedCall, ...] = ()
    value: Any = None
    id: str = ""
    name: str = ""
    is_error: bool = False
    usage: Any = None
    is_inline_result: bool = False
    is_passage: bool = False
    is_unread: bool = False
    agent: str = ""

    @property
    def has_text(self) -> bool:
        return bool(self.text and self.text.strip())

    @property
    def is_of_user(self) -> bool:
        """Whether a user says something."""
        return self.role == "user" and self.has_text


UNPLACED: Literal["unplaced"] = "unplaced"
_ENTRY_KEY = "entry"


def unplaced_message(unplaced: Unplaced, *, is_whole_message: bool = False) -> ParsedMessage:
    """What stands in the place of what nobody could place. ``whole``: nothing of its message was read."""
    return ParsedMessage(UNPLACED, value=unplaced, is_unread=is_whole_message)


def mark_unplaced(unplaced: Unplaced) -> dict[str, Any]:
    """The same among messages: what a reader of a dialect hands on in their place."""
    return {"role": UNPLACED, _ENTRY_KEY: unplaced}


def unplaced_in(message: Any) -> Unplaced | None:
    """What a message stands for that was marked so; ``None`` for any other."""
    found = message.get(_ENTRY_KEY) if isinstance(message, dict) and message.get("role") == UNPLACED else None
    return found if isinstance(found, Unplaced) else None


# ── the plain shapes ─────────────────────────────────────────────────────────────────────────────


def plain_message(message: dict[str, Any]) -> ParsedMessage | None:
    """A message of one text, and a result of one, which are most of a log: without the detour of others."""
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
    """Whether a value is a text, and no JSON in which a call may be."""
    return isinstance(value, str) and not value.lstrip().startswith(("[", "{"))


def result_message(message: Mapping[str, Any], content: Any) -> ParsedMessage:
    """What a tool gave back; ``message``: the message or part that holds the ``content``."""
    if isinstance(content, str) and message.keys() <= UNFLAGGED_KEYS:
        identity, name = message.get("tool_call_id") or "", message.get("name") or ""
        return ParsedMessage("tool", None, (), content, str(identity), str(name))
    identity, name = first_nonempty(RESULT_IDS, message) or "", first_nonempty(_NAME_KEYS, message) or ""
    value, failed = parse_outcome(message, content)
    return ParsedMessage("tool", value=value, id=str(identity), name=str(name), is_error=failed)


_NAME_KEYS = ("name", "toolName", "tool_name")
PASSAGES = "passages"
"""The type of a tool's message with what was looked up before the agent was asked."""
RESULT_IDS = ("tool_call_id", "tool_use_id", "call_id", "callId", "toolCallId", "toolUseId")
