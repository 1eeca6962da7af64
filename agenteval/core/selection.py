"""Selects the scenarios to run (filters), the agents to run them with, and the number of trials (epochs).
Pure."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import PurePath
from typing import NamedTuple, TypeAlias

from agenteval.core import keyword_expression
from agenteval.core.config import AgentConfig, Config
from agenteval.core.errors import AuthorError, NothingSelectedError, Problem, did_you_mean, parse_place
from agenteval.core.plurals import plural
from agenteval.core.scenario import EpochRange, Sample, SampleKey, Scenario, sample_seed
from agenteval.core.value import compact

DEFAULT_EPOCHS = 3
"""The number of conversations per simulated scenario. A fully scripted scenario runs once unless a number is
configured."""

_EXAMPLE = """\
run `agenteval init`, or add to agenteval.yaml:
  agent:
    name: my-agent
    target: my_agent.py:agent     # a Python function; or endpoint: http://localhost:8000/v1/chat/completions"""


@dataclass(frozen=True)
class Filters:
    """The scenario filters on the command line (by id, by tag, by category, by keyword). Filters of different
    kinds are combined with "and", and values of the same kind with "or"."""

    scenarios: tuple[str, ...] = ()
    """Strings that are ``FILE::ID``, an id, or a part of an id or name, ignoring case."""
    tags: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    agent: str | None = None
    """The agent with which all scenarios are run."""
    expression: str = ""
    """The keyword expression given with ``-k``."""
    first: int | None = None
    """The maximum number of selected scenarios to keep, in order."""
    sample: int | None = None
    """The number of selected scenarios to draw at random."""


def select(scenarios: Sequence[Scenario], filters: Filters) -> tuple[Scenario, ...]:
    """Select the scenarios that match the filters. ``draw_subset`` is called later, once it is known which
    scenarios can run.

    Raise ``NothingSelectedError`` if no scenario matches, or if a filter on its own matches no scenario,
    because a renamed scenario must not silently drop out of a suite. Raise ``AuthorError`` for an invalid
    expression."""
    without_match = [
        alone for alone in _single_filters(filters) if not any(map(_make_test(alone, scenarios), scenarios))
    ]
    if without_match:
        raise NothingSelectedError(*(_nothing_selected(scenarios, alone) for alone in without_match))
    chosen = tuple(filter(_make_test(filters, scenarios), scenarios))
    if not chosen:
        raise NothingSelectedError(_nothing_selected(scenarios, filters))
    return chosen


def _single_filters(filters: Filters) -> Iterator[Filters]:
    yield from (Filters(scenarios=(text,)) for text in filters.scenarios)
    yield from (Filters(tags=(tag,)) for tag in filters.tags)
    yield from (Filters(categories=(category,)) for category in filters.categories)
    yield from [Filters(expression=filters.expression)] if filters.expression else []


_Test: TypeAlias = Callable[[Scenario], bool]


def _make_test(filters: Filters, scenarios: Iterable[Scenario]) -> _Test:
    """Return a function that tests whether a scenario matches the filters."""
    tests = list(_tests(filters, scenarios))
    return lambda scenario: all(test(scenario) for test in tests)


def _tests(filters: Filters, scenarios: Iterable[Scenario]) -> Iterator[_Test]:
    """Yield one test function for each kind of filter that is set (filter by name, filter by tag and so on).
    Raise ``AuthorError`` if a filter is invalid."""
    if filters.scenarios:
        yield _name_test(filters.scenarios, scenarios)
    if filters.tags:
        yield lambda scenario: not set(filters.tags).isdisjoint(scenario.tags)
    if filters.categories:
        yield lambda scenario: scenario.category in filters.categories
    if filters.expression:
        holds = keyword_expression.compile_expression(filters.expression)
        yield lambda scenario: holds((scenario.id, scenario.name, *scenario.tags, scenario_file(scenario)))


