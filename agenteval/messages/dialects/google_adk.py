"""The events of sessions of Google's Agent Development Kit, and the cases of its evaluations. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agenteval.messages.calls import Tell
from agenteval.messages.dialects.message_lists import MessageList, unread_of

_OF_EVENTS = frozenset(
    (
        *("content", "actions", "groundingMetadata", "grounding_metadata", "usageMetadata", "usage_metadata"),
        *("citationMetadata", "citation_metadata", "customMetadata", "custom_metadata", "inputTranscription"),
        *("input_transcription", "outputTranscription", "output_transcription", "logprobsResult"),
        *("logprobs_result", "cacheMetadata", "cache_metadata", "liveSessionResumptionUpdate"),
        "live_session_resumption_update",
    )
)
_OF_ACTIONS = frozenset(
    (
        *("stateDelta", "state_delta", "artifactDelta", "artifact_delta", "requestedAuthConfigs"),
        *("requested_auth_configs", "requestedToolConfirmations", "requested_tool_confirmations"),
        *("compaction", "agentState", "agent_state"),
    )
)
_OF_INVOCATIONS = frozenset(("user_content", "intermediate_data", "final_response", "app_details", "rubrics"))
_BETWEEN = frozenset(("tool_uses", "tool_responses", "intermediate_responses", "invocation_events"))
_OF_RECORDS = frozenset(("state", "final_session_state", "rubrics", "session_input", "conversation_scenario"))


def _is_event(event: Mapping[str, Any]) -> bool:
    content = event.get("content")
    is_content = isinstance(content, dict) and isinstance(content.get("parts"), list)
    is_event = "invocationId" in event or "invocation_id" in event
    return isinstance(event.get("author"), str) and (is_content or (is_event and content is None))


def _of_events(events: Sequence[Any]) -> Iterator[Any]:
    """Without what is the beginning of an event that follows."""
    for event in events:
        actions = event.get("actions")
        unread = unread_of(actions, _OF_ACTIONS) if isinstance(actions, dict) else {}
        unread = {**unread_of(event, _OF_EVENTS), **unread}
        if isinstance(content := event.get("content"), dict) and not event.get("partial"):
            speaker = "user" if event.get("author") == "user" else "model"
            parts = {"role": content.get("role") or speaker, "parts": content.get("parts") or []}
            usage = event.get("usageMetadata") or event.get("usage_metadata")
            yield {**unread, **parts, "agent": event.get("author"), "usage": usage}
        elif unread:
            yield unread


def _is_invocation(message: Mapping[str, Any]) -> bool:
    return isinstance(message.get("user_content"), dict)


def _of_invocations(invocations: Sequence[Any]) -> Iterator[Any]:
    for each in invocations:
        between = each.get("intermediate_data") or {}
        unread = {**unread_of(each, _OF_INVOCATIONS), **unread_of(between, _BETWEEN)}
        yield {**unread, **each["user_content"], "role": "user"}
        yield from _of_events(between.get("invocation_events") or ())
        for call in between.get("tool_uses") or ():
            yield {"role": "model", "parts": [{"function_call": call}]}
        for result in between.get("tool_responses") or ():
            yield {"role": "user", "parts": [{"function_response": result}]}
        for told in between.get("intermediate_responses") or ():
            yield {"role": "model", "parts": told[-1], "agent": told[0]}
        answer = each.get("final_response") or {}
        if any(isinstance(part, dict) and part.get("text") for part in answer.get("parts") or ()):
            yield {**answer, "role": "model"}


def _is_one(each: Mapping[str, Any]) -> bool:
    return _is_event(each) or _is_invocation(each)


def _in_openai(messages: Sequence[Any], _: Tell) -> Iterator[Any]:
    return _of_events(messages) if _is_event(messages[0]) else _of_invocations(messages)


importer = MessageList("google-adk", _is_one, _in_openai, of_records=_OF_RECORDS)
