"""Results of scorers: severities, verdicts, goals that are open, reviews and issues."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter

from agenteval.core.score import (
    MISSED,
    POLICY_BROKEN,
    REACHED,
    Check,
    Finding,
    Issue,
    MetricSpec,
    Occurrence,
    RuleKind,
    Score,
    ScoreFailure,
    ScoreItem,
    Severity,
    UserReview,
    Verdict,
)

LOW, MEDIUM, HIGH, CRITICAL = Severity
PASSED, INCONCLUSIVE, FAILED = Verdict


def test_the_order_of_severities_and_verdicts() -> None:
    assert [each.rank for each in (LOW, MEDIUM, HIGH, CRITICAL)] == [0, 1, 2, 3]
    assert [each.value for each in Severity] == ["low", "medium", "high", "critical"]
    assert [each.rank for each in (PASSED, INCONCLUSIVE, FAILED)] == [0, 1, 2]


@pytest.mark.parametrize(
    ("severity", "proposed", "raised"),
    [
        (LOW, None, LOW),
        (LOW, LOW, LOW),
        (LOW, MEDIUM, MEDIUM),
        (LOW, CRITICAL, MEDIUM),  # one step, whatever the distance
        (HIGH, CRITICAL, CRITICAL),
        (HIGH, LOW, HIGH),
        (CRITICAL, CRITICAL, CRITICAL),
    ],
)
def test_a_severity_is_raised_by_one(severity: Severity, proposed: Severity | None, raised: Severity) -> None:
    assert severity.raised_towards(proposed) is raised


@pytest.mark.parametrize(
    ("verdicts", "worst"),
    [
        ([], PASSED),
        ([PASSED], PASSED),
        ([PASSED, INCONCLUSIVE, PASSED], INCONCLUSIVE),
        ([FAILED, INCONCLUSIVE], FAILED),
        ([INCONCLUSIVE, FAILED, PASSED], FAILED),
    ],
)
def test_the_worst_verdict(verdicts: list[Verdict], worst: Verdict) -> None:
    assert Verdict.worst(iter(verdicts)) is worst


@pytest.mark.parametrize(
    ("fields", "is_open"),
    [
        ({"label": "ruled out"}, True),
        ({"label": "withdrawn"}, True),
        ({"label": "not clear"}, True),
        ({"label": "reached"}, False),
        ({"label": "missed"}, False),
        ({"label": "ruled out", "value": 0.0}, False),
        ({"label": "not clear", "ok": False}, False),
        ({}, False),
    ],
)
def test_a_score_that_counts_neither_for_nor_against(fields: dict[str, Any], is_open: bool) -> None:
    score = Score(metric="goal_completion", **fields)
    assert score.is_open is is_open
    assert not score.calibrated


@pytest.mark.parametrize(
    ("label", "explains", "failed", "is_fault", "decides"),
    [
        ("helped", True, True, True, True),
        ("helped", True, False, True, True),
        ("hindered", True, True, True, True),
        ("hindered", True, False, True, False),  # it passed although it was hindered
        ("helped", False, True, True, False),
        ("hindered", False, True, True, False),
        ("as it should", True, True, False, False),
        ("the scenario did not say", True, True, False, False),
    ],
)
def test_whether_a_review_decides(
    label: str, explains: bool, failed: bool, is_fault: bool, decides: bool
) -> None:
    review = UserReview(label=label, explains=explains, failed=failed)
    assert (review.is_fault, review.decides) == (is_fault, decides)


def test_the_sentence_of_a_review() -> None:
    review = UserReview(label="hindered", reason="it lied", evidence="I am 5")
    assert all(each in review.sentence for each in ("hindered", "it lied", "I am 5", "simulated"))
    assert "simulated" not in review.model_copy(update={"recorded": True}).sentence


def test_who_found_a_failure() -> None:
    finding = Finding(detector="loop", metric="m", label="repetition", severity=LOW)
    assert finding.found_by == "loop"
    both = finding.model_copy(update={"also": ("judge: so it is",)})
    assert "loop" in both.found_by
    assert "judge" in both.found_by
    assert "so it is" not in both.found_by


def test_the_numbers_of_an_issue() -> None:
    places = [("a", 0, (1, 2, 3)), ("a", 1, (0,)), ("b", 0, ())]
    occurrences = tuple(
        Occurrence(scenario=scenario, agent="bot", epoch=epoch, findings=findings)
        for scenario, epoch, findings in places
    )
    issue = Issue(
        id="1", agent="bot", title="t", severity=LOW, labels=(), metrics=(), occurrences=occurrences
    )
    assert (issue.findings, issue.samples, issue.scenarios) == (4, 3, 2)


def test_a_metric_of_labels() -> None:
    spec = MetricSpec(name="m", scope="turn", kind="rate", labels=("x",))
    assert not spec.is_label
    assert spec.model_copy(update={"ok": ("no failure",)}).is_label


def test_what_is_not_there_is_not_written() -> None:
    finding = Finding(detector="loop", metric="m", label="repetition", severity=LOW)
    assert finding.model_dump().keys().isdisjoint({"rule_kind", "carried_out", "if_all_seen"})
    assert finding.model_copy(update={"carried_out": False}).model_dump()["carried_out"] is False
    assert "recorded" not in UserReview(label="helped").model_dump()


@pytest.mark.parametrize(
    ("kind", "fields", "made"),
    [
        ("check", {"name": "no_error", "passed": True}, Check),
        ("score", {"metric": "m"}, Score),
        ("failure", {"metric": "m", "message": "?"}, ScoreFailure),
        ("finding", {"detector": "d", "metric": "m", "label": "x", "severity": "low"}, Finding),
        ("user_review", {"label": "helped"}, UserReview),
    ],
)
def test_a_result_is_stored_under_its_kind(kind: str, fields: dict[str, Any], made: type) -> None:
    adapter: TypeAdapter[Any] = TypeAdapter(ScoreItem)
    found: Any = adapter.validate_python({"kind": kind, **fields})
    assert adapter.validate_json(found.model_dump_json()) == found
    assert type(found) is made


def test_words_that_are_stored() -> None:
    assert [str(kind) for kind in RuleKind] == ["permission", "disclosure", "style"]
    assert [str(verdict) for verdict in Verdict] == ["passed", "inconclusive", "failed"]
    assert (REACHED, MISSED, POLICY_BROKEN) == ("reached", "missed", "policy broken")
    for needs in ("", "goal", "policy", "tools"):
        fields = {"name": "m", "scope": "turn", "kind": "rate", "needs": needs}
        assert MetricSpec.model_validate(fields).needs == needs
