"""Read the signatures in the author's code."""

from __future__ import annotations

import inspect
import re
from functools import partial
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_CONTEXT = re.compile(r"\b(Agent|Tool)?Context\b")


def parameters_of(function: Callable[..., Any]) -> list[inspect.Parameter] | None:
    """Return the parameters of a function, or ``None`` if the function has no readable signature."""
    signature = _signature_of(function)
    return list(signature.parameters.values()) if signature else None


def _signature_of(function: Callable[..., Any], *, is_outermost: bool = False) -> inspect.Signature | None:
    """Return the signature of a function, or ``None`` if the signature cannot be read. If ``is_outermost`` is
    True, ignore the function that a decorator wraps."""
    try:
        return inspect.signature(function, follow_wrapped=not is_outermost)
    except (TypeError, ValueError):
        return None


def takes_context(function: Callable[..., Any]) -> bool:
    """Return whether ``function`` is called with a context as its second argument.

    This is the case if ``function`` has no readable signature, or if it has a second parameter that is not an
    unrelated option. A parameter is an unrelated option if it has a default and neither its name nor its
    annotation refers to a context."""
    parameters = parameters_of(function)
    if parameters is None:
        return True
    places = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if len(places) < 2:
        return any(p.kind is p.VAR_POSITIONAL for p in parameters)
    second = places[1]
    return second.default is second.empty or is_context(second)


def is_context(parameter: inspect.Parameter) -> bool:
    """Return whether a parameter accepts the context, according to its name or annotation."""
    return parameter.name.strip("_") in ("ctx", "context") or bool(_CONTEXT.search(str(parameter.annotation)))


def find_signature_mismatch(function: Callable[..., Any], arguments: int, by_name: Iterable[str] = ()) -> str:
    """Return the signature of ``function`` if it cannot be called with the given number of positional
    arguments and the keywords in ``by_name``.

    Return an empty string if the call is possible, or if ``function`` has no readable signature."""
    if signature := _signature_of(function, is_outermost=True):
        try:
            signature.bind(*range(arguments), **dict.fromkeys(by_name))
        except TypeError:
            return format_signature(function)
    return ""


def format_signature(function: Callable[..., Any]) -> str:
    """Format the signature of a callable as ``answer(message, user)``."""
    signature = _signature_of(function, is_outermost=True) or _signature_of(function)
    return f"{getattr(function, '__name__', type(function).__name__)}{signature or '(…)'}"


def underlying_function(function: Any) -> Any:
    """Return the innermost function of a callable, which may be inside a partial, a bound method, a callable
    object, or decorators that declare the wrapped function. Return anything else unchanged."""
    inner = inspect.unwrap(getattr(function, "__func__", function))
    if isinstance(inner, partial):
        return underlying_function(inner.func)
    if isinstance(inner, FunctionType):
        return inner
    call_method = getattr(type(inner), "__call__", None)  # noqa: B004 - what is asked is where it is written
    found = inspect.unwrap(call_method) if call_method else inner
    return found if isinstance(found, FunctionType) else inner


def source_location(function: Callable[..., Any]) -> str:
    """Return the location where a function is defined, formatted as `` (agent.py:12)``, or an empty string if
    the location is unknown."""
    code = getattr(underlying_function(function), "__code__", None)
    return f" ({Path(code.co_filename).name}:{code.co_firstlineno})" if code else ""


def is_async(function: Callable[..., Any]) -> bool:
    """Return whether a call to ``function`` returns a coroutine. For a class, return whether a call to an
    instance returns a coroutine."""
    owner = function if inspect.isclass(function) else type(function)
    call = getattr(owner, "__call__", None)  # noqa: B004 - what is asked is whether it is async
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)
