"""The author's own Python: finding it by ``file.py:attribute`` or ``package.module:attribute``, and
calling it without letting it hold up the run."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import math
import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from agenteval.conversation.deadlines import HeldUpError, current, waiting
from agenteval.conversation.exits import leave_now
from agenteval.conversation.module_files import module_of_file
from agenteval.conversation.shared_loop import Seat, Share, owned_by, shared_loop
from agenteval.core.errors import AuthorError, Place, Problem, did_you_mean
from agenteval.core.expressions import expression


def load(target: str, base: str, *, what: str, place: Place | None = None) -> Any:
    """The object that ``target`` names; ``base`` is the folder where file paths start, and is made
    importable. ``what`` names its use in messages. Raises ``AuthorError``."""
    location, separator, attribute = target.rpartition(":")
    if not separator or not location or not attribute:
        raise AuthorError(
            Problem(
                f"{what} '{target}' names no attribute", "write file.py:name or package.module:name", place
            )
        )
    if base not in sys.path:
        sys.path.insert(0, base)
    module = _load_module(location, base, what, place)
    found: Any = module
    for name in attribute.split("."):
        if not _has(found, name, what, place):
            known = [n for n in vars(found) if not n.startswith("_")] if hasattr(found, "__dict__") else []
            raise AuthorError(
                Problem(f"{what}: '{location}' has no '{attribute}'", did_you_mean(name, known), place)
            )
        found = getattr(found, name)
    return found


def _has(owner: Any, name: str, what: str, place: Place | None) -> bool:
    """Whether there is such an attribute; a module may find it by code of its own."""
    try:
        with contained():
            return hasattr(owner, name)
    except Exception as error:
        raise AuthorError(
            Problem(f"{what}: asking for '{name}' failed: {describe(error)}", "", place)
        ) from error


def _load_module(location: str, base: str, what: str, place: Place | None) -> ModuleType:
    is_file = location.endswith(".py") or "/" in location
    path = (Path(base) / location).resolve() if is_file else None
    if path is not None and not path.is_file():
        raise AuthorError(Problem(f"{what}: there is no file '{location}'", f"looked in {base}", place))
    try:
        with contained():
            return module_of_file(str(path)) if path else _module_by_name(location)
    except ModuleNotFoundError as error:
        if path is None and error.name and location.split(".")[0] == error.name.split(".")[0]:
            remedy = "is it installed, or does its folder lie elsewhere?"
            raise AuthorError(Problem(f"{what}: there is no module '{location}'", remedy, place)) from error
        raise AuthorError(_broken_import(location, error, what, place)) from error
    except Exception as error:
        raise AuthorError(_broken_import(location, error, what, place)) from error


def _broken_import(location: str, error: BaseException, what: str, place: Place | None) -> Problem:
    return Problem(f"{what}: importing '{location}' failed: {describe(error)}", "", place)


def _module_by_name(name: str) -> ModuleType:
    from importlib import import_module

    return import_module(name)


def describe(error: BaseException) -> str:
    """``ValueError: text (agent.py:12, in answer)``: the last place outside agenteval and libraries."""
    if isinstance(error, QuitError) and error.__cause__:
        return describe(error.__cause__)
    try:
        text = str(error).strip() or "no message"
    except Exception:
        text = "a message that cannot be read"
    if isinstance(error, SyntaxError) and error.filename:
        return f"{type(error).__name__}: {error.msg} ({Path(error.filename).name}:{error.lineno})"
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if "site-packages" not in f.filename and not _is_ours(f.filename)]
    own = [f for f in own if not f.filename.startswith("<")] or own
    where = f" ({Path(own[-1].filename).name}:{own[-1].lineno}, in {own[-1].name})" if own else ""
    return f"{type(error).__name__}: {text}{where}"


def _is_ours(filename: str) -> bool:
    stdlib = str(Path(threading.__file__).parent)
    return filename.startswith((str(Path(__file__).parents[1]), stdlib))


class QuitError(RuntimeError):
    """The author's code raised what would end a program, ``sys.exit`` or the like: its ``__cause__``."""


