"""A shop's agent in CrewAI, as its authors run it: nothing in here knows of agenteval.

Its model is scripted (a ``BaseLLM`` of its own, no network): `hasty` cancels an order before it looks at it,
`careful` looks first.
"""

import json
from typing import Any

from crewai import Agent, BaseLLM
from crewai.tools import tool


@tool("get_order")
def get_order(order_id: str) -> dict[str, Any]:
    """Look an order up."""
    raise RuntimeError("this would read the shop's database")


@tool("cancel_order")
def cancel_order(order_id: str) -> dict[str, Any]:
    """Cancel an order."""
    raise RuntimeError("this would write the shop's database")


class Scripted(BaseLLM):
    """``first``: what it calls to cancel an order."""

    first: list[str]

    def supports_function_calling(self) -> bool:
        return True

    def call(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
        self._track_token_usage_internal({"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25})
        asked, results = "", dict[str, str]()
        for message in messages:
            said = str(message.get("content") or "")
            if message["role"] == "user":
                asked, results = said, {}
            elif message["role"] == "tool":
                results[message["tool_call_id"].partition("/")[0]] = said
        if "cancel" not in asked:
            return self._call("get_order", results) or f"Your order: {results['get_order']}"
        for name in self.first:
            if call := self._call(name, results):
                return call
            if "shipped" in results[name]:
                return "It is shipped already, so I cannot cancel it."
        return "Your order is cancelled."

    def _call(self, name: str, results: dict[str, str]) -> list[dict[str, Any]]:
        function = {"name": name, "arguments": json.dumps({"order_id": "A-7"})}
        return [] if name in results else [{"id": f"{name}/1", "type": "function", "function": function}]


def _agent(role: str, *first: str) -> Agent:
    return Agent(
        role=role,
        goal="Help the customers of a shop",
        backstory="You have been at the counter for years.",
        llm=Scripted(model="scripted", first=[*first]),
        tools=[get_order, cancel_order],
    )


hasty = _agent("hasty clerk", "cancel_order")
careful = _agent("careful clerk", "get_order", "cancel_order")
