"""Run LlamaIndex agents, either alone or in a multi-agent ``AgentWorkflow``."""

from __future__ import annotations

import inspect
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
    with_partial,
)

if TYPE_CHECKING:
    from ..world import World

_AGENT = "llama_index.core.agent.workflow.base_agent.BaseWorkflowAgent"
_TEAM = "llama_index.core.agent.workflow.multi_agent_workflow.AgentWorkflow"
_CODE_ACT = "llama_index.core.agent.workflow.codeact_agent.CodeActAgent"
_REACT = "llama_index.core.agent.workflow.react_agent.ReActAgent"
_WORKFLOW = "workflows.workflow.Workflow"
_HAND_OFF = "handoff"
"""The framework's own hand-off tool. Its name is reserved."""


class LlamaIndex:
    name = "LlamaIndex"
    package = "llama-index-core"
    supports = "0.14"

    def matches(self, obj: Any) -> bool:
        return is_instance_of(obj, _AGENT, _TEAM)

    def _is_agent_or_workflow(self, value: Any) -> bool:
        return self.matches(value) or _WORKFLOW in kinds(value)

    def tools(self, obj: Any) -> list[Tool]:
        found: dict[str, Tool] = {}
        for agent in _agents(obj):
            for tool in agent.tools or ():
                described = _to_tool(tool)
                found.setdefault(described.name, described)
                if may_reach(getattr(tool, "real_fn", None), self._is_agent_or_workflow, "llama_index"):
                    found[""] = MORE
            if agent.tool_retriever is not None:
                found[""] = MORE
        return list(found.values())

    def runs_own_code(self, obj: Any) -> bool:
        return any(adds_code(each, "llama_index") for each in (obj, *_agents(obj)))

    def open(self, obj: Any, world: World, session: str, deps: Any) -> LlamaIndexConversation:
        for agent in _agents(obj):
            if _CODE_ACT in kinds(agent):
                what = f"the agent '{agent.name}' is a CodeActAgent, whose code calls its tools directly"
                raise Refused(what, "write a function that runs it (docs/agents.md)")
        if deps is not None and deps is not LATER:
            raise Refused(
                "a LlamaIndex agent does not accept `deps`", "remove `deps` and use `initial_state`"
            )
        if not inspect.iscoroutinefunction(getattr(obj, "get_tools", None)):
            raise unsupported_version_error(self, f"{type(obj).__name__}.get_tools")
        return LlamaIndexConversation(obj, world)


FRAMEWORK = LlamaIndex()


def _agents(obj: Any) -> list[Any]:
    if inspect.isclass(obj):
        raise Refused(f"{obj.__name__} is a LlamaIndex class", "use an instance of it")
    return list(obj.agents.values()) if _TEAM in kinds(obj) else [obj]


def _to_tool(tool: Any) -> Tool:
    metadata = tool.metadata
    try:
        schema = metadata.get_parameters_dict()
    except Exception:  # an error in the author's schema; the run will show it
        schema = None
    return Tool(metadata.name or "", metadata.description or "", schema)


# ── conversation ─────────────────────────────────────────────────────────────────────────────────


class LlamaIndexConversation:
    """A conversation that stores the history in its own memory, because the framework does not keep a history
    that could be passed to the next run."""

    def __init__(self, obj: Any, world: World) -> None:
        self._agent = obj
        self._world = world
        self._memory: Any = None
        self._context: Any = None

    async def reply(self, text: str) -> dict[str, Any]:
        from llama_index.core.memory import ChatMemoryBuffer
        from llama_index.core.workflow import Context

        if self._memory is None:  # as the framework does if it gets none
            first = _agents(self._agent)[0]
            self._memory = ChatMemoryBuffer.from_defaults(llm=first.llm)
            self._context = Context(self._agent)
        transcript = Transcript()
        used: list[dict[str, Any]] = []
        handler = self._agent.run(user_msg=text, memory=self._memory, ctx=self._context)
        try:
            async for event in handler.stream_events():
                if waits := _waits_for(event):
                    raise Waits(waits)
                for name in _at_provider(event):
                    self._world.note_unseen_calls(
                        f"'{name}' ran at the provider, so its calls are not recorded"
                    )
                _write(transcript, event, is_thinking_aloud=_is_thinking_aloud(self._agent, event))
                used += _usage_in(event)
            result = await handler
        except Exception as error:
            with_partial(error, transcript.to_openai(), used or None)
            raise
        finally:
            if not handler.done():  # it keeps running even if nobody waits for it
                await handler.cancel_run()
        messages = _with_answer(transcript, result)
        return {"messages": messages, "usage": used or None, "agent": result.current_agent_name}

    async def close(self) -> None:
        """Do nothing, because everything that a run starts ends with that run."""


# ── messages and usage ───────────────────────────────────────────────────────────────────────────


def _waits_for(event: Any) -> str:
    if "workflows.events.InputRequiredEvent" not in kinds(event):
        return ""
    return f"input: {getattr(event, 'prefix', '') or type(event).__name__}"


def _at_provider(event: Any) -> list[str]:
    """Return the types of the calls in a model's reply that ran on the provider's servers."""
    response = getattr(event, "response", None) if type(event).__name__ == "AgentOutput" else None
    more = getattr(response, "additional_kwargs", None) or {}
    ran = more.get("built_in_tool_calls") or ()
    calls = [getattr(each, "item", each) for each in ran]  # in a stream, the call is inside an event
    fields = [each if isinstance(each, dict) else getattr(each, "__dict__", {}) for each in calls]
    return [str(each.get("type") or "a tool") for each in fields]


def _is_thinking_aloud(obj: Any, event: Any) -> bool:
    """Return whether an agent writes its thoughts and calls as text. Such text is not part of the answer."""
    name = getattr(event, "current_agent_name", None)
    return any(agent.name == name and _REACT in kinds(agent) for agent in _agents(obj))


def _write(transcript: Transcript, event: Any, *, is_thinking_aloud: bool) -> None:
    kind = type(event).__name__
    if kind == "AgentOutput":
        text = "" if is_thinking_aloud else event.response.content or ""
        transcript.answer(text or None, _calls_in(event), agent=event.current_agent_name)
    elif kind == "ToolCallResult" and event.tool_name != _HAND_OFF:
        output = event.tool_output
        transcript.result(event.tool_id, output.content, error=bool(output.is_error))


def _calls_in(output: Any) -> list[ToolCall]:
    made = (each for each in output.tool_calls if each.tool_name != _HAND_OFF)
    return [ToolCall(each.tool_id, each.tool_name, each.tool_kwargs) for each in made]


def _usage_in(event: Any) -> list[dict[str, Any]]:
    """Return the token usage in the provider's format. The framework keeps the provider's reply unchanged."""
    raw = event.raw if type(event).__name__ == "AgentOutput" else None
    for name in ("usage", "usage_metadata", "usageMetadata"):
        usage = raw.get(name) if isinstance(raw, dict) else getattr(raw, name, None)
        if usage is not None:
            usage = usage.model_dump() if hasattr(usage, "model_dump") else usage
            return [usage] if isinstance(usage, dict) else []
    return []


def _with_answer(transcript: Transcript, result: Any) -> list[dict[str, Any]]:
    """Return the turn's messages, ending with the answer. The framework strips thoughts from the answer, or
    uses the result of a tool that answers directly."""
    transcript.end_with(result.response.content or "", agent=result.current_agent_name)
    *before, answer = transcript.to_openai()
    kept = [each for each in before if each["role"] == "tool" or each["content"] or each.get("tool_calls")]
    return [*kept, answer]
