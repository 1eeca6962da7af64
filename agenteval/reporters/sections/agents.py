"""Compare the agents of a run with each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agenteval.core.plurals import join_first, join_names, plural
from agenteval.core.safe_text import one_line
from agenteval.core.score import Verdict
from agenteval.reporters.sections.comparison import points
from agenteval.reporters.sections.section import Cell, Section
from agenteval.reporters.words.facts import Facts
from agenteval.verdict.reference_comparison import (
    ComparedAgent,
    ComparedNumber,
    ReferenceComparison,
    ReferenceVerdict,
    compare_with_reference,
)
from agenteval.verdict.resource_usage import UNITS, format_measure

_MOST_NAMED = 5
_LESS_IS = {
    "cost per success": ("costs less for each success", "costs more for each success"),
    "cost": ("is cheaper", "is more expensive"),
    "latency_ms": ("is faster", "is slower"),
    "tokens": ("uses fewer tokens", "uses more tokens"),
    "steps": ("takes fewer steps", "takes more steps"),
    "tool_calls": ("makes fewer tool calls", "makes more tool calls"),
}


def sections(facts: Facts) -> Iterator[Section]:
    """Yield the comparison of the agents, or nothing if the run has only one agent."""
    comparison = compare_with_reference(facts.report, facts.decision)
    if comparison:
        yield Section(
            "Agents compared",
            columns=("", "agent", "", one_line(comparison.reference, 30), "this agent", "change", "95 %"),
            rows=tuple(_rows(comparison)),
            notes=tuple(_sentences(comparison)),
            named_by=3,
        )


def _rows(comparison: ReferenceComparison) -> Iterator[tuple[Cell, ...]]:
    """Yield the rows of the table. Each row begins with a symbol that shows whether the agent is better or
    worse than the reference agent."""
    for agent in comparison.agents:
        change = "–" if agent.change is None else points(agent.change)
        interval = f"{points(agent.low)} to {points(agent.high)}"
        yield (
            _sign(agent.reference_verdict, good=ReferenceVerdict.MORE),
            one_line(agent.agent, 30),
            "success",
            _rate(agent.reference),
            _rate(agent.success),
            change,
            interval,
        )
        for number in agent.numbers:
            yield _sign(number.reference_verdict, good=ReferenceVerdict.LESS), "", *_cells(number)


def _sign(verdict: ReferenceVerdict, *, good: ReferenceVerdict) -> Cell:
    if verdict is ReferenceVerdict.INDISTINGUISHABLE:
        return ""
    return Verdict.PASSED if verdict is good else Verdict.FAILED


def _rate(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}".replace("%", " %")


def _cells(number: ComparedNumber) -> tuple[str, ...]:
    unit = "cost" if number.name.startswith("cost") else number.name
    bounds = "–"
    if number.low is not None and number.high is not None:
        bounds = f"× {number.low:.2g} to {number.high:.2g}"
    return (
        number.name.removesuffix("_ms") if unit in UNITS else number.name,
        format_measure(unit, number.reference),
        format_measure(unit, number.value),
        "–" if number.ratio is None else f"× {number.ratio:.2g}",
        bounds,
    )


def _sentences(comparison: ReferenceComparison) -> Iterator[str]:
    """Yield sentences that state which agent is better in which respect, and at which confidence level."""
    for agent in comparison.agents:
        yield from _agent_sentences(agent, comparison)
    over = plural(comparison.agents[0].scenarios, "scenario")
    confidence = f"{comparison.confidence:.0%}".replace("%", " %")
    compared = f"{plural(comparison.comparisons, 'comparison')} over {over}, jointly corrected"
    yield f"{compared}: all intervals hold with {confidence} confidence"


def _agent_sentences(agent: ComparedAgent, comparison: ReferenceComparison) -> Iterator[str]:
    name, reference = one_line(agent.agent, 60), one_line(comparison.reference, 60)
    differences = [
        _LESS_IS[n.name][n.reference_verdict is ReferenceVerdict.MORE]
        for n in agent.numbers
        if n.reference_verdict is not ReferenceVerdict.INDISTINGUISHABLE
    ]
    match agent.reference_verdict:
        case ReferenceVerdict.MORE:
            yield f"{name} is better: it {join_names(['succeeds more often', *differences])}"
        case ReferenceVerdict.LESS:
            yield f"{name} is worse: it {join_names(['succeeds less often', *differences])}"
        case _:
            epochs = agent.epochs_to_decide
            more = f" (about {epochs:,} epochs would decide)" if epochs else ""
            sentence = f"too few epochs to show whether {reference} or {name} succeeds more often{more}"
            yield f"{sentence}; {name} {join_names(differences)}" if differences else sentence
    if agent.better_in:
        yield f"{name} is better in {_list_scenarios(agent.better_in)}"
    if agent.worse_in:
        yield f"{name} is worse in {_list_scenarios(agent.worse_in)}"


def _list_scenarios(scenarios: Sequence[str]) -> str:
    return join_first([one_line(name, 60) for name in scenarios], _MOST_NAMED)
