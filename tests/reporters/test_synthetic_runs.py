"""The runs that pages are measured on: as they are described, and alike each time."""

from __future__ import annotations

import gzip

from agenteval.core.score import Verdict
from agenteval.core.trajectory import Turn
from tests.support.synthetic_runs import REAL_TURNS, synthetic_events, synthetic_run


def test_the_seed_decides_everything() -> None:
    first, again, other = (list(synthetic_events(20, seed=seed)) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_of_many_conversations_some_fail_some_are_undecided_and_in_some_something_is_found() -> None:
    report, decision = synthetic_run(301)
    assert len(report.samples) == 301
    assert {each.verdict for each in decision.samples.values()} == set(Verdict)
    assert {found.severity for sample in report.samples for found in sample.findings} >= {"high", "low"}
    assert {issue.labels for issue in report.issues} >= {("repetition",), ("wrong arguments",)}
    assert any(sample.trajectory.tool_calls for sample in report.samples)
    assert any(score.reason and score.evidence for sample in report.samples for score in sample.all_scores)


def test_texts_and_tool_results_compress_as_real_ones() -> None:
    """Those of real conversations by 3.8 and 9.5 (benchmarks/README.md, page)."""
    report, _ = synthetic_run(100, turns=REAL_TURNS)
    turns = [each.turn for sample in report.samples for each in sample.turns]
    results = [call.result.text for turn in turns for call in turn.tool_calls if call.result]
    assert 3.4 < ratio([part for turn in turns for part in texts(turn)]) < 4.6
    assert 8.5 < ratio(results) < 11


def texts(turn: Turn) -> tuple[str, str]:
    return turn.user or "", turn.answer or ""


def ratio(parts: list[str]) -> float:
    whole = "\n".join(parts).encode()
    return len(whole) / len(gzip.compress(whole, 6))
