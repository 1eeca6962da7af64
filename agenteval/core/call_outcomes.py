"""Compares tool calls and classifies their results: succeeded, failed, or possibly carried out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from http import HTTPStatus
from typing import Any

from agenteval.core.digits import parse_digits
from agenteval.core.json_text import parse_object_literal, parse_or, to_json, to_json_or_repr
from agenteval.core.trajectory import ToolCall, ToolResult


def json_key(value: Any) -> Any:
    """Return a hashable key that is equal for equal JSON: ``1`` equals ``1.0`` but not ``true``."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, Mapping):
        return ("object", frozenset((name, json_key(item)) for name, item in value.items()))
    if isinstance(value, list | tuple):
        return ("list", *map(json_key, value))
    return value


def is_same_call(one: ToolCall, other: ToolCall) -> bool:
    """Check whether two calls call the same tool with the same arguments, which must be readable in both."""
    if one.name != other.name or one.args is None or other.args is None:
        return False
    # Values that are equal in Python are the same JSON, except that True equals 1.
    return one.args == other.args and json_key(one.args) == json_key(other.args)


def describe_missing_arguments(call: ToolCall) -> str:
    """Return the text shown for arguments of a call that are unreadable or were not recorded."""
    return ARGUMENTS_NOT_KNOWN if call.raw_args is None else f"unreadable: {call.raw_args}"


ARGUMENTS_NOT_KNOWN = "arguments not known"


def format_call(call: ToolCall) -> str:
    """Format a tool call as ``cancel_order(id="A-7")``. Equal calls are formatted identically."""
    if call.args is None:
        return f"{call.name}({describe_missing_arguments(call)})"
    args = (f"{name}={_json(call.args[name])}" for name in sorted(call.args))
    return f"{call.name}({', '.join(args)})"


def _json(value: Any) -> str:
    return json.dumps(_normalize_numbers(value), ensure_ascii=False, sort_keys=True)


