"""The rows of one scenario, folded into one line of a report."""

from __future__ import annotations

from dataclasses import replace

from agenteval.core.scenario import SampleKey
from agenteval.reporters.words.row_groups import _fold
from tests.support import report_samples as samples


def test_a_folded_row_holds_the_samples_of_all_rows_and_those_that_never_ran() -> None:
    report, _ = samples.passing()
    row = report.scenarios[0]
    lost = tuple(SampleKey(scenario=name, agent=row.agent) for name in "ab")
    rows = [replace(row, missing=()), replace(row, missing=lost[:1]), replace(row, missing=lost[1:])]
    folded = _fold(rows)
    assert folded.missing == lost
    assert len(folded.samples) == 3 * len(row.samples)
    assert "3" in folded.scenario.id


def test_a_folded_row_keeps_the_note_that_all_rows_share() -> None:
    report, _ = samples.passing()
    row = report.scenarios[0]
    rows = [replace(row, scenario=row.scenario.model_copy(update={"note": name})) for name in "aab"]
    assert _fold(rows[:2]).scenario.note == "a"
    assert "2" in (_fold(rows).scenario.note or "")
    assert _fold([row, row]).scenario.note is None
