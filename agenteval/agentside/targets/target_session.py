"""Call the agent under test, either in agenteval's process or in the agent's own process."""

from __future__ import annotations

import copy
import inspect
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from .. import hooks
from ..frameworks.results import extract_answer
from ..world import World
from .target_resolution import (
    CONTEXT,
    HISTORY,
    MESSAGES,
    SESSION,
    TEXT,
    ResolvedTarget,
    TargetRefusal,
    deps_take_context,
    resolve_target,
)
from .tool_proxy import ToolProxy

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator

    from ..world import ActiveTurn
    from .target_resolution import Recognizer


class NotAnAgentError(TypeError):
    """Raised when a factory returns an object that is not an agent, or when an agent requests tool calls
    although it cannot receive their results."""


class TargetRefusedError(Exception):
    """Raised when a factory returns a framework object that cannot be run. The author is at fault."""

    agenteval_kind = "author"


class TargetSession:
    """A target that acts as the agent in one conversation.

    An instance of a class is created when the first message arrives. The author's constructor runs in the
    same place as the agent and under the same deadline."""

    def __init__(
        self,
        agent: ResolvedTarget,
        recognize: Recognizer = lambda _: None,
        make_deps: Callable[..., Any] | None = None,
        world: World | None = None,
    ) -> None:
        """Prepare the session. ``recognize`` is described in ``resolve_target``. ``make_deps`` creates the
        dependencies of a framework object. ``world`` is the conversation's tool world."""
        self.world = world or World()
        self._agent = agent
        self._recognise = recognize
        self._make_deps = make_deps
        self._opened: Any = None
        self._entry_point: Callable[..., Any] | None = None
        self._session_id = uuid4().hex  # unique across runs, because the agent may store data under it
        self._pieces: list[Any] = []
        self._history: list[dict[str, Any]] | None = None

    def entry(self) -> Callable[[list[dict[str, Any]], Any], Any]:
        """Return the agent as a function of messages and context. The function is async if the agent is
        async. In either case, the return value may be an awaitable."""
        if self._agent.is_async:

            async def ask(messages: list[dict[str, Any]], context: Any) -> Any:
                return await _await_fully(self._collect_answer(await self._call(messages, context)))

            return ask
        return self._ask

    def _ask(self, messages: list[dict[str, Any]], context: Any) -> Any:
        value = self._collect_answer(self._call(messages, context))
        return self._await_answer(value) if inspect.isawaitable(value) else value

    async def _await_answer(self, value: Any) -> Any:
        return await _await_fully(self._collect_answer(await value))

    def _call(self, messages: list[dict[str, Any]], context: Any) -> Any:
        if self._history is None:  # what precedes the first message of the conversation
            self._history = messages[: _latest_user_index(messages)]
        if self._entry_point is None and self._agent.lifecycle == "factory":
            made = self._agent.owner()
            if inspect.isawaitable(made):
                return self._call_after(made, messages, context)
            self._adopt(made, context)
        elif self._entry_point is None:
            self._entry_point = (
                self._open(context)
                if self._agent.lifecycle == "framework"
                else _make_entry_point(self._agent)
            )
        assert self._entry_point is not None
        if self._history and (refused := self._agent.no_history):
            what = f"{self._agent.name} {refused.what}, so it cannot be given the scenario's `history`"
            raise TargetRefusedError(f"{what} — {refused.remedy}")
        self.world.target = self._entry_point
        places, named = self._arguments(messages, context)
        return self._entry_point(*places, **named)

    def _open(self, context: Any) -> Callable[..., Any]:
        """Open a conversation with a framework object."""
        make_deps = self._make_deps
        if make_deps is not None and deps_take_context(make_deps):
            make_deps = partial(make_deps, context)
        opened = self._opened = self._agent.owner.opened(self._session_id, make_deps, self.world)

        async def reply(text: str, _context: Any) -> Any:
            history, self._history = self._history, []
            return await (opened.reply(text, history) if history else opened.reply(text))

        return reply

    @property
    def is_of_framework(self) -> bool:
        """True if a framework adapter is known to run the agent. The agent of a factory is unknown until the
        factory has created it."""
        return self._agent.lifecycle == "framework"

    @property
    def has_open_conversation(self) -> bool:
        """True if there is a conversation to close."""
        return self._opened is not None

    @contextmanager
    def turn(self, context: Any) -> Iterator[ActiveTurn]:
        """Wrap one call to the agent. Anything started inside the call is part of the conversation."""
        context.on_direct_call = self.world.record_direct_call
        try:
            with self.world.turn(ToolProxy(context)) as turn:
                yield turn
        finally:
            for what in hooks.list_failures():
                self.world.record_fault(what)

    async def close(self) -> None:
        """End the conversation."""
        self.world.close()
        if self._opened is not None:
            await self._opened.close()

    async def _call_after(self, making: Any, messages: list[dict[str, Any]], context: Any) -> Any:
        self._adopt(await making, context)
        return await _await_fully(self._call(messages, context))

    def _adopt(self, made: Any, context: Any) -> None:
        """Use the object that the factory returned as the agent from now on. No other code refers to the
        object."""
        resolved = resolve_target(made, "…", self._recognise, has_deps=self._make_deps is not None)
        name = self._agent.name
        if isinstance(resolved, TargetRefusal) and self._recognise(made):
            raise TargetRefusedError(" — ".join(filter(None, resolved)))
        if isinstance(resolved, TargetRefusal) or resolved.lifecycle == "factory":
            what = (
                resolved.what
                if isinstance(resolved, TargetRefusal)
                else "it returned a function without parameters"
            )
            what = f"{name}() is called without arguments to create the agent; {what}"
            if type(made).__module__ == "builtins" or callable(made):
                raise NotAnAgentError(what)
            raise TargetRefusedError(
                f"{what} — return the method that takes a message: return {type(made).__name__}(…).chat"
            )
        self._agent = resolved
        if resolved.lifecycle == "framework":
            self._entry_point = self._open(context)
            return
        owner = resolved.owner() if resolved.lifecycle == "class" else resolved.owner
        self._entry_point = getattr(owner, resolved.method) if resolved.method else owner

    def _arguments(self, messages: list[dict[str, Any]], context: Any) -> tuple[list[Any], dict[str, Any]]:
        self._pieces = []
        gets = self._agent.received_roles
        latest = _latest_user_index(messages)
        if TEXT in gets and latest != len(messages) - 1:
            what = f"{self._agent.name} requested tool calls but receives only the text of a message"
            raise NotAnAgentError(f"{what}: add a `messages` parameter so that it receives the results")
        values = {
            TEXT: messages[latest].get("content") if TEXT in gets else "",
            MESSAGES: messages,
            HISTORY: messages[:latest],
            SESSION: self._session_id,
            CONTEXT: context,
        }
        roles = self._agent.binding.roles
        named = {role.parameter: values[role.kind] for role in roles if role.parameter}
        return [values[role.kind] for role in roles if not role.parameter], named

    def _collect_answer(self, value: Any) -> Any:
        """Return the items of a generator as one answer (for an async generator, a coroutine that returns the
        answer), or the answer in a framework result. Return anything else unchanged."""
        is_growing = self._is_growing
        if inspect.isgenerator(value):
            return _collect(value, is_growing, self._pieces)
        if inspect.isasyncgen(value):
            return _collect_async(value, is_growing, self._pieces)
        return extract_answer(value)

    @property
    def partial_answer(self) -> Any:
        """The items that an unfinished generator has yielded so far, in the form of an answer; ``None`` if
        there is no such generator."""
        found = list(self._pieces)
        return _join_pieces(found, self._is_growing) if found else None

    @property
    def _is_growing(self) -> bool:
        return HISTORY in self._agent.received_roles


