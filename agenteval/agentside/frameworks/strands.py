"""Strands: an ``Agent``, with the agents that are its tools.

An agent refuses a second conversation at the same time (older releases mix them), and a copy shares messages
and hooks with it. So each conversation has one that is built anew of its parts: the model, the prompt, its
tools, and what its author hung on it.
"""

from __future__ import annotations

import copy
import inspect
import json
import threading
from typing import TYPE_CHECKING, Any

from ..hooks.strands import is_of_framework, text_of
from .seam import (
    LATER,
    MORE,
    Refused,
    Tool,
    Waits,
    adds_code,
    hints_of,
    kinds,
    may_run,
    unsupported,
    with_partial,
)

if TYPE_CHECKING:
    from ..world import World

    Message = dict[str, Any]

_AGENT = "strands.agent.agent.Agent"
_OTHERS = ("strands.multiagent.base.MultiAgentBase", "strands.agent.base.AgentBase")
_AS_TOOL = "strands.agent._agent_as_tool._AgentAsTool"
_PRINTS = "strands.handlers.callback_handler.PrintingCallbackHandler"
_COUNTS = ("inputTokens", "outputTokens", "totalTokens", "cacheReadInputTokens", "cacheWriteInputTokens")
_NOT_CARRIED = {
    "memory_manager": "a memory manager, which would write what tests say",
    "_background_tasks": "background tasks, which may end after their turn",
    "_checkpointing": "checkpointing",
}


class _Strands:
    name = "Strands Agents"
    package = "strands-agents"
    supports = "1.12 to 1.62"

    def matches(self, obj: Any) -> bool:
        return bool({_AGENT, *_OTHERS}.intersection(kinds(obj)))

    def tools(self, obj: Any) -> list[Tool]:
        found: dict[str, Tool] = {}
        for agent in _all_agents(obj):
            for name, tool in agent.tool_registry.registry.items():
                if not is_of_framework(tool):
                    spec = tool.tool_spec
                    schema = spec.get("inputSchema") or {}
                    about, hints = spec.get("description") or "", hints_of(tool)
                    found.setdefault(name, Tool(name, about, schema.get("json", schema), hints=hints))
                if may_run(getattr(tool, "_tool_func", None), FRAMEWORK.matches, "strands"):
                    found.setdefault(MORE.name, MORE)  # those of an agent that the function runs
            for name in _at_provider(agent):
                found.setdefault(name, Tool(name, hosted=True))
            if agent.load_tools_from_directory:
                found.setdefault(MORE.name, MORE)
        return list(found.values())

    def runs_own_code(self, obj: Any) -> bool:
        return any(adds_code(agent, "strands") for agent in _all_agents(obj))

    def prompt(self, obj: Any) -> str | None:
        told = getattr(obj, "system_prompt", None)
        return told if isinstance(told, str) else None

    def open(self, obj: Any, world: World, session: str, deps: Any) -> _Conversation:
        if _AGENT not in kinds(obj):
            what = f"the agent is of the class {type(obj).__name__} of {self.name}, which is not played"
            raise Refused(what, "give one of its agents, or a function as target (docs/agents.md)")
        for agent in _all_agents(obj):
            self._require(agent)
        if deps is not None and deps is not LATER and not isinstance(deps, dict):
            what = f"the deps of a Strands agent are its invocation state, a dict, not {type(deps).__name__}"
            raise Refused(what, 'return {"name": value}')
        return _Conversation(obj, world, deps)

    def _require(self, agent: Any) -> None:
        for name in ("tool_registry", "hooks", "event_loop_metrics", "invoke_async"):
            if not hasattr(agent, name):
                raise unsupported(self, f"Agent.{name}")
        for name, what in _NOT_CARRIED.items():
            if getattr(agent, name, None):
                remedy = "leave it out in tests, or give a function as target (docs/agents.md)"
                raise Refused(f"the agent '{agent.name}' has {what}", remedy)
        if any(not _is_own_code(each) for each in _middlewares(agent)):
            remedy = "give a function as target (docs/agents.md)"
            raise Refused(
                f"the agent '{agent.name}' has middleware of its own, which is not carried over", remedy
            )


