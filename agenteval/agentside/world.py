"""The tool world of the conversation that a piece of code runs for, whoever started that code.

A conversation has one ``World``. During a turn a context variable holds it, which follows tasks,
``asyncio.to_thread`` and, since ``threads.install()``, threads and the jobs of pools. What meets a call of a
tool (the ``hooks``, ``intercept``) or a request to a model (``model_requests``) asks ``current()``.
"""

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
        """The scenario's tools during one turn (``targets/own_calls.py``)."""

        def mocks(self, name: str) -> bool: ...

        async def call(self, name: str, args: Any, run_real: Callable[[], Awaitable[Any]]) -> ToolAnswer: ...

        def call_sync(self, name: str, args: Any, run_real: Callable[[], Any]) -> ToolAnswer: ...

        async def record(self, name: str, args: Any, run_real: Callable[[], Awaitable[Any]]) -> Any: ...

        def record_sync(self, name: str, args: Any, run_real: Callable[[], Any]) -> Any: ...


class UntrackedCallError(RuntimeError):
    """A tool was called where its conversation cannot be known. It was not run."""

    agenteval_kind = "infrastructure"


class ToolAnswer(NamedTuple):
    """What a call of a tool gives."""

    value: Any
    is_error: bool = False

    @property
    def text(self) -> str:
        """A text as it is, all else as JSON."""
        if isinstance(self.value, str):
            return self.value
        return json.dumps(self.value, ensure_ascii=False, default=str)

    @property
    def failure(self) -> str:
        """Of an error, its words: what ``error:`` of a mock says, else all of it as a text."""
        value = self.value
        return (
            ToolAnswer(value["error"]).text
            if isinstance(value, dict) and [*value] == ["error"]
            else self.text
        )


class RequestedCall(NamedTuple):
    """A call that the world was asked for."""

    name: str
    arguments: Any
    """As JSON; as they are where JSON cannot hold them."""
    call_id: str
    """What the framework knows it by; empty where it has none."""
    agent: str = ""
    """Which of several agents made it; empty where that is not known."""


class AnsweredCall(NamedTuple):
    """A call of a framework's tool that was answered, by the scenario or by the tool itself."""

    name: str
    args: Any
    result: Any
    is_inner: bool
    """It was made within another one."""


class ActiveTurn:
    """A turn while it goes on: its calls, and the threads that were started in it."""

    def __init__(self, calls: TurnCalls) -> None:
        self.calls = calls
        self.threads: list[TurnThread] = []
        self.is_over = False
        self.settled: Future[None] = Future()
        """Done once it is known whether a thread of it made calls of other conversations."""

    def settle(self) -> None:
        if not self.settled.done():
            self.settled.set_result(None)


class TurnThread:
    """A thread, or a job of a pool, that was started in a turn and so carries its world."""

    def __init__(self, world: World, turn: ActiveTurn) -> None:
        self.world = world
        self.turn = turn
        self.parent: TurnThread | None = getattr(_THREAD, "carrier", None)
        """That from which it was started."""
        self.done: Future[None] = Future()
        self.first_call_done = threading.Event()
        """Whether it has called a tool, or is over."""
        self.lineage: list[TurnThread] = [self, *(self.parent.lineage if self.parent else ())]
        self.called_tool = ""
        """The tool that was called in it."""
        self.other_worlds: WeakSet[World] = WeakSet()
        """The conversations that were open meanwhile."""


_LOCK = threading.RLock()
_OPEN_WORLDS: WeakSet[World] = WeakSet()
_WORLD: ContextVar[World | None] = ContextVar("agenteval_world", default=None)
_CARRIER: ContextVar[TurnThread | None] = ContextVar("agenteval_carrier", default=None)


_DETACHED: ContextVar[bool] = ContextVar("agenteval_left", default=False)
_THREAD = threading.local()
"""``carrier``: what runs in this thread, in a context that was copied elsewhere, too."""


_CARRIED_VARIABLES: list[ContextVar[Any]] = [_WORLD]
_non_agent_checks: list[Callable[[], bool]] = []


