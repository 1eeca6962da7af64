"""Options with an optional number: where one is added, and where a value follows."""

from __future__ import annotations

import pytest

from agenteval.cli.optional_numbers import ReportCommand, add_numbers
from agenteval.running.run_history import MOST_RUNS


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ([], []),
        (["--history"], ["--history", "20"]),
        (["--history", "5"], ["--history", "5"]),
        (["--history=5"], ["--history=5"]),
        (["--history", "x"], ["--history", "x"]),
        (["--history", "--report", "json"], ["--history", "20", "--report", "json"]),
        (["--history", "-q"], ["--history", "20", "-q"]),
        (["--report", "json", "--history"], ["--report", "json", "--history", "20"]),
        (["latest", "--rejudge"], ["latest", "--rejudge"]),
        (["--", "--history"], ["--", "--history"]),
        (["--history", "--", "--history"], ["--history", "20", "--", "--history"]),
        (["--histories"], ["--histories"]),
    ],
)
def test_a_number_is_added_where_none_follows(given: list[str], read: list[str]) -> None:
    assert list(add_numbers(given, {"--history": "20"})) == read


def test_the_number_is_the_default_of_the_history() -> None:
    assert {"--history": str(MOST_RUNS)} == ReportCommand.NUMBERS
