"""Converts session events and evaluation cases from Google's Agent Development Kit (ADK). Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from agenteval.messages.calls import OnWarning
from agenteval.messages.chat import APPROVED, ATTEMPTED
from agenteval.messages.dialects.message_lists import MessageList, unread_fields
from agenteval.messages.json_fields import first_nonempty, list_at, object_at, object_of

_EVENT_FIELDS = ("content", "actions", "usageMetadata", "usage_metadata")
_EVENT_METADATA = frozenset((
    "groundingMetadata", "grounding_metadata", "citationMetadata", "citation_metadata", "customMetadata",
    "custom_metadata", "inputTranscription", "input_transcription", "outputTranscription",
    "output_transcription", "logprobsResult", "logprobs_result", "cacheMetadata", "cache_metadata",
    "liveSessionResumptionUpdate", "live_session_resumption_update",
))  # fmt: skip
_ACTION_FIELDS = frozenset((
    "stateDelta", "state_delta", "artifactDelta", "artifact_delta", "requestedAuthConfigs",
    "requested_auth_configs", "compaction", "agentState", "agent_state",
))  # fmt: skip
_CONFIRMATION_KEYS = ("requestedToolConfirmations", "requested_tool_confirmations")
_CALL_KEYS = ("functionCall", "function_call")
_RESPONSE_KEYS = ("functionResponse", "function_response")
_CONFIRMATION_TOOL = "adk_request_confirmation"
_INVOCATION_FIELDS = frozenset(
    ("user_content", "intermediate_data", "final_response", "app_details", "rubrics")
)
_INTERMEDIATE_MESSAGES: Mapping[str, Callable[[Any], dict[str, Any]]] = {
    "tool_uses": lambda call: {"role": "model", "parts": [{"function_call": call}]},
    "tool_responses": lambda result: {"role": "user", "parts": [{"function_response": result}]},
    "intermediate_responses": lambda pair: {"role": "model", "parts": pair[-1], "agent": pair[0]},
}
"""Functions that convert an item in an invocation's intermediate data, which precedes the answer, to a
message. They are keyed by the key that contains the item."""
_INTERMEDIATE_EVENTS = "invocation_events"
_RECORD_FIELDS = frozenset(
    ("state", "final_session_state", "rubrics", "session_input", "conversation_scenario")
)


def _is_event(event: Mapping[str, Any]) -> bool:
    content = event.get("content")
    is_content = isinstance(content, dict) and isinstance(content.get("parts"), list)
    is_event = "invocationId" in event or "invocation_id" in event
    return isinstance(event.get("author"), str) and (is_content or (is_event and content is None))


def _event_messages(events: Sequence[Any]) -> Iterator[Any]:
    """Yield messages for the events. Partial events are skipped, because later events repeat them."""
    confirmations = _Confirmations(events)
    for event in events:
        actions = object_at(event, "actions")
        unread = unread_fields(event, _EVENT_FIELDS, _EVENT_METADATA) | unread_fields(
            actions, _CONFIRMATION_KEYS, _ACTION_FIELDS
        )
        waiting = [identity for key in _CONFIRMATION_KEYS for identity in object_at(actions, key)]
        # A call that waits for confirmation is given by its id alone.
        yield from ({"type": "item_reference", "id": identity} for identity in waiting)
        message = {}
        if isinstance(content := event.get("content"), dict) and not event.get("partial"):
            message = _event_message(event, content, confirmations, waiting, has_more=bool(unread))
        if message or unread:
            yield {**unread, **message}


def _event_message(
    event: Mapping[str, Any],
    content: Mapping[str, Any],
    confirmations: _Confirmations,
    waiting: Collection[str],
    *,
    has_more: bool,
) -> dict[str, Any]:
    """Convert an event to a message.

    The message is empty for the framework's own events, unless the event has unparsed fields (``has_more``).
    """
    raw_parts = content.get("parts") or []
    parts = [part for each in raw_parts for part in confirmations.read(each, waiting)]
    if raw_parts and not parts and not has_more:
        return {}
    role = content.get("role") or ("user" if event.get("author") == "user" else "model")
    usage = first_nonempty(("usageMetadata", "usage_metadata"), event)
    return {"role": role, "parts": parts, "agent": event.get("author"), "usage": usage}


class _Confirmations:
    """The calls that the user was asked to confirm (human in the loop).

    The framework asks for confirmation with a call of its own, which is not a call by the agent. This call
    contains the agent's call that is waiting for confirmation."""

    def __init__(self, events: Sequence[Any]) -> None:
        parts = [object_of(part) for event in events for part in _parts_in(event)]
        self._calls = [*filter(None, (object_at(part, *_CALL_KEYS) for part in parts))]
        answers = (object_at(part, *_RESPONSE_KEYS) for part in parts)
        confirmed = (each for each in answers if object_at(each, "response").get("confirmed") is True)
        self._granted_ids = {each.get("id") for each in confirmed}
        self._requests = [each for each in self._calls if each.get("name") == _CONFIRMATION_TOOL]

    def read(self, part: Any, waiting: Collection[str]) -> Iterator[Any]:
        """Yield the given part of an event, unless it is one of the framework's own parts.

        The framework's own parts are its question, the user's response, and the result of a call that is
        still ``waiting``."""
        call, answer = object_at(object_of(part), *_CALL_KEYS), object_at(object_of(part), *_RESPONSE_KEYS)
        if call.get("name") == _CONFIRMATION_TOOL:
            original = _original_call(call)
            if original and not any(_is_same(original, each) for each in self._calls):
                yield {"functionCall": self._mark_call(original)}
        elif call:
            yield {**part, "functionCall": self._mark_call(call)}
        elif answer.get("name") != _CONFIRMATION_TOOL and answer.get("id", "") not in waiting:
            yield part

    def _mark_call(self, call: Mapping[str, Any]) -> Mapping[str, Any]:
        requests = [each for each in self._requests if _is_same(_original_call(each), call)]
        if not requests:
            return call
        is_waiting = any(each.get("id") not in self._granted_ids for each in requests)
        return {**call, ATTEMPTED if is_waiting else APPROVED: True}


