"""Format numbers, verdicts, lists of tools and untrusted text for the terminal."""

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
"""The text shown for a value that was not measured or does not apply."""

NARROW = 60
"""The terminal width, in columns, below which a table shows only the essentials."""

UNDECIDED_STYLE = "magenta"
"""The style of undecided results. Yellow and cyan are hard to see on a light background, and blue is hard to
see on a dark background, so few usable colors remain. Color is never the only cue."""

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
    """Convert untrusted text to a ``Text`` that rich displays literally and never interprets as markup."""
    return Text(clean(text), style=style)


def clean_line(text: str, limit: int, style: str = "") -> Text:
    return Text(one_line(text, limit), style=style)


def truncate(text: str, width: int, style: str = "") -> Text:
    """Truncate untrusted text to one line of at most ``width`` columns."""
    line = Text(one_line(text, 4 * max(1, width)), style=style, no_wrap=True)
    line.truncate(max(1, width), overflow="ellipsis")
    return line


def wrap_lines(text: str, width: int, most: int) -> list[Text]:
    """Wrap untrusted text to at most ``most`` lines. If text is omitted, the last line ends with ``…``."""
    width = max(8, width)
    lines: list[Text] = []
    rest = one_line(text, 2 * width * most)
    while rest and len(lines) < most - 1:
        head = first_line(rest, width)
        lines.append(Text(head.rstrip(), no_wrap=True))
        rest = rest[len(head) :].lstrip()
    return [*lines, truncate(rest, width)] if rest else lines


def wrap_fully(text: str, width: int, style: str = "") -> list[Text]:
    """Wrap text to as many lines as needed. Lines break only at spaces, so that a command or a path can be
    copied even if it is wider than the screen. Text in a script without spaces between words breaks at the
    width. Indentation is preserved, as required for YAML."""
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


def wrap_with_remedy(message: str, remedy: str, width: int, most: int) -> list[Text]:
    """Wrap a message to at most ``most`` lines, and append its complete remedy."""
    if not remedy:
        return wrap_lines(message, width, most)
    advice = f"— {remedy}"
    lines = wrap_fully(" ".join(filter(None, (*message.split(), advice))), width)
    return lines if len(lines) <= most else [*wrap_lines(message, width, most), *wrap_fully(advice, width)]


def first_line(text: str, width: int) -> str:
    """Return the beginning of the text, shortened to fit on a line. The text is cut at the end of a word,
    unless this would leave the line mostly empty."""
    if cell_len(text) <= width:
        return text
    fitting = chop_cells(text, width)[0]
    if text[len(fitting) : len(fitting) + 1].isspace():
        return fitting
    head, blank, _ = fitting.rpartition(" ")
    return head + blank if len(head) > width // 3 else fitting


LABEL = 13


def labelled(label: str, text: Text, style: str | Style = "", width: int = LABEL) -> Text:
    """Return a line with a label, such as ``error rates: an agent that …``, or an indented continuation line
    if the label is empty."""
    head = f"{label + ':' if label else '':<{width}}"
    return unbroken(head, style).append(text.plain, style="not dim not bold default")


def right_aligned(left: Text, right: Text, width: int) -> Text:
    """Place both texts on one line, as far apart as the width allows. ``left`` is truncated if there is not
    enough room."""
    least = 2
    left.truncate(max(12, width - right.cell_len - least), overflow="ellipsis")
    blanks = max(least, min(width, _READABLE) - left.cell_len - right.cell_len)
    line = Text(no_wrap=True, overflow="ignore")
    return line.append_text(left).append(" " * blanks).append_text(right)


_READABLE = 100
"""The maximum width to which a line is padded. In a wider terminal, text at the right edge would be too far
from the rest of the line."""


def unbroken(text: str, style: str | Style = "") -> Text:
    """Return a line that can be copied in full: rich does not wrap it, although the terminal may. ``text``
    must already be clean."""
    return Text(text, style=style, no_wrap=True, overflow="ignore")


def percent(value: float | None, *, digits: int = 1) -> str:
    """Format a fraction as a percentage. Only a value of exactly 1 is shown as 100 %, and only exactly 0 as 0
    %."""
    if value is None:
        return NO_VALUE
    least = 10**-digits
    points = value * 100
    if 0 < value < 1:
        points = min(max(points, least), 100 - least)
    return f"{points:.{digits}f}%"


def number(value: float | None) -> str:
    """Format a number such as ``2.3``, ``51`` or ``3,833``. Numbers below a hundred have one decimal place,
    which is omitted if it is zero."""
    if value is None:
        return NO_VALUE
    if value >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.1f}".removesuffix(".0") if value >= 0.05 else f"{value:.2g}"


def yes_no(rate: Aggregate | None) -> str:
    """Format a rate as ``yes`` or ``no`` for a single sample, or as a share such as ``2/3`` for several
    samples."""
    if rate is None or rate.value is None:
        return NO_VALUE
    successes = round(rate.value * rate.n)
    if rate.n == 1:
        return "yes" if successes else "no"
    return f"{successes}/{rate.n}"


def tools_called(names: Iterable[str]) -> Text:
    """List the called tools in order. Consecutive calls to the same tool are combined into one entry that
    states the number of calls."""
    runs = [(name, sum(1 for _ in same)) for name, same in groupby(names)]
    parts = [
        f"{one_line(name, 40)} ×{times}" if times > 1 else one_line(name, 40)
        for name, times in islice(runs, _MOST_TOOLS)
    ]
    if len(runs) > _MOST_TOOLS:
        parts.append("…")
    return Text(", ".join(parts) or NO_VALUE)


def plain_table(*, show_header: bool = True) -> Table:
    """Create a table whose columns are separated by white space instead of ruled lines."""
    return Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", show_header=show_header)


def not_shown(titles: Sequence[str]) -> Text:
    """Return a note that lists the columns omitted because the terminal is too narrow."""
    return Text(f"too narrow to show: {', '.join(titles)}", style="dim")


def indented(content: RenderableType) -> Padding:
    return Padding(content, (0, 0, 0, 2))
