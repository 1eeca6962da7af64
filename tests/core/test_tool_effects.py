"""What a tool does by its mark or its plain name; and whether a call of one may have been carried out."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.core.call_outcomes import CallOutcome, had_no_effect, outcome_of
from agenteval.core.scenario import Tool
from agenteval.core.tool_effects import (
    ToolEffect,
    effect_from_hints,
    effect_of,
    effect_of_name,
    marks_from_hints,
    words_of,
)
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


VERBS = {
    ToolEffect.WRITES: """
        activate apply approve assign ban buy cancel change close create deactivate delete destroy
        disable edit enable enroll erase insert invite modify move overwrite pay place publish redeem
        reimburse reject remove rename renew replace reschedule reset restore revoke send set submit
        subscribe suspend terminate unassign unblock unlock unregister unsubscribe update upload void
        withdraw block book charge credit debit deposit downgrade email exchange grant issue lock
        message order post purchase rebook refund register reserve return schedule ship transfer upgrade
    """,
    ToolEffect.READS: """
        browse calculate count describe fetch find get list lookup look query read retrieve search show
        view
    """,
    ToolEffect.UNKNOWN: "add complete initiate make perform process do run handle cancelled reader",
}
ENDS = """
    availability balance calculator check count details eligibility estimate fees history info
    information list lookup options policies policy preview price prices query quote rate rates rules
    search status summary terms total
"""
ACTS = """
    booking cancellation deposit exchange order payment purchase refund reservation return transfer
    withdrawal
"""


@pytest.mark.parametrize("effect", VERBS)
def test_verbs_alone(effect: ToolEffect) -> None:
    assert [verb for verb in VERBS[effect].split() if effect_of_name(verb) is not effect] == []


def test_a_noun_with_what_is_looked_up_reads_and_a_verb_with_it_writes() -> None:
    assert {effect_of_name(f"refund_{end}") for end in ENDS.split()} == {ToolEffect.READS}
    assert {effect_of_name(f"cancel_{end}") for end in ENDS.split()} == {ToolEffect.WRITES}
    assert {effect_of_name(f"refund_{end}_x") for end in ENDS.split()} == {ToolEffect.WRITES}


def test_a_general_verb_writes_with_an_act() -> None:
    for verb in ("complete", "initiate", "make", "perform", "process"):
        assert {effect_of_name(f"{verb}_{act}") for act in ACTS.split()} == {ToolEffect.WRITES}
    assert effect_of_name("process_full_refund_now") is ToolEffect.WRITES
    assert effect_of_name("process_refund_status") is ToolEffect.UNKNOWN
    assert effect_of_name("process_text") is ToolEffect.UNKNOWN
    assert effect_of_name("handle_refund") is ToolEffect.UNKNOWN


@pytest.mark.parametrize(
    ("name", "effect"),
    [
        ("transfer_to_agent", ToolEffect.UNKNOWN),
        ("transfer_to", ToolEffect.UNKNOWN),
        ("transfer_money_to", ToolEffect.WRITES),
        ("send_to_bank", ToolEffect.WRITES),
        ("get_order__cancel", ToolEffect.WRITES),
        ("cancel.get_order", ToolEffect.READS),
        ("cancel/get_order", ToolEffect.READS),
        ("cancel:get_order", ToolEffect.READS),
        ("CANCEL_ORDER", ToolEffect.WRITES),
        ("add_", ToolEffect.UNKNOWN),
    ],
)
def test_the_last_part_of_a_name_counts(name: str, effect: ToolEffect) -> None:
    assert effect_of_name(name) is effect


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("cancelOrder_v2", ("cancel", "order", "v")),
        ("getHTTPStatus", ("get", "http", "status")),
        ("HTTPGet", ("http", "get")),
        ("order2Go", ("order", "go")),
        ("a-b c", ("a", "b", "c")),
        ("__", ()),
        ("", ()),
        ("x" * 199 + "Yz", ("x" * 199, "y")),
    ],
)
def test_words_of_a_name(name: str, words: tuple[str, ...]) -> None:
    assert words_of(name) == words


@pytest.mark.parametrize(
    ("hints", "effect"),
    [
        ({}, ToolEffect.UNKNOWN),
        ({"readOnlyHint": True}, ToolEffect.READS),
        ({"readOnlyHint": True, "destructiveHint": True}, ToolEffect.READS),
        ({"readOnlyHint": False}, ToolEffect.WRITES),
        ({"readOnlyHint": False, "destructiveHint": False}, ToolEffect.WRITES),
        ({"destructiveHint": True}, ToolEffect.WRITES),
        ({"destructiveHint": False}, ToolEffect.UNKNOWN),
        ({"readOnlyHint": None, "destructiveHint": None}, ToolEffect.UNKNOWN),
        ({"readOnlyHint": 1, "destructiveHint": "true"}, ToolEffect.UNKNOWN),
    ],
)
def test_hints_of_a_server(hints: dict[str, Any], effect: ToolEffect) -> None:
    assert effect_from_hints(hints) is effect
    assert marks_from_hints(hints) == ({} if effect is ToolEffect.UNKNOWN else {str(effect): True})


def test_a_mark_that_is_not_set_says_nothing() -> None:
    assert effect_of("cancel", Tool()) is ToolEffect.WRITES
    assert effect_of("get", Tool(writes=True)) is ToolEffect.WRITES
    assert effect_of("bash", Tool()) is ToolEffect.UNKNOWN
