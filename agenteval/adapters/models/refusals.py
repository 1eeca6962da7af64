"""Interpret refusals by language model servers: determine the reason, and find a change for the next request.

All information is taken from the server's own reply: its status, code, parameter and message."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

from agenteval.adapters.models.capabilities import ServerCapabilities
from agenteval.adapters.models.response_formats import FormatLevel
from agenteval.adapters.transport.error_patterns import (
    NO_SYSTEM_ROLE_PATTERN,
    RATE_LIMIT_PATTERN,
    is_quota_exhausted,
)

BUDGET_PARAMETERS = ("max_tokens", "max_completion_tokens")
_MAX_ERROR_CHARS = 64 * 2**10
"""The maximum number of characters of an error that are examined."""
_CORE_FIELDS = frozenset(("model", "messages", "response_format", *BUDGET_PARAMETERS))


class ServerRefusal(NamedTuple):
    """An error reply."""

    status: int
    """The HTTP status, or the status in the error if a reply with status 200 contains an error."""
    text: str
    """The server's message, including the code and the parameter."""
    param: str = ""
    retry_after_s: float | None = None


def parse_refusal(status: int, body: Any) -> ServerRefusal:
    """Parse a refusal. ``body`` is the reply as JSON, or its text if the reply is not JSON."""
    error = _error_in(body)
    if isinstance(error, dict):
        text = " ".join(_words(error)) or json.dumps(error)
        param, code = str(error.get("param") or ""), str(error.get("code"))
    else:
        text, param, code = error if isinstance(error, str) else json.dumps(error), "", ""
    text = text[:_MAX_ERROR_CHARS]
    if status < 400:
        status = _status_within(code, text)
    return ServerRefusal(status, text, param)


def _status_within(code: str, text: str) -> int:
    """Return the status that the server should have sent instead of 200."""
    if re.fullmatch("[45][0-9][0-9]", code):
        return int(code)
    if RATE_LIMIT_PATTERN.search(text):
        return 429
    return 503 if re.search(r"overloaded|server.error|internal|unavailable|timed? ?out", text) else 400


def _error_in(body: Any) -> Any:
    """Return the part of an error body that describes the problem. Servers use different formats."""
    if isinstance(body, list) and body:
        return _error_in(body[0])
    if isinstance(body, dict):
        inner = body.get("error") or _choice_error(body) or body.get("detail") or body.get("message")
        return (
            {"message": inner, "code": body.get("code")} if isinstance(inner, str | list) else inner or body
        )
    return body


def _choice_error(body: Mapping[str, Any]) -> Any:
    """Return the error in a choice of an interrupted answer."""
    choices = body.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first.get("error") if isinstance(first, dict) else None


def _words(error: Mapping[str, Any]) -> Iterator[str]:
    message = error.get("message") or error.get("msg")
    for part in message if isinstance(message, list) else [message]:
        # FastAPI's validation errors quote the whole input; only place and message are used.
        if isinstance(part, dict):
            yield f"{'.'.join(map(str, part.get('loc', ())))}: {part.get('msg', '')}"
        elif part:
            yield str(part)
    for key in ("code", "type", "param", "status"):
        if isinstance(error.get(key), str | int) and error[key]:
            yield f"({key}: {error[key]})"


# ── transient refusals ───────────────────────────────────────────────────────────────────────────

_PASSING = frozenset((408, 409, 425, 429))


def is_transient(refusal: ServerRefusal) -> bool:
    """Check whether the same request may be accepted later, for example after a rate limit (HTTP 429).

    Only a per-minute quota is restored while a run waits. Some servers also use the word "quota" for such a
    limit."""
    if refusal.status == 429:
        return not is_quota_exhausted(refusal.text)
    if refusal.status >= 500:
        return refusal.status != 501 and not _FORMAT_NAME.search(refusal.text)
    return refusal.status in _PASSING


_OVERFLOW = re.compile(
    r"context[ _-]?(length|window|size)|(prompt|input) (is |was )?too long|too many (input )?tokens"
    r"|input token count|maximum number of (input )?tokens|reduce (the length|your prompt)",
    re.IGNORECASE,
)


def is_context_overflow(refusal: ServerRefusal) -> bool:
    """Check whether the request exceeds the model's context window."""
    return refusal.status == 413 or (
        refusal.status in (400, 422, 500) and bool(_OVERFLOW.search(refusal.text))
    )


# ── adapting requests ────────────────────────────────────────────────────────────────────────────


class RequestAdaptation(NamedTuple):
    """A change to future requests that follows from a refusal."""

    capabilities: ServerCapabilities
    note: str
    """The finding as a message for the user."""


_Rule: TypeAlias = Callable[[ServerRefusal, Mapping[str, Any], ServerCapabilities], RequestAdaptation | None]


def find_adaptation(
    refusal: ServerRefusal, sent: Mapping[str, Any], learned: ServerCapabilities
) -> RequestAdaptation | None:
    """Return the change to make after ``refusal`` of the request ``sent``, or ``None`` if no helpful change
    is known.

    An adaptation that has already been made is never returned again."""
    if is_context_overflow(refusal):
        return None
    rules: tuple[_Rule, ...] = ()
    if refusal.status in (400, 422):
        rules = (
            *(_streamed, _without_budget, _with_budget, _without_parameter),
            *(_lower_format, _folded_system),
        )
    elif refusal.status == 403:
        rules = (_without_parameter,)
    elif refusal.status >= 500 and _FORMAT_NAME.search(refusal.text):
        rules = (_lower_format,)
    return next((found for rule in rules if (found := rule(refusal, sent, learned))), None)


