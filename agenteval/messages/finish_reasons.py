"""How a reply ended, in the words of many providers: was it whole, or cut off before the agent was done?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from agenteval.messages.json_fields import list_of

FINISH_REASON_KEYS = ("finish_reason", "finishReason", "stop_reason", "stopReason", "done_reason")
"""Where a choice, a message or what is known of it tells how it ended."""

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
    """``what`` completes "the reply …"; ``at_limit``: a larger limit of tokens would have done."""

    what: str
    at_limit: bool = False


def find_truncation(answer: Any, *around: Any) -> Truncation | None:
    """How a message was cut off, whatever of it there is; ``None`` if it is whole. ``around``: what it came
    in. All are mappings or objects. A refusal is a complete answer."""
    for holder in (answer, *around):
        for part in (holder, _field(holder, "response_metadata")):
            for key in FINISH_REASON_KEYS:
                if cut := _truncation_for(answer, key, _field(part, key)):
                    return cut
    if _field(answer, "type") == "message" and _field(answer, "status") == "incomplete":
        return Truncation("was cut off (status=incomplete)", at_limit=True)
    return None


def is_token_limit(end: Any) -> bool:
    """Whether a reply that ended so was cut off by a limit of tokens."""
    return _normalize_reason(end) in _TOKEN_LIMIT_REASONS


def is_content_filter(end: Any) -> bool:
    """Whether a reply that ended so was cut off by the provider's filter."""
    return _normalize_reason(end) in _FILTER_REASONS


def is_error_reason(end: Any) -> bool:
    """Whether a reply that ended so broke off with an error."""
    return _normalize_reason(end) in _ERROR_REASONS


def find_refusal(message: Any) -> str | None:
    """A refusal is the agent's answer, in a field of its own or as a part of the content."""
    parts = [part for part in list_of(_field(message, "content")) if isinstance(part, Mapping)]
    refusals = (_field(part, "refusal") for part in (message, *parts))
    return next((text for text in refusals if isinstance(text, str) and text), None)


def last_assistant_message(messages: Sequence[Any]) -> Any:
    """The assistant's last message, as a mapping or an object; ``None`` if there is none."""
    roles = ((message, _field(message, "role") or _field(message, "type")) for message in reversed(messages))
    return next((message for message, role in roles if role in _ASSISTANT_ROLES), None)


def _truncation_for(answer: Any, key: str, end: Any) -> Truncation | None:
    if is_token_limit(end):
        return Truncation(f"was cut off ({key}={end})", at_limit=True)
    if is_content_filter(end) and not find_refusal(answer):
        return Truncation(f"was cut off by the provider's filter ({key}={end})")
    return Truncation(f"broke off with an error ({key}={end})") if is_error_reason(end) else None


def _normalize_reason(end: Any) -> str:
    """``FinishReason.MAX_TOKENS``, ``max-tokens`` and ``max_tokens`` are one; empty for what is no word."""
    word = getattr(end, "value", end)
    return word.rpartition(".")[2].lower().replace("-", "_") if isinstance(word, str) else ""


def _field(holder: Any, name: str) -> Any:
    return holder.get(name) if isinstance(holder, Mapping) else getattr(holder, name, None)
