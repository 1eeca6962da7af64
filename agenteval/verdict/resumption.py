"""Resume an interrupted run (checkpoint and resume): determine which samples are finished, which remain, and
whether the run would still measure the same thing. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from agenteval.core.event import (
    CallsSeen,
    Event,
    Reconsidered,
    RunFinished,
    RunResumed,
    RunStarted,
    SampleFinished,
)
from agenteval.core.plan import Plan
from agenteval.core.scenario import SampleKey, Scenario

RESULT_NEUTRAL_KEYS = frozenset(
    (
        *("concurrency", "agent_concurrency", "reporters", "budget"),
        # Where things are written, and what ``sources`` covers.
        *("source", "root", "lines", "columns", "origins", "accepted_failures"),
    )
)
"""Configuration keys that do not change what is measured."""
VARIABLES_SUFFIX = ": ${…}"
"""The suffix of a source's name if the source is a configuration key rather than a file."""
_NOT_CONTENT: Any = {
    **dict.fromkeys(Scenario.PLACES | Scenario.NOTES, True),
    "tools": {"__all__": {"base"}},
    "state": {"base"},
    "user_prompt_hash": True,  # one of the prompts
}
"""Fields of a scenario that do not change what is measured."""


def finished_samples(events: Iterable[Event]) -> frozenset[SampleKey]:
    """Return the samples that have ended, regardless of their outcome. These samples are not run again."""
    return frozenset(key for key, is_over in _ends(events).items() if is_over)


def _ends(events: Iterable[Event]) -> dict[SampleKey, bool]:
    """Return, for each sample with a finish event, whether the sample is over according to its last event."""
    ends: dict[SampleKey, bool] = {}
    for event in events:
        if isinstance(event, SampleFinished):
            ends[event.key] = event.is_over
        elif isinstance(event, Reconsidered):
            ends[event.key] = ends.get(event.key, False) and event.is_over
    return ends


def events_to_keep(events: Sequence[Event]) -> Iterator[Event]:
    """Yield the events to keep when a run is resumed: the start of the run, the evidence about its agents,
    every event of the samples that are over, and the finish events of other samples that errored once."""
    done = finished_samples(events)
    for event in events:
        is_lost = isinstance(event, SampleFinished) and event.again
        if is_lost or isinstance(event, RunStarted | CallsSeen) or getattr(event, "key", None) in done:
            yield event


def run_ending(events: Iterable[Event]) -> RunFinished | None:
    """Return the end of the run, or ``None`` if the run did not end."""
    end: RunFinished | None = None
    for event in events:
        if isinstance(event, RunFinished):
            end = event
        elif isinstance(event, RunResumed):
            end = None
    return end


def is_complete(events: Sequence[Event]) -> bool:
    """Check whether nothing remains to be done. Samples skipped by ``--fail-fast`` remain skipped, but a
    judge that was not called still has to be called."""
    end = run_ending(events)
    is_ended = end is not None and end.outcome in ("complete", "fail_fast")
    return is_ended and all(_ends(events).values())


def list_changes(then: RunStarted, now: RunStarted) -> tuple[str, ...]:
    """Describe every change that may affect the results."""
    changes = [
        *_scenario_changes(then.scenarios, now.scenarios),
        *_named_changes("the prompt", then.prompts, now.prompts),
        *_named_changes("the metric", _specs(then), _specs(now)),
        *(f"the configuration key '{key}' has changed" for key in _config_changes(then, now)),
        *_named_changes("", _source_names(then.sources), _source_names(now.sources)),
    ]
    if not changes and _selection(then.plan) != _selection(now.plan):
        changes.append("the samples or the metrics would differ")
    return tuple(dict.fromkeys(changes))


def _selection(plan: Plan) -> tuple[Any, ...]:
    """Return the parts of the suite that are run and judged, independently of the files that contain them."""
    epochs = [
        (scenario, agent, plan.rule_sets[kind].epochs)
        for scenario, agents in plan.scenarios.items()
        for agent, kind in agents.items()
    ]
    return epochs, plan.suite.judged


def _specs(run: RunStarted) -> dict[str, Any]:
    return {spec.name: spec for spec in run.plan.suite.metrics}


def _source_names(sources: Mapping[str, str]) -> dict[str, str]:
    return {
        f"the value of variables in '{name.removesuffix(VARIABLES_SUFFIX)}'"
        if name.endswith(VARIABLES_SUFFIX)
        else f"the file '{name}'": content
        for name, content in sources.items()
    }


def _scenario_changes(then: Sequence[Scenario], now: Sequence[Scenario]) -> Iterator[str]:
    before, after = ({scenario.id: scenario_content(scenario) for scenario in each} for each in (then, now))
    for name in (*before, *(name for name in after if name not in before)):
        if name not in after:
            yield f"the scenario '{name}' no longer exists"
        elif name not in before:
            yield f"the scenario '{name}' is new"
        elif parts := [key for key, value in before[name].items() if after[name][key] != value]:
            yield f"the scenario '{name}' has changed: {', '.join(parts)}"


def scenario_content(scenario: Scenario) -> dict[str, Any]:
    """Return the content of a scenario that affects its results, independently of the file that contains it
    and of notes for readers. The content of its user prompt is not included."""
    return scenario.model_dump(mode="json", exclude=_NOT_CONTENT)


def _named_changes(what: str, then: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    for name in (*then, *(name for name in now if name not in then)):
        called = f"{what} '{name}'" if what else name
        if name not in now:
            yield f"{called} no longer exists"
        elif name not in then:
            yield f"{called} is new"
        elif then[name] != now[name]:
            yield f"{called} has changed"


def _config_changes(then: RunStarted, now: RunStarted) -> Iterator[str]:
    before, after = (
        run.config.model_dump(mode="json", exclude=set(RESULT_NEUTRAL_KEYS)) for run in (then, now)
    )
    yield from _differing_keys(before, after)


def _differing_keys(before: Any, after: Any, path: str = "") -> Iterator[str]:
    """Yield the dotted keys that differ, descending as long as both values are mappings."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in dict.fromkeys((*before, *after)):
            missing = object()
            below = (before.get(key, missing), after.get(key, missing))
            yield from _differing_keys(*below, f"{path}.{key}" if path else str(key))
    elif before != after:
        yield path
