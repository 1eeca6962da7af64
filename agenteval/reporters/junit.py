"""Render the results as JUnit XML, in the structure supported by Jenkins, GitLab, GitHub and CircleCI.

Each test suite represents a scenario file with one agent, and each test case represents a sample. A
``failure`` is a mistake by the agent. An ``error`` is a sample that could not be decided. Planned samples
that never ran are also errors, because a CI system must not count them as passed. ``skipped`` marks undecided
samples that are tolerated. A failed sample that is tolerated by a gate is not reported as a failure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import isfinite
from typing import TypeAlias
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from agenteval.core.decision import Decision
from agenteval.core.safe_text import one_line_message, shorten, shorten_message, to_xml_text
from agenteval.core.sample_report import SampleReport, ScenarioReport
from agenteval.core.score import Score, Verdict
from agenteval.reporters.options import ReportOptions
from agenteval.reporters.sections.gates import format_figures
from agenteval.reporters.words.facts import Facts
from agenteval.reporters.words.failure import (
    ReportedFailure,
    planned,
    reason_lines,
    run_gates,
    title,
)
from agenteval.reporters.words.failure_rates import (
    HEAD,
    format_rate,
    quotation_place,
    quotation_text,
    unknown_lines,
)
from agenteval.reporters.words.issue import IssueText, by_scenario, issues_text
from agenteval.reporters.words.judge import (
    MissingScore,
    classify_missing_score,
    overridden_text,
    scripted_text,
)
from agenteval.reporters.words.places import relative_place, shown_place
from agenteval.reporters.words.score_cells import SCRIPTED
from agenteval.reporters.words.verdict import resolutions
from agenteval.verdict.caveats import format_caveats
from agenteval.verdict.report import Report

_BODY_LIMIT = 20_000
_MOST_ISSUES = 100
_SCORE_NOTES = {False: "uncalibrated", True: f"uncalibrated, {SCRIPTED}"}
_ELEMENTS = {Verdict.FAILED: "failure", Verdict.INCONCLUSIVE: "error"}


def render(report: Report, decision: Decision, options: ReportOptions) -> str:
    """Render the results as a JUnit XML document. Times are in seconds and include only the time spent by the
    agent."""
    facts = Facts(report, decision)
    failed = _by_part(facts.failures)
    several = facts.report.has_several_agents
    texts = by_scenario(issues_text(report, decision))
    caveats = format_caveats(report, decision)
    root = Element("testsuites", name="agenteval")
    for name, scenarios in _suites(report, options, several_agents=several).items():
        suite = SubElement(root, "testsuite", name=_attribute(name))
        of_run = {"run": report.run.run_id, "verdict": decision.verdict_label}
        of_run |= {"with": caveats} if caveats else {}
        of_run |= {f"to_decide.{number}": line for number, line in enumerate(resolutions(decision), 1)}
        _add_properties(suite, of_run | _suite_properties(scenarios, report, texts))
        for scenario in scenarios:
            cases = _cases(scenario, failed, options, several_agents=several)
            suite.extend(list(cases))
    _add_rates(root, facts)
    _add_run_suite(root, decision)
    for suite in root:
        _distinguish(suite)
        _count(suite)
        suite.set("timestamp", _timestamp(report))
    _count(root)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, "unicode") + "\n"


def _by_part(failed: Iterable[ReportedFailure]) -> dict[object, ReportedFailure]:
    """Index the failures of samples by sample, and the failures of a scenario's own rules by (scenario,
    agent)."""
    return {failure.key or (failure.scenario, failure.agent): failure for failure in failed}


def _suites(
    report: Report, options: ReportOptions, *, several_agents: bool
) -> dict[str, list[ScenarioReport]]:
    suites: dict[str, list[ScenarioReport]] = {}
    for scenario in report.scenarios:
        file = relative_place(scenario.scenario.source, options.root)[0] or "scenarios"
        suites.setdefault(f"{file} [{scenario.agent}]" if several_agents else file, []).append(scenario)
    return suites


def _cases(
    scenario: ScenarioReport,
    failed: Mapping[object, ReportedFailure],
    options: ReportOptions,
    *,
    several_agents: bool,
) -> Iterator[Element]:
    """Yield a test case for each sample, and an additional test case if a rule that applies to all samples of
    the scenario did not pass."""
    place = _place(scenario.scenario.source, options.root)
    for key, sample in planned(scenario):
        name = title(scenario, key, several_agents=several_agents)
        record = sample.record if sample else ""
        of_sample = _place(record, options.root) if record else place
        case = _case(name, of_sample, sample.trajectory.latency_ms if sample else 0.0)
        if properties := _note_property(scenario) | (_sample_properties(sample) if sample else {}):
            _add_properties(case, properties)
        if key in failed:
            _add_outcome(case, failed[key], options.root)
        yield case
    rules = failed.get((scenario.scenario.id, scenario.agent))
    if rules is not None:
        case = _case(f"{rules.title} · all samples", place, 0.0)
        _add_outcome(case, rules, options.root)
        yield case


def _place(where: str, root: str) -> dict[str, str]:
    file, line = relative_place(where, root)
    place = {"classname": _class_name(file)}
    place |= {"file": file} if file else {}
    return place | ({"line": str(line)} if line else {})


def _case(name: str, place: Mapping[str, str], latency_ms: float) -> Element:
    attributes = {"name": name, **place, "time": _seconds(latency_ms)}
    return Element(
        "testcase",
        {
            key: to_xml_text(value) if key == "file" else _attribute(value)
            for key, value in attributes.items()
        },
    )


def _class_name(file: str) -> str:
    """Convert ``scenarios/booking.yaml`` to ``scenarios.booking``, because consumers group test cases by the
    parts of the class name."""
    stem = re.sub(r"\.\w+$", "", file)
    return ".".join(part for part in stem.split("/") if part.strip(".")) or "run"


def _seconds(latency_ms: float) -> str:
    return f"{latency_ms / 1000:.3f}" if isfinite(latency_ms) else "0.000"


def _add_outcome(case: Element, failure: ReportedFailure, root: str) -> None:
    text = _body(failure, root)
    attributes = {"message": failure.reasons[0], "type": failure.violations[0].name}
    if failure.tolerated and failure.verdict is Verdict.INCONCLUSIVE:
        SubElement(case, "skipped", message=_attribute(attributes["message"])).text = text
        return
    if failure.tolerated:
        SubElement(case, "system-out").text = f"{failure.verdict}, {failure.why_tolerated}\n{text}"
        return
    element = _ELEMENTS[failure.verdict]
    SubElement(case, element, {key: _attribute(value) for key, value in attributes.items()}).text = text


def _body(failure: ReportedFailure, root: str) -> str:
    row = failure.scenario_report.scenario.row
    lines = [f"row: {shown_place(row, root)}"] if row else []
    lines += [*reason_lines(failure, root), "", f"re-run: {failure.repro}"]
    if transcript := failure.transcript:
        lines += ["", shorten("\n".join(map(str, transcript)), _BODY_LIMIT)]
    return to_xml_text("\n".join(lines))


Issues: TypeAlias = Mapping[tuple[str, str], Sequence[IssueText]]
"""The issues of each scenario, keyed by scenario and agent."""


def _suite_properties(scenarios: Sequence[ScenarioReport], report: Report, texts: Issues) -> dict[str, str]:
    """Return the properties of a test suite: its issues, worst first, a note on scripted replies, and the
    overridden prompts."""
    found = [text for each in scenarios for text in texts.get((each.scenario.id, each.agent), ())]
    found.sort(key=lambda text: -text.severity.rank)
    properties = {f"issue.{text.issue.id}": text.head for text in found[:_MOST_ISSUES]}
    if any(sample.scripted for scenario in scenarios for sample in scenario.samples):
        properties["scripted"] = scripted_text(report)
    if overridden := overridden_text(report):
        properties["prompts"] = overridden
    return properties


def _note_property(scenario: ScenarioReport) -> dict[str, str]:
    """Return the scenario's note as a property, because the format has no element for a description."""
    note = (scenario.scenario.note or "").strip()
    return {"note": note} if note else {}


