"""``judge: {on_failure: skip}``: which failed judges have no effect."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.core.score import Check
from agenteval.verdict.skipped_judges import (
    all_skipped_judges,
    is_unjudged,
    skipped_judges,
    skips_criteria,
)
from tests.support.verdict_runs import (
    BEHAVIOR,
    GOAL,
    Played,
    judge_failed,
    only_sample,
    only_scenario,
    report_of,
    whole,
)

SKIP = {"judge": {"on_failure": "skip"}}


@pytest.mark.parametrize(
    ("failure", "config", "skipped"),
    [
        (judge_failed(BEHAVIOR), SKIP, True),
        (judge_failed(BEHAVIOR), {}, False),
        (judge_failed(BEHAVIOR), {"judge": {"on_failure": "undecided"}}, False),
        (judge_failed(GOAL), SKIP, True),
        (judge_failed("stars"), SKIP, True),
        (judge_failed("criteria"), SKIP, True),
        (judge_failed("user_review"), SKIP, True),
        (judge_failed("leak"), SKIP, False),  # a detector is no judge
        (judge_failed("a check of ours"), SKIP, False),
        (judge_failed(BEHAVIOR, author=True), SKIP, False),
        (judge_failed(BEHAVIOR, unclear=True), SKIP, False),
        (judge_failed(BEHAVIOR, is_verdict=True), SKIP, False),
        (judge_failed(BEHAVIOR, refused=True), SKIP, True),
        (judge_failed("stars"), {**SKIP, "thresholds": {"stars": 3}}, False),
        (judge_failed(BEHAVIOR), {**SKIP, "thresholds": {"stars": 3}}, True),
    ],
)
def test_which_failed_judges_are_skipped(failure: Any, config: dict[str, Any], skipped: bool) -> None:
    report = report_of({"a": [whole(failure)]}, **config)
    found = skipped_judges(only_sample(report), only_scenario(report), report.plan)
    assert found == ((failure,) if skipped else ())
    assert tuple(all_skipped_judges(report)) == found


def test_judges_of_turns_are_skipped_too() -> None:
    first, second = judge_failed("stars", raw="1"), judge_failed("stars", raw="2")
    report = report_of({"a": [Played((first,), ((second,),)), whole(first)], "b": [whole()]}, **SKIP)
    assert [each.raw for each in all_skipped_judges(report)] == ["2", "1", "1"]


def test_criteria_are_skipped_all_or_none() -> None:
    kept, skipped = judge_failed("criteria", author=True), judge_failed("criteria")
    sample = only_sample(report_of({"a": [whole(skipped, judge_failed(BEHAVIOR))]}))
    assert skips_criteria(sample, sample.all_failures) is True
    assert skips_criteria(sample, ()) is False
    only = tuple(failure for failure in sample.all_failures if failure.metric == "criteria")
    assert skips_criteria(sample, only) is True
    both = only_sample(report_of({"a": [whole(skipped, kept)]}))
    assert skips_criteria(both, tuple(f for f in both.all_failures if not f.author)) is False
    none = only_sample(report_of({"a": [whole(judge_failed(BEHAVIOR))]}))
    assert skips_criteria(none, none.all_failures) is False


@pytest.mark.parametrize(
    ("check", "unjudged"),
    [
        (Check(name="criteria", passed=None), True),
        (Check(name="criteria", passed=None, by="openai/m"), False),  # "not clear" is an answer
        (Check(name="criteria", passed=True), False),
        (Check(name="criteria", passed=False), False),
        (Check(name="python", passed=None), False),
    ],
)
def test_a_criterion_that_no_judge_answered(check: Check, unjudged: bool) -> None:
    assert is_unjudged(check) is unjudged
