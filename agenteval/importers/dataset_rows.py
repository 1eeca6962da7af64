"""Reads rows of a data set in which the question and the answer are separate fields. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from agenteval.messages.json_fields import first_nonempty, read_json
from agenteval.messages.responses import ParsedResponse, new_messages, parse_response
from agenteval.messages.unplaced_entries import Unplaced, unplaced_in_record

QUESTION_KEYS = ("input", "prompt", "query", "question")
ANSWER_KEYS = ("output", "completion", "response", "answer")
_RUN_KEYS = (("inputs", "outputs"), ("inputs", "output"), ("input", "output"))
"""The pairs of keys under which traced runs store the question and the answer, each as an object."""
_MORE_ANSWER_KEYS = ("content", "text", "result")
"""Additional keys that may contain the answer in an ``outputs`` object."""


class DatasetRow(NamedTuple):
    """A row of a data set, parsed as a conversation."""

    messages: list[Any]
    """The question, or all messages that precede the answer."""
    reply: ParsedResponse
    """The answer."""
    unplaced: tuple[Unplaced, ...]
    """Other content of the row that could not be placed."""


def parse_row(record: Mapping[str, Any]) -> DatasetRow | None:
    """Return the question and the answer in a record, or ``None`` if the record is not a row of a data set.
    Raise ``AuthorError`` (without a location) if the response cannot be assembled."""
    if (found := _parse_plain_row(record)) is not None:
        return found
    rows = (_parse_run(record, asked, answered) for asked, answered in _RUN_KEYS)
    return next(filter(None, rows), None)


def _parse_run(record: Mapping[str, Any], question_key: str, answer_key: str) -> DatasetRow | None:
    inputs, outputs = read_json(record.get(question_key)), read_json(record.get(answer_key))
    question = _find_question(inputs) if isinstance(inputs, dict) else None
    messages = _question_messages(question)
    if messages is None or not isinstance(outputs, dict | str):
        return None
    other_inputs = {key: value for key, value in inputs.items() if value is not question}
    answer, rest = _find_answer(messages, outputs)
    unplaced = (
        *_find_unplaced(_without(record, question_key, answer_key)),
        *_find_unplaced(other_inputs),
        *_find_unplaced(rest),
    )
    return DatasetRow(messages, _parse_reply(messages, answer), unplaced)


def is_row(record: Mapping[str, Any]) -> bool:
    """Check whether an object in a list is a row of a data set rather than a message in a conversation."""
    if "role" in record:
        return False
    question = record.get(_question_key(record))
    is_run = any(
        other in record and isinstance(read_json(record.get(one)), dict) for one, other in _RUN_KEYS[:2]
    )
    return is_run or (_question_messages(question) is not None and any(key in record for key in ANSWER_KEYS))


def _parse_plain_row(record: Mapping[str, Any]) -> DatasetRow | None:
    question_key = _question_key(record)
    answer_key = next((key for key in ANSWER_KEYS if key in record), "")
    messages = _question_messages(record[question_key]) if question_key and answer_key else None
    if messages is None:
        return None
    rest = _without(record, question_key, answer_key)
    return DatasetRow(messages, _parse_reply(messages, record[answer_key]), tuple(_find_unplaced(rest)))


def _without(fields: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if key not in keys}


def _question_key(record: Mapping[str, Any]) -> str:
    """Return the key that contains the record's question, or an empty string if there is none."""
    return next((key for key in QUESTION_KEYS if record.get(key) not in (None, "")), "")


def parse_question(inputs: Mapping[str, Any]) -> list[Any] | None:
    """Return the question in the inputs of a run. The question is the value under a known key or, if there is
    no such key, the only string."""
    return _question_messages(_find_question(inputs))


def parse_answer(messages: list[Any], outputs: Any) -> ParsedResponse:
    """Return the answer in the outputs of a run. ``is_known`` is false if the answer is an object whose
    meaning is unknown."""
    answer, _ = _find_answer(messages, outputs)
    is_object = isinstance(answer, dict) and not parse_response(messages, answer).is_known
    return _parse_reply(messages, answer)._replace(is_known=not is_object)


def _find_question(inputs: Mapping[str, Any]) -> Any:
    return first_nonempty(QUESTION_KEYS, inputs) or _only_text(inputs)


def _question_messages(value: Any) -> list[Any] | None:
    """Convert a string, a number or a list of messages to the list of messages that precede the answer."""
    match value:
        case bool():
            return None
        case str() if value.strip():
            listed = read_json(value)
            return listed if _are_messages(listed) else [{"role": "user", "content": value}]
        case int() | float():
            return [{"role": "user", "content": json.dumps(value)}]
    return value if _are_messages(value) else None


def _are_messages(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(each, dict) for each in value)


def _only_text(inputs: Mapping[str, Any]) -> Any:
    """Return the only string in an object, or ``None`` if the object contains no strings or more than one."""
    texts = [value for value in inputs.values() if isinstance(value, str) and value.strip()]
    return texts[0] if len(texts) == 1 else None


def _find_answer(messages: list[Any], outputs: Any) -> tuple[Any, Mapping[str, Any]]:
    """Return the answer of a run and the rest of its outputs. For a model run, the answer is the model's
    response. For a chain run, the answer is a string under a known key or, if there is no such key, the only
    output."""
    if not isinstance(outputs, dict) or not outputs or parse_response(messages, outputs).is_known:
        return outputs, {}
    keys = [
        key for key in (*ANSWER_KEYS, *_MORE_ANSWER_KEYS) if isinstance(outputs.get(key), str | int | float)
    ]
    keys = keys or (list(outputs) if len(outputs) == 1 else [])
    if not keys:
        return outputs, {}
    return outputs[keys[0]], _without(outputs, keys[0])


def _parse_reply(messages: list[Any], answer: Any) -> ParsedResponse:
    """Parse a string, a list of messages or a model's response. Any other JSON value (a number, an object)
    becomes a string that contains its JSON."""
    match answer:
        case None:
            return ParsedResponse([], failure=NO_ANSWER)
        case str():
            return (
                parse_response(messages, answer) if answer.strip() else ParsedResponse([], failure=NO_ANSWER)
            )
        case list() if _are_messages(answer):
            return ParsedResponse(new_messages(messages, answer))
        case dict() if answer:
            reply = parse_response(messages, answer)
            if reply.is_known or reply.failure:
                return reply
    return parse_response(messages, json.dumps(answer, ensure_ascii=False))


NO_ANSWER = "the row has no answer"


def _find_unplaced(record: Mapping[str, Any]) -> Iterator[Unplaced]:
    """Yield the remaining values that may contain messages: lists of objects, and lists of lists (such as
    pairs of strings from an earlier conversation)."""
    found = {each.names[0]: each for each in unplaced_in_record(record, ()) if each.names}
    for key, value in record.items():
        is_named = key == "child_run_ids" and bool(value)  # LangSmith's nested runs
        if isinstance(value, list) and (is_named or any(isinstance(each, list) and each for each in value)):
            found.setdefault(str(key), Unplaced(f"'{str(key)[:40]}' in the record", (str(key),), value))
    yield from found.values()
