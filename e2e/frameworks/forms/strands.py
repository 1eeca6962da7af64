"""A shop's agent in Strands, in the forms in which such agents are published. Nothing in here knows of
agenteval; the model is scripted, a ``Model`` of the framework's."""

import json
import os
import re
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from strands import Agent, ToolContext, tool
from strands.models import Model


def _mark(name: str) -> None:
    with open(os.environ["RAN"], "a", encoding="utf-8") as file:
        file.write(f"{name}\n")


@tool(context=True)
def get_order(order_id: str, tool_context: ToolContext, verbose: bool = False) -> dict:
    """Look an order up.

    Args:
        order_id: Which one.
        verbose: With all its rows.
    """
    assert tool_context.tool_use["name"] == "get_order"
    _mark("get_order")
    return {"status": "success", "content": [{"json": {"status": "real"}}]}


@tool
async def cancel_order(order_id: str) -> dict:
    """Cancel an order.

    Args:
        order_id: Which one.
    """
    _mark("cancel_order")
    return {"status": "success", "content": [{"json": {"status": "real"}}]}


class Clerk(Model):
    def __init__(self, hasty: bool = False) -> None:
        self.hasty = hasty

    def update_config(self, **config: Any) -> None: ...

    def get_config(self) -> dict[str, Any]:
        return {}

    def structured_output(self, *args: Any, **options: Any) -> Any:
        raise NotImplementedError

    async def stream(self, messages: list[Any], *args: Any, **options: Any) -> AsyncIterator[Any]:
        reply = self._next(*_since_asked(messages))
        yield {"messageStart": {"role": "assistant"}}
        for at, each in enumerate([reply] if isinstance(reply, str) else reply):
            start, delta = {}, {"text": each}
            if not isinstance(each, str):
                start = {"toolUse": {"name": each[0], "toolUseId": f"call_{len(messages)}_{at}"}}
                delta = {"toolUse": {"input": json.dumps(each[1])}}
            yield {"contentBlockStart": {"start": start}}
            yield {"contentBlockDelta": {"delta": delta}}
            yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn" if isinstance(reply, str) else "tool_use"}}
        usage = {"inputTokens": 40, "outputTokens": 8, "totalTokens": 48}
        yield {"metadata": {"usage": usage, "metrics": {"latencyMs": 1}}}

    def _next(self, asked: str, calls: list[Any], results: dict[str, str]) -> Any:
        """The calls to make, or the answer."""
        orders = asked.split()[1:]
        if not calls:
            wanted = [{"order_id": each} for each in orders] or [{"number": "A-7"}]
            return [("get_order", args) for args in wanted]
        if self.hasty and all(call["name"] != "cancel_order" for call in calls):
            return [("cancel_order", {"order_id": orders[0]})]
        looked = [call for call in calls if call["name"] == "get_order"]
        return ", ".join(_sentence(call["input"], results[call["toolUseId"]]) for call in looked)


class Desk(Clerk):
    """Passes on what it is asked, and repeats the answer."""

    def _next(self, asked: str, calls: list[Any], results: dict[str, str]) -> Any:
        return results[calls[0]["toolUseId"]] if calls else [("specialist", {"input": asked})]


def _since_asked(messages: list[Any]) -> tuple[str, list[Any], dict[str, str]]:
    asked, calls, results = "", list[Any](), dict[str, str]()
    for message in messages:
        for block in message["content"]:
            if "toolUse" in block:
                calls.append(block["toolUse"])
            elif "toolResult" in block:
                given = [part.get("text") or json.dumps(part) for part in block["toolResult"]["content"]]
                results[block["toolResult"]["toolUseId"]] = " ".join(given)
            elif message["role"] == "user":
                asked, calls, results = block["text"], [], {}
    return asked, calls, results


def _sentence(args: dict[str, Any], result: str) -> str:
    found = re.search(r"""status['"]: ?['"]([^'"]+)""", result)
    return f"{args.get('order_id')} is {found[1]}" if found else f"ERROR: {result}"


def _agent(hasty: bool = False) -> Agent:
    return Agent(
        model=Clerk(hasty),
        tools=[get_order, cancel_order],
        system_prompt="You look after orders.",
        callback_handler=None,
    )


agent, hasty_agent = _agent(), _agent(hasty=True)


def by_function(text: str) -> str:
    return str(_agent()(text)).strip()  # an agent keeps its conversation


def hasty_by_function(text: str) -> str:
    return str(_agent(hasty=True)(text)).strip()


async def by_async(text: str) -> str:
    return str(await _agent().invoke_async(text)).strip()


async def hasty_by_async(text: str) -> str:
    return str(await _agent(hasty=True).invoke_async(text)).strip()


def _specialist(hasty: bool) -> Any:
    """The other agent as a tool; in older releases a function around it."""
    description = "Asks the specialist for orders."
    if hasattr(Agent, "as_tool"):
        return _agent(hasty).as_tool(name="specialist", description=description)

    @tool(description=description)
    def specialist(input: str) -> str:
        return str(_agent(hasty)(input)).strip()

    return specialist


specialist_agent = Agent(model=Desk(), tools=[_specialist(hasty=False)], callback_handler=None)
hasty_specialist_agent = Agent(model=Desk(), tools=[_specialist(hasty=True)], callback_handler=None)


def by_threads(text: str) -> str:
    with ThreadPoolExecutor() as pool:
        return pool.submit(by_function, text).result()


def hasty_by_threads(text: str) -> str:
    with ThreadPoolExecutor() as pool:
        return pool.submit(hasty_by_function, text).result()


class in_class:  # noqa: N801 (the name is the form's)
    hasty = False

    def __init__(self) -> None:
        self.agent = _agent(self.hasty)

    def chat(self, text: str) -> str:
        return str(self.agent(text)).strip()


class HastyInClass(in_class):
    hasty = True


async def _stream(agent: Agent, text: str) -> str:
    reply = ""
    async for event in agent.stream_async(text):
        if "result" in event:
            reply = str(event["result"]).strip()
    return reply


async def by_stream(text: str) -> str:
    return await _stream(_agent(), text)


async def hasty_by_stream(text: str) -> str:
    return await _stream(_agent(hasty=True), text)


MORE = {"by_stream": "a streamed run"}
