"""What a tool does by its mark or its plain name; and whether a call of one may have been carried out."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.core.call_outcomes import CallOutcome, had_no_effect, outcome_of
from agenteval.core.scenario import Tool
from agenteval.core.tool_effects import ToolEffect, effect_of
from agenteval.core.trajectory import ToolCall, ToolResult

WRITES = (
    "cancel_order",
    "cancelOrder",
    "CreateBooking",
    "mcp__shop__refund_order",
    "shop.update-address",
    "refund",
    "update_status",
    "add_passenger",
    "process_refund",
    "make_payment",
    "transfer_money",
    "exchange_delivered_order_items",
    "send_certificate",
)
READS = ("get_order", "searchFlights", "list_orders", "order_status", "refund_policy", "book_search")
UNKNOWN = (
    "run_sql",
    "bash",
    "http_request",
    "execute",
    "add",
    "process_text",
    "make_request",
    "transfer_to_human_agents",
    "think",
    "",
    "42",
)


@pytest.mark.parametrize(
    ("name", "effect"),
    [
        *((name, ToolEffect.WRITES) for name in WRITES),
        *((name, ToolEffect.READS) for name in READS),
        *((name, ToolEffect.UNKNOWN) for name in UNKNOWN),
    ],
)
def test_a_name_says_what_it_says_plainly_and_a_mark_goes_before_it(name: str, effect: ToolEffect) -> None:
    assert effect_of(name, None) is effect_of(name, Tool(returns=1)) is effect
    assert effect_of(name, Tool(reads=True)) is ToolEffect.READS
    assert effect_of(name, Tool(writes=True)) is effect_of(name, Tool(destructive=True)) is ToolEffect.WRITES


def made(value: Any, **more: Any) -> ToolCall:
    return ToolCall(name="refund", args={}, result=ToolResult(value=value, **more))


@pytest.mark.parametrize(
    ("value", "outcome"),
    [
        ({"ok": True}, CallOutcome.SUCCEEDED),
        (None, CallOutcome.SUCCEEDED),
        ("Refunded 500 dollars.", CallOutcome.SUCCEEDED),
        ({"status": "pending"}, CallOutcome.SUCCEEDED),
        ('{"ok": tr', CallOutcome.SUCCEEDED),  # cut, and no error
        ({"error": "no order A-7"}, CallOutcome.FAILED),
        ({"error": "the amount 500 exceeds the limit"}, CallOutcome.FAILED),
        ({"error": "connection refused"}, CallOutcome.FAILED),
        ({"error": "Server busy, please retry"}, CallOutcome.FAILED),
        ({"status": 404, "message": "not found"}, CallOutcome.FAILED),
        ("Error: HTTP 429 Too Many Requests", CallOutcome.FAILED),
        ({"error": "read timed out"}, CallOutcome.OPEN),
        ({"error": "Connection timeout"}, CallOutcome.OPEN),
        ({"error": {"code": 504}}, CallOutcome.OPEN),
        ('{"error": "failed", "statusCode": "502"}', CallOutcome.OPEN),
        ("500 Internal Server Error", CallOutcome.OPEN),
        ("Error: HTTP 503", CallOutcome.OPEN),
        ({"success": False, "error": "ECONNRESET"}, CallOutcome.OPEN),
    ],
)
def test_an_error_that_may_have_come_after_the_act_leaves_it_open(value: Any, outcome: CallOutcome) -> None:
    assert outcome_of(made(value)) is outcome
    assert had_no_effect(made(value)) is (outcome is not CallOutcome.SUCCEEDED)


def test_a_refused_call_was_not_made_and_one_without_a_result_may_have_been() -> None:
    assert outcome_of(made({"error": "timeout"}, is_error=True, refused=True)) is CallOutcome.FAILED
    assert outcome_of(ToolCall(name="refund", args={})) is CallOutcome.OPEN
    assert outcome_of(ToolCall(name="refund", args={}, given_up=True)) is CallOutcome.OPEN
    assert not had_no_effect(ToolCall(name="refund", args={}))
    assert had_no_effect(made({"changed": 0}))
