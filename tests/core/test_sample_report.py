"""The results of one conversation, and means across several."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agenteval.core.sample_report import (
    Aggregate,
    SampleReport,
    Spread,
    TurnReport,
    aggregates_of,
    combine_outcomes,
    mean_of,
    means_of_samples,
    numeric_value,
    p95_is_highest,
    spread_of,
)
from agenteval.core.scenario import SampleKey
from agenteval.core.score import Check, Finding, Score, ScoreFailure, Severity, UserReview
from agenteval.core.trajectory import Stop, StopReason, Trajectory, Turn

DONE = Stop(reason=StopReason.SCRIPT_DONE)


def stopped(reason: StopReason, detail: str = "") -> Stop:
    return Stop(reason=reason, detail=detail)


def sample(*turns: Any, **fields: Any) -> SampleReport:
    """A conversation in which each turn has these results; ``fields`` are those of the report."""
    made = []
    for items in turns:
        sorted_out: dict[str, Any] = {
            "checks": tuple(each for each in items if isinstance(each, Check)),
            "scores": tuple(each for each in items if isinstance(each, Score)),
            "score_failures": tuple(each for each in items if isinstance(each, ScoreFailure)),
        }
        made.append(TurnReport(Turn(user="Hi"), **sorted_out))
    empty: dict[str, Any] = dict.fromkeys(("checks", "scores", "score_failures", "findings"), ())
    known = {"stop": DONE, "trajectory": Trajectory(), **empty, **fields}
    return SampleReport(SampleKey(scenario="s", agent="a"), tuple(made), **known)


def check(passed: bool | None, name: str = "output.contains", **more: Any) -> Check:
    return Check(name=name, passed=passed, **more)


def score(value: float | None = None, metric: str = "m", **more: Any) -> Score:
    return Score(metric=metric, value=value, **more)


HELD, BROKEN, UNDECIDED = check(True), check(False), check(None)
FAILURE = ScoreFailure(metric="m", message="?")
FINDING = Finding(detector="d", metric="m", label="x", severity=Severity.LOW)


@pytest.mark.parametrize(
    ("outcomes", "combined"),
    [
        ([], True),
        ([True, True], True),
        ([True, None], None),
        ([None, False], False),
        ([False, True], False),
    ],
)
def test_outcomes_together(outcomes: list[bool | None], combined: bool | None) -> None:
    assert combine_outcomes(iter(outcomes)) is combined


@pytest.mark.parametrize(
    ("stop", "record"),
    [
        (stopped(StopReason.RECORDED, "log.jsonl:3"), "log.jsonl:3"),
        (stopped(StopReason.UNREADABLE, "log.jsonl:3: is no JSON: x"), "log.jsonl:3"),
        (stopped(StopReason.AGENT_ERROR, "log.jsonl:3: x"), ""),
        (None, ""),
    ],
)
def test_where_a_conversation_is_recorded(stop: Stop | None, record: str) -> None:
    assert sample(stop=stop).record == record


def test_what_belongs_to_turns_comes_before_what_belongs_to_the_whole() -> None:
    one, two, whole = score(1.0), score(2.0), score(3.0)
    lost = FAILURE.model_copy(update={"message": "whole"})
    review = UserReview(label="helped")
    made = sample(
        [HELD, one],
        [FAILURE, two, BROKEN],
        checks=(UNDECIDED,),
        scores=(whole,),
        score_failures=(lost,),
        set_aside=(HELD,),
        review=review,
    )
    assert made.all_scores == (one, two, whole)
    assert made.all_failures == (FAILURE, lost)
    assert made.all_checks == (HELD, BROKEN, UNDECIDED)
    assert made.judgements == (one, two, whole, FAILURE, lost, HELD, BROKEN, UNDECIDED, HELD, review)
    assert sample().judgements == ()


@pytest.mark.parametrize(
    ("fields", "scripted"),
    [
        ({}, False),
        ({"scores": (score(1.0, scripted=True),)}, True),
        ({"checks": (check(True, scripted=True),)}, True),
        ({"findings": (FINDING,)}, False),
        ({"findings": (FINDING.model_copy(update={"scripted": True}),)}, True),
        ({"review": UserReview(label="helped")}, False),
        ({"review": UserReview(label="helped", scripted=True)}, True),
        ({"turns": (TurnReport(Turn(user="Hi", user_model="scripted/x")),)}, True),
        ({"turns": (TurnReport(Turn(user="Hi", user_model="openai/scripted/x")),)}, False),
        ({"turns": (TurnReport(Turn(user="Hi"), scores=(score(1.0, scripted=True),)),)}, True),
    ],
)
def test_what_rests_on_the_scripted_model(fields: dict[str, Any], scripted: bool) -> None:
    assert replace(sample(), **fields).scripted is scripted


@pytest.mark.parametrize(
    ("checks", "stop", "held"),
    [
        ([], DONE, True),
        ([HELD], DONE, True),
        ([HELD, BROKEN, UNDECIDED], DONE, False),
        ([HELD, UNDECIDED], DONE, None),
        ([check(None, "outcome")], DONE, True),  # which was not recorded
        ([check(False, "outcome")], DONE, False),
        ([HELD], None, False),
        ([HELD], stopped(StopReason.AGENT_ERROR), False),
        ([HELD], stopped(StopReason.INFRASTRUCTURE), False),
        ([HELD], stopped(StopReason.MAX_TURNS), True),
    ],
)
def test_whether_all_checks_held(checks: list[Check], stop: Stop | None, held: bool | None) -> None:
    assert sample(checks, stop=stop).all_checks_held is held
    assert sample(checks=tuple(checks), stop=stop).all_checks_held is held


CALLED = check(True, "tool_calls")


@pytest.mark.parametrize(
    ("accuracy", "checks", "correct"),
    [
        (None, [], None),
        (None, [CALLED], True),
        (None, [CALLED, check(False, "tool_calls")], False),
        (None, [CALLED, check(None, "tool_calls")], None),
        (None, [BROKEN], None),
        (0.5, [CALLED], 0.5),
        (0.0, [], 0.0),
        (1.0, [], 1.0),
        (1.0, [check(False, "tool_calls")], False),
        (1.0, [check(False, "tool_calls.x")], 1.0),
    ],
)
def test_whether_the_calls_are_right(accuracy: float | None, checks: list[Check], correct: Any) -> None:
    assert sample(checks, tool_accuracy=accuracy).calls_correct == correct


@pytest.mark.parametrize(
    ("output", "checks", "correct"),
    [
        (None, [], None),
        (None, [HELD], True),
        (None, [HELD, check(False, "output.matches")], False),
        (None, [UNDECIDED], None),
        (None, [check(False, "tool_calls")], None),
        (False, [HELD], False),
        (True, [], True),
        (True, [BROKEN], False),
        (True, [check(False, "output")], True),
    ],
)
def test_whether_the_answers_are_right(
    output: bool | None, checks: list[Check], correct: bool | None
) -> None:
    assert sample(checks, output_correct=output).answers_correct is correct


@pytest.mark.parametrize(
    ("fields", "number"),
    [
        ({"value": 3.5}, 3.5),
        ({"value": 0.0, "label": "reached", "ok": True}, 0.0),
        ({"label": "x", "ok": True}, 1.0),
        ({"label": "x", "ok": False}, 0.0),
        ({"label": "no failure"}, 1.0),
        ({"label": "no failure", "ok": False}, 0.0),
        ({"label": "x"}, 0.0),
    ],
)
def test_a_score_as_a_number(fields: dict[str, Any], number: float) -> None:
    assert numeric_value(score(**fields)) == number


@pytest.mark.parametrize(
    ("values", "mean", "n"),
    [([], None, 0), ([None], None, 0), ([1.0, None, 0.0], 0.5, 2), ([True, False, True, True], 0.75, 4)],
)
def test_a_mean(values: list[float | bool | None], mean: float | None, n: int) -> None:
    assert mean_of(values) == Aggregate(mean, n)


OPEN = score(label="not clear")
LONG = sample([score(1.0)], [score(1.0)], [score(0.0, "z")], scores=(score(4.0),))
SHORT = sample([score(3.0), OPEN], scores=(score(0.5, "a"),))


def test_the_mean_of_each_conversation() -> None:
    assert means_of_samples([LONG, SHORT, sample([OPEN])]) == {"a": (0.5,), "m": (2.0, 3.0), "z": (0.0,)}
    assert list(means_of_samples([LONG, SHORT])) == ["a", "m", "z"]
    assert means_of_samples([]) == {}


def test_means_across_conversations() -> None:
    found = aggregates_of([LONG, SHORT, sample([FAILURE, score(label="withdrawn")])])
    assert found == {
        "a": Aggregate(0.5, 1, 0, 0.5),
        "m": Aggregate(2.25, 4, 1, 2.5, {"not clear": 1, "withdrawn": 1}),
        "z": Aggregate(0.0, 1, 0, 0.0),
    }
    assert list(found) == ["a", "m", "z"]
    assert aggregates_of([sample([FAILURE])]) == {"m": Aggregate(None, 0, 1)}
    assert aggregates_of([sample([OPEN, OPEN])]) == {"m": Aggregate(None, 0, undecided={"not clear": 2})}
    assert aggregates_of([sample()]) == {}


@pytest.mark.parametrize(
    ("stop", "counts"),
    [
        (DONE, True),
        (stopped(StopReason.AGENT_ERROR), True),
        (stopped(StopReason.INFRASTRUCTURE), False),
        (stopped(StopReason.SIMULATOR), False),
        (stopped(StopReason.BUDGET), False),
        (stopped(StopReason.UNREADABLE), False),
        (None, False),
    ],
)
def test_lost_conversations_do_not_count(stop: Stop | None, counts: bool) -> None:
    found = aggregates_of([sample([score(1.0)], stop=stop, tool_accuracy=1.0)])
    assert set(found) == ({"m", "tool_accuracy"} if counts else set())


def test_measures_of_cases() -> None:
    samples = [
        sample(tool_accuracy=0.5, output_correct=True, robustness_pass=False),
        sample(tool_accuracy=1.0, output_correct=False),
        sample(),
    ]
    assert aggregates_of(samples) == {
        "tool_accuracy": Aggregate(0.75, 2),
        "output_correct": Aggregate(0.5, 2),
        "robustness_pass": Aggregate(0.0, 1),
    }


@pytest.mark.parametrize(
    ("values", "spread"),
    [
        ([5.0], Spread(5.0, 5.0, 5.0, 1)),
        ([3.0, 1.0], Spread(2.0, 1.0, 3.0, 2)),
        ([3.0, 1.0, 2.0], Spread(2.0, 2.0, 3.0, 3)),
        ([float(n) for n in range(1, 20)], Spread(10.0, 10.0, 19.0, 19)),
        ([float(n) for n in range(1, 21)], Spread(10.5, 10.0, 19.0, 20)),
        ([float(n) for n in range(1, 101)], Spread(50.5, 50.0, 95.0, 100)),
    ],
)
def test_a_spread(values: list[float], spread: Spread) -> None:
    assert spread_of(values) == spread
    assert p95_is_highest(len(values)) is (spread.p95 == max(values))
