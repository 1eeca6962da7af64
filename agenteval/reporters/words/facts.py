"""Facts about a run and its verdict that several parts of a text report need, each computed once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from agenteval.core.decision import Decision
from agenteval.reporters.words.failure import (
    ReportedFailure,
    collect_failures,
    decisive_failures,
    outcomes_by_scenario,
)
from agenteval.reporters.words.row_groups import RowGroup, fold_failures
from agenteval.reporters.words.score_cells import ScoreColumn, score_columns
from agenteval.verdict.failure_rates import FailureRates, failure_rates
from agenteval.verdict.reliability import Repeats, repeats_of
from agenteval.verdict.report import Report


@dataclass(frozen=True)
class Facts:
    """The input of every section printer. A fact that several sections need is a cached property, computed on
    first use. A section computes for itself what no other section needs."""

    report: Report
    """The report of the run."""
    decision: Decision
    """The verdicts on the run, its scenarios and its samples."""

    @cached_property
    def outcomes(self) -> Mapping[tuple[str, str], str]:
        """The outcome of each scenario × agent, in the words of the verdict."""
        return outcomes_by_scenario(self.report, self.decision)

    @cached_property
    def failures(self) -> tuple[ReportedFailure, ...]:
        """Everything that did not pass, in the order of the report."""
        return collect_failures(self.report, self.decision)

    @cached_property
    def decisive(self) -> list[tuple[ReportedFailure, ...]]:
        """The failures that nothing tolerates, grouped by scenario × agent, failed groups first."""
        return decisive_failures(self.failures)

    @cached_property
    def decisive_rows(self) -> list[RowGroup]:
        """The decisive failures that started to run. Rows of one scenario that broke the same rules are
        grouped."""
        begun = [group for group in self.decisive if not group[0].never_ran]
        return fold_failures(begun, self.report.scenarios)

    @cached_property
    def columns(self) -> tuple[ScoreColumn, ...]:
        """The metrics that were requested or judged."""
        return score_columns(self.report)

    @cached_property
    def repeats(self) -> Repeats:
        """The statistics of repeated scenarios."""
        return repeats_of(self.report, self.decision)

    @cached_property
    def rates(self) -> FailureRates | None:
        """The failure rates of a log without scenarios; otherwise ``None``."""
        return failure_rates(self.report, self.decision)
