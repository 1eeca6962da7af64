"""Calls the real functions behind an agent's tools, outside a conversation."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import partial
from types import MethodType
from typing import Any, NamedTuple

from agenteval.agentside.targets.faults import describe_error
from agenteval.agentside.targets.serialization import is_unserializable_text
from agenteval.agentside.targets.signatures import is_context, parameters_of
from agenteval.agentside.targets.tool_proxy import to_json_result
from agenteval.agentside.targets.wrapped_functions import functions_in
from agenteval.conversation.deadlines import BlockedLoopError
from agenteval.conversation.user_code import DeadlineError, call_user_code, import_target
from agenteval.core.errors import Place
from agenteval.messages.chat import to_storable


class RealAnswer(NamedTuple):
    """What a real tool answered."""

    value: Any
    """The result as JSON, or the text of an error."""
    is_error: bool = False


class UncallableError(Exception):
    """Raised for a real tool that cannot be called, or whose answer cannot be used; the text is the
    reason."""


def find_function(name: str, target: str, base: str, place: Place | None = None) -> Callable[..., Any]:
    """Return the plain function that ``target`` names for the tool ``name``: a function, a bound method, or
    the author's function inside a framework's tool. ``base`` is the folder to which file paths are relative.
    Raise ``AuthorError`` if nothing is there, and ``UncallableError`` if it cannot be called on its own."""
    found = import_target(target, base, what=f"`intercept` '{name}'", place=place)
    if inspect.isclass(found):
        raise UncallableError(f"{target} is a class")
    if not (inspect.isfunction(found) or isinstance(found, MethodType)) and (inner := functions_in(found)):
        found = inner[0]
    if not callable(found):
        raise UncallableError(f"{target} is not a function")
    if _needs_object(target, base, found):
        raise UncallableError(f"{target} is a method, which needs an object")
    function: Callable[..., Any] = found
    return function


def _needs_object(target: str, base: str, found: Any) -> bool:
    location, _, attribute = target.rpartition(":")
    holder, _, last = attribute.rpartition(".")
    if not holder or isinstance(found, MethodType):
        return False
    owner = import_target(f"{location}:{holder}", base, what="`intercept`")
    return inspect.isclass(owner) and not isinstance(inspect.getattr_static(owner, last, None), staticmethod)


def parameter_names(function: Callable[..., Any]) -> frozenset[str] | None:
    """Return the names that arguments of a tool's function may have, or ``None`` if any other names are
    possible."""
    parameters = parameters_of(function)
    if parameters is None or any(each.kind in (each.VAR_KEYWORD, each.VAR_POSITIONAL) for each in parameters):
        return None
    return frozenset(each.name for each in parameters if not is_context(each))


async def call_real_function(
    function: Callable[..., Any], args: Mapping[str, Any], timeout_s: float
) -> RealAnswer:
    """Call a tool's function with recorded arguments. An exception is an answer, as it is to the agent. Raise
    ``UncallableError`` if the function does not take these arguments, takes longer than ``timeout_s``, or
    returns what JSON cannot represent."""
    call = _bind(function, deepcopy(dict(args)))
    try:
        value = await call_user_code(call, timeout_s=timeout_s)
    except (DeadlineError, BlockedLoopError):
        raise UncallableError(f"it did not answer within {timeout_s:g} s") from None
    except Exception as error:
        return RealAnswer(describe_error(error), is_error=True)
    made = to_storable(to_json_result(value))
    if is_unserializable_text(made):
        raise UncallableError(f"its answer is a {made}")
    return RealAnswer(made)


def _bind(function: Callable[..., Any], args: dict[str, Any]) -> Callable[[], Any]:
    """Return a call of the function. The recorded arguments have the names of its parameters."""
    positional: list[Any] = []
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return partial(function, **args)
    for each in signature.parameters.values():
        if each.kind is each.POSITIONAL_ONLY and each.name in args:
            positional.append(args.pop(each.name))
        elif each.kind is each.VAR_POSITIONAL and each.name in args:
            raise UncallableError(f"it takes any number of arguments (*{each.name})")
    try:
        signature.bind(*positional, **args)
    except TypeError as error:
        raise UncallableError(f"it does not take the recorded arguments: {error}") from None
    return partial(function, *positional, **args)
