"""The events of Anthropic's managed agents. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agenteval.messages.calls import Tell, word
from agenteval.messages.dialects.message_lists import MessageList


def _is_event(event: Mapping[str, Any]) -> bool:
    return word(event, "type").startswith(("user.", "agent.", "session.", "span."))


def _in_openai(events: Sequence[Any], _: Tell) -> Iterator[Any]:
    """The events of the conversation alone."""
    for event in events:
        speaker, _dot, kind = event["type"].partition(".")
        if kind == "message":
            yield {"role": "user" if speaker == "user" else "assistant", "content": event.get("content")}
        elif kind.endswith("tool_use"):
            yield {"role": "assistant", "content": [{**event, "type": "tool_use"}]}
        elif kind.endswith("tool_result"):
            identity = next((event[key] for key in event if key.endswith("tool_use_id")), None)
            named = {"tool_call_id": identity, "is_error": event.get("is_error")}
            yield {"role": "tool", "content": event.get("content"), **named}


importer = MessageList("managed-agents", _is_event, _in_openai)
