"""Finds the HTTP status that corresponds to an error inside a reply. Pure.

Providers and gateways may report a failure inside a reply with status 200: a stream sends its status before
it fails, and a gateway forwards the reply that it received. Such an error is assigned the status that
corresponds to its code or type. The error message is prose and is not parsed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from agenteval.core.json_text import parse_or
from agenteval.messages.json_fields import first_nonempty

INFRASTRUCTURE_STATUSES = frozenset((401, 403, 407, 429, 502, 503, 504, 529))
"""HTTP statuses for errors that are not the agent's fault: denied access, exceeded quotas and rate limits,
and servers that are down or overloaded."""
ACCESS_DENIED_STATUSES = frozenset((401, 403))
"""The infrastructure statuses for errors that a retry cannot resolve."""
_STATUS_KEYS = ("code", "status", "status_code", "statusCode", "http_status", "type", "__type", "kind")
_INNER_KEYS = ("error", "response")
_ANSWER_KEYS = ("choices", "output", "content", "candidates", "messages", "message", "result")
"""Keys that contain the answer in a reply. The value of ``message`` must be an object, because a string under
that key describes an error."""
_STATUSES: Mapping[str, int] = {
    # OpenAI: platform.openai.com/docs/guides/error-codes, and the codes of failed responses
    **dict.fromkeys(("rate_limit_exceeded", "insufficient_quota"), 429),
    **dict.fromkeys(("server_is_overloaded", "service_unavailable_error", "slow_down"), 503),
    **dict.fromkeys(("server_overloaded", "engine_overloaded_error"), 503),
    **dict.fromkeys(("too_many_requests", "service_tier_capacity_exceeded"), 429),
    "server_error": 500,
    "invalid_api_key": 401,
    # Anthropic: docs.anthropic.com/en/api/errors
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
    # Google: google.rpc.Code and the HTTP status of each
    **dict.fromkeys(("invalid_argument", "failed_precondition"), 400),
    "unauthenticated": 401,
    "permission_denied": 403,
    "not_found": 404,
    "resource_exhausted": 429,
    "internal": 500,
    "unavailable": 503,
    "deadline_exceeded": 504,
    # Amazon Bedrock: the errors of InvokeModel and ConverseStream
    "validationexception": 400,
    "accessdeniedexception": 403,
    "throttlingexception": 429,
    "modelnotreadyexception": 429,
    "internalserverexception": 500,
    "serviceunavailableexception": 503,
    "modeltimeoutexception": 504,
}
"""The HTTP statuses that correspond to documented error codes and types. The keys are in lower case."""


_ERROR_MARKERS = ("error", '"code"', '"status', '"__type"')
"""Substrings at least one of which occurs in every text that contains an error. Most replies contain none of
these substrings and therefore need not be parsed."""


def find_error_status(error: Any) -> int | None:
    """Return the HTTP status (400 to 599) that an error states or implies, such as 429 for a rate limit.
    Return ``None`` if there is no such status."""
    error = _first_item(error)
    errors = list(_nested_errors(error))
    candidates = [level[key] for level in errors for key in _STATUS_KEYS if key in level]
    candidates += [error] if isinstance(error, str | int) else []
    numbers = (status for each in candidates if (status := _parse_status(each)))
    return next(numbers, None) or next(filter(None, map(_status_of_word, candidates)), None)


def find_error(document: Any) -> Any:
    """Return the error that a reply or a stream event contains instead of an answer, or ``None`` if there is
    no error."""
    document = _first_item(document)
    if not isinstance(document, Mapping):
        return None
    choices = document.get("choices")
    inner = None if choices else document.get("response")  # an event's; next to choices, the agent's
    holders = (each for each in (document, _first_item(choices), inner) if isinstance(each, Mapping))
    found = first_nonempty(("error",), *holders)
    if isinstance(found, str) and found is document.get("error"):  # the status is next to the text
        return dict(document)
    return document if found is None and _is_bare_error(document) else found


def find_error_in_texts(texts: Iterable[str]) -> Any:
    """Return the first error in the texts of a reply: in its body, or in the payloads of its events."""
    likely = (text for text in texts if any(word in text for word in _ERROR_MARKERS))
    return next(filter(None, map(find_error, map(parse_or, likely))), None)


def _first_item(value: Any) -> Any:
    """Return the first element of a list, because Google's streams begin with a list. Return any other value
    unchanged."""
    return value[0] if value and isinstance(value, list) else value


def _is_bare_error(document: Mapping[str, Any]) -> bool:
    if "error" in (document.get("type"), document.get("object")):
        return True
    has_answer = any(not isinstance(document.get(key), str | None) for key in _ANSWER_KEYS)
    if has_answer:
        return False
    names = any(_parse_status(document.get(key)) for key in _STATUS_KEYS)
    return names or _status_of_word(document.get("__type")) is not None


def _nested_errors(error: Any) -> Iterator[Mapping[str, Any]]:
    while isinstance(error, Mapping):
        yield error
        error = next((error[key] for key in _INNER_KEYS if isinstance(error.get(key), Mapping)), None)


def _parse_status(value: Any) -> int | None:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) == len("503"):
        value = int(value)
    is_status = isinstance(value, int) and not isinstance(value, bool) and 400 <= value < 600
    return value if is_status else None


def _status_of_word(value: Any) -> int | None:
    # Amazon puts a namespace before the name, or a link after it.
    return _STATUSES.get(value.split("#")[-1].split(":")[0].lower()) if isinstance(value, str) else None
