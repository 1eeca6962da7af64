"""The agents of ``agent.py``, with a record of the tools that the SDK starts."""

import json
import os
from pathlib import Path
from typing import Any

from agent import careful, hasty
from agents import AgentHooks

__all__ = ["careful", "hasty"]


class Trace(AgentHooks):
    async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
        line = json.dumps({"name": tool.name, "args": json.loads(context.tool_arguments)})
        with Path(os.environ["FRAMEWORK_TRACE"]).open("a", encoding="utf-8") as file:  # noqa: ASYNC230
            file.write(line + "\n")


for desk in (careful, hasty):
    for orders in desk.handoffs:
        orders.hooks = Trace()
