"""Hook the OpenAI Agents SDK for tools that act on this machine according to the model's text, such as a
shell or a patch tool."""

from __future__ import annotations

from typing import Any

from .tool_fields import patch_field
from .tool_methods import HookedCall, hook

_EDITS = ("create_file", "update_file", "delete_file")


def install(module: Any, layer: str) -> None:
    """Patch ``module``, which is ``agents.tool``. Older releases lack some of these tools."""
    changed: tuple[tuple[str, str, Any, Any], ...] = (
        ("CustomTool", "on_invoke_tool", _read_custom, _give_text),
        ("LocalShellTool", "executor", _read_shell, _give_text),
        ("ShellTool", "executor", _read_shell, _give_text),
    )
    for name, field, read, give in changed:
        if hasattr(module, name):
            patch_field(getattr(module, name), field, hook(layer, read, give))
    if hasattr(module, "ApplyPatchTool"):
        patch_field(module.ApplyPatchTool, "editor", hook(layer, _read_patch, _give_patch), _EDITS)


def _read_custom(tool: Any, args: Any, kwargs: Any) -> HookedCall:
    context, raw_input = args
    call_id = str(getattr(context, "tool_call_id", None) or "")
    return HookedCall(tool.name, {"input": raw_input}, call_id, (tool.name, id(context)))


def _read_shell(tool: Any, args: Any, kwargs: Any) -> HookedCall:
    data = args[0].data
    return HookedCall(
        tool.name, shell_arguments(data.action), str(data.call_id or ""), (tool.name, id(args[0]))
    )


def shell_arguments(action: Any) -> dict[str, Any]:
    """Return the shell commands in the form of call arguments."""
    many = getattr(action, "commands", None)
    return {"commands": list(many)} if many is not None else {"command": list(getattr(action, "command", ()))}


def _read_patch(tool: Any, args: Any, kwargs: Any) -> HookedCall:
    return HookedCall(tool.name, file_patch_arguments(args[0]), key=(tool.name, id(args[0])))


def file_patch_arguments(operation: Any) -> dict[str, Any]:
    """Return the file operation of a patch call in the form of call arguments."""
    values = {name: getattr(operation, name, None) for name in ("type", "path", "diff", "move_to")}
    return {name: value for name, value in values.items() if value is not None}


def _give_text(tool: Any, answer: Any, args: Any, kwargs: Any) -> Any:
    return answer.failure if answer.is_error else answer.text


def _give_patch(tool: Any, answer: Any, args: Any, kwargs: Any) -> Any:
    from agents.editor import ApplyPatchResult

    status: Any = "failed" if answer.is_error else "completed"
    return ApplyPatchResult(status=status, output=answer.failure if answer.is_error else answer.text)