def _name_test(texts: Sequence[str], scenarios: Iterable[Scenario]) -> _Test:
    """Return the name filter: a function that tests whether one of the strings refers to a scenario. A string
    that is a complete id or ``FILE::ID`` is not matched as part of another id."""
    ids = {scenario.id: scenario for scenario in scenarios}
    exact = {text: name for text in texts if (name := _exact_id(text, ids))}
    exact_ids = frozenset(exact.values())
    parts = [text for text in texts if text not in exact]
    return lambda scenario: (
        scenario.id in exact_ids or any(is_in_any(text, (scenario.id, scenario.name)) for text in parts)
    )


def _exact_id(text: str, ids: Mapping[str, Scenario]) -> str:
    """Return the id if the string is a complete id or ``FILE::ID``. Otherwise, return an empty string."""
    if text in ids:
        return text
    file, name = split_id(text)
    return name if file and name in ids and is_in_file(ids[name], file) else ""


def is_in_any(text: str, names: Iterable[str]) -> bool:
    """Check whether ``text`` is contained in one of the names, ignoring case."""
    return any(text.casefold() in name.casefold() for name in names)


# ── FILE::ID ─────────────────────────────────────────────────────────────────────────────────────

ID_SEPARATOR = "::"


def split_id(text: str) -> tuple[str, str]:
    """Split ``a.yaml::refund`` into ``("a.yaml", "refund")``. Both are empty strings if one is missing."""
    file, _, name = text.partition(ID_SEPARATOR)
    return (file, name) if file and name else ("", "")


def full_id(scenario: Scenario) -> str:
    """Return ``FILE::ID``, which ``split_id`` can parse."""
    return f"{scenario_file(scenario)}{ID_SEPARATOR}{scenario.id}"


def scenario_file(scenario: Scenario) -> str:
    """Return the path of the scenario's file, relative to the working directory if the file is below it."""
    return scenario.source.rpartition(":")[0]


def is_in_file(scenario: Scenario, file: str) -> bool:
    """Check whether ``file`` is the path of the scenario's file or the end of that path, such as
    ``orders.yaml`` in a report written in a different folder."""
    return path_ends_with(scenario_file(scenario), file)


def path_ends_with(path: str, end: str) -> bool:
    """Check whether a path is equal to ``end`` or ends with the components of ``end``."""
    parts, last = PurePath(path).parts, PurePath(end).parts
    return bool(last) and (parts[-len(last) :] == last or os.path.abspath(path) == os.path.abspath(end))


class _Option(NamedTuple):
    """A command-line option that selects by name."""

    flag: str
    written: Callable[[Filters], tuple[str, ...]]
    """A function that returns the values given for the option."""
    names_of: Callable[[Scenario], Iterable[str]]
    """A function that returns the scenario's names of the kind that the option selects."""


_OPTIONS = (
    _Option("--scenario", lambda filters: filters.scenarios, lambda scenario: (scenario.id,)),
    _Option("--tag", lambda filters: filters.tags, lambda scenario: scenario.tags),
    _Option("--category", lambda filters: filters.categories, lambda scenario: (scenario.category,)),
)


def _nothing_selected(scenarios: Sequence[Scenario], filters: Filters) -> Problem:
    options = [f"{option.flag} {text}" for option in _OPTIONS for text in option.written(filters)]
    options += [f"-k {filters.expression!r}"] if filters.expression else []
    what = f"{' '.join(options)} matches 0 of {plural(len(scenarios), 'scenario')}"
    return Problem(what, _suggest_alternatives(scenarios, filters))


def _suggest_alternatives(scenarios: Sequence[Scenario], filters: Filters) -> str:
    """Return suggestions for the first option that is set."""
    if filters.expression:
        return "-k searches ids, names, tags and files; `agenteval list` shows them"
    option = next((each for each in _OPTIONS if each.written(filters)), _OPTIONS[0])
    wanted = next(iter(option.written(filters)), "")
    file, name = split_id(wanted) if filters.scenarios else ("", "")
    if name:
        return _hint(name, _suggest_similar(name, file, scenarios))
    return _hint(wanted, (known for scenario in scenarios for known in option.names_of(scenario)))


def _suggest_similar(name: str, file: str, scenarios: Iterable[Scenario]) -> list[str]:
    """Return other scenarios with the same name or, if there are none, the scenarios in the file."""
    other_ids = [full_id(scenario) for scenario in scenarios if scenario.id == name]
    return other_ids or [scenario.id for scenario in scenarios if is_in_file(scenario, file)]


