"""The author's own Python code: import it by ``file.py:attribute`` or ``package.module:attribute``, and call
it without letting it block the run."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import math
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from agenteval.agentside.targets.faults import CancelledUserCodeError, QuitError
from agenteval.agentside.targets.loading import TargetError, load_object
from agenteval.agentside.targets.signatures import is_async
from agenteval.conversation.deadlines import BlockedLoopError, current_stopwatch, pause_deadlines
from agenteval.conversation.exits import exit_now
from agenteval.conversation.shared_loop import (
    ConversationClock,
    LoopSlot,
    set_conversation_clock,
    shared_loop,
)
from agenteval.core.errors import AuthorError, Place, Problem, did_you_mean

IMPORT_S = 120.0
"""The default time limit for importing a target: frameworks take 2 to 18 seconds."""


def import_target(
    target: str,
    base: str,
    *,
    what: str,
    place: Place | None = None,
    finder: Callable[[str, str], Any] = load_object,
    timeout_s: float = IMPORT_S,
) -> Any:
    """Import the object that ``target`` names.

    ``base`` is the folder that file paths are relative to; it is made importable. ``what`` names the use of
    the object in messages, and ``finder`` finds it. Raise ``AuthorError``."""
    try:
        with _time_limit(timeout_s), _empty_stdin():
            return finder(target, base)
    except TargetError as error:
        remedy = error.remedy or did_you_mean(error.missing_name, error.attribute_names)
        raise AuthorError(Problem(what + error.what, remedy, place)) from error


class ImportTimeout(BaseException):
    """Raised in imported code that hangs. It is a ``BaseException`` so that no ``except Exception`` in that
    code can swallow it."""


@contextlib.contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    """Interrupt code that blocks the main thread, if the system supports it. The code may need the main
    thread (for signals, for its event loop), so it cannot be moved to another."""
    if sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
        yield
        return

    def late(_number: int, _frame: Any) -> None:
        raise ImportTimeout(f"it did not finish within {seconds:g} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        if signal.getsignal(signal.SIGALRM) is late:  # the code may have set its own
            signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def _empty_stdin() -> Iterator[None]:
    """Give a script that reads input while it is imported an empty standard input, even at a terminal."""
    before = sys.stdin
    nothing = sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115 - the code may keep it
    try:
        yield
    finally:
        if sys.stdin is nothing:
            sys.stdin = before


class DeadlineError(TimeoutError):
    """The author's code took longer than allowed. It is distinct from a ``TimeoutError`` of that code."""


class TimedResult(NamedTuple):
    """The result of a call."""

    value: Any
    """What the call returned."""
    elapsed_s: float
    """How long the author's code ran, in seconds, without the wait for its turn."""


async def call_user_code(function: Callable[..., Any], *args: Any, timeout_s: float = math.inf) -> Any:
    """Call ``function`` like ``time_user_code``, and return only the value."""
    return (await time_user_code(function, *args, timeout_s=timeout_s)).value


async def time_user_code(
    function: Callable[..., Any],
    *args: Any,
    timeout_s: float = math.inf,
    excused_s: Callable[[], float] = lambda: 0.0,
) -> TimedResult:
    """Call ``function`` outside agenteval's own event loop, so that the author's code cannot block it: async
    code on a shared loop in a daemon thread, all other code in a daemon thread each.

    The deadline runs from the moment when the code does, by the conversation's clock (see ``shared_loop``);
    ``excused_s`` returns the time that others took meanwhile. After the deadline (or if the caller is
    cancelled) async code is cancelled, but neither it nor a thread is awaited, because neither can be forced
    to end. Raise ``DeadlineError``, ``BlockedLoopError``, and any exception of ``function``."""
    first = await (_on_loop if is_async(function) else _in_thread)(function, args, timeout_s, excused_s)
    if not inspect.isawaitable(first.value):
        return first

    async def wait() -> Any:
        return await first.value

    second = await _on_loop(wait, (), timeout_s - first.elapsed_s, excused_s)
    return TimedResult(second.value, first.elapsed_s + second.elapsed_s)


