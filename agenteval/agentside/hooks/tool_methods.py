"""A method that carries out a tool, changed so that the tool world is asked first."""

from __future__ import annotations

import functools
import inspect
import threading
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import world as worlds
from ..world import AnsweredCall, ToolAnswer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    ReadCall = Callable[[Any, "tuple[Any, ...]", "Mapping[str, Any]"], "HookedCall | None"]
    ReturnAnswer = Callable[[Any, ToolAnswer, "tuple[Any, ...]", "Mapping[str, Any]"], Any]


class HookedCall(NamedTuple):
    """A call of a tool as its framework makes it."""

    name: str
    args: Any
    """As the model wrote them: a dict without what the framework puts in, or the JSON text."""
    call_id: str = ""
    """The model's; empty where the framework does not hand it on."""
    key: Any = None
    """By what the same call is known further in, where a method calls that of its base class or of what it
    wraps; by default its id, else the tool."""
    is_agent: bool = False
    """Another agent is called as a tool, or code calls a tool as a function: it runs unless the scenario
    mocks it."""
    argument_error: str = ""
    """Why the framework refuses the arguments before any tool runs; ``give`` has it say so in its words."""
    agent: str = ""
    """The name of the agent that makes it; empty where it is not known."""


class _ActiveCall(NamedTuple):
    """A call that is left to the agent, while it runs."""

    layer: str
    key: Any
    call: HookedCall


MCP_LAYER = "mcp"
"""The layer below all others: tools of a framework may be those of a server."""

_ACTIVE_CALLS: ContextVar[tuple[_ActiveCall, ...]] = ContextVar("agenteval_inside", default=())

worlds.propagate_variable(_ACTIVE_CALLS)


def is_inside_call(name: str) -> bool:
    """Return whether what runs is a part of a call of this tool, which is known."""
    return any(each.call.name == name for each in _ACTIVE_CALLS.get())


def innermost_call() -> HookedCall | None:
    """Return the call that what runs is a part of, if one is known."""
    calls = _ACTIVE_CALLS.get()
    return calls[-1].call if calls else None


@contextmanager
def enter_direct_call(name: str, args: Any) -> Iterator[None]:
    """The agent's own tool runs in here, by a call that no framework made."""
    token = _ACTIVE_CALLS.set((*_ACTIVE_CALLS.get(), _ActiveCall("", None, HookedCall(name, args))))
    try:
        yield
    finally:
        _ACTIVE_CALLS.reset(token)


class ToolFailedError(Exception):
    """The agent's own tool reported an error by what it returned; its text is what is recorded."""


def hook(
    layer: str,
    read: ReadCall,
    give: ReturnAnswer,
    *,
    make_proxy: Callable[[Any, Callable[..., Any]], Any] = lambda tool, ask: None,
    to_record: Callable[[Any], Any] = lambda value: value,
    pick_event: Callable[[list[Any]], Any] = lambda values: values[-1] if values else None,
) -> Callable[[Any], Any]:
    """Return what changes a method: a plain one, a coroutine function or an async generator function.

    ``layer``: the framework. ``read(tool, args, kwargs)`` says what is called; ``None`` for what is the
    framework's own business, which runs as ever and is no call. ``give(tool, answer, args, kwargs)``: what
    the method returns, or raises, for the scenario's answer, errors in the framework's own form, awaited
    where that is needed; of a generator, the one event.

    ``make_proxy(tool, ask)``, for a coroutine function: a copy of the tool in which the coroutine function
    ``ask`` stands for the author's own, so that what the framework does before it (the check of arguments, a
    confirmation) happens as ever; ``None`` where there is no such place. ``recorded(value)``: what the record
    has of what the agent's own tool returned; it raises ``ToolFailedError`` for an error. ``last``: of the
    events of a generator, that value.

    A tool that is mocked does not run for any reason: where ``read`` fails, the model is given an error, and
    the turn proves nothing.
    """

    return functools.partial(_change, _ToolHook(layer, read, give, make_proxy, to_record, pick_event))


