"""Rows of data sets: where the question stands, what the answer is, and what is left over."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agenteval.importers.dataset_rows import is_row, parse_answer, parse_question, parse_row

HI = [{"role": "user", "content": "Hi"}]
HELLO = [{"role": "assistant", "content": "Hello"}]
TALK = [
    {"role": "user", "content": "1"},
    {"role": "assistant", "content": "2"},
    {"role": "user", "content": "3"},
]
MODELS = {"choices": [{"message": HELLO[0]}]}


def said(messages: list[Any]) -> list[Any]:
    return [(each.get("role"), each.get("content")) for each in messages]


@pytest.mark.parametrize("answer_key", ["output", "completion", "response", "answer"])
@pytest.mark.parametrize("question_key", ["input", "prompt", "query", "question"])
def test_a_question_beside_its_answer(question_key: str, answer_key: str) -> None:
    row = parse_row({question_key: "Hi", answer_key: "Hello"})
    assert row is not None
    assert (row.messages, row.reply.messages, row.unplaced) == (HI, HELLO, ())


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"input": "Hi"},
        {"output": "Hello"},
        {"input": "", "output": "Hello"},
        {"input": None, "output": "Hello"},
        {"input": "  ", "output": "Hello"},
        {"input": True, "output": "Hello"},
        {"input": [], "output": "Hello"},
        {"input": ["Hi"], "output": "Hello"},
        {"input": {"a": "Hi", "b": "Ho"}, "output": "Hello"},
        {"inputs": {}, "outputs": {"answer": "Hello"}},
        {"inputs": "Hi", "outputs": {"answer": "Hello"}},
        {"inputs": {"question": "Hi"}, "outputs": None},
        {"inputs": {"question": "Hi"}, "outputs": ["Hello"]},
        {"inputs": {"question": "Hi"}},
    ],
)
def test_what_is_no_row(record: dict[str, Any]) -> None:
    assert parse_row(record) is None


@pytest.mark.parametrize(
    ("question", "messages"),
    [
        ("Hi", HI),
        (7, [{"role": "user", "content": "7"}]),
        (0, [{"role": "user", "content": "0"}]),
        (1.5, [{"role": "user", "content": "1.5"}]),
        (TALK, TALK),
        (json.dumps(TALK), TALK),
        ("[1, 2]", [{"role": "user", "content": "[1, 2]"}]),
        ("[]", [{"role": "user", "content": "[]"}]),
        ('{"a": 1}', [{"role": "user", "content": '{"a": 1}'}]),
    ],
)
def test_questions_in_every_form(question: Any, messages: list[Any]) -> None:
    row = parse_row({"input": question, "output": "Hello"})
    assert row is not None
    assert row.messages == messages
    assert row.reply.messages == HELLO


def test_the_first_question_that_is_not_empty_and_the_first_answer() -> None:
    row = parse_row({"query": "Hi", "input": "", "answer": "Hello", "completion": "No"})
    assert row is not None
    assert (said(row.messages), said(row.reply.messages)) == ([("user", "Hi")], [("assistant", "No")])


@pytest.mark.parametrize(
    ("answer", "texts"),
    [
        ("Hello", ["Hello"]),
        (7, ["7"]),
        (0, ["0"]),
        (False, ["false"]),
        ({"ä": 1}, ['{"ä": 1}']),
        ({}, ["{}"]),
        ([], ["[]"]),
        ([1], ["[1]"]),
        (MODELS, ["Hello"]),
        (json.dumps(MODELS), ["Hello"]),
        (HELLO, ["Hello"]),
        ([*HI, *HELLO], ["Hello"]),  # a graph returns all of its messages
    ],
)
def test_answers_in_every_form(answer: Any, texts: list[str]) -> None:
    row = parse_row({"input": "Hi", "output": answer})
    assert row is not None
    assert [each["content"] for each in row.reply.messages] == texts
    assert not row.reply.failure


@pytest.mark.parametrize("answer", [None, "", "  ", {"error": {"message": "busy"}}])
def test_a_row_without_an_answer(answer: Any) -> None:
    row = parse_row({"input": "Hi", "output": answer})
    assert row is not None
    assert row.reply.messages == []
    assert row.reply.failure


CALLS = [{"name": "find", "arguments": {}}]


@pytest.mark.parametrize(
    ("more", "names"),
    [
        ({"id": 1, "expected": "Hello", "tags": ["a"]}, []),
        ({"steps": CALLS}, ["steps"]),
        ({"earlier": [["Hi", "Ho"]]}, ["earlier"]),
        ({"earlier": [[]]}, []),
        ({"earlier": []}, []),
        ({"child_run_ids": ["a"]}, ["child_run_ids"]),
        ({"child_run_ids": []}, []),
        ({"other_ids": ["a"]}, []),
    ],
)
def test_what_else_a_row_holds(more: dict[str, Any], names: list[str]) -> None:
    row = parse_row({"input": "Hi", "output": "Hello", **more})
    assert row is not None
    assert [each.names[0] for each in row.unplaced] == names


def test_of_two_kinds_of_entries_one_field_is_told_once() -> None:
    row = parse_row({"input": "Hi", "output": "Hello", "steps": [*CALLS, ["a", "b"]], "child_run_ids": ["x"]})
    assert row is not None
    assert sorted(each.names[0] for each in row.unplaced) == ["child_run_ids", "steps"]


# ── runs ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("keys", [("inputs", "outputs"), ("inputs", "output"), ("input", "output")])
@pytest.mark.parametrize("as_text", [False, True])
def test_a_run_that_was_traced(keys: tuple[str, str], as_text: bool) -> None:
    inputs, outputs = {"question": "Hi", "k": 3}, {"answer": "Hello"}
    values = map(json.dumps, (inputs, outputs)) if as_text and keys[0] == "inputs" else (inputs, outputs)
    row = parse_row(dict(zip(keys, values, strict=True)))
    assert row is not None
    assert (row.messages, row.reply.messages, row.unplaced) == (HI, HELLO, ())


@pytest.mark.parametrize(
    ("outputs", "answer"),
    [
        ("Hello", "Hello"),
        ({"answer": "Hello"}, "Hello"),
        ({"output": "Hello", "answer": "No"}, "Hello"),
        *[({key: "Hello", "x": "No"}, "Hello") for key in ("completion", "response", "content", "result")],
        ({"text": "Hello", "x": 1}, "Hello"),
        ({"score": 3, "answer": 7}, "7"),
        ({"anything": "Hello"}, "Hello"),
        ({"anything": {"a": 1}}, '{"a": 1}'),
        ({"answer": ["Hello"], "x": 1}, '{"answer": ["Hello"], "x": 1}'),
        ({"a": "x", "b": "y"}, '{"a": "x", "b": "y"}'),
        (MODELS, "Hello"),
        ({"messages": [*HI, *HELLO]}, "Hello"),
    ],
)
def test_the_answer_in_the_outputs_of_a_run(outputs: Any, answer: str) -> None:
    row = parse_row({"inputs": {"question": "Hi"}, "outputs": outputs})
    assert row is not None
    assert [each["content"] for each in row.reply.messages] == [answer]


def test_what_else_a_run_holds_is_told_wherever_it_is() -> None:
    record = {
        "steps": CALLS,
        "inputs": {"question": "Hi", "turns": CALLS},
        "outputs": {"answer": "Hello", "trajectory": CALLS},
    }
    row = parse_row(record)
    assert row is not None
    assert [each.names[0] for each in row.unplaced] == ["steps", "turns", "trajectory"]


@pytest.mark.parametrize(
    ("record", "found"),
    [
        ({}, False),
        ({"input": "Hi"}, False),
        ({"output": "Hello"}, False),
        ({"input": "Hi", "output": None}, True),
        ({"role": "user", "input": "Hi", "output": "Hello"}, False),
        ({"question": 0, "answer": 1}, True),
        ({"question": " ", "answer": 1}, False),
        ({"inputs": {}, "outputs": None}, True),
        ({"inputs": {}, "output": None}, True),
        ({"inputs": {}}, False),
        ({"inputs": '{"question": "Hi"}', "outputs": '{"answer": "Hello"}'}, True),
        ({"inputs": '{"question": "Hi"}', "output": "Hello"}, True),
        ({"inputs": '{"question": "Hi"}'}, False),
        ({"inputs": "Hi", "outputs": "Hello"}, False),
        ({"inputs": [], "outputs": {}}, False),
        ({"input": {}, "output": {}}, False),
    ],
)
def test_which_objects_in_a_list_are_rows(record: dict[str, Any], found: bool) -> None:
    assert is_row(record) is found


@pytest.mark.parametrize(
    ("inputs", "messages"),
    [
        ({}, None),
        ({"question": "Hi", "topic": "x"}, HI),
        ({"input": "Hi", "question": "x"}, HI),
        ({"topic": "Hi"}, HI),
        ({"topic": "Hi", "blank": " ", "k": 3}, HI),
        ({"topic": "Hi", "other": "x"}, None),
        ({"k": 3}, None),
        ({"query": TALK}, TALK),
    ],
)
def test_the_question_in_the_inputs_of_a_run(inputs: dict[str, Any], messages: Any) -> None:
    assert parse_question(inputs) == messages


@pytest.mark.parametrize(
    ("outputs", "text", "is_known"),
    [
        ("Hello", "Hello", True),
        ({"answer": "Hello"}, "Hello", True),
        (MODELS, "Hello", True),
        ({"a": 1, "b": 2}, '{"a": 1, "b": 2}', False),
        ({"state": {"a": 1}}, '{"a": 1}', False),
        (7, "7", True),
    ],
)
def test_whether_an_output_is_known_to_be_an_answer(outputs: Any, text: str, is_known: bool) -> None:
    reply = parse_answer(HI, outputs)
    assert [each["content"] for each in reply.messages] == [text]
    assert reply.is_known is is_known