class _PendingResult:
    """A result on its way from a thread to the event loop that waits for it."""

    def __init__(self, clock: ConversationClock) -> None:
        self._clock = clock
        self._process = os.getpid()
        self._loop = asyncio.get_running_loop()
        self.has_begun = asyncio.Event()
        self._done = asyncio.Event()
        self._value: Any = None
        self._error: BaseException | None = None
        self._began = self._ended = clock.now()  # the result may be requested before the thread begins

    def begin(self) -> None:
        self._began = self._clock.now()
        self._set_event(self.has_begun)

    def put(self, value: Any, error: BaseException | None = None) -> None:
        if os.getpid() != self._process:
            exit_now(0)  # the author's code forked: nothing waits for a result in the copy of the run
        self._ended = self._clock.now()
        self._value, self._error = value, error
        self._set_event(self._done)

    def _set_event(self, event: asyncio.Event) -> None:
        try:
            self._loop.call_soon_threadsafe(event.set)
        except RuntimeError:  # the run has ended in the meantime and nothing waits
            return

    async def get(self, left_s: Callable[[float], float]) -> TimedResult:
        """Wait for the result. ``left_s`` returns how much time is left to a call that has run for a number
        of seconds."""
        global _left_behind
        try:
            while not self._done.is_set():
                await self._done_within(left_s(self._clock.now() - self._began))
        except (DeadlineError, asyncio.CancelledError):
            _left_behind = True
            raise
        if isinstance(self._error, asyncio.CancelledError):
            raise CancelledUserCodeError(str(self._error) or "its code was cancelled") from self._error
        if isinstance(self._error, Exception):
            raise self._error
        if self._error is not None:  # never agenteval's: Ctrl-C raises in the main thread
            raise QuitError(type(self._error).__name__) from self._error
        elapsed = self._ended - self._began
        if left_s(elapsed) < 0:
            raise DeadlineError
        return TimedResult(self._value, elapsed)

    async def _done_within(self, seconds: float) -> None:
        """Wait for the result, or until the clock should be checked again."""
        if seconds <= 0:
            raise DeadlineError
        with contextlib.suppress(TimeoutError):
            least = max(seconds, 0.01)
            await asyncio.wait_for(self._done.wait(), None if least == math.inf else least)


async def _in_thread(
    function: Callable[..., Any], args: tuple[Any, ...], timeout_s: float, excused_s: Callable[[], float]
) -> TimedResult:
    outcome = _PendingResult(current_stopwatch().conversation_clock)
    context = contextvars.copy_context()

    def work() -> None:
        outcome.begin()
        try:
            outcome.put(context.run(function, *args))
        except BaseException as error:
            outcome.put(None, error)

    threading.Thread(target=work, daemon=True, name="agenteval-user-code").start()
    return await outcome.get(lambda elapsed: timeout_s - elapsed + excused_s())


async def _on_loop(
    function: Callable[..., Any], args: tuple[Any, ...], timeout_s: float, excused_s: Callable[[], float]
) -> TimedResult:
    while True:
        running = _LoopCall(function, args)
        if await running.has_begun():
            return await running.result(timeout_s, excused_s)


class _LoopCall:
    """One async call on the author's loop."""

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self._clock = current_stopwatch().conversation_clock
        self._outcome = _PendingResult(self._clock)
        self._shared = shared_loop()
        self._slot = LoopSlot(self._shared, self._clock)
        self._task: asyncio.Task[None] | None = None
        self._is_abandoned = False
        context = contextvars.copy_context()
        context.run(set_conversation_clock, self._clock)
        self._shared.loop.call_soon_threadsafe(self._start, function, args, context=context)

    def _start(self, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        if not self._is_abandoned:
            self._task = self._shared.loop.create_task(self._work(function, args))
            self._task.add_done_callback(self._report_cancellation)

    def _report_cancellation(self, task: asyncio.Task[None]) -> None:
        """Report a cancelled task. The author's code may cancel every task of the loop, even one that has not
        taken a step yet."""
        if task.cancelled():
            self._outcome.begin()
            self._outcome.put(None, asyncio.CancelledError())

    async def _work(self, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self._slot.acquire()
        self._outcome.begin()
        try:
            self._outcome.put(await function(*args))
        except BaseException as error:
            self._outcome.put(None, error)
        self._slot.release()

    async def has_begun(self) -> bool:
        """Wait for the call's turn. Return ``False`` if its loop was abandoned before that, so that the
        caller tries another."""
        try:
            with pause_deadlines():
                while not self._outcome.has_begun.is_set():
                    if self._shared is not shared_loop():
                        self._is_abandoned = True
                        return False
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(self._outcome.has_begun.wait(), 0.2)
        except asyncio.CancelledError:
            self._cancel()
            raise
        return True

    async def result(self, timeout_s: float, excused_s: Callable[[], float]) -> TimedResult:
        try:
            return await self._outcome.get(lambda elapsed: timeout_s - elapsed + excused_s())
        except asyncio.CancelledError:
            self._cancel()
            # An outer deadline may have passed: other calls must not wait behind code that blocks.
            _checks.add(check := asyncio.ensure_future(self._shared.give_up_if_blocked()))
            check.add_done_callback(_checks.discard)
            raise
        except DeadlineError:
            is_stuck = self._clock.is_stuck
            self._cancel()
            await self._shared.give_up_if_blocked()
            if is_stuck:
                raise BlockedLoopError from None
            raise

    def _cancel(self) -> None:
        self._is_abandoned = True
        self._slot.release()
        self._shared.loop.call_soon_threadsafe(lambda: self._task and self._task.cancel())


_checks: set[asyncio.Future[None]] = set()


_left_behind = False


def has_running_user_code() -> bool:
    """Check whether the author's code may still run, so that ending the process must not wait for it."""
    others = [t for t in threading.enumerate() if t is not threading.main_thread() and not t.daemon]
    return _left_behind or bool(others)
