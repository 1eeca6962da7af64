"""The messages and events of AutoGen's agents, known by their ``type``. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agenteval.messages.calls import Tell, word
from agenteval.messages.dialects.message_lists import MessageList, unread_of

_SPOKEN = frozenset(("TextMessage", "MultiModalMessage", "StopMessage", "HandoffMessage",
                     "ToolCallSummaryMessage", "StructuredMessage"))  # fmt: skip
_CALLING = frozenset(("ToolCallRequestEvent", "ToolCallExecutionEvent", "FunctionExecutionResultMessage"))
_BETWEEN = frozenset(("ThoughtEvent", "MemoryQueryEvent", "UserInputRequestedEvent", "SelectSpeakerEvent",
                      "SelectorEvent", "ModelClientStreamingChunkEvent"))  # fmt: skip
_OF_MESSAGES = frozenset(("content", "tool_calls", "results", "context", "thought"))
"""Besides what is said, a summary has the calls of the events before it, a hand-off what was said so far."""
_CONTEXT = {"UserMessage": "user", "AssistantMessage": "assistant", "SystemMessage": "system"}


def _is_message(message: Mapping[str, Any]) -> bool:
    kind = word(message, "type")
    return kind in _SPOKEN or kind in _CALLING or kind in _BETWEEN or kind in _CONTEXT


def _in_openai(messages: Sequence[Any], _: Tell) -> Iterator[Any]:
    for message in messages:
        kind, content = message["type"], message.get("content")
        if kind in ("ToolCallExecutionEvent", "FunctionExecutionResultMessage"):
            yield {**_unread(message), "role": "tool", "tool_responses": content}
        elif kind == "ToolCallRequestEvent" or (kind == "AssistantMessage" and isinstance(content, list)):
            yield {"role": "assistant", "tool_calls": content, **_known(message)}
        elif kind not in _BETWEEN:
            speaker = "user" if message.get("source") == "user" else "assistant"
            content = json.dumps(content) if isinstance(content, dict) else content
            yield {"role": _CONTEXT.get(kind, speaker), "content": content, **_known(message)}


def _known(message: Mapping[str, Any]) -> dict[str, Any]:
    """Which agent it is from, and what its model took."""
    return {**_unread(message), "agent": message.get("source"), "usage": message.get("models_usage")}


def _unread(message: Mapping[str, Any]) -> dict[str, Any]:
    return unread_of(message, _OF_MESSAGES)


importer = MessageList("autogen", _is_message, _in_openai)
