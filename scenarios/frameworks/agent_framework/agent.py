"""A shop's agent in Microsoft's Agent Framework, as its authors run it: nothing in here knows of agenteval.

Its model is scripted (a ``BaseChatClient`` of its own, no network): `hasty` cancels an order before it looks
at it, `careful` looks first.
"""

from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from typing import Annotated, Any

from agent_framework import (
    Agent,
    BaseChatClient,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    Message,
    ResponseStream,
    UsageDetails,
)


def get_order(order_id: Annotated[str, "as A-7"]) -> dict[str, Any]:
    """Look an order up."""
    raise RuntimeError("this would read the shop's database")


def cancel_order(order_id: Annotated[str, "as A-7"]) -> dict[str, Any]:
    """Cancel an order."""
    raise RuntimeError("this would write the shop's database")


class Scripted(FunctionInvocationLayer, BaseChatClient):
    """``first``: what it calls to cancel an order."""

    def __init__(self, first: Sequence[str]) -> None:
        super().__init__()
        self.first = first
        self.replies = 0

    def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Mapping[str, Any], **kwargs: Any
    ) -> Awaitable[ChatResponse] | ResponseStream[ChatResponseUpdate, ChatResponse]:
        content = self._content(messages)
        used = UsageDetails(input_token_count=20, output_token_count=5, total_token_count=25)

        async def whole() -> ChatResponse:
            return ChatResponse(messages=[Message(role="assistant", contents=[content])], usage_details=used)

        async def pieces() -> AsyncIterator[ChatResponseUpdate]:
            yield ChatResponseUpdate(role="assistant", contents=[content, Content.from_usage(used)])

        return ResponseStream(pieces(), finalizer=ChatResponse.from_updates) if stream else whole()

    def _content(self, messages: Sequence[Message]) -> Content:
        asked, results, names = "", dict[str, str](), dict[str, str]()
        for message in messages:
            if message.role == "user":
                asked, results = message.text, {}
            for content in message.contents:
                if content.type == "function_call":
                    names[content.call_id] = content.name
                elif content.type == "function_result":
                    results[names[content.call_id]] = str(content.result)
        if "cancel" not in asked:
            return self._call("get_order", results) or Content.from_text(
                f"Your order: {results['get_order']}"
            )
        for tool in self.first:
            if call := self._call(tool, results):
                return call
            if "shipped" in results[tool]:
                return Content.from_text("It is shipped already, so I cannot cancel it.")
        return Content.from_text("Your order is cancelled.")

    def _call(self, tool: str, results: dict[str, str]) -> Content | None:
        if tool in results:
            return None
        self.replies += 1
        arguments = '{"order_id": "A-7"}'
        return Content.from_function_call(call_id=f"call-{self.replies}", name=tool, arguments=arguments)


def _agent(name: str, *first: str) -> Agent:
    instructions = "You help the customers of a shop."
    return Agent(Scripted(first), instructions=instructions, name=name, tools=[get_order, cancel_order])


hasty = _agent("hasty", "cancel_order")
careful = _agent("careful", "get_order", "cancel_order")
