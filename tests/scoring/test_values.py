"""What an answer tells and nobody gave: each finding at its place, the same without the fault silent."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.scoring.detectors.arguments import wrong_arguments
from agenteval.scoring.detectors.claims import claimed_action_not_called
from agenteval.scoring.detectors.conversation import Conversation, Proof, ToolFacts
from agenteval.scoring.detectors.tool_use import ignored_tool_error, repeated_tool_call
from agenteval.scoring.detectors.values import contradicts_evidence, ungrounded_value
from tests.support.detector_samples import call, conversation, turn

ORDER = {
    "order_id": "#W2378156",
    "status": "pending",
    "total": 431.37,
    "created_at": "2026-05-04",
    "items": [
        {"name": "Desk Lamp", "item_id": "4447749792", "price": 139.8},
        {"name": "Office Chair", "item_id": "8069050545", "price": 291.57},
    ],
}
POLICY = "You are an agent of a shop. Today is 2026-05-10. Gift wrapping costs $4."


def shop(
    answer: str, *, policy: str = POLICY, result: Any = ORDER, user: str = "What of my order #W2378156?"
) -> Conversation:
    looked_up = call("get_order", result, order_id="#W2378156")
    return conversation(turn(user, looked_up, answer), policy=policy)


def found(answer: str, **known: Any) -> list[tuple[str, str]]:
    talk = shop(answer, **known)
    against = [("against", proof.evidence) for proof in contradicts_evidence(talk)]
    return against + [("nowhere", proof.evidence) for proof in ungrounded_value(talk)]


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        ("Order #W2378156\n- Status: delivered\n- Total: $431.37", ("against", "Status: delivered")),
        ("Your order #W2378156 is delivered.", ("against", "Your order #W2378156 is delivered")),
        ('{"order_id": "#W2378156", "status": "shipped"}', ("against", "status: shipped")),
        ("- Desk Lamp\n  - Price: $193.80", ("against", "$193.80")),
        ("Order #W2378156, created at: 2026-05-24", ("against", "2026-05-24")),
        ("Your order #W2378165 is pending.", ("against", "#W2378165")),
        ("The two cost $431.73 together.", ("nowhere", "$431.73")),
        ("It was placed on May 19.", ("nowhere", "May 19")),
        ("The receipt is number 5550017234.", ("nowhere", "5550017234")),
        ("Write to help@shop.example.", ("nowhere", "help@shop.example")),
    ],
)
def test_a_value_that_nobody_gave(answer: str, fault: tuple[str, str]) -> None:
    assert found(answer) == [fault]


@pytest.mark.parametrize(
    "answer",
    [
        "Order #W2378156\n- Status: pending\n- Total: $431.37",
        "Your order #W2378156 is pending. The Desk Lamp costs $139.80, the Office Chair $291.57.",
        "The chair costs $151.77 more than the lamp.",
        "Two Desk Lamps are $279.60.",
        "With gift wrapping that is $435.37.",
        "It was placed on May 4, 2026, and arrives the day after, on May 5.",
        "Once #W2378156 is delivered, you may return it.",
        "If your order #W2378156 is cancelled, you get $431.37 back.",
        "Please tell me the number, for example #W0000000.",
        "In about $431 you have it all.",
        "I can't say.",
    ],
)
def test_values_that_were_given_or_follow(answer: str) -> None:
    assert found(answer) == []


def test_a_round_amount_may_be_a_fee_of_a_policy_that_is_not_in_the_record() -> None:
    assert found("The fee is $50.") == [("nowhere", "$50")]
    assert found("The fee is $50.", policy="") == []
    assert found("That makes $431.73.", policy="") == [("nowhere", "$431.73")]


def test_a_date_from_nowhere_needs_the_policy_that_may_hold_today() -> None:
    assert found("It comes on May 19.", policy="") == []


def test_the_status_is_that_of_the_latest_result_until_something_may_have_changed_it() -> None:
    looked_up = call("get_order", ORDER, order_id="#W2378156")
    cancelled = call("cancel_order", {"order_id": "#W2378156", "status": "cancelled"}, order_id="#W2378156")
    done = call("cancel_order", "ok", order_id="#W2378156")

    def proofs(last: Any, answer: str) -> list[Proof]:
        return list(contradicts_evidence(conversation(turn("Cancel it", looked_up, last, answer))))

    assert proofs(cancelled, "#W2378156 is cancelled.") == []
    assert [proof.severity for proof in proofs(cancelled, "#W2378156 is pending.")] == [None]
    assert proofs(done, "#W2378156 is cancelled.") == proofs(done, "#W2378156 is pending.") == []


def test_a_result_that_is_not_in_the_record_may_have_held_anything() -> None:
    unknown = call("get_order").model_copy(update={"result": None})
    talk = conversation(turn("?", unknown, "Order #W9999123 costs $77.13."), policy=POLICY)
    assert not [*contradicts_evidence(talk), *ungrounded_value(talk)]


# ── arguments ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("args", "is_wrong"),
    [
        ({"order_id": "#W2378156"}, False),
        ({"order_id": "W2378156"}, False),
        ({"order_id": "#W2378165"}, True),
        ({"order_id": "#W7770042"}, True),
        ({"session_token": "98a5a87a-7714"}, False),
        ({"first_name": "Margaret"}, False),
        ({"first_name": "Margret"}, True),
        ({"email": "ann@else.example"}, True),
        ({"new_date": "2026-06-19"}, True),
        ({"new_date": "2026-05-11"}, False),
        ({"order_id": "<order_id>"}, True),
    ],
)
def test_an_argument_that_nobody_gave(args: dict[str, Any], is_wrong: bool) -> None:
    user = "I am Margaret, please change my order #W2378156 for today"
    talk = conversation(turn(user, call("change_order", "ok", **args), "Done."), policy=POLICY)
    assert [proof.call for proof in wrong_arguments(talk)] == ([0] if is_wrong else [])


def test_a_list_written_as_text_is_a_habit_where_it_was_accepted() -> None:
    schema = {"type": "object", "properties": {"ids": {"type": "array", "items": {"type": "string"}}}}
    tools = {"find": ToolFacts(parameters=schema)}
    accepted, refused = (
        call("find", "ok", ids='["a"]'),
        call("find", {"error": "ids"}, is_error=True, ids='["a"]'),
    )
    assert not list(wrong_arguments(conversation(turn("?", accepted, "Found."), tools=tools)))
    assert list(wrong_arguments(conversation(turn("?", refused, "Found."), tools=tools)))
    assert list(wrong_arguments(conversation(turn("?", call("find", "ok", ids=3), "Found."), tools=tools)))


# ── calls ────────────────────────────────────────────────────────────────────────────────────────


def test_the_identical_call_at_once_after_an_error() -> None:
    failed = call("book", {"error": "no such room"}, is_error=True, room=7)
    busy = call("book", {"error": "server busy, try again"}, is_error=True, room=7)
    other = call("book", {"error": "no such room"}, is_error=True, room=8)

    def found(*calls: Any) -> list[int | None]:
        return [proof.call for proof in ignored_tool_error(conversation(turn("?", *calls, "It failed.")))]

    assert found(failed, failed) == [1]
    assert found(failed, failed, failed) == [1, 2]
    assert found(failed, other) == found(busy, busy, busy) == []
    assert found(busy, busy, busy, busy) == [3]
    assert found((failed, failed)) == []  # made at the same time


def test_a_look_up_that_waits_for_something_is_no_repetition() -> None:
    waiting, ready = call("get_job", "running", id=1), call("get_job", "done", id=1)
    assert not list(repeated_tool_call(conversation(turn("?", waiting, waiting, ready, "Done."))))
    assert list(repeated_tool_call(conversation(turn("?", waiting, waiting, "It runs."))))


# ── claims ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("answer", "is_claim"),
    [
        ("I've cancelled your order.", True),
        ("I have now canceled it.", True),
        ("Your order has been successfully cancelled.", True),
        ("Your order has been cancelled.", False),  # it may have been so before
        ("I can cancel it.", False),
        ("I've found your order.", False),
    ],
)
def test_a_claimed_action_without_a_call_that_could_have_done_it(answer: str, is_claim: bool) -> None:
    tools = {"cancel_order": ToolFacts(), "get_order": ToolFacts()}
    looked_up = call("get_order", ORDER, order_id="#W2378156")
    assert (
        bool(list(claimed_action_not_called(conversation(turn("?", looked_up, answer), tools=tools))))
        is is_claim
    )
    done = call("cancel_order", "ok", order_id="#W2378156")
    assert not list(claimed_action_not_called(conversation(turn("?", done, answer), tools=tools)))
