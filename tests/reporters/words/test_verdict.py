"""The verdict in a line: what decided it, where no scenario shows it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from agenteval.core.score import Verdict
from agenteval.reporters.words.verdict import _is_shown_by
from tests.support import report_samples as samples


@pytest.mark.parametrize(
    ("verdict", "ends", "is_shown"),
    [
        (Verdict.PASSED, {"passed": 3}, True),
        (Verdict.FAILED, {"passed": 3}, False),
        (Verdict.FAILED, {"passed": 2, "failed": 1}, True),
        (Verdict.INCONCLUSIVE, {"passed": 2, "failed": 1}, False),
        (Verdict.INCONCLUSIVE, {"inconclusive": 1}, True),
    ],
)
def test_a_verdict_that_no_scenario_has_is_that_of_a_gate(
    verdict: Verdict, ends: dict[str, int], is_shown: bool
) -> None:
    _, decision = samples.passing()
    assert _is_shown_by(Counter(ends), replace(decision, verdict=verdict)) is is_shown
