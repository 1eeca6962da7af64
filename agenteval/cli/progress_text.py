"""Where a run stands, in words. Pure: a snapshot in, lines out."""

from __future__ import annotations

from agenteval.cli.progress_state import Ended, ProgressState, Running, Snapshot
from agenteval.core.safe_text import brief, one_line
from agenteval.core.score import Verdict
from agenteval.reporters.words.spending import amount

STILL_S = 30.0
"""Without any event for so long, what is pending is reported; and again after as long."""
BEAT_S = 30.0
BEAT_SHARE = 0.1
"""Where there is no terminal, a line each so many seconds or each such share of the samples."""
SHOWN_PENDING = 10
_REASON = 200
_MARKS = {Verdict.PASSED: "✓", Verdict.FAILED: "✗", Verdict.INCONCLUSIVE: "?"}
_WORDS = {Verdict.PASSED: "passed", Verdict.FAILED: "failed", Verdict.INCONCLUSIVE: "undecided"}
_ORDER = (Verdict.PASSED, Verdict.FAILED, Verdict.INCONCLUSIVE)


def duration(seconds: float) -> str:
    """``4 s``, ``3:05``, ``1:02:00``."""
    return f"{max(0, int(seconds))} s" if seconds < 60 else clock_text(seconds)


def clock_text(seconds: float) -> str:
    """``0:04``, ``3:05``, ``1:02:00``."""
    minutes, rest = divmod(max(0, int(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def ended_line(ended: Ended) -> str:
    """``✗ two-wishes  2.1 s  turn 2: no match for /rain/``"""
    took = f"{ended.took_s:.1f} s" if ended.took_s < 60 else clock_text(ended.took_s)
    return f"{_MARKS[ended.verdict]} {ended.label}  {took}  {brief(ended.reason, _REASON)}"


def bar_text(at: Snapshot) -> str:
    """What stands beside the bar: ``18/27  ✓ 15  ✗ 2  ? 1  0:41  ~0:20  $0.28``."""
    marks = [f"{_MARKS[verdict]} {at.ends[verdict]:,}" for verdict in _ORDER if _is_told(at, verdict)]
    rest = [f"~{clock_text(at.rest_s)}"] if at.rest_s is not None else []
    return "  ".join([f"{at.finished:,}/{at.total:,}", *marks, clock_text(at.elapsed_s), *rest, *_cost(at)])


def counts(at: Snapshot) -> str:
    """``[18/27] 15 passed, 2 failed, 1 undecided, 0:41, ~0:20 left, $0.28``"""
    ends = [f"{at.ends[verdict]:,} {_WORDS[verdict]}" for verdict in _ORDER if _is_told(at, verdict)]
    rest = [f"~{clock_text(at.rest_s)} left"] if at.rest_s is not None and at.finished < at.total else []
    parts = [*ends, clock_text(at.elapsed_s), *rest, *_cost(at)]
    return f"[{at.finished:,}/{at.total:,}] {', '.join(parts)}"


def _is_told(at: Snapshot, verdict: Verdict) -> bool:
    return verdict is Verdict.PASSED or at.ends[verdict] > 0


def _cost(at: Snapshot) -> list[str]:
    if at.max_cost is not None:
        return [f"{_dollars(at.cost)} of {_dollars(at.max_cost)}"]
    return [_dollars(at.cost)] if at.cost else []


def _dollars(cost: float) -> str:
    """``$0.28``; what is not nothing never looks like it."""
    return f"${cost:.2f}" if cost >= 0.01 or not cost else f"${amount(cost)}"


def doing(sample: Running) -> str:
    """``turn 3, waits for the agent``; ``judging 5 of 8``."""
    if sample.judged:
        done, all_of_them = sample.judged
        return f"judging {done} of {all_of_them}" if all_of_them > done else "judging"
    waits = f", waits for {one_line(sample.waits_for, 120)}" if sample.waits_for else ""
    return f"turn {sample.turn}{waits}"


def beat_line(at: Snapshot) -> str:
    """The counts, and what has been running longest."""
    if not at.longest:
        return counts(at)
    oldest = at.longest[0]
    return f"{counts(at)}; longest: {oldest.label}, {doing(oldest)}, {duration(oldest.for_s)}"


def pending_lines(at: Snapshot) -> list[str]:
    """That nothing moves, and what is waited for."""
    head = f"nothing has happened for {duration(at.still_s)}; {at.finished:,} of {at.total:,} are done"
    more = at.running - len(at.longest)
    rest = [f"  and {more:,} more running"] if more > 0 else []
    told = [f"  {sample.label}: {doing_for_whom(sample)}, {duration(sample.for_s)}" for sample in at.longest]
    return [head, *told, *rest]


def doing_for_whom(sample: Running) -> str:
    """Whom it waits for, even if it is judges: here somebody wants to know which."""
    if sample.judged and sample.waits_for:
        return f"{doing(sample)}, waits for {one_line(sample.waits_for, 120)}"
    return doing(sample)


def last_line(at: Snapshot) -> str:
    """What stays in the log when the run is over."""
    return f"{'ran' if at.finished >= at.total else 'stopped:'} {counts(at)}"


class Beat:
    """Says when it is time for a line: after so long, after so many, or when nothing moves."""

    def __init__(self, every_s: float = BEAT_S, share: float = BEAT_SHARE, still_s: float = STILL_S) -> None:
        self._every_s, self._share, self._still_s = every_s, share, still_s
        self._told_s = 0.0
        self._told = 0
        self._stills = 0

    def lines(self, state: ProgressState) -> list[str]:
        """Those that are due."""
        at = state.figures()
        stills, self._stills = self._stills, int(at.still_s // self._still_s)
        if self._stills > stills:
            self._told_s = at.elapsed_s
            return pending_lines(state.snapshot(SHOWN_PENDING))
        step = max(1, round(at.total * self._share))
        is_due = at.elapsed_s - self._told_s >= self._every_s or at.finished // step > self._told // step
        if not is_due or at.finished >= at.total:
            return []
        self._told_s, self._told = at.elapsed_s, at.finished
        return [beat_line(state.snapshot(1))]
