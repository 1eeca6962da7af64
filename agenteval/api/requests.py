"""Turns the arguments of the Python API into the requests that the command line makes of its options."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, TypedDict

from agenteval.adapters.traffic.middleware import parse_recording_options
from agenteval.api.given_objects import register, to_plain
from agenteval.core.errors import AuthorError, NothingSelectedError, Place, Problem, did_you_mean
from agenteval.core.scenario import Category
from agenteval.core.selection import Filters
from agenteval.files.scenario_loader import VALUES
from agenteval.planning.request import JudgeChoice, Request

ScenarioSource: TypeAlias = "str | os.PathLike[str] | Mapping[str, Any]"
"""A path, as on the command line, or a scenario as a mapping, with the keys that it has in a file."""


class GivenAgent(NamedTuple):
    """The agent to run: the name of a configured agent, or an entry that replaces the configured agents."""

    name: str | None = None
    entry: Mapping[str, Any] | None = None


def choose_agent(agent: Any) -> GivenAgent:
    """Return the agent that an argument means. A text is a target (``bot.py:agent``), an address or the name
    of a configured agent; a mapping is an entry of the configuration; anything else is the agent itself."""
    match agent:
        case None:
            return GivenAgent()
        case str() if agent.startswith(("http://", "https://")):
            return GivenAgent(entry={"endpoint": agent})
        case str() if ":" in agent:
            return GivenAgent(entry={"target": agent})
        case str():
            return GivenAgent(name=agent)
        case Mapping():
            return GivenAgent(entry=to_plain(agent, Place("agent")))
    target = {"object": register(agent, "agent")} if not callable(agent) else register(agent, "agent")
    return GivenAgent(entry={"target": target, "interpreter": None})


def split_sources(
    sources: ScenarioSource | Iterable[ScenarioSource],
) -> tuple[tuple[str, ...], tuple[Mapping[str, Any], ...]]:
    """Separate paths from scenarios that are given as mappings. Raise ``AuthorError`` for anything else."""
    paths: list[str] = []
    values: list[Mapping[str, Any]] = []
    listed: Iterable[Any] = [sources]
    if isinstance(sources, Iterable) and not isinstance(sources, str | os.PathLike | Mapping):
        listed = sources
    for source in listed:
        if isinstance(source, Mapping):
            values.append(to_plain(source, Place(VALUES, len(values) + 1)))
        elif isinstance(source, str | os.PathLike):
            paths.append(os.fspath(source))
        else:
            what = f"scenarios: expected a path or a mapping, got a {type(source).__name__}"
            raise AuthorError(Problem(what, 'for example "scenarios/" or {"id": …, "turns": […]}'))
    return tuple(paths), tuple(values)


class RunOptions(TypedDict, total=False):
    """The optional arguments of ``run`` and ``run_sync``. Each has the meaning of the option of
    ``agenteval run`` with the same name, unless described otherwise."""

    agent: Any
    """The name of a configured agent, a target (``bot.py:agent``), an address, a mapping with the keys of an
    agent, or the agent itself: a function, a class or an object of a framework."""
    ids: str | Iterable[str]
    """Scenario ids or parts of them (``-s``)."""
    tags: str | Iterable[str]
    """Only scenarios with one of these tags."""
    categories: str | Iterable[str]
    """Only these dimensions: ``capability``, ``efficiency`` or ``robustness``."""
    keyword: str
    """An expression such as ``"refund and not slow"`` (``-k``)."""
    first: int
    """Only the first scenarios of the selection."""
    sample: int
    """Only this many scenarios of the selection, chosen by the seed."""
    last_failed: bool
    """Only the scenarios that did not pass in the latest run."""
    failed_in: str
    """Only the scenarios that did not pass in this run."""
    model: str
    """The model, such as ``openai/gpt-5-mini``, to use instead of ``models.default``."""
    metrics: str | Iterable[str]
    """Judge only these metrics."""
    no_judge: bool
    """Run only code checks, and call no judges."""
    epochs: int
    """The number of conversations per scenario."""
    faults: str
    """The fault packs with which each scenario is run as well, separated by commas."""
    variants: str
    """The variant packs with which each scenario is run as well, separated by commas."""
    concurrency: int
    """The maximum number of concurrent model calls."""
    seed: int
    """The seed of the run."""
    fail_fast: bool
    """Start no more conversations after the first failure."""
    cache: bool
    """Use cached model replies, and cache new ones."""
    baseline: str
    """Compare with this run, or with ``merge-base``."""
    keep_baseline: bool
    """Keep the run as the baseline of its commit."""
    record: str | os.PathLike[str]
    """Write all traffic to this new file."""
    replay: str | os.PathLike[str]
    """Make no calls; use the answers recorded in this file."""
    config: str | os.PathLike[str]
    """The configuration file. By default, it is searched for as on the command line."""
    profile: str
    """A profile of the configuration."""
    overrides: Mapping[str, Any]
    """Configuration keys, such as ``{"judge": {"votes": 3}}``."""
    progress: bool
    """True to show the progress on stderr. By default, nothing is printed."""


def make_request(
    scenarios: ScenarioSource | Iterable[ScenarioSource] | None, function: str, options: RunOptions
) -> Request:
    """Build the request for a run. ``function`` is the name of the called function in messages. Raise
    ``TypeError`` for an unknown argument, and ``AuthorError`` if a value is invalid."""
    for name in options.keys() - RunOptions.__annotations__.keys():
        near = did_you_mean(name, RunOptions.__annotations__)
        raise TypeError(f"{function}() has no argument '{name}'" + (f": {near}" if near else ""))
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    for name, (types, kind) in _KINDS.items():
        if name in given and not isinstance(given[name], types):
            raise AuthorError(Problem(f"`{name}`: expected {kind}, got {given[name]!r}"))
    paths, values = split_sources(() if scenarios is None else scenarios)
    if scenarios is not None and not (paths or values):
        raise NothingSelectedError(
            Problem("the list of scenarios is empty", "leave it out to run all of them")
        )
    chosen = choose_agent(given.get("agent"))
    ids, tags, categories, metrics = (
        list_texts(name, given.get(name, ())) for name in ("ids", "tags", "categories", "metrics")
    )
    for name in categories:
        if name not in set(Category):
            raise AuthorError(Problem(f"categories: unknown category '{name}'", did_you_mean(name, Category)))
    epochs, first, sample, concurrency = (
        _positive(name, given.get(name)) for name in ("epochs", "first", "sample", "concurrency")
    )
    config, record, replay, baseline, failed_in = (
        os.fspath(given[name]) if name in given else None
        for name in ("config", "record", "replay", "baseline", "failed_in")
    )
    filters = Filters(ids, tags, categories, chosen.name, given.get("keyword", ""), first, sample)
    judging = JudgeChoice(given.get("model"), given.get("no_judge", False), metrics)
    flags = {"concurrency": concurrency, "cache": given.get("cache"), "seed": given.get("seed")}
    profile = given.get("profile")
    return Request(
        paths=paths,
        config=config,
        profile=profile,
        filters=filters,
        judging=judging,
        flags={key: value for key, value in flags.items() if value is not None},
        epochs=epochs,
        fail_fast=given.get("fail_fast", False),
        baseline=baseline,
        keep_baseline=given.get("keep_baseline", False),
        faults=given.get("faults"),
        variants=given.get("variants"),
        recording=parse_recording_options(record, replay),
        last_failed=given.get("last_failed", False),
        failed_in=failed_in,
        scenarios=values,
        agent=chosen.entry,
        overrides=plain_overrides(given.get("overrides")),
        command=_command(paths, filters, judging, epochs, config, profile),
    )


_KINDS: Mapping[str, tuple[tuple[type, ...], str]] = {
    **dict.fromkeys(("keyword", "model", "profile", "faults", "variants"), ((str,), "a text")),
    **dict.fromkeys(("failed_in", "baseline"), ((str, os.PathLike), "a run")),
    **dict.fromkeys(("config", "record", "replay"), ((str, os.PathLike), "a path")),
    **dict.fromkeys(
        ("last_failed", "no_judge", "fail_fast", "keep_baseline", "progress"), ((bool,), "True or False")
    ),
}
"""The types of the arguments whose values the configuration does not check, and their description."""


def list_texts(argument: str, value: Any) -> tuple[str, ...]:
    """Return the texts of an argument that is a text or several. Raise ``AuthorError`` for anything else."""
    texts = (value,) if isinstance(value, str) or not isinstance(value, Iterable) else tuple(value)
    for text in texts:
        if not isinstance(text, str):
            raise AuthorError(Problem(f"`{argument}`: expected a text, got {text!r}"))
    return texts


def _positive(argument: str, number: Any) -> int | None:
    if number is None or (isinstance(number, int) and not isinstance(number, bool) and number >= 1):
        return number
    raise AuthorError(Problem(f"`{argument}` must be at least 1, got {number!r}"))


def plain_overrides(overrides: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return configuration keys in the form in which a file contains them. Raise ``AuthorError`` if they are
    no mapping."""
    if not isinstance(overrides, Mapping | None):
        what = f"`overrides`: expected a mapping, got {overrides!r}"
        raise AuthorError(Problem(what, 'for example {"judge": {"votes": 3}}'))
    plain: dict[str, Any] = to_plain(overrides or {}, Place("overrides"))
    return plain


def _command(
    paths: Sequence[str],
    filters: Filters,
    judging: JudgeChoice,
    epochs: int | None,
    config: str | None,
    profile: str | None,
) -> tuple[str, ...]:
    """Return the command line that is closest to the request. An object cannot be named on a command line."""
    options: list[tuple[str, object]] = [("-s", each) for each in filters.scenarios]
    options += [("--tag", each) for each in filters.tags]
    options += [("--category", each) for each in filters.categories]
    options += [("-k", filters.expression), ("--agent", filters.agent), ("-m", judging.model)]
    options += [("--metric", each) for each in judging.metric]
    options += [("--epochs", epochs), ("-c", config), ("--profile", profile)]
    given = [str(part) for name, value in options if value for part in (name, value)]
    return ("run", *paths, *given, *(("--no-judge",) if judging.no_judge else ()))