class _ToolHook(NamedTuple):
    """What a framework's module here has to say of its tools: the parameters of ``hook``."""

    layer: str
    read: ReadCall
    give: ReturnAnswer
    make_proxy: Callable[[Any, Callable[..., Any]], Any]
    to_record: Callable[[Any], Any]
    pick_event: Callable[[list[Any]], Any]

    def intercept_call(
        self, tool: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> _InterceptedCall | ToolAnswer | None:
        """Return the call to ask for; the answer, for one that is refused; ``None`` for what runs as ever."""
        world = worlds.current_world()
        if world is None and not worlds.may_be_agent_code():
            return None
        try:
            call = self.read(tool, args, kwargs)
        except Exception as error:
            what = f"a call of a tool of {self.layer} could not be read ({type(error).__name__}: {error})"
            return _unanswerable_call(f"{what}; it was not run", world)
        if call is None:
            return None
        if world is not None:
            world.has_hooked_calls = True
        key = call.call_id or id(tool) if call.key is None else call.key
        active = _ActiveCall(self.layer, key, call)
        if _is_part_of_known(active, is_mocked=world is not None and world.mocks(call.name)):
            return None
        if world is None:
            return _unanswerable_call(str(worlds.untracked_call_error(call.name)), None)
        return _error_answer(call.argument_error) if call.argument_error else _InterceptedCall(active, world)


def _unanswerable_call(why: str, world: worlds.World | None) -> ToolAnswer:
    """What a model hears of a call that nobody answers: an exception of ours would hang some frameworks, and
    end others."""
    if world is not None:
        world.record_fault(why)
    return _error_answer(why)


def _error_answer(why: str) -> ToolAnswer:
    return ToolAnswer({"error": why}, is_error=True)


# ── a method, by the way in which it is called ───────────────────────────────────────────────────


def _change(hooked: _ToolHook, real: Any) -> Any:
    if inspect.isasyncgenfunction(real):
        return _change_stream(hooked, real)
    if inspect.iscoroutinefunction(real):
        return _change_coroutine(hooked, real)
    return _change_function(hooked, real)


def _change_function(hooked: _ToolHook, real: Any) -> Any:
    @functools.wraps(real)
    def run(tool: Any, *args: Any, **kwargs: Any) -> Any:
        intercepted = hooked.intercept_call(tool, args, kwargs)
        if intercepted is None:
            return real(tool, *args, **kwargs)
        if isinstance(intercepted, ToolAnswer):
            return hooked.give(tool, intercepted, args, kwargs)
        value: Any = None

        def run_real() -> Any:
            nonlocal value
            with intercepted.enter_call():
                value = real(tool, *args, **kwargs)
            return hooked.to_record(value)

        answer = intercepted.ask_sync(run_real)
        return value if answer is None else hooked.give(tool, answer, args, kwargs)

    return run


def _change_coroutine(hooked: _ToolHook, real: Any) -> Any:
    @functools.wraps(real)
    async def run(tool: Any, *args: Any, **kwargs: Any) -> Any:
        intercepted = hooked.intercept_call(tool, args, kwargs)
        if intercepted is None:
            return await real(tool, *args, **kwargs)
        if isinstance(intercepted, ToolAnswer):
            return await _await_if_needed(hooked.give(tool, intercepted, args, kwargs))
        value: Any = None

        async def run_real() -> Any:
            nonlocal value
            with intercepted.enter_call():
                value = await real(tool, *args, **kwargs)
            return hooked.to_record(value)

        async def ask(*_: Any, **__: Any) -> Any:
            answer = await intercepted.ask(run_real)
            return (
                value if answer is None else await _await_if_needed(hooked.give(tool, answer, args, kwargs))
            )

        proxy = None if intercepted.is_passthrough else hooked.make_proxy(tool, ask)
        if proxy is None:
            return await ask()
        with intercepted.enter_call():
            return await real(proxy, *args, **kwargs)

    return run


def _change_stream(hooked: _ToolHook, real: Any) -> Any:
    @functools.wraps(real)
    async def stream(tool: Any, *args: Any, **kwargs: Any) -> Any:
        intercepted = hooked.intercept_call(tool, args, kwargs)
        if intercepted is None:
            async for event in real(tool, *args, **kwargs):
                yield event
            return
        if isinstance(intercepted, ToolAnswer):
            yield hooked.give(tool, intercepted, args, kwargs)
            return
        events: list[Any] = []

        async def run_real() -> Any:
            with intercepted.enter_call():
                events.extend([event async for event in real(tool, *args, **kwargs)])
            return hooked.to_record(hooked.pick_event(events))

        answer = await intercepted.ask(run_real)
        if answer is not None:
            events = [hooked.give(tool, answer, args, kwargs)]
        for event in events:
            yield event

    return stream


async def _await_if_needed(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


def as_async_patch(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return ``change`` for a method that callers await, also where a class has a plain function for it: a
    decorated one, or one that hands on to another object."""

    def change_any(real: Any) -> Any:
        @functools.wraps(real)
        async def run(tool: Any, *args: Any, **kwargs: Any) -> Any:
            return await real(tool, *args, **kwargs)

        return change(real if inspect.iscoroutinefunction(real) else run)

    return change_any


def as_stream_patch(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The same for a method whose events callers iterate over."""

    def change_any(real: Any) -> Any:
        @functools.wraps(real)
        async def stream(tool: Any, *args: Any, **kwargs: Any) -> Any:
            async for event in real(tool, *args, **kwargs):
                yield event

        return change(real if inspect.isasyncgenfunction(real) else stream)

    return change_any


# ── a call ───────────────────────────────────────────────────────────────────────────────────────


def _is_part_of_known(active: _ActiveCall, *, is_mocked: bool) -> bool:
    outer = (
        _ACTIVE_CALLS.get()
        if active.layer != MCP_LAYER or is_mocked
        else (*_ACTIVE_CALLS.get(), *_passthrough_calls())
    )
    return any(_is_same(each, active, is_mocked) for each in outer)


def _is_same(outer: _ActiveCall, active: _ActiveCall, is_mocked: bool) -> bool:
    """Whether a call is a part of one that is known: the method of a base class, what a tool that wraps
    another under its name hands on, or what a tool of one framework hands on to the layer below. One of
    another name that the scenario mocks is none: ids may be those of another agent's model."""
    has_name = outer.call.name == active.call.name
    if is_mocked and not has_name:
        return False
    if (outer.layer, outer.key) == (active.layer, active.key):
        return True
    is_of_server = (
        active.layer == MCP_LAYER
        and outer.layer != MCP_LAYER
        and _ends_with(outer.call.name, active.call.name)
    )
    return (has_name or is_of_server) and (
        worlds.as_json_text(outer.call.args) == worlds.as_json_text(active.call.args)
    )


def _ends_with(name: str, mcp_name: str) -> bool:
    """Whether a framework has put something before the name that a tool has at its server."""
    framework_name, server_name = ("".join(filter(str.isalnum, each)).lower() for each in (name, mcp_name))
    return bool(server_name) and framework_name.endswith(server_name)


_LOCK = threading.Lock()
_PASSTHROUGH_CALLS: dict[int, _ActiveCall] = {}


def _passthrough_calls() -> list[_ActiveCall]:
    """The calls that are left to an agent and under way: a client of a server may send them from a task of
    its own, which serves many conversations and knows of none."""
    with _LOCK:
        return [each for each in _PASSTHROUGH_CALLS.values() if each.layer != MCP_LAYER]


class _InterceptedCall:
    """A call that the scenario is asked for; one that is left to the agent is noted."""

    def __init__(self, active: _ActiveCall, world: worlds.World) -> None:
        self._active = active
        self._call = active.call
        self._world = world
        self._ran = False

    @property
    def is_passthrough(self) -> bool:
        return self._call.is_agent and not self._world.mocks(self._call.name)

    async def ask(self, run_real: Callable[[], Any]) -> ToolAnswer | None:
        """The scenario's answer; ``None`` where the agent's own tool ran."""

        async def run() -> Any:
            self._ran = True
            return await run_real()

        name, args, call_id, agent = self._call.name, self._call.args, self._call.call_id, self._call.agent
        ask = self._world.record if self.is_passthrough else self._world.call
        try:
            return self._record_outcome(await ask(name, args, run, call_id, agent))
        except worlds.UntrackedCallError as error:
            return _error_answer(str(error))
        except ToolFailedError:
            return None

    def ask_sync(self, run_real: Callable[[], Any]) -> ToolAnswer | None:
        """The same for code that cannot await."""

        def run() -> Any:
            self._ran = True
            return run_real()

        name, args, call_id, agent = self._call.name, self._call.args, self._call.call_id, self._call.agent
        ask = self._world.record_sync if self.is_passthrough else self._world.call_sync
        try:
            return self._record_outcome(ask(name, args, run, call_id, agent))
        except worlds.UntrackedCallError as error:
            return _error_answer(str(error))
        except ToolFailedError:
            return None

    def _record_outcome(self, outcome: Any) -> ToolAnswer | None:
        """Note what a call gave: an answer, or the value of one that is left to the agent."""
        ran_real = self._ran or self.is_passthrough
        value = outcome if self.is_passthrough else outcome.value
        result = value if ran_real else outcome.text
        self._world.answered_calls.append(
            AnsweredCall(self._call.name, self._call.args, result, bool(_ACTIVE_CALLS.get()))
        )
        return None if ran_real else outcome

    @contextmanager
    def enter_call(self) -> Iterator[None]:
        """The agent's own tool runs in here."""
        token = _ACTIVE_CALLS.set((*_ACTIVE_CALLS.get(), self._active))
        with _LOCK:
            _PASSTHROUGH_CALLS[id(token)] = self._active
        try:
            yield
        finally:
            with _LOCK:
                del _PASSTHROUGH_CALLS[id(token)]
            _ACTIVE_CALLS.reset(token)


def patch_subclasses(base: Any, names: tuple[str, ...], change: Callable[[Any], Any]) -> None:
    """Change methods wherever a class has one of its own, ``base`` and all below it; in classes to come,
    too."""

    def change_class(cls: Any) -> None:
        for name in names:
            method = vars(cls).get(name)
            if inspect.isfunction(method) and not hasattr(method, "agenteval_hooked"):
                changed = change(method)
                changed.agenteval_hooked = True
                setattr(cls, name, changed)

    def change_all(cls: Any) -> None:
        change_class(cls)
        for each in cls.__subclasses__():
            change_all(each)

    change_all(base)
    before = vars(base).get("__init_subclass__")

    def __init_subclass__(cls: Any, /, **options: Any) -> None:  # noqa: N807 - what Python calls
        if before is None:
            super(base, cls).__init_subclass__(**options)
        else:
            before.__get__(None, cls)(**options)
        change_class(cls)

    base.__init_subclass__ = classmethod(__init_subclass__)


def bind_arguments(parameters: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a tool was called with, by the names of its parameters in their order."""
    names = list(parameters)
    return {**{names[at]: value for at, value in enumerate(args) if at < len(names)}, **kwargs}
