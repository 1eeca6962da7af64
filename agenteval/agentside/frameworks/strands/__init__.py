"""Run a Strands ``Agent``, along with the agents that it uses as tools.

- ``conversation``: runs a copy of the agent turn by turn, and converts its messages to OpenAI's format
- ``copies``: rebuilds the agent from the author's parts

The tools and the messages are intercepted only by hooks: ``hooks/strands.py`` for tools and
``MessageAddedEvent`` for messages. ``copies`` keeps conversations apart, because no release of Strands does
so itself. Agents with parts that cannot be copied in this way are refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...hooks.strands import is_strands_builtin
from ..seam import (
    LATER,
    MORE,
    Refused,
    Tool,
    adds_code,
    hints_of,
    is_instance_of,
    kinds,
    may_reach,
    unsupported_version_error,
)
from .conversation import StrandsConversation
from .copies import AGENT, all_agents, has_middleware, hosted_tools

if TYPE_CHECKING:
    from ...world import World

_OTHERS = ("strands.multiagent.base.MultiAgentBase", "strands.agent.base.AgentBase")
_NOT_CARRIED = {
    "memory_manager": "a memory manager, which would store messages from tests",
    "_background_tasks": "background tasks, which may end after their turn",
    "_checkpointing": "checkpointing",
}


class _Strands:
    name = "Strands Agents"
    package = "strands-agents"
    supports = "1.12 to 1.62"

    def matches(self, obj: Any) -> bool:
        return is_instance_of(obj, AGENT, *_OTHERS)

    def tools(self, obj: Any) -> list[Tool]:
        found: dict[str, Tool] = {}
        for tool in (tool for agent in all_agents(obj) for tool in _tools_of(agent)):
            found.setdefault(tool.name, tool)
        return list(found.values())

    def runs_own_code(self, obj: Any) -> bool:
        return any(adds_code(agent, "strands") for agent in all_agents(obj))

    def open(self, obj: Any, world: World, session: str, deps: Any) -> StrandsConversation:
        if AGENT not in kinds(obj):
            what = f"unsupported {self.name} target: an object of type {type(obj).__name__}"
            raise Refused(what, "use one of its agents or a function as the target (docs/agents.md)")
        for agent in all_agents(obj):
            _require(agent)
        if deps is not None and deps is not LATER and not isinstance(deps, dict):
            what = (
                f"`deps` must return a dict (the invocation state) for a Strands agent, not"
                f" {type(deps).__name__}"
            )
            raise Refused(what, 'return {"name": value}')
        return StrandsConversation(obj, world, deps)


FRAMEWORK = _Strands()


def _tools_of(agent: Any) -> list[Tool]:
    found = []
    for name, tool in agent.tool_registry.registry.items():
        if not is_strands_builtin(tool):
            found.append(_describe_tool(name, tool))
        if may_reach(getattr(tool, "_tool_func", None), FRAMEWORK.matches, "strands"):
            found.append(MORE)  # the tools of an agent that the function runs
    found += [Tool(name, hosted=True) for name in hosted_tools(agent)]
    return [*found, MORE] if agent.load_tools_from_directory else found


def _describe_tool(name: str, tool: Any) -> Tool:
    spec = tool.tool_spec
    schema = spec.get("inputSchema") or {}
    return Tool(name, spec.get("description") or "", schema.get("json", schema), hints=hints_of(tool))


def _require(agent: Any) -> None:
    """Raise ``Refused`` for an agent with parts that cannot be carried over to a copy."""
    for name in ("tool_registry", "hooks", "event_loop_metrics", "invoke_async"):
        if not hasattr(agent, name):
            raise unsupported_version_error(FRAMEWORK, f"Agent.{name}")
    for name, what in _NOT_CARRIED.items():
        if getattr(agent, name, None):
            remedy = "omit it in tests, or use a function as the target (docs/agents.md)"
            raise Refused(f"the agent '{agent.name}' has {what}", remedy)
    if has_middleware(agent):
        what = f"the agent '{agent.name}' has its own middleware, which is not copied"
        raise Refused(what, "use a function as the target (docs/agents.md)")
