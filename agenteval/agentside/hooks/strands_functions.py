"""Strands: a decorated tool that code calls as the function it is, ``DecoratedFunctionTool.__call__``."""

from __future__ import annotations

import functools
import inspect
from typing import Any

from .. import world as worlds
from .strands import is_of_framework, properties_of
from .tool_methods import Call, awaited, change_below, hook, named


def install(module: Any) -> None:
    """``module``: ``strands.tools.decorator``."""
    change_below(module.DecoratedFunctionTool, ("__call__",), _called)


def _called(real: Any) -> Any:
    change = hook("Strands", _read, _value)
    at_once, later = change(real), awaited(change)(real)

    @functools.wraps(real)
    def call(tool: Any, *args: Any, **kwargs: Any) -> Any:
        is_async = inspect.iscoroutinefunction(inspect.unwrap(tool))
        return (later if is_async else at_once)(tool, *args, **kwargs)

    return call


def _read(tool: Any, args: Any, kwargs: Any) -> Call | None:
    """As any function it runs, unless the scenario mocks it."""
    world = worlds.current()
    if is_of_framework(tool) or (world is not None and world.target is tool):
        return None
    given = named(inspect.signature(tool).parameters, args, kwargs)
    return Call(tool.tool_name, {n: v for n, v in given.items() if n in properties_of(tool)}, is_agent=True)


def _value(tool: Any, answer: Any, args: Any, kwargs: Any) -> Any:
    if answer.is_error:
        raise RuntimeError(answer.failure)
    return answer.value
