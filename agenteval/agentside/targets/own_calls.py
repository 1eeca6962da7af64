"""Calls of tools that the agent has of its own: answered by the scenario, or carried out by the agent and
recorded (``unmocked_tools: passthrough``)."""

from __future__ import annotations

import asyncio
import dataclasses
import math
from concurrent.futures import CancelledError, Future
from enum import Enum
from typing import TYPE_CHECKING, Any, Mapping

from ..world import in_order
from .context import OVER, Answered, waiting_for_it
from .faults import describe
from .plain import plain

if TYPE_CHECKING:
    from typing import Awaitable, Callable

    from .context import Context


class ToolCalls:
    """The scenario's tools for an agent that has them itself, during one turn. ``own`` is the agent's real
    tool: it is called only where the scenario leaves the tool to the agent; what it returns is given as it
    is, and what it raises is raised."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def mocks(self, name: str) -> bool:
        """Return whether the scenario has an answer for the tool."""
        return self._context.mocks(name)

    async def call(self, name: str, args: Any, own: Callable[[], Awaitable[Any]]) -> Answered:
        given = arguments_of(args)
        with self._context.flying() as batch:
            if self._context.leaves(name):
                return Answered(await carried_out_async(self._context, name, given, batch, own))
            try:
                return await asyncio.wrap_future(self._context.ask_known(name, given, batch))
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if task and getattr(task, "cancelling", int)():
                    raise  # the agent's own; before Python 3.11 nobody can tell
                raise asyncio.CancelledError(OVER) from None

    def call_sync(self, name: str, args: Any, own: Callable[[], Any]) -> Answered:
        given = arguments_of(args)
        try:
            with self._context.flying() as batch:
                if self._context.leaves(name):
                    return Answered(carried_out(self._context, name, given, batch, own))
                with waiting_for_it():
                    return in_order(lambda: self._context.ask_known(name, given, batch)).result()
        except CancelledError:
            raise SystemExit(OVER) from None  # ends a thread without a word

    async def record(self, name: str, args: Any, own: Callable[[], Awaitable[Any]]) -> Any:
        """What ``own()`` gives, whatever the scenario declares. Calls in it come after it, not at the same
        time: they may be of each other's results."""
        with self._context.flying() as batch:
            given = arguments_of(args)
        return await carried_out_async(self._context, name, given, batch, own)

    def record_sync(self, name: str, args: Any, own: Callable[[], Any]) -> Any:
        """The same for code that cannot await."""
        with self._context.flying() as batch:
            given = arguments_of(args)
        try:
            return carried_out(self._context, name, given, batch, own)
        except CancelledError:
            raise SystemExit(OVER) from None  # ends a thread without a word


def carried_out(context: Context, name: str, args: dict[str, Any], batch: int, run: Callable[[], Any]) -> Any:
    """What ``run()`` gives, recorded as the result of a call."""
    own = Own()
    recorded = in_order(lambda: own.begin(context, name, args, batch))
    own.go.result()
    try:
        value = run()
    except BaseException as error:
        own.failed(error)
        raise
    own.returned(value)
    recorded.result()
    return value


async def carried_out_async(
    context: Context, name: str, args: dict[str, Any], batch: int, run: Callable[[], Awaitable[Any]]
) -> Any:
    """The same for what is awaited."""
    own = Own()
    recorded = own.begin(context, name, args, batch)
    await asyncio.wrap_future(own.go)
    try:
        value = await run()
    except BaseException as error:
        own.failed(error)
        raise
    own.returned(value)
    await asyncio.wrap_future(recorded)
    return value


class Own:
    """A call that is the agent's own to carry out: the world says when to ``go``, and waits until it is
    ``done``."""

    def __init__(self) -> None:
        self.go: Future[None] = Future()
        self.done: Future[Answered] = Future()

    def begin(self, context: Context, name: str, args: dict[str, Any], batch: int) -> Future[Answered]:
        recorded = context.ask_own(name, args, batch, self)
        recorded.add_done_callback(lambda _: self.go.cancel() if not self.go.done() else None)
        return recorded

    async def __call__(self) -> Answered:
        self.go.set_result(None)
        return await asyncio.wrap_future(self.done)

    def returned(self, value: Any) -> None:
        found = as_json(value)
        self.done.set_result(Answered(plain(value) if found is NOT_JSON else found, False))

    def failed(self, error: BaseException) -> None:
        self.done.set_result(Answered({"error": describe(error)}, True))


# ── arguments and results as JSON ────────────────────────────────────────────────────────────────

NOT_JSON = object()
_DEEPEST = 50


def arguments_of(args: Any) -> Any:
    """What a tool is called with; a value that JSON cannot hold is no argument of a tool."""
    if not isinstance(args, Mapping):
        return args
    found = {str(key): as_json(value) for key, value in args.items()}
    return {key: value for key, value in found.items() if value is not NOT_JSON}


def as_json(value: Any, depth: int = 0) -> Any:
    """A value as JSON; ``NOT_JSON`` where it cannot be one."""
    if depth > _DEEPEST:
        return NOT_JSON
    if isinstance(value, Enum):
        return as_json(value.value, depth + 1)
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return _all({str(key): as_json(item, depth + 1) for key, item in value.items()})
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
        return as_json(fields, depth + 1)
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return as_json(value._asdict(), depth + 1)
    if isinstance(value, (list, tuple, set, frozenset)):
        items = [as_json(item, depth + 1) for item in value]
        return NOT_JSON if any(item is NOT_JSON for item in items) else items
    if callable(getattr(value, "model_dump", None)) and not isinstance(value, type):
        return as_json(value.model_dump(mode="json"), depth + 1)
    return _text(value)


def _all(items: dict[str, Any]) -> Any:
    return NOT_JSON if any(item is NOT_JSON for item in items.values()) else items


def _text(value: Any) -> Any:
    """What a value prints as, if its class has a text in mind: dates, UUIDs, paths."""
    if isinstance(value, (type, bytes, bytearray, memoryview)) or callable(value):
        return NOT_JSON
    if vars(object)["__str__"] is type(value).__str__:
        return NOT_JSON
    return str(value)
