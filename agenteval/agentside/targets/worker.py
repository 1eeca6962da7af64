"""Run the author's target in a separate interpreter, one conversation at a time.

The protocol consists of JSON lines:

::

    to the worker       {"session", "turn", "messages", "tools", "answered", "scenario_id", "epoch", "seed"},
                        with "database", the path of the conversation's database, if it is exposed
                        {"tool_result": {"id", "result", "is_error", "is_timeout"}}, with "over": true if no
                        more calls will be answered
                        {"tool_result": {"id", "go": true}}: the worker must run the tool itself
                        {"over": true}: the conversation is over, and the process may run another conversation
    from the worker     {"ready": {"python", "agent"}} or {"refused": {"what", …}}, once, before all else;
                        both contain "imported", a warning about the calls made during the import
                        {"tool_call": {"id", "name", "arguments", "batch", "session"}}, with "known": true if
                        the agent has such a tool, and "own": true if the worker will run the tool itself
                        {"tool_done": {"id", "result", "is_error"}}: the worker has run the tool
                        {"over": true}: the worker has closed the conversation
                        {"value": …}, {"agent_reply": …}, {"returned": TYPE}, {"too_large": …} or
                        {"error": {"message", "kind", "final"}}, with the partial answer, if any;
                        each of these may contain "missed", the reason why the turn cannot be evaluated, and
                        "exchanges", the model requests, along with "asked", the calls that reached the
                        scenario, "met", the tools that are intercepted where they run, and "is_of_framework"

The lines are sent through the pipes that the process started with. The agent's output is written to standard
error."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import os
import platform
import sys
import threading
from concurrent.futures import Future
from functools import partial
from itertools import count
from queue import Queue
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from .. import hooks, model_requests
from ..import_watch import ImportWatch
from ..world import ToolAnswer, World
from .context import Context
from .faults import CancelledUserCodeError, QuitError, classify_error, get_partial_reply
from .interception import CannotInterceptError, FunctionInterceptor
from .loading import TargetError, load_agent, load_object
from .reply_limit import TOO_LARGE_TEXT, is_too_large
from .serialization import to_plain_json, to_reply_line
from .target_resolution import ResolvedTarget, TargetRefusal, check_deps_factory, resolve_target
from .target_session import TargetSession

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from .target_resolution import Recognizer
    from .tool_proxy import PassthroughCall

_CLOSING_S = 1.0
"""The maximum time in seconds that a conversation may spend releasing its resources."""


def work(
    target: str, base: str, deps: str, recognize: Recognizer, settings: Mapping[str, Any] | None = None
) -> None:
    """Run conversations until the input ends.

    ``deps`` names the function that creates the dependencies of a framework object. It is empty if there is
    no such function. ``settings`` contains ``intercept``, which maps each tool that the scenario mocks to the
    agent's function for the tool. It also contains ``declared`` and ``runs_others``, which are described in
    ``ImportWatch``."""
    lines, out = _take_over_pipes()
    wire = _Wire(out)
    hooks.install()
    settings = settings or {}
    others = bool(settings.get("runs_others"))
    importing = ImportWatch(target, base, settings.get("declared") or (), runs_others=others)
    with importing.watch_imports():
        loaded = _load_target(target, base, deps, recognize, settings.get("intercept") or {})
    if not isinstance(loaded, _LoadedTarget):
        wire.send({"refused": {**loaded, "imported": importing.import_warning}})
        return
    agent, make_deps, intercepts = loaded
    intercepts.install()
    ready = {"python": platform.python_version(), "agent": agent.to_summary(target)}
    wire.send({"ready": {**ready, "imported": importing.import_warning}})
    requests: Queue[dict[str, Any] | None] = Queue()
    threading.Thread(target=wire.listen, args=(lines, requests), daemon=True).start()

    def new_session() -> TargetSession:
        return TargetSession(agent, recognize, make_deps, World(intercepted=intercepts.tools))

    _play(new_session, intercepts.check_second_copy, wire, requests)


class _LoadedTarget(NamedTuple):
    agent: ResolvedTarget
    make_deps: Any
    intercepts: FunctionInterceptor


def _load_target(
    target: str, base: str, deps: str, recognize: Recognizer, intercept: Mapping[str, str]
) -> _LoadedTarget | dict[str, Any]:
    """Import the target and return it, or return the reason why it cannot be run."""
    try:
        make_deps = load_object(deps, base) if deps else None
        agent = resolve_target(load_agent(target, base), target, recognize, has_deps=bool(deps))
    except TargetError as error:
        return {
            "what": error.what,
            "remedy": error.remedy,
            "asked": error.missing_name,
            "known": error.attribute_names,
        }
    if make_deps is not None and (refusal := check_deps_factory(make_deps, deps)):
        agent = refusal
    if isinstance(agent, TargetRefusal):
        return {"of": "agent", "what": agent.what, "remedy": agent.remedy}
    try:
        return _LoadedTarget(agent, make_deps, FunctionInterceptor(intercept, base))
    except CannotInterceptError as error:
        return {"of": "intercept", "tool": error.tool, "what": error.what, "remedy": error.remedy}


def _take_over_pipes() -> tuple[IO[bytes], IO[bytes]]:
    """Return the pipes to agenteval. From then on, the agent's standard input is empty, and its output is
    written to its log."""
    lines, out = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError):
            stream.reconfigure(errors="backslashreplace", line_buffering=True)  # type: ignore[union-attr]
    return lines, out


class _Wire:
    """The connection to agenteval, which sends and receives lines. Incoming lines are read in a thread."""

    def __init__(self, out: IO[bytes]) -> None:
        self._out = out
        self._lock = threading.Lock()
        self._ids = count(1)
        self._pending_calls: dict[int, Future[Any]] = {}
        self._passthrough_calls: dict[int, PassthroughCall] = {}
        self.is_busy = False

    def send(self, value: Mapping[str, Any]) -> None:
        try:  # unescaped, as sizes are counted: a letter may be two bytes, its escape six
            line = json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
        except UnicodeEncodeError:  # half of a surrogate pair
            line = json.dumps(value, separators=(",", ":")).encode("ascii")
        line += b"\n"
        with self._lock:
            self._out.write(line)
            self._out.flush()

    def call(
        self,
        session: str,
        name: Any,
        args: Any,
        batch: int,
        *,
        known: bool = False,
        passthrough: PassthroughCall | None = None,
    ) -> Future[Any]:
        """Send a tool call and return its future. The future is cancelled if the conversation is over."""
        number, future = next(self._ids), Future()  # type: ignore[var-annotated]
        self._pending_calls[number] = future
        if passthrough:
            self._passthrough_calls[number] = passthrough
            passthrough.done.add_done_callback(partial(self._send_done, number))
        called = name if isinstance(name, str) else repr(name)[:200]
        payload = {"id": number, "name": called, "arguments": _json_arguments(args)}
        marks = {"known": True} if known else {"own": True} if passthrough else {}
        self.send({"tool_call": {**payload, "batch": batch, "session": session, **marks}})
        return future

    def _send_done(self, number: int, done: Future[ToolAnswer]) -> None:
        value, is_error, _ = done.result()
        self.send({"tool_done": {"id": number, "result": value, "is_error": is_error}})

    def listen(self, lines: IO[bytes], requests: Queue[dict[str, Any] | None]) -> None:
        for line in lines:
            message = json.loads(line)
            if "tool_result" in message:
                self._resolve_call(message["tool_result"])
            else:
                self.is_busy = True
                requests.put(message)
        if self.is_busy:  # agenteval no longer waits for an answer
            os._exit(0)
        requests.put(None)

    def _resolve_call(self, result: Mapping[str, Any]) -> None:
        if result.get("go"):
            self._passthrough_calls.pop(result["id"]).go_ahead.set_result(None)
            return
        future = self._pending_calls.pop(result["id"], None)
        self._passthrough_calls.pop(result["id"], None)
        if future is None or future.done():
            return
        if result.get("over"):
            future.cancel()
            future.set_running_or_notify_cancel()
            return
        with contextlib.suppress(Exception):  # cancelled at this very moment
            flags = (bool(result.get(name)) for name in ("is_error", "is_timeout"))
            future.set_result(ToolAnswer(result.get("result"), *flags))


class _WorkerContext(Context):
    answered: list[str] | None = None
    mocked: Sequence[str] = ()

    def __init__(
        self, wire: _Wire, session: str, batches: Iterator[int], tools: list[dict[str, Any]]
    ) -> None:
        super().__init__(partial(wire.call, session), batches, tools)
        self._wire, self._session = wire, session

    def request_known_call(self, name: str, args: Any, batch: int) -> Future[ToolAnswer]:
        return self._wire.call(self._session, name, args, batch, known=True)

    def mocks(self, name: str) -> bool:
        return name in self.mocked

    def passes_through(self, name: str) -> bool:
        return self.answered is not None and name not in self.answered

    def request_passthrough(
        self, name: str, args: dict[str, Any], batch: int, passthrough: PassthroughCall
    ) -> Future[ToolAnswer]:
        return self._wire.call(self._session, name, args, batch, passthrough=passthrough)


def _json_arguments(args: Any) -> Any:
    """Return arguments unchanged if JSON can represent them. Otherwise, return a string that is not valid
    JSON, so that the call is answered with an error."""
    try:
        json.dumps(args)
    except (TypeError, ValueError, RecursionError) as error:
        return f"{type(args).__name__} that is not JSON: {error}"
    return args


def _play(
    new_session: Callable[[], TargetSession],
    second_copy: Callable[[], str],
    wire: _Wire,
    requests: Queue[dict[str, Any] | None],
) -> None:
    loop = asyncio.new_event_loop()
    threading.Thread(target=_keep_running, args=(loop,), daemon=True).start()
    session, target_session, batches = None, new_session(), count(1)
    while True:
        request = requests.get()
        if request is None or request.get("session") != session:
            _close(target_session, loop)
        if request is None:
            return
        if "over" in request:
            session, target_session, wire.is_busy = None, new_session(), False
            wire.send(request)
            continue
        if request["session"] != session:
            session, target_session, batches = request["session"], new_session(), count(1)
        reply_line = _build_reply_line(target_session, request, wire, loop, batches)
        if copied := second_copy():
            reply_line["missed"] = copied
        wire.is_busy = False
        wire.send(reply_line)


def _close(target_session: TargetSession, loop: asyncio.AbstractEventLoop) -> None:
    """End the conversation. Errors or delays in the agent's own cleanup must not affect the next
    conversation."""
    with contextlib.suppress(BaseException):
        asyncio.run_coroutine_threadsafe(target_session.close(), loop).result(_CLOSING_S)


def _keep_running(loop: asyncio.AbstractEventLoop) -> None:
    """Keep the event loop running. A call to ``sys.exit`` or ``loop.stop()`` in a background task must not
    end later conversations."""
    asyncio.set_event_loop(loop)
    while not loop.is_closed():
        with contextlib.suppress(BaseException):
            loop.run_forever()


def _build_reply_line(
    target_session: TargetSession,
    request: Mapping[str, Any],
    wire: _Wire,
    loop: asyncio.AbstractEventLoop,
    batches: Iterator[int],
) -> dict[str, Any]:
    """Return the agent's answer to a request, or its exception, as a line."""
    context = _WorkerContext(wire, request["session"], batches, request["tools"])
    context.answered, context.mocked = request.get("answered"), request.get("mocked") or ()
    context.scenario_id, context.epoch = request["scenario_id"], request["epoch"]
    context.seed, context.turn = request["seed"], request["turn"]
    context.database = request.get("database")
    with target_session.turn(context):
        reply_line = _run_turn(target_session, request, context, loop)
    if fault := target_session.world.take_fault():
        reply_line["missed"] = fault
    reply_line.update(_collect_observations(target_session))
    return {**reply_line, "list_asked": True} if context.has_listed_tools else reply_line


