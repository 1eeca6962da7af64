"""Run an agent, an agent tree or an ``App`` built with Google's Agent Development Kit (ADK), using
agenteval's own runner.

A plugin records the actions of agents used as tools, and identifies the framework's internal calls."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from ..hooks.google_adk import is_adk_builtin
from ..transcript import ToolCall, Transcript
from .seam import (
    LATER,
    MORE,
    Refused,
    Tool,
    Waits,
    adds_code,
    hints_of,
    is_instance_of,
    kinds,
    may_reach,
    unsupported_version_error,
    walk_tree,
    with_partial,
)

if TYPE_CHECKING:
    from ..world import World

_AGENT = "google.adk.agents.base_agent.BaseAgent"
_NODE = "google.adk.workflow._base_node.BaseNode"
_APP = "google.adk.apps.app.App"
_RUNNER = "google.adk.runners.Runner"
_LLM_AGENT = "google.adk.agents.llm_agent.LlmAgent"
_AGENT_TOOL = "google.adk.tools.agent_tool.AgentTool"
_TASK_TOOL = "_TaskAgentTool"
_FUNCTION_TOOL = "google.adk.tools.function_tool.FunctionTool"
_TOOL = "google.adk.tools.base_tool.BaseTool"
_TOOLSET = "google.adk.tools.base_toolset.BaseToolset"

_KNOWN = ("LlmAgent", "SequentialAgent", "ParallelAgent", "LoopAgent", "LangGraphAgent", "BaseAgent")
"""The agent classes whose tools run in this process. Agents of all other classes are remote."""
_GROUNDING = (
    "GoogleSearchTool", "GoogleMapsGroundingTool", "EnterpriseWebSearchTool", "VertexAiSearchTool",
    "VertexAiRagRetrieval",
)  # fmt: skip
"""The tools that run on the provider's servers and whose queries appear in the reply."""
_HOSTED = (*_GROUNDING, "GoogleSearchAgentTool", "UrlContextTool", "DiscoveryEngineSearchTool")
_OWN_CLASSES = ("PreloadMemoryTool", "ExampleTool")
"""The tool classes that only add text to the prompt and are never called."""
_COUNTS = (
    "prompt_token_count", "candidates_token_count", "thoughts_token_count", "tool_use_prompt_token_count",
    "cached_content_token_count", "total_token_count",
)  # fmt: skip


class GoogleAdk:
    name = "Google ADK"
    package = "google-adk"
    supports = "1.18 to 2.13"

    def matches(self, obj: Any) -> bool:
        return is_instance_of(obj, _AGENT, _NODE, _APP, _RUNNER)

    def tools(self, obj: Any) -> list[Tool]:
        found: dict[str, Tool] = {}
        for agent in _agents(_root_agent(obj)):
            is_own = not is_instance_of(agent, _LLM_AGENT) and adds_code(agent, "google")
            if is_own or type(agent).__name__ == "LangGraphAgent":
                found.setdefault(MORE.name, MORE)  # the tools that its own code, or its graph, calls
            for tool in getattr(agent, "tools", None) or ():
                described = _to_tool(tool)
                if described:
                    found.setdefault(described.name, described)
                if may_reach(getattr(tool, "func", tool), FRAMEWORK.matches, "google"):
                    found.setdefault(MORE.name, MORE)  # the tools of an agent that the function runs
        return list(found.values())

    def runs_own_code(self, obj: Any) -> bool:
        return any(adds_code(agent, "google") for agent in _agents(_root_agent(obj)))

    def open(self, obj: Any, world: World, session: str, deps: Any) -> AdkConversation:
        root = _root_agent(obj)
        for agent in _agents(root):
            _require_local_tools(agent)
        if deps is not None and deps is not LATER and not isinstance(deps, dict):
            what = f"`deps` must return a dict for a Google ADK agent, not {type(deps).__name__}"
            raise Refused(what, "return the initial state of the session")
        return AdkConversation(obj, world, session, deps if isinstance(deps, dict) else {})


