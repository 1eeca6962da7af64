"""From the command line to a checked plan: shared by ``run`` and ``validate``."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from agenteval.adapters.traffic.middleware import Recording
from agenteval.cli import preflight, wiring
from agenteval.cli.commands.earlier_visibility import earlier_visibility
from agenteval.cli.commands.last_failed import Failed, gone_text, last_failed
from agenteval.cli.known import KNOWN
from agenteval.cli.options import Judging, Selecting, given_keys
from agenteval.conversation.pipeline import Runtime
from agenteval.core import selection
from agenteval.core.config import Config
from agenteval.core.errors import AuthorError, NothingSelectedError, Problem
from agenteval.core.event import RunStarted
from agenteval.core.plan import Pairing, Plan
from agenteval.core.plurals import plural
from agenteval.core.scenario import Sample, Scenario
from agenteval.core.selection import Filters
from agenteval.core.tool_visibility import KnownVisibility
from agenteval.files import config_file, loading, named_scenarios
from agenteval.scoring import judging, resolve
from agenteval.scoring.checks import RULES
from agenteval.scoring.judging import Metrics
from agenteval.scoring.resolve import NOT_SELECTED
from agenteval.verdict.run_gates import without_concern


@dataclass(frozen=True)
class Request:
    """What the command line asked for. ``flags`` are configuration keys that further options set;
    ``pairings``: of what is selected, the scenarios and agents that are run (``None``: all); ``resume``: the
    run to go on with; ``given``: the names of all options that were given."""

    paths: tuple[str, ...] = ()
    config: str | None = None
    profile: str | None = None
    filters: Filters = field(default_factory=Filters)
    judging: Judging = field(default_factory=Judging)
    flags: Mapping[str, Any] = field(default_factory=dict)
    epochs: int | None = None
    fail_fast: bool = False
    baseline: str | None = None
    keep_baseline: bool = False
    recording: Recording = field(default_factory=Recording)
    last_failed: bool = False
    failed_in: str | None = None
    """The run whose failures are meant; ``None``: the latest."""
    pairings: frozenset[Pairing] | None = None
    resume: str | None = None
    visibility: Mapping[str, KnownVisibility] | None = None
    """What the run that is gone on with knew at its start of how calls are seen."""
    given: tuple[str, ...] = ()
    cwd: str = field(default_factory=os.getcwd)  # an agent may change it when it is imported

    @property
    def is_part(self) -> bool:
        """Whether it asks for a part of the suite alone."""
        everything = Filters(agent=self.filters.agent)  # with one of the agents
        return bool(self.paths or self.asks_what_failed or self.pairings or self.filters != everything)

    @property
    def asks_what_failed(self) -> bool:
        return self.last_failed or self.failed_in is not None

    def to_keep(self, config: Config) -> dict[str, Any]:
        """As JSON, with paths that hold from anywhere: all that ``kept_request`` needs."""
        return {
            "cwd": self.cwd,
            "paths": [named_scenarios.absolute(path, self.cwd) for path in self.paths],
            "config": os.path.abspath(Path(self.cwd, config.source)) if config.source else None,
            "named_config": self.config,
            "profile": self.profile,
            "filters": asdict(self.filters),
            "judging": asdict(self.judging),
            "flags": dict(self.flags),
            "epochs": self.epochs,
            "fail_fast": self.fail_fast,
            "baseline": self.baseline,
            "last_failed": self.asks_what_failed,
            "record": str(self.recording.record) if self.recording.record else None,
            "replay": str(self.recording.replay) if self.recording.replay else None,
        }


def request_of(
    selecting: Selecting, judging: Judging | None = None, flags: Mapping[str, Any] | None = None
) -> Request:
    """What every command that loads scenarios asks for. ``flags``: keys of the configuration that options of
    the command set. Raises ``AuthorError``."""
    flags = {**(flags or {}), **given_keys(seed=selecting.seed)}
    paths = tuple(selecting.paths or ())
    return Request(
        paths,
        selecting.config,
        selecting.profile,
        selecting.filters,
        judging or Judging(),
        flags,
        last_failed=selecting.last_failed,
        failed_in=selecting.failed_in,
    )


def kept_request(run: RunStarted) -> Request:
    """What a run was asked for. Its recording is not gone on with: what it lacks was never asked."""
    kept = run.request
    replay = Path(kept["replay"]) if kept["replay"] else None
    pairings = (
        frozenset((scenario, agent) for scenario, agents in run.plan.scenarios.items() for agent in agents)
        if kept["last_failed"]
        else None
    )
    return Request(
        paths=tuple(kept["paths"]),
        config=kept["config"],
        profile=kept.get("profile"),
        filters=Filters(**{name: _tupled(value) for name, value in kept["filters"].items()}),
        judging=Judging(**kept["judging"]),
        flags=kept["flags"],
        epochs=kept["epochs"],
        fail_fast=kept["fail_fast"],
        baseline=kept["baseline"],
        recording=Recording(replay=replay),
        last_failed=kept["last_failed"],
        pairings=pairings,
    )


def _tupled(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


@dataclass(frozen=True)
class Setup:
    """What every run has, whether its conversations are played or were recorded. ``public`` is the
    configuration as it may be written down: without secrets. ``plan``: what applies."""

    config: Config
    public: Config
    resources: wiring.Resources
    plan: Plan
    metrics: Metrics


@dataclass(frozen=True)
class Prepared(Setup):
    """``runtime``: what the plan is carried out with. ``samples``: where a gate decides how many epochs there
    are, the first ones. ``remarks``: what is not run, or not checked, although somebody may expect it.
    ``suite``: all scenarios that were loaded. ``request``: with what the profile selects."""

    scenarios: tuple[Scenario, ...]
    samples: tuple[Sample, ...]
    runtime: Runtime
    remarks: tuple[str, ...] = ()
    suite: tuple[Scenario, ...] = ()
    request: Request = field(default_factory=Request)


def with_profile(request: Request, config: Config) -> Request:
    """What the profile selects holds where the command line says nothing of it."""
    chosen, filters = config.selection, request.filters
    return replace(
        request,
        filters=replace(
            filters,
            scenarios=filters.scenarios or chosen.scenarios,
            tags=filters.tags or chosen.tags,
            categories=filters.categories or chosen.categories,
        ),
        judging=replace(
            request.judging, no_judge=request.judging.no_judge or chosen.no_judge or config.code_only
        ),
        baseline=request.baseline or chosen.baseline,
    )


def prepare(request: Request) -> Prepared:
    """Load and check everything; call nothing. Raises ``AuthorError`` with all that is wrong."""
    loaded = load_config(request)
    config = loaded.config
    asked = with_profile(request, config)
    no_judge = asked.judging.no_judge
    metrics = judging.metrics_of(config)
    policy = resolve.suite_of(config, metrics.known.values(), metrics.asked, no_judge=no_judge)
    try:
        found = load_scenarios(asked, config, lambda each: preflight.scenario_problems(each, policy))
    except loading.PartlyReadError as error:
        lacking = preflight.model_problems(error.scenarios, config, metrics, no_judge=no_judge)
        raise AuthorError(*dict.fromkeys((*error.problems, *lacking))) from None
    selected = _selected(asked, config, found)
    scenarios = [scenario for scenario, _ in preflight.played(selected.samples)]
    resources = wiring.Resources(
        config,
        loaded.secrets,
        no_judge=no_judge,
        recording=asked.recording,
        declared_tools=frozenset(name for scenario in found.loaded for name in scenario.tools),
    )
    others = _others(asked, config, policy, found.loaded)
    missed = without_concern(policy.gates, scenarios, others)
    update = {"gates": policy.gates.without(missed), "secrets": resources.marked.placeholders}
    agents = selection.agents_of(config, asked.filters)
    used = {name: agents[name] for name in dict.fromkeys(sample.key.agent for sample in selected.samples)}
    visibility = asked.visibility
    if visibility is None:
        is_part = asked.is_part or len(scenarios) < len(found.loaded)
        earlier = earlier_visibility(Path(config.root), loaded.public, used) if is_part else {}
        visibility = {**earlier, **wiring.known_visibility(used, found.loaded)}
    plan = resolve.plan_of(
        policy.model_copy(update={**update, "needs_model": selected.needs_model}),
        config,
        selected.samples,
        selection.ranges_of(scenarios, config, epochs=asked.epochs),
        visibility=visibility,
        unapplied=resolve.unapplied(policy, scenarios, others)
        | {f"gates.{name}": NOT_SELECTED for name in missed},
    )
    runtime, samples = wiring.runtime_of(
        selected.samples, plan, used, metrics, resources, fail_fast=asked.fail_fast
    )
    misspelt = preflight.misspelt_mocks(samples, resources.agents_have)
    return Prepared(
        config=config,
        public=loaded.public,
        resources=resources,
        plan=plan,
        metrics=metrics,
        scenarios=tuple(scenario for scenario, _ in preflight.played(samples)),
        samples=samples,
        runtime=runtime,
        remarks=(*selected.remarks, *misspelt, *resources.take_warnings()),
        suite=found.loaded,
        request=asked,
    )


class _Selected(NamedTuple):
    """What is run of what was found. ``needs_model``: what is left out for want of one."""

    samples: tuple[Sample, ...]
    needs_model: tuple[str, ...]
    remarks: tuple[str, ...]


def _selected(request: Request, config: Config, found: FoundScenarios) -> _Selected:
    needs_model = _needing_a_model(found.selected, config)
    left_out = frozenset(needs_model)
    scenarios = [scenario for scenario in found.selected if scenario.id not in left_out]
    samples = selection.samples_of(scenarios, config, request.filters, epochs=request.epochs)
    remarks = [] if request.paths else [*_empty_patterns(config)]
    remarks += [text for scenario in scenarios for text in preflight.misspelt_tools(scenario)]
    remarks += _left_out(needs_model)
    if request.pairings:
        samples = _narrowed(samples, request.pairings)
    elif request.asks_what_failed:
        failed = last_failed(Path(config.root), request.failed_in)
        gone = gone_of(failed, request, config, found.loaded)
        samples = _narrowed(samples, failed.pairings)
        if not samples:
            raise failed.nothing_left(gone)
        remarks += [gone_text(gone)] if gone else []
    ids = list(dict.fromkeys(sample.key.scenario for sample in samples))
    kept = frozenset(selection.fewer(ids, request.filters, config.seed))
    few = tuple(sample for sample in samples if sample.key.scenario in kept)
    return _Selected(few, needs_model, tuple(remarks))


def _needing_a_model(scenarios: Sequence[Scenario], config: Config) -> tuple[str, ...]:
    """With ``code_only``, the ids of what is left out. Raises ``NothingSelectedError`` if that is all."""
    if not config.code_only:
        return ()
    ids = tuple(scenario.id for scenario in scenarios if not preflight.is_decided_by_code(scenario))
    if len(ids) == len(scenarios):
        what = "code_only: every scenario that is selected needs a model, for its user or to be decided"
        remedy = "script turns and expect something that code can check, or remove code_only"
        raise NothingSelectedError(Problem(what, remedy, config.place("code_only")))
    return ids


def _left_out(needs_model: Sequence[str]) -> Iterator[str]:
    if needs_model:
        named = f"{', '.join(needs_model[:_NAMED])}{', …' if len(needs_model) > _NAMED else ''}"
        yield f"code_only: {plural(len(needs_model), 'scenario')} not run, for want of a model: {named}"


def load_config(request: Request) -> config_file.LoadedConfig:
    """The configuration, with what the command line says over it. Raises ``AuthorError``."""
    return config_file.load_config(
        Path(request.config) if request.config else config_file.find_config(Path.cwd()),
        KNOWN,
        environ=request.recording.environ(os.environ),
        flags={**request.judging.flags, **request.flags},
        profile=request.profile,
    )


class FoundScenarios(NamedTuple):
    """``loaded``: of all files that were asked for; ``selected``: what the filters leave of it."""

    loaded: tuple[Scenario, ...]
    selected: tuple[Scenario, ...]


def load_scenarios(
    request: Request, config: Config, check: loading.ScenarioCheck = loading.nothing_more
) -> FoundScenarios:
    """Raises ``AuthorError`` with what is wrong with the files and by ``check``, and ``NothingSelectedError``
    where none is left."""
    asked = named_scenarios.asked_for(request.paths, config, Path.cwd())
    if not asked.files:
        raise NothingSelectedError(_no_file(config))
    loaded = loading.load(asked.files, rules=RULES, root=Path(config.root), check=check)
    return FoundScenarios(loaded, selection.select(asked.of(loaded), request.filters))


def _no_file(config: Config) -> Problem:
    patterns = ", ".join(f"'{pattern}'" for pattern in config.include)
    left = " not excluded by `exclude`" if config.exclude else ""
    why = f"{patterns} matches no file in {config.root}{left}" if patterns else "`include` is empty"
    remedy = "name files or folders, or set include: in the configuration"
    if not config.source:
        remedy = "agenteval init writes a first one; agenteval score FILE checks conversations that you have"
    place = config.place("include") if config.where("include") != "default" else None
    return Problem(f"no scenario was found: {why}", remedy, place)


def _empty_patterns(config: Config) -> Iterator[str]:
    where = config.where("include")
    if where != "default":
        for pattern in loading.unmatched(Path(config.root), config.include, config.exclude):
            yield f"include: '{pattern}' ({where}) matches no scenario file"


def gone_of(failed: Failed, request: Request, config: Config, loaded: Sequence[Scenario]) -> tuple[str, ...]:
    """What failed and is in no file any more. Beside the paths that were named there may be others; where
    these cannot be read, nobody knows."""
    gone = failed.gone(scenario.id for scenario in loaded)
    if not (gone and request.paths):
        return gone
    rest = _rest_of(config)
    return () if rest is None else tuple(sorted(set(gone) & set(failed.gone(each.id for each in rest))))


_NAMED = 5


def _others(
    request: Request, config: Config, suite: Plan, loaded: Sequence[Scenario]
) -> Sequence[Scenario] | None:
    """What the suite may hold beyond what is selected. ``loaded`` is all of it, unless paths were named; then
    the rest is read where it matters. ``None``: it cannot be."""
    if not request.paths or not (resolve.unheld(suite, loaded) or without_concern(suite.gates, loaded, None)):
        return loaded
    rest = _rest_of(config)
    return None if rest is None else (*loaded, *rest)


def _rest_of(config: Config) -> Sequence[Scenario] | None:
    """What the configuration includes. ``None``: mistakes in files that nobody asked for; what they hold is
    unknown."""
    root = Path(config.root)
    try:
        return loading.load(loading.find_files(root, config.include, config.exclude), rules=RULES, root=root)
    except AuthorError:
        return None


def _narrowed(samples: Sequence[Sample], pairings: frozenset[Pairing]) -> tuple[Sample, ...]:
    """Only what is among the pairings."""
    return tuple(sample for sample in samples if (sample.key.scenario, sample.key.agent) in pairings)
