"""Hook Strands by patching ``AgentTool.stream``."""

from __future__ import annotations

import inspect
import json
from typing import Any

from .tool_methods import HookedCall, ToolFailedError, as_stream_patch, bind_arguments, hook, patch_subclasses

_BUILTIN_MODULES = (
    *("strands.multiagent.", "strands.memory.", "strands.background_tasks.", "strands._context_manager."),
    *("strands.tools.structured_output.", "strands.vended_plugins.context_offloader."),
)
"""The modules that define the framework's own tools for hand-offs, structured answers and context
management."""


def install(module: Any) -> None:
    """Patch ``module``, which is ``strands.types.tools``."""
    change = hook("Strands", _read, _tool_result, to_record=_to_recorded_value)
    patch_subclasses(module.AgentTool, ("stream",), as_stream_patch(change))


def is_strands_builtin(tool: Any) -> bool:
    """Return whether a tool is internal to the framework. Tools that the framework ships for use by agents
    are not internal."""
    function = getattr(
        tool, "_tool_func", tool
    )  # elsewhere in other releases: then the tool itself is checked
    return str(getattr(function, "__module__", "")).startswith(_BUILTIN_MODULES)


def text_of(result: Any) -> str:
    """Return a tool result as text."""
    blocks = result.get("content") or ()
    data = (each["text"] if "text" in each else each.get("json", each) for each in blocks)
    return "\n".join(
        each if isinstance(each, str) else json.dumps(each, ensure_ascii=False, default=str) for each in data
    )


def _read(tool: Any, args: Any, kwargs: Any) -> HookedCall | None:
    if is_strands_builtin(tool):
        return None
    use = bind_arguments(("tool_use",), args, kwargs)["tool_use"]
    call_id, arguments, is_agent = (
        str(use.get("toolUseId") or ""),
        use.get("input"),
        tool.tool_type == "agent",
    )
    key = use["name"], call_id or id(tool)
    return HookedCall(use["name"], arguments, call_id, key, is_agent, _find_argument_error(tool, arguments))


def _find_argument_error(tool: Any, arguments: Any) -> str:
    """Return the error with which the framework refuses arguments before the function of a decorated tool
    runs, or an empty string if the arguments are valid."""
    from strands.tools.decorator import DecoratedFunctionTool, FunctionToolMetadata

    if type(tool) is not DecoratedFunctionTool:
        return ""
    try:
        function = tool.__wrapped__
        injected = {*inspect.signature(function).parameters} - {*properties_of(tool), "agent", "self", "cls"}
        metadata = FunctionToolMetadata(function, *injected)
    except Exception:  # an author's schema, for example: only the tool itself could tell
        return ""
    try:
        metadata.validate_input(arguments)
    except ValueError as error:
        return f"Error: {error}"
    return ""


def properties_of(tool: Any) -> Any:
    """Return the properties in a tool's input schema as the model sees them."""
    schema = tool.tool_spec["inputSchema"]
    return schema.get("json", schema).get("properties", {})


def _tool_result(tool: Any, answer: Any, args: Any, kwargs: Any) -> Any:
    use, failed = bind_arguments(("tool_use",), args, kwargs)["tool_use"], answer.is_error
    content = [{"text": answer.failure if failed else answer.text}]
    return {"toolUseId": use.get("toolUseId"), "status": "error" if failed else "success", "content": content}


def _to_recorded_value(event: Any) -> str:
    result = getattr(event, "tool_result", event)
    text = text_of(result) if isinstance(result, dict) else ""
    if isinstance(result, dict) and result.get("status") == "error":
        raise ToolFailedError(text)
    return text
