"""``expect.limits``: upper bounds on the agent's steps, tool calls, tokens and time (latency) across all
turns, including an interrupted turn."""

from __future__ import annotations

from agenteval.core.plurals import plural
from agenteval.scoring.checks.check_rule import CheckInput, CheckOutcome, CheckRule


def check_step_limit(bound: int, seen: CheckInput) -> CheckOutcome:
    return _compare_count(sum(len(turn.steps) for turn in seen.all_turns), bound, "steps")


def check_tool_call_limit(bound: int, seen: CheckInput) -> CheckOutcome:
    count = sum(not call.attempted for call in seen.tool_calls)
    return _compare_count(count, bound, "tool calls")


def check_token_limit(bound: int, seen: CheckInput) -> CheckOutcome:
    """Check the token usage of all turns against the limit.

    The tokens of a turn that reports no usage, or whose usage could not be read, were not counted. A sum
    within the limit is then inconclusive."""
    turns = seen.all_turns
    usages = [turn.usage for turn in turns if turn.steps]
    spent, uncounted = sum(usage.tokens for usage in usages), sum(not usage.tokens for usage in usages)
    unread = sum(bool(turn.unread_usage) for turn in turns)
    found, suffix = _compare(spent, bound, "tokens"), f"of {plural(len(turns), 'turn')} reported"
    remarks = {
        "estimated": any(usage.estimated for usage in usages),
        f"{uncounted} {suffix} no usage": uncounted,
        f"{unread} {suffix} unreadable usage": unread,
    }
    if notes := "; ".join(note for note, applies in remarks.items() if applies):
        found = found._replace(detail=f"{found.detail} ({notes})")
    return found._replace(passed=None) if found.passed and (uncounted or unread) else found


def check_latency_limit(bound: float, seen: CheckInput) -> CheckOutcome:
    """Check the time (latency) of all turns. The check is undecided for a recorded conversation without
    times."""
    latency = sum(turn.latency_ms for turn in seen.all_turns)
    if not latency and any(turn.steps for turn in seen.all_turns):
        return CheckOutcome(None, f"no times were recorded; at most {bound:,.10g} ms allowed")
    return _compare(latency, bound, "ms")


def _compare(value: float, bound: float, unit: str) -> CheckOutcome:
    holds = value <= bound
    return CheckOutcome(holds, f"{value:,.10g} {unit}, at most {bound:,.10g} allowed", is_lasting=not holds)


def _compare_count(count: int, bound: int, unit: str) -> CheckOutcome:
    """Compare a sum with its limit. If the sum is within the limit, the result holds only if no unobserved
    call was made."""
    found = _compare(count, bound, unit)
    return found._replace(is_by_absence=bool(found.passed))


LIMITS = (
    CheckRule("limits.steps", check_step_limit),
    CheckRule("limits.tool_calls", check_tool_call_limit),
    CheckRule("limits.tokens", check_token_limit),
    CheckRule("limits.latency_ms", check_latency_limit),
)
