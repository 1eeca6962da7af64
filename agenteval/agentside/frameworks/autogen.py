"""An ``AssistantAgent`` of AutoGen: a copy for each conversation, with a model context and tools of its own.

Agents of AutoGen keep their history inside. The copies of tools keep the class of the tools, so that the
framework treats them as ever; agents as tools (``AgentTool``) are copied with their agent.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .seam import LATER, MORE, Refused, Tool, Waits, adds_code, kinds, unsupported, with_partial

if TYPE_CHECKING:
    from ..world import World

_ANY = (
    "autogen_agentchat.agents._base_chat_agent.BaseChatAgent",
    "autogen_agentchat.teams._group_chat._base_group_chat.BaseGroupChat",
)
_AGENT = "autogen_agentchat.agents._assistant_agent.AssistantAgent"
_AGENT_TOOL = "autogen_agentchat.tools._agent.AgentTool"
_RUNNER_TOOL = "autogen_agentchat.tools._task_runner_tool.TaskRunnerTool"
_STREAM_TOOL = "autogen_core.tools._base.BaseStreamTool"
_WORKBENCH = "autogen_core.tools._static_workbench.StaticWorkbench"
_EVENT = "autogen_agentchat.messages.BaseAgentEvent"
_HELD = ("_model_context", "_workbench", "_handoffs", "_system_messages")


class AutoGen:
    name = "AutoGen"
    package = "autogen-agentchat"
    supports = "0.7"

    def matches(self, obj: Any) -> bool:
        return any(kind in _ANY for kind in kinds(obj))

    def tools(self, obj: Any) -> list[Tool]:
        found: dict[str, Tool] = {}
        for agent in _agents(obj):
            for told in _told(agent):
                found.setdefault(told.name, told)
        return list(found.values())

    def runs_own_code(self, obj: Any) -> bool:
        return any(adds_code(agent, "autogen_agentchat") for agent in _agents(obj))

    def prompt(self, obj: Any) -> str | None:
        held = getattr(obj, "_system_messages", None)
        return "\n".join(each.content for each in held) if held else None

    def open(self, obj: Any, world: World, session: str, deps: Any) -> _Conversation:
        for agent in _agents(obj):
            lacks = next((name for name in _HELD if not hasattr(agent, name)), None)
            if lacks:
                raise unsupported(self, f"AssistantAgent.{lacks}")
            if not hasattr(agent._model_context, "_messages"):
                raise unsupported(self, f"{type(agent._model_context).__name__}._messages")
        if deps is not None and deps is not LATER:
            raise Refused("an agent of AutoGen takes no deps", "remove deps")
        return _Conversation(obj, world)


FRAMEWORK = AutoGen()


# ── what there is ────────────────────────────────────────────────────────────────────────────────


def _agents(obj: Any) -> list[Any]:
    """An agent and those that it has as tools; each once. Raises ``Refused`` for what this does not play."""
    waiting: list[Any] = [obj]
    found: list[Any] = []
    while waiting:
        agent = waiting.pop(0)
        if inspect.isclass(agent) or _AGENT not in kinds(agent):
            kind = f"the class {agent.__name__}" if inspect.isclass(agent) else f"a {type(agent).__name__}"
            what = f"{kind} of AutoGen is not played: only objects of AssistantAgent are"
            raise Refused(what, "name an AssistantAgent, or write a function that runs it (docs/agents.md)")
        if not any(agent is each for each in found):
            found.append(agent)
            waiting += [tool._task_runner for tool in _held_tools(agent) if _RUNNER_TOOL in kinds(tool)]
    return found


def _benches(agent: Any) -> list[Any]:
    return list(getattr(agent, "_workbench", None) or ())


def _held_tools(agent: Any) -> Iterator[Any]:
    for bench in _benches(agent):
        if _WORKBENCH in kinds(bench):
            yield from bench._tools


def _told(agent: Any) -> Iterator[Tool]:
    for bench in _benches(agent):
        if _WORKBENCH not in kinds(bench):
            yield MORE
            continue
        for tool in bench._tools:
            if _RUNNER_TOOL not in kinds(tool):
                yield Tool(_name_in(bench, tool), tool.description or "", _parameters(tool))


def _parameters(tool: Any) -> dict[str, Any] | None:
    try:
        return dict(tool.schema.get("parameters") or {})
    except Exception:  # of the author's arguments; the run will tell
        return None


def _name_in(bench: Any, tool: Any) -> str:
    """A workbench may give a tool another name."""
    override = getattr(bench, "_tool_overrides", {}).get(tool.name)
    return str(getattr(override, "name", None) or tool.name)


# ── one conversation ─────────────────────────────────────────────────────────────────────────────


class _Conversation:
    def __init__(self, obj: Any, world: World) -> None:
        self._agent = _copied(obj, world, {})
        self._world = world
        self._own = {name for agent in _agents(obj) for name in agent._handoffs}

    async def reply(self, text: str) -> dict[str, Any]:
        heard: list[Any] = []
        try:
            async for event in self._agent.run_stream(task=text):
                heard.append(event)  # noqa: PERF401 - as it comes: the next one may be an exception
            for event in heard:
                if type(event).__name__ == "HandoffMessage":
                    raise Waits(f"hand-off to {event.target}, who is not there")
        except Exception as error:
            with_partial(error, self._messages(heard), _usage(heard))
            raise
        return {"messages": self._messages(heard), "usage": _usage(heard), "agent": self._agent.name}

    def _messages(self, heard: list[Any]) -> list[dict[str, Any]]:
        events = {type(each).__name__ for each in heard if _EVENT in kinds(each)}
        for kind in sorted(events - _READ):
            self._world.leave_unplaced(f"a {kind} of the agent is not read")
        return [each for event in heard for each in _told_by(event, self._agent.name, self._own)]

    async def close(self) -> None:
        """Nothing: the client of the model is the agent's."""


