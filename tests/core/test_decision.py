"""The verdict of a run, as it is told, and losses that are tolerated."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.core.decision import TOLERANCE, AcceptedState, Decision, GateRow
from agenteval.core.score import Verdict

PASSED, INCONCLUSIVE, FAILED = Verdict


def decided(verdict: Verdict = PASSED, *gates: GateRow, **more: Any) -> Decision:
    return Decision(verdict, 0, gates, {}, {}, **more)


def row(verdict: Verdict, scenario: str = "", agent: str = "", name: str = TOLERANCE) -> GateRow:
    return GateRow(name, 0.0, 0.1, "", "", verdict, scenario, agent)


@pytest.mark.parametrize(
    ("verdict", "reported", "label"),
    [
        (PASSED, False, "passed"),
        (PASSED, True, "reported"),
        (FAILED, True, "failed"),
        (INCONCLUSIVE, True, "inconclusive"),
        (INCONCLUSIVE, False, "inconclusive"),
    ],
)
def test_a_log_without_expectations_has_not_passed(verdict: Verdict, reported: bool, label: str) -> None:
    assert decided(verdict, is_reported=reported).verdict_label == label


@pytest.mark.parametrize(
    ("gates", "tolerated"),
    [
        ([], False),
        ([row(PASSED, name="pass_rate")], False),
        ([row(PASSED)], True),
        ([row(INCONCLUSIVE)], False),
        ([row(PASSED), row(FAILED, "a", "x")], False),
        ([row(PASSED), row(FAILED, "a", "y"), row(FAILED, "b", "x")], True),
        ([row(FAILED), row(PASSED, "a", "x")], False),
        ([row(PASSED, "a", "x")], True),
        ([row(PASSED, "a", "y")], False),
        ([row(PASSED), row(FAILED, "a", "x", "pass_rate")], True),
        ([row(PASSED), row(FAILED, "a")], True),  # of no agent
    ],
)
def test_losses_within_the_tolerance(gates: list[GateRow], tolerated: bool) -> None:
    assert decided(PASSED, *gates).tolerates_losses("a", "x") is tolerated


def test_words_in_reports() -> None:
    assert TOLERANCE == "fault_tolerance"
    assert [str(state) for state in AcceptedState] == ["accepted", "expired", "not met"]
    fresh = decided()
    assert (fresh.without_scenarios, fresh.is_reported) == (False, False)
