"""Each sample on its own, as soon as it has finished."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.core.event import (
    CallsSeen,
    Event,
    IssuesFound,
    Notice,
    RunFinished,
    SampleFinished,
    SampleStarted,
    Scored,
    TurnFinished,
)
from agenteval.core.scenario import EpochRange, SampleKey
from agenteval.core.score import RULED_OUT, Check
from agenteval.core.trajectory import CallEvidence, Stop, StopReason, ToolVisibility
from agenteval.verdict.single_samples import SingleSamples, surely_passes
from tests.support.verdict_runs import (
    BEHAVIOR,
    BROKEN,
    GOAL,
    HELD,
    PASS,
    UNDECIDED,
    Played,
    events_of,
    finding,
    judge_failed,
    score,
    unclear,
    whole,
)

KEY = SampleKey(scenario="a", agent="bot")


def fed(events: list[Event]) -> tuple[SingleSamples, list[list[Event]]]:
    singles = SingleSamples()
    return singles, [list(found) for event in events if (found := singles.add_event(event))]


def test_the_events_of_a_sample_are_returned_when_it_finishes() -> None:
    first, *rest = events_of({"a": [Played((HELD,), ((HELD,), (HELD,)))], "b": [PASS]})
    singles, found = fed([first, *rest])
    assert singles.run is first
    assert [{event.key.scenario for event in each} for each in found] == [{"a"}, {"b"}]  # type: ignore[union-attr]
    assert [type(event) for event in found[0]] == [
        SampleStarted,
        TurnFinished,
        TurnFinished,
        Scored,
        Scored,
        Scored,
        SampleFinished,
    ]


def test_samples_whose_events_alternate_are_kept_apart() -> None:
    first, *rest = events_of({"a": [PASS], "b": [PASS]}, outcome=None)
    half = len(rest) // 2
    mixed = [event for pair in zip(rest[:half], rest[half:], strict=True) for event in pair]
    _, found = fed([first, *mixed])
    assert found == [rest[:half], rest[half:]]


def test_a_sample_that_starts_again_forgets_its_first_attempt() -> None:
    first, start, *rest = events_of({"a": [PASS]}, outcome=None)
    _, found = fed([first, start, rest[0], start, *rest])
    assert found == [[start, *rest]]


def test_a_sample_that_never_started() -> None:
    end = SampleFinished(key=KEY, stop=Stop(reason=StopReason.SCRIPT_DONE))
    assert fed([end])[1] == [[end]]
    scored = Scored(key=KEY, turn=None, items=(HELD,))
    assert fed([scored, end, end])[1] == [[scored, end], [end]]


@pytest.mark.parametrize(
    "event",
    [
        Notice(level="warning", text="x"),
        IssuesFound(issues=()),
        RunFinished(finished_at=""),
        CallsSeen(agent="bot", evidence=CallEvidence.REPORTED),
        SampleStarted(key=KEY),
        Scored(key=KEY, turn=None, items=()),
    ],
)
def test_other_events_finish_nothing(event: Any) -> None:
    assert fed([event])[1] == []


def report_of_one(epochs: int = 3, **more: Any) -> Any:
    first, *rest = events_of({"a": [PASS] * epochs, "b": [PASS]}, outcome=None, **more)
    singles, found = fed([first, *rest])
    key = SampleKey(scenario="a", agent="bot", epoch=1)
    return singles, key, found[1]


def test_the_report_of_one_sample_knows_of_the_others() -> None:
    singles, key, events = report_of_one()
    report = singles.report(key, events)
    (scenario,) = report.scenarios
    assert [sample.key for sample in scenario.samples] == [key]
    assert len(scenario.missing) == 2
    assert [each.id for each in report.run.scenarios] == ["a"]


def test_the_most_epochs_of_a_range_are_planned() -> None:
    singles, key, events = report_of_one(run={"epochs": {"a": EpochRange(min=3, max=7)}})
    (scenario,) = singles.report(key, events).scenarios
    assert (len(scenario.samples), len(scenario.missing)) == (1, 6)


def test_calls_that_other_samples_showed_count() -> None:
    agent = {"agent": {"name": "bot", "target": "a:b"}}
    first, *rest = events_of({"a": [PASS]}, outcome=None, **agent)
    for seen in (False, True):
        evidence: list[Event] = [CallsSeen(agent="bot", evidence=CallEvidence.REPORTED)] if seen else []
        singles, (events,) = fed([first, *evidence, *rest])
        visible = singles.report(KEY, events).visibility_of("bot")
        assert visible is (ToolVisibility.ALL if seen else ToolVisibility.UNSEEN)
        assert singles.report(KEY, events, all_seen=True).visibility_of("bot") is ToolVisibility.ALL


DONE = Stop(reason=StopReason.SCRIPT_DONE)


@pytest.mark.parametrize(
    ("played", "surely"),
    [
        (PASS, True),
        (whole(), True),
        (whole(BROKEN), False),
        (whole(UNDECIDED), False),
        (whole(HELD, BROKEN), False),
        (Played((), ((BROKEN,),)), False),
        (whole(finding()), False),
        (whole(judge_failed("stars")), False),
        (whole(score("stars", 1.0)), True),
        (whole(score(GOAL, 0.0)), True),
        (whole(score(BEHAVIOR, label="x", ok=False)), True),  # its finding decides
        (whole(unclear(GOAL)), False),
        (whole(unclear(GOAL, RULED_OUT)), False),
        (Played(stop=StopReason.AGENT_ERROR), False),
        (Played(stop=StopReason.INFRASTRUCTURE), False),
        (Played(stop=StopReason.MAX_TURNS), True),
        (Played(stop=None), False),
    ],
)
def test_a_sample_that_nothing_could_fail(played: Played, surely: bool) -> None:
    assert surely_passes(played.events(KEY)) is surely


def test_the_last_end_of_a_sample_counts() -> None:
    good = SampleFinished(key=KEY, stop=DONE)
    bad = SampleFinished(key=KEY, stop=Stop(reason=StopReason.BUDGET))
    assert [surely_passes([bad, good]), surely_passes([good, bad]), surely_passes([])] == [True, False, False]
    assert surely_passes([Scored(key=KEY, turn=None, items=(Check(name="x", passed=None),)), good]) is False
