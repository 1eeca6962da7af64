"""Choose the next sample: first the planned samples, then as many epochs as the gate of each scenario needs
(sequential testing with early stopping)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
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
from agenteval.core.plan import Pairing
from agenteval.core.scenario import EpochRange, Sample, SampleKey, sample_seed
from agenteval.core.score import EXCUSES, Verdict
from agenteval.scoring.goals import count_open_goals
from agenteval.verdict import report
from agenteval.verdict.epochs import EpochOutcomes, sample_success
from agenteval.verdict.run_gates.pass_rate import PASS_RATE, planned_test
from agenteval.verdict.sample_decisions import decide_sample
from agenteval.verdict.single_samples import SingleSamples
from agenteval.verdict.statistics import RateTest, epochs_to_start, in_epoch_order


class PlannedQueue:
    """A queue of the planned samples, in order. In a resumed run, the queue is told before the first request
    which samples have already ended, and leaves these samples out. A conversation that errored is handed out
    once more after all the others, by which time the cause of the error may be gone. ``may_play_again``
    checks whether an errored sample can be repeated (a replay contains only what was recorded)."""

    def __init__(
        self, samples: Iterable[Sample], *, may_play_again: Callable[[SampleKey], bool] = lambda _key: True
    ) -> None:
        self._samples = {sample.key: sample for sample in samples}
        self._waiting = dict(self._samples)
        self._may_play_again = may_play_again
        self._played_again: set[SampleKey] = set()
        self._single = SingleSamples()

    def __call__(self, event: Event) -> None:
        match event:
            case RunStarted() | CallsSeen():
                self._single.add_event(event)
            case SampleFinished(again=True) if event.key in self._samples:
                self._played_again.add(event.key)
                self._waiting[event.key] = self._samples[event.key]
            case SampleFinished() if event.is_over:
                self._waiting.pop(event.key, None)
            case (
                RunResumed() | SampleStarted() | TurnFinished() | Scored() | ModelAsked() | SampleFinished()
                | Reconsidered() | ReferenceStatesMade() | Notice() | IssuesFound() | RunFinished()
            ):  # fmt: skip
                pass
            case _:
                assert_never(event)

    def reorder(self, samples: Iterable[Sample]) -> None:
        self._waiting = {sample.key: sample for sample in samples if sample.key in self._samples}

    def next(self) -> Sample | None:
        return self._waiting.pop(next(iter(self._waiting))) if self._waiting else None

    def plays_again(self, key: SampleKey, events: Sequence[Event], *, was_victim: bool = False) -> bool:
        """Check whether an errored sample should be repeated (retry): once, or whenever it was lost because
        of another one (``was_victim``). If a gate decides the number of epochs,
        an additional epoch is run instead. Failures proven by finished turns still count: a sample that
        failed because of them is not errored."""
        run = self._single.run
        if (
            run is None
            or (key in self._played_again and not was_victim)
            or run.plan.rules_for_pairing(key.scenario, key.agent).range
        ):
            return False
        found = self._single.report(key, events)
        ((scenario, sample),) = ((each, one) for each in found.scenarios for one in each.samples)
        decided = decide_sample(sample, scenario, found)
        return decided.verdict is Verdict.INCONCLUSIVE and self._may_play_again(key)


@dataclass
class _ScenarioProgress:
    """One scenario × agent: its test and the known results of its epochs."""

    first: Sample
    ranged: EpochRange
    test: RateTest
    started: set[int] = field(default_factory=set)
    finished: dict[int, bool | None] = field(default_factory=dict)

    def next_epoch(self) -> int | None:
        """Return the next epoch that is needed for every possible decision and has not started."""
        known = in_epoch_order(self.finished, self.ranged.max)
        needed = self.test.min_further_epochs(known)
        wanted = epochs_to_start(self.finished, len(known) + needed, self.ranged.max) if needed else ()
        return next((epoch for epoch in wanted if epoch not in self.started), None)


class SequentialQueue:
    """A queue of the planned samples, followed by additional epochs of each scenario until its gate is
    decided.

    The queue is also a sink for events. From them it learns how each sample ended, using the same
    accumulation and rules as the report. In a resumed run, the queue receives the earlier events before the
    first sample is requested. To avoid wasting epochs, the queue starts only epochs that the test needs
    regardless of the other outcomes. Among the scenarios that need an epoch, the scenario with the fewest
    epochs goes first."""

    def __init__(
        self,
        samples: Sequence[Sample],
        ranges: Mapping[str, EpochRange],
        run_seed: int = 0,
        *,
        may_play_again: Callable[[SampleKey], bool] = lambda _key: True,
    ) -> None:
        self._planned = PlannedQueue(samples, may_play_again=may_play_again)
        self._seed = run_seed
        self._samples = samples
        self._ranges = ranges
        self._run: RunStarted | None = None
        self._events: dict[SampleKey, list[Event]] = {}
        self._scenarios: dict[Pairing, _ScenarioProgress] = {}
        self._excused: dict[SampleKey, list[Event]] = {}

    def __call__(self, event: Event) -> None:
        self._planned(event)
        match event:
            case RunStarted():
                self._begin(event)
            case SampleStarted(key=key) if key.scenario in self._ranges:
                self._events[key] = [event]
            case TurnFinished(key=key) | Scored(key=key) if key in self._events:
                self._events[key].append(event)
            case SampleFinished(key=key) if key in self._events:
                events = [*self._events.pop(key), event]
                if event.is_over:
                    self._scenarios[key.scenario, key.agent].started.add(key.epoch)
                    self._finish(key, events)
            case Reconsidered(key=key) if key in self._excused:
                self._finish(key, [*self._excused.pop(key), event])
            case (
                RunResumed() | SampleStarted() | TurnFinished() | Scored() | ModelAsked() | SampleFinished()
                | Reconsidered() | ReferenceStatesMade() | Notice() | CallsSeen() | IssuesFound()
                | RunFinished()
            ):  # fmt: skip
                pass
            case _:
                assert_never(event)

    def reorder(self, samples: Iterable[Sample]) -> None:
        self._planned.reorder(samples)

    def next(self) -> Sample | None:
        sample = self._planned.next() or self._next_further_sample()
        if sample and sample.scenario.id in self._ranges:
            self._scenarios[sample.key.scenario, sample.key.agent].started.add(sample.key.epoch)
        return sample

    def plays_again(self, key: SampleKey, events: Sequence[Event], *, was_victim: bool = False) -> bool:
        return self._planned.plays_again(key, events, was_victim=was_victim)

    def _begin(self, run: RunStarted) -> None:
        self._run = run
        gate = PASS_RATE.parse_settings(run.plan.suite.gates)
        assert gate is not None  # scenario selection requires one
        firsts = {(s.key.scenario, s.key.agent): s for s in reversed(self._samples)}
        for pairing, sample in firsts.items():
            ranged = self._ranges.get(sample.scenario.id)
            if ranged:
                test = planned_test(gate, EpochOutcomes((), ranged.min, ranged.max), run.plan.pairings)
                self._scenarios[pairing] = _ScenarioProgress(sample, ranged, test)

    def _next_further_sample(self) -> Sample | None:
        for scenario in sorted(self._scenarios.values(), key=lambda s: len(s.started)):
            epoch = scenario.next_epoch()
            if epoch is not None:
                key = scenario.first.key.model_copy(update={"epoch": epoch})
                played = scenario.first.scenario
                return Sample(key, played, sample_seed(self._seed, key, played.variant))
        return None

    def _finish(self, key: SampleKey, events: Sequence[Event]) -> None:
        """Record the end of an epoch. A goal that was ruled out or withdrawn may be judged again."""
        assert self._run is not None
        progress = self._scenarios[key.scenario, key.agent]
        alone = {
            "scenarios": (progress.first.scenario,),
            "plan": self._run.plan.restrict_to_pairing(key.scenario, key.agent),
        }
        found = report.build_report([self._run.model_copy(update=alone), *events], of_one_sample=True)
        (sample,) = found.samples
        if count_open_goals([sample], *EXCUSES):
            self._excused[key] = list(events)
        decided = decide_sample(sample, found.scenarios[0], found)
        progress.finished[key.epoch] = sample_success(sample, decided.verdict)
