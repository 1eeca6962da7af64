"""Build the sections for the history of a suite: its latest runs, one below the other."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import pairwise

from agenteval.core.plurals import join_first, plural
from agenteval.core.safe_text import one_line
from agenteval.core.sample_report import Spread, p95_is_highest
from agenteval.core.score import Verdict
from agenteval.files.runs import short_run_id
from agenteval.reporters.sections.gates import NO_FIGURE
from agenteval.reporters.sections.section import Cell, Item, Section, StyledText, Tone
from agenteval.reporters.words.failure_rates import percentage
from agenteval.reporters.words.score_cells import SCRIPTED, UNCALIBRATED, shorten_name
from agenteval.reporters.words.spending import amount
from agenteval.verdict.history import AgentFigures, HistoryPoint, RunHistory

_MOST_NAMED = 3
_N = "(8): the number of conversations with a score, if it is not that of the decided conversations"
_VERDICTS = {verdict.value: verdict for verdict in Verdict}


def sections(history: RunHistory) -> Iterator[Section]:
    """Yield a table with a row for each run and agent, oldest first, and a table with the mean scores. The
    score table is omitted if nothing was judged."""
    yield Section(
        _title(history),
        columns=("", "run", *_agent_column(history), *_FIGURES),
        rows=tuple(
            (_mark(point, figures), *_name(history, point, figures), *_figure_cells(history, point, figures))
            for point in history.points
            for figures in point.agents
        ),
        notes=tuple(_notes(history)),
        numbers=_NUMBERS,
        noun="run",
        named_by=2 + len(_agent_column(history)),
    )
    yield from _scores(history)


_FIGURES = ("started (UTC)", "commit", "passed", "pass rate", "95 %", "latency ms", "cost USD", "")
_NUMBERS = ("passed", "pass rate", "latency ms", "cost USD")


def _title(history: RunHistory) -> str:
    of = f" of {one_line(history.config, 60)}" if history.config else ""
    profile = f", profile {one_line(history.profile, 60)}" if history.profile else ""
    return f"History: {plural(len(history.points), 'run')}{of}{profile}"


def _agent_column(history: RunHistory) -> tuple[str, ...]:
    return ("agent",) if len(history.agents) > 1 else ()


def _is_first(point: HistoryPoint, figures: AgentFigures) -> bool:
    """Check whether the row is the first row of its run, which contains the facts about the entire run."""
    return figures is point.agents[0]


def _mark(point: HistoryPoint, figures: AgentFigures) -> Cell:
    return _VERDICTS.get(point.verdict, "") if _is_first(point, figures) else ""


def _name(history: RunHistory, point: HistoryPoint, figures: AgentFigures) -> tuple[Cell, ...]:
    run = one_line(short_run_id(point.run_id), 40) if _is_first(point, figures) else ""
    return (run, one_line(figures.agent, 30)) if _agent_column(history) else (run,)


def _figure_cells(history: RunHistory, point: HistoryPoint, figures: AgentFigures) -> tuple[Cell, ...]:
    is_first = _is_first(point, figures)
    rate, (low, high) = figures.rate, figures.interval
    return (
        _time(point.started_at) if is_first else "",
        _commit(point) if is_first else "",
        f"{figures.passed:,}/{figures.scenarios:,}",
        NO_FIGURE if rate is None else percentage(rate),
        NO_FIGURE if rate is None else f"{low * 100:.1f} to {high * 100:.1f}",
        _latency(figures.latency_ms),
        _cost(point) if is_first else "",
        StyledText(", ".join(_remarks(history, point, figures)), Tone.OPEN),
    )


def _time(started_at: str) -> str:
    try:
        return f"{datetime.fromisoformat(started_at).astimezone(UTC):%Y-%m-%d %H:%M}"
    except ValueError:
        return NO_FIGURE


def _commit(point: HistoryPoint) -> str:
    """Format the beginning of the commit. A plus sign indicates that files had been changed since."""
    return f"{point.commit[:8]}{'+' if point.dirty else ''}" if point.commit else NO_FIGURE


def _latency(spread: Spread | None) -> str:
    """Format the mean and the 95th percentile (p95). With only a few conversations, p95 is the maximum."""
    if spread is None:
        return NO_FIGURE
    return f"{spread.mean:,.0f} ({'max' if p95_is_highest(spread.n) else 'p95'} {spread.p95:,.0f})"


def _cost(point: HistoryPoint) -> str:
    if point.cost is None:
        return NO_FIGURE
    return f"{'≈' if point.estimated and point.cost else ''}{amount(point.cost)}"


def _remarks(history: RunHistory, point: HistoryPoint, figures: AgentFigures) -> Iterator[str]:
    if figures.inconclusive:
        yield f"{figures.inconclusive:,} undecided"
    if not _is_first(point, figures):
        return
    if point.changes:
        yield "changed"
    if not point.is_complete:
        yield f"incomplete ({one_line(point.outcome or 'cut off', 40)})"
    if point.exit_code == 2:
        yield "author error"
    if point.scripted and not all(each.scripted for each in history.points):
        yield "scripted"


def _notes(history: RunHistory) -> Iterator[str | StyledText | Item]:
    for before, after in pairwise(history.points):
        if after.changes:
            first, second = (one_line(short_run_id(point.run_id), 40) for point in (before, after))
            head = f"changed between {first} (first) and {second} (second); a step there need not be the"
            lines = tuple(StyledText(one_line(text, 300), Tone.QUIET) for text in after.changes)
            yield Item((StyledText(f"{head} agent's doing:", Tone.OPEN),), lines)
    if any(point.scripted for point in history.points):
        yield f"{SCRIPTED}; fixed replies measure nothing"
    if any(point.dirty for point in history.points):
        yield StyledText("+: files had been changed since the commit", Tone.QUIET)
    if len(history.points) > 1:
        yield StyledText("`agenteval diff A B` decides whether a difference is more than chance", Tone.QUIET)
    for line in left_out_lines(history):
        yield StyledText(f"left out: {line}", Tone.OPEN)
    if history.older:
        older = f"{plural(history.older, 'older run')} not read; --history N reads more"
        yield StyledText(older, Tone.QUIET)


def left_out_lines(history: RunHistory) -> Iterator[str]:
    """Yield the number of runs that are left out for each reason, with the reason."""
    for each in history.left_out:
        details = join_first([one_line(text, 300) for text in each.details], _MOST_NAMED)
        count = f"{plural(len(each.run_ids), 'run')}: {each.reason}"
        yield f"{count} ({details})" if details else count


# ── scores ───────────────────────────────────────────────────────────────────────────────────────


def _scores(history: RunHistory) -> Iterator[Section]:
    shorts = {
        mean.metric: mean.short or shorten_name(mean.metric)
        for point in history.points
        for figures in point.agents
        for mean in figures.means
    }
    if not shorts:
        return
    yield Section(
        "Mean scores",
        columns=("run", *_agent_column(history), *shorts.values()),
        rows=tuple(
            (*_name(history, point, figures), *_score_cells(figures, shorts))
            for point in history.points
            for figures in point.agents
        ),
        notes=(StyledText(UNCALIBRATED, Tone.QUIET), StyledText(_N, Tone.QUIET)),
        numbers=tuple(shorts.values()),
        noun="run",
        named_by=1 + len(_agent_column(history)),
    )


def _score_cells(figures: AgentFigures, metrics: dict[str, str]) -> Iterator[str]:
    means = {mean.metric: mean for mean in figures.means}
    for metric in metrics:
        mean = means.get(metric)
        if mean is None:
            yield NO_FIGURE
        else:
            yield f"{mean.value:.2f}" + ("" if mean.n == figures.tally.decided else f" ({mean.n:,})")
