"""Agents that speak the Responses API or the Messages API: what they are sent, and what they answer."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from agenteval.adapters.agents.model_apis import MessagesApi, ResponsesApi
from agenteval.adapters.transport.client import HttpReply
from agenteval.core.errors import AgentError
from agenteval.core.protocols import ReadReply, TurnTools
from agenteval.core.trajectory import Message, ToolResult
from agenteval.messages.completion import UnreadableResponseError

USER: Message = {"role": "user", "content": "Hi"}
SCHEMA = {
    "type": "function",
    "function": {
        "name": "find",
        "description": "Finds.",
        "parameters": {"type": "object", "properties": {"q": {}}},
    },
}
BARE = {"type": "function", "function": {"name": "ping"}}


def asked(*ids: str, content: Any = None, arguments: str = '{"q": 1}') -> Message:
    calls = [
        {"id": each, "type": "function", "function": {"name": "find", "arguments": arguments}} for each in ids
    ]
    return {"role": "assistant", "content": content, "tool_calls": calls}


def result(call_id: str, content: str = "found") -> Message:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


async def no_call(*_: Any) -> ToolResult:
    raise AssertionError


def tools(*schemas: Any) -> TurnTools:
    return TurnTools(0, schemas, no_call)


def responses(
    messages: Sequence[Message] = (USER,),
    *schemas: Any,
    send_tools: bool = True,
    streaming: bool = False,
    **body: Any,
) -> Mapping[str, Any]:
    request = ResponsesApi(body, send_tools=send_tools, streaming=streaming).build_request(
        list(messages), tools(*schemas)
    )
    assert (request.url, request.headers) == ("", None)
    return request.body or {}


def claude(
    messages: Sequence[Message] = (USER,),
    *schemas: Any,
    send_tools: bool = True,
    streaming: bool = False,
    **body: Any,
) -> Mapping[str, Any]:
    api = MessagesApi(body, {}, send_tools=send_tools, streaming=streaming)
    return api.build_request(list(messages), tools(*schemas)).body or {}


def http(value: Any, *, stream: bool = False) -> HttpReply:
    if stream:
        events = tuple(each if isinstance(each, str) else json.dumps(each) for each in value)
        return HttpReply(200, {}, "", 1.0, events)
    return HttpReply(200, {}, value if isinstance(value, str) else json.dumps(value), 1.0)


def response_api() -> ResponsesApi:
    return ResponsesApi({}, send_tools=True, streaming=False)


def messages_api() -> MessagesApi:
    return MessagesApi({}, {}, send_tools=True, streaming=False)


# ── requests of the Responses API ────────────────────────────────────────────────────────────────

CALL = {"type": "function_call", "call_id": "1", "name": "find", "arguments": '{"q": 1}'}
OUTPUT = {"type": "function_call_output", "call_id": "1", "output": "found"}
SAID = {"role": "assistant", "content": "Hello"}
RAW = [{"type": "reasoning", "id": "r"}, {"type": "message", "id": "m"}]

ITEMS: dict[str, tuple[list[Message], list[Any]]] = {
    "nothing": ([], []),
    "a message": ([USER], [USER]),
    "no content": ([{"role": "user", "content": None}], [{"role": "user", "content": ""}]),
    "an answer": ([USER, SAID, USER], [USER, SAID, USER]),
    "other keys are not sent": ([{**SAID, "name": "bot"}], [SAID]),
    "a call": ([asked("1"), result("1")], [CALL, OUTPUT]),
    "a text and a call": ([asked("1", content="Hello")], [SAID, CALL]),
    "two calls": ([asked("1", "2")], [CALL, {**CALL, "call_id": "2"}]),
    "raw output": ([{**asked("1", content="x"), "agenteval_output": RAW}, result("1")], [*RAW, OUTPUT]),
    "no raw output": ([{**SAID, "agenteval_output": None}], [SAID]),
}


@pytest.mark.parametrize(("messages", "items"), ITEMS.values(), ids=ITEMS)
def test_the_items_of_a_conversation(messages: list[Message], items: list[Any]) -> None:
    assert responses(messages) == {"input": items}


def test_the_body_of_the_author_comes_first() -> None:
    first = {"role": "developer", "content": "Be kind."}
    body = responses([USER], model="m", input=[first])
    assert body == {"model": "m", "input": [first, USER]}
    assert responses([USER], input=None)["input"] == [USER]


def test_tools_of_the_responses_api() -> None:
    sent = responses([USER], SCHEMA, BARE)["tools"]
    assert sent == [{"type": "function", **SCHEMA["function"]}, {"type": "function", "name": "ping"}]  # type: ignore[dict-item]
    assert "tools" not in responses([USER])
    assert "tools" not in responses([USER], SCHEMA, send_tools=False)
    assert responses([USER], SCHEMA, tools=["mine"])["tools"] == ["mine"]


@pytest.mark.parametrize("build", [responses, claude])
def test_a_stream_is_asked_for(build: Any) -> None:
    assert build(streaming=True)["stream"] is True
    assert "stream" not in build()


# ── requests of the Messages API ─────────────────────────────────────────────────────────────────

USE = {"type": "tool_use", "id": "1", "name": "find", "input": {"q": 1}}


def outcome(call_id: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": "found"}


def said(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def results(*ids: str) -> dict[str, Any]:
    return {"role": "user", "content": [outcome(each) for each in ids]}


HELLO = {"type": "text", "text": "Hello"}
BLOCKS: dict[str, tuple[list[Message], list[Any]]] = {
    "nothing": ([], []),
    "a message": ([USER], [USER]),
    "no content": ([{"role": "user"}], [{"role": "user", "content": ""}]),
    "an answer": ([USER, SAID], [USER, said(HELLO)]),
    "an empty answer": ([{"role": "assistant", "content": ""}, USER], [USER]),
    "a call": ([asked("1"), result("1")], [said(USE), results("1")]),
    "no arguments": ([asked("1", arguments="")], [said({**USE, "input": {}})]),
    "a text and two calls": (
        [asked("1", "2", content="Hello"), result("1"), result("2"), SAID],
        [said(HELLO, USE, {**USE, "id": "2"}), results("1", "2"), said(HELLO)],
    ),
    "results of two turns": (
        [asked("1"), result("1"), asked("2"), result("2"), USER],
        [said(USE), results("1"), said({**USE, "id": "2"}), results("2"), USER],
    ),
    "raw output": ([{**SAID, "agenteval_output": RAW}], [said(*RAW)]),
    "raw arguments": (
        [{**SAID, "agenteval_output": [{**USE, "input": '{"q": 1}'}, {**USE, "input": ""}, "x"]}],
        [said(USE, {**USE, "input": {}}, "x")],
    ),
}


@pytest.mark.parametrize(("messages", "sent"), BLOCKS.values(), ids=BLOCKS)
def test_the_messages_of_a_conversation(messages: list[Message], sent: list[Any]) -> None:
    assert claude(messages) == {"max_tokens": 4096, "messages": sent}


def test_the_authors_body_counts() -> None:
    own = {"model": "m", "max_tokens": 7, "messages": [said(HELLO)]}
    body = MessagesApi(own, {}, send_tools=True, streaming=False).build_request([USER], tools()).body
    assert body == {"model": "m", "max_tokens": 7, "messages": [said(HELLO), USER]}


def test_tools_of_the_messages_api() -> None:
    sent = claude([USER], SCHEMA, BARE)["tools"]
    assert sent == [
        {
            "name": "find",
            "description": "Finds.",
            "input_schema": {"type": "object", "properties": {"q": {}}},
        },
        {"name": "ping", "input_schema": {"type": "object", "properties": {}}},
    ]
    assert "tools" not in claude([USER])
    assert "tools" not in claude([USER], SCHEMA, send_tools=False)
    assert claude([USER], SCHEMA, tools=["mine"])["tools"] == ["mine"]


@pytest.mark.parametrize(
    ("headers", "sent"),
    [
        ({}, {"anthropic-version": "2023-06-01"}),
        ({"x-api-key": "k"}, {"x-api-key": "k", "anthropic-version": "2023-06-01"}),
        ({"Anthropic-Version": "2"}, {"Anthropic-Version": "2"}),
    ],
)
def test_the_version_of_the_messages_api(headers: dict[str, str], sent: dict[str, str]) -> None:
    api = MessagesApi({}, headers, send_tools=True, streaming=False)
    assert api.build_request([USER], tools()).headers == sent


# ── replies ──────────────────────────────────────────────────────────────────────────────────────

TEXT = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hello"}]}
USAGE = {"input_tokens": 3, "output_tokens": 2}


def response(*output: Any, **more: Any) -> dict[str, Any]:
    return {"object": "response", "status": "completed", "output": list(output), "usage": USAGE, **more}


def message(*content: Any, **more: Any) -> dict[str, Any]:
    return {
        "type": "message", "role": "assistant", "content": list(content), "stop_reason": "end_turn",
        "usage": USAGE, **more,
    }  # fmt: skip


def names(reply: ReadReply) -> list[tuple[str, str, Any]]:
    found = []
    for call in reply.tool_calls:
        given = call["function"]["arguments"]
        arguments = json.loads(given) if isinstance(given, str) else given
        found.append((call["id"], call["function"]["name"], arguments))
    return found


def test_an_answer_of_each_api() -> None:
    for found in (response_api().read(http(response(TEXT))), messages_api().read(http(message(HELLO)))):
        assert (found.text, list(found.tool_calls), list(found.messages)) == ("Hello", [], [])
        assert (found.usage, found.extra) == (USAGE, {})


def test_calls_of_each_api() -> None:
    for found in (
        response_api().read(http(response(TEXT, CALL))),
        messages_api().read(http(message(HELLO, USE, stop_reason="tool_use"))),
    ):
        assert names(found) == [("1", "find", {"q": 1})]
        assert (found.text, found.extra) == ("Hello", {})


def test_only_calls_have_no_text() -> None:
    assert response_api().read(http(response(CALL))).text is None
    assert messages_api().read(http(message(USE))).text is None


def test_what_is_more_than_text_and_calls_is_sent_back() -> None:
    thought = {"type": "reasoning", "id": "r", "summary": []}
    output = [thought, TEXT]
    found = response_api().read(http(response(*output)))
    assert (found.text, found.extra) == ("Hello", {"agenteval_output": output})
    content = [{"type": "thinking", "thinking": "hm", "signature": "s"}, HELLO]
    assert messages_api().read(http(message(*content))).extra == {"agenteval_output": content}


def test_two_texts_are_paragraphs() -> None:
    assert response_api().read(http(response(TEXT, TEXT))).text == "Hello\n\nHello"


CUT: dict[str, dict[str, Any]] = {
    "incomplete": {"status": "incomplete"},
    "at the limit": {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
    "a reason alone": {"incomplete_details": {"reason": "max_output_tokens"}},
    "filtered": {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}},
    "in progress": {"status": "in_progress"},
    "queued": {"status": "queued"},
}


@pytest.mark.parametrize("name", CUT)
def test_a_response_that_was_cut_off(name: str) -> None:
    with pytest.raises(UnreadableResponseError) as error:
        response_api().read(http(response(TEXT, **CUT[name])))
    is_limit = name in ("incomplete", "at the limit", "a reason alone")
    assert ("`body.max_output_tokens`" in str(error.value)) is is_limit


@pytest.mark.parametrize(
    "more", [{"status": None}, {"incomplete_details": None}, {"incomplete_details": "x"}]
)
def test_a_response_that_was_not(more: dict[str, Any]) -> None:
    assert response_api().read(http(response(TEXT, **more))).text == "Hello"


def test_a_message_that_was_cut_off() -> None:
    with pytest.raises((AgentError, UnreadableResponseError)) as error:
        messages_api().read(http(message(HELLO, stop_reason="max_tokens")))
    assert "`body.max_tokens`" in str(error.value)


@pytest.mark.parametrize(
    "value",
    [
        "hello",
        "[]",
        {},
        response(),
        {"type": "error", "error": {"type": "overloaded_error", "message": "boom"}},
        response(status="failed", error={"message": "boom", "code": "server_error"}),
    ],
)
def test_what_is_no_answer(value: Any) -> None:
    for api in (response_api(), messages_api()):
        with pytest.raises(UnreadableResponseError):
            api.read(http(value))


# ── streams ──────────────────────────────────────────────────────────────────────────────────────

EVENTS: list[Any] = [
    {"type": "message_start", "message": message(stop_reason=None)},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hel"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "lo"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": USAGE},
    {"type": "message_stop"},
]


def test_streams_are_assembled() -> None:
    assert messages_api().read(http([*EVENTS, "[DONE]"], stream=True)).text == "Hello"
    completed = {"type": "response.completed", "response": response(TEXT)}
    assert response_api().read(http([completed], stream=True)).text == "Hello"


def test_a_stream_that_failed() -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "boom"}}
    for api in (response_api(), messages_api()):
        with pytest.raises(UnreadableResponseError) as caught:
            api.read(http([*EVENTS[:3], error], stream=True))
        assert "boom" in caught.value.evidence
        assert api.error_in(http([error], stream=True)) is not None
        assert api.error_in(http({"error": {"message": "boom"}})) is not None
    assert messages_api().error_in(http(message(HELLO))) is None


def test_what_an_incomplete_answer_tells() -> None:
    partial = messages_api().read_partial(http([*EVENTS[:3], '{"type'], stream=True))
    assert partial is not None
    assert partial.text == "Hel"
    cut = response_api().read_partial(http(response(TEXT, CALL, status="incomplete")))
    assert cut is not None
    assert (cut.text, names(cut), cut.usage) == ("Hello", [("1", "find", {"q": 1})], USAGE)
    for api in (response_api(), messages_api()):
        with pytest.raises(UnreadableResponseError):
            api.read_partial(http({"output": [], "content": []}))
