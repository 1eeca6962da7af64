"""The statistics of repeated conversations: which samples count as successes, and over which scenarios."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.core.event import Event, RunFinished, SampleFinished, SampleStarted
from agenteval.core.sample_report import ScenarioReport
from agenteval.core.scenario import EpochRange, SampleKey, Scenario
from agenteval.core.trajectory import Stop, StopReason
from agenteval.verdict.gates import decide
from agenteval.verdict.reliability import (
    Repeats,
    means_over_scenarios,
    outcomes_of,
    repeats_of,
    repeats_of_scenario,
)
from agenteval.verdict.report import Report, build_report
from agenteval.verdict.statistics import Stability, Tally, these_scenarios, users_like_these, wilson
from tests.support.report_samples import started
from tests.support.verdict_runs import (
    CUT,
    FAIL,
    GOAL,
    LOST,
    PASS,
    UNSURE,
    Played,
    only_scenario,
    report_of,
    score,
    unclear,
    whole,
)

MET, MISSED = whole(score(GOAL, 1)), whole(score(GOAL, 0))
WITH_GOAL = {"scenarios": {"a": {"goal": "g"}}}
RANGE = EpochRange(min=2, max=4)


def repeats(epochs: dict[str, list[Played | None]], **more: Any) -> Repeats:
    report = report_of(epochs, **more)
    return repeats_of(report, decide(report))


@pytest.mark.parametrize(
    ("epochs", "outcomes", "tally", "stable"),
    [
        ([PASS], (True,), (1, 1, 1), Stability.UNKNOWN),
        ([PASS, PASS], (True, True), (2, 2, 2), Stability.STABLE_PASS),
        ([FAIL, FAIL], (False, False), (0, 2, 2), Stability.STABLE_FAIL),
        ([PASS, FAIL], (True, False), (1, 2, 2), Stability.FLAKY),
        ([PASS, LOST], (True, None), (1, 1, 2), Stability.UNKNOWN),
        ([PASS, FAIL, LOST], (True, False, None), (1, 2, 3), Stability.FLAKY),
        ([CUT, UNSURE], (None, None), (0, 0, 2), Stability.UNKNOWN),
        ([PASS, None], (True,), (1, 1, 2), Stability.UNKNOWN),
        ([None], (), (0, 0, 1), Stability.UNKNOWN),
    ],
)
def test_the_epochs_of_a_scenario(
    epochs: list[Played | None],
    outcomes: tuple[bool | None, ...],
    tally: tuple[int, int, int],
    stable: Stability,
) -> None:
    report = report_of({"a": epochs})
    scenario, decision = only_scenario(report), decide(report)
    assert outcomes_of(scenario, decision) == outcomes
    found = repeats_of_scenario(scenario, decision)
    assert found.stability is stable
    assert (found.tally, found.fixed) == (Tally(*tally), Tally(*tally))
    assert found.interval == wilson(tally[0], tally[1])
    assert repeats_of(report, decision).scenarios == {("a", "bot"): found}


def test_a_goal_that_was_judged_decides() -> None:
    report = report_of({"a": [MET, MISSED]}, fail_on_severity="none", **WITH_GOAL)
    assert outcomes_of(only_scenario(report), decide(report)) == (True, False)


def test_a_sample_without_a_decision_is_missing() -> None:
    report = report_of({"a": [PASS, FAIL]})
    decision = decide(report)
    first, second = only_scenario(report).samples
    only_second = {second.key: decision.samples[second.key]}
    object.__setattr__(decision, "samples", only_second)
    assert outcomes_of(only_scenario(report), decision) == (None, False)
    assert first.key not in only_second


def test_epochs_that_were_run_because_of_their_results_are_shown_and_not_estimated_from() -> None:
    gates = {"pass_rate": {"at_least": 0.9, "reject_below": 0.6}}
    report = report_of({"a": [PASS, FAIL, PASS]}, gates=gates, run={"epochs": {"a": RANGE}})
    scenario, decision = only_scenario(report), decide(report)
    found = repeats_of_scenario(scenario, decision)
    assert (found.tally, found.fixed) == (Tally(2, 3, 3), Tally(1, 2, 2))
    assert repeats_of(report, decision).pass_hat_k == {1: 0.5, 2: 0.0}
    assert repeats_of(report, decision).rates["these_scenarios"] == these_scenarios([Tally(1, 2, 2)])


@pytest.mark.parametrize(
    ("epochs", "hat", "at"),
    [
        ({"a": [PASS]}, {1: 1.0}, {1: 1.0}),
        ({"a": [PASS, FAIL]}, {1: 0.5, 2: 0.0}, {1: 0.5, 2: 1.0}),
        ({"a": [PASS, PASS, FAIL]}, {1: 2 / 3, 2: 1 / 3, 3: 0.0}, {1: 2 / 3, 2: 1.0, 3: 1.0}),
        # Each k for which every scenario has enough decided epochs.
        ({"a": [PASS, FAIL], "b": [PASS]}, {1: 0.75}, {1: 0.75}),
        ({"a": [PASS, PASS], "b": [FAIL, PASS]}, {1: 0.75, 2: 0.5}, {1: 0.75, 2: 1.0}),
        ({"a": [PASS, PASS], "b": [PASS, LOST]}, {1: 1.0}, {1: 1.0}),
        ({"a": [PASS, PASS], "b": [LOST]}, {}, {}),
        ({"a": [FAIL]}, {1: 0.0}, {1: 0.0}),
        ({}, {}, {}),
    ],
)
def test_pass_hat_k_and_pass_at_k(
    epochs: dict[str, list[Played | None]], hat: dict[int, float], at: dict[int, float]
) -> None:
    found = repeats(epochs)
    assert found.pass_hat_k == pytest.approx(hat)
    assert found.pass_at_k == pytest.approx(at)


def test_rates_are_of_the_scenarios_with_a_decided_epoch() -> None:
    found = repeats({"a": [PASS, FAIL], "b": [PASS, PASS], "c": [LOST]})
    assert list(found.rates) == ["these_scenarios", "users_like_these"]
    assert found.rates["these_scenarios"] == these_scenarios([Tally(1, 2, 2), Tally(2, 2, 2)])
    assert found.rates["users_like_these"] == users_like_these([0.5, 1.0])
    assert repeats({"a": [LOST]}).rates == {}


def test_each_agent_has_scenarios_of_its_own() -> None:
    found = repeats({"a": [PASS]}, agents=("x", "y"))
    assert list(found.scenarios) == [("a", "x"), ("a", "y")]


def log(*stops: tuple[str, StopReason]) -> Report:
    events: list[Event] = [started((), ())]
    epochs: dict[str, int] = {}
    for id, reason in stops:
        key = SampleKey(scenario=id, agent="bot", epoch=epochs.setdefault(id, 0))
        epochs[id] += 1
        events.append(SampleStarted(key=key, scenario=Scenario(id=id)))
        events.append(SampleFinished(key=key, stop=Stop(reason=reason, detail="log.jsonl:1")))
    return build_report([*events, RunFinished(finished_at="")])


def test_a_record_that_could_not_be_read_is_no_scenario() -> None:
    read, unread = StopReason.RECORDED, StopReason.UNREADABLE
    report = log(("a", read), ("a", read), ("x", unread))
    found = repeats_of(report, decide(report))
    assert set(found.scenarios) == {("a", "bot"), ("x", "bot")}
    assert set(found.pass_hat_k) == {1, 2}
    report = log(("a", read), ("a", read), ("x", unread), ("x", read))
    assert set(repeats_of(report, decide(report)).pass_hat_k) == {1}


def scored(*values: Any) -> list[Played | None]:
    """Conversations with these values of a metric: of one each, or of each turn."""
    turns = [each if isinstance(each, tuple) else (each,) for each in values]
    return [Played((), tuple((score("stars", value),) for value in each)) for each in turns]


def test_every_scenario_has_the_same_weight_in_a_mean() -> None:
    report = report_of({"a": scored((1, 1, 1, 5), 4), "b": scored(5), "c": [PASS]})
    assert means_over_scenarios(report.scenarios) == {"stars": pytest.approx(((2 + 4) / 2 + 5) / 2)}


def test_means_are_by_name_and_of_what_was_judged() -> None:
    played = whole(score("stars", 3), score(GOAL, 1), unclear("blank"))
    scenarios: tuple[ScenarioReport, ...] = report_of({"a": [played]}).scenarios
    assert list(means_over_scenarios(scenarios)) == sorted([GOAL, "stars"])
    several = report_of({"a": [whole(score("stars", 3))], "b": [played]}).scenarios
    assert list(means_over_scenarios(several)) == sorted([GOAL, "stars"])
    assert means_over_scenarios(()) == {}
