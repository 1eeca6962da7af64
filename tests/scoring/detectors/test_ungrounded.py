"""Calls and claims, identifiers in answers and arguments: each finding at its place, the same without the
fault silent."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.core.trajectory import ToolResult
from agenteval.scoring.detectors.arguments import wrong_arguments
from agenteval.scoring.detectors.claims import claimed_action_not_called
from agenteval.scoring.detectors.detector_input import ToolFacts
from agenteval.scoring.detectors.tool_use import ignored_tool_error, repeated_tool_call
from agenteval.scoring.detectors.ungrounded import ungrounded_value
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


def found(answer: str, **more: Any) -> list[str]:
    looked_up = call("get_order", ORDER, order_id="#W2378156")
    user = "What of my order #W2378156? I am Ann, ann@home.example."
    talk = conversation(turn(user, looked_up, answer), policy=POLICY, **more)
    return [proof.evidence for proof in ungrounded_value(talk)]


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        ("Your order #W2378165 is pending.", "#W2378165"),
        ("The receipt is number 5550017234.", "5550017234"),
        ("Write to help@shop.example.", "help@shop.example"),
        ("It is RMA-K88213.", "RMA-K88213"),
        ('{"order": "#W2378156", "label": "LBL-77120"}', "LBL-77120"),
        ("您的订单号是TRK-884213。", "TRK-884213"),
        ("See https://shop.example/track.", "https://shop.example/track"),
    ],
)
def test_an_identifier_that_nobody_gave(answer: str, fault: str) -> None:
    assert found(answer) == [fault]


@pytest.mark.parametrize(
    "answer",
    [
        "Order #W2378156\n- Status: delivered\n- Total: $431.73",  # what is said of it is for judges
        "The lamp is 4447749792, the chair W-8069050545.",
        '{"text": "Of your order:\\nW2378156"}',
        "We write to ANN@home.example, as of 2026-05-19T10:30, for 1,250,000.50 EUR or $1250000.",
        "Please tell me the number, for example #W0000000.",
        "It takes 24h, up to 10kg, within_24_hours, in our IPHONE6 app.",
        "It is 4447749792_2026-05-04.",  # of two that were given
        "I can't say.",
    ],
)
def test_what_was_given_or_is_no_identifier(answer: str) -> None:
    assert found(answer) == []


def test_what_the_agent_said_itself_and_what_a_schema_lists_is_given() -> None:
    talk = conversation(turn("?", "It is TRK-884213."), turn("What?", "TRK-884213, as I said."))
    assert [proof.turn for proof in ungrounded_value(talk)] == [0]
    listed = {"type": "object", "properties": {"plan": {"enum": ["PLAN-1200", "PLAN-2400"]}}}
    tools = {"choose": ToolFacts(parameters=listed)}
    assert found("Take PLAN-2400.") == ["PLAN-2400"]
    assert found("Take PLAN-2400.", tools=tools) == []
    chosen = call("choose", "ok", plan="PLAN-2400")
    assert not list(wrong_arguments(conversation(turn("?", chosen, "Done."), tools=tools)))


def test_a_result_that_is_not_in_the_record_may_have_held_anything() -> None:
    unknown = call("get_order").model_copy(update={"result": None})
    denied = unknown.model_copy(update={"attempted": True})
    for lost, evidence in ((unknown, []), (denied, ["#W9999123"])):
        talk = conversation(turn("?", lost, "Order #W9999123 is there."), policy=POLICY)
        assert [proof.evidence for proof in ungrounded_value(talk)] == evidence


# ── arguments ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("args", "is_wrong"),
    [
        ({"order_id": "#W2378156"}, False),
        ({"order_id": "W2378156"}, False),
        ({"order_id": "#W2378165"}, True),
        ({"order_id": "#W7770042"}, True),
        ({"session_token": "98a5a87a-7714"}, False),
        ({"idempotency_key": "5f0c1c1e-88d1-4c0e-9c55-0d8a7a1b2c3d"}, False),
        ({"first_name": "Margaret"}, False),
        ({"first_name": "Margret"}, False),
        ({"email": "ann@else.example"}, True),
        ({"new_date": "2026-06-19"}, False),
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
        ("I've already **cancelled** it for you!", True),
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
    failed = done.model_copy(update={"result": ToolResult(value="no", is_error=True, refused=True)})
    found = list(claimed_action_not_called(conversation(turn("?", failed, answer), tools=tools)))
    assert bool(found) is is_claim  # it was refused before the tool ran
