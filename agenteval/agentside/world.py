"""Find the tool world of the conversation for which a piece of code runs, regardless of who started that
code.

Each conversation has one ``World``. During a turn, a context variable contains the world. The variable is
propagated to tasks, to ``asyncio.to_thread`` and, after ``threads.install()``, to threads and to jobs in
thread pools. All code that intercepts a tool call (the ``hooks``, ``intercept``) or a model request
(``model_requests``) calls ``current_world()``."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, is_dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from weakref import WeakSet

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator
    from typing import Protocol

    class TurnCalls(Protocol):
        """The scenario's tools during one turn (``targets/tool_proxy.py``)."""

        def mocks(self, name: str) -> bool: ...

        async def call(self, name: str, args: Any, run_real: Callable[[], Awaitable[Any]]) -> ToolAnswer: ...

        def call_sync(self, name: str, args: Any, run_real: Callable[[], Any]) -> ToolAnswer: ...

        async def record(self, name: str, args: Any, run_real: Callable[[], Awaitable[Any]]) -> Any: ...

        def record_sync(self, name: str, args: Any, run_real: Callable[[], Any]) -> Any: ...


class UntrackedCallError(RuntimeError):
    """Raised for a tool call whose conversation cannot be identified. The tool was not run."""

    agenteval_kind = "infrastructure"


class ToolAnswer(NamedTuple):
    """The result of a tool call."""

    value: Any
    is_error: bool = False
    is_timeout: bool = False
    """True for an error that is a timeout, for which an intercepted function raises ``TimeoutError``."""

    @property
    def text(self) -> str:
        """The value as text. A string remains unchanged, and any other value is encoded as JSON."""
        if isinstance(self.value, str):
            return self.value
        return json.dumps(self.value, ensure_ascii=False, default=str)

    @property
    def failure(self) -> str:
        """The error message: the text specified as ``error`` in a mock or, if there is none, the complete
        value as text."""
        value = self.value
        return (
            ToolAnswer(value["error"]).text
            if isinstance(value, dict) and [*value] == ["error"]
            else self.text
        )


class RequestedCall(NamedTuple):
    """A tool call that reached the world."""

    name: str
    arguments: Any
    """The arguments as JSON. Arguments that JSON cannot represent remain unchanged."""
    call_id: str
    """The framework's id for the call. Empty if the call has no id."""
    agent: str = ""
    """The agent that made the call, if there are several agents. Empty if the agent is unknown."""


class AnsweredCall(NamedTuple):
    """A call to a framework tool that was answered, either by the scenario or by the tool itself."""

    name: str
    args: Any
    result: Any
    is_inner: bool
    """True if the call was made inside another call."""


class ActiveTurn:
    """A turn in progress: its calls, and the threads that were started during the turn."""

    def __init__(self, calls: TurnCalls) -> None:
        self.calls = calls
        self.threads: list[TurnThread] = []
        self.is_over = False
        self.settled: Future[None] = Future()
        """Done once it is known whether a thread in this turn made calls for other conversations."""

    def settle(self) -> None:
        if not self.settled.done():
            self.settled.set_result(None)


class TurnThread:
    """A thread, or a job in a thread pool, that was started during a turn and carries the turn's world."""

    def __init__(self, world: World, turn: ActiveTurn) -> None:
        self.world = world
        self.turn = turn
        self.parent: TurnThread | None = getattr(_THREAD, "carrier", None)
        """The thread that started this one."""
        self.done: Future[None] = Future()
        self.first_call_done = threading.Event()
        """Set once the thread has called a tool or has ended."""
        self.lineage: list[TurnThread] = [self, *(self.parent.lineage if self.parent else ())]
        self.called_tool = ""
        """The tool that was called in the thread."""
        self.other_worlds: WeakSet[World] = WeakSet()
        """The other conversations that were open when the thread made a call."""


_LOCK = threading.RLock()
_OPEN_WORLDS: WeakSet[World] = WeakSet()
_WORLD: ContextVar[World | None] = ContextVar("agenteval_world", default=None)
_CARRIER: ContextVar[TurnThread | None] = ContextVar("agenteval_carrier", default=None)


