"""A conversation that is decided before its run has ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from agenteval.core.event import RunStarted
from agenteval.core.scenario import Sample, SampleKey
from agenteval.core.score import OUTCOME, Check, Severity, Verdict
from agenteval.core.trajectory import StopReason
from agenteval.verdict.sample_ending import build_ended_conversation
from tests.support.verdict_runs import (
    BROKEN,
    GOAL,
    HELD,
    LOST,
    UNDECIDED,
    Played,
    events_of,
    finding,
    judge_failed,
    score,
    unclear,
    whole,
)

PASSED, FAILED, OPEN = Verdict.PASSED, Verdict.FAILED, Verdict.INCONCLUSIVE


def ended(played: Played, others: Sequence[Played | None] = (None,), **more: Any) -> Any:
    first, *_ = events_of({"a": [played, *others], "b": [None]}, **more)
    assert isinstance(first, RunStarted)
    key = SampleKey(scenario="a", agent="bot")
    sample = Sample(key=key, scenario=first.scenarios[0])
    return build_ended_conversation(first, sample, played.events(key))


@pytest.mark.parametrize(
    ("played", "verdict", "failed"),
    [
        (whole(HELD), PASSED, False),
        (whole(BROKEN), FAILED, True),
        (whole(UNDECIDED), OPEN, False),
        (LOST, OPEN, False),
        (Played(stop=StopReason.AGENT_ERROR), FAILED, True),
        (whole(finding(Severity.CRITICAL)), FAILED, True),
        (whole(finding(Severity.HIGH)), PASSED, False),
        (whole(score(GOAL, 1.0)), PASSED, False),
        (whole(score(GOAL, 0.0)), PASSED, True),  # it missed its goal
        (whole(unclear(GOAL)), PASSED, False),
        (whole(judge_failed("stars")), PASSED, False),
        (whole(Check(name=OUTCOME, passed=False)), FAILED, True),
        (whole(Check(name=OUTCOME, passed=None)), PASSED, False),
    ],
)
def test_what_an_ended_conversation_comes_to(played: Played, verdict: Verdict, failed: bool) -> None:
    found = ended(played)
    assert (found.decision.verdict, found.failed) == (verdict, failed)
    assert found.sample.key == SampleKey(scenario="a", agent="bot")


def test_the_rules_of_the_run_apply() -> None:
    found = ended(whole(finding(Severity.HIGH)), fail_on_severity="high")
    assert (found.decision.verdict, found.failed) == (FAILED, True)
    found = ended(whole(finding(Severity.CRITICAL)), fail_on_severity="none")
    assert (found.decision.verdict, found.failed) == (PASSED, False)
