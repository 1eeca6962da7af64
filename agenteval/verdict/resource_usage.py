"""The resources that an agent uses in a conversation: time (latency), tokens, steps, tool calls, cost. Pure.
An unknown value is never treated as zero."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from agenteval.core.plan import Plan
from agenteval.core.plurals import plural
from agenteval.core.sample_report import SampleReport
from agenteval.core.scenario import Scenario
from agenteval.verdict.ledger import how_to_price, price_of, price_usage


class Measurement(NamedTuple):
    """A number measured in one conversation."""

    value: float
    """The measured number. If ``unknown_reason`` is set, this is a lower bound: the part of the number that
    was observed."""
    unknown_reason: str = ""
    """The reason why the number is unknown, with a remedy; empty if the number is known."""
    is_estimated: bool = False
    """True if the number is based on token counts that agenteval estimated."""


Measure = Callable[[SampleReport, Scenario, Plan], Measurement]


def _latency(sample: SampleReport, _scenario: Scenario, _plan: Plan) -> Measurement:
    """Measure the latency. No agent answers instantly, so a turn that took no time comes from a record
    without timestamps."""
    turns = [turn for turn in sample.trajectory.all_turns if turn.steps]
    reason = "" if turns and all(turn.latency_ms for turn in turns) else "no times were recorded"
    return Measurement(sample.trajectory.latency_ms, reason)


def _tokens(sample: SampleReport, _scenario: Scenario, _plan: Plan) -> Measurement:
    usage = sample.trajectory.usage
    return Measurement(usage.tokens, _usage_gap(sample), usage.estimated)


def _usage_gap(sample: SampleReport) -> str:
    """Explain why the usage is unknown. The usage is unknown if a turn reports zero tokens, which means that
    its tokens were not counted, or if the reported usage cannot be read."""
    turns = [turn for turn in sample.trajectory.all_turns if turn.steps]
    if not turns or any(not turn.usage.tokens for turn in turns):
        return "the agent reported no usage: have it return its token counts"
    if any(turn.unread_usage for turn in turns):
        return "the agent reported unreadable usage"
    return ""


def _cost(sample: SampleReport, _scenario: Scenario, plan: Plan) -> Measurement:
    """Measure the cost of the agent alone. The cost of the judges is limited by the budget."""
    agent = sample.key.agent
    usage = price_usage(sample.trajectory.usage, price_of(agent, plan.suite.prices))
    reason = _usage_gap(sample)
    if usage.cost is None and not reason:
        sum_alone = "the agent reported only its total tokens: have it return input and output tokens"
        reason = sum_alone if usage.unsplit else how_to_price(agent)
    return Measurement(usage.cost or 0.0, "" if _is_cost_reported(sample) else reason, usage.estimated)


def _is_cost_reported(sample: SampleReport) -> bool:
    """Check whether the agent itself reported the cost of each turn."""
    turns = [turn for turn in sample.trajectory.all_turns if turn.steps]
    return bool(turns) and all(turn.usage.cost is not None for turn in turns)


def _steps(sample: SampleReport, _scenario: Scenario, _plan: Plan) -> Measurement:
    return Measurement(sample.trajectory.steps, _unseen_calls(sample))


def _tool_calls(sample: SampleReport, _scenario: Scenario, _plan: Plan) -> Measurement:
    return Measurement(len(sample.trajectory.tool_calls), _unseen_calls(sample))


def _unseen_calls(sample: SampleReport) -> str:
    """Explain why the number of calls is unknown. If some of an agent's calls may not be seen, the agent may
    have made any number of calls."""
    return "" if sample.trajectory.all_calls_seen else "not all of the agent's calls are recorded"


MEASURES: Mapping[str, Measure] = {
    "latency_ms": _latency,
    "tokens": _tokens,
    "steps": _steps,
    "tool_calls": _tool_calls,
    "cost": _cost,
}
"""The measures, keyed by name. ``latency_ms`` is the time from the user's message to the final text, summed
across all turns."""

UNITS: Mapping[str, str] = {"latency_ms": " ms", "cost": " USD"}


def known_measure(name: str, sample: SampleReport, scenario: Scenario, plan: Plan) -> float | None:
    """Return the value of a measure for a conversation, or ``None`` if the value is unknown."""
    measurement = MEASURES[name](sample, scenario, plan)
    return None if measurement.unknown_reason else measurement.value


def format_measure(name: str, value: float) -> str:
    """Format a value with its unit and a readable number of digits, such as ``1,500 ms``."""
    text = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{text}{UNITS.get(name, '')}"


def describe_unknown(reasons: Mapping[str, int], of: int) -> str:
    """Describe why values are unknown, and state the number of affected conversations."""
    return "; ".join(f"{count:,} of {plural(of, 'conversation')}: {why}" for why, count in reasons.items())