def _normalize_numbers(value: Any) -> Any:
    """Return the value with equal numbers written in the same notation."""
    if isinstance(value, Mapping):
        return {name: _normalize_numbers(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_normalize_numbers(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def is_same_result(one: ToolResult | None, other: ToolResult | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.is_error == other.is_error and json_key(one.value) == json_key(other.value)


class CallOutcome(StrEnum):
    """The outcome of a call."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    OPEN = "open"
    """The result does not show whether the call was carried out."""


def outcome_of(call: ToolCall) -> CallOutcome:
    """Classify the outcome of a tool call. The outcome is open if there is no result, or if an error may have
    occurred after the action: a timeout, a broken connection, or a status of 500 or above."""
    if call.result is None:
        return CallOutcome.OPEN
    if call.result.refused:
        return CallOutcome.FAILED
    if error_of(call.result) is None:
        return CallOutcome.SUCCEEDED
    return CallOutcome.OPEN if _may_have_been_done(call.result) else CallOutcome.FAILED


def had_no_effect(call: ToolCall) -> bool:
    """Check whether the result shows that the call did not achieve its purpose: an error of any kind, or an
    object whose values are all empty, false or zero (``{"changed": 0}``)."""
    if call.result is None:
        return False
    if call.result.refused or error_of(call.result) is not None:
        return True
    value = decode_result(call.result)
    return isinstance(value, Mapping) and bool(value) and is_empty_result(value)


def is_clear_success(call: ToolCall) -> bool:
    """Check whether the form of the result shows that the call achieved its purpose: the result is an object
    that has a success marker and contains no error and no false or null value. Other results are unclear: a
    refusal may be worded in a way that code does not recognize (``{"status": "denied"}``, "it has shipped"),
    or the result may not be an answer at all."""
    if call.result is None or had_no_effect(call):
        return False
    value = decode_result(call.result)
    if not isinstance(value, Mapping):
        return False
    if any(item is False or item is None for name, item in value.items() if name not in _ERROR_KEYS):
        return False
    is_marked = any(value.get(name) is True for name in _SUCCESS_FIELDS)
    return is_marked or str(value.get("status", "")).lower() in _SUCCESS_STATUSES


_ERROR_KEYS = frozenset(("error", "errors", "error_message", "errorMessage", "exception"))
"""Keys for which a null or false value means that no error occurred."""


def decode_result(result: ToolResult) -> Any:
    """Return the value of a result, decoded if the result is JSON text."""
    return parse_or(result.value, result.value) if isinstance(result.value, str) else result.value


def is_empty_result(value: Any) -> bool:
    """Check whether all contents of a value are empty, false or zero, as in ``{"slots": [], "total": 0}``."""
    if isinstance(value, dict | list):
        return all(map(is_empty_result, value.values() if isinstance(value, dict) else value))
    return value in (None, "", False, 0)


def _may_have_been_done(result: ToolResult) -> bool:
    value = decode_result(result)
    if any(_is_failure_of_server(status) for status in _statuses(value)):
        return True
    return _INTERRUPTED.search(result.text[:_HEAD]) is not None


_HEAD = 2000
_INTERRUPTED = re.compile(
    r"time[ -]?out|timed[ _-]out|deadline[ _-]?exceeded|\betimedout\b|"
    r"connection (?:was )?(?:reset|closed|aborted|lost|dropped|broken|interrupted)|\beconnreset\b|\bepipe\b|"
    r"broken pipe|socket hang ?up|disconnected|incomplete ?read|truncated|"
    r"unexpected (?:end|eof)|internal server error|bad gateway|service unavailable|"
    r"\b(?:http|status|code)(?: (?:error|status|code))*\W{0,3}5\d\d\b|\A\W{0,3}(?:error\W{1,3})?5\d\d\b",
    re.IGNORECASE,
)
"""Phrases in client and server messages about a request whose response did not arrive or arrived only in
part."""


def _statuses(value: Any, depth: int = 3) -> Iterator[Any]:
    """Yield the statuses specified in an error, looking through a few levels of wrappers."""
    if not isinstance(value, Mapping) or not depth:
        return
    yield from (value[name] for name in (*_HTTP_STATUS, "status", "code") if name in value)
    for inner in value.values():
        yield from _statuses(inner, depth - 1)


def _is_failure_of_server(status: Any) -> bool:
    number = _status_number(status)
    return _is_failure(number) and (number >= 500 or number == _REQUEST_TIMEOUT)


_REQUEST_TIMEOUT = 408


_NO_ERROR = frozenset(("", "none", "null", "no", "false", "0", "ok", "no error"))


def error_of(result: ToolResult | None) -> str | None:
    """Return the error message of a failed call, or ``None`` if the call did not fail. A result is an error
    if it is marked as an error, if it is an object that reports an error (``error``, ``success: false``) or
    wraps such an object, or if it is a string in the form of an exception or a status line."""
    if result is None:
        return None
    if result.is_error:
        return _error_message(result.value) or "an error"
    value = result.value
    if not isinstance(value, str):
        return _error_or_inner(value) if isinstance(value, Mapping) else None
    text = value.lstrip()
    if text[:1] == "{":
        return _error_or_inner(parse_object_literal(text))
    return text.strip() if begins_as_error(text) else None


def begins_as_error(text: str) -> bool:
    """Check whether a string has the form of a printed exception or of the status of a failed request.
    Failures described in prose are left to a judge."""
    head = text.strip()[:_LONGEST_NAME]
    status = head.lower().removeprefix("http ")
    is_status = status.startswith(_STATUS_LINES) or status.rstrip(".!") in _REASONS
    return is_status or _EXCEPTION.match(head) is not None


_LONGEST_NAME = 160
_EXCEPTION = re.compile(r"(?:[\w.]*(?:Error|Exception)|(?i:error|exception))\s*[:(]|Traceback \(most recent")
_STATUS_LINES = tuple(f"{each.value} {each.phrase}".lower() for each in HTTPStatus if each >= 400)
_REASONS = frozenset(each.phrase.lower() for each in HTTPStatus if each >= 400 and " " in each.phrase)
"""Reason phrases of HTTP statuses that are recognized without a status code. Single words ("Locked", "Gone")
are excluded, because such a word may be the value that was looked up."""


def _error_or_inner(value: Mapping[str, Any]) -> str | None:
    error = _error_in(value)
    if error is not None or _WRAPPERS.isdisjoint(value):
        return error
    return _inner_error(_unwrapped(value))


def _inner_error(inner: Any) -> str | None:
    """Return the error in a wrapped result. The status of the wrapped result is ignored, because it may be
    the value that was looked up."""
    if isinstance(inner, str):
        text = inner.lstrip()
        inner = parse_object_literal(text) if text[:1] == "{" else inner
        if isinstance(inner, str):
            return text.strip() if begins_as_error(text) else None
    if not isinstance(inner, Mapping):
        return None
    errors = [inner.get(name) for name in _ERROR_FIELDS] if len(inner) <= _MOST_FIELDS else []
    is_error = any(each and str(each).strip().lower() not in _NO_ERROR for each in errors)
    return (
        _error_message(inner)
        if is_error or any(inner.get(name) is False for name in _SUCCESS_FIELDS)
        else None
    )


def _unwrapped(value: Mapping[str, Any]) -> Any:
    """Return the wrapped result if the object contains little else and does not report success. A string is
    returned only if it cannot be the content of a document."""
    if len(value) > _LARGEST_WRAPPER or any(value.get(name) is True for name in _SUCCESS_FIELDS):
        return None
    if str(value.get("status", "")).lower() in _SUCCESS_STATUSES:
        return None
    name = next((name for name in value if name in _WRAPPERS and value[name]), "")
    inner = value.get(name)
    is_text_result = isinstance(inner, str) and name not in _DOCUMENT_KEYS
    return inner if is_text_result or isinstance(inner, Mapping) else None


_WRAPPERS = frozenset(
    ("result", "response", "output", "data", "body", "tool_result", "tool_response", "return_value")
)
_DOCUMENT_KEYS = ("data", "body")
_LARGEST_WRAPPER = 3
_SUCCESS_STATUSES = frozenset(("success", "ok", "successful", "completed"))


def _error_in(value: Mapping[str, Any]) -> str | None:
    for marker in map(value.get, _ERROR_FIELDS):
        if marker and str(marker).strip().lower() not in _NO_ERROR:
            return _error_message(value)
    for marker in map(value.get, _ERROR_KEYS_ABROAD):
        if marker is not None and _is_error_abroad(marker, value):
            return _error_message(value)
    if any(mark is False for mark in map(value.get, _SUCCESS_FIELDS)) or value.get("isError") is True:
        return _error_message(value)
    # A status of "failed" may be that of a looked-up payment; in a small object it is the call's.
    status = str(value.get("status", "")).lower()
    if status in ("error", "failed", "failure") and (
        len(value) <= 2 or (status == "error" and value.keys() <= _ERROR_ONLY_FIELDS)
    ):
        return _error_message(value)
    return _error_message(value) if _is_refused(value) else None


_ERROR_FIELDS = ("error", "errors", "exception", "error_message", "errorMessage", "fault")
_SUCCESS_FIELDS = ("success", "ok", "Success")
_ERROR_KEYS_ABROAD = ("fehler", "erreur", "errore", "erro", "fout")
_MESSAGE_FIELDS_ABROAD = ("meldung", "nachricht", "mensaje", "messaggio", "mensagem", "melding", "bericht")
_ERROR_CODE = re.compile(r"[A-Z][A-Z0-9]*(?:[_-][A-Z0-9]+)+")


def _is_error_abroad(marker: Any, value: Mapping[str, Any]) -> bool:
    """Check whether an error field reports an error of the call rather than the state of an object that was
    looked up. A field reports an error of the call if its value is an error code, or if there is a message
    next to it."""
    if isinstance(marker, Mapping):
        return bool(marker) and len(value) <= _MOST_FIELDS
    if not isinstance(marker, str) or not marker.strip() or len(value) > _MOST_FIELDS:
        return False
    has_message = any(isinstance(value.get(name), str) for name in ("message", *_MESSAGE_FIELDS_ABROAD))
    return has_message or _ERROR_CODE.fullmatch(marker) is not None


_MOST_FIELDS = 4


_ERROR_ONLY_FIELDS = frozenset(
    (
        "status", "message", "code", "error_code", "errorCode", "detail", "details", "reason", "hint", "type",
        "title", "retry_after", "retryable", "request_id", "requestId", "trace_id", "timestamp",
    )
)  # fmt: skip
"""Fields that may occur in an object that contains nothing but an error."""
_HTTP_STATUS = ("status_code", "statusCode", "http_status", "httpStatus", "http_status_code")
_LOOKUP_FIELDS = ("url", "endpoint", "host", "site", "path", "service")
_FAILURE_WORDS = re.compile(
    r"\berrors?\b|fail|invalid|not found|denied|unauthori[sz]ed|forbidden|unavailable|time(?:d )?-?out|"
    r"bad request|"
    r"bad gateway|internal|conflict|too many|not allowed|unprocessable|went wrong",
    re.IGNORECASE,
)


def _is_refused(value: Mapping[str, Any]) -> bool:
    """Check whether a small object is the HTTP response of a failed request rather than a response that was
    looked up."""
    if len(value) > 4 or any(map(value.__contains__, _LOOKUP_FIELDS)):
        return False
    if any(map(_is_failure, map(value.get, _HTTP_STATUS))):
        return True
    if not any(map(_is_failure, map(value.get, ("status", "code")))):
        return False
    words = " ".join(str(value.get(name) or "") for name in ("message", "detail", "title", "reason"))
    return _FAILURE_WORDS.search(words) is not None


def _status_number(status: Any) -> int:
    """Return a status as a number, or 0 if it is none."""
    if isinstance(status, str):
        return parse_digits(status) or 0
    return status if isinstance(status, int) and not isinstance(status, bool) else 0


def _is_failure(status: Any) -> bool:
    return 400 <= _status_number(status) <= 599


def _error_message(value: Any) -> str:
    for _ in range(3):
        if not isinstance(value, Mapping):
            break
        names = (
            "error",
            "error_message",
            "errorMessage",
            "message",
            "errors",
            "exception",
            "detail",
            "reason",
            *_MESSAGE_FIELDS_ABROAD,
        )
        inner = next((value[name] for name in names if value.get(name) not in (None, "", True)), None)
        if inner is None:
            return json.dumps(value, ensure_ascii=False, default=str)
        value = inner
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def abbreviate_call(call: ToolCall, limit: int = 300) -> str:
    """Format a call as ``name({"a": 1})``, truncated to ``limit`` characters."""
    arguments = (call.raw_args or "") if call.args is None else to_json_or_repr(call.args)
    text = f"{call.name}({arguments})"
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def format_user_call(call: ToolCall) -> str:
    """Format a call of the user's own tools with its result on one line."""
    args = (call.raw_args or "") if call.args is None else to_json(call.args)
    result = " ".join((call.result.text if call.result else "").split())
    return f"{call.name} {args} → {result}"
