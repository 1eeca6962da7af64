"""Counts what the agents made of the faults of their tools (``run --faults``): one row for each agent, tool
and fault. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from agenteval.core.decision import Decision
from agenteval.core.sample_report import SampleReport, ScenarioReport
from agenteval.core.scenario import VARIANT_SEPARATOR, SampleKey, Scenario
from agenteval.core.score import Check, Verdict
from agenteval.core.tool_faults import FaultOutcome
from agenteval.verdict.report import Report
from agenteval.verdict.statistics.estimates import wilson


@dataclass
class FaultRow:
    """One fault of one tool, over all scenarios."""

    agent: str
    tool: str
    fault: str
    """The name of the fault, such as ``timeout-1x``."""
    conversations: int = 0
    """The number of conversations that a model or the agent did not lose."""
    outcomes: Counter[FaultOutcome] = field(default_factory=Counter)
    compared: int = 0
    """The number of conversations in which the fault was reached and whose epoch without it passed."""
    recovered: int = 0
    """The number of these in which the agent recovered."""

    @property
    def reached(self) -> int:
        """The number of conversations in which a call had the fault."""
        return sum(self.outcomes.values()) - self.outcomes[FaultOutcome.NOT_REACHED]

    @property
    def recovery(self) -> float | None:
        """The share of the conversations that would have succeeded without the fault, or ``None`` if there
        are none."""
        return self.recovered / self.compared if self.compared else None

    @property
    def low(self) -> float:
        """The lower bound of the 95 % Wilson interval of the share."""
        return wilson(self.recovered, self.compared).low

    @property
    def high(self) -> float:
        """The upper bound of this interval."""
        return wilson(self.recovered, self.compared).high


def fault_rows(report: Report, decision: Decision) -> tuple[FaultRow, ...]:
    """Return the rows in the order of the scenarios, or nothing for a run without faults."""
    rows: dict[tuple[str, str, str], FaultRow] = {}
    for scenario in report.scenarios:
        variant = scenario.scenario.variant
        if variant is None or variant.fault is None:
            continue
        key = (scenario.agent, variant.tool, fault_label(scenario.scenario))
        row = rows.setdefault(key, FaultRow(*key))
        for sample, check in _checked(scenario):
            row.conversations += 1
            assert check.outcome
            row.outcomes[check.outcome] += 1
            plain = SampleKey(scenario=variant.of, agent=scenario.agent, epoch=sample.key.epoch)
            if check.outcome is not FaultOutcome.NOT_REACHED and _passed(plain, decision):
                row.compared += 1
                row.recovered += check.outcome is FaultOutcome.RECOVERED
    return tuple(rows.values())


def fault_label(scenario: Scenario) -> str:
    """Return the name of the fault of a variant: the part of its id between the scenario and the tool."""
    assert scenario.variant
    name = scenario.id.removeprefix(f"{scenario.variant.of}{VARIANT_SEPARATOR}")
    return name.removesuffix(f".{scenario.variant.tool}")


def _checked(scenario: ScenarioReport) -> Iterator[tuple[SampleReport, Check]]:
    for sample in scenario.samples:
        check = next((check for check in sample.checks if check.outcome is not None), None)
        if check is not None:
            yield sample, check


def _passed(key: SampleKey, decision: Decision) -> bool:
    samples: Mapping[SampleKey, object] = decision.samples
    found = decision.samples[key] if key in samples else None
    return found is not None and found.verdict is Verdict.PASSED
