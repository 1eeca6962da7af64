"""Describe the failures in a log without scenarios, along with their rates, in the same words for every
format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from agenteval.core.decision import Decision, GateRow
from agenteval.core.plurals import plural
from agenteval.core.safe_text import one_line
from agenteval.core.score import Severity, Verdict
from agenteval.verdict.failure_rates import FailureRate, FailureRates, Quotation
from agenteval.verdict.max_rates import MAX_RATE
from agenteval.verdict.recorded_logs import READABLE

HEAD = "What goes wrong"
COLUMNS = ("severity", "what", "found by", "conversations", "rate", "95 % interval")
_NOT_KNOWN = "unknown in {} more"


def rate_cells(row: FailureRate) -> tuple[str, str, str, str, str, str]:
    """Return the cells of a table row for a failure rate, in the order of ``COLUMNS``."""
    low, high = row.interval
    many = f"{row.conversations:,} of {row.of:,}"
    if row.unknown:
        many += f", {_NOT_KNOWN.format(f'{row.unknown:,}')}"
    return (
        severity_text(row),
        one_line(row.label, 80),
        one_line(row.found_by, 80),
        many,
        percentage(row.rate),
        f"{percentage(low)} to {percentage(high)}",
    )


def severity_text(row: FailureRate) -> str:
    """Return the severity, such as ``high``. If the severity differs between conversations, return the number
    of conversations for each severity, such as ``critical 1, medium 20``. Return ``fails`` for an unsatisfied
    check, which has no severity and makes its conversation fail."""
    if not row.severities:
        return "fails"
    if len(row.severities) == 1:
        return str(next(iter(row.severities)))
    return ", ".join(f"{severity} {count:,}" for severity, count in row.severities.items())


def percentage(share: float) -> str:
    """Format a fraction as a percentage with one decimal place. Only a value of exactly 0 is shown as 0 %,
    and only exactly 1 as 100 %."""
    points = 100 * share
    if 0 < share < 1:
        points = min(max(points, 0.1), 99.9)
    return f"{points:.1f} %"


def quotation_place(quotation: Quotation) -> str:
    """Format the location of a quotation, such as ``log.jsonl:6, turn 1``. Turns are counted from 1 for
    display."""
    where = one_line(quotation.where or quotation.key.scenario, 200)
    return where if quotation.turn is None else f"{where}, turn {quotation.turn + 1}"


def quotation_text(quotation: Quotation) -> str:
    """Format a quotation and its explanation, such as ``"Booked!": nothing was booked``."""
    quoted = f'"{one_line(quotation.evidence, 300)}"' if quotation.evidence.strip() else ""
    return ": ".join(filter(None, (quoted, one_line(quotation.explanation, 300))))


def format_rate(row: FailureRate) -> str:
    """Format a failure rate on one line, such as ``high: wrong tool (unknown_tool): 3 of 100, 3.0 % (1.0 % to
    8.5 %)``."""
    severity, what, by, many, rate, interval = rate_cells(row)
    return f"{severity}: {what} ({by}): {many}, {rate} ({interval})"


def unknown_lines(rates: FailureRates) -> Iterator[str]:
    """Yield a line for each kind of record or conversation in the log that could not be fully evaluated."""
    if rates.unreadable:
        yield f"{len(rates.unreadable):,} of {plural(rates.records, 'record')} unreadable"
    if rates.undecided:
        yield f"{plural(rates.undecided, 'conversation')} not decided"
    if rates.unplaced:
        yield f"{plural(rates.unplaced, 'conversation')} not fully seen"


def reported_text(rates: FailureRates, decision: Decision) -> str:
    """Return the text for the last line: the results of ``--max-rate`` and of other gates, followed by a
    summary of the findings."""
    parts = [_max_rate(row) for row in decision.gates if row.name.startswith(MAX_RATE)]
    bad = [row for row in decision.gates if row.verdict is not Verdict.PASSED]
    others = Counter(_other_gate(row) for row in bad if not row.name.startswith(MAX_RATE))
    parts += [f"{text} ({count:,} times)" if count > 1 else text for text, count in others.items()]
    return "; ".join((*parts, _found(rates)))


def _max_rate(row: GateRow) -> str:
    share = percentage(row.value) if isinstance(row.value, float) else "–"
    bound = f"{100 * float(row.bound):g} %"
    words = {Verdict.PASSED: "passed", Verdict.FAILED: "failed", Verdict.INCONCLUSIVE: "was not decided"}
    return f"{row.name} {words[row.verdict]}: {share}, at most {bound}"


def _other_gate(row: GateRow) -> str:
    if row.name == READABLE and isinstance(row.value, float) and isinstance(row.bound, float):
        if row.value <= row.bound:
            return row.basis
        return f"{percentage(row.value)} of the records unreadable, at most {100 * row.bound:g} %"
    return f"{one_line(row.name, 80)} {'failed' if row.verdict is Verdict.FAILED else 'was not decided'}"


def _found(rates: FailureRates) -> str:
    """Summarize the findings, such as ``100 conversations, 2 with empty answer, findings in 4 (3 high, 1
    medium)``."""
    total = plural(rates.conversations, "conversation")
    counts = rates.by_severity
    parts = [f"{row.conversations:,} with {row.label}" for row in rates.rows if not row.severities]
    if counts:
        each = ", ".join(
            f"{counts[severity]:,} {severity}" for severity in reversed(Severity) if severity in counts
        )
        parts.append(f"findings in {sum(counts.values()):,} ({each})")
    return f"{total}, {', '.join(parts) if parts else 'nothing found'}"
