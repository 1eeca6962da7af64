"""Hook Strands by patching ``DecoratedFunctionTool.__call__``, for decorated tools that are called as plain
functions."""

from __future__ import annotations

import functools
import inspect
from typing import Any

from .. import world as worlds
from .strands import is_strands_builtin, properties_of
from .tool_methods import HookedCall, as_async_patch, bind_arguments, hook, patch_subclasses


def install(module: Any) -> None:
    """Patch ``module``, which is ``strands.tools.decorator``."""
    patch_subclasses(module.DecoratedFunctionTool, ("__call__",), _patch_call)


def _patch_call(real: Any) -> Any:
    change = hook("Strands", _read, _return_value)
    at_once, later = change(real), as_async_patch(change)(real)

    @functools.wraps(real)
    def call(tool: Any, *args: Any, **kwargs: Any) -> Any:
        is_async = inspect.iscoroutinefunction(inspect.unwrap(tool))
        return (later if is_async else at_once)(tool, *args, **kwargs)

    return call


def _read(tool: Any, args: Any, kwargs: Any) -> HookedCall | None:
    """Return the ``HookedCall`` for a decorated tool that is called as a plain function. The function runs
    unless the scenario mocks it."""
    world = worlds.current_world()
    if is_strands_builtin(tool) or (world is not None and world.target is tool):
        return None
    bound = bind_arguments(inspect.signature(tool).parameters, args, kwargs)
    return HookedCall(
        tool.tool_name, {n: v for n, v in bound.items() if n in properties_of(tool)}, is_agent=True
    )


def _return_value(tool: Any, answer: Any, args: Any, kwargs: Any) -> Any:
    if answer.is_error:
        raise RuntimeError(answer.failure)
    return answer.value
