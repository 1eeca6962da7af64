"""The second step of a run: it selects the samples of a ``Suite`` that are played. Files are read, but no
code is loaded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agenteval.core import selection
from agenteval.core.config import AgentConfig, Config
from agenteval.core.errors import NothingSelectedError, Problem
from agenteval.core.plan import Pairing, SuitePolicy
from agenteval.core.plurals import plural
from agenteval.core.scenario import Sample, Scenario
from agenteval.core.tool_visibility import KnownVisibility
from agenteval.planning import plan_resolution, preflight
from agenteval.planning.earlier_visibility import earlier_visibility
from agenteval.planning.last_failed import FailedScenarios, describe_removed, find_last_failed
from agenteval.planning.request import Request
from agenteval.planning.suite import Suite, empty_patterns, load_included_scenarios
from agenteval.verdict.run_gates import without_concern

_NAMED = 5


@dataclass(frozen=True)
class SelectedSamples:
    """The samples of a suite that are played."""

    samples: tuple[Sample, ...]
    """The samples; only the first ones of a scenario whose number of epochs a gate decides."""
    scenarios: tuple[Scenario, ...]
    """The scenarios of the samples."""
    agents: Mapping[str, AgentConfig]
    """The agents of the samples, by name."""
    needs_model: tuple[str, ...] = ()
    """The scenarios that ``code_only`` leaves out."""
    unselected_scenarios: Sequence[Scenario] | None = ()
    """The scenarios that the suite may hold beyond the selected ones; None if they are unknown."""
    earlier_visibility: Mapping[str, KnownVisibility] = field(default_factory=dict)
    """By agent, what an earlier run showed about how its calls are seen, if this run is a part of the suite.
    """
    remarks: tuple[str, ...] = ()
    """What is not run although somebody may expect it."""


def select(suite: Suite) -> SelectedSamples:
    """Apply the selection of the command line and the profile. Raise ``NothingSelectedError`` if nothing is
    left."""
    request, config = suite.request, suite.settings.config
    needs_model = _find_scenarios_needing_model(suite.selected_scenarios, config)
    remaining = [scenario for scenario in suite.selected_scenarios if scenario.id not in needs_model]
    planned = selection.samples_of(remaining, config, request.filters, epochs=request.epochs)
    wanted, gone = _wanted_pairings(suite, planned)
    samples = _draw_samples(wanted, request, config)
    scenarios = preflight.scenarios_of(samples)
    agents = selection.agents_of(config, request.filters)
    used = {name: agents[name] for name in dict.fromkeys(sample.key.agent for sample in samples)}
    is_part = request.is_partial or len(scenarios) < len(suite.scenarios)
    looks_back = is_part and request.visibility is None
    return SelectedSamples(
        samples=samples,
        scenarios=scenarios,
        agents=used,
        needs_model=needs_model,
        unselected_scenarios=_possible_scenarios(request, config, suite.settings.policy, suite.scenarios),
        earlier_visibility=earlier_visibility(Path(config.root), suite.settings.public, used)
        if looks_back
        else {},
        remarks=(
            *(() if request.paths else empty_patterns(config)),
            *(text for scenario in remaining for text in preflight.misspelt_tools(scenario)),
            *_code_only_remarks(needs_model),
            *gone,
        ),
    )


def _wanted_pairings(suite: Suite, samples: Sequence[Sample]) -> tuple[Sequence[Sample], list[str]]:
    """Return the samples that failed, or were played, before, if these were requested, and a remark on those
    that no longer exist."""
    request, config = suite.request, suite.settings.config
    if request.pairings:
        return _filter_pairings(samples, request.pairings), []
    if not request.selects_failed:
        return samples, []
    failed = find_last_failed(Path(config.root), request.failed_in)
    gone = find_removed_failures(failed, request, config, suite.scenarios)
    if narrowed := _filter_pairings(samples, failed.pairings):
        return narrowed, [describe_removed(gone)] if gone else []
    raise failed.nothing_selected_error(gone)


def _filter_pairings(samples: Sequence[Sample], pairings: frozenset[Pairing]) -> list[Sample]:
    """Return the samples whose scenario and agent are among the pairings."""
    return [sample for sample in samples if (sample.key.scenario, sample.key.agent) in pairings]


def _draw_samples(samples: Sequence[Sample], request: Request, config: Config) -> tuple[Sample, ...]:
    ids = list(dict.fromkeys(sample.key.scenario for sample in samples))
    kept = frozenset(selection.draw_subset(ids, request.filters, config.seed))
    return tuple(sample for sample in samples if sample.key.scenario in kept)


def _find_scenarios_needing_model(scenarios: Sequence[Scenario], config: Config) -> tuple[str, ...]:
    """Return the ids that ``code_only`` leaves out. Raise ``NothingSelectedError`` if these are all."""
    if not config.code_only:
        return ()
    ids = tuple(scenario.id for scenario in scenarios if not preflight.is_decided_by_code(scenario))
    if len(ids) == len(scenarios):
        what = "code_only: every selected scenario needs a model, for its user or for its verdict"
        remedy = "script turns and expect something that code can check, or remove code_only"
        raise NothingSelectedError(Problem(what, remedy, config.place("code_only")))
    return ids


def _code_only_remarks(needs_model: Sequence[str]) -> Iterator[str]:
    if needs_model:
        named = f"{', '.join(needs_model[:_NAMED])}{', …' if len(needs_model) > _NAMED else ''}"
        yield f"code_only: {plural(len(needs_model), 'scenario')} not run because they need a model: {named}"


def find_removed_failures(
    failed: FailedScenarios, request: Request, config: Config, loaded: Sequence[Scenario]
) -> tuple[str, ...]:
    """Return the scenarios that failed and are in no file any more. If paths were named, other files may have
    them; if these cannot be read, return nothing."""
    gone = failed.find_removed(scenario.id for scenario in loaded)
    if not (gone and request.paths):
        return gone
    rest = load_included_scenarios(config)
    return (
        () if rest is None else tuple(sorted(set(gone) & set(failed.find_removed(each.id for each in rest))))
    )


def _possible_scenarios(
    request: Request, config: Config, policy: SuitePolicy, loaded: Sequence[Scenario]
) -> Sequence[Scenario] | None:
    """Return what the suite may hold beyond the selection. ``loaded`` is all of it, unless paths were named;
    then the rest is read if it matters. Return None if it cannot be read."""
    matters = plan_resolution.find_unused_thresholds(policy, loaded) or without_concern(
        policy.gates, loaded, None
    )
    if not request.paths or not matters:
        return loaded
    rest = load_included_scenarios(config)
    return None if rest is None else (*loaded, *rest)
