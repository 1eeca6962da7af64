"""Run agents of Microsoft Agent Framework, with a separate session for each conversation.

Agents used as tools (``as_tool``) are recorded where each of their runs begins."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from ..hooks.agent_framework import find_wrapped_agent
from ..hooks.tool_methods import innermost_call
from ..transcript import ToolCall, Transcript
from ..world import ToolAnswer, current_world
from .seam import (
    LATER,
    MORE,
    Refused,
    Tool,
    Waits,
    adds_code,
    is_instance_of,
    may_reach,
    unsupported_version_error,
    walk_tree,
    with_partial,
)

if TYPE_CHECKING:
    from ..world import World

_AGENT = "agent_framework._agents.BaseAgent"
_WORKFLOW = "agent_framework._workflows._workflow.Workflow"
_CHAT_AGENT = "agent_framework._agents.RawAgent"
_FUNCTION_TOOL = "agent_framework._tools.FunctionTool"
_CALLER = "agent_framework._tools.FunctionInvocationLayer"


class AgentFramework:
    name = "Microsoft Agent Framework"
    package = "agent-framework-core"
    supports = "1.23"

    def matches(self, obj: Any) -> bool:
        return is_instance_of(obj, _AGENT, _WORKFLOW)

    def tools(self, obj: Any) -> list[Tool]:
        _require_agent(obj)
        found: dict[str, Tool] = {}
        for agent in _agents(obj):
            for tool in _tools_of(agent):
                described = _to_tool(tool)
                found.setdefault(described.name, described)
                if may_reach(getattr(tool, "func", None), FRAMEWORK.matches, "agent_framework"):
                    found[""] = MORE  # the tools of an agent that the function runs
            if getattr(agent, "mcp_tools", None):
                found[""] = MORE
        return list(found.values())

    def runs_own_code(self, obj: Any) -> bool:
        return any(adds_code(agent, "agent_framework") for agent in _agents(obj))

    def open(self, obj: Any, world: World, session: str, deps: Any) -> AgentFrameworkConversation:
        _require_agent(obj)
        _watch_inner_runs()
        for agent in _agents(obj):
            _require_agent(agent)
        if deps is not None and deps is not LATER and not isinstance(deps, dict):
            what = f"`deps` must return a dict for a {self.name} agent, not {type(deps).__name__}"
            raise Refused(what, "return the keyword arguments for its tools")
        return AgentFrameworkConversation(obj, world, session, deps if isinstance(deps, dict) else {})


FRAMEWORK = AgentFramework()


# ── agents and tools ─────────────────────────────────────────────────────────────────────────────


def _require_agent(obj: Any) -> None:
    """Raise ``Refused`` for objects that this adapter cannot run."""
    remedy = "write a function that runs it (docs/agents.md)"
    if isinstance(obj, type):
        what = f"{obj.__name__} is a class of the Microsoft Agent Framework"
        raise Refused(what, "use an instance of it")
    if is_instance_of(obj, _WORKFLOW):
        raise Refused(
            "a Microsoft Agent Framework `Workflow` is not an agent", f"use one of its agents, or {remedy}"
        )
    if not is_instance_of(obj, _CHAT_AGENT):
        what = f"a Microsoft Agent Framework {type(obj).__name__} cannot keep conversations apart"
        raise Refused(f"{what}: they all share its memory", remedy)
    if _tools_of(obj) and not is_instance_of(obj.client, _CALLER):
        what = f"the client of agent '{obj.name}' ({type(obj.client).__name__}) does not support"
        raise Refused(f"{what} function calls", f"add `FunctionInvocationLayer` to it, or {remedy}")


def _tools_of(agent: Any) -> list[Any]:
    tools = (getattr(agent, "default_options", None) or {}).get("tools") or ()
    return list(tools) if isinstance(tools, (list, tuple)) else [tools]


def _agents(agent: Any) -> Iterator[Any]:
    """Yield an agent and the agents that it uses as tools."""
    return walk_tree(
        agent, lambda each: [one for one in map(find_wrapped_agent, _tools_of(each)) if one is not None]
    )


def _to_tool(tool: Any) -> Tool:
    if is_instance_of(tool, _FUNCTION_TOOL):
        is_agent = find_wrapped_agent(tool) is not None
        return Tool(tool.name, tool.description or "", tool.parameters(), is_agent=is_agent)
    fields = tool if isinstance(tool, dict) else getattr(tool, "__dict__", {})
    name = next(
        (fields[key] for key in ("name", "type") if isinstance(fields.get(key), str)), type(tool).__name__
    )
    return Tool(name, str(fields.get("description") or ""), None, hosted=True)


def _watch_inner_runs() -> None:
    """Start recording the runs of agents used as tools, because such agents return only text to their
    callers. Raise ``Refused`` for a framework version that lacks the required classes."""
    try:
        from agent_framework import AgentMiddleware, AgentMiddlewareLayer
    except ImportError as error:
        raise unsupported_version_error(FRAMEWORK, str(error)) from error
    real: Any = AgentMiddlewareLayer.run
    if hasattr(real, "agenteval_watches"):
        return

    class Watch(AgentMiddleware):  # type: ignore[misc]
        def __init__(self, found: list[_InnerAgentRun]) -> None:
            self._found = found

        async def process(self, context: Any, call_next: Any) -> None:
            def keep(response: Any) -> Any:
                self._found.append(_InnerAgentRun(context.agent.name, response))
                return response

            context.stream_result_hooks.append(keep)
            await call_next()
            if not context.stream:
                keep(context.result)

    @functools.wraps(real)
    def run(agent: Any, *args: Any, **kwargs: Any) -> Any:
        world, call = current_world(), innermost_call()
        conversation = _CONVERSATIONS.get(world) if world is not None else None
        if conversation is not None and call is not None:
            found = conversation.inner.setdefault(call.call_id, [])
            kwargs["middleware"] = [*(kwargs.get("middleware") or ()), Watch(found)]
        return real(agent, *args, **kwargs)

    run.agenteval_watches = True  # type: ignore[attr-defined]
    AgentMiddlewareLayer.run = run


# ── conversation ─────────────────────────────────────────────────────────────────────────────────


class _InnerAgentRun(NamedTuple):
    """The response from one run of an agent."""

    agent: str
    response: Any


_CONVERSATIONS: dict[World, AgentFrameworkConversation] = {}
"""The open conversations, keyed by their worlds."""


class AgentFrameworkConversation:
    def __init__(self, agent: Any, world: World, session: str, deps: dict[str, Any]) -> None:
        self.inner: dict[str, list[_InnerAgentRun]] = {}
        """The runs of agents that are used as tools in this turn, keyed by the ids of the calls that started
        them."""
        self._world, self._agent = world, agent
        self._session = agent.create_session(session_id=session)
        self._deps = deps
        _CONVERSATIONS[world] = self

    async def reply(self, text: str) -> dict[str, Any]:
        self.inner = {}
        options = {"function_invocation_kwargs": dict(self._deps)} if self._deps else {}
        try:
            response = await self._agent.run(text, session=self._session, **options)
        except Exception as error:
            with_partial(error, [])  # its calls are known, but not its messages
            raise
        responses = [response, *(one.response for each in self.inner.values() for one in each)]
        reply: dict[str, Any] = {
            "messages": _messages(_InnerAgentRun(self._agent.name, response), self.inner),
            "usage": _usage(responses),
            "elsewhere": [_id_of(each) for each in _contents(responses) if _is_hosted(each)],
        }
        for content in _contents(responses):
            if not (content.type in _READ or _is_hosted(content) or content.type.endswith("_tool_result")):
                self._world.note_unseen_calls(f"unsupported content '{content.type}' in a reply")
        if waits := _waits_for(response):
            waiting = Waits(waits)
            with_partial(waiting, **reply)
            raise waiting
        return {**reply, "agent": self._agent.name}

    async def close(self) -> None:
        """Discard the conversation. The client and the server connections belong to the agent."""
        _CONVERSATIONS.pop(self._world, None)


# ── messages and usage ───────────────────────────────────────────────────────────────────────────


_READ = frozenset(
    (
        *("text", "text_reasoning", "data", "uri", "error", "usage", "hosted_file", "hosted_vector_store"),
        *("function_call", "function_result", "shell_command_output", "oauth_consent_request"),
        *("function_approval_request", "function_approval_response"),
    )
)
"""The content types that are supported or that contain no calls."""


def _contents(responses: list[Any]) -> Iterator[Any]:
    for response in responses:
        for message in response.messages:
            yield from message.contents or ()


def _is_hosted(content: Any) -> bool:
    """Return whether a content item is a call that ran on the provider's servers."""
    return str(content.type).endswith("_tool_call")


