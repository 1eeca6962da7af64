"""The goal judge is asked again only where it excused a goal, and not while a run stops."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import anyio
import pytest

from agenteval.conversation.runtime import RunControl
from agenteval.core.event import Event, Reconsidered
from agenteval.core.scenario import SampleKey
from agenteval.core.score import RULED_OUT, ScoreFailure
from agenteval.running.goal_recheck import GoalRecheck, goal_judges
from agenteval.scoring.goals import GOAL
from agenteval.verdict.report import build_report
from tests.support.verdict_runs import PASS, Played, events_of, score, unclear, whole

KEY = SampleKey(scenario="a", agent="bot")
SETTLED = Reconsidered(key=KEY, metric=GOAL, items=(unclear(GOAL, RULED_OUT),))
OPEN = Reconsidered(key=KEY, metric=GOAL, items=(ScoreFailure(metric=GOAL, message="no", refused=True),))


class Reviewer:
    """Asks so often, says what it found, and may stop the run before."""

    def __init__(self, asked: int, control: RunControl | None = None) -> None:
        self.asked, self.control = asked, control
        self.scenarios: list[str] = []

    async def __call__(self, scenarios: Sequence[Any], emit: Any) -> int:
        self.scenarios += [each.scenario.id for each in scenarios]
        if self.control:
            self.control.stop("interrupted")
        for event in (SETTLED, OPEN):
            emit(event)
        return self.asked


def rechecked(reviewer: Any, played: Played, control: RunControl | None = None) -> tuple[bool, list[Event]]:
    events = list(events_of({"a": [played]}))
    recheck = GoalRecheck(reviewer)
    for event in events:
        recheck(event)
    seen: list[Event] = []
    result = anyio.run(recheck.recheck, partial(build_report, events), seen.append, control or RunControl())
    return result, seen


EXCUSED = whole(unclear(GOAL, RULED_OUT))


@pytest.mark.parametrize(
    ("played", "asked", "expected"),
    [
        (EXCUSED, 1, True),
        (EXCUSED, 2, True),
        (EXCUSED, 0, False),
        (PASS, 1, False),
        (whole(score(GOAL, 1.0)), 1, False),
    ],
)
def test_only_an_excused_goal_is_asked_about_again(played: Played, asked: int, expected: bool) -> None:
    reviewer = Reviewer(asked)
    result, seen = rechecked(reviewer, played)
    assert result is expected
    is_asked = played is EXCUSED
    assert reviewer.scenarios == (["a"] if is_asked else [])
    assert seen == ([SETTLED, OPEN] if is_asked else [])


def test_a_run_that_stops_asks_nothing() -> None:
    control = RunControl()
    control.stop("interrupted")
    reviewer = Reviewer(1)
    assert rechecked(reviewer, EXCUSED, control) == (False, [])
    assert reviewer.scenarios == []


def test_what_is_not_settled_is_asked_when_the_run_is_resumed() -> None:
    control = RunControl()
    assert rechecked(Reviewer(1, control), EXCUSED, control) == (True, [SETTLED])


def test_other_judges_are_no_judges_of_goals() -> None:
    assert goal_judges({}) == {}
    other: Any = object()
    assert goal_judges({"bot": [other]}) == {}
