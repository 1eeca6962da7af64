"""Finds the messages in a record: a list of messages, or a logged request and its response. Pure.

The requests and responses of OpenAI (both APIs), Anthropic, Google and Bedrock are supported in the forms in
which proxies and tracers log them: as objects or JSON text, with or without an enclosing body."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from agenteval.core.errors import AuthorError, Problem
from agenteval.importers.dataset_rows import NO_ANSWER, QUESTION_KEYS, parse_row
from agenteval.messages.json_fields import first_text, object_of, read_json
from agenteval.messages.log_entry import IMPORTER_REMEDY
from agenteval.messages.responses import (
    BODY_KEYS,
    ParsedResponse,
    describe_response_error,
    ends_with_answer,
    parse_response,
)
from agenteval.messages.roles import role_of, unwrap_message
from agenteval.messages.unplaced_entries import Unplaced, unplaced_in_record

MESSAGE_KEYS = ("messages", "conversation", "conversations", "trajectory", "traj", "history", "chat", "turns",
            "transcript", "items", "contents", "input")  # fmt: skip
"""Keys under which a record may store its messages. The first key that contains a list is used."""
HISTORY = "history"
"""The message key that may contain the messages before a question stored separately."""
_REQUEST_RESPONSE_KEYS = (
    ("request", "response"),
    ("request_body", "response_body"),
    ("body", "response"),
    ("input", "output"),
    ("inputs", "outputs"),
    ("inputs", "output"),
    ("kwargs", "response_obj"),
)
"""Pairs of keys that contain a request and its response."""
_ANSWER_KEYS = ("response", "output", "completion", "answer")
"""Keys that may contain an answer that is separate from the messages in a record."""
_REPLY_KEYS = frozenset((*_ANSWER_KEYS, "choices", "error"))
_SETTINGS = ("model_parameters", "modelParameters", "optional_params", "invocation_params")
"""Keys under which tracers store other parts of a request, such as its tools."""
_FURTHER = _REPLY_KEYS.union(_SETTINGS)


class LoggedMessages(NamedTuple):
    """The messages in a record, including the answer."""

    messages: list[Any]
    requests: tuple[Mapping[str, Any], ...] = ()
    """Objects other than the record that may contain tools or instructions: the request and its settings."""
    response: Mapping[str, Any] = {}
    """The body of the response, or an empty mapping if there is none."""
    lost: str = ""
    """The reason why the last request was not answered, if its response states one."""
    notes: tuple[str, ...] = ()
    """Warnings about content that was not imported exactly as written."""
    unplaced: tuple[Unplaced, ...] = ()
    """Content other than the messages that could not be placed."""
    of_unknown_turn: frozenset[str] = frozenset()
    """The ids of calls that may belong to a different turn."""


def find_logged_messages(record: Mapping[str, Any]) -> LoggedMessages | None:
    """Return the messages in a record, or ``None`` if the record contains none. Raise ``AuthorError``
    (without a location) if a response cannot be read."""
    if lists := {key: found for key in MESSAGE_KEYS if (found := find_list(record.get(key))) is not None}:
        # A trajectory may list what a program did: the list whose entries have roles is the conversation.
        key = next((key for key, found in lists.items() if any(map(_has_role, found))), next(iter(lists)))
        return _with_reply(record, key, [*lists[key], *_question_after(record, key, lists[key])])
    return _find_exchange(record) or _find_row(record)


def _has_role(message: Any) -> bool:
    return isinstance(message, dict) and role_of(unwrap_message(message)) is not None


def _question_after(record: Mapping[str, Any], key: str, history: list[Any]) -> list[Any]:
    """Return a list with a single message: the question that a row stores separately from its history."""
    question = first_text(record, *QUESTION_KEYS)
    if key != HISTORY or not question or (history and _is_question(history[-1], question)):
        return []
    return [{"role": "user", "content": question}]


def _is_question(message: Any, text: str) -> bool:
    return isinstance(message, dict) and role_of(message) == "user" and message.get("content") == text


def request_messages(inputs: Mapping[str, Any]) -> list[Any] | None:
    """Return the messages in a request, with or without an enclosing body, or ``None`` if there are none."""
    return _messages_in_request(_body(inputs))


def _with_unplaced(logged: LoggedMessages, record: Mapping[str, Any], *read_keys: str) -> LoggedMessages:
    """Add the unread content of the record."""
    return logged._replace(unplaced=(*logged.unplaced, *unplaced_in_record(record, {*read_keys, *_SETTINGS})))


def is_exchange(record: Mapping[str, Any]) -> bool:
    """Check whether an object is a request with its response rather than a container of such objects."""
    return any(
        _messages_in_request(_body(record.get(request_key))) is not None
        for request_key, _ in _REQUEST_RESPONSE_KEYS
    )


# ── an answer beside the messages ────────────────────────────────────────────────────────────────


def _with_reply(record: Mapping[str, Any], key: str, messages: list[Any]) -> LoggedMessages:
    """Add an answer that is stored separately from the logged messages, under ``output`` (responses) or
    ``choices`` (chat completions)."""
    if isinstance(record[key], list) and record.keys().isdisjoint(_FURTHER):
        return _with_unplaced(LoggedMessages(messages), record, key)
    inner = _parse_object(record[key])
    requests = tuple(filter(None, (inner, *_settings(record))))
    logged = _with_unplaced(LoggedMessages(messages, requests), inner, _list_key(inner))
    if record.keys().isdisjoint(_REPLY_KEYS):
        return _with_unplaced(logged, record, key)
    lost, read_keys = "", [key]
    for name, response in _separate_answers(record, key):
        is_response = name in ("choices", "response") or (key == "input" and name == "output")
        reply = _separate_reply(messages, response, is_response=is_response)
        logged = logged._replace(notes=(*logged.notes, *reply.notes))
        if reply.messages:
            logged = logged._replace(messages=messages + reply.messages, response=reply.body)
            return _with_unplaced(logged, record, *read_keys, name)
        lost = lost or reply.failure
        if reply.is_known:
            read_keys.append(name)
        else:
            left_out = f"'{name}' next to the messages is not an answer to them and was ignored"
            logged = logged._replace(notes=(*logged.notes, left_out))
    if not lost and record.get("error") and not ends_with_answer(messages):
        lost = f"the record reports an error: {describe_response_error(record)}"
    if key == HISTORY and first_text(record, *QUESTION_KEYS) and not ends_with_answer(messages):
        answers = [record[name] for name in _ANSWER_KEYS if name in record]
        is_empty = answers and all(each in (None, "", [], {}) for each in answers)
        lost = lost or (NO_ANSWER if is_empty else "")
    return _with_unplaced(logged._replace(lost=lost), record, *read_keys)


def _separate_answers(record: Mapping[str, Any], key: str) -> Iterator[tuple[str, Any]]:
    if key == "input" and "output" in record:
        yield "output", record["output"]
    if "choices" in record:
        yield "choices", record
    for name in _ANSWER_KEYS:
        if name in record and not (key == "input" and name == "output"):
            yield name, record[name]


def _separate_reply(messages: list[Any], response: Any, *, is_response: bool) -> ParsedResponse:
    """Parse an answer that is stored separately from the messages. If ``is_response`` is true, the field can
    only be a response. Any other field may be a data set column, and is treated as the answer only if the
    messages contain no answer."""
    if not response and not is_response:
        return ParsedResponse([])
    if ends_with_answer(messages) and (isinstance(response, str) or not is_response):
        return ParsedResponse([], is_known=not _differs(response, messages))
    return parse_response(messages, response)


def _differs(response: Any, messages: list[Any]) -> bool:
    content = messages[-1].get("content")
    return bool(response) and response not in (content, messages[-1])


# ── a request and its response ───────────────────────────────────────────────────────────────────


def _find_exchange(record: Mapping[str, Any]) -> LoggedMessages | None:
    for request_key, response_key in sorted(_REQUEST_RESPONSE_KEYS, key=lambda pair: pair[1] not in record):
        request = _body(record.get(request_key))
        messages = _messages_in_request(request)
        if messages is not None:
            requests = (request, *_settings(request), *_settings(record))
            logged = _with_unplaced(
                _read_exchange(record, messages, requests, response_key), record, request_key, response_key
            )
            return _with_unplaced(logged, request, *MESSAGE_KEYS)
    return None


def _read_exchange(
    record: Mapping[str, Any], messages: list[Any], requests: tuple[Mapping[str, Any], ...], response_key: str
) -> LoggedMessages:
    is_answered = ends_with_answer(messages)
    error = "" if is_answered else describe_response_error(record)
    lost = f"the record reports an error: {error}" if error else ""
    response = record.get(response_key)
    if lost and not isinstance(response, dict | list):
        return LoggedMessages(messages, requests, lost=lost)
    if response_key not in record:
        notes = () if is_answered else ("a request has no response, so the conversation ends with it",)
        return LoggedMessages(messages, requests, notes=notes)
    reply = parse_response(messages, response)
    if not (reply.is_known or is_answered or lost):
        keys = ", ".join(map(str, list(_parse_object(response))[:8]))
        what = f"the response contains no known message{keys and f' (it has {keys})'}"
        raise AuthorError(Problem(what, f"log the complete response, or {IMPORTER_REMEDY}"))
    lost = reply.failure or ("" if reply.messages else lost)
    return LoggedMessages(messages + reply.messages, requests, reply.body, lost, reply.notes)


def _find_row(record: Mapping[str, Any]) -> LoggedMessages | None:
    row = parse_row(record)
    if row is None:
        return None
    error = describe_response_error(record) if not row.reply.messages else ""
    lost = f"the record reports an error: {error}" if error else row.reply.failure
    settings = tuple(_settings(record))
    return LoggedMessages(
        [*row.messages, *row.reply.messages], settings, row.reply.body, lost, row.reply.notes, row.unplaced
    )


def _settings(fields: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    return filter(None, (_parse_object(fields.get(key)) for key in _SETTINGS))


def _messages_in_request(request: Mapping[str, Any]) -> list[Any] | None:
    listed = (find_list(request.get(key)) for key in MESSAGE_KEYS)
    if (found := next((each for each in listed if each is not None), None)) is not None:
        return found
    text = request.get("input")  # a single message may be plain text
    return [{"role": "user", "content": text}] if isinstance(text, str) and "model" in request else None


def find_list(value: Any) -> list[Any] | None:
    """Return the list in a value, or ``None`` if there is none. The list may be written as JSON text or
    nested in an object. A list that contains only one list is unwrapped."""
    value = read_json(value)
    if isinstance(value, dict):
        value = value.get(_list_key(value))
    if isinstance(value, list):
        return value[0] if len(value) == 1 and isinstance(value[0], list) else value
    return None


def _list_key(fields: Mapping[str, Any]) -> str:
    """Return the key of the first list that may contain messages, or an empty string if there is none."""
    return next((key for key in MESSAGE_KEYS if isinstance(fields.get(key), list)), "")


def _parse_object(value: Any) -> Mapping[str, Any]:
    return object_of(read_json(value))


def _body(value: Any) -> Mapping[str, Any]:
    """Return the body of a request or a response, removing up to two wrappers."""
    found = _parse_object(value)
    for _ in range(2):
        if any(key in found for key in MESSAGE_KEYS):
            break
        body_keys = (*BODY_KEYS, "content") if found.get("type") == "json" else BODY_KEYS
        found = next(filter(None, (_parse_object(found.get(key)) for key in body_keys)), found)
    return found
