"""Determines the role of a recorded message, and unwraps the message. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agenteval.messages.parsed_message import Role

ROLES: dict[str, Role] = {
    **dict.fromkeys(("user", "human", "customer"), "user"),
    **dict.fromkeys(("assistant", "ai", "bot", "model", "agent"), "assistant"),
    **dict.fromkeys(("tool", "function"), "tool"),
    **dict.fromkeys(("system", "developer"), "system"),
}
_ROLES_BY_TYPE: dict[str, Role] = {
    **dict.fromkeys(("human", "HumanMessageChunk"), "user"),
    **dict.fromkeys(("ai", "AIMessageChunk"), "assistant"),
    **dict.fromkeys(("tool", "ToolMessageChunk", "function", "FunctionMessageChunk"), "tool"),
    **dict.fromkeys(("system", "SystemMessageChunk", "developer"), "system"),
}
"""The roles of LangChain's messages, keyed by ``type``."""
_MESSAGE_CLASSES = {"Human": "human", "AI": "ai", "Tool": "tool", "Function": "function", "System": "system"}


def is_message(value: Any) -> bool:
    """Check whether a value appears to be a single message rather than a whole conversation."""
    return isinstance(value, dict) and (
        any(isinstance(value.get(key), str) for key in ("role", "type")) or "kwargs" in value
    )


def is_agent_message(value: Any) -> bool:
    """Check whether a message was written by the agent."""
    return (
        isinstance(value, dict)
        and role_of(value if value.get("role") else unwrap_message(value)) == "assistant"
    )


def unwrap_message(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message with its fields at the top level. LangChain nests these fields below ``data`` or
    ``kwargs``."""
    for key in ("data", "kwargs"):
        inner = message.get(key)
        if isinstance(inner, dict) and "content" in inner:
            outer = {name: value for name, value in message.items() if name != key}
            return {**outer, **inner, "type": message.get("type") if key == "data" else _class_kind(message)}
    return message


def _class_kind(message: Mapping[str, Any]) -> str:
    """Return the type of a message, derived from the import path of its class."""
    path = message.get("id")
    name = str(path[-1] if isinstance(path, list) and path else path or "")
    return next((kind for start, kind in _MESSAGE_CLASSES.items() if name.startswith(start)), name)


def role_of(message: Mapping[str, Any]) -> Role | None:
    """Return the role of a message (user, assistant, tool or system) or, if it has no role, the role that
    corresponds to its type. Return ``None`` if neither is known."""
    role, kind = message.get("role"), message.get("type")
    if role is not None:
        return ROLES.get(str(role).lower())
    return _ROLES_BY_TYPE.get(kind) if isinstance(kind, str) else None
