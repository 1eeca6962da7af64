"""A shop's agent in AutoGen, as its authors run it: nothing in here knows of agenteval.

Its model is scripted (a ``ChatCompletionClient`` of its own, no network): `hasty` cancels an order before it
looks at it, `careful` looks first.
"""

from collections.abc import Sequence
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_core import FunctionCall
from autogen_core.models import (
    ChatCompletionClient,
    CreateResult,
    FunctionExecutionResultMessage,
    LLMMessage,
    ModelInfo,
    RequestUsage,
    UserMessage,
)


async def get_order(order_id: str) -> dict[str, Any]:
    """Look an order up."""
    raise RuntimeError("this would read the shop's database")


async def cancel_order(order_id: str) -> dict[str, Any]:
    """Cancel an order."""
    raise RuntimeError("this would write the shop's database")


class Scripted(ChatCompletionClient):
    """``first``: what it calls to cancel an order."""

    def __init__(self, first: Sequence[str]) -> None:
        self.first = first
        self.replies = 0

    async def create(self, messages: Sequence[LLMMessage], **kwargs: Any) -> CreateResult:
        content = self._content(messages)
        ended = "stop" if isinstance(content, str) else "function_calls"
        used = RequestUsage(prompt_tokens=20, completion_tokens=5)
        return CreateResult(finish_reason=ended, content=content, usage=used, cached=False)

    def _content(self, messages: Sequence[LLMMessage]) -> str | list[FunctionCall]:
        asked, results = "", dict[str, str]()
        for message in messages:
            if isinstance(message, UserMessage):
                asked, results = str(message.content), {}
            elif isinstance(message, FunctionExecutionResultMessage):
                results |= {each.name: each.content for each in message.content}
        if "cancel" not in asked:
            return self._call("get_order", results) or f"Your order: {results['get_order']}"
        for tool in self.first:
            if call := self._call(tool, results):
                return call
            if "shipped" in results[tool]:
                return "It is shipped already, so I cannot cancel it."
        return "Your order is cancelled."

    def _call(self, tool: str, results: dict[str, str]) -> list[FunctionCall]:
        if tool in results:
            return []
        self.replies += 1
        return [FunctionCall(id=f"call-{self.replies}", name=tool, arguments='{"order_id": "A-7"}')]

    def create_stream(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    async def close(self) -> None: ...

    def actual_usage(self) -> RequestUsage:
        return RequestUsage(prompt_tokens=0, completion_tokens=0)

    total_usage = actual_usage

    def count_tokens(self, *args: Any, **kwargs: Any) -> int:
        return 0

    remaining_tokens = count_tokens

    @property
    def model_info(self) -> ModelInfo:
        return ModelInfo(
            vision=False, function_calling=True, json_output=True, family="unknown", structured_output=True
        )

    capabilities = model_info  # type: ignore[assignment]


def _agent(name: str, *first: str) -> AssistantAgent:
    return AssistantAgent(
        name,
        Scripted(first),
        system_message="You help the customers of a shop.",
        tools=[get_order, cancel_order],
        max_tool_iterations=3,
    )


hasty = _agent("hasty", "cancel_order")
careful = _agent("careful", "get_order", "cancel_order")
