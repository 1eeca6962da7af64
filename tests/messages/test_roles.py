"""The role of a recorded message, and LangChain's nested messages."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.messages.roles import is_agent_message, is_message, role_of, unwrap_message


@pytest.mark.parametrize(
    ("words", "role"),
    [
        (("user", "human", "customer", "User", "HUMAN"), "user"),
        (("assistant", "ai", "bot", "model", "agent", "Assistant"), "assistant"),
        (("tool", "function"), "tool"),
        (("system", "developer"), "system"),
        (("", "critic", "users", 7), None),
    ],
)
def test_roles(words: tuple[Any, ...], role: str | None) -> None:
    assert {role_of({"role": word}) for word in words} == {role}


@pytest.mark.parametrize(
    ("kinds", "role"),
    [
        (("human", "HumanMessageChunk"), "user"),
        (("ai", "AIMessageChunk"), "assistant"),
        (("tool", "ToolMessageChunk", "function", "FunctionMessageChunk"), "tool"),
        (("system", "SystemMessageChunk", "developer"), "system"),
        (("user", "assistant", "message", "AI", None, 1, ["ai"]), None),
    ],
)
def test_types_name_a_role_if_there_is_none(kinds: tuple[Any, ...], role: str | None) -> None:
    assert [role_of({"type": kind}) for kind in kinds] == [role] * len(kinds)
    assert [role_of({"type": kind, "role": None}) for kind in kinds] == [role] * len(kinds)


def test_a_role_goes_before_a_type() -> None:
    assert role_of({"role": "user", "type": "ai"}) == "user"
    assert role_of({"role": "critic", "type": "ai"}) is None
    assert role_of({}) is None


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"role": "user"}, True),
        ({"type": "message"}, True),
        ({"role": None, "type": "ai"}, True),
        ({"kwargs": {}}, True),
        ({"role": 1}, False),
        ({"content": "x"}, False),
        ({}, False),
        ([{"role": "user"}], False),
        ("user", False),
        (None, False),
    ],
)
def test_what_is_one_message(value: Any, expected: bool) -> None:
    assert is_message(value) is expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"role": "assistant"}, True),
        ({"role": "model"}, True),
        ({"type": "ai", "content": "x"}, True),
        ({"type": "ai", "data": {"content": "x"}}, True),
        ({"id": ["langchain", "AIMessage"], "kwargs": {"content": "x"}}, True),
        ({"role": "user", "type": "ai"}, False),
        ({"role": "user", "type": "ai", "data": {"content": "x", "role": "ai"}}, False),
        ({"id": ["langchain", "HumanMessage"], "kwargs": {"content": "x"}}, False),
        ({"content": "x"}, False),
        ("assistant", False),
        (None, False),
    ],
)
def test_what_the_agent_wrote(value: Any, expected: bool) -> None:
    assert is_agent_message(value) is expected


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ({"type": "ai", "data": {"content": "x", "id": 1}}, {"type": "ai", "content": "x", "id": 1}),
        ({"type": "ai", "id": 2, "data": {"content": "x"}}, {"type": "ai", "id": 2, "content": "x"}),
        # What is inside goes before what is around it, but the type.
        (
            {"type": "ai", "id": 2, "data": {"content": "x", "id": 3, "type": "inner"}},
            {"type": "ai", "id": 3, "content": "x"},
        ),
        ({"data": {"content": "x"}}, {"type": None, "content": "x"}),
        ({"type": "ai", "data": {"text": "x"}}, {"type": "ai", "data": {"text": "x"}}),
        ({"type": "ai", "data": "content"}, {"type": "ai", "data": "content"}),
        ({"role": "user", "content": "x"}, {"role": "user", "content": "x"}),
        ({}, {}),
    ],
)
def test_a_message_below_data(message: dict[str, Any], expected: dict[str, Any]) -> None:
    assert unwrap_message(message) == expected


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        (["langchain", "schema", "messages", "HumanMessage"], "human"),
        (["langchain", "AIMessageChunk"], "ai"),
        (["ToolMessage"], "tool"),
        (["FunctionMessage"], "function"),
        (["SystemMessage"], "system"),
        (["ChatMessage"], "ChatMessage"),
        ("AIMessage", "ai"),
        ([], ""),
        (None, ""),
    ],
)
def test_the_class_of_a_message_below_kwargs(path: Any, kind: str) -> None:
    message = {"lc": 1, "type": "constructor", "id": path, "kwargs": {"content": "x", "type": "y"}}
    assert unwrap_message(message) == {"lc": 1, "id": path, "content": "x", "type": kind}
