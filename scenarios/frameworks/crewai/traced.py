"""The agents of ``agent.py``, with a record of the calls that the framework makes, by a hook of its own."""

import json
import os

from agent import careful, hasty
from crewai.hooks import ToolCallHookContext, register_before_tool_call_hook

__all__ = ["careful", "hasty"]


def record(context: ToolCallHookContext) -> None:
    with open(os.environ["FRAMEWORK_TRACE"], "a", encoding="utf-8") as trace:
        trace.write(json.dumps({"name": context.tool_name, "args": context.tool_input}) + "\n")


register_before_tool_call_hook(record)
