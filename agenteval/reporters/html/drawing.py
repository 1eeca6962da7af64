"""The parts of charts: numbers that can be drawn, axes, texts of a known width, and the figure around a
drawing. A drawing has no colors and no fixed width, because ``charts.css`` styles its classes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import ceil, floor, log10
from typing import NamedTuple
from unicodedata import east_asian_width

from agenteval.core.number_format import format_number
from agenteval.core.plurals import plural
from agenteval.core.safe_text import one_line
from agenteval.reporters.html.markup import Content, Markup, element, join
from agenteval.reporters.words.failure_rates import percentage

WIDTH = 400
"""The width of a drawing, close to that of a phone, so that its text is readable there."""
MOST_ROWS, MOST_TABLE_ROWS, LONGEST_LABEL = 30, 100, 80
UNKNOWN = "–"
_LONGEST_CELL = 200
_HUGE, _TINY, _EQUAL = 1e15, 1e-12, 1e-9
_SIGNS = ((1e12, 1e12, "T"), (1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e5, 1e3, "k"))


class ChartText(NamedTuple):
    """The words around a drawing."""

    prefix: str
    """The beginning of each id, unique in the document."""
    title: str
    sentence: str
    """What there is to see in the chart."""
    noun: str
    """What a row, a value or a point of the chart is, such as ``scenario``."""


class ValueTable(NamedTuple):
    """The table with the values of a chart."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    """The rows, whose first cell is a name. A cell is a text, or markup."""


# ── numbers ──────────────────────────────────────────────────────────────────────────────────────


def drawable(value: float | None) -> float | None:
    """Return the number, or ``None`` if it cannot be drawn because it is unknown, not finite or huge."""
    if value is None or not abs(value) < _HUGE:
        return None
    return 0.0 if abs(value) < _TINY else float(value)


class Reading(NamedTuple):
    """A measured value and its interval, if it has one."""

    value: float
    low: float | None = None
    high: float | None = None

    def drawable(self) -> Reading | None:
        """Return the reading without an interval that cannot be drawn, or ``None`` if it has no value."""
        value, low, high = (drawable(number) for number in self)
        if value is None:
            return None
        return Reading(value) if low is None or high is None else Reading(value, *sorted((low, high)))


@dataclass(frozen=True)
class Axis:
    """What is measured."""

    name: str
    unit: str = ""
    """The unit, such as ``ms``. With ``%``, values are shares between 0 and 1."""
    ends: tuple[float, ...] = ()
    """The values that the axis contains in any case."""

    def text(self, value: float | None) -> str:
        if (known := drawable(value)) is None:
            return UNKNOWN
        return percentage(known) if self.unit == "%" else f"{format_number(known)} {self.unit}".rstrip()

    def interval_text(self, reading: Reading) -> str:
        known = reading.drawable() or reading
        return UNKNOWN if known.low is None else f"{self.text(known.low)} to {self.text(known.high)}"

    def reading_text(self, reading: Reading | None) -> str:
        """Format a value and its interval, such as ``90 ms (80 ms to 95 ms)``."""
        known = reading and reading.drawable()
        if not known:
            return UNKNOWN
        return self.text(known.value) + (f" ({self.interval_text(known)})" if known.low is not None else "")

    def tick_text(self, value: float) -> str:
        """Format a round number with few characters."""
        if self.unit == "%":
            return f"{100 * value:.6g} %"
        _, factor, sign = next((each for each in _SIGNS if abs(value) >= each[0]), (0, 1.0, ""))
        return f"{value / factor:,.6g}{sign}"


class Scale(NamedTuple):
    """The positions of values between ``start`` and ``end``."""

    ticks: tuple[float, ...]
    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


def scale_of(values: Iterable[float], place: tuple[float, float], wanted: int = 5) -> Scale:
    """Return a scale from a round number to a round number that contains all values, with about ``wanted``
    steps of 1, 2 or 5 times a power of ten. ``values`` must be drawable, and must not be empty."""
    known = list(values)
    low, high = min(known), max(known)
    if high - low <= _EQUAL * max(abs(low), abs(high)):
        low, high = min(0.0, 2 * low), max(0.0, 2 * high)
    high = high if high > low else low + 1
    rough = (high - low) / wanted
    power = 10.0 ** floor(log10(rough))
    step = next(step for n in (1, 2, 5, 10) if (step := n * power) >= rough * (1 - _EQUAL))
    first, last = floor(low / step + _EQUAL), ceil(high / step - _EQUAL)
    ticks = tuple(n * step for n in range(first, last + 1))
    return Scale(ticks, ticks[0], ticks[-1], *place)


# ── texts ────────────────────────────────────────────────────────────────────────────────────────


def text_width(text: str) -> float:
    """Estimate the width of a text in a proportional font."""
    return sum(map(_advance, text))


def _advance(char: str) -> float:
    if east_asian_width(char) in "WF" or char in "mMW%@…":
        return 13.5
    return 9.0 if char.isupper() else 4.5 if char in " .,:;'|!ijlft()[]" else 7.3


def fit_text(text: str, room: float) -> str:
    """Truncate a text to a width."""
    line = one_line(text, LONGEST_LABEL)
    if text_width(line) <= room:
        return line
    kept = sum(width <= room - _advance("…") for width in accumulate(map(_advance, line)))
    return f"{line[:kept].rstrip()}…"


# ── elements ─────────────────────────────────────────────────────────────────────────────────────


def number_text(value: float) -> str:
    """Format a coordinate with at most one decimal place."""
    return f"{round(value, 1) + 0.0:g}"


def path(commands: str, name: str, title: str = "") -> Markup:
    """Return a path of the class ``chart-NAME`` with a tooltip, or nothing if there are no commands."""
    tooltip = element("title", one_line(title, 2 * LONGEST_LABEL)) if title else ""
    return element("path", tooltip, d=commands, class_=f"chart-{name}") if commands else Markup()


def label(x: float, y: float, text: str, anchor: str | None = None, name: str | None = None) -> Markup:
    """Return a text whose beginning, ``middle`` or ``end`` is at a place."""
    return element("text", text, x=float(x), y=float(y), text_anchor=anchor, class_=name)


def row(top: float, texts: tuple[str, str, str], link: str | None, *shapes: Content) -> Markup:
    """Return a row of a chart: a label, the text at its end, and the shapes below. The third text is the
    tooltip."""
    end = fit_text(texts[1], WIDTH * 0.6)
    name = label(0, top + 13, fit_text(texts[0], WIDTH - 12 - text_width(end)))
    if link:  # for the mouse only: within an image, a link is no stop for the keyboard; the table has it
        name = element("a", name, href=link, tabindex=-1)
    title = element("title", f"{one_line(texts[0], LONGEST_LABEL)}: {one_line(texts[2], LONGEST_LABEL)}")
    return element("g", title, name, label(WIDTH, top + 13, end, "end"), *shapes)


def x_axis(scale: Scale, axis: Axis, top: float, bottom: float) -> Markup:
    """Return vertical grid lines from ``top`` to ``bottom`` with their numbers and the name of the axis
    below."""
    places = [(scale.at(tick), axis.tick_text(tick)) for tick in scale.ticks]
    widest = max(text_width(text) for _, text in places)
    every = ceil(
        (1.5 * widest + 6) / (places[1][0] - places[0][0])
    )  # more, because those at the edges are moved
    grid = "".join(f"M{number_text(x)} {number_text(top)}V{number_text(bottom)}" for x, _ in places)
    numbers = [
        label(min(max(x, half), WIDTH - half), bottom + 16, text, "middle", "chart-tick")
        for x, text in places[::every]
        if (half := text_width(text) / 2)
    ]
    middle = (scale.start + scale.end) / 2
    name = label(middle, bottom + 33, fit_text(axis.name, WIDTH), "middle", "chart-tick")
    return join(path(grid, "axis"), numbers, name)


def y_axis(scale: Scale, axis: Axis) -> Markup:
    """Return horizontal grid lines with their numbers to the left and the name of the axis above."""
    left = 56
    places = [(scale.at(tick), axis.tick_text(tick)) for tick in scale.ticks]
    grid = "".join(f"M{left} {number_text(y)}H{WIDTH}" for y, _ in places)
    numbers = [label(left - 6, y + 4, text, "end", "chart-tick") for y, text in places]
    return join(path(grid, "axis"), numbers, label(0, 12, fit_text(axis.name, WIDTH), name="chart-tick"))


# ── figure ───────────────────────────────────────────────────────────────────────────────────────


def figure(
    words: ChartText,
    drawing: Content,
    height: float,
    finding: str,
    table: ValueTable,
    notes: Iterable[str] = (),
) -> Markup:
    """Return the figure of a drawing. ``finding`` describes the drawing to those who do not see it."""
    ids = f"{words.prefix}-title", f"{words.prefix}-desc"
    more = len(table.rows) - MOST_TABLE_ROWS
    note = "; ".join(filter(None, (*notes, f"the table has the first {MOST_TABLE_ROWS}" if more > 0 else "")))
    return element(
        "figure",
        element("figcaption", element("strong", words.title), " ", words.sentence),
        element(
            "svg",
            element("title", words.title, id=ids[0]),
            element("desc", finding, id=ids[1]),
            drawing,
            role="img",
            aria_labelledby=" ".join(ids),
            viewBox=f"0 0 {WIDTH} {ceil(height)}",
        ),
        element("p", note, class_="chart-note") if note else "",
        element("details", element("summary", "Figures"), _table(words.title, table)),
        class_="chart",
        id=words.prefix,
    )


def _table(title: str, table: ValueTable) -> Markup:
    heads = (element("th", _cell(column), scope="col") for column in table.columns)
    rows = (
        element("tr", element("th", _cell(first), scope="row"), (element("td", _cell(each)) for each in rest))
        for first, *rest in table.rows[:MOST_TABLE_ROWS]
    )
    return element(
        "table", element("caption", title), element("thead", element("tr", heads)), element("tbody", rows)
    )


def _cell(text: str) -> str:
    return text if isinstance(text, Markup) else one_line(text, _LONGEST_CELL)


def named(text: str, link: str | None) -> str:
    """Return the name in a row of a table, with the link that it has."""
    return element("a", one_line(text, _LONGEST_CELL), href=link) if link else text


def omitted(drawn: int, total: int, noun: str) -> str:
    """State how many of a chart's rows are drawn, or return an empty string if all are."""
    return f"{drawn:,} of {plural(total, noun)} are drawn" if total > drawn else ""


def extremes(noun: str, values: Sequence[tuple[str, float, str]]) -> str:
    """Describe values: their number, and the labels and texts of the lowest and the highest. A value is a
    label, a number and its text."""

    def text(value: tuple[str, float, str]) -> str:
        return f"{one_line(value[0], LONGEST_LABEL)} ({value[2]})"

    high, low = max(values, key=lambda each: each[1]), min(values, key=lambda each: each[1])
    count = plural(len(values), noun)
    if high[1] == low[1]:
        return f"{count}, each {high[2]}." if len(values) > 1 else f"{count}: {text(high)}."
    return f"{count}. Highest: {text(high)}. Lowest: {text(low)}."