def _sample_properties(sample: SampleReport) -> dict[str, str]:
    """Return the stop reason and the scores of a sample. A numeric score is averaged across all turns; for
    any other score, the labels are listed. Failed judges and detectors are reported here rather than as
    failures, because the agent is not at fault."""
    properties = {"stop": sample.stop.reason.value if sample.stop else "never finished"}
    scores: dict[str, list[Score]] = {}
    for score in (*sample.scores, *(score for turn in sample.turns for score in turn.scores)):
        scores.setdefault(score.metric, []).append(score)
    properties |= {f"score.{metric}": _figure(metric_scores) for metric, metric_scores in scores.items()}
    properties |= {"scores": _SCORE_NOTES[sample.scripted]} if scores else {}
    for failure in sample.all_failures:
        properties.setdefault(
            f"{_MISSING_SCORE_PROPERTIES[classify_missing_score(failure)]}.{failure.metric}", failure.message
        )
    return properties


_MISSING_SCORE_PROPERTIES = {
    MissingScore.JUDGE: "judge_broke",
    MissingScore.UNCLEAR: "not_clear",
    MissingScore.DETECTOR: "detector_broke",
}


def _figure(scores: Sequence[Score]) -> str:
    values = [score.value for score in scores if score.value is not None]
    if values:
        return f"{sum(values) / len(values):.4g}"
    return ", ".join(dict.fromkeys(score.label or "" for score in scores))


