"""What the events of a run have said so far; ``agenteval.verdict.report`` makes a report of it. Pure, and
independent of the order of events between samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import assert_never

from agenteval.core.event import (
    CallsSeen,
    Event,
    IssuesFound,
    ModelAsked,
    Notice,
    Reconsidered,
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
from agenteval.core.trajectory import CallEvidence, Stop, Turn


class SampleAccumulator:
    """Of one sample. ``aside``: what its review set aside; ``lost``: the conversations that were lost before,
    and played once more as this one."""

    def __init__(self, lost: tuple[SampleAccumulator, ...] = ()) -> None:
        self.turns: dict[int, Turn] = {}
        self.items: dict[int | None, list[ScoreItem]] = {}
        self.aside: list[ScoreItem] = []
        self.stop: Stop | None = None
        self.is_over = False
        self.is_lost = False
        self.unfinished: Turn | None = None
        self.names: dict[str, tuple[str, ...]] = {}
        self.lost = lost

    def restart(self) -> SampleAccumulator:
        """Of the sample when it starts anew: what was cut off is forgotten, and what was lost kept apart."""
        return SampleAccumulator((*self.lost, self) if self.is_lost else self.lost)

    def score(self, turn: int | None, items: Sequence[ScoreItem]) -> None:
        """What a scorer said. A review that makes the outcome the simulator's sets aside what was said before
        of the whole, and of the turns from the user's fault on."""
        for review in (item for item in items if isinstance(item, UserReview) and item.decides):
            for place in [each for each in self.items if each is None or each >= (review.turn or 0)]:
                self.aside += self.items.pop(place)
        self.items.setdefault(turn, []).extend(items)

    def finish(self, event: SampleFinished) -> None:
        """How it ended."""
        self.stop, self.unfinished, self.names = event.stop, event.unfinished, event.names
        self.is_over, self.is_lost = event.is_over, event.again

    def reconsider(self, event: Reconsidered) -> None:
        """What was looked at once more takes the place of what was said before."""
        whole = self.items.get(None, [])
        others = [item for item in whole if getattr(item, "metric", "") != event.metric]
        self.items[None] = [*others, *event.items]
        self.is_over &= event.is_over


class RunAccumulator:
    """Of a run. ``recorded``: the scenarios that came with their samples; ``rules``: what applies to those
    that the plan does not know."""

    def __init__(self) -> None:
        self.run: RunStarted | None = None
        self.found: IssuesFound | None = None
        self.finished: RunFinished | None = None
        self.notices: list[Notice] = []
        self.samples: dict[SampleKey, SampleAccumulator] = {}
        self.recorded: dict[str, Scenario] = {}
        self.rules: dict[Pairing, ScenarioRules] = {}
        self._evidence: dict[str, set[CallEvidence]] = {}

    def apply(self, event: Event) -> None:
        """Add what an event says."""
        match event:
            case RunStarted():
                self.run = event
            case RunResumed():
                self._resume(event)
            case RunFinished():
                self.finished = event
            case IssuesFound():
                self.found = event
            case Notice():
                self.notices.append(event)
            case CallsSeen():
                self._evidence.setdefault(event.agent, set()).add(event.evidence)
            case SampleStarted():
                self._start(event)
            case TurnFinished():
                self.samples[event.key].turns[event.index] = event.turn
            case Scored():
                self.samples[event.key].score(event.turn, event.items)
            case SampleFinished():
                self.samples[event.key].finish(event)
            case Reconsidered():
                self._reconsider(event)
            case ModelAsked():
                pass  # no report is made of it
            case _:
                assert_never(event)

    @property
    def evidence(self) -> Mapping[str, frozenset[CallEvidence]]:
        """By agent: what its turns have shown of how its calls are seen."""
        return {agent: frozenset(found) for agent, found in self._evidence.items()}

    def _resume(self, event: RunResumed) -> None:
        if self.run is None:
            return
        config = self.run.config.model_copy(update={"budget": event.budget})
        plan = self.run.plan.with_suite(budget=event.budget)
        self.run = self.run.model_copy(update={"config": config, "plan": plan})
        self.finished = self.found = None

    def _start(self, event: SampleStarted) -> None:
        """A sample that is started anew (a resumed run) forgets what was cut off."""
        key = event.key
        if event.scenario:
            self.recorded.setdefault(key.scenario, event.scenario)
        if event.rules:
            self.rules.setdefault((key.scenario, key.agent), event.rules)
        before = self.samples.get(key)
        if before is None or not before.is_over:
            self.samples[key] = before.restart() if before else SampleAccumulator()

    def _reconsider(self, event: Reconsidered) -> None:
        if event.key in self.samples:
            self.samples[event.key].reconsider(event)
