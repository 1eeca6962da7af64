"""Messages that an agent returns in shapes of other libraries, as OpenAI's: with the reader of recorded ones.

What stands in OpenAI's shape stays as it is. Of all else nothing is lost unseen: what looks like a tool call
and cannot be read is the agent's failure, what is not a call is reported.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from itertools import groupby
from typing import Any, NamedTuple

from agenteval.core.errors import AgentError
from agenteval.core.expressions import expression
from agenteval.core.trajectory import Message
from agenteval.messages import chat
from agenteval.messages.agent_names import NAMED, agent_of, name_of
from agenteval.messages.calls import Call, Tell, calls_in, may_hold_calls, word
from agenteval.messages.message import said_in
from agenteval.messages.reported_usage import USAGE_KEYS, is_told_again
from agenteval.messages.said import Said
from agenteval.messages.texts import is_silent

_ROLES = {"ai": "assistant", "human": "user", "function": "tool", "model": "assistant"}
_USUAL_ROLES = frozenset(("assistant", "user", "tool", "system", "developer"))
_OF_MESSAGES = frozenset(("content", "tool_calls", "function_call", "refusal"))
_ATTRIBUTES = ("role", "type", "content", "tool_calls", "tool_call_id", "name", "parts")
_ARGUMENTS = frozenset(("arguments", "args", "input"))
_OF_TOOLS = expression(r"tool|function|call|invo[ck]|action", re.IGNORECASE)
_KINDS = ("type", "kind", "event", "role", "object")
_DEEPEST = 5
_QUOTED = 200


def as_message(value: Any) -> Message:
    """A message as a mapping, from one or from another library's object (pydantic's ``model_dump``, or
    attributes). Its role is OpenAI's where it is known. Raises ``AgentError`` for anything else."""
    if isinstance(value, Mapping):
        message = dict(value)
    elif hasattr(value, "model_dump"):
        message = value.model_dump(exclude_none=True)
    elif hasattr(value, "content"):
        more = filter(may_hold_calls, getattr(value, "__dict__", ()))
        names = dict.fromkeys((*_ATTRIBUTES, *NAMED, *USAGE_KEYS, *more))
        message = {name: getattr(value, name) for name in names if getattr(value, name, None) is not None}
    else:
        raise AgentError(f"not a chat message: {type(value).__name__}", kind="protocol")
    if role := _role_of(message):
        message["role"] = role
    if not isinstance(message.get("agent"), str | None):
        message["agent"] = name_of(message["agent"])
    for key in ("content", "parts") if role != "tool" else ():
        if isinstance(message.get(key), list | tuple):
            message[key] = [_part(part) for part in message[key]]
    return message


def _role_of(message: Message) -> str:
    """Empty where a message names none, and its kind is none of a chat's: an item or an event."""
    role, kind = (_named(message.get(key)) for key in ("role", "type"))
    if role:
        return _ROLES.get(role, role)
    kind = kind.lower().removesuffix("chunk").removesuffix("message")
    known = _ROLES.get(kind, kind)
    if known in _USUAL_ROLES:
        return known
    rest = {key: value for key, value in message.items() if key not in _OF_MESSAGES}
    is_message = not kind and not message.keys().isdisjoint(_OF_MESSAGES)
    return "assistant" if is_message and not looks_like_call(rest) else ""


def _named(value: Any) -> str:
    return str((value.value if isinstance(value, Enum) else value) or "")


def _part(part: Any, depth: int = 3) -> Any:
    """A part of a content as a mapping, if it is an object of a library."""
    if part is None or isinstance(part, str | bytes | int | float | list | type):
        return part
    if isinstance(part, Mapping):
        return dict(part)
    if hasattr(part, "model_dump"):
        return part.model_dump(exclude_none=True)
    fields = {key: value for key, value in getattr(part, "__dict__", {}).items() if not key.startswith("_")}
    if not fields or not depth:
        raise AgentError(f"a part of a message's content is {type(part).__name__}", kind="protocol")
    return {key: _part(value, depth - 1) for key, value in fields.items() if value is not None}


# ── lists of messages ────────────────────────────────────────────────────────────────────────────


