"""Hook Pydantic AI by patching ``AbstractToolset.call_tool`` in the outermost toolset."""

from __future__ import annotations

from typing import Any

from .tool_methods import HookedCall, bind_arguments, hook, patch_subclasses

_FAILED = "ToolFailed"
_PARAMETERS = ("name", "tool_args", "ctx", "tool")


def install(module: Any) -> None:
    """Patch ``module``, which is ``pydantic_ai.toolsets.abstract``."""
    patch_subclasses(module.AbstractToolset, ("call_tool",), hook("Pydantic AI", _read, _give))


def _read(_toolset: Any, args: Any, kwargs: Any) -> HookedCall | None:
    bound = bind_arguments(_PARAMETERS, args, kwargs)
    definition = getattr(bound["tool"], "tool_def", None)
    if getattr(definition, "kind", "") == "output":  # it becomes the answer, and no tool runs
        return None
    context = bound["ctx"]
    call_id = context.tool_call_id or ""
    agent = getattr(getattr(context, "agent", None), "name", None) or ""
    return HookedCall(
        bound["name"], _model_arguments(context, call_id, bound["tool_args"]), call_id, agent=agent
    )


def _model_arguments(context: Any, call_id: str, default: Any) -> Any:
    """Return the arguments of a call as the model wrote them, because the framework's parsed arguments may
    not be JSON."""
    for message in reversed(context.messages):
        for part in message.parts:
            if part.part_kind == "tool-call" and part.tool_call_id == call_id:
                return part.args_as_dict()
    return default


def _give(toolset: Any, answer: Any, args: Any, kwargs: Any) -> Any:
    """Return the answer. An error is raised as a framework exception if the release has an exception that
    does not use up a retry. Otherwise, the error is returned as text."""
    from pydantic_ai import exceptions

    failed = getattr(exceptions, _FAILED, None)
    if answer.is_error and failed is not None:
        raise failed(answer.text)
    return answer.text if answer.is_error else answer.value
