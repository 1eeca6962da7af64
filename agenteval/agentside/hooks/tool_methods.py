"""Patch the methods that run tools, so that the tool world is called first (tool interception)."""

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
    """A tool call as made by the framework."""

    name: str
    args: Any
    """The arguments as the model wrote them, as a dict or as JSON text. Arguments that the framework injects
    are excluded."""
    call_id: str = ""
    """The model's id for the call. Empty if the framework does not provide the id."""
    key: Any = None
    """The key that identifies the same call at inner levels, where a method calls the method of its base
    class or of a wrapped object. The default is the call's id or, if there is no id, the tool."""
    is_agent: bool = False
    """True if another agent is called as a tool, or if code calls a tool as a function. The agent or function
    runs unless the scenario mocks it."""
    argument_error: str = ""
    """The reason why the framework refuses the arguments before any tool runs. ``give`` reports this error in
    the framework's words."""
    agent: str = ""
    """The name of the agent that makes the call. Empty if the agent is unknown."""


class _ActiveCall(NamedTuple):
    """A running call that the scenario leaves to the agent."""

    layer: str
    key: Any
    call: HookedCall


MCP_LAYER = "mcp"
"""The layer below all other layers, because a framework's tools may come from an MCP server."""

_ACTIVE_CALLS: ContextVar[tuple[_ActiveCall, ...]] = ContextVar("agenteval_inside", default=())

worlds.propagate_variable(_ACTIVE_CALLS)


def is_inside_call(name: str) -> bool:
    """Return whether the running code is part of a known call to this tool."""
    return any(each.call.name == name for each in _ACTIVE_CALLS.get())


def innermost_call() -> HookedCall | None:
    """Return the call that the running code is part of, or ``None`` if the call is unknown."""
    calls = _ACTIVE_CALLS.get()
    return calls[-1].call if calls else None


@contextmanager
def enter_direct_call(name: str, args: Any) -> Iterator[None]:
    """Mark the code inside the ``with`` block as a run of the agent's own tool that was not started by a
    framework."""
    token = _ACTIVE_CALLS.set((*_ACTIVE_CALLS.get(), _ActiveCall("", None, HookedCall(name, args))))
    try:
        yield
    finally:
        _ACTIVE_CALLS.reset(token)


class ToolFailedError(Exception):
    """Raised when the agent's own tool reports an error through its return value. The text of the error is
    recorded."""


def hook(
    layer: str,
    read: ReadCall,
    give: ReturnAnswer,
    *,
    make_proxy: Callable[[Any, Callable[..., Any]], Any] = lambda tool, ask: None,
    to_record: Callable[[Any], Any] = lambda value: value,
    pick_event: Callable[[list[Any]], Any] = lambda values: values[-1] if values else None,
) -> Callable[[Any], Any]:
    """Return a function that monkeypatches a method to intercept tool calls. The method is a plain function,
    a coroutine function or an async generator function.

    ``layer`` is the framework. ``read(tool, args, kwargs)`` returns the call, or ``None`` if the framework
    uses the tool for itself. The tool then runs as usual, and no call is recorded. ``give(tool, answer, args,
    kwargs)`` converts the scenario's answer to the method's result, or raises an exception. Errors have the
    framework's own form. The result is awaited if necessary; for a generator, the result is the only event.

    ``make_proxy(tool, ask)``, for a coroutine function, returns a copy of the tool in which the coroutine
    function ``ask`` replaces the author's function. The framework's steps before the call (argument check,
    confirmation) then happen as usual. ``make_proxy`` returns ``None`` if the tool does not support such a
    replacement. ``to_record(value)`` converts the return value of the agent's own tool to the value to
    record, and raises ``ToolFailedError`` for an error. ``pick_event`` selects the return value from the
    events of a generator.

    A mocked tool never runs. If ``read`` fails, the model receives an error, and the turn cannot be
    evaluated."""

    return functools.partial(_change, _ToolHook(layer, read, give, make_proxy, to_record, pick_event))


