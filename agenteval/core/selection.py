"""Which scenarios run, with which agents, how often: pure."""

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

DEFAULT_EPOCHS = 3
"""Conversations per simulated scenario; a wholly scripted one runs once unless a number is written."""

_EXAMPLE = """\
let agenteval init find it, or write to agenteval.yaml
  agent:
    name: my-agent
    target: my_agent.py:agent     # a Python function; or endpoint: http://localhost:8000/v1/chat/completions"""


@dataclass(frozen=True)
class Filters:
    """What the command line selects: any of the texts (``FILE::ID`` or an id, else part of an id or name,
    whatever its case), any of the tags, any of the categories, what the ``expression`` of ``-k`` holds of;
    all kinds at once. Of what that leaves, ``sample``: so many drawn by lot; ``first``: so many. ``agent``
    runs everything with it."""

    scenarios: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    agent: str | None = None
    expression: str = ""
    first: int | None = None
    sample: int | None = None


def select(scenarios: Sequence[Scenario], filters: Filters) -> tuple[Scenario, ...]:
    """The scenarios that the filters leave; ``draw_subset`` is asked when it is known which of them are run
    at all. Raises ``NothingSelectedError`` when that is none, and for each filter that selects none by
    itself: a scenario that was renamed must not drop out of a suite unseen; and ``AuthorError`` for an
    expression that cannot be read."""
    single = [
        alone for alone in _single_filters(filters) if not any(map(_make_test(alone, scenarios), scenarios))
    ]
    if single:
        raise NothingSelectedError(*(_nothing_selected(scenarios, alone) for alone in single))
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
    """Whether a scenario is among what the filters leave."""
    tests = list(_tests(filters, scenarios))
    return lambda scenario: all(test(scenario) for test in tests)


def _tests(filters: Filters, scenarios: Iterable[Scenario]) -> Iterator[_Test]:
    """One for each kind of filter that is given. Raises ``AuthorError``."""
    if filters.scenarios:
        yield _name_test(filters.scenarios, scenarios)
    if filters.tags:
        yield lambda scenario: not set(filters.tags).isdisjoint(scenario.tags)
    if filters.categories:
        yield lambda scenario: scenario.category in filters.categories
    if filters.expression:
        holds = keyword_expression.compile_expression(filters.expression)
        yield lambda scenario: holds((scenario.id, scenario.name, *scenario.tags, file_of(scenario)))


def _name_test(texts: Sequence[str], scenarios: Iterable[Scenario]) -> _Test:
    """Whether one of the texts means a scenario. An exact id or ``FILE::ID`` is not taken for part of another
    one's."""
    ids = {scenario.id: scenario for scenario in scenarios}
    exact = {text: name for text in texts if (name := _exact_id(text, ids))}
    named = frozenset(exact.values())
    parts = [text for text in texts if text not in exact]
    return lambda scenario: (
        scenario.id in named or any(is_part(text, (scenario.id, scenario.name)) for text in parts)
    )


def _exact_id(text: str, ids: Mapping[str, Scenario]) -> str:
    """The id that a text names in full; empty where it names none so."""
    if text in ids:
        return text
    file, name = split_id(text)
    return name if file and name in ids and is_in_file(ids[name], file) else ""


def is_part(text: str, names: Iterable[str]) -> bool:
    """Whether ``text`` is in one of the names, whatever its case."""
    return any(text.casefold() in name.casefold() for name in names)


# ── FILE::ID ─────────────────────────────────────────────────────────────────────────────────────

ID_SEPARATOR = "::"


def split_id(text: str) -> tuple[str, str]:
    """``("a.yaml", "refund")`` from ``a.yaml::refund``; nothing of either where there are not both."""
    file, _, name = text.partition(ID_SEPARATOR)
    return (file, name) if file and name else ("", "")


def full_id(scenario: Scenario) -> str:
    """``FILE::ID``, as ``split_id`` reads it."""
    return f"{file_of(scenario)}{ID_SEPARATOR}{scenario.id}"


def file_of(scenario: Scenario) -> str:
    """From the working directory, if it is below."""
    return scenario.source.rpartition(":")[0]


def is_in_file(scenario: Scenario, file: str) -> bool:
    """Whether ``file`` is the path of the scenario's file, or the end of it: ``orders.yaml`` as a report
    names it, whose folder is known anyway."""
    return ends_with(file_of(scenario), file)


