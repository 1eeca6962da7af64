"""Hook Google's Agent Development Kit (ADK) by patching ``BaseTool.run_async`` in each class that overrides
it."""

from __future__ import annotations

import copy
import inspect
from typing import Any

from .tool_methods import HookedCall, hook, patch_subclasses

_PACKAGE = "google.adk."
_OWN_TOOLS = (
    "transfer_to_agent", "set_model_response", "exit_loop", "finish_task",
    "adk_request_confirmation", "adk_request_credential", "adk_request_input",
)  # fmt: skip
"""The framework's internal tools, whose calls are for its own use."""
_AGENT_TOOLS = ("AgentTool", "_TaskAgentTool")


def install(module: Any) -> None:
    """Patch ``module``, which is ``google.adk.tools.base_tool``."""
    patch_subclasses(
        module.BaseTool, ("run_async",), hook("Google ADK", _read, _give, make_proxy=_make_proxy)
    )


def is_adk_builtin(tool: Any) -> bool:
    """Return whether a tool is part of the framework's own control flow, so that calls to the tool are not
    counted as the agent's calls."""
    function = getattr(tool, "func", None)
    is_theirs = type(tool).__module__.startswith(_PACKAGE) and (
        function is None or (getattr(function, "__module__", None) or "").startswith(_PACKAGE)
    )
    return is_theirs and tool.name in _OWN_TOOLS


def _read(tool: Any, _args: Any, kwargs: Any) -> HookedCall | None:
    if (
        is_adk_builtin(tool) or type(tool).__name__ == "BaseTool"
    ):  # a BaseTool is a placeholder for a missing tool
        return None
    is_agent = any(cls.__name__ in _AGENT_TOOLS for cls in type(tool).__mro__)
    context = kwargs["tool_context"]
    call_id, agent = getattr(context, "function_call_id", None) or "", getattr(context, "agent_name", "")
    return HookedCall(tool.name, copy.deepcopy(kwargs["args"]), call_id, is_agent=is_agent, agent=agent)


def _make_proxy(tool: Any, ask: Any) -> Any:
    """Return a copy of the tool that calls ``ask``. Return ``None`` if the tool does more than call its
    function, for example if it requests credentials first."""
    from google.adk.tools import FunctionTool

    if getattr(type(tool), "run_async", None) is not FunctionTool.run_async:
        return None
    try:
        signature = inspect.signature(tool.func)
    except (TypeError, ValueError):
        return None
    ask.__signature__, ask.__annotations__ = signature, {}
    ask.__name__ = getattr(tool.func, "__name__", type(tool.func).__name__)
    proxy = copy.copy(tool)
    proxy.func = ask
    return proxy


def _give(tool: Any, answer: Any, _args: Any, _kwargs: Any) -> Any:
    value = answer.value
    if answer.is_error and not (isinstance(value, dict) and value.get("error")):
        return {"error": value}
    return value
