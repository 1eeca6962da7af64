"""The comparison of two runs on a screen: its sections, and the verdict at the end."""

from __future__ import annotations

import pytest

from agenteval.core.run_summary import RunSummary, ScenarioSummary
from agenteval.core.score import Verdict
from agenteval.reporters.options import ReportOptions
from agenteval.reporters.terminal.comparison import render
from agenteval.verdict.comparison import RunComparison, compare_runs


def run(name: str, successes: int, of: int) -> RunSummary:
    each = ScenarioSummary(
        id="a", agent="bot", successes=successes, decided=of, planned=of, known=of, content={"turns": "1"},
        verdict=Verdict.PASSED,
    )  # fmt: skip
    return RunSummary(run_id=name, started_at="", scenarios=(each,))


def compared(before: int, after: int, of: int = 20) -> RunComparison:
    return compare_runs(run("r1", before, of), run("r2", after, of))


@pytest.mark.parametrize(
    ("before", "after", "of", "word", "style"),
    [
        (200, 200, 200, "NO REGRESSION", "32"),
        (20, 0, 20, "REGRESSED", "31"),
        (5, 4, 5, "NOT DECIDED", "35"),
    ],
)
def test_the_last_line_is_the_verdict(before: int, after: int, of: int, word: str, style: str) -> None:
    comparison = compared(before, after, of)
    text = render(comparison, ReportOptions(width=300))
    first, *_, last = text.splitlines()
    assert text.endswith("\n")
    assert first == "r2 against r1"
    assert last.startswith(f"{word}: ")
    assert "\x1b" not in text
    coloured = render(comparison, ReportOptions(width=300, color=True)).splitlines()[-1]
    assert f"\x1b[1;{style}m{word}: " in coloured


@pytest.mark.parametrize("width", [40, 80])
def test_what_changed_is_listed_and_fits(width: int) -> None:
    lines = render(compared(20, 0), ReportOptions(width=width)).splitlines()
    assert any(line.split()[:2] == ["✗", "a"] for line in lines)
    assert all(len(line) <= width for line in lines)
