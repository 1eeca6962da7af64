"""A method that carries out a tool, changed so that the tool world is asked first."""

from __future__ import annotations

import functools
import inspect
import threading
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import world as worlds
from ..world import Answer, DoneCall

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    Read = Callable[[Any, "tuple[Any, ...]", "Mapping[str, Any]"], "Call | None"]
    Give = Callable[[Any, Answer, "tuple[Any, ...]", "Mapping[str, Any]"], Any]


class Call(NamedTuple):
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
    misfit: str = ""
    """Why the framework refuses the arguments before any tool runs; ``give`` has it say so in its words."""
    agent: str = ""
    """The name of the agent that makes it; empty where it is not known."""


class _Inside(NamedTuple):
    """A call that is left to the agent, while it runs."""

    layer: str
    key: Any
    call: Call


MCP = "mcp"
"""The layer below all others: tools of a framework may be those of a server."""

_INSIDE: ContextVar[tuple[_Inside, ...]] = ContextVar("agenteval_inside", default=())

worlds.carry(_INSIDE)


def is_inside(name: str) -> bool:
    """Return whether what runs is a part of a call of this tool, which is known."""
    return any(each.call.name == name for each in _INSIDE.get())


def innermost() -> Call | None:
    """Return the call that what runs is a part of, if one is known."""
    calls = _INSIDE.get()
    return calls[-1].call if calls else None


@contextmanager
def running_inside(name: str, args: Any) -> Iterator[None]:
    """The agent's own tool runs in here, by a call that no framework made."""
    token = _INSIDE.set((*_INSIDE.get(), _Inside("", None, Call(name, args))))
    try:
        yield
    finally:
        _INSIDE.reset(token)


class ToolFailedError(Exception):
    """The agent's own tool reported an error by what it returned; its text is what is recorded."""


