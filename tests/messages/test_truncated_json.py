"""JSON messages that a tracer cut off: recognized whatever was lost, and never prose or whole JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agenteval.messages.truncated_json import (
    is_truncated_json,
    is_truncated_message,
    make_truncated_message,
)

CALL = {"id": "c1", "type": "function", "function": {"name": "refund", "arguments": '{"order": "A-7"}'}}
LISTS: list[Any] = [
    [{"role": "user", "content": "Hello"}],
    [{"content": "first the content", "role": "user"}],
    [{"id": "m1", "note": "other keys first", "role": "assistant", "tool_calls": [CALL]}],
    [[{"role": "user", "content": "a list of lists"}]],
    [{"parts": [{"text": "parts"}]}],
    {"messages": [{"role": "user", "content": "an object"}]},
    {"choices": [{"message": {"role": "assistant", "content": "a response"}}]},
    [{"id": "x", "function_call": {"name": "refund", "arguments": "{}"}}],
]


@pytest.mark.parametrize("whole", LISTS, ids=lambda whole: json.dumps(whole)[:30])
def test_a_list_is_recognized_without_its_end_and_is_none_with_it(whole: Any) -> None:
    text = json.dumps(whole)
    for end in (1, 2, 5):
        assert is_truncated_json(text[:-end])
    assert is_truncated_json(f"{text[:-1]}...")
    assert not is_truncated_json(text)
    assert not is_truncated_json(whole)


@pytest.mark.parametrize(
    "text",
    [
        "Your order is on its way",
        '[1] the source of "role": a footnote',
        "{name}, your order is here",
        '[{"order": "A-7", "price": 12',
        '{"city": "Oslo"',
        "",
        "[",
    ],
)
def test_prose_and_other_values_are_not_messages(text: str) -> None:
    assert not is_truncated_json(text)


def test_the_message_in_its_place_is_marked() -> None:
    message = make_truncated_message("content", '[{"role": "us')
    assert message["content"] == '[{"role": "us'
    assert is_truncated_message(message)
    assert not is_truncated_message({"type": "text", "content": "messages cut off"})
    assert not is_truncated_message("messages cut off")
