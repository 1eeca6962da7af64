"""The comparison of two runs in Markdown: its head, and how much it shows."""

from __future__ import annotations

import pytest

from agenteval.core.score import Verdict
from agenteval.reporters.markdown.comparison import render
from agenteval.reporters.options import ReportOptions
from agenteval.verdict.comparison import RunComparison, ScenarioState, UncomparedScenario


def comparison(verdict: Verdict, count: int = 1) -> RunComparison:
    apart = tuple(
        UncomparedScenario(id=f"*s{n}*", agent="bot", state=ScenarioState.NEW, before=None, after=None)
        for n in range(count)
    )
    code = {Verdict.PASSED: 0, Verdict.FAILED: 1, Verdict.INCONCLUSIVE: 3}[verdict]
    fields = {"before": "r1", "after": "r2", "margin": 0.1, "confidence": 0.95, "agents": ()}
    return RunComparison(verdict=verdict, exit_code=code, apart=apart, **fields)


@pytest.mark.parametrize(
    ("verdict", "head", "code"),
    [
        (Verdict.PASSED, "# ✅ No regression", 0),
        (Verdict.FAILED, "# ❌ Regressed", 1),
        (Verdict.INCONCLUSIVE, "# ⚠️ Not decided", 3),
    ],
)
def test_the_head_has_the_verdict_and_its_reason(verdict: Verdict, head: str, code: int) -> None:
    parts = render(comparison(verdict), ReportOptions()).split("\n\n")
    assert parts[0] == head
    assert f"(exit {code})" in parts[1]
    assert "1 new" in parts[1]
    assert parts[1].endswith(".")
    assert parts[2] == "## r2 against r1"
    assert parts[3] == "### Not compared: 1 new"
    assert parts[4].splitlines()[2].startswith(r"| \*s0\* | new |")
    assert parts[4].endswith("\n")


@pytest.mark.parametrize(
    ("verbose", "count", "rows"), [(False, 100, 100), (False, 101, 100), (True, 101, 101)]
)
def test_only_a_verbose_comparison_has_all_rows(verbose: bool, count: int, rows: int) -> None:
    text = render(comparison(Verdict.PASSED, count), ReportOptions(verbose=verbose))
    assert text.count("| new |") == rows
    assert ("more." in text) is (rows < count)
