"""Whether a call failed, by the form of its result alone; prose is for judges."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.core.call_outcomes import error_of
from agenteval.core.trajectory import ToolResult


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
