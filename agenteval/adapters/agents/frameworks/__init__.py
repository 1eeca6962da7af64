"""Agents that are objects of a framework, as they are: their tools are answered by the scenario.

To add one: its module here, with a ``FRAMEWORK`` (see ``seam``); a line in ``MODULES``; an example under
``scenarios/frameworks/``, which ``.ci/frameworks.py`` runs.
"""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from .seam import (
    LATER,
    MORE,
    Answer,
    Outside,
    Refused,
    Tool,
    Waits,
    World,
    kinds,
    outside,
    plain_agent,
    version_of,
    with_partial,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from .seam import Conversation, Framework

__all__ = [
    "MODULES",
    "MORE",
    "Answer",
    "Opened",
    "Recognised",
    "Refused",
    "Tool",
    "Waits",
    "framework_of",
    "kinds",
    "outside",
    "plain_agent",
    "recognised",
    "with_partial",
]

MODULES = (
    "pydantic_ai",
    "langgraph",
    "openai_agents",
    "google_adk",
    "agent_framework",
    "smolagents",
    "strands",
    "llamaindex",
    "autogen",
    "crewai",
)
"""Each one that knows a framework. They are asked in this order; importing them imports no framework."""


def framework_of(obj: Any) -> Framework | None:
    """The framework that an object, or the instances of a class, are of."""
    if all(kind.startswith("builtins.") for kind in kinds(obj)):
        return None  # a function
    for name in MODULES:
        framework: Framework = import_module(f"{__name__}.{name}").FRAMEWORK
        if framework.matches(obj):
            return framework
    return None


class Recognised(NamedTuple):
    """An object of a framework."""

    framework: Framework
    obj: Any

    @property
    def name(self) -> str:
        """The framework, with the version that is installed."""
        version = version_of(self.framework.package)
        told = f"{self.framework.package} {version}".strip()
        return f"{self.framework.name} ({told})"

    def tools(self) -> list[Tool]:
        """Raises ``Refused``."""
        return list(self.framework.tools(self.obj))

    def require(self, *, has_deps: bool) -> None:
        """Raises ``Refused`` for what keeps it from being played."""
        if inspect.isclass(self.obj):
            what = f"the agent is the class {self.obj.__name__} of {self.framework.name}"
            raise Refused(what, "name an object of it, or a function that makes one: def make_agent(): …")
        world = World()
        try:
            conversation = self.framework.open(self.obj, world, "", LATER if has_deps else None)
            _finished(conversation.close())
        finally:
            world.close()

    def opened(self, session: str, make_deps: Callable[[], Any] | None) -> Opened:
        return Opened(self, session, make_deps)


def recognised(obj: Any) -> Recognised | None:
    """An object of a framework that is known; ``None`` for all else. Asked before whether it can be called:
    calling such an object would run its real tools."""
    framework = framework_of(obj)
    return Recognised(framework, obj) if framework else None


def _finished(coroutine: Any) -> None:
    """Runs what has nothing to wait for."""
    try:
        coroutine.send(None)
    except StopIteration:
        return
    coroutine.close()


class Opened:
    """One conversation with an object of a framework. Nothing of it happens before its first turn."""

    def __init__(self, known: Recognised, session: str, make_deps: Callable[[], Any] | None) -> None:
        self._known = known
        self._session = session
        self._make_deps = make_deps
        self._world = World()
        self._tools: set[str] | None = None
        self._conversation: Conversation | None = None

    async def reply(self, text: str, calls: Any) -> dict[str, Any]:
        """The messages and the usage of a turn. Raises ``Outside`` where what the agent did in it proves
        nothing, whatever else it did."""
        self._world.begin(calls)
        try:
            conversation = self._conversation = self._conversation or await self._open()
            told = await conversation.reply(text)
        except Exception as error:
            if fault := self._world.take_fault():
                raise _kept(Outside(fault), getattr(error, "agenteval_partial", {})) from error
            raise
        if fault := self._world.take_fault():
            raise _kept(Outside(fault), told)
        messages = _named(told)
        unknown = sorted(_called(messages) - self._world.asked - self._tools) if self._tools else []
        return {"messages": messages, "usage": told.get("usage"), "unknown_tools": unknown}

    async def _open(self) -> Conversation:
        deps = self._make_deps() if self._make_deps else None
        deps = await deps if inspect.isawaitable(deps) else deps
        tools = {tool.name for tool in self._known.tools()}
        self._tools = None if "" in tools else tools
        return self._known.framework.open(self._known.obj, self._world, self._session, deps)

    async def close(self) -> None:
        self._world.close()
        if self._conversation is not None:
            await self._conversation.close()


def _kept(error: Outside, told: dict[str, Any]) -> Outside:
    with_partial(error, told.get("messages") or [], told.get("usage"))
    return error


def _called(messages: list[dict[str, Any]]) -> set[str]:
    """The tools that messages in OpenAI's format call."""
    calls = [call for each in messages for call in each.get("tool_calls") or ()]
    return {call["function"]["name"] for call in calls if isinstance(call.get("function"), dict)}


def _named(told: dict[str, Any]) -> list[dict[str, Any]]:
    """The messages, each of the agent's with who speaks."""
    agent = told.get("agent")
    if not agent:
        return list(told["messages"])
    return [
        {"agent": agent, **each} if each.get("role") == "assistant" and not each.get("name") else each
        for each in told["messages"]
    ]