def _id_of(content: Any) -> str:
    ids = (getattr(content, name, None) for name in ("call_id", "image_id", "id"))
    return str(next(filter(None, ids), ""))


def _messages(run: _InnerAgentRun, inner: dict[str, list[_InnerAgentRun]]) -> list[dict[str, Any]]:
    """Return a turn as messages in OpenAI's format. ``inner`` maps each call to the agent runs that the call
    started, for agents used as tools."""
    transcript = Transcript()
    _write(transcript, run, inner)
    return transcript.to_openai()


def _write(
    transcript: Transcript,
    run: _InnerAgentRun,
    inner: dict[str, list[_InnerAgentRun]],
    *,
    is_inner: bool = False,
) -> None:
    for message in run.response.messages:
        if message.role == "assistant":
            _write_answer(transcript, message, message.author_name or run.agent, is_inner=is_inner)
        elif message.role == "tool":
            for content in message.contents or ():
                _write_result(transcript, content, inner)


def _write_answer(transcript: Transcript, message: Any, agent: str | None, *, is_inner: bool) -> None:
    """Add an agent's message. The text of an agent used as a tool is omitted, because the calling agent
    passes the text on."""
    contents = message.contents or ()
    if hosted := [_hosted_call(each) for each in contents if _is_hosted(each)]:
        transcript.answer(None, hosted, agent=agent)
    text = "" if is_inner else "".join(each.text or "" for each in contents if each.type == "text")
    calls = [_call(each) for each in contents if each.type == "function_call"]
    if text or calls:
        transcript.answer(text or None, calls, agent=agent)


