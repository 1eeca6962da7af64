"""Run Pydantic AI agents. Each turn is a run of the agent with the previous messages as its history."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..transcript import ToolCall, Transcript
from .seam import (
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
    with_partial,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..world import World

_AGENTS = ("pydantic_ai.agent.abstract.AbstractAgent", "pydantic_ai.agent.Agent")
"""The agent classes. Versions in which agents derive only from the second class are too old; such agents are
recognized so that they can be refused by name."""
_NAME_KEEPING_TOOLSETS = ("WrapperToolset", "FilteredToolset", "PreparedToolset", "ApprovalRequiredToolset")
"""The wrapper toolsets that preserve the names of the wrapped tools."""
_INTERNAL = ("", "tool_search")
"""The tools that the framework adds so that a model can find deferred tools."""
_ONLY_IN_A_RUN = ("", "mcp_server")
"""Placeholders for tools that a function selects, or that a server on the provider's side offers."""
_AT_PROVIDER = "builtin-tool-call"
_READ = frozenset(
    (
        *("text", "thinking", "compaction", "file", "speech", "tool-call"),
        *(_AT_PROVIDER, "builtin-tool-return"),
    )
)
"""The types of parts in a model's reply that are supported or that contain no calls."""


class PydanticAI:
    name = "Pydantic AI"
    package = "pydantic-ai-slim"
    supports = "1.40 to 2.68"

    def no_history(self, obj: Any) -> str:
        # The framework takes the system prompt of a run with a history from that history.
        own = ("_system_prompts", "_system_prompt_functions", "_system_prompt_dynamic_functions")
        if any(getattr(obj, name, None) for name in own):
            return "has a `system_prompt`, which the framework leaves out after earlier messages"
        return ""

    def matches(self, obj: Any) -> bool:
        return is_instance_of(obj, *_AGENTS)

    def tools(self, obj: Any) -> list[Tool]:
        found = [tool for toolset in obj.toolsets for tool in _tools_in(toolset)]
        hosted = getattr(obj, "_cap_native_tools", None) or getattr(obj, "_builtin_tools", None) or ()
        kinds_of_tools = [getattr(each, "kind", "") for each in hosted]
        are_known = not any(map(_is_dynamic, _capabilities(obj)))
        if not are_known or any(kind in _ONLY_IN_A_RUN for kind in kinds_of_tools):
            found.append(MORE)
        return found + [Tool(kind, hosted=True) for kind in kinds_of_tools if kind not in _INTERNAL]

    def runs_own_code(self, obj: Any) -> bool:
        return adds_code(obj, "pydantic_ai")

    def open(self, obj: Any, world: World, session: str, deps: Any) -> PydanticAIConversation:
        wanted = getattr(obj, "deps_type", None)
        if deps is None and isinstance(wanted, type) and wanted not in (type(None), object):
            what = f"the agent needs `deps` of type {wanted.__name__}"
            raise Refused(what, "set `target: {object: …, deps: file.py:make_deps}`")
        try:
            from pydantic_ai import capture_run_messages  # noqa: F401
        except ImportError as error:
            raise unsupported_version_error(self, "pydantic_ai.capture_run_messages") from error
        return PydanticAIConversation(obj, world, deps)


FRAMEWORK = PydanticAI()


def _tools_in(toolset: Any) -> Iterator[Tool]:
    """Yield the tools in a toolset that are known before a run."""
    kind, mro = type(toolset).__name__, kinds(toolset)
    tools = getattr(toolset, "tools", None)
    if "pydantic_ai.toolsets.function.FunctionToolset" in mro and isinstance(tools, dict):
        for name, tool in tools.items():
            schema = getattr(getattr(tool, "function_schema", None), "json_schema", None)
            yield Tool(name, getattr(tool, "description", None) or "", schema, hints=hints_of(tool))
            if may_reach(getattr(tool, "function", None), FRAMEWORK.matches, "pydantic_ai"):
                yield MORE  # the tools of an agent that the function runs
    elif "pydantic_ai.toolsets.combined.CombinedToolset" in mro:
        for each in toolset.toolsets:
            yield from _tools_in(each)
    elif kind in _NAME_KEEPING_TOOLSETS:
        yield from _tools_in(toolset.wrapped)
    else:
        yield MORE


