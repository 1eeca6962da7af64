"""From the command line to a checked plan: shared by ``run`` and ``validate``."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from agenteval.conversation.pipeline import Runtime
from agenteval.core import selection
from agenteval.core.config import Config
from agenteval.core.errors import AuthorError, NothingSelectedError, Problem
from agenteval.core.plan import Pairing, Plan, SuitePolicy
from agenteval.core.plurals import plural
from agenteval.core.scenario import Sample, Scenario
from agenteval.files import config_file, loading, named_scenarios
from agenteval.files.config_checks import Known
from agenteval.planning import judging, preflight, resolve, wiring
from agenteval.planning.earlier_visibility import earlier_visibility
from agenteval.planning.judging import Metrics
from agenteval.planning.last_failed import Failed, gone_text, last_failed
from agenteval.planning.request import Request
from agenteval.planning.resolve import NOT_SELECTED
from agenteval.scoring.checks import RULES
from agenteval.verdict.run_gates import without_concern


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


def prepare(request: Request, known: Known) -> Prepared:
    """Load and check everything; call nothing. Raises ``AuthorError`` with all that is wrong."""
    loaded = load_config(request, known)
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
    agents = selection.agents_of(config, asked.filters)
    used = {name: agents[name] for name in dict.fromkeys(sample.key.agent for sample in selected.samples)}
    visibility = asked.visibility
    if visibility is None:
        is_part = asked.is_part or len(scenarios) < len(found.loaded)
        earlier = earlier_visibility(Path(config.root), loaded.public, used) if is_part else {}
        visibility = {**earlier, **wiring.known_visibility(used, found.loaded)}
    plan = resolve.plan_of(
        policy.model_copy(update={"gates": policy.gates.without(missed)}),
        config,
        selected.samples,
        selection.ranges_of(scenarios, config, epochs=asked.epochs),
        needs_model=selected.needs_model,
        secrets=resources.marked.placeholders,
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


def load_config(request: Request, known: Known) -> config_file.LoadedConfig:
    """The configuration, with what the command line says over it. Raises ``AuthorError``."""
    return config_file.load_config(
        Path(request.config) if request.config else config_file.find_config(Path.cwd()),
        known,
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
    request: Request, config: Config, suite: SuitePolicy, loaded: Sequence[Scenario]
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
