"""Parses tool results in all known formats into their value and an error flag. Pure.

A failure is indicated by a flag in the message, by its status, by the type of the wrapped value, or by an
error instead of a value."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from agenteval.messages.calls import BARE_CALL_KEYS
from agenteval.messages.chat import MAX_DEPTH, depth_of
from agenteval.messages.json_fields import first_present, first_text, object_at
from agenteval.messages.texts import is_text_part, join_texts

ERROR_FLAGS = ("is_error", "isError", "error", "tool_call_error")
UNFLAGGED_KEYS = frozenset(("role", "content", "tool_call_id", "name", "id", "type"))
_FALSE_WORDS = frozenset(("", "none", "null", "no", "false", "0", "ok", "no error", "n/a", "success"))
_FAILED_STATUSES = frozenset(("error", "errored", "failed", "failure"))
_OUTPUT_KINDS = ("text", "json", "content", "error-text", "error-json", "execution-denied")
"""The types of tool output in Vercel's AI SDK."""
_INLINE_RESULT_KEYS = ("result", "output", "tool_output", "toolOutput", "observation")
_FAILED_STATES = ("output-error", "output-denied")
_FINISHED_STATES = ("result", "output-available", *_FAILED_STATES)
"""The states in Vercel's AI SDK in which a call has a result."""


class ToolOutcome(NamedTuple):
    """The value that a tool returned, with an error flag."""

    value: Any
    is_error: bool = False


def parse_outcome(fields: Mapping[str, Any], content: Any) -> ToolOutcome:
    """Parse the result of a tool call. ``fields`` is the message or part that has the ``content``."""
    failed = not fields.keys() <= UNFLAGGED_KEYS and has_failed(fields)
    if isinstance(content, str):
        return ToolOutcome(content, failed)
    if isinstance(content, dict):
        content, has_error = _unwrap_output(content)
        failed = failed or has_error
    if content is None and failed and isinstance(fields.get("error"), str | dict):
        content = {"error": fields["error"]}
    return ToolOutcome(result_value(content), failed)


def has_failed(fields: Mapping[str, Any]) -> bool:
    """Check whether the fields next to a result mark it as an error."""
    if (
        any(_is_flag_set(fields.get(key)) for key in ERROR_FLAGS)
        or first_text(fields, "status").lower() in _FAILED_STATUSES
    ):
        return True
    further = object_at(fields, "additional_kwargs")
    return fields.get("success") is False or (bool(further) and has_failed(further))


def _is_flag_set(value: Any) -> bool:
    """Check whether a flag is set. Logs write a flag as a boolean, as a string, or as the error itself."""
    match value:
        case str():
            return value.strip().lower() not in _FALSE_WORDS
        case dict():
            return any(value.values()) and value.get("code", 1) not in (0, "0", 200)
        case list():
            return bool(value)
    return bool(value == 1)


def find_inline_outcome(call: Mapping[str, Any]) -> ToolOutcome | None:
    """Return the result next to a call, or ``None`` if there is no result."""
    inner = object_at(call, "function")
    if inner and call.keys() <= BARE_CALL_KEYS and len(inner) <= 2:
        return None  # only a name and arguments, like nearly all calls
    if first_text(call, "type") == "invalid_tool_call":  # its error is about its arguments
        return None
    state, value = first_text(call, "state"), first_present(_INLINE_RESULT_KEYS, call, inner)
    error = call.get("errorText") or (call.get("error") if _is_flag_set(call.get("error")) else None)
    if value is None and error is not None:
        return ToolOutcome({"error": error}, True)
    if value is None and state not in _FINISHED_STATES:
        return None
    found = parse_outcome(call, value)
    return found._replace(is_error=found.is_error or state in _FAILED_STATES or error is not None)


def _unwrap_output(content: dict[str, Any]) -> ToolOutcome:
    """Return the content of a wrapper that only states the content's type. Return other values unchanged."""
    kind = first_text(content, "type")
    if kind in _OUTPUT_KINDS and content.keys() <= {"type", "value", "reason", "providerOptions"}:
        if kind == "execution-denied":
            return ToolOutcome({"error": content.get("reason") or "execution denied"}, True)
        if "value" in content:
            return ToolOutcome(content["value"], kind.startswith("error-"))
    # Anthropic's servers return an error of their own tools as an object of a special type.
    return ToolOutcome(content, kind.endswith("_error") and "error_code" in content)


def result_value(content: Any) -> Any:
    """Join text parts into a single string, and return the contents of JSON parts. Any other JSON value is
    returned unchanged."""
    if isinstance(content, str):
        return content
    if is_text_part(content):
        return content["text"]
    if isinstance(content, list) and content:
        if all(map(is_text_part, content)):
            return join_texts(part["text"] for part in content)
        if any(map(_is_json_part, content)):
            content = unwrap_untyped_parts(content)
    return content if depth_of(content) <= MAX_DEPTH else json.dumps(content, ensure_ascii=False)


def unwrap_untyped_parts(content: Any) -> Any:
    """Return the contents of parts without a type, such as Bedrock's, or any other value unchanged."""
    if not isinstance(content, list) or not content or not all(map(_is_untyped_part, content)):
        return content
    inner = [part["json"] if "json" in part else part["text"] for part in content]
    if all(isinstance(each, str) for each in inner):
        return join_texts(inner)
    return inner[0] if len(inner) == 1 else inner


def _is_json_part(part: Any) -> bool:
    return isinstance(part, dict) and part.keys() == {"json"}


def _is_untyped_part(part: Any) -> bool:
    is_bare_text = isinstance(part, dict) and part.keys() == {"text"} and isinstance(part["text"], str)
    return is_bare_text or _is_json_part(part)
