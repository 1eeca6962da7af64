"""Enforce deadlines (timeouts) for a conversation, and report what the conversation is waiting for.

Each conversation has a stopwatch. Code in the conversation reports its activity (``track_activity``) and
stops the watch while it waits for a rate limit or a retry (``pause_clock``), because neither the agent nor
the user is at work during that time. The watch also stops while other conversations block this one on the
event loop of the author's code (``shared_loop``). Judges run in parallel with the conversation, and their
time does not count (``exempt_from_deadlines``)."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar

import anyio

from agenteval.conversation.shared_loop import ConversationClock
from agenteval.core.errors import AgentevalError, InfrastructureError
from agenteval.core.scenario import SampleKey

_CURRENT: ContextVar[Stopwatch | None] = ContextVar("agenteval_stopwatch", default=None)


def is_in_sample() -> bool:
    """Check whether a sample (for example, its agent, its user, a judge or the author's code) started the
    running code."""
    return _CURRENT.get() is not None


class BlockedLoopError(InfrastructureError):
    """Raised if calls on the event loop cannot continue because code to which a deadline no longer applies is
    blocking the loop."""

    def __init__(self) -> None:
        super().__init__(
            "the event loop of Python agents is blocked by a finished conversation or a background task"
        )


class Deadlines:
    """The deadlines (turn timeout, conversation timeout) for all conversations of a run, and the stopwatches
    of the running conversations. Deadlines are in seconds of the conversation's own working time; ``None``
    means no limit."""

    def __init__(self, turn_s: float | None = None, sample_s: float | None = None) -> None:
        self._turn_s = math.inf if turn_s is None else turn_s
        self._sample_s = math.inf if sample_s is None else sample_s
        self._running: dict[SampleKey, Stopwatch] = {}

    @contextmanager
    def time_sample(self, key: SampleKey) -> Iterator[Stopwatch]:
        """Run the sample with a stopwatch of its own. This task and every task that it starts use that
        stopwatch."""
        watch = self._running[key] = Stopwatch(self._turn_s, self._sample_s)
        token = _CURRENT.set(watch)
        try:
            yield watch
        finally:
            _CURRENT.reset(token)
            del self._running[key]

    def pending(self, key: SampleKey) -> str:
        """Describe what a sample is waiting for. Return an empty string if this is unknown. May be called
        from any thread."""
        watch = self._running.get(key)
        return watch.pending if watch else ""


class Stopwatch:
    """The stopwatch of one conversation. It measures both the turn and the sample; the first deadline to
    expire ends the conversation."""

    def __init__(self, turn_s: float = math.inf, sample_s: float = math.inf) -> None:
        self._limits = {"turn": turn_s, "sample": sample_s}
        self._remaining = dict(self._limits)
        self.conversation_clock = ConversationClock()
        self._scope: anyio.CancelScope | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._deadline = math.inf
        self._waits = 0
        self._waiting_since = self._waited_s = 0.0
        self._activities: list[str] = []
        self._broken_off: str | None = None
        self._is_stuck = False

    def begin_turn(self) -> None:
        self._remaining["turn"] = self._limits["turn"]

    @contextmanager
    def enforce_deadlines(self, worker: str, fault: Callable[[str], AgentevalError]) -> Iterator[None]:
        """Run ``worker`` under the deadlines. If a deadline expires (timeout), cancel the worker and raise
        the error that ``fault`` creates from a sentence."""
        name = min(self._remaining, key=lambda each: self._remaining[each])
        if self._remaining[name] == math.inf:
            with self.track_activity(worker):
                yield
            return
        self._broken_off = None
        with anyio.CancelScope() as scope:
            self._start(scope, self._remaining[name])
            try:
                with self.track_activity(worker):
                    yield
            finally:
                self._stop()
        if scope.cancelled_caught and self._is_stuck:
            raise BlockedLoopError
        if scope.cancelled_caught:
            limit = f"{self._limits[name]:g} s (`deadlines.{name}_s`)"
            raise fault(f"the {name} took longer than {limit} while {self._broken_off or worker} was running")

    def _start(self, scope: anyio.CancelScope, left_s: float) -> None:
        self._scope = scope
        self._began = self._waiting_since = self._now()
        self._waited_s = 0.0
        self._deadline = self._began + max(0.0, left_s)
        self._reset_timer()

    def _now(self) -> float:
        return anyio.current_time() - self.conversation_clock.blocked_s()

    def _stop(self) -> None:
        now = self._now()
        waited_s = self._waited_s + (now - self._waiting_since if self._waits else 0.0)
        self._remaining = {
            name: left - (now - self._began - waited_s) for name, left in self._remaining.items()
        }
        self._scope = None
        self._reset_timer()

    def _reset_timer(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None
        if self._scope and not self._waits:
            left_s = self._deadline - self._now()
            if left_s <= 0:
                self._is_stuck = self.conversation_clock.is_stuck
                self._scope.cancel()
            else:  # by then the conversation clock may show less, so check it again
                self._timer = asyncio.get_running_loop().call_later(max(left_s, 0.01), self._reset_timer)

    @contextmanager
    def track_activity(self, what: str) -> Iterator[None]:
        """Record that an activity is in progress. ``what`` describes the activity in terms that users
        understand."""
        self._activities.append(what)
        try:
            yield
        except BaseException:
            # The innermost of nested activities, or one of another task that is not cancelled.
            self._broken_off = self._broken_off or self._activities[-1]
            raise
        finally:
            self._activities.remove(what)

    @contextmanager
    def pause_clock(self) -> Iterator[None]:
        """Stop the clock: time spent in this block does not count toward any deadline."""
        if not self._waits:
            self._waiting_since = self._now()
        self._waits += 1
        self._reset_timer()
        try:
            yield
        finally:
            self._waits -= 1
            if not self._waits:
                waited_s = self._now() - self._waiting_since
                self._waited_s += waited_s
                self._deadline += waited_s
                self._reset_timer()

    @property
    def pending(self) -> str:
        names = ", ".join(dict.fromkeys(tuple(self._activities)))
        return f"{names}, waiting for a limit or a retry" if self._waits else names


def current_stopwatch() -> Stopwatch:
    """Return the stopwatch of the running task. If the task does not belong to a sample, return a stopwatch
    without deadlines."""
    return _CURRENT.get() or Stopwatch()


def pause_deadlines() -> AbstractContextManager[None]:
    """Stop the clock while the block waits for a slot, a rate limit (HTTP 429) or a retry."""
    watch = _CURRENT.get()
    return watch.pause_clock() if watch else nullcontext()


@contextmanager
def exempt_from_deadlines(watch: Stopwatch, what: str) -> Iterator[None]:
    """Run ``what`` in parallel with the conversation. None of the conversation's deadlines apply to it, and
    time that it spends waiting does not stop the conversation's clock."""
    token = _CURRENT.set(None)
    try:
        with watch.track_activity(what):
            yield
    finally:
        _CURRENT.reset(token)
