"""An error inside a reply of status 200 and the status that it names."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agenteval.messages.error_status import find_error, find_error_in_texts, find_error_status


@pytest.mark.parametrize(
    ("error", "status"),
    [
        ({"code": 429, "message": "Rate limit exceeded"}, 429),
        ({"code": "502"}, 502),
        ({"code": None, "type": "rate_limit_error"}, 429),
        ({"type": "error", "error": {"type": "overloaded_error"}}, 529),
        ({"code": 14, "status": "UNAVAILABLE"}, 503),
        ({"__type": "com.amazon.coral#ThrottlingException"}, 429),
        ({"code": "server_is_overloaded", "type": "service_unavailable_error"}, 503),
        ("overloaded_error", 529),
        (503, 503),
        ([{"message": "m", "code": 503}], 503),
        ({"type": "service_tier_capacity_exceeded", "code": "3505"}, 429),
        ({"message": "HTTP 503: overloaded, rate limit 429"}, None),
        ({"code": True}, None),
        ({"code": 42}, None),
        ({"code": "KeyError"}, None),
        ({"code": -32603, "message": "Internal error"}, None),
        ("the server is overloaded", None),
        (None, None),
    ],
)
def test_the_status_is_that_of_code_or_type_and_never_of_the_prose(error: Any, status: int | None) -> None:
    assert find_error_status(error) == status


ERROR = {"code": 503}


@pytest.mark.parametrize(
    "document",
    [
        {"error": ERROR},
        {"choices": [{"index": 0, "error": ERROR}]},
        {"type": "response.failed", "response": {"status": "failed", "error": ERROR}},
        {"status": "failed", "output": [], "error": ERROR},
    ],
)
def test_an_error_in_place_of_an_answer_is_found(document: Any) -> None:
    assert find_error(document) == ERROR
    assert find_error([document]) == ERROR  # as Google begins a stream
    assert find_error_in_texts(["not JSON", '{"choices": []}', json.dumps(document)]) == ERROR


@pytest.mark.parametrize(
    "document",
    [
        {"object": "error", "message": "overloaded", "code": 503},
        {"code": 503, "message": "overloaded"},
        {"type": "error", "message": "overloaded", "code": "503"},
        {"error": "Service Unavailable", "status": 503},
        {"__type": "com.amazon.coral.service#ServiceUnavailableException", "message": "m"},
    ],
)
def test_an_error_may_be_all_of_a_reply(document: Any) -> None:
    assert find_error(document) == document


@pytest.mark.parametrize(
    "document",
    [
        {"choices": [{"message": {"content": "error 503"}}], "error": None},
        {"choices": [{"message": {"content": "Hello."}}], "response": {"error": ERROR}},
        {"output": [], "status": "completed", "error": None},
        {"content": [{"type": "text", "text": "x"}], "code": 503},
        {"code": 200, "status": "ok"},
        [{"role": "assistant", "content": "503"}],
        "error",
    ],
)
def test_an_answer_is_none(document: Any) -> None:
    assert find_error(document) is None
