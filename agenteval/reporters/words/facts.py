"""What several parts of a report in words need of the run and of what was decided, each worked out once."""

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
    """What a printer is given. What several parts of a text need, but is no field, is made when it is first
    asked for; what one part needs, it works out itself."""

    report: Report
    """What happened."""
    decision: Decision
    """What was decided of it."""

    @cached_property
    def outcomes(self) -> Mapping[tuple[str, str], str]:
        """How each scenario × agent ended, in the words of the verdict."""
        return outcomes_by_scenario(self.report, self.decision)

    @cached_property
    def failures(self) -> tuple[ReportedFailure, ...]:
        """All that did not pass, in the order of the report."""
        return collect_failures(self.report, self.decision)

    @cached_property
    def decisive(self) -> list[tuple[ReportedFailure, ...]]:
        """Those that nothing tolerates, together for each scenario × agent, failed ones first."""
        return decisive_failures(self.failures)

    @cached_property
    def decisive_rows(self) -> list[RowGroup]:
        """Of these the ones that were begun; rows of one scenario that broke the same rules are together."""
        begun = [group for group in self.decisive if not group[0].never_ran]
        return fold_failures(begun, self.report.scenarios)

    @cached_property
    def columns(self) -> tuple[ScoreColumn, ...]:
        """The metrics that were asked for or judged."""
        return score_columns(self.report)

    @cached_property
    def repeats(self) -> Repeats:
        """What came of repeating scenarios."""
        return repeats_of(self.report, self.decision)

    @cached_property
    def rates(self) -> FailureRates | None:
        """Of a log without scenarios what goes wrong, and how often."""
        return failure_rates(self.report, self.decision)
