"""Describe issues in the same words for every format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from agenteval.core.decision import Decision
from agenteval.core.plurals import plural
from agenteval.core.safe_text import one_line
from agenteval.core.sample_report import ScenarioReport
from agenteval.core.scenario import SampleKey
from agenteval.core.score import Finding, Issue, IssueExample, Severity
from agenteval.reporters.words.failure import title, turn_words
from agenteval.reporters.words.judge import is_scripted_model
from agenteval.scoring.findings import get_sample_key
from agenteval.verdict.gates import failing_findings
from agenteval.verdict.report import Report

_EXPLANATION_LIMIT = 600
_TITLE_LIMIT = 160


@dataclass(frozen=True)
class IssueText:
    """An issue formatted for display."""

    issue: Issue
    severity: Severity
    """The effective severity."""
    fails: bool
    """True if any of the issue's findings causes the run to fail."""
    title: str
    extent: str
    explanation: str
    remarks: tuple[str, ...]
    examples: tuple[str, ...]
    """The samples in which the issue occurs, with the turns in which it occurs."""
    quotations: tuple[tuple[str, str], ...]
    """The places where the issue occurs, each with a quotation."""

    @property
    def evidence(self) -> str:
        """The first quotation that is not empty, or an empty string."""
        return next((quoted for _, quoted in self.quotations if quoted), "")

    @property
    def head(self) -> str:
        """The headline, such as ``[high] Gives a forecast without data (3 occurrences in 1 scenario)``."""
        return f"[{self.severity}] {self.title} ({self.extent})"


def issues_text(report: Report, decision: Decision) -> tuple[IssueText, ...]:
    """Return all issues, worst first."""
    failing = failing_findings(report, decision)
    scenarios = {(s.scenario.id, s.agent): s for s in report.scenarios}
    several = report.has_several_agents
    texts = [
        _issue_text(issue, report, scenarios, failing, several_agents=several) for issue in report.issues
    ]
    return tuple(sorted(texts, key=lambda text: -text.severity.rank))


def by_scenario(texts: Iterable[IssueText]) -> dict[tuple[str, str], list[IssueText]]:
    """Group issues by the scenario and agent for which they occur."""
    found: dict[tuple[str, str], list[IssueText]] = {}
    for text in texts:
        for scenario in dict.fromkeys(occurrence.scenario for occurrence in text.issue.occurrences):
            found.setdefault((scenario, text.issue.agent), []).append(text)
    return found


def _issue_text(
    issue: Issue,
    report: Report,
    scenarios: Mapping[tuple[str, str], ScenarioReport],
    failing: Set[tuple[SampleKey, int]],
    *,
    several_agents: bool,
) -> IssueText:
    places = [
        (get_sample_key(occurrence), index)
        for occurrence in issue.occurrences
        for index in occurrence.findings
    ]
    severity = _severity(issue, places, report, scenarios)
    agent = f", agent {one_line(issue.agent, 60)}" if several_agents else ""
    return IssueText(
        issue=issue,
        severity=severity,
        fails=not failing.isdisjoint(places),
        title=one_line(issue.title, _TITLE_LIMIT) or "(untitled)",
        extent=f"{extent_text(issue.findings, issue.samples, issue.scenarios)}{agent}",
        explanation=one_line(issue.explanation, _EXPLANATION_LIMIT),
        remarks=tuple(_remarks(issue, severity)),
        examples=tuple(_examples(issue.examples, scenarios)),
        quotations=tuple(
            (_name(example, scenarios) + turn_words(example.turn), one_line(example.evidence, 200))
            for example in issue.examples
        ),
    )


def _severity(
    issue: Issue,
    places: Sequence[tuple[SampleKey, int]],
    report: Report,
    scenarios: Mapping[tuple[str, str], ScenarioReport],
) -> Severity:
    """Return the effective severity: the worst severity of the issue's findings if a model assigned the
    severities; otherwise, the severity of the issue in the severity table."""
    if report.plan.suite.severity_from != "model":
        return issue.severity
    found: dict[SampleKey, Sequence[Finding]] = {
        sample.key: sample.findings
        for name in {(key.scenario, key.agent) for key, _ in places}
        for sample in scenarios[name].samples
    }
    counted = [found[key][index].severity for key, index in places]
    return max(counted, key=lambda severity: severity.rank, default=issue.severity)


def extent_text(findings: int, samples: int, scenarios: int) -> str:
    """Format the number of occurrences, such as ``2 occurrences in 1 scenario, 9 findings``. A loop that
    spans eight turns of a sample is a single occurrence."""
    text = f"{plural(samples, 'occurrence')} in {plural(scenarios, 'scenario')}"
    return text if findings == samples else f"{text}, {plural(findings, 'finding')}"


def _remarks(issue: Issue, severity: Severity) -> Iterator[str]:
    if severity is not issue.severity:
        yield f"{issue.severity} in the severity table"
    if issue.proposed_severity not in (None, severity):
        yield f"the model proposed {issue.proposed_severity}"
    if issue.not_the_agents_fault:
        why = one_line(issue.not_the_agents_fault, 300).rstrip(".")
        opinion = "informational; severity and verdict are not affected"
        yield f"the model says it is not the agent's fault: {why} ({opinion})"


def grouped_by(issue: Issue) -> str:
    """Return the name of the model that grouped the findings, or ``code`` if no model was used."""
    if not issue.by:
        return "code"
    return one_line(issue.by, 80) + (" (no language model)" if is_scripted_model(issue.by) else "")


def not_asked_text(report: Report) -> str:
    """Return a sentence about the findings that were not sent to the grouping model, or an empty string if
    there are none."""
    count = report.findings_not_asked
    return (
        f"{plural(count, 'finding')} grouped by code alone: only the worst are sent to the model."
        if count
        else ""
    )


def _examples(
    examples: Iterable[IssueExample], scenarios: Mapping[tuple[str, str], ScenarioReport]
) -> Iterator[str]:
    """Yield a line for each sample, such as ``book-morning · epoch 1, turns 2, 5``."""
    places: dict[str, set[int]] = {}
    for example in examples:
        turns = places.setdefault(_name(example, scenarios), set())
        turns |= {example.turn + 1} if example.turn is not None else set()
    for name, turns in places.items():
        numbers = ", ".join(map(str, sorted(turns)))
        yield f"{name}, turn{'s' if len(turns) > 1 else ''} {numbers}" if numbers else name


def _name(example: IssueExample, scenarios: Mapping[tuple[str, str], ScenarioReport]) -> str:
    """Return the display name of the sample. The agent is omitted, because the issue already identifies the
    agent."""
    scenario = scenarios.get((example.scenario, example.agent))
    key = get_sample_key(example)
    return title(scenario, key, several_agents=False) if scenario else one_line(str(key), 200)
