"""Find the author's functions inside the objects that decorators and classes created from them."""

from __future__ import annotations

from functools import partial
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any

from ..closures import closure_variables
from .module_files import is_installed

if TYPE_CHECKING:
    from collections.abc import Iterator

_NAMES = (
    "__wrapped__",
    *("func", "_func", "fn", "_fn", "function", "_function", "coroutine", "async_fn", "_async_fn"),
    *("real_fn", "_real_fn", "_tool_func", "tool_function", "real_func", "the_func", "forward"),
)
"""The names under which frameworks store a tool's function, either in an attribute or in the closure of one
of the framework's own functions."""
_HOLDER_NAMES = (
    "__self__",
    "on_invoke_tool",
    "_invoke_tool_impl",
    "_on_invoke_tool_impl",
    "invoke_tool_impl",
)
"""The names under which frameworks store the object that contains the function. If one of the author's own
functions is stored under such a name, it does not accept a tool's arguments."""
_MAX_DEPTH = 5


def functions_in(tool: Any) -> list[Any]:
    """Return the functions and bound methods in a tool, excluding functions of the tool's own library. No
    code in the tool is run, except for its properties."""
    own_package = _package(type(tool)) if is_installed(type(tool)) else ""
    libraries = frozenset(
        filter(None, (own_package, __name__.partition(".")[0]))
    )  # agenteval's too, because a hook may wrap it
    found: dict[int, Any] = {}
    for each in _find_functions(tool, libraries, 0, set()):
        found.setdefault(id(getattr(each, "__func__", each)), each)
    return list(found.values())


def _find_functions(holder: Any, libraries: frozenset[str], depth: int, seen: set[int]) -> Iterator[Any]:
    if depth > _MAX_DEPTH or id(holder) in seen:
        return
    seen.add(id(holder))
    for name, value in _named_values(holder):
        function = value.__func__ if isinstance(value, MethodType) else value
        is_function = isinstance(function, FunctionType)
        is_of_library = _package(function if is_function else type(value)) in libraries
        if is_function and not is_of_library:
            if name in _NAMES:
                yield value
        elif is_of_library or isinstance(value, partial):
            yield from _find_functions(value, libraries, depth + 1, seen)


def _named_values(holder: Any) -> Iterator[tuple[str, Any]]:
    """Yield the values that are stored under one of the known names."""
    for name in (*_NAMES, *_HOLDER_NAMES):
        try:
            value = getattr(holder, name, None)
        except Exception:  # a property that needs something that does not exist yet
            continue
        if value is not None:
            yield name, value
    variables = closure_variables(holder) if isinstance(holder, FunctionType) else {}
    yield from ((name, value) for name, value in variables.items() if name in (*_NAMES, *_HOLDER_NAMES))


def _package(obj: Any) -> str:
    """Return the outermost package of a class, or of the module that defines a function, regardless of the
    function's ``__module__``."""
    module = obj.__globals__.get("__name__") if isinstance(obj, FunctionType) else obj.__module__
    return str(module or "").partition(".")[0]
