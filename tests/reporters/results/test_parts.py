"""The parts of the results about checks, findings and issues: fingerprints, and when a field is there."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.core.scenario import SampleKey
from agenteval.core.score import Check, Severity
from agenteval.reporters.results.parts import check_shapes, failures_by_sample, finding_shape, issue_shape
from agenteval.reporters.words.issue import issues_text
from agenteval.verdict.fingerprints import FingerprintedFailure, SampleFailures
from tests.support.score_samples import judged_run
from tests.support.verdict_runs import BROKEN, FAIL, HELD, PASS, Played, finding, report_of, whole

ONE, TWO = FingerprintedFailure("f1", "covers 1", "m"), FingerprintedFailure("f2", "covers 2", "m")


def dumped(check: Check, *failures: FingerprintedFailure) -> dict[str, Any]:
    (found,) = check_shapes([check], SampleFailures((), {(None, 0): failures} if failures else {}), turn=None)
    return found.model_dump()


# ── checks ───────────────────────────────────────────────────────────────────────────────────────


def test_a_plain_check_has_no_more_than_its_result() -> None:
    assert dumped(HELD) == {"name": "output.contains", "passed": True, "detail": "", "where": ""}


def test_a_broken_check_has_the_fingerprints_of_its_failures() -> None:
    found = dumped(BROKEN, ONE, TWO)
    assert (found["fingerprints"], found["covers"]) == (["f1", "f2"], ["covers 1", "covers 2"])


@pytest.mark.parametrize("scripted", [True, False])
def test_only_a_judged_check_is_scripted_or_calibrated(scripted: bool) -> None:
    found = dumped(Check(name="criteria", passed=True, by="x/y", scripted=scripted))
    assert (found["by"], found["scripted"], found["calibrated"]) == ("x/y", scripted, False)
    assert not {"by", "scripted", "calibrated"} & set(
        dumped(Check(name="python", passed=True, scripted=scripted))
    )


@pytest.mark.parametrize(("arose", "shown"), [(True, {}), (False, {"arose": False})])
def test_a_condition_that_never_arose_is_told(arose: bool, shown: dict[str, bool]) -> None:
    found = dumped(HELD.model_copy(update={"arose": arose}))
    assert {key: value for key, value in found.items() if key == "arose"} == shown


def test_failures_are_found_by_turn_and_place() -> None:
    failures = SampleFailures((), {(0, 1): (ONE,), (1, 0): (TWO,)})
    for turn, expected in ((0, [None, ["f1"]]), (1, [["f2"], None]), (None, [None, None])):
        found = check_shapes([BROKEN, BROKEN], failures, turn=turn)
        assert [each.model_dump().get("fingerprints") for each in found] == expected
    assert check_shapes([], failures, turn=0) == []


# ── findings and issues ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("issue", ["I1", None])
def test_a_finding_has_its_issue_and_fingerprint(issue: str | None) -> None:
    found = finding_shape(finding(Severity.HIGH, 1, evidence="e"), issue, ONE).model_dump()
    assert (found["issue"], found["fingerprint"], found["covers"]) == (issue, "f1", "covers 1")
    assert (found["severity"], found["turn"], found["call"], found["evidence"]) == ("high", 1, None, "e")
    assert not {"kind", "criterion", "span", "also", "references"} & set(found)


def test_a_finding_has_what_it_knows_beyond_that() -> None:
    given = finding(criterion="Asks first", span=(0, 3), also=("leak: x",))
    found = finding_shape(given, None, ONE).model_dump()
    assert (found["criterion"], tuple(found["span"]), found["also"]) == ("Asks first", (0, 3), ["leak: x"])


def test_only_samples_with_findings_are_looked_at() -> None:
    report = report_of({"a": [PASS, whole(finding(turn=None), finding(turn=None))], "b": [FAIL]})
    found = failures_by_sample(report)
    assert list(found) == [SampleKey(scenario="a", agent="bot", epoch=1)]
    assert [len(each.findings) for each in found.values()] == [2]


def test_an_issue_has_the_fingerprints_of_its_findings_once_and_sorted() -> None:
    report, decision = judged_run()
    failures = failures_by_sample(report)
    texts = {text.issue.id: text for text in issues_text(report, decision)}
    found = issue_shape(texts["I1"], failures)
    (key,) = [key for key in failures if key.epoch == 1]
    own = [failures[key].findings[index].fingerprint for index in (0, 2)]
    assert found.fingerprints == sorted(set(own))
    assert (found.id, found.severity, found.findings, found.samples, found.scenarios) == (
        "I1",
        "high",
        2,
        1,
        1,
    )


def test_an_issue_of_findings_that_are_not_there_has_no_fingerprints() -> None:
    report, decision = judged_run()
    (text, *_) = issues_text(report, decision)
    assert issue_shape(text, {}).fingerprints == []
    (key,) = [key for key in failures_by_sample(report) if key.epoch == 1]
    fewer = {key: SampleFailures((TWO, ONE), {})}  # of which the issue has the first and the third
    assert issue_shape(text, fewer).fingerprints == ["f2"]
    assert issue_shape(text, {key: SampleFailures((TWO, TWO, ONE), {})}).fingerprints == ["f1", "f2"]


def test_a_played_conversation_is_needed_for_a_finding() -> None:
    assert failures_by_sample(report_of({"a": [None, Played()]})) == {}