_DETACHED: ContextVar[bool] = ContextVar("agenteval_left", default=False)
_THREAD = threading.local()
"""Thread-local state. ``carrier`` is the code that runs in this thread, even in a context that was copied
elsewhere."""


_CARRIED_VARIABLES: list[ContextVar[Any]] = [_WORLD]
_non_agent_checks: list[Callable[[], bool]] = []


class World:
    """The scenario's tools from the perspective of one conversation.

    A call that arrives after the answer to a turn counts as part of the next turn, as in an agent written in
    plain Python. ``name`` is the name of the conversation. ``intercepted`` maps the identity of each
    intercepted function to the tool that it implements."""

    def __init__(self, name: str = "", intercepted: Mapping[int, str] | None = None) -> None:
        self.name = name
        self.intercepted = intercepted or {}
        self.exchanges: list[Any] = []
        """The model requests in this turn so far (``model_requests``)."""
        self.answered_calls: list[AnsweredCall] = []
        """The calls in this turn that have been answered."""
        self.called_tools: set[str] = set()
        """The tools that were called in this world, which proves that the agent has them."""
        self.target: Any = None
        """The callable of each turn, which is the agent itself, even if its framework also treats it as a
        tool."""
        self.has_hooked_calls = False
        """True if a framework's tool call was intercepted, which means that its tools are hooked."""
        self.fault = ""
        """The reason why the agent's behavior cannot be evaluated; empty if no such reason is known."""
        self._process = os.getpid()
        self._turn: ActiveTurn | None = None
        self._calls: list[RequestedCall] = []
        self._all_calls: list[RequestedCall] = []
        self._answered_count = 0
        self._unseen_calls: dict[str, None] = {}
        self.is_forgotten = False
        self.shared_thread_fault = ""
        """The reason why a thread of another conversation may have made calls that belong to this one; empty
        if none may have."""
        self._foreign_threads: list[TurnThread] = []
        with _LOCK:
            _OPEN_WORLDS.add(self)

    # ── turns

    @contextmanager
    def turn(self, calls: TurnCalls) -> Iterator[ActiveTurn]:
        """Run one turn. Anything started inside the ``with`` block belongs to this conversation."""
        turn = self._turn = ActiveTurn(calls)
        self.answered_calls = []
        self._forget_answered()
        token = _WORLD.set(self)
        try:
            yield turn
        finally:
            _WORLD.reset(token)
            turn.is_over = True
            self._answered_count = len(self._calls)

    def close(self) -> None:
        """Close the conversation and release the agent, because contexts that outlive the conversation still
        refer to the world."""
        self.target = None
        with _LOCK:
            _OPEN_WORLDS.discard(self)

    def forget(self) -> None:
        """Detach code that runs in this world, such as code that an import started, from any conversation."""
        self.is_forgotten = True

    def record_fault(self, fault: str) -> None:
        """Record the reason why the turn cannot be evaluated. Only the first reason is kept."""
        self.fault = self.fault or fault

    def take_fault(self) -> str:
        """Return the reason why the agent's behavior since the last call to this method cannot be evaluated.
        Return an empty string if there is no such reason."""
        fault, self.fault = self.fault, ""
        return fault or self.shared_thread_fault

    @property
    def unsettled_threads(self) -> list[tuple[Future[None], Future[None]]]:
        """Unfinished threads from other conversations that called tools while this conversation was open. The
        first future in each item is done when the thread ends, and the second when the thread's turn is
        settled. Until one of them is done, the thread may still turn out to have made calls for this
        conversation."""
        with _LOCK:
            return [(each.done, each.turn.settled) for each in self._foreign_threads if not each.done.done()]

    def take_exchanges(self) -> list[Any]:
        """Return the model requests since the last call to this method, in chronological order."""
        exchanges, self.exchanges = self.exchanges, []
        return exchanges

    @property
    def calls_so_far(self) -> tuple[RequestedCall, ...]:
        """The calls in this turn so far."""
        return tuple(self._calls)

    def has_received_call(self, call_id: str) -> bool:
        """Return whether a call in this turn reached the scenario."""
        return any(each.call_id == call_id for each in self._calls)

    def take_calls(self) -> list[RequestedCall]:
        """Return the calls since the last call to this method."""
        calls, self._calls, self._answered_count = self._calls, [], 0
        return calls

    def take_answered_calls(self) -> list[AnsweredCall]:
        """Return the calls that were answered since the last call to this method."""
        done, self.answered_calls = self.answered_calls, []
        return done

    def _forget_answered(self) -> None:
        """Drop answered calls from earlier turns that were not taken so that they are not attributed to this
        turn."""
        del self._calls[: self._answered_count]
        self._answered_count = 0

    @property
    def hooked_tools(self) -> frozenset[str]:
        """The tools whose calls are intercepted where the tools run. If a model requested such a tool but the
        call did not reach the world, the call was refused earlier."""
        return frozenset((*self.called_tools, *self.intercepted.values()))

    def take_all_calls(self) -> list[RequestedCall]:
        """Return all calls since the last call to this method, including calls that ``take_calls`` has
        returned in the meantime."""
        made, self._all_calls = self._all_calls, []
        return made

    def note_unseen_calls(self, what: str) -> None:
        """Note a part of this turn that may contain calls that are not visible to agenteval. The note is a
        phrase."""
        self._unseen_calls.setdefault(what)

    def take_unseen_calls(self) -> list[str]:
        """Return the notes since the last call to this method."""
        unplaced, self._unseen_calls = self._unseen_calls, {}
        return list(unplaced)

    # ── requests to models

    def record_exchange(self, exchange: Any) -> bool:
        """Record a model request.

        Return False if the conversation of the request is unknown, because the request's thread outlived its
        turn."""
        carrier = _CARRIER.get()
        if self._turn is None or (carrier is not None and carrier.turn.is_over):
            return False
        if carrier is not None:
            self._note_thread_call(carrier, "a model")
        self.exchanges.append(exchange)
        return True

    # ── calls

    def record_direct_call(self, name: Any, args: Any) -> None:
        """Record a call to a scenario tool that the agent's code made through ``ctx``."""
        self.called_tools.add(str(name))
        self._calls.append(RequestedCall(str(name), as_json_text(args), ""))

    def mocks(self, name: str) -> bool:
        """Return whether the scenario contains an answer (a mock) for the tool."""
        return self._turn is not None and self._turn.calls.mocks(name)

    async def call(
        self, name: str, args: Any, run_real: Callable[[], Awaitable[Any]], call_id: str = "", agent: str = ""
    ) -> ToolAnswer:
        """Return the answer to a tool call.

        ``args`` is a dict, or JSON as the model wrote it. ``run_real()`` is the agent's real tool. It is
        awaited only if the scenario leaves the tool to the agent. The tool's return value is then returned
        unchanged, and its exceptions propagate. ``call_id`` is the id of the call in the messages. ``agent``
        is the agent that makes the call. Raise ``UntrackedCallError`` before the first turn, in a thread that
        has outlived its turn, and in a forked process."""
        calls, arguments = self._record_call(RequestedCall(name, args, call_id, agent))
        return await calls.call(name, arguments, run_real)

    def call_sync(
        self, name: str, args: Any, run_real: Callable[[], Any], call_id: str = "", agent: str = ""
    ) -> ToolAnswer:
        """Do the same as ``call``, but from any thread and for synchronous code."""
        calls, arguments = self._record_call(RequestedCall(name, args, call_id, agent))
        return calls.call_sync(name, arguments, run_real)

    async def record(
        self, name: str, args: Any, run_real: Callable[[], Awaitable[Any]], call_id: str = "", agent: str = ""
    ) -> Any:
        """Return the result of ``run_real()`` and record it as a call to an existing tool.

        Use this for callables that look like tools but are run by the agent itself, such as another agent."""
        calls, arguments = self._record_call(RequestedCall(name, args, call_id, agent))
        return await calls.record(name, arguments, run_real)

    def record_sync(
        self, name: str, args: Any, run_real: Callable[[], Any], call_id: str = "", agent: str = ""
    ) -> Any:
        """Do the same as ``record``, but from any thread and for synchronous code."""
        calls, arguments = self._record_call(RequestedCall(name, args, call_id, agent))
        return calls.record_sync(name, arguments, run_real)

    def _record_call(self, call: RequestedCall) -> tuple[TurnCalls, Any]:
        """Record a call. Return the turn's calls, and the arguments in the form used for recording and
        comparison."""
        carrier = _CARRIER.get()
        if os.getpid() != self._process:  # no call would be answered here; the parent knows of the fork
            raise UntrackedCallError(f"{call.name} was called in a forked process and was not run")
        if self._turn is None or (carrier is not None and carrier.turn.is_over):
            raise untracked_call_error(call.name)
        if carrier is not None:
            self._note_thread_call(carrier, call.name)
        arguments, text = call.arguments, as_json_text(call.arguments)
        self.called_tools.add(call.name)
        recorded = call._replace(arguments=text)
        self._calls.append(recorded)
        self._all_calls.append(recorded)
        return self._turn.calls, json.loads(text) if isinstance(arguments, Mapping) else arguments

    def _note_thread_call(self, carrier: TurnThread, name: str) -> None:
        with _LOCK:
            carrier.called_tool = carrier.called_tool or name
            for other in _OPEN_WORLDS:
                if other is not self and other not in carrier.other_worlds:
                    carrier.other_worlds.add(other)
                    other._foreign_threads.append(carrier)


