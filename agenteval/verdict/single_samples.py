"""Evaluate each sample on its own as soon as it has finished, using the same rules that apply to the complete
run. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from agenteval.core.event import (
    CallsSeen,
    Event,
    IssuesFound,
    ModelAsked,
    Notice,
    Reconsidered,
    ReferenceStatesMade,
    RunFinished,
    RunResumed,
    RunStarted,
    SampleFinished,
    SampleStarted,
    Scored,
    TurnFinished,
)
from agenteval.core.scenario import SampleKey, Scenario
from agenteval.core.score import Check, Finding, Score, ScoreFailure, ScoreItem
from agenteval.core.tool_visibility import KnownVisibility
from agenteval.core.trajectory import ToolVisibility
from agenteval.verdict.report import Report, build_report


class SingleSamples:
    """Collects the events of each running sample."""

    def __init__(self) -> None:
        self.run: RunStarted | None = None
        self._scenarios: dict[str, Scenario] = {}
        self._events: dict[SampleKey, list[Event]] = {}
        self._calls_seen: list[Event] = []

    def add_event(self, event: Event) -> Sequence[Event]:
        """Return all events of a sample when the sample finishes. Return an empty sequence for all other
        events."""
        match event:
            case RunStarted():
                self.run = event
                self._scenarios = {scenario.id: scenario for scenario in event.scenarios}
            case CallsSeen():
                self._calls_seen.append(event)
            case SampleStarted(key=key):
                self._events[key] = [event]
            case TurnFinished(key=key) | Scored(key=key):
                self._events.setdefault(key, []).append(event)
            case SampleFinished(key=key):
                return [*self._events.pop(key, ()), event]
            case (
                RunResumed() | ModelAsked() | Reconsidered() | ReferenceStatesMade() | Notice()
                | IssuesFound() | RunFinished()
            ):  # fmt: skip
                pass
            case _:
                assert_never(event)
        return ()

    def report(self, key: SampleKey, events: Sequence[Event], *, all_seen: bool = False) -> Report:
        """Build the report for this sample alone.

        The other samples of its scenario are recorded as planned, so the report draws no conclusion that
        requires all of them. With ``all_seen``, the report assumes that all calls are seen, because another
        sample may still provide evidence of this."""
        assert self.run
        rules = self.run.plan.rules_for_pairing(key.scenario, key.agent)
        plan = self.run.plan.restrict_to_pairing(key.scenario, key.agent, epochs=rules.most)
        if all_seen:
            seen = {key.agent: KnownVisibility(calls=ToolVisibility.ALL)}
            plan = plan.model_copy(update={"visibility": {**plan.visibility, **seen}})
        scenario = self._scenarios.get(key.scenario)
        alone = self.run.model_copy(
            update={"plan": plan, "scenarios": (scenario,) if scenario is not None else ()}
        )
        return build_report([alone, *self._calls_seen, *events], of_one_sample=True)


def surely_passes(events: Sequence[Event]) -> bool:
    """Check whether no event could cause the sample to fail or to be undecided. Such a sample does not need
    to be evaluated."""
    stops = [event.stop for event in events if isinstance(event, SampleFinished)]
    items = [item for event in events if isinstance(event, Scored) for item in event.items]
    return bool(stops) and stops[-1].fault is None and not any(map(_may_matter, items))


def _may_matter(item: ScoreItem) -> bool:
    if isinstance(item, Check):
        return item.passed is not True
    return isinstance(item, Finding | ScoreFailure) or (isinstance(item, Score) and item.is_open)
