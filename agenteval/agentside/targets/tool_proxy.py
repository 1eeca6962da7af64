"""Handle calls to the agent's own tools. Either the scenario answers a call, or the agent runs the tool and
the call is recorded (``unmocked_tools: passthrough``)."""

from __future__ import annotations

import asyncio
import dataclasses
import math
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from enum import Enum
from typing import TYPE_CHECKING, Any, Mapping

from ..world import ToolAnswer, call_in_start_order
from .context import CONVERSATION_OVER, await_answer, mark_loop_blocked
from .faults import describe_error
from .serialization import describe_unserializable, to_plain_json

if TYPE_CHECKING:
    from typing import Awaitable, Callable

    from .context import Context


class ToolProxy:
    """The scenario's tools during one turn, for an agent that has its own tools.

    ``run_real`` is the agent's real tool. It is called only if the scenario leaves the tool to the agent. The
    tool's return value is then returned unchanged, and its exceptions propagate."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def mocks(self, name: str) -> bool:
        """Return whether the scenario contains an answer (a mock) for the tool."""
        return self._context.mocks(name)

    async def call(self, name: str, args: Any, run_real: Callable[[], Awaitable[Any]]) -> ToolAnswer:
        arguments = to_json_arguments(args)
        with self._context.open_batch() as batch:
            if self._context.passes_through(name):
                return ToolAnswer(await record_call_async(self._context, name, arguments, batch, run_real))
            return await await_answer(self._context.request_known_call(name, arguments, batch))

    def call_sync(self, name: str, args: Any, run_real: Callable[[], Any]) -> ToolAnswer:
        arguments = to_json_arguments(args)
        try:
            with self._context.open_batch() as batch:
                if self._context.passes_through(name):
                    return ToolAnswer(record_call(self._context, name, arguments, batch, run_real))
                with mark_loop_blocked():
                    return call_in_start_order(
                        lambda: self._context.request_known_call(name, arguments, batch)
                    ).result()
        except CancelledError:
            raise SystemExit(CONVERSATION_OVER) from None  # ends a thread silently

    async def record(self, name: str, args: Any, run_real: Callable[[], Awaitable[Any]]) -> Any:
        """Return the result of ``run_real()``, regardless of the tools that the scenario declares. Calls
        inside ``run_real`` are recorded as separate, later steps, because they may depend on each other's
        results."""
        with self._context.open_batch() as batch:
            arguments = to_json_arguments(args)
        return await record_call_async(self._context, name, arguments, batch, run_real)

    def record_sync(self, name: str, args: Any, run_real: Callable[[], Any]) -> Any:
        """Do the same as ``record``, but for synchronous code."""
        with self._context.open_batch() as batch:
            arguments = to_json_arguments(args)
        try:
            return record_call(self._context, name, arguments, batch, run_real)
        except CancelledError:
            raise SystemExit(CONVERSATION_OVER) from None  # ends a thread silently


def record_call(context: Context, name: str, args: dict[str, Any], batch: int, run: Callable[[], Any]) -> Any:
    """Run ``run()``, record its return value as the result of a call, and return the value."""
    passthrough = PassthroughCall()
    recorded = call_in_start_order(lambda: passthrough.begin(context, name, args, batch))
    passthrough.go_ahead.result()
    try:
        value = run()
    except BaseException as error:
        passthrough.finish_with_error(error)
        if isinstance(error, Exception):
            # Otherwise the turn may end before the error is recorded, and the result is not known.
            with suppress(Exception, CancelledError):
                recorded.result()
        raise
    passthrough.finish_with(value)
    recorded.result()
    return value


async def record_call_async(
    context: Context, name: str, args: dict[str, Any], batch: int, run: Callable[[], Awaitable[Any]]
) -> Any:
    """Do the same as ``record_call``, but for an awaitable."""
    passthrough = PassthroughCall()
    recorded = passthrough.begin(context, name, args, batch)
    await asyncio.wrap_future(passthrough.go_ahead)
    try:
        value = await run()
    except BaseException as error:
        passthrough.finish_with_error(error)
        if isinstance(error, Exception):
            with suppress(Exception):
                await asyncio.wrap_future(recorded)
        raise
    passthrough.finish_with(value)
    await asyncio.wrap_future(recorded)
    return value


class PassthroughCall:
    """A call that the agent runs itself. The world signals ``go_ahead`` and then waits until the call is
    ``done``."""

    def __init__(self) -> None:
        self.go_ahead: Future[None] = Future()
        self.done: Future[ToolAnswer] = Future()

    def begin(self, context: Context, name: str, args: dict[str, Any], batch: int) -> Future[ToolAnswer]:
        recorded = context.request_passthrough(name, args, batch, self)
        recorded.add_done_callback(lambda _: self.go_ahead.cancel() if not self.go_ahead.done() else None)
        return recorded

    async def __call__(self) -> ToolAnswer:
        self.go_ahead.set_result(None)
        return await asyncio.wrap_future(self.done)

    def finish_with(self, value: Any) -> None:
        self.done.set_result(ToolAnswer(to_json_result(value), False))

    def finish_with_error(self, error: BaseException) -> None:
        self.done.set_result(ToolAnswer({"error": describe_error(error)}, True))


# ── arguments and results as JSON ────────────────────────────────────────────────────────────────

NOT_JSON = object()
_MAX_DEPTH = 50


def to_json_arguments(args: Any) -> Any:
    """Return the arguments of a call as JSON. Values that JSON cannot represent are omitted, because they are
    not arguments of a tool."""
    if not isinstance(args, Mapping):
        return args
    found = {str(key): to_json_argument(value) for key, value in args.items()}
    return {key: value for key, value in found.items() if value is not NOT_JSON}


def to_json_result(value: Any) -> Any:
    """Return the result of a tool as JSON, field by field if necessary, or else a text that names its type. A
    result that cannot be recorded, such as one that contains itself, must not break a tool that succeeded."""
    if (found := to_json_argument(value)) is not NOT_JSON:
        return found
    try:
        return to_plain_json(value)
    except Exception:
        return describe_unserializable(value)


class _NotJsonError(Exception):
    """Raised for a value that JSON cannot represent, or that is nested too deeply."""


def to_json_argument(value: Any) -> Any:
    """Return a value as JSON, or ``NOT_JSON`` if JSON cannot represent the value, or if the value's own code
    fails."""
    try:
        return _to_json(value, _MAX_DEPTH)
    except Exception:
        return NOT_JSON


def _to_json(value: Any, left: int) -> Any:
    """Return a value as JSON. ``left`` is the remaining nesting depth. Raise ``_NotJsonError`` if JSON cannot
    represent the value."""
    if left < 0:
        raise _NotJsonError
    for kinds, read in _READERS:
        if isinstance(value, kinds):
            return read(value, left - 1)
    return _read_object(value, left - 1)


def _read_float(value: float, _: int) -> Any:
    return value if math.isfinite(value) else str(value)


def _read_mapping(value: Mapping[Any, Any], left: int) -> Any:
    return {str(key): _to_json(item, left) for key, item in value.items()}


def _read_items(value: Any, left: int) -> Any:
    """Return a list as JSON. A named tuple is treated as an object with fields."""
    if hasattr(value, "_asdict"):
        return _to_json(value._asdict(), left)
    return [_to_json(item, left) for item in value]


def _read_object(value: Any, left: int) -> Any:
    """Return an object's fields or its Pydantic model as JSON. For other objects, return the text form if the
    class defines one, as the classes for dates, UUIDs and paths do."""
    if dataclasses.is_dataclass(value):
        return _to_json({each.name: getattr(value, each.name) for each in dataclasses.fields(value)}, left)
    if callable(getattr(value, "model_dump", None)):
        return _to_json(value.model_dump(mode="json"), left)
    if callable(value) or type(value).__str__ is vars(object)["__str__"]:
        raise _NotJsonError
    return str(value)


def _refuse(_: Any, __: int) -> Any:
    raise _NotJsonError


_READERS: tuple[tuple[Any, Callable[[Any, int], Any]], ...] = (
    (Enum, lambda value, left: _to_json(value.value, left)),
    ((bool, int, type(None)), lambda value, _: value),
    (str, lambda value, _: str(value)),
    (float, _read_float),
    (Mapping, _read_mapping),
    ((list, tuple, set, frozenset), _read_items),
    ((type, bytes, bytearray, memoryview), _refuse),
)
"""The functions that convert a value, keyed by type. The first match is used, because an ``Enum`` may also be
a string."""