# ── finding the world ────────────────────────────────────────────────────────────────────────────


def current_world() -> World | None:
    """Return the world of the conversation for which this code runs, or ``None`` if the conversation is
    unknown."""
    world = _WORLD.get()
    return None if world is None or world.is_forgotten else world


def set_non_agent_check(is_other_code: Callable[[], bool]) -> None:
    """Set a check that identifies code that has no world and is known not to belong to an agent.

    agenteval's own process uses this check for mocks, checks and judges."""
    _non_agent_checks[:] = [is_other_code]


def may_be_agent_code() -> bool:
    """Return whether code that has no world may belong to the agent of an open conversation."""
    return not is_detached() and bool(open_worlds()) and not any(each() for each in _non_agent_checks)


def open_worlds() -> list[World]:
    """Return the worlds of the open conversations."""
    with _LOCK:
        return list(_OPEN_WORLDS)


def detach_from_world() -> None:
    """Mark the running task as work on a scenario tool (a mock), not as the agent's code."""
    _WORLD.set(None)
    _CARRIER.set(None)
    _DETACHED.set(True)


def is_detached() -> bool:
    """Return whether the running code is known not to belong to an agent."""
    return _DETACHED.get()


def propagate_variable(variable: ContextVar[Any]) -> None:
    """Propagate an additional context variable into threads."""
    _CARRIED_VARIABLES.append(variable)


