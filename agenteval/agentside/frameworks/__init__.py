"""Run agents that are defined as framework objects, such as those of LangGraph or CrewAI, without changing
the agents. The scenario answers their tool calls.

To add a framework, add a module with a ``FRAMEWORK`` (see ``seam``) to this package, a line to
``registry.BUILT_IN``, a line to ``pyproject.toml``, and an example below ``scenarios/frameworks/``, which
``.ci/frameworks.py`` runs. Adapters in other packages use the exports of this package."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, NamedTuple

from ..transcript import ToolCall, Transcript
from ..world import ToolAnswer, World, untracked_call_error
from .call_marks import ids_of, iter_calls, mark_calls
from .registry import framework_of
from .seam import (
    LATER,
    MORE,
    Refused,
    Tool,
    Waits,
    hints_of,
    kinds,
    version_of,
    with_partial,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .seam import Framework, FrameworkConversation

__all__ = [
    "LATER",
    "MORE",
    "FrameworkObject",
    "OpenedConversation",
    "Refused",
    "Tool",
    "ToolAnswer",
    "ToolCall",
    "Transcript",
    "Waits",
    "framework_of",
    "hints_of",
    "kinds",
    "recognize_object",
    "untracked_call_error",
    "with_partial",
]


class FrameworkObject(NamedTuple):
    """An agent defined by a framework object."""

    framework: Framework
    obj: Any

    @property
    def name(self) -> str:
        """The name of the framework and its installed version."""
        version = version_of(self.framework.package)
        package = f"{self.framework.package} {version}".strip()
        return f"{self.framework.name} ({package})"

    def tools(self) -> list[Tool]:
        """Return the agent's tools. Raise ``Refused`` if the object cannot be run."""
        return list(self.framework.tools(self.obj))

    def lists_tools(self) -> bool:
        """Return whether all calls by the agent are observed, so that a turn without recorded calls really
        had none. This requires that all tools are known before a run and that only the framework runs them.
        """
        is_known = all(tool.name for tool in self.tools())
        return is_known and not self.framework.runs_own_code(self.obj)

    def no_history(self) -> str:
        """Return why a conversation cannot continue from earlier messages, or an empty string if it can."""
        refuse = getattr(self.framework, "no_history", None)
        return str(refuse(self.obj)) if refuse else "keeps its earlier turns in a session of its own"

    def require(self, *, has_deps: bool) -> None:
        """Raise ``Refused`` if the object cannot be run."""
        if inspect.isclass(self.obj):
            what = f"the target is the {self.framework.name} class {self.obj.__name__}, not an instance of it"
            raise Refused(what, "use an instance, or a function that creates one: `def make_agent(): …`")
        world = World()
        try:
            conversation = self.framework.open(self.obj, world, "", LATER if has_deps else None)
            _run_to_end(conversation.close())
        finally:
            world.close()

    def opened(self, session: str, make_deps: Callable[[], Any] | None, world: World) -> OpenedConversation:
        return OpenedConversation(self, session, make_deps, world)


def recognize_object(obj: Any) -> FrameworkObject | None:
    """Return an object of a known agent framework as a ``FrameworkObject``, or ``None`` for anything else.

    Call this before checking whether the object is callable, because calling the object would run its real
    tools."""
    framework = framework_of(obj)
    return FrameworkObject(framework, obj) if framework else None


def _run_to_end(coroutine: Any) -> None:
    """Run a coroutine that never suspends."""
    try:
        coroutine.send(None)
    except StopIteration:
        return
    coroutine.close()


class OpenedConversation:
    """A conversation with a framework object. Nothing is started before the first turn."""

    def __init__(
        self,
        framework_object: FrameworkObject,
        session: str,
        make_deps: Callable[[], Any] | None,
        world: World,
    ) -> None:
        self._object = framework_object
        self._session = session
        self._make_deps = make_deps
        self._world = world
        self._tools: set[str] | None = None
        self._hosted: set[str] = set()
        self._lists_tools = False
        self._conversation: FrameworkConversation | None = None

    async def reply(self, text: str, history: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
        """Return the messages and the token usage of a turn, along with the known facts about the calls in
        the messages. ``history`` are the messages before the conversation, with its first turn."""
        try:
            conversation = self._conversation = self._conversation or await self._open()
            if history:
                conversation.load_history(list(history))  # type: ignore[attr-defined]  # optional
            return self._build_reply(await conversation.reply(text))
        except Exception as error:
            partial = getattr(error, "agenteval_partial", None)
            reply = self._build_reply(partial or {})
            if partial is not None:
                with_partial(error, **reply)
            raise

    def _build_reply(self, turn: dict[str, Any]) -> dict[str, Any]:
        messages, unplaced = _with_agent_names(turn), self._world.take_unseen_calls()
        elsewhere = set(turn.get("elsewhere", ()))
        called = {
            call["function"]["name"] for call in iter_calls(messages) if call.get("id") not in elsewhere
        }
        unknown = {*turn.get("unknown", ()), *(called - self._tools if self._tools else ())}
        unknown -= self._world.called_tools
        elsewhere.update(ids_of(messages, {*unknown, *self._hosted}))
        return {
            "messages": mark_calls(messages, list(self._world.calls_so_far), elsewhere),
            "usage": turn.get("usage"),
            "unknown_tools": sorted(unknown),
            "lists_tools": self._lists_tools,
            "unplaced": unplaced,
        }

    async def _open(self) -> FrameworkConversation:
        framework = self._object.framework
        deps = self._make_deps() if self._make_deps else None
        deps = await deps if inspect.isawaitable(deps) else deps
        tools = self._object.tools()
        names = {tool.name for tool in tools}
        self._hosted = {tool.name for tool in tools if tool.hosted}
        self._tools = None if MORE.name in names else names
        self._lists_tools = self._object.lists_tools()
        return framework.open(self._object.obj, self._world, self._session, deps)

    async def close(self) -> None:
        if self._conversation is not None:
            await self._conversation.close()


def _with_agent_names(turn: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the messages with the agent's name added to each message that the agent wrote."""
    agent, messages = turn.get("agent"), list(turn.get("messages") or ())
    if not agent:
        return messages
    return [
        {"agent": agent, **each} if each.get("role") == "assistant" and not each.get("name") else each
        for each in messages
    ]