@contextlib.contextmanager
def contained() -> Iterator[None]:
    """For code of the author's that runs among ours: what would end the run comes out as ``QuitError``.
    The user's Ctrl-C passes, and our own cancelling."""
    try:
        yield
    except (Exception, KeyboardInterrupt, asyncio.CancelledError):
        raise
    except BaseException as error:
        raise QuitError(type(error).__name__) from error


_CONTEXT = expression(r"\b(Agent|Tool)?Context\b")


def takes_context(function: Callable[..., Any]) -> bool:
    """Whether ``function`` is called with a context as its second argument: if it has a second parameter
    that is no option of its own, or if it does not say. An option has a default, and neither name nor
    annotation tells of a context."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return True
    places = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if len(places) < 2:
        return any(p.kind is p.VAR_POSITIONAL for p in parameters)
    second = places[1]
    is_named = second.name.strip("_") in ("ctx", "context")
    return second.default is second.empty or is_named or bool(_CONTEXT.search(str(second.annotation)))


def misfit(function: Callable[..., Any], arguments: int) -> str:
    """The signature of ``function`` if it cannot be called with so many arguments; empty if it can, or if
    it does not say. What a decorator wraps is the decorator's business."""
    try:
        signature = inspect.signature(function, follow_wrapped=False)
    except (TypeError, ValueError):
        return ""
    try:
        signature.bind(*range(arguments))
    except TypeError:
        return f"{getattr(function, '__name__', type(function).__name__)}{signature}"
    return ""


def is_async(function: Callable[..., Any]) -> bool:
    """Whether calling ``function`` gives a coroutine; of a class: whether calling its instances does."""
    owner = function if inspect.isclass(function) else type(function)
    call = getattr(owner, "__call__", None)  # noqa: B004 - what is asked is whether it is async
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


class CancelledUserCodeError(RuntimeError):
    """The author's code was cancelled, or said so, and not by us."""


class DeadlineError(TimeoutError):
    """The author's code took longer than it may. Told apart from a ``TimeoutError`` of its own."""


class Timed(NamedTuple):
    """What a call returned, and how long the author's code ran (waiting for its turn excluded)."""

    value: Any
    elapsed_s: float


async def call(function: Callable[..., Any], *args: Any, timeout_s: float = math.inf) -> Any:
    """``timed_call``, without the time."""
    return (await timed_call(function, *args, timeout_s=timeout_s)).value


async def timed_call(
    function: Callable[..., Any],
    *args: Any,
    timeout_s: float = math.inf,
    excused_s: Callable[[], float] = lambda: 0.0,
) -> Timed:
    """Call ``function`` away from agenteval's own event loop, so that no code of the author's can hold
    it up: async code on a loop of its own in a daemon thread, all other in a daemon thread each.

    The deadline runs from the moment when the code does, by the conversation's clock (see ``shared_loop``);
    ``excused_s``: what others took meanwhile. After it (or when the caller is cancelled) async code is
    cancelled; nobody waits for it, nor for a thread: neither can be forced to end. Raises ``DeadlineError``,
    ``HeldUpError``, and what ``function`` raises.
    """
    first = await (_on_loop if is_async(function) else _in_thread)(function, args, timeout_s, excused_s)
    if not inspect.isawaitable(first.value):
        return first

    async def wait() -> Any:
        return await first.value

    second = await _on_loop(wait, (), timeout_s - first.elapsed_s, excused_s)
    return Timed(second.value, first.elapsed_s + second.elapsed_s)


