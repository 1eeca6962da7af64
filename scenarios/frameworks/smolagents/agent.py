"""A shop's agents in smolagents, as their authors run them: nothing in here knows of agenteval.

`careful` and `hasty` call tools, `coding` and `coding_hasty` write code that does. Their model is scripted (a
``Model``, the framework's own kind): the hasty ones cancel an order before they look at it, the others look
first.
"""

from typing import Any

from smolagents import ChatMessage, CodeAgent, Model, ToolCallingAgent, tool
from smolagents.models import ChatMessageToolCall, ChatMessageToolCallFunction, MessageRole
from smolagents.monitoring import TokenUsage


@tool
def get_order(order_id: str) -> dict:
    """Look an order up.

    Args:
        order_id: The order's id.
    """
    raise RuntimeError("this would read the shop's database")


@tool
def cancel_order(order_id: str) -> dict:
    """Cancel an order.

    Args:
        order_id: The order's id.
    """
    raise RuntimeError("this would write the shop's database")


def _texts(messages: list[Any]) -> list[str]:
    found = []
    for message in messages:
        content = message.content if hasattr(message, "content") else message["content"]
        found.append(
            content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
        )
    return found


class Scripted(Model):
    def __init__(self, *first: str, writes_code: bool = False) -> None:
        super().__init__(model_id="scripted")
        self.first = first
        self.writes_code = writes_code

    def generate(self, messages: list[Any], *args: Any, **named: Any) -> ChatMessage:
        texts = _texts(messages)
        begin = max(i for i, text in enumerate(texts) if text.startswith("New task:"))
        done = [text for text in texts[begin + 1 :] if text.startswith("Observation:")]
        answer, tool_name = self.next(texts[begin].lower(), done)
        message = (
            self.code(answer, tool_name) if self.writes_code else self.call(answer, tool_name, len(texts))
        )
        message.token_usage = TokenUsage(input_tokens=40, output_tokens=8)
        return message

    def next(self, asked: str, done: list[str]) -> tuple[str, str]:
        """The answer, or the tool to call before there is one."""
        tools = ("get_order",) if "cancel" not in asked else self.first
        if done and "shipped" in done[-1]:
            if "cancel" not in asked:
                return "Your order is shipped.", ""
            return "It is shipped already, so I cannot cancel it.", ""
        if len(done) < len(tools):
            return "", tools[len(done)]
        return "Your order is cancelled.", ""

    def call(self, answer: str, tool_name: str, count: int) -> ChatMessage:
        name, args = (tool_name, {"order_id": "A-7"}) if tool_name else ("final_answer", {"answer": answer})
        function = ChatMessageToolCallFunction(name=name, arguments=args)
        calls = [ChatMessageToolCall(id=f"call_{count}", type="function", function=function)]
        return ChatMessage(role=MessageRole.ASSISTANT, content=None, tool_calls=calls)

    def code(self, answer: str, tool_name: str) -> ChatMessage:
        line = f"print({tool_name}(order_id='A-7'))" if tool_name else f"final_answer({answer!r})"
        return ChatMessage(role=MessageRole.ASSISTANT, content=f"<code>\n{line}\n</code>")


def _calling(*first: str) -> ToolCallingAgent:
    return ToolCallingAgent([get_order, cancel_order], Scripted(*first))


def _coding(*first: str) -> CodeAgent:
    return CodeAgent([get_order, cancel_order], Scripted(*first, writes_code=True))


hasty = _calling("cancel_order")
careful = _calling("get_order", "cancel_order")
coding_hasty = _coding("cancel_order")
coding = _coding("get_order", "cancel_order")