FRAMEWORK = GoogleAdk()


# ── agents and tools ─────────────────────────────────────────────────────────────────────────────


def _root_agent(obj: Any) -> Any:
    """Return the root agent. Raise ``Refused`` for any other object."""
    if isinstance(obj, type):
        raise Refused(f"{obj.__name__} is a Google ADK class", "use an instance of it")
    if is_instance_of(obj, _RUNNER):
        raise Refused(
            "a Google ADK `Runner` shares its sessions between conversations", "use its agent or its App"
        )
    root = getattr(obj, "root_agent", None) if is_instance_of(obj, _APP) else obj
    if not is_instance_of(root, _AGENT):
        what = f"a Google ADK {type(root).__name__} cannot be run directly"
        raise Refused(what, "use an agent, or a function that runs it (docs/agents.md)")
    return root


def _agents(root: Any) -> Iterator[Any]:
    """Yield an agent, its sub-agents, and the agents that it uses as tools."""
    return walk_tree(root, _parts_of)


def _parts_of(agent: Any) -> list[Any]:
    tools = [tool for tool in getattr(agent, "tools", None) or () if is_instance_of(tool, _AGENT_TOOL)]
    return [*(getattr(agent, "sub_agents", None) or ()), *(tool.agent for tool in tools)]


def _require_local_tools(agent: Any) -> None:
    """Raise ``Refused`` for an agent with tools that run where agenteval cannot answer their calls."""
    kind = next(each for each in kinds(agent) if each.startswith("google.adk."))
    if kind.rpartition(".")[2] not in _KNOWN:
        what = f"the agent '{agent.name}' is a {kind.rpartition('.')[2]}, which runs its own tools"
        raise Refused(
            f"{what}: a scenario cannot mock them", "use an agent that runs its tools in this process"
        )


def _to_tool(tool: Any) -> Tool | None:
    """Return the properties of an agent's tool that are known before the run, or ``None`` for an internal
    framework tool."""
    if not is_instance_of(tool, _TOOL, _TOOLSET):
        if not callable(tool):
            return None
        from google.adk.tools import FunctionTool

        tool = FunctionTool(tool)
    if is_instance_of(tool, _TOOLSET):
        return MORE
    name = tool.name
    if type(tool).__name__ in _HOSTED:
        return Tool(name, tool.description or "", None, hosted=True)
    if _is_internal(tool):
        return None
    if is_instance_of(tool, _AGENT_TOOL):
        return Tool(name, tool.description or "", _parameters(tool), is_agent=True)
    return Tool(name, tool.description or "", _parameters(tool), hints=hints_of(tool))


def _is_internal(tool: Any) -> bool:
    """Return whether a tool is part of the framework's own control flow, or only adds text to the prompt and
    is never called."""
    return is_adk_builtin(tool) or type(tool).__name__ in _OWN_CLASSES


def _parameters(tool: Any) -> dict[str, Any] | None:
    try:
        declared = tool._get_declaration()
    except Exception:  # raised by the author's tool, or a tool not known yet; the run will show it
        return None
    if declared is None:
        return None
    if getattr(declared, "parameters_json_schema", None) is not None:
        schema = declared.parameters_json_schema
        return schema if isinstance(schema, dict) else None
    if declared.parameters is None:
        return {"type": "object", "properties": {}}
    schema = _lower_types(declared.parameters.model_dump(mode="json", exclude_none=True, by_alias=True))
    return schema if isinstance(schema, dict) else None


def _lower_types(schema: Any) -> Any:
    """Return a schema with its types in lower case. Google writes ``STRING`` where JSON Schema uses
    ``string``."""
    if isinstance(schema, dict):
        return {
            key: each.lower() if key == "type" and isinstance(each, str) else _lower_types(each)
            for key, each in schema.items()
        }
    return [_lower_types(each) for each in schema] if isinstance(schema, list) else schema


# ── conversation ─────────────────────────────────────────────────────────────────────────────────