def ends_with(path: str, end: str) -> bool:
    """Whether a path has the last parts of ``end``, or is the same."""
    parts, last = PurePath(path).parts, PurePath(end).parts
    return bool(last) and (parts[-len(last) :] == last or os.path.abspath(path) == os.path.abspath(end))


class _Option(NamedTuple):
    """One that selects by name. ``written``: what the command line has there; ``names_of``: the names of that
    kind that a scenario has."""

    flag: str
    written: Callable[[Filters], tuple[str, ...]]
    names_of: Callable[[Scenario], Iterable[str]]


_OPTIONS = (
    _Option("--scenario", lambda filters: filters.scenarios, lambda scenario: (scenario.id,)),
    _Option("--tag", lambda filters: filters.tags, lambda scenario: scenario.tags),
    _Option("--category", lambda filters: filters.categories, lambda scenario: (scenario.category,)),
)


def _nothing_selected(scenarios: Sequence[Scenario], filters: Filters) -> Problem:
    asked = [f"{option.flag} {text}" for option in _OPTIONS for text in option.written(filters)]
    asked += [f"-k {filters.expression!r}"] if filters.expression else []
    what = f"{' '.join(asked)} selects none of {plural(len(scenarios), 'scenario')}"
    return Problem(what, _suggest_alternatives(scenarios, filters))


def _suggest_alternatives(scenarios: Sequence[Scenario], filters: Filters) -> str:
    """What could be written instead: of the first option that was given."""
    if filters.expression:
        return "-k looks for words in id, name, tags and file; agenteval list names them"
    option = next((each for each in _OPTIONS if each.written(filters)), _OPTIONS[0])
    wanted = next(iter(option.written(filters)), "")
    file, name = split_id(wanted) if filters.scenarios else ("", "")
    if name:
        return _hint(name, _suggest_similar(name, file, scenarios))
    return _hint(wanted, (known for scenario in scenarios for known in option.names_of(scenario)))


def _suggest_similar(name: str, file: str, scenarios: Iterable[Scenario]) -> list[str]:
    """Where else a scenario of that name is, or what else is in the file."""
    elsewhere = [full_id(scenario) for scenario in scenarios if scenario.id == name]
    return elsewhere or [scenario.id for scenario in scenarios if is_in_file(scenario, file)]


def describe_unknown_id(file: str, name: str, known: Iterable[str]) -> Problem:
    """``FILE::ID`` was asked for, and the file has no scenario of that id. ``known``: those that it has."""
    return Problem(f"{file} has no scenario '{name}'", _hint(name, known))


def _hint(wanted: str, known: Iterable[str]) -> str:
    names = sorted(set(known))
    hint = did_you_mean(wanted, names)
    if len(names) <= _MOST_HINTED or not hint.startswith("known: "):
        return hint
    more = f"and {len(names) - _MOST_HINTED:,} more, which agenteval list shows"
    return f"known: {', '.join(names[:_MOST_HINTED])} {more}"


_MOST_HINTED = 8


# ── fewer of them ────────────────────────────────────────────────────────────────────────────────


def draw_subset(ids: Sequence[str], filters: Filters, seed: int) -> Sequence[str]:
    """Of the ids those that ``sample`` draws, and of these the ``first``; in their order. The draw is made of
    the seed and each id alone, so that a scenario more or less changes little of it."""
    if filters.sample is not None:
        drawn = frozenset(sorted(ids, key=lambda name: _draw_key(seed, name))[: filters.sample])
        ids = [name for name in ids if name in drawn]
    return ids[: filters.first]


def _draw_key(seed: int, name: str) -> bytes:
    return blake2b(f"{seed}\0{name}".encode(), digest_size=8).digest()


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
    """Every sample to run, scenario by scenario, and in each epoch with one agent after the other: whatever
    changes while the run goes on meets them all alike. Of those whose number is decided as the run goes, the
    first ones. ``epochs`` is the command line's, over all others."""
    known = agents_of(config, filters)
    problems: list[Problem] = []
    samples: list[Sample] = []
    for scenario in scenarios:
        planned = epochs or _epochs(scenario, config)
        agents = _agents_for(scenario, config, known, filters, problems)
        for epoch in range(planned.min if isinstance(planned, EpochRange) else planned):
            for agent in agents:
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
    if ranges and "pass_rate" not in config.gates.configured_gates:
        places = {parse_place(s.where("epochs")) if s.epochs else config.place("epochs") for s, _ in ranges}
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
    place = parse_place(scenario.where("agent"))
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
