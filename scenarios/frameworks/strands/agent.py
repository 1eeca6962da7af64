"""A shop's agents in Strands, as their authors run them: nothing in here knows of agenteval.

Their model is scripted (a ``Model``, the framework's own kind): `hasty` cancels an order before it looks at
it, `careful` looks first.
"""

import json
from typing import Any

from strands import Agent, tool
from strands.models import Model


@tool
def get_order(order_id: str) -> dict:
    """Look an order up."""
    raise RuntimeError("this would read the shop's database")


@tool
def cancel_order(order_id: str) -> dict:
    """Cancel an order."""
    raise RuntimeError("this would write the shop's database")


def _since_asked(messages: list[dict[str, Any]]) -> tuple[str, dict[str, str]]:
    """What the user said last, and what the tools gave since."""
    asked, names, found = "", {}, {}
    for message in messages:
        for block in message["content"]:
            if "toolUse" in block:
                names[block["toolUse"]["toolUseId"]] = block["toolUse"]["name"]
            elif "toolResult" in block:
                result = block["toolResult"]
                found[names[result["toolUseId"]]] = json.dumps(result["content"])
            elif message["role"] == "user":
                asked, found = block["text"].lower(), {}
    return asked, found


class Scripted(Model):
    def __init__(self, *first: str) -> None:
        self.first = first

    def update_config(self, **config: Any) -> None: ...

    def get_config(self) -> dict[str, Any]:
        return {}

    def structured_output(self, *args: Any, **named: Any) -> Any:
        raise NotImplementedError

    async def stream(self, messages: list[dict[str, Any]], *args: Any, **named: Any) -> Any:
        answer, tool_name = self.next(*_since_asked(messages))
        use = {"name": tool_name, "toolUseId": f"call_{len(messages)}"}
        text = json.dumps({"order_id": "A-7"})
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockStart": {"start": {"toolUse": use} if tool_name else {}}}
        yield {
            "contentBlockDelta": {"delta": {"toolUse": {"input": text}} if tool_name else {"text": answer}}
        }
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use" if tool_name else "end_turn"}}
        usage = {"inputTokens": 40, "outputTokens": 8, "totalTokens": 48}
        yield {"metadata": {"usage": usage, "metrics": {"latencyMs": 1}}}

    def next(self, asked: str, results: dict[str, str]) -> tuple[str, str]:
        """The answer, or the tool to call before there is one."""
        if "cancel" not in asked:
            if "get_order" not in results:
                return "", "get_order"
            return f"Your order: {results['get_order']}", ""
        for tool_name in self.first:
            if tool_name not in results:
                return "", tool_name
            if "shipped" in results[tool_name]:
                return "It is shipped already, so I cannot cancel it.", ""
        return "Your order is cancelled.", ""


def _agent(*first: str) -> Agent:
    return Agent(
        model=Scripted(*first),
        tools=[get_order, cancel_order],
        system_prompt="You help the customers of a shop.",
        callback_handler=None,
    )


hasty = _agent("cancel_order")
careful = _agent("get_order", "cancel_order")