def plain(messages: Iterable[Any], tell: Tell) -> list[Message]:
    """The messages in OpenAI's shape. ``tell`` hears what was not read. Raises ``AgentError`` for what looks
    like a tool call and cannot be read."""
    looks = [_look(message, tell) for message in _usage_once(map(as_message, messages))]
    read: list[Message] = []
    for is_foreign, some in groupby(looks, key=lambda look: look.is_foreign):
        parts = [message for look in some for message in look.messages]
        read += map(_as_plain, _said(parts, _mute)) if is_foreign else parts
    return read


def _usage_once(messages: Iterable[Message]) -> Iterator[Message]:
    """The messages, those without their usage that tell what the one before them told of both."""
    before: Message = {}
    for message in messages:
        role = message.get("role")
        if role == "user" and _has_text(message):
            before = {}
        elif role == "assistant":
            is_again, before = is_told_again(message, before), message
            message = {**message, "usage": {}} if is_again else message
        yield message


def answer_in(value: Any) -> tuple[Message, bool]:
    """The one message of a reply, and whether it is the agent's and wholly there in OpenAI's fields. A role
    that nobody knows is then the agent's own. Raises ``AgentError`` as above."""
    message = as_message(value)
    if message.get("role") not in _USUAL_ROLES and not _said([_bare(message)], _mute):
        message["role"] = "assistant"
    told: list[str] = []
    is_foreign = _look(message, told.append).is_foreign
    return message, message.get("role") == "assistant" and not (is_foreign or told)


class _Look(NamedTuple):
    """What stands for a message: itself, or what the reader of recorded messages is to read."""

    messages: Sequence[Message]
    is_foreign: bool


def _look(message: Message, tell: Tell) -> _Look:
    if _is_usual(message):
        return _Look([message], is_foreign=False)
    bare = _bare(message)
    is_agents = bare.get("role") == "assistant"
    given = chat.calls_of(bare.get("tool_calls")) if is_agents else ()
    rest = {key: value for key, value in bare.items() if not (given and key == "tool_calls")}
    said = _heard(rest, tell)
    if given:
        return _with_calls(message, rest, given, said)
    is_read = is_agents and all(each.role == "assistant" and not each.calls for each in said)
    if is_read and (_has_text(message) or not any(each.text for each in said)):
        return _Look([message], is_foreign=False)
    return _Look([bare], is_foreign=True)


def _with_calls(message: Message, rest: Message, given: Sequence[Any], said: Sequence[Said]) -> _Look:
    """A message whose calls may stand in two places, as LangChain writes them: they count once."""
    told: list[str] = []
    calls = list(calls_in(given, told.append))
    _refuse_lost_calls(message, told)
    elsewhere = Counter(call.name for each in said for call in each.calls)
    is_more = elsewhere - Counter(call.name for call in calls) or any(each.role == "tool" for each in said)
    if not is_more and all(map(_is_plain_call, given)):
        return _Look([message], is_foreign=False)
    left = tuple(call for call in calls if call.name not in elsewhere)
    more = [_as_plain(Said("assistant", calls=left, agent=agent_of(message)))] if left else []
    return _Look([rest, *more], is_foreign=True)


def _has_text(message: Message) -> bool:
    content = message.get("content")
    return not isinstance(content, Mapping) and bool(chat.text_of(content))


def _is_usual(message: Message) -> bool:
    """Whether OpenAI's fields hold all of a message, at a glance. What is wrong with those is told by whoever
    reads them."""
    role, content = message.get("role"), message.get("content")
    if role not in _USUAL_ROLES or message.get("parts"):
        return False
    if role in ("system", "developer"):
        return True
    if role != "tool" and isinstance(content, Mapping) and looks_like_call(content):
        return False
    if isinstance(content, list) and not all(_is_usual_part(part, role) for part in content):
        return False
    return role != "assistant" or (_has_usual_calls(message) and not any(_may_be_calls(message)))


def _is_usual_part(part: Any, role: str) -> bool:
    if not isinstance(part, Mapping):
        return True
    if kind := word(part, "type"):
        return kind in chat.PARTS or is_silent(kind)
    return role == "tool" or (isinstance(part.get("text"), str) and not looks_like_call(part))


def _has_usual_calls(message: Message) -> bool:
    calls = message.get("tool_calls")
    return not isinstance(calls, list | tuple) or all(map(_is_plain_call, calls))


def _may_be_calls(message: Message) -> Iterator[str]:
    usual = ("tool_calls", "function_call")
    return (key for key, value in message.items() if value and key not in usual and may_hold_calls(str(key)))