def bind_world(run: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``run`` bound to the caller's world, for a thread that does not inherit a context."""
    world = current_world()
    if world is None or world._turn is None:
        return run
    carrier = TurnThread(world, world._turn)
    with _LOCK:
        carrier.turn.threads.append(carrier)

    values: list[tuple[ContextVar[Any], Any]] = [(each, each.get()) for each in _CARRIED_VARIABLES]

    def run_carried(*args: Any, **named: Any) -> Any:
        tokens = [(each, each.set(value)) for each, value in (*values, (_CARRIER, carrier))]
        outer, _THREAD.carrier = getattr(_THREAD, "carrier", None), carrier
        try:
            return run(*args, **named)
        finally:
            _THREAD.carrier = outer
            carrier.first_call_done.set()
            carrier.done.set_result(None)
            for each, token in tokens:
                each.reset(token)

    return run_carried


LONGEST_WAIT_S = 0.1
"""The maximum time, in seconds, that the first call in a thread waits for threads that were started
earlier."""
_CallResult = TypeVar("_CallResult")


def call_in_start_order(ask: Callable[[], _CallResult]) -> _CallResult:
    """Return the result of ``ask()``, which passes a call to the scenario. Wait first for the calls from
    threads that were started earlier.

    If each of a model's calls runs in its own thread, the calls are answered in the order in which the
    threads were started, because an answer may depend on earlier calls. Do not wait for threads that take too
    long to make their first call."""
    carrier: TurnThread | None = getattr(_THREAD, "carrier", None)
    world = _WORLD.get()
    if (
        carrier is None
        or carrier.world is not world
        or carrier.turn.is_over
        or carrier.first_call_done.is_set()
    ):
        return ask()
    with _LOCK:
        started = list(carrier.turn.threads)
    until = time.monotonic() + LONGEST_WAIT_S
    for each in carrier.lineage:
        for earlier in started[: started.index(each)] if each in started else ():
            if earlier.parent is each.parent:
                earlier.first_call_done.wait(max(0.0, until - time.monotonic()))
    result = ask()
    for each in carrier.lineage:
        each.first_call_done.set()
    return result


def find_shared_threads(turn: ActiveTurn) -> list[TurnThread]:
    """Return the threads that outlived a turn and called tools while other conversations were open.

    The conversation of these calls is unknown, because a thread that serves many conversations keeps the
    world of the first conversation."""
    with _LOCK:
        return [
            each for each in turn.threads if not each.done.done() and each.called_tool and each.other_worlds
        ]


def record_shared_threads(carriers: Iterable[TurnThread]) -> None:
    """Record a fault in every conversation for which one of these threads may have called a tool."""
    for carrier in carriers:
        what = (
            f"{carrier.called_tool} was called in a thread that outlived its turn,"
            " while other conversations were open"
        )
        for world in (carrier.world, *carrier.other_worlds):
            world.shared_thread_fault = (
                world.shared_thread_fault
                or f"{what}: the call cannot be attributed to a conversation; {THREAD_CONTEXT_REMEDY}"
            )


THREAD_CONTEXT_REMEDY = (
    "run each job in the context of its caller (contextvars.copy_context().run), or start a new thread"
    " for each turn"
)
"""Advice on how to associate a thread's calls with a conversation."""


def untracked_call_error(name: str, may_call: Callable[[World], bool] = lambda _: True) -> UntrackedCallError:
    """Return the exception to raise instead of running a tool whose conversation is unknown.

    Record a fault in each open conversation whose agent may have called the tool, as determined by
    ``may_call``."""
    what = f"{name} was called from a thread that agenteval cannot track, and was not run"
    worlds = [world for world in open_worlds() if may_call(world)]
    more = describe_suspects(world.name for world in worlds)
    for world in worlds:
        world.record_fault(f"{what}{more}; {THREAD_CONTEXT_REMEDY}")
    return UntrackedCallError(what)


_MAX_SUSPECTS = 8
"""The maximum number of conversations that are named in a message."""


def describe_suspects(names: Iterable[str]) -> str:
    """List the open conversations, one of which made a call or request that cannot be attributed."""
    found = list(dict.fromkeys(filter(None, names)))
    if len(found) < 2:
        return ""
    more = f" and {len(found) - _MAX_SUSPECTS} more" if len(found) > _MAX_SUSPECTS else ""
    return f". It came from one of these conversations: {'; '.join(found[:_MAX_SUSPECTS])}{more}"


# ── arguments ────────────────────────────────────────────────────────────────────────────────────


def as_json_text(args: Any) -> Any:
    """Return arguments as JSON text in the form used for recording and comparison.

    Arguments that JSON cannot represent are omitted, because a framework injected them. Anything other than a
    mapping is returned unchanged."""
    if not isinstance(args, Mapping):
        return args
    texts = {str(name): _to_json_or_empty(value) for name, value in args.items()}
    return f"{{{', '.join(f'{json.dumps(name)}: {text}' for name, text in texts.items() if text)}}}"


def _to_json_or_empty(value: Any) -> str:
    """Return the value as JSON, or an empty string if JSON cannot represent the value."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, default=_json_default)
    except ValueError:  # an infinite number, or a value that contains itself
        return json.dumps(str(value))
    except (TypeError, RecursionError):
        return ""


def _json_default(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if callable(getattr(value, "model_dump", None)):
        return value.model_dump(mode="json")
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=str)
    if vars(object)["__str__"] is type(value).__str__ or isinstance(value, (type, bytes, bytearray)):
        raise TypeError(f"{type(value).__name__} is not JSON")
    return str(value)  # dates, UUIDs, paths
