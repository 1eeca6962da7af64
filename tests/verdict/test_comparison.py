"""Two runs, scenario by scenario: what got worse, what got better, and what is not known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from agenteval.core.errors import AuthorError
from agenteval.core.run_summary import FailureSummary, RunSummary, ScenarioSummary
from agenteval.core.score import Severity, Verdict
from agenteval.verdict.comparison import (
    CONFIDENCE,
    MARGIN,
    FailureState,
    RunComparison,
    ScenarioState,
    compare_runs,
)
from agenteval.verdict.statistics import Change, Tally

PASSED, FAILED, OPEN = Verdict.PASSED, Verdict.FAILED, Verdict.INCONCLUSIVE


def scenario(
    id: str = "a", successes: int = 10, of: int = 10, *, agent: str = "bot", planned: int = 0, **more: Any
) -> ScenarioSummary:
    fields = {"content": {"turns": "1"}, "known": of, "verdict": PASSED, **more}
    return ScenarioSummary(
        id=id, agent=agent, successes=successes, decided=of, planned=planned or of, **fields
    )


def run(run_id: str, *scenarios: ScenarioSummary, **more: Any) -> RunSummary:
    return RunSummary(run_id=run_id, started_at="", scenarios=scenarios, **more)


def compared(
    before: Sequence[ScenarioSummary], after: Sequence[ScenarioSummary], **more: Any
) -> RunComparison:
    return compare_runs(run("r1", *before), run("r2", *after), **more)


# ── the verdict ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("before", "after", "verdict", "code"),
    [
        ((200, 200), (200, 200), PASSED, 0),
        ((20, 20), (0, 20), FAILED, 1),
        ((5, 5), (4, 5), OPEN, 3),
        ((3, 20), (20, 20), PASSED, 0),
    ],
)
def test_the_verdict_and_its_exit_code(before: Any, after: Any, verdict: Verdict, code: int) -> None:
    found = compared([scenario("a", *before)], [scenario("a", *after)])
    assert (found.verdict, found.exit_code) == (verdict, code)
    assert (found.before, found.after) == ("r1", "r2")
    assert (found.margin, found.confidence, found.schema_version) == (MARGIN, CONFIDENCE, 2)
    assert (MARGIN, CONFIDENCE) == (0.05, 0.95)


def test_the_margin_is_what_a_mean_may_drop() -> None:
    before, after = [scenario("a", 100, 100)], [scenario("a", 95, 100)]
    assert compared(before, after, margin=0.9).verdict is PASSED
    assert compared(before, after).verdict is not PASSED
    assert compared(before, after, margin=0.9).margin == 0.9


def test_the_worst_agent_decides() -> None:
    before = [scenario(agent="x", successes=200, of=200), scenario(agent="y", successes=20, of=20)]
    after = [scenario(agent="x", successes=200, of=200), scenario(agent="y", successes=0, of=20)]
    found = compared(before, after)
    assert [(agent.before, agent.verdict) for agent in found.agents] == [("x", PASSED), ("y", FAILED)]
    assert found.verdict is FAILED


def test_runs_that_cannot_be_compared() -> None:
    with pytest.raises(AuthorError):
        compared([scenario("a")], [scenario("b")])


def test_agents_of_one_run_only_are_left_out() -> None:
    before = [scenario(agent="x"), scenario(agent="y")]
    found = compared(before, [scenario(agent="x")])
    assert [agent.before for agent in found.agents] == ["x"]
    assert len(found.left_out) == 1
    assert found.renamed == ()
    assert compared([scenario(agent="x")], [scenario(agent="z")]).renamed == (("x", "z"),)


# ── scenarios ────────────────────────────────────────────────────────────────────────────────────


def test_changes_of_scenarios_in_the_order_of_their_weight() -> None:
    before = [
        scenario("same", 20, 20),
        scenario("worse", 20, 20),
        scenario("better", 0, 20),
        scenario("open", 2, 2),
    ]
    after = [
        scenario("same", 20, 20),
        scenario("worse", 0, 20),
        scenario("better", 20, 20),
        scenario("open", 1, 2, planned=3),
    ]
    (agent,) = compared(before, after).agents
    found = [(each.id, each.change) for each in agent.scenarios]
    assert found[0] == ("worse", Change.REGRESSED)
    order = [Change.REGRESSED, Change.UNDECIDED, Change.IMPROVED, Change.UNCHANGED]
    positions = [order.index(change) for _, change in found]
    assert positions == sorted(positions)
    assert dict(found)["better"] is Change.IMPROVED
    (worse,) = [each for each in agent.scenarios if each.id == "worse"]
    assert (worse.before, worse.after) == (Tally(20, 20, 20), Tally(0, 20, 20))
    assert worse.p_drop < 0.05 < worse.p_rise
    assert worse.low <= -1 <= worse.high
    assert agent.dropped == ("worse",)
    (open_one,) = [each for each in agent.scenarios if each.id == "open"]
    assert open_one.after == Tally(1, 2, 3)


def test_the_change_of_the_mean() -> None:
    before = [scenario("a", 10, 10), scenario("b", 0, 10)]
    after = [scenario("a", 5, 10), scenario("b", 1, 10)]
    (agent,) = compared(before, after).agents
    assert agent.change == pytest.approx(-0.2)
    assert agent.low < -0.2 < agent.high
    assert agent.drop_above <= 0.2 <= agent.drop_below


@pytest.mark.parametrize(
    ("old", "new", "is_selection", "state"),
    [
        ("1", "2", (False, False), ScenarioState.CHANGED),
        ("1", None, (False, False), ScenarioState.REMOVED),
        ("1", None, (False, True), ScenarioState.NOT_SELECTED),
        ("1", None, (True, False), ScenarioState.REMOVED),
        (None, "1", (False, False), ScenarioState.NEW),
        (None, "1", (True, False), ScenarioState.NOT_SELECTED),
        (None, "1", (False, True), ScenarioState.NEW),
    ],
)
def test_why_a_scenario_is_not_compared(old: Any, new: Any, is_selection: Any, state: ScenarioState) -> None:
    def with_other(content: str | None) -> list[ScenarioSummary]:
        return [scenario("a"), *([scenario("b", content={"turns": content})] if content else [])]

    first = run("r1", *with_other(old), is_selection=is_selection[0])
    second = run("r2", *with_other(new), is_selection=is_selection[1])
    (apart,) = compare_runs(first, second).apart
    assert (apart.id, apart.agent, apart.state) == ("b", "bot", state)
    assert apart.parts == (("turns",) if state is ScenarioState.CHANGED else ())
    assert (apart.before, apart.after) == (PASSED if old else None, PASSED if new else None)


@pytest.mark.parametrize(
    ("before", "after", "worse"),
    [
        (PASSED, FAILED, True),
        (PASSED, OPEN, True),
        (PASSED, PASSED, False),
        (FAILED, FAILED, False),
        (OPEN, FAILED, False),
        (PASSED, None, False),
        (None, FAILED, False),
    ],
)
def test_a_changed_scenario_that_no_longer_passes_leaves_doubt(before: Any, after: Any, worse: bool) -> None:
    same = scenario("a", 200, 200)
    found = compared(
        [same, scenario("b", verdict=before)], [same, scenario("b", content={"turns": "2"}, verdict=after)]
    )
    assert found.worsened == (("b",) if worse else ())
    assert found.verdict is (OPEN if worse else PASSED)


def test_scenarios_apart_in_the_order_of_their_weight() -> None:
    def changed(id: str, verdict: Verdict) -> ScenarioSummary:
        return scenario(id, content={"turns": "2"}, verdict=verdict)

    before = [scenario("a"), scenario("gone"), scenario("fine"), scenario("worse")]
    after = [scenario("a"), scenario("new"), changed("fine", PASSED), changed("worse", FAILED)]
    assert [each.id for each in compared(before, after).apart] == ["worse", "fine", "new", "gone"]


# ── means ────────────────────────────────────────────────────────────────────────────────────────


def test_each_scenario_has_the_same_weight_in_a_mean() -> None:
    before = [scenario("a", scores={"m": (1.0,)}), scenario("b", scores={"m": (3.0, 3.0, 3.0)})]
    after = [scenario("a", scores={"m": (2.0, 4.0)}), scenario("b", scores={"m": (4.0,)})]
    (agent,) = compared(before, after).agents
    (mean,) = agent.scores
    assert (mean.name, mean.before, mean.after, mean.change, mean.scenarios) == ("m", 2.0, 3.5, 1.5, 2)
    assert mean.low is not None
    assert mean.high is not None
    # The t interval of the differences 2 and 1: 1.5 ± 12.706 × 0.5.
    assert (mean.low, mean.high) == (
        pytest.approx(1.5 - 6.353, abs=1e-3),
        pytest.approx(1.5 + 6.353, abs=1e-3),
    )


@pytest.mark.parametrize(
    ("before", "after", "scenarios", "has_interval"),
    [
        ([(1.0,)], [(2.0,)], 1, False),
        ([(1.0,), (2.0,)], [(2.0,), (3.0,)], 2, False),  # no spread
        ([(1.0,), (2.0,)], [(2.0,), (4.0,)], 2, True),
        ([(1.0,), ()], [(2.0,), (4.0,)], 1, False),
        ([(1.0,), None], [(2.0,), (4.0,)], 1, False),
        ([(1.0,), (2.0,)], [(2.0,), None], 1, False),
    ],
)
def test_the_interval_of_a_mean(before: Any, after: Any, scenarios: int, has_interval: bool) -> None:
    def side(values: Any) -> list[ScenarioSummary]:
        return [
            scenario(f"s{n}", effort={} if each is None else {"tokens": each})
            for n, each in enumerate(values)
        ]

    (agent,) = compared(side(before), side(after)).agents
    (mean,) = agent.effort
    assert (mean.scenarios, mean.low is not None, mean.high is not None) == (
        scenarios,
        has_interval,
        has_interval,
    )


def test_values_of_one_run_only_have_no_change() -> None:
    before = [scenario(scores={"a": (1.0,), "b": (1.0,), "none": ()})]
    after = [scenario(scores={"b": (2.0,), "c": (1.0,), "none": ()})]
    (agent,) = compared(before, after).agents
    assert [mean.name for mean in agent.scores] == ["b"]
    assert agent.effort == ()


# ── failures ─────────────────────────────────────────────────────────────────────────────────────


def failure(name: str, epochs: int = 1, **more: Any) -> FailureSummary:
    return FailureSummary(fingerprint=name, what=f"what {name}", metric="m", epochs=epochs, **more)


@pytest.mark.parametrize(
    ("old", "new", "known", "earlier", "state"),
    [
        (True, True, 10, {}, FailureState.KNOWN),
        (True, True, 10, {"f": "r0"}, FailureState.KNOWN),
        (False, True, 10, {}, FailureState.NEW),
        (False, True, 10, {"f": "r0"}, FailureState.BACK),
        (False, True, 10, {"other": "r0"}, FailureState.NEW),
        (True, False, 10, {}, FailureState.FIXED),
        (True, False, 1, {}, FailureState.FIXED),
        (True, False, 0, {}, FailureState.UNKNOWN),
        (True, False, 10, {"f": "r0"}, FailureState.FIXED),
    ],
)
def test_the_state_of_a_failure(old: bool, new: bool, known: int, earlier: Any, state: FailureState) -> None:
    before = [scenario(failures=(failure("f", 3),) if old else ())]
    after = [scenario(failures=(failure("f", 2),) if new else (), known=known)]
    (agent,) = compared(before, after, earlier=earlier).agents
    (found,) = agent.failures
    assert (found.fingerprint, found.state, found.scenario, found.what) == ("f", state, "a", "what f")
    assert (found.met_before, found.met_after) == (3 * old, 2 * new)
    assert (found.known_before, found.known_after) == (10, known)
    assert found.seen_in == ("r0" if state is FailureState.BACK else "")


@pytest.mark.parametrize(
    ("met", "of", "sure"), [(1, 10, False), (4, 10, False), (6, 10, True), (10, 10, True)]
)
def test_whether_the_frequency_surely_changed(met: int, of: int, sure: bool) -> None:
    before, after = [scenario(known=of)], [scenario(known=of, failures=(failure("f", met),))]
    for first, second in ((before, after), (after, before)):
        (agent,) = compared(first, second).agents
        assert [found.sure for found in agent.failures] == [sure]


def test_failures_by_state_and_then_by_scenario() -> None:
    names = {"new": (0, 1), "back": (0, 1), "known": (1, 1), "fixed": (1, 0)}

    def side(at: int) -> list[ScenarioSummary]:
        found = tuple(failure(name, severity=Severity.HIGH) for name, both in names.items() if both[at])
        return [scenario("b", failures=found), scenario("a", failures=found)]

    (agent,) = compared(side(0), side(1), earlier={"back": "r0"}).agents
    assert [(each.fingerprint, each.scenario) for each in agent.failures] == [
        (name, id) for name in names for id in "ab"
    ]
    assert {each.severity for each in agent.failures} == {Severity.HIGH}
