"""Share one event loop (asyncio) among all of the author's async code, and measure the time for which a
conversation was blocked on this loop.

An async agent that blocks (for example, with a synchronous client) makes all other agents wait. The loop
therefore records whose code runs at which time, and each conversation has a clock that stands still while the
conversation could continue but other code is running. If a reply arrives while the loop is busy, its exact
arrival time is unknown: the reply may have arrived at any time since the loop's second-to-last check. The
clock assumes the earliest possible time."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable
from contextvars import ContextVar
from functools import cache, partial
from typing import Any

_ROUNDS = 3
"""The number of loop iterations for which a conversation may count as blocked rather than idle: a reply
arrives in the first iteration, asyncio's code handles it in the second, and the conversation's own code
handles it in the third."""
_BLOCKED_S = 0.2
"""The time after which code that occupies the loop counts as blocking, in seconds."""
_GRACE_PERIOD_S = 5.0
"""The time, in seconds, for which all other conversations are excused because of code to which no deadline
applies any more. Such code may still finish on its own."""
_lock = threading.Lock()


class ConversationClock:
    """A clock that measures a conversation's own time on the shared loop."""

    def __init__(self) -> None:
        self._blocked_s = 0.0
        self.calls = 0
        self.loop: SharedLoop | None = None
        self.idle_since = 0.0
        """The busy time of the loop when the conversation's own code last ran."""

    def now(self) -> float:
        """Return the conversation's time in seconds. The time stands still while other conversations block
        this one."""
        return now() - self.blocked_s()

    def blocked_s(self) -> float:
        """Return the total time for which the conversation has been blocked, in seconds."""
        with _lock:
            return self._blocked_s + (self.loop.waited_s(self) if self.loop else 0.0)

    @property
    def is_stuck(self) -> bool:
        """True if the conversation cannot continue because code that no deadline will end is blocking the
        loop."""
        with _lock:
            return self.loop is not None and self.loop.is_blocked_by_another(self)

    def resume_clock(self, loop: SharedLoop) -> None:
        if self.loop is loop:
            self._blocked_s += loop.waited_s(self)


class LoopSlot:
    """A call's slot on the loop. While the call holds the slot, its conversation may be blocked."""

    def __init__(self, loop: SharedLoop, clock: ConversationClock) -> None:
        self._loop, self._clock = loop, clock
        self._is_taken = False

    def acquire(self) -> None:
        """Acquire the slot. Must be called by the call's own code."""
        with _lock:
            self._is_taken = True
            self._loop.accumulate_busy_time()
            self._clock.calls += 1
            self._clock.loop = self._loop

    def release(self) -> None:
        """Release the slot after the call has finished or been abandoned."""
        with _lock:
            if not self._is_taken:
                return
            self._is_taken = False
            self._loop.accumulate_busy_time()
            self._clock.calls -= 1
            if not self._clock.calls:
                self._clock.loop = None
                self._loop.start_grace_period(self._clock)


_NOBODY = ConversationClock()
_current_clock: ContextVar[ConversationClock] = ContextVar("agenteval_share", default=_NOBODY)


def set_conversation_clock(clock: ConversationClock) -> None:
    """Make this context, and everything started from it, use the conversation's clock."""
    _current_clock.set(clock)


def now() -> float:
    return time.perf_counter()


