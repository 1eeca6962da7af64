"""A shop's agent in Pydantic AI, as its authors run it: nothing in here knows of agenteval.

Its model is scripted (``FunctionModel``, the framework's own): `hasty` cancels an order before it looks at
it, `careful` looks first.
"""

import dataclasses

from pydantic_ai import Agent, RunContext
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel


@dataclasses.dataclass
class Shop:
    database: str


def make_shop() -> Shop:
    return Shop(database="shop.db")


def _asked(messages: list[ModelMessage]) -> str:
    said = [p.content for m in messages for p in m.parts if isinstance(p, UserPromptPart)]
    return str(said[-1]).lower()


def _results(messages: list[ModelMessage]) -> dict[str, str]:
    """What the tools gave since the user spoke last."""
    found: dict[str, str] = {}
    for message in messages:
        for part in message.parts:
            if isinstance(part, UserPromptPart):
                found.clear()
            elif isinstance(part, ToolReturnPart):
                found[part.tool_name] = part.model_response_str()
    return found


def _call(tool: str) -> ModelResponse:
    return ModelResponse(parts=[ToolCallPart(tool, {"order_id": "A-7"})])


def _model(first: list[str]) -> FunctionModel:
    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        results = _results(messages)
        if "cancel" not in _asked(messages):
            if "get_order" not in results:
                return _call("get_order")
            return ModelResponse(parts=[TextPart(f"Your order: {results['get_order']}")])
        for tool in first:
            if tool not in results:
                return _call(tool)
            if "shipped" in results[tool]:
                return ModelResponse(parts=[TextPart("It is shipped already, so I cannot cancel it.")])
        return ModelResponse(parts=[TextPart("Your order is cancelled.")])

    return FunctionModel(answer)


def _agent(*first: str) -> Agent[Shop, str]:
    agent = Agent(_model([*first]), deps_type=Shop, instructions="You help the customers of a shop.")

    @agent.tool
    def get_order(ctx: RunContext[Shop], order_id: str) -> dict[str, str]:
        """Look an order up."""
        raise RuntimeError(f"this would read {ctx.deps.database}")

    @agent.tool
    def cancel_order(ctx: RunContext[Shop], order_id: str) -> dict[str, str]:
        """Cancel an order."""
        raise RuntimeError(f"this would write {ctx.deps.database}")

    return agent


hasty = _agent("cancel_order")
careful = _agent("get_order", "cancel_order")