FRAMEWORK = _Strands()


def _all_agents(agent: Any) -> list[Any]:
    found = [agent]
    for each in found:
        if _AGENT not in kinds(each):
            continue
        below = [tool.agent for tool in each.tool_registry.registry.values() if _AS_TOOL in kinds(tool)]
        found.extend(one for one in below if not any(one is known for known in found))
    return [each for each in found if _AGENT in kinds(each)]


def _at_provider(agent: Any) -> list[str]:
    """The tools that run at the model's provider, as its settings name them."""
    config = getattr(agent.model, "config", None)
    settings = [each for each in (config, (config or {}).get("params")) if isinstance(each, dict)]
    listed = [tool for each in settings for key in each if key.endswith("tools") for tool in each[key] or ()]
    fields = [tool if isinstance(tool, dict) else getattr(tool, "__dict__", {}) for tool in listed]
    return [str(each.get("name") or each.get("type") or "a tool of the model") for each in fields]


def _is_own_code(callback: Any) -> bool:
    """Whether it is of the framework's own code."""
    holder = getattr(callback, "__self__", None)
    module = type(holder).__module__ if holder is not None else getattr(callback, "__module__", "") or ""
    return str(module).partition(".")[0] == "strands"


def _middlewares(agent: Any) -> list[Any]:
    """What its author put around the calls of models and tools, beside what plugins put there again."""
    held = getattr(getattr(agent, "_middleware_registry", None), "_handlers", None) or {}
    handlers = [getattr(each, "handler", each) for listed in held.values() for each in listed]
    adapted = [_cell(each, "handler") or each for each in handlers]
    plugins = list(_plugins(agent).values())
    return [each for each in adapted if not any(getattr(each, "__self__", None) is one for one in plugins)]


def _cell(function: Any, name: str) -> Any:
    """A variable in a function's closure."""
    code, closure = getattr(function, "__code__", None), getattr(function, "__closure__", None)
    names = code.co_freevars if code and closure else ()
    return closure[names.index(name)].cell_contents if closure and name in names else None


def _plugins(agent: Any) -> dict[str, Any]:
    found = getattr(getattr(agent, "_plugin_registry", None), "_plugins", None)
    return found if isinstance(found, dict) else {}


def _own_plugins(agent: Any, bare: Any) -> list[Any]:
    """Those that its author gave it."""
    return [each for name, each in _plugins(agent).items() if name not in _plugins(bare)]


def _hooks(agent: Any) -> list[tuple[Any, Any, Any]]:
    """The event, the callback and its order of each hook."""
    return [
        (event, getattr(entry, "callback", entry), getattr(entry, "order", None))
        for event, entries in agent.hooks._registered_callbacks.items()
        for entry in entries
    ]


# ── one conversation ─────────────────────────────────────────────────────────────────────────────