def _is_plain_call(raw: Any) -> bool:
    """Whether a call is OpenAI's, or what is wrong with it is for its reader to tell."""
    if not isinstance(raw, Mapping):
        return True
    function = raw.get("function")
    inner = function if isinstance(function, Mapping) else raw
    if word(inner, "name") and any(inner.get(key) is not None for key in _ARGUMENTS):
        return True
    told: list[str] = []
    calls = list(calls_in([_bare(raw)], told.append))
    return not calls or (bool(word(inner, "name")) and not told and calls[0].args == {})


def as_call(raw: Any) -> Any:
    """A call in OpenAI's shape, if it is in another that is known."""
    if _is_plain_call(raw):
        return raw
    told: list[str] = []
    (call,) = calls_in([_bare(raw)], told.append)
    _refuse_lost_calls(raw, told)
    return _as_plain_call(call)


# ── the reader of recorded messages ──────────────────────────────────────────────────────────────


def _mute(_: str) -> None:
    """What was told is known by now."""


def _bare(message: Mapping[str, Any]) -> Message:
    try:
        bare: Message = chat.jsonable(dict(message))
    except ValueError as error:
        raise AgentError(f"a message of the agent's is not JSON: {error}", kind="protocol") from None
    return bare


def _said(messages: Sequence[Message], tell: Tell) -> list[Said]:
    return list(said_in(messages, tell))


def _heard(message: Message, tell: Tell) -> list[Said]:
    """What a message says. Raises ``AgentError`` if a call in it was not read."""
    told: list[str] = []
    said = _said([message], told.append)
    _refuse_lost_calls(message, told, (message,) if told and not said else ())
    _refuse_lost_calls(message, (), tuple(_unread_parts(message)))
    for note in told:
        tell(f"in a message of the agent, {note}")
    return said


def _refuse_lost_calls(message: Any, told: Sequence[str], unread: Sequence[Any] = ()) -> None:
    lost = next((note for note in told if "tool call" in note), "")
    if lost or any(map(looks_like_call, unread)):
        why = lost or "it looks like a tool call of an unknown kind"
        text = " ".join(str(message).split())[:_QUOTED]
        raise AgentError(f"unreadable message in the agent's reply: {why}: {text}", kind="protocol")


def _unread_parts(message: Message) -> Iterator[Any]:
    for key in ("content", "parts"):
        content = message.get(key)
        for part in content if isinstance(content, list) else [content]:
            if isinstance(part, dict) and _is_unread({"role": message.get("role"), "content": [part]}, part):
                yield part


def _is_unread(message: Message, part: Mapping[str, Any]) -> bool:
    told: list[str] = []
    said = _said([message], told.append)
    is_text_alone = all(not each.calls and each.role != "tool" for each in said)
    is_unnamed = not word(part, "type") and not isinstance(part.get("text"), str)
    return bool(told) or (is_unnamed and is_text_alone)


def looks_like_call(value: Any, depth: int = _DEEPEST) -> bool:
    """Whether something of no known shape may tell of a tool call, by the words of its keys and kinds."""
    if isinstance(value, list):
        return depth > 0 and any(looks_like_call(each, depth - 1) for each in value)
    if not isinstance(value, Mapping):
        return False
    if "name" in value and not _ARGUMENTS.isdisjoint(value):
        return True
    if any(_OF_TOOLS.search(word(value, key)) for key in _KINDS):
        return True
    keys = (str(key) for key, each in value.items() if each)
    return any(map(_OF_TOOLS.search, keys)) or looks_like_call(list(value.values()), depth - 1)


def _as_plain(said: Said) -> Message:
    if said.role == "tool":
        failed = {"status": "error"} if said.is_error else {}
        return {"role": "tool", "tool_call_id": said.id, "name": said.name, "content": said.value, **failed}
    known = {"name": said.agent or None, "usage": said.usage}
    own = {"content": said.text, **{key: value for key, value in known.items() if value is not None}}
    if said.calls:
        return {"role": "assistant", **own, "tool_calls": [_as_plain_call(call) for call in said.calls]}
    return {"role": said.role, **own}


def _as_plain_call(call: Call) -> dict[str, Any]:
    arguments = call.args if call.raw_args is None else call.raw_args
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}
