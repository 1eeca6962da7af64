"""Hook Microsoft Agent Framework by patching ``FunctionTool.invoke``."""

from __future__ import annotations

import functools
from typing import Any

from .. import closures
from ..world import as_json_text, current_world
from .tool_methods import HookedCall, hook, patch_subclasses

_AS_TOOL = "BaseAgent.as_tool.<locals>._agent_wrapper"


def install(module: Any) -> None:
    """Patch ``module``, which is ``agent_framework._tools``."""
    tool_class = module.FunctionTool
    patch_subclasses(tool_class, ("invoke",), functools.partial(_change, tool_class, tool_class.invoke))


def _change(tool_class: Any, check: Any, real: Any) -> Any:
    """Patch ``invoke`` so that the framework itself still refuses invalid arguments, with its own message,
    before a tool runs."""
    ask = hook("Microsoft's Agent Framework", _read, _give)(real)

    @functools.wraps(real)
    async def invoke(tool: Any, *args: Any, **kwargs: Any) -> Any:
        if current_world() is not None and not _fits(tool, arguments := _call_arguments(tool, kwargs)):
            schema = tool.input_model or tool.parameters()
            proxy = tool_class(name=tool.name, func=lambda **_: None, input_model=schema)
            await check(proxy, arguments=arguments)  # raises
        return await ask(tool, *args, **kwargs)

    return invoke


def _fits(tool: Any, arguments: Any) -> bool:
    if tool.declaration_only or tool.input_model is None:
        return tool.declaration_only or set(tool.parameters().get("required", ())).issubset(arguments)
    try:
        return tool.input_model.model_validate(arguments) is not None
    except ValueError:
        return False


def _call_arguments(tool: Any, kwargs: Any) -> Any:
    context, arguments = kwargs.get("context"), kwargs.get("arguments")
    if arguments is None:
        parameters = tool.parameters().get("properties", {})
        arguments = {name: value for name, value in kwargs.items() if name in parameters}
        arguments = arguments or getattr(context, "arguments", None) or {}
    return arguments.model_dump(exclude_unset=True) if hasattr(arguments, "model_dump") else arguments


def _read(tool: Any, args: Any, kwargs: Any) -> HookedCall | None:
    arguments = _call_arguments(tool, kwargs)
    call_id, is_agent = kwargs.get("tool_call_id") or "", find_wrapped_agent(tool) is not None
    call = HookedCall(tool.name, arguments, call_id, (tool.name, as_json_text(arguments)), is_agent)
    return None if tool.declaration_only else call


def find_wrapped_agent(tool: Any) -> Any:
    """Return the agent that a tool wraps (``as_tool``), or ``None`` if the tool does not wrap an agent."""
    function = getattr(tool, "func", None)
    is_agent = getattr(function, "__qualname__", "") == _AS_TOOL
    return closures.closure_variables(function).get("self") if is_agent else None


def _give(tool: Any, answer: Any, args: Any, kwargs: Any) -> Any:
    """Return the answer in the framework's form. The framework represents an error either by an exception or
    by text with the prefix ``Error:``."""
    value = f"Error: {answer.failure}" if answer.is_error else answer.value
    return value if kwargs.get("skip_parsing") else tool.parse_result(value)
