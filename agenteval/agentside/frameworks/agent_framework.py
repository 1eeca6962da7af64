"""Microsoft's Agent Framework: a copy of the agent for each conversation, with one more middleware.

It is the innermost of the agent's own: they see each call as ever, and so do approvals, which come before any
middleware. Agents as tools (``as_tool``) are copied, too, since their runs do not hear of the caller's
middleware.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from contextvars import ContextVar
from types import CellType, FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple

from ..world import Answer
from .seam import LATER, MORE, Refused, Tool, Waits, adds_code, kinds, unsupported, with_partial

if TYPE_CHECKING:
    from ..world import World

_AGENT = "agent_framework._agents.BaseAgent"
_WORKFLOW = "agent_framework._workflows._workflow.Workflow"
_LAYER = "agent_framework._middleware.AgentMiddlewareLayer"
_CHAT_AGENT = "agent_framework._agents.RawAgent"
_FUNCTION_TOOL = "agent_framework._tools.FunctionTool"
_CALLER = "agent_framework._tools.FunctionInvocationLayer"
_AS_TOOL = "BaseAgent.as_tool.<locals>._agent_wrapper"


class AgentFramework:
    name = "Microsoft Agent Framework"
    package = "agent-framework-core"
    supports = "1.23"

    def matches(self, obj: Any) -> bool:
        return _is(obj, _AGENT, _WORKFLOW)

    def tools(self, obj: Any) -> list[Tool]:
        _require_agent(obj)
        found: dict[str, Tool] = {}
        for agent in _agents(obj):
            for tool in _tools_of(agent):
                if _agent_in(tool) is None:
                    told = _told(tool)
                    found.setdefault(told.name, told)
            if getattr(agent, "mcp_tools", None):
                found[""] = MORE
        return list(found.values())

    def runs_own_code(self, obj: Any) -> bool:
        return any(adds_code(agent, "agent_framework") for agent in _agents(obj))

    def prompt(self, obj: Any) -> str | None:
        options = getattr(obj, "default_options", None) or {}
        written = options.get("instructions")
        return written if isinstance(written, str) and written else None

    def open(self, obj: Any, world: World, session: str, deps: Any) -> _Conversation:
        _require_agent(obj)
        _require_seam()
        for agent in _agents(obj):
            _require_agent(agent)
        if deps is not None and deps is not LATER and not isinstance(deps, dict):
            what = "deps of an agent of Microsoft's framework are what its tools get as kwargs"
            raise Refused(f"{what}, a dict, and not {type(deps).__name__}")
        return _Conversation(obj, world, session, deps if isinstance(deps, dict) else {})


FRAMEWORK = AgentFramework()


def _is(obj: Any, *names: str) -> bool:
    return any(kind in names for kind in kinds(obj))


# ── what there is ────────────────────────────────────────────────────────────────────────────────


def _require_agent(obj: Any) -> None:
    """Raises ``Refused`` for what this does not play."""
    remedy = "write a function that runs it (docs/agents.md)"
    if isinstance(obj, type):
        what = f"{obj.__name__} is a class of Microsoft's framework"
        raise Refused(what, "name an agent that is made of it")
    if _is(obj, _WORKFLOW):
        raise Refused(
            "a Workflow of Microsoft's framework is no agent", f"name one of its agents, or {remedy}"
        )
    if not _is(obj, _LAYER) or not _is(obj, _CHAT_AGENT):
        what = f"a {type(obj).__name__} of Microsoft's framework runs its tools by itself"
        raise Refused(f"{what}, and no scenario can answer for them", remedy)
    if _tools_of(obj) and not _is(obj.client, _CALLER):
        what = f"the client of the agent '{obj.name}' ({type(obj.client).__name__}) does not call functions"
        raise Refused(f"{what} as the framework does", f"add FunctionInvocationLayer to it, or {remedy}")


def _tools_of(agent: Any) -> list[Any]:
    given = (getattr(agent, "default_options", None) or {}).get("tools") or ()
    return list(given) if isinstance(given, (list, tuple)) else [given]


def _agents(agent: Any) -> Iterator[Any]:
    """An agent and those that it has as tools; each once."""
    waiting, seen = [agent], set()
    while waiting:
        agent = waiting.pop(0)
        if id(agent) not in seen:
            seen.add(id(agent))
            yield agent
            waiting += [inner for inner in map(_agent_in, _tools_of(agent)) if inner is not None]


def _agent_in(tool: Any) -> Any:
    """The agent that a tool is made of (``as_tool``); ``None`` if of none."""
    cell = _cell_in(tool)
    return cell.cell_contents if cell is not None and _is(cell.cell_contents, _AGENT) else None


def _cell_in(tool: Any) -> CellType | None:
    """Where the function of an agent as a tool holds its agent."""
    function = getattr(tool, "func", None)
    if not isinstance(function, FunctionType) or function.__qualname__ != _AS_TOOL:
        return None
    names = function.__code__.co_freevars
    return (function.__closure__ or ())[names.index("self")] if "self" in names else None


def _told(tool: Any) -> Tool:
    if _is(tool, _FUNCTION_TOOL):
        return Tool(tool.name, tool.description or "", tool.parameters())
    said = tool if isinstance(tool, dict) else getattr(tool, "__dict__", {})
    name = next(
        (said[key] for key in ("name", "type") if isinstance(said.get(key), str)), type(tool).__name__
    )
    return Tool(name, str(said.get("description") or ""), None, hosted=True)


def _require_seam() -> None:
    """Raises ``Refused`` for a version without what is used of it."""
    try:
        from agent_framework import AgentMiddleware, FunctionMiddleware, FunctionTool

        known = (
            ("FunctionMiddleware.process", hasattr(FunctionMiddleware, "process")),
            ("AgentMiddleware.process", hasattr(AgentMiddleware, "process")),
            ("FunctionTool.parse_result", hasattr(FunctionTool, "parse_result")),
            ("FunctionTool._prepare_arguments", hasattr(FunctionTool, "_prepare_arguments")),
        )
        missing = next((what for what, is_there in known if not is_there), "")
    except ImportError as error:
        missing = str(error)
    if missing:
        raise unsupported(FRAMEWORK, missing)


# ── one conversation ─────────────────────────────────────────────────────────────────────────────


class _Inner(NamedTuple):
    agent: str
    response: Any


class _Called(NamedTuple):
    """A call of the agent's own, as it was carried out: what is known of a turn that broke."""

    call: dict[str, Any]
    result: dict[str, Any]


