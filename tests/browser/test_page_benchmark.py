"""``benchmarks/page.py`` finds in the page what it measures, and each step does what it is called."""

from __future__ import annotations

from pathlib import Path

from agenteval.reporters.html.document import render
from agenteval.reporters.options import ReportOptions
from benchmarks.page import FILTERED, OPENED, SEARCHED, measure
from tests.support.browser import Browsers
from tests.support.synthetic_runs import synthetic_run


def test_every_step_of_a_reader_is_measured(browsers: Browsers, tmp_path: Path) -> None:
    report, decision = synthetic_run(120)
    path = tmp_path / "page.html"
    path.write_text(render(report, decision, ReportOptions()), encoding="utf-8")
    times = measure(browsers.running(), path, 1)
    assert len(times.ready) == len(times.first_content) == len(times.search) == 1
    assert len(times.open) == len(times.back) == OPENED
    assert len(times.keystroke) == 2 * len(FILTERED)
    assert times.elements > 100
    found = [each for each in report.scenarios if SEARCHED in str(each.samples).lower()]
    assert times.hits == len(found) > 0
