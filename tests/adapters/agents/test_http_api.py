"""What all APIs of HTTP agents share: which API a URL names, and JSON that files can contain."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from agenteval.adapters.agents.http_api import (
    AgentFailure,
    ApiRequest,
    find_model_api_error,
    infer_api,
    parse_reply_json,
    require_storable,
)
from agenteval.adapters.transport.client import HttpReply
from agenteval.messages.completion import UnreadableResponseError

DEEP = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize(
    ("endpoint", "api"),
    [
        ("http://h/v1/responses", "responses"),
        ("http://h/v1/responses/", "responses"),
        ("http://h/a/v1/responses?x=1#y", "responses"),
        ("http://h/v1/messages", "messages"),
        ("http://h/v1/messages//", "messages"),
        ("http://h/v1/chat/completions", "chat_completions"),
        ("http://h/responses", "chat_completions"),
        ("http://h/messages", "chat_completions"),
        ("http://h/v1/responses/x", "chat_completions"),
        ("http://h/?u=/v1/messages", "chat_completions"),
        ("http://h", "chat_completions"),
        ("", "chat_completions"),
        ("http://[h/v1/messages", "chat_completions"),
    ],
)
def test_two_paths_name_an_api(endpoint: str, api: str) -> None:
    assert infer_api(endpoint) == api


def test_a_request_goes_to_the_endpoint_with_the_agents_headers() -> None:
    request = ApiRequest({})
    assert (request.url, request.headers) == ("", None)


def test_a_failure_has_the_agents_words() -> None:
    assert (AgentFailure("it failed").what, AgentFailure("it failed").words) == ("it failed", "")
    assert AgentFailure("it failed", "boom").words == "boom"
    assert str(AgentFailure("it failed", "boom")) == "it failed"


@pytest.mark.parametrize("value", [None, 7, "é", [], {"a": [1, {"b": None}]}, "😀"])
def test_json_is_parsed(value: Any) -> None:
    assert parse_reply_json(json.dumps(value)) == value
    assert parse_reply_json(json.dumps(value, ensure_ascii=False)) == value


@pytest.mark.parametrize("text", ["", "hello", "{", "[1,]", "{'a': 1}", "<html></html>", DEEP])
def test_what_is_no_json(text: str) -> None:
    with pytest.raises(UnreadableResponseError):
        parse_reply_json(text)


def test_half_characters_are_replaced_everywhere() -> None:
    assert parse_reply_json('{"a\\ud800": ["x\\udc00y", "\\ud83d\\ude00"]}') == {"a�": ["x�y", "😀"]}
    assert require_storable({"a": "\ud800"}) == {"a": "�"}
    assert require_storable("\ud83d\ude00") == "😀"


def test_what_can_be_stored_is_the_same_value() -> None:
    value = {"a": ["é"]}
    assert require_storable(value) is value


def test_what_is_nested_too_deeply() -> None:
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    with pytest.raises(UnreadableResponseError):
        require_storable(value)


ERROR = json.dumps({"error": {"message": "boom"}})
FINE = json.dumps({"choices": [{"message": {"content": "Hi"}}]})


@pytest.mark.parametrize(
    ("text", "events", "is_error"),
    [
        (FINE, None, False),
        (ERROR, None, True),
        (ERROR, (FINE,), False),
        (FINE, (FINE, ERROR), True),
        (ERROR, (), False),
        ("no json", None, False),
    ],
)
def test_an_error_in_a_body_or_in_an_event(text: str, events: Sequence[str] | None, is_error: bool) -> None:
    reply = HttpReply(200, {}, text, 1.0, None if events is None else tuple(events))
    assert (find_model_api_error(reply) is not None) is is_error