class SharedLoop:
    """An event loop in a daemon thread that records whose code runs on it.

    A conversation with a call on the loop is busy, and each such conversation is ended by its own deadline.
    Other code (such as a finished conversation or a background task) may never end, so the time for which it
    excuses other conversations is limited."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._at_work: ConversationClock | None = None
        self._since = self._counted_at = self._patient_until = self._busy_s = 0.0
        self._rounds: deque[float] = deque(maxlen=_ROUNDS)
        self._watch()
        threading.Thread(target=self._keep_running, daemon=True, name="agenteval-user-loop").start()

    def waited_s(self, clock: ConversationClock) -> float:
        """Return the time for which other code has been busy since the earliest time at which the
        conversation could have continued. The caller must hold the lock."""
        if self._at_work is clock:
            return 0.0
        ready = max(clock.idle_since, self._rounds[0] if self._rounds else 0.0)
        return max(0.0, self._busy() - ready)

    def is_blocked_by_another(self, clock: ConversationClock) -> bool:
        """Check whether the loop is blocked by a background task or by a conversation that has no more calls
        on the loop. The caller must hold the lock."""
        blocker = self._at_work
        is_other = blocker is not None and blocker is not clock and not blocker.calls
        return is_other and now() - self._since >= _BLOCKED_S

    def accumulate_busy_time(self) -> None:
        """Add the busy time up to now, before other code starts to run. The caller must hold the lock."""
        self._busy_s, self._counted_at = self._busy(), now()

    def start_grace_period(self, clock: ConversationClock) -> None:
        """Start the grace period if the conversation has no more calls but its code is still running. The
        caller must hold the lock."""
        if self._at_work is clock:
            self._patient_until = now() + _GRACE_PERIOD_S

    def _busy(self) -> float:
        if self._at_work is None:
            return self._busy_s
        until = now() if self._at_work.calls else min(now(), self._patient_until)
        return self._busy_s + max(0.0, until - self._counted_at)

    def _watch(self) -> None:
        """Monkeypatch the loop's methods. A loop other than asyncio's own may not allow this; on such a loop,
        blocking is not detected."""
        watched: dict[str, Callable[..., Any]] = {
            "call_soon": partial(self._call_soon, "call_soon"),
            "call_soon_threadsafe": partial(self._call_soon, "call_soon_threadsafe"),
            "call_at": self._call_at,
        }
        if hasattr(self.loop, "_run_once"):
            watched["_run_once"] = self._run_round
        with contextlib.suppress(AttributeError, TypeError):
            for name, method in watched.items():
                setattr(self.loop, name, method)

    def _call_soon(self, name: str, callback: Callable[..., Any], *args: Any, context: Any = None) -> Any:
        schedule = getattr(
            type(self.loop), name
        )  # looked up at call time, because others may patch the class
        return schedule(self.loop, self._run_callback, callback, *args, context=context)

    def _call_at(self, when: float, callback: Callable[..., Any], *args: Any, context: Any = None) -> Any:
        return type(self.loop).call_at(self.loop, when, self._run_callback, callback, *args, context=context)

    def _run_round(self) -> None:
        with _lock:
            self._rounds.append(self._busy())
        cls: Any = type(self.loop)
        cls._run_once(self.loop)

    def _run_callback(self, callback: Callable[..., Any], *args: Any) -> Any:
        before = self._hand_over(_current_clock.get())
        try:
            return callback(*args)
        finally:
            self._hand_over(before)

    def _hand_over(self, to: ConversationClock | None) -> ConversationClock | None:
        with _lock:
            self.accumulate_busy_time()
            before, self._at_work = self._at_work, None
            if before and before.loop is self:
                before.idle_since = self._busy_s
            if to:
                to.resume_clock(self)
            self._at_work, self._since = to, now()
            self._patient_until = self._since + _GRACE_PERIOD_S
            return before

    def _keep_running(self) -> None:
        """Keep the loop running: a ``sys.exit`` in a background task, or ``loop.stop()``, must not end other
        conversations."""
        while not self.loop.is_closed():
            try:
                self.loop.run_forever()
            except BaseException:
                continue

    async def give_up_if_blocked(self) -> None:
        """Replace the loop after a deadline has expired if some code blocks the loop. Calls that have not
        begun yet are moved to a new loop."""
        answered = asyncio.Event()
        own_loop = asyncio.get_running_loop()

        def answer() -> None:
            with contextlib.suppress(RuntimeError):  # the run has ended in the meantime
                own_loop.call_soon_threadsafe(answered.set)

        self.loop.call_soon_threadsafe(answer)
        try:
            async with asyncio.timeout(_BLOCKED_S):  # `wait_for` may lose a cancellation in Python 3.11
                await answered.wait()
        except TimeoutError:
            if shared_loop() is self:
                shared_loop.cache_clear()


@cache
def shared_loop() -> SharedLoop:
    """Return the single event loop for all of the author's async code. A single loop is needed, as in any
    ordinary program, because clients that an agent keeps in its module are bound to the loop on which they
    were first used."""
    return SharedLoop()
