"""``expect.limits``: upper bounds on the agent's side, of all turns, that which broke included."""

from __future__ import annotations

from agenteval.core.plurals import plural
from agenteval.scoring.checks.rule import Outcome, Rule, Seen


def steps(bound: int, seen: Seen) -> Outcome:
    return _of_calls(sum(len(turn.steps) for turn in seen.all_turns), bound, "steps")


def tool_calls(bound: int, seen: Seen) -> Outcome:
    made = sum(not call.attempted for call in seen.tool_calls)
    return _of_calls(made, bound, "tool calls")


def tokens(bound: int, seen: Seen) -> Outcome:
    """A turn without any token was not counted, and a usage that nobody understood is not a count either: a
    sum within the bound then decides nothing."""
    turns = seen.all_turns
    usages = [turn.usage for turn in turns if turn.steps]
    spent, uncounted = sum(usage.tokens for usage in usages), sum(not usage.tokens for usage in usages)
    unread = sum(bool(turn.unread_usage) for turn in turns)
    found, of = _within(spent, bound, "tokens"), f"of {plural(len(turns), 'turn')} reported"
    remarks = {
        "estimated": any(usage.estimated for usage in usages),
        f"{uncounted} {of} no usage": uncounted,
        f"{unread} {of} usage that cannot be read": unread,
    }
    if notes := "; ".join(note for note, applies in remarks.items() if applies):
        found = found._replace(detail=f"{found.detail} ({notes})")
    return found._replace(passed=None) if found.passed and (uncounted or unread) else found


def latency_ms(bound: float, seen: Seen) -> Outcome:
    """Of a recorded conversation nobody may know how long it took."""
    latency = sum(turn.latency_ms for turn in seen.all_turns)
    if not latency and any(turn.steps for turn in seen.all_turns):
        return Outcome(None, f"no times were recorded; at most {bound:,.10g} ms allowed")
    return _within(latency, bound, "ms")


def _within(value: float, bound: float, unit: str) -> Outcome:
    holds = value <= bound
    return Outcome(holds, f"{value:,.10g} {unit}, at most {bound:,.10g} allowed", is_lasting=not holds)


def _of_calls(count: int, bound: int, unit: str) -> Outcome:
    """A sum within the bound holds because no further call was seen."""
    found = _within(count, bound, unit)
    return found._replace(is_by_absence=bool(found.passed))


LIMITS = (
    Rule("limits.steps", steps),
    Rule("limits.tool_calls", tool_calls),
    Rule("limits.tokens", tokens),
    Rule("limits.latency_ms", latency_ms),
)
