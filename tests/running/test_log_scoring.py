"""What is remarked about a log that was scored, beside its verdict."""

from __future__ import annotations

import pytest

from agenteval.adapters.traffic.recorded_answers import AnswerCounts, RejudgedAnswers
from agenteval.messages.unplaced_entries import CallFreeNames
from agenteval.running.log_scoring import _rejudged_notes, _unused_call_free_names


def counts(reused: dict[str, int], calls: dict[str, int]) -> RejudgedAnswers:
    tally = AnswerCounts()
    tally.reused.update(reused)
    tally.calls.update(calls)
    return RejudgedAnswers({}, tally)


@pytest.mark.parametrize(
    ("answers", "facts"),
    [
        (None, None),
        (counts({}, {}), ["0 answers", "0 new"]),
        (counts({"a": 1}, {}), ["1 answer from", "0 new"]),
        (counts({"a": 1, "b": 1000}, {"y": 2, "x": 1500}), ["1,001 answers", "1,502 new (x 1,500, y 2)"]),
    ],
)
def test_what_was_judged_again(answers: RejudgedAnswers | None, facts: list[str] | None) -> None:
    found = list(_rejudged_notes(answers))
    assert len(found) == (facts is not None)
    for fact in facts or ():
        assert fact in found[0]
    if facts and "0 new" in facts:
        assert "(" not in found[0]


@pytest.mark.parametrize(
    ("names", "matched", "unmatched", "expected"),
    [
        ((), (), (), []),
        (("a",), ("a",), ("b",), []),
        (("stpes", "a"), ("a",), ("steps",), [["stpes", "steps"]]),
        (("z", "y"), (), (), [["--no-calls-in y", "recognized"], ["--no-calls-in z", "recognized"]]),
    ],
)
def test_names_that_matched_nothing_are_told(
    names: tuple[str, ...], matched: tuple[str, ...], unmatched: tuple[str, ...], expected: list[list[str]]
) -> None:
    found = list(_unused_call_free_names(CallFreeNames(frozenset(names), set(matched), set(unmatched))))
    assert len(found) == len(expected)
    for text, facts in zip(found, expected, strict=True):
        assert all(fact in text for fact in facts)
