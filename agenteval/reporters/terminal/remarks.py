"""Show remarks in a terminal, each with a label, so that a passing verdict is never shown without them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.console import RenderableType
from rich.text import Text

from agenteval.core.errors import split_remedy
from agenteval.core.safe_text import one_line
from agenteval.reporters.options import ReportOptions
from agenteval.reporters.sections import remarks as sections
from agenteval.reporters.sections.accepted import accept_list_entries
from agenteval.reporters.sections.remarks import Remark
from agenteval.reporters.terminal.cells import (
    LABEL,
    UNDECIDED_STYLE,
    heading,
    labelled,
    unbroken,
    wrap_fully,
    wrap_with_remedy,
)
from agenteval.reporters.words.facts import Facts

_LINES = 3
_QUOTING = ("errored", "no score")
"""The labels of remarks that quote text from outside agenteval. These remarks may be truncated if only a few
remarks are shown. The text of all other remarks is written by agenteval."""
_STYLES = {
    "error": "red",
    "warning": UNDECIDED_STYLE,
    "info": "dim",
    "accepted": UNDECIDED_STYLE,
    "no score": UNDECIDED_STYLE,
}


def remarks(facts: Facts, options: ReportOptions) -> Iterator[RenderableType]:
    """Yield the remarks that a reader of the verdict needs to know, in short form."""
    lines = list(_lines(sections.remarks(facts), options.width, LABEL))
    yield from lines
    if lines:
        yield Text()


def notes(facts: Facts, options: ReportOptions) -> Iterator[RenderableType]:
    """Yield all notices and the usage, followed by the path of the journal."""
    entries = list(sections.notes(facts))
    indent = max((len(remark.label) for remark in entries), default=0) + 3
    yield from _lines(entries, options.width, indent)
    if options.journal:
        yield unbroken(f"journal: {one_line(options.journal, 1000)}")


def author_errors(facts: Facts, options: ReportOptions) -> Iterator[RenderableType]:
    """Yield the author errors in full, because no other results are available until they are corrected."""
    errors = facts.decision.author_errors
    yield from _lines((Remark("error", error) for error in errors), options.width, LABEL)
    if errors:
        yield Text()


def _lines(entries: Iterable[Remark], width: int, indent: int) -> Iterator[Text]:
    # Every line is indented, so that quoted text cannot imitate a line of agenteval.
    room = width - indent
    for label, text in entries:
        lines = (
            wrap_with_remedy(*split_remedy(text), room, _LINES)
            if label in _QUOTING
            else wrap_fully(text, room)
        )
        for number, line in enumerate(lines):
            yield labelled("" if number else label, line, _STYLES.get(label, ""), indent)


def accept_list(facts: Facts, options: ReportOptions) -> Iterator[RenderableType]:
    """Yield the accept-list entries that would accept the failures in this run."""
    entries = accept_list_entries(facts.report, facts.decision)
    if entries:
        yield heading("To accept a failure temporarily, add its entry to the accept list")
        yield from (unbroken(f"    {line}") for line in entries.split("\n"))
        yield Text()
