"""Keep memory usage low: retain the numbers for all conversations (there may be ten thousand) but the text of
only a few failed ones.

The journal contains everything. This module holds the data that stays in memory until the reports are
written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any, NamedTuple, assert_never

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
from agenteval.core.plan import Plan, ScenarioRules
from agenteval.core.scenario import SampleKey, Scenario
from agenteval.core.score import Check, Finding, ScoreItem
from agenteval.core.tool_visibility import OpenReasons, settle_absence_checks, visibility_of
from agenteval.core.trajectory import CallEvidence, Step, Stop, ToolCall, ToolResult, Turn
from agenteval.verdict.sample_decisions import sample_failed

KEPT_IN_FULL = 100
"""The default number of conversations whose text is kept, which is far more than a person reads.
Human-readable reports list the rest with their reasons."""
LEFT_OUT = "(not kept for the report; see the journal)"

_BLANK = Scenario()
_Items = tuple[tuple[int | None, tuple[ScoreItem, ...]], ...]


class _RetainedSample(NamedTuple):
    """A conversation in its retained form."""

    key: SampleKey
    rules: ScenarioRules | None
    scenario: Scenario | None
    turns: tuple[Turn, ...]
    items: _Items
    stop: Stop
    unfinished: Turn | None
    number: int
    names: dict[str, tuple[str, ...]]

    @property
    def has_findings(self) -> bool:
        return any(isinstance(item, Finding) for _, items in self.items for item in items)

    def events(self) -> Iterator[Event]:
        yield SampleStarted(key=self.key, rules=self.rules, scenario=self.scenario)
        for index, turn in enumerate(self.turns):
            yield TurnFinished(key=self.key, index=index, turn=turn)
        for place, items in self.items:
            yield Scored(key=self.key, turn=place, items=items)
        yield SampleFinished(key=self.key, stop=self.stop, unfinished=self.unfinished, names=self.names)


class RetainedEvents:
    """A sink for events that will be accumulated later. ``most`` is the maximum number of failed
    conversations whose text is kept, and the same maximum applies to other conversations with something to
    report. If ``everything`` is true, nothing is left out."""

    def __init__(self, plan: Plan, *, most: int = KEPT_IN_FULL, everything: bool = False) -> None:
        self._plan = plan
        self._everything = everything
        self._started: list[Event] = []
        self._rest: list[Event] = []
        self._open: dict[SampleKey, _OpenSample] = {}
        self._done: list[_RetainedSample] = []
        self._reconsidered: dict[SampleKey, list[Reconsidered]] = {}
        self._begun = 0
        self._scenarios: dict[str, Scenario] = {}
        self._slim = _EventSlimmer()
        self._evidence: dict[str, set[CallEvidence]] = {}
        self._room = {True: most, False: most}

    def __call__(self, event: Event) -> None:
        match event:
            case RunStarted():
                self._started.append(event)
            case SampleStarted(key=key):
                self._open[key] = _OpenSample(event, self._begun)
                self._begun += 1
            case TurnFinished() if opened := self._open.get(event.key):
                opened.turns.append(event.turn)
            case Scored() if opened := self._open.get(event.key):
                opened.items.append((event.turn, event.items))
            case SampleFinished() if opened := self._open.get(event.key):
                del self._open[event.key]
                self._close(opened, event)
            case CallsSeen(agent=agent, evidence=evidence):
                self._evidence.setdefault(agent, set()).add(evidence)
                self._rest.append(event)
            case Reconsidered():
                self._reconsidered.setdefault(event.key, []).append(event)
            case TurnFinished() | Scored() | SampleFinished():
                self._rest.append(event)  # from a sample that never started
            case RunResumed() | Notice() | IssuesFound() | RunFinished():
                self._rest.append(event)
            case ModelAsked():
                """No report shows this event."""
            case _:
                assert_never(event)

    def events(self, *, found: bool = False) -> Iterator[Event]:
        """Yield the events of the run, grouped by sample and in the order of the records, regardless of which
        judge finished first. With ``found``, yield only samples in which something was found."""
        yield from self._started
        for sample in sorted(self._done, key=attrgetter("number")):
            again = self._reconsidered.get(sample.key, ())
            if not found or sample.has_findings or again:
                yield from sample.events()
                yield from again
        for key, opened in self._open.items():
            yield SampleStarted(key=key, rules=opened.rules, scenario=opened.scenario)
        yield from self._rest

    def _close(self, opened: _OpenSample, event: SampleFinished) -> None:
        turns, items, unfinished = tuple(opened.turns), tuple(opened.items), event.unfinished
        all_turns = (*turns, unfinished) if unfinished else turns
        if not self._is_kept(event.key.agent, items, event.stop, all_turns):
            found = (item for _, each in items for item in each if isinstance(item, Finding))
            keeps_calls = any(finding.call is not None for finding in found)
            turns = tuple(self._slim.turn(turn, keeps_calls=keeps_calls) for turn in turns)
            items = tuple(self._slim.score_items(place, scored) for place, scored in items)
            unfinished = self._slim.turn(unfinished, keeps_calls=keeps_calls) if unfinished else None
        scenario = self._scenario(opened.scenario)
        self._done.append(
            _RetainedSample(
                event.key,
                opened.rules,
                scenario,
                turns,
                items,
                event.stop,
                unfinished,
                opened.number,
                event.names,
            )
        )

    def _is_kept(self, agent: str, items: _Items, stop: Stop, turns: Sequence[Turn]) -> bool:
        if self._everything:
            return True
        settled = self._settled(agent, [item for _, each in items for item in each], turns)
        if all(isinstance(item, Check) and item.passed for item in settled) and stop.fault is None:
            return False
        failed = sample_failed(settled, stop, self._plan)
        self._room[failed] -= 1
        return self._room[failed] >= 0

    def _settled(self, agent: str, items: Sequence[ScoreItem], turns: Sequence[Turn]) -> Sequence[ScoreItem]:
        """Settle open checks using the evidence about the agent collected so far. A later conversation may
        provide more evidence."""
        passthrough = self._plan.suite.unmocked_tools == "passthrough"
        known, evidence = self._plan.known_visibility(agent), self._evidence.get(agent, set())
        return settle_absence_checks(
            items, visibility_of(known, evidence, passthrough=passthrough), turns, OpenReasons()
        )

    def _scenario(self, scenario: Scenario | None) -> Scenario | None:
        """Return one object that all conversations of a scenario share."""
        if scenario is not None and scenario.id not in self._scenarios:
            self._scenarios[scenario.id] = scenario if self._everything else _without_words(scenario)
        return self._scenarios[scenario.id] if scenario else None


def _without_words(scenario: Scenario) -> Scenario:
    if scenario.lines:  # an author wrote it, and reports name its lines
        return scenario.model_copy(update={"tools": {}, "knowledge": (), "facts": (), "policy": ""})
    return _BLANK.model_copy(update={"id": scenario.id, "name": scenario.name, "source": scenario.source})


class _OpenSample:
    """A sample whose events are still arriving."""

    __slots__ = ("items", "number", "rules", "scenario", "turns")

    def __init__(self, begun: SampleStarted, number: int) -> None:
        self.rules = begun.rules
        self.scenario = begun.scenario
        self.number = number
        self.turns: list[Turn] = []
        self.items: list[tuple[int | None, tuple[ScoreItem, ...]]] = []


def _has_figures(step: Step) -> bool:
    return bool(step.latency_ms or step.usage.calls or step.usage.tokens)


_REFUSAL = ToolResult(refused=True)


def _refusal(call: ToolCall) -> ToolResult | None:
    """Return an empty result for a call that was refused, because such a call does not count as made."""
    return _REFUSAL if call.result is not None and call.result.refused else None


class _EventSlimmer:
    """Reduces turns and checks to objects without text, and shares the objects that thereby become equal."""

    def __init__(self) -> None:
        self._turns: dict[tuple[object, ...], Turn] = {}
        self._steps: dict[tuple[object, ...], Step] = {}
        self._calls: dict[tuple[str, bool, bool, bool], ToolCall] = {}
        self._checks: dict[str, Check] = {}
        self._slimmed_items: dict[tuple[object, ...], tuple[int | None, tuple[ScoreItem, ...]]] = {}

    def turn(self, turn: Turn, *, keeps_calls: bool) -> Turn:
        """Remove the text of a turn. With ``keeps_calls``, the arguments of its calls are kept, because they
        identify failures."""
        steps = tuple(self._step(step, keeps_calls=keeps_calls) for step in turn.steps)
        update: dict[str, Any] = {"user": LEFT_OUT, "steps": steps}
        if (
            keeps_calls
            or turn.latency_ms
            or turn.user_model
            or turn.error
            or any(map(_has_figures, turn.steps))
        ):
            return turn.model_copy(update=update)
        key = (turn.script, turn.evidence, turn.unplaced, *map(id, steps))
        if key not in self._turns:
            self._turns[key] = turn.model_copy(update=update)
        return self._turns[key]

    def score_items(
        self, place: int | None, items: Iterable[ScoreItem]
    ) -> tuple[int | None, tuple[ScoreItem, ...]]:
        slim = tuple(self._check(item) if isinstance(item, Check) else item for item in items)
        names = [item.name for item in slim if isinstance(item, Check) and self._is_shared(item)]
        if len(names) < len(slim):
            return place, slim
        return self._slimmed_items.setdefault((place, *names), (place, slim))

    def _is_shared(self, check: Check) -> bool:
        return self._checks.get(check.name) is check

    def _step(self, step: Step, *, keeps_calls: bool) -> Step:
        text = LEFT_OUT if (step.text or "").strip() else step.text
        if keeps_calls:
            calls = tuple(
                call.model_copy(update={"result": _refusal(call), "extra": {}}) for call in step.tool_calls
            )
            return step.model_copy(update={"text": text, "tool_calls": calls, "extra": {}})
        calls = tuple(map(self._call, step.tool_calls))
        slim = step.model_copy(update={"text": text, "tool_calls": calls, "extra": {}})
        return slim if _has_figures(step) else self._steps.setdefault((text, *map(id, calls)), slim)

    def _call(self, call: ToolCall) -> ToolCall:
        refusal = _refusal(call)
        key = (call.name, call.observed, call.attempted, refusal is not None)
        if key not in self._calls:
            self._calls[key] = ToolCall(
                name=call.name,
                args={},
                observed=call.observed,
                attempted=call.attempted,
                result=refusal,
            )
        return self._calls[key]

    def _check(self, check: Check) -> Check:
        """Reduce a check that passed to its name."""
        if not check.passed or check.by:
            return check
        if check.name not in self._checks:
            self._checks[check.name] = Check(name=check.name, passed=True)
        return self._checks[check.name]
