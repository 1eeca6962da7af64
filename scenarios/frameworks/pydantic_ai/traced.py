"""The agents of ``agent.py``, with a record of the calls that the framework gets from its model."""

import json
import os
from pathlib import Path

from agent import careful, hasty, make_shop
from pydantic_ai.messages import ModelResponse, ToolCallPart
from pydantic_ai.models.wrapper import WrapperModel

__all__ = ["careful", "hasty", "make_shop"]


class Traced(WrapperModel):
    async def request(self, *args, **kwargs):
        response = await super().request(*args, **kwargs)
        record(response)
        return response


def record(response: ModelResponse) -> None:
    with Path(os.environ["FRAMEWORK_TRACE"]).open("a", encoding="utf-8") as trace:
        for part in response.parts:
            if isinstance(part, ToolCallPart):
                trace.write(json.dumps({"name": part.tool_name, "args": part.args_as_dict()}) + "\n")


for each in (careful, hasty):
    each.model = Traced(each.model)