class _Turn:
    """What is known of a turn."""

    def __init__(self) -> None:
        self.called: list[_Called] = []
        self.inner: dict[str, list[_Inner]] = {}
        """The answers of agents as tools, by the ids of the calls that started them."""


_STARTED_BY: ContextVar[str] = ContextVar("agenteval_started_by", default="")
"""The call that an agent as a tool runs for."""


class _Conversation:
    def __init__(self, agent: Any, world: World, session: str, deps: dict[str, Any]) -> None:
        self._turn = _Turn()
        self._world = world
        self._agent = _copied(agent, world, self._turn, {})
        self._session = self._agent.create_session(session_id=session)
        self._deps = deps

    async def reply(self, text: str) -> dict[str, Any]:
        turn = self._turn
        turn.called, turn.inner = [], {}
        given = {"function_invocation_kwargs": dict(self._deps)} if self._deps else {}
        try:
            response = await self._agent.run(text, session=self._session, **given)
        except Exception as error:
            with_partial(error, [each for one in turn.called for each in one])
            raise
        responses = [response, *(one.response for each in turn.inner.values() for one in each)]
        reply: dict[str, Any] = {
            "messages": _messages(response, turn.inner, self._agent.name),
            "usage": _usage(responses),
            "elsewhere": [_id_of(each) for each in _contents(responses) if _is_hosted(each)],
        }
        for content in _contents(responses):
            if not (content.type in _READ or _is_hosted(content) or content.type.endswith("_tool_result")):
                self._world.leave_unplaced(f"a content '{content.type}' of a reply is not read")
        if waits := _waits_for(response):
            waiting = Waits(waits)
            with_partial(waiting, **reply)
            raise waiting
        return {**reply, "agent": self._agent.name}

    async def close(self) -> None:
        """Nothing: the client and the connections to servers are the agent's."""


