"""Parses the response to a logged request into messages, or into the reason why there are no messages. Pure.

The known formats are the responses of OpenAI (both APIs), Anthropic, Google and Bedrock. A response may be
complete or streamed, an object or text, and may be enclosed in a body."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from agenteval.core.errors import AuthorError, Problem
from agenteval.messages.field_shapes import (
    ANYTHING,
    CONTROL,
    NUMBERS,
    RATINGS,
    TEXTS,
    TOKENS,
    FieldShape,
    holds_objects,
)
from agenteval.messages.finish_reasons import (
    FINISH_REASON_KEYS,
    is_content_filter,
    is_error_reason,
    is_token_limit,
)
from agenteval.messages.json_fields import first_nonempty, list_at, object_of, read_json
from agenteval.messages.log_entry import IMPORTER_REMEDY
from agenteval.messages.message_parser import parse_messages
from agenteval.messages.parsed_message import UNPLACED, mark_unplaced
from agenteval.messages.roles import is_agent_message, is_message
from agenteval.messages.unplaced_entries import Unplaced, holds_entries, unplaced_fields, unplaced_in_record

BODY_KEYS = ("body", "parsed_body", "request_body", "response_body", "json", "data", "string", "__data__")
"""Keys for the content of a request or a response."""
_DATA_KEY = "__data__"
_HTTP_KEYS = ("http_version", "status_code", "headers")
_STATUS_KEYS = ("status", "status_code", "statusCode", "response_status", "http_status", "HTTPStatusCode",
          "ResponseMetadata")  # fmt: skip
_ERROR_LIMIT = 200
_CHOICE_KEYS = ("choices", "candidates", "generations")

TOKEN_LIMIT_NOTE = "a reply was cut off at its token limit, so the rest of it is unknown"
FILTER_NOTE = "a reply was cut off by the provider's content filter, so the rest of it is unknown"
ERROR_NOTE = "a reply ended with an error, so the rest of it is unknown"


class ParsedResponse(NamedTuple):
    """The messages that a response adds to its request."""

    messages: list[Any]
    """The messages that are not in the request."""
    body: Mapping[str, Any] = {}
    """The part of the response that contains the messages."""
    failure: str = ""
    """A sentence that explains why the request was not answered. Empty if the request was answered."""
    notes: tuple[str, ...] = ()
    """Remarks on replies that were cut off or that could not be read."""
    is_known: bool = True
    """False if nothing in the response could be read."""


def parse_response(messages: Sequence[Any], response: Any) -> ParsedResponse:
    """Parse the response to a logged model request, and return the messages that it adds to the request.

    Plain text is an answer if there is no answer yet. Raise ``AuthorError`` (without a location) for a stream
    that cannot be assembled."""
    is_answered = ends_with_answer(messages)
    if not response or (isinstance(response, str) and not response.strip()):
        return ParsedResponse([], failure="" if is_answered else "the request got no response")
    try:
        return _find_reply(messages, response, is_answered=is_answered)
    except AuthorError:
        if is_answered:
            return ParsedResponse([], is_known=False)
        raise


def _find_reply(messages: Sequence[Any], response: Any, *, is_answered: bool) -> ParsedResponse:
    read = open_body(response)
    if isinstance(read, str):
        return ParsedResponse([] if is_answered else _answer_messages(read))
    for level in _response_levels(read):
        if describe_response_error(level) or _has_failed(level):
            return ParsedResponse(
                [], level, "" if is_answered else f"the response is an error: {_error_text(read)}"
            )
        reply = _reply_at(level, messages)
        is_echo = "messages" in level and len(level) > 1  # of the request; an answer would be elsewhere
        if reply and (reply.messages or is_answered or not is_echo):
            return reply
    is_answer = isinstance(response, str) and not is_answered
    return _json_answer(response, read) if is_answer else ParsedResponse([], is_known=False)


def _json_answer(text: str, read: Any) -> ParsedResponse:
    """Return an answer that is JSON because the request asked for JSON, or a response of an unknown kind."""
    unknown = [Unplaced("a response as JSON", ("response",), read)] if holds_entries(read) else []
    return ParsedResponse([*map(mark_unplaced, unknown), *_answer_messages(text)])


def _reply_at(level: Mapping[str, Any], messages: Sequence[Any]) -> ParsedResponse | None:
    """Return the messages that one level of a response adds, or ``None`` if this level has no message."""
    found = _find_messages(level)
    if not found:
        return None
    is_there = bool(messages) and found == list(messages[-1:])
    added = [] if is_there else new_messages(messages, found)
    unplaced = map(mark_unplaced, unplaced_in_response(level, messages)) if added else ()
    return ParsedResponse([*unplaced, *added], level, notes=tuple(_truncation_notes(level)))


def new_messages(messages: Sequence[Any], found: list[Any]) -> list[Any]:
    """Return the messages in ``found`` that are new.

    A graph returns all its messages, starting with its input messages. Messages are compared by their
    content, because ids and similar fields are added along the way."""
    known = filter(None, map(_core, messages))
    for at, message in enumerate(found):
        core = _core(message)
        if not core:
            continue
        expected = next(known, None)
        if expected is None:
            return found[at:]
        if core != expected:
            return found
    return found if all(map(is_agent_message, found)) else []


def _core(message: Any) -> list[Any]:
    """Return the content of a message in a form that does not depend on the message format.

    The result is empty for system prompts, because a graph does not return them."""
    return [
        (each.role, each.text or "", [call[:3] for call in each.calls], each.value)
        for each in parse_messages([message])
        if each.role not in ("system", UNPLACED)
    ]


def ends_with_answer(messages: Sequence[Any]) -> bool:
    """Check whether the last message is from the agent."""
    return bool(messages) and is_agent_message(messages[-1])


def open_body(value: Any) -> Any:
    """Decode a JSON string, or assemble the response from the pieces of a stream. Return any other value
    unchanged.

    Raise ``AuthorError`` for a stream that cannot be assembled."""
    from agenteval.messages.completion import UnreadableResponseError
    from agenteval.messages.streams import assemble_response, parse_stream_pieces

    read = _strip_class_names(read_json(value))
    try:
        pieces = parse_stream_pieces(read)
        return read if pieces is None else assemble_response(pieces)
    except UnreadableResponseError as error:
        if error.error is not None:
            return {"error": error.error}
        remedy = f"log the complete response, or {IMPORTER_REMEDY}"
        raise AuthorError(Problem(f"the response {error.what}, so the answer is unknown", remedy)) from None


def _strip_class_names(value: Any) -> Any:
    """Return objects without the class names that a recorder added."""
    if (
        isinstance(value, list)
        and value
        and all(isinstance(each, dict) and _DATA_KEY in each for each in value)
    ):
        return [each[_DATA_KEY] for each in value]
    return value[_DATA_KEY] if isinstance(value, dict) and _DATA_KEY in value else value


def describe_response_error(fields: Mapping[str, Any]) -> str:
    """Describe the error that a server reports instead of an answer, or return an empty string if there is no
    error."""
    error = fields.get("error") or _first_object(fields, "choices").get("error")
    status = next((fields[key] for key in _STATUS_KEYS if _parse_status(fields.get(key)) >= 400), None)
    code = _parse_status(status) or _parse_status(object_of(error).get("code"))
    if isinstance(error, dict):
        error = first_nonempty(("message", "type"), error) or json.dumps(error, ensure_ascii=False)
    error = error or first_nonempty(("message", "reason"), object_of(status))
    text = " ".join(str(error).split())[:_ERROR_LIMIT] if error else ""
    return f"{text} ({code})" if text and code else text or (f"status {code}" if code else "")


def _has_failed(response: Mapping[str, Any]) -> bool:
    return "output" in response and response.get("status") in ("failed", "cancelled")


def _error_text(response: Any) -> str:
    """Return the error message in a response. The body is used because it may contain more information than
    the status."""
    texts = [words for level in _response_levels(response) if (words := describe_response_error(level))]
    return ", ".join(dict.fromkeys(texts)) or "it failed"


def _parse_status(value: Any) -> int:
    """Parse a status as a number. It may also be a status line or an object. Return 0 if the value is not a
    status."""
    if isinstance(value, dict):
        return next(
            (code for key in (*_STATUS_KEYS, "code") if (code := _parse_plain_status(value.get(key)))), 0
        )
    return _parse_plain_status(value[0] if isinstance(value, list) and value else value)


def _parse_plain_status(value: Any) -> int:
    if isinstance(value, str):
        found = _STATUS_LINE.match(value)
        return int(found[1]) if found else 0
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0


_STATUS_LINE = re.compile(r"\s*(?:HTTP/[\d.]+ )?(\d{3})(?=\s*$| [A-Z])", re.IGNORECASE)
"""Matches ``503``, ``503 Service Unavailable`` and the first line of a response."""


# ── fields around the message ────────────────────────────────────────────────────────────────────

_READ_FIELDS = ("choices", "candidates", "generations", "message", "error")
_RESPONSE_SHAPES: Mapping[str, FieldShape] = {
    # Repetitions of the request.
    **dict.fromkeys(("tools", "tool_choice", "text", "instructions", "input", "prompt"), ANYTHING),
    **dict.fromkeys(("response_format", "system_instruction", "generation_config"), ANYTHING),
    **dict.fromkeys(("billing", "metrics", "performanceConfig", "timings", "time_info"), NUMBERS),
    **dict.fromkeys(("usage_breakdown", "tool_usage", "latency_checkpoint", "sla_metrics"), NUMBERS),
    "content_filters": RATINGS,
    "moderation": FieldShape(frozenset(("model",)), values=frozenset(("input", "output", "results"))),
    **dict.fromkeys(("conversation", "modelStatus", "prompt_cache_options", "stream_options"), CONTROL),
    **dict.fromkeys(("finish_details", "warnings"), CONTROL),
    "x_groq": FieldShape(frozenset(("id",)), None),
    **dict.fromkeys(("headers", "ResponseMetadata", "additionalModelResponseFields"), TEXTS),
    "prompt_logprobs": TOKENS,
    "delta": TEXTS,
    "__verbose": ANYTHING,  # llama.cpp's: the request and timings
}
"""The shapes of the fields that model APIs add next to the message in a response."""


def unplaced_in_response(response: Mapping[str, Any], known: Sequence[Any] = ()) -> Iterator[Unplaced]:
    """Yield the fields next to the message in a response that may contain calls.

    If the response is itself the message, its fields are left to the message parser. ``known`` contains the
    messages to which the response is the answer."""
    is_completion = any(_first_object(response, key) for key in _CHOICE_KEYS)
    if "messages" in response and (not is_completion or response["messages"] == known):
        # A graph's state, or a record with its answer.
        yield from unplaced_in_record(response, {"messages", "choices"})
    elif "role" not in response:
        output = response.get("output")
        is_read = not is_completion and (isinstance(output, list) or "message" in object_of(output))
        read = (*_READ_FIELDS, "output") if is_read else _READ_FIELDS
        yield from unplaced_fields(response, read, owner="the response", shapes=_RESPONSE_SHAPES)
        yield from unplaced_fields(object_of(output), ("message",), owner="the response output")
        for key in _CHOICE_KEYS:
            choice, other_choices = _first_object(response, key), list_at(response, key)[1:]
            read = (*_READ_FIELDS, "content")
            yield from unplaced_fields(choice, read, owner="a response choice", shapes=_RESPONSE_SHAPES)
            for other in other_choices:
                if _may_hold_calls(other, key):
                    yield Unplaced(f"another item in the response's {key}", (key,), other)


def unread_in_response(response: Mapping[str, Any]) -> list[Unplaced]:
    """Return the same fields as ``unplaced_in_response``, excluding calls that are also in the message."""
    surrounding = list(unplaced_in_response(response))
    parsed = parse_messages([*map(mark_unplaced, surrounding), *_find_messages(response)])
    unplaced = [each.value for each in parsed if each.role == UNPLACED]
    return [each for each in surrounding if any(each is other for other in unplaced)]


def _may_hold_calls(other: Any, key: str) -> bool:
    """Check whether a choice other than the first contains calls or unknown content."""
    found = _find_messages({key: [other]})
    parsed = parse_messages(found)
    return any(each.calls or each.role == UNPLACED for each in parsed) or (
        not found and holds_objects([other])
    )


# ── the message in a response ────────────────────────────────────────────────────────────────────


def _answer_messages(text: str) -> list[Any]:
    return [{"role": "assistant", "content": text}]


def _response_levels(response: Any) -> Iterator[Mapping[str, Any]]:
    """Yield a response, followed by the content of its body."""
    if isinstance(response, list):
        yield {"messages": response}
    if not isinstance(response, dict):
        return
    yield response
    # HTTP recorders of test suites write a body like this.
    is_wrapped = response.get("type") == "json" or _is_http_with_content(response)
    for key in (*BODY_KEYS, "content") if is_wrapped else BODY_KEYS:
        inner = response.get(key)
        if inner:
            inner = open_body(inner)
            if isinstance(inner, str):
                yield {"role": "assistant", "content": inner}
            else:
                yield from _response_levels(inner)


def _is_http_with_content(response: Mapping[str, Any]) -> bool:
    is_text = isinstance(response.get("content"), str)
    return is_text and "role" not in response and any(key in response for key in _HTTP_KEYS)


def _find_messages(response: Mapping[str, Any]) -> list[Any]:
    listed = list_at(response, "messages")
    listed = listed if all(map(is_message, listed)) else []
    if len(response) == 1 and response.get("messages"):
        return listed
    if chosen := _choice_messages(response):
        return chosen
    if isinstance(response.get("role"), str) and ("content" in response or "tool_calls" in response):
        return [response]
    output = response.get("output")
    if isinstance(message := object_of(output).get("message"), dict):
        return [message]
    return output if isinstance(output, list) else listed


def _choice_messages(response: Mapping[str, Any]) -> list[Any]:
    """Return the message from the first choice, generation or candidate as a list, or an empty list if there
    is no message."""
    choice = _first_object(response, "choices")
    for part in (choice, _first_object(response, "generations")):
        if isinstance(message := part.get("message"), dict):
            return [message if "kwargs" in message else {"role": "assistant", **message}]
    if isinstance(content := _first_object(response, "candidates").get("content"), dict):
        return [{"role": "model", **content}]
    return _answer_messages(text) if isinstance(text := choice.get("text"), str) else []


def _first_object(fields: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return the first object in a list, or in the first list inside that list."""
    value = fields.get(key)
    while isinstance(value, list) and value:
        value = value[0]
    return object_of(value)


def _truncation_notes(response: Mapping[str, Any]) -> Iterator[str]:
    parts = (response, _first_object(response, "choices"), _first_object(response, "candidates"))
    ends = [part.get(key) for part in parts for key in FINISH_REASON_KEYS]
    if any(map(is_token_limit, (*ends, response.get("status")))):
        yield TOKEN_LIMIT_NOTE
    if any(map(is_content_filter, ends)):
        yield FILTER_NOTE
    if any(map(is_error_reason, ends)):
        yield ERROR_NOTE
    for key in ("choices", "candidates"):
        if len(list_at(response, key)) > 1:
            yield f"a response has several {key}, and only the first was used"
