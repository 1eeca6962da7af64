"""Annotations for GitHub: level, place, order, and what is one annotation."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from agenteval.core.config import AcceptedFailure
from agenteval.core.decision import AcceptedState, AcceptedUse, GateRow, Violation
from agenteval.core.score import Check, Severity, Verdict
from agenteval.core.trajectory import StopReason
from agenteval.reporters.github import MOST, render, step_summary
from agenteval.reporters.options import ReportOptions
from agenteval.verdict.gates import decide
from agenteval.verdict.report import Report
from tests.support.score_samples import judged_run, lie_issue
from tests.support.verdict_runs import (
    BEHAVIOR,
    BROKEN,
    FAIL,
    LOST,
    PASS,
    UNSURE,
    Played,
    finding,
    judge_failed,
    report_of,
    score,
    whole,
    with_suite,
)

PASSED, FAILED, UNDECIDED = Verdict.PASSED, Verdict.FAILED, Verdict.INCONCLUSIVE
CODES = {"%0D": "\r", "%0A": "\n", "%3A": ":", "%2C": ",", "%25": "%"}


class Shown(NamedTuple):
    level: str
    place: str
    title: str
    message: str


def shown(line: str) -> Shown:
    found = re.fullmatch(r"::(\w+) (.*?)::(.*)", line)
    assert found is not None, line

    def decode(text: str) -> str:
        return re.sub("|".join(CODES), lambda code: CODES[code[0]], text)

    told = dict(part.split("=", 1) for part in found[2].split(","))
    place = ":".join(told[key] for key in ("file", "line") if key in told)
    return Shown(found[1], decode(place), decode(told["title"]), decode(found[3]))


def annotated(report: Report, root: str = ".", **decision: Any) -> list[Shown]:
    text = render(report, replace(decide(report), **decision), ReportOptions(root=root))
    assert text.endswith("\n") or not text
    return [shown(line) for line in text.splitlines()]


def ran(told: Mapping[str, Sequence[Played | None]], **more: Any) -> list[Shown]:
    return annotated(report_of(told, **more))


def of_samples(found: list[Shown]) -> list[Shown]:
    return [each for each in found if "re-run:" in each.message]


def test_a_passed_run_has_none() -> None:
    assert ran({"a": [PASS]}) == []


# ── failures ─────────────────────────────────────────────────────────────────────────────────────


def at(where: str, **more: Any) -> Played:
    return whole(Check(name="output.contains", passed=False, detail="not there", where=where, **more))


def test_a_failure_has_rule_place_reason_and_command() -> None:
    (found,) = of_samples(ran({"a": [at("s/a.yaml:7")]}))
    assert found[:3] == ("error", "s/a.yaml:7", "a: output.contains")
    reason, command = found.message.splitlines()
    assert reason == "output.contains: not there"
    assert command.startswith("re-run: agenteval run ")


@pytest.mark.parametrize("where", ["", "default"])
def test_a_rule_without_a_file_is_at_its_scenario(where: str) -> None:
    assert [each.place for each in of_samples(ran({"a": [at(where)]}))] == ["s/a.yaml:1"]


def test_paths_are_below_the_root() -> None:
    report = report_of({"a": [at("/repo/sub/a.yaml:7")]})
    (found,) = of_samples(annotated(report, root="/repo"))
    assert found.place == "sub/a.yaml:7"


def test_a_path_keeps_its_blanks() -> None:
    assert [each.place for each in of_samples(ran({"a": [at("s/a  b.yaml:7")]}))] == ["s/a  b.yaml:7"]


@pytest.mark.parametrize(("played", "level"), [(FAIL, "error"), (UNSURE, "warning"), (LOST, "warning")])
def test_the_level_of_a_failure(played: Played, level: str) -> None:
    assert [each.level for each in of_samples(ran({"a": [played, PASS, PASS]}))] == [level]


@pytest.mark.parametrize(("lost", "level"), [(2, "warning"), (3, "error")])
def test_a_scenario_is_lost_when_more_than_half_of_it_is(lost: int, level: str) -> None:
    found = of_samples(ran({"a": [LOST] * lost + [PASS] * (4 - lost)}))
    assert {each.level for each in found if "output.contains" not in each.title} == {level}


def test_what_a_gate_tolerates_is_a_notice() -> None:
    gates = {"pass_rate": {"at_least": 0.3, "reject_below": 0.01}}
    (found,) = of_samples(ran({"a": [PASS] * 19 + [FAIL]}, gates=gates))
    assert found.level == "notice"
    assert found.title.startswith("a · epoch 20: output.contains (")


def test_the_same_rule_in_several_epochs_is_one_annotation() -> None:
    (found,) = of_samples(ran({"a": [FAIL, PASS, FAIL]}))
    assert found.title.startswith("a · epoch 1")
    assert "in epochs 1, 3" in found.message.splitlines()
    (alone,) = of_samples(ran({"a": [PASS, FAIL]}))
    assert "in epochs" not in alone.message


def test_another_rule_place_or_verdict_is_another_annotation() -> None:
    told = {"a": [at("s/a.yaml:7"), at("s/a.yaml:8"), whole(UNSURE.whole[0]), at("s/a.yaml:7")]}
    assert [(each.level, each.place, each.title) for each in of_samples(ran(told))] == [
        ("error", "s/a.yaml:7", "a · epoch 1: output.contains"),
        ("error", "s/a.yaml:8", "a · epoch 2: output.contains"),
        ("warning", "s/a.yaml:1", "a · epoch 3: python"),
    ]


def test_equal_rules_in_one_sample_are_not_merged() -> None:
    twice = whole(BROKEN, BROKEN)
    found = of_samples(ran({"a": [twice, FAIL]}))
    assert len(found) == 2
    assert ["in epochs 1, 2" in each.message for each in found] == [True, False]


DATA = {name: {"pattern": "x-${row.n}", "source": "s/x.yaml:1", "row": f"r.csv:{name}"} for name in "234"}


def test_data_rows_that_broke_one_rule_are_one_annotation() -> None:
    (found,) = of_samples(ran({"2": [FAIL], "3": [FAIL, FAIL], "4": [PASS]}, scenarios=DATA))
    assert "in 2 rows (first r.csv:2): 2, 3" in found.message.splitlines()
    (found,) = of_samples(ran({"2": [PASS], "3": [FAIL]}, scenarios=DATA))
    assert "in 1 row (first r.csv:3): 3" in found.message.splitlines()


def test_scenarios_and_agents_are_not_merged() -> None:
    assert len(of_samples(ran({"a": [FAIL], "b": [FAIL]}))) == 2
    assert len(of_samples(ran({"a": [FAIL]}, agents=("bot", "new")))) == 2


def test_worse_findings_come_first() -> None:
    told = {
        "a": [FAIL],
        "b": [whole(BROKEN, finding(Severity.MEDIUM, None))],
        "c": [whole(BROKEN, finding(Severity.MEDIUM, None), finding(Severity.HIGH, None))],
    }
    assert [each.title[0] for each in of_samples(ran(told))] == ["c", "b", "a"]


# ── the run ──────────────────────────────────────────────────────────────────────────────────────


def gate(verdict: Verdict, **more: Any) -> GateRow:
    return GateRow("pass_hat_k", 0.4, 0.5, "4 samples", "agenteval.yaml:9", verdict, **more)


@pytest.mark.parametrize(
    ("row", "level"),
    [
        (gate(FAILED), "error"),
        (gate(UNDECIDED), "warning"),
        (gate(PASSED), None),
        (gate(FAILED, scenario="a", agent="bot"), None),
    ],
)
def test_a_gate_of_the_run_has_its_place_and_figures(row: GateRow, level: str | None) -> None:
    found = annotated(report_of({"a": [PASS]}), gates=(row,))
    assert [each[:3] for each in found] == ([(level, "agenteval.yaml:9", "pass_hat_k")] if level else [])
    assert all(fact in each.message for each in found for fact in ("0.4", "0.5", "4 samples"))


@pytest.mark.parametrize(
    ("figures", "text"),
    [
        ({"value": None}, "–, bound 0.5,"),
        ({"value": 2 / 3, "bound": 0.7}, "0.667, bound 0.7,"),
        ({"value": 0.9, "bound": 0.89999}, "0.9, bound 0.89999,"),
    ],
)
def test_the_figures_of_a_gate_are_those_of_every_report(figures: dict[str, Any], text: str) -> None:
    (found,) = annotated(report_of({"a": [PASS]}), gates=(replace(gate(FAILED), **figures),))
    assert found.message.startswith(text)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a.yaml:7:3: no such tool", "a.yaml:7"),
        ("a.yaml:7: no such tool", "a.yaml:7"),
        ("no such tool: a.yaml:7: x", ""),
        ("a b.yaml:7: x", ""),
        ("a.yaml: x", ""),
    ],
)
def test_a_mistake_of_the_author_is_at_its_place(text: str, place: str) -> None:
    (found,) = annotated(report_of({"a": [PASS]}), author_errors=(text,))
    assert (found.level, found.place, found.message) == ("error", place, text)


@pytest.mark.parametrize(
    ("verdict", "code", "level"), [(FAILED, 1, "error"), (UNDECIDED, 3, "warning"), (PASSED, 0, None)]
)
def test_a_verdict_that_nothing_explains_is_told(verdict: Verdict, code: int, level: str | None) -> None:
    found = annotated(report_of({"a": [PASS]}), verdict=verdict, exit_code=code)
    assert [each.level for each in found] == ([level] if level else [])
    assert all(f"exit code {code}" in each.message for each in found)


@pytest.mark.parametrize("more", [{"gates": (gate(FAILED),)}, {"author_errors": ("x",)}])
def test_a_verdict_that_something_explains_is_not_told_again(more: dict[str, Any]) -> None:
    found = annotated(report_of({"a": [PASS]}), verdict=FAILED, exit_code=1, **more)
    assert len(found) == 1


def test_errors_come_before_warnings_and_notices_by_rank() -> None:
    report = with_suite(report_of({"a": [FAIL], "b": [UNSURE, PASS, PASS]}), prompts={"x.md": "y.md"})
    found = annotated(report, author_errors=("oops",), gates=(gate(FAILED), gate(UNDECIDED)))
    assert [(each.level, each.message.split()[0]) for each in found] == [
        ("error", "oops"),
        ("error", "0.4,"),
        ("error", "output.contains:"),
        ("warning", "0.4,"),
        ("warning", "python:"),
        ("notice", "prompts"),
    ]


def test_what_accompanies_the_verdict_is_a_notice() -> None:
    found = ran({"a": [whole(finding(Severity.HIGH, None))]})
    (notice,) = [each for each in found if each.level == "notice"]
    assert notice.title == "passed, with"
    assert "1 finding" in notice.message


# ── the accept list ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("state", "elsewhere", "level"),
    [
        (AcceptedState.IN_FORCE, "", "notice"),
        (AcceptedState.UNUSED, "", "notice"),
        (AcceptedState.EXPIRED, "", "warning"),
        (AcceptedState.UNUSED, "b", "warning"),
    ],
)
def test_an_accepted_failure_is_at_its_entry(state: AcceptedState, elsewhere: str, level: str) -> None:
    entry = AcceptedFailure(
        fingerprint="0123456789ab", owner="ana", reason="r", expires="2026-12-31", where="accept.yaml:3"
    )
    found = annotated(report_of({"a": [PASS]}), accepted=(AcceptedUse(entry, state, 1, elsewhere),))
    (one,) = [each for each in found if each.place]
    assert one[:2] == (level, "accept.yaml:3")
    assert one.message.startswith("0123456789ab ")


# ── findings and issues that fail nothing ────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("severity", "level"),
    [(Severity.LOW, "notice"), (Severity.MEDIUM, "warning"), (Severity.HIGH, "warning")],
)
def test_a_finding_below_the_gate_is_told(severity: Severity, level: str) -> None:
    found = ran({"a": [whole(finding(severity, None))]})
    (one,) = [each for each in found if each.place]
    assert one[:3] == (level, "s/a.yaml:1", "a: false information")


def test_a_severe_finding_is_told_once_as_a_violation() -> None:
    found = ran({"a": [whole(finding(Severity.CRITICAL, None))]})
    assert [each.level for each in found if each.place] == ["error"]


def test_without_a_bar_all_findings_are_told_and_the_worst_first() -> None:
    report = report_of(
        {"a": [whole(finding(Severity.MEDIUM, None), finding(Severity.CRITICAL, None))]},
        fail_on_severity="none",
    )
    found = [each for each in annotated(report) if each.place]
    assert [(each.level, each.message.split(":")[0]) for each in found] == [
        ("warning", "critical"),
        ("warning", "medium"),
    ]


def test_a_finding_in_a_log_is_at_its_record() -> None:
    played = Played(
        (finding(Severity.HIGH, None),), turns=((),), stop=StopReason.RECORDED, detail="l.jsonl:3: x"
    )
    assert [each.place for each in ran({"a": [played]}) if each.place] == ["l.jsonl:3"]


def test_an_issue_is_one_annotation_however_often_it_occurs() -> None:
    report, decision = judged_run()
    text = render(report, decision, ReportOptions())
    issues = [each for each in map(shown, text.splitlines()) if each.title.startswith("[")]
    assert [(each.level, each.title.split("]")[0], each.place) for each in issues] == [
        ("warning", "[high", "scenarios/booking.yaml:2"),
        ("warning", "[medium", "scenarios/booking.yaml:2"),
        ("notice", "[low", "scenarios/refund.yaml:1"),
    ]
    lines = issues[0].message.splitlines()
    assert lines[0] == lie_issue().explanation
    assert any(line.startswith("examples: ") for line in lines)
    assert '"Booked!"' in lines
    assert "the model proposed critical" in lines


def test_an_issue_that_fails_is_told_by_its_violation_alone() -> None:
    report = report_of({"a": [whole(finding(Severity.CRITICAL, None))]})
    (place,) = lie_issue().occurrences
    place = place.model_copy(update={"scenario": "a", "agent": "bot", "epoch": 0, "findings": (0,)})
    issue = lie_issue().model_copy(update={"agent": "bot", "examples": (), "occurrences": (place,)})
    assert not [each for each in annotated(replace(report, issues=(issue,))) if each.title.startswith("[")]


@pytest.mark.parametrize(
    ("explanation", "message"), [("why", "why"), ("", "Claims a booking that was never made")]
)
def test_an_issue_without_more_words_says_its_explanation_or_title(explanation: str, message: str) -> None:
    report = report_of({"a": [whole(finding(Severity.HIGH, None))]})
    (place,) = lie_issue().occurrences
    place = place.model_copy(update={"scenario": "a", "agent": "bot", "epoch": 0, "findings": (0,)})
    words = {"explanation": explanation, "proposed_severity": None, "examples": ()}
    issue = lie_issue().model_copy(update={"agent": "bot", "occurrences": (place,), **words})
    (one,) = [each for each in annotated(replace(report, issues=(issue,))) if each.title.startswith("[")]
    assert one.place == "s/a.yaml:1"
    assert [line for line in one.message.splitlines() if "examples" not in line] == [message]


# ── judges ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("raw", "said"), [("{oops", ["said: {oops"]), (" ", [])])
def test_a_failed_judge_is_a_warning_with_its_reply(raw: str, said: list[str]) -> None:
    found = [each for each in ran({"a": [whole(judge_failed("stars", raw=raw))]}) if "stars" in each.title]
    (one,) = found
    assert one[:2] == ("warning", "s/a.yaml:1")
    message, where, *rest = one.message.splitlines()
    assert message == "no answer"
    assert where.startswith("a; ")
    assert rest == said


def test_a_judge_whose_failure_is_a_violation_is_not_told_again() -> None:
    report = report_of({"a": [whole(judge_failed("stars"))]})
    decision = decide(report)
    ((key, decided),) = decision.samples.items()
    for name, expected in (("judge", 0), ("other", 1)):
        violation = Violation(name, "stars: no answer", "w", UNDECIDED)
        changed = replace(decided, verdict=UNDECIDED, violations=(violation,))
        found = annotated(report, samples={key: changed})
        assert len([each for each in found if each.title.endswith(": stars")]) == expected


def test_a_criterion_that_was_not_judged_has_a_violation_of_its_own() -> None:
    found = ran({"a": [whole(judge_failed("criteria"))]})
    assert not [each for each in found if each.title.endswith(": criteria")]


# ── logs without scenarios ───────────────────────────────────────────────────────────────────────


def test_failure_rates_are_notices_at_their_first_quotation() -> None:
    def recorded(*items: Any, line: int) -> Played:
        return Played(items, turns=((),), stop=StopReason.RECORDED, detail=f"l.jsonl:{line}: x")

    bad = score(BEHAVIOR, label="x", ok=False)
    lie = finding(Severity.HIGH, None, evidence="Booked!")
    slow = finding(Severity.LOW, None, label="slow", evidence="wait")
    report = report_of({"a": [recorded(bad, lie, line=3)], "b": [recorded(bad, lie, slow, line=4)]})
    found = annotated(report, without_scenarios=True)
    rates = [each for each in found if each.title.startswith("what goes wrong")]
    assert [(each.level, each.place, each.title.split(": ")[1]) for each in rates] == [
        ("notice", "l.jsonl:3", "false information"),
        ("notice", "l.jsonl:4", "slow"),
    ]
    head, *quoted = rates[0].message.splitlines()
    assert "2 of 2" in head
    assert [line.split(" ")[0] for line in quoted] == ["l.jsonl:3:", "l.jsonl:4:"]


# ── limits and encoding ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("count", "last"), [(MOST, None), (MOST + 1, "2 more error"), (30, "21 more error")])
def test_each_level_has_at_most_ten(count: int, last: str | None) -> None:
    told = {f"s{n:02}": [FAIL] for n in range(count)} | {f"u{n:02}": [UNSURE, PASS, PASS] for n in range(3)}
    found = ran(told)
    errors = [each for each in found if each.level == "error"]
    assert len(errors) == MOST
    assert errors[-1].message.startswith(last) if last else "more" not in errors[-1].message
    assert len([each for each in found if each.level == "warning"]) == 3


def test_values_cannot_end_or_begin_a_command() -> None:
    text = "100%, a:b\n::error::x"
    (line,) = render(
        report_of({"a": [PASS]}),
        replace(decide(report_of({"a": [PASS]})), gates=(replace(gate(FAILED), name=text, basis=text),)),
        ReportOptions(),
    ).splitlines()
    assert line.startswith("::error ")
    assert "%0A::" not in line
    assert "100%25%2C a%3Ab" in line
    assert shown(line).title == "100%, a:b ::error::x"


@pytest.mark.parametrize(("length", "kept"), [(150, 150), (151, 149)])
def test_a_title_has_at_most_150_characters(length: int, kept: int) -> None:
    (found,) = annotated(report_of({"a": [PASS]}), gates=(replace(gate(FAILED), name="x" * length),))
    assert found.title.count("x") == kept


def test_a_message_is_kept_far_longer_than_a_title() -> None:
    (found,) = annotated(report_of({"a": [PASS]}), gates=(replace(gate(FAILED), basis="x" * 4000),))
    assert found.message.count("x") == 4000


def test_the_step_summary_is_the_short_report() -> None:
    report = report_of({"a": [PASS], "b": [FAIL]})
    text = step_summary(report, decide(report), ReportOptions())
    assert text.startswith("# ❌ agenteval: failed\n")
    assert "1 scenario passed." in text
