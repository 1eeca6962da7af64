"""An error inside a reply of status 200 and the status that it names."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agenteval.messages.error_status import (
    ACCESS_DENIED_STATUSES,
    INFRASTRUCTURE_STATUSES,
    find_error,
    find_error_in_texts,
    find_error_status,
)


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


# OpenAI's and Anthropic's lists of error codes, google.rpc.Code, Amazon Bedrock's API
STATUSES = {
    400: "invalid_request_error invalid_argument failed_precondition ValidationException",
    401: "invalid_api_key authentication_error unauthenticated",
    402: "billing_error",
    403: "permission_error permission_denied AccessDeniedException",
    404: "not_found_error not_found",
    413: "request_too_large",
    429: "rate_limit_exceeded insufficient_quota too_many_requests service_tier_capacity_exceeded"
    " rate_limit_error RESOURCE_EXHAUSTED ThrottlingException ModelNotReadyException",
    500: "server_error api_error INTERNAL InternalServerException",
    503: "server_is_overloaded service_unavailable_error slow_down server_overloaded engine_overloaded_error"
    " UNAVAILABLE ServiceUnavailableException",
    504: "timeout_error DEADLINE_EXCEEDED ModelTimeoutException",
    529: "overloaded_error",
}


@pytest.mark.parametrize("status", STATUSES)
def test_the_words_of_the_providers(status: int) -> None:
    words = STATUSES[status].split()
    assert [find_error_status({"code": word}) for word in words] == [status] * len(words)


@pytest.mark.parametrize(
    "key", ["code", "status", "status_code", "statusCode", "http_status", "type", "__type", "kind"]
)
def test_keys_of_a_status(key: str) -> None:
    assert find_error_status({key: 503}) == 503
    assert find_error_status({key: "overloaded_error"}) == 529
    assert find_error_status({"error": {"response": {key: 503}}}) == 503
    assert find_error({key: 503, "message": "m"}) == {key: 503, "message": "m"}


@pytest.mark.parametrize(
    ("error", "status"),
    [
        ({"code": 400}, 400),
        ({"code": 399}, None),
        ({"code": 599}, 599),
        ({"code": 600}, None),
        ({"code": "0503"}, None),
        ({"code": "٥٠٣"}, None),
        ({"code": 503.0}, None),
        ({"code": "rate_limit_error", "status": 500}, 500),  # a number before a word
        ({"code": 500, "error": {"code": 429}}, 500),  # the outer before the inner
        ({"message": "m", "error": {"code": 429}}, 429),
        ({"error": "overloaded_error"}, None),
        ({"code": "ThrottlingException:http://internal.amazon.com/coral/"}, 429),
        ({"code": "OVERLOADED_ERROR"}, 529),
        ("503", 503),
        ([], None),
        ({}, None),
    ],
)
def test_statuses_at_the_limits_and_their_order(error: Any, status: int | None) -> None:
    assert find_error_status(error) == status


def test_whose_fault_a_status_is() -> None:
    assert {401, 403, 407, 429, 502, 503, 504, 529} == INFRASTRUCTURE_STATUSES
    assert {401, 403} == ACCESS_DENIED_STATUSES


@pytest.mark.parametrize(
    ("document", "error"),
    [
        ({"type": "error"}, {"type": "error"}),
        ({"object": "error"}, {"object": "error"}),
        ({"type": "error", "error": {"a": 1}}, {"a": 1}),
        ({"error": "text", "code": 5}, {"error": "text", "code": 5}),
        ({"choices": [{"error": "text"}]}, "text"),
        ({"response": {"error": "text"}}, "text"),
        ({"error": ERROR, "choices": [{"error": "other"}]}, ERROR),
        ({"error": {}, "response": {"error": ERROR}}, ERROR),
        ({"choices": [], "response": {"error": ERROR}}, ERROR),
        ({"choices": ["text"], "error": None}, None),
        ({"__type": "Unknown"}, None),
        ({"code": 503, "message": {"role": "assistant"}}, None),
        ({"code": 503, "content": "overloaded"}, {"code": 503, "content": "overloaded"}),
        ({"code": 503, "content": None}, {"code": 503, "content": None}),
        *(({"code": 503, key: [1]}, None) for key in ("choices", "output", "content", "candidates")),
        *(({"code": 503, key: {"a": 1}}, None) for key in ("messages", "message", "result")),
        ({}, None),
        ([], None),
    ],
)  # fmt: skip
def test_where_an_error_stands(document: Any, error: Any) -> None:
    assert find_error(document) == error


@pytest.mark.parametrize(
    ("texts", "error"),
    [
        ([], None),
        (['{"code": 503}', '{"code": 429}'], {"code": 503}),
        (['{"error": {}}', '{"status": 429}'], {"status": 429}),
        (['{"__type": "a#ThrottlingException"}'], {"__type": "a#ThrottlingException"}),
        (['{"type": "error"}'], {"type": "error"}),
        (["error 503"], None),
        (['[{"code": 503}]'], {"code": 503}),
    ],
)
def test_the_first_error_in_texts(texts: list[str], error: Any) -> None:
    assert find_error_in_texts(texts) == error