def _collect_observations(target_session: TargetSession) -> dict[str, Any]:
    """Return the model requests and the known facts about tool calls, as fields of an answer."""
    world = target_session.world
    parts = {
        "exchanges": model_requests.exchanges_to_json(
            world.take_exchanges(), model_requests.MAX_MODEL_REPLY_BYTES // 2
        ),
        "asked": [list(each) for each in world.take_calls()],
        "met": sorted(world.hooked_tools),
        "made": [list(each) for each in world.take_all_calls()],
        "is_met": world.has_hooked_calls,
        "is_of_framework": target_session.is_of_framework,
    }
    return {name: part for name, part in parts.items() if part}


def _run_turn(
    target_session: TargetSession,
    request: Mapping[str, Any],
    context: _WorkerContext,
    loop: asyncio.AbstractEventLoop,
) -> dict[str, Any]:
    try:
        reply_line = to_reply_line(_call_entry(target_session.entry(), request["messages"], context, loop))
        return {"too_large": TOO_LARGE_TEXT} if is_too_large(reply_line) else reply_line
    except BaseException as error:
        fault = classify_error(_as_exception(error))
        reply_line = {
            "error": {"message": to_plain_json(fault.text), "kind": fault.kind, "final": fault.is_final}
        }
        with contextlib.suppress(Exception):
            seen = get_partial_reply(error)
            so_far = to_reply_line(target_session.partial_answer if seen is None else seen)
            reply_line.update({} if is_too_large(so_far) else so_far)
        return reply_line


def _call_entry(
    entry: Callable[..., Any], messages: Any, context: Context, loop: asyncio.AbstractEventLoop
) -> Any:
    """Call the agent. Async code runs on the process's single event loop. Synchronous code runs in the main
    thread, which it may block."""
    if inspect.iscoroutinefunction(entry):
        return asyncio.run_coroutine_threadsafe(entry(messages, context), loop).result()
    value = entry(messages, context)
    if not inspect.isawaitable(value):
        return value

    async def wait() -> Any:
        return await value

    return asyncio.run_coroutine_threadsafe(wait(), loop).result()


def _as_exception(error: BaseException) -> BaseException:
    """Return an exception in the form in which it would be raised in agenteval's own process. An exception
    that would end a program is treated as an ordinary error."""
    import concurrent.futures

    if isinstance(error, (asyncio.CancelledError, concurrent.futures.CancelledError)):
        made: RuntimeError = CancelledUserCodeError(str(error) or "its code was cancelled")
    elif isinstance(error, Exception):
        return error
    else:
        made = QuitError(type(error).__name__)
    made.__cause__ = error
    return made
