"""The author's code is imported and called so that it cannot hold up the run; what it does wrong is told."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import math
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import anyio
import pytest

from agenteval.agentside.targets.faults import CancelledUserCodeError, QuitError
from agenteval.agentside.targets.loading import TargetError
from agenteval.conversation import user_code
from agenteval.conversation.deadlines import Deadlines, current_stopwatch
from agenteval.conversation.shared_loop import shared_loop
from agenteval.conversation.user_code import (
    IMPORT_S,
    DeadlineError,
    ImportTimeout,
    call_user_code,
    has_running_user_code,
    import_target,
    time_user_code,
)
from agenteval.core.errors import AuthorError, Place
from agenteval.core.scenario import SampleKey

# ── imports ──────────────────────────────────────────────────────────────────────────────────────


def test_an_import_gives_what_the_finder_found() -> None:
    seen: list[Any] = []

    def finder(target: str, base: str) -> Any:
        seen.append((target, base, sys.stdin.read()))
        return 5

    before = sys.stdin
    assert import_target("bot.py:agent", "/suite", what="agent 'x'", finder=finder) == 5
    assert seen == [("bot.py:agent", "/suite", "")]
    assert sys.stdin is before


REMEDIES: dict[str, tuple[TargetError, str]] = {
    "its own": (
        TargetError(": no", "look there", missing_name="agnt", attribute_names=["agent"]),
        "look there",
    ),
    "a name that is meant": (TargetError(": no", missing_name="agnt", attribute_names=["agent"]), "agent"),
}


@pytest.mark.parametrize(("error", "remedy"), REMEDIES.values(), ids=REMEDIES)
def test_a_target_that_is_not_there_is_the_authors_mistake(error: TargetError, remedy: str) -> None:
    def finder(*_: str) -> Any:
        raise error

    place = Place("agenteval.yaml", 3)
    with pytest.raises(AuthorError) as caught:
        import_target("bot.py:agnt", ".", what="agent 'x'", place=place, finder=finder)
    (problem,) = caught.value.problems
    assert problem.what == "agent 'x': no"
    assert remedy in problem.remedy
    assert problem.place == place
    assert caught.value.__cause__ is error


def test_other_exceptions_pass_and_everything_is_as_before() -> None:
    def finder(*_: str) -> Any:
        raise LookupError

    before = sys.stdin, signal.getsignal(signal.SIGALRM)
    with pytest.raises(LookupError):
        import_target("x:y", ".", what="x", finder=finder)
    assert (sys.stdin, signal.getsignal(signal.SIGALRM)) == before


def test_a_script_may_keep_an_input_of_its_own() -> None:
    before: Any = sys.stdin
    own: Any = object()

    def finder(*_: str) -> Any:
        sys.stdin = own

    try:
        import_target("x:y", ".", what="x", finder=finder)
        assert sys.stdin is own
    finally:
        sys.stdin = before


alarms = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no alarms")


@alarms
@pytest.mark.parametrize("given", [{}, {"timeout_s": 7.5}])
def test_an_import_has_a_time_limit(given: dict[str, Any]) -> None:
    limits: list[float] = []

    def finder(*_: str) -> Any:
        limits.append(signal.getitimer(signal.ITIMER_REAL)[0])
        handler: Any = signal.getsignal(signal.SIGALRM)
        handler(signal.SIGALRM, None)

    with pytest.raises(ImportTimeout) as caught:
        import_target("x:y", ".", what="x", finder=finder, **given)
    expected = given.get("timeout_s", IMPORT_S)
    assert limits == [pytest.approx(expected, abs=1)]
    assert f"{expected:g} s" in str(caught.value)
    assert not isinstance(caught.value, Exception)
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0


@alarms
def test_a_handler_of_the_authors_stays() -> None:
    def own(*_: Any) -> None:
        return

    before = signal.getsignal(signal.SIGALRM)
    try:
        import_target("x:y", ".", what="x", finder=lambda *_: signal.signal(signal.SIGALRM, own))
        assert signal.getsignal(signal.SIGALRM) is own
    finally:
        signal.signal(signal.SIGALRM, before)


@alarms
def test_another_thread_has_no_alarm() -> None:
    found: list[Any] = []

    def finder(*_: str) -> Any:
        found.append(signal.getitimer(signal.ITIMER_REAL)[0])

    thread = threading.Thread(target=import_target, args=("x:y", "."), kwargs={"what": "x", "finder": finder})
    thread.start()
    thread.join(20)
    assert found == [0.0]


# ── calls ────────────────────────────────────────────────────────────────────────────────────────

VARIABLE: contextvars.ContextVar[str] = contextvars.ContextVar("mine", default="none")


def plain(*args: Any) -> Any:
    return args


async def later(*args: Any) -> Any:
    return args


def gives_later(*args: Any) -> Any:
    return later(*args)


class Plain:
    def __call__(self, *args: Any) -> Any:
        return args


class Later:
    async def __call__(self, *args: Any) -> Any:
        return args


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "plain": plain,
    "async": later,
    "plain, that gives a coroutine": gives_later,
    "an object": Plain(),
    "an object with an async call": Later(),
}


@pytest.fixture(autouse=True)
def _nothing_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_code, "_left_behind", False)


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_a_call_gives_its_value(function: Callable[..., Any]) -> None:
    assert asyncio.run(call_user_code(function, 1, "b")) == (1, "b")
    found = asyncio.run(time_user_code(function, 1, timeout_s=100))
    assert found.value == (1,)
    assert 0 <= found.elapsed_s < 100
    assert not has_running_user_code()


def where() -> Any:
    thread = threading.current_thread()
    return thread.name, thread.daemon, VARIABLE.get()


async def where_later() -> Any:
    return (*where(), asyncio.get_running_loop() is shared_loop().loop)


def test_plain_code_has_a_thread_of_its_own_and_async_code_shares_one() -> None:
    async def main() -> Any:
        VARIABLE.set("given")
        own = threading.current_thread().name
        found = [await call_user_code(where), await call_user_code(where_later), await call_user_code(set_it)]
        return own, found, VARIABLE.get()

    def set_it() -> None:
        VARIABLE.set("changed")

    own, (one, two, _), after = asyncio.run(main())
    assert one[1:] == (True, "given")
    assert two[1:] == (True, "given", True)
    assert own not in (one[0], two[0])
    assert one[0] != two[0]
    assert after == "given"


def failing(error: BaseException) -> dict[str, Callable[[], Any]]:
    def fail() -> Any:
        raise error

    async def fail_later() -> Any:
        raise error

    return {"plain": fail, "async": fail_later, "plain, then async": lambda: fail_later()}


KINDS = pytest.mark.parametrize("kind", ["plain", "async", "plain, then async"])


@KINDS
@pytest.mark.parametrize("error", [ValueError("no key"), TimeoutError("mine"), StopAsyncIteration("x")])
def test_exceptions_are_its_own(kind: str, error: Exception) -> None:
    with pytest.raises(type(error)) as caught:
        asyncio.run(call_user_code(failing(error)[kind], timeout_s=100))
    assert caught.value is error
    assert not isinstance(caught.value, DeadlineError)
    assert not has_running_user_code()


@KINDS
@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), GeneratorExit()])
def test_an_exception_that_would_end_the_run_does_not(kind: str, error: BaseException) -> None:
    with pytest.raises(QuitError) as caught:
        asyncio.run(call_user_code(failing(error)[kind]))
    assert str(caught.value) == type(error).__name__
    assert caught.value.__cause__ is error


@KINDS
@pytest.mark.parametrize(("args", "text"), [(("why",), "why"), ((), "cancelled")])
def test_code_that_is_cancelled_by_itself(kind: str, args: tuple[str, ...], text: str) -> None:
    error = asyncio.CancelledError(*args)
    with pytest.raises(CancelledUserCodeError) as caught:
        asyncio.run(call_user_code(failing(error)[kind]))
    assert text in str(caught.value)
    assert isinstance(caught.value.__cause__, asyncio.CancelledError)


def test_code_that_cancels_its_own_task() -> None:
    async def cancel() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)

    with pytest.raises(CancelledUserCodeError):
        asyncio.run(call_user_code(cancel))
    assert asyncio.run(call_user_code(later, 1)) == (1,)


# ── time ─────────────────────────────────────────────────────────────────────────────────────────


class Clock:
    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    """The tests' clock; a loop that knows no other one."""
    made = Clock()
    monkeypatch.setattr("agenteval.conversation.shared_loop.now", made)
    shared_loop.cache_clear()
    yield made
    shared_loop.cache_clear()


