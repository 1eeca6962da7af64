"""Hook the OpenAI Agents SDK by patching ``on_invoke_tool``, a field in each tool."""

from __future__ import annotations

import json
from typing import Any

from .. import closures
from ..world import current_world
from . import openai_agents_local
from .tool_fields import patch_field
from .tool_methods import HookedCall, hook

LAYER = "the OpenAI Agents SDK"
_ANSWER = "json_tool_call"
"""The tool name that some models use to give the final answer."""


def install(module: Any) -> None:
    """Patch ``module``, which is ``agents.tool``."""
    patch_field(module.FunctionTool, "on_invoke_tool", _change)
    openai_agents_local.install(module, LAYER)


def _change(real: Any) -> Any:
    """Patch the function so that the SDK itself still refuses invalid arguments before the function runs."""
    ask = hook(LAYER, _read, _give)(real)

    def invoke(tool: Any, context: Any, raw_arguments: Any) -> Any:
        argument_error = current_world() and _find_argument_error(tool, _arguments(raw_arguments))
        return (
            _failure_output(tool, context, argument_error)
            if argument_error
            else ask(tool, context, raw_arguments)
        )

    return invoke


def _read(tool: Any, args: Any, kwargs: Any) -> HookedCall | None:
    context, raw_arguments = args
    call_id = str(getattr(context, "tool_call_id", None) or "")
    call = HookedCall(
        tool.name, _arguments(raw_arguments), call_id, (tool.name, id(context)), is_agent_tool(tool)
    )
    return None if tool.name == _ANSWER else call


def _arguments(raw_arguments: Any) -> Any:
    """Return the parsed arguments, or the unparsed text if it is not a JSON object."""
    try:
        parsed = json.loads(raw_arguments or "{}")
    except ValueError:
        return raw_arguments
    return parsed if isinstance(parsed, dict) else raw_arguments


def is_agent_tool(tool: Any) -> bool:
    """Return whether the tool was created by an agent's ``as_tool`` method."""
    run = closures.find_in_closures(tool.on_invoke_tool, _is_run_of_agent)
    return getattr(tool, "_agent_instance", None) is not None or run is not None


def _is_run_of_agent(value: Any) -> bool:
    return str(getattr(value, "__qualname__", "")).startswith("Agent.as_tool.")


def _find_argument_error(tool: Any, arguments: Any) -> Any:
    """Return the reason why the SDK refuses the arguments, if the release exposes the function that checks
    them."""
    function = getattr(tool, "__wrapped__", None)
    if function is None:
        return None
    from agents import ModelBehaviorError
    from agents.function_schema import function_schema

    what, strict = f"Invalid JSON input for tool {tool.name}", tool.strict_json_schema
    if not isinstance(arguments, dict):
        return ModelBehaviorError(f"{what}: {arguments}")
    schema = function_schema(function, tool.name, use_docstring_info=False, strict_json_schema=strict)
    try:
        schema.params_pydantic_model(**arguments)
    except ValueError as error:
        return ModelBehaviorError(f"{what}: {error}")
    return None


def _give(tool: Any, answer: Any, args: Any, kwargs: Any) -> Any:
    return _failure_output(tool, args[0], None, answer.failure) if answer.is_error else answer.text


async def _failure_output(tool: Any, context: Any, error: Any, words: str = "") -> Any:
    """Return the text that the model receives for an error, according to the tool author's settings.

    If the author set nothing, return ``words``, which is the text of a mock, because the SDK's own sentence
    may not contain this text. Raise the error if the settings require the run to end."""
    from agents import tool as tools

    error = error or RuntimeError(words)
    usual = tools.default_tool_error_function
    format_error = getattr(tools, "maybe_invoke_function_tool_failure_error_function", None)
    if format_error is None:  # before 0.8 the function is in a closure
        function = closures.closure_variables(tool.on_invoke_tool).get("failure_error_function", usual)
        output = function and function(context, error)
    else:
        output = format_error(function_tool=tool, context=context, error=error)
    output = await output if hasattr(output, "__await__") else output
    if output is None:
        raise error
    return words if words and output == usual(context, error) else output
