"""Draw small charts as inline SVG. Each chart is a ``figure`` that also contains a table with its values.

``charts.css`` gives the classes their colors: ``chart`` (the figure), ``chart-note`` (below the drawing),
``chart-axis`` (grid lines), ``chart-tick`` (texts on an axis), ``chart-whisker`` (an interval),
``chart-bound`` (a threshold, a median; ``chart-full`` if it is filled), ``chart-bar``, ``chart-line`` and
``chart-marker`` with ``chart-series-0`` to ``-3``, and the marks ``chart-passed`` (a dot), ``chart-failed``
(a cross), ``chart-open`` (a square) and ``chart-mark`` (a diamond, for what has no verdict).

Numbers that cannot be drawn are omitted from the drawing. A chart without a number is empty markup. Drawings
and tables are bounded, and state what they omit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from math import ceil
from typing import NamedTuple

from agenteval.core.plurals import join_first, plural
from agenteval.core.safe_text import one_line
from agenteval.core.sample_report import p95_is_highest, spread_of
from agenteval.core.score import Verdict
from agenteval.reporters.html.drawing import (
    LONGEST_LABEL,
    MOST_ROWS,
    UNKNOWN,
    WIDTH,
    Axis,
    ChartText,
    Reading,
    Scale,
    ValueTable,
    drawable,
    extremes,
    figure,
    fit_text,
    label,
    named,
    number_text,
    omitted,
    path,
    row,
    scale_of,
    text_width,
    x_axis,
    y_axis,
)
from agenteval.reporters.html.markup import Content, Markup, element, join

_ROW, _BELOW, _TOP, _BOTTOM, _LEFT = 40, 40, 28, 220, 64
"""The height of a row and of the texts below an x axis, and the edges of a plot with two axes."""
_BIN_BOTTOM = 180
_MOST_CELLS, _MOST_LINES, _MOST_RUNS = 500, 4, 18
"""Bounds of a drawing: its epochs, its lines, and the runs if there are more than two lines."""
_LEGEND, _NO_VERDICT, _BOUND = "● passed, ✕ failed, □ not decided", "◆ no verdict", "│ bound"
_MARKS: Mapping[Verdict | None, tuple[str, str]] = {
    None: ("m0-6l6 6-6 6-6-6z", "mark"),
    Verdict.PASSED: ("h0", "passed"),
    Verdict.FAILED: ("m-4-4l8 8m0-8l-8 8", "failed"),
    Verdict.INCONCLUSIVE: ("m-4-4h8v8h-8z", "open"),
}
"""The path of a mark from its center, and its class."""
_MARKERS = ("m-4-4h8v8h-8z", "m0-6l5 9h-10z", "m0-6l6 6-6 6-6-6z", "m0 6l5-9h-10z")
_DASHES = (None, "7 4", "2 4", "9 3 2 3")


# ── rows ─────────────────────────────────────────────────────────────────────────────────────────


class IntervalRow(NamedTuple):
    """A value with its interval."""

    label: str
    reading: Reading
    basis: str = ""
    """What the value is based on, such as ``7 of 10``."""
    verdict: Verdict | None = None
    link: str | None = None
    bound: float | None = None
    """The value that is required."""


class BarRow(NamedTuple):
    """A value that is drawn as a bar, and its text."""

    label: str
    value: float | None
    text: str


class EpochRow(NamedTuple):
    """The outcomes of a scenario in epoch order."""

    label: str
    outcomes: Sequence[Verdict]
    link: str | None = None

    @property
    def is_mixed(self) -> bool:
        return {Verdict.PASSED, Verdict.FAILED} <= {*self.outcomes}

    @property
    def passed(self) -> str:
        return f"{[*self.outcomes].count(Verdict.PASSED):,} of {len(self.outcomes):,} passed"

    def places(self, verdict: Verdict) -> list[int]:
        """Return the epochs with an outcome, counted from 0."""
        return [place for place, outcome in enumerate(self.outcomes) if outcome is verdict]


def interval_chart(words: ChartText, rows: Sequence[IntervalRow], axis: Axis) -> Markup:
    """Draw a row with a mark for each value, a whisker for its interval and a line for its bound, on a common
    axis."""
    known = [(each, reading) for each in rows if (reading := each.reading.drawable())]
    drawn = known[:MOST_ROWS]
    if not drawn:
        return Markup()
    values = _numbers(reading for _, reading in drawn) + _known(each.bound for each, _ in drawn)
    scale, bottom = scale_of([*values, *axis.ends], (8, WIDTH - 8)), _ROW * len(drawn)
    shapes = [
        _interval_row(_ROW * place, each, reading, axis, scale) for place, (each, reading) in enumerate(drawn)
    ]
    has_bound, has_verdict = any(each.bound is not None for each in rows), any(each.verdict for each in rows)
    heads = (words.noun, "value", "interval", "based on", *["bound"] * has_bound, *["verdict"] * has_verdict)
    cells = [
        (
            named(each.label, each.link),
            axis.text(each.reading.value),
            axis.interval_text(each.reading),
            each.basis,
            *[axis.text(each.bound)] * has_bound,
            *[each.verdict or ""] * has_verdict,
        )
        for each in rows
    ]
    notes = (
        _LEGEND if has_verdict else "",
        _NO_VERDICT if has_verdict and not all(each.verdict for each in rows) else "",
        _BOUND if has_bound else "",
        omitted(len(drawn), len(rows), words.noun),
    )
    finding = extremes(words.noun, [(each.label, r.value, axis.text(r.value)) for each, r in known])
    drawing = join(shapes, x_axis(scale, axis, bottom - 4, bottom))
    return figure(words, drawing, bottom + _BELOW, finding, ValueTable(heads, cells), notes)


def _interval_row(top: int, each: IntervalRow, reading: Reading, axis: Axis, scale: Scale) -> Markup:
    y, x, bound = top + 24, number_text(scale.at(reading.value)), drawable(each.bound)
    whisker = ""
    if reading.low is not None and reading.high is not None:
        low, high = number_text(scale.at(reading.low)), number_text(scale.at(reading.high))
        whisker = f"M{low} {y - 4}v8m0-4H{high}m0-4v8"
    basis = f" · {each.basis}" if each.basis else ""
    commands, name = _MARKS[each.verdict]
    return row(
        top,
        (each.label, axis.text(reading.value) + basis, axis.reading_text(reading) + basis),
        each.link,
        path(f"M0 {y}H{WIDTH}", "axis"),
        path(whisker, "whisker"),
        path(f"M{number_text(scale.at(bound))} {y - 8}v16", "bound") if bound is not None else "",
        path(f"M{x} {y}{commands}", name),
    )


def bar_chart(words: ChartText, rows: Sequence[BarRow]) -> Markup:
    """Draw a bar for each value, all beginning at zero."""
    known = [(each, value) for each in rows if (value := drawable(each.value)) is not None]
    drawn = known[:MOST_ROWS]
    if not drawn:
        return Markup()
    scale = scale_of([0.0, *(value for _, value in drawn)], (0, WIDTH))
    zero = number_text(scale.at(0))
    shapes = [
        row(
            _ROW * place,
            (each.label, each.text, each.text),
            None,
            path(f"M{zero} {_ROW * place + 20}H{number_text(scale.at(value))}v11H{zero}z", "bar"),
        )
        for place, (each, value) in enumerate(drawn)
    ]
    finding = extremes(words.noun, [(each.label, value, each.text) for each, value in known])
    table = ValueTable((words.noun, "value"), [(each.label, each.text) for each in rows])
    notes = [omitted(len(drawn), len(rows), words.noun)]
    return figure(words, join(shapes), _ROW * len(drawn), finding, table, notes)


def epoch_grid(words: ChartText, rows: Sequence[EpochRow]) -> Markup:
    """Draw a row for each scenario with several epochs, and in it a mark for the outcome of each epoch. Rows
    with different outcomes come first."""
    repeated = sorted((each for each in rows if len(each.outcomes) > 1), key=lambda each: not each.is_mixed)
    if not repeated:
        return Markup()
    step = min(18, max(11, (WIDTH - 40) // max(len(each.outcomes) for each in repeated)))
    cells = (WIDTH - 40) // step
    drawn = repeated[: min(MOST_ROWS, _MOST_CELLS // min(cells, max(len(e.outcomes) for e in repeated)))]
    shapes = [_epoch_row(_ROW * place, each, step, cells) for place, each in enumerate(drawn)]
    table = [
        (
            named(each.label, each.link),
            each.passed,
            *(_epoch_numbers(each.places(kind)) for kind in (Verdict.FAILED, Verdict.INCONCLUSIVE)),
        )
        for each in repeated
    ]
    heads = (words.noun, "passed", "failed epochs", "epochs not decided")
    mixed = sum(each.is_mixed for each in repeated)
    finding = f"{plural(len(repeated), words.noun)} with several epochs, {mixed:,} with different outcomes."
    notes = (_LEGEND, omitted(len(drawn), len(repeated), words.noun))
    return figure(words, join(shapes), _ROW * len(drawn), finding, ValueTable(heads, table), notes)


def _epoch_row(top: int, each: EpochRow, step: int, cells: int) -> Markup:
    y, more = top + 25, len(each.outcomes) - cells
    marks = [
        path(
            "".join(f"M{6 + step * place} {y}{commands}" for place in each.places(kind) if place < cells),
            name,
        )
        for kind, (commands, name) in _MARKS.items()
        if kind
    ]
    rest = label(WIDTH, y + 4, f"+{more:,}", "end", "chart-tick") if more > 0 else ""
    return row(top, (each.label, each.passed, each.passed), each.link, marks, rest)


def _epoch_numbers(places: Sequence[int]) -> str:
    return join_first([str(place + 1) for place in places], 20) or UNKNOWN


# ── distributions ────────────────────────────────────────────────────────────────────────────────


class _Bin(NamedTuple):
    text: str
    low: float
    high: float
    values: int


def histogram(words: ChartText, values: Sequence[float | None], axis: Axis) -> Markup:
    """Draw how often values occur, with their number, their median and their 95th percentile (the maximum, if
    there are few values)."""
    known = _known(values)
    if not known:
        return Markup()
    spread, (bins, scale) = spread_of(known), _bins(known, axis)
    most = max(each.values for each in bins)
    upper = "maximum" if p95_is_highest(spread.n) else "95th percentile"
    marked = [("median", spread.p50), (upper, spread.p95)]
    shapes = [_pointers([(scale.at(v), _bar_top(_bin_of(v, bins), most)) for _, v in marked])]
    shapes += [_bin_shape(each, most, scale) for each in bins]
    for (name, value), sign, x, anchor in zip(marked, "▼▽", (0, WIDTH), ("start", "end"), strict=True):
        shapes.append(label(x, 13, fit_text(f"{sign} {name} {axis.text(value)}", WIDTH / 2 - 10), anchor))
    below = Axis(f"{fit_text(axis.name, WIDTH - 110)}, n = {spread.n:,}", axis.unit)
    drawing = join(shapes, x_axis(scale, below, _BIN_BOTTOM, _BIN_BOTTOM + 4))
    described = [*marked, ("mean", spread.mean), ("lowest", min(known)), ("highest", max(known))]
    texts = [(name, axis.text(value)) for name, value in described]
    finding = f"{plural(spread.n, words.noun)}: {', '.join(map(' '.join, texts))}."
    table = ValueTable((axis.name, "number"), [*((each.text, f"{each.values:,}") for each in bins), *texts])
    unknown = len(values) - len(known)
    notes = [f"{plural(unknown, words.noun)} without a value"] if unknown else []
    return figure(words, drawing, _BIN_BOTTOM + 4 + _BELOW, finding, table, notes)


def _bins(values: Sequence[float], axis: Axis) -> tuple[list[_Bin], Scale]:
    """Count the values between round numbers, or at round numbers if all values are round (as scores are)."""
    for wanted in (5, 12):
        scale = scale_of([*values, *axis.ends], (0, WIDTH), wanted)
        step = scale.ticks[1] - scale.ticks[0]
        places = [(value - scale.low) / step for value in values]
        if all(abs(place - round(place)) < 1e-6 for place in places):
            counts = Counter(map(round, places))
            half = step / 2
            bins = [_Bin(axis.text(x), x - half, x + half, counts[n]) for n, x in enumerate(scale.ticks)]
            return bins, scale._replace(low=scale.low - half, high=scale.high + half)
    pairs = [*pairwise(scale.ticks)]
    counts = Counter(min(int(place), len(pairs) - 1) for place in places)
    texts = (f"{axis.text(low)} to {axis.text(high)}" for low, high in pairs)
    return [
        _Bin(text, *pair, counts[n]) for n, (text, pair) in enumerate(zip(texts, pairs, strict=True))
    ], scale


def _bin_of(value: float, bins: Sequence[_Bin]) -> int:
    """Return the number of values in the bin of a value."""
    return next((each.values for each in bins[::-1] if each.low <= value), bins[0].values)


def _bar_top(count: int, most: int) -> float:
    return _BIN_BOTTOM - (_BIN_BOTTOM - 66) * count / most


def _bin_shape(each: _Bin, most: int, scale: Scale) -> Markup:
    left, right, top = scale.at(each.low) + 1, scale.at(each.high) - 1, _bar_top(each.values, most)
    commands = f"M{number_text(left)} {_BIN_BOTTOM}V{number_text(top)}H{number_text(right)}V{_BIN_BOTTOM}z"
    count = f"{each.values:,}"
    has_text = each.values and text_width(count) < right - left
    return join(
        path(commands, "bar", f"{each.text}: {count}"),
        label((left + right) / 2, top - 4, count, "middle", "chart-tick") if has_text else "",
    )


def _pointers(places: Sequence[tuple[float, float]]) -> Markup:
    """Draw a full triangle above the bar of the median and an empty one above that of the other value."""
    (x, y), (other_x, other_y) = places
    if other_x - x < 14:
        other_y = min(y, other_y) - 13
    full, empty = (
        f"M{number_text(x)} {number_text(y - 18)}l-5-9h10z" for x, y in ((x, y), (other_x, other_y))
    )
    return join(path(full, "bound chart-full"), path(empty, "bound"))


# ── plots ────────────────────────────────────────────────────────────────────────────────────────


class ScatterPoint(NamedTuple):
    """Two measurements of one thing."""

    label: str
    x: Reading
    y: Reading


_Box = tuple[float, float, float, float]


def scatter(words: ChartText, points: Sequence[ScatterPoint], x: Axis, y: Axis) -> Markup:
    """Draw a point with its label for each pair of values, and whiskers for their intervals."""
    known = [(each.label, a, b) for each in points if (a := each.x.drawable()) and (b := each.y.drawable())]
    drawn = known[:MOST_ROWS]
    if not drawn:
        return Markup()
    across = scale_of([*_numbers(a for _, a, _ in drawn), *x.ends], (_LEFT, WIDTH - 10))
    up = scale_of([*_numbers(b for *_, b in drawn), *y.ends], (_BOTTOM, _TOP))
    taken: list[_Box] = [_box_around(across.at(a.value), up.at(b.value)) for _, a, b in drawn]
    shapes: list[Content] = []
    for name, a, b in drawn:
        at = across.at(a.value), up.at(b.value)
        whiskers = _whisker("M{0} {2}H{1}", across, a, at[1]) + _whisker("M{2} {0}V{1}", up, b, at[0])
        title = f"{name}: {y.reading_text(b)}; {x.reading_text(a)}"
        mark = path(f"M{number_text(at[0])} {number_text(at[1])}{_MARKS[None][0]}", "mark", title)
        shapes += [path(whiskers, "whisker"), mark, _point_label(name, *at, taken)]
    drawing = join(y_axis(up, y), x_axis(across, x, _TOP, _BOTTOM), shapes)
    finding = extremes(
        words.noun, [(name, b.value, f"{y.text(b.value)}, {x.text(a.value)}") for name, a, b in known]
    )
    table = [(each.label, y.reading_text(each.y), x.reading_text(each.x)) for each in points]
    notes = [omitted(len(drawn), len(points), words.noun)]
    height = _BOTTOM + _BELOW
    return figure(words, drawing, height, finding, ValueTable((words.noun, y.name, x.name), table), notes)


def _whisker(commands: str, scale: Scale, reading: Reading, other: float) -> str:
    if reading.low is None or reading.high is None:
        return ""
    return commands.format(*map(number_text, (scale.at(reading.low), scale.at(reading.high), other)))


def _box_around(x: float, y: float) -> _Box:
    return x - 6, y - 6, x + 6, y + 6


def _point_label(name: str, x: float, y: float, taken: list[_Box]) -> Markup:
    """Write a label next to its point where it overlaps nothing. Without such a place, the point only has
    its tooltip."""
    text = fit_text(name, 130)
    width = text_width(text)
    for left, base in (
        (x + 9, y - 5), (x - 9 - width, y - 5), (x + 9, y + 14), (x - 9 - width, y + 14),
        (x - width / 2, y - 10), (x - width / 2, y + 20),
    ):  # fmt: skip
        box = left, base - 11, left + width, base + 3
        is_free = not any(
            box[0] < other[2] and other[0] < box[2] and box[1] < other[3] and other[1] < box[3]
            for other in taken
        )
        if is_free and left >= _LEFT and box[2] <= WIDTH and box[1] >= _TOP - 8 and box[3] <= _BOTTOM:
            taken.append(box)
            return label(left, base, text)
    return Markup()


_Readings = Sequence[Reading | None]


def line_chart(
    words: ChartText, runs: Sequence[tuple[str, str]], lines: Mapping[str, _Readings], axis: Axis
) -> Markup:
    """Draw a line over the runs for each agent. A run has a label and a commit. Runs are in order, the oldest
    first, and ``None`` is a gap. Lines differ in dash and marker, and their names are at their ends."""
    latest = runs[-MOST_ROWS if len(lines) <= 2 else -_MOST_RUNS :]
    known = {name: [r and r.drawable() for r in line[-len(latest) :]] for name, line in lines.items()}
    drawn = dict([(name, line) for name, line in known.items() if any(line)][:_MOST_LINES])
    if not drawn:
        return Markup()
    has_names = len(lines) > 1
    right = WIDTH - 12 - (min(90.0, max(map(text_width, drawn))) if has_names else 20)
    step = (right - _LEFT - 8) / max(1, len(latest) - 1)
    places = [_LEFT + 8 + step * place for place in range(len(latest))]
    values = _numbers(reading for line in drawn.values() for reading in line if reading)
    scale = scale_of([*values, *axis.ends], (_BOTTOM, _TOP))
    shapes: list[Content] = [y_axis(scale, axis), _run_labels(latest, places, step)]
    ends: list[tuple[float, str]] = []
    for series, (name, line) in enumerate(drawn.items()):
        points = [(x, reading) for x, reading in zip(places, line, strict=True)]
        shapes.append(_draw_line(series, points, scale))
        for run, (x, reading) in zip(latest, points, strict=True):
            if reading:
                about = ", ".join(filter(None, (name if has_names else "", *run)))
                commands = f"M{number_text(x)} {number_text(scale.at(reading.value))}{_MARKERS[series]}"
                title = f"{about}: {axis.reading_text(reading)}"
                shapes.append(path(commands, f"marker chart-series-{series}", title))
        ends.append((scale.at([reading.value for reading in line if reading][-1]), name))
    if has_names:
        shapes += [label(right + 12, y + 4, fit_text(name, 90)) for y, name in _apart(ends)]
    table = [
        (run, commit, *(axis.reading_text(line[place]) for line in lines.values()))
        for place, (run, commit) in reversed([*enumerate(runs)])
    ]
    notes = omitted(len(latest), len(runs), "run"), omitted(len(drawn), len(lines), "line")
    finding = " ".join(
        _trend(name, [each.value for each in line if each], axis) for name, line in drawn.items()
    )
    columns = ("run", "commit", *lines)
    return figure(words, join(shapes), _BOTTOM + 44, finding, ValueTable(columns, table), notes)


def _draw_line(series: int, points: Sequence[tuple[float, Reading | None]], scale: Scale) -> Markup:
    """Draw a line, which gaps interrupt, and the whiskers of its points."""
    commands, whiskers, command = "", "", "M"
    for x, reading in points:
        if reading:
            commands += f"{command}{number_text(x)} {number_text(scale.at(reading.value))}"
            whiskers += _whisker("M{2} {0}V{1}", scale, reading, x)
        command = "L" if reading else "M"
    dashes = _DASHES[series]
    line = element("path", d=commands, class_=f"chart-line chart-series-{series}", stroke_dasharray=dashes)
    return join(path(whiskers, "whisker"), line)


def _run_labels(runs: Sequence[tuple[str, str]], places: Sequence[float], step: float) -> Markup:
    """Write the labels of runs and their commits below the plot, always that of the latest run."""
    every = ceil(70 / step) if step else 1
    shown = [*zip(places, runs, strict=True)][::-1][::every]
    return join(
        label(x, _BOTTOM + 18 + 16 * line, fit_text(text, 66), "middle", "chart-tick")
        for x, run in shown
        for line, text in enumerate(run)
    )


def _apart(ends: Iterable[tuple[float, str]]) -> list[tuple[float, str]]:
    """Move labels down until none overlaps the one above."""
    placed: list[tuple[float, str]] = []
    for y, name in sorted(ends):
        placed.append((max(y, placed[-1][0] + 15) if placed else y, name))
    return placed


def _trend(name: str, values: Sequence[float], axis: Axis) -> str:
    first, last = values[0], values[-1]
    change = (
        "unchanged at" if first == last else f"{'up' if last > first else 'down'} from {axis.text(first)} to"
    )
    ends = f"lowest {axis.text(min(values))}, highest {axis.text(max(values))}"
    runs = plural(len(values), "run")
    return f"{one_line(name, LONGEST_LABEL)}: {change} {axis.text(last)} over {runs}, {ends}."


def _numbers(readings: Iterable[Reading]) -> list[float]:
    return [number for reading in readings for number in reading if number is not None]


def _known(values: Iterable[float | None]) -> list[float]:
    return [known for value in values if (known := drawable(value)) is not None]
