"""Replays the conversations in an agenteval journal, so that a run can be rescored."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import TypeAlias, assert_never

from pydantic import ValidationError

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
from agenteval.core.plan import Plan
from agenteval.core.recorded_conversation import RecordedConversation
from agenteval.core.scenario import SampleKey, Scenario
from agenteval.core.score import MISSING_TURNS, OUTCOME, Check, UserReview
from agenteval.core.tool_visibility import KnownVisibility, VisibilitySource, visibility_of
from agenteval.core.trajectory import CallEvidence, Stop, StopReason, Trajectory, Turn
from agenteval.core.world_state import ReferenceState, StateChanges
from agenteval.files import journal
from agenteval.importers.sources import Source, lines_of, parse
from agenteval.messages.log_entry import UnreadableRecord

PolicyOf: TypeAlias = Callable[[RunStarted, str], str]
"""A function that returns the policy of a named agent under the configuration of a given run."""


class _Order:
    """Yields samples in the order in which they were planned, regardless of the order in which they finished.

    Samples that must wait for an earlier one are kept in memory. Samples that were not planned (additional
    epochs) are yielded last. If there is no plan (recorded conversations), the order of the journal is used.
    """

    def __init__(self, planned: Sequence[SampleKey]) -> None:
        self._planned = planned
        self._places = {key: place for place, key in enumerate(planned)}
        self._groups: dict[tuple[str, str], int] = {}
        for place, key in enumerate(planned):
            self._groups.setdefault((key.scenario, key.agent), place)
        self._next = 0
        self._waiting: dict[SampleKey, RecordedConversation] = {}

    def ready(self, recorded: RecordedConversation) -> Iterator[RecordedConversation]:
        """Yield the samples that can be yielded in order now that ``recorded`` is complete."""
        if not self._planned:
            yield recorded
            return
        self._waiting[recorded.key] = recorded
        while self._next < len(self._planned) and self._planned[self._next] in self._waiting:
            yield self._waiting.pop(self._planned[self._next])
            self._next += 1

    def rest(self, lost: Iterable[RecordedConversation]) -> Iterator[RecordedConversation]:
        """Yield all remaining samples, including samples that were never completed."""
        left = {**self._waiting, **{recorded.key: recorded for recorded in lost}}
        yield from (left[key] for key in sorted(left, key=self._place))

    def _place(self, key: SampleKey) -> tuple[int, int, str, int]:
        end = len(self._planned)
        group = self._groups.get((key.scenario, key.agent), end)
        return self._places.get(key, end), group, key.variant, key.epoch


class _JournalReplay:
    """The state of replaying a journal."""

    def __init__(self, started: RunStarted, policy_of: PolicyOf) -> None:
        self.started = started
        self._scenarios = {scenario.id: scenario for scenario in started.scenarios}
        self._policy_of = policy_of
        self._policies: dict[str, str] = {}
        self._turns: dict[SampleKey, dict[int, Turn]] = {}
        self._begun: dict[SampleKey, tuple[Scenario, str]] = {}
        self._known: dict[SampleKey, tuple[Check, ...]] = {}
        self._reviews: dict[SampleKey, UserReview] = {}
        self._references: dict[SampleKey, tuple[ReferenceState, ...]] = {}
        self._cut_short: dict[SampleKey, RecordedConversation] = {}
        self._never_ran = dict.fromkeys(started.plan.samples)
        self._order = _Order(started.plan.samples)
        self._end: RunFinished | None = None

    def read(self, event: Event, where: str) -> Iterator[RecordedConversation | UnreadableRecord]:
        """Process an event, and yield the samples that it completes."""
        match event:
            case SampleStarted():
                if not self._begin(event, where):
                    yield _without_scenario(event, where)
            case ReferenceStatesMade():
                self._references[event.key] = event.states
            case TurnFinished():
                self._turns.setdefault(event.key, {})[event.index] = event.turn
            case Scored():
                self._keep_scores(event)
            case SampleFinished():
                yield from self._finish(event)
            case RunFinished() | RunResumed():
                self._end = event if isinstance(event, RunFinished) else None
            case RunStarted() | ModelAsked() | Reconsidered() | Notice() | CallsSeen() | IssuesFound():
                pass  # not scored again
            case _:
                assert_never(event)

    def _begin(self, event: SampleStarted, where: str) -> bool:
        scenario = event.scenario or self._scenarios.get(event.key.scenario)
        if scenario is None:
            return False
        self._turns[event.key] = {}
        self._known.pop(event.key, None)
        self._reviews.pop(event.key, None)
        self._references.pop(event.key, None)
        self._cut_short.pop(event.key, None)
        self._never_ran.pop(event.key, None)
        # The journal may be anyone's, so code that it names is not run.
        self._begun[event.key] = (scenario.model_copy(update={"base": ""}), where)
        return True

    def _keep_scores(self, event: Scored) -> None:
        known = [
            item for item in event.items if isinstance(item, Check) and item.name in (OUTCOME, MISSING_TURNS)
        ]
        if known:
            self._known[event.key] = (*self._known.get(event.key, ()), *known)
        for review in (item for item in event.items if isinstance(item, UserReview)):
            self._reviews[event.key] = review.model_copy(update={"usage": None})  # that run paid for it

    def _finish(self, event: SampleFinished) -> Iterator[RecordedConversation]:
        if event.key in self._begun:
            recorded = self._recorded(event.key, event.stop, event.unfinished, event.names, event.state)
            if event.is_over:
                yield from self._order.ready(recorded)
            else:
                self._cut_short[event.key] = recorded

    def rest(self, end: str) -> Iterator[RecordedConversation | UnreadableRecord]:
        """Yield the remaining samples: those that were cut short and never repeated, those that were still
        running at the end of the journal, and those that were planned but never ran. ``end`` is the location
        of the last event. If the journal is not that of a whole run although no known sample was lost, an
        unreadable record is yielded instead, because any further results of the run are unknown."""
        # Not lost, but a judge was not asked:
        unasked = [each for each in self._cut_short.values() if not _is_cut_short(each)]
        lost = [each for each in self._cut_short.values() if _is_cut_short(each)]
        stop = Stop(reason=StopReason.INTERRUPTED, detail="the journal ends before the sample finished")
        lost += [self._recorded(key, stop) for key in list(self._begun)]
        stop = Stop(reason=StopReason.INTERRUPTED, detail="the sample was planned but never ran")
        for key in self._never_ran:
            if key.scenario in self._scenarios:
                self._begun[key] = (self._scenarios[key.scenario], end)
                lost.append(self._recorded(key, stop))
        yield from self._order.rest((*unasked, *lost))
        if not lost and (why := self._why_incomplete()):
            yield UnreadableRecord(end, f"the journal is incomplete: {why}", hides_rest=True)

    @property
    def has_ended(self) -> bool:
        return self._end is not None

    def _why_incomplete(self) -> str:
        """Return why the journal is not that of a whole run, or an empty string if it is. A run that a limit
        ended has planned everything: what it did not play was lost."""
        shard, merged = self.started.plan.shard, self.started.merged
        if self._end is None:
            return "its run was cut off"
        if shard:
            return f"it is that of shard {shard} of its run"
        if merged and merged.incomplete:
            return "shards of its run are missing or did not finish"
        return ""

    def _recorded(
        self,
        key: SampleKey,
        stop: Stop,
        unfinished: Turn | None = None,
        names: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
        end_state: StateChanges | None = None,
    ) -> RecordedConversation:
        scenario, where = self._begun.pop(key)
        turns = self._turns.pop(key, {})
        trajectory = Trajectory(
            turns=tuple(turns[index] for index in sorted(turns)),
            stop=stop,
            unfinished=unfinished,
            end_state=end_state,
        )
        if key.agent not in self._policies:
            self._policies[key.agent] = self._policy_of(self.started, key.agent)
        if not scenario.policy and self._policies[key.agent]:
            scenario = scenario.model_copy(update={"policy": self._policies[key.agent]})
        return RecordedConversation(
            key,
            scenario,
            trajectory,
            where,
            checks=self._known.pop(key, ()),
            run=self.started,
            review=self._reviews.pop(key, None),
            references=self._references.pop(key, ()),
            names=names,
        )


def _without_scenario(event: SampleStarted, where: str) -> UnreadableRecord:
    return UnreadableRecord(where, f"the journal has no scenario for the sample {event.key}")


def _is_cut_short(recorded: RecordedConversation) -> bool:
    stop = recorded.trajectory.stop
    return stop is None or stop.is_cut_short


_CALL_EVENT_MARKS = (b'"type":"run_started"', b'"type":"calls_seen"')


def visibility_in(lines: Iterable[bytes]) -> dict[str, KnownVisibility]:
    """Return the visibility of each agent's tool calls, which was either known before the run or determined
    during the run. ``lines`` contains the lines of the run's journal."""
    started: RunStarted | None = None
    evidence: dict[str, set[CallEvidence]] = {}
    for line in lines:
        if not any(mark in line for mark in _CALL_EVENT_MARKS):
            continue
        try:
            event = journal.event_from_json(line)
        except ValidationError:
            continue
        if isinstance(event, RunStarted):
            started = event
        elif isinstance(event, CallsSeen):
            evidence.setdefault(event.agent, set()).add(event.evidence)
    return _final_visibility(started.plan, evidence) if started else {}


