"""The agents of ``agent.py``, with a record of the calls in their models' replies, by a callback."""

import json
import os

from agent import careful, hasty
from google.adk.agents.callback_context import CallbackContext
from google.adk.models.llm_response import LlmResponse

__all__ = ["careful", "hasty"]


def record(callback_context: CallbackContext, llm_response: LlmResponse) -> None:
    with open(os.environ["FRAMEWORK_TRACE"], "a", encoding="utf-8") as trace:
        for part in llm_response.content.parts if llm_response.content else ():
            if call := part.function_call:
                trace.write(json.dumps({"name": call.name, "args": call.args}) + "\n")


for each in (careful, hasty):
    each.sub_agents[0].after_model_callback = record