def describe_unknown_id(file: str, name: str, known: Iterable[str]) -> Problem:
    """Return a ``Problem`` for a file that contains no scenario with the id in ``FILE::ID``. ``known``
    contains the ids in the file."""
    return Problem(f"{file} has no scenario '{name}'", _hint(name, known))


def _hint(wanted: str, known: Iterable[str]) -> str:
    names = sorted(set(known))
    hint = did_you_mean(wanted, names)
    if len(names) <= _MOST_HINTED or not hint.startswith("known: "):
        return hint
    more = f"and {len(names) - _MOST_HINTED:,} more (see `agenteval list`)"
    return f"known: {', '.join(names[:_MOST_HINTED])} {more}"


_MOST_HINTED = 8


# ── fewer of them ────────────────────────────────────────────────────────────────────────────────


def draw_subset(ids: Sequence[str], filters: Filters, seed: int) -> Sequence[str]:
    """Return the ids that ``sample`` draws at random, limited to the ``first`` ids, in the original order.
    The draw depends only on the seed and each id, so adding or removing a scenario has little effect on the
    result."""
    if filters.sample is not None:
        drawn = frozenset(sorted(ids, key=lambda name: _draw_key(seed, name))[: filters.sample])
        ids = [name for name in ids if name in drawn]
    return ids[: filters.first]


def _draw_key(seed: int, name: str) -> bytes:
    return blake2b(f"{seed}\0{name}".encode(), digest_size=8).digest()


def agents_of(config: Config, filters: Filters) -> dict[str, AgentConfig]:
    """Return all agents that may be specified. Raise ``AuthorError`` if the filters specify a different
    agent."""
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
    """Return all samples to run, scenario by scenario and, within each epoch, agent by agent, so that changes
    over time affect all agents alike. If the number of epochs is decided during the run, only the first
    epochs are returned. ``epochs`` is the number given on the command line, which takes precedence."""
    known = agents_of(config, filters)
    problems: list[Problem] = []
    samples: list[Sample] = []
    for scenario in scenarios:
        planned = epochs or _epochs(scenario, config)
        agents = _agents_for(scenario, config, known, filters, problems)
        for epoch in range(planned.min if isinstance(planned, EpochRange) else planned):
            for agent in agents:
                key = compact(SampleKey(scenario=scenario.id, agent=agent, epoch=epoch))
                samples.append(
                    Sample(key=key, scenario=scenario, seed=sample_seed(config.seed, key, scenario.variant))
                )
    if problems:
        raise AuthorError(*problems)
    return tuple(samples)


def ranges_of(
    scenarios: Sequence[Scenario], config: Config, *, epochs: int | None = None
) -> dict[str, EpochRange]:
    """Return the ranges of epochs that are decided during the run, keyed by scenario. Raise ``AuthorError``
    if no gate could decide them."""
    if epochs:
        return {}
    planned = ((scenario, _epochs(scenario, config)) for scenario in scenarios)
    ranges = [(scenario, epochs) for scenario, epochs in planned if isinstance(epochs, EpochRange)]
    if ranges and "pass_rate" not in config.gates.configured_gates:
        places = {parse_place(s.where("epochs")) if s.epochs else config.place("epochs") for s, _ in ranges}
        what = "an `epochs` range requires a gate that can end a scenario early"
        remedy = "add `gates: {pass_rate: {at_least: 0.9, reject_below: 0.7}}`, or use a single number"
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
    place = parse_place(scenario.where("agent"))
    if config.compare:
        if scenario.agent:
            what = f"scenario '{scenario.id}' sets its own `agent`, which conflicts with `compare`"
            problems.append(Problem(what, "remove `agent` here, or run without `compare`", place))
        return tuple(agent.name for agent in config.compare)
    if scenario.agent:
        if scenario.agent not in known:
            what = f"no agent is named '{scenario.agent}'"
            problems.append(Problem(what, did_you_mean(scenario.agent, known), place))
        return (scenario.agent,)
    if config.agent is None:
        raise AuthorError(Problem("no agent is configured", _EXAMPLE))
    return (config.agent.name,)