class _Outcome:
    """A result on its way from a thread to the event loop that waits for it."""

    def __init__(self, share: Share) -> None:
        self._share = share
        self._process = os.getpid()
        self._loop = asyncio.get_running_loop()
        self.has_begun = asyncio.Event()
        self._done = asyncio.Event()
        self._value: Any = None
        self._error: BaseException | None = None
        self._began = self._ended = share.now()  # a thread may begin later than it is asked for its result

    def begin(self) -> None:
        self._began = self._share.now()
        self._tell(self.has_begun)

    def put(self, value: Any, error: BaseException | None = None) -> None:
        if os.getpid() != self._process:
            leave_now(0)  # the author's code forked: the copy of the run has nobody to answer
        self._ended = self._share.now()
        self._value, self._error = value, error
        self._tell(self._done)

    def _tell(self, event: asyncio.Event) -> None:
        try:
            self._loop.call_soon_threadsafe(event.set)
        except RuntimeError:  # the run has ended meanwhile and nobody waits
            return

    async def get(self, left_s: Callable[[float], float]) -> Timed:
        """``left_s``: how much time the call has that began at a moment, and has not ended yet."""
        global _left_behind
        try:
            while not self._done.is_set():
                await self._done_within(left_s(self._share.now() - self._began))
        except (DeadlineError, asyncio.CancelledError):
            _left_behind = True
            raise
        if isinstance(self._error, asyncio.CancelledError):
            raise CancelledUserCodeError(str(self._error) or "its code was cancelled") from self._error
        if isinstance(self._error, Exception):
            raise self._error
        if self._error is not None:  # never ours: a KeyboardInterrupt of the user's comes in the main thread
            raise QuitError(type(self._error).__name__) from self._error
        elapsed = self._ended - self._began
        if left_s(elapsed) < 0:
            raise DeadlineError
        return Timed(self._value, elapsed)

    async def _done_within(self, seconds: float) -> None:
        """Waits for it, or until it is worth while to look at the clock again."""
        if seconds <= 0:
            raise DeadlineError
        with contextlib.suppress(TimeoutError):
            least = max(seconds, 0.01)
            await asyncio.wait_for(self._done.wait(), None if least == math.inf else least)


async def _in_thread(
    function: Callable[..., Any], args: tuple[Any, ...], timeout_s: float, excused_s: Callable[[], float]
) -> Timed:
    outcome = _Outcome(current().share)
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
) -> Timed:
    while True:
        running = _Running(function, args)
        if await running.has_begun():
            return await running.result(timeout_s, excused_s)


class _Running:
    """One async call on the author's loop."""

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self._share = current().share
        self._outcome = _Outcome(self._share)
        self._shared = shared_loop()
        self._seat = Seat(self._shared, self._share)
        self._task: asyncio.Task[None] | None = None
        self._is_unwanted = False
        context = contextvars.copy_context()
        context.run(owned_by, self._share)
        self._shared.loop.call_soon_threadsafe(self._start, function, args, context=context)

    def _start(self, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        if not self._is_unwanted:
            self._task = self._shared.loop.create_task(self._work(function, args))
            self._task.add_done_callback(self._told_in_any_case)

    def _told_in_any_case(self, task: asyncio.Task[None]) -> None:
        """The author's code may cancel every task of the loop, also those that have not taken a step yet."""
        if task.cancelled():
            self._outcome.begin()
            self._outcome.put(None, asyncio.CancelledError())

    async def _work(self, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self._seat.take()
        self._outcome.begin()
        try:
            self._outcome.put(await function(*args))
        except BaseException as error:
            self._outcome.put(None, error)
        self._seat.leave()

    async def has_begun(self) -> bool:
        """Waits for the call's turn. False: its loop was given up before; try another."""
        try:
            with waiting():
                while not self._outcome.has_begun.is_set():
                    if self._shared is not shared_loop():
                        self._is_unwanted = True
                        return False
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(self._outcome.has_begun.wait(), 0.2)
        except asyncio.CancelledError:
            self._cancel()
            raise
        return True

    async def result(self, timeout_s: float, excused_s: Callable[[], float]) -> Timed:
        try:
            return await self._outcome.get(lambda elapsed: timeout_s - elapsed + excused_s())
        except asyncio.CancelledError:
            self._cancel()
            # A deadline above may have passed: others must not wait behind code that blocks.
            _checks.add(check := asyncio.ensure_future(self._shared.give_up_if_blocked()))
            check.add_done_callback(_checks.discard)
            raise
        except DeadlineError:
            is_stuck = self._share.is_stuck
            self._cancel()
            await self._shared.give_up_if_blocked()
            if is_stuck:
                raise HeldUpError from None
            raise

    def _cancel(self) -> None:
        self._is_unwanted = True
        self._seat.leave()
        self._shared.loop.call_soon_threadsafe(lambda: self._task and self._task.cancel())


_checks: set[asyncio.Future[None]] = set()


_left_behind = False


def is_left_behind() -> bool:
    """Whether code of the author's may still be running: ending the process must not wait for it."""
    others = [t for t in threading.enumerate() if t is not threading.main_thread() and not t.daemon]
    return _left_behind or bool(others)
