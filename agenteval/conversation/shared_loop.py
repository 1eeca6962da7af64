"""The event loop that all async code of the author's shares, and how long a conversation was held up there.

An async agent that blocks (by a client that is not async) makes all others wait. So the loop notes whose code
runs when, and a conversation has a clock that stands still while it could go on and others are at work.
Nobody knows when exactly a reply came for which the loop had no time: it may have come since the loop looked
for the last time but one, and counts as if it had.
"""

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
"""In one round of the loop a reply comes, in the next it is met by code of asyncio's, in the third by the
conversation's own: so many rounds may pass in which it is held up, and not at rest."""
_BLOCKED_S = 0.2
"""Code that does not let go of the loop for so long blocks it."""
_GRACE_PERIOD_S = 5.0
"""So long the others are excused by code that no deadline ends any more: it may come to its end."""
_lock = threading.Lock()


class ConversationClock:
    """What a conversation has of the loop."""

    def __init__(self) -> None:
        self._held_s = 0.0
        self.calls = 0
        self.loop: SharedLoop | None = None
        self.idle_since = 0.0
        """How long its loop had been busy when its own code ran last."""

    def now(self) -> float:
        """The conversation's clock, in seconds: it stands still while others hold the conversation up."""
        return now() - self.blocked_s()

    def blocked_s(self) -> float:
        """How long the conversation has been held up in all."""
        with _lock:
            return self._held_s + (self.loop.waited_s(self) if self.loop else 0.0)

    @property
    def is_stuck(self) -> bool:
        """Whether it cannot go on for code that blocks the loop, and that no deadline will end."""
        with _lock:
            return self.loop is not None and self.loop.is_blocked_by_another(self)

    def resume_clock(self, loop: SharedLoop) -> None:
        if self.loop is loop:
            self._held_s += loop.waited_s(self)


class LoopSlot:
    """A call's place on the loop: while it has one, its conversation may be held up."""

    def __init__(self, loop: SharedLoop, share: ConversationClock) -> None:
        self._loop, self._share = loop, share
        self._is_taken = False

    def acquire(self) -> None:
        """From within the call's own code."""
        with _lock:
            self._is_taken = True
            self._loop.accumulate_busy_time()
            self._share.calls += 1
            self._share.loop = self._loop

    def release(self) -> None:
        """When it is over, or given up."""
        with _lock:
            if not self._is_taken:
                return
            self._is_taken = False
            self._loop.accumulate_busy_time()
            self._share.calls -= 1
            if not self._share.calls:
                self._share.loop = None
                self._loop.start_grace_period(self._share)


_NOBODY = ConversationClock()
_current_clock: ContextVar[ConversationClock] = ContextVar("agenteval_share", default=_NOBODY)


def set_conversation_clock(share: ConversationClock) -> None:
    """What runs in this context, and all that it starts, is the conversation's."""
    _current_clock.set(share)


def now() -> float:
    return time.perf_counter()


class SharedLoop:
    """An event loop in a daemon thread, and who is at work on it.

    Busy is what conversations do that have a call there: each of them is ended by its own deadline. What
    others do (one that is over, a background task) may never end, and excuses nobody for ever.
    """

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._at_work: ConversationClock | None = None
        self._since = self._counted_at = self._patient_until = self._busy_s = 0.0
        self._rounds: deque[float] = deque(maxlen=_ROUNDS)
        self._watch()
        threading.Thread(target=self._keep_running, daemon=True, name="agenteval-user-loop").start()

    def waited_s(self, share: ConversationClock) -> float:
        """How long others were busy since it may have been ready to go on. With the lock held."""
        if self._at_work is share:
            return 0.0
        ready = max(share.idle_since, self._rounds[0] if self._rounds else 0.0)
        return max(0.0, self._busy() - ready)

    def is_blocked_by_another(self, share: ConversationClock) -> bool:
        """By one that has no call here any more, or by a background task. With the lock held."""
        blocker = self._at_work
        is_other = blocker is not None and blocker is not share and not blocker.calls
        return is_other and now() - self._since >= _BLOCKED_S

    def accumulate_busy_time(self) -> None:
        """Counts what was done until now, before it changes who is busy. With the lock held."""
        self._busy_s, self._counted_at = self._busy(), now()

    def start_grace_period(self, share: ConversationClock) -> None:
        """The conversation has no call any more, and may be at work all the same. With the lock held."""
        if self._at_work is share:
            self._patient_until = now() + _GRACE_PERIOD_S

    def _busy(self) -> float:
        if self._at_work is None:
            return self._busy_s
        until = now() if self._at_work.calls else min(now(), self._patient_until)
        return self._busy_s + max(0.0, until - self._counted_at)

    def _watch(self) -> None:
        """A loop that is not asyncio's own may not allow it: on it nobody is known to be held up."""
        watched: dict[str, Callable[..., Any]] = {
            "call_soon": partial(self._soon, "call_soon"),
            "call_soon_threadsafe": partial(self._soon, "call_soon_threadsafe"),
            "call_at": self._at,
        }
        if hasattr(self.loop, "_run_once"):
            watched["_run_once"] = self._round
        with contextlib.suppress(AttributeError, TypeError):
            for name, method in watched.items():
                setattr(self.loop, name, method)

    def _soon(self, name: str, callback: Callable[..., Any], *args: Any, context: Any = None) -> Any:
        schedule = getattr(type(self.loop), name)  # now, not before: others may patch the class
        return schedule(self.loop, self._step, callback, *args, context=context)

    def _at(self, when: float, callback: Callable[..., Any], *args: Any, context: Any = None) -> Any:
        return type(self.loop).call_at(self.loop, when, self._step, callback, *args, context=context)

    def _round(self) -> None:
        with _lock:
            self._rounds.append(self._busy())
        cls: Any = type(self.loop)
        cls._run_once(self.loop)

    def _step(self, callback: Callable[..., Any], *args: Any) -> Any:
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
        """A ``sys.exit`` in a background task, or ``loop.stop()``, must not end the other conversations."""
        while not self.loop.is_closed():
            try:
                self.loop.run_forever()
            except BaseException:
                continue

    async def give_up_if_blocked(self) -> None:
        """After a deadline: if the loop does not answer, some code blocks it. What waits for its turn there
        goes to a new one."""
        answered = asyncio.Event()
        own = asyncio.get_running_loop()

        def answer() -> None:
            with contextlib.suppress(RuntimeError):  # the run has ended meanwhile
                own.call_soon_threadsafe(answered.set)

        self.loop.call_soon_threadsafe(answer)
        try:
            await asyncio.wait_for(answered.wait(), _BLOCKED_S)
        except TimeoutError:
            if shared_loop() is self:
                shared_loop.cache_clear()


@cache
def shared_loop() -> SharedLoop:
    """One loop for all async code of the author's, as in a program of its own: clients that an agent
    keeps in its module are bound to the loop that they were first used on."""
    return SharedLoop()