class _RecordedEvent(NamedTuple):
    """An event that occurred during a run."""

    event: Any
    is_inner: bool = False
    """True if the event comes from an agent used as a tool. The calling agent passes that agent's text on."""


class _AdkTurn:
    """The record of a turn."""

    def __init__(self) -> None:
        self.events: list[_RecordedEvent] = []
        self.own: set[str] = set()
        """The ids of calls that the framework ran for itself."""
        self.missing: set[str] = set()
        """The ids of calls to tools that do not exist."""
        self.tasks: set[str] = set()
        """The names of agents that are used as tools but that the framework starts itself, bypassing the
        tool."""

    def begin(self) -> None:
        self.events, self.own, self.missing, self.tasks = [], set(), set(), set()


class AdkConversation:
    def __init__(self, obj: Any, world: World, session: str, state: dict[str, Any]) -> None:
        self._session = session
        self._state = copy.deepcopy(state)
        self._turn = _AdkTurn()
        self._world = world
        self._at_provider = _ProviderTools(_agents(_root_agent(obj)))
        self._own_code = frozenset(
            each.name for each in _agents(_root_agent(obj)) if adds_code(each, "google")
        )
        self._runner = _make_runner(obj, _make_plugin(session, self._turn))
        self._is_open = False

    async def reply(self, text: str) -> dict[str, Any]:
        from contextlib import aclosing  # since Python 3.10, which the framework requires

        from google.genai import types

        user = {"user_id": "user", "session_id": self._session}
        if not self._is_open:
            self._is_open = True
            await self._runner.session_service.create_session(
                app_name=self._runner.app_name, state=self._state, **user
            )
        turn = self._turn
        turn.begin()
        message = types.Content(role="user", parts=[types.Part(text=text)])
        try:
            async with aclosing(self._runner.run_async(new_message=message, **user)) as events:
                async for event in events:
                    turn.events.append(_RecordedEvent(event))
            _require_done(turn.events)
        except Exception as error:
            with_partial(error, **self._reply())
            raise
        return {**self._reply(), "agent": _speaker(turn.events)}

    def _reply(self) -> dict[str, Any]:
        turn, events = self._turn, self._turn.events
        for what in self._at_provider.unplaced(events):
            self._world.note_unseen_calls(what)
        elsewhere = [
            call.id
            for event in (each.event for each in events)
            for call in event.get_function_calls()
            if call.name in turn.tasks or (event.author in self._own_code and call.id not in turn.missing)
        ]
        messages = _messages(turn, self._at_provider)
        return {"messages": messages, "usage": _usage(events), "elsewhere": elsewhere}

    async def close(self) -> None:
        """Do nothing, because plugins and toolsets belong to the agent and are shared with other
        conversations."""


def _make_runner(obj: Any, plugin: Any) -> Any:
    from google.adk.artifacts import InMemoryArtifactService
    from google.adk.memory import InMemoryMemoryService
    from google.adk.runners import Runner
    from google.adk.sessions import InMemorySessionService

    services = {
        "session_service": InMemorySessionService(),
        "artifact_service": InMemoryArtifactService(),
        "memory_service": InMemoryMemoryService(),
    }
    if is_instance_of(obj, _APP):
        played = obj.model_copy(update={"plugins": [plugin, *obj.plugins]})
        return Runner(app=played, **services)
    return Runner(app_name=obj.name, agent=obj, plugins=[plugin], **services)


def _require_seam() -> None:
    """Raise ``Refused`` for a framework version that lacks features required by the adapter."""
    try:
        from google.adk.models.llm_request import LlmRequest
        from google.adk.plugins.base_plugin import BasePlugin
        from google.adk.runners import Runner
    except ImportError as error:
        missing = str(error)
    else:
        known = (
            ("LlmRequest.tools_dict", "tools_dict" in LlmRequest.model_fields),
            ("BasePlugin.before_model_callback", hasattr(BasePlugin, "before_model_callback")),
            ("BasePlugin.before_tool_callback", hasattr(BasePlugin, "before_tool_callback")),
            ("BasePlugin.on_event_callback", hasattr(BasePlugin, "on_event_callback")),
            ("Runner(plugins=…)", "plugins" in inspect.signature(Runner.__init__).parameters),
        )
        missing = next((what for what, is_there in known if not is_there), "")
    if missing:
        raise unsupported_version_error(FRAMEWORK, missing)


