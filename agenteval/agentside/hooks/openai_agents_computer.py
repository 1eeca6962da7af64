"""Hook the OpenAI Agents SDK for computer use. Each action, including taking a screenshot, counts as one
call."""

from __future__ import annotations

from functools import partial
from typing import Any

from .tool_methods import HookedCall, bind_arguments, hook, patch_subclasses

_NAME = "computer_use_preview"
_ACTIONS: dict[str, tuple[str, ...]] = {
    "screenshot": (),
    "click": ("x", "y", "button"),
    "double_click": ("x", "y"),
    "scroll": ("x", "y", "scroll_x", "scroll_y"),
    "type": ("text",),
    "wait": (),
    "move": ("x", "y"),
    "keypress": ("keys",),
    "drag": ("path",),
}


def install(module: Any) -> None:
    """Patch ``module``, which is ``agents.computer``."""
    for base in (module.Computer, module.AsyncComputer):
        for action in _ACTIONS:
            change = hook("the OpenAI Agents SDK", partial(_read, action), partial(_give, action))
            patch_subclasses(base, (action,), change)


def _read(action: str, computer: Any, args: Any, kwargs: Any) -> HookedCall:
    arguments = {"type": action, **bind_arguments(_ACTIONS[action], args, kwargs)}
    return HookedCall(_NAME, arguments, key=(id(computer), action))


def _give(action: str, computer: Any, answer: Any, args: Any, kwargs: Any) -> Any:
    """Return the answer in the form that a computer returns. A computer cannot report errors, so an error is
    represented by an empty screen."""
    return ("" if answer.is_error else answer.text) if action == "screenshot" else None
