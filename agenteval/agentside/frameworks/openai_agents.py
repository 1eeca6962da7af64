"""OpenAI's Agents SDK: an ``agents.Agent``, with its hand-offs and the agents that are its tools.

Each conversation has copies of all agents that it meets, of a class of its own: what such an agent has as
tools at the moment it is asked, however they came to it (its list, an MCP server, a hook), goes through the
world. Agents inside tools are run by the SDK's own ``Runner``: the one place where every run begins, and
where the copy of the conversation takes the place of the agent. A ``ContextVar`` says which conversation that
is; where there is none, nothing is run while one is in a turn.
"""

from __future__ import annotations

import asyncio
import copy
import functools
import json
import uuid
from contextlib import AsyncExitStack
from contextvars import ContextVar, copy_context
from typing import TYPE_CHECKING, Any

from ..world import untracked
from .seam import MORE, Refused, Tool, Waits, adds_code, kinds, unsupported, with_partial

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ..world import World

    Message = dict[str, Any]

_AGENT = "agents.agent.Agent"
_BASE = "agents.agent.AgentBase"
_HOSTED = frozenset(
    (
        *("FileSearchTool", "WebSearchTool", "HostedMCPTool", "CodeInterpreterTool", "ImageGenerationTool"),
        *("ToolSearchTool", "ProgrammaticToolCallingTool"),
    )
)
"""What runs at the provider, in the words of ``agents.tool``."""
_TRIPPED = {
    "InputGuardrailTripwireTriggered": "input guardrail",
    "OutputGuardrailTripwireTriggered": "output guardrail",
    "ToolInputGuardrailTripwireTriggered": "input guardrail of a tool",
    "ToolOutputGuardrailTripwireTriggered": "output guardrail of a tool",
}
_OPTIONS = frozenset(("context", "run_config", "max_turns", "hooks", "error_handlers"))
"""What ``Runner.run`` is given by an application, beside the agent and what the user said."""
_DEEPEST = 8

_PLAYING: ContextVar[_Conversation | None] = ContextVar("agenteval_openai_agents", default=None)
_TURNS: dict[_Conversation, None] = {}
"""The conversations that are in a turn."""


class _OpenAIAgents:
    name = "OpenAI Agents SDK"
    package = "openai-agents"
    supports = "0.3 to 0.24"

    def matches(self, obj: Any) -> bool:
        return _BASE in kinds(obj)

    def tools(self, obj: Any) -> list[Tool]:
        found: dict[str, Tool] = {}
        for agent in _all_agents(obj):
            for tool in getattr(agent, "tools", ()):
                if _agent_of(tool) is None:
                    told = _told_of(tool)
                    found.setdefault(told.name, told)
            if agent.mcp_servers or any(_runs_others(each) or _is_of_server(each) for each in agent.tools):
                found.setdefault(MORE.name, MORE)
        return list(found.values())

    def runs_own_code(self, obj: Any) -> bool:
        return any(adds_code(agent, "agents") for agent in _all_agents(obj))

    def prompt(self, obj: Any) -> str | None:
        told = getattr(obj, "instructions", None)
        return told if isinstance(told, str) else None

    def open(self, obj: Any, world: World, session: str, deps: Any) -> _Conversation:
        self._require(obj, deps)
        _seam(self)
        from agents import set_tracing_disabled

        set_tracing_disabled(True)  # its traces go to OpenAI
        return _Conversation(obj, world, deps)

    def _require(self, obj: Any, deps: Any) -> None:
        known = kinds(obj)
        if _AGENT not in known:
            what = f"the agent is of the class {type(obj).__name__} of the {self.name}, which is not played"
            raise Refused(what, "give an agents.Agent, or a function as target (docs/agents.md)")
        if any(each.startswith("agents.sandbox.") for each in known):
            what = f"'{obj.name}' is a {type(obj).__name__}: what it does in its sandbox cannot be answered"
            raise Refused(what, "give an agents.Agent, or a function as target (docs/agents.md)")
        if not hasattr(obj, "get_all_tools"):
            raise unsupported(self, "Agent.get_all_tools")
        for agent in _all_agents(obj):
            for tool in agent.tools:
                _kind_of(tool)
        if deps is None and (needed := _context_of(obj)):
            what = f"the agent '{obj.name}' needs a context of type {needed}"
            raise Refused(what, "write target: {object: …, deps: file.py:make_deps}")


