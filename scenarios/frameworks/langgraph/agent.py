"""A shop's agents in LangGraph, as their authors run them: nothing in here knows of agenteval.

Their model is scripted, a chat model of LangChain's: `hasty` cancels an order before it looks at it,
`careful` looks first, and `by_hand` is `careful` as a graph with a node of its own, which looks orders up
itself.
"""

from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

try:
    from langchain.agents import create_agent
except ImportError:  # before LangChain 1.0
    from langgraph.prebuilt import create_react_agent as create_agent


@tool
def get_order(order_id: str) -> dict[str, str]:
    """Look an order up."""
    raise RuntimeError("this would read the shop's database")


@tool
def cancel_order(order_id: str) -> dict[str, str]:
    """Cancel an order."""
    raise RuntimeError("this would write the shop's database")


class Scripted(BaseChatModel):
    """`first`: the tools in the order in which they are called where an order is to be cancelled."""

    first: list[str]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **options: Any) -> ChatResult:
        said = self._answer(messages)
        said.usage_metadata = {"input_tokens": 50, "output_tokens": 10, "total_tokens": 60}
        return ChatResult(generations=[ChatGeneration(message=said)])

    def _answer(self, messages: list[BaseMessage]) -> AIMessage:
        asked = max(at for at, each in enumerate(messages) if isinstance(each, HumanMessage))
        results = {each.name: str(each.content) for each in messages[asked:] if isinstance(each, ToolMessage)}
        if "cancel" not in str(messages[asked].content).lower():
            if "get_order" not in results:
                return self._call("get_order")
            return AIMessage(f"Your order: {results['get_order']}")
        for name in self.first:
            if name not in results:
                return self._call(name)
            if "shipped" in results[name]:
                return AIMessage("It is shipped already, so I cannot cancel it.")
        return AIMessage("Your order is cancelled.")

    def _call(self, name: str) -> AIMessage:
        return AIMessage("", tool_calls=[{"name": name, "args": {"order_id": "A-7"}, "id": f"call_{name}"}])


tools = [get_order, cancel_order]
careful_model = Scripted(first=["get_order", "cancel_order"])

hasty = create_agent(Scripted(first=["cancel_order"]), tools)
careful = create_agent(careful_model, tools, checkpointer=InMemorySaver())


def answer(state: MessagesState) -> dict[str, list[BaseMessage]]:
    """Look the order up before the model is asked."""
    messages: list[BaseMessage] = [*state["messages"]]
    if isinstance(messages[-1], HumanMessage):
        order = get_order.invoke({"order_id": "A-7"})
        messages.append(ToolMessage(str(order), name="get_order", tool_call_id="looked_up"))
    return {"messages": [careful_model.bind_tools(tools).invoke(messages)]}


builder = StateGraph(MessagesState)
builder.add_node("answer", answer)
builder.add_node("tools", ToolNode(tools))
builder.add_edge(START, "answer")
builder.add_conditional_edges("answer", tools_condition)
builder.add_edge("tools", "answer")
by_hand = builder.compile()
