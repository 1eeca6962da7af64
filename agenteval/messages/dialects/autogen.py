"""The messages and events of AutoGen's agents, known by their ``type``. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agenteval.messages.calls import Tell, word
from agenteval.messages.dialects.message_lists import MessageList

_SPOKEN = frozenset(("TextMessage", "MultiModalMessage", "StopMessage", "HandoffMessage",
                     "ToolCallSummaryMessage", "StructuredMessage"))  # fmt: skip
_CALLING = frozenset(("ToolCallRequestEvent", "ToolCallExecutionEvent", "FunctionExecutionResultMessage"))
_BETWEEN = frozenset(("ThoughtEvent", "MemoryQueryEvent", "UserInputRequestedEvent", "SelectSpeakerEvent",
                      "SelectorEvent", "ModelClientStreamingChunkEvent"))  # fmt: skip
_CONTEXT = {"UserMessage": "user", "AssistantMessage": "assistant", "SystemMessage": "system"}


def _is_message(message: Mapping[str, Any]) -> bool:
    kind = word(message, "type")
    return kind in _SPOKEN or kind in _CALLING or kind in _BETWEEN or kind in _CONTEXT


def _in_openai(messages: Sequence[Any], _: Tell) -> Iterator[Any]:
    for message in messages:
        kind, content = message["type"], message.get("content")
        if kind in ("ToolCallExecutionEvent", "FunctionExecutionResultMessage"):
            yield {"role": "tool", "tool_responses": content}
        elif kind == "ToolCallRequestEvent" or (kind == "AssistantMessage" and isinstance(content, list)):
            yield {"role": "assistant", "tool_calls": content, **_known(message)}
        elif kind not in _BETWEEN:
            speaker = "user" if message.get("source") == "user" else "assistant"
            yield {"role": _CONTEXT.get(kind, speaker), "content": content, **_known(message)}


def _known(message: Mapping[str, Any]) -> dict[str, Any]:
    """Which agent it is from, and what its model took."""
    return {"agent": message.get("source"), "usage": message.get("models_usage")}


importer = MessageList("autogen", _is_message, _in_openai)
