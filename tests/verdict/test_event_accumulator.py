"""The events of a run, folded: a sample that starts again has nothing of its first conversation but what is
kept apart."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.core.config import BudgetConfig
from agenteval.core.event import (
    CallsSeen,
    Event,
    IssuesFound,
    ModelAsked,
    Notice,
    Reconsidered,
    RunFinished,
    RunResumed,
    SampleFinished,
    SampleStarted,
    Scored,
    TurnFinished,
)
from agenteval.core.plan import ScenarioRules
from agenteval.core.scenario import SampleKey, Scenario
from agenteval.core.score import HINDERED, Check, Score, ScoreFailure, UserReview
from agenteval.core.trajectory import CallEvidence, Stop, StopReason
from agenteval.verdict.event_accumulator import RunAccumulator, SampleAccumulator
from agenteval.verdict.report import build_report
from tests.support.report_samples import CASE, started, turn

KEY = SampleKey(scenario=CASE.id, agent="wonderbot")


def check(name: str) -> Check:
    return Check(name=name, passed=False, detail="it broke", where="s.yaml:1")


def test_an_interrupted_conversation_leaves_neither_turns_nor_results() -> None:
    report = build_report([
        started((CASE,), (KEY,)),
        SampleStarted(key=KEY),
        TurnFinished(key=KEY, index=0, turn=turn("first", "one")),
        TurnFinished(key=KEY, index=1, turn=turn("first", "two")),
        Scored(key=KEY, turn=1, items=(check("of the first"),)),
        Scored(key=KEY, turn=None, items=(check("of all of the first"),)),
        SampleStarted(key=KEY),
        TurnFinished(key=KEY, index=0, turn=turn("second", "three")),
        Scored(key=KEY, turn=0, items=(check("of the second"),)),
        SampleFinished(key=KEY, stop=Stop(reason=StopReason.SCRIPT_DONE)),
    ])  # fmt: skip
    (sample,) = report.samples
    assert [each.turn.user for each in sample.turns] == ["second"]
    assert [each.name for each in sample.all_checks] == ["of the second"]
    assert sample.lost_attempts == ()


def test_the_order_of_other_samples_does_not_matter() -> None:
    other = SampleKey(scenario=CASE.id, agent="wonderbot", epoch=1)
    ends = Stop(reason=StopReason.SCRIPT_DONE)
    mine: list[Event] = [
        SampleStarted(key=KEY),
        TurnFinished(key=KEY, index=0, turn=turn("mine", "one")),
        SampleFinished(key=KEY, stop=ends),
    ]
    theirs: list[Event] = [
        SampleStarted(key=other),
        TurnFinished(key=other, index=0, turn=turn("theirs", "two")),
        SampleFinished(key=other, stop=ends),
    ]
    begun = started((CASE,), (KEY, other))
    interleaved = [each for pair in zip(mine, theirs, strict=True) for each in pair]
    assert build_report([begun, *mine, *theirs]) == build_report([begun, *interleaved])


# ── a sample ─────────────────────────────────────────────────────────────────────────────────────

FAILURE = ScoreFailure(metric="criteria", message="not called", refused=True)


def mark(metric: str, value: float = 1.0) -> Score:
    return Score(metric=metric, value=value)


def ended(key: SampleKey = KEY, reason: StopReason = StopReason.SCRIPT_DONE, **more: Any) -> SampleFinished:
    return SampleFinished(key=key, stop=Stop(reason=reason), **more)


def review(turn: int | None, *, explains: bool = True) -> UserReview:
    return UserReview(label=HINDERED, explains=explains, turn=turn)


@pytest.mark.parametrize(
    ("turn", "aside", "kept"),
    [
        (None, {"all", "0", "1", "2"}, set()),
        (0, {"all", "0", "1", "2"}, set()),
        (1, {"all", "1", "2"}, {"0"}),
        (2, {"all", "2"}, {"0", "1"}),
        (3, {"all"}, {"0", "1", "2"}),
    ],
)
def test_a_user_at_fault_sets_aside_what_follows(turn: int | None, aside: set[str], kept: set[str]) -> None:
    sample = SampleAccumulator()
    for place in (0, 1, 2, None):
        sample.score(place, [mark("all" if place is None else str(place))])
    found = review(turn)
    sample.score(None, [found, mark("after")])
    assert {item.metric for item in sample.aside if isinstance(item, Score)} == aside
    left = [item for place, items in sample.items.items() if place is not None for item in items]
    assert {item.metric for item in left if isinstance(item, Score)} == kept
    assert sample.items[None] == [found, mark("after")]


def test_a_review_that_decides_nothing_sets_nothing_aside() -> None:
    sample = SampleAccumulator()
    sample.score(0, [mark("a")])
    sample.score(0, [mark("b")])
    sample.score(None, [review(0, explains=False)])
    assert sample.aside == []
    assert sample.items == {0: [mark("a"), mark("b")], None: [review(0, explains=False)]}


def test_how_a_sample_ended() -> None:
    sample = SampleAccumulator()
    assert (sample.stop, sample.is_over, sample.is_lost, sample.unfinished) == (None, False, False, None)
    end = ended(unfinished=turn("so", None), names={"a": ("b",)})
    sample.finish(end)
    assert (sample.stop, sample.is_over, sample.is_lost) == (end.stop, True, False)
    assert (sample.unfinished, sample.names) == (end.unfinished, {"a": ("b",)})
    for again in (ended(again=True), ended(refused=True), ended(reason=StopReason.BUDGET)):
        sample.finish(again)
        assert (sample.is_over, sample.is_lost) == (False, again.again)


def test_a_conversation_that_was_lost_is_kept_and_an_interrupted_one_is_not() -> None:
    first = SampleAccumulator()
    first.finish(ended(reason=StopReason.INFRASTRUCTURE, again=True))
    second = first.restart()
    assert second.lost == (first,)
    assert (second.turns, second.items, second.stop) == ({}, {}, None)
    third = second.restart()  # of the second nothing remains
    assert third.lost == (first,)
    third.finish(ended(again=True))
    assert third.restart().lost == (first, third)


def test_a_second_judgement_replaces_that_of_its_metric() -> None:
    sample = SampleAccumulator()
    sample.score(None, [mark("criteria"), mark("stars"), check("answer")])
    sample.score(0, [mark("criteria")])
    sample.finish(ended())
    sample.reconsider(Reconsidered(key=KEY, metric="criteria", items=(mark("criteria", 0.0),)))
    assert sample.items[None] == [mark("stars"), check("answer"), mark("criteria", 0.0)]
    assert sample.items[0] == [mark("criteria")]
    assert sample.is_over
    sample.reconsider(Reconsidered(key=KEY, metric="criteria", items=(FAILURE,)))
    assert sample.items[None] == [mark("stars"), check("answer"), FAILURE]
    assert not sample.is_over
    sample.reconsider(Reconsidered(key=KEY, metric="stars", items=()))
    assert not sample.is_over


# ── a run ────────────────────────────────────────────────────────────────────────────────────────


def folded(*events: Event) -> RunAccumulator:
    run = RunAccumulator()
    for event in events:
        run.apply(event)
    return run


def test_the_events_of_a_run() -> None:
    begun, finished = started((CASE,), (KEY,)), RunFinished(finished_at="t")
    notices = [Notice(text="a"), Notice(text="b", key=KEY)]
    first, second = IssuesFound(issues=(), not_asked=1), IssuesFound(issues=())
    asked = ModelAsked(role="judge", metric="m")
    run = folded(begun, notices[0], asked, first, notices[1], second, finished)
    assert (run.run, run.finished, run.found) == (begun, finished, second)
    assert run.notices == notices
    assert run.samples == {}


def test_the_evidence_of_each_agent() -> None:
    seen = [("x", CallEvidence.ASKED), ("y", CallEvidence.LISTED), ("x", CallEvidence.REPORTED)]
    run = folded(*(CallsSeen(agent=agent, evidence=evidence) for agent, evidence in [*seen, seen[0]]))
    assert run.evidence == {
        "x": {CallEvidence.ASKED, CallEvidence.REPORTED},
        "y": {CallEvidence.LISTED},
    }
    assert folded().evidence == {}


def test_a_resumed_run_has_no_end_and_the_budget_of_now() -> None:
    begun = started((CASE,), (KEY,))
    budget = BudgetConfig(max_calls=7)
    ended_once: tuple[Event, ...] = (IssuesFound(issues=()), RunFinished(finished_at="t"))
    run = folded(begun, *ended_once, RunResumed(at="u", budget=budget))
    assert run.run
    assert (run.finished, run.found) == (None, None)
    assert (run.run.config.budget, run.run.plan.suite.budget) == (budget, budget)
    assert run.run.run_id == begun.run_id
    assert folded(RunResumed(at="u", budget=budget)).run is None


def test_recorded_scenarios_and_rules_come_with_the_first_sample_that_has_them() -> None:
    first, second = Scenario(id="r", goal="one"), Scenario(id="r", goal="two")
    rules, others = ScenarioRules(epochs=2), ScenarioRules(epochs=3)
    keys = [SampleKey(scenario="r", agent="bot", epoch=n) for n in range(3)]
    run = folded(
        SampleStarted(key=keys[0]),
        SampleStarted(key=keys[1], scenario=first, rules=rules),
        SampleStarted(key=keys[2], scenario=second, rules=others),
    )
    assert run.recorded == {"r": first}
    assert run.rules == {("r", "bot"): rules}
    assert list(run.samples) == keys


@pytest.mark.parametrize(
    ("before", "begins_anew"),
    [
        pytest.param([], True, id="cut off"),
        pytest.param([ended(reason=StopReason.INTERRUPTED)], True, id="interrupted"),
        pytest.param([ended()], False, id="over"),
        pytest.param([ended(reason=StopReason.INFRASTRUCTURE)], False, id="over, errored"),
    ],
)
def test_a_sample_that_is_over_does_not_start_again(before: list[Event], begins_anew: bool) -> None:
    told: list[Event] = [SampleStarted(key=KEY), TurnFinished(key=KEY, index=0, turn=turn("a", "b")), *before]
    run = folded(*told, SampleStarted(key=KEY))
    assert (run.samples[KEY].turns == {}) is begins_anew


def test_a_lost_conversation_is_kept_beside_that_which_repeats_it() -> None:
    told: list[Event] = [SampleStarted(key=KEY), ended(reason=StopReason.INFRASTRUCTURE, again=True)]
    run = folded(*told, SampleStarted(key=KEY), ended())
    (lost,) = run.samples[KEY].lost
    assert lost.stop
    assert lost.stop.reason is StopReason.INFRASTRUCTURE


def test_a_second_judgement_of_a_sample_that_is_not_known() -> None:
    assert folded(Reconsidered(key=KEY, metric="criteria", items=())).samples == {}


def test_turns_results_and_ends_go_to_their_sample() -> None:
    other = SampleKey(scenario=CASE.id, agent="wonderbot", epoch=1)
    run = folded(
        SampleStarted(key=KEY),
        SampleStarted(key=other),
        TurnFinished(key=other, index=1, turn=turn("a", "b")),
        Scored(key=other, turn=None, items=(mark("stars"),)),
        Reconsidered(key=other, metric="stars", items=(mark("stars", 0.0),)),
        ended(other),
    )
    assert (run.samples[KEY].turns, run.samples[KEY].items, run.samples[KEY].stop) == ({}, {}, None)
    assert list(run.samples[other].turns) == [1]
    assert run.samples[other].items == {None: [mark("stars", 0.0)]}
    assert run.samples[other].is_over
