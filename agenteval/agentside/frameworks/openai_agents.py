"""Run an ``agents.Agent`` of the OpenAI Agents SDK, including its hand-offs and the agents that it uses as
tools.

The SDK's own ``Runner`` runs agents inside tools. The ``Runner`` is therefore the only place where every run
begins, and where the sessions, token usage and provider calls of all runs are known."""

from __future__ import annotations

import asyncio
import copy
import json
import uuid
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from ..closures import find_in_closures
from ..hooks.openai_agents import is_agent_tool
from ..hooks.openai_agents_local import file_patch_arguments, shell_arguments
from ..transcript import ToolCall, Transcript
from ..world import current_world
from .seam import (
    MORE,
    Refused,
    Tool,
    Waits,
    adds_code,
    kinds,
    may_reach,
    unsupported_version_error,
    walk_tree,
    with_partial,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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
"""The classes in ``agents.tool`` whose tools run on the provider's servers."""
_GUARDRAIL_ERRORS = {
    "InputGuardrailTripwireTriggered": "input guardrail",
    "OutputGuardrailTripwireTriggered": "output guardrail",
    "ToolInputGuardrailTripwireTriggered": "input tool guardrail",
    "ToolOutputGuardrailTripwireTriggered": "output tool guardrail",
}
_OPTIONS = frozenset(("context", "run_config", "max_turns", "hooks", "error_handlers"))
"""The arguments that an application passes to ``Runner.run`` in addition to the agent and the user's
message."""
_CONVERSATIONS: dict[World, OpenAIAgentsConversation] = {}
"""The open conversations, keyed by their worlds."""


class _OpenAIAgents:
    name = "OpenAI Agents SDK"
    package = "openai-agents"
    supports = "0.3 to 0.24"

    def no_history(self, _obj: Any) -> str:
        return ""

    def matches(self, obj: Any) -> bool:
        return _BASE in kinds(obj)

    def tools(self, obj: Any) -> list[Tool]:
        found: dict[str, Tool] = {}
        for agent in _all_agents(obj):
            for tool in getattr(agent, "tools", ()):
                described = _to_tool(tool)
                found.setdefault(described.name, described)
            if agent.mcp_servers or any(
                _may_run_other_agents(each) or _is_of_server(each) for each in agent.tools
            ):
                found.setdefault(MORE.name, MORE)
        return list(found.values())

    def runs_own_code(self, obj: Any) -> bool:
        return any(adds_code(agent, "agents") for agent in _all_agents(obj))

    def open(self, obj: Any, world: World, session: str, deps: Any) -> OpenAIAgentsConversation:
        self._require(obj, deps)
        _install_runner(self)
        from agents import set_tracing_disabled

        set_tracing_disabled(True)  # tracing would send data to OpenAI
        return OpenAIAgentsConversation(obj, world, deps)

    def _require(self, obj: Any, deps: Any) -> None:
        known = kinds(obj)
        if _AGENT not in known:
            what = f"unsupported {self.name} target: an object of type {type(obj).__name__}"
            raise Refused(what, "use an agents.Agent or a function as the target (docs/agents.md)")
        if any(each.startswith("agents.sandbox.") for each in known):
            what = f"'{obj.name}' is a {type(obj).__name__}"
            what += ", and a scenario cannot mock what it does in its sandbox"
            raise Refused(what, "use an agents.Agent or a function as the target (docs/agents.md)")
        if not hasattr(obj, "get_all_tools"):
            raise unsupported_version_error(self, "Agent.get_all_tools")
        for agent in _all_agents(obj):
            for tool in agent.tools:
                _is_hosted(tool)
        if deps is None and (needed := _required_context(obj)):
            what = f"the agent '{obj.name}' needs a context of type {needed}"
            raise Refused(what, "set `target: {object: …, deps: file.py:make_deps}`")


FRAMEWORK = _OpenAIAgents()


def _required_context(agent: Any) -> str | None:
    """Return the name of the context type, such as ``Shop`` in ``Agent[Shop](…)``."""
    args = getattr(getattr(agent, "__orig_class__", None), "__args__", ())
    needed = args[0] if args else None
    is_one = isinstance(needed, type) and needed not in (type(None), object)
    return needed.__name__ if is_one and needed is not None else None


# ── agents and tools ─────────────────────────────────────────────────────────────────────────────


def _all_agents(agent: Any) -> list[Any]:
    """Return an agent and all agents that it can reach."""
    return list(walk_tree(agent, _reachable_agents)) if _is_agent(agent) else []


def _reachable_agents(agent: Any) -> list[Any]:
    return list(filter(_is_agent, (*map(_handoff_target, agent.handoffs), *map(_wrapped_agent, agent.tools))))


def _handoff_target(handoff: Any) -> Any:
    """Return the target agent of a hand-off. The SDK stores this agent in the object created by
    ``handoff()``."""
    if _AGENT in kinds(handoff):
        return handoff
    reference = getattr(handoff, "_agent_ref", None)
    agent = reference() if callable(reference) else None
    return agent or find_in_closures(getattr(handoff, "on_invoke_handoff", None), _is_agent)


def _wrapped_agent(tool: Any) -> Any:
    """Return the agent that ``as_tool`` converted to a tool, or ``None`` for any other tool."""
    known = getattr(tool, "_agent_instance", None)
    if known is not None or not hasattr(tool, "on_invoke_tool") or not is_agent_tool(tool):
        return known
    return find_in_closures(tool.on_invoke_tool, _is_agent)


def _may_run_other_agents(tool: Any) -> bool:
    """Return whether a tool's function refers to an agent. The function may run this agent, which has its own
    tools."""

    def names_one(value: Any) -> bool:
        return _is_agent(value) or may_reach(value, _is_agent, "agents")

    return (
        _wrapped_agent(tool) is None
        and find_in_closures(getattr(tool, "on_invoke_tool", None), names_one) is not None
    )


def _is_of_server(tool: Any) -> bool:
    """Return whether a tool represents the tools of an MCP server that the provider calls
    (``HostedMCPTool``)."""
    return type(tool).__name__ == "HostedMCPTool"


def _is_agent(value: Any) -> bool:
    return _AGENT in kinds(value) and not isinstance(value, type)


def _to_tool(tool: Any) -> Tool:
    description = getattr(tool, "description", None)
    return Tool(
        tool.name,
        description if isinstance(description, str) else "",
        getattr(tool, "params_json_schema", None),
        hosted=_is_hosted(tool),
        is_agent=_wrapped_agent(tool) is not None,
    )


def _is_hosted(tool: Any) -> bool:
    """Return whether a tool runs on the provider's servers. Raise ``Refused`` for an unknown tool, and for a
    tool that runs on this machine but whose calls cannot be intercepted."""
    names = {each.rpartition(".")[2] for each in kinds(tool) if each.startswith("agents.")}
    if names & {"LocalShellTool", "ShellTool"}:
        return getattr(tool, "executor", None) is None
    if names & {"FunctionTool", "CustomTool", "ApplyPatchTool"}:
        return False
    if names & _HOSTED:
        return True
    what = f"the tool '{getattr(tool, 'name', '?')}' ({type(tool).__name__}) cannot be intercepted"
    raise Refused(f"{what}, so a scenario cannot mock it", "remove it from the agent's tools")


def _input_items(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a message in OpenAI's chat format as items of the SDK's input."""
    if message["role"] == "tool":
        call, output = message["tool_call_id"], message["content"]
        yield {"type": "function_call_output", "call_id": call, "output": output}
        return
    if message.get("content"):
        yield {"role": message["role"], "content": message["content"]}
    for call in message.get("tool_calls") or ():
        yield {"type": "function_call", "call_id": call["id"], **call["function"]}


# ── conversation ─────────────────────────────────────────────────────────────────────────────────


class OpenAIAgentsConversation:
    def __init__(self, agent: Any, world: World, deps: Any) -> None:
        self._world = world
        self._options = _options(deps)
        self._copies: dict[int, tuple[Any, Any]] = {}
        self._sessions: dict[int, tuple[Any, Any]] = {}
        self._servers = _Servers()
        self._history: list[Any] = []
        self._usages: list[Any] = []
        self._needs_connections = any(map(_needs_connection, _all_agents(agent)))
        self._agent = self.copy(agent)
        _CONVERSATIONS[world] = self

    def load_history(self, messages: list[dict[str, Any]]) -> None:
        self._history = [item for each in messages for item in _input_items(each)]

    async def reply(self, text: str) -> dict[str, Any]:
        runner = _install_runner(FRAMEWORK)
        await self._servers.connect()
        self._usages = []
        model_input = [*self._history, {"role": "user", "content": text}]
        try:
            result = await runner.original.run(self._agent, model_input, **self._options)
        except Exception as error:
            data = getattr(error, "run_data", None)
            self._count(data)
            transcript = self._transcript(data.new_items if data else ())
            tripped = _guardrail_message(error)
            if not tripped:
                with_partial(error, transcript.to_openai(), self._usage())
                raise
            self._history = [*model_input, {"role": "assistant", "content": tripped}]
            transcript.answer(None, refusal=tripped)
            return self._reply(transcript)
        self._count(result)
        transcript = self._transcript(result.new_items)
        if waits := _waits_for(result):
            waiting = Waits(f"the agent is waiting for human input: {waits}")
            with_partial(waiting, transcript.to_openai(), self._usage())
            raise waiting
        self._history = result.to_input_list()
        self._agent = self.copy(result.last_agent)
        _write_answer(transcript, result.final_output, self._agent.name)
        return self._reply(transcript)

    def _reply(self, transcript: Transcript) -> dict[str, Any]:
        return {"messages": transcript.to_openai(), "usage": self._usage(), "agent": self._agent.name}

    async def close(self) -> None:
        _CONVERSATIONS.pop(self._world, None)
        await self._servers.close()

    def _transcript(self, items: Any) -> Transcript:
        """Convert the items of a turn to messages."""
        for kind in sorted({str(item.type) for item in items} - _READ):
            self._world.note_unseen_calls(f"unsupported item '{kind}' in a run")
        transcript, refused = Transcript(), self._refused_call_ids(items)
        for item in items:
            if item.type in _WRITERS:
                _WRITERS[item.type](transcript, item, refused)
        return transcript

    def _refused_call_ids(self, items: Any) -> set[str]:
        """Return the ids of calls that did not reach the scenario. The tools did not run, because the SDK, a
        guardrail or a person refused the calls."""
        calls = [_parse_call(item)[0] for item in items if item.type == "tool_call_item"]
        names = {call.id: call.name for call in calls}
        results = [item.raw_item for item in items if item.type == "tool_call_output_item"]
        local_ids = [_id_of(raw) for raw in results if _field(raw, "type") in _LOCAL_RESULT_TYPES]
        return {call_id for call_id in local_ids if not self._was_asked(call_id, names.get(call_id, ""))}

    def _was_asked(self, call_id: str, name: str) -> bool:
        """Return whether a call reached the scenario. The call is matched by its id if the SDK passed an id
        to the tool."""
        requested = self._world.calls_so_far
        return self._world.has_received_call(call_id) or any(
            each[0] == name and not each.call_id for each in requested
        )

    # ── copies of agents

    def copy(self, agent: Any) -> Any:
        """Return a copy of an agent for this conversation if its MCP servers, or the MCP servers of an agent
        that it can reach, must be connected. Otherwise, return the agent itself.

        The copy has the same fields. A constructor written by the author is not called."""
        if not self._needs_connections or not _is_agent(agent):
            return agent
        known = self._copies.get(id(agent))
        if known:
            return known[1]
        new = copy.copy(agent)
        self._copies[id(agent)] = (
            agent,
            new,
        )  # before its parts are copied, because hand-offs may be circular
        self._copies[id(new)] = (new, new)
        new.handoffs = [self._handoff(each) for each in agent.handoffs]
        new.mcp_servers = [self._servers.connected_copy(each) for each in agent.mcp_servers]
        return new

    def _handoff(self, handoff: Any) -> Any:
        if _is_agent(handoff):
            return self.copy(handoff)
        invoke, new = handoff.on_invoke_handoff, copy.copy(handoff)

        async def invoked(*args: Any) -> Any:
            return self.copy(await invoke(*args))

        new.on_invoke_handoff = invoked
        return new

    # ── runs inside tools

    def options(self, options: dict[str, Any]) -> dict[str, Any]:
        """Return the options for a run inside a tool. The author's session is replaced, because all
        conversations would share it."""
        session = options.get("session")
        if session is None:
            return options
        if id(session) not in self._sessions:
            from agents import SQLiteSession

            self._sessions[id(session)] = (session, SQLiteSession(uuid.uuid4().hex))
        return {**options, "session": self._sessions[id(session)][1]}

    def record_run(self, result: Any) -> Any:
        """Record a run inside a tool, because the items of this run do not reach the outer run."""
        self._count(result)
        called = [_parse_call(item) for item in result.new_items if item.type == "tool_call_item"]
        for name in [call.name for call, hosted_result in called if hosted_result is not None]:
            self._world.note_unseen_calls(f"'{name}' ran at the provider for an agent used as a tool")
        return result

    def record_streamed_run(self, agent: Any, result: Any) -> Any:
        """Record a streamed run inside a tool. The items of such a run do not exist yet."""
        self._count(result)
        for name in [tool.name for each in _all_agents(agent) for tool in each.tools if _is_hosted(tool)]:
            self._world.note_unseen_calls(
                f"'{name}' may have run at the provider for an agent used as a tool"
            )
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
    """Return the options for each run in a conversation. ``deps`` is a context, a ``RunConfig``, or a dict
    that maps option names to values."""
    if isinstance(deps, dict) and deps and _OPTIONS.issuperset(deps):
        return dict(deps)
    if "agents.run.RunConfig" in kinds(deps) or "agents.run_config.RunConfig" in kinds(deps):
        return {"run_config": deps}
    return {} if deps is None else {"context": deps}


def _guardrail_message(error: BaseException) -> str:
    """Return a message to the user if a guardrail stopped the turn, because the SDK has no text for this
    case. Return an empty string for any other error."""
    kind = _GUARDRAIL_ERRORS.get(type(error).__name__)
    if not kind:
        return ""
    guardrail = getattr(getattr(error, "guardrail_result", error), "guardrail", None)
    name = getattr(guardrail, "get_name", lambda: "")() if guardrail else ""
    return f"Stopped by the {kind} '{name}'." if name else f"Stopped by an {kind}."


def _waits_for(result: Any) -> str:
    """Return a description of the decision that a person must make, or an empty string if no decision is
    pending."""
    pending = list(getattr(result, "interruptions", None) or ())
    pending += [item for item in result.new_items if item.type == "mcp_approval_request_item"]
    answered = any(item.type == "mcp_approval_response_item" for item in result.new_items)
    if not pending or (answered and not getattr(result, "interruptions", None)):
        return ""
    names = [
        getattr(item, "tool_name", None) or _field(item.raw_item, "name") or "a tool" for item in pending
    ]
    return f"approval of {', '.join(map(str, names))}"


# ── messages ─────────────────────────────────────────────────────────────────────────────────────


_READ = frozenset(
    (
        *("message_output_item", "tool_call_item", "tool_call_output_item", "handoff_call_item"),
        *("handoff_output_item", "reasoning_item", "mcp_list_tools_item", "mcp_approval_request_item"),
        *("mcp_approval_response_item", "compaction_item", "input_item", "tool_approval_item"),
        *("tool_search_call_item", "tool_search_output_item"),
    )
)
"""The item types that are supported or that contain no calls."""
_LOCAL_RESULT_TYPES = ("function_call_output", "custom_tool_call_output", "apply_patch_call_output")


def _speaker(item: Any) -> str | None:
    return getattr(getattr(item, "agent", None), "name", None)


def _write_message(transcript: Transcript, item: Any, _refused: set[str]) -> None:
    parts = _field(item.raw_item, "content") or ()
    text = "".join(_field(part, "text") or "" for part in parts)
    refusal = "".join(_field(part, "refusal") or "" for part in parts)
    transcript.answer(text or None, agent=_speaker(item), refusal=refusal or None)


def _write_call(transcript: Transcript, item: Any, _refused: set[str]) -> None:
    call, hosted_result = _parse_call(item)
    transcript.more_calls([call], agent=_speaker(item))
    if hosted_result is not None:
        transcript.result(call.id, hosted_result)


def _write_hand_off(transcript: Transcript, item: Any, _refused: set[str]) -> None:
    """Add a hand-off as a message without text from the agent that hands over the conversation."""
    transcript.more_calls([], agent=_speaker(item))


def _write_result(transcript: Transcript, item: Any, refused: set[str]) -> None:
    call_id, output = _id_of(item.raw_item), _field(item.raw_item, "output")
    text = output if isinstance(output, str) else _text(item.output)
    transcript.result(call_id, text, error=call_id in refused)


_WRITERS: dict[str, Callable[[Transcript, Any, set[str]], None]] = {
    "message_output_item": _write_message,
    "tool_call_item": _write_call,
    "handoff_call_item": _write_hand_off,
    "tool_call_output_item": _write_result,
}
"""The functions that write items, keyed by item type. ``refused`` contains the ids of calls for which no tool
ran."""


def _parse_call(item: Any) -> tuple[ToolCall, str | None]:
    """Return a call, along with its result if the call ran on the provider's servers."""
    raw = item.raw_item
    kind = str(_field(raw, "type") or "")
    read = _ARGUMENTS.get(kind)
    if read is not None:
        return ToolCall(_id_of(raw), _name_of(item, kind), read(raw) or "{}"), None
    arguments = _field(raw, "arguments") or _hosted_arguments(raw)
    result = _text(next(filter(None, (_field(raw, key) for key in _RESULTS)), ""))
    return ToolCall(_id_of(raw), _name_of(item, kind), arguments), result


_ARGUMENTS: dict[str, Callable[[Any], Any]] = {
    "function_call": lambda raw: _field(raw, "arguments"),
    "custom_tool_call": lambda raw: {"input": _field(raw, "input")},
    "local_shell_call": lambda raw: shell_arguments(_with_attributes(_field(raw, "action"))),
    "shell_call": lambda raw: shell_arguments(_with_attributes(_field(raw, "action"))),
    "apply_patch_call": lambda raw: file_patch_arguments(_with_attributes(_field(raw, "operation"))),
}
"""The functions that read the arguments, keyed by the type of a call that runs on this machine."""


def _name_of(item: Any, kind: str) -> Any:
    """Return the name of the called tool. Calls to the SDK's built-in tools have a type instead of a name."""
    if name := _field(item.raw_item, "name"):
        return name
    known = getattr(item, "_resolved_tool_name", None) if kind.endswith("shell_call") else None
    return known or (kind[: -len("_call")] if kind.endswith("_call") else kind)


_RESULTS = ("output", "error", "results", "outputs", "result", "status")
_HOSTED_ARGUMENTS = ("action", "queries", "code")


def _hosted_arguments(raw: Any) -> Message:
    found = {key: _plain(value) for key in _HOSTED_ARGUMENTS if (value := _field(raw, key)) is not None}
    return found.get("action") if isinstance(found.get("action"), dict) else found  # type: ignore[return-value]


def _id_of(raw: Any) -> str:
    return str(_field(raw, "call_id") or _field(raw, "id") or "")


def _field(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else getattr(value, name, None)


class _Fields:
    def __init__(self, fields: Message) -> None:
        self.__dict__.update(fields)


def _with_attributes(value: Any) -> Any:
    return _Fields(value) if isinstance(value, dict) else value


def _write_answer(transcript: Transcript, output: Any, agent: str) -> None:
    """Make the output of the turn the last message. The output may differ from the model's text: it may be a
    tool result, or a structured answer parsed from the text."""
    is_last_message = transcript.ends_in_answer and isinstance(output, str)
    if output is not None and not is_last_message:
        transcript.end_with(_text(output), agent=agent)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(_plain(value), ensure_ascii=False)


def _plain(value: Any) -> Any:
    from pydantic_core import to_jsonable_python

    return to_jsonable_python(value, fallback=str)


# ── MCP ──────────────────────────────────────────────────────────────────────────────────────────


def _needs_connection(agent: Any) -> bool:
    """Return whether an agent uses an MCP server that requires a connection but is not connected."""
    return any(getattr(server, "session", agent) is None for server in agent.mcp_servers)


class _Servers:
    """The unconnected MCP servers of the agents in a conversation, each with its own connection for this
    conversation. A single task opens and closes the connections, as required by their transports."""

    def __init__(self) -> None:
        self._copies: list[tuple[Any, Any]] = []
        self._task: asyncio.Task[None] | None = None
        self._over: asyncio.Event | None = None

    def connected_copy(self, server: Any) -> Any:
        if getattr(server, "session", self) is not None:
            return server
        for known, new in self._copies:
            if server is known:
                return new
        new = copy.copy(server)
        for name, value in vars(server).items():
            if isinstance(value, (asyncio.Lock, AsyncExitStack)):
                setattr(new, name, type(value)())
            elif isinstance(value, (list, dict, set)):
                setattr(new, name, copy.copy(value))
        self._copies.append((server, new))
        return new

    async def connect(self) -> None:
        if not self._copies or self._task is not None:
            return
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._over = asyncio.Event()
        self._task = asyncio.ensure_future(self._keep_connected(self._over, ready))
        await ready

    async def _keep_connected(self, over: asyncio.Event, ready: asyncio.Future[None]) -> None:
        connected = []
        try:
            for _, server in self._copies:
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


# ── runner ───────────────────────────────────────────────────────────────────────────────────────


def _install_runner(framework: Any) -> _Runner:
    """Install and return agenteval's runner. From then on, ``agents.Runner`` passes every run to this runner.
    ``original`` is the previous runner."""
    import agents.run

    missing = [
        name
        for name in ("get_default_agent_runner", "set_default_agent_runner")
        if not hasattr(agents.run, name)
    ]
    if missing:
        raise unsupported_version_error(framework, f"agents.run.{missing[0]}")
    current = agents.run.get_default_agent_runner()
    if isinstance(current, _Runner):
        return current
    new = _Runner(current)
    agents.run.set_default_agent_runner(new)
    return new


class _Runner:
    """A runner that runs agents as usual and records the runs inside a conversation's tools."""

    def __init__(self, original: Any) -> None:
        self.original = original

    async def run(self, starting_agent: Any, input: Any, **options: Any) -> Any:
        if (conversation := _current_conversation()) is None:
            return await self.original.run(starting_agent, input, **options)
        agent, options = conversation.copy(starting_agent), conversation.options(options)
        return conversation.record_run(await self.original.run(agent, input, **options))

    def run_sync(self, starting_agent: Any, input: Any, **options: Any) -> Any:
        if (conversation := _current_conversation()) is None:
            return self.original.run_sync(starting_agent, input, **options)
        agent, options = conversation.copy(starting_agent), conversation.options(options)
        return conversation.record_run(self.original.run_sync(agent, input, **options))

    def run_streamed(self, starting_agent: Any, input: Any, **options: Any) -> Any:
        if (conversation := _current_conversation()) is None:
            return self.original.run_streamed(starting_agent, input, **options)
        agent, options = conversation.copy(starting_agent), conversation.options(options)
        return conversation.record_streamed_run(agent, self.original.run_streamed(agent, input, **options))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.original, name)


def _current_conversation() -> OpenAIAgentsConversation | None:
    world = current_world()
    return _CONVERSATIONS.get(world) if world is not None else None
