"""Tracks the status of a run by counting events, and formats status texts. The module has no clock of its own
and writes no output."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple, assert_never

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
from agenteval.core.safe_text import one_line, one_line_message
from agenteval.core.scenario import SampleKey
from agenteval.core.score import Verdict
from agenteval.reporters.words.failure import broken_rule, sample_violations
from agenteval.reporters.words.spending import amount
from agenteval.running.observer import PendingLookup
from agenteval.verdict.ledger import total_cost
from agenteval.verdict.sample_decisions import decide_sample
from agenteval.verdict.single_samples import SingleSamples

STALL_S = 30.0
"""The time in seconds without any event after which a run is considered stalled."""
SHOWN_PENDING = 10
_SIGNS = {Verdict.PASSED: "✓", Verdict.FAILED: "✗", Verdict.INCONCLUSIVE: "?"}
_WORDS = {Verdict.PASSED: "passed", Verdict.FAILED: "failed", Verdict.INCONCLUSIVE: "undecided"}
_LABEL_WIDTH = 60
_REASON_WIDTH = 200
_PENDING_WIDTH = 120


class SampleOutcomeLine(NamedTuple):
    """The verdict of a sample that did not pass, and the line that reports it."""

    verdict: Verdict
    line: str


@dataclass
class _SampleProgress:
    """The progress of a sample that has started."""

    since: float
    turns: int = 0
    is_over: bool = False
    """True if the conversation has ended and judging has started."""


class RunStatus:
    """The status of a run with ``total`` samples. If ``total`` is 0, the number of samples is taken from the
    run's plan."""

    def __init__(self, total: int, clock: Callable[[], float], pending: PendingLookup) -> None:
        self.verdict_counts: Counter[Verdict] = Counter()
        self.warning = ""
        self._clock = clock
        self._pending = pending
        self._began = self._moved = clock()
        self._planned = total
        self._cost = 0.0
        self._to_compare = 0
        """The number of message variants that are compared with other conversations in the end."""
        self._plan = Plan()
        self._names_agent = True
        self._repeated: frozenset[str] = frozenset()
        # In the order of starting, so that the first have been running longest.
        self._running: dict[SampleKey, _SampleProgress] = {}
        self._samples = SingleSamples()

    def count_event(self, event: Event) -> SampleOutcomeLine | None:
        """Count ``event``. If the event ends a sample that did not pass, return the line for that sample."""
        self._moved = self._clock()
        so_far = self._samples.add_event(event)
        match event:
            case RunStarted():
                self._begin(event)
            case SampleStarted(key=key):
                self._running.pop(key, None)  # a restarted sample goes to the end
                self._running[key] = _SampleProgress(self._moved)
            case TurnFinished(key=key) if key in self._running:
                self._running[key].turns += 1
            case Scored(key=key, turn=None) if key in self._running:
                self._running[key].is_over = True
            case SampleFinished():
                return self._finish(event, so_far)
            case Notice(level="warning" | "error", text=text):
                self.warning = text
            case (
                RunResumed() | TurnFinished() | Scored() | ModelAsked() | Reconsidered() | Notice()
                | ReferenceStatesMade() | CallsSeen() | IssuesFound() | RunFinished()
            ):  # fmt: skip
                pass
            case _:
                assert_never(event)
        return None

    def _begin(self, event: RunStarted) -> None:
        self._plan = event.plan
        samples = event.plan.samples
        self._planned = self._planned or len(samples)
        self._names_agent = len({key.agent for key in samples}) > 1
        self._repeated = frozenset(key.scenario for key in samples if key.epoch)

    def _finish(self, event: SampleFinished, so_far: Sequence[Event]) -> SampleOutcomeLine | None:
        if self._running.pop(event.key, None) is None:
            return None  # errored before the run was resumed: nothing else is known about it
        report = self._samples.report(event.key, so_far)
        self._cost += total_cost(report.ledger).known
        if event.again:
            return None
        (scenario,) = report.scenarios
        (sample,) = scenario.samples
        decided = decide_sample(sample, scenario, report)
        variant = scenario.scenario.variant
        is_to_compare = bool(variant and variant.messages) and decided.verdict is Verdict.PASSED
        if is_to_compare:
            self._to_compare += 1
        else:
            self.verdict_counts[decided.verdict] += 1
        if decided.verdict is Verdict.PASSED or event.stop.is_cut_short:
            return None
        reason = broken_rule(sample_violations(sample, decided, scenario.scenario.where())[0]).gist
        took_s = event.took_s or 0.0
        took = f"{took_s:.1f} s" if round(took_s, 1) < 60 else clock_text(round(took_s))
        shown = one_line_message(reason, _REASON_WIDTH)
        line = f"{_SIGNS[decided.verdict]} {self.label(event.key)}  {took}  {shown}"
        return SampleOutcomeLine(decided.verdict, line)

    def label(self, key: SampleKey) -> str:
        """Return a short name for the sample. The agent is included only if there are several agents, and the
        epoch only if there are several epochs."""
        name = f"{key.scenario} [{key.variant}]" if key.variant else key.scenario
        name += f"@{key.epoch + 1}" if key.epoch or key.scenario in self._repeated else ""
        return one_line(f"{name} · {key.agent}" if self._names_agent else name, _LABEL_WIDTH)

    @property
    def finished(self) -> int:
        return self.verdict_counts.total() + self._to_compare

    @property
    def total(self) -> int:
        """The number of samples. The number may exceed the plan, because an errored epoch may be replaced by
        an additional epoch."""
        return max(self._planned, self.finished + len(self._running))

    @property
    def elapsed_s(self) -> float:
        return self._clock() - self._began

    @property
    def idle_s(self) -> float:
        """The time in seconds since the last event."""
        return self._clock() - self._moved

    def brief_counts(self) -> str:
        """Format the text next to the progress bar, such as ``18/27  ✓ 15  ✗ 2  ? 1  0:41  $0.28``."""
        ends = [f"{_SIGNS[verdict]} {count:,}" for verdict, count in self._counts_to_show()]
        return "  ".join([f"{self.finished:,}/{self.total:,}", *ends, *self._time_and_cost()])

    def counts(self) -> str:
        """Format the counts for a log, such as ``[18/27] 15 passed, 2 failed, 1 undecided, 0:41, $0.28``."""
        ends = [f"{count:,} {_WORDS[verdict]}" for verdict, count in self._counts_to_show()]
        ends += [f"{self._to_compare:,} to compare"] if self._to_compare else []
        return f"[{self.finished:,}/{self.total:,}] {', '.join([*ends, *self._time_and_cost()])}"

    def _counts_to_show(self) -> list[tuple[Verdict, int]]:
        return [
            (each, self.verdict_counts[each])
            for each in _WORDS
            if self.verdict_counts[each] or each is Verdict.PASSED
        ]

    def _time_and_cost(self) -> list[str]:
        parts = [clock_text(self.elapsed_s)]
        limit = self._plan.budget.max_cost
        if limit is not None:
            parts.append(f"{_dollars(self._cost)} of {_dollars(limit)}")
        elif self._cost:
            parts.append(_dollars(self._cost))
        return parts

    def longest(self, most: int) -> list[tuple[str, str]]:
        """Return the names and activities of the longest-running samples, oldest first."""
        return [
            (self.label(key), self._describe_activity(key, one))
            for key, one in islice(self._running.items(), most)
        ]

    def _describe_activity(self, key: SampleKey, sample: _SampleProgress) -> str:
        """Describe the activity of a sample, such as ``turn 3, waiting for the agent, 4 s`` or ``judging,
        waiting for the coherence judge, 2 s``."""
        activity = "judging" if sample.is_over else f"turn {sample.turns + 1}"
        pending = one_line(self._pending(key), _PENDING_WIDTH)
        waits = f", waiting for {pending}" if pending else ""
        return f"{activity}{waits}, {duration(self._clock() - sample.since)}"

    def more_running(self, most: int) -> list[str]:
        """Return a line with the number of running samples that ``longest`` does not list. Return an empty
        list if there are no such samples."""
        more = len(self._running) - most
        return [f"  and {more:,} more running"] if more > 0 else []

    def with_longest(self) -> str:
        """Format the counts, followed by the label and activity of the longest-running sample."""
        longest = [f"; longest: {label}, {doing}" for label, doing in self.longest(1)]
        return "".join([self.counts(), *longest])

    def stall(self) -> str:
        """Return a sentence with the time since the last event. Return an empty string if the run is not
        stalled."""
        return f"nothing has happened for {duration(self.idle_s)}" if self.idle_s >= STALL_S else ""

    def stalled_lines(self) -> list[str]:
        """Return lines that report the stall and the agents or models that the samples are waiting for."""
        head = f"{self.stall()}; {self.finished:,} of {self.total:,} are done"
        pending = [f"  {label}: {doing}" for label, doing in self.longest(SHOWN_PENDING)]
        return [head, *pending, *self.more_running(SHOWN_PENDING)]

    def last_line(self) -> str:
        """Format the line that remains in the log after the run has ended."""
        return f"{'ran' if self.finished >= self.total else 'stopped:'} {self.counts()}"


def duration(seconds: float) -> str:
    """Format a duration, such as ``4 s``, ``3:05`` or ``1:02:00``."""
    return f"{max(0, int(seconds))} s" if seconds < 60 else clock_text(seconds)


def clock_text(seconds: float) -> str:
    """Format a duration as a clock time, such as ``0:04``, ``3:05`` or ``1:02:00``."""
    minutes, rest = divmod(max(0, int(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _dollars(cost: float) -> str:
    """Format a cost, such as ``$0.28``. A nonzero cost is never shown as zero."""
    return f"${cost:.2f}" if cost >= 0.01 or not cost else f"${amount(cost)}"
