"""How the terminal writes a number, a verdict, a list of tools; and text that is not ours."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, groupby, islice

from rich.cells import cell_len, chop_cells
from rich.console import RenderableType
from rich.padding import Padding
from rich.style import Style
from rich.table import Table
from rich.text import Text

from agenteval.core.safe_text import clean, one_line
from agenteval.core.sample_report import Aggregate
from agenteval.core.score import Verdict

NO_VALUE = "–"
"""Where there is no value: nobody measured, or it does not apply."""

NARROW = 60
"""Below so many columns a table keeps only what it cannot do without."""

UNDECIDED_STYLE = "magenta"
"""Yellow and cyan vanish on a light background, blue on a dark one: of the colours these are left, and words
are never told by colour alone."""

_MARKS = {
    Verdict.PASSED: ("✓", "green"),
    Verdict.FAILED: ("✗", "red"),
    Verdict.INCONCLUSIVE: ("?", UNDECIDED_STYLE),
}
_MOST_TOOLS = 20


def mark(verdict: Verdict) -> Text:
    symbol, style = _MARKS[verdict]
    return Text(symbol, style=style)


def style_of(verdict: Verdict) -> str:
    return _MARKS[verdict][1]


def heading(words: str) -> Text:
    return Text(words, style="bold")


def clean_text(text: str, style: str = "") -> Text:
    """Text from outside as a value that rich shows and never reads as markup."""
    return Text(clean(text), style=style)


def clean_line(text: str, limit: int, style: str = "") -> Text:
    return Text(one_line(text, limit), style=style)


def truncate(text: str, width: int, style: str = "") -> Text:
    """Text from outside as one line of at most ``width`` columns."""
    line = Text(one_line(text, 4 * max(1, width)), style=style, no_wrap=True)
    line.truncate(max(1, width), overflow="ellipsis")
    return line


def wrap_lines(text: str, width: int, most: int) -> list[Text]:
    """Text from outside as at most so many lines of that width; the last says by ``…`` that there is more."""
    width = max(8, width)
    lines: list[Text] = []
    rest = one_line(text, 2 * width * most)
    while rest and len(lines) < most - 1:
        head = first_line(rest, width)
        lines.append(Text(head.rstrip(), no_wrap=True))
        rest = rest[len(head) :].lstrip()
    return [*lines, truncate(rest, width)] if rest else lines


def wrap_fully(text: str, width: int, style: str = "") -> list[Text]:
    """Text on as many lines as it takes. They end at blanks: a command or a path can be copied, and is rather
    wider than the screen. A writing without blanks ends where the screen does. YAML stays indented."""
    lines: list[str] = []
    for line in clean(text).split("\n"):
        lines.append(line[: len(line) - len(line.lstrip())])
        for word in chain.from_iterable(_parts(word, width) for word in line.split()):
            begun = bool(lines[-1].strip())
            longer = f"{lines[-1]} {word}" if begun else lines[-1] + word
            if begun and cell_len(longer) > width:
                lines.append(word)
            else:
                lines[-1] = longer
    return [unbroken(line, style) for line in lines]


def _parts(word: str, width: int) -> list[str]:
    is_wide = cell_len(word) > len(word)
    return chop_cells(word, max(2, width)) if is_wide else [word]


def wrap_with_remedy(what: str, remedy: str, width: int, most: int) -> list[Text]:
    """What is said as at most so many lines, and what to do about it in whole."""
    if not remedy:
        return wrap_lines(what, width, most)
    advice = f"— {remedy}"
    lines = wrap_fully(" ".join(filter(None, (*what.split(), advice))), width)
    return lines if len(lines) <= most else [*wrap_lines(what, width, most), *wrap_fully(advice, width)]


def first_line(text: str, width: int) -> str:
    """As much of it as fits, up to the end of a word where one is not too long."""
    if cell_len(text) <= width:
        return text
    fitting = chop_cells(text, width)[0]
    if text[len(fitting) : len(fitting) + 1].isspace():
        return fitting
    head, blank, _ = fitting.rpartition(" ")
    return head + blank if len(head) > width // 3 else fitting


LABEL = 13


def labelled(label: str, text: Text, style: str | Style = "", width: int = LABEL) -> Text:
    """``error rates: an agent that …``; without a label, a further line below it."""
    head = f"{label + ':' if label else '':<{width}}"
    return unbroken(head, style).append(text.plain, style="not dim not bold default")


def right_aligned(left: Text, right: Text, width: int) -> Text:
    """Both on one line of that width, as far apart as there is room; ``left`` is cut where there is none."""
    least = 2
    left.truncate(max(12, width - right.cell_len - least), overflow="ellipsis")
    blanks = max(least, min(width, _READABLE) - left.cell_len - right.cell_len)
    line = Text(no_wrap=True, overflow="ignore")
    return line.append_text(left).append(" " * blanks).append_text(right)


_READABLE = 100
"""In wider terminals, what stands at the right edge is too far from what it belongs to."""


def unbroken(text: str, style: str | Style = "") -> Text:
    """A line to be copied: the terminal may wrap it, we must not. ``text`` must be clean."""
    return Text(text, style=style, no_wrap=True, overflow="ignore")


def percent(value: float | None, *, digits: int = 1) -> str:
    """A share as a percentage. Only a whole share reads 100 %, only an empty one 0 %."""
    if value is None:
        return NO_VALUE
    least = 10**-digits
    points = value * 100
    if 0 < value < 1:
        points = min(max(points, least), 100 - least)
    return f"{points:.{digits}f}%"


def number(value: float | None) -> str:
    """``2.3``, ``51``, ``3,833``: one decimal below a hundred, and none where there is nothing after it."""
    if value is None:
        return NO_VALUE
    if value >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.1f}".removesuffix(".0") if value >= 0.05 else f"{value:.2g}"


def yes_no(rate: Aggregate | None) -> str:
    """``yes`` or ``no`` for one sample, ``2/3`` for several."""
    if rate is None or rate.value is None:
        return NO_VALUE
    successes = round(rate.value * rate.n)
    if rate.n == 1:
        return "yes" if successes else "no"
    return f"{successes}/{rate.n}"


def tools_called(names: Iterable[str]) -> Text:
    """The tools in the order of their calls; neighbours of one name are counted."""
    runs = [(name, sum(1 for _ in same)) for name, same in groupby(names)]
    parts = [
        f"{one_line(name, 40)} ×{times}" if times > 1 else one_line(name, 40)
        for name, times in islice(runs, _MOST_TOOLS)
    ]
    if len(runs) > _MOST_TOOLS:
        parts.append("…")
    return Text(", ".join(parts) or NO_VALUE)


def plain_table(*, show_header: bool = True) -> Table:
    """A table of columns and white space, without lines."""
    return Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", show_header=show_header)


def not_shown(titles: Sequence[str]) -> Text:
    """The columns for which the terminal has no room."""
    return Text(f"too narrow for: {', '.join(titles)}", style="dim")


def indented(what: RenderableType) -> Padding:
    return Padding(what, (0, 0, 0, 2))
