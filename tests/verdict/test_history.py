"""The point of a run in the history of its suite: its figures, and which of them are not known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agenteval.core.event import Event, TurnFinished
from agenteval.core.sample_report import Spread
from agenteval.core.scenario import SampleKey
from agenteval.core.trajectory import Step, StopReason, Usage
from agenteval.verdict.digest import summary_of
from agenteval.verdict.gates import decide
from agenteval.verdict.history import AgentFigures, HistoryPoint, MetricMean, RunHistory, point_of
from agenteval.verdict.report import build_report
from agenteval.verdict.statistics import Interval, Tally
from tests.support.verdict_runs import (
    BEHAVIOR,
    BROKEN,
    FAIL,
    GOAL,
    GOALS,
    HELD,
    LABELS,
    LOST,
    PASS,
    STARS,
    UNSURE,
    Played,
    events_of,
    score,
    whole,
)

PRICES = {"bot": {"input": 1.0, "output": 2.0}}
COST = (120 * 1.0 + 30 * 2.0) / 1e6
"""Of a conversation of one turn with one step."""
CUT_OFF = Played((), turns=((),), stop=None)
BROKE = Played((), turns=((),), stop=StopReason.AGENT_ERROR)


def point(events: list[Event]) -> HistoryPoint:
    report = build_report(events)
    decision = decide(report)
    return point_of(report, decision, summary_of(report, decision))


def of(epochs: dict[str, list[Played | None]], **more: Any) -> HistoryPoint:
    return point(events_of(epochs, **more))


def only_agent(found: HistoryPoint) -> AgentFigures:
    (figures,) = found.agents
    return figures


# ── the run ──────────────────────────────────────────────────────────────────────────────────────


def test_the_facts_about_the_run() -> None:
    found = of({"a": [PASS]}, run={"commit": "0123456789abcdef" * 2, "dirty": True}, elapsed_s=2.5)
    assert (found.run_id, found.started_at) == ("20261121-101500-ab12", "2026-11-21T10:15:00Z")
    assert (found.commit, found.short_commit, found.dirty) == ("0123456789abcdef" * 2, "0123456789ab", True)
    assert (found.verdict, found.exit_code, found.outcome, found.is_complete) == (
        "passed",
        0,
        "complete",
        True,
    )
    assert (found.elapsed_s, found.scripted, found.changes) == (2.5, False, ())
    assert of({"a": [FAIL]}).exit_code == 1


@pytest.mark.parametrize(("outcome", "elapsed_s"), [("budget", 1.0), (None, None)])
def test_a_run_that_is_not_complete(outcome: str | None, elapsed_s: float | None) -> None:
    found = of({"a": [PASS, None]}, outcome=outcome)
    assert (found.outcome, found.is_complete, found.elapsed_s) == (outcome, False, elapsed_s)
    assert only_agent(found).tally == Tally(1, 1, 2)


def test_who_judged() -> None:
    judged = whole(HELD, score("stars", 4.0, by="openai/b"), score("tone", 1.0, by="openai/a", scripted=True))
    found = of({"a": [judged]})
    assert (found.judges, found.users, found.scripted) == (("openai/a", "openai/b"), (), True)


# ── the figures of an agent ──────────────────────────────────────────────────────────────────────


def test_scenarios_and_conversations_are_counted() -> None:
    epochs = {"a": [PASS, PASS], "b": [PASS, FAIL], "c": [UNSURE, PASS], "d": [LOST, LOST]}
    figures = only_agent(of({**epochs, "e": [FAIL, FAIL]}))
    assert (figures.passed, figures.failed, figures.inconclusive, figures.scenarios) == (1, 2, 2, 5)
    assert figures.tally == Tally(4, 7, 10)
    assert figures.rate == pytest.approx(4 / 7)
    low, high = figures.interval
    assert (low, high) == (pytest.approx(0.2505, abs=1e-4), pytest.approx(0.8418, abs=1e-4))


def test_without_a_decided_conversation_there_is_no_rate() -> None:
    figures = only_agent(of({"a": [LOST]}))
    assert (figures.rate, figures.interval, figures.latency_ms) == (None, Interval(0.0, 1.0), None)


def test_each_agent_has_its_own_figures() -> None:
    keys = [SampleKey(scenario="a", agent=agent) for agent in ("x", "y")]
    events = [
        event
        for event in events_of({"a": [PASS]}, agents=("x", "y"))
        if getattr(event, "key", keys[0]) == keys[0]
    ]
    failed = Played((BROKEN,), turns=((), ()))
    found = point([*events[:-1], *failed.events(keys[1]), events[-1]])
    assert [(each.agent, each.passed, each.failed) for each in found.agents] == [("x", 1, 0), ("y", 0, 1)]
    assert [each.tally for each in found.agents] == [Tally(1, 1, 1), Tally(0, 1, 1)]
    assert [each.tokens and each.tokens.mean for each in found.agents] == [150, 300]


def test_means_are_over_scenarios_of_equal_weight() -> None:
    stars = {value: whole(HELD, score("stars", value)) for value in (1.0, 2.0, 5.0)}
    epochs = {"a": [stars[1.0], stars[2.0]], "b": [stars[5.0], PASS]}
    assert only_agent(of(epochs)).means == (MetricMean("stars", "", (1.5 + 5.0) / 2, 3),)


def test_means_are_in_the_order_of_the_known_metrics() -> None:
    metrics = (STARS.model_copy(update={"short": "st"}), GOALS, LABELS)
    judged = Played(
        (HELD, score("zeal", 0.5), score(GOAL, 1.0), score("stars", 3.0)),
        turns=((score(BEHAVIOR, label="no failure"),), (score(BEHAVIOR, label="x", ok=False),)),
    )
    means = only_agent(of({"a": [judged]}, run={"metrics": metrics})).means
    assert means == (
        MetricMean("stars", "st", 3.0, 1),
        MetricMean(GOAL, "", 1.0, 1),
        MetricMean(BEHAVIOR, "", 0.5, 1),
        MetricMean("zeal", "", 0.5, 1),
    )


# ── what is measured, and what is not known ──────────────────────────────────────────────────────


def test_the_effort_of_a_conversation() -> None:
    two_turns = Played((HELD,), turns=((), ()))
    figures = only_agent(of({"a": [PASS, two_turns], "b": [FAIL]}, prices=PRICES))
    assert figures.latency_ms == Spread(mean=2000.0, p50=1500.0, p95=3000.0, n=3)
    assert figures.tokens == Spread(mean=200.0, p50=150.0, p95=300.0, n=3)
    assert figures.cost is not None
    assert (figures.cost.mean, figures.cost.n) == (pytest.approx(COST * 4 / 3), 3)


def test_the_price_decides_whether_the_cost_is_known() -> None:
    priced = of({"a": [PASS, PASS]}, prices=PRICES)
    assert (priced.cost, priced.tokens) == (pytest.approx(2 * COST), 300)
    assert priced.estimated  # as USAGE is
    unpriced = of({"a": [PASS, PASS]})
    assert (unpriced.cost, only_agent(unpriced).cost, unpriced.tokens) == (None, None, 300)


def test_a_judge_without_a_price_leaves_only_the_cost_of_the_run_unknown() -> None:
    spent = Usage(calls=1, input_tokens=10, output_tokens=5)
    found = of({"a": [whole(HELD, score("stars", 4.0, by="openai/x", usage=spent))]}, prices=PRICES)
    assert (found.cost, found.tokens) == (None, 165)
    assert only_agent(found).cost is not None


def test_the_scripted_model_uses_no_tokens() -> None:
    spent, free = Usage(calls=1), Usage(calls=1, cost=0.0)
    judged = {
        name: whole(HELD, score("stars", 4.0, by=name, usage=usage))
        for name, usage in (("scripted/r.yaml", free), ("openai/x", spent))
    }
    known = of({"a": [judged["scripted/r.yaml"]]}, prices=PRICES)
    assert (known.cost, known.tokens) == (pytest.approx(COST), 150)
    unknown = of({"a": [judged["openai/x"]]}, prices=PRICES)
    assert (unknown.cost, unknown.tokens) == (None, None)


def without(events: list[Event], *fields: str) -> list[Event]:
    """The last finished turn without its latency or its usage."""
    index = max(n for n, event in enumerate(events) if isinstance(event, TurnFinished))
    finished = events[index]
    assert isinstance(finished, TurnFinished)
    update: dict[str, Any] = {"latency_ms": 0.0} if "latency" in fields else {}
    if "usage" in fields:
        update["steps"] = (Step(text="hello"),)
    turn = finished.turn.model_copy(update=update)
    return [*events[:index], finished.model_copy(update={"turn": turn}), *events[index + 1 :]]


@pytest.mark.parametrize(
    ("field", "known"),
    [("latency", {"tokens", "cost"}), ("usage", {"latency_ms"})],
)
def test_one_unknown_conversation_makes_a_figure_unknown(field: str, known: set[str]) -> None:
    found = point(without(events_of({"a": [PASS, PASS]}, prices=PRICES), field))
    figures = only_agent(found)
    assert {name for name in ("latency_ms", "tokens", "cost") if getattr(figures, name) is not None} == known
    assert (found.cost is None, found.tokens is None) == (field == "usage", field == "usage")


@pytest.mark.parametrize("lost", [LOST, CUT_OFF, BROKE])
def test_a_conversation_that_the_agent_did_not_end_hides_no_figure(lost: Played) -> None:
    figures = only_agent(of({"a": [PASS, lost]}, prices=PRICES))
    assert figures.latency_ms == Spread(1500.0, 1500.0, 1500.0, 1)


def test_a_conversation_that_the_user_spoiled_is_not_measured() -> None:
    report = build_report(events_of({"a": [PASS, Played((HELD,), turns=((), ()))]}))
    decision = decide(report)
    (kept, spoiled) = decision.samples
    lost = replace(decision.samples[spoiled], fault="simulator")
    decision = replace(decision, samples={kept: decision.samples[kept], spoiled: lost})
    figures = only_agent(point_of(report, decision, summary_of(report, decision)))
    assert figures.latency_ms == Spread(1500.0, 1500.0, 1500.0, 1)


# ── several runs ─────────────────────────────────────────────────────────────────────────────────


def test_the_agents_of_a_history() -> None:
    first, second = of({"a": [Played((BROKEN,))]}, agents=("x",)), of({"a": [PASS]}, agents=("y", "x"))
    assert RunHistory((first, replace(second, run_id="r2"))).agents == ("x", "y")
