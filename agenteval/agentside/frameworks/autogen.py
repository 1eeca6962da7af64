"""Run an AutoGen ``AssistantAgent``, or a multi-agent team, with a copy for each conversation.

AutoGen agents store their own history, so agents used as tools (``AgentTool``) are also copied."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..transcript import ToolCall, Transcript
from .seam import (
    LATER,
    MORE,
    Refused,
    Tool,
    Waits,
    adds_code,
    is_instance_of,
    kinds,
    may_reach,
    unsupported_version_error,
    walk_tree,
    with_partial,
)

if TYPE_CHECKING:
    from ..world import World

_TEAM = "autogen_agentchat.teams._group_chat._base_group_chat.BaseGroupChat"
_ANY = ("autogen_agentchat.agents._base_chat_agent.BaseChatAgent", _TEAM)
_AGENT = "autogen_agentchat.agents._assistant_agent.AssistantAgent"
_AGENT_TOOL = "autogen_agentchat.tools._agent.AgentTool"
_RUNNER_TOOL = "autogen_agentchat.tools._task_runner_tool.TaskRunnerTool"
_WORKBENCH = "autogen_core.tools._static_workbench.StaticWorkbench"
_EVENT = "autogen_agentchat.messages.BaseAgentEvent"
_NEEDED_ATTRIBUTES = ("_model_context", "_workbench", "_handoffs", "_system_messages")
_NEEDED_TEAM_ATTRIBUTES = (
    "_participants", "_group_chat_manager_name", "_base_group_chat_manager_class", "_termination_condition",
    "_max_turns", "_emit_team_events", "_message_factory",
)  # fmt: skip


class AutoGen:
    name = "AutoGen"
    package = "autogen-agentchat"
    supports = "0.7"

    def matches(self, obj: Any) -> bool:
        return is_instance_of(obj, *_ANY)

    def tools(self, obj: Any) -> list[Tool]:
        found: dict[str, Tool] = {}
        for agent in _agents(obj):
            for tool in _to_tools(agent):
                found.setdefault(tool.name, tool)
        return list(found.values())

    def runs_own_code(self, obj: Any) -> bool:
        return any(adds_code(each, "autogen_agentchat") for each in _all_parts(obj))

    def open(self, obj: Any, world: World, session: str, deps: Any) -> AutoGenConversation:
        for each in _all_parts(obj):
            is_team = _TEAM in kinds(each)
            needed = _NEEDED_TEAM_ATTRIBUTES if is_team else _NEEDED_ATTRIBUTES
            missing = next((name for name in needed if not hasattr(each, name)), None)
            if missing:
                raise unsupported_version_error(self, f"{type(each).__name__}.{missing}")
            if is_team and not getattr(each, "_embedded_runtime", True):
                what = f"the {type(each).__name__} has a runtime, which all conversations would share"
                raise Refused(what, "use a team without a runtime, or a function that creates a team")
            if not is_team and not hasattr(each._model_context, "_messages"):
                raise unsupported_version_error(self, f"{type(each._model_context).__name__}._messages")
        if deps is not None and deps is not LATER:
            raise Refused("an AutoGen agent does not accept `deps`", "remove `deps`")
        return AutoGenConversation(obj, world)


FRAMEWORK = AutoGen()


# ── agents and tools ─────────────────────────────────────────────────────────────────────────────


def _all_parts(obj: Any) -> list[Any]:
    """Return an agent or a team, along with all agents and teams that it uses as tools or members, directly
    or indirectly. Raise ``Refused`` for objects that this adapter cannot run."""
    return list(walk_tree(obj, _parts_of))


def _parts_of(obj: Any) -> list[Any]:
    if inspect.isclass(obj) or not is_instance_of(obj, _AGENT, _TEAM):
        kind = (
            f"the class {obj.__name__}" if inspect.isclass(obj) else f"an object of type {type(obj).__name__}"
        )
        what = f"unsupported AutoGen target: {kind}"
        remedy = "use an AssistantAgent, a team of them, or a function that runs the agent (docs/agents.md)"
        raise Refused(what, remedy)
    runners = [tool._task_runner for tool in _static_tools(obj) if _RUNNER_TOOL in kinds(tool)]
    return [*(getattr(obj, "_participants", None) or ()), *runners]


def _agents(obj: Any) -> list[Any]:
    return [each for each in _all_parts(obj) if _TEAM not in kinds(each)]


def _speakers(obj: Any) -> set[str]:
    """Return the names of the agents whose text is the answer. Agents used as tools are excluded."""
    if _TEAM not in kinds(obj):
        return {obj.name}
    return set().union(*map(_speakers, obj._participants))


def _benches(agent: Any) -> list[Any]:
    return list(getattr(agent, "_workbench", None) or ())


def _static_tools(agent: Any) -> Iterator[Any]:
    for bench in _benches(agent):
        if _WORKBENCH in kinds(bench):
            yield from bench._tools


def _to_tools(agent: Any) -> Iterator[Tool]:
    for bench in _benches(agent):
        if _WORKBENCH not in kinds(bench):
            yield MORE
            continue
        for tool in bench._tools:
            yield Tool(_name_in(bench, tool), tool.description or "", _parameters(tool))
            if may_reach(getattr(tool, "_func", None), FRAMEWORK.matches, "autogen_agentchat"):
                yield MORE


def _parameters(tool: Any) -> dict[str, Any] | None:
    try:
        return dict(tool.schema.get("parameters") or {})
    except Exception:  # an error in the author's arguments; the run will show it
        return None


def _name_in(bench: Any, tool: Any) -> str:
    """Return the name of a tool in a workbench, which may override the tool's original name."""
    override = getattr(bench, "_tool_overrides", {}).get(tool.name)
    return str(getattr(override, "name", None) or tool.name)


