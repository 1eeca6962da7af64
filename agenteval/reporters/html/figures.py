"""Choose the charts of a run and of a history of runs. Each has a sentence that states what to see in it. A
chart that would show fewer than two values is omitted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from math import fsum, nan

from agenteval.core.plan import Plan
from agenteval.core.plurals import join_names, plural
from agenteval.core.safe_text import one_line
from agenteval.core.sample_report import SampleReport, ScenarioReport, numeric_value, spread_of
from agenteval.core.score import Verdict
from agenteval.reporters.html.charts import (
    BarRow,
    EpochRow,
    IntervalRow,
    ScatterPoint,
    bar_chart,
    epoch_grid,
    histogram,
    interval_chart,
    scatter,
)
from agenteval.reporters.html.drawing import Axis, ChartText, Reading
from agenteval.reporters.html.markup import Markup
from agenteval.reporters.words.facts import Facts
from agenteval.reporters.words.failure import scenario_decision
from agenteval.reporters.words.failure_rates import percentage
from agenteval.reporters.words.score_cells import ScoreColumn, threshold_of
from agenteval.reporters.words.spending import amount
from agenteval.verdict.epochs import epoch_outcomes
from agenteval.verdict.reliability import outcomes_of
from agenteval.verdict.resource_usage import format_measure, known_measure
from agenteval.verdict.statistics import Estimate, these_scenarios, users_like_these, wilson

Link = Callable[[str, str], str | None]
"""Returns the address of a scenario with an agent in the page, if it has one."""

_OUTCOMES = {True: Verdict.PASSED, False: Verdict.FAILED, None: Verdict.INCONCLUSIVE}
_INTERVALS = "The whiskers are 95 % intervals."


def figures(facts: Facts, link: Link = lambda scenario, agent: None) -> Iterator[Markup]:
    """Yield the charts of a run."""
    if facts.rates:
        outcomes = [_failure_rates(facts)]
    else:
        outcomes = [
            _pass_rates(facts, link), _flakiness(facts, link), _shares_of_groups(facts), _agents(facts)
        ]  # fmt: skip
    yield from filter(None, chain(outcomes, _scores(facts), _latencies(facts), [_spending(facts)]))


def _name(scenario: ScenarioReport, facts: Facts) -> str:
    id = scenario.scenario.id
    return f"{id} · {scenario.agent}" if facts.report.has_several_agents else id


# ── outcomes ─────────────────────────────────────────────────────────────────────────────────────


def _pass_rates(facts: Facts, link: Link) -> Markup:
    """Draw the pass rate of each scenario that was repeated, the lowest first."""
    bounds = {
        (gate.scenario, gate.agent): gate.bound
        for gate in facts.decision.gates
        if gate.name == "pass_rate" and isinstance(gate.bound, float)
    }
    rows = []
    for scenario in facts.report.scenarios:
        key = scenario.scenario.id, scenario.agent
        repeats = facts.repeats.scenarios[key]
        if repeats.tally.decided > 1:
            rows.append(
                IntervalRow(
                    _name(scenario, facts),
                    Reading(repeats.tally.successes / repeats.tally.decided, *repeats.interval),
                    f"{repeats.tally.successes:,} of {repeats.tally.decided:,}",
                    scenario_decision(facts.decision, scenario).verdict,
                    link(*key),
                    bounds.get(key),
                )
            )
    rows.sort(key=lambda row: row.reading.value)
    always = sum(row.reading.value == 1 for row in rows)
    sentence = f"{always:,} of {plural(len(rows), 'repeated scenario')} passed in every epoch. {_INTERVALS}"
    words = ChartText("chart-pass-rates", "Pass rate by scenario", sentence, "scenario")
    return interval_chart(words, rows, Axis("pass rate", "%", (0.0, 1.0)))


def _shares_of_groups(facts: Facts) -> Markup:
    """Draw the share of scenarios that passed for each agent, and for those of its categories and tags that
    several but not all of its scenarios have."""
    rows = []
    for agent, scenarios in _by_agent(facts).items():
        suffix = f" · {agent}" if facts.report.has_several_agents else ""
        groups = {f"all scenarios{suffix}": scenarios}
        for scenario in scenarios:
            tags = (f"tag {tag}" for tag in dict.fromkeys(scenario.scenario.tags))
            for name in (scenario.scenario.category.value, *tags):
                groups.setdefault(f"{name}{suffix}", []).append(scenario)
        rows += [
            _share_row(name, members, facts)
            for place, (name, members) in enumerate(groups.items())
            if place == 0 or 1 < len(members) < len(scenarios)
        ]
    rows = [row for row in rows if row.reading.drawable()]
    if len(rows) < 2:
        return Markup()
    axis = Axis("share of decided scenarios that passed", "%", (0.0, 1.0))
    lowest = min(rows, key=lambda row: row.reading.value)
    seen = f"{_short(lowest.label)} passed least often, {lowest.basis}."
    if all(row.reading.value == lowest.reading.value for row in rows):
        seen = f"All groups have the same share, {axis.text(lowest.reading.value)}."
    words = ChartText("chart-groups", "Scenarios passed by group", f"{seen} {_INTERVALS}", "group")
    return interval_chart(words, rows, axis)


def _share_row(name: str, scenarios: Sequence[ScenarioReport], facts: Facts) -> IntervalRow:
    verdicts = [scenario_decision(facts.decision, scenario).verdict for scenario in scenarios]
    passed, decided = verdicts.count(Verdict.PASSED), len(verdicts) - verdicts.count(Verdict.INCONCLUSIVE)
    share = passed / decided if decided else nan
    return IntervalRow(name, Reading(share, *wilson(passed, decided)), f"{passed:,} of {decided:,}")


def _by_agent(facts: Facts) -> dict[str, list[ScenarioReport]]:
    agents: dict[str, list[ScenarioReport]] = {}
    for scenario in facts.report.scenarios:
        agents.setdefault(scenario.agent, []).append(scenario)
    return agents


def _failure_rates(facts: Facts) -> Markup:
    """Draw the rate of each failure in a log without scenarios."""
    rates = facts.rates.rows if facts.rates else ()
    rows = [
        IntervalRow(
            f"{rate.label} ({rate.found_by})",
            Reading(rate.rate, *rate.interval),
            f"{rate.conversations:,} of {rate.of:,}",
        )
        for rate in sorted(rates, key=lambda rate: -rate.rate)
        if rate.of > 1
    ]
    sentence = (
        f"Most frequent: {_short(rows[0].label)}, in {rows[0].basis} conversations. {_INTERVALS}"
        if rows
        else ""
    )
    words = ChartText("chart-failure-rates", "How often each failure occurs", sentence, "failure")
    return interval_chart(words, rows, Axis("share of conversations", "%", (0.0,)))


def _flakiness(facts: Facts, link: Link) -> Markup:
    """Draw the outcomes of the epochs of repeated scenarios, or nothing if no scenario is flaky."""
    rows = []
    for scenario in facts.report.scenarios:
        outcomes = epoch_outcomes(scenario, outcomes_of(scenario, facts.decision)).outcomes
        if len(outcomes) > 1:
            address = link(scenario.scenario.id, scenario.agent)
            rows.append(EpochRow(_name(scenario, facts), [_OUTCOMES[each] for each in outcomes], address))
    flaky = sum(row.is_mixed for row in rows)
    if not flaky:
        return Markup()
    sentence = (
        f"{flaky:,} of {plural(len(rows), 'repeated scenario')} passed in some epochs and failed in others."
        " The epochs are in order from left to right."
    )
    return epoch_grid(ChartText("chart-epochs", "Flaky scenarios", sentence, "scenario"), rows)


# ── measurements ─────────────────────────────────────────────────────────────────────────────────


def _scores(facts: Facts) -> Iterator[Markup]:
    """Yield charts of the means of the judged metrics, one for each scale, and then of the distributions of
    scores that are numbers."""
    axes: dict[Axis, list[IntervalRow]] = {}
    values = _score_values(facts.report.samples)
    for column in facts.columns:
        if len(values.get(column.name, ())) > 1:
            rows = axes.setdefault(_score_axis(column), [])
            for agent, scenarios in _by_agent(facts).items():
                rows += _mean_rows(column, agent, scenarios, facts)
    for number, (axis, rows) in enumerate(axes.items()):
        title = "Judged shares (uncalibrated)" if axis.unit else "Mean scores (uncalibrated)"
        lowest = min(rows, key=lambda row: row.reading.value)
        sentence = f"{_short(lowest.label)} is lowest, {axis.text(lowest.reading.value)}. {_INTERVALS}"
        yield interval_chart(ChartText(f"chart-scores-{number}", title, sentence, "metric"), rows, axis)
    for number, column in enumerate(facts.columns):
        scores = values.get(column.name, [])
        if not column.is_rate and len(set(scores)) > 1:
            most, count = Counter(scores).most_common(1)[0]
            sentence = f"Most frequent score: {most:g}, given {plural(count, 'time')}."
            words = ChartText(
                f"chart-metric-{number}", f"Scores for {_short(column.name)}", sentence, "score"
            )
            yield histogram(words, scores, replace(_score_axis(column), name="score"))


def _score_values(samples: Iterable[SampleReport]) -> dict[str, list[float]]:
    """Return the scores for each metric, of conversations that were not lost."""
    values: dict[str, list[float]] = {}
    for score in (score for sample in samples if _is_finished(sample) for score in sample.all_scores):
        if not score.is_open:
            values.setdefault(score.metric, []).append(numeric_value(score))
    return values


def _is_finished(sample: SampleReport) -> bool:
    return sample.stop is not None and sample.stop.fault in (None, "agent")


def _score_axis(column: ScoreColumn) -> Axis:
    if column.is_rate:
        return Axis("share without a failure, or of goals reached", "%", (0.0, 1.0))
    return Axis("mean score", "", column.spec.scale if column.spec else (1.0, 5.0))


def _mean_rows(
    column: ScoreColumn, agent: str, scenarios: Sequence[ScenarioReport], facts: Facts
) -> Iterator[IntervalRow]:
    """Yield the mean of a metric. Each scenario has the same weight, and the interval is that of other
    scenarios of the same kind. A single scenario has no such interval."""
    judged = [each.aggregates[column.name] for each in scenarios if column.name in each.aggregates]
    means = [each.of_samples for each in judged if each.of_samples is not None]
    if not means:
        return
    ends = (*means, *_score_axis(column).ends)
    low, width = min(ends), max(ends) - min(ends) or 1.0
    estimate = users_like_these([(mean - low) / width for mean in means])
    bounds = {threshold_of(scenario, column.name) for scenario in scenarios}
    gates = [
        gate.verdict for gate in facts.decision.gates if (gate.metric, gate.agent) == (column.name, agent)
    ]
    interval = (low + width * estimate.low, low + width * estimate.high) if len(means) > 1 else ()
    yield IntervalRow(
        f"{column.name} · {agent}" if facts.report.has_several_agents else column.name,
        Reading(low + width * estimate.value, *interval),
        plural(sum(each.n for each in judged), "score"),
        Verdict.worst(gates) if gates else None,
        bound=bounds.pop() if len(bounds) == 1 else None,
    )


def _measured(name: str, scenarios: Iterable[ScenarioReport], plan: Plan) -> list[float | None]:
    """Return a measure of each conversation that was not lost, or ``None`` where it is unknown."""
    samples = [
        (sample, each.scenario) for each in scenarios for sample in each.samples if _is_finished(sample)
    ]
    return [known_measure(name, sample, scenario, plan) for sample, scenario in samples]


def _latencies(facts: Facts) -> Iterator[Markup]:
    """Yield the distribution of each agent's latency. Unknown latencies are counted, but not drawn."""
    for number, (agent, scenarios) in enumerate(_by_agent(facts).items()):
        values = _measured("latency_ms", scenarios, facts.report.plan)
        known = [value for value in values if value is not None]
        if len(known) > 1:
            spread = spread_of(known)
            half, slowest = (format_measure("latency_ms", value) for value in (spread.p50, max(known)))
            sentence = f"Half of the conversations took at most {half}, the slowest took {slowest}."
            title = f"Latency of {_short(agent)}" if facts.report.has_several_agents else "Latency"
            words = ChartText(f"chart-latency-{number}", title, sentence, "conversation")
            yield histogram(words, values, Axis("latency of a conversation in ms", "ms", (0.0,)))


