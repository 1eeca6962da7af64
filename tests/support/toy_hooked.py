"""A framework whose tools are hooked, for tests: a project gets it as the package ``pydantic_ai``, of which
it has the method that the hook changes. Its agent asks a model by ``httpx2``, and carries out its calls.
"""

from __future__ import annotations

from tests.support.kit import Project

_TOOLSETS = """
class AbstractToolset:
    async def call_tool(self, name, tool_args, ctx, tool):
        return await tool(**tool_args)
"""
_AGENT = """
import asyncio, json, os
import httpx2
from .toolsets.abstract import AbstractToolset

class _Context:
    messages = ()

    def __init__(self, tool_call_id):
        self.tool_call_id = tool_call_id

class Toy:
    '''``by_hand``: the names of tools that it calls as functions; ``refuses``: arguments that it refuses.'''

    def __init__(self, *tools, by_hand=(), refuses=(), forms=()):
        self.tools = {tool.__name__: tool for tool in tools}
        self.by_hand, self.refuses, self.forms = by_hand, refuses, forms
        self.toolset = AbstractToolset()

    async def run(self, text):
        messages = [{"role": "user", "content": text}]
        names = (*self.tools, *self.forms)
        offered = [{"type": "function", "function": {"name": name}} for name in names]
        async with httpx2.AsyncClient(timeout=30) as client:
            while True:
                body = {"model": "m", "messages": messages, "tools": offered}
                answered = await client.post(os.environ["MODEL_URL"] + "/chat/completions", json=body)
                message = answered.json()["choices"][0]["message"]
                messages.append(message)
                calls = message.get("tool_calls") or []
                if not calls:
                    return message["content"]
                for call in calls:
                    if call["function"]["name"] in self.forms:
                        return call["function"]["arguments"]
                results = await asyncio.gather(*map(self._called, reversed(calls)))
                for call, result in zip(reversed(calls), results):
                    told = {"tool_call_id": call["id"], "content": json.dumps(result)}
                    messages.append({"role": "tool", **told})

    async def _called(self, call):
        name, args = call["function"]["name"], json.loads(call["function"]["arguments"])
        if args.get("id") in self.refuses:
            return {"error": "refused"}
        tool = self.tools[name]
        if name in self.by_hand:
            return await tool(**args)
        return await self.toolset.call_tool(name, args, _Context(call["id"]), tool)
"""


def put_into(project: Project) -> None:
    """The package, beside the agent."""
    project.write("pydantic_ai/__init__.py", _AGENT)
    project.write("pydantic_ai/exceptions.py", "")
    project.write("pydantic_ai/toolsets/__init__.py", "")
    project.write("pydantic_ai/toolsets/abstract.py", _TOOLSETS)
