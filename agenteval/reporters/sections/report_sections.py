"""Collect everything that a report contains in one value, for reporters that the author wrote."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from agenteval.core.decision import GateRow
from agenteval.core.safe_text import one_line_message
from agenteval.core.sample_report import ScenarioReport
from agenteval.core.score import Verdict
from agenteval.reporters.sections import accepted, agents, failure_rates, gates, issues, scenarios, usage
from agenteval.reporters.sections.failures import failures
from agenteval.reporters.sections.faults import faults
from agenteval.reporters.sections.message_variants import message_variants
from agenteval.reporters.sections.remarks import remarks
from agenteval.reporters.sections.section import Section
from agenteval.reporters.words.facts import Facts
from agenteval.reporters.words.failure import planned, scenario_decision
from agenteval.reporters.words.places import shown_place
from agenteval.reporters.words.verdict import verdict_line

RESULTS = (accepted.sections, failure_rates.sections, gates.gates, scenarios.scenarios, scenarios.scores)
"""The functions that make the sections before the failures."""
MEASURES = (
    faults,
    message_variants,
    issues.issues,
    issues.failures_outside_agent,
    scenarios.dimensions,
    agents.sections,
    usage.usage,
)
"""The functions that make the sections after the failures."""
_MISTAKES = "To fix in the scenarios or the configuration"


@dataclass(frozen=True)
class ScenarioResult:
    """The result of a scenario with an agent."""

    id: str
    """The id of the scenario."""
    agent: str
    """The name of the agent."""
    verdict: Verdict
    """The verdict: passed, failed or inconclusive."""
    reason: str
    """The first reason why the scenario did not pass, on one line; empty if it passed."""
    where: str
    """The location of the scenario, as ``file:line``."""
    passed: int
    """The number of samples that passed."""
    samples: int
    """The number of planned samples."""


@dataclass(frozen=True)
class ReportSections:
    """The content of a report, for a reporter to render. Iterating over it yields its ``sections``."""

    run: str
    """The id of the run."""
    verdict: str
    """The verdict of the run: ``passed``, ``failed`` or ``inconclusive``. It is ``reported`` for a log
    without expectations that no gate evaluated."""
    exit_code: int
    """The exit code that corresponds to the verdict."""
    headline: str
    """The last line of the terminal report: the verdict and its reason, such as ``FAILED: 1 of 2 scenarios
    failed, 1 passed (exit 1)``."""
    scenarios: tuple[ScenarioResult, ...]
    """The result of each scenario with each agent, in the order of the report. Empty for a log without
    expectations, whose conversations cannot pass."""
    gates: tuple[GateRow, ...]
    """The gates, including those that passed."""
    sections: tuple[Section, ...]
    """The sections of the report: gates, scenarios, scores, failures, issues, usage, remarks and others. A
    section without content is omitted."""

    def __iter__(self) -> Iterator[Section]:
        return iter(self.sections)


def make_report_sections(facts: Facts, root: str) -> ReportSections:
    """Build the content of a report. Locations are relative to ``root``."""
    word, text = verdict_line(facts)
    decision = facts.decision
    return ReportSections(
        run=facts.report.run.run_id,
        verdict=decision.verdict_label,
        exit_code=decision.exit_code,
        headline=f"{word}: {text}",
        scenarios=() if decision.is_reported else tuple(_scenario_results(facts, root)),
        gates=decision.gates,
        sections=tuple(_sections(facts, root)),
    )


def _scenario_results(facts: Facts, root: str) -> Iterator[ScenarioResult]:
    reasons = _first_reasons(facts)
    for scenario in facts.report.scenarios:
        name = (scenario.scenario.id, scenario.agent)
        verdict = scenario_decision(facts.decision, scenario).verdict
        yield ScenarioResult(
            id=scenario.scenario.id,
            agent=scenario.agent,
            verdict=verdict,
            reason="" if verdict is Verdict.PASSED else reasons.get(name, ""),
            where=shown_place(scenario.scenario.where(), root),
            passed=_count_passed(facts, scenario),
            samples=len(planned(scenario)),
        )


def _first_reasons(facts: Facts) -> dict[tuple[str, str], str]:
    """Return the first reason for each scenario and agent. Reasons that count take precedence over tolerated
    ones."""
    reasons: dict[tuple[str, str], str] = {}
    for failure in chain(chain.from_iterable(facts.decisive), facts.failures):
        reasons.setdefault((failure.scenario, failure.agent), failure.rules[0].gist)
    return reasons


def _count_passed(facts: Facts, scenario: ScenarioReport) -> int:
    decided = (facts.decision.samples.get(key) for key, _ in planned(scenario))
    return sum(each is not None and each.verdict is Verdict.PASSED for each in decided)


def _sections(facts: Facts, root: str) -> Iterator[Section]:
    if mistakes := facts.decision.author_errors:
        yield Section(_MISTAKES, notes=tuple(one_line_message(text, 1000) for text in mistakes))
    yield from _make(RESULTS, facts)
    yield from failures(facts, root)
    yield from _make(MEASURES, facts)
    if notes := tuple(f"{label}: {text}" for label, text in remarks(facts, most=sys.maxsize)):
        yield Section("Remarks", notes=notes, noun="remark")


def _make(makers: Iterable[Callable[[Facts], Iterator[Section]]], facts: Facts) -> Iterator[Section]:
    for make in makers:
        yield from make(facts)