FRAMEWORK = _OpenAIAgents()


def _context_of(agent: Any) -> str | None:
    """The type that ``Agent[Shop](…)`` was written with."""
    args = getattr(getattr(agent, "__orig_class__", None), "__args__", ())
    needed = args[0] if args else None
    is_one = isinstance(needed, type) and needed not in (type(None), object)
    return needed.__name__ if is_one and needed is not None else None


# ── what there is before a run ───────────────────────────────────────────────────────────────────


def _all_agents(agent: Any) -> list[Any]:
    """An agent and all that it can reach."""
    found: list[Any] = []
    waiting = [agent]
    while waiting:
        each = waiting.pop(0)
        if any(each is known for known in found) or _AGENT not in kinds(each) or isinstance(each, type):
            continue
        found.append(each)
        below = (*(_handed_to(handoff) for handoff in each.handoffs), *map(_agent_of, each.tools))
        waiting.extend(one for one in below if one is not None)
    return found


def _handed_to(handoff: Any) -> Any:
    """The agent of a hand-off. The SDK keeps it in what ``handoff()`` made."""
    if _AGENT in kinds(handoff):
        return handoff
    reference = getattr(handoff, "_agent_ref", None)
    agent = reference() if callable(reference) else None
    return agent or _agent_in(getattr(handoff, "on_invoke_handoff", None))


def _agent_of(tool: Any) -> Any:
    """The agent that is a tool by its ``as_tool``; ``None`` for all other tools."""
    agent = getattr(tool, "_agent_instance", None)
    if agent is not None:
        return agent
    run = _within(getattr(tool, "on_invoke_tool", None), _is_run_of_agent)
    return _agent_in(run) if run else None


def _runs_others(tool: Any) -> bool:
    """Whether the function of a tool names an agent, which it may run: that one has tools, too."""

    def names_one(value: Any) -> bool:
        known = getattr(value, "__globals__", {})
        return any(_agent_in(known.get(name)) for name in _names_in(getattr(value, "__code__", None)))

    function = getattr(tool, "on_invoke_tool", None)
    return _agent_of(tool) is None and (_agent_in(function) or _within(function, names_one)) is not None


def _is_of_server(tool: Any) -> bool:
    """Whether it stands for the tools of an MCP server that the provider calls."""
    return type(tool).__name__ == "HostedMCPTool"


def _is_hosted(tool: Any) -> bool:
    return _kind_of(tool) == "hosted"


def _names_in(code: Any) -> set[str]:
    """The names that code uses, with the functions in it."""
    inner = [each for each in getattr(code, "co_consts", ()) if hasattr(each, "co_names")]
    return set(getattr(code, "co_names", ())).union(*map(_names_in, inner))


def _is_run_of_agent(value: Any) -> bool:
    return str(getattr(value, "__qualname__", "")).startswith("Agent.as_tool.")


def _agent_in(value: Any) -> Any:
    return _within(value, lambda each: _AGENT in kinds(each) and not isinstance(each, type))


def _within(value: Any, fits: Callable[[Any], bool], depth: int = 0) -> Any:
    """The first thing that fits among what a function holds in its closure."""
    if value is None or depth > _DEEPEST:
        return None
    if fits(value):
        return value
    if isinstance(value, functools.partial):
        held = [value.func, *value.args, *value.keywords.values()]
    elif hasattr(value, "_invoke_tool_impl"):
        held = [value._invoke_tool_impl]
    else:
        held = list(_cells(value).values())
    inner = (_within(each, fits, depth + 1) for each in held if callable(each) or fits(each))
    return next((each for each in inner if each is not None), None)


def _cells(function: Any) -> dict[str, Any]:
    """The variables in a function's closure, by name."""
    code, closure = getattr(function, "__code__", None), getattr(function, "__closure__", None)
    found = {}
    for at, name in enumerate(code.co_freevars if code and closure else ()):
        try:
            found[name] = closure[at].cell_contents  # type: ignore[index]
        except ValueError:  # not yet filled
            continue
    return found


