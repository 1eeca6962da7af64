"""A key that is written twice in one object: of two lists of messages, one would be lost."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agenteval.importers.duplicate_keys import repeated_key


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
