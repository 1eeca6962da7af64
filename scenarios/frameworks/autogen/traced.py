"""The agents of ``agent.py``, with a record of the calls that the framework logs as it runs tools."""

import json
import logging
import os

from agent import careful, hasty
from autogen_agentchat import EVENT_LOGGER_NAME
from autogen_agentchat.messages import ToolCallRequestEvent

__all__ = ["careful", "hasty"]


class Trace(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        if isinstance(record.msg, ToolCallRequestEvent):
            with open(os.environ["FRAMEWORK_TRACE"], "a", encoding="utf-8") as trace:
                for call in record.msg.content:
                    trace.write(json.dumps({"name": call.name, "args": json.loads(call.arguments)}) + "\n")


events = logging.getLogger(EVENT_LOGGER_NAME)
events.setLevel(logging.DEBUG)
events.addHandler(Trace())