def _copied(agent: Any, world: World, turn: _Turn, seen: dict[int, Any], *, is_inner: bool = False) -> Any:
    if id(agent) in seen:
        return seen[id(agent)]
    new = seen[id(agent)] = copy.copy(agent)
    new.context_providers = list(agent.context_providers or ())
    new.middleware = [*(agent.middleware or ()), *_middleware(world, turn, is_inner=is_inner)]
    new.default_options = dict(agent.default_options)
    if "tools" in new.default_options:
        new.default_options["tools"] = [_rebound(tool, world, turn, seen) for tool in _tools_of(agent)]
    return new


def _rebound(tool: Any, world: World, turn: _Turn, seen: dict[int, Any]) -> Any:
    """An agent as a tool, with a copy of the agent; any other tool as it is."""
    agent, held = _agent_in(tool), _cell_in(tool)
    if agent is None:
        return tool
    own = tool.func
    inner = _copied(agent, world, turn, seen, is_inner=True)
    cells = tuple(CellType(inner) if cell is held else cell for cell in own.__closure__)
    function = FunctionType(own.__code__, own.__globals__, own.__name__, own.__defaults__, cells)
    function.__kwdefaults__, function.__annotations__ = own.__kwdefaults__, own.__annotations__
    function.__qualname__ = own.__qualname__
    new = copy.copy(tool)
    new.func = function
    return new


def _middleware(world: World, turn: _Turn, *, is_inner: bool) -> list[Any]:
    from agent_framework import AgentMiddleware, FunctionMiddleware, FunctionTool

    class OfScenario(FunctionMiddleware):  # type: ignore[misc]
        async def process(self, context: Any, call_next: Any) -> None:
            tool = context.function
            call_id = context.metadata.get("call_id") or ""
            if _agent_in(tool) is not None:
                await self._record(context, call_next, call_id)
                return
            args = tool._prepare_arguments(
                context.arguments
            )  # as the tool itself would, which may refuse them
            ran: list[Any] = []

            async def own() -> Any:
                await call_next()
                ran.append(context.result)
                return _text_of(context.result)

            answer = await world.call(tool.name, copy.deepcopy(args), own, call_id)
            if not ran:
                context.result = FunctionTool.parse_result(_result(answer))
            if not is_inner:
                said = _said(None, [_call(call_id, tool.name, args)])
                turn.called.append(_Called(said, _tool_message(call_id, answer.text)))

        async def _record(self, context: Any, call_next: Any, call_id: str) -> None:
            """An agent as a tool runs."""

            async def own() -> str:
                await call_next()
                return _text_of(context.result)

            turn.inner.setdefault(call_id, [])
            token = _STARTED_BY.set(call_id)
            try:
                await world.record(context.function.name, copy.deepcopy(context.arguments), own, call_id)
            finally:
                _STARTED_BY.reset(token)

    class OfInner(AgentMiddleware):  # type: ignore[misc]
        """An agent as a tool gives its text alone: what it did is kept from its stream."""

        async def process(self, context: Any, call_next: Any) -> None:
            started_by = _STARTED_BY.get()

            def keep(response: Any) -> Any:
                inner = _Inner(context.agent.name, response)
                turn.inner.setdefault(started_by, []).append(inner)
                return response

            context.stream_result_hooks.append(keep)
            await call_next()

    return [OfScenario(), *([OfInner()] if is_inner else [])]


def _result(answer: Answer) -> Any:
    """What the model gets: the framework has no other sign of an error than these words."""
    return f"Error: {answer.failure}" if answer.is_error else answer.value


# ── what happened ────────────────────────────────────────────────────────────────────────────────


