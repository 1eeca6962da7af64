"""Messages of Pydantic AI, part by part."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.messages.dialects.pydantic_ai import importer


def request(*parts: Any, **more: Any) -> dict[str, Any]:
    return {"kind": "request", "parts": list(parts), **more}


def response(*parts: Any, **more: Any) -> dict[str, Any]:
    return {"kind": "response", "parts": list(parts), **more}


def part(kind: str, **fields: Any) -> dict[str, Any]:
    return {"part_kind": kind, **fields}


def converted(*messages: Any) -> list[Any]:
    (record,) = importer.read(list(messages))
    assert record["notes"] == []
    found: list[Any] = record["messages"]
    return found


ASKED = part("user-prompt", content="Hi")
NOTE = {"anything": "x"}
CALL = {"type": "tool_use", "name": "cancel", "input": {}}


@pytest.mark.parametrize(
    ("record", "matches"),
    [
        ([request(ASKED)], True),
        ([response()], True),
        ([request(ASKED), response()], True),
        ({"messages": [request(ASKED)]}, True),
        ({"turns": [request(ASKED)]}, True),
        ([{"kind": "event", "parts": []}], False),
        ([{"kind": "request"}], False),
        ([{"kind": "request", "parts": {}}], False),
        ([request({"content": "Hi"})], False),
        ([request("Hi")], False),
        ([request(ASKED, role="user")], False),
        ([request(ASKED), {"role": "user"}], False),
        ([], False),
    ],
)
def test_what_is_read(record: Any, matches: bool) -> None:
    assert importer.matches(record) is matches


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (ASKED, {"role": "user", "content": "Hi"}),
        (part("system-prompt", content="Be brief."), {"role": "system", "content": "Be brief."}),
        (part("user-prompt", content=NOTE), {"role": "user", "content": NOTE}),
        (
            part("user-prompt", content=["Look", {"kind": "binary", "data": "x"}, {"kind": "image-url"}]),
            {
                "role": "user",
                "content": [
                    "Look",
                    {"type": "file", "kind": "binary", "data": "x"},
                    {"type": "image-url", "kind": "image-url"},
                ],
            },
        ),
        (
            part("user-prompt", content=[{"kind": "binary", "type": "own"}, {"kind": 5}, 5]),
            {"role": "user", "content": [{"kind": "binary", "type": "own"}, {"kind": 5}, 5]},
        ),
        (part("note", content="x"), {"part_kind": "note", "content": "x", "role": "note"}),
        # fields that are not read are handed on if they may contain a call
        (part("user-prompt", content="Hi", timestamp="now"), {"role": "user", "content": "Hi"}),
        (part("user-prompt", content="Hi", other=NOTE), {"role": "user", "content": "Hi", "other": NOTE}),
        (part("user-prompt", content="Hi", provider_details=NOTE), {"role": "user", "content": "Hi"}),
        (part("user-prompt", content="Hi", retry=NOTE), {"role": "user", "content": "Hi", "retry": NOTE}),
    ],
)
def test_a_part_of_a_request(given: Any, message: Any) -> None:
    assert converted(request(given)) == [message]


RESULT = {"role": "tool", "content": "ok", "is_error": False, "name": "find", "tool_call_id": "c"}


@pytest.mark.parametrize(
    ("kind", "fields", "more"),
    [
        ("tool-return", {}, {}),
        ("tool-return", {"outcome": "success"}, {}),
        ("tool-return", {"outcome": "failed"}, {"is_error": True}),
        ("tool-return", {"outcome": "denied"}, {"is_error": True}),
        ("retry-prompt", {}, {"is_error": True}),
        ("tool-return", {"metadata": NOTE}, {"artifact": NOTE}),
        ("tool-return", {"metadata": {}}, {}),
        ("tool-return", {"retry": NOTE, "vendor_details": NOTE, "provider_details": NOTE}, {}),
        ("retry-prompt", {"retry": NOTE}, {"is_error": True, "retry": NOTE}),
        ("tool-return", {"retry": CALL}, {"retry": CALL}),
        ("tool-return", {"other": NOTE}, {"other": NOTE}),
    ],
)
def test_a_result(kind: str, fields: dict[str, Any], more: dict[str, Any]) -> None:
    given = part(kind, content="ok", tool_name="find", tool_call_id="c", **fields)
    assert converted(request(given)) == [{**RESULT, **more}]


def test_a_result_without_a_call() -> None:
    (found,) = converted(request(part("tool-return", content=None)))
    assert (found["name"], found["tool_call_id"], found["is_error"]) == (None, None, False)


def test_a_retry_of_no_tool_is_omitted_once_told() -> None:
    retry = part("retry-prompt", content="Answer in JSON.")
    (record,) = importer.read([request(retry, ASKED, retry)])
    assert record["messages"] == [{"role": "user", "content": "Hi"}]
    assert len(record["notes"]) == 1


@pytest.mark.parametrize(
    ("kind", "converted_kind"),
    [
        ("text", "text"),
        ("thinking", "thinking"),
        ("tool-call", "tool_call"),
        ("tool-return", "tool_result"),
        ("builtin-tool-call", "server_tool_use"),
        ("builtin-tool-return", "tool_result"),
        ("builtin-text", "builtin-text"),
    ],
)
def test_the_kind_of_a_part_of_a_reply(kind: str, converted_kind: str) -> None:
    given = part(kind, content="x", args=NOTE, tool_name="f", tool_call_id="c", id="lost")
    assert converted(response(given)) == [
        {
            "role": "assistant",
            "content": [
                {
                    "type": converted_kind,
                    "content": "x",
                    "args": NOTE,
                    "tool_name": "f",
                    "tool_call_id": "c",
                }
            ],
            "usage": None,
        }
    ]


def test_fields_of_a_reply_that_may_contain_a_call_are_handed_on() -> None:
    given = part("text", content="x", other=NOTE, metadata=NOTE, vendor_details=CALL)
    (found,) = converted(response(given, usage={"n": 1}, more=NOTE, metadata=NOTE, provider_details=CALL))
    assert found == {
        "role": "assistant",
        "content": [{"type": "text", "content": "x", "other": NOTE, "vendor_details": CALL}],
        "usage": {"n": 1},
        "more": NOTE,
        "provider_details": CALL,
    }


def test_fields_of_a_request_that_may_contain_a_call_follow_its_parts() -> None:
    asked = {"role": "user", "content": "Hi"}
    assert converted(request(ASKED, more=NOTE, metadata=NOTE)) == [asked, {"more": NOTE}]
    assert converted(request(ASKED, metadata=CALL)) == [asked, {"metadata": CALL}]


def test_the_same_instructions_are_told_once() -> None:
    given = [
        request(ASKED, instructions="a"),
        response(instructions="a"),
        request(instructions="b"),
        request(instructions="a"),
        request(instructions=None),
        request(instructions=[]),
    ]
    found = [each["content"] for each in converted(*given) if each["role"] == "system"]
    assert found == ["a", "b"]
    assert converted(given[0])[0] == {"role": "system", "content": "a"}
