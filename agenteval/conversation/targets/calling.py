"""How code of the author's is called. For the agent under test this is decided here and nowhere else, in
agenteval's process and in the agent's own."""

from __future__ import annotations

import inspect
import re
from types import MethodType
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable

_CONTEXT = re.compile(r"\b(Agent|Tool)?Context\b")


def takes_context(function: Callable[..., Any]) -> bool:
    """Whether ``function`` is called with a context as its second argument: if it has a second parameter
    that is not an option of its own, or if it does not say. An option has a default, and neither name nor
    annotation tells of a context."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return True
    places = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if len(places) < 2:
        return any(p.kind is p.VAR_POSITIONAL for p in parameters)
    second = places[1]
    is_named = second.name.strip("_") in ("ctx", "context")
    return second.default is second.empty or is_named or bool(_CONTEXT.search(str(second.annotation)))


def misfit(function: Callable[..., Any], arguments: int) -> str:
    """The signature of ``function`` if it cannot be called with so many arguments; empty if it can, or if
    it does not say. What a decorator wraps is the decorator's business."""
    try:
        signature = inspect.signature(function, follow_wrapped=False)
    except (TypeError, ValueError):
        return ""
    try:
        signature.bind(*range(arguments))
    except TypeError:
        return f"{getattr(function, '__name__', type(function).__name__)}{signature}"
    return ""


def is_async(function: Callable[..., Any]) -> bool:
    """Whether calling ``function`` gives a coroutine; of a class: whether calling its instances does."""
    owner = function if inspect.isclass(function) else type(function)
    call = getattr(owner, "__call__", None)  # noqa: B004 - what is asked is whether it is async
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


# ── the agent under test ─────────────────────────────────────────────────────────────────────────


class Refusal(NamedTuple):
    """Why a target is not an agent, and what to do."""

    what: str
    remedy: str


def refusal_of(target: Any) -> Refusal | None:
    """Why a target cannot be called as an agent, where it or its signature tells."""
    if not callable(target):
        return Refusal(f"the agent is a {type(target).__name__}; expected a function or a class", "")
    entry: Callable[..., Any] = target
    if inspect.isclass(target):
        if not any("__call__" in vars(cls) for cls in target.__mro__):
            return Refusal(f"the agent class {target.__name__} has no __call__", "")
        if shape := misfit(target, 0):
            what = f"the agent's class is called without arguments, and cannot be: {shape}"
            return Refusal(
                what, "give each parameter of its __init__ a default, or name a function that makes it"
            )
        method = inspect.getattr_static(target, "__call__")
        if not inspect.isfunction(method):
            return None
        entry = MethodType(method, object())
    if shape := misfit(entry, 1 + takes_context(entry)):
        what = f"the agent cannot be called with messages and ctx: {shape}"
        return Refusal(
            what, "let it take messages, or messages and ctx, by position; give other parameters a default"
        )
    return None


class Played:
    """A target as one conversation's agent. An instance of a class is made when the first message comes,
    where the author's code runs, under the same deadline."""

    def __init__(self, target: Callable[..., Any]) -> None:
        self._target = target
        self._instance: Callable[..., Any] | None = None if inspect.isclass(target) else target

    def entry(self) -> Callable[[list[dict[str, Any]], Any], Any]:
        """The agent as a function of messages and context, async as the agent is. What it returns may have to
        be awaited all the same."""
        if is_async(self._target):

            async def ask(messages: list[dict[str, Any]], context: Any) -> Any:
                return await self._call(messages, context)

            return ask
        return lambda messages, context: _collected(self._call(messages, context))

    def _call(self, messages: list[dict[str, Any]], context: Any) -> Any:
        if self._instance is None:
            self._instance = self._target()
        agent = self._instance
        return agent(messages, context) if takes_context(agent) else agent(messages)


def _collected(value: Any) -> Any:
    """What a generator yields, as one answer; a coroutine for an async one. All else as it is."""
    if inspect.isgenerator(value):
        return _joined(value)
    return _awaited(value) if inspect.isasyncgen(value) else value


async def _awaited(pieces: AsyncIterator[Any]) -> Any:
    return _joined([piece async for piece in pieces])


def _joined(pieces: Iterable[Any]) -> Any:
    """Pieces of a text are one text; all else is the list of the turn's messages."""
    found = list(pieces)
    return "".join(found) if all(isinstance(piece, str) for piece in found) else found
