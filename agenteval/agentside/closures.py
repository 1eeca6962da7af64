"""Read variables from function closures, to find values that a framework stores nowhere else."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_MAX_DEPTH = 8


def closure_variables(function: Any) -> dict[str, Any]:
    """Return the variables in a function's closure, keyed by name."""
    code, closure = getattr(function, "__code__", None), getattr(function, "__closure__", None)
    found = {}
    for at, name in enumerate(code.co_freevars if code and closure else ()):
        try:
            found[name] = closure[at].cell_contents  # type: ignore[index]
        except ValueError:  # not yet filled
            continue
    return found


def find_in_closures(value: Any, fits: Callable[[Any], bool], depth: int = 0) -> Any:
    """Return the first matching value: ``value`` itself, a value in its closure, or a value in the closures
    of the functions found there. Return ``None`` if nothing matches."""
    if value is None or depth > _MAX_DEPTH:
        return None
    if fits(value):
        return value
    if isinstance(value, functools.partial):
        inner_values = [value.func, *value.args, *value.keywords.values()]
    elif hasattr(value, "_invoke_tool_impl"):  # an object of the OpenAI Agents SDK that wraps a function
        inner_values = [value._invoke_tool_impl]
    else:
        inner_values = list(closure_variables(value).values())
    inner = (find_in_closures(each, fits, depth + 1) for each in inner_values if callable(each) or fits(each))
    return next((each for each in inner if each is not None), None)
