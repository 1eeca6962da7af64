"""Rebuild agents from their parts for one conversation, and find these parts.

A plain copy of an agent is not sufficient, because it shares messages and hooks with the original. The
original cannot be used either: it refuses a second simultaneous conversation, and in older releases it mixes
up the conversations."""

from __future__ import annotations

import copy
import inspect
import threading
from typing import TYPE_CHECKING, Any, NamedTuple

from ...closures import closure_variables
from ..seam import kinds, walk_tree

if TYPE_CHECKING:
    from collections.abc import Callable

AGENT = "strands.agent.agent.Agent"
_AS_TOOL = "strands.agent._agent_as_tool._AgentAsTool"
_PRINTS = "strands.handlers.callback_handler.PrintingCallbackHandler"


def all_agents(agent: Any) -> list[Any]:
    """Return an agent, and the agents that it uses as tools, directly or indirectly."""
    return [each for each in walk_tree(agent, _tools_that_are_agents) if AGENT in kinds(each)]


def _tools_that_are_agents(agent: Any) -> list[Any]:
    tools = agent.tool_registry.registry.values() if AGENT in kinds(agent) else ()
    return [tool.agent for tool in tools if _AS_TOOL in kinds(tool)]


def hosted_tools(agent: Any) -> list[str]:
    """Return the tools that run on the model provider's servers, as named in the model's settings."""
    config = getattr(agent.model, "config", None)
    settings = [each for each in (config, (config or {}).get("params")) if isinstance(each, dict)]
    listed = [tool for each in settings for key in each if key.endswith("tools") for tool in each[key] or ()]
    fields = [tool if isinstance(tool, dict) else getattr(tool, "__dict__", {}) for tool in listed]
    return [str(each.get("name") or each.get("type") or "a provider tool") for each in fields]


def _is_among(part: Any, parts: list[Any]) -> bool:
    """Return whether the list contains the object itself, rather than just an equal object."""
    return any(part is each for each in parts)


# ── hooks, plugins and middleware ────────────────────────────────────────────────────────────────


class _RegisteredHook(NamedTuple):
    event: Any
    callback: Any
    order: Any
    """The order of the hook, or ``None`` in older releases."""

    @property
    def holder(self) -> Any:
        """The object that owns the callback method or whose method the callback calls; ``None`` for a
        function."""
        owner = getattr(self.callback, "__self__", None)
        return closure_variables(self.callback).get("self") if owner is None else owner


def _hooks_of(agent: Any) -> list[_RegisteredHook]:
    return [
        _RegisteredHook(event, getattr(entry, "callback", entry), getattr(entry, "order", None))
        for event, entries in agent.hooks._registered_callbacks.items()
        for entry in entries
    ]


def _plugins_of(agent: Any) -> dict[str, Any]:
    found = getattr(getattr(agent, "_plugin_registry", None), "_plugins", None)
    return found if isinstance(found, dict) else {}


def _self_registering_parts(agent: Any) -> list[Any]:
    """Return the parts of an agent that register their own hooks."""
    names = ("conversation_manager", "_retry_strategy", "_session_manager", "_intervention_registry")
    parts = [*(getattr(agent, name, None) for name in names), *_plugins_of(agent).values()]
    return [each for each in parts if each is not None]


def has_middleware(agent: Any) -> bool:
    """Return whether the author added middleware around model calls and tool calls. Middleware that plugins
    add to a copy themselves is ignored."""
    registered = getattr(getattr(agent, "_middleware_registry", None), "_handlers", None) or {}
    handlers = [getattr(each, "handler", each) for listed in registered.values() for each in listed]
    adapted = [closure_variables(each).get("handler") or each for each in handlers]
    plugins = list(_plugins_of(agent).values())
    return any(
        not _is_among(getattr(each, "__self__", None), plugins) and not _is_of_framework(each)
        for each in adapted
    )


def _is_of_framework(callback: Any) -> bool:
    holder = getattr(callback, "__self__", None)
    module = type(holder).__module__ if holder is not None else getattr(callback, "__module__", "") or ""
    return str(module).partition(".")[0] == "strands"


# ── rebuilding agents ────────────────────────────────────────────────────────────────────────────


