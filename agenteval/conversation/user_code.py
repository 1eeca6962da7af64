"""Load and call the author's own Python code. Code is imported from ``file.py:attribute`` or
``package.module:attribute`` and called in such a way that it cannot block the run."""

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
from typing import Any, NamedTuple, TextIO

from agenteval.agentside.targets.faults import (
    CancelledUserCodeError,
    QuitError,
    contain_exits,
    describe_error,
)
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
"""The default timeout for importing a target, in seconds. Frameworks take 2 to 18 seconds."""


def import_target(
    target: str,
    base: str,
    *,
    what: str,
    place: Place | None = None,
    finder: Callable[[str, str], Any] = load_object,
    timeout_s: float = IMPORT_S,
) -> Any:
    """Import the object that ``target`` names (dynamic import of ``file.py:attribute``).

    ``base`` is the folder to which file paths are relative; it is added to the import path. ``what`` is used
    in messages to describe the purpose of the object, and ``finder`` finds the object. Raise ``AuthorError``
    if the object cannot be imported."""
    try:
        with _time_limit(timeout_s), _empty_stdin():
            return finder(target, base)
    except TargetError as error:
        remedy = error.remedy or did_you_mean(error.missing_name, error.attribute_names)
        raise AuthorError(Problem(what + error.what, remedy, place)) from error


def run_at_load(function: Callable[[], Any], *, what: str, place: Place | None = None) -> Any:
    """Call the author's function while files are loaded, and return its result. ``what`` describes it in
    messages. Raise ``AuthorError`` if it fails or takes longer than an import may."""
    try:
        with _time_limit(IMPORT_S), _empty_stdin(), contain_exits():
            return function()
    except AuthorError:
        raise
    except Exception as error:
        raise AuthorError(Problem(f"{what} raised {describe_error(error)}", "", place)) from error


class ImportTimeout(BaseException):
    """Raised in imported code that hangs. This is a ``BaseException`` so that no ``except Exception`` in the
    imported code can swallow it."""


@contextlib.contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    """Interrupt code that blocks the main thread, if the operating system supports this. The code may need
    the main thread (for signals or for its event loop), so it cannot be moved to another thread."""
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


_nothing: TextIO | None = None
"""An empty file. It stays open, because the code that has read from it may keep it."""


def _open_nothing() -> TextIO:
    global _nothing
    if _nothing is None or _nothing.closed:
        _nothing = open(os.devnull, encoding="utf-8")  # noqa: SIM115
    return _nothing


@contextlib.contextmanager
def _empty_stdin() -> Iterator[None]:
    """Provide an empty standard input, even at a terminal, to a script that reads input during its import."""
    before = sys.stdin
    nothing = sys.stdin = _open_nothing()
    try:
        yield
    finally:
        if sys.stdin is nothing:
            sys.stdin = before


class DeadlineError(TimeoutError):
    """Raised if the author's code took longer than allowed. It is distinct from a ``TimeoutError`` raised by
    the author's code."""


class TimedResult(NamedTuple):
    """The result of a call, with its running time."""

    value: Any
    """The value that the call returned."""
    elapsed_s: float
    """The running time of the author's code in seconds, excluding the time spent waiting for its turn."""


async def call_user_code(function: Callable[..., Any], *args: Any, timeout_s: float = math.inf) -> Any:
    """Call ``function`` as ``time_user_code`` does, and return only the value."""
    return (await time_user_code(function, *args, timeout_s=timeout_s)).value


async def time_user_code(
    function: Callable[..., Any],
    *args: Any,
    timeout_s: float = math.inf,
    excused_s: Callable[[], float] = lambda: 0.0,
) -> TimedResult:
    """Call ``function`` outside agenteval's own event loop, so that the author's code cannot block it. Async
    code runs on a shared event loop in a daemon thread. Each call to other code runs in a daemon thread of
    its own.

    The deadline (timeout) starts when the code starts to run and is measured by the conversation's clock (see
    ``shared_loop``). ``excused_s`` returns the time used by other conversations in the meantime. After the
    deadline, or if the caller is cancelled, async code is cancelled. Neither the async code nor a thread is
    awaited, because neither can be forced to end. Raise ``DeadlineError``, ``BlockedLoopError``, or any
    exception raised by ``function``."""
    first = await (_on_loop if is_async(function) else _in_thread)(function, args, timeout_s, excused_s)
    if not inspect.isawaitable(first.value):
        return first

    async def wait() -> Any:
        return await first.value

    second = await _on_loop(wait, (), timeout_s - first.elapsed_s, excused_s)
    return TimedResult(second.value, first.elapsed_s + second.elapsed_s)


class _PendingResult:
    """A result that is passed from a thread to the event loop that waits for it."""

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
        """Wait for the result. ``left_s`` takes the number of seconds that a call has run and returns the
        remaining time."""
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
        """Wait until the result is available or until the clock should be checked again."""
        if seconds <= 0:
            raise DeadlineError
        least = max(seconds, 0.01)
        await _wait_until_set(self._done, None if least == math.inf else least)


async def _wait_until_set(event: asyncio.Event, seconds: float | None) -> None:
    """Wait until the event is set, for ``seconds`` at most. (``asyncio.wait_for`` is not used, because in
    Python 3.11 it loses a cancellation that arrives just as the event is set.)"""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()


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
    """One async call on the event loop of the author's code."""

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
        """Report a cancelled task. The author's code may cancel every task on the loop, even a task that has
        not run its first step."""
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
        """Wait until the call begins. Return ``False`` if the loop was abandoned before the call began, in
        which case the caller tries another loop."""
        try:
            with pause_deadlines():
                while not self._outcome.has_begun.is_set():
                    if self._shared is not shared_loop():
                        self._is_abandoned = True
                        return False
                    await _wait_until_set(self._outcome.has_begun, 0.2)
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
    """Check whether the author's code may still be running, in which case ending the process must not wait
    for it."""
    others = [t for t in threading.enumerate() if t is not threading.main_thread() and not t.daemon]
    return _left_behind or bool(others)
