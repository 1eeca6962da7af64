"""The first step in preparing a run. It loads files and options into a ``Suite``. Mistakes are reported with
their locations."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from agenteval.adapters.traffic.middleware import RecordingOptions, find_marked_secrets
from agenteval.core import selection
from agenteval.core.config import Config
from agenteval.core.errors import AuthorError, NothingSelectedError, Problem
from agenteval.core.marked_secrets import MarkedSecrets
from agenteval.core.plan import SuitePolicy
from agenteval.core.scenario import VARIANT_SEPARATOR, Scenario
from agenteval.files import config_file, path_arguments, scenario_loader
from agenteval.files.config_checks import Registries
from agenteval.planning import judge_setup, preflight
from agenteval.planning.judge_setup import Metrics
from agenteval.planning.plan_resolution import suite_policy
from agenteval.planning.python_worlds import WorldResolver
from agenteval.planning.request import Request
from agenteval.scoring.checks import RULES

if TYPE_CHECKING:
    from agenteval.adapters.traffic.cassettes import Cassette


@dataclass(frozen=True)
class Settings:
    """The configuration and the command-line options, independent of the conversations."""

    config: Config
    public: Config
    """The configuration without secrets, in the form that may be written to disk."""
    secrets: tuple[str, ...]
    """The secrets that the configuration names."""
    metrics: Metrics
    policy: SuitePolicy
    recording: RecordingOptions
    replayed_recording: Cassette | None
    """The recording that is replayed instead of calling agents and models."""
    marked_secrets: MarkedSecrets
    """The secrets that the author marked explicitly."""


@dataclass(frozen=True)
class Suite:
    """Everything that was loaded for a run."""

    settings: Settings
    request: Request
    """The request, including the selection made by the profile."""
    scenarios: tuple[Scenario, ...]
    """The scenarios of all requested files."""
    selected_scenarios: tuple[Scenario, ...]
    """The scenarios that remain after filtering."""


def load_suite(request: Request, known: Registries) -> Suite:
    """Load the configuration, the metrics and the scenarios (the test suite). Raise ``AuthorError`` with all
    mistakes found in them, and ``NothingSelectedError`` if no scenario is left. ``known`` contains the names
    that a configuration may use."""
    loaded = load_config(request, known)
    config, full_request = loaded.config, with_profile(request, loaded.config)
    no_judge = full_request.judging.no_judge
    metrics = judge_setup.load_metrics(config)
    policy = suite_policy(config, metrics.available.values(), metrics.selected, no_judge=no_judge)
    try:
        found = load_scenarios(
            full_request,
            config,
            partial(preflight.scenario_problems, suite=policy),
            WorldResolver(policy.now).resolve,
        )
    except scenario_loader.PartlyReadError as error:
        model_problems = preflight.model_problems(error.scenarios, config, metrics, no_judge=no_judge)
        raise AuthorError(*dict.fromkeys((*error.problems, *model_problems))) from None
    return Suite(
        make_settings(loaded, metrics, policy, full_request.recording),
        full_request,
        found.loaded,
        found.selected,
    )


def make_settings(
    loaded: config_file.LoadedConfig, metrics: Metrics, policy: SuitePolicy, recording: RecordingOptions
) -> Settings:
    """Build the settings. Raise ``AuthorError`` if a recording cannot be replayed."""
    cassette = None
    if recording.replay:
        from agenteval.adapters.traffic.cassettes import read_cassette

        cassette = read_cassette(recording.replay)
    return Settings(
        config=loaded.config,
        public=loaded.public,
        secrets=tuple(loaded.secrets),
        metrics=metrics,
        policy=policy,
        recording=recording,
        replayed_recording=cassette,
        marked_secrets=find_marked_secrets(loaded.config, cassette),
    )


def load_config(request: Request, known: Registries) -> config_file.LoadedConfig:
    """Load the configuration and apply overrides from the command line. Raise ``AuthorError`` if the
    configuration is invalid."""
    return config_file.load_config(
        Path(request.config) if request.config else config_file.find_config(Path.cwd()),
        known,
        environ=request.recording.environ(os.environ),
        flags={**request.judging.flags, **request.flags},
        overrides=request.overrides,
        agent=request.agent,
        profile=request.profile,
    )


def with_profile(request: Request, config: Config) -> Request:
    """Add the selection made by the profile. A selection on the command line takes precedence."""
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


class FoundScenarios(NamedTuple):
    """The scenarios found in the requested files."""

    loaded: tuple[Scenario, ...]
    """The scenarios of all requested files."""
    selected: tuple[Scenario, ...]
    """The scenarios that remain after filtering."""


def load_scenarios(
    request: Request,
    config: Config,
    check: scenario_loader.ScenarioCheck = scenario_loader.no_extra_check,
    resolve: scenario_loader.ResolveScenario = scenario_loader.keep_scenario,
    *,
    allows_only_defaults: bool = False,
) -> FoundScenarios:
    """Load and filter scenarios. ``resolve`` adds what they take from the author's code. With
    ``allows_only_defaults``, a file that contains nothing but ``defaults`` counts as a scenario. Raise
    ``AuthorError`` with the mistakes in the files and the problems that ``check`` finds, and
    ``NothingSelectedError`` if no scenario is left."""
    paths = path_arguments.PathSelection((), {})
    if request.paths or not request.scenarios:
        paths = path_arguments.resolve_path_arguments(request.paths, config, Path.cwd())
    if not paths.files and not request.scenarios:
        raise NothingSelectedError(_no_scenario_problem(config))
    loaded = scenario_loader.load_scenario_files(
        paths.files,
        values=request.scenarios,
        rules=RULES,
        root=Path(config.root),
        check=check,
        allows_only_defaults=allows_only_defaults,
        resolve=resolve,
    )
    chosen = paths.select_scenarios(loaded)
    if named := [text for text in request.filters.scenarios if _is_missing_variant(text, chosen, request)]:
        what = f"'{named[0]}' is a variant, and this run has none"
        raise NothingSelectedError(
            Problem(what, "add --faults PACK or --variants PACK, as in the run that had it")
        )
    if request.faults is None and request.variants is None:
        return FoundScenarios(loaded, selection.select(chosen, request.filters))
    from agenteval.planning import scenario_variants

    with_variants = selection.select(chosen, scenario_variants.base_filters(request.filters))
    if request.faults is not None:
        from agenteval.files.fault_packs import load_fault_packs

        faults = load_fault_packs(request.faults, Path.cwd())
        with_variants = scenario_variants.add_fault_variants(with_variants, faults, config.thresholds, loaded)
    if request.variants is not None:
        from agenteval.files.variant_packs import load_variant_packs
        from agenteval.planning.message_variants import add_message_variants

        packs = load_variant_packs(request.variants, Path.cwd(), loaded)
        with_variants = add_message_variants(with_variants, packs, config)
    return FoundScenarios(
        (*loaded, *(each for each in with_variants if each.variant)),
        scenario_variants.select_variants(with_variants, request.filters),
    )


def _is_missing_variant(text: str, scenarios: Sequence[Scenario], request: Request) -> bool:
    if request.faults is not None or request.variants is not None:
        return False  # it is looked for among those of this run
    base = text.rpartition(selection.ID_SEPARATOR)[2].partition(VARIANT_SEPARATOR)[0]
    ids = {scenario.id for scenario in scenarios}
    return VARIANT_SEPARATOR in text and text not in ids and base in ids


def _no_scenario_problem(config: Config) -> Problem:
    patterns = ", ".join(f"'{pattern}'" for pattern in config.include)
    left = " not excluded by `exclude`" if config.exclude else ""
    why = f"{patterns} matches no file in {config.root}{left}" if patterns else "`include` is empty"
    remedy = "specify files or folders, or set `include` in the configuration"
    if not config.source:
        remedy = "`agenteval init` creates one; `agenteval score FILE` checks recorded conversations"
    place = config.place("include") if config.where("include") != "default" else None
    return Problem(f"no scenario found: {why}", remedy, place)


def empty_patterns(config: Config) -> Iterator[str]:
    """Yield a warning for each pattern in ``include`` that matches no file."""
    where = config.where("include")
    if where != "default":
        for pattern in scenario_loader.unmatched_files(Path(config.root), config.include, config.exclude):
            yield f"`include`: '{pattern}' ({where}) matches no scenario file"


def load_included_scenarios(config: Config) -> Sequence[Scenario] | None:
    """Return the scenarios that the configuration includes, regardless of the request. Return None if these
    files contain mistakes, because their content is then unknown."""
    root = Path(config.root)
    try:
        return scenario_loader.load_scenario_files(
            scenario_loader.find_scenario_files(root, config.include, config.exclude), rules=RULES, root=root
        )
    except AuthorError:
        return None
