"""``expect.agents``: who spoke in which order, with unnamed steps, in finished and ongoing conversations."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.core.trajectory import Step, ToolCall, Turn
from agenteval.scoring.checks.agents import AGENTS, check_agents, find_agent_name_mistakes
from agenteval.scoring.checks.check_rule import CheckInput, CheckOutcome

CALL = ToolCall(name="look", args={})


def turn(*names: str) -> Turn:
    return Turn(user="u", steps=tuple(Step(text="x", agent=name) for name in names))


def outcome(expected: str, *turns: Turn, **more: Any) -> CheckOutcome:
    return check_agents(tuple(expected), CheckInput(turns, **more))


@pytest.mark.parametrize(
    ("expected", "spoken", "passed", "passed_so_far"),
    [
        ("ab", "ab", True, True),
        ("ab", "aab", True, True),
        ("ab", "abbb", True, True),
        ("ab", "a", False, True),
        ("ab", "b", False, False),
        ("ab", "ba", False, False),
        ("ab", "aba", False, False),
        ("ab", "abc", False, False),
        ("aba", "aba", True, True),
        ("aba", "ab", False, True),
        ("a", "a", True, True),
        ("a", "ab", False, False),
        ("abc", "ac", False, False),
        # Steps without a name (_) may be by anyone expected, or by several.
        ("ab", "_", None, None),
        ("ab", "a_", None, None),
        ("ab", "_b", None, None),
        ("abc", "_", None, None),
        ("abc", "a_c", None, None),
        ("ab", "a_a", False, None),
        ("ab", "b_a", False, False),
        ("ab", "_c", False, False),
        ("ab", "_a", False, None),  # without b at the end
        ("ab", "ab_", None, None),
        ("ab", "_ab", None, None),
        ("ab", "", None, None),
    ],
)
def test_who_spoke_in_which_order(
    expected: str, spoken: str, passed: bool | None, passed_so_far: bool | None
) -> None:
    names = [name.replace("_", "") for name in spoken]
    whole, each_apart = turn(*names), [turn(name) for name in names]
    assert outcome(expected, whole).passed is passed
    assert outcome(expected, *each_apart).passed is passed
    assert outcome(expected, whole, is_ongoing=True).passed is passed_so_far


@pytest.mark.parametrize(
    ("expected", "spoken", "is_lasting", "is_by_absence"),
    [
        ("ab", "a", False, True),
        ("ab", "b", True, True),
        ("ab", "ba", True, False),
        ("ab", "abc", True, False),
        ("abc", "ac", True, True),
        ("ab", "_a", False, True),  # b may have spoken without being recorded
        ("ab", "_c", True, False),
    ],
)
def test_a_wrong_order(expected: str, spoken: str, is_lasting: bool, is_by_absence: bool) -> None:
    found = outcome(expected, turn(*(name.replace("_", "") for name in spoken)))
    assert (found.passed, found.is_lasting, found.is_by_absence) == (False, is_lasting, is_by_absence)


@pytest.mark.parametrize(
    ("expected", "spoken", "wanted", "actual"),
    [
        ("abc", "ac", "b", "c"),
        ("abc", "b", "a", "b"),
        ("ab", "a", "b", ""),
        ("a", "ab", "", "b"),
        ("ab", "ba", "a", "b"),
    ],
)
def test_the_part_names_the_first_difference(expected: str, spoken: str, wanted: str, actual: str) -> None:
    (part,) = outcome(expected, turn(*spoken)).parts
    assert part.startswith(f"{wanted}," if wanted else "")
    assert part.endswith(f" {actual}" if actual else "")
    assert part[:1].isalpha()
    assert (part[1:2] == ",", part[-2:-1] == " ") == (bool(wanted), bool(actual))


def test_an_interrupted_turn_counts() -> None:
    assert outcome("ab", turn("a"), unfinished=turn("b")).passed is True
    assert outcome("a", turn("a"), unfinished=turn("b")).passed is False


def test_steps_that_call_or_hand_over_count_and_empty_ones_do_not() -> None:
    calls = Turn(user="u", steps=(Step(tool_calls=(CALL,), agent="a"), Step(text="x", agent="b")))
    assert outcome("ab", calls).passed is True
    handed = Turn(user="u", steps=(Step(text="x", agent="b", handed_by=("a",)),))
    assert outcome("ab", handed).passed is True
    silent = Turn(user="u", steps=(Step(), Step(text="x", agent="b")))
    assert outcome("b", silent).passed is True
    assert outcome("b").passed is None


def test_many_names_are_cut_in_the_detail() -> None:
    detail = outcome("a", turn(*(f"agent-{number}" for number in range(31)))).detail
    assert "agent-29" in detail
    assert "agent-30" not in detail
    assert "1 more" in detail
    all_shown = outcome("a", turn(*(f"agent-{number}" for number in range(30)))).detail
    assert ("agent-29" in all_shown, "0 more" in all_shown) == (True, False)


@pytest.mark.parametrize(
    ("written", "paths"),
    [
        (["a", "b", "a"], []),
        (["a", "a"], [(1,)]),
        (["a", "b", "b", "b"], [(2,), (3,)]),
        (["", "a"], [(0,)]),
        (["a", "  "], [(1,)]),
        ([" ", " "], [(0,), (1,)]),
        ("", [()]),
        ("a", []),
        ([], []),
        ([1, 1], [(1,)]),
        (None, []),
    ],
)
def test_mistakes_in_names(written: Any, paths: list[tuple[int, ...]]) -> None:
    assert [mistake.path for mistake in find_agent_name_mistakes(written)] == paths


def test_the_rule() -> None:
    (rule,) = AGENTS
    assert (rule.name, rule.needs_answers) == ("agents", True)
