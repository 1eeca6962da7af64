"""``--fail-fast``: the first sample that is certain to fail the run, and none before it, stops it."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.conversation.runtime import RunControl
from agenteval.core.event import SampleFinished
from agenteval.core.score import Severity
from agenteval.running.fail_fast import FailFast
from tests.support.verdict_runs import FAIL, LOST, PASS, UNSURE, Played, events_of, finding

CRITICAL = Played((), turns=((finding(),),))
MINOR = Played((), turns=((finding(Severity.LOW),),))
GATE = {"gates": {"pass_hat_k": {"k": 1, "at_least": 0.5, "over": "suite"}}}


def stopped_after(played: list[Played | None], **more: Any) -> int | None:
    """The number of finished samples after which the run is stopped, if it is."""
    control = RunControl()
    sink = FailFast(control)
    finished = 0
    for event in events_of({"a": played}, outcome=None, **more):
        assert not control.is_stopping
        sink(event)
        finished += isinstance(event, SampleFinished)
        if control.is_stopping:
            assert isinstance(event, SampleFinished)
            assert control.outcome == "fail_fast"
            return finished
    return None


@pytest.mark.parametrize(
    ("played", "expected"),
    [
        ([PASS], None),
        ([FAIL], 1),
        ([PASS, FAIL], 2),
        ([UNSURE, LOST, MINOR, FAIL], 4),
        ([PASS, CRITICAL], 2),
        ([PASS, PASS], None),
        ([], None),
    ],
)
def test_the_first_failed_sample_stops_the_run(played: list[Played | None], expected: int | None) -> None:
    assert stopped_after(played) == expected


@pytest.mark.parametrize(
    ("played", "expected"), [([FAIL, FAIL], None), ([FAIL, CRITICAL], 2), ([PASS, MINOR], None)]
)
def test_a_gate_over_runs_tolerates_failures_but_nothing_critical(
    played: list[Played | None], expected: int | None
) -> None:
    assert stopped_after(played, **GATE) == expected


def test_a_sample_that_is_played_again_does_not_count() -> None:
    control = RunControl()
    sink = FailFast(control)
    for event in events_of({"a": [FAIL]}, outcome=None):
        again = isinstance(event, SampleFinished)
        sink(event.model_copy(update={"again": True}) if again else event)
    assert not control.is_stopping


def test_each_agent_is_counted() -> None:
    assert stopped_after([FAIL], agents=("x", "y")) == 1
