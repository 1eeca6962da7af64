"""The messages and events of AutoGen's agents, known by their ``type``. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agenteval.messages.calls import Tell, listed, word
from agenteval.messages.dialects.message_lists import MessageList, unread_of

_SPOKEN = frozenset(("TextMessage", "MultiModalMessage", "StopMessage", "HandoffMessage",
                     "ToolCallSummaryMessage", "StructuredMessage"))  # fmt: skip
_CALLING = frozenset(("ToolCallRequestEvent", "ToolCallExecutionEvent", "FunctionExecutionResultMessage"))
_BETWEEN = frozenset(("ThoughtEvent", "MemoryQueryEvent", "UserInputRequestedEvent", "SelectSpeakerEvent",
                      "SelectorEvent", "ModelClientStreamingChunkEvent"))  # fmt: skip
_OF_MESSAGES = ("content", "tool_calls", "results", "thought")
_SAID_BEFORE = ("context",)
"""A hand-off has what was said so far."""
_CONTEXT = {"UserMessage": "user", "AssistantMessage": "assistant", "SystemMessage": "system"}


def _is_message(message: Mapping[str, Any]) -> bool:
    kind = word(message, "type")
    return kind in _SPOKEN or kind in _CALLING or kind in _BETWEEN or kind in _CONTEXT


def _in_openai(messages: Sequence[Any], _: Tell) -> Iterator[Any]:
    calls = [call for each in messages if each["type"] in _CALLING for call in listed(each.get("content"))]
    read = {identity for call in calls if (identity := _id(call))}
    for message in messages:
        kind, content = message["type"], message.get("content")
        # A summary has the calls of the events before it, which a list of what was said may leave out.
        summed = [call for call in listed(message.get("tool_calls")) if _id(call) not in read]
        if summed:
            yield {"role": "assistant", "tool_calls": summed, "agent": message.get("source")}
            ids = set(map(_id, summed))
            results = [each for each in listed(message.get("results")) if _id(each) in ids]
            yield {"role": "tool", "tool_responses": results}
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
    return unread_of(message, _OF_MESSAGES, _SAID_BEFORE)


def _id(call: Any) -> Any:
    """The id of a call, or of the one that a result is of."""
    return (call.get("call_id") or call.get("id")) if isinstance(call, dict) else None


importer = MessageList("autogen", _is_message, _in_openai)
