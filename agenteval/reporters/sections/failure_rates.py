"""List the failures in a log without scenarios, with their rates and quotations."""

from __future__ import annotations

from collections.abc import Iterator

from agenteval.core.plurals import plural
from agenteval.core.safe_text import one_line
from agenteval.reporters.sections.section import Item, Section, StyledText, Tone
from agenteval.reporters.words.facts import Facts
from agenteval.reporters.words.failure_rates import (
    COLUMNS,
    HEAD,
    quotation_place,
    quotation_text,
    rate_cells,
    unknown_lines,
)
from agenteval.verdict.failure_rates import FailureRate


def sections(facts: Facts) -> Iterator[Section]:
    """Yield the section on failure rates, or nothing if the run has scenarios."""
    rates = facts.rates
    if rates:
        nothing = f"No known kind of failure was found in {plural(rates.conversations, 'conversation')}"
        notes = (*([] if rates.rows else [nothing]), *unknown_lines(rates))
        yield Section(
            HEAD,
            columns=COLUMNS,
            rows=tuple(map(rate_cells, rates.rows)),
            notes=(*notes, *map(_quotations, rates.rows)),
            named_by=3,
        )


def _quotations(row: FailureRate) -> Item:
    return Item(
        head=(StyledText(one_line(row.label, 160), Tone.STRONG), f" ({one_line(row.found_by, 160)})"),
        below=tuple(f"{quotation_place(each)}: {quotation_text(each)}" for each in row.quotations),
    )
