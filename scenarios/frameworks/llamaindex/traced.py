"""The agents of ``agent.py``, with a record of the calls that their model gives the framework."""

import json
import os
from collections.abc import Sequence

from agent import Scripted, careful, hasty
from llama_index.core.base.llms.types import ChatMessage, ChatResponse

__all__ = ["careful", "hasty"]


class Traced(Scripted):
    def _answer(self, messages: Sequence[ChatMessage]) -> ChatResponse:
        response = super()._answer(messages)
        with open(os.environ["FRAMEWORK_TRACE"], "a", encoding="utf-8") as trace:
            for call in response.message.additional_kwargs["calls"]:
                trace.write(json.dumps({"name": call.tool_name, "args": call.tool_kwargs}) + "\n")
        return response


for each in (careful, hasty):
    each.llm = Traced(first=each.llm.first)
