"""Replies that are not whole: cut off by a limit or a filter, or broken off by an error within a stream."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel

from agenteval import AgentReply
from agenteval.core.errors import AgentError
from agenteval.messages.agent_reply import parse_reply as read_python
from tests.adapters.agents.test_http import assert_unreadable, environment, error_of, reply_of, stream  # noqa: F401
from tests.support.local_servers import chat, chunked, completion, delta, respond_json, sse

TEXT = "Your order is done, but"


class Dumped(BaseModel, extra="allow"):
    """A message or completion of a client library."""


def message(**fields: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": TEXT, **fields}


ENDED = message(type="message", stop_reason="max_tokens")
CUT: dict[str, Any] = {
    "a completion": completion(TEXT, finish_reason="length"),
    "of a library": Dumped(**completion(TEXT, finish_reason="length")),
    "by a filter": completion(TEXT, finish_reason="content_filter"),
    "upper case": completion(TEXT, finish_reason="MAX_TOKENS"),
    "the name of a constant": completion(TEXT, finish_reason="FinishReason.SAFETY"),
    "hyphens": message(finishReason="content-filter"),
    "by an error": completion(TEXT, finish_reason="error"),
    "a message": ENDED,
    "what is known of a message": message(response_metadata={"done_reason": "length"}),
    "an object": [SimpleNamespace(role="assistant", content=TEXT, stop_reason="max_tokens")],
    "an item": message(type="message", status="incomplete"),
    "in a reply": AgentReply(text=completion(TEXT, finish_reason="length")),  # type: ignore[arg-type]
    "the last of a list": [message(tool_calls=[]), ENDED],
    "the last of a reply's": AgentReply(messages=[ENDED]),
    "the last of a state": {"messages": [Dumped(**ENDED)]},
    "around messages": {"messages": [message()], "stop_reason": "max_tokens"},
}


@pytest.mark.parametrize("name", CUT)
def test_a_python_agents_reply_that_was_cut_off(name: str) -> None:
    with pytest.raises(AgentError) as caught:
        read_python(CUT[name])
    assert caught.value.kind == "protocol"
    assert str(caught.value).startswith("the agent's reply ")


WHOLE: dict[str, Any] = {
    "a completion": completion(TEXT, finish_reason="stop"),
    "calls": completion(TEXT, finish_reason="tool_calls"),
    "no end": completion(TEXT, finish_reason=None),
    "a filter that was a refusal": completion("", refusal="I will not.", finish_reason="content_filter"),
    "a refusal": message(stop_reason="refusal"),
    "a sentence that it stopped at": message(stop_reason="length of stay"),
    "numbers": message(finish_reason=2, stop_reason=None),
    "went on after it": [ENDED, {"role": "user", "content": "Go on."}, message(stop_reason="end_turn")],
    "a state of something else": {"messages": [message()], "status": "incomplete"},
}


@pytest.mark.parametrize("name", WHOLE)
def test_a_python_agents_reply_that_is_whole(name: str) -> None:
    assert read_python(WHOLE[name])


def test_over_http_the_words_are_the_same() -> None:
    for reason in ("MAX_TOKENS", "model_length", "SAFETY", "content-filter", "error"):
        assert_unreadable(error_of(chat(TEXT, finish_reason=reason)), f"(finish_reason={reason})")
        streamed = sse(delta(TEXT), delta(finish_reason=reason))
        assert_unreadable(error_of(streamed, streaming=True), f"(finish_reason={reason})")


def test_observed_messages_that_end_in_a_cut_answer() -> None:
    cut = respond_json({"messages": [message(), ENDED]})
    assert_unreadable(error_of(cut, observed_messages="messages"), "cut off (stop_reason=max_tokens)")
    around = respond_json({"messages": [message()], "finish_reason": "LENGTH"})
    assert_unreadable(error_of(around, observed_messages="messages"), "cut off (finish_reason=LENGTH)")
    whole = respond_json({"messages": [ENDED, message()], "finish_reason": "stop"})
    assert reply_of(whole, observed_messages="messages").messages


# --- errors in a stream -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "chunk",
    [
        {"object": "error", "message": "overloaded", "code": "x1"},
        {"type": "error", "message": "overloaded"},
        {"message": "overloaded"},
        {"detail": "overloaded"},
    ],
)
def test_an_error_that_has_no_key_of_that_name(chunk: dict[str, Any]) -> None:
    error = error_of(sse(delta("a"), chunk), streaming=True)
    assert_unreadable(error, "ended with an error", "overloaded")


def test_an_error_of_a_number_and_words_alone() -> None:
    error = error_of(sse(delta("a"), {"code": 500, "text": "overloaded"}), streaming=True)
    assert isinstance(error, AgentError)
    assert "HTTP status 500: in a reply of status 200" in str(error)
    assert "overloaded" in str(error)


@pytest.mark.parametrize(
    "data", ['data: {"code": "x1", "message": "overloaded"}\n', "data: overloaded\n", ""]
)
def test_an_event_of_the_name_error(data: str) -> None:
    ends = json.dumps(delta(finish_reason="stop"))
    body = f"data: {json.dumps(delta('a'))}\n\nevent: error\n{data}\ndata: {ends}\n\ndata: [DONE]\n\n"
    error = error_of(chunked([body.encode()]), streaming=True)
    assert_unreadable(error, "ended with an error", "overloaded" if data else "without details")


def test_an_event_of_another_name_is_none() -> None:
    body = f"event: errors\ndata: {json.dumps(delta('a'))}\n\nevent: error_free\ndata: [DONE]\n\n"
    assert reply_of(chunked([body.encode()]), streaming=True).text == "a"


@pytest.mark.parametrize(
    "chunk",
    [
        {"code": 200, "message": "success"},
        {"type": "done", "message": "That is all."},
        {"status": "completed"},
        {"usage": {"prompt_tokens": 1, "completion_tokens": 1}},
        {"choices": [], "message": "Goodbye."},
    ],
)
def test_what_a_server_says_beside_the_answer_is_no_error(chunk: dict[str, Any]) -> None:
    assert stream(delta("a"), chunk).text == "a"


def test_an_answer_goes_on_after_words_on_its_progress() -> None:
    words = {"message": "searching", "detail": "one of two"}
    assert stream(words, delta("a"), words, delta("b")).text == "ab"
    assert stream(delta("a", finish_reason="stop"), words).text == "a"
