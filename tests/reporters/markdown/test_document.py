"""The report in Markdown: its parts, in order, and their limits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agenteval.core.event import Notice
from agenteval.core.score import Verdict
from agenteval.reporters.markdown.document import SUMMARY, WHOLE, document, render
from agenteval.reporters.markdown.table import ReportExtent
from agenteval.reporters.options import ReportOptions
from agenteval.verdict.gates import decide
from agenteval.verdict.report import Report
from tests.support.score_samples import judged_run
from tests.support.verdict_runs import FAIL, LOST, PASS, UNSURE, report_of, with_suite

OPTIONS = ReportOptions()


def parts(
    report: Report, extent: ReportExtent = WHOLE, options: ReportOptions = OPTIONS, **decision: Any
) -> list[str]:
    text = document(report, replace(decide(report), **decision), options, extent)
    assert text.endswith("\n")
    return text.rstrip("\n").split("\n\n")


def heads(told: list[str]) -> list[str]:
    return [part for part in told if part.startswith("#")]


def test_sections_stand_in_one_order() -> None:
    report, decision = judged_run()
    report = replace(report, notices=(Notice(text="slow"),))
    told = document(report, replace(decision, author_errors=("x",)), OPTIONS, WHOLE)
    titles = [line[3:].split(" (")[0] for line in told.splitlines() if line.startswith("## ")]
    assert [title.split(":")[0] for title in titles] == [
        "To fix in the scenarios or the configuration",
        "What gated this run",
        "Scenarios",
        "Scores",
        "Failures",
        "Issues",
        "Judges that failed",
        "Simulated user",
        "Summary",
        "Usage",
        "Notices",
    ]


# ── the head ─────────────────────────────────────────────────────────────────────────────────────


def test_the_head_has_verdict_samples_code_and_time() -> None:
    told = parts(report_of({"a": [PASS, FAIL], "b": [PASS, None]}, elapsed_s=61.5))
    assert told[0] == "# ❌ agenteval: failed"
    assert told[1].split(" · ")[1:] == ["4 samples", "exit code 1", "61.5 s"]
    assert parts(report_of({"a": [PASS]}))[1].split(" · ")[1:] == ["1 sample", "exit code 0", "1.0 s"]


def test_the_profile_is_named_if_there_is_one() -> None:
    report = report_of({"a": [PASS]})
    assert parts(with_suite(report, profile="*pr*"))[2] == r"Profile \*pr\*."
    assert not any(part.startswith("Profile") for part in parts(report))


@pytest.mark.parametrize(
    ("outcome", "why"),
    [("interrupted", "(interrupted)"), ("budget", "(budget)"), (None, "cut off"), ("complete", None)],
)
def test_a_run_that_did_not_end_says_so(outcome: str | None, why: str | None) -> None:
    told = parts(report_of({"a": [PASS, None, None]}, outcome=outcome))
    found = [part for part in told if part.startswith("**Not complete**")]
    assert len(found) == bool(why)
    assert all(why in part and "2 planned samples" in part for part in found if why)
    assert (" s" in told[1].split(" · ")[-1]) is (outcome is not None)


def test_mistakes_of_the_author_are_listed_and_escaped() -> None:
    told = parts(report_of({"a": [PASS]}), author_errors=("a.yaml:1: *x*", "y"))
    place = next(n for n, part in enumerate(told) if part.startswith("## To fix"))
    assert told[place + 1].splitlines() == [r"- a.yaml:1: \*x\*", "- y"]
    assert not any(part.startswith("## To fix") for part in parts(report_of({"a": [PASS]})))


# ── failures ─────────────────────────────────────────────────────────────────────────────────────


def test_a_run_without_failures_has_no_such_section() -> None:
    assert "## Failures" not in heads(parts(report_of({"a": [PASS]})))


def failure_heads(told: list[str]) -> list[str]:
    return [head for head in heads(told) if head.startswith("### ")]


def test_failures_come_before_what_is_undecided_and_tolerated_ones_last() -> None:
    told = parts(report_of({"a": [LOST], "b": [FAIL], "c": [UNSURE]}))
    assert failure_heads(told) == [
        "### ❌ b: failed",
        "### ⚠️ a: inconclusive",
        "### ⚠️ c: inconclusive",
    ]
    gates = {"pass_rate": {"at_least": 0.3, "reject_below": 0.1}}
    told = parts(report_of({"a": [FAIL] + [PASS] * 19, "b": [FAIL] * 20}, gates=gates))
    *counted, tolerated = failure_heads(told)
    assert len(counted) == 21  # and the rule over all of them
    assert all(head.startswith("### ❌ b") and head.endswith(": failed") for head in counted)
    assert tolerated.startswith("### ❌ a · epoch 1: failed (")


def test_a_failure_has_place_reasons_command_and_transcript() -> None:
    told = parts(report_of({"a": [FAIL]}))
    place = told.index("### ❌ a: failed")
    at, reasons, command, summary, transcript, end = told[place + 1 : place + 7]
    assert at == "at s/a.yaml:1"
    assert reasons.startswith("```text\noutput.contains")
    assert command.startswith("```sh\nagenteval run")
    assert (summary, end) == ("<details><summary>Transcript</summary>", "</details>")
    assert transcript.splitlines()[1].split() == ["user:", "hi", "0"]


def test_the_place_names_the_data_row_too() -> None:
    report = report_of({"a": [FAIL]}, scenarios={"a": {"row": "rows.csv:4"}})
    assert "at s/a.yaml:1 · rows.csv:4" in parts(report)


def test_what_never_ran_has_no_transcript() -> None:
    told = parts(report_of({"a": [None]}, outcome="interrupted"))
    assert failure_heads(told) == ["### ⚠️ a: inconclusive"]
    assert "</details>" not in told


MANY = report_of({f"s{n}": [FAIL] for n in range(4)})


@pytest.mark.parametrize(
    ("failures", "characters", "shown", "more"),
    [
        (4, 100_000, 4, None),
        (3, 100_000, 3, "… and 1 failure more."),
        (1, 100_000, 1, "… and 3 failures more."),
        (4, 1, 1, "… and 3 failures more."),
        (4, 0, 1, "… and 3 failures more."),
    ],
)
def test_only_so_many_failures_are_shown(
    failures: int, characters: int, shown: int, more: str | None
) -> None:
    told = parts(MANY, ReportExtent(rows=10, failures=failures, characters=characters))
    assert len(failure_heads(told)) == shown
    assert [part for part in told if part.endswith("more.")] == ([more] if more else [])


def test_characters_are_counted_over_all_failures() -> None:
    one = parts(MANY, ReportExtent(rows=10, failures=1, characters=100_000))
    start, end = one.index("## Failures") + 1, one.index("… and 3 failures more.")
    size = len("\n\n".join(one[start:end]))
    for characters, shown in ((2 * size, 2), (2 * size - 1, 1), (3 * size - 1, 2)):
        told = parts(MANY, ReportExtent(rows=10, failures=10, characters=characters))
        assert len(failure_heads(told)) == shown


# ── notices and the foot ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("rows", "shown", "more"), [(3, 3, []), (2, 2, ["… and 1 notice more."])])
def test_notices_are_listed_with_their_level(rows: int, shown: int, more: list[str]) -> None:
    notices = tuple(Notice(level="info", text=f"*{n}*") for n in range(3))
    told = parts(replace(report_of({"a": [PASS]}), notices=notices), ReportExtent(rows, 10, 1000))
    place = told.index("## Notices")
    assert told[place + 1].splitlines() == [rf"- info: \*{n}\*" for n in range(shown)]
    assert [part for part in told if "notice" in part and part.endswith("more.")] == more


def test_no_notices_no_section() -> None:
    assert "## Notices" not in parts(report_of({"a": [PASS]}))


@pytest.mark.parametrize(
    ("commit", "dirty", "shown"),
    [
        ("", False, []),
        ("0123456789abcdef", False, ["commit 0123456789ab"]),
        ("0123456789abcdef", True, ["commit 0123456789ab, changed since"]),
    ],
)
def test_the_foot_names_run_start_seed_commit_and_versions(
    commit: str, dirty: bool, shown: list[str]
) -> None:
    report = report_of({"a": [PASS]})
    report = replace(report, run=report.run.model_copy(update={"commit": commit, "dirty": dirty}))
    rule, foot = parts(report)[-2:]
    assert rule == "---"
    run, start, seed, *rest = foot.split(" · ")
    assert (run, start) == (f"run {report.run.run_id}", f"started {report.run.started_at}")
    assert seed == f"seed {report.plan.suite.seed}"
    assert rest == [*shown, "agenteval 0.1.0"]


def test_the_journal_is_named_if_it_is_known() -> None:
    report = report_of({"a": [PASS]})
    assert parts(report, options=ReportOptions(journal="r/events.jsonl"))[-1].endswith(
        " · journal r/events.jsonl"
    )
    assert "journal" not in parts(report)[-1]


# ── extents ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("verbose", "shown"), [(False, WHOLE.failures), (True, WHOLE.failures + 1)])
def test_a_verbose_report_leaves_out_nothing(verbose: bool, shown: int) -> None:
    report = report_of({f"s{n}": [FAIL] for n in range(WHOLE.failures + 1)})
    text = render(report, decide(report), ReportOptions(verbose=verbose))
    assert text.count("\n### ") == shown


def test_a_summary_has_no_rows_that_passed() -> None:
    told = parts(report_of({"a": [PASS], "b": [FAIL]}), SUMMARY)
    place = told.index("## Scenarios")
    assert [line.split("|")[2].strip() for line in told[place + 1].splitlines()[2:]] == ["b"]
    assert SUMMARY.failures < WHOLE.failures
    assert Verdict.PASSED.value in told[place + 2]