def in_sample(call: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    async def main() -> Any:
        with Deadlines().time_sample(SampleKey(scenario="a", agent="bot")):
            return await call()

    return asyncio.run(main())


def taking(clock: Clock, seconds: float) -> dict[str, Callable[[], Any]]:
    def take() -> str:
        clock.seconds += seconds
        return "done"

    async def take_later() -> str:
        return take()

    return {"plain": take, "async": take_later}


BOTH = pytest.mark.parametrize("kind", ["plain", "async"])


@BOTH
@pytest.mark.parametrize(
    ("takes_s", "timeout_s", "is_late"),
    [(2.0, math.inf, False), (2.0, 3.0, False), (2.0, 2.1, False), (2.0, 1.9, True), (0.0, 0.5, False)],
)
def test_the_deadline_is_measured_by_the_clock(
    clock: Clock, kind: str, takes_s: float, timeout_s: float, is_late: bool
) -> None:
    function = taking(clock, takes_s)[kind]
    if is_late:
        with pytest.raises(DeadlineError):
            in_sample(lambda: time_user_code(function, timeout_s=timeout_s))
        return
    found = in_sample(lambda: time_user_code(function, timeout_s=timeout_s))
    assert (found.value, found.elapsed_s) == ("done", pytest.approx(takes_s))


@BOTH
def test_time_that_is_excused_does_not_count(clock: Clock, kind: str) -> None:
    function = taking(clock, 5.0)[kind]
    found = in_sample(lambda: time_user_code(function, timeout_s=2.0, excused_s=lambda: 3.1))
    assert found.elapsed_s == pytest.approx(5.0)
    with pytest.raises(DeadlineError):
        in_sample(lambda: time_user_code(function, timeout_s=2.0, excused_s=lambda: 2.9))


@pytest.mark.parametrize(("timeout_s", "is_late"), [(5.1, False), (4.9, True)])
def test_a_coroutine_that_is_given_has_the_time_that_is_left(
    clock: Clock, timeout_s: float, is_late: bool
) -> None:
    second = taking(clock, 3.0)["async"]

    def first() -> Any:
        clock.seconds += 2.0
        return second()

    def call() -> Coroutine[Any, Any, Any]:
        return time_user_code(first, timeout_s=timeout_s)

    if is_late:
        with pytest.raises(DeadlineError):
            in_sample(call)
    else:
        found = in_sample(call)
        assert (found.value, found.elapsed_s) == ("done", pytest.approx(5.0))


def test_time_counts_from_when_a_thread_begins(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    class Late(threading.Thread):
        def start(self) -> None:
            clock.seconds += 5.0
            super().start()

    async def call() -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(threading, "Thread", Late)
            return await time_user_code(lambda: "done", timeout_s=2.0)

    found = in_sample(call)
    assert (found.value, found.elapsed_s) == ("done", pytest.approx(0.0))


@BOTH
@pytest.mark.parametrize("timeout_s", [0.0, 0.02])
def test_what_has_no_time_left_is_too_late_and_something_runs_on(kind: str, timeout_s: float) -> None:
    go, ended = threading.Event(), threading.Event()

    def wait() -> None:
        go.wait(20)
        ended.set()

    async def wait_later() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    with pytest.raises(DeadlineError) as caught:
        asyncio.run(call_user_code(wait if kind == "plain" else wait_later, timeout_s=timeout_s))
    assert isinstance(caught.value, TimeoutError)
    assert has_running_user_code()
    go.set()
    assert ended.wait(20)  # async code is cancelled, a thread is left to itself


@BOTH
def test_a_caller_that_is_cancelled_leaves_code_behind(kind: str) -> None:
    begun, go, ended = threading.Event(), threading.Event(), threading.Event()

    def wait() -> None:
        begun.set()
        go.wait(20)
        ended.set()

    async def wait_later() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def main() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(call_user_code, wait if kind == "plain" else wait_later)
            await asyncio.to_thread(begun.wait, 20)
            group.cancel_scope.cancel()

    asyncio.run(main())
    assert has_running_user_code()
    go.set()
    assert ended.wait(20)


@BOTH
@pytest.mark.parametrize("event", ["has_begun", "_done"])
@pytest.mark.parametrize("steps", range(5))
def test_a_cancellation_just_as_the_code_begins_or_ends_is_not_lost(
    monkeypatch: pytest.MonkeyPatch, kind: str, event: str, steps: int
) -> None:
    set_event = user_code._PendingResult._set_event
    accepted: list[bool] = []

    async def main() -> Any:
        loop = asyncio.get_running_loop()
        tried = asyncio.Event()
        task = asyncio.create_task(call_user_code(later if kind == "async" else plain))

        def cancel_after(left: int) -> None:
            if left:
                loop.call_soon(cancel_after, left - 1)
            else:
                accepted.append(task.cancel())
                tried.set()

        def set_and_cancel(self: Any, given: asyncio.Event) -> None:
            set_event(self, given)
            if given is getattr(self, event):
                loop.call_soon_threadsafe(cancel_after, steps)

        monkeypatch.setattr(user_code._PendingResult, "_set_event", set_and_cancel)
        await asyncio.wait([task])
        await tried.wait()
        return task.cancelled()

    assert asyncio.run(main()) == accepted[0]


def test_a_thread_of_the_authors_keeps_the_process() -> None:
    go = threading.Event()
    assert not has_running_user_code()
    daemon = threading.Thread(target=go.wait, args=(20,), daemon=True)
    daemon.start()
    assert not has_running_user_code()
    other = threading.Thread(target=go.wait, args=(20,), daemon=False)
    other.start()
    assert has_running_user_code()
    go.set()
    other.join(20)
    daemon.join(20)
    assert not has_running_user_code()


def test_a_copy_of_the_run_ends_with_the_code_that_made_it(monkeypatch: pytest.MonkeyPatch) -> None:
    class Ended(BaseException):
        pass

    codes: list[int] = []

    def end(code: int) -> None:
        codes.append(code)
        raise Ended

    async def main() -> Any:
        pending = user_code._PendingResult(current_stopwatch().conversation_clock)
        monkeypatch.setattr(user_code, "exit_now", end)
        pending._process += 1
        with pytest.raises(Ended):
            pending.put(5)
        return pending._done.is_set()

    assert asyncio.run(main()) is False
    assert codes == [0]


def test_a_result_that_comes_after_the_run_is_dropped() -> None:
    async def main() -> Any:
        return user_code._PendingResult(current_stopwatch().conversation_clock)

    pending = asyncio.run(main())
    pending.begin()
    pending.put(5)
    assert inspect.iscoroutinefunction(pending.get)
