"""Messages of a record: a list with or without its answer, and requests with their responses."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agenteval.core.errors import AuthorError
from agenteval.importers.exchanges import (
    MESSAGE_KEYS,
    LoggedMessages,
    find_logged_messages,
    is_exchange,
    request_messages,
)

HI, HELLO = {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}
COMPLETION = {"choices": [{"message": HELLO}]}
BUSY = {"error": {"message": "busy"}}
TOOLS = [{"name": "find"}]


def found(record: dict[str, Any]) -> LoggedMessages:
    logged = find_logged_messages(record)
    assert logged is not None
    return logged


def said(record: dict[str, Any]) -> list[str]:
    return [each.get("content") for each in found(record).messages]


# ── lists ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("key", MESSAGE_KEYS)
@pytest.mark.parametrize("form", ["list", "text", "object", "list in a list"])
def test_messages_under_every_key_and_in_every_form(key: str, form: str) -> None:
    listed = [HI, HELLO]
    forms = {
        "list": listed,
        "text": json.dumps(listed),
        "object": {"messages": listed},
        "list in a list": [listed],
    }
    assert found({key: forms[form], "id": 1}).messages == listed


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"messages": "Hi"},
        {"messages": {"a": []}},
        {"messages": None},
        {"log": [HI, HELLO]},
        {"input": "Hi"},
        {"request": {"a": 1}, "response": COMPLETION},
    ],
)
def test_a_record_without_messages(record: dict[str, Any]) -> None:
    assert find_logged_messages(record) is None


@pytest.mark.parametrize(
    ("record", "texts"),
    [
        ({"history": [HI], "messages": [HELLO]}, ["Hello"]),
        ({"messages": [{"step": 1}], "history": [HI, HELLO]}, ["Hi", "Hello"]),
        ({"messages": [], "history": [HI, HELLO]}, ["Hi", "Hello"]),
        ({"trajectory": [{"step": 1}], "turns": [{"step": 2}]}, [None]),
        ({"messages": [7, {"type": "human", "data": {"content": "x"}}], "history": [HI]}, None),
    ],
)
def test_of_several_lists_the_first_with_roles_is_read(record: dict[str, Any], texts: Any) -> None:
    logged = found(record)
    assert logged.messages == record["messages"] if texts is None else said(record) == texts


@pytest.mark.parametrize(
    ("record", "texts"),
    [
        ({"history": [HI, HELLO], "question": "Ho", "answer": "Yes"}, ["Hi", "Hello", "Ho", "Yes"]),
        ({"history": [], "query": "Ho", "answer": "Yes"}, ["Ho", "Yes"]),
        ({"history": [HI], "question": "Hi", "answer": "Yes"}, ["Hi", "Yes"]),  # it is there already
        ({"history": [{**HI, "role": "assistant"}], "question": "Hi", "answer": "Y"}, ["Hi", "Hi", "Y"]),
        ({"history": [HI, HELLO], "question": ""}, ["Hi", "Hello"]),
        ({"messages": [HI, HELLO], "question": "Ho"}, ["Hi", "Hello"]),
    ],
)
def test_the_question_after_a_history(record: dict[str, Any], texts: list[str]) -> None:
    assert said(record) == texts


@pytest.mark.parametrize(
    ("more", "is_lost"),
    [({"answer": ""}, True), ({"output": None}, True), ({"answer": "Yes"}, False), ({}, False)],
)
def test_a_row_with_a_history_and_an_empty_answer_has_none(more: dict[str, Any], is_lost: bool) -> None:
    assert bool(found({"history": [HI, HELLO], "question": "Ho", **more}).lost) is is_lost
    assert bool(found({"history": [], "question": "Ho", **more}).lost) is is_lost
    assert not found({"history": [HI], **more}).lost  # no row


# ── an answer beside the messages ────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("more", "texts"),
    [
        ({}, ["Hi"]),
        *[({key: "Hello"}, ["Hi", "Hello"]) for key in ("response", "output", "completion", "answer")],
        (COMPLETION, ["Hi", "Hello"]),
        ({"response": COMPLETION}, ["Hi", "Hello"]),
        ({"response": json.dumps(COMPLETION)}, ["Hi", "Hello"]),
        ({"output": [HELLO]}, ["Hi", "Hello"]),
        ({**COMPLETION, "response": "No"}, ["Hi", "Hello"]),
        ({"response": "Hello", "answer": "No"}, ["Hi", "Hello"]),
        ({"answer": ""}, ["Hi"]),
        ({"answer": {}, "completion": "Hello"}, ["Hi", "Hello"]),
    ],
)
def test_an_answer_of_its_own(more: dict[str, Any], texts: list[str]) -> None:
    assert said({"messages": [HI], **more}) == texts


@pytest.mark.parametrize(
    ("more", "texts", "notes"),
    [
        ({"answer": "Hello"}, ["Hi", "Hello"], 0),
        ({"answer": HELLO}, ["Hi", "Hello"], 0),
        ({"answer": ""}, ["Hi", "Hello"], 0),
        ({"answer": "The reference"}, ["Hi", "Hello"], 1),
        ({"response": "Another"}, ["Hi", "Hello"], 1),
        ({"response": {**COMPLETION, "id": 1}}, ["Hi", "Hello"], 0),
    ],
)
def test_beside_messages_that_are_answered(more: dict[str, Any], texts: list[str], notes: int) -> None:
    record = {"messages": [HI, HELLO], **more}
    assert said(record) == texts
    assert len(found(record).notes) == notes
    assert all(f"'{next(iter(more))}'" in note for note in found(record).notes)


@pytest.mark.parametrize(
    ("record", "word"),
    [
        ({"messages": [HI], "response": BUSY}, "busy"),
        ({"messages": [HI], "response": ""}, "no response"),
        ({"messages": [HI], "error": "broken"}, "broken"),
        ({"messages": [HI], "error": None}, ""),
        ({"messages": [HI, HELLO], "error": "broken"}, ""),
        ({"messages": [HI], "error": "broken", "answer": "Hello"}, ""),
        ({"messages": [HI], "response": BUSY, "error": "broken"}, "busy"),
        ({"messages": [HI], "response": BUSY, "answer": "Hello"}, ""),
    ],
)
def test_why_the_messages_were_not_answered(record: dict[str, Any], word: str) -> None:
    lost = found(record).lost
    assert bool(lost) is bool(word)
    assert word in lost


def test_input_and_output_are_a_request_and_its_response() -> None:
    output = [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hello"}]}]
    logged = found({"input": [HI], "output": output, "answer": "No"})
    assert logged.messages == [HI, *output]
    assert found({"input": [HI], "output": None}).lost


def test_the_request_around_the_messages_and_its_settings() -> None:
    record = {"messages": {"messages": [HI], "tools": TOOLS}, "model_parameters": {"a": 1}, "answer": "Hello"}
    assert found(record).requests == ({"messages": [HI], "tools": TOOLS}, {"a": 1})
    for key in ("modelParameters", "optional_params", "invocation_params"):
        assert found({"messages": [HI, HELLO], key: '{"a": 1}'}).requests == ({"a": 1},)
    assert found({"messages": [HI, HELLO], "model_parameters": {}}).requests == ()


def test_the_body_of_the_response_is_kept() -> None:
    assert found({"messages": [HI], "response": {"body": {**COMPLETION, "id": "r"}}}).response["id"] == "r"
    assert found({"messages": [HI]}).response == {}


STEPS = [{"type": "tool_call", "name": "find", "arguments": {}}]


@pytest.mark.parametrize(
    ("record", "names"),
    [
        ({"messages": [HI, HELLO], "id": 1, "tools": TOOLS}, []),
        ({"messages": [HI, HELLO], "steps": STEPS}, ["steps"]),
        ({"messages": [HI], "steps": STEPS, "answer": "Hello"}, ["steps"]),
        ({"messages": [HI], "steps": STEPS, "error": "broken"}, ["steps"]),
        ({"messages": [HI], "steps": STEPS, "model_parameters": {}}, ["steps"]),
        ({"messages": {"messages": [HI, HELLO], "steps": STEPS}}, ["steps"]),
        ({"request": {"messages": [HI]}, "response": COMPLETION, "steps": STEPS}, ["steps"]),
        ({"request": {"messages": [HI], "steps": STEPS}, "response": COMPLETION}, ["steps"]),
        ({"request": {"messages": [HI]}, "response": COMPLETION, "optional_params": {"x": STEPS}}, []),
        ({"question": "Hi", "answer": "Hello", "steps": STEPS}, ["steps"]),
        ({"messages": [{"step": 1}], "history": [HI, HELLO]}, ["messages"]),
    ],
)
def test_what_else_a_record_holds(record: dict[str, Any], names: list[str]) -> None:
    assert [each.names[0] for each in found(record).unplaced] == names


# ── a request and its response ───────────────────────────────────────────────────────────────────

PAIRS = [
    ("request", "response"),
    ("request_body", "response_body"),
    ("body", "response"),
    ("inputs", "outputs"),
    ("inputs", "output"),
    ("kwargs", "response_obj"),
]
REQUEST = {"model": "m", "messages": [HI]}


@pytest.mark.parametrize(("asked", "answered"), PAIRS)
@pytest.mark.parametrize(
    "request_",
    [
        REQUEST,
        json.dumps(REQUEST),
        {"body": REQUEST},
        {"body": json.dumps(REQUEST)},
        {"json": {"data": REQUEST}},
        {"type": "json", "content": json.dumps(REQUEST)},
        {"model": "m", "input": "Hi"},
        {"contents": [HI]},
    ],
)
def test_a_request_with_its_response(asked: str, answered: str, request_: Any) -> None:
    record = {asked: request_, answered: COMPLETION}
    assert said(record) == ["Hi", "Hello"]
    assert is_exchange(record)


@pytest.mark.parametrize(
    "request_",
    [
        None,
        {},
        {"input": "Hi"},
        {"model": "m", "input": 7},
        {"body": {"body": {"body": REQUEST}}},
        {"content": REQUEST},
        {"messages": "Hi"},
    ],
)
def test_what_is_no_request(request_: Any) -> None:
    assert not is_exchange({"request": request_, "response": COMPLETION})


@pytest.mark.parametrize(
    ("inputs", "messages"),
    [(REQUEST, [HI]), ({"body": REQUEST}, [HI]), ({}, None), ({"messages": []}, [])],
)
def test_the_messages_of_a_request(inputs: dict[str, Any], messages: Any) -> None:
    assert request_messages(inputs) == messages


def test_of_several_pairs_the_one_with_a_response_is_read() -> None:
    other = {"messages": [{"role": "user", "content": "Ho"}]}
    assert said({"request": REQUEST, "kwargs": other, "response_obj": COMPLETION}) == ["Ho", "Hello"]
    assert said({"request": REQUEST, "kwargs": other}) == ["Hi"]


def test_a_request_without_a_response_ends_with_it() -> None:
    logged = found({"request": REQUEST})
    assert (logged.messages, logged.lost, len(logged.notes)) == ([HI], "", 1)
    logged = found({"request": {"messages": [HI, HELLO]}})
    assert (logged.messages, logged.notes) == ([HI, HELLO], ())


@pytest.mark.parametrize(
    ("more", "word", "texts"),
    [
        ({"response": None}, "no response", ["Hi"]),
        ({"response": BUSY}, "busy", ["Hi"]),
        ({"response": {"status": 503}}, "503", ["Hi"]),
        ({"error": "broken"}, "broken", ["Hi"]),
        ({"error": "broken", "response": None}, "broken", ["Hi"]),
        ({"error": "broken", "response": "Bad gateway"}, "broken", ["Hi"]),
        ({"error": "broken", "response": {"odd": 1}}, "broken", ["Hi"]),
        ({"error": "broken", "response": COMPLETION}, "", ["Hi", "Hello"]),
        ({"status_code": 500}, "500", ["Hi"]),
        ({"status_code": 200, "response": COMPLETION}, "", ["Hi", "Hello"]),
    ],
)
def test_why_a_request_was_not_answered(more: dict[str, Any], word: str, texts: list[str]) -> None:
    logged = found({"request": REQUEST, **more})
    assert bool(logged.lost) is bool(word)
    assert word in logged.lost
    assert [each["content"] for each in logged.messages] == texts


@pytest.mark.parametrize(("response", "keys"), [({"odd": 1, "more": 2}, "odd, more"), ({"a": {"b": 1}}, "a")])
def test_a_response_of_an_unknown_kind_is_refused(response: Any, keys: str) -> None:
    with pytest.raises(AuthorError) as error:
        find_logged_messages({"request": REQUEST, "response": response})
    assert keys in error.value.problems[0].what
    assert "importers" in error.value.problems[0].remedy
    answered = {"request": {"messages": [HI, HELLO]}, "response": response}
    assert said(answered) == ["Hi", "Hello"]


def test_only_the_first_keys_of_an_unknown_response_are_named() -> None:
    with pytest.raises(AuthorError) as error:
        find_logged_messages({"request": REQUEST, "response": {f"key{n}": n for n in range(9)}})
    assert "key7" in error.value.problems[0].what
    assert "key8" not in error.value.problems[0].what


def test_where_the_tools_of_a_request_may_be() -> None:
    request = {**REQUEST, "model_parameters": {"a": 1}}
    record = {"request": request, "response": COMPLETION, "optional_params": {"b": 2}}
    assert found(record).requests == (request, {"a": 1}, {"b": 2})
    assert found({"question": "Hi", "answer": "Hello", "optional_params": {"b": 2}}).requests == ({"b": 2},)


@pytest.mark.parametrize(
    ("more", "word"),
    [({"answer": None}, "no answer"), ({"answer": "", "error": "broken"}, "broken"), ({"answer": "Yes"}, "")],
)
def test_a_row_that_was_not_answered(more: dict[str, Any], word: str) -> None:
    logged = found({"question": "Hi", **more})
    assert bool(logged.lost) is bool(word)
    assert word in logged.lost
    assert len(logged.messages) == (1 if word else 2)
