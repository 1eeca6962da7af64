"""Determines from a provider's finish reason (stop reason) whether a reply is complete or was cut off."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from agenteval.messages.json_fields import list_of

FINISH_REASON_KEYS = ("finish_reason", "finishReason", "stop_reason", "stopReason", "done_reason")
"""Keys for the finish reason in a choice, a message or its metadata."""

_TOKEN_LIMIT_REASONS = frozenset((
    "length", "max_tokens", "max_output_tokens", "model_length", "incomplete",
    "model_context_window_exceeded",
))  # fmt: skip
_FILTER_REASONS = frozenset((
    "content_filter", "content_filtered", "guardrail_intervened", "sensitive", "safety", "recitation",
    "blocklist", "prohibited_content", "spii",
))  # fmt: skip
_ERROR_REASONS = frozenset(("error", "network_error"))
_ASSISTANT_ROLES = (None, "assistant", "ai", "model")


class Truncation(NamedTuple):
    """The reason why a reply was cut off."""

    what: str
    """The text that completes the phrase "the reply …"."""
    at_limit: bool = False
    """True if a higher token limit would have prevented the truncation."""


def find_truncation(answer: Any, *around: Any) -> Truncation | None:
    """Return the reason why a message was cut off (truncated), even if a part of the message was received.
    Return ``None`` if the message is complete.

    ``around`` contains the objects that enclose the message. The message and these objects are mappings or
    objects with attributes. A refusal is a complete answer."""
    for holder in (answer, *around):
        for part in (holder, _field(holder, "response_metadata")):
            for key in FINISH_REASON_KEYS:
                if (end := _field(part, key)) is not None and (cut := _truncation_for(answer, key, end)):
                    return cut
    if _field(answer, "type") == "message" and _field(answer, "status") == "incomplete":
        return Truncation("was cut off (status=incomplete)", at_limit=True)
    return None


def is_token_limit(end: Any) -> bool:
    """Check whether a finish reason means that the reply was cut off by a token limit."""
    return _normalize_reason(end) in _TOKEN_LIMIT_REASONS


def is_content_filter(end: Any) -> bool:
    """Check whether a finish reason means that the reply was cut off by the provider's content filter."""
    return _normalize_reason(end) in _FILTER_REASONS


def is_error_reason(end: Any) -> bool:
    """Check whether a finish reason means that the reply was interrupted by an error."""
    return _normalize_reason(end) in _ERROR_REASONS


def find_refusal(message: Any) -> str | None:
    """Return the refusal in a field of the message or in a part of its content, or ``None`` if there is no
    refusal.

    A refusal counts as the agent's answer."""
    parts = [part for part in list_of(_field(message, "content")) if isinstance(part, Mapping)]
    refusals = (_field(part, "refusal") for part in (message, *parts))
    return next((text for text in refusals if isinstance(text, str) and text), None)


def last_assistant_message(messages: Sequence[Any]) -> Any:
    """Return the assistant's last message, which is a mapping or an object, or ``None`` if there is no such
    message."""
    roles = ((message, _field(message, "role") or _field(message, "type")) for message in reversed(messages))
    return next((message for message, role in roles if role in _ASSISTANT_ROLES), None)


def _truncation_for(answer: Any, key: str, end: Any) -> Truncation | None:
    if is_token_limit(end):
        return Truncation(f"was cut off ({key}={end})", at_limit=True)
    if is_content_filter(end) and not find_refusal(answer):
        return Truncation(f"was cut off by the provider's content filter ({key}={end})")
    return Truncation(f"ended with an error ({key}={end})") if is_error_reason(end) else None


def _normalize_reason(end: Any) -> str:
    """Normalize a finish reason to lower case with underscores and without a class name. Return an empty
    string if the reason is not a string.

    ``FinishReason.MAX_TOKENS`` and ``max-tokens`` both become ``max_tokens``."""
    word = getattr(end, "value", end)
    return word.rpartition(".")[2].lower().replace("-", "_") if isinstance(word, str) else ""


def _field(holder: Any, name: str) -> Any:
    return holder.get(name) if isinstance(holder, Mapping) else getattr(holder, name, None)