class _Conversation:
    def __init__(self, agent: Any, world: World, deps: Any) -> None:
        self._world = world
        self._deps = deps
        self._agents: dict[int, Any] = {}
        self._own: dict[int, Any] = {}
        self._added: list[Message] = []
        self._agent = self._built(agent)
        self._at_provider = sorted({name for each in _all_agents(agent) for name in _at_provider(each)})
        self._metered = self._total()

    async def reply(self, text: str) -> dict[str, Any]:
        self._added = []
        try:
            result = await self._agent.invoke_async(text, **self._state())
        except Exception as error:
            with_partial(error, self._messages(), self._usage())
            raise
        output = getattr(result, "structured_output", None)
        messages = self._messages(without=type(output).__name__ if output is not None else "")
        if interrupts := getattr(result, "interrupts", None):
            asked = ", ".join(
                f"{each.name}: {each.reason}" if each.reason else each.name for each in interrupts
            )
            waits = Waits(f"the agent waits for a person: {asked}")
            with_partial(waits, messages, self._usage())
            raise waits
        if output is not None:
            messages.append({"role": "assistant", "content": output.model_dump_json()})
        return {"messages": messages, "usage": self._usage(), "agent": self._speaker()}

    async def close(self) -> None:
        """Nothing: what a run has started has ended with it."""

    def _messages(self, without: str = "") -> list[Message]:
        for name in self._at_provider:
            self._world.leave_unplaced(f"'{name}' runs at the provider, which does not say whether it did")
        for kind in sorted({key for message in self._added for key in _unread(message)}):
            self._world.leave_unplaced(f"a block '{kind}' of a message is not read")
        return _messages(self._added, set(self._agent.tool_registry.registry), without)

    def _speaker(self) -> str | None:
        return None if self._agent.name == "Strands Agents" else str(self._agent.name)  # what one without has

    def _state(self) -> dict[str, Any]:
        if not self._deps:
            return {}
        takes = inspect.signature(self._agent.invoke_async).parameters
        return {"invocation_state": dict(self._deps)} if "invocation_state" in takes else dict(self._deps)

    # ── tokens: what the framework counts is of all turns

    def _total(self) -> dict[str, int]:
        found = {"requests": 0, **dict.fromkeys(_COUNTS, 0)}
        for agent in self._agents.values():
            usage = agent.event_loop_metrics.accumulated_usage
            found["requests"] += agent.event_loop_metrics.cycle_count
            for name in _COUNTS:
                found[name] += usage.get(name) or 0
        return found

    def _usage(self) -> dict[str, int] | None:
        total, before = self._total(), self._metered
        self._metered = total
        took = {name: total[name] - before[name] for name in total}
        return took if took["inputTokens"] or took["outputTokens"] else None

    # ── an agent of the same parts

    def _built(self, agent: Any) -> Any:
        if id(agent) in self._agents:
            return self._agents[id(agent)]
        from strands import Agent

        session = getattr(agent, "_session_manager", None)
        context = getattr(agent, "_context_manager_instance", None)
        bare = Agent(model=agent.model, callback_handler=None)  # has what each agent gets by itself
        parts: dict[str, Any] = {
            "model": getattr(agent, "_model_router", None) or agent.model,
            "messages": [] if session is not None else copy.deepcopy(agent.messages),
            "tools": [self._tool(each) for each in agent.tool_registry.registry.values()],
            "system_prompt": getattr(agent, "_system_prompt_content", None) or agent.system_prompt,
            "structured_output_model": getattr(agent, "_default_structured_output_model", None),
            "structured_output_prompt": getattr(agent, "_structured_output_prompt", None),
            "callback_handler": None if _PRINTS in kinds(agent.callback_handler) else agent.callback_handler,
            "conversation_manager": self._copied(agent.conversation_manager),
            "record_direct_tool_call": agent.record_direct_tool_call,
            "trace_attributes": agent.trace_attributes,
            "agent_id": agent.agent_id,
            "name": agent.name,
            "description": agent.description,
            "state": copy.deepcopy(agent.state.get()),
            "tool_executor": agent.tool_executor,
            "retry_strategy": self._copied(getattr(agent, "_retry_strategy", None)),
            "interventions": getattr(getattr(agent, "_intervention_registry", None), "handlers", None),
            "sandbox": getattr(agent, "_sandbox", None),
            "context_manager": self._copied(context),
            "plugins": [self._copied(each) for each in _own_plugins(agent, bare) if each is not context],
            "hooks": [_Hooks(self, agent, bare)],
        }
        if context is not None or getattr(agent.model, "stateful", False):
            parts["conversation_manager"] = None
        takes = inspect.signature(Agent.__init__).parameters
        parts = {name: part for name, part in parts.items() if name in takes and part is not None}
        new = Agent(**{"callback_handler": None, **parts})
        if type(agent) is not Agent:
            new.__class__ = type(agent)
            vars(new).update({name: value for name, value in vars(agent).items() if name not in vars(new)})
        self._agents[id(agent)] = new
        return new

    def _copied(self, part: Any) -> Any:
        """What an author gave keeps its state for this conversation; what cannot be copied is that of all."""
        if part is None:
            return None
        if id(part) not in self._own:
            try:
                self._own[id(part)] = (part, copy.deepcopy(part))
            except Exception:
                self._own[id(part)] = (part, part)
        return self._own[id(part)][1]

    def hooks_of(self, agent: Any, bare: Any) -> list[Any]:
        """The event, the callback and its order of each hook that the author registered: not of the parts
        that register theirs again."""
        usual = [callback for _, callback, _ in _hooks(bare)]
        names = ("conversation_manager", "_retry_strategy", "_session_manager", "_intervention_registry")
        parts = [*(getattr(agent, name, None) for name in names), *_plugins(agent).values()]
        found = []
        for event, callback, order in _hooks(agent):
            method_of = getattr(callback, "__self__", None)
            holder = _cell(callback, "self") if method_of is None else method_of
            if any(callback is each for each in usual):
                continue
            if holder is not None and any(holder is part for part in parts):
                continue
            if method_of is not None:
                callback = getattr(self._copied(method_of), callback.__name__)
            found.append((event, callback, order))
        return found

    def added(self, event: Any) -> None:
        if event.agent is self._agent:
            self._added.append(event.message)

    def _tool(self, tool: Any) -> Any:
        """A tool as it is; one that is an agent, with that of this conversation."""
        if _AS_TOOL not in kinds(tool):
            return tool
        new = copy.copy(tool)
        new._agent, new._lock = self._built(tool.agent), threading.Lock()
        return new