_READ = frozenset(
    (
        *("text", "text_reasoning", "data", "uri", "error", "usage", "hosted_file", "hosted_vector_store"),
        *("function_call", "function_result", "shell_command_output", "oauth_consent_request"),
        *("function_approval_request", "function_approval_response"),
    )
)
"""The types of contents that are read, or that hold no calls."""


def _contents(responses: list[Any]) -> Iterator[Any]:
    for response in responses:
        for message in response.messages:
            yield from message.contents or ()


def _is_hosted(content: Any) -> bool:
    """Whether it is a call that ran at the provider."""
    return str(content.type).endswith("_tool_call")


def _id_of(content: Any) -> str:
    ids = (getattr(content, name, None) for name in ("call_id", "image_id", "id"))
    return str(next(filter(None, ids), ""))


def _messages(
    response: Any, inner: dict[str, list[_Inner]], agent: str | None, *, is_inner: bool = False
) -> list[dict[str, Any]]:
    """The turn as messages in OpenAI's format. The words of an agent as a tool (``inner``, by the call that
    started it) are the caller's to pass on."""
    messages: list[dict[str, Any]] = []
    for message in response.messages:
        contents = message.contents or ()
        if message.role == "assistant":
            said = "" if is_inner else "".join(each.text or "" for each in contents if each.type == "text")
            speaker = message.author_name or agent
            if hosted := [_hosted_call(each) for each in contents if _is_hosted(each)]:
                messages.append(_said(None, hosted, speaker))
            own = (each for each in contents if each.type == "function_call")
            calls = [_call(each.call_id, each.name, each.arguments) for each in own]
            if said or calls:
                messages.append(_said(said or None, calls, speaker))
        elif message.role == "tool":
            for each in contents:
                call_id = getattr(each, "call_id", None) or ""
                rest = {key: told for key, told in inner.items() if key != call_id}
                for one in inner.get(call_id, ()):
                    messages += _messages(one.response, rest, one.agent, is_inner=True)
                if each.type == "function_result":
                    result = _tool_message(call_id, _content(each))
                    is_error = getattr(each, "exception", None) is not None
                    messages.append({**result, "status": "error"} if is_error else result)
    return messages


def _hosted_call(content: Any) -> dict[str, Any]:
    name = getattr(content, "tool_name", None) or content.type[: -len("_tool_call")]
    args = getattr(content, "arguments", None)
    if args is None:
        asked = {key: getattr(content, key, None) for key in ("inputs", "commands", "actions")}
        args = {key: _text_of(value) if key == "inputs" else value for key, value in asked.items() if value}
    return _call(_id_of(content), str(name), args)


def _said(text: str | None, calls: list[dict[str, Any]], agent: str | None = None) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if calls:
        message["tool_calls"] = calls
    return {**message, "agent": agent} if agent else message


def _call(call_id: str, name: str, args: Any) -> dict[str, Any]:
    arguments = args if isinstance(args, str) else json.dumps(args or {}, default=str)
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def _tool_message(call_id: str, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def _content(content: Any) -> str:
    return Answer(content.result).text if content.result is not None else _text_of(content.items)


def _text_of(result: Any) -> str:
    """What a tool's result is as text: the framework has it as a list of contents."""
    if isinstance(result, (list, tuple)):
        return "".join(getattr(each, "text", None) or "" for each in result)
    return Answer(result).text


def _usage(responses: list[Any]) -> dict[str, int] | None:
    """The sum over all of a turn's answers; the framework does not count requests, each of which gave one
    message of the assistant's."""
    told = [each.usage_details for each in responses if each.usage_details]
    names = sorted({name for each in told for name, count in each.items() if isinstance(count, int)})
    if not names:
        return None
    replies = [each for response in responses for each in response.messages if each.role == "assistant"]
    return {**{name: sum(each.get(name) or 0 for each in told) for name in names}, "requests": len(replies)}


def _waits_for(response: Any) -> str:
    """What a person has to give before the agent goes on; empty if nothing."""
    for each in response.user_input_requests:
        call = getattr(each, "function_call", None)
        return f"approval of {call.name}" if call is not None else f"input ({each.type})"
    return ""
