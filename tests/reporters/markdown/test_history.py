"""The history of a suite in Markdown: tables, and text that is no markup."""

from __future__ import annotations

from agenteval.reporters.markdown.history import render
from agenteval.reporters.options import ReportOptions
from agenteval.verdict.history import MetricMean
from tests.support.histories import figures, history, point


def test_a_row_for_each_run_and_the_scores_below() -> None:
    scored = figures(means=(MetricMean("*tone*", "", 0.5, 12),))
    text = render(history(point(1), point(2, scored, verdict="failed")), ReportOptions())
    head, table, notes, scores, of_scores, _ = text.split("\n\n", 5)
    assert head == "## History: 2 runs"
    assert [line.split(" | ")[:2] for line in table.splitlines()[2:]] == [
        ["| ✅", "aaaaa1"],
        ["| ❌", "aaaaa2"],
    ]
    assert notes.startswith("- ")
    assert scores == "## Mean scores"
    assert of_scores.splitlines() == [
        r"| run | \*tone\* |", "| --- | --- |", "| aaaaa1 | – |", "| aaaaa2 | 0.50 |",
    ]  # fmt: skip
    assert text.endswith("\n")


def test_many_runs_are_all_shown() -> None:
    text = render(history(*[point(n % 10) for n in range(200)]), ReportOptions())
    assert text.count("| ✅ |") == 200


def test_untrusted_text_is_escaped() -> None:
    text = render(history(point(1), point(2, changes=("1 scenario added: [x](y) <b>",))), ReportOptions())
    assert r"\[x\](y) &lt;b&gt;" in text