class World:
    """The scenario's tools as one conversation meets them. A call that comes after the answer of a turn
    counts as one of the next, as it does for an agent in plain Python. ``name``: of the conversation.
    ``intercepted``: the tools that functions stand for, by the functions' identity."""

    def __init__(self, name: str = "", intercepted: Mapping[int, str] | None = None) -> None:
        self.name = name
        self.intercepted = intercepted or {}
        self.exchanges: list[Any] = []
        """The requests to models of this turn so far (``model_requests``)."""
        self.answered_calls: list[AnsweredCall] = []
        """The calls of this turn that were answered, each once it was."""
        self.called_tools: set[str] = set()
        """The tools that were called here: the agent has them."""
        self.target: Any = None
        """What is called in each turn: the agent itself, even where a framework has it as a tool."""
        self.has_hooked_calls = False
        """Whether a framework's call of a tool was met: its tools are, then."""
        self.fault = ""
        """Why what the agent did proves nothing; empty if nothing is known of such a kind."""
        self._process = os.getpid()
        self._turn: ActiveTurn | None = None
        self._calls: list[RequestedCall] = []
        self._all_calls: list[RequestedCall] = []
        self._answered_count = 0
        self._unplaced: dict[str, None] = {}
        self.is_forgotten = False
        self.shared_thread_fault = ""
        """Why a thread of another conversation may have made calls of this one; empty if none is known to."""
        self._foreign_threads: list[TurnThread] = []
        with _LOCK:
            _OPEN_WORLDS.add(self)

    # ── turns

    @contextmanager
    def turn(self, calls: TurnCalls) -> Iterator[ActiveTurn]:
        """A turn. What is started within is of this conversation."""
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
        """The conversation is over. Contexts that outlive it hold the world, and must not hold the agent."""
        self.target = None
        with _LOCK:
            _OPEN_WORLDS.discard(self)

    def forget(self) -> None:
        """What goes on in it is of no conversation any more: what an import has started, say."""
        self.is_forgotten = True

    def record_fault(self, fault: str) -> None:
        """Note why the turn proves nothing. The first reason counts."""
        self.fault = self.fault or fault

    def take_fault(self) -> str:
        """Return why what the agent did since the last time proves nothing; empty if it does."""
        fault, self.fault = self.fault, ""
        return fault or self.shared_thread_fault

    @property
    def unsettled_threads(self) -> list[tuple[Future[None], Future[None]]]:
        """Of each thread of another conversation that called tools while this one went on and has not ended:
        its end, and that of its turn. Until one of them it may turn out to have made calls of this one."""
        with _LOCK:
            return [(each.done, each.turn.settled) for each in self._foreign_threads if not each.done.done()]

    def take_exchanges(self) -> list[Any]:
        """Return the requests to models since the last time, in the order in which they were made."""
        exchanges, self.exchanges = self.exchanges, []
        return exchanges

    @property
    def calls_so_far(self) -> tuple[RequestedCall, ...]:
        """The calls of this turn so far."""
        return tuple(self._calls)

    def has_received_call(self, call_id: str) -> bool:
        """Return whether a call of this turn reached the scenario."""
        return any(each.call_id == call_id for each in self._calls)

    def take_calls(self) -> list[RequestedCall]:
        """Return the calls since the last time."""
        calls, self._calls, self._answered_count = self._calls, [], 0
        return calls

    def take_answered_calls(self) -> list[AnsweredCall]:
        """Return the calls that were answered since the last time."""
        done, self.answered_calls = self.answered_calls, []
        return done

    def _forget_answered(self) -> None:
        """What nobody took of the turns before is not of this one."""
        del self._calls[: self._answered_count]
        self._answered_count = 0

    @property
    def hooked_tools(self) -> frozenset[str]:
        """The tools whose calls are met where they run: one that a model asked for and that did not get there
        was refused before."""
        return frozenset((*self.called_tools, *self.intercepted.values()))

    def take_all_calls(self) -> list[RequestedCall]:
        """Return all calls since the last time, whoever took them meanwhile."""
        made, self._all_calls = self._all_calls, []
        return made

    def note_unplaced(self, what: str) -> None:
        """Note what of this turn may hold calls that are not seen, as a phrase."""
        self._unplaced.setdefault(what)

    def take_unplaced(self) -> list[str]:
        """Return the notes since the last time."""
        unplaced, self._unplaced = self._unplaced, {}
        return list(unplaced)

    # ── requests to models

    def record_exchange(self, exchange: Any) -> bool:
        """Note a request to a model. Returns false where it is not known to be of this conversation: in a
        thread that outlived its turn."""
        carrier = _CARRIER.get()
        if self._turn is None or (carrier is not None and carrier.turn.is_over):
            return False
        if carrier is not None:
            self._note_thread_call(carrier, "a model")
        self.exchanges.append(exchange)
        return True

    # ── calls

    def record_direct_call(self, name: Any, args: Any) -> None:
        """Note a call that the agent's code made by itself, of a tool of the scenario (``ctx``)."""
        self.called_tools.add(str(name))
        self._calls.append(RequestedCall(str(name), as_json_text(args), ""))

    def mocks(self, name: str) -> bool:
        """Return whether the scenario has an answer for the tool."""
        return self._turn is not None and self._turn.calls.mocks(name)

    async def call(
        self, name: str, args: Any, run_real: Callable[[], Awaitable[Any]], call_id: str = "", agent: str = ""
    ) -> ToolAnswer:
        """What a call gives. ``args``: a dict, or JSON as the model wrote it. ``own()`` is the agent's real
        tool: it is awaited only where the scenario leaves the tool to the agent, and its value is then given
        as it is, and what it raises raised. ``call_id``: by which the messages know the call; ``agent``: who
        makes it. Raises ``UntrackedCallError`` before the first turn, in a thread that outlived its turn, and
        in a forked process."""
        calls, arguments = self._record_call(RequestedCall(name, args, call_id, agent))
        return await calls.call(name, arguments, run_real)

    def call_sync(
        self, name: str, args: Any, run_real: Callable[[], Any], call_id: str = "", agent: str = ""
    ) -> ToolAnswer:
        """The same from any thread, for code that cannot await."""
        calls, arguments = self._record_call(RequestedCall(name, args, call_id, agent))
        return calls.call_sync(name, arguments, run_real)

    async def record(
        self, name: str, args: Any, run_real: Callable[[], Awaitable[Any]], call_id: str = "", agent: str = ""
    ) -> Any:
        """For what is called as a tool and is left to the agent, such as another agent: what ``own()`` gives.
        The call is seen as one of a tool that there is."""
        calls, arguments = self._record_call(RequestedCall(name, args, call_id, agent))
        return await calls.record(name, arguments, run_real)

    def record_sync(
        self, name: str, args: Any, run_real: Callable[[], Any], call_id: str = "", agent: str = ""
    ) -> Any:
        """The same from any thread, for code that cannot await."""
        calls, arguments = self._record_call(RequestedCall(name, args, call_id, agent))
        return calls.record_sync(name, arguments, run_real)

    def _record_call(self, call: RequestedCall) -> tuple[TurnCalls, Any]:
        """The turn's calls, and the arguments in the one form in which they are recorded and compared."""
        carrier = _CARRIER.get()
        if os.getpid() != self._process:  # nobody would answer in here; the parent knows that it forked
            raise UntrackedCallError(f"{call.name} was called in a process that was forked; it was not run")
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