def _told_of(tool: Any) -> Tool:
    description = getattr(tool, "description", None)
    return Tool(
        tool.name,
        description if isinstance(description, str) else "",
        getattr(tool, "params_json_schema", None),
        hosted=_kind_of(tool) == "hosted",
    )


def _kind_of(tool: Any) -> str:
    """``function``, ``custom``, ``shell`` or ``hosted``. Raises ``Refused`` for what acts on this machine in
    a way that nobody else can answer, and for what is not known."""
    names = [each.rpartition(".")[2] for each in kinds(tool) if each.startswith("agents.")]
    if "FunctionTool" in names:
        return "function"
    if "CustomTool" in names:
        return "custom"
    if "LocalShellTool" in names or "ShellTool" in names:
        return "hosted" if getattr(tool, "executor", None) is None else "shell"
    if _HOSTED.intersection(names):
        return "hosted"
    what = f"the tool '{getattr(tool, 'name', '?')}' ({type(tool).__name__}) acts by itself"
    raise Refused(f"{what}: a scenario cannot answer it", "take it out of the agent's tools")


# ── one conversation ─────────────────────────────────────────────────────────────────────────────


class _Conversation:
    def __init__(self, agent: Any, world: World, deps: Any) -> None:
        self._world = world
        self._options = _options(deps)
        self._copies: dict[int, tuple[Any, Any]] = {}
        self._answered: dict[int, tuple[Any, Any]] = {}
        self._sessions: dict[int, tuple[Any, Any]] = {}
        self._servers = _Servers()
        self._history: list[Any] = []
        self._usages: list[Any] = []
        self._agent = self.copy(agent)

    async def reply(self, text: str) -> dict[str, Any]:
        runner = _seam(FRAMEWORK)
        await self._servers.connect()
        self._usages = []
        given = [*self._history, {"role": "user", "content": text}]
        playing = _PLAYING.set(self)
        _TURNS[self] = None
        try:
            result = await runner.own.run(self._agent, given, **self._options)
        except Exception as error:
            data = getattr(error, "run_data", None)
            self._count(data)
            messages = self._messages(data.new_items if data else ())
            tripped = _tripped(error)
            if not tripped:
                with_partial(error, messages, self._usage())
                raise
            self._history = [*given, {"role": "assistant", "content": tripped}]
            messages.append({"role": "assistant", "content": None, "refusal": tripped})
            return {"messages": messages, "usage": self._usage(), "agent": self._agent.name}
        finally:
            _TURNS.pop(self, None)
            _PLAYING.reset(playing)
        self._count(result)
        messages = self._messages(result.new_items)
        if waits := _waits_for(result):
            waiting = Waits(f"the agent waits for a person: {waits}")
            with_partial(waiting, messages, self._usage())
            raise waiting
        self._history = result.to_input_list()
        self._agent = self.copy(result.last_agent)
        _answer(messages, result.final_output, self._agent.name)
        return {"messages": messages, "usage": self._usage(), "agent": self._agent.name}

    async def close(self) -> None:
        await self._servers.close()

    def _messages(self, items: Any) -> list[Message]:
        """The items of a turn as messages. What the scenario answers has no other way to run: such a call
        that it was not asked for was refused, by a guardrail or a person."""
        for kind in sorted({str(item.type) for item in items} - _READ):
            self._world.leave_unplaced(f"an item '{kind}' of a run is not read")
        messages = _messages(items)
        refused = {
            _id_of(item.raw_item)
            for item in items
            if item.type == "tool_call_output_item" and _field(item.raw_item, "type") in _OF_OUR_TOOLS
        }
        return [
            {**message, "status": "error"} if each in refused and not self._world.was_asked(each) else message
            for message in messages
            for each in [message.get("tool_call_id")]
        ]

    # ── copies

    def copy(self, agent: Any) -> Any:
        """The one that this conversation has of an agent. Its fields are as they were; a constructor of the
        author's own is not called."""
        if _AGENT not in kinds(agent) or getattr(agent, "_agenteval_of", None) is self:
            return agent
        known = self._copies.get(id(agent))
        if known:
            return known[1]
        new = copy.copy(agent)
        self._copies[id(agent)] = (agent, new)  # first: agents hand over to each other
        new.tools = [self.tool(each) for each in agent.tools]
        new.handoffs = [self.handoff(each) for each in agent.handoffs]
        new.mcp_servers = [self._servers.of(each) for each in agent.mcp_servers]
        new.__class__ = self._kind(type(agent))
        return new

    def _kind(self, cls: Any) -> Any:
        conversation = self

        class Copy(cls):  # type: ignore[misc]
            _agenteval_of = conversation

            @property
            def handoffs(self) -> list[Any]:
                listed: list[Any] = self.__dict__["handoffs"]  # a hook may have added to it
                listed[:] = [conversation.handoff(each) for each in listed]
                return listed

            @handoffs.setter
            def handoffs(self, listed: list[Any]) -> None:
                self.__dict__["handoffs"] = listed

            async def get_all_tools(self, *args: Any, **named: Any) -> list[Any]:
                return [conversation.tool(each) for each in await super().get_all_tools(*args, **named)]

        Copy.__name__, Copy.__qualname__, Copy.__module__ = cls.__name__, cls.__qualname__, cls.__module__
        return Copy

    def handoff(self, handoff: Any) -> Any:
        if _AGENT in kinds(handoff):
            return self.copy(handoff)
        if getattr(handoff.on_invoke_handoff, "_agenteval_of", None) is self:
            return handoff
        invoke = handoff.on_invoke_handoff

        async def invoked(*args: Any) -> Any:
            return self.copy(await invoke(*args))

        invoked._agenteval_of = self  # type: ignore[attr-defined]
        new = copy.copy(handoff)
        new.on_invoke_handoff = invoked
        return new

    def tool(self, tool: Any) -> Any:
        """The tool as the world answers it. An agent that is a tool is run: its own tools are answered."""
        for known, new in self._answered.values():
            if tool is known or tool is new:
                return new
        kind = _kind_of(tool)
        if kind == "hosted":
            new = tool
        else:
            new = copy.copy(tool)
            if _agent_of(tool) is not None:
                new.on_invoke_tool = self._inner(tool)
            elif kind == "function":
                new.on_invoke_tool = self._function(tool)
            elif kind == "custom":
                new.on_invoke_tool = self._custom(tool)
            else:
                new.executor = self._shell(tool)
        self._answered[id(tool)] = (tool, new)
        return new

    def _function(self, tool: Any) -> Callable[..., Awaitable[Any]]:
        async def invoke(context: Any, arguments: str) -> Any:
            ran = []

            async def own() -> Any:
                ran.append(True)
                return await tool.on_invoke_tool(context, arguments)

            answer = await self._world.call(tool.name, arguments or "{}", own, _call_id(context))
            if ran:
                return answer.value
            return await _failed(tool, context, answer.text) if answer.is_error else answer.text

        return invoke

    def _inner(self, tool: Any) -> Callable[..., Awaitable[Any]]:
        async def invoke(context: Any, arguments: str) -> Any:
            async def own() -> Any:
                return await tool.on_invoke_tool(context, arguments)

            return await self._world.record(tool.name, arguments or "{}", own, _call_id(context))

        return invoke

    def _custom(self, tool: Any) -> Callable[..., Awaitable[Any]]:
        async def invoke(context: Any, written: str) -> Any:
            async def own() -> Any:
                return await _awaited(tool.on_invoke_tool(context, written))

            return await self._said(tool.name, {"input": written}, own, _call_id(context))

        return invoke

    def _shell(self, tool: Any) -> Callable[..., Awaitable[Any]]:
        async def execute(request: Any) -> Any:
            async def own() -> Any:
                return await _awaited(tool.executor(request))

            call_id = str(getattr(request.data, "call_id", ""))
            return await self._said(tool.name, _commands(request.data.action), own, call_id)

        return execute

    async def _said(self, name: str, args: Message, own: Callable[[], Awaitable[Any]], call_id: str) -> Any:
        ran = []

        async def run() -> Any:
            ran.append(True)
            return await own()

        answer = await self._world.call(name, args, run, call_id)
        return answer.value if ran else answer.text

    # ── runs inside of it

    def options(self, options: dict[str, Any]) -> dict[str, Any]:
        """What a run inside a tool is given: a session of the author's would be that of all conversations."""
        session = options.get("session")
        if session is None:
            return options
        if id(session) not in self._sessions:
            from agents import SQLiteSession

            self._sessions[id(session)] = (session, SQLiteSession(uuid.uuid4().hex))
        return {**options, "session": self._sessions[id(session)][1]}

    def counted(self, result: Any) -> Any:
        """A run inside a tool, whose items do not come up."""
        self._count(result)
        called = [_called(item) for item in result.new_items if item.type == "tool_call_item"]
        for name in [call["function"]["name"] for call, hosted_result in called if hosted_result is not None]:
            self._world.leave_unplaced(f"'{name}' ran at the provider, for an agent that is a tool")
        return result

    def streamed(self, agent: Any, result: Any) -> Any:
        """The same for a run whose items are not there yet."""
        self._count(result)
        for name in [tool.name for each in _all_agents(agent) for tool in each.tools if _is_hosted(tool)]:
            self._world.leave_unplaced(f"'{name}' may have run at the provider, for an agent that is a tool")
        return result

    def _count(self, result: Any) -> None:
        usage = getattr(getattr(result, "context_wrapper", None), "usage", None)
        if usage is not None and not any(usage is each for each in self._usages):
            self._usages.append(usage)

    def _usage(self) -> list[dict[str, Any]] | None:
        return [_counts(usage) for usage in self._usages if usage.input_tokens or usage.output_tokens] or None


