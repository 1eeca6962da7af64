"""Provide facts about a run and its verdict that are needed by several parts of a text report. Each fact is
computed once."""

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
    """The input for every function that renders a section. A fact that is needed by several sections is a
    cached property, which is computed on first use. A fact that is needed by only one section is computed by
    that section."""

    report: Report
    """The report of the run."""
    decision: Decision
    """The verdicts on the run, its scenarios and its samples."""

    @cached_property
    def outcomes(self) -> Mapping[tuple[str, str], str]:
        """The outcome of each scenario with each agent, in the same words as in the verdict."""
        return outcomes_by_scenario(self.report, self.decision)

    @cached_property
    def failures(self) -> tuple[ReportedFailure, ...]:
        """Everything that did not pass, in report order."""
        return collect_failures(self.report, self.decision)

    @cached_property
    def decisive(self) -> list[tuple[ReportedFailure, ...]]:
        """The failures that are not tolerated, grouped by scenario and agent. Failed groups come first."""
        return decisive_failures(self.failures)

    @cached_property
    def decisive_rows(self) -> list[RowGroup]:
        """The decisive failures, excluding scenarios that never started. Data rows of a scenario that broke
        the same rules are grouped."""
        begun = [group for group in self.decisive if not group[0].never_ran]
        return fold_failures(begun, self.report.scenarios)

    @cached_property
    def columns(self) -> tuple[ScoreColumn, ...]:
        """The metrics that were requested or judged, as table columns."""
        return score_columns(self.report)

    @cached_property
    def repeats(self) -> Repeats:
        """The statistics of repeated scenarios, such as pass^k."""
        return repeats_of(self.report, self.decision)

    @cached_property
    def rates(self) -> FailureRates | None:
        """The failure rates in a log without scenarios; ``None`` if the run has scenarios."""
        return failure_rates(self.report, self.decision)
