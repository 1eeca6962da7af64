"""List everything that did not pass, with its reasons."""

from __future__ import annotations

from collections.abc import Iterator

from agenteval.reporters.sections.section import Item, Section, StyledText, Tone
from agenteval.reporters.words.facts import Facts
from agenteval.reporters.words.failure import ReportedFailure, reason_lines
from agenteval.reporters.words.places import shown_places


def failures(facts: Facts, root: str) -> Iterator[Section]:
    """Yield the section on failures, or nothing if everything passed. Tolerated failures come last. Locations
    are relative to ``root``."""
    if found := sort_failures(facts):
        yield Section("Failures", notes=tuple(_item(failure, root) for failure in found), noun="failure")


def sort_failures(facts: Facts) -> list[ReportedFailure]:
    """Return all failures: those that count first, and the worst of them at the top."""
    return sorted(facts.failures, key=lambda failure: (failure.tolerated, -failure.verdict.rank))


def _item(failure: ReportedFailure, root: str) -> Item:
    tolerated = f" ({failure.why_tolerated})" if failure.tolerated else ""
    places = shown_places((failure.where, failure.scenario_report.scenario.row), root)
    return Item(
        head=(StyledText(failure.title, Tone.STRONG), f": {failure.verdict}{tolerated}"),
        below=(f"at {places}", *reason_lines(failure, root), StyledText(failure.repro, Tone.QUIET)),
    )
