"""The agents of ``agent.py``, with a record of the tools that the framework ran."""

import json
import os
from pathlib import Path

from agent import careful, hasty
from strands.hooks import AfterToolCallEvent

__all__ = ["careful", "hasty"]


def trace(event: AfterToolCallEvent) -> None:
    line = json.dumps({"name": event.tool_use["name"], "args": event.tool_use["input"]})
    with Path(os.environ["FRAMEWORK_TRACE"]).open("a", encoding="utf-8") as file:
        file.write(line + "\n")


for agent in (careful, hasty):
    agent.hooks.add_callback(AfterToolCallEvent, trace)
