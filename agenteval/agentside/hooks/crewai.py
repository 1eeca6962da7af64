"""Hook CrewAI by patching ``BaseTool.run`` for native calls, ``CrewStructuredTool.invoke`` for calls that
models write as text, and the async counterparts of both methods."""

from __future__ import annotations

import json
from typing import Any

from .tool_methods import HookedCall, as_async_patch, bind_arguments, hook, patch_subclasses

_BUILTIN_MODULES = (
    "crewai.tools.agent_tools.",
    "crewai.tools.memory_tools",
    "crewai.tools.cache_tools",
    "crewai.skills.",
)
"""The modules that contain the framework's own tools for memory, files and skills."""
_DELEGATION_TOOL = "crewai.tools.agent_tools.base_agent_tools.BaseAgentTool"


def install(module: Any) -> None:
    """Patch ``module``, which is ``crewai.tools.base_tool`` or ``crewai.tools.structured_tool``."""
    if hasattr(module, "BaseTool"):
        change = hook("CrewAI", _read_run, _give_run)
        patch_subclasses(module.BaseTool, ("run",), change)
        patch_subclasses(module.BaseTool, ("arun",), as_async_patch(change))
    else:
        change = hook("CrewAI", _read_invoke, _give_invoke)
        patch_subclasses(module.CrewStructuredTool, ("invoke",), change)
        patch_subclasses(module.CrewStructuredTool, ("ainvoke",), as_async_patch(change))


def _read_run(tool: Any, args: Any, kwargs: Any) -> HookedCall | None:
    return _read(tool, tool, _run_arguments(tool, args, kwargs))


def _read_invoke(tool: Any, args: Any, kwargs: Any) -> HookedCall | None:
    return _read(tool, getattr(tool, "_original_tool", None) or tool, _invoke_arguments(args, kwargs))


def _read(tool: Any, original: Any, arguments: Any) -> HookedCall | None:
    known = [f"{cls.__module__}.{cls.__qualname__}" for cls in type(original).__mro__]
    is_agent = _DELEGATION_TOOL in known
    if known[0].startswith(_BUILTIN_MODULES) and not is_agent:
        return None
    return HookedCall(
        name_of(tool),
        arguments,
        key=id(original),
        is_agent=is_agent,
        argument_error=_find_argument_error(tool, arguments),
    )


def name_of(tool: Any) -> str:
    """Return a tool's name as a model sees it. For example, ``Get order`` becomes ``get_order``."""
    from crewai.utilities.string_utils import sanitize_tool_name

    return str(sanitize_tool_name(tool.name))


def _run_arguments(tool: Any, args: Any, kwargs: Any) -> dict[str, Any]:
    return bind_arguments(getattr(tool.args_schema, "model_fields", ()), args, kwargs)


def _invoke_arguments(args: Any, kwargs: Any) -> Any:
    tool_input = bind_arguments(("input",), args, kwargs)["input"]
    try:
        return json.loads(tool_input) if isinstance(tool_input, str) else dict(tool_input)
    except ValueError:
        return tool_input


def _find_argument_error(tool: Any, arguments: Any) -> str:
    if not getattr(tool.args_schema, "model_fields", None):
        return ""
    try:
        tool.args_schema.model_validate(arguments)
    except Exception as error:  # as the tool would raise it
        return f"Tool '{tool.name}' arguments validation failed: {error}"
    return ""


def _give_run(tool: Any, answer: Any, args: Any, kwargs: Any) -> Any:
    return _give(tool, answer, _run_arguments(tool, args, kwargs))


def _give_invoke(tool: Any, answer: Any, args: Any, kwargs: Any) -> Any:
    return _give(tool, answer, _invoke_arguments(args, kwargs))


def _give(tool: Any, answer: Any, arguments: Any) -> Any:
    """Return the answer. An error is returned as text, because the framework repeats a call that raised an
    exception."""
    if argument_error := _find_argument_error(tool, arguments):
        raise ValueError(argument_error)
    tool.current_usage_count += 1  # so that the framework still enforces the limit
    return f"Error: {answer.failure}" if answer.is_error else answer.value
