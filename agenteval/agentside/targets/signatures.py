"""What the signature of the author's code says."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_CONTEXT = re.compile(r"\b(Agent|Tool)?Context\b")


def parameters_of(function: Callable[..., Any], *, all_kinds: bool = False) -> list[inspect.Parameter] | None:
    """The parameters that can be given one value each (or all of them); ``None`` if it does not say."""
    try:
        found = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None
    return found if all_kinds else [p for p in found if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]


def takes_context(function: Callable[..., Any]) -> bool:
    """Whether ``function`` is called with a context as its second argument: if it has a second parameter
    that is not an option of its own, or if it does not say. An option has a default, and neither name nor
    annotation tells of a context."""
    parameters = parameters_of(function, all_kinds=True)
    if parameters is None:
        return True
    places = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if len(places) < 2:
        return any(p.kind is p.VAR_POSITIONAL for p in parameters)
    second = places[1]
    return second.default is second.empty or is_context(second)


def is_context(parameter: inspect.Parameter) -> bool:
    """By its name or annotation."""
    return parameter.name.strip("_") in ("ctx", "context") or bool(_CONTEXT.search(str(parameter.annotation)))


def misfit(function: Callable[..., Any], arguments: int, by_name: Iterable[str] = ()) -> str:
    """The signature of ``function`` if it cannot be called with so many arguments by position and these by
    name; empty if it can, or if it does not say. What a decorator wraps is the decorator's business."""
    try:
        signature = inspect.signature(function, follow_wrapped=False)
    except (TypeError, ValueError):
        return ""
    try:
        signature.bind(*range(arguments), **dict.fromkeys(by_name))
    except TypeError:
        return f"{getattr(function, '__name__', type(function).__name__)}{signature}"
    return ""


def is_async(function: Callable[..., Any]) -> bool:
    """Whether calling ``function`` gives a coroutine; of a class: whether calling its instances does."""
    owner = function if inspect.isclass(function) else type(function)
    call = getattr(owner, "__call__", None)  # noqa: B004 - what is asked is whether it is async
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)