def _framework_messages(messages: list[dict[str, Any]]) -> Iterator[Any]:
    """Yield messages in OpenAI's format as the framework's own."""
    from pydantic_ai import messages as own

    names: dict[Any, str] = {}
    for each in messages:
        text = each.get("content") or ""
        if each["role"] == "user":
            yield own.ModelRequest(parts=[own.UserPromptPart(text)])
        elif each["role"] == "tool":
            call = each["tool_call_id"]
            yield own.ModelRequest(parts=[own.ToolReturnPart(names.get(call, ""), text, call)])
        else:
            parts: list[Any] = [own.TextPart(text)] if text else []
            for call in each.get("tool_calls") or ():
                names[call["id"]] = call["function"]["name"]
                parts.append(own.ToolCallPart(names[call["id"]], call["function"]["arguments"], call["id"]))
            yield own.ModelResponse(parts=parts)


class PydanticAIConversation:
    def __init__(self, agent: Any, world: World, deps: Any) -> None:
        self._agent, self._world, self._deps = agent, world, deps
        self._history: list[Any] = []
        self._may_answer = any(map(_may_answer_for_tools, _capabilities(agent)))

    def load_history(self, messages: list[dict[str, Any]]) -> None:
        self._history = list(_framework_messages(messages))

    async def reply(self, text: str) -> dict[str, Any]:
        from pydantic_ai import capture_run_messages

        before = len(self._history)
        with capture_run_messages() as seen:
            try:
                result = await self._agent.run(text, message_history=self._history, deps=self._deps)
            except BaseException as error:
                new = seen[before:]
                with_partial(error, **self._reply(new, self._transcript(new)))
                raise
        self._history = list(result.all_messages())
        new = list(result.new_messages())
        transcript = self._transcript(new)
        if type(result.output).__name__ == "DeferredToolRequests":
            waits = Waits(_waiting_for(result.output))
            with_partial(waits, **self._reply(new, transcript))
            raise waits
        outputs = _output_tools(self._agent)
        if any(_is_output(part, outputs) for each in new for part in each.parts):
            transcript.answer(_text(result.output))
        else:  # the caller gets what a validator or an output function made of the text
            transcript.end_with(_text(result.output))
        return {**self._reply(new, transcript), "agent": getattr(self._agent, "name", None)}

    def _reply(self, new: list[Any], transcript: Transcript) -> dict[str, Any]:
        return {"messages": transcript.to_openai(), "usage": None, "elsewhere": _at_provider(new)}

    def _transcript(self, new: list[Any]) -> Transcript:
        outputs = _output_tools(self._agent)
        for part in _reply_parts(new):
            if part.part_kind not in _READ:
                self._world.note_unseen_calls(f"unsupported part '{part.part_kind}' in a reply")
            if _is_output(part, outputs) and _has_output_function(self._agent, part.tool_name):
                what = f"the output function of '{part.tool_name}' ran, and its own calls are not recorded"
                self._world.note_unseen_calls(what)
        transcript = Transcript()
        elsewhere = _at_provider(new)
        for message in new:
            if message.kind == "response":
                _write_response(transcript, message, outputs)
            for part in message.parts:
                if _is_result(part, outputs):
                    refused = part.tool_call_id not in elsewhere and self._is_refused(part)
                    _write_result(transcript, part, refused=refused)
        return transcript

    def _is_refused(self, result: Any) -> bool:
        """Return whether a call was refused. If only the world answers tool calls, a call that did not reach
        the world did not run."""
        return not self._may_answer and not self._world.has_received_call(result.tool_call_id)

    async def close(self) -> None:
        """Do nothing, because everything that a run starts ends with that run."""


def _waiting_for(output: Any) -> str:
    names = [call.tool_name for call in (*output.approvals, *output.calls)]
    kind = "approval of" if output.approvals else "result of"
    listed = ", ".join(dict.fromkeys(names))
    return f"the agent is waiting for human input ({kind} {listed}), which agenteval does not support yet"


def _output_tools(agent: Any) -> frozenset[str]:
    """Return the names of the tools that the framework adds for structured output. The arguments of these
    tools are the answer."""
    defs = getattr(getattr(agent, "_output_toolset", None), "_tool_defs", None) or ()
    return frozenset(each.name for each in defs)


