"""Render the history of a suite as one HTML file: the runs as charts, and as a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from agenteval.core.safe_text import one_line
from agenteval.files.runs import short_run_id
from agenteval.reporters.html.charts import line_chart
from agenteval.reporters.html.document import View, make_page
from agenteval.reporters.html.drawing import Axis, ChartText, Reading
from agenteval.reporters.html.markup import Markup, element
from agenteval.reporters.html.sections import MARKS, section_to_html
from agenteval.reporters.options import ReportOptions
from agenteval.reporters.sections.history import sections
from agenteval.verdict.history import AgentFigures, HistoryPoint, RunHistory

_STAR = "*: the suite, the judge or a prompt changed; a step at such a run need not be the agent's doing"

_Measure = Callable[[AgentFigures], Reading | None]
"""Returns what an agent's figures contain, or ``None`` if that was not measured."""


def render(history: RunHistory, options: ReportOptions) -> str:
    """Render the history as a page."""
    tables = (section_to_html(section, options.root) for section in sections(history))
    charts = tuple(history_figures(history))
    pictures = [element("div", *charts, class_="charts")] if charts else []
    if charts and any(point.changes for point in history.points):
        pictures.append(element("p", _STAR, class_="caveat"))
    content = (*pictures, *tables)
    title = f"history of {one_line(history.config, 60) or 'the suite'}"
    return make_page(title, _header(history), [View("", "History", content)])


def _header(history: RunHistory) -> Iterator[Markup]:
    latest = history.points[-1]
    sign = next((mark for verdict, mark in MARKS.items() if verdict == latest.verdict), "•")
    word = element("span", f"{sign} {latest.verdict.upper()}", class_=f"verdict {latest.verdict}")
    yield element("h1", word, f" the latest of {len(history.points):,} runs (exit {latest.exit_code})")


def history_figures(history: RunHistory) -> Iterator[Markup]:
    """Yield the charts of a history: one for each number that was measured in at least two runs. Runs are
    labelled with their day and their commit."""
    runs = [(_label(point), _commit(point)) for point in history.points]
    for number, (title, axis, measure) in enumerate(_charts(history)):
        series = {agent: _series(history.points, agent, measure) for agent in history.agents}
        if any(sum(each is not None for each in line) > 1 for line in series.values()):
            sentence = " ".join(_change(agent, line, axis) for agent, line in series.items())
            yield line_chart(ChartText(f"chart-history-{number}", title, sentence, "run"), runs, series, axis)


def _charts(history: RunHistory) -> Iterator[tuple[str, Axis, _Measure]]:
    yield "Pass rate", Axis("pass rate", "%", (0.0, 1.0)), _pass_rate
    means = (mean for point in history.points for agent in point.agents for mean in agent.means)
    for metric in dict.fromkeys(mean.metric for mean in means):
        yield f"Scores for {one_line(metric, 60)}", _score_axis(history, metric), _mean_of(metric)
    yield "Cost of a conversation", Axis("cost in USD", "USD", (0.0,)), _cost
    yield "Latency of a conversation", Axis("median in ms", "ms", (0.0,)), _latency


def _score_axis(history: RunHistory, metric: str) -> Axis:
    """Return an axis that fits the values: from 0 to 1, from 1 to 5, or any other numbers. Whether values up
    to 1 are shares or poor scores is not known here, so they are not called shares."""
    means = [mean for point in history.points for agent in point.agents for mean in agent.means]
    values = [mean.value for mean in means if mean.metric == metric]
    if all(0 <= value <= 1 for value in values):
        return Axis("mean", "", (0.0, 1.0))
    return Axis("mean", "", (1.0, 5.0) if all(1 <= value <= 5 for value in values) else ())


def _pass_rate(figures: AgentFigures) -> Reading | None:
    return None if figures.rate is None else Reading(figures.rate, *figures.interval)


def _mean_of(metric: str) -> _Measure:
    def measure(figures: AgentFigures) -> Reading | None:
        found = (mean.value for mean in figures.means if mean.metric == metric)
        return next((Reading(value) for value in found), None)

    return measure


def _cost(figures: AgentFigures) -> Reading | None:
    return Reading(figures.cost.mean) if figures.cost else None


def _latency(figures: AgentFigures) -> Reading | None:
    return Reading(figures.latency_ms.p50) if figures.latency_ms else None


def _series(points: Sequence[HistoryPoint], agent: str, measure: _Measure) -> list[Reading | None]:
    """Return the measurement of each run, or ``None`` for a run that did not measure the agent or did not
    end."""
    by_run = [{figures.agent: figures for figures in point.agents if point.is_complete} for point in points]
    return [measure(figures[agent]) if agent in figures else None for figures in by_run]


def _label(point: HistoryPoint) -> str:
    return f"{one_line(point.started_at[5:10], 10)} {short_run_id(point.run_id)}"


def _commit(point: HistoryPoint) -> str:
    """Return the short commit. A star marks a run that is not comparable with the one before."""
    return f"{point.commit[:7]}{'+' if point.dirty else ''}{' *' if point.changes else ''}".strip()


def _change(agent: str, line: Sequence[Reading | None], axis: Axis) -> str:
    """Describe the last change of a series, such as ``bot: 90.0 %, 85.0 % in the run before.``"""
    known = [reading for reading in line if reading and reading.drawable()]
    name = one_line(agent, 60)
    if not known:
        return f"{name}: not measured."
    before = f", {axis.text(known[-2].value)} in the run before" if len(known) > 1 else ""
    return f"{name}: {axis.text(known[-1].value)}{before}."
