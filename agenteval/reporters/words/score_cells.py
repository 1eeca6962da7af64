"""Format the scores of a scenario as table cells, with the same figures in every format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from agenteval.core.decision import Decision
from agenteval.core.safe_text import one_line
from agenteval.core.sample_report import Aggregate, SampleReport, ScenarioReport
from agenteval.core.score import MetricSpec, Score, ScoreFailure, Verdict
from agenteval.scoring.goals import GOAL
from agenteval.verdict.report import Report

UNCALIBRATED = "uncalibrated: never compared with human judgment"
"""The remark on every judge, because the agreement with human labels (Cohen's kappa) is not measured."""
SCRIPTED = "scripted: no language model was called"
NO_SCORE = "!2: two scores missing because the judge failed or could not decide"
NEITHER_WAY = "not counted (a goal ruled out, withdrawn or not clear)"
NOT_JUDGED = "not judged"
NOT_APPLICABLE = "–"

_SHORT_LIMIT = 16
_MOST_DIGITS = 6
_LABEL_LIMIT = 60

ThresholdVerdicts: TypeAlias = Mapping[tuple[str, str, str], Verdict]
"""The verdict of each threshold, keyed by scenario, agent and metric."""


@dataclass(frozen=True)
class ScoreColumn:
    """A table column for a judged metric."""

    name: str
    short: str
    """The short name, which fits above a column of figures."""
    is_rate: bool
    spec: MetricSpec | None = None
    """The specification of the metric; ``None`` if the run does not specify the metric."""


class ScoreCell(NamedTuple):
    """The scores for a metric in a scenario."""

    text: str
    """The displayed figure: a mean, a share such as ``2/3``, ``–`` if the metric does not apply, or ``not
    judged``. If the text is empty, ``missing`` or ``open`` indicates the reason."""
    scripted: bool = False
    missing: int = 0
    """The number of times that the judge failed or could not reach a decision."""
    open: int = 0
    """The number of answers that count neither as a success nor as a failure."""
    verdict: Verdict | None = None
    """The verdict of the threshold, if there is a threshold for the metric."""


# ── columns ──────────────────────────────────────────────────────────────────────────────────────


def score_columns(report: Report) -> tuple[ScoreColumn, ...]:
    """Return a column for each metric that was requested or judged. Return an empty result if there are no
    such metrics."""
    specs = {spec.name: spec for spec in report.plan.suite.metrics}
    scores = {score.metric: score for sample in report.samples for score in sample.all_scores}
    broken = {failure.metric for sample in report.samples for failure in sample.all_failures}
    judged = {*report.plan.suite.judged, *scores, *(broken & specs.keys())}
    names = [*specs, *sorted(judged - specs.keys())]
    return tuple(_column(name, specs.get(name), scores.get(name)) for name in names if name in judged)


def _column(name: str, spec: MetricSpec | None, score: Score | None) -> ScoreColumn:
    if spec is not None:
        is_rate = spec.kind == "rate"
    else:
        is_rate = name == GOAL or (score is not None and score.value is None)
    short = spec.short if spec and spec.short else shorten_name(name)
    return ScoreColumn(name, short, is_rate, spec)


def shorten_name(name: str) -> str:
    """Shorten a name by omitting the middle of the name, because related metrics often begin with the same
    words."""
    line = one_line(name, 200) or "?"
    half = _SHORT_LIMIT // 2
    return line if len(line) <= _SHORT_LIMIT else f"{line[:half]}…{line[1 - half :]}"


def shortened_names(columns: Sequence[ScoreColumn]) -> tuple[tuple[str, str], ...]:
    """Return the short and full name of each custom metric whose name is too long for a column."""
    pairs = (
        (column.short, one_line(column.name, 80))
        for column in columns
        if not (column.spec and column.spec.short)
    )
    return tuple((short, full) for short, full in pairs if short != full)


def is_scored(cell: ScoreCell) -> bool:
    """Check whether the scores in the cell come from a judge."""
    return cell.text not in (NOT_JUDGED, NOT_APPLICABLE)


def legend(cells: Sequence[ScoreCell]) -> Iterator[str]:
    """Yield an explanation of each symbol that occurs in the cells."""
    signs = (
        (any(map(is_scored, cells)), UNCALIBRATED),
        (any("/" in cell.text for cell in cells), "2/3: turns without a failure, goals reached"),
        (any(cell.verdict and is_scored(cell) for cell in cells), "✓ ✗ ?: threshold"),
        (any(cell.missing for cell in cells), NO_SCORE),
        (any(cell.open for cell in cells), f"~1: {NEITHER_WAY}"),
        (any(cell.scripted for cell in cells), f"ˢ {SCRIPTED}"),
    )
    return (words for is_met, words in signs if is_met)


# ── cells ────────────────────────────────────────────────────────────────────────────────────────


def threshold_marks(decision: Decision) -> ThresholdVerdicts:
    """Return the worst threshold verdict for each combination of scenario, agent and metric."""
    marks: dict[tuple[str, str, str], Verdict] = {}
    for gate in decision.gates:
        if gate.metric:
            key = (gate.scenario, gate.agent, gate.metric)
            marks[key] = Verdict.worst((marks.get(key, Verdict.PASSED), gate.verdict))
    return marks


def scenario_cells(
    scenario: ScenarioReport, columns: Sequence[ScoreColumn], report: Report, marks: ThresholdVerdicts
) -> tuple[ScoreCell, ...]:
    """Return a cell for each column. The scenario's scores are read only once, regardless of the number of
    columns."""
    scripted = {s.metric for sample in scenario.samples for s in sample.all_scores if s.scripted}
    return tuple(
        _cell(scenario, column, report, marks)._replace(scripted=column.name in scripted)
        for column in columns
    )


def _cell(
    scenario: ScenarioReport, column: ScoreColumn, report: Report, marks: ThresholdVerdicts
) -> ScoreCell:
    verdict = marks.get((scenario.scenario.id, scenario.agent, column.name))
    found = scenario.aggregates.get(column.name)
    if found is not None and (found.n or found.missing or found.undecided):
        text = _figure(found, column, threshold_of(scenario, column.name))
        return ScoreCell(text, missing=found.missing, open=sum(found.undecided.values()), verdict=verdict)
    applies = column.name in report.plan.suite.judged and column.name not in scenario.rules.unjudged
    return ScoreCell(NOT_JUDGED if applies or verdict else NOT_APPLICABLE, verdict=verdict)


def threshold_of(scenario: ScenarioReport, metric: str) -> float | None:
    """Return the lowest mean that the scenario accepts for a metric, or ``None`` if the metric has no
    threshold."""
    threshold = scenario.rules.thresholds.get(metric)
    return threshold.rule.at_least if threshold else None


def _figure(found: Aggregate, column: ScoreColumn, bound: float | None) -> str:
    if found.value is None:
        return ""
    if column.is_rate:
        return f"{round(found.value * found.n)}/{found.n}"
    low, high = column.spec.scale if column.spec else (1.0, 5.0)
    return _mean(found.value, bound, digits=1 if high - low > 1 else 2)


def _mean(value: float, bound: float | None, *, digits: int) -> str:
    """Format a mean with enough digits to show whether it is above or below the bound."""
    while digits < _MOST_DIGITS:
        text = f"{value:.{digits}f}"
        if bound is None or (float(text) >= bound) == (value >= bound):
            return text
        digits += 1
    return f"{value:.{digits}f}"


# ── one conversation ─────────────────────────────────────────────────────────────────────────────


class JudgedPlace(NamedTuple):
    """The scores and score failures for a turn or for the whole conversation."""

    turn: int | None
    """The turn, counted from 0; ``None`` for the whole conversation."""
    scores: tuple[Score, ...]
    failures: tuple[ScoreFailure, ...]


def judged_places(sample: SampleReport) -> Iterator[JudgedPlace]:
    """Yield the judged turns in order, followed by the whole conversation. Turns without scores or failures
    are omitted."""
    for index, turn in enumerate(sample.turns):
        if turn.scores or turn.score_failures:
            yield JudgedPlace(index, turn.scores, turn.score_failures)
    if sample.scores or sample.score_failures:
        yield JudgedPlace(None, sample.scores, sample.score_failures)


def score_text(score: Score) -> str:
    """Format a score as a number, such as ``4`` or ``3.5``, or as its label. The label for a goal is its
    outcome. Scripted scores are marked."""
    text = one_line(score.label, _LABEL_LIMIT) if score.label else f"{score.value or 0:g}"
    return f"{text}ˢ" if score.scripted else text


def brief_score(score: Score) -> str:
    """Format a score as ``score_text`` does, but shorten ``no failure`` to ``ok``."""
    return score_text(score.model_copy(update={"label": "ok"}) if score.label == "no failure" else score)


def is_failure_free(score: Score) -> bool:
    """Check whether a score is a label that does not report a failure. Return false for a number and for a
    label that counts neither as a success nor as a failure."""
    return score.value is None and (score.ok or (score.ok is None and score.label == "no failure"))


def is_low(score: Score, column: ScoreColumn | None, bound: float | None) -> bool:
    """Check whether a score is so low that its reason must be shown to the reader: a failing label, a missed
    goal, or a number that is below the threshold or in the lower half of its scale. A label that counts
    neither as a success nor as a failure is not low."""
    if score.value is None:
        return not is_failure_free(score) and not score.is_open
    low, high = column.spec.scale if column and column.spec else (1.0, 5.0)
    if column and column.is_rate:
        return score.value < 1
    return score.value < (low + high) / 2 or (bound is not None and score.value < bound)