def _counts(usage: Any) -> dict[str, Any]:
    details = (
        ("cached_tokens", getattr(usage, "input_tokens_details", None)),
        ("reasoning_tokens", getattr(usage, "output_tokens_details", None)),
    )
    names = ("requests", "input_tokens", "output_tokens", "total_tokens")
    return {
        **{name: getattr(usage, name, None) for name in names},
        **{name: getattr(each, name, None) for name, each in details},
    }


def _options(deps: Any) -> dict[str, Any]:
    """What each run of a conversation is given: a context, or a dict of options by their names."""
    if isinstance(deps, dict) and deps and _OPTIONS.issuperset(deps):
        return dict(deps)
    if "agents.run.RunConfig" in kinds(deps) or "agents.run_config.RunConfig" in kinds(deps):
        return {"run_config": deps}
    return {} if deps is None else {"context": deps}


def _call_id(context: Any) -> str:
    return str(getattr(context, "tool_call_id", None) or "")


async def _awaited(value: Any) -> Any:
    return await value if hasattr(value, "__await__") else value


async def _failed(tool: Any, context: Any, text: str) -> Any:
    """What the model hears when the tool raises, as its author decided it; where nobody did, the mock's own
    words: the SDK's sentence may hold nothing of them. Raises where the run is to end."""
    from agents.tool import default_tool_error_function as usual

    error = RuntimeError(text)
    try:
        from agents.tool import maybe_invoke_function_tool_failure_error_function as formatted
    except ImportError:
        function = _failure_function(tool.on_invoke_tool, usual)
        heard = await _awaited(function(context, error)) if function else None
    else:
        heard = await formatted(function_tool=tool, context=context, error=error)
    if heard is None:
        raise error
    return text if heard == usual(context, error) else heard


