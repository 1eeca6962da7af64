"""The agents of ``agent.py``, with a record of the calls that the framework makes, by a middleware."""

import json
import os
from collections.abc import Awaitable, Callable

from agent import careful, hasty
from agent_framework import FunctionInvocationContext, function_middleware

__all__ = ["careful", "hasty"]


@function_middleware
async def record(context: FunctionInvocationContext, call_next: Callable[[], Awaitable[None]]) -> None:
    write({"name": context.function.name, "args": dict(context.arguments)})
    await call_next()


def write(call: dict[str, object]) -> None:
    with open(os.environ["FRAMEWORK_TRACE"], "a", encoding="utf-8") as trace:
        trace.write(json.dumps(call) + "\n")


for each in (careful, hasty):
    each.middleware = [record]