class _ToolHook(NamedTuple):
    """A framework's functions for intercepting its tools, which are the parameters of ``hook``."""

    layer: str
    read: ReadCall
    give: ReturnAnswer
    make_proxy: Callable[[Any, Callable[..., Any]], Any]
    to_record: Callable[[Any], Any]
    pick_event: Callable[[list[Any]], Any]

    def intercept_call(
        self, tool: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> _InterceptedCall | ToolAnswer | None:
        """Return the call to send to the scenario, the answer to a refused call, or ``None`` if the method
        runs as usual."""
        world = worlds.current_world()
        if world is None and not worlds.may_be_agent_code():
            return None
        try:
            call = self.read(tool, args, kwargs)
        except Exception as error:
            what = f"a tool call from {self.layer} could not be parsed ({type(error).__name__}: {error})"
            return _unanswerable_call(f"{what} and was not run", world)
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
    """Return the error that a model receives for a call that cannot be answered. An exception would hang some
    frameworks and abort others."""
    if world is not None:
        world.record_fault(why)
    return _error_answer(why)


def _error_answer(why: str) -> ToolAnswer:
    return ToolAnswer({"error": why}, is_error=True)


# ── functions, coroutines, generators ────────────────────────────────────────────────────────────


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
    """Return ``change`` for a method that callers await. A class may implement such a method as a plain
    function that is decorated or that delegates to another object."""

    def change_any(real: Any) -> Any:
        @functools.wraps(real)
        async def run(tool: Any, *args: Any, **kwargs: Any) -> Any:
            return await real(tool, *args, **kwargs)

        return change(real if inspect.iscoroutinefunction(real) else run)

    return change_any


def as_stream_patch(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return ``change`` for a method that returns events over which callers iterate."""

    def change_any(real: Any) -> Any:
        @functools.wraps(real)
        async def stream(tool: Any, *args: Any, **kwargs: Any) -> Any:
            async for event in real(tool, *args, **kwargs):
                yield event

        return change(real if inspect.isasyncgenfunction(real) else stream)

    return change_any


# ── calls ────────────────────────────────────────────────────────────────────────────────────────


def _is_part_of_known(active: _ActiveCall, *, is_mocked: bool) -> bool:
    outer = (
        _ACTIVE_CALLS.get()
        if active.layer != MCP_LAYER or is_mocked
        else (*_ACTIVE_CALLS.get(), *_passthrough_calls())
    )
    return any(_is_same(each, active, is_mocked) for each in outer)


def _is_same(outer: _ActiveCall, active: _ActiveCall, is_mocked: bool) -> bool:
    """Return whether a call is part of a call that is already known.

    This is the case if the call comes from the method of a base class, from a tool that wraps another tool
    with the same name, or from a framework's tool that delegates to the layer below. A mocked call with a
    different name is not the same call, because ids may come from another agent's model."""
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
    """Return whether a framework's tool name consists of a prefix and the MCP server's tool name. Case and
    punctuation are ignored."""
    framework_name, server_name = ("".join(filter(str.isalnum, each)).lower() for each in (name, mcp_name))
    return bool(server_name) and framework_name.endswith(server_name)


_LOCK = threading.Lock()
_PASSTHROUGH_CALLS: dict[int, _ActiveCall] = {}


def _passthrough_calls() -> list[_ActiveCall]:
    """Return the running calls that are left to the agents. An MCP client may send such calls from its own
    task, which serves many conversations and does not know which conversation a call belongs to."""
    with _LOCK:
        return [each for each in _PASSTHROUGH_CALLS.values() if each.layer != MCP_LAYER]


class _InterceptedCall:
    """A call that is sent to the scenario. A call that is left to the agent is also recorded."""

    def __init__(self, active: _ActiveCall, world: worlds.World) -> None:
        self._active = active
        self._call = active.call
        self._world = world
        self._ran = False

    @property
    def is_passthrough(self) -> bool:
        return self._call.is_agent and not self._world.mocks(self._call.name)

    async def ask(self, run_real: Callable[[], Any]) -> ToolAnswer | None:
        """Return the scenario's answer, or ``None`` if the agent's own tool ran."""

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
        """Do the same as ``ask``, but for synchronous code."""

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
        """Record the outcome of a call: the scenario's answer, or the return value of a call that is left to
        the agent."""
        ran_real = self._ran or self.is_passthrough
        value = outcome if self.is_passthrough else outcome.value
        result = value if ran_real else outcome.text
        self._world.answered_calls.append(
            AnsweredCall(self._call.name, self._call.args, result, bool(_ACTIVE_CALLS.get()))
        )
        return None if ran_real else outcome

    @contextmanager
    def enter_call(self) -> Iterator[None]:
        """Mark the code inside the ``with`` block as a run of the agent's own tool."""
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
    """Patch methods in ``base`` and in every existing or future subclass that overrides them."""

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
    """Return the arguments of a call, keyed by parameter name and in parameter order."""
    names = list(parameters)
    return {**{names[at]: value for at, value in enumerate(args) if at < len(names)}, **kwargs}
