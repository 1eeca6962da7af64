"""Hook smolagents by patching ``Tool.__call__``, and ``MultiStepAgent.__call__`` for managed agents."""

from __future__ import annotations

from typing import Any

from .tool_methods import HookedCall, bind_arguments, hook, patch_subclasses

FINAL_ANSWER_TOOL = "final_answer"
"""The framework's own tool that receives the final answer as its argument."""


def install(module: Any) -> None:
    """Patch ``module``, which is ``smolagents.tools`` or ``smolagents.agents``."""
    if module.__name__.endswith(".tools"):
        patch_subclasses(module.Tool, ("__call__",), hook("smolagents", _read, _give))
    else:
        patch_subclasses(module.MultiStepAgent, ("__call__",), hook("smolagents", _read_agent, _give))


def _read(tool: Any, args: Any, kwargs: Any) -> HookedCall | None:
    if tool.name == FINAL_ANSWER_TOOL:
        return None
    named = {name: value for name, value in kwargs.items() if name != "sanitize_inputs_outputs"}
    only = args[0] if len(args) == 1 and not named else None
    if isinstance(only, dict) and set(only) <= set(tool.inputs):
        args, named = (), only
    by_name = bind_arguments(tool.inputs, args, named)
    return HookedCall(
        tool.name,
        by_name,
        argument_error="" if _checks_own_arguments(tool) else _find_argument_error(tool.inputs, by_name),
    )


def _checks_own_arguments(tool: Any) -> bool:
    """Return whether a tool handles its arguments in its own way."""
    from smolagents.tools import Tool

    return type(tool).__call__ is not Tool.__call__ or hasattr(tool, "skip_forward_signature_validation")


def _find_argument_error(inputs: Any, arguments: Any) -> str:
    """Return the error with which the framework refuses the arguments of a call that the framework itself
    makes, or an empty string if the arguments are valid."""
    for name in arguments:
        if name not in inputs:
            return f"Argument {name} is not in the tool's input schema"
    missing = (name for name, each in inputs.items() if name not in arguments and not each.get("nullable"))
    return next((f"Argument {name} is required" for name in missing), "")


def _read_agent(agent: Any, args: Any, kwargs: Any) -> HookedCall | None:
    if not agent.name:
        return None  # an agent that no other manages
    return HookedCall(agent.name, bind_arguments(("task",), args, kwargs), is_agent=True)


def _give(tool: Any, answer: Any, args: Any, kwargs: Any) -> Any:
    if answer.is_error:
        raise RuntimeError(answer.failure)
    return answer.text if getattr(tool, "output_type", "string") == "string" else answer.value
