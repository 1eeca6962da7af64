"""The agents of ``agent.py``, with a record of what their model asks for and of what their node calls."""

import json
import os

import agent
from agent import by_hand, careful, hasty

__all__ = ["by_hand", "careful", "hasty"]


def trace(name, args):
    with open(os.environ["FRAMEWORK_TRACE"], "a", encoding="utf-8") as record:
        record.write(json.dumps({"name": name, "args": args}) + "\n")


def answer(self, messages, said=agent.Scripted._answer):
    message = said(self, messages)
    for call in message.tool_calls:
        trace(call["name"], call["args"])
    return message


class Looked:
    """The tool as the node calls it."""

    def __init__(self, tool):
        self._tool = tool

    def invoke(self, args):
        trace(self._tool.name, args)
        return self._tool.invoke(args)


agent.Scripted._answer = answer
agent.get_order = Looked(agent.get_order)
