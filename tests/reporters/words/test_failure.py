"""Failures in words: which there are, in which order, what each says, and what is left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from agenteval.core.decision import Decision, GateRow, SampleDecision, ScenarioDecision, Violation
from agenteval.core.scenario import SampleKey
from agenteval.core.score import Check, Severity, Verdict
from agenteval.core.trajectory import StopReason
from agenteval.reporters.words.failure import (
    NEVER_RAN,
    NONE_PASSED,
    SOME_FAILED,
    ReportedFailure,
    broken_rule,
    collect_failures,
    decisive_failures,
    finding_text,
    lowest_scores,
    never_ran_text,
    outcomes_by_scenario,
    planned,
    reason,
    reason_lines,
    reason_suffix,
    rule_name,
    run_gates,
    sample_violations,
    scenario_decision,
    scenario_violations,
    split_violation_remedy,
    title,
    turn_words,
)
from agenteval.verdict.gates import decide
from agenteval.verdict.report import Report
from tests.support.verdict_runs import (
    BROKEN,
    CUT,
    FAIL,
    HELD,
    LOST,
    PASS,
    UNSURE,
    Played,
    finding,
    only_sample,
    only_scenario,
    report_of,
    score,
    unclear,
)

P, F, U = Verdict.PASSED, Verdict.FAILED, Verdict.INCONCLUSIVE


def broke(name: str = "tool_calls", detail: str = "", verdict: Verdict = F, **more: Any) -> Violation:
    return Violation(name, detail, more.pop("where", ""), verdict, **more)


def decision_of(
    samples: Mapping[SampleKey, SampleDecision] | None = None,
    scenarios: Mapping[tuple[str, str], ScenarioDecision] | None = None,
    gates: Sequence[GateRow] = (),
    verdict: Verdict = F,
    **more: Any,
) -> Decision:
    return Decision(verdict, 1, tuple(gates), samples or {}, scenarios or {}, **more)


def gate(name: str, verdict: Verdict = F, scenario: str = "", agent: str = "") -> GateRow:
    return GateRow(name, 1.0, 2.0, "", "", verdict, scenario, agent)


def failures_of(epochs: Mapping[str, Sequence[Played | None]], **more: Any) -> tuple[ReportedFailure, ...]:
    report = report_of(epochs, **more)
    return collect_failures(report, decide(report))


def only(epochs: Mapping[str, Sequence[Played | None]], **more: Any) -> ReportedFailure:
    (found,) = failures_of(epochs, **more)
    return found


# Which there are


def test_what_did_not_pass_in_the_order_of_the_report() -> None:
    found = failures_of({"good": [PASS], "bad": [PASS, FAIL, LOST], "open": [UNSURE], "never": [None]})
    assert [(each.scenario, each.epoch, each.verdict, each.fault) for each in found] == [
        ("bad", 1, F, None),
        ("bad", 2, U, "infrastructure"),
        ("open", 0, U, "undecided"),
        ("never", 0, U, "interrupted"),
    ]
    assert all(each.sample is None for each in found if each.scenario == "never")
    assert {each.never_ran for each in found if each.scenario != "never"} == {False}
    assert found[-1].never_ran


def test_of_a_scenario_that_began_what_never_ran_is_no_scenario_that_never_ran() -> None:
    found = failures_of({"a": [PASS, None]})
    assert [(each.epoch, each.never_ran) for each in found] == [(1, False)]


def test_a_rule_over_all_samples_comes_after_the_samples() -> None:
    whole_scores = [Played((score("stars", value),), turns=((),)) for value in (1.0, 2.0)]
    found = failures_of({"a": whole_scores}, thresholds={"stars": 3.0})
    (rule,) = found
    assert (rule.key, rule.epoch, rule.sample, rule.verdict) == (None, None, None, F)
    assert [v.metric for v in rule.violations] == ["stars"]
    assert rule.transcript == ()
    assert len(rule.evidence) == 1  # at or below the mean of 1.5
    assert "stars 1 (epoch 1)" in rule.evidence[0]


def test_a_rule_over_all_samples_has_its_own_verdict() -> None:
    report = report_of({"a": [FAIL]})
    decided = decide(report)
    own = broke("pass_rate", "too few", U)
    scenario = decided.scenarios[("a", "bot")]
    more = {("a", "bot"): replace(scenario, violations=(*scenario.violations, own))}
    found = collect_failures(report, replace(decided, scenarios=more))
    assert [(each.key is None, each.verdict) for each in found] == [(False, F), (True, U)]


@pytest.mark.parametrize(
    ("run", "scenario", "sample", "is_reported", "tolerated", "why"),
    [
        (F, F, F, False, False, "tolerated by a gate"),
        (F, P, F, False, True, "tolerated by a gate"),
        (P, F, F, False, True, "tolerated by a gate"),
        (U, F, U, False, False, "tolerated by a gate"),
        (F, F, F, True, True, "reported, not gated"),
    ],
    ids=["decisive", "scenario-passed", "run-passed", "undecided", "reported"],
)
def test_what_is_tolerated(
    run: Verdict, scenario: Verdict, sample: Verdict, is_reported: bool, tolerated: bool, why: str
) -> None:
    report = report_of({"a": [FAIL]})
    key = only_sample(report).key
    decision = decision_of(
        {key: SampleDecision(sample)},
        {("a", "bot"): ScenarioDecision(scenario)},
        verdict=run,
        is_reported=is_reported,
    )
    (found,) = collect_failures(report, decision)
    assert (found.tolerated, found.is_reported, found.why_tolerated) == (tolerated, is_reported, why)


@pytest.mark.parametrize(
    ("row", "tolerated"),
    [
        (None, False),
        (gate("fault_tolerance", P), True),
        (gate("fault_tolerance", P, "a", "bot"), True),
        (gate("fault_tolerance", F), False),
        (gate("other", P), False),
    ],
)
@pytest.mark.parametrize("verdict", [F, U])
def test_only_undecided_conversations_are_covered_by_the_tolerance(
    row: GateRow | None, tolerated: bool, verdict: Verdict
) -> None:
    report = report_of({"a": [LOST]})
    decision = decision_of(
        {only_sample(report).key: SampleDecision(verdict)},
        {("a", "bot"): ScenarioDecision(F)},
        [row] if row else [],
    )
    (found,) = collect_failures(report, decision)
    assert found.tolerated is (tolerated and verdict is U)


@pytest.mark.parametrize(
    ("row", "tolerated"),
    [
        (gate("g", F, "a", "bot"), False),
        (gate("g", U, "a", "bot"), False),
        (gate("g", P, "a", "bot"), True),
        (gate("g", F, "b", "bot"), True),
        (gate("g", F, "a", "other"), True),
    ],
    ids=["failed", "undecided", "passed", "other scenario", "other agent"],
)
def test_of_a_reported_log_only_gates_of_its_own_decide(row: GateRow, tolerated: bool) -> None:
    report = report_of({"a": [PASS]})
    decision = decision_of(
        {only_sample(report).key: SampleDecision(P)},
        {("a", "bot"): ScenarioDecision(F, (broke("g"),))},
        [row],
        is_reported=True,
    )
    (found,) = collect_failures(report, decision)
    assert found.tolerated is tolerated


def test_each_failure_says_how_to_repeat_it_and_where_it_was_written() -> None:
    found = failures_of({"a": [FAIL]}, agents=("x", "y"))
    assert [each.agent for each in found] == ["x", "y"]
    assert [each.title for each in found] == ["a · x", "a · y"]
    assert {each.where for each in found} == {"s/a.yaml:1"}
    assert [each.repro for each in found] == [f"agenteval run s/a.yaml -s a --agent {x}" for x in "xy"]
    assert all(each.several_agents for each in found)


def test_a_recorded_conversation_is_at_its_record_and_scored_again() -> None:
    recorded = Played((BROKEN,), turns=((),), stop=StopReason.RECORDED, detail="log.jsonl:7")
    command = ("score", "log.jsonl", "--no-judge")
    found = only({"a": [recorded]}, run={"command": command})
    assert found.where == "log.jsonl:7"
    assert found.repro == "agenteval score log.jsonl --no-judge -s a"


# In which order


def fake(scenario: str, verdict: Verdict, epoch: int | None = 0, **more: Any) -> ReportedFailure:
    base = only({scenario: [FAIL]})
    key = None if epoch is None else SampleKey(scenario=scenario, agent="bot", epoch=epoch)
    return replace(base, verdict=verdict, key=key, **more)


def test_failed_groups_come_before_undecided_ones_and_gates_before_conversations() -> None:
    failed = [
        fake("undecided", U),
        fake("tolerated", F, tolerated=True),
        fake("mixed", U),
        fake("mixed", F, 1),
        fake("mixed", F, None),
        fake("late", F),
        fake("late", F, agent="other"),
    ]
    groups = decisive_failures(failed)
    assert [[(e.scenario, e.agent, e.verdict, e.epoch) for e in group] for group in groups] == [
        [("mixed", "bot", F, None), ("mixed", "bot", F, 1), ("mixed", "bot", U, 0)],
        [("late", "bot", F, 0)],
        [("late", "other", F, 0)],
        [("undecided", "bot", U, 0)],
    ]
    assert decisive_failures([]) == []


@pytest.mark.parametrize(
    ("names", "facts", "absent"),
    [
        ("a", ["1 scenario never", ": a"], "more"),
        ("abcde", ["5 scenarios", "a, b, c, d, e"], "more"),
        ("abcdefg", ["7 scenarios", "a, b, c, d, e and 2 more"], "f"),
    ],
)
def test_the_first_five_that_never_ran_are_named(names: str, facts: list[str], absent: str) -> None:
    epochs: dict[str, list[Played | None]] = {"ran": [FAIL], **{name: [None, None] for name in names}}
    text = never_ran_text(decisive_failures(failures_of(epochs)))
    assert all(fact in text for fact in facts)
    assert absent not in text
    assert "ran," not in text


def test_none_that_never_ran_is_no_sentence() -> None:
    assert never_ran_text([]) == ""
    assert never_ran_text(decisive_failures(failures_of({"a": [FAIL, None]}))) == ""


# Gates and decisions


def test_gates_over_the_run_but_those_that_count_samples() -> None:
    rows = [
        gate("no_regression", F),
        gate("pass_rate", U),
        gate("passed", P),
        gate("pass_rate", F, "a"),
        gate("every sample passes"),
        gate("fault_tolerance"),
        gate("fail_on_severity"),
    ]
    assert run_gates(decision_of(gates=rows)) == (rows[0], rows[1])


def test_planned_are_those_that_ran_and_those_that_did_not_by_epoch() -> None:
    scenario = only_scenario(report_of({"a": [PASS, None, FAIL]}))
    assert [(key.epoch, sample is None) for key, sample in planned(scenario)] == [
        (0, False),
        (1, True),
        (2, False),
    ]
    assert planned(replace(scenario, samples=(), missing=())) == ()


def test_planned_variants_of_one_epoch_are_in_the_order_of_their_names() -> None:
    scenario = only_scenario(report_of({"a": [None]}))
    keys = [
        SampleKey(scenario="a", agent="bot", epoch=e, variant=v) for e, v in ((1, "a"), (0, "b"), (0, "a"))
    ]
    found = planned(replace(scenario, missing=tuple(keys)))
    assert [key for key, _ in found] == [keys[2], keys[1], keys[0]]


def test_without_a_decision_a_scenario_is_inconclusive() -> None:
    scenario = only_scenario(report_of({"a": [PASS]}))
    assert scenario_decision(decision_of(), scenario) == ScenarioDecision(U)
    known = ScenarioDecision(P)
    assert scenario_decision(decision_of(scenarios={("a", "bot"): known}), scenario) is known
    assert scenario_decision(decision_of(scenarios={("a", "x"): known}), scenario).verdict is U


@pytest.mark.parametrize(
    ("scenario", "samples", "outcome"),
    [
        (P, [P, P], "passed"),
        (P, [P, F], SOME_FAILED),
        (P, [F, F], NONE_PASSED),
        (P, [F, U], NONE_PASSED),
        (P, [P, U], "passed"),
        (F, [P, F], "failed"),
        (F, [F], "failed"),
        (U, [F], "inconclusive"),
        (P, [], "passed"),
    ],
)
def test_the_outcome_of_a_scenario(scenario: Verdict, samples: list[Verdict], outcome: str) -> None:
    report = report_of({"a": [PASS, PASS]})
    keys = [sample.key for sample in report.samples]
    each = {key: SampleDecision(verdict) for key, verdict in zip(keys, samples, strict=False)}
    decision = decision_of(each, {("a", "bot"): ScenarioDecision(scenario)})
    assert outcomes_by_scenario(report, decision) == {("a", "bot"): outcome}


@pytest.mark.parametrize(
    ("own", "is_of_the_scenario"),
    [
        (broke("r", "d", where="w", turn=1), False),
        (broke("r", "d", where="w", turn=2), True),
        (broke("r", "d", where="x", turn=1), True),
        (broke("r", "e", where="w", turn=1), True),
        (broke("s", "d", where="w", turn=1), True),
        (broke("r", "d", U, where="w", turn=1, epoch=3), False),
    ],
    ids=["same", "turn", "place", "detail", "name", "verdict and epoch"],
)
def test_rules_of_the_scenario_are_those_of_no_sample(own: Violation, is_of_the_scenario: bool) -> None:
    report = report_of({"a": [FAIL]})
    sample = SampleDecision(F, None, (broke("r", "d", where="w", turn=1),))
    decision = decision_of({only_sample(report).key: sample}, {("a", "bot"): ScenarioDecision(F, (own,))})
    found = scenario_violations(only_scenario(report), decision)
    assert found == ((own,) if is_of_the_scenario else ())


# Why a sample did not pass


def checked(whole: Sequence[Check] = (), turns: Sequence[Sequence[Check]] = ((),), **more: Any) -> Report:
    return report_of({"a": [Played(tuple(whole), turns=tuple(map(tuple, turns)), **more)]})


def test_a_sample_that_passed_has_no_reasons() -> None:
    sample = only_sample(checked([BROKEN]))
    assert sample_violations(sample, SampleDecision(P, None, (broke(),)), "w") == ()


def test_failed_checks_are_added_unless_their_name_is_told() -> None:
    one, two = Check(name="one", passed=False, detail="d", where="f:1"), Check(name="two", passed=False)
    sample = only_sample(checked([one, HELD], [[two], [one, Check(name="open", passed=None)]]))
    found = sample_violations(sample, SampleDecision(F, None, (broke("two"),)), "w")
    assert [(v.name, v.turn, v.detail, v.where) for v in found] == [
        ("two", None, "", ""),
        ("one", 1, "d", "f:1"),
        ("one", None, "d", "f:1"),
    ]


def test_of_an_undecided_sample_no_checks_are_added() -> None:
    sample = only_sample(checked([BROKEN]))
    undecided = broke("judge", verdict=U)
    assert sample_violations(sample, SampleDecision(U, "judge", (undecided,)), "w") == (undecided,)


@pytest.mark.parametrize(("verdict", "names"), [(F, ["b", "d", "a", "c"]), (U, ["a", "c", "b", "d"])])
def test_reasons_for_the_verdict_come_first(verdict: Verdict, names: list[str]) -> None:
    rules = (broke("a", verdict=U), broke("b"), broke("c", verdict=U), broke("d"))
    found = sample_violations(None, SampleDecision(verdict, None, rules), "w")
    assert [v.name for v in found] == names


@pytest.mark.parametrize(
    ("played", "decided", "name", "detail", "verdict"),
    [
        (None, NEVER_RAN, "not_run", "planned but never ran", U),
        (CUT, SampleDecision(U, "interrupted"), "interrupted", "the conversation was cut off", U),
        (
            replace(LOST, detail="no route"),
            SampleDecision(U, "infrastructure"),
            "infrastructure",
            "no route",
            U,
        ),
        (LOST, SampleDecision(U, "infrastructure"), "infrastructure", "infrastructure", U),
        (PASS, SampleDecision(F), "stop", "script_done", F),
    ],
    ids=["never ran", "cut", "with detail", "without detail", "no fault"],
)
def test_there_is_always_one_reason(
    played: Played | None, decided: SampleDecision, name: str, detail: str, verdict: Verdict
) -> None:
    report = report_of({"a": [played]})
    sample = report.samples[0] if report.samples else None
    (found,) = sample_violations(sample, decided, "f:3")
    assert (found.name, found.detail, found.where, found.verdict) == (name, detail, "f:3", verdict)


# The words


@pytest.mark.parametrize(
    ("violation", "text"),
    [
        (broke("r", "d"), "r: d"),
        (broke("r", "d", turn=0), "r (turn 1): d"),
        (broke("r", ""), "r"),
        (broke("r", "  ", turn=2), "r (turn 3)"),
        (broke("a\nb", "one\ntwo"), "a b: one\ntwo"),
        (broke("r", "::error::x"), "r: : :error::x"),
    ],
)
def test_a_reason(violation: Violation, text: str) -> None:
    assert reason(violation) == text


def test_a_long_reason_is_cut_but_not_its_remedy() -> None:
    text = reason(broke("r", f"{'x' * 3000} — set `a: b`"))
    assert text.count("x") == 2000
    assert "more characters" in text
    assert text.endswith("— set `a: b`")
    assert reason(broke("r", "x" * 2000)) == f"r: {'x' * 2000}"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("fail_on_severity", ""),
        ("no_error", ""),
        ("answer", ""),
        ("infrastructure", ""),
        ("simulator", ""),
        ("tool_calls", "tool_calls"),
        ("thresholds.stars", "stars"),
        ("judge", "judge"),
    ],
)
def test_the_name_of_a_rule(name: str, shown: str) -> None:
    assert rule_name(broke(name, "x")) == shown


def test_a_rule_without_a_message_has_its_name() -> None:
    assert [rule_name(broke("answer", detail)) for detail in ("", "\n ", "empty")] == ["answer", "answer", ""]


@pytest.mark.parametrize(
    ("name", "verdict", "parts"),
    [
        ("tool_calls", F, ("a — b", "")),
        ("no_error", F, ("a", "b")),
        ("tool_calls", U, ("a", "b")),
        ("no_error", U, ("a", "b")),
    ],
)
def test_a_failed_rule_has_no_remedy_but_an_error_has(
    name: str, verdict: Verdict, parts: tuple[str, str]
) -> None:
    assert split_violation_remedy(broke(name, verdict=verdict), "a — b") == parts


@pytest.mark.parametrize(
    ("violation", "lines", "gist"),
    [
        (broke("tool_calls", "missing: f()"), [("missing: f()", "")], "missing: f()"),
        (broke("output.contains", "no x", turn=1), [("no x", "")], "turn 2: no x"),
        (broke("output.contains", "turn 2: no x", turn=1), [("turn 2: no x", "")], "turn 2: no x"),
        (broke("limits.steps", "3, at most 2"), [("3, at most 2", "")], "limits.steps: 3, at most 2"),
        (broke("thresholds.stars", "2, not 3"), [("2, not 3", "")], "stars: 2, not 3"),
        (broke("answer", "empty"), [("empty", "")], "empty"),
        (broke("limits.steps", ""), [], "limits.steps"),
        (broke("answer", "", turn=1), [], "turn 2: answer"),
        (broke("", "", turn=1), [], "turn 2"),
        (
            broke("tool_calls", "expected f()\ncalled: g()\n\nmissing: f()\nlast"),
            [("expected f()", ""), ("called: g()", ""), ("missing: f()", ""), ("last", "")],
            "missing: f()",
        ),
        (broke("tool_calls", "not allowed: f()\ncalled f()"), [("not allowed: f()", ""), ("called f()", "")],
         "called f()"),
        (broke("tool_calls", "expected f()\ncalled: g()"), [("expected f()", ""), ("called: g()", "")],
         "expected f()"),
        (broke("tool_calls", "said a — b"), [("said a — b", "")], "said a — b"),
        (broke("no_error", "one — fix 1\ntwo — fix 2"), [("one", "fix 1"), ("two", "fix 2")], "one — fix 1"),
        (broke("judge", "down\nfor long — wait\nand see", U), [("down", ""), ("for long", "wait\nand see")],
         "judge: down"),
    ],
)  # fmt: skip
def test_a_rule_in_short(violation: Violation, lines: list[tuple[str, str]], gist: str) -> None:
    rule = broken_rule(violation)
    assert rule.violation is violation
    assert rule.name == rule_name(violation)
    assert list(rule.lines) == lines
    assert rule.gist == gist


def test_the_first_remedy_of_a_rule() -> None:
    assert broken_rule(broke("no_error", "a\nb — fix b\nc — fix c")).remedy == "fix b"
    assert broken_rule(broke("no_error", "a\nb")).remedy == ""


def failed_with(*violations: Violation) -> ReportedFailure:
    return replace(only({"a": [FAIL]}), violations=violations)


def test_reasons_with_their_places() -> None:
    found = failed_with(broke("one", where="/root/x.yaml:3"), broke("two", where="default"), broke("three"))
    assert reason_lines(found, "/root") == ("one", "  at x.yaml:3", "two", "three")
    assert found.reasons == ("one", "two", "three")
    assert [rule.name for rule in found.rules] == ["one", "two", "three"]


@pytest.mark.parametrize(("count", "last"), [(20, "r"), (21, "… and 1 more"), (25, "… and 5 more")])
def test_the_first_twenty_reasons_are_told(count: int, last: str) -> None:
    lines = reason_lines(failed_with(*(broke("r") for _ in range(count))), "")
    assert lines[-1] == last
    assert len(lines) == min(count, 21)


def test_the_findings_are_the_evidence_worst_first_and_at_most_twenty() -> None:
    findings = [finding(Severity.LOW, turn=None), finding(Severity.CRITICAL), finding(Severity.HIGH)]
    found = only({"a": [Played((*findings, BROKEN), turns=((),))]})
    assert [line.partition(":")[0] for line in found.evidence] == ["critical", "high", "low"]
    assert reason_lines(found, "")[-3:] == found.evidence
    many = only({"a": [Played((*[finding(Severity.LOW, turn=None)] * 21, BROKEN), turns=((),))]})
    assert len(many.evidence) == 20


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({}, "critical: unsafe action (turn 1, judge): so it is"),
        ({"turn": None}, "critical: unsafe action (judge): so it is"),
        ({"evidence": "Booked!"}, 'critical: unsafe action (turn 1, judge): so it is — "Booked!"'),
        ({"explanation": "", "evidence": " "}, "critical: unsafe action (turn 1, judge)"),
        (
            {"detector": "leak", "also": ("judge: yes",), "explanation": ""},
            "critical: unsafe action (turn 1, proven by code (leak), also found by the judge)",
        ),
    ],
)
def test_a_finding(more: dict[str, Any], text: str) -> None:
    assert finding_text(finding(**more)) == text


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([4.0, 2.0, 3.0], ["2 (epoch 2)", "3 (epoch 3)"]),
        ([5.0, 1.0, 1.0, 2.0, 1.0, 1.5], ["1 (epoch 2)", "1 (epoch 3)", "1 (epoch 5)"]),
        ([3.0], ["3 (epoch 1)"]),
        ([], []),
    ],
)
def test_the_three_lowest_scores_at_or_below_the_mean(values: list[float], shown: list[str]) -> None:
    played = [Played((score("stars", value), score("other", 0.0)), turns=((),)) for value in values]
    scenario = only_scenario(report_of({"a": played or [PASS]}))
    assert lowest_scores(scenario, {"stars"}) == tuple(f"stars {each}" for each in shown)
    assert lowest_scores(scenario, ()) == ()


def test_labels_that_say_no_failure_or_nothing_are_no_low_scores() -> None:
    bad = score("m", label="false information", ok=False, reason="it lied", evidence="Booked!")
    fine, open_ = score("m", label="no failure", ok=True), unclear("m")
    scenario = only_scenario(report_of({"a": [Played((open_,), turns=((fine,), (bad,)))]}))
    (line,) = lowest_scores(scenario, {"m"})
    assert line == 'm false information (epoch 1, turn 2): it lied — "Booked!"'


@pytest.mark.parametrize(("turn", "words"), [(None, ""), (0, ", turn 1"), (9, ", turn 10")])
def test_turns_are_counted_from_one(turn: int | None, words: str) -> None:
    assert turn_words(turn) == words


@pytest.mark.parametrize(
    ("why", "evidence", "limit", "text"),
    [
        ("", "", 600, ""),
        (" ", "\n", 600, ""),
        ("why", "", 600, ": why"),
        ("", "said", 600, ' — "said"'),
        ("why", "said", 600, ': why — "said"'),
        ("abcdef", "uvwxyz", 4, ': abc… — "uvw…"'),
        ("abcd", "wxyz", 4, ': abcd — "wxyz"'),
    ],
)
def test_a_reason_with_its_evidence(why: str, evidence: str, limit: int, text: str) -> None:
    assert reason_suffix(why, evidence, limit=limit) == text


@pytest.mark.parametrize(
    ("epochs", "key", "several", "text"),
    [
        ([PASS], {"epoch": 0}, False, "a"),
        ([PASS], None, False, "a"),
        ([PASS], {"epoch": 0}, True, "a · bot"),
        ([PASS, PASS], {"epoch": 1}, False, "a · epoch 2"),
        ([PASS, None], {"epoch": 0}, False, "a · epoch 1"),
        ([PASS, PASS], None, False, "a"),
        ([PASS], {"variant": "v1"}, False, "a [v1]"),
        ([PASS, PASS], {"variant": "v1", "epoch": 1}, True, "a [v1] · bot · epoch 2"),
    ],
)
def test_a_title(epochs: list[Played | None], key: dict[str, Any] | None, several: bool, text: str) -> None:
    sample = SampleKey(scenario="a", agent="bot", **key) if key is not None else None
    assert title(only_scenario(report_of({"a": epochs})), sample, several_agents=several) == text
