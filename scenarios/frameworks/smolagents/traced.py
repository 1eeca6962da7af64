"""The agents of ``agent.py``, with a record of the calls in the steps that the framework keeps."""

import ast
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agent import careful, coding, coding_hasty, hasty
from smolagents import ActionStep

__all__ = ["careful", "coding", "coding_hasty", "hasty"]
_TOOLS = ("get_order", "cancel_order")


def _calls(step: ActionStep) -> Iterator[tuple[str, dict[str, Any]]]:
    """Those of a step; what code calls stands in the code."""
    if not step.code_action:
        for call in step.tool_calls or ():
            yield call.name, call.arguments
        return
    for node in ast.walk(ast.parse(step.code_action)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.func.id, {each.arg or "": ast.unparse(each.value)[1:-1] for each in node.keywords}


def trace(step: ActionStep, **_: Any) -> None:
    with Path(os.environ["FRAMEWORK_TRACE"]).open("a", encoding="utf-8") as file:
        for name, args in _calls(step):
            if name in _TOOLS:
                file.write(json.dumps({"name": name, "args": args}) + "\n")


for each in (careful, coding, coding_hasty, hasty):
    each.step_callbacks.register(ActionStep, trace)
