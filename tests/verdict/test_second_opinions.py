"""How many judgements were repeated, and with which result."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.core.score import NOT_CLEAR, REACHED, RULED_OUT, WITHDRAWN, Check, Score, Vote
from agenteval.core.trajectory import Usage
from agenteval.verdict.second_opinions import SecondOpinions, second_opinions
from tests.support.verdict_runs import BEHAVIOR, GOAL, Played, judge_failed, report_of, whole


def vote(verdict: Any, against: bool, tokens: int = 0) -> Vote:
    usage = Usage(calls=1, input_tokens=tokens) if tokens else None
    return Vote(verdict=verdict, against=against, usage=usage)


BAD, GOOD = vote("x", True), vote("no failure", False)


def label(*votes: Vote, counts: str = "x", sampled: bool = False, **more: Any) -> Score:
    return Score(
        metric=BEHAVIOR, label=counts, ok=counts == "no failure", votes=votes, sampled=sampled, **more
    )


def goal(*votes: Vote, counts: str) -> Score:
    return Score(metric=GOAL, label=counts, votes=votes)


RULED, MISSED = vote(RULED_OUT, False), vote("missed", True)
GONE = vote(WITHDRAWN, False)


@pytest.mark.parametrize(
    ("item", "counts"),  # doubted, upheld, sampled, differed
    [
        (label(), (0, 0, 0, 0)),
        (label(BAD, BAD), (1, 1, 0, 0)),
        (label(BAD, GOOD, BAD), (1, 1, 0, 0)),
        (label(BAD, GOOD, GOOD, counts="no failure"), (1, 0, 0, 0)),
        (label(BAD, GOOD), (1, 0, 0, 0)),
        (label(GOOD, GOOD, counts="no failure", sampled=True), (0, 0, 1, 0)),
        (label(GOOD, BAD, counts="no failure", sampled=True), (0, 0, 1, 1)),
        (label(GOOD, GOOD, counts="no failure"), (0, 0, 0, 0)),
        # Outcomes that excuse a missed goal are in doubt, too.
        (goal(RULED, RULED, counts=RULED_OUT), (1, 1, 0, 0)),
        (goal(RULED, MISSED, MISSED, counts="missed"), (1, 0, 0, 0)),
        (goal(GONE, GONE, counts=WITHDRAWN), (1, 1, 0, 0)),
        (goal(GONE, RULED, counts=NOT_CLEAR), (1, 0, 0, 0)),
        (goal(vote(REACHED, False), vote(REACHED, False), counts=REACHED), (0, 0, 0, 0)),
        (Check(name="criteria", passed=False, votes=(BAD, BAD)), (1, 1, 0, 0)),
        (Check(name="criteria", passed=True, votes=(BAD, GOOD, GOOD)), (1, 0, 0, 0)),
        (Check(name="criteria", passed=True, votes=(GOOD, GOOD)), (0, 0, 0, 0)),
        (judge_failed(BEHAVIOR), (0, 0, 0, 0)),
    ],
)
def test_what_became_of_a_judgement(item: Any, counts: tuple[int, ...]) -> None:
    found = second_opinions(report_of({"a": [whole(item)]}))
    assert (found.doubted, found.upheld, found.sampled, found.differed) == counts


def test_all_samples_and_turns_are_counted() -> None:
    once = label(BAD, BAD)
    report = report_of({"a": [Played((once,), ((once,), (once,))), whole(once)], "b": [whole(once)]})
    assert second_opinions(report).doubted == 5


def test_only_repeated_calls_are_counted_as_such() -> None:
    usage = Usage(calls=3, input_tokens=60)
    item = label(vote("x", True, 10), vote("x", True, 20), vote("x", True, 30), usage=usage)
    more = Score(metric="stars", value=3, usage=Usage(calls=1, input_tokens=40))
    failed = judge_failed("stars", usage=Usage(calls=1, input_tokens=5))
    found = second_opinions(report_of({"a": [whole(item, more, failed)]}))
    assert (found.usage.calls, found.usage.tokens) == (2, 50)
    assert (found.judges.calls, found.judges.tokens) == (5, 105)
    assert found.share == pytest.approx(50 / 105)


@pytest.mark.parametrize(
    ("again", "judges", "share"),
    [
        (Usage(), Usage(), 0.0),
        (Usage(calls=1), Usage(calls=4), 0.25),
        (Usage(calls=1, input_tokens=3, output_tokens=1), Usage(calls=2, input_tokens=10), 0.4),
        (Usage(calls=1), Usage(calls=2, input_tokens=10), 0.0),
    ],
)
def test_the_share_of_repeated_calls(again: Usage, judges: Usage, share: float) -> None:
    assert SecondOpinions(0, 0, 0, 0, again, judges).share == share