def _failure_function(invoke: Any, default: Any) -> Any:
    """Where releases before 0.8 keep it."""
    return _cells(invoke).get("failure_error_function", default)


def _commands(action: Any) -> Message:
    many = getattr(action, "commands", None)
    return {"commands": list(many)} if many is not None else {"command": list(getattr(action, "command", ()))}


def _tripped(error: BaseException) -> str:
    """What a guardrail that stops a turn says to the user: the SDK has no words of its own for it."""
    kind = _TRIPPED.get(type(error).__name__)
    if not kind:
        return ""
    guardrail = getattr(getattr(error, "guardrail_result", error), "guardrail", None)
    name = getattr(guardrail, "get_name", lambda: "")() if guardrail else ""
    return f"Stopped by the {kind} '{name}'." if name else f"Stopped by an {kind}."


def _waits_for(result: Any) -> str:
    """What a person is to decide."""
    asked = list(getattr(result, "interruptions", None) or ())
    asked += [item for item in result.new_items if item.type == "mcp_approval_request_item"]
    answered = any(item.type == "mcp_approval_response_item" for item in result.new_items)
    if not asked or (answered and not getattr(result, "interruptions", None)):
        return ""
    names = [getattr(item, "tool_name", None) or _field(item.raw_item, "name") or "a tool" for item in asked]
    return f"approval of {', '.join(map(str, names))}"


