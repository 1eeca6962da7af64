"""Where a run stands: events in, a snapshot out. The clock is the caller's; nothing is written here."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from statistics import median
from threading import Lock
from typing import NamedTuple, TypeAlias

from agenteval.core.event import (
    Event,
    Notice,
    RunStarted,
    SampleFinished,
    SampleStarted,
    Scored,
    TurnFinished,
)
from agenteval.core.plan import Plan
from agenteval.core.safe_text import one_line
from agenteval.core.scenario import SampleKey
from agenteval.core.score import Check, ScoreFailure, UserReview, Verdict
from agenteval.core.score import Score as JudgedScore
from agenteval.core.trajectory import Trajectory
from agenteval.reporters.words.failure import gist, sample_violations
from agenteval.verdict.gates import decide_sample
from agenteval.verdict.ledger import LedgerLine, total_cost
from agenteval.verdict.single import SingleSamples, surely_passes
from agenteval.verdict.spending import lines_of_sample

SHOWN_RUNNING = 4
"""Samples shown by name while they run: those that have been running longest."""
ENOUGH_TO_GUESS = 5
"""So many samples must have finished before the rest is estimated from this run alone."""
LABEL_WIDTH = 60

Pending: TypeAlias = Callable[[SampleKey], str]
"""What a running sample waits for, in words; empty if that is unknown. Asked from another thread."""
AtWork: TypeAlias = Callable[[SampleKey], int]
"""How many judges of a sample have not answered yet."""


def not_known(key: SampleKey) -> str:
    return ""


def nobody(key: SampleKey) -> int:
    return 0


class Outlook(NamedTuple):
    """What is known beside the events: whom a sample waits for, its judges at work, and by scenario how long
    it usually takes."""

    pending: Pending = not_known
    judges: AtWork = nobody
    usual_s: Mapping[str, float] = {}


NOTHING_KNOWN = Outlook()


class Ended(NamedTuple):
    """A sample that did not pass: its name, how it ended, how long it took, and why."""

    label: str
    verdict: Verdict
    took_s: float
    reason: str


@dataclass(frozen=True)
class Running:
    """A sample that has started: its name, the turn that it is in (from 1), and for how long. ``judged``: its
    conversation is over, and so many judges of so many have answered. ``waits_for``: whom, if that is
    known."""

    label: str
    turn: int
    for_s: float
    judged: tuple[int, int] | None = None
    waits_for: str = ""


@dataclass(frozen=True)
class Snapshot:
    """Where a run stands. ``longest`` are the samples that have been running longest, oldest first;
    ``rest_s``: how long it still takes, if that can be told; ``cost``: in US dollars, of what is known;
    ``still_s``: for how long nothing has been told."""

    total: int
    ends: Counter[Verdict]
    turns: int
    running: int
    elapsed_s: float
    longest: tuple[Running, ...]
    warning: str = ""
    rest_s: float | None = None
    cost: float = 0.0
    max_cost: float | None = None
    still_s: float = 0.0

    @property
    def finished(self) -> int:
        return self.ends.total()


class Figures(NamedTuple):
    """How many samples have finished, of how many, since when, and for how long nothing has been told."""

    finished: int
    total: int
    elapsed_s: float
    still_s: float


class _Open:
    """A sample that runs."""

    def __init__(self, since: float) -> None:
        self.since = since
        self.turns = 0
        self.judged = 0
        self.is_over = False


class ProgressState:
    """Counts what it is told. Safe to read from another thread while it is told more."""

    def __init__(
        self,
        total: int,
        *,
        clock: Callable[[], float] = time.monotonic,
        past: Iterable[Event] = (),
        outlook: Outlook = NOTHING_KNOWN,
    ) -> None:
        self._lock = Lock()
        self._clock = clock
        self._outlook = outlook
        self._began = self._moved = clock()
        self._total = total
        self._ends: Counter[Verdict] = Counter()
        self._turns = 0
        self._cost = 0.0
        self._plan = Plan()
        self._planned: Counter[str] = Counter()
        """By scenario, the samples that have not begun."""
        self._took_s: dict[str, list[float]] = {}
        # In the order of starting, so that the first are those that run longest.
        self._running: dict[SampleKey, _Open] = {}
        self._most_at_once = 1
        self._names_agent = True
        self._repeated: frozenset[str] = frozenset()
        self._warning = ""
        self._samples = SingleSamples()
        for event in past:
            self.see(event)
        self._turns = 0  # those that it sees itself

    def see(self, event: Event) -> Ended | None:
        """Returns how a sample ended that did not pass."""
        with self._lock:
            self._moved = self._clock()
            told = self._samples.see(event)
            match event:
                case RunStarted():
                    self._begin(event)
                case SampleStarted(key=key):
                    if self._running.pop(key, None) is None:
                        self._planned[key.scenario] -= 1
                    self._running[key] = _Open(self._moved)
                    self._most_at_once = max(self._most_at_once, len(self._running))
                case TurnFinished(key=key):
                    self._turns += 1
                    if key in self._running:
                        self._running[key].turns += 1
                case Scored(key=key) if key in self._running:
                    # The first word on a whole conversation: it is over, but its judges may not be.
                    self._running[key].is_over |= event.turn is None
                    self._running[key].judged += _judgements(event)
                case SampleFinished():
                    return self._finish(event, told)
                case Notice(level="warning" | "error", text=text):
                    self._warning = text
                case _:
                    pass
        return None

    def _begin(self, event: RunStarted) -> None:
        self._plan = event.plan
        samples = event.plan.samples
        self._total = self._total or len(samples)
        self._planned = Counter(key.scenario for key in samples)
        self._names_agent = len({key.agent for key in samples}) > 1
        self._repeated = frozenset(key.scenario for key in samples if key.epoch)

    def _finish(self, event: SampleFinished, told: Sequence[Event]) -> Ended | None:
        key = event.key
        opened = self._running.pop(key, None)
        took_s = self._moved - opened.since if opened else 0.0
        if opened and event.is_over:
            self._took_s.setdefault(key.scenario, []).append(took_s)
        self._cost += total_cost(self._lines(event, told)).known
        if event.again:
            self._planned[key.scenario] += opened is not None
            return None
        if surely_passes(told) or self._samples.run is None:
            self._ends[Verdict.PASSED] += 1
            return None
        (scenario,) = (report := self._samples.report(key, told)).scenarios
        (sample,) = scenario.samples
        decided = decide_sample(sample, scenario, report)
        self._ends[decided.verdict] += 1
        if decided.verdict is Verdict.PASSED or event.stop.is_cut_short:
            return None
        violations = sample_violations(sample, decided, scenario.scenario.where())
        return Ended(self.label(key), decided.verdict, took_s, gist(violations[0]))

    def _lines(self, event: SampleFinished, told: Sequence[Event]) -> Iterable[LedgerLine]:
        turns = tuple(each.turn for each in told if isinstance(each, TurnFinished))
        trajectory = Trajectory(turns=turns, stop=event.stop, unfinished=event.unfinished)
        kinds = (Check, JudgedScore, ScoreFailure, UserReview)
        items = [each for one in told if isinstance(one, Scored) for each in one.items]
        said = [each for each in items if isinstance(each, kinds)]
        return lines_of_sample(event.key.agent, trajectory, said, self._plan)

    def label(self, key: SampleKey) -> str:
        """The sample's name, as short as the run allows: agent and epoch only where there are several."""
        name = f"{key.scenario} [{key.variant}]" if key.variant else key.scenario
        name += f"@{key.epoch + 1}" if key.epoch or key.scenario in self._repeated else ""
        return one_line(f"{name} · {key.agent}" if self._names_agent else name, LABEL_WIDTH)

    def figures(self) -> Figures:
        """What is told cheaply, and so as often as anybody likes."""
        with self._lock:
            now = self._clock()
            return Figures(self._ends.total(), self._whole, now - self._began, now - self._moved)

    @property
    def _whole(self) -> int:
        """A lost epoch may be replaced by a further one: more is run than was planned."""
        return max(self._total, self._ends.total() + len(self._running))

    def snapshot(self, most: int = SHOWN_RUNNING) -> Snapshot:
        with self._lock:
            now = self._clock()
            oldest = list(islice(self._running.items(), most))
            return Snapshot(
                total=self._whole,
                ends=self._ends.copy(),
                turns=self._turns,
                running=len(self._running),
                elapsed_s=now - self._began,
                longest=tuple(self._shown(key, opened, now) for key, opened in oldest),
                warning=self._warning,
                rest_s=self._rest_s(now),
                cost=self._cost,
                max_cost=self._plan.budget.max_cost,
                still_s=now - self._moved,
            )

    def _shown(self, key: SampleKey, opened: _Open, now: float) -> Running:
        judged = (opened.judged, opened.judged + self._outlook.judges(key)) if opened.is_over else None
        return Running(
            self.label(key), opened.turns + 1, now - opened.since, judged, self._outlook.pending(key)
        )

    def _rest_s(self, now: float) -> float | None:
        """From what each scenario usually takes; else, once a few have finished, from what these took. As
        many as ran at the same time will go on to."""
        known = [seconds for each in self._took_s.values() for seconds in each]
        guess = median(known) if len(known) >= ENOUGH_TO_GUESS else None
        if guess is None and self._outlook.usual_s:
            guess = median(self._outlook.usual_s.values())
        if guess is None:
            return None

        def usual_s(scenario: str) -> float:
            return self._outlook.usual_s.get(scenario, guess)

        begun = [
            max(0.0, usual_s(key.scenario) - (now - opened.since)) for key, opened in self._running.items()
        ]
        left = sum(count * usual_s(scenario) for scenario, count in self._planned.items() if count > 0)
        return max([(left + sum(begun)) / self._most_at_once, *begun])


def _judgements(event: Scored) -> int:
    """How many judges answered by it: each tells of its own metric."""
    return len({item.metric for item in event.items if isinstance(item, JudgedScore | ScoreFailure)})
