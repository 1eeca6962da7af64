"""Which scenarios run, with which agents, how often: pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from agenteval.core.config import AgentConfig, Config
from agenteval.core.errors import AuthorError, NothingSelectedError, Problem, did_you_mean, place_of
from agenteval.core.plurals import plural
from agenteval.core.scenario import EpochRange, Sample, SampleKey, Scenario, sample_seed

DEFAULT_EPOCHS = 3
"""Conversations per simulated scenario; a wholly scripted one runs once unless a number is written."""

_EXAMPLE = """\
write to agenteval.yaml
  agent:
    name: my-agent
    target: my_agent.py:agent     # a Python function; or endpoint: http://localhost:8000/v1/chat/completions"""


@dataclass(frozen=True)
class Filters:
    """What the command line selects: any of the texts (an id, else part of an id or name, whatever its case),
    any of the tags, any of the categories; all three kinds at once. ``agent`` runs everything with it."""

    scenarios: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    agent: str | None = None


def select(scenarios: Sequence[Scenario], filters: Filters) -> tuple[Scenario, ...]:
    """The scenarios that the filters leave. Raises ``NothingSelectedError`` when that is none, and for each
    filter that selects none by itself: a scenario that was renamed must not drop out of a suite unseen."""
    if not scenarios:
        raise NothingSelectedError(
            Problem("no scenario was found", "name files or folders, or set include: in the configuration")
        )
    exact = frozenset(filters.scenarios) & {scenario.id for scenario in scenarios}
    single = [
        alone for alone in _each_alone(filters) if not any(_is_selected(s, alone, exact) for s in scenarios)
    ]
    if single:
        raise NothingSelectedError(*(_nothing(scenarios, alone) for alone in single))
    chosen = tuple(scenario for scenario in scenarios if _is_selected(scenario, filters, exact))
    if not chosen:
        raise NothingSelectedError(_nothing(scenarios, filters))
    return chosen


def _each_alone(filters: Filters) -> Iterator[Filters]:
    yield from (Filters(scenarios=(text,)) for text in filters.scenarios)
    yield from (Filters(tags=(tag,)) for tag in filters.tags)
    yield from (Filters(categories=(category,)) for category in filters.categories)


def _is_selected(scenario: Scenario, filters: Filters, exact: Collection[str]) -> bool:
    names = (scenario.id, scenario.name)
    return (
        (
            not filters.scenarios
            or scenario.id in filters.scenarios
            or any(is_part(text, names) for text in filters.scenarios if text not in exact)
        )
        and (not filters.tags or bool(set(filters.tags) & set(scenario.tags)))
        and (not filters.categories or scenario.category in filters.categories)
    )


def is_part(text: str, names: Iterable[str]) -> bool:
    """Whether ``text`` is in one of the names, whatever its case."""
    return any(text.casefold() in name.casefold() for name in names)


def _nothing(scenarios: Sequence[Scenario], filters: Filters) -> Problem:
    asked = [f"--scenario {text}" for text in filters.scenarios]
    asked += [f"--tag {tag}" for tag in filters.tags]
    asked += [f"--category {category}" for category in filters.categories]
    known: Iterable[str] = [scenario.id for scenario in scenarios]
    if filters.tags and not filters.scenarios:
        known = {tag for scenario in scenarios for tag in scenario.tags}
    wanted = (filters.scenarios or filters.tags or filters.categories or ("",))[0]
    hint = did_you_mean(wanted, known)
    hint = hint if len(hint) < 200 else f"{hint[:200]}…"
    return Problem(f"{' '.join(asked)} selects none of {plural(len(scenarios), 'scenario')}", hint)


def agents_of(config: Config, filters: Filters) -> dict[str, AgentConfig]:
    """Every agent that can be named."""
    known = {agent.name: agent for agent in config.compare}
    known |= config.agents
    if config.agent:
        known.setdefault(config.agent.name, config.agent)
    if filters.agent is not None and filters.agent not in known:
        raise AuthorError(Problem(f"no agent is named '{filters.agent}'", did_you_mean(filters.agent, known)))
    return known


def samples_of(
    scenarios: Sequence[Scenario], config: Config, filters: Filters, *, epochs: int | None = None
) -> tuple[Sample, ...]:
    """Every sample to run, scenario by scenario; of those whose number is decided as the run goes, the first
    ones. ``epochs`` is the command line's, over all others."""
    known = agents_of(config, filters)
    problems: list[Problem] = []
    samples: list[Sample] = []
    for scenario in scenarios:
        for agent in _agents_for(scenario, config, known, filters, problems):
            planned = epochs or _epochs(scenario, config)
            for epoch in range(planned.min if isinstance(planned, EpochRange) else planned):
                key = SampleKey(scenario=scenario.id, agent=agent, epoch=epoch)
                samples.append(Sample(key=key, scenario=scenario, seed=sample_seed(config.seed, key)))
    if problems:
        raise AuthorError(*problems)
    return tuple(samples)


def ranges_of(
    scenarios: Sequence[Scenario], config: Config, *, epochs: int | None = None
) -> dict[str, EpochRange]:
    """By scenario, where the number of epochs is decided as the run goes. Raises ``AuthorError`` where no
    gate could decide it."""
    if epochs:
        return {}
    planned = ((scenario, _epochs(scenario, config)) for scenario in scenarios)
    ranges = [(scenario, epochs) for scenario, epochs in planned if isinstance(epochs, EpochRange)]
    if ranges and "pass_rate" not in config.gates.written:
        places = {place_of(s.where("epochs")) if s.epochs else config.place("epochs") for s, _ in ranges}
        what = "`epochs` as {min, max} needs a gate that can end a scenario early"
        remedy = "add gates: {pass_rate: {at_least: 0.9, reject_below: 0.7}}, or write one number"
        raise AuthorError(*(Problem(what, remedy, place) for place in sorted(places)))
    return {scenario.id: epochs for scenario, epochs in ranges}


def _epochs(scenario: Scenario, config: Config) -> int | EpochRange:
    default = 1 if scenario.is_scripted else DEFAULT_EPOCHS
    return scenario.epochs or config.epochs or default


def _agents_for(
    scenario: Scenario,
    config: Config,
    known: Mapping[str, AgentConfig],
    filters: Filters,
    problems: list[Problem],
) -> tuple[str, ...]:
    if filters.agent is not None:
        return (filters.agent,)
    place = place_of(scenario.where("agent"))
    if config.compare:
        if scenario.agent:
            what = f"scenario '{scenario.id}' names its own agent, but `compare:` gives it others"
            problems.append(Problem(what, "remove `agent:` here, or run without `compare:`", place))
        return tuple(agent.name for agent in config.compare)
    if scenario.agent:
        if scenario.agent not in known:
            what = f"no agent is named '{scenario.agent}'"
            problems.append(Problem(what, did_you_mean(scenario.agent, known), place))
        return (scenario.agent,)
    if config.agent is None:
        raise AuthorError(Problem("no agent is configured", _EXAMPLE))
    return (config.agent.name,)