def _call(content: Any) -> ToolCall:
    return ToolCall(content.call_id, content.name, content.arguments or {})


def _write_result(transcript: Transcript, content: Any, inner: dict[str, list[_InnerAgentRun]]) -> None:
    """Add the result of a call, preceded by the messages of the agents that the call ran."""
    call_id = getattr(content, "call_id", None) or ""
    rest = {key: runs for key, runs in inner.items() if key != call_id}
    for run in inner.get(call_id, ()):
        _write(transcript, run, rest, is_inner=True)
    if content.type == "function_result":
        failed = getattr(content, "exception", None) is not None
        transcript.result(call_id, _result_text(content), error=failed)


def _hosted_call(content: Any) -> ToolCall:
    name = getattr(content, "tool_name", None) or content.type[: -len("_tool_call")]
    args = getattr(content, "arguments", None)
    if args is None:
        inputs = {key: getattr(content, key, None) for key in ("inputs", "commands", "actions")}
        args = {key: _text_of(value) if key == "inputs" else value for key, value in inputs.items() if value}
    return ToolCall(_id_of(content), str(name), args or {})


def _result_text(content: Any) -> str:
    return ToolAnswer(content.result).text if content.result is not None else _text_of(content.items)


def _text_of(result: Any) -> str:
    """Return a tool result as text. The framework represents the result as a list of content items."""
    if isinstance(result, (list, tuple)):
        return "".join(getattr(each, "text", None) or "" for each in result)
    return ToolAnswer(result).text


def _usage(responses: list[Any]) -> dict[str, int] | None:
    """Return the total token usage of a turn. The framework does not count model requests, but each request
    produced one assistant message."""
    usages = [each.usage_details for each in responses if each.usage_details]
    names = sorted({name for each in usages for name, count in each.items() if isinstance(count, int)})
    if not names:
        return None
    replies = [each for response in responses for each in response.messages if each.role == "assistant"]
    return {**{name: sum(each.get(name) or 0 for each in usages) for name in names}, "requests": len(replies)}


def _waits_for(response: Any) -> str:
    """Return a description of the input that a person must provide before the agent continues, or an empty
    string if no input is required."""
    for each in response.user_input_requests:
        call = getattr(each, "function_call", None)
        return f"approval of {call.name}" if call is not None else f"input ({each.type})"
    return ""
