"""Second opinions (repeated LLM-as-a-judge calls): the number, results and cost of repeated judge calls.
Pure."""

from __future__ import annotations

from typing import NamedTuple

from agenteval.core.score import EXCUSES, Check, Score, ScoreFailure, UserReview
from agenteval.core.trajectory import Usage, sum_usage
from agenteval.verdict.report import Report


class SecondOpinions(NamedTuple):
    """The repeated judgments in a run."""

    doubted: int
    """The number of results that were judged again because they would have failed the sample or because a
    goal was ruled out or withdrawn."""
    upheld: int
    """The number of ``doubted`` verdicts that were confirmed."""
    sampled: int
    """The number of clean verdicts that were selected at random for a second judgment."""
    differed: int
    """The number of ``sampled`` verdicts for which the second judgment would have failed the sample."""
    usage: Usage
    """The token usage of all repeated judge calls, excluding the first call for each judgment."""
    judges: Usage
    """The usage of all judge calls."""

    @property
    def share(self) -> float:
        """The share of the judges' tokens that was used for repeated calls, from 0 to 1. If no tokens are
        known, this is the share of the judges' calls."""
        if self.judges.tokens:
            return self.usage.tokens / self.judges.tokens
        return self.usage.calls / self.judges.calls if self.judges.calls else 0.0


def second_opinions(report: Report) -> SecondOpinions:
    """Count the repeated judgments in all samples of a run."""
    judged = [item for sample in report.samples for item in sample.judgements]
    voted = [item for item in judged if isinstance(item, Score | Check) and item.votes]
    doubted = [item for item in voted if not _is_sampled(item) and _is_in_doubt(item)]
    sampled = [item for item in voted if _is_sampled(item)]
    return SecondOpinions(
        doubted=len(doubted),
        upheld=sum(map(_is_upheld, doubted)),
        sampled=len(sampled),
        differed=sum(item.votes[1].against for item in sampled),
        usage=sum_usage(vote.usage for item in voted for vote in item.votes[1:] if vote.usage),
        judges=sum_usage(_spent(item) for item in judged),
    )


def _spent(item: Score | ScoreFailure | Check | UserReview) -> Usage:
    return item.usage or Usage()


def _is_sampled(item: Score | Check) -> bool:
    return isinstance(item, Score) and item.sampled


def _is_in_doubt(item: Score | Check) -> bool:
    """Check whether the first judgment would have failed the sample or excused a missed goal."""
    first = item.votes[0]
    return first.against or first.verdict in EXCUSES


def _is_upheld(item: Score | Check) -> bool:
    """Check whether the first judgment is the one that counts. If both judgments would fail the sample,
    either one counts."""
    first = item.votes[0]
    if not first.against and isinstance(item, Score):
        return item.label == first.verdict
    sides = [vote.against for vote in item.votes]
    return sides.count(True) > sides.count(False)
