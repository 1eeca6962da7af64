"""A failure that both code and a judge found is one finding: which two are the same, and what remains."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.core.score import Finding, References, Severity
from agenteval.scoring.finding_merge import is_same_failure, merge_findings, proves

LOW, MEDIUM, HIGH, CRITICAL = Severity


def judge(label: str, **more: Any) -> Finding:
    base = {"severity": HIGH, "turn": 0, "evidence": "words", "explanation": "why", **more}
    return Finding(detector="judge", metric="judged", label=label, **base)


def proof(detector: str, label: str, **more: Any) -> Finding:
    base = {"severity": MEDIUM, "turn": 0, "evidence": "call", "explanation": "code", **more}
    return Finding(detector=detector, metric="proven", label=label, **base)


REPEATED = proof("repeated_tool_call", "repeated tool call", call=1)
IGNORED = proof("ignored_tool_error", "repeated tool call")
GROUNDLESS = proof("ungrounded_value", "false information", span=(0, 4))


@pytest.mark.parametrize(
    ("code", "found", "is_same"),
    [
        (REPEATED, judge("repeated tool call", call=1), True),
        (REPEATED, judge("repeated tool call"), True),
        (REPEATED, judge("repeated tool call", call=0), False),
        (REPEATED, judge("repeated tool call", turn=1), False),
        (REPEATED, judge("unnecessary tool call", call=1), True),
        (REPEATED, judge("wrong tool", call=1), False),
        (IGNORED, judge("repeated tool call", call=5), True),  # the proof names no call
        (IGNORED, judge("false claim of action"), True),
        (GROUNDLESS, judge("missing tool call"), True),
        (GROUNDLESS, judge("unnecessary tool call"), False),
        (proof("other_detector", "wrong tool"), judge("wrong tool"), True),
        (proof("other_detector", "wrong tool"), judge("missing tool call"), False),
    ],
)
def test_two_findings_about_the_same_failure(code: Finding, found: Finding, is_same: bool) -> None:
    assert is_same_failure(code, found) is is_same
    assert len(merge_findings([code, found])) == 2 - is_same
    assert len(merge_findings([found, code])) == 2 - is_same


@pytest.mark.parametrize(
    ("code", "found", "is_proven"),
    [
        (REPEATED, judge("repeated tool call"), True),
        (REPEATED, judge("wrong tool"), False),
        (IGNORED, judge("repeated tool call"), False),  # its code does not prove everything
        (proof("unconfirmed_action", "unsafe action"), judge("unsafe action"), False),
        (proof("leak", "unsafe state"), judge("unsafe state"), True),
        (proof("other_detector", "wrong tool"), judge("wrong tool"), False),
    ],
)
def test_what_code_has_proven(code: Finding, found: Finding, is_proven: bool) -> None:
    assert proves(code, found) is is_proven


@pytest.mark.parametrize(
    "found",
    [
        judge("repeated tool call", turn=None),
        judge("repeated tool call", criterion="Be quick."),
        REPEATED.model_copy(update={"detector": "leak"}),
    ],
)
def test_what_is_never_merged(found: Finding) -> None:
    code = REPEATED.model_copy(update={"turn": found.turn})
    assert merge_findings([code, found]) == (code, found)


def test_findings_without_a_turn_do_not_hide_later_ones() -> None:
    merged = merge_findings([judge("repeated tool call", turn=None), REPEATED, judge("repeated tool call")])
    assert [(each.detector, len(each.also)) for each in merged] == [("judge", 0), ("repeated_tool_call", 1)]


@pytest.mark.parametrize(
    ("own", "other", "severity"),
    [(LOW, HIGH, HIGH), (HIGH, LOW, HIGH), (MEDIUM, MEDIUM, MEDIUM), (LOW, CRITICAL, CRITICAL)],
)
def test_the_higher_severity_remains(own: Severity, other: Severity, severity: Severity) -> None:
    code = REPEATED.model_copy(update={"severity": own})
    (merged,) = merge_findings([code, judge("repeated tool call", severity=other)])
    assert merged.severity is severity


@pytest.mark.parametrize(
    ("label", "severity"), [("repeated tool call", CRITICAL), ("unnecessary tool call", HIGH)]
)
def test_only_the_same_label_confirms_the_effect(label: str, severity: Severity) -> None:
    (merged,) = merge_findings(
        [REPEATED, judge(label)], lambda finding: finding.model_copy(update={"severity": CRITICAL})
    )
    assert merged.severity is severity


def test_a_proof_of_everything_keeps_its_label_and_lists_the_judge() -> None:
    (merged,) = merge_findings([judge("unnecessary tool call"), REPEATED])
    assert (merged.detector, merged.label, merged.metric) == (
        "repeated_tool_call",
        "repeated tool call",
        "proven",
    )
    assert (merged.evidence, merged.explanation, merged.also) == ("call", "code", ("judge: why",))


def test_the_label_of_the_judge_replaces_one_that_code_cannot_prove() -> None:
    quoted = judge("false claim of action", references=References(tool="pay"), span=(1, 2), call=3)
    (merged,) = merge_findings([IGNORED, quoted])
    assert (merged.label, merged.metric, merged.evidence) == ("false claim of action", "judged", "words")
    assert (merged.references.tool, merged.span) == ("pay", (1, 2))
    assert (merged.detector, merged.explanation, merged.call) == ("ignored_tool_error", "code", None)
    (same,) = merge_findings([IGNORED, judge("repeated tool call")])
    assert (same.label, same.metric, same.evidence) == ("repeated tool call", "proven", "call")


@pytest.mark.parametrize(
    ("more", "also"),
    [
        ({}, "judge: why"),
        ({"explanation": ""}, "judge: words"),
        ({"explanation": "", "evidence": ""}, "judge"),
    ],
)
def test_the_words_of_the_judge(more: dict[str, str], also: str) -> None:
    (merged,) = merge_findings([REPEATED, judge("repeated tool call", **more)])
    assert merged.also == (also,)


def test_a_finding_with_the_own_label_is_preferred_to_an_earlier_alternative() -> None:
    other = proof("ungrounded_value", "false information")
    merged = merge_findings([other, IGNORED, REPEATED, judge("repeated tool call", call=1)])
    assert [len(each.also) for each in merged] == [0, 1, 0]  # of two with that label, the first
    merged = merge_findings([other, proof("unknown_tool", "missing tool call"), judge("missing tool call")])
    assert [len(each.also) for each in merged] == [0, 1]


def test_several_judges_are_listed_in_one_finding() -> None:
    found = [judge("repeated tool call"), judge("unnecessary tool call", explanation="again")]
    (merged,) = merge_findings([*found, REPEATED])
    assert merged.also == ("judge: why", "judge: again")


def test_nothing_is_merged_into_nothing() -> None:
    assert merge_findings([]) == ()
    assert merge_findings([judge("repetition"), judge("repetition")]) == (judge("repetition"),) * 2