def _add_properties(parent: Element, properties: Mapping[str, str]) -> None:
    element = SubElement(parent, "properties")
    for name, value in properties.items():
        SubElement(element, "property", name=_attribute(name), value=_attribute(value))


def _add_rates(root: Element, facts: Facts) -> None:
    """Add the failure rates of a log without scenarios as properties of a test suite that contains no test
    cases."""
    rates = facts.rates
    if rates is None:
        return
    properties = {"run": facts.report.run.run_id, "verdict": facts.decision.verdict_label}
    for number, row in enumerate(rates.rows[:_MOST_ISSUES], 1):
        quoted = "; ".join(f"{quotation_place(q)}: {quotation_text(q)}" for q in row.quotations)
        properties[f"rate.{number}"] = format_rate(row)
        properties[f"quotations.{number}"] = quoted
    properties |= {f"unknown.{number}": text for number, text in enumerate(unknown_lines(rates), 1)}
    _add_properties(SubElement(root, "testsuite", name=HEAD.lower()), properties)


def _add_run_suite(root: Element, decision: Decision) -> None:
    """Add a test suite for results that do not belong to a scenario: author errors and gates on the whole
    run. If nothing else shows that the run did not pass, the verdict itself is added as a test case, so that
    no consumer counts the run as passed."""
    cases = [_run_case("author error", Verdict.INCONCLUSIVE, text) for text in decision.author_errors]
    for gate in run_gates(decision):
        value, bound = format_figures(gate)
        text = f"{gate.name} is {value}, bound {bound}, over {gate.basis} ({gate.where})"
        cases.append(_run_case(gate.name, gate.verdict, text))
    has_cause = cases or root.find(".//failure") is not None or root.find(".//error") is not None
    if decision.verdict is not Verdict.PASSED and not has_cause:
        text = f"the run is {decision.verdict}, exit code {decision.exit_code}"
        cases.append(_run_case("verdict", decision.verdict, text))
    if cases:
        SubElement(root, "testsuite", name="run").extend(cases)


def _run_case(name: str, verdict: Verdict, text: str) -> Element:
    case = _case(name, {"classname": "run"}, 0.0)
    element = SubElement(case, _ELEMENTS[verdict], message=_attribute(text), type=_attribute(name))
    element.text = to_xml_text(shorten_message(text, _BODY_LIMIT))
    return case


def _distinguish(suite: Element) -> None:
    """Append a number to each repeated test case name, because consumers interpret equal names as reruns."""
    seen: Counter[str] = Counter()
    for case in suite.iter("testcase"):
        name = case.get("name", "")
        seen[name] += 1
        if seen[name] > 1:
            case.set("name", f"{name} ({seen[name]})")


def _count(element: Element) -> None:
    """Set the attributes that consumers sum: the number of tests, failures, errors and skipped tests, and the
    time."""
    cases = list(element.iter("testcase"))
    element.set("tests", str(len(cases)))
    element.set("failures", str(sum(case.find("failure") is not None for case in cases)))
    element.set("errors", str(sum(case.find("error") is not None for case in cases)))
    element.set("skipped", str(sum(case.find("skipped") is not None for case in cases)))
    element.set("time", f"{sum(float(case.get('time', '0')) for case in cases):.3f}")


def _timestamp(report: Report) -> str:
    """Return the start time in UTC without a time zone suffix, as required by the JUnit schemas in use."""
    found = re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", report.run.started_at)
    return found[0] if found else "1970-01-01T00:00:00"


def _attribute(text: str) -> str:
    """Shorten a string to one line for an XML attribute. The result is never empty, because some consumers
    reject an empty name."""
    return to_xml_text(one_line_message(text, 300)) or "-"
