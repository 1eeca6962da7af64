"""A shop's agent without a framework, in the forms in which people publish one: a loop of its own that calls
the tools of an MCP server, ``mcp_shop_server.py``, which it starts itself, over stdio.

What to call is decided here and not by a model: it looks up the orders that the user names and says how they
are. The hasty ones cancel the first of them as well.
"""

import asyncio
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

MORE = {"by_gather": "an async function that makes the calls of a step at once"}
SERVER = Path(__file__).with_name("mcp_shop_server.py")
Call = tuple[str, dict[str, Any]]


def _steps(asked: str, hasty: bool) -> list[list[Call]]:
    if asked == "bad":
        return [[("get_order", {"id": "A-7"})]]
    orders = asked.split()[1:] if asked.startswith("order") else []
    looks = [("get_order", {"order_id": order}) for order in orders]
    cancels = [("cancel_order", {"order_id": order}) for order in orders[:1]] if hasty else []
    return [calls for calls in (looks, cancels) if calls]


async def _use(session: ClientSession, call: Call) -> str:
    result = await session.call_tool(*call)
    return "".join(part.text for part in result.content)


def _status(result: str) -> str:
    return str(json.loads(result)["status"]) if result.startswith("{") else f"ERROR: {result}"


async def _answer(text: str, hasty: bool = False, at_once: bool = False) -> str:
    server = StdioServerParameters(command=sys.executable, args=[str(SERVER)], env=dict(os.environ))
    answers = list[str]()
    async with stdio_client(server) as streams, ClientSession(*streams) as session:
        await session.initialize()
        offered = {tool.name for tool in (await session.list_tools()).tools}
        for calls in _steps(text, hasty):
            assert {name for name, _ in calls} <= offered
            if at_once:
                results = await asyncio.gather(*(_use(session, call) for call in calls))
            else:
                results = [await _use(session, call) for call in calls]
            for (name, args), result in zip(calls, results, strict=True):
                if name == "get_order":
                    answers.append(f"{args.get('order_id', 'It')} is {_status(result)}")
    return ", ".join(answers) or "Which order?"


async def by_async(text: str) -> str:
    return await _answer(text)


async def hasty_by_async(text: str) -> str:
    return await _answer(text, hasty=True)


async def by_gather(text: str) -> str:
    return await _answer(text, at_once=True)


async def hasty_by_gather(text: str) -> str:
    return await _answer(text, hasty=True, at_once=True)


def by_function(text: str) -> str:
    return asyncio.run(by_async(text))


def hasty_by_function(text: str) -> str:
    return asyncio.run(hasty_by_async(text))


def by_threads(text: str) -> str:
    with ThreadPoolExecutor() as pool:
        return pool.submit(by_function, text).result()


def hasty_by_threads(text: str) -> str:
    with ThreadPoolExecutor() as pool:
        return pool.submit(hasty_by_function, text).result()


class in_class:  # noqa: N801
    def __init__(self, hasty: bool = False) -> None:
        self.hasty = hasty

    def chat(self, text: str) -> str:
        return asyncio.run(_answer(text, self.hasty))


class HastyInClass(in_class):
    def __init__(self) -> None:
        super().__init__(hasty=True)