def _make_plugin(session: str, turn: _AdkTurn) -> Any:
    _require_seam()
    from google.adk.plugins.base_plugin import BasePlugin
    from google.adk.tools import BaseTool

    class Heard(BasePlugin):  # type: ignore[misc]
        """A plugin that records facts that do not appear in the run's events."""

        async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> None:
            tools = llm_request.tools_dict.items()
            turn.tasks.update(name for name, tool in tools if type(tool).__name__ == _TASK_TOOL)

        async def before_tool_callback(
            self, *, tool: Any, tool_args: dict[str, Any], tool_context: Any
        ) -> None:
            if _is_internal(tool):
                turn.own.add(tool_context.function_call_id)
            elif type(tool) is BaseTool:  # a placeholder for a tool that does not exist
                turn.missing.add(tool_context.function_call_id)

        async def on_event_callback(self, *, invocation_context: Any, event: Any) -> None:
            if invocation_context.session.id != session:
                turn.events.append(_RecordedEvent(event, is_inner=True))

    return Heard(name="agenteval")


# ── messages and usage ───────────────────────────────────────────────────────────────────────────


class _ProviderTools:
    """The tools that run on the model provider's servers and appear only in the model's replies."""

    def __init__(self, agents: Iterator[Any]) -> None:
        tools = [tool for agent in agents for tool in getattr(agent, "tools", None) or ()]
        self._grounding = sorted({each.name for each in tools if type(each).__name__ in _GROUNDING})
        self._silent = [each.name for each in tools if type(each).__name__ == "UrlContextTool"]

    def unplaced(self, events: list[_RecordedEvent]) -> Iterator[str]:
        """Yield a description of each part of a turn that may contain calls that are not visible to
        agenteval."""
        for name in self._silent:
            yield f"'{name}' runs at the provider, which does not report its calls"
        for event in (each.event for each in events):
            kinds_of_parts = {kind for part in _parts(event) for kind in _UNREAD if getattr(part, kind, None)}
            yield from (f"unsupported part '{kind}' in a reply" for kind in sorted(kinds_of_parts))
            if self._grounding_queries(event) is not None and len(self._grounding) != 1:
                yield "the model searched at its provider with a tool that the reply does not name"

    def calls(self, event: Any, place: int) -> list[ToolCall]:
        """Return the model's grounding queries as a call to the tool that ran them, if there is exactly one
        such tool."""
        queries = self._grounding_queries(event)
        if queries is None or len(self._grounding) != 1:
            return []
        return [ToolCall(f"grounding-{place}", self._grounding[0], {"queries": queries})]

    def _grounding_queries(self, event: Any) -> list[str] | None:
        """Return the grounding queries in a reply, or ``None`` if the reply is not grounded. A reply may
        repeat the metadata of an agent used as a tool, and thus the same queries."""
        metadata = getattr(event, "grounding_metadata", None)
        queries = [
            each
            for name in ("web_search_queries", "retrieval_queries")
            for each in getattr(metadata, name, None) or ()
        ]
        return queries if queries or getattr(metadata, "grounding_chunks", None) else None


_UNREAD = ("executable_code", "code_execution_result", "tool_call", "tool_response")
"""The parts that report code or tools that the provider or a code executor executed."""


def _parts(event: Any) -> list[Any]:
    return (event.content.parts if event.content else None) or []


