"""Render the samples of a run and their scores as CSV, for spreadsheets and data frames.

A row is a sample, which is also the unit of a verdict, of a cost and of a mean over repeated runs. If each
judgment had a row, the cost and the latency of a conversation would be repeated, so that the sum of a column
would be wrong, and a sample that was never judged would have no row. The JSON report contains the judgments
of each turn.

The columns before the scores are the same for every run, so that runs can be concatenated. A cell is empty,
never 0, if its value is unknown or does not apply. Texts are quoted, unlike numbers and words of the format,
so that a secret in a text can be masked without changing a number."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from io import StringIO
from math import isfinite
from typing import NamedTuple, TypeAlias

from agenteval.core.decision import Decision, SampleDecision
from agenteval.core.safe_text import to_csv_text
from agenteval.core.sample_report import SampleReport, ScenarioReport, means_of_samples, numeric_value
from agenteval.core.scenario import SampleKey
from agenteval.core.score import Score, Severity
from agenteval.core.trajectory import Trajectory, Usage
from agenteval.reporters.options import ReportOptions
from agenteval.reporters.words.failure import NEVER_RAN, planned, reason, sample_violations
from agenteval.reporters.words.score_cells import ScoreColumn, score_columns
from agenteval.verdict.recorded_logs import is_unreadable
from agenteval.verdict.report import Report

Cell: TypeAlias = str | float | StrEnum | None
"""The value of a cell: a text, a number or a truth value, a word of the format (a member of an enumeration),
or ``None`` for an empty cell."""

_LIST = "; "
"""The separator of several texts in a cell. Tags and names of metrics may contain spaces."""


class _PlannedSample(NamedTuple):
    """A planned sample and its verdict."""

    run: str
    scenario: ScenarioReport
    key: SampleKey
    sample: SampleReport | None
    """The sample, or ``None`` if it never ran."""
    decided: SampleDecision


def render(report: Report, decision: Decision, options: ReportOptions) -> str:
    """Render a header, and a row for each planned sample in the order of the JSON report."""
    metrics = score_columns(report)
    text = StringIO()
    text.write(",".join((*COLUMNS, *map(_cell, _score_names(metrics)))) + "\n")
    for scenario in report.scenarios:
        for key, sample in planned(scenario):
            decided = decision.samples.get(key, NEVER_RAN)
            row = _PlannedSample(report.run.run_id, scenario, key, sample, decided)
            text.write(",".join(map(_cell, _values(row, metrics))) + "\n")
    return text.getvalue()


def _values(row: _PlannedSample, metrics: Sequence[ScoreColumn]) -> Iterator[Cell]:
    yield from (value(row) for value in _OF_PLAN.values())
    is_known = row.sample is not None and not is_unreadable(row.sample)
    for name, of_sample in _OF_SAMPLE.items():
        yield of_sample(row.sample) if row.sample and (is_known or name == "stop") else None
    yield from _scores(row.sample, metrics)


def _reason(row: _PlannedSample) -> str:
    return _LIST.join(map(reason, sample_violations(row.sample, row.decided, row.scenario.scenario.source)))


def _where(row: _PlannedSample) -> str:
    return (row.sample.record if row.sample else "") or row.scenario.scenario.source


_OF_PLAN: Mapping[str, Callable[[_PlannedSample], Cell]] = {
    "scenario": lambda row: row.key.scenario,
    "name": lambda row: row.scenario.scenario.name,
    "agent": lambda row: row.key.agent,
    "category": lambda row: row.scenario.scenario.category,
    "tags": lambda row: _LIST.join(row.scenario.scenario.tags),
    "epoch": lambda row: row.key.epoch + 1,
    "variant": lambda row: row.key.variant,
    "verdict": lambda row: row.decided.verdict,
    "fault": lambda row: row.decided.fault,
    "reason": _reason,
    "where": _where,
    "run": lambda row: row.run,
}
"""The columns that every planned sample has."""


def _calls(trajectory: Trajectory) -> int | None:
    """Return the number of calls that were seen. If none was seen although some may have been made, the
    number is unknown."""
    return len(trajectory.tool_calls) or (0 if trajectory.all_calls_seen else None)


def _if_split(usage: Usage, tokens: int) -> int | None:
    """Return the input or output tokens. No answer uses 0 of them, so 0 means that they were not reported."""
    return None if usage.unsplit else tokens or None


def _worst_severity(sample: SampleReport) -> Severity | None:
    severities = (finding.severity for finding in sample.findings)
    return max(severities, key=lambda severity: severity.rank, default=None)


def _estimated(usage: Usage) -> bool | None:
    return None if usage.reported_tokens is None else usage.estimated


_OF_SAMPLE: Mapping[str, Callable[[SampleReport], Cell]] = {
    "stop": lambda sample: sample.stop.reason if sample.stop else None,
    "turns": lambda sample: len(sample.turns),
    "steps": lambda sample: sample.trajectory.steps,
    "tool_calls": lambda sample: _calls(sample.trajectory),
    "latency_ms": lambda sample: sample.trajectory.latency_ms or None,
    "tokens": lambda sample: sample.trajectory.usage.reported_tokens,
    "input_tokens": lambda sample: _if_split(usage := sample.trajectory.usage, usage.input_tokens),
    "output_tokens": lambda sample: _if_split(usage := sample.trajectory.usage, usage.output_tokens),
    "estimated": lambda sample: _estimated(sample.trajectory.usage),
    "cost": lambda sample: sample.trajectory.usage.cost,
    "scripted": lambda sample: sample.scripted,
    "findings": lambda sample: len(sample.findings),
    "severity": _worst_severity,
    "score_failures": lambda sample: _LIST.join(dict.fromkeys(each.metric for each in sample.all_failures)),
    "tool_accuracy": lambda sample: sample.tool_accuracy,
    "output_correct": lambda sample: sample.output_correct,
    "robustness_pass": lambda sample: sample.robustness_pass,
}
"""The columns that are empty for a sample that never ran and, except for ``stop``, for an unreadable record
of a log. Their names are those of the JSON report."""

COLUMNS = (*_OF_PLAN, *_OF_SAMPLE)
"""The columns before the scores."""


# ── scores ───────────────────────────────────────────────────────────────────────────────────────


def _score_names(metrics: Iterable[ScoreColumn]) -> Iterator[str]:
    """Yield the names of the score columns. The prefixes prevent a custom metric from having the name of
    another column."""
    for metric in metrics:
        yield f"score.{metric.name}"
        if metric.is_rate:
            yield f"label.{metric.name}"


def _scores(sample: SampleReport | None, metrics: Iterable[ScoreColumn]) -> Iterator[Cell]:
    """Yield the mean of the sample's scores for each metric, and the label of a metric with labels."""
    means = means_of_samples((sample,)) if sample else {}
    labels = _decisive_labels(sample.all_scores) if sample else {}
    for metric in metrics:
        yield means[metric.name][0] if metric.name in means else None
        if metric.is_rate:
            yield labels.get(metric.name)


def _decisive_labels(scores: Iterable[Score]) -> dict[str, str | None]:
    """Return a label for each metric: the first that reports a failure, otherwise the first that decides
    nothing, otherwise the first."""
    found: dict[str, Score] = {}
    for score in scores:
        if score.metric not in found or _weight(score) > _weight(found[score.metric]):
            found[score.metric] = score
    return {metric: score.label for metric, score in found.items()}


def _weight(score: Score) -> int:
    if score.is_open:
        return 1
    return 0 if numeric_value(score) >= 1 else 2


# ── cells ────────────────────────────────────────────────────────────────────────────────────────


def _cell(value: Cell) -> str:
    """Format a cell. A number that is not finite is unknown."""
    match value:
        case None | "":
            return ""
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value) if isfinite(value) else ""
        case StrEnum():
            return value.value
    text = to_csv_text(value).replace('"', '""')
    return f'"{text}"'