def _original_call(call: Mapping[str, Any]) -> Mapping[str, Any]:
    return object_at(object_at(call, "args"), "originalFunctionCall", "original_function_call")


def _is_same(call: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    if call.get("id") and other.get("id"):
        return bool(call["id"] == other["id"])
    return call.get("name") == other.get("name") and call.get("args") == other.get("args")


def _parts_in(event: Mapping[str, Any]) -> Sequence[Any]:
    return () if event.get("partial") else list_at(object_at(event, "content"), "parts")


def _invocation_messages(invocations: Sequence[Any]) -> Iterator[Any]:
    for each in invocations:
        intermediate = each.get("intermediate_data") or {}
        unread = {
            **unread_fields(each, _INVOCATION_FIELDS),
            **unread_fields(intermediate, {*_INTERMEDIATE_MESSAGES, _INTERMEDIATE_EVENTS}),
        }
        yield {**unread, **each["user_content"], "role": "user"}
        yield from _event_messages(intermediate.get(_INTERMEDIATE_EVENTS) or ())
        for key, message_of in _INTERMEDIATE_MESSAGES.items():
            yield from map(message_of, intermediate.get(key) or ())
        answer = each.get("final_response") or {}
        if any(isinstance(part, dict) and part.get("text") for part in answer.get("parts") or ()):
            yield {**answer, "role": "model"}


def _is_event_or_invocation(each: Mapping[str, Any]) -> bool:
    return _is_event(each) or isinstance(each.get("user_content"), dict)


def _to_openai(messages: Sequence[Any], _: OnWarning) -> Iterator[Any]:
    return _event_messages(messages) if _is_event(messages[0]) else _invocation_messages(messages)


importer = MessageList("google-adk", _is_event_or_invocation, _to_openai, known_record_fields=_RECORD_FIELDS)
