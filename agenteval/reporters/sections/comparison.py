"""Build the sections and the surrounding sentences for the comparison of two runs (``diff``)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from agenteval.core.plurals import join_first, plural
from agenteval.core.safe_text import one_line
from agenteval.core.score import Verdict
from agenteval.reporters.sections.section import Cell, Section, StyledText, Tone
from agenteval.verdict.comparison import (
    AgentComparison,
    FailureChange,
    FailureState,
    MeanChange,
    RunComparison,
    ScenarioChange,
    ScenarioState,
    UncomparedScenario,
)
from agenteval.verdict.statistics import Change, Tally

VERDICT_WORDS = {
    Verdict.PASSED: "NO REGRESSION",
    Verdict.FAILED: "REGRESSED",
    Verdict.INCONCLUSIVE: "NOT DECIDED",
}
_MARKS: dict[Change, Cell] = {
    Change.REGRESSED: Verdict.FAILED,
    Change.UNDECIDED: Verdict.INCONCLUSIVE,
    Change.IMPROVED: Verdict.PASSED,
    Change.UNCHANGED: StyledText("=", Tone.QUIET),
}
_MEANS = ("", "before", "after", "change", "95 %", "scenarios")
_MOST_NAMED = 5


def sections(comparison: RunComparison) -> Iterator[Section]:
    """Yield a section on the compared runs, the sections for each agent, and the scenarios that could not be
    compared. Empty sections are omitted."""
    yield Section(
        f"{one_line(comparison.after, 60)} against {one_line(comparison.before, 60)}",
        notes=tuple(_caveats(comparison)),
    )
    for agent in comparison.agents:
        if len(comparison.agents) > 1:
            yield Section(f"Agent {one_line(agent.after, 60)}")
        yield from (section for section in _agent_sections(agent, comparison.margin) if section.rows)
    if uncompared := _listed_apart(comparison):
        yield Section(
            f"Not compared: {_apart_counts(comparison)}",
            columns=("scenario", "", "before", "after", "what differs"),
            rows=tuple(_apart_cells(each, comparison) for each in uncompared),
            level=3,
        )


def _caveats(comparison: RunComparison) -> Iterator[str | StyledText]:
    for before, after in comparison.renamed:
        yield f"the agent was '{one_line(before, 60)}' and is now '{one_line(after, 60)}'"
    for line in _left_out_lines(comparison):
        yield StyledText(f"omitted: {one_line(line, 300)}", Tone.OPEN)


def _agent_sections(agent: AgentComparison, margin: float) -> Iterator[Section]:
    yield Section(
        f"Scenarios: {_counts(agent)}",
        columns=("", "scenario", "", "before", "after", "change", "95 %", "would decide"),
        rows=tuple((_MARKS[each.change], *_scenario_cells(each)) for each in agent.scenarios),
        notes=(_mean_line(agent, margin),),
        named_by=2,
        level=3,
    )
    yield Section("Scores", _MEANS, tuple(map(_mean_cells, agent.scores)), level=3)
    effort = tuple(map(_mean_cells, agent.effort))
    yield Section("Agent effort per conversation", _MEANS, effort, level=3)
    yield Section(
        "Failures",
        columns=("failure", "", "scenario", "what", "before", "after"),
        rows=tuple(map(_failure_cells, agent.failures)),
        level=3,
    )


def points(value: float) -> str:
    """Format a difference between rates in percentage points. The sign is omitted if the difference rounds to
    zero."""
    text = f"{value * 100:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text


def _scenario_cells(scenario: ScenarioChange) -> tuple[str, ...]:
    before, after = scenario.before, scenario.after
    known = before.decided and after.decided
    change = after.successes / after.decided - before.successes / before.decided if known else None
    return (
        one_line(scenario.id, 60),
        str(scenario.change),
        _epochs(before),
        _epochs(after),
        "–" if change is None else points(change),
        f"{points(scenario.low)} to {points(scenario.high)}",
        _would_decide(scenario),
    )


def _epochs(counts: Tally) -> str:
    """Format the number of successful and decided epochs, such as ``9/10``, followed by the number of missing
    epochs if there are any."""
    missing = counts.planned - counts.decided
    return f"{counts.successes}/{counts.decided}" + (f" ({missing} missing)" if missing else "")


def _would_decide(scenario: ScenarioChange) -> str:
    if scenario.change is not Change.UNDECIDED:
        return ""
    if not scenario.before.decided or not scenario.after.decided:
        return "epochs without errors"
    if scenario.epochs_to_decide is None:
        return "no number of epochs at these rates"
    return f"about {scenario.epochs_to_decide:,} epochs in each run"


def _mean_cells(change: MeanChange) -> tuple[str, ...]:
    share = f" ({change.change / change.before:+.0%})" if change.before else ""
    interval = "–"
    if change.low is not None and change.high is not None:
        interval = f"{_figure(change.low, 3, '+')} to {_figure(change.high, 3, '+')}"
    return (
        one_line(change.name, 40),
        _figure(change.before, 4),
        _figure(change.after, 4),
        f"{_figure(change.change, 3, '+')}{share}" if change.change else "0",
        interval,
        str(change.scenarios),
    )


def _figure(value: float, digits: int, sign: str = "") -> str:
    """Format a mean with at least ``digits`` significant digits. A large number is written in full, never
    with an exponent."""
    is_large = abs(value) >= 10 ** (digits - 1)
    return format(value, f"{sign},.0f" if is_large else f"{sign},.{digits}g")


def _failure_cells(failure: FailureChange) -> tuple[str, ...]:
    state = str(failure.state)
    if failure.state in (FailureState.NEW, FailureState.FIXED) and not failure.sure:
        state += ", or chance"
    if failure.state is FailureState.BACK:
        state += f" (seen in {one_line(failure.seen_in, 40)})"
    return (
        failure.fingerprint,
        state,
        one_line(failure.scenario, 60),
        one_line(failure.what, 120),
        f"{failure.met_before} of {failure.known_before}",
        f"{failure.met_after} of {failure.known_after}",
    )


def _listed_apart(comparison: RunComparison) -> list[UncomparedScenario]:
    """Return the uncompared scenarios that are listed individually, one per row. Scenarios that were not
    selected are excluded, because selection is not a difference between the runs."""
    return [each for each in comparison.apart if each.state is not ScenarioState.NOT_SELECTED]


def _apart_cells(each: UncomparedScenario, comparison: RunComparison) -> tuple[str, ...]:
    several = len({other.agent for other in comparison.apart}) > 1 or len(comparison.agents) > 1
    name = one_line(each.id, 60)
    return (
        f"{name} ({one_line(each.agent, 60)})" if several else name,
        str(each.state),
        _verdict(each.before),
        _verdict(each.after),
        ", ".join(each.parts),
    )


def _verdict(verdict: Verdict | None) -> str:
    return "–" if verdict is None else "not decided" if verdict is Verdict.INCONCLUSIVE else str(verdict)


def _apart_counts(comparison: RunComparison) -> str:
    """Format the number of uncompared scenarios, such as ``1 changed, 2 new``. Return an empty string if all
    scenarios are compared."""
    found = Counter(each.state for each in _listed_apart(comparison))
    return ", ".join(f"{found[state]:,} {state}" for state in ScenarioState if found[state])


def _left_out_lines(comparison: RunComparison) -> tuple[str, ...]:
    """Return a line for each agent that occurs in only one run, and a line for each run with the scenarios
    that were not selected in that run."""
    lines = list(comparison.left_out)
    for run, other in ((comparison.before, "after"), (comparison.after, "before")):
        names = dict.fromkeys(
            each.id
            for each in comparison.apart
            if each.state is ScenarioState.NOT_SELECTED and getattr(each, other) is not None
        )
        if names:
            count = plural(len(names), "scenario")
            lines.append(
                f"{count} that run {one_line(run, 60)} did not select: {_list_scenario_names(list(names))}"
            )
    return tuple(lines)


def _counts(agent: AgentComparison) -> str:
    """Format the number of scenarios for each kind of change, such as ``1 regressed, 2 not decided``."""
    counts = Counter(scenario.change for scenario in agent.scenarios)
    return ", ".join(f"{counts[change]:,} {change}" for change in _MARKS if counts[change])


def _mean_line(agent: AgentComparison, margin: float) -> str:
    """Describe the change in the mean success rate and the largest allowed drop."""
    bounds = f"{points(agent.low)} to {points(agent.high)}"
    if agent.change is None:
        sentence = f"the mean success rate is unknown in at least one run (bounds {bounds})"
    else:
        sentence = f"the mean success rate changed by {points(agent.change)} points (bounds {bounds})"
    return f"{sentence}; the allowed drop is below {margin * 100:g}"


def verdict_line(comparison: RunComparison) -> str:
    """Return the text that follows the verdict: the reason, the exit code, and the number of uncompared
    scenarios."""
    reasons = [_doubt(comparison.worsened)] if comparison.verdict is Verdict.INCONCLUSIVE else []
    deciding = (agent for agent in comparison.agents if agent.verdict is comparison.verdict)
    reasons += [_why(agent, comparison) for agent in deciding][:1]
    uncompared = _apart_counts(comparison)
    text = f"{'; '.join(filter(None, reasons))} (exit {comparison.exit_code})"
    return f"{text} — not compared: {uncompared}" if uncompared else text


def _doubt(worsened: Sequence[str]) -> str:
    if not worsened:
        return ""
    which = f"no longer passing after a scenario change: {_list_scenario_names(worsened)}"
    return f"{which} (a baseline run with the changed scenario would decide)"


def _why(worst: AgentComparison, comparison: RunComparison) -> str:
    prefix = f"{one_line(worst.after, 60)}: " if len(comparison.agents) > 1 else ""
    margin = comparison.margin * 100
    if comparison.verdict is Verdict.PASSED:
        below = f"{prefix}the drop is significantly below {margin:g} points"
        return f"{below}, and no scenario dropped significantly"
    if comparison.verdict is Verdict.FAILED and worst.dropped:
        return f"{prefix}significantly dropped: {_list_scenario_names(worst.dropped)}"
    if comparison.verdict is Verdict.FAILED:
        return f"{prefix}the mean success rate fell significantly, by more than {margin:g} points"
    if worst.perhaps_dropped:
        prefix += f"possibly dropped: {_list_scenario_names(worst.perhaps_dropped)}; "
    if worst.epochs_to_decide is None:
        return f"{prefix}no number of epochs would decide at these rates, or too many errored"
    return f"{prefix}about {worst.epochs_to_decide:,} epochs per scenario in each run would decide"


def _list_scenario_names(scenarios: Sequence[str]) -> str:
    return join_first([one_line(name, 60) for name in scenarios], _MOST_NAMED)