class AgentCopies:
    """The copied agents of a conversation, one for each of the author's agents. ``on_message`` receives each
    message that is added to one of the copies (a ``MessageAddedEvent``)."""

    def __init__(self, on_message: Callable[[Any], None]) -> None:
        self._on_message = on_message
        self._agents: dict[int, Any] = {}
        self._parts: dict[int, tuple[Any, Any]] = {}

    def __iter__(self) -> Any:
        return iter(self._agents.values())

    def copy_of(self, agent: Any) -> Any:
        if id(agent) not in self._agents:
            self._agents[id(agent)] = self._build(agent)
        return self._agents[id(agent)]

    def _build(self, agent: Any) -> Any:
        from strands import Agent

        bare = Agent(model=agent.model, callback_handler=None)  # has the parts that every agent gets
        accepted = inspect.signature(Agent.__init__).parameters
        parts = self._parts_of(agent, bare).items()
        arguments = {name: part for name, part in parts if name in accepted and part is not None}
        new = Agent(**{"callback_handler": None, **arguments})
        if type(agent) is not Agent:
            new.__class__ = type(agent)
            vars(new).update({name: value for name, value in vars(agent).items() if name not in vars(new)})
        return new

    def _parts_of(self, agent: Any, bare: Any) -> dict[str, Any]:
        """Return the parts of an agent, keyed by parameter name, for any release. Parts that the agent lacks
        are ``None``."""
        session = getattr(agent, "_session_manager", None)
        context = getattr(agent, "_context_manager_instance", None)
        has_manager = context is None and not getattr(agent.model, "stateful", False)
        own_plugins = [each for name, each in _plugins_of(agent).items() if name not in _plugins_of(bare)]
        return {
            "model": getattr(agent, "_model_router", None) or agent.model,
            "messages": [] if session is not None else copy.deepcopy(agent.messages),
            "tools": [self._copy_tool(each) for each in agent.tool_registry.registry.values()],
            "system_prompt": getattr(agent, "_system_prompt_content", None) or agent.system_prompt,
            "structured_output_model": getattr(agent, "_default_structured_output_model", None),
            "structured_output_prompt": getattr(agent, "_structured_output_prompt", None),
            "callback_handler": None if _PRINTS in kinds(agent.callback_handler) else agent.callback_handler,
            "conversation_manager": self._copy_part(agent.conversation_manager) if has_manager else None,
            "record_direct_tool_call": agent.record_direct_tool_call,
            "trace_attributes": agent.trace_attributes,
            "agent_id": agent.agent_id,
            "name": agent.name,
            "description": agent.description,
            "state": copy.deepcopy(agent.state.get()),
            "tool_executor": agent.tool_executor,
            "retry_strategy": self._copy_part(getattr(agent, "_retry_strategy", None)),
            "interventions": getattr(getattr(agent, "_intervention_registry", None), "handlers", None),
            "sandbox": getattr(agent, "_sandbox", None),
            "context_manager": self._copy_part(context),
            "plugins": [self._copy_part(each) for each in own_plugins if each is not context],
            "hooks": [_CopiedHooks(self._author_hooks(agent, bare), self._on_message)],
        }

    def _copy_tool(self, tool: Any) -> Any:
        """Return the tool itself. If the tool is an agent, return a tool with this conversation's copy of the
        agent instead."""
        if _AS_TOOL not in kinds(tool):
            return tool
        new = copy.copy(tool)
        new._agent, new._lock = self.copy_of(tool.agent), threading.Lock()
        return new

    def _copy_part(self, part: Any) -> Any:
        """Return this conversation's copy of a part. A part that cannot be copied is shared by all
        conversations."""
        if part is None:
            return None
        if id(part) not in self._parts:
            try:
                self._parts[id(part)] = (part, copy.deepcopy(part))
            except Exception:
                self._parts[id(part)] = (part, part)
        return self._parts[id(part)][1]

    def _author_hooks(self, agent: Any, bare: Any) -> list[_RegisteredHook]:
        """Return the hooks that the author registered. The default hooks that every agent has are
        excluded, as are hooks of parts that register their own hooks when the agent is copied."""
        usual = [each.callback for each in _hooks_of(bare)]
        parts = _self_registering_parts(agent)
        return [
            self._copy_hook(each)
            for each in _hooks_of(agent)
            if not _is_among(each.callback, usual) and not _is_among(each.holder, parts)
        ]

    def _copy_hook(self, hook: _RegisteredHook) -> _RegisteredHook:
        """Return the hook itself. If the hook is a method, return the same method of this conversation's copy
        of the method's object."""
        owner = getattr(hook.callback, "__self__", None)
        if owner is None:
            return hook
        return hook._replace(callback=getattr(self._copy_part(owner), hook.callback.__name__))


class _CopiedHooks:
    """The hooks for the rebuilt copy of an agent, ending with agenteval's own hook."""

    def __init__(self, hooks: list[_RegisteredHook], on_message: Callable[[Any], None]) -> None:
        self._hooks = hooks
        self._on_message = on_message

    def register_hooks(self, registry: Any, **_: Any) -> None:
        from strands.hooks import MessageAddedEvent

        for event, callback, order in self._hooks:
            registry.add_callback(event, callback, **({} if order is None else {"order": order}))
        has_order = "order" in inspect.signature(registry.add_callback).parameters
        registry.add_callback(
            MessageAddedEvent, self._on_message, **({"order": float("inf")} if has_order else {})
        )
