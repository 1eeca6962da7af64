"""Resumption: which samples are over, what of an interrupted journal is kept, and what has changed since."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from agenteval.core.config import Config
from agenteval.core.event import (
    CallsSeen,
    Event,
    IssuesFound,
    ModelAsked,
    Notice,
    Reconsidered,
    RunFinished,
    RunResumed,
    RunStarted,
    SampleFinished,
    SampleStarted,
    Scored,
    TurnFinished,
)
from agenteval.core.scenario import SampleKey, Scenario, Tool
from agenteval.core.score import MetricSpec, ScoreFailure
from agenteval.core.trajectory import CallEvidence, Stop, StopReason, Turn
from agenteval.verdict.resumption import (
    RESULT_NEUTRAL_KEYS,
    events_to_keep,
    finished_samples,
    is_complete,
    list_changes,
    run_ending,
    scenario_content,
)
from tests.support.plans import plan_for

A, B, C = (SampleKey(scenario=id, agent="bot") for id in "abc")
AGENT = {"name": "bot", "target": "a:b", "calls": "all"}
REFUSED = ScoreFailure(metric="criteria", message="the budget is used up", refused=True)
BROKEN = ScoreFailure(metric="criteria", message="no answer")


def end(key: SampleKey, reason: StopReason = StopReason.SCRIPT_DONE, **more: Any) -> SampleFinished:
    return SampleFinished(key=key, stop=Stop(reason=reason), **more)


def again(key: SampleKey, *items: ScoreFailure) -> Reconsidered:
    return Reconsidered(key=key, metric="criteria", items=items)


def over(outcome: Any = "complete") -> RunFinished:
    return RunFinished(finished_at="t", outcome=outcome)


def begun(
    scenarios: Sequence[Scenario] = (Scenario(id="a"), Scenario(id="b")),
    *,
    metrics: Sequence[MetricSpec] = (),
    judged: Sequence[str] = (),
    epochs: int = 1,
    config: Mapping[str, Any] | None = None,
    **more: Any,
) -> RunStarted:
    chosen = Config.model_validate({"agent": AGENT, **(config or {})})
    keys = [SampleKey(scenario=s.id, agent="bot", epoch=n) for s in scenarios for n in range(epochs)]
    return RunStarted(
        run_id="r",
        started_at="2026-11-21T00:00:00Z",
        config=chosen,
        plan=plan_for(chosen, scenarios, keys, metrics=metrics, judged=judged),
        scenarios=tuple(scenarios),
        **more,
    )


@pytest.mark.parametrize(
    ("events", "is_over"),
    [
        pytest.param([], False, id="never ended"),
        pytest.param([SampleStarted(key=A)], False, id="began"),
        pytest.param([end(A)], True, id="ended"),
        *(
            pytest.param([end(A, reason)], True, id=f"whatever the outcome: {reason}")
            for reason in StopReason
            if reason not in (StopReason.INTERRUPTED, StopReason.BUDGET)
        ),
        pytest.param([end(A, StopReason.INTERRUPTED)], False, id="interrupted"),
        pytest.param([end(A, StopReason.BUDGET)], False, id="budget"),
        pytest.param([end(A, refused=True)], False, id="a judge was not called"),
        pytest.param([end(A, again=True)], False, id="to be repeated"),
        pytest.param([end(A, again=True), end(A)], True, id="repeated"),
        pytest.param([end(A), end(A, StopReason.INTERRUPTED)], False, id="the last end counts"),
        pytest.param([end(A), again(A)], True, id="reconsidered"),
        pytest.param([end(A), again(A, BROKEN)], True, id="reconsidered by a judge that failed"),
        pytest.param([end(A), again(A, REFUSED)], False, id="not reconsidered"),
        pytest.param([end(A), again(A, REFUSED), again(A)], False, id="one of two not reconsidered"),
        pytest.param([end(A, refused=True), again(A)], False, id="reconsidered, but another was not called"),
        pytest.param([again(A)], False, id="reconsidered without an end"),
        pytest.param([end(A), again(A, REFUSED), end(A)], True, id="ended anew"),
    ],
)
def test_a_sample_is_over(events: list[Event], is_over: bool) -> None:
    assert finished_samples(events) == ({A} if is_over else set())
    assert finished_samples([end(B), *events]) == ({A, B} if is_over else {B})


def test_what_is_kept_of_an_interrupted_run() -> None:
    start: Event = begun()
    evidence: Event = CallsSeen(agent="bot", evidence=CallEvidence.REPORTED, key=B)
    finished: list[Event] = [
        SampleStarted(key=A),
        TurnFinished(key=A, index=0, turn=Turn(user="hi")),
        Scored(key=A, turn=0, items=()),
        ModelAsked(key=A, role="judge", metric="m"),
        Notice(text="slow", key=A),
        end(A),
        again(A),
    ]
    lost: Event = end(B, StopReason.INFRASTRUCTURE, again=True)
    dropped: list[Event] = [
        SampleStarted(key=B),
        TurnFinished(key=B, index=0, turn=Turn(user="hi")),
        Notice(text="slow", key=B),
        end(C, StopReason.INTERRUPTED),
        Notice(text="of the run"),
        ModelAsked(role="grouping", metric=""),
        IssuesFound(issues=()),
        over("interrupted"),
        RunResumed(at="t"),
    ]
    kept: list[Event] = [start, *finished, evidence, lost]
    assert list(events_to_keep([*kept, *dropped])) == kept


def test_a_sample_over_at_last_keeps_its_events_from_before_in_order() -> None:
    events: list[Event] = [end(A, again=True), SampleStarted(key=A), end(A)]
    assert list(events_to_keep(events)) == events
    assert list(events_to_keep([])) == []


@pytest.mark.parametrize(
    ("events", "outcome"),
    [
        ([], None),
        ([end(A)], None),
        ([over()], "complete"),
        ([over("interrupted"), RunResumed(at="t")], None),
        ([over("interrupted"), RunResumed(at="t"), over("budget")], "budget"),
        ([RunResumed(at="t"), over("deadline")], "deadline"),
    ],
)
def test_the_end_of_the_run(events: list[Event], outcome: str | None) -> None:
    ended = run_ending(events)
    assert (ended and ended.outcome) == outcome


@pytest.mark.parametrize(
    ("events", "complete"),
    [
        pytest.param([], False, id="cut off"),
        pytest.param([end(A)], False, id="no end of the run"),
        pytest.param([over()], True, id="nothing to do"),
        pytest.param([end(A), end(B), over()], True, id="complete"),
        pytest.param([end(A), SampleStarted(key=B), over("fail_fast")], True, id="skipped remain skipped"),
        pytest.param([end(A), over("interrupted")], False, id="interrupted"),
        pytest.param([end(A), over("budget")], False, id="budget"),
        pytest.param([end(A), over("deadline")], False, id="deadline"),
        pytest.param([end(A, refused=True), over()], False, id="a judge not called"),
        pytest.param([end(A), end(B, refused=True), over("fail_fast")], False, id="one judge not called"),
        pytest.param([end(A), again(A, REFUSED), over()], False, id="not reconsidered"),
        pytest.param([end(A), over(), RunResumed(at="t")], False, id="resumed"),
    ],
)
def test_nothing_remains_to_be_done(events: list[Event], complete: bool) -> None:
    assert is_complete(events) is complete


def tool(**more: Any) -> Scenario:
    return Scenario(id="a", tools={"search": Tool(returns=1, **more)})


METRIC = MetricSpec(name="stars", scope="turn", kind="mean", scale=(1, 5))
OTHER_METRIC = MetricSpec(name="stars", scope="turn", kind="mean", scale=(1, 10))
ONE, TWO = {"concurrency": 1}, {"concurrency": 2}
SECOND = {**AGENT, "name": "second"}


@pytest.mark.parametrize(
    ("then", "now", "named"),
    [
        pytest.param({}, {}, [], id="same"),
        pytest.param({"scenarios": [Scenario(id="a")]}, {}, ["scenario 'b' is new"], id="new scenario"),
        pytest.param({}, {"scenarios": [Scenario(id="a")]}, ["'b' no longer exists"], id="gone scenario"),
        pytest.param(
            {"scenarios": [Scenario(id="a"), Scenario(id="b")]},
            {"scenarios": [Scenario(id="c"), Scenario(id="b", goal="g", tags=("t",))]},
            ["'a' no longer exists", "'b' has changed: tags, goal", "'c' is new"],
            id="in the order of the first run, new ones last",
        ),
        pytest.param(
            {"scenarios": [Scenario(id="a")]},
            {"scenarios": [Scenario(id="a", source="x.yaml:3", lines={"goal": 3}, base="x", row="y:2")]},
            [],
            id="moved scenario",
        ),
        pytest.param(
            {"scenarios": [Scenario(id="a")]},
            {"scenarios": [Scenario(id="a", pattern="*")]},
            [],
            id="pattern",
        ),
        pytest.param({"scenarios": [tool()]}, {"scenarios": [tool(base="x")]}, [], id="moved tool"),
        pytest.param(
            {"scenarios": [tool()]}, {"scenarios": [tool(writes=True)]}, ["changed: tools"], id="changed tool"
        ),
        pytest.param(
            {"prompts": {"p": "1", "q": "1", "s": "1"}},
            {"prompts": {"q": "2", "r": "1", "s": "1"}},
            ["prompt 'p' no longer exists", "prompt 'q' has changed", "prompt 'r' is new"],
            id="prompts",
        ),
        pytest.param(
            {"metrics": [METRIC]}, {"metrics": [OTHER_METRIC]}, ["metric 'stars' has changed"], id="metric"
        ),
        pytest.param({"metrics": [METRIC]}, {}, ["metric 'stars' no longer exists"], id="metric gone"),
        pytest.param({}, {"metrics": [METRIC]}, ["metric 'stars' is new"], id="metric new"),
        pytest.param(
            {"sources": {"a.py": "1", "b.py": "1"}},
            {"sources": {"a.py": "2", "b.py": "1"}},
            ["the file 'a.py' has changed"],
            id="source",
        ),
        pytest.param({"sources": {"a.py": "1"}}, {}, ["the file 'a.py' no longer exists"], id="source gone"),
        pytest.param(
            {"sources": {"models.judge: ${…}": "1"}},
            {"sources": {"models.judge: ${…}": "2"}},
            ["variables in 'models.judge' has changed"],
            id="variable",
        ),
        pytest.param({"config": {"max_turns": 3}}, {"config": {"max_turns": 4}}, ["'max_turns'"], id="key"),
        pytest.param(
            {"config": {"thresholds": {"x": 1, "y": 1}}},
            {"config": {"thresholds": {"x": 2, "y": 1}}},
            ["'thresholds.x'"],
            id="key in a key",
        ),
        pytest.param(
            {"config": {"thresholds": {"x": 1}}},
            {"config": {"thresholds": {"y": 1}}},
            ["'thresholds.x'", "'thresholds.y'"],
            id="other keys in a key",
        ),
        pytest.param({"config": ONE}, {"config": TWO}, [], id="concurrency"),
        pytest.param({"config": {"budget": {"max_calls": 1}}}, {}, [], id="budget"),
        pytest.param({"config": {"root": "/x", "source": "a.yaml"}}, {}, [], id="place"),
        pytest.param({"epochs": 2}, {"epochs": 3}, ["samples or the metrics would differ"], id="epochs"),
        pytest.param(
            {"judged": ["a"]}, {"judged": ["b"]}, ["samples or the metrics would differ"], id="judged"
        ),
        pytest.param(
            {"judged": ["a"]},
            {"judged": ["b"], "prompts": {"p": "1"}},
            ["prompt 'p' is new"],
            id="reason known",
        ),
    ],
)
def test_what_has_changed(then: dict[str, Any], now: dict[str, Any], named: list[str]) -> None:
    changes = list_changes(begun(**then), begun(**now))
    assert len(changes) == len(named), changes
    assert all(part in change for part, change in zip(named, changes, strict=True)), changes


def test_the_kinds_of_changes_come_in_one_order() -> None:
    then = begun(prompts={"p": "1"}, metrics=[METRIC], sources={"a.py": "1"}, config={"max_turns": 3})
    now = begun([Scenario(id="a")])
    assert [
        next(kind for kind in ("scenario", "prompt", "metric", "key", "file") if kind in each)
        for each in list_changes(then, now)
    ] == ["scenario", "prompt", "metric", "key", "file"]


@pytest.mark.parametrize(
    "key", ["concurrency", "agent_concurrency", "reporters", "budget", "accepted_failures"]
)
def test_a_key_that_changes_nothing_measured(key: str) -> None:
    assert key in RESULT_NEUTRAL_KEYS
    assert key in Config.model_fields


def test_the_content_of_a_scenario_has_no_place() -> None:
    scenario = Scenario(
        id="a", goal="g", source="x:1", lines={"goal": 1}, tools={"t": Tool(returns=1, base="x")}
    )
    content = scenario_content(scenario)
    assert not {"source", "lines", "base", "row", "pattern"} & set(content)
    assert (content["id"], content["goal"], content["tools"]["t"]["returns"]) == ("a", "g", 1)
    assert "base" not in content["tools"]["t"]
