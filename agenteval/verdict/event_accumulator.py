"""Accumulate the events of a run (event sourcing), from which ``agenteval.verdict.report`` builds a report.
Pure, and independent of the order of events between samples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
from agenteval.core.plan import Pairing, ScenarioRules
from agenteval.core.scenario import SampleKey, Scenario
from agenteval.core.score import ScoreItem, UserReview
from agenteval.core.trajectory import CallEvidence, Stop, ToolCall, Turn
from agenteval.core.value import compact
from agenteval.core.world_state import StateChanges


class SampleAccumulator:
    """The state accumulated from the events of one sample. ``aside`` contains the results that the user
    review set aside. ``lost`` contains the earlier conversations of the sample, which errored and were
    repeated."""

    def __init__(self, lost: tuple[SampleAccumulator, ...] = ()) -> None:
        self.turns: dict[int, Turn] = {}
        self.items: dict[int | None, list[ScoreItem]] = {}
        self.aside: list[ScoreItem] = []
        self.stop: Stop | None = None
        self.is_over = False
        self.is_lost = False
        self.unfinished: Turn | None = None
        self.end_state: StateChanges | None = None
        self.names: dict[str, tuple[str, ...]] = {}
        self.lost = lost

    def restart(self) -> SampleAccumulator:
        """Return a new accumulator for a sample that starts again. An interrupted conversation is discarded;
        an errored conversation is kept separately."""
        return SampleAccumulator((*self.lost, self) if self.is_lost else self.lost)

    def score(self, turn: int | None, items: Sequence[ScoreItem]) -> None:
        """Add the results of a scorer. If a review attributes the outcome to the simulator, set aside earlier
        results about the whole conversation and about every turn that starts with the user's fault or follows
        it."""
        for review in (item for item in items if isinstance(item, UserReview) and item.decides):
            for place in [each for each in self.items if each is None or each >= (review.turn or 0)]:
                self.aside += self.items.pop(place)
        self.items.setdefault(turn, []).extend(items)

    def finish(self, event: SampleFinished) -> None:
        """Record how the sample ended."""
        self.stop, self.unfinished, self.names = event.stop, event.unfinished, event.names
        self.end_state = event.state
        self.is_over, self.is_lost = event.is_over, event.again

    def reconsider(self, event: Reconsidered) -> None:
        """Replace earlier results of a metric with the results of a second judgment."""
        conversation_items = self.items.get(None, [])
        others = [item for item in conversation_items if getattr(item, "metric", "") != event.metric]
        self.items[None] = [*others, *event.items]
        self.is_over &= event.is_over


class RunAccumulator:
    """The state accumulated from the events of a run. ``recorded`` contains the scenarios that arrived with
    their samples. ``rules`` contains the rules for pairings of scenario and agent that are not in the plan.
    """

    def __init__(self) -> None:
        self.run: RunStarted | None = None
        self.found: IssuesFound | None = None
        self.finished: RunFinished | None = None
        self.notices: list[Notice] = []
        self.samples: dict[SampleKey, SampleAccumulator] = {}
        self.recorded: dict[str, Scenario] = {}
        self.rules: dict[Pairing, ScenarioRules] = {}
        self.changed_states: set[Pairing] = set()
        """The pairings of scenario and agent whose state differed from the start, or may have."""
        self.faulty_tools: set[tuple[Pairing, str]] = set()
        """The tools of a pairing of which a call had a fault."""
        self._planned: dict[str, Scenario] = {}
        self._evidence: dict[str, set[CallEvidence]] = {}

    def apply(self, event: Event) -> None:
        """Add an event."""
        match event:
            case RunStarted():
                self.run = event
                self._planned = {scenario.id: scenario for scenario in event.scenarios}
            case RunResumed():
                self._resume(event)
            case RunFinished():
                self.finished = event
            case IssuesFound():
                self.found = compact(event)
            case Notice():
                self.notices.append(event)
            case CallsSeen():
                self._evidence.setdefault(event.agent, set()).add(event.evidence)
            case SampleStarted():
                self._start(event)
            case TurnFinished():
                self.samples[event.key].turns[event.index] = event.turn
                self._note_state(event.key, event.turn.state)
                self._note_faults(event.key, event.turn.tool_calls)
            case Scored():
                self.samples[event.key].score(event.turn, event.items)
            case SampleFinished():
                self.samples[event.key].finish(event)
                self._note_state(event.key, event.state)
                self._note_state(event.key, event.unfinished.state if event.unfinished else None)
                if event.unfinished:
                    self._note_faults(event.key, event.unfinished.tool_calls)
            case Reconsidered():
                self._reconsider(event)
            case ModelAsked() | ReferenceStatesMade():
                pass  # not part of the report
            case _:
                assert_never(event)

    @property
    def evidence(self) -> Mapping[str, frozenset[CallEvidence]]:
        """The evidence, keyed by agent, that the agent's calls are seen. It comes from the agent's turns."""
        return {agent: frozenset(found) for agent, found in self._evidence.items()}

    def scenario(self, name: str) -> Scenario:
        """Return the scenario ``name`` of the plan or of a recorded conversation. Raise ``KeyError`` if there
        is none."""
        return self._planned.get(name) or self.recorded[name]

    def _note_state(self, key: SampleKey, state: StateChanges | None) -> None:
        if state is not None and (state.tables or state.unknown_because):
            self.changed_states.add((key.scenario, key.agent))

    def _note_faults(self, key: SampleKey, calls: Iterable[ToolCall]) -> None:
        faulty = {call.name for call in calls if call.result and call.result.fault}
        self.faulty_tools.update(((key.scenario, key.agent), name) for name in faulty)

    def _resume(self, event: RunResumed) -> None:
        if self.run is None:
            return
        config = self.run.config.model_copy(update={"budget": event.budget})
        plan = self.run.plan.with_suite(budget=event.budget)
        self.run = self.run.model_copy(update={"config": config, "plan": plan})
        self.finished = self.found = None

    def _start(self, event: SampleStarted) -> None:
        """Begin a sample. If the sample is started again in a resumed run, discard its interrupted
        conversation."""
        key = event.key
        if event.scenario:
            self.recorded.setdefault(key.scenario, compact(event.scenario))
        if event.rules:
            self.rules.setdefault((key.scenario, key.agent), event.rules)
        before = self.samples.get(key)
        if before is None or not before.is_over:
            self.samples[key] = before.restart() if before else SampleAccumulator()

    def _reconsider(self, event: Reconsidered) -> None:
        if event.key in self.samples:
            self.samples[event.key].reconsider(event)