def _has_output_function(agent: Any, name: str) -> bool:
    """Return whether one of the author's functions produces the output."""
    processors = getattr(getattr(agent, "_output_toolset", None), "processors", None) or {}
    return getattr(processors.get(name), "_function_schema", None) is not None


def _capabilities(agent: Any) -> list[Any]:
    """Return an agent's capabilities (Pydantic AI 2.x) as a flat list."""
    found: list[Any] = []
    root = getattr(agent, "_root_capability", None)
    if root is not None:
        root.apply(found.append)
    return found


def _is_dynamic(capability: Any) -> bool:
    """Return whether a capability's contribution is known only during a run."""
    return type(capability).__name__ == "DynamicCapability"


def _may_answer_for_tools(capability: Any) -> bool:
    """Return whether a capability may answer a call instead of the tool."""
    hooks = getattr(capability, "_registry", None)
    if isinstance(hooks, dict):
        return any("tool" in name for name in hooks)
    return _is_dynamic(capability) or adds_code(capability, "pydantic_ai")


def _is_output(part: Any, outputs: frozenset[str]) -> bool:
    return part.part_kind == "tool-call" and part.tool_name in outputs


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    from pydantic_core import to_json

    return to_json(value, fallback=str, bytes_mode="base64").decode()


# ── messages in OpenAI's format ──────────────────────────────────────────────────────────────────


def _reply_parts(messages: list[Any]) -> list[Any]:
    """Return the parts of the model's replies."""
    return [part for message in messages if message.kind == "response" for part in message.parts]


def _at_provider(messages: list[Any]) -> set[str]:
    """Return the ids of calls that ran on the model provider's servers."""
    return {part.tool_call_id for part in _reply_parts(messages) if part.part_kind == _AT_PROVIDER}


def _write_response(transcript: Transcript, message: Any, outputs: frozenset[str]) -> None:
    listing = {each.tool_call_id for each in message.parts if _lists_tools(each)}
    parts = [each for each in message.parts if getattr(each, "tool_call_id", None) not in listing]
    calls = [
        _call(each)
        for each in parts
        if each.part_kind in ("tool-call", _AT_PROVIDER) and not _is_output(each, outputs)
    ]
    text = "".join(each.content for each in parts if each.part_kind == "text")
    if text or calls:
        transcript.answer(text or None, calls, usage=_usage(message.usage))
    for each in parts:
        if each.part_kind == "builtin-tool-return":
            _write_result(transcript, each)


_MCP = "mcp_server"
"""The name prefix of calls that the provider made to an MCP server. The arguments contain the name of the
tool."""


def _lists_tools(part: Any) -> bool:
    """Return whether the provider requested the tool list from an MCP server without calling a tool."""
    is_mcp = part.part_kind == _AT_PROVIDER and part.tool_name.startswith(_MCP)
    return bool(is_mcp and part.args_as_dict().get("action") == "list_tools")


def _call(part: Any) -> ToolCall:
    is_mcp = part.part_kind == _AT_PROVIDER and part.tool_name.startswith(_MCP)
    args = part.args_as_dict() if is_mcp else {}
    if args.get("action") == "call_tool" and isinstance(args.get("tool_name"), str):
        return ToolCall(part.tool_call_id, args["tool_name"], args.get("tool_args") or {})
    return ToolCall(part.tool_call_id, part.tool_name, part.args_as_json_str())


def _usage(usage: Any) -> dict[str, Any] | None:
    if not (usage.input_tokens or usage.output_tokens):
        return None
    counts: dict[str, Any] = {"prompt_tokens": usage.input_tokens, "completion_tokens": usage.output_tokens}
    if cached := getattr(usage, "cache_read_tokens", 0):
        counts["prompt_tokens_details"] = {"cached_tokens": cached}
    if details := getattr(usage, "details", None):
        counts["details"] = dict(details)
    return counts


def _is_result(part: Any, outputs: frozenset[str]) -> bool:
    name = getattr(part, "tool_name", None)
    return part.part_kind in ("tool-return", "retry-prompt") and bool(name) and name not in outputs


def _write_result(transcript: Transcript, part: Any, *, refused: bool = False) -> None:
    is_retry = part.part_kind == "retry-prompt"
    failed = refused or is_retry or getattr(part, "outcome", "success") != "success"
    content = part.model_response() if is_retry else part.model_response_str()
    transcript.result(part.tool_call_id, content, error=failed, name=part.tool_name)
