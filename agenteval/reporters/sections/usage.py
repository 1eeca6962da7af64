"""Show the token usage and cost of each role."""

from __future__ import annotations

from collections.abc import Iterator

from agenteval.core.trajectory import Usage
from agenteval.reporters.sections.section import Section
from agenteval.reporters.words.facts import Facts
from agenteval.reporters.words.judge import ReplyCounts, replies_by_role
from agenteval.reporters.words.score_cells import SCRIPTED
from agenteval.reporters.words.spending import amount, sum_text, unknown_texts

_NOT_REPORTED = "not reported"


def usage(facts: Facts) -> Iterator[Section]:
    """Yield a table with a row for each role that used tokens or made calls."""
    report = facts.report
    used = {role: spent for role, spent in report.usage.items() if spent.is_spent or spent.cached_calls}
    if not used:
        return
    replies = replies_by_role(report)
    is_estimated = any(spent.estimated for spent in used.values())
    notes = (
        "≈: estimated, because the provider did not report the usage" if is_estimated else "",
        sum_text(report),
    )
    yield Section(
        "Usage",
        columns=("role", "calls", "tokens", "input tokens", "of which cached", "output tokens", "cost"),
        rows=tuple(_cells(role, spent, replies.get(role, ReplyCounts())) for role, spent in used.items()),
        notes=tuple(filter(None, (*notes, *unknown_texts(report)))),
    )


def _cells(role: str, spent: Usage, replies: ReplyCounts) -> tuple[str, ...]:
    about = "≈ " if spent.estimated else ""
    cost = "price unknown" if spent.cost is None else f"{about}{amount(spent.cost)} USD"
    if replies.scripted:
        cost = f"{replies.scripted:,} replies scripted" if replies.real else SCRIPTED
    counts = (spent.input_tokens, spent.cached_tokens, spent.output_tokens)
    tokens = tuple(f"{about}{count:,}" for count in counts)
    if spent.unsplit or spent.reported_tokens is None:
        tokens = (_NOT_REPORTED, "", _NOT_REPORTED)
    total = _NOT_REPORTED if spent.reported_tokens is None else f"{about}{spent.tokens:,}"
    calls = f"{spent.calls:,}" + (f" (and {spent.cached_calls:,} cached)" if spent.cached_calls else "")
    return role, calls, total, *tokens, cost