_TOO_MUCH = re.compile(r"too (large|high|big)|at most|less than|exceed|greater than|maximum", re.IGNORECASE)
_UNKNOWN = re.compile(
    r"unsupported|not supported|unrecogni|unknown|not (permitted|allowed)|\buse\b", re.IGNORECASE
)


def _mentions(refusal: ServerRefusal, name: str) -> bool:
    """Check whether the server's message refers to this parameter.

    If the parameter's name is an ordinary word, the name must be in quotes or at the end of a path."""
    if refusal.param:
        return re.split(r"[.\[]", refusal.param.removeprefix("body."))[0] == name
    word = re.escape(name)
    quoted = rf"[\"'`]{word}[\"'`]|\bbody\.{word}\b"
    plain = rf"(?<![\w.]){word}(?!\w)"
    is_plain_enough = "_" in name or name in ("temperature", "logprobs")
    return bool(re.search(f"{quoted}|{plain}" if is_plain_enough else quoted, refusal.text, re.IGNORECASE))


def _without_budget(
    refusal: ServerRefusal, sent: Mapping[str, Any], learned: ServerCapabilities
) -> RequestAdaptation | None:
    name = next((name for name in BUDGET_PARAMETERS if name in sent and _mentions(refusal, name)), None)
    if name is None or (_TOO_MUCH.search(refusal.text) and not _UNKNOWN.search(refusal.text)):
        return None
    refused = learned.refused | {name}
    other = next((other for other in BUDGET_PARAMETERS if other not in refused), None)
    note = f"`{name}` was rejected; " + (
        f"`{other}` is sent instead" if other else "no limit is sent from now on"
    )
    return RequestAdaptation(replace(learned, refused=refused), note)


def _with_budget(
    refusal: ServerRefusal, sent: Mapping[str, Any], learned: ServerCapabilities
) -> RequestAdaptation | None:
    is_missing = re.search(r"required|missing", refusal.text, re.IGNORECASE)
    if learned.needs_budget or not is_missing or any(name in sent for name in BUDGET_PARAMETERS):
        return None
    if not any(_mentions(refusal, name) for name in BUDGET_PARAMETERS):
        return None
    return RequestAdaptation(
        replace(learned, needs_budget=True), "an output token limit is required and is now sent"
    )


def _without_parameter(
    refusal: ServerRefusal, sent: Mapping[str, Any], learned: ServerCapabilities
) -> RequestAdaptation | None:
    name = next((name for name in sent if name not in _CORE_FIELDS and _mentions(refusal, name)), None)
    if name is None or name in learned.refused:
        return None
    note = f"`{name}` was rejected and is no longer sent"
    if name in ("temperature", "top_p", "seed"):
        note += "; answers may vary more"
    return RequestAdaptation(replace(learned, refused=learned.refused | {name}), note)


_FORMAT_NAME = re.compile(r"response[ _]?format|json[ _]?schema|json[ _]?object|grammar", re.IGNORECASE)
_FORMAT = re.compile(
    _FORMAT_NAME.pattern + r"|\bschema|json mode|structured output|guided|response_mime_type"
    r"|additionalProperties|\b(max|min)(Length|imum|Items)\b|\banyOf\b",
    re.IGNORECASE,
)


def _lower_format(
    refusal: ServerRefusal, sent: Mapping[str, Any], learned: ServerCapabilities
) -> RequestAdaptation | None:
    below = learned.format_level.next_level
    is_meant = _mentions(refusal, "response_format") or _FORMAT.search(refusal.text)
    if "response_format" not in sent or below is None or not is_meant:
        return None
    note = f"the response format {learned.format_level} was rejected; {below} is requested instead"
    if below is FormatLevel.PROMPT:
        note = f"the response format {learned.format_level} was rejected; only the prompt asks for JSON"
    return RequestAdaptation(replace(learned, format_level=below), note)


def _folded_system(
    refusal: ServerRefusal, sent: Mapping[str, Any], learned: ServerCapabilities
) -> RequestAdaptation | None:
    if learned.folds_system or not NO_SYSTEM_ROLE_PATTERN.search(refusal.text):
        return None
    note = "the system role was rejected; its text is sent in the user message"
    return RequestAdaptation(replace(learned, folds_system=True), note)


_STREAM_ONLY = re.compile(
    r"\bstream(ing)?\b['\"` ]*(mode )?(must|has to|needs to|is) (be )?(required|mandatory|true|set|enabled)"
    r"|\bonly\b.{0,30}\bstream|\bstream(ing)?['\"` ]+only|non-?stream(ing)?\b.{0,40}\bnot\b"
    r"|(requires?|enable|use|set) ['\"`]?stream",
    re.IGNORECASE | re.DOTALL,
)


def _streamed(
    refusal: ServerRefusal, sent: Mapping[str, Any], learned: ServerCapabilities
) -> RequestAdaptation | None:
    if learned.streams or "stream" in sent or not _STREAM_ONLY.search(refusal.text):
        return None
    return RequestAdaptation(
        replace(learned, streams=True),
        "the server supports only streaming; a streaming response is requested",
    )
