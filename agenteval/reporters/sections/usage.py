"""What each role used, and what it cost."""

from __future__ import annotations

from collections.abc import Iterator

from agenteval.core.trajectory import Usage
from agenteval.reporters.sections.section import Section
from agenteval.reporters.words.facts import Facts
from agenteval.reporters.words.judge import ReplyCounts, replies_by_role
from agenteval.reporters.words.score_cells import SCRIPTED
from agenteval.reporters.words.spending import amount, sum_text, unknown_texts


def usage(facts: Facts) -> Iterator[Section]:
    """A row for each role that used anything."""
    report = facts.report
    used = {role: own for role, own in report.usage.items() if own.is_spent or own.cached_calls}
    if not used:
        return
    replies = replies_by_role(report)
    is_estimated = any(own.estimated for own in used.values())
    notes = ("≈: estimated, since no provider reported it" if is_estimated else "", sum_text(report))
    yield Section(
        "Usage",
        columns=("role", "calls", "input tokens", "of these cached", "output tokens", "cost"),
        rows=tuple(_cells(role, own, replies.get(role, ReplyCounts())) for role, own in used.items()),
        notes=tuple(filter(None, (*notes, *unknown_texts(report)))),
    )


def _cells(role: str, own: Usage, replies: ReplyCounts) -> tuple[str, ...]:
    about = "≈ " if own.estimated else ""
    cost = "price unknown" if own.cost is None else f"{about}{amount(own.cost)} USD"
    if replies.scripted:
        cost = f"{replies.scripted:,} replies scripted" if replies.real else SCRIPTED
    counts = (own.input_tokens, own.cached_tokens, own.output_tokens)
    tokens = tuple(f"{about}{count:,}" for count in counts)
    if own.unsplit:
        tokens = ("not reported", "", f"{about}{own.tokens:,} in and out")
    calls = f"{own.calls:,}" + (f" (and {own.cached_calls:,} cached)" if own.cached_calls else "")
    return role, calls, *tokens, cost