# ── where code runs ──────────────────────────────────────────────────────────────────────────────


def current_world() -> World | None:
    """Return the world of the conversation that this code runs for; ``None`` where none is known."""
    world = _WORLD.get()
    return None if world is None or world.is_forgotten else world


def set_non_agent_check(is_other_code: Callable[[], bool]) -> None:
    """``is_other_code``: whether what runs without a world is known to be no agent's; agenteval's own process
    knows that of mocks, checks and judges."""
    _non_agent_checks[:] = [is_other_code]


def may_be_agent_code() -> bool:
    """Return whether code that runs without a world may be that of an agent whose conversation goes on."""
    return not is_detached() and bool(open_worlds()) and not any(each() for each in _non_agent_checks)


def open_worlds() -> list[World]:
    """Return the worlds of the conversations that go on."""
    with _LOCK:
        return list(_OPEN_WORLDS)


def detach_from_world() -> None:
    """From here on the running task is at work on a tool of the scenario (a mock), and is no agent's."""
    _WORLD.set(None)
    _CARRIER.set(None)
    _DETACHED.set(True)


def is_detached() -> bool:
    """Return whether what runs is known to be no agent's."""
    return _DETACHED.get()


def propagate_variable(variable: ContextVar[Any]) -> None:
    """Have a further variable carried into threads."""
    _CARRIED_VARIABLES.append(variable)