def _copied(agent: Any, world: World, seen: dict[int, Any]) -> Any:
    if id(agent) in seen:
        return seen[id(agent)]
    new = seen[id(agent)] = copy.copy(agent)
    new._model_context = copy.copy(agent._model_context)
    new._model_context._messages = list(agent._model_context._messages)
    new._workbench = [_bench(each, world, seen) for each in _benches(agent)]
    return new


def _bench(bench: Any, world: World, seen: dict[int, Any]) -> Any:
    """A workbench whose tools ask the scenario."""
    new = copy.copy(bench)
    if _WORKBENCH in kinds(bench):
        new._tools = [_stand_in(tool, _name_in(bench, tool), world, seen) for tool in bench._tools]
        return new

    async def call_tool(name: str, arguments: Any = None, *args: Any, **kwargs: Any) -> Any:
        from autogen_core.tools import TextResultContent, ToolResult

        ran: list[Any] = []

        async def own() -> Any:
            ran.append(await bench.call_tool(name, arguments, *args, **kwargs))
            return ran[0].to_text()

        answer = await world.call(name, dict(arguments or {}), own, kwargs.get("call_id") or "")
        if ran:
            return ran[0]
        content = [TextResultContent(content=answer.failure if answer.is_error else answer.text)]
        return ToolResult(name=name, result=content, is_error=answer.is_error)

    new.call_tool = call_tool
    return new


class _ToolError(Exception):
    """A tool failed: the framework gives its words to the model, marked as an error."""


def _stand_in(tool: Any, name: str, world: World, seen: dict[int, Any]) -> Any:
    """A copy of a tool that asks the scenario; of an agent as a tool, one with a copy of the agent."""
    new = copy.copy(tool)
    if _RUNNER_TOOL in kinds(tool):
        new._task_runner = new._agent = _copied(tool._task_runner, world, seen)
        new.run_json_stream = _recorded(new, new.run_json_stream, name, world)
        return new
    is_streaming = _STREAM_TOOL in kinds(tool)

    async def run_json(args: Any, cancellation_token: Any, call_id: str | None = None) -> Any:
        tool.args_type().model_validate(args)  # as the tool itself would, which may refuse them
        ran: list[Any] = []

        async def own() -> Any:
            ran.append(await tool.run_json(args, cancellation_token, call_id=call_id))
            return ran[0]

        answer = await world.call(name, dict(args), own, call_id or "")
        if ran:
            return ran[0]
        if answer.is_error:
            raise _ToolError(answer.failure)
        return answer.text

    async def run_json_stream(args: Any, cancellation_token: Any, call_id: str | None = None) -> Any:
        yield await run_json(args, cancellation_token, call_id)

    new.run_json = run_json
    if is_streaming:
        new.run_json_stream = run_json_stream
    as_text = tool.return_value_as_string
    new.return_value_as_string = lambda value: value if isinstance(value, str) else as_text(value)
    return new


def _recorded(tool: Any, run_json_stream: Any, name: str, world: World) -> Any:
    """An agent as a tool: it runs, and the call is seen."""

    async def run(args: Any, cancellation_token: Any, call_id: str | None = None) -> Any:
        events: list[Any] = []

        async def own() -> str:
            async for event in run_json_stream(args, cancellation_token, call_id):
                events.append(event)  # noqa: PERF401 - as it comes: the next one may be an exception
            return str(tool.return_value_as_string(events[-1]))

        await world.record(name, dict(args), own, call_id or "")
        for event in events:
            yield event

    return run


# ── what happened ────────────────────────────────────────────────────────────────────────────────

_READ = frozenset(
    (
        *("ToolCallRequestEvent", "ToolCallExecutionEvent", "MemoryQueryEvent", "ThoughtEvent"),
        *("ModelClientStreamingChunkEvent", "UserInputRequestedEvent", "SelectSpeakerEvent", "SelectorEvent"),
    )
)
"""The events that are read, or that hold no calls."""


def _told_by(event: Any, agent: str, own: set[str]) -> list[dict[str, Any]]:
    """The messages of what an agent did, or one that it has as a tool, whose words are its to pass on."""
    kind = type(event).__name__
    if kind == "ToolCallRequestEvent":
        calls = [_call(each) for each in event.content if each.name not in own]
        return [_said(event, None, calls)] if calls else []
    if kind == "ToolCallExecutionEvent":
        return [
            {
                "role": "tool",
                "tool_call_id": each.call_id,
                "content": each.content,
                **({"status": "error"} if each.is_error else {}),
            }
            for each in event.content
            if each.name not in own
        ]
    is_said = "autogen_agentchat.messages.BaseChatMessage" in kinds(event)
    return [_said(event, event.to_text(), [])] if is_said and event.source == agent else []


def _said(event: Any, text: str | None, calls: list[dict[str, Any]]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text, "agent": event.source}
    if calls:
        message["tool_calls"] = calls
    return message


def _usage(heard: list[Any]) -> list[dict[str, int]] | None:
    """What each reply of a turn reported, agents as tools included; ``None`` if no model did."""
    told = [event.models_usage for event in heard if getattr(event, "models_usage", None) is not None]
    names = ("prompt_tokens", "completion_tokens")
    return [{name: getattr(each, name) for name in names} for each in told] or None


def _call(call: Any) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
