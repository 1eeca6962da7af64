"""Run LangGraph and LangChain agents. These are graphs, including agents created by ``create_agent`` and
similar functions.

- ``graph``: inspects a graph before anything runs
- ``conversation``: runs a copy of the graph turn by turn
- ``recorder``: records the event stream of a turn
- ``encoder``: converts LangChain messages to OpenAI's format

No module in this package replaces a tool. LangChain's hook intercepts calls where the tools run
(``hooks/langchain.py``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ... import hooks
from ...hooks.langchain_tools import is_handoff
from ..seam import MORE, Refused, kinds, unsupported_version_error
from .conversation import LangGraphConversation, run_options
from .graph import (
    collect_names,
    collect_tools,
    describe_tool,
    has_own_code,
    input_keys,
    is_builder,
    is_graph,
    is_runnable,
)

if TYPE_CHECKING:
    from ...world import World
    from ..seam import Tool

_TOOLS = "langchain_core.tools.base"
"""The module that contains the hooked tool class."""
_FUNCTION = "write a function that accepts the messages and calls the agent (docs/agents.md)"


class LangGraph:
    name = "LangGraph"
    package = "langgraph"
    supports = "0.6 to 1.2"

    def no_history(self, _obj: Any) -> str:
        return ""

    def matches(self, obj: Any) -> bool:
        if isinstance(obj, type):
            return kinds(obj)[0].startswith("langgraph.")
        return is_graph(obj) or is_builder(obj) or is_runnable(obj)

    def tools(self, obj: Any) -> list[Tool]:
        graph = _compiled(obj)
        described = [describe_tool(tool) for tool in collect_tools(graph).values() if not is_handoff(tool)]
        return [*described, MORE] if has_own_code(graph) else described

    def runs_own_code(self, obj: Any) -> bool:
        return has_own_code(_compiled(obj))

    def open(self, obj: Any, world: World, session: str, deps: Any) -> LangGraphConversation:
        graph = _compiled(obj)
        _require_messages(graph)
        options = run_options(graph, deps)
        if not hooks.is_hooked(_TOOLS):
            raise unsupported_version_error(FRAMEWORK, "BaseTool.run and arun")
        return LangGraphConversation(graph, world, session, options, collect_names(graph))


FRAMEWORK = LangGraph()


def _compiled(obj: Any) -> Any:
    if is_graph(obj):
        return obj
    name = type(obj).__name__
    if is_builder(obj):
        try:
            return obj.compile()
        except Exception as error:
            raise Refused(f"the {name} cannot be compiled: {error}") from error
    if name == "RemoteGraph":
        what = "the agent is a RemoteGraph, whose tools run on its server"
        raise Refused(what, "use the graph itself, or its server as an agent of type `http`")
    what = f"unsupported LangChain target: {name}"
    raise Refused(what, "use a graph, such as from `create_agent`, or " + _FUNCTION)


def _require_messages(graph: Any) -> None:
    """Raise ``Refused`` for a graph that does not accept messages."""
    for attribute in ("channels", "nodes", "astream", "stream", "checkpointer"):
        if not hasattr(graph, attribute):
            raise unsupported_version_error(FRAMEWORK, "Pregel." + attribute)
    keys = input_keys(graph)
    if "messages" in keys:
        return
    if not keys:
        raise Refused(
            "the agent is an @entrypoint workflow, which takes the input of its function", _FUNCTION
        )
    what = f"the graph input has no `messages` (it has {', '.join(sorted(keys))})"
    remedy = "write a function that calls the graph with the user's message; tools are still intercepted"
    raise Refused(what, f"{remedy} (docs/frameworks.md)")