class _Hooks:
    """The hooks of an agent, for the one that is built of its parts; ours come last."""

    def __init__(self, conversation: _Conversation, agent: Any, bare: Any) -> None:
        self._conversation = conversation
        self._hooks = conversation.hooks_of(agent, bare)

    def register_hooks(self, registry: Any, **_: Any) -> None:
        from strands.hooks import MessageAddedEvent

        for event, callback, order in self._hooks:
            registry.add_callback(event, callback, **({} if order is None else {"order": order}))
        last = (
            {"order": float("inf")} if "order" in inspect.signature(registry.add_callback).parameters else {}
        )
        registry.add_callback(MessageAddedEvent, self.added, **last)

    def added(self, event: Any) -> None:
        self._conversation.added(event)


# ── messages ─────────────────────────────────────────────────────────────────────────────────────


def _messages(added: list[Message], there: set[str], without: str) -> list[Message]:
    """Messages as Bedrock's Converse has them, in OpenAI's format. ``there``: the tools that there are; what
    another one gives is an error. ``without``: a tool that is the framework's way to a structured answer."""
    found: list[Message] = []
    left_out: set[str] = set()
    missing: set[str] = set()
    for message in added:
        blocks = message.get("content") or ()
        if message.get("role") == "assistant":
            text = "".join(block["text"] for block in blocks if isinstance(block.get("text"), str))
            uses = [block["toolUse"] for block in blocks if "toolUse" in block]
            left_out.update(use["toolUseId"] for use in uses if use["name"] == without)
            missing.update(use["toolUseId"] for use in uses if use["name"] not in there)
            calls = [_call(use) for use in uses if use["name"] != without]
            if text or calls or not uses:
                said: Message = {"role": "assistant", "content": text or None}
                found.append({**said, "tool_calls": calls} if calls else said)
            continue
        results = [block["toolResult"] for block in blocks if "toolResult" in block]
        found.extend(
            {
                "role": "tool",
                "tool_call_id": each["toolUseId"],
                "content": text_of(each),
                **({"status": "error"} if _has_failed(each, missing) else {}),
            }
            for each in results
            if each["toolUseId"] not in left_out
        )
    return found


_READ = frozenset(
    (
        *("text", "toolUse", "toolResult", "reasoningContent", "citationsContent", "cachePoint"),
        *("image", "video", "audio", "document", "guardContent"),
    )
)
"""The blocks that are read, or that hold no calls."""


def _unread(message: Message) -> set[str]:
    return {key for block in message.get("content") or () for key in block} - _READ


def _has_failed(result: Message, missing: set[str]) -> bool:
    return result["toolUseId"] in missing or result.get("status") == "error"


def _call(use: Message) -> Message:
    function = {
        "name": use["name"],
        "arguments": json.dumps(use.get("input"), ensure_ascii=False, default=str),
    }
    return {"id": use["toolUseId"], "type": "function", "function": function}
