"""Hook LangChain and LangGraph by patching ``BaseTool.run`` and ``arun``, through which agents, nodes and
loops call tools."""

from __future__ import annotations

import functools
import inspect
from typing import Any

from .. import world as worlds
from .langchain_proxy import proxy_tool
from .langchain_tools import find_argument_error, is_agent, is_handoff, model_arguments, to_recorded_value
from .tool_methods import HookedCall, hook, patch_subclasses

PACKAGES = ("langgraph", "langchain", "langchain_classic", "deepagents")
"""The packages that contain loops that call models. If the author writes a loop around a LangChain chat
model, that loop is outside these packages."""


def install(module: Any) -> None:
    """Patch ``module``, which is ``langchain_core.tools.base``."""
    base = module.BaseTool
    for name in ("run", "arun"):
        give = functools.partial(_give, getattr(base, name))
        patch_subclasses(base, (name,), hook("LangChain", _read, give, to_record=to_recorded_value))
    for name in ("invoke", "ainvoke"):
        patch_subclasses(base, (name,), functools.partial(_skip_thread, getattr(base, name)))


def _read(tool: Any, args: Any, kwargs: Any) -> HookedCall | None:
    world, call_id = worlds.current_world(), str(kwargs.get("tool_call_id") or "")
    if is_handoff(tool) and not (world and world.mocks(tool.name)):
        return None
    tool_input = args[0] if args else kwargs.get("tool_input")
    argument_error = find_argument_error(tool, tool_input)
    return HookedCall(
        tool.name,
        model_arguments(tool, tool_input),
        call_id,
        (id(tool), call_id),
        is_agent(tool),
        argument_error,
    )


def _give(real: Any, tool: Any, answer: Any, args: Any, kwargs: Any) -> Any:
    return real(proxy_tool(tool, answer, kwargs.get("tool_call_id")), *args, **kwargs)


def _skip_thread(base: Any, real: Any) -> Any:
    """Patch the method so that a mocked tool bypasses the thread in which LangChain runs synchronous tools.
    In that thread, the order of simultaneous calls would be unknown."""

    def chosen(tool: Any) -> Any:
        world = worlds.current_world()
        return base if world and world.mocks(tool.name) else real

    @functools.wraps(real)
    async def ainvoke(tool: Any, *args: Any, **kwargs: Any) -> Any:
        return await chosen(tool)(tool, *args, **kwargs)

    @functools.wraps(real)
    def invoke(tool: Any, *args: Any, **kwargs: Any) -> Any:
        return chosen(tool)(tool, *args, **kwargs)

    return ainvoke if inspect.iscoroutinefunction(real) else invoke