def _spending(facts: Facts) -> Markup:
    """Draw the cost of each role, or its tokens if the cost of a role is unknown."""
    used = {role: usage for role, usage in facts.report.usage.items() if usage.is_spent}
    costs = {role: usage.cost for role, usage in used.items()}
    unpriced = [role for role, cost in costs.items() if cost is None]
    if not unpriced and any(costs.values()):
        values, title, reason = costs, "Cost by role", ""
        texts = {role: f"{amount(cost or 0.0)} USD" for role, cost in costs.items()}
    else:
        values = {role: usage.reported_tokens for role, usage in used.items()}
        texts = {role: f"{tokens:,} tokens" for role, tokens in values.items() if tokens is not None}
        title = "Tokens by role"
        reason = f" The cost of {join_names(unpriced)} is unknown." if unpriced else " Nothing was charged."
    if len(texts) < 2:
        return Markup()
    signs = {role: "≈" if used[role].estimated else "" for role in texts}
    rows = [BarRow(role, values[role], f"{signs[role]}{text}") for role, text in texts.items()]
    highest = max(rows, key=lambda row: row.value or 0)
    sentence = f"{highest.label.capitalize()} is highest, {highest.text}.{reason}"
    return bar_chart(ChartText("chart-spending", title, sentence, "role"), rows)


