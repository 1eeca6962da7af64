"""Lists of messages in the format of one framework: where they are found, and what is handed on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from agenteval.messages.calls import OnWarning
from agenteval.messages.dialects.message_lists import CandidateList, MessageList, unread_fields

ONE, TWO, OTHER = {"said": "a"}, {"said": "b"}, {"told": "c"}


def is_message(message: Mapping[str, Any]) -> bool:
    return "said" in message


def to_openai(messages: Sequence[Any], warn: OnWarning) -> Iterator[Any]:
    for each in messages:
        warn(f"note {each['said']}")
        warn("note")
        yield {"content": each["said"]}


DIALECT = MessageList("toy", is_message, to_openai, known_record_fields=frozenset({"state"}))
READ = {"messages": [{"content": "a"}, {"content": "b"}], "notes": ["note a", "note", "note b"]}


@pytest.mark.parametrize(
    ("record", "rest"),
    [
        ([ONE, TWO], {}),
        ({"messages": [ONE, TWO], "id": 1}, {"id": 1}),
        ({"conversation": [ONE, TWO], "id": 1}, {"id": 1}),
        ({"conversations": [ONE, TWO]}, {}),
        ({"events": [ONE, TWO], "state": {}}, {}),
        ({"turns": [ONE, TWO], "notes": ["x"], "outcome": 1}, {}),
        ({"data": [ONE, TWO], "messages": "none"}, {}),  # overwritten by what was read
        ({"events": [ONE, TWO], "conversation": [OTHER]}, {"conversation": [OTHER]}),
        ({"events": [OTHER], "conversation": [ONE, TWO]}, {"events": [OTHER]}),
        ({"events": [ONE, TWO], "data": [OTHER, OTHER]}, {"data": [OTHER, OTHER]}),
    ],
)
def test_a_list_is_found_and_read(record: Any, rest: dict[str, Any]) -> None:
    assert DIALECT.matches(record)
    assert DIALECT.read(record) == [{**rest, **READ}]


@pytest.mark.parametrize(
    "record",
    [
        [],
        [ONE, OTHER],
        [ONE, "text"],
        ["text", ONE],
        [{**ONE, "role": "user"}],
        {"messages": [], "events": [ONE]},
        {"messages": [OTHER], "events": [ONE]},  # usual messages go before all others
        {"log": [ONE]},
        {"events": ONE},
        {},
        "text",
        None,
    ],
)
def test_another_record_is_not_read(record: Any) -> None:
    assert not DIALECT.matches(record)
    assert DIALECT.read(record) == []


def test_only_the_first_message_must_have_no_role() -> None:
    assert DIALECT.matches([ONE, {**TWO, "role": "user"}])


def test_the_rest_of_a_record() -> None:
    assert CandidateList([ONE]).rest == {}
    assert CandidateList([ONE], {"a": [ONE], "b": 1, "notes": 2, "outcome": 3}, "a").rest == {"b": 1}


CALL = {"type": "tool_use", "name": "cancel", "input": {}}


@pytest.mark.parametrize(
    ("value", "unknown", "known"),
    [
        ("text", False, False),
        (5, False, False),
        (None, False, False),
        ({}, False, False),
        ([1], False, False),
        ({"a": 1}, True, False),
        ([{"a": 1}], True, False),
        (CALL, True, True),
        ({"deep": [CALL]}, True, True),
    ],
)
def test_fields_that_may_contain_calls(value: Any, unknown: bool, known: bool) -> None:
    entry = {"read": value, "known": value, "other": value}
    found = unread_fields(entry, ("read",), ("known",))
    assert found.keys() == {name for name, kept in (("known", known), ("other", unknown)) if kept}
    assert all(each is value for each in found.values())