def bind_world(run: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``run`` with the world of the caller, for a thread that gets no context of its own."""
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
"""So long the first call in a thread waits for threads that were started before it."""
_CallResult = TypeVar("_CallResult")


def call_in_start_order(ask: Callable[[], _CallResult]) -> _CallResult:
    """What ``ask()``, by which a call reaches the scenario, gives. Where a model's calls are carried out in
    threads, each in its own, they come in the order in which these were started: an answer may depend on
    what was asked before. A thread that takes its time before its first call is not waited for."""
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
    """Return the threads that a turn has left behind and that called tools while other conversations went on.
    Whose calls these were nobody knows: one that is kept for many conversations keeps the world of the first.
    """
    with _LOCK:
        return [
            each for each in turn.threads if not each.done.done() and each.called_tool and each.other_worlds
        ]


def record_shared_threads(carriers: Iterable[TurnThread]) -> None:
    """No conversation that such a thread may have called a tool for can be judged by its turn."""
    for carrier in carriers:
        what = f"{carrier.called_tool} was called in a thread that outlives its turn, while others went on"
        for world in (carrier.world, *carrier.other_worlds):
            world.shared_thread_fault = (
                world.shared_thread_fault
                or f"{what}: nobody knows whose call that was; {THREAD_CONTEXT_REMEDY}"
            )


THREAD_CONTEXT_REMEDY = (
    "run each job in the context of who asks for it (contextvars.copy_context().run), or start the thread"
    " anew for each turn"
)
"""What makes the calls in a thread those of a conversation."""


def untracked_call_error(name: str, may_call: Callable[[World], bool] = lambda _: True) -> UntrackedCallError:
    """For a call whose conversation cannot be known: the exception to raise in place of running the tool. No
    conversation that is open now, and whose agent ``may_call`` it, can be judged by its turn."""
    what = f"{name} was called from a thread that agenteval cannot follow; it was not run"
    worlds = [world for world in open_worlds() if may_call(world)]
    more = describe_suspects(world.name for world in worlds)
    for world in worlds:
        world.record_fault(f"{what}{more}; {THREAD_CONTEXT_REMEDY}")
    return UntrackedCallError(what)


_MAX_SUSPECTS = 8
"""So many conversations are named."""


def describe_suspects(names: Iterable[str]) -> str:
    """The conversations that were open, where one of them made a call or request and nobody knows which."""
    found = list(dict.fromkeys(filter(None, names)))
    if len(found) < 2:
        return ""
    more = f" and {len(found) - _MAX_SUSPECTS} more" if len(found) > _MAX_SUSPECTS else ""
    return f". One of these conversations did it: {'; '.join(found[:_MAX_SUSPECTS])}{more}"


# ── arguments ────────────────────────────────────────────────────────────────────────────────────


def as_json_text(args: Any) -> Any:
    """Return arguments as JSON, which is what is recorded and compared, without those that JSON cannot hold:
    what a framework puts in. Anything but a mapping stays as it is."""
    if not isinstance(args, Mapping):
        return args
    texts = {str(name): _to_json_or_empty(value) for name, value in args.items()}
    return f"{{{', '.join(f'{json.dumps(name)}: {text}' for name, text in texts.items() if text)}}}"


def _to_json_or_empty(value: Any) -> str:
    """Empty for what is no JSON."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, default=_json_default)
    except ValueError:  # an infinite number, or a value that holds itself
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
        raise TypeError(f"{type(value).__name__} is no JSON")
    return str(value)  # dates, UUIDs, paths