def hook(
    layer: str,
    read: Read,
    give: Give,
    *,
    through: Callable[[Any, Callable[..., Any]], Any] = lambda tool, ask: None,
    recorded: Callable[[Any], Any] = lambda value: value,
    last: Callable[[list[Any]], Any] = lambda values: values[-1] if values else None,
) -> Callable[[Any], Any]:
    """Return what changes a method: a plain one, a coroutine function or an async generator function.

    ``layer``: the framework. ``read(tool, args, kwargs)`` says what is called; ``None`` for what is the
    framework's own business, which runs as ever and is no call. ``give(tool, answer, args, kwargs)``: what
    the method returns, or raises, for the scenario's answer, errors in the framework's own form, awaited
    where that is needed; of a generator, the one event.

    ``through(tool, ask)``, for a coroutine function: a copy of the tool in which the coroutine function
    ``ask`` stands for the author's own, so that what the framework does before it (the check of arguments, a
    confirmation) happens as ever; ``None`` where there is no such place. ``recorded(value)``: what the record
    has of what the agent's own tool returned; it raises ``ToolFailedError`` for an error. ``last``: of the
    events of a generator, that value.

    A tool that is mocked does not run for any reason: where ``read`` fails, the model is given an error, and
    the turn proves nothing.
    """

    def met(tool: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> _Met | None:
        world = worlds.current()
        if world is None and not worlds.may_be_of_agent():
            return None
        try:
            call = read(tool, args, kwargs)
        except Exception as error:
            what = f"a call of a tool of {layer} could not be read ({type(error).__name__}: {error})"
            return _Met(layer, None, f"{what}; it was not run", world)
        if call is None:
            return None
        if world is not None:
            world.is_met = True
        key = call.call_id or id(tool) if call.key is None else call.key
        is_mocked = world is not None and world.mocks(call.name)
        outer = _INSIDE.get() if layer != MCP or is_mocked else (*_INSIDE.get(), *_left_now())
        if any(_is_same(each, layer, key, call, is_mocked) for each in outer):
            return None
        if world is None:
            return _Met(layer, call, str(worlds.untracked(call.name)), None)
        return _Met(layer, call, "", world, key)

    def change(real: Any) -> Any:
        if inspect.isasyncgenfunction(real):

            @functools.wraps(real)
            async def stream(tool: Any, *args: Any, **kwargs: Any) -> Any:
                found = met(tool, args, kwargs)
                if found is None:
                    async for event in real(tool, *args, **kwargs):
                        yield event
                    return
                events: list[Any] = []

                async def own() -> Any:
                    with found.inside():
                        events.extend([event async for event in real(tool, *args, **kwargs)])
                    return recorded(last(events))

                answer = await found.ask(own)
                if answer is None:
                    for event in events:
                        yield event
                else:
                    yield give(tool, answer, args, kwargs)

            return stream
        if inspect.iscoroutinefunction(real):

            @functools.wraps(real)
            async def run_async(tool: Any, *args: Any, **kwargs: Any) -> Any:
                found = met(tool, args, kwargs)
                if found is None:
                    return await real(tool, *args, **kwargs)
                value: Any = None

                async def own() -> Any:
                    nonlocal value
                    with found.inside():
                        value = await real(tool, *args, **kwargs)
                    return recorded(value)

                async def asked(*_: Any, **__: Any) -> Any:
                    answer = await found.ask(own)
                    if answer is None:
                        return value
                    given = give(tool, answer, args, kwargs)
                    return await given if inspect.isawaitable(given) else given

                proxy = through(tool, asked) if found.is_asked else None
                if proxy is None:
                    return await asked()
                with found.inside():
                    return await real(proxy, *args, **kwargs)

            return run_async

        @functools.wraps(real)
        def run(tool: Any, *args: Any, **kwargs: Any) -> Any:
            found = met(tool, args, kwargs)
            if found is None:
                return real(tool, *args, **kwargs)
            value: Any = None

            def own() -> Any:
                nonlocal value
                with found.inside():
                    value = real(tool, *args, **kwargs)
                return recorded(value)

            answer = found.ask_sync(own)
            return value if answer is None else give(tool, answer, args, kwargs)

        return run

    return change


def awaited(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return ``change`` for a method that callers await, also where a class has a plain function for it: a
    decorated one, or one that hands on to another object."""

    def change_any(real: Any) -> Any:
        @functools.wraps(real)
        async def run(tool: Any, *args: Any, **kwargs: Any) -> Any:
            return await real(tool, *args, **kwargs)

        return change(real if inspect.iscoroutinefunction(real) else run)

    return change_any


def iterated(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The same for a method whose events callers iterate over."""

    def change_any(real: Any) -> Any:
        @functools.wraps(real)
        async def stream(tool: Any, *args: Any, **kwargs: Any) -> Any:
            async for event in real(tool, *args, **kwargs):
                yield event

        return change(real if inspect.isasyncgenfunction(real) else stream)

    return change_any


def _is_same(outer: _Inside, layer: str, key: Any, call: Call, is_mocked: bool) -> bool:
    """Whether a call is a part of one that is known: the method of a base class, what a tool that wraps
    another under its name hands on, or what a tool of one framework hands on to the layer below. One of
    another name that the scenario mocks is none: ids may be those of another agent's model."""
    if is_mocked and outer.call.name != call.name:
        return False
    if outer.layer == layer and outer.key == key:
        return True
    is_of_server = layer == MCP and outer.layer != MCP and _ends_with(outer.call.name, call.name)
    is_named_so = outer.call.name == call.name or is_of_server
    return is_named_so and worlds.as_json_text(outer.call.args) == worlds.as_json_text(call.args)


def _ends_with(name: str, mcp_name: str) -> bool:
    """Whether a framework has put something before the name that a tool has at its server."""
    given, own = ("".join(filter(str.isalnum, each)).lower() for each in (name, mcp_name))
    return bool(own) and given.endswith(own)


_LOCK = threading.Lock()
_LEFT_NOW: dict[int, _Inside] = {}


def _left_now() -> list[_Inside]:
    """The calls that are left to an agent and under way: a client of a server may send them from a task of
    its own, which serves many conversations and knows of none."""
    with _LOCK:
        return [each for each in _LEFT_NOW.values() if each.layer != MCP]


class _Met:
    """A call that was met. ``refused``: why it is not asked for; empty if it is."""

    def __init__(
        self, layer: str, call: Call | None, refused: str, world: worlds.World | None, key: Any = None
    ) -> None:
        self._layer, self._call, self._refused, self._world, self._key = layer, call, refused, world, key
        self._ran = False

    async def ask(self, own: Callable[[], Any]) -> Answer | None:
        """The scenario's answer; ``None`` where the agent's own tool ran."""

        async def run() -> Any:
            self._ran = True
            return await own()

        if (refusal := self._refusal()) is not None:
            return refusal
        assert self._call
        assert self._world
        name, args, call_id, agent = self._call.name, self._call.args, self._call.call_id, self._call.agent
        try:
            if self._is_left:
                self._note(await self._world.record(name, args, run, call_id, agent))
                return None
            answer = await self._world.call(name, args, run, call_id, agent)
            self._note(answer.value if self._ran else answer.text)
        except worlds.UntrackedCallError as error:
            return Answer({"error": str(error)}, is_error=True)
        except ToolFailedError:
            return None
        return None if self._ran else answer

    def ask_sync(self, own: Callable[[], Any]) -> Answer | None:
        """The same for code that cannot await."""

        def run() -> Any:
            self._ran = True
            return own()

        if (refusal := self._refusal()) is not None:
            return refusal
        assert self._call
        assert self._world
        name, args, call_id, agent = self._call.name, self._call.args, self._call.call_id, self._call.agent
        try:
            if self._is_left:
                self._note(self._world.record_sync(name, args, run, call_id, agent))
                return None
            answer = self._world.call_sync(name, args, run, call_id, agent)
            self._note(answer.value if self._ran else answer.text)
        except worlds.UntrackedCallError as error:
            return Answer({"error": str(error)}, is_error=True)
        except ToolFailedError:
            return None
        return None if self._ran else answer

    def _note(self, result: Any) -> None:
        assert self._call
        assert self._world
        done = DoneCall(self._call.name, self._call.args, result, bool(_INSIDE.get()))
        self._world.done.append(done)

    @property
    def is_asked(self) -> bool:
        """Whether the scenario is to be asked."""
        return self._call is not None and not (self._refused or self._call.misfit or self._is_left)

    @property
    def _is_left(self) -> bool:
        assert self._call
        assert self._world
        return self._call.is_agent and not self._world.mocks(self._call.name)

    def _refusal(self) -> Answer | None:
        """By an error for the model: an exception of ours would hang some frameworks, and end others."""
        if self._call is not None and self._call.misfit and not self._refused:
            return Answer({"error": self._call.misfit}, is_error=True)
        if not self._refused:
            return None
        if self._world is not None:
            self._world.give_up(self._refused)
        return Answer({"error": self._refused}, is_error=True)

    @contextmanager
    def inside(self) -> Iterator[None]:
        """The agent's own tool runs in here."""
        assert self._call
        left = _Inside(self._layer, self._key, self._call)
        token = _INSIDE.set((*_INSIDE.get(), left))
        with _LOCK:
            _LEFT_NOW[id(left)] = left
        try:
            yield
        finally:
            with _LOCK:
                del _LEFT_NOW[id(left)]
            _INSIDE.reset(token)


def change_below(base: Any, names: tuple[str, ...], change: Callable[[Any], Any]) -> None:
    """Change methods wherever a class has one of its own, ``base`` and all below it; in classes to come,
    too."""

    def change_own(cls: Any) -> None:
        for name in names:
            own = vars(cls).get(name)
            if inspect.isfunction(own) and not hasattr(own, "agenteval_hooked"):
                changed = change(own)
                changed.agenteval_hooked = True
                setattr(cls, name, changed)

    def change_all(cls: Any) -> None:
        change_own(cls)
        for each in cls.__subclasses__():
            change_all(each)

    change_all(base)
    before = vars(base).get("__init_subclass__")

    def __init_subclass__(cls: Any, /, **options: Any) -> None:  # noqa: N807 - what Python calls
        if before is None:
            super(base, cls).__init_subclass__(**options)
        else:
            before.__get__(None, cls)(**options)
        change_own(cls)

    base.__init_subclass__ = classmethod(__init_subclass__)


def named(parameters: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a tool was called with, by the names of its parameters in their order."""
    names = list(parameters)
    return {**{names[at]: value for at, value in enumerate(args) if at < len(names)}, **kwargs}
