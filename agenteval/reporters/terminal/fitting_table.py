"""Provide a terminal table that never breaks a word. If the columns do not fit side by side, each row is
shown on several lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.padding import Padding
from rich.text import Text

from agenteval.reporters.terminal.cells import plain_table

_GAP = 2


class FittingTable:
    """A table with column titles and rows. A column is never narrower than its longest word. If the columns
    do not fit, each row is shown as a block that contains all of its cells. ``head`` is the number of columns
    that identify a row; ``numbers`` contains the titles of right-aligned columns."""

    def __init__(
        self,
        titles: Sequence[str],
        rows: Iterable[Sequence[Text]],
        *,
        head: int = 1,
        numbers: Iterable[str] = (),
    ) -> None:
        self._titles = titles
        self._rows = list(rows)
        self._head = head
        self._numbers = frozenset(numbers)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        widths = self._widths(options.max_width)
        if widths is None:
            for row in self._rows:
                yield from self._below_each_other(row)
            return
        table = plain_table()
        for title, width in zip(self._titles, widths, strict=True):
            justify = "right" if title in self._numbers else "left"
            table.add_column(title, width=width, overflow="fold", justify=justify)  # type: ignore[arg-type]
        for row in self._rows:
            table.add_row(*row)
        yield table

    def _widths(self, room: int) -> list[int] | None:
        """Return the width of each column, shrinking the widest columns first, or ``None`` if words would
        have to be broken."""
        columns = list(zip(*self._rows, strict=True)) or [()] * len(self._titles)
        texts = [
            [title, *(cell.plain for cell in cells)]
            for title, cells in zip(self._titles, columns, strict=True)
        ]
        widths = [max(cell_len(line) for text in column for line in text.split("\n")) for column in texts]
        least = [
            max((cell_len(word) for text in column for word in text.split()), default=0) for column in texts
        ]
        room -= _GAP * (len(widths) - 1)
        while sum(widths) > room:
            wide = [n for n in range(len(widths)) if widths[n] > least[n]]
            if not wide:
                return None
            widths[max(wide, key=widths.__getitem__)] -= 1
        return widths

    def _below_each_other(self, row: Sequence[Text]) -> RenderResult:
        """Yield the name of the row, followed by its remaining cells with their column titles. Empty cells
        are omitted."""
        yield Text(" ").join(cell for cell in row[: self._head] if cell)
        parts = [
            Text(f"{title} ", style="dim").append_text(_plain_style(cell)) if title else cell
            for title, cell in zip(self._titles[self._head :], row[self._head :], strict=True)
            if cell
        ]
        yield Padding(Text(" · ").join(parts), (0, 0, 0, 4))


def _plain_style(cell: Text) -> Text:
    """Return the cell with a style that is not inherited from the preceding text."""
    return Text(cell.plain, style=cell.style or "not dim")