def placeholders_in(lines: Iterable[bytes]) -> dict[str, tuple[str, ...]]:
    """Return the placeholders for each agent's secrets in a run. ``lines`` contains the lines of the run's
    journal."""
    for line in lines:
        if _CALL_EVENT_MARKS[0] in line:
            with suppress(ValidationError):
                event = journal.event_from_json(line)
                if isinstance(event, RunStarted):
                    return event.plan.secrets
    return {}


def _final_visibility(
    plan: Plan, evidence: Mapping[str, Collection[CallEvidence]]
) -> dict[str, KnownVisibility]:
    """Return the visibility of each agent's calls at the end of a run. The author's declaration takes
    precedence."""
    known = {name: each for name, each in plan.visibility.items() if each.is_authors}
    passthrough = plan.suite.unmocked_tools == "passthrough"
    for agent in {*evidence, *(agent for agents in plan.scenarios.values() for agent in agents)} - {*known}:
        before = plan.known_visibility(agent)
        calls = visibility_of(before, evidence.get(agent, ()), passthrough=passthrough)
        why = before.why if before else ""
        known[agent] = KnownVisibility(calls=calls, source=VisibilitySource.EARLIER_RUN, why=why)
    return known


def replay_journal(source: Source, policy_of: PolicyOf) -> Iterator[RecordedConversation | UnreadableRecord]:
    """Yield the samples of a journal in the order in which they were planned. An incomplete last line is
    ignored if the run had not ended."""
    run: _JournalReplay | None = None
    torn: UnreadableRecord | None = None
    where = source.display_name
    for line in lines_of(source):
        if torn is not None:
            yield torn
            torn = None
        if isinstance(line, UnreadableRecord):
            yield line
            continue
        where = f"{source.display_name}:{line.number}"
        try:
            event = journal.event_from_json(line.data)
        except ValidationError as error:
            unreadable = UnreadableRecord(where, f"not a journal event: {error.errors()[0]['msg']}")
            if _is_whole(line.data) or (run and run.has_ended):
                yield unreadable
            else:
                torn = unreadable
            continue
        if isinstance(event, RunStarted):
            if run:
                yield from run.rest(where)
            run = _JournalReplay(event, policy_of)
        elif run:
            yield from run.read(event, where)
        elif isinstance(event, SampleStarted):
            yield _without_scenario(event, where)
    if run:
        yield from run.rest(where)


def _is_whole(data: bytes) -> bool:
    """Check whether a line is valid JSON, which an incomplete line is not."""
    try:
        parse(data)
    except (ValueError, RecursionError):
        return False
    return True
