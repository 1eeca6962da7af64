"""What only a judge would have decided, without a judge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anyio
import pytest

from agenteval.core.scenario import Scenario
from agenteval.core.score import Check
from agenteval.core.trajectory import Stop, StopReason
from agenteval.scoring.judges.unjudged_checks import UnjudgedChecks
from tests.support.trajectories import seen

DONE = Stop(reason=StopReason.SCRIPT_DONE)
TWO = {"turns": [{"user": "hi", "expect": {"criteria": ["b"]}}], "expect": {"criteria": ["a", "c"]}}


def checked(
    scenario: dict[str, Any] | None = None, *, vacuous: bool = False, stop: Stop | None = DONE, **more: Any
) -> Sequence[Check]:
    given = Scenario.model_validate({"id": "s", "source": "s/a.yaml:2", **(scenario or {})})
    return anyio.run(UnjudgedChecks(lambda _: vacuous, **more), given, seen(stop=stop))


def test_each_criterion_is_an_undecided_check_at_its_line() -> None:
    found = checked(TWO)
    assert [(each.name, each.passed) for each in found] == [("criteria", None)] * 3
    assert sorted(each.detail.rpartition(": ")[2] for each in found) == ["a", "b", "c"]
    assert all("--no-judge" in each.detail for each in found)
    assert all(each.where.startswith("s/a.yaml") for each in found)


@pytest.mark.parametrize("vacuous", [True, False])
def test_a_scenario_that_nothing_else_checks_is_undecided(vacuous: bool) -> None:
    found = checked(vacuous=vacuous)
    assert [(each.name, each.passed, each.where) for each in found] == [
        ("judges", None, "s/a.yaml:2")
    ] * vacuous


def test_a_criterion_says_enough_for_a_scenario_that_nothing_else_checks() -> None:
    assert {each.name for each in checked(TWO, vacuous=True)} == {"criteria"}


def test_the_reason_is_given() -> None:
    for found in (checked(TWO, why="no model"), checked(vacuous=True, why="no model")):
        assert all("(no model)" in each.detail for each in found)
        assert found


@pytest.mark.parametrize(
    ("stop", "is_checked"),
    [
        (None, True),
        (DONE, True),
        (Stop(reason=StopReason.USER_DONE), True),
        (Stop(reason=StopReason.INFRASTRUCTURE), False),
        (Stop(reason=StopReason.SIMULATOR), False),
        (Stop(reason=StopReason.AGENT_ERROR), False),
    ],
)
def test_a_conversation_that_ended_by_a_fault_is_decided_by_it(stop: Stop | None, is_checked: bool) -> None:
    assert bool(checked(TWO, stop=stop)) is is_checked
    assert bool(checked(vacuous=True, stop=stop)) is is_checked


def test_it_is_about_the_conversation() -> None:
    assert UnjudgedChecks.scope == "conversation"
