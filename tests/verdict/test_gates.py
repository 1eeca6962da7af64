"""Who passed: each rule of ``gates.decide`` on a report that was made by hand, and what one step beside it
would change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import pytest

from agenteval.core.config import BudgetConfig, Config
from agenteval.core.decision import EVERY_SAMPLE, Decision, GateRow
from agenteval.core.event import Baseline, Event, RunFinished
from agenteval.core.plan import ScenarioRules
from agenteval.core.sample_report import ScenarioReport
from agenteval.core.scenario import EpochRange, SampleKey, Scenario
from agenteval.core.score import OUTCOME, Check, Finding, MetricSpec, Score, ScoreFailure, Severity, Verdict
from agenteval.core.trajectory import Stop, StopReason, Usage
from agenteval.verdict import gates
from agenteval.verdict.epochs import EpochOutcomes, epoch_outcomes, sample_success
from agenteval.verdict.recorded_logs import SEVERE
from agenteval.verdict.report import Report, build_report
from agenteval.verdict.run_gates.pass_rate import PASS_RATE, planned_test
from agenteval.verdict.thresholds import is_errored
from tests.support.report_samples import conversation, started, turn

PASSED, FAILED, OPEN = Verdict.PASSED, Verdict.FAILED, Verdict.INCONCLUSIVE
HELD = Check(name="output.contains", passed=True)
BROKEN = Check(name="output.contains", passed=False, detail="not there")
UNDECIDED = Check(name="python", passed=None, detail="it raised")


def finding(severity: Severity, turn: int | None = 0) -> Finding:
    label = "unsafe action" if severity is Severity.CRITICAL else "false information"
    return Finding(
        detector="judge",
        metric="agent_behavior_failure",
        label=label,
        severity=severity,
        turn=turn,
        explanation="so it is",
    )


def goal(value: float) -> Score:
    return Score(metric="goal_completion", value=value, ok=None)


def broke(metric: str, **more: Any) -> ScoreFailure:
    return ScoreFailure(metric=metric, message="no answer", **more)


class Epoch:
    """One conversation of two turns: what was said of its turns and of the whole, and how it ended."""

    def __init__(self, *whole: Any, turns: Sequence[Any] = (HELD,), stop: StopReason | None = None) -> None:
        self.whole, self.first = whole, tuple(turns)
        self.stop = stop or StopReason.SCRIPT_DONE
        self.is_cut = False

    def events(self, key: SampleKey) -> list[Event]:
        stop = Stop(reason=self.stop, detail="as it is")
        is_over = self.stop is StopReason.SCRIPT_DONE
        talked = (turn("hi", "hello"), turn("again", "bye")) if is_over else (turn("hi", "hello"),)
        said = {0: self.first, None: self.whole}
        broken = None if is_over else turn("again", None, error="as it is")
        return [*conversation(key, talked, said, stop=None if self.is_cut else stop, unfinished=broken)]


def cut() -> Epoch:
    """Begun, and never finished."""
    epoch = Epoch()
    epoch.is_cut = True
    return epoch


PASS, FAIL, UNSURE = Epoch(), Epoch(BROKEN), Epoch(UNDECIDED)
LOST = Epoch(stop=StopReason.INFRASTRUCTURE)
NEVER = None
LABELS = MetricSpec(
    name="agent_behavior_failure", scope="turn", kind="rate", labels=("no failure", "x"), ok=("no failure",)
)
GOALS = MetricSpec(name="goal_completion", scope="conversation", kind="rate")
STARS = MetricSpec(name="stars", scope="conversation", kind="mean", scale=(1.0, 5.0))


def report_of(
    epochs: Mapping[str, Sequence[Epoch | None]],
    *,
    run: Mapping[str, Any] | None = None,
    outcome: Any = "complete",
    scenarios: Mapping[str, Mapping[str, Any]] | None = None,
    **config: Any,
) -> Report:
    keys = {
        SampleKey(scenario=id, agent="bot", epoch=n): e for id, es in epochs.items() for n, e in enumerate(es)
    }
    suite = tuple(Scenario(id=id, name=id, **(scenarios or {}).get(id, {})) for id in epochs)
    asked = Config.model_validate({"agent": {"name": "bot", "target": "a:b"}, **config})
    more = {"metrics": (LABELS, GOALS, STARS), "judged": ("stars",), **(run or {})}
    begun = started(suite, tuple(keys), config=asked, **more)
    told: list[Event] = [begun]
    for key, epoch in keys.items():
        told += epoch.events(key) if epoch else []
    if outcome:
        told.append(RunFinished(finished_at="", outcome=outcome))
    return build_report(told)


def decided(epochs: Mapping[str, Sequence[Epoch | None]], **more: Any) -> Decision:
    return gates.decide(report_of(epochs, **more))


def row(decision: Decision, name: str, scenario: str | None = None) -> GateRow:
    (found,) = [g for g in decision.gates if g.name == name and scenario in (None, g.scenario)]
    return found


def only(decision: Decision) -> Any:
    (sample,) = decision.samples.values()
    return sample


# ── one sample ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("epoch", "verdict", "fault", "names"),
    [
        (PASS, PASSED, None, []),
        (FAIL, FAILED, None, ["output.contains"]),
        (UNSURE, OPEN, "undecided", ["python"]),
        (Epoch(BROKEN, UNDECIDED), FAILED, None, ["output.contains", "python"]),
        (Epoch(turns=(BROKEN,)), FAILED, None, ["output.contains"]),
        (Epoch(Check(name=OUTCOME, passed=None)), PASSED, None, []),
        (Epoch(Check(name=OUTCOME, passed=False)), FAILED, None, [OUTCOME]),
        (Epoch(stop=StopReason.AGENT_ERROR), FAILED, "agent", ["no_error"]),
        (Epoch(Check(name="no_error", passed=False), stop=StopReason.AGENT_ERROR), FAILED, "agent",
         ["no_error"]),
        (Epoch(finding(Severity.CRITICAL)), FAILED, None, ["fail_on_severity"]),
        (Epoch(finding(Severity.HIGH)), PASSED, None, []),
        (Epoch(broke("agent_behavior_failure")), OPEN, "judge", ["judge"]),
        (Epoch(broke("stars")), PASSED, None, []),
        (Epoch(broke("stars", author=True)), OPEN, "judge", ["judge"]),
        (Epoch(broke("leak")), OPEN, "judge", ["judge"]),
        (Epoch(broke("a check of ours")), OPEN, "judge", ["judge"]),
        (Epoch(turns=(broke("agent_behavior_failure"),)), OPEN, "judge", ["judge"]),
        (Epoch(Check(name="criteria", passed=None)), OPEN, "judge", ["criteria"]),
        (Epoch(Check(name="answer", passed=False), turns=(Check(name="answer", passed=False),)), FAILED, None,
         ["answer"]),
        # A fault that is not the agent's: what the first turn proves stands, and nothing else.
        (LOST, OPEN, "infrastructure", ["infrastructure"]),
        (Epoch(turns=(BROKEN,), stop=StopReason.INFRASTRUCTURE), FAILED, None,
         ["output.contains", "infrastructure"]),
        (Epoch(BROKEN, stop=StopReason.SIMULATOR), FAILED, None, ["output.contains", "simulator"]),
        (Epoch(turns=(UNDECIDED,), stop=StopReason.INFRASTRUCTURE), OPEN, "infrastructure",
         ["infrastructure"]),
        (Epoch(turns=(UNDECIDED, BROKEN), stop=StopReason.INFRASTRUCTURE), FAILED, None,
         ["output.contains", "infrastructure"]),
        (Epoch(finding(Severity.CRITICAL, 0), stop=StopReason.BUDGET), FAILED, None,
         ["fail_on_severity", "budget"]),
        (Epoch(finding(Severity.CRITICAL, 1), stop=StopReason.BUDGET), OPEN, "budget", ["budget"]),
        (Epoch(finding(Severity.CRITICAL, None), stop=StopReason.BUDGET), FAILED, None,
         ["fail_on_severity", "budget"]),
        (cut(), OPEN, "interrupted", ["interrupted"]),
        (NEVER, OPEN, "interrupted", ["interrupted"]),
    ],
)  # fmt: skip
def test_what_a_sample_comes_to(
    epoch: Epoch | None, verdict: Verdict, fault: str | None, names: list[str]
) -> None:
    sample = only(decided({"a": [epoch]}))
    assert (sample.verdict, sample.fault, [v.name for v in sample.violations]) == (verdict, fault, names)


def test_nobody_broke_where_nobody_was_asked() -> None:
    epochs = {"a": [Epoch(Check(name="criteria", passed=None))]}
    assert only(decided(epochs, run={"no_judge": True})).fault == "undecided"
    both = {"a": [Epoch(Check(name="criteria", passed=None), broke("agent_behavior_failure"))]}
    assert only(decided(both, run={"no_judge": True})).fault == "judge"


@pytest.mark.parametrize(
    ("bound", "severity", "verdict"),
    [
        ("low", Severity.LOW, FAILED),
        ("high", Severity.MEDIUM, PASSED),
        ("high", Severity.HIGH, FAILED),
        ("high", Severity.CRITICAL, FAILED),
        ("none", Severity.CRITICAL, PASSED),
    ],
)
def test_a_finding_at_the_bound_fails(bound: str, severity: Severity, verdict: Verdict) -> None:
    decision = decided({"a": [Epoch(finding(severity))]}, fail_on_severity=bound)
    assert (decision.verdict, only(decision).verdict) == (verdict, verdict)
    assert [gate.verdict for gate in decision.gates if gate.name == SEVERE] == (
        [] if bound == "none" else [verdict]
    )


def test_a_label_that_fails_nothing_hides_nothing_when_its_judge_breaks() -> None:
    epochs = {"a": [Epoch(broke("agent_behavior_failure"), broke("goal_completion"))]}
    assert decided(epochs, fail_on_severity="none").verdict is PASSED


@pytest.mark.parametrize(
    ("bound", "others", "verdict"),
    [
        ("critical", [goal(1.0)], PASSED),  # it was not missed in all of them
        ("critical", [goal(0.0)], OPEN),
        ("critical", [], OPEN),
        ("high", [goal(1.0)], OPEN),  # a single miss is severe
    ],
)
def test_a_goal_that_nobody_could_judge_is_open_where_it_might_be_severe(
    bound: str, others: list[Score], verdict: Verdict
) -> None:
    epochs = [Epoch(broke("goal_completion")), *(Epoch(each) for each in others)]
    decision = decided({"a": epochs}, fail_on_severity=bound)
    assert decision.samples[SampleKey(scenario="a", agent="bot", epoch=0)].verdict is verdict


# ── the run ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("epochs", "tolerance", "verdict", "code"),
    [
        ([PASS, PASS], 0, PASSED, 0),
        ([PASS, FAIL], 0.5, FAILED, 1),
        ([PASS, LOST], 0, OPEN, 3),
        ([PASS, LOST], 0.5, PASSED, 0),
        ([PASS, LOST, LOST], 0.5, OPEN, 3),
        ([PASS, LOST, LOST], 1, OPEN, 3),  # more than half of a scenario is tolerated by nothing
        ([FAIL, LOST, LOST], 0.5, FAILED, 1),
        ([LOST, LOST], 1, OPEN, 3),
        ([PASS, PASS, NEVER], 1, OPEN, 3),  # what was never begun is tolerated by nothing
        ([NEVER], 1, OPEN, 3),
    ],
)
def test_losses_within_the_tolerance(
    epochs: list[Epoch | None], tolerance: float, verdict: Verdict, code: int
) -> None:
    decision = decided({"a": epochs}, fault_tolerance=tolerance)
    assert (decision.verdict, decision.exit_code) == (verdict, code)
    assert row(decision, EVERY_SAMPLE).verdict is verdict
    assert decision.scenarios["a", "bot"].verdict is verdict


@pytest.mark.parametrize(("outcome", "code"), [("complete", 0), (None, 3)])
def test_an_undecided_run_may_be_neutral_but_a_killed_one_is_not(outcome: str | None, code: int) -> None:
    decision = decided({"a": [PASS, LOST]}, outcome=outcome, on_undecided="neutral")
    assert (decision.verdict, decision.exit_code) == (OPEN, code)


@pytest.mark.parametrize(
    ("outcome", "verdict", "code"),
    [
        ("complete", PASSED, 0),
        (None, OPEN, 3),
        ("interrupted", PASSED, 130),
    ],
)
def test_how_the_run_ended(outcome: str | None, verdict: Verdict, code: int) -> None:
    decision = decided({"a": [PASS]}, outcome=outcome, fault_tolerance=1)
    assert (decision.verdict, decision.exit_code) == (verdict, code)


def test_an_authors_mistake_is_said_by_the_exit_code() -> None:
    decision = decided({"a": [PASS, Epoch(stop=StopReason.AUTHOR_ERROR)], "b": [FAIL]})
    assert (decision.verdict, decision.exit_code) == (FAILED, 2)
    assert decided({"a": [Epoch(broke("stars", author=True))]}).exit_code == 2


def test_findings_of_lost_samples_are_not_counted() -> None:
    lost = Epoch(finding(Severity.CRITICAL, 1), stop=StopReason.INFRASTRUCTURE)
    decision = decided({"a": [PASS, lost]}, fault_tolerance=0.5)
    assert decision.verdict is PASSED
    assert row(decision, SEVERE).basis == "0 findings in 1 sample"


def test_an_accepted_finding_is_not_counted_either() -> None:
    epochs = {"a": [Epoch(finding(Severity.CRITICAL)), PASS]}
    (violation,) = next(iter(decided(epochs).samples.values())).violations
    (name,) = violation.fingerprints
    known = {"fingerprint": name, "owner": "o", "reason": "r", "expires": "9999-12-31"}
    decision = decided(epochs, accepted_failures=[known])
    assert decision.verdict is PASSED
    assert row(decision, SEVERE).basis == "0 findings in 2 samples, 1 more accepted"
    both = {"a": [Epoch(finding(Severity.CRITICAL), finding(Severity.HIGH)), PASS]}
    decision = decided(both, accepted_failures=[known])
    assert row(decision, SEVERE).basis == "1 finding in 2 samples, 1 more accepted"


# ── scenarios, with gates over repeated runs ─────────────────────────────────────────────────────

RATE = {"pass_rate": {"at_least": 0.9, "reject_below": 0.2}}
HAT = {"pass_hat_k": {"k": 1, "at_least": 0.4, "over": "suite"}}


@pytest.mark.parametrize(
    ("epochs", "bound", "verdict"),
    [
        ([PASS] * 4, "critical", PASSED),
        ([PASS] * 5 + [FAIL], "critical", PASSED),
        ([FAIL] * 4, "critical", FAILED),
        ([PASS, FAIL], "critical", OPEN),
        # Failed samples are tolerated, but nothing critical; and what is severe for the author only fails
        # the sample.
        ([PASS] * 9 + [Epoch(finding(Severity.CRITICAL))], "critical", FAILED),
        ([PASS] * 9 + [Epoch(finding(Severity.HIGH))], "high", PASSED),
        ([PASS] * 9 + [Epoch(finding(Severity.CRITICAL))], "none", PASSED),
        ([PASS] * 9 + [NEVER], "critical", OPEN),
        ([LOST] * 3, "critical", OPEN),
    ],
)
def test_a_scenario_and_its_own_gate(epochs: list[Epoch | None], bound: str, verdict: Verdict) -> None:
    decision = decided({"a": epochs}, gates=RATE, fail_on_severity=bound, fault_tolerance=0.3)
    assert (decision.verdict, decision.scenarios["a", "bot"].verdict) == (verdict, verdict)


def test_a_scenario_that_was_not_run_to_its_end_is_open_whatever_its_gate_says() -> None:
    for last in (cut(), Epoch(stop=StopReason.BUDGET)):
        decision = decided({"a": [PASS] * 9 + [last]}, gates=RATE, fault_tolerance=0.3, outcome="budget")
        assert row(decision, "pass_rate").verdict is PASSED
        assert decision.scenarios["a", "bot"].verdict is OPEN


def test_a_scenario_under_a_gate_over_all_of_them() -> None:
    """A failed sample is tolerated only once that gate has passed; a scenario without one is as it is."""
    passed = decided({"a": [PASS, FAIL], "b": [PASS, PASS]}, gates=HAT)
    assert {id: each.verdict for (id, _), each in passed.scenarios.items()} == {"a": PASSED, "b": PASSED}
    lost = {"a": [PASS, FAIL], "b": [PASS, PASS], "c": [LOST, LOST]}
    undecided = decided(lost, gates={"pass_hat_k": {**HAT["pass_hat_k"], "at_least": 0.6}}, fault_tolerance=1)
    assert row(undecided, "pass_hat_k").verdict is OPEN
    found = {id: each.verdict for (id, _), each in undecided.scenarios.items()}
    assert found == {"a": OPEN, "b": PASSED, "c": OPEN}
    both = {**RATE, "pass_hat_k": {**HAT["pass_hat_k"], "at_least": 0.99}}
    own = decided({"a": [PASS] * 5 + [FAIL], "c": [LOST]}, gates=both, fault_tolerance=1)
    assert own.scenarios["a", "bot"].verdict is PASSED  # by the gate of its own


def test_what_a_gate_says_is_told_with_its_scenario() -> None:
    decision = decided({"a": [PASS, FAIL]}, gates=RATE)
    assert "pass_rate" in [v.name for v in decision.scenarios["a", "bot"].violations]
    decision = decided({"a": [PASS] * 5}, gates=RATE)
    assert decision.scenarios["a", "bot"].violations == ()


# ── successes and epochs ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("epoch", "success"),
    [
        (PASS, True),
        (FAIL, False),
        (LOST, None),
        (UNSURE, None),
        (Epoch(goal(1.0)), True),
        (Epoch(goal(0.0)), False),
        (Epoch(goal(1.0), broke("goal_completion")), None),
        (Epoch(goal(0.0), broke("goal_completion")), False),
        (Epoch(broke("stars")), True),
        (Epoch(Check(name=OUTCOME, passed=True)), True),
        (Epoch(Check(name=OUTCOME, passed=None)), None),
        (Epoch(Check(name=OUTCOME, passed=True), BROKEN), False),
        (Epoch(Check(name=OUTCOME, passed=True), UNDECIDED), True),
    ],
)
def test_what_counts_as_a_success(epoch: Epoch, success: bool | None) -> None:
    report = report_of({"a": [epoch]}, fail_on_severity="none")
    (sample,) = report.samples
    verdict = gates.decide(report).samples[sample.key].verdict
    assert sample_success(sample, verdict) is success


def test_epochs_that_are_missing_are_missing() -> None:
    own = EpochOutcomes((True, False, True, True), planned_min=3, planned_max=9)
    assert own.fixed == (True, False, True)
    assert (own.tally.successes, own.tally.decided, own.tally.planned) == (3, 4, 4)
    short = EpochOutcomes((True,), planned_min=3, planned_max=9)
    assert short.fixed == (True, None, None)
    assert (short.tally.decided, short.tally.planned) == (1, 3)


def test_epochs_of_a_scenario() -> None:
    report = report_of({"a": [PASS, LOST, NEVER]})
    (scenario,) = report.scenarios
    assert epoch_outcomes(scenario, [True, None]) == EpochOutcomes((True, None, None), 3, 3)
    # Its replacement is to come.
    assert epoch_outcomes(ranged(scenario), [True, None]) == EpochOutcomes((True,), 2, 4)
    report = report_of({"a": [PASS, cut()]})
    assert epoch_outcomes(ranged(report.scenarios[0]), [True, None]) == EpochOutcomes((True,), 2, 4)


def ranged(scenario: ScenarioReport) -> ScenarioReport:
    return replace(scenario, rules=ScenarioRules(epochs=EpochRange(min=2, max=4)))


@pytest.mark.parametrize(
    ("first", "last", "own"),
    [
        (LOST, PASS, EpochOutcomes((True, True, True, True), 2, 4, frozenset({0}))),
        (LOST, LOST, EpochOutcomes((None, True, True, True), 2, 4)),  # so is its replacement
        (cut(), PASS, EpochOutcomes((), 2, 4)),  # not lost, but not known yet: nothing stands in its place
        (PASS, PASS, EpochOutcomes((True, True, True, True), 2, 4)),
    ],
)
def test_a_lost_epoch_is_replaced_once(first: Epoch, last: Epoch, own: EpochOutcomes) -> None:
    report = report_of({"a": [first, PASS, PASS, PASS, last]})
    (scenario,) = report.scenarios
    outcomes = [epoch is PASS or None for epoch in (first, PASS, PASS, PASS, last)]
    assert epoch_outcomes(ranged(scenario), outcomes) == own


def test_the_planned_test_is_that_of_all_scenarios_and_of_its_own_range() -> None:
    gate = PASS_RATE.parse_settings(report_of({"a": [PASS]}, gates=RATE).plan.suite.gates)
    assert gate is not None
    test = planned_test(gate, EpochOutcomes((), 3, 20), 7)
    assert (test.min_epochs, test.max_epochs, test.rule.scenarios) == (3, 20, 7)


# ── pass_rate and pass_hat_k ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("epochs", "most", "verdict", "value", "words"),
    [
        ([PASS] * 4, None, PASSED, 1.0, "4 of 4 epochs succeeded: significantly above 0.2"),
        ([FAIL] * 3, None, FAILED, 0.0, "0 of 3 epochs succeeded: significantly below 0.9"),
        ([PASS], None, OPEN, 1.0, "needs at least 2 epochs without a failure; planned: 1"),
        ([PASS, FAIL], None, OPEN, 0.5, "not decided; about "),
        ([PASS, PASS, LOST, LOST], None, OPEN, 1.0, "2 of 2 epochs succeeded, 2 errored: not decided;"
         " the errored epochs could have decided either way"),
        ([LOST] * 4, None, OPEN, None, "not decided; no epoch was decided"),
        ([PASS, FAIL], 20, OPEN, 0.5, "1 of 2 epochs succeeded: not decided; the run ended early"),
    ],
)  # fmt: skip
def test_what_pass_rate_says(
    epochs: list[Epoch], most: int | None, verdict: Verdict, value: float | None, words: str
) -> None:
    run = {"epochs": {"a": EpochRange(min=2, max=most)}} if most else {}
    decision = decided({"a": epochs}, gates=RATE, run=run, fault_tolerance=1)
    told = row(decision, "pass_rate")
    assert (told.verdict, told.value) == (verdict, value), told
    assert words in told.basis
    assert decision.verdict is told.verdict


@pytest.mark.parametrize("over", ["scenario", "suite"])
def test_pass_hat_k_rests_on_epochs_whose_number_was_settled(over: str) -> None:
    """Where success decides how many there are, the further ones would flatter it, or not."""
    hat = {"pass_hat_k": {"k": 2, "at_least": 0.9, "over": over}}
    run = {"epochs": {"a": EpochRange(min=2, max=9)}}
    decision = decided({"a": [PASS, PASS, FAIL, FAIL]}, gates=hat, run=run)
    assert (row(decision, "pass_hat_k").value, decision.verdict) == (1.0, PASSED)


def test_pass_hat_k_of_too_few_epochs_is_not_estimable() -> None:
    for over, told in {"suite": "from 1 epoch ", "scenario": "from 1 epoch "}.items():
        hat = {"pass_hat_k": {"k": 2, "at_least": 0.4, "over": over}}
        decision = decided({"a": [PASS], "b": [PASS] * 3}, gates=hat)
        found = next(g for g in decision.gates if g.name == "pass_hat_k" and g.value is None)
        assert (found.verdict, told in found.basis) == (OPEN, True)


# ── no_regression ────────────────────────────────────────────────────────────────────────────────


def against(
    before: Mapping[str, Sequence[bool | None]],
    epochs: Mapping[str, Sequence[Epoch | None]],
    gone: Sequence[str] = (),
    changed: Mapping[str, str] | None = None,
    **more: Any,
) -> Decision:
    outcomes = {"bot": {id: tuple(known) for id, known in before.items()}}
    baseline = Baseline(
        run_id="r0", outcomes=outcomes, gone=tuple(gone), changed={"bot": dict(changed or {})}
    )
    more.setdefault("gates", {"no_regression": {"margin": 0.2}})
    return decided(epochs, run={"baseline": baseline}, **more)


def rows(decision: Decision) -> dict[str, tuple[Verdict, str]]:
    return {g.scenario: (g.verdict, g.basis) for g in decision.gates if g.name == "no_regression"}


def test_nothing_to_compare_with_decides_nothing() -> None:
    assert rows(decided({"a": [PASS]}, gates={"no_regression": {"margin": 0.2}}))[""][0] is OPEN
    assert rows(against({"b": [True]}, {"a": [PASS]}))[""][0] is OPEN


def test_a_scenario_that_surely_dropped_turns_it_red() -> None:
    decision = against({"a": [True] * 20, "b": [True] * 20}, {"a": [FAIL] * 20, "b": [PASS] * 20})
    found = rows(decision)
    assert (found[""][0], found["a"][0], "b" in found) == (FAILED, FAILED, False)
    assert row(decision, "no_regression", "a").value == 1.0
    assert "0 of 20 epochs succeeded, 20 of 20 in the baseline: significantly dropped" in found["a"][1]


def test_a_scenario_that_perhaps_dropped_leaves_it_open() -> None:
    many = {f"s{n}": [True] * 5 for n in range(40)}
    now = {id: [PASS] * 5 for id in many} | {"s0": [FAIL] * 5}
    found = rows(against(many, now))
    assert (found[""][0], found["s0"][0]) == (OPEN, OPEN)
    assert set(found) == {"", "s0"}


def test_what_is_not_in_the_baseline_stands_on_its_own_checks() -> None:
    before = {"a": [True] * 30}
    same = {"a": [PASS] * 30}
    cases: dict[str, tuple[list[Epoch | None], Verdict]] = {
        "good": ([PASS, PASS], PASSED),
        "bad": ([PASS, FAIL], FAILED),
        "lost": ([LOST], OPEN),
        "partly": ([PASS, LOST], PASSED),
        "never": ([NEVER], OPEN),
    }
    decision = against(
        before, {**same, **{id: epochs for id, (epochs, _) in cases.items()}}, fault_tolerance=1
    )
    found = rows(decision)
    assert {id: found[id][0] for id in cases} == {id: verdict for id, (_, verdict) in cases.items()}
    assert found["good"][1] == "new: not in the baseline"
    assert "not compared: good, bad, lost, partly, never" in found[""][1]


@pytest.mark.parametrize(
    ("more", "verdict"),
    [
        ({}, FAILED),
        ({"pass_rate": {"at_least": 0.9, "reject_below": 0.2}}, PASSED),
        ({"pass_hat_k": {"k": 1, "at_least": 0.1, "over": "scenario"}}, PASSED),
        ({"pass_hat_k": {"k": 1, "at_least": 0.1, "over": "suite"}}, FAILED),
    ],
)
def test_unless_another_gate_looks_at_it(more: dict[str, Any], verdict: Verdict) -> None:
    decision = against(
        {"a": [True] * 30},
        {"a": [PASS] * 30, "new": [PASS] * 5 + [FAIL]},
        changed={"new": "turns differ"},
        gates={"no_regression": {"margin": 0.2}, **more},
    )
    found = rows(decision)["new"]
    assert found[0] is verdict
    assert found[1].startswith("changed since the baseline: turns differ")


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ([True] * 30, [PASS] * 30, "against r0: nothing got worse; "),
        ([False] * 30, [FAIL] * 30, "nothing got worse; 1 of 1 failed in every epoch, as before; "),
        ([True] * 30, [FAIL] * 30, "against r0: 1 of 1 failed in every epoch; "),
        ([True] * 300, [PASS] * 299 + [FAIL], "against r0: drop in the mean: "),
        ([True], [PASS], "against r0: drop in the mean: "),
        ([True] * 30, [LOST] * 30, "against r0: drop in the mean: "),
    ],
)
def test_what_is_said_of_the_comparison(before: list[bool], after: list[Epoch], words: str) -> None:
    told = rows(against({"a": before}, {"a": after}, fault_tolerance=1))[""][1]
    assert words in told, told


# ── thresholds ───────────────────────────────────────────────────────────────────────────────────


def stars(*values: float | None, **threshold: Any) -> Verdict:
    epochs = [Epoch(Score(metric="stars", value=v) if v is not None else broke("stars")) for v in values]
    decision = decided({"a": epochs}, thresholds={"stars": threshold})
    (found,) = [gate for gate in decision.gates if gate.metric]
    assert decision.verdict is found.verdict
    return found.verdict


@pytest.mark.parametrize(
    ("values", "threshold", "verdict"),
    [
        ([3, 4], {"at_least": 3.5}, PASSED),
        ([3, 4], {"at_least": 3.51}, FAILED),
        ([0.1 + 0.2, 0.3], {"at_least": 0.3}, PASSED),
        ([1.0, 1.1, 1.2], {"at_least": 1.1}, PASSED),  # in binary a little less
        ([3, 4], {"min": 3}, PASSED),
        ([2, 5], {"min": 3}, FAILED),
        ([2, 5], {"share_below": {2: 0.1}}, PASSED),
        ([1, 5], {"share_below": {2: 0.5}}, PASSED),
        ([1, 1, 5], {"share_below": {2: 0.5}}, FAILED),
        ([5, 5, 5, None], {"at_least": 4}, PASSED),  # be it the worst: it decides nothing
        ([5, 5, None], {"at_least": 4}, OPEN),
        ([1, 1, None], {"at_least": 4}, FAILED),
        ([None], {"at_least": 4}, OPEN),
    ],
)
def test_a_threshold_at_its_bound(values: list[float | None], threshold: Any, verdict: Verdict) -> None:
    assert stars(*values, **threshold) is verdict


def test_a_threshold_and_what_was_judged() -> None:
    def verdict(epoch: Epoch, **more: Any) -> tuple[Verdict, Any]:
        decision = decided({"a": [epoch]}, thresholds={"stars": 3}, **more)
        (found,) = [gate for gate in decision.gates if gate.metric]
        return found.verdict, found.value

    own = {"a": {"thresholds": {"stars": 4}}}
    assert verdict(LOST, scenarios=own) == (OPEN, None)
    assert verdict(PASS, scenarios=own) == (OPEN, None)  # nothing was judged
    assert verdict(PASS, scenarios=own, run={"no_judge": True}) == (OPEN, None)
    assert verdict(Epoch(Score(metric="stars", value=3.5)), scenarios=own) == (FAILED, 3.5)
    assert verdict(Epoch(Score(metric="stars", value=3.5))) == (PASSED, 3.5)
    lost = Epoch(Score(metric="stars", value=1), stop=StopReason.INFRASTRUCTURE)
    assert verdict(lost, scenarios=own) == (OPEN, None)
    off = decided({"a": [PASS]}, thresholds={"stars": 3}, scenarios={"a": {"thresholds": {"stars": None}}})
    assert [gate for gate in off.gates if gate.metric] == []


def test_what_is_lost() -> None:
    for epoch, lost in ((PASS, False), (FAIL, False), (LOST, True), (cut(), True)):
        (sample,) = report_of({"a": [epoch]}).samples
        assert is_errored(sample) is lost
    (sample,) = report_of({"a": [Epoch(stop=StopReason.AGENT_ERROR)]}).samples
    assert not is_errored(sample)


def test_a_threshold_that_applies_nowhere_is_violated() -> None:
    decision = decided({"a": [PASS]}, thresholds={"nothing": 3})
    assert (row(decision, "thresholds.nothing").verdict, decision.verdict) == (FAILED, FAILED)
    skipped = decided({"a": [PASS]}, thresholds={"nothing": 3}, run={"no_judge": True})
    assert row(skipped, "thresholds.nothing").verdict is OPEN


# ── budget and deadline ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("tokens", "calls", "outcome", "verdicts"),
    [
        (100, 3, "complete", {"budget.max_calls": PASSED, "budget.max_tokens": PASSED}),
        (100, 3, "budget", {"budget.max_calls": OPEN, "budget.max_tokens": PASSED}),
        (101, 2, "budget", {"budget.max_calls": PASSED, "budget.max_tokens": OPEN}),
        (101, 2, "complete", {"budget.max_calls": PASSED, "budget.max_tokens": OPEN}),
        (101, 4, "budget", {"budget.max_calls": OPEN, "budget.max_tokens": OPEN}),
    ],
)
def test_the_limit_that_stopped_a_run_leaves_it_open(
    tokens: int, calls: int, outcome: Literal["complete", "budget"], verdicts: dict[str, Verdict]
) -> None:
    spent = Score(metric="stars", value=3, usage=Usage(calls=calls, input_tokens=tokens))
    agent = 2 * 150  # tokens of two turns, at the agent's cost
    budget = BudgetConfig(max_calls=3 + 2, max_tokens=100 + agent)
    decision = decided({"a": [Epoch(spent)]}, outcome=outcome, budget=budget.model_dump())
    assert {g.name: g.verdict for g in decision.gates if g.name.startswith("budget")} == verdicts


@pytest.mark.parametrize(
    ("outcome", "verdict"), [("complete", PASSED), ("fail_fast", PASSED), ("deadline", OPEN)]
)
def test_the_deadline(outcome: Any, verdict: Verdict) -> None:
    decision = decided({"a": [PASS]}, outcome=outcome, deadlines={"run_s": 10})
    assert row(decision, "deadlines.run_s").verdict is verdict


def test_a_report_of_other_scenarios_has_their_samples() -> None:
    whole = report_of({"a": [Epoch()], "b": [Epoch()]})
    assert [sample.key.scenario for sample in whole.samples] == ["a", "b"]
    part = replace(whole, scenarios=whole.scenarios[1:])
    assert [sample.key.scenario for sample in part.samples] == ["b"]
