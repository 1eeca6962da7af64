"""List what the agents did after altered user messages (``run --variants``)."""

from __future__ import annotations

from collections.abc import Iterator

from agenteval.core.safe_text import one_line
from agenteval.reporters.sections.section import Cell, Section, StyledText, Tone
from agenteval.reporters.words.facts import Facts
from agenteval.verdict.variant_table import VariantRow, variant_rows

_NUMBERS = ("altered", "same", "different", "not decided")


def message_variants(facts: Facts) -> Iterator[Section]:
    """Yield the table of message variants, or nothing if the run had none."""
    rows = variant_rows(facts.report)
    if not rows:
        return
    several = facts.report.has_several_agents
    yield Section(
        "Variants of messages",
        columns=(*(("agent",) if several else ()), "variant", *_NUMBERS, "share"),
        rows=tuple(_cells(row, several=several) for row in rows),
        notes=tuple(_notes(rows)),
        numbers=_NUMBERS,
        noun="variant",
        named_by=2 if several else 1,
    )


def _cells(row: VariantRow, *, several: bool) -> tuple[Cell, ...]:
    names = (row.agent, row.variant) if several else (row.variant,)
    altered = f"{row.altered}/{row.conversations}"
    different = _count(row.different, Tone.BAD)
    return (
        *(one_line(name, 60) for name in names),
        altered,
        str(row.same),
        different,
        _count(row.undecided, Tone.OPEN),
        _share(row),
    )


def _count(count: int, tone: Tone) -> Cell:
    return StyledText(str(count), tone) if count else ""


def _share(row: VariantRow) -> str:
    if row.share is None:
        return "–"
    low, high = row.interval
    return f"{row.share:.0%} of {row.same + row.different} [{low:.0%}–{high:.0%}]"


def _notes(rows: tuple[VariantRow, ...]) -> Iterator[str]:
    yield "Share: with the calls and end state of a conversation without the alteration; 95% interval"
    if any(row.variant == "empty" for row in rows):
        yield "For empty messages: without a call that writes"
    unaltered = [row.variant for row in rows if row.altered < row.conversations]
    if unaltered:
        yield f"Not altered, which says nothing: some conversations of {', '.join(dict.fromkeys(unaltered))}"