# ── the messages of a turn ───────────────────────────────────────────────────────────────────────


_READ = frozenset(
    (
        *("message_output_item", "tool_call_item", "tool_call_output_item", "handoff_call_item"),
        *("handoff_output_item", "reasoning_item", "mcp_list_tools_item", "mcp_approval_request_item"),
        *("mcp_approval_response_item", "compaction_item", "input_item", "tool_approval_item"),
        *("tool_search_call_item", "tool_search_output_item"),
    )
)
"""The items that are read, or that hold no calls."""
_OF_OUR_TOOLS = ("function_call_output", "custom_tool_call_output")


def _messages(items: Any) -> list[Message]:
    """The items of a turn as messages. A hand-off is one without a word, of the agent that hands over."""
    found: list[Message] = []
    for item in items:
        agent = getattr(getattr(item, "agent", None), "name", None)
        if item.type == "message_output_item":
            found.append({**_said_in(item.raw_item), "agent": agent})
        elif item.type == "tool_call_item":
            call, result = _called(item)
            last = found[-1] if found else {}
            if last.get("role") != "assistant" or last.get("agent") != agent:
                last = {"role": "assistant", "content": None, "agent": agent}
                found.append(last)
            last.setdefault("tool_calls", []).append(call)
            if result is not None:
                found.append({"role": "tool", "tool_call_id": call["id"], "content": result})
        elif item.type == "handoff_call_item":
            if not found or found[-1].get("agent") != agent:
                found.append({"role": "assistant", "content": None, "agent": agent})
        elif item.type == "tool_call_output_item":
            output = _field(item.raw_item, "output")
            text = output if isinstance(output, str) else _text(item.output)
            found.append({"role": "tool", "tool_call_id": _id_of(item.raw_item), "content": text})
    return found


def _said_in(message: Any) -> Message:
    parts = _field(message, "content") or ()
    text = "".join(_field(part, "text") or "" for part in parts)
    refusal = "".join(_field(part, "refusal") or "" for part in parts)
    said: Message = {"role": "assistant", "content": text or None}
    return {**said, "refusal": refusal} if refusal else said


def _called(item: Any) -> tuple[Message, str | None]:
    """A call; and its result, if it ran at the provider."""
    raw = item.raw_item
    kind = str(_field(raw, "type") or "")
    name, args, result = _field(raw, "name"), _field(raw, "arguments"), None
    if kind == "custom_tool_call":
        args = json.dumps({"input": _field(raw, "input")}, ensure_ascii=False)
    elif kind in ("local_shell_call", "shell_call"):
        name = name or getattr(item, "_resolved_tool_name", None) or kind[: -len("_call")]
        args = json.dumps(_commands(_object(_field(raw, "action"))), ensure_ascii=False)
    elif kind != "function_call":
        name = name or kind[: -len("_call")] if kind.endswith("_call") else name or kind
        args = args or json.dumps(_asked(raw), ensure_ascii=False, default=str)
        result = _text(next(filter(None, (_field(raw, key) for key in _RESULTS)), ""))
    function = {"name": name, "arguments": args or "{}"}
    return {"id": _id_of(raw), "type": "function", "function": function}, result


_RESULTS = ("output", "error", "results", "outputs", "result", "status")
_ASKED = ("action", "queries", "code")


def _asked(raw: Any) -> Message:
    found = {key: _plain(value) for key in _ASKED if (value := _field(raw, key)) is not None}
    return found.get("action") if isinstance(found.get("action"), dict) else found  # type: ignore[return-value]


def _id_of(raw: Any) -> str:
    return str(_field(raw, "call_id") or _field(raw, "id") or "")


