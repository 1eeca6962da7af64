"""Hook LlamaIndex by patching ``call`` and ``acall`` in its tool classes, and ``__call__`` in tool classes
that define neither method."""

from __future__ import annotations

import inspect
from typing import Any

from .tool_methods import HookedCall, as_async_patch, bind_arguments, hook, patch_subclasses

_FRAMEWORK = "llama_index.core.agent."


def install(module: Any) -> None:
    """Patch ``module``, which is ``llama_index.core.tools.types``."""
    change = hook("LlamaIndex", _read, _give, to_record=_to_recorded_value)
    patch_subclasses(module.BaseTool, ("__call__", "call"), change)
    patch_subclasses(module.BaseTool, ("acall",), as_async_patch(change))


def _read(tool: Any, args: Any, kwargs: Any) -> HookedCall | None:
    function = getattr(tool, "real_fn", None)
    if (getattr(function, "__module__", None) or "").startswith(_FRAMEWORK):
        return None  # the hand-off of a workflow
    key = id(getattr(tool, "base_tool", tool))  # the same key for an adapter and the tool that it adapts
    return HookedCall(
        tool.metadata.get_name(),
        _args(tool, args, kwargs),
        key=key,
        argument_error=_find_argument_error(tool, args, kwargs),
    )


def _find_argument_error(tool: Any, args: Any, kwargs: Any) -> str:
    function = getattr(tool, "real_fn", None)
    try:
        if function is not None:
            inspect.signature(function).bind(*args, **{**getattr(tool, "partial_params", {}), **kwargs})
    except TypeError as error:  # as the function would raise it
        return str(error)
    return ""


def _args(tool: Any, args: Any, kwargs: Any) -> dict[str, Any]:
    """Return the arguments that the model supplies, excluding arguments that the framework adds."""
    hidden = {getattr(tool, "ctx_param_name", None), *getattr(tool, "partial_params", ())}
    properties = tool.metadata.get_parameters_dict().get("properties", {}) if args else {}
    bound = bind_arguments(properties, args, kwargs)
    return {name: value for name, value in bound.items() if name not in hidden}


def _give(tool: Any, answer: Any, args: Any, kwargs: Any) -> Any:
    from llama_index.core.tools import ToolOutput

    if argument_error := _find_argument_error(tool, args, kwargs):
        raise TypeError(argument_error)
    return ToolOutput(
        content=answer.failure if answer.is_error else answer.text,
        tool_name=tool.metadata.get_name(),
        raw_input={"args": args, "kwargs": _args(tool, (), kwargs)},
        raw_output=answer.value,
        is_error=answer.is_error,
    )


def _to_recorded_value(output: Any) -> Any:
    raw = getattr(output, "raw_output", None)
    return raw if raw is not None else getattr(output, "content", output)
