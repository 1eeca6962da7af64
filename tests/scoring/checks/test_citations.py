"""``expect.output.cites``: what the agent must state, and must have from a tool result before it."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.core.trajectory import Step, ToolResult, Turn
from agenteval.scoring.checks.check_rule import CheckInput, CheckOutcome
from agenteval.scoring.checks.citations import CITES, check_citations, find_citation_mistakes
from tests.support.detector_samples import call, turn

RESULT = {"id": "BK-001", "price": 12.5, "seats": [3, 4], "paid": True}
BOOKED = call("book", RESULT)


def outcome(needles: list[str], *turns: Turn, **more: Any) -> CheckOutcome:
    return check_citations(needles, CheckInput(turns, **more))


@pytest.mark.parametrize(
    ("turns", "passed"),
    [
        ((turn("a", BOOKED, "It is BK-001."),), True),
        ((turn("a", "It is BK-001."),), False),
        ((turn("a", BOOKED, "It is booked."),), False),
        ((turn("BK-001", "It is BK-001."),), False),  # the user's words
        ((turn("a", BOOKED, "Yes."), turn("b", "It is BK-001.")), True),
        ((turn("a", "It is BK-001."), turn("b", BOOKED, "Yes.")), False),  # the result came later
        ((turn("a", "It is BK-001."), turn("b", BOOKED, "BK-001 it is.")), True),
        ((turn("a", BOOKED, "BK-0010"),), False),
        ((), False),
        ((turn("a", call("book", {"id": "BK-002"}), "It is BK-001."),), False),
    ],
)
def test_a_text_is_answered_and_found_in_an_earlier_result(turns: tuple[Turn, ...], passed: bool) -> None:
    found = outcome(["BK-001"], *turns)
    assert (found.passed, found.parts) == (passed, () if passed else ("BK-001",))


def test_results_before_the_checked_turn_count() -> None:
    answer = turn("b", "It is BK-001.")
    assert outcome(["BK-001"], answer, before=[turn("a", BOOKED, "x")]).passed is True
    assert outcome(["BK-001"], answer, before=[turn("a", "It is BK-001.")]).passed is False


@pytest.mark.parametrize(
    ("result", "needle", "passed"),
    [
        (RESULT, "12.5", True),
        (RESULT, "12.50", True),  # as amounts are written
        (RESULT, "3", True),
        (RESULT, "3.00", True),
        (RESULT, "seats", True),  # a key
        (RESULT, "5", False),
        ({"paid": 1}, "1.00", True),
        ({"paid": -3}, "-3.00", True),
        ({"paid": 2.5}, "2.50", True),
        ({"id": 10**400, "paid": 3}, "3.00", True),  # too large for a float
        ({"id": 10**400}, str(10**400), True),
        ({"id": 10**400}, "7.00", False),
        ({"id": 2**53 + 1}, "9007199254740993.00", True),
        ({"paid": 1e400}, "3.00", False),
        ({"paid": True}, "1.00", False),
        ("plain text", "text", True),
        ('{"note": "caf\\u00e9 \\n bar"}', "café", True),  # an escape in JSON text
        ('{"caf\\u00e9": 1}', "café", True),
        ({"deep": [{"er": ["x-9"]}]}, "x-9", True),
        (None, "x", False),
        ({"error": "no x-9"}, "x-9", True),
    ],
)
def test_where_a_result_holds_a_text(result: Any, needle: str, passed: bool) -> None:
    assert outcome([needle], turn("a", call("look", result), f"Found: {needle}")).passed is passed


@pytest.mark.parametrize(
    ("changes", "passed"),
    [
        ({}, True),
        ({"given_up": True}, False),
        ({"attempted": True}, False),
        ({"result": None}, False),
        ({"result": ToolResult(value="BK-001", refused=True)}, False),
        ({"result": ToolResult(value="BK-001", is_error=True)}, True),
        ({"observed": True}, True),
    ],
)
def test_results_that_count(changes: dict[str, Any], passed: bool) -> None:
    made = BOOKED.model_copy(update=changes)
    assert outcome(["BK-001"], turn("a", made, "It is BK-001.")).passed is passed


@pytest.mark.parametrize(
    ("needles", "parts", "is_by_absence"),
    [
        (["BK-001"], (), False),
        (["ghost"], ("ghost",), True),  # a call that was not seen may have returned it
        (["unsaid"], ("unsaid",), False),
        (["ghost", "unsaid"], ("unsaid", "ghost"), False),
        (["BK-001", "ghost"], ("ghost",), True),
    ],
)
def test_what_is_missing(needles: list[str], parts: tuple[str, ...], is_by_absence: bool) -> None:
    found = outcome(needles, turn("a", BOOKED, "BK-001 and ghost."))
    assert (found.passed, found.parts, found.is_by_absence) == (not parts, parts, is_by_absence)
    assert not found.is_lasting


def test_reasoning_is_no_answer_and_an_interrupted_turn_is_none() -> None:
    thought = Turn(user="u", steps=(Step(tool_calls=(BOOKED,)), Step(text="<think>BK-001</think> Done.")))
    assert outcome(["BK-001"], thought).passed is False
    assert outcome(["BK-001"], unfinished=turn("a", BOOKED, "It is BK-001.")).passed is False


def test_the_number_of_calls_is_shown() -> None:
    counts = [
        outcome(["ghost"], turn("a", *[call("look")] * number, "ghost"), before=[turn("b", *before)]).detail
        for number, before in ((0, ()), (1, ()), (1, (call("look"),)))
    ]
    assert ["1 " in counts[1], "2 " in counts[2]] == [True, True]
    assert not any(figure in counts[0] for figure in "0123456789")


@pytest.mark.parametrize(
    ("written", "count"),
    [
        ("tool results only", 1),
        (" Tool Results ", 1),
        ("tool_results", 1),
        ("TOOLS", 1),
        ("tool", 0),
        ("BK-001", 0),
        (["tools"], 0),
        (None, 0),
    ],
)
def test_a_description_of_the_key_is_a_mistake(written: Any, count: int) -> None:
    assert len(list(find_citation_mistakes(written))) == count


def test_the_rule() -> None:
    (rule,) = CITES
    assert (rule.name, rule.needs_answers) == ("output.cites", True)
