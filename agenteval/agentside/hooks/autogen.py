"""Hook AutoGen by patching ``BaseTool.run_json``, and ``Workbench.call_tool`` for workbenches that contain
other kinds of tools."""

from __future__ import annotations

from contextvars import ContextVar
from functools import wraps
from typing import Any

from .tool_methods import HookedCall, as_async_patch, as_stream_patch, bind_arguments, hook, patch_subclasses

PACKAGES = ("autogen_core", "autogen_agentchat", "autogen_ext")
_BENCH = ("name", "arguments", "cancellation_token", "call_id")
_TOOL = ("args", "cancellation_token", "call_id")
_NO_CALL: tuple[str, Any, str] = ("", None, "")
_IN_BENCH: ContextVar[tuple[str, Any, str]] = ContextVar("agenteval_autogen_call", default=_NO_CALL)
"""The name, arguments and id of the current call in a workbench. The workbench may use a different name for
the tool."""


class _AnswerText(str):
    """The scenario's answer as the model reads it."""


class AutoGenToolError(Exception):
    """Raised when a tool fails. The framework passes the exception's message, marked as an error, to the
    model."""


def install(module: Any) -> None:
    """Patch ``module``, which is ``autogen_core.tools``."""
    bench, tool = (
        hook("AutoGen", _read_bench, _tool_result),
        hook("AutoGen", _read, _return_value, to_record=_to_recorded_value),
    )
    patch_subclasses(module.Workbench, ("call_tool",), as_async_patch(bench))
    patch_subclasses(module.Workbench, ("call_tool_stream",), as_stream_patch(bench))
    patch_subclasses(module.BaseTool, ("run_json",), as_async_patch(tool))
    patch_subclasses(module.BaseTool, ("run_json_stream",), as_stream_patch(tool))
    patch_subclasses(module.BaseTool, ("return_value_as_string",), _keep_answer_text)


def _is_of_autogen(thing: Any) -> bool:
    return str(getattr(thing, "__module__", "")).startswith(("autogen_core.", "autogen_agentchat."))


def _read_bench(bench: Any, args: Any, kwargs: Any) -> HookedCall | None:
    bound = bind_arguments(_BENCH, args, kwargs)
    name, arguments, call_id = bound["name"], bound.get("arguments"), bound.get("call_id") or ""
    _IN_BENCH.set((name, arguments, call_id))
    if _is_of_autogen(type(bench)) and hasattr(bench, "_tools"):
        return None  # it only runs one of these tools, which has its own hook
    return HookedCall(name, dict(arguments or {}), call_id, (name, call_id))


def _tool_result(_bench: Any, answer: Any, args: Any, kwargs: Any) -> Any:
    from autogen_core.tools import TextResultContent, ToolResult

    content = TextResultContent(content=answer.failure if answer.is_error else answer.text)
    return ToolResult(
        name=bind_arguments(_BENCH, args, kwargs)["name"], result=[content], is_error=answer.is_error
    )


def _read(tool: Any, args: Any, kwargs: Any) -> HookedCall | None:
    if _is_of_autogen(getattr(tool, "_func", None)):
        return None  # a hand-off
    bound = bind_arguments(_TOOL, args, kwargs)
    name, call_id = _name_in_bench(bound) or tool.name, bound.get("call_id") or ""
    is_agent = any(cls.__name__ == "TaskRunnerTool" and _is_of_autogen(cls) for cls in type(tool).__mro__)
    return HookedCall(
        name,
        dict(bound["args"]),
        call_id,
        (name, call_id),
        is_agent,
        _find_argument_error(tool, bound["args"]),
    )


def _find_argument_error(tool: Any, args: Any) -> str:
    try:
        tool.args_type().model_validate(args)
    except Exception as error:  # as the tool would raise it
        return str(error)
    return ""


def _name_in_bench(bound: Any) -> str:
    """Return the name under which the tool was requested from a workbench, or an empty string for a tool that
    runs outside a workbench."""
    name, arguments, call_id = _IN_BENCH.get()
    is_same = arguments == bound["args"] if call_id else arguments is bound["args"]
    return name if is_same and call_id == (bound.get("call_id") or "") else ""


def _return_value(_tool: Any, answer: Any, args: Any, kwargs: Any) -> Any:
    if answer.is_error:
        raise AutoGenToolError(answer.failure)
    return _AnswerText(answer.text) if _name_in_bench(bind_arguments(_TOOL, args, kwargs)) else answer.value


def _to_recorded_value(value: Any) -> Any:
    """Return the text from an agent that ran as a tool. Return any other value unchanged."""
    if type(value).__name__ != "TaskResult" or not _is_of_autogen(type(value)):
        return value
    return "\n\n".join(
        each.to_model_text()
        for each in value.messages
        if hasattr(each, "to_model_text") and each.source != "user"
    )


def _keep_answer_text(real: Any) -> Any:
    @wraps(real)
    def return_value_as_string(tool: Any, value: Any) -> Any:
        return str(value) if isinstance(value, _AnswerText) else real(tool, value)

    return return_value_as_string
