"""Whether a call failed, by the form of its result alone; prose is for judges."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.core.call_outcomes import CallOutcome, error_of, outcome_of
from agenteval.core.trajectory import ToolCall, ToolResult


@pytest.mark.parametrize(
    "value",
    [
        {"error": "card declined"},
        {"errors": ["card declined"]},
        {"exception": "card declined"},
        {"success": False, "message": "card declined"},
        {"isError": True, "content": "card declined"},
        {"status": "error"},
        {"status": "failed", "message": "card declined"},
        {"status": "FAILURE", "reason": "card declined"},
        '{"error": "card declined"}',
        "Error: card declined",
        "ValueError: card declined",
        "404 Not Found",
        "HTTP 503 Service Unavailable",
        "Not Found",
        "Traceback (most recent call last):",
    ],
    ids=str,
)
def test_a_failed_call(value: Any) -> None:
    assert error_of(ToolResult(value=value))


@pytest.mark.parametrize(
    "value",
    [
        {"error": None, "id": "A-7"},
        {"error": "", "id": "A-7"},
        {"errors": [], "id": "A-7"},
        {"success": True, "error": False},
        {"status": "ok"},
        {"status": "failed", "payment": "P-1", "amount": 20},  # a payment that was looked up
        {"id": "A-7", "message": "the card was declined"},
        "The card was declined.",
        "Gone",
        "",
        None,
        7,
        [],
    ],
    ids=str,
)
def test_a_call_that_did_not_fail(value: Any) -> None:
    assert error_of(ToolResult(value=value)) is None


def test_a_mark_goes_before_the_form_and_no_result_is_no_error() -> None:
    assert error_of(ToolResult(value={"id": "A-7"}, is_error=True))
    assert error_of(ToolResult(value=None, is_error=True))
    assert error_of(None) is None


@pytest.mark.parametrize(
    "key", ["status_code", "statusCode", "http_status", "httpStatus", "http_status_code"]
)
@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (200, CallOutcome.SUCCEEDED),
        (302, CallOutcome.SUCCEEDED),
        (399, CallOutcome.SUCCEEDED),
        (400, CallOutcome.FAILED),
        (401, CallOutcome.FAILED),
        (404, CallOutcome.FAILED),
        (407, CallOutcome.FAILED),
        (408, CallOutcome.OPEN),  # the request may have been carried out
        (409, CallOutcome.FAILED),
        (499, CallOutcome.FAILED),
        (500, CallOutcome.OPEN),
        (501, CallOutcome.OPEN),
        (598, CallOutcome.OPEN),
        (599, CallOutcome.OPEN),
        (600, CallOutcome.SUCCEEDED),
        (0, CallOutcome.SUCCEEDED),
        (True, CallOutcome.SUCCEEDED),
        (None, CallOutcome.SUCCEEDED),
        ("400", CallOutcome.FAILED),
        ("500", CallOutcome.OPEN),
        ("200", CallOutcome.SUCCEEDED),
        ("gone", CallOutcome.SUCCEEDED),
        ("²", CallOutcome.SUCCEEDED),
        ("40²", CallOutcome.SUCCEEDED),
        ("4" * 5000, CallOutcome.SUCCEEDED),
        (4 * 10**400, CallOutcome.SUCCEEDED),
        ("", CallOutcome.SUCCEEDED),
        ([400], CallOutcome.SUCCEEDED),
    ],
)
def test_what_a_status_says_of_the_call(key: str, status: Any, outcome: CallOutcome) -> None:
    call = ToolCall(name="find", args={}, result=ToolResult(value={key: status, "id": "A-7"}))
    assert outcome_of(call) is outcome


@pytest.mark.parametrize(
    ("value", "failed"),
    [
        ({"status": 400, "message": "Bad Request"}, True),
        ({"code": 400, "detail": "invalid date"}, True),
        ({"status": 400, "message": "rows found"}, False),  # a number that was looked up
        ({"status": 399, "message": "Bad Request"}, False),
        ({"status_code": 400, "url": "/x"}, False),  # a response that was looked up
        ({"status_code": 400, "a": 1, "b": 2, "c": 3}, True),
        ({"status_code": 400, "a": 1, "b": 2, "c": 3, "d": 4}, False),
    ],
    ids=str,
)
def test_a_status_counts_where_it_can_only_be_the_calls(value: Any, failed: bool) -> None:
    assert (error_of(ToolResult(value=value)) is not None) is failed
