"""The history of a suite on a screen: every run, and lines that fit."""

from __future__ import annotations

import pytest

from agenteval.reporters.options import ReportOptions
from agenteval.reporters.terminal.history import render
from agenteval.reporters.terminal.sections import MOST_ROWS
from tests.support.histories import history, point


def test_each_run_has_a_line_oldest_first() -> None:
    text = render(history(*map(point, range(3)), config="agenteval.yaml"), ReportOptions(width=150))
    first, _titles, *lines = text.splitlines()
    assert first == "History: 3 runs of agenteval.yaml"
    assert [line.split()[:2] for line in lines[:3]] == [["✓", f"aaaaa{n}"] for n in range(3)]
    assert "\x1b" not in text
    assert text.endswith("\n")


def test_no_run_that_was_asked_for_is_left_out() -> None:
    points = [point(n % 10) for n in range(MOST_ROWS + 5)]
    text = render(history(*points), ReportOptions(width=150))
    assert text.count("✓") == MOST_ROWS + 5
    assert "more" not in text.partition("chance")[0].replace("more than", "")


@pytest.mark.parametrize("width", [40, 80])
def test_it_fits(width: int) -> None:
    more = {"outcome": "budget", "changes": ("1 scenario added: a-scenario-with-a-name",)}
    lines = render(history(point(1), point(2, **more)), ReportOptions(width=width)).splitlines()
    assert all(len(line) <= width for line in lines)
    assert "incomplete" in " ".join(lines)


def test_the_tone_of_a_remark_is_a_colour() -> None:
    each = history(point(1), point(2, outcome="budget"))
    assert "\x1b[35mincomplete" in render(each, ReportOptions(width=150, color=True))