def _agents(facts: Facts) -> Markup:
    """Draw the success rate of each agent against its cost per conversation, or against its tokens if too few
    costs are known. Only scenarios that every agent ran count."""
    agents = _by_agent(facts)
    if len(agents) < 2:
        return Markup()
    shared = set.intersection(*({each.scenario.id for each in ran} for ran in agents.values()))
    agents = {name: [each for each in ran if each.scenario.id in shared] for name, ran in agents.items()}
    for measure, unit, lowest in (("cost", "USD", "the lowest cost"), ("tokens", "", "the fewest tokens")):
        points = [
            ScatterPoint(agent, Reading(spent), Reading(rate.value, rate.low, rate.high))
            for agent, ran in agents.items()
            if (spent := _mean_of_known(_measured(measure, ran, facts.report.plan))) is not None
            and (rate := _success_rate(ran, facts))
        ]
        if len(points) > 1:
            least = min(points, key=lambda p: p.x.value)
            rates = ", ".join(f"{_short(point.label)} {percentage(point.y.value)}" for point in points)
            sentence = (
                f"Success in the scenarios that all agents ran: {rates}. {_short(least.label)} had {lowest}."
                f" The table below shows which differences are more than chance. {_INTERVALS}"
            )
            words = ChartText("chart-agents", f"Success and {measure} of the agents", sentence, "agent")
            x = Axis(" in ".join(filter(None, (f"{measure} of a conversation", unit))), unit, (0.0,))
            return scatter(words, points, x, Axis("success rate", "%", (0.0, 1.0)))
    return Markup()


def _mean_of_known(values: Sequence[float | None]) -> float | None:
    """Return the mean, or ``None`` if any value is unknown, because the known ones may be the cheap ones."""
    known = [value for value in values if value is not None]
    return fsum(known) / len(known) if known and len(known) == len(values) else None


def _success_rate(scenarios: Iterable[ScenarioReport], facts: Facts) -> Estimate | None:
    tallies = [facts.repeats.scenarios[each.scenario.id, each.agent].tally for each in scenarios]
    decided = [tally for tally in tallies if tally.decided]
    return these_scenarios(decided) if decided else None


def _short(text: str) -> str:
    return one_line(text, 60)
