"""The second step in preparing a run. It selects (filters) the samples in a ``Suite`` that are to be played.
Files are read during selection, but no code is loaded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from agenteval.core import selection
from agenteval.core.config import AgentConfig, Config
from agenteval.core.errors import NothingSelectedError, Problem, parse_place
from agenteval.core.plan import Pairing, SuitePolicy
from agenteval.core.plurals import plural
from agenteval.core.scenario import Sample, Scenario
from agenteval.core.tool_visibility import KnownVisibility
from agenteval.planning import plan_resolution, preflight
from agenteval.planning.last_failed import FailedScenarios, describe_removed, find_last_failed
from agenteval.planning.request import Request
from agenteval.planning.suite import Suite, empty_patterns, load_included_scenarios
from agenteval.planning.touched_scenarios import touched_scenarios
from agenteval.verdict.run_gates import without_concern

_NAMED = 5


@dataclass(frozen=True)
class SelectedSamples:
    """The samples in a suite that are selected to be played."""

    samples: tuple[Sample, ...]
    """The selected samples. If a gate decides the number of epochs of a scenario, only the first samples are
    included."""
    scenarios: tuple[Scenario, ...]
    """The scenarios to which the samples belong."""
    agents: Mapping[str, AgentConfig]
    """The agents used by the samples, keyed by name."""
    needs_model: tuple[str, ...] = ()
    """The scenarios that ``code_only`` excludes."""
    unselected_scenarios: Sequence[Scenario] | None = ()
    """The scenarios that the suite may contain in addition to the selected ones, or None if these are
    unknown."""
    earlier_visibility: Mapping[str, KnownVisibility] = field(default_factory=dict)
    """The tool-call visibility of each agent in earlier runs. The mapping is empty unless this run covers
    only part of the suite."""
    remarks: tuple[str, ...] = ()
    """Notes on items that are not run, although a user may expect them to be."""


def select(suite: Suite) -> SelectedSamples:
    """Select the samples to play: apply the filters of the command line and the profile. Raise
    ``NothingSelectedError`` if no sample is left."""
    request, config = suite.request, suite.settings.config
    needs_model = _find_scenarios_needing_model(suite.selected_scenarios, config)
    skipped = [scenario for scenario in suite.selected_scenarios if scenario.skip]
    _require_unskipped(suite.selected_scenarios, skipped)
    left_out = {*needs_model, *(scenario.id for scenario in skipped)}
    remaining = [scenario for scenario in suite.selected_scenarios if scenario.id not in left_out]
    planned = selection.samples_of(remaining, config, request.filters, epochs=request.epochs)
    wanted, gone = _wanted_pairings(suite, planned)
    drawn = _draw_samples(wanted, request, config)
    samples = _with_compared(drawn, planned)
    scenarios = preflight.scenarios_of(samples)
    agents = selection.agents_of(config, request.filters)
    used = {name: agents[name] for name in dict.fromkeys(sample.key.agent for sample in samples)}
    is_part = request.is_partial or len(scenarios) < len(suite.scenarios)
    # What an earlier run showed on this machine may be unknown on those of the other shards.
    looks_back = is_part and request.visibility is None and request.shard is None
    return SelectedSamples(
        samples=samples,
        scenarios=scenarios,
        agents=used,
        needs_model=needs_model,
        unselected_scenarios=_possible_scenarios(request, config, suite.settings.policy, suite.scenarios),
        earlier_visibility=_read_earlier_visibility(suite, used) if looks_back else {},
        remarks=(
            *(() if request.paths else empty_patterns(config)),
            *(text for scenario in remaining for text in preflight.misspelt_tools(scenario)),
            *(text for scenario in remaining for text in preflight.leaked_lookups(scenario)),
            *_code_only_remarks(needs_model),
            *(f"skipped: {scenario.id}: {scenario.skip}" for scenario in skipped),
            *gone,
            *_comparison_remarks(drawn, samples),
        ),
    )


def _read_earlier_visibility(suite: Suite, used: Mapping[str, AgentConfig]) -> dict[str, KnownVisibility]:
    from agenteval.planning.earlier_visibility import earlier_visibility  # a whole run reads no other

    return earlier_visibility(Path(suite.settings.config.root), suite.settings.public, used)


def _wanted_pairings(suite: Suite, samples: Sequence[Sample]) -> tuple[Sequence[Sample], list[str]]:
    """Return the requested samples, and a note on failed scenarios that no longer exist. If the request is
    limited to samples that failed or were played in an earlier run, only those samples are returned."""
    request, config = suite.request, suite.settings.config
    if request.pairings:
        return _filter_pairings(samples, request.pairings), []
    if request.changed_files is not None:
        return _changed_or_failed(suite, samples), []
    if not request.selects_failed:
        return samples, []
    failed = find_last_failed(Path(config.root), request.failed_in)
    gone = find_removed_failures(failed, request, config, suite.scenarios)
    if narrowed := _filter_pairings(samples, failed.pairings):
        return narrowed, [describe_removed(gone)] if gone else []
    raise failed.nothing_selected_error(gone)


def _changed_or_failed(suite: Suite, samples: Sequence[Sample]) -> Sequence[Sample]:
    """Return the samples that a change may affect or that did not pass in an earlier run. Raise
    ``NothingSelectedError`` if there are none."""
    request, config = suite.request, suite.settings.config
    touched = touched_scenarios(map(Path, request.changed_files or ()), config, suite.scenarios)
    wanted = {(sample.key.scenario, sample.key.agent) for sample in samples if sample.key.scenario in touched}
    if request.failed_in:
        with suppress(NothingSelectedError):  # everything passed
            wanted |= find_last_failed(Path(config.root), request.failed_in).pairings
    if chosen := _filter_pairings(samples, frozenset(wanted)):
        return chosen
    raise NothingSelectedError(Problem("the change affects no selected scenario", "change another file"))


def _filter_pairings(samples: Sequence[Sample], pairings: frozenset[Pairing]) -> list[Sample]:
    """Return the samples whose pair of scenario and agent is in ``pairings``."""
    return [sample for sample in samples if (sample.key.scenario, sample.key.agent) in pairings]


def _draw_samples(samples: Sequence[Sample], request: Request, config: Config) -> tuple[Sample, ...]:
    ids = list(dict.fromkeys(sample.key.scenario for sample in samples))
    kept = frozenset(selection.draw_subset(ids, request.filters, config.seed))
    return tuple(sample for sample in samples if sample.key.scenario in kept)


def _with_compared(samples: tuple[Sample, ...], planned: Sequence[Sample]) -> tuple[Sample, ...]:
    """Return the samples, together with those that message variants among them are compared with."""
    needed = {
        (name, sample.key.agent) for sample in samples if (name := sample.scenario.compared_with)
    }.difference((sample.key.scenario, sample.key.agent) for sample in samples)
    if not needed:
        return samples
    chosen = {sample.key for sample in samples}
    return tuple(
        sample
        for sample in planned
        if sample.key in chosen or (sample.key.scenario, sample.key.agent) in needed
    )


def _comparison_remarks(drawn: Sequence[Sample], samples: Sequence[Sample]) -> Iterator[str]:
    added = {sample.key.scenario for sample in samples} - {sample.key.scenario for sample in drawn}
    if added:
        names = f"{', '.join(sorted(added)[:_NAMED])}{', …' if len(added) > _NAMED else ''}"
        yield f"run as well, because variants are compared with it: {names}"


def _find_scenarios_needing_model(scenarios: Sequence[Scenario], config: Config) -> tuple[str, ...]:
    """Return the ids of the scenarios that ``code_only`` excludes. Raise ``NothingSelectedError`` if all
    scenarios are excluded."""
    if not config.code_only:
        return ()
    ids = tuple(scenario.id for scenario in scenarios if not preflight.is_decided_by_code(scenario))
    if len(ids) == len(scenarios):
        what = "`code_only`: every selected scenario needs a model, for its user or its verdict"
        remedy = "script the turns and add checks that run without a model, or remove `code_only`"
        raise NothingSelectedError(Problem(what, remedy, config.place("code_only")))
    return ids


def _require_unskipped(scenarios: Sequence[Scenario], skipped: Sequence[Scenario]) -> None:
    """Raise ``NothingSelectedError`` if every scenario is skipped."""
    if len(skipped) == len(scenarios):
        first = skipped[0]
        what = f"every selected scenario is skipped; {first.id}: {first.skip}"
        raise NothingSelectedError(Problem(what, "remove `skip`", parse_place(first.where("skip"))))


def _code_only_remarks(needs_model: Sequence[str]) -> Iterator[str]:
    if needs_model:
        named = f"{', '.join(needs_model[:_NAMED])}{', …' if len(needs_model) > _NAMED else ''}"
        yield f"code_only: {plural(len(needs_model), 'scenario')} not run because they need a model: {named}"


def find_removed_failures(
    failed: FailedScenarios, request: Request, config: Config, loaded: Sequence[Scenario]
) -> tuple[str, ...]:
    """Return the failed scenarios that are no longer in any file. If paths were named, all files that the
    configuration includes are also searched. If those files cannot be read, return an empty tuple."""
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
    """Return all scenarios that the suite may contain, including unselected scenarios. If paths were named
    and the result could make a difference, also read the files that have not been loaded, in addition to
    using the ``loaded`` scenarios. Return None if these files cannot be read."""
    matters = plan_resolution.find_unused_thresholds(policy, loaded) or without_concern(
        policy.gates, loaded, None
    )
    if not request.paths or not matters:
        return loaded
    rest = load_included_scenarios(config)
    return None if rest is None else (*loaded, *rest)
