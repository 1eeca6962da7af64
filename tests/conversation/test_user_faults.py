"""What no user would write, found in code before the agent reads it; and facts that nobody can know."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.conversation.user_faults import find_leaked_text, find_missing_fact, find_user_fault
from agenteval.core.scenario import Scenario
from agenteval.core.trajectory import Step, ToolCall, ToolResult, Trajectory, Turn

LONG = "Your order left the warehouse this morning and should arrive by Friday at the latest, by parcel post."
TALK = Trajectory(
    turns=(
        Turn(user="Where is order ORD-42?", steps=(Step(text="What is your name?"),)),
        Turn(user="Yes", steps=(Step(text=LONG),)),
    )
)


def scenario(**more: Any) -> Scenario:
    return Scenario.model_validate({"id": "s", "name": "late order", "goal": "Find my order ORD-42.", **more})


def needs(name: str, **args: Any) -> dict[str, Any]:
    return {"tool_calls": {"calls": [{"name": name, "args": args}]}}


def fault(message: str, talk: Trajectory = TALK, *, known: Scenario | None = None, **more: Any) -> str:
    return find_user_fault(message, known or scenario(), talk, **more)


@pytest.mark.parametrize(
    ("message", "fact"),
    [
        ("Where is order ord-42?!", "repeated"),
        ("User: where is it?", "User:"),
        ("As the user I want to know it", "As the user"),
        ('{"message": "hi"}', "message"),
        ("<think>hm</think> where?", "<think>"),
        ("How can I help you today?", "assistant"),
        ("As an AI I cannot", "assistant"),
        (LONG, "assistant"),
        (f"{LONG} ok", "assistant"),
        ("It is ORD-43", "ORD-43"),
        ("Card 4111 1111 1111 1111", "4111"),
        ("I am ann@home.example", "ann@home.example"),
        ("My account is 1234567", "1234567"),
    ],
)
def test_a_fault(message: str, fact: str) -> None:
    assert fact in fault(message)


@pytest.mark.parametrize(
    "message",
    [
        "Yes",  # said before, and an answer to another question
        "Where is order ORD-42 now?",
        "It is ORD 42",
        "My name is Ann, I have called 3 times since 10:30",
        "I was told that you can help me with it",
        "My account is 123456",
        "Fine.",
    ],
)
def test_no_fault(message: str) -> None:
    assert fault(message) == ""


def test_what_may_be_known_or_made_up() -> None:
    assert fault("It is BK-77") != ""
    assert fault("It is BK-77", invented="the booking BK-77") == ""
    assert fault("It is BK-77", known=scenario(knowledge=["The booking is BK 77."])) == ""
    assert fault("It is BK-77", known=scenario(turns=[{"user": "I booked bk77"}, {"simulate": 1}])) == ""


@pytest.mark.parametrize(
    ("done", "turns", "script", "is_fault"),
    [
        (False, 2, False, True),
        (True, 2, False, False),
        (True, 0, False, True),
        (True, 0, True, False),
        (False, 0, True, True),
    ],
)
def test_an_empty_message_is_an_end_where_something_was_said(
    done: bool, turns: int, script: bool, is_fault: bool
) -> None:
    known = scenario(turns=[{"simulate": 1}, {"user": "then"}]) if script else scenario()
    talk = Trajectory(turns=TALK.turns[:turns])
    assert bool(fault("  ", talk, known=known, done=done)) is is_fault


SOUGHT = {"output": {"contains": ["BK-001", "shipped"]}, **needs("book", room="R7", at="09:00")}


@pytest.mark.parametrize(
    ("message", "leaked"),
    [
        ("Is it BK-001?", "BK-001"),
        ("Room r7, please", "R7"),
        ("At 09:00, please", ""),  # a time is put in the user's own words
        ("Was it shipped?", ""),  # no digit: anybody may think of it
        ("Hello", ""),
    ],
)
def test_a_text_that_checks_look_for_is_not_given_away(message: str, leaked: str) -> None:
    known = scenario(expect=SOUGHT)
    assert find_leaked_text(message, known, Trajectory()) == leaked
    assert bool(find_user_fault(message, known, Trajectory())) is bool(leaked)


@pytest.mark.parametrize(
    "more",
    [
        {"knowledge": ["My booking is BK 001."]},
        {"profile": "Has the booking bk-001."},
        {"goal": "Cancel BK-001."},
        {"beliefs": [{"belief": "The booking is BK-001."}]},
    ],
)
def test_what_the_user_was_given_is_no_leak(more: dict[str, Any]) -> None:
    assert find_leaked_text("BK-001", scenario(expect=SOUGHT, **more), Trajectory()) == ""


def test_what_the_agent_has_said_is_no_leak() -> None:
    talk = Trajectory(turns=(Turn(user="Hi", steps=(Step(text="Your booking is BK-001."),)),))
    assert find_leaked_text("BK-001", scenario(expect=SOUGHT), talk) == ""
    assert find_leaked_text("2026-03-04", scenario(), talk, now="2026-03-04") == ""


GET = {"get_order": {"parameters": {"type": "object"}, "returns": {"id": "X-9"}}}
NEEDS = needs("get_order", orderId="QQ-17")


@pytest.mark.parametrize(
    ("unknown", "more", "is_missing"),
    [
        ("the order number", {}, True),
        ("orders", {}, True),
        ("the date of birth", {}, False),
        ("the order number", {"knowledge": ["It is QQ 17."]}, False),
        ("the order number", {"tools": {"get_order": {"returns": "QQ-17"}}}, False),
        ("the order number", {"tools": {"get_order": {"python": "m.py:f"}}}, False),
        ("the order number", {"expect": needs("get_order", orderId="seven")}, False),
        ("the order number", {"expect": needs("get_order", orderId={"$in": ["QQ-17"]})}, False),
        ("the order number", {"expect": needs("get_order", id=["QQ-17"])}, True),
    ],
)  # fmt: skip
def test_a_fact_that_an_expected_call_needs(unknown: str, more: dict[str, Any], is_missing: bool) -> None:
    known = scenario(**{"tools": GET, "expect": NEEDS, **more})
    problem = find_missing_fact(unknown, known, Trajectory())
    assert (problem is not None) is is_missing
    if problem is not None:
        assert "QQ-17" in problem.what
        assert "knowledge" in problem.remedy


def test_a_fact_that_the_policy_or_a_result_holds_can_be_known() -> None:
    known = scenario(tools=GET, expect=NEEDS)
    assert find_missing_fact("order", known, Trajectory(), policy="The demo order is QQ-17.") is None
    call = ToolCall(name="find", args={}, result=ToolResult(value={"order": "QQ-17"}))
    talk = Trajectory(turns=(Turn(user="Hi", steps=(Step(tool_calls=(call,)),)),))
    assert find_missing_fact("order", known, talk) is None
