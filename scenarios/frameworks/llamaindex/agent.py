"""A shop's agent in LlamaIndex, as its authors run it: nothing in here knows of agenteval.

Its model is scripted (a ``FunctionCallingLLM`` of its own, no network): `hasty` cancels an order before it
looks at it, `careful` looks first.
"""

from collections.abc import AsyncGenerator, Sequence
from typing import Any

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, LLMMetadata
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection


def get_order(order_id: str) -> dict[str, Any]:
    """Look an order up."""
    raise RuntimeError("this would read the shop's database")


def cancel_order(order_id: str) -> dict[str, Any]:
    """Cancel an order."""
    raise RuntimeError("this would write the shop's database")


class Scripted(FunctionCallingLLM):
    """``first``: what it calls to cancel an order."""

    first: list[str]

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(is_function_calling_model=True, model_name="scripted")

    def _answer(self, messages: Sequence[ChatMessage]) -> ChatResponse:
        asked, results = "", dict[str, str]()
        for message in messages:
            if message.role == "user":
                asked, results = message.content or "", {}
            elif message.role == "tool":
                results[message.additional_kwargs["tool_call_id"].partition("/")[0]] = message.content or ""
        if "cancel" not in asked:
            return self._call("get_order", results) or _said(f"Your order: {results['get_order']}")
        for tool in self.first:
            if call := self._call(tool, results):
                return call
            if "shipped" in results[tool]:
                return _said("It is shipped already, so I cannot cancel it.")
        return _said("Your order is cancelled.")

    def _call(self, tool: str, results: dict[str, str]) -> ChatResponse | None:
        call = ToolSelection(tool_id=f"{tool}/1", tool_name=tool, tool_kwargs={"order_id": "A-7"})
        return None if tool in results else _said("", call)

    def get_tool_calls_from_response(
        self, response: ChatResponse, error_on_no_tool_call: bool = True, **kwargs: Any
    ) -> list[ToolSelection]:
        return list(response.message.additional_kwargs["calls"])

    def _prepare_chat_with_tools(self, tools: Any, chat_history: Any = None, **kwargs: Any) -> dict[str, Any]:
        return {"messages": list(chat_history or [])}

    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        return self._answer(messages)

    async def astream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> Any:
        async def pieces() -> AsyncGenerator[ChatResponse, None]:
            yield self._answer(messages)

        return pieces()

    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        return self._answer(messages)

    def _unused(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    complete = stream_complete = stream_chat = _unused
    acomplete = astream_complete = _unused


def _said(text: str, *calls: ToolSelection) -> ChatResponse:
    message = ChatMessage(role="assistant", content=text, additional_kwargs={"calls": calls})
    return ChatResponse(message=message, raw={"usage": {"prompt_tokens": 20, "completion_tokens": 5}})


def _agent(name: str, *first: str) -> FunctionAgent:
    return FunctionAgent(
        name=name,
        llm=Scripted(first=[*first]),
        system_prompt="You help the customers of a shop.",
        tools=[get_order, cancel_order],
    )


hasty = _agent("hasty", "cancel_order")
careful = _agent("careful", "get_order", "cancel_order")
