"""Who speaks in a recorded message, and where in its wrappings the message is. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agenteval.messages.calls import word
from agenteval.messages.said import Role

ROLES: dict[str, Role] = {
    "user": "user",
    "human": "user",
    "customer": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "bot": "assistant",
    "model": "assistant",
    "agent": "assistant",
    "chatbot": "assistant",
    "tool": "tool",
    "function": "tool",
    "tool_result": "tool",
    "tool_execution_result": "tool",
    "system": "system",
    "developer": "system",
}
_MESSAGE_CLASSES = {"Human": "human", "AI": "ai", "Tool": "tool", "Function": "function", "System": "system"}


def is_message(value: Any) -> bool:
    """Whether a value looks like one message, and not like a whole conversation."""
    return isinstance(value, dict) and (
        any(isinstance(value.get(key), str) for key in ("role", "from", "type", "speaker", "sender"))
        or "kwargs" in value
    )


def is_event(value: Any) -> bool:
    """Whether a value is an event of a log with a message in it."""
    inner = value.get("message") if isinstance(value, dict) else None
    if not isinstance(inner, dict) or value.get("content") is not None or not _ANSWERED.isdisjoint(value):
        return False
    return "content" in inner or is_message(inner)


_ANSWERED = frozenset(("response", "output", "answer", "completion", "reply", "messages", "choices"))
"""What stands beside a message in a record that holds its answer, too."""


def event_opened(value: Any) -> Any:
    """The message of an event, with what stands beside it; anything else as it is. Who speaks is told by the
    one or by the other."""
    if not is_event(value):
        return value
    inner = value["message"]
    message = {key: each for key, each in value.items() if key != "message"} | inner
    is_known = "role" in inner or "kwargs" in inner or word(inner, "type").lower() in ROLES
    return message if is_known or "type" not in value else {**message, "type": value["type"]}


def is_agents(value: Any) -> bool:
    """Whether a message is one of the agent's."""
    if not isinstance(value, dict):
        return False
    value = event_opened(value) if "message" in value else value
    role = value.get("role") or written_role(unwrapped(value))
    return ROLES.get(str(role).lower()) == "assistant"


def unwrapped(message: dict[str, Any]) -> dict[str, Any]:
    """LangChain writes the fields of a message below ``data`` or ``kwargs``."""
    for key in ("data", "kwargs"):
        inner = message.get(key)
        if isinstance(inner, dict) and "content" in inner:
            around = {name: value for name, value in message.items() if name != key}
            return {**around, **inner, "type": message.get("type") if key == "data" else _class_of(message)}
    return message


def _class_of(message: Mapping[str, Any]) -> str:
    """The kind of a message by the path of its class."""
    path = message.get("id")
    name = str(path[-1] if isinstance(path, list) and path else path or "")
    return next((kind for start, kind in _MESSAGE_CLASSES.items() if name.startswith(start)), name)


def written_role(message: Mapping[str, Any]) -> Any:
    for key in ("speaker", "sender", "author", "type", "source"):
        value = message.get(key)
        if isinstance(value, dict):
            value = value.get("role")
        if value is not None:
            return value
    return None
