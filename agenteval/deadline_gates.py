"""The gate row of ``deadlines.run_s``: a run that it ended is not decided, whatever had passed."""

from __future__ import annotations

from collections.abc import Iterable

from agenteval.decision import GateRow
from agenteval.report import Report
from agenteval.score import Verdict


def deadline_gates(report: Report) -> Iterable[GateRow]:
    """How long the run took, where it was not to take longer."""
    config, end = report.run.config, report.finished
    if config.deadlines.run_s is None:
        return
    ended = end is not None and end.outcome == "deadline"
    yield GateRow(
        name="deadlines.run_s",
        value=end.elapsed_s if end else None,
        bound=f"at most {config.deadlines.run_s:g}",
        rests_on="the deadline ended the run" if ended else "the whole run",
        where=config.where("deadlines.run_s"),
        verdict=Verdict.INCONCLUSIVE if ended else Verdict.PASSED,
    )
