"""A shop's agents in the OpenAI Agents SDK, as their authors run them: nothing in here knows of agenteval.

The front desk hands over to the agent for orders. Their model is scripted (a ``Model``, the SDK's own kind):
`hasty` cancels an order before it looks at it, `careful` looks first.
"""

import json
from typing import Any

from agents import Agent, Model, ModelResponse, Usage, function_tool
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText


@function_tool
def get_order(order_id: str) -> dict[str, str]:
    """Look an order up."""
    raise RuntimeError("this would read the shop's database")


@function_tool
def cancel_order(order_id: str) -> dict[str, str]:
    """Cancel an order."""
    raise RuntimeError("this would write the shop's database")


def _say(text: str) -> ResponseOutputMessage:
    content = ResponseOutputText(type="output_text", text=text, annotations=[])
    return ResponseOutputMessage(
        id="said", type="message", role="assistant", status="completed", content=[content]
    )


def _call(tool: str, count: int, **args: str) -> ResponseFunctionToolCall:
    return ResponseFunctionToolCall(
        type="function_call", call_id=f"call_{count}", name=tool, arguments=json.dumps(args)
    )


def _results(items: list[dict[str, Any]]) -> dict[str, str]:
    """What the tools gave since the user spoke last."""
    found: dict[str, str] = {}
    names: dict[str, str] = {}
    for item in items:
        if item.get("role") == "user":
            found.clear()
        elif item.get("type") == "function_call":
            names[item["call_id"]] = item["name"]
        elif item.get("type") == "function_call_output":
            found[names[item["call_id"]]] = str(item["output"])
    return found


class Scripted(Model):
    def __init__(self, *first: str) -> None:
        self.first = first

    async def get_response(
        self, system_instructions: Any, input: Any, *args: Any, **named: Any
    ) -> ModelResponse:
        output = self.answer(system_instructions, input, len(input))
        return ModelResponse(
            output=[output], usage=Usage(1, input_tokens=40, output_tokens=8), response_id=None
        )

    def answer(self, system: str, items: list[dict[str, Any]], count: int) -> Any:
        if "front desk" in system:
            return _call("transfer_to_orders", count)
        asked = [str(item["content"]) for item in items if item.get("role") == "user"][-1].lower()
        results = _results(items)
        if "cancel" not in asked:
            if "get_order" not in results:
                return _call("get_order", count, order_id="A-7")
            return _say(f"Your order: {results['get_order']}")
        for tool in self.first:
            if tool not in results:
                return _call(tool, count, order_id="A-7")
            if "shipped" in results[tool]:
                return _say("It is shipped already, so I cannot cancel it.")
        return _say("Your order is cancelled.")

    def stream_response(self, *args: Any, **named: Any) -> Any:
        raise NotImplementedError


def _desk(*first: str) -> Agent:
    model = Scripted(*first)
    orders = Agent(
        name="Orders",
        instructions="You look after orders.",
        model=model,
        tools=[get_order, cancel_order],
    )
    return Agent(
        name="Desk",
        instructions="You are the front desk of a shop. Hand over to who knows.",
        model=model,
        handoffs=[orders],
    )


hasty = _desk("cancel_order")
careful = _desk("get_order", "cancel_order")