# ── conversation ─────────────────────────────────────────────────────────────────────────────────


class AutoGenConversation:
    def __init__(self, obj: Any, world: World) -> None:
        self._agent = _copy_agent(obj, {})
        self._world = world
        self._speakers = _speakers(obj)
        self._handoff_tools = {name for agent in _agents(obj) for name in agent._handoffs}

    async def reply(self, text: str) -> dict[str, Any]:
        received: list[Any] = []
        try:
            async for event in self._agent.run_stream(task=text):
                received.append(event)  # noqa: PERF401 - as it comes: the next one may be an exception
            for event in received:
                if type(event).__name__ == "HandoffMessage" and event.target not in self._speakers:
                    raise Waits(f"handoff to {event.target}, which does not exist")
        except Exception as error:
            with_partial(error, self._messages(received), _usage(received))
            raise
        return {"messages": self._messages(received), "usage": _usage(received), "agent": self._agent.name}

    def _messages(self, received: list[Any]) -> list[dict[str, Any]]:
        events = {type(each).__name__ for each in received if _EVENT in kinds(each)}
        for kind in sorted(events - _READ):
            self._world.note_unseen_calls(f"unsupported event '{kind}' from the agent")
        transcript = Transcript()
        for event in received:
            _write(transcript, event, self._speakers, self._handoff_tools)
        return transcript.to_openai()

    async def close(self) -> None:
        """Do nothing, because the model client belongs to the agent."""


def _copy_agent(obj: Any, seen: dict[int, Any]) -> Any:
    """Return a copy of an agent that shares no history with the original. Agents used as tools or members are
    also copied."""
    if id(obj) in seen:
        return seen[id(obj)]
    new = seen[id(obj)] = copy.copy(obj)
    if _TEAM in kinds(obj):
        return _rebuild_team(new, [_copy_agent(each, seen) for each in obj._participants])
    new._model_context = copy.copy(obj._model_context)
    new._model_context._messages = list(obj._model_context._messages)
    new._workbench = [_copy_workbench(each, seen) for each in _benches(obj)]
    return new


def _rebuild_team(team: Any, participants: list[Any]) -> Any:
    """Reinitialize a copied team with its original arguments."""
    from autogen_agentchat.teams import BaseGroupChat

    messages = team._message_factory
    BaseGroupChat.__init__(
        team,
        team.name,
        team.description,
        participants,
        team._group_chat_manager_name,
        team._base_group_chat_manager_class,
        copy.deepcopy(team._termination_condition),
        team._max_turns,
        emit_team_events=team._emit_team_events,
    )
    team._message_factory = messages
    return team


def _copy_workbench(bench: Any, seen: dict[int, Any]) -> Any:
    """Return a workbench in which agents used as tools are copies."""
    if _WORKBENCH not in kinds(bench) or not any(_RUNNER_TOOL in kinds(tool) for tool in bench._tools):
        return bench
    new = copy.copy(bench)
    new._tools = [_copy_tool(tool, seen) for tool in bench._tools]
    return new


def _copy_tool(tool: Any, seen: dict[int, Any]) -> Any:
    if _RUNNER_TOOL not in kinds(tool):
        return tool
    new = copy.copy(tool)
    new._task_runner = _copy_agent(tool._task_runner, seen)
    return new


# ── messages and usage ───────────────────────────────────────────────────────────────────────────

_READ = frozenset(
    (
        *("ToolCallRequestEvent", "ToolCallExecutionEvent", "MemoryQueryEvent", "ThoughtEvent"),
        *("ModelClientStreamingChunkEvent", "UserInputRequestedEvent", "SelectSpeakerEvent", "SelectorEvent"),
    )
)
"""The event types that are supported or that contain no calls."""


def _write(transcript: Transcript, event: Any, speakers: set[str], handoff_tools: set[str]) -> None:
    """Add an event from an agent, or from an agent that it uses as a tool. The text of the latter is omitted,
    because the calling agent passes the text on."""
    kind = type(event).__name__
    if kind == "ToolCallRequestEvent":
        _write_calls(transcript, event, handoff_tools)
    elif kind == "ToolCallExecutionEvent":
        for each in event.content:
            if each.name not in handoff_tools:
                transcript.result(each.call_id, each.content, error=bool(each.is_error))
    elif "autogen_agentchat.messages.BaseChatMessage" in kinds(event) and event.source in speakers:
        transcript.answer(event.to_text(), agent=event.source)


def _write_calls(transcript: Transcript, event: Any, handoff_tools: set[str]) -> None:
    calls = [
        ToolCall(each.id, each.name, each.arguments)
        for each in event.content
        if each.name not in handoff_tools
    ]
    if calls:
        transcript.answer(None, calls, agent=event.source)


def _usage(received: list[Any]) -> list[dict[str, int]] | None:
    """Return the token usage that each reply in a turn reported, or ``None`` if no model reported any usage.
    Replies of agents used as tools are included."""
    usages = [event.models_usage for event in received if getattr(event, "models_usage", None) is not None]
    names = ("prompt_tokens", "completion_tokens")
    return [{name: getattr(each, name) for name in names} for each in usages] or None
