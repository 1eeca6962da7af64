"""What a recorded message comes to, and the plain shapes that nearly all of them have. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

from agenteval.messages.agent_names import agent_of
from agenteval.messages.calls import PLACES, Call, plain_calls
from agenteval.messages.json_fields import first_of
from agenteval.messages.placed import ADDITIONAL, Unplaced, unplaced_counts
from agenteval.messages.reported_usage import usage_in
from agenteval.messages.results import NO_FLAGS, outcome_of
from agenteval.messages.without_calls import NUMBERS

Role: TypeAlias = Literal["user", "assistant", "tool", "system", "unplaced"]


class Said(NamedTuple):
    """A message in its plain form. ``value``, ``id`` and ``name`` are of a tool's result; ``is_beside``: it
    stood beside its call; ``is_passage``: it is of a source, and no call is missed. ``is_unread``: parts are
    all that there is of it, and none could be read. ``agent``: which of a multi-agent system says it. Of the
    role ``unplaced``, ``value`` says what nobody could place."""

    role: Role
    text: str | None = None
    calls: tuple[Call, ...] = ()
    value: Any = None
    id: str = ""
    name: str = ""
    is_error: bool = False
    usage: Any = None
    is_beside: bool = False
    is_passage: bool = False
    is_unread: bool = False
    agent: str = ""


UNPLACED: Literal["unplaced"] = "unplaced"
_ENTRY = "entry"


def not_placed(unplaced: Unplaced, *, whole: bool = False) -> Said:
    """What stands in the place of what nobody could place. ``whole``: nothing of its message was read."""
    return Said(UNPLACED, value=unplaced, is_unread=whole)


def marked(unplaced: Unplaced) -> dict[str, Any]:
    """The same among messages: what a reader of a dialect hands on in their place."""
    return {"role": UNPLACED, _ENTRY: unplaced}


def unplaced_in(message: Any) -> Unplaced | None:
    """What a message stands for that was marked so; ``None`` for any other."""
    found = message.get(_ENTRY) if isinstance(message, dict) and message.get("role") == UNPLACED else None
    return found if isinstance(found, Unplaced) else None


# ── the plain shapes ─────────────────────────────────────────────────────────────────────────────


def plain_said(message: dict[str, Any]) -> Said | None:
    """OpenAI's messages of one text, or of calls, which are nearly all that logs hold: without the detour
    that the others take."""
    role, content = message.get("role"), message.get("content")
    if role == "assistant":
        return _plain_reply(message, content)
    if not isinstance(content, str) or not (len(message) == 2 or _is_plain(message)):
        return None
    if role == "user" or role == "system":
        return Said(role, content)
    if role != "tool" or "type" in message or not (content or message.keys() <= NO_FLAGS):
        return None
    return result_said(message, content)


def _plain_reply(message: dict[str, Any], content: Any) -> Said | None:
    if not (content is None or isinstance(content, str)):
        return None
    if content and len(message) == 2:
        return Said("assistant", content)
    if content and _is_plain(message):
        return Said("assistant", content, usage=usage_in(message), agent=agent_of(message))
    if message.keys() <= _WITH_CALLS and not any(map(message.get, _BESIDE_CALLS)):
        calls = plain_calls(message.get("tool_calls"))
        if calls and _is_plain(message, "tool_calls"):
            return Said("assistant", content, calls, usage=message.get("usage"), agent=agent_of(message))
    return None


_TEXT_ALONE = frozenset(("role", "content", "id", "name", "refusal", "usage", "timestamp", "tool_call_id"))
_BESIDE_CALLS = ("function_call", "refusal", "audio", "annotations")
_WITH_CALLS = frozenset((*_TEXT_ALONE, "tool_calls", *_BESIDE_CALLS))


def _is_plain(message: Mapping[str, Any], *calls: str) -> bool:
    """Whether nothing but plain values and usage stands in a message beside its ``calls``."""
    usage = message.get("usage")
    if usage and (not NUMBERS.fits(usage) or any(unplaced_counts(usage))):
        return False
    return not any(
        value and (key in _OF_MORE or not isinstance(value, str | int | float) or _may_be_json(key, value))
        for key, value in message.items()
        if key != "usage" and key not in calls
    )


def _may_be_json(key: str, value: Any) -> bool:
    return key != "content" and isinstance(value, str) and value.lstrip()[:1] in ("[", "{")


def result_said(message: Mapping[str, Any], content: Any) -> Said:
    """What a tool gave back; ``message``: the message or part that holds the ``content``."""
    if isinstance(content, str) and message.keys() <= NO_FLAGS:
        identity, name = message.get("tool_call_id") or "", message.get("name") or ""
        return Said("tool", None, (), content, str(identity), str(name))
    identity, name = first_of(RESULT_IDS, message) or "", first_of(_NAMES, message) or ""
    value, failed = outcome_of(message, content)
    return Said("tool", value=value, id=str(identity), name=str(name), is_error=failed)


_NAMES = ("name", "toolName", "tool_name")
PASSAGES = "passages"
"""The type of a tool's message with what was looked up before the agent was asked."""
RESULT_IDS = ("tool_call_id", "tool_use_id", "call_id", "callId", "toolCallId", "toolUseId")
_OF_MORE = frozenset(("parts", ADDITIONAL, *PLACES))