def _messages(turn: _AdkTurn, at_provider: _ProviderTools) -> list[dict[str, Any]]:
    """Return the turn as messages in OpenAI's format, excluding the framework's internal calls."""
    transcript = Transcript()
    for place, recorded in enumerate(turn.events):
        if getattr(recorded.event, "partial", None) or recorded.event.author == "user":
            continue
        if looked_up := at_provider.calls(recorded.event, place):
            transcript.answer(None, looked_up, agent=recorded.event.author)
        _write_answer(transcript, recorded, turn)
        for part in _parts(recorded.event):
            if part.function_response and not _is_hidden(part.function_response, turn):
                _write_result(transcript, part.function_response, turn)
    return transcript.to_openai()


def _write_answer(transcript: Transcript, recorded: _RecordedEvent, turn: _AdkTurn) -> None:
    """Add an agent's message. A hand-off is recorded as a message without text. The text of an agent used as
    a tool is omitted, because the calling agent passes the text on."""
    event, is_inner = recorded
    text = "" if is_inner else _answer_text(event)
    calls = _calls_in(event, turn)
    if text or calls:
        end = None if is_inner else _finish_reason(event)
        transcript.answer(text or None, calls, agent=event.author, finish_reason=end)
    elif not is_inner and getattr(event.actions, "transfer_to_agent", None):
        transcript.answer(None, agent=event.author)


def _answer_text(event: Any) -> str:
    return "".join(part.text for part in _parts(event) if part.text and not getattr(part, "thought", None))


def _calls_in(event: Any, turn: _AdkTurn) -> list[ToolCall]:
    found = (part.function_call for part in _parts(event) if part.function_call)
    return [ToolCall(each.id, each.name, each.args or {}) for each in found if not _is_hidden(each, turn)]


def _finish_reason(event: Any) -> str | None:
    end = getattr(event, "finish_reason", None)
    return None if end is None else getattr(end, "name", str(end))


def _is_hidden(call: Any, turn: _AdkTurn) -> bool:
    """Return whether a call or a result is internal to the framework."""
    return call.id in turn.own or (call.name or "").startswith("adk_request_")


def _write_result(transcript: Transcript, result: Any, turn: _AdkTurn) -> None:
    """Add the result of a call. The framework wraps a result that is not a mapping in ``result``, and stores
    an error in ``error``."""
    response = result.response
    failed = result.id in turn.missing or bool(isinstance(response, dict) and response.get("error"))
    if isinstance(response, dict) and list(response) == ["result"]:
        response = response["result"]
    transcript.result(result.id, response, error=failed)


def _speaker(events: list[_RecordedEvent]) -> str | None:
    authors = [each.event.author for each in events if not each.is_inner and each.event.author != "user"]
    return authors[-1] if authors else None


def _usage(events: list[_RecordedEvent]) -> list[dict[str, Any]] | None:
    """Return the token usage that each model call in a turn reported, or ``None`` if no model reported any
    usage. Model calls by agents used as tools are included."""
    reported = [each.event.usage_metadata for each in events if each.event.usage_metadata is not None]
    return [{name: getattr(each, name, None) for name in _COUNTS} for each in reported] or None


def _require_done(events: list[_RecordedEvent]) -> None:
    """Raise ``Waits`` for a call without an answer, and ``RuntimeError`` if a model failed."""
    answered = {each.id for one in events for each in one.event.get_function_responses()}
    for event, _ in events:
        pending = set(getattr(event, "long_running_tool_ids", None) or ()) - answered
        for call in event.get_function_calls():
            if call.id in pending:
                raise Waits(_waits_for(call))
    last = next((each.event for each in reversed(events) if not each.is_inner), None)
    if last is not None and getattr(last, "error_code", None) and not (last.content and last.content.parts):
        raise RuntimeError(f"the model's reply is an error: {last.error_code}: {last.error_message or ''}")


def _waits_for(call: Any) -> str:
    args = call.args or {}
    tool = (args.get("originalFunctionCall") or {}).get("name", "a tool")
    if call.name == "adk_request_confirmation":
        return f"confirmation of {tool}"
    if call.name == "adk_request_credential":
        return "credentials for a tool"
    if call.name == "adk_request_input":
        return f"input: {args.get('message') or '…'}"
    return f"{call.name} is a long-running tool without a result"
