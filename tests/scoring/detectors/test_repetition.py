"""The detector of repetition, and the merging of a judge's finding with what code has proven."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.core.score import Finding, Severity
from agenteval.scoring.detectors.repetition import repetition
from agenteval.scoring.finding_merge import merge_findings
from tests.support.detector_samples import conversation, places, turn

LONG = (
    "The salon is open from Tuesday to Saturday. On Mondays it is closed, but you may leave a message at any"
    " hour and somebody will call you back within a day or two."
)


# ── repetition ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("said", ["¿Cortan barbas?", "Schneiden Sie Bärte?", "Coupez-vous les barbes ?"])
def test_a_question_in_another_language_is_another_question(said: str) -> None:
    talk = conversation(turn("When are you open?", LONG), turn(said, LONG))
    assert places(repetition, talk) == [(1, None)]


def test_what_is_only_a_small_part_of_a_longer_answer_may_be_said_again() -> None:
    more = " ".join(f"For service number {n} the price is {n * 10} dollars." for n in range(12))
    talk = conversation(turn("When are you open?", LONG), turn("What does a cut cost?", f"{LONG} {more}"))
    assert places(repetition, talk) == []


# ── one failure, once ────────────────────────────────────────────────────────────────────────────


def finding(detector: str, label: str, turn: int | None = 0, **more: Any) -> Finding:
    given = {"metric": "m", "severity": Severity.MEDIUM, "explanation": f"{detector} said so", **more}
    return Finding(detector=detector, label=label, turn=turn, **given)


REPEATED = finding("repeated_tool_call", "repeated tool call", call=1)


@pytest.mark.parametrize("label", ["repeated tool call", "unnecessary tool call"])
def test_a_judges_finding_that_code_has_proven_is_one_with_it(label: str) -> None:
    judged = finding("judge", label, severity=Severity.HIGH)
    for order in ([REPEATED, judged], [judged, REPEATED]):
        (one,) = merge_findings(order)
        assert (one.detector, one.call, one.label) == ("repeated_tool_call", 1, "repeated tool call")
        assert one.severity is Severity.HIGH
        assert one.explanation == "repeated_tool_call said so"
        assert one.also == ("judge: judge said so",)


@pytest.mark.parametrize(
    "judged",
    [
        finding("judge", "repeated tool call", turn=1),
        finding("judge", "repeated tool call", turn=None),
        finding("judge", "repeated tool call", call=2),
        finding("judge", "wrong tool"),
        finding("judge", "repeated tool call", criterion="Calls nothing twice."),
        finding("wrong_arguments", "repeated tool call"),
    ],
)
def test_others_stay_apart(judged: Finding) -> None:
    assert merge_findings([REPEATED, judged]) == (REPEATED, judged)


def test_the_judges_own_label_goes_before_another_word_for_it() -> None:
    claimed = finding("claimed_action_not_called", "false information")
    ignored = finding("ignored_tool_error", "ignored tool result")
    one, other = merge_findings([ignored, claimed, finding("judge", "false information")])
    assert (one.also, other.also) == ((), ("judge: judge said so",))


def test_two_proofs_and_one_judge() -> None:
    kept = merge_findings([REPEATED, REPEATED, finding("judge", "repeated tool call")])
    assert [bool(each.also) for each in kept] == [True, False]
