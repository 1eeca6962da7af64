"""What judges said of a scenario as the cells of a table: the same figures in every format."""

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

UNCALIBRATED = "uncalibrated: never compared with human judgement"
SCRIPTED = "scripted: no language model was called"
NO_SCORE = "!2: two scores missing because the judge failed or could not decide"
NEITHER_WAY = "counts neither way (a goal ruled out, withdrawn or not clear)"
NOT_JUDGED = "not judged"
NOT_APPLICABLE = "–"

_SHORT_LIMIT = 16
_MOST_DIGITS = 6
_LABEL_LIMIT = 60

ThresholdVerdicts: TypeAlias = Mapping[tuple[str, str, str], Verdict]
"""The verdicts of thresholds by scenario, agent and metric."""


@dataclass(frozen=True)
class ScoreColumn:
    """A judged metric. ``short`` fits over a column of figures; ``spec`` is ``None`` for a metric that
    the run did not announce."""

    name: str
    short: str
    is_rate: bool
    spec: MetricSpec | None = None


class ScoreCell(NamedTuple):
    """What is known of a metric in a scenario. ``text``: a mean, a share as ``2/3``, ``–`` where the
    metric does not apply, ``not judged``, or nothing (``missing`` or ``open`` tells why). ``missing``: how
    often the judge failed; ``open``: how often its answer counts neither way. ``verdict``: of the threshold,
    if one holds there."""

    text: str
    scripted: bool = False
    missing: int = 0
    open: int = 0
    verdict: Verdict | None = None


# ── columns ──────────────────────────────────────────────────────────────────────────────────────


def score_columns(report: Report) -> tuple[ScoreColumn, ...]:
    """The metrics that were asked for or judged; none where nothing was to be judged."""
    known = {spec.name: spec for spec in report.plan.suite.metrics}
    scores = {score.metric: score for sample in report.samples for score in sample.all_scores}
    broken = {failure.metric for sample in report.samples for failure in sample.all_failures}
    asked = {*report.plan.suite.judged, *scores, *(broken & known.keys())}
    names = [*known, *sorted(asked - known.keys())]
    return tuple(_column(name, known.get(name), scores.get(name)) for name in names if name in asked)


def _column(name: str, spec: MetricSpec | None, score: Score | None) -> ScoreColumn:
    if spec is not None:
        is_rate = spec.kind == "rate"
    else:
        is_rate = name == GOAL or (score is not None and score.value is None)
    short = spec.short if spec and spec.short else _shortened(name)
    return ScoreColumn(name, short, is_rate, spec)


def _shortened(name: str) -> str:
    """Cut in the middle: the names of metrics that belong together often begin alike."""
    line = one_line(name, 200) or "?"
    half = _SHORT_LIMIT // 2
    return line if len(line) <= _SHORT_LIMIT else f"{line[:half]}…{line[1 - half :]}"


def shortened_names(columns: Sequence[ScoreColumn]) -> tuple[tuple[str, str], ...]:
    """The short and the whole name of custom metrics whose name is too long for a column."""
    pairs = (
        (column.short, one_line(column.name, 80))
        for column in columns
        if not (column.spec and column.spec.short)
    )
    return tuple((short, whole) for short, whole in pairs if short != whole)


def is_scored(cell: ScoreCell) -> bool:
    """Whether a judge was asked at all."""
    return cell.text not in (NOT_JUDGED, NOT_APPLICABLE)


def legend(cells: Sequence[ScoreCell]) -> Iterator[str]:
    """What the signs in the cells mean; nothing of those that are in none."""
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
    """The worst verdict on each metric of each scenario × agent."""
    marks: dict[tuple[str, str, str], Verdict] = {}
    for gate in decision.gates:
        if gate.metric:
            key = (gate.scenario, gate.agent, gate.metric)
            marks[key] = Verdict.worst((marks.get(key, Verdict.PASSED), gate.verdict))
    return marks


def scenario_cells(
    scenario: ScenarioReport, columns: Sequence[ScoreColumn], report: Report, marks: ThresholdVerdicts
) -> tuple[ScoreCell, ...]:
    """A cell for each column. The scores of a scenario are walked once, however many columns."""
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
    """The least mean of a metric in a scenario, if one is written."""
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
    """With as many digits as it takes to see on which side of the bound it is."""
    while digits < _MOST_DIGITS:
        text = f"{value:.{digits}f}"
        if bound is None or (float(text) >= bound) == (value >= bound):
            return text
        digits += 1
    return f"{value:.{digits}f}"


# ── one conversation ─────────────────────────────────────────────────────────────────────────────


class JudgedPlace(NamedTuple):
    """What judges said of a turn (from 0), or of the whole conversation (``None``)."""

    turn: int | None
    scores: tuple[Score, ...]
    failures: tuple[ScoreFailure, ...]


def judged_places(sample: SampleReport) -> Iterator[JudgedPlace]:
    """Turn by turn, the whole last; only where something was said."""
    for index, turn in enumerate(sample.turns):
        if turn.scores or turn.score_failures:
            yield JudgedPlace(index, turn.scores, turn.score_failures)
    if sample.scores or sample.score_failures:
        yield JudgedPlace(None, sample.scores, sample.score_failures)


def score_text(score: Score) -> str:
    """``4``, ``3.5`` or the label (of a goal: its outcome); scripted ones are marked."""
    text = one_line(score.label, _LABEL_LIMIT) if score.label else f"{score.value or 0:g}"
    return f"{text}ˢ" if score.scripted else text


def brief_score(score: Score) -> str:
    """As ``score_text``, with ``ok`` for ``no failure``."""
    return score_text(score.model_copy(update={"label": "ok"}) if score.label == "no failure" else score)


def is_failure_free(score: Score) -> bool:
    """Whether it is a label that is not a failure. A number is never one, nor is what counts neither way."""
    return score.value is None and (score.ok or (score.ok is None and score.label == "no failure"))


def is_low(score: Score, column: ScoreColumn | None, bound: float | None) -> bool:
    """Whether a reader will want to know why: a failing label, a goal missed, a number below the
    threshold or in the lower half of its scale."""
    if score.value is None:
        return not is_failure_free(score)
    low, high = column.spec.scale if column and column.spec else (1.0, 5.0)
    if column and column.is_rate:
        return score.value < 1
    return score.value < (low + high) / 2 or (bound is not None and score.value < bound)
