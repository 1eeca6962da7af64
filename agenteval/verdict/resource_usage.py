"""The resources that an agent uses in a conversation: time, tokens, steps, calls, money. Pure. An unknown
value is never zero."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from agenteval.core.plan import Plan
from agenteval.core.plurals import plural
from agenteval.core.sample_report import SampleReport
from agenteval.core.scenario import Scenario
from agenteval.verdict.ledger import how_to_price, price_of, price_usage


class Measurement(NamedTuple):
    """A number of one conversation."""

    value: float
    """The number; if ``unknown_reason`` is set, what was seen of it, so that the number is this or more."""
    unknown_reason: str = ""
    """What is missing for it to be known, with a remedy; empty if it is known."""
    is_estimated: bool = False
    """True if it is based on tokens that were counted here."""


Measure = Callable[[SampleReport, Scenario, Plan], Measurement]


def _latency(sample: SampleReport, _scenario: Scenario, _plan: Plan) -> Measurement:
    """Measure the latency. No agent answers at once: a turn that took no time comes from a record without
    times."""
    turns = [turn for turn in sample.trajectory.all_turns if turn.steps]
    reason = "" if turns and all(turn.latency_ms for turn in turns) else "no times were recorded"
    return Measurement(sample.trajectory.latency_ms, reason)


def _tokens(sample: SampleReport, _scenario: Scenario, _plan: Plan) -> Measurement:
    usage = sample.trajectory.usage
    return Measurement(usage.tokens, _usage_gap(sample), usage.estimated)


def _usage_gap(sample: SampleReport) -> str:
    """Explain why the usage is unknown: a turn without any token was not counted, and a usage that cannot be
    read is no count either."""
    turns = [turn for turn in sample.trajectory.all_turns if turn.steps]
    if not turns or any(not turn.usage.tokens for turn in turns):
        return "the agent reported no usage: have it return its token counts"
    if any(turn.unread_usage for turn in turns):
        return "the agent reported usage that cannot be read"
    return ""


def _cost(sample: SampleReport, _scenario: Scenario, plan: Plan) -> Measurement:
    """Measure the cost of the agent alone. The cost of the judges is limited by the budget."""
    agent = sample.key.agent
    usage = price_usage(sample.trajectory.usage, price_of(agent, plan.suite.prices))
    reason = _usage_gap(sample)
    if usage.cost is None and not reason:
        sum_alone = "the agent reported only the sum of its tokens: have it return input and output tokens"
        reason = sum_alone if usage.unsplit else how_to_price(agent)
    return Measurement(usage.cost or 0.0, "" if _is_cost_reported(sample) else reason, usage.estimated)


def _is_cost_reported(sample: SampleReport) -> bool:
    """Check whether the agent itself reported the cost of each of its turns."""
    turns = [turn for turn in sample.trajectory.all_turns if turn.steps]
    return bool(turns) and all(turn.usage.cost is not None for turn in turns)


def _steps(sample: SampleReport, _scenario: Scenario, _plan: Plan) -> Measurement:
    return Measurement(sample.trajectory.steps, _unseen_calls(sample))


def _tool_calls(sample: SampleReport, _scenario: Scenario, _plan: Plan) -> Measurement:
    return Measurement(len(sample.trajectory.tool_calls), _unseen_calls(sample))


def _unseen_calls(sample: SampleReport) -> str:
    """Explain why the calls are unknown: if not all of an agent's calls are seen, any call may have been
    made."""
    return "" if sample.trajectory.all_calls_seen else "not all of the agent's calls are seen"


MEASURES: Mapping[str, Measure] = {
    "latency_ms": _latency,
    "tokens": _tokens,
    "steps": _steps,
    "tool_calls": _tool_calls,
    "cost": _cost,
}
"""The measures by name. ``latency_ms`` is the time from the user's message to the final text, over all turns.
"""

UNITS: Mapping[str, str] = {"latency_ms": " ms", "cost": " USD"}


def known_measure(name: str, sample: SampleReport, scenario: Scenario, plan: Plan) -> float | None:
    """Return a number of a conversation; ``None`` if it is unknown."""
    measurement = MEASURES[name](sample, scenario, plan)
    return None if measurement.unknown_reason else measurement.value


def format_measure(name: str, value: float) -> str:
    """Format as ``1,500 ms``, with a readable number of digits."""
    text = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{text}{UNITS.get(name, '')}"


def describe_unknown(reasons: Mapping[str, int], of: int) -> str:
    """Describe why values are unknown, and in how many conversations."""
    return "; ".join(f"{count:,} of {plural(of, 'conversation')}: {why}" for why, count in reasons.items())
