"""Counts what the agents did after altered user messages (``run --variants``): one row for each agent and way
in which messages were altered. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from agenteval.core.score import VARIANT
from agenteval.verdict.report import Report
from agenteval.verdict.statistics.estimates import Interval, wilson


@dataclass
class VariantRow:
    """One way in which messages were altered, over all scenarios."""

    agent: str
    variant: str
    conversations: int = 0
    """The number of conversations that ended as conversations do."""
    altered: int = 0
    """The number of conversations in which a message was altered."""
    same: int = 0
    """The number of altered conversations that were as they should be."""
    different: int = 0

    @property
    def undecided(self) -> int:
        return self.altered - self.same - self.different

    @property
    def share(self) -> float | None:
        """The share of the decided conversations that were as they should be, or ``None`` if there are
        none."""
        decided = self.same + self.different
        return self.same / decided if decided else None

    @property
    def interval(self) -> Interval:
        """The 95 % Wilson interval of the share."""
        return wilson(self.same, self.same + self.different)


def variant_rows(report: Report) -> tuple[VariantRow, ...]:
    """Return the rows in the order of the scenarios, or nothing for a run without altered messages."""
    rows: dict[tuple[str, str], VariantRow] = {}
    for scenario in report.scenarios:
        variant = scenario.scenario.variant
        if variant is None or variant.messages is None:
            continue
        key = (scenario.agent, variant.messages)
        row = rows.setdefault(key, VariantRow(*key))
        for check in (check for sample in scenario.samples for check in sample.checks):
            if check.name == VARIANT:
                row.conversations += 1
                row.altered += check.arose
                row.same += check.arose and check.passed is True
                row.different += check.passed is False
    return tuple(rows.values())