def _latest_user_index(messages: list[dict[str, Any]]) -> int:
    return max((i for i, each in enumerate(messages) if each.get("role") == "user"), default=-1)


async def _await_fully(value: Any) -> Any:
    """Await the return value of an async function if the value is itself awaitable."""
    return await value if inspect.isawaitable(value) else value


def _make_entry_point(agent: ResolvedTarget) -> Callable[..., Any]:
    """Return the callable for one conversation."""
    owner = agent.owner
    if agent.lifecycle == "class":
        owner = owner()
    elif agent.lifecycle == "copied":
        owner = copy.deepcopy(owner)
    called: Callable[..., Any] = getattr(owner, agent.method) if agent.method else owner
    return called


async def _collect_async(pieces: AsyncIterator[Any], is_growing: bool, found: list[Any]) -> Any:
    async for piece in pieces:
        found.append(piece)  # noqa: PERF401 - as it comes: the next one may be an exception
    return _join_pieces(found, is_growing)


def _collect(pieces: Iterable[Any], is_growing: bool, found: list[Any]) -> Any:
    found.extend(pieces)
    return _join_pieces(found, is_growing)


def _join_pieces(found: list[Any], is_growing: bool) -> Any:
    """Join the pieces if they are text. Otherwise, return the items as the list of the turn's messages.

    Chat functions for user interfaces, which accept a message and a history, yield the whole answer so far
    each time. For such functions, the last piece is the complete answer."""
    if not all(isinstance(piece, str) for piece in found):
        return found
    if is_growing and len(found) > 1 and all(b.startswith(a) for a, b in zip(found, found[1:])):
        return found[-1]
    return "".join(found)
