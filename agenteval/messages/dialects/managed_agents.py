"""The events of Anthropic's managed agents. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agenteval.messages.calls import Tell, word
from agenteval.messages.dialects.message_lists import MessageList, unread_of

_PLACED = frozenset(
    (
        *("thinking", "thread_context_compacted", "thread_message_sent", "thread_message_received"),
        *("interrupt", "tool_confirmation", "define_outcome"),
    )
)
"""Events of agents and users without a call, or that ask for the permission to make one."""


def _is_event(event: Mapping[str, Any]) -> bool:
    return word(event, "type").startswith(("user.", "agent.", "session.", "span."))


def _in_openai(events: Sequence[Any], _: Tell) -> Iterator[Any]:
    """The events of the conversation, and those that are not known."""
    for event in events:
        speaker, _dot, kind = event["type"].partition(".")
        if kind == "message":
            role = "user" if speaker == "user" else "assistant"
            yield {**unread_of(event, ("content",)), "role": role, "content": event.get("content")}
        elif kind.endswith("tool_use"):
            yield {"role": "assistant", "content": [{**event, "type": "tool_use"}]}
        elif kind.endswith("tool_result"):
            identity = next((event[key] for key in event if key.endswith("tool_use_id")), None)
            named = {"tool_call_id": identity, "is_error": event.get("is_error")}
            unread = unread_of(event, ("content",))
            yield {**unread, "role": "tool", "content": event.get("content"), **named}
        elif speaker not in ("session", "span") and kind not in _PLACED:
            yield {**event, "role": event["type"]}


importer = MessageList("managed-agents", _is_event, _in_openai)
