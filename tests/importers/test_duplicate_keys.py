"""A key that is written twice in one object: of two lists of messages, one would be lost."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agenteval.importers.duplicate_keys import KeyCounts, first_repeated_key, repeated_key


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("{}", ""),
        ("[]", ""),
        ("7", ""),
        ('"messages"', ""),
        ('{"messages": [], "messages": []}', "messages"),
        ('{"messages": [], "id": 1, "id": 2}', ""),  # no message is lost
        ('{"id": 1, "id": 2}', ""),
        *[
            (f'{{"{key}": 1, "{key}": 2}}', key)
            for key in ("messages", "conversation", "request", "response", "choices", "input", "output")
        ],
        # in one of several records
        ('[{"messages": []}, {"messages": [], "messages": []}]', "messages"),
        ('[{"messages": []}, {"messages": []}]', ""),
        ('[7, {"messages": [], "messages": []}]', "messages"),
        # one level below the record
        ('{"request": {"messages": [], "messages": []}}', "messages"),
        ('{"request": {"messages": []}, "response": {"messages": []}}', ""),
        # the same word elsewhere
        ('{"messages": [{"role": "user", "content": "messages"}]}', ""),
        ('{"messages": [{"role": "user", "name": "messages", "content": "a", "content": "b"}]}', "content"),
        ('{"messages": [{"messages": 1}], "a": {"id": 1, "id": 2}}', ""),
        # of several, the first that is closed
        ('{"messages": [{"role": "user", "role": "assistant"}], "messages": []}', "role"),
        ('{"output": 1, "output": 2, "input": 1, "input": 2}', "output"),
        ('{"messages": [{"tool_calls": 1, "tool_calls": 2}], "messages": []}', "tool_calls"),
        ('{"messages": 1, "tools": 1, "tools": 2, "error": 1, "messages": 2}', "tools"),
        ('{"messages": 1, "error": 1, "error": 2, "messages": 2}', "error"),
    ],
)
def test_the_first_key_that_is_there_twice(text: str, key: str) -> None:
    assert repeated_key(json.loads(text), text.encode()) == key


@pytest.mark.parametrize(
    "data", [b'{"messages": [], "messages": [', b"[" * 100_000 + b'"messages" "messages"']
)
def test_data_that_only_another_parser_reads(data: bytes) -> None:
    value: Any = {"messages": []}
    assert repeated_key(value, data) == ""


@pytest.mark.parametrize(
    "items",
    [
        ['{"messages": []}', '{"messages": []}'],
        ['{"messages": [], "messages": []}'],
        ['{"messages": []}', "7", '{"messages": [], "messages": []}'],
        # the word in one item, a repeated key in another
        ['{"messages": ["messages"]}', '{"content": 1, "content": 2}'],
        ['[["messages"]]', '{"messages": [], "a": {"role": 1, "role": 2}}'],
        ['[["messages"]]', '{"role": 1, "role": 2}'],
        ['{"request": {"messages": []}}', '{"messages": [{"role": 1, "role": 2}]}'],
    ],
)
def test_items_one_by_one_say_what_their_list_says(items: list[str]) -> None:
    counts = KeyCounts()
    for item in items:
        counts.add(json.loads(item), item.encode())
    found = [key for item in items if (key := first_repeated_key(item.encode()))]
    text = f"[{', '.join(items)}]"
    expected = repeated_key(json.loads(text), text.encode())
    assert (found[0] if counts.may_repeat and found else "") == expected
