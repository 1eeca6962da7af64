"""What several parts of a report in words need of the run and of what was decided, each worked out once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from agenteval.core.decision import Decision
from agenteval.reporters.words.failure import Failure, decisive, ends_of, failures
from agenteval.reporters.words.issue import IssueText, issues_text
from agenteval.reporters.words.judge import BrokenJudge, broken_judges
from agenteval.reporters.words.rows import RowGroup, folded_failures
from agenteval.reporters.words.score_cells import Column, columns
from agenteval.reporters.words.selection import selectors
from agenteval.verdict.failure_rates import FailureRates, failure_rates
from agenteval.verdict.reliability import Repeats, repeats_of
from agenteval.verdict.report import Report


@dataclass(frozen=True)
class Facts:
    """All that a printer is given. What is not a field is made when it is first asked for."""

    report: Report
    """What happened."""
    decision: Decision
    """What was decided of it."""

    @cached_property
    def has_several_agents(self) -> bool:
        """Whether texts must name the agent."""
        return self.report.has_several_agents

    @cached_property
    def ends(self) -> Mapping[tuple[str, str], str]:
        """How each scenario × agent ended, in the words of the verdict."""
        return ends_of(self.report, self.decision)

    @cached_property
    def failures(self) -> tuple[Failure, ...]:
        """All that did not pass, in the order of the report."""
        return failures(self.report, self.decision)

    @cached_property
    def decisive(self) -> list[tuple[Failure, ...]]:
        """Those that nothing tolerates, together for each scenario × agent, failed ones first."""
        return decisive(self.failures)

    @cached_property
    def decisive_rows(self) -> list[RowGroup]:
        """Of these the ones that were begun; rows of one scenario that broke the same rules are together."""
        return folded_failures([group for group in self.decisive if not group[0].never_ran])

    @cached_property
    def selectors(self) -> Mapping[str, str]:
        """By scenario id, what ``run`` takes to select it."""
        return selectors(self.report)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The metrics that were asked for or judged."""
        return columns(self.report)

    @cached_property
    def issues(self) -> tuple[IssueText, ...]:
        """The root causes, the worst first."""
        return issues_text(self.report, self.decision)

    @cached_property
    def broken_judges(self) -> tuple[BrokenJudge, ...]:
        """Each way in which judges and detectors failed, the most frequent first."""
        return broken_judges(self.report)

    @cached_property
    def repeats(self) -> Repeats:
        """What came of repeating scenarios."""
        return repeats_of(self.report, self.decision)

    @cached_property
    def rates(self) -> FailureRates | None:
        """Of a log without scenarios what goes wrong, and how often."""
        return failure_rates(self.report, self.decision)