def _field(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else getattr(value, name, None)


class _Fields:
    def __init__(self, fields: Message) -> None:
        self.__dict__.update(fields)


def _object(value: Any) -> Any:
    return _Fields(value) if isinstance(value, dict) else value


def _answer(messages: list[Message], output: Any, agent: str) -> None:
    """The last message is what the turn gave. That is not always what the model said: a tool's result may be
    it, and a structured answer is what was read from the model's text."""
    last = messages[-1] if messages else {}
    is_said = last.get("role") == "assistant" and not last.get("tool_calls")
    if output is None or (is_said and isinstance(output, str)):
        return
    if not is_said:
        last = {"role": "assistant", "agent": agent}
        messages.append(last)
    last["content"] = _text(output)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(_plain(value), ensure_ascii=False)


def _plain(value: Any) -> Any:
    from pydantic_core import to_jsonable_python

    return to_jsonable_python(value, fallback=str)


# ── MCP ──────────────────────────────────────────────────────────────────────────────────────────


class _Servers:
    """The MCP servers of a conversation's agents that nobody has connected: each conversation has its own
    connection. One task opens and closes them, as their transports demand."""

    def __init__(self) -> None:
        self._own: list[tuple[Any, Any]] = []
        self._task: asyncio.Task[None] | None = None
        self._over: asyncio.Event | None = None

    def of(self, server: Any) -> Any:
        if getattr(server, "session", self) is not None:  # connected, or of a kind that needs no connection
            return server
        for known, new in self._own:
            if server is known:
                return new
        new = copy.copy(server)
        for name, value in vars(server).items():
            if isinstance(value, (asyncio.Lock, AsyncExitStack)):
                setattr(new, name, type(value)())
            elif isinstance(value, (list, dict, set)):
                setattr(new, name, copy.copy(value))
        self._own.append((server, new))
        return new

    async def connect(self) -> None:
        if not self._own or self._task is not None:
            return
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._over = asyncio.Event()
        self._task = asyncio.ensure_future(self._hold(self._over, ready))
        await ready

    async def _hold(self, over: asyncio.Event, ready: asyncio.Future[None]) -> None:
        connected = []
        try:
            for _, server in self._own:
                connected.append(server)
                await server.connect()
            ready.set_result(None)
            await over.wait()
        except Exception as error:
            if not ready.done():
                ready.set_exception(error)
        finally:
            for server in reversed(connected):
                await server.cleanup()

    async def close(self) -> None:
        if self._task is not None and self._over is not None:
            self._over.set()
            await self._task


# ── the place where every run begins ─────────────────────────────────────────────────────────────


def _seam(framework: Any) -> _Runner:
    """Ours, as what ``agents.Runner`` hands every run to. ``own``: what it was."""
    import agents.run

    missing = [
        name
        for name in ("get_default_agent_runner", "set_default_agent_runner")
        if not hasattr(agents.run, name)
    ]
    if missing:
        raise unsupported(framework, f"agents.run.{missing[0]}")
    current = agents.run.get_default_agent_runner()
    if isinstance(current, _Runner):
        return current
    new = _Runner(current)
    agents.run.set_default_agent_runner(new)
    return new


class _Runner:
    """Runs the copy of the conversation that it is called in."""

    def __init__(self, own: Any) -> None:
        self.own = own

    async def run(self, starting_agent: Any, input: Any, **options: Any) -> Any:
        agent, conversation = _here(starting_agent)
        if conversation is None:
            return await self.own.run(agent, input, **options)
        return conversation.counted(await self.own.run(agent, input, **conversation.options(options)))

    def run_sync(self, starting_agent: Any, input: Any, **options: Any) -> Any:
        agent, conversation = _here(starting_agent)
        if conversation is None:
            return self.own.run_sync(agent, input, **options)
        return conversation.counted(self.own.run_sync(agent, input, **conversation.options(options)))

    def run_streamed(self, starting_agent: Any, input: Any, **options: Any) -> Any:
        agent, conversation = _here(starting_agent)
        if conversation is None:
            return self.own.run_streamed(agent, input, **options)
        result = self.own.run_streamed(agent, input, **conversation.options(options))
        return conversation.streamed(agent, result)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.own, name)


def _here(agent: Any) -> tuple[Any, _Conversation | None]:
    conversation = _PLAYING.get()
    if conversation is not None:
        return conversation.copy(agent), conversation
    if _TURNS and not any(each.name.startswith("agenteval_") for each in copy_context()):
        raise untracked(f"the agent '{agent.name}'")  # a thread with nothing of who began it
    return agent, None  # another agent's code: a function that runs one
