"""The event loop that all of the author's async code shares, and how long a conversation was blocked there.

An async agent that blocks (for example with a synchronous client) makes all others wait. So the loop records
whose code runs when, and a conversation has a clock that stands still while it could continue but others are
at work. The exact time of a reply that the busy loop could not handle is unknown: it may have arrived since
the loop's last look but one, and counts as if it had."""

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
"""How many rounds of the loop may pass while a conversation counts as blocked rather than idle: in one round
a reply arrives, in the next asyncio's code handles it, and in the third the conversation's own."""
_BLOCKED_S = 0.2
"""Code that occupies the loop for this long blocks it."""
_GRACE_PERIOD_S = 5.0
"""How long the others are excused by code that no deadline applies to any more, because it may come to its
end."""
_lock = threading.Lock()


class ConversationClock:
    """A conversation's view of the loop."""

    def __init__(self) -> None:
        self._blocked_s = 0.0
        self.calls = 0
        self.loop: SharedLoop | None = None
        self.idle_since = 0.0
        """The busy time of its loop when its own code last ran."""

    def now(self) -> float:
        """Return the conversation's time in seconds. It stands still while others block the conversation."""
        return now() - self.blocked_s()

    def blocked_s(self) -> float:
        """Return how long the conversation has been blocked in total."""
        with _lock:
            return self._blocked_s + (self.loop.waited_s(self) if self.loop else 0.0)

    @property
    def is_stuck(self) -> bool:
        """True if it cannot continue because code that no deadline will end blocks the loop."""
        with _lock:
            return self.loop is not None and self.loop.is_blocked_by_another(self)

    def resume_clock(self, loop: SharedLoop) -> None:
        if self.loop is loop:
            self._blocked_s += loop.waited_s(self)


class LoopSlot:
    """A call's slot on the loop. While it has one, its conversation may be blocked."""

    def __init__(self, loop: SharedLoop, clock: ConversationClock) -> None:
        self._loop, self._clock = loop, clock
        self._is_taken = False

    def acquire(self) -> None:
        """Take the slot. Must be called from within the call's own code."""
        with _lock:
            self._is_taken = True
            self._loop.accumulate_busy_time()
            self._clock.calls += 1
            self._clock.loop = self._loop

    def release(self) -> None:
        """Release the slot when the call is over or abandoned."""
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
    """Assign this context, and everything that it starts, to the conversation's clock."""
    _current_clock.set(clock)


def now() -> float:
    return time.perf_counter()


class SharedLoop:
    """An event loop in a daemon thread, which records whose code runs on it.

    Conversations with a call there are busy; each of them is ended by its own deadline. Other code (a
    conversation that is over, a background task) may never end, and does not excuse others for ever."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._at_work: ConversationClock | None = None
        self._since = self._counted_at = self._patient_until = self._busy_s = 0.0
        self._rounds: deque[float] = deque(maxlen=_ROUNDS)
        self._watch()
        threading.Thread(target=self._keep_running, daemon=True, name="agenteval-user-loop").start()

    def waited_s(self, clock: ConversationClock) -> float:
        """Return how long others were busy since the conversation may have been ready to continue. Call it
        with the lock held."""
        if self._at_work is clock:
            return 0.0
        ready = max(clock.idle_since, self._rounds[0] if self._rounds else 0.0)
        return max(0.0, self._busy() - ready)

    def is_blocked_by_another(self, clock: ConversationClock) -> bool:
        """Check whether a conversation that has no call here any more, or a background task, blocks the loop.
        Call it with the lock held."""
        blocker = self._at_work
        is_other = blocker is not None and blocker is not clock and not blocker.calls
        return is_other and now() - self._since >= _BLOCKED_S

    def accumulate_busy_time(self) -> None:
        """Add the busy time so far, before whose code runs changes. Call it with the lock held."""
        self._busy_s, self._counted_at = self._busy(), now()

    def start_grace_period(self, clock: ConversationClock) -> None:
        """Start the grace period if the conversation has no more calls but its code still runs. Call it with
        the lock held."""
        if self._at_work is clock:
            self._patient_until = now() + _GRACE_PERIOD_S

    def _busy(self) -> float:
        if self._at_work is None:
            return self._busy_s
        until = now() if self._at_work.calls else min(now(), self._patient_until)
        return self._busy_s + max(0.0, until - self._counted_at)

    def _watch(self) -> None:
        """Patch the loop's methods. A loop other than asyncio's own may not allow it; on such a loop,
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
        """Keep the loop running: a ``sys.exit`` in a background task, or ``loop.stop()``, must not end the
        other conversations."""
        while not self.loop.is_closed():
            try:
                self.loop.run_forever()
            except BaseException:
                continue

    async def give_up_if_blocked(self) -> None:
        """Replace the loop after a deadline if some code blocks it. Calls that wait for their turn there move
        to a new loop."""
        answered = asyncio.Event()
        own_loop = asyncio.get_running_loop()

        def answer() -> None:
            with contextlib.suppress(RuntimeError):  # the run has ended in the meantime
                own_loop.call_soon_threadsafe(answered.set)

        self.loop.call_soon_threadsafe(answer)
        try:
            await asyncio.wait_for(answered.wait(), _BLOCKED_S)
        except TimeoutError:
            if shared_loop() is self:
                shared_loop.cache_clear()


@cache
def shared_loop() -> SharedLoop:
    """Return the one loop for all of the author's async code, as in a program of its own: clients that an
    agent keeps in its module are bound to the loop that they were first used on."""
    return SharedLoop()
