"""A shop's agent in LangGraph, in the forms in which such agents are published. Nothing in here knows of
agenteval; the model is scripted, a chat model of LangChain's."""

import os
import re
import threading
from typing import Annotated, Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import StructuredTool, tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import InjectedState, ToolNode, create_react_agent, tools_condition

try:
    from langchain.agents import create_agent
except ImportError:  # before LangChain 1.0
    create_agent = create_react_agent


def _mark(name: str) -> None:
    with open(os.environ["RAN"], "a", encoding="utf-8") as file:
        file.write(f"{name}\n")


@tool
def get_order(
    order_id: str, verbose: bool = False, state: Annotated[Any, InjectedState] = None
) -> dict[str, str]:
    """Look an order up."""
    _mark("get_order")
    return {"status": "real"}


def _cancel(order_id: str) -> dict[str, str]:
    """Cancel an order."""
    _mark("cancel_order")
    return {"status": "real"}


async def _cancel_async(order_id: str) -> dict[str, str]:
    return _cancel(order_id)


cancel_order = StructuredTool.from_function(_cancel, _cancel_async, name="cancel_order")


class Clerk(BaseChatModel):
    hasty: bool = False

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self

    def _generate(self, messages: list[AnyMessage], *_: Any, **options: Any) -> ChatResult:
        asked = max(at for at, each in enumerate(messages) if isinstance(each, HumanMessage))
        calls = [call for each in messages[asked:] if isinstance(each, AIMessage) for call in each.tool_calls]
        results = {e.tool_call_id: str(e.content) for e in messages[asked:] if isinstance(e, ToolMessage)}
        reply = self._next(str(messages[asked].content), calls, results)
        if isinstance(reply, str):
            message = AIMessage(reply)
        else:
            ids = [f"call_{len(messages)}_{at}" for at, _ in enumerate(reply)]
            asks = [
                {"name": name, "args": args, "id": id} for (name, args), id in zip(reply, ids, strict=True)
            ]
            message = AIMessage("", tool_calls=asks)
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _next(self, asked: str, calls: list[Any], results: dict[str, str]) -> Any:
        """The calls to make, or the answer."""
        orders = asked.split()[1:]
        if not calls:
            return [
                ("get_order", {"order_id": each} if orders else {"number": "A-7"}) for each in orders or [""]
            ]
        if self.hasty and all(call["name"] != "cancel_order" for call in calls):
            return [("cancel_order", {"order_id": orders[0]})]
        looked = [call for call in calls if call["name"] == "get_order"]
        return ", ".join(_sentence(call["args"], results[call["id"]]) for call in looked)


def _sentence(args: dict[str, Any], result: str) -> str:
    found = re.search(r"""status['"]: ?['"]([^'"]+)""", result)
    return f"{args.get('order_id')} is {found[1]}" if found else f"ERROR: {result}"


class Desk(Clerk):
    """Passes on what it is asked, and repeats the answer."""

    def _next(self, asked: str, calls: list[Any], results: dict[str, str]) -> Any:
        return results[calls[0]["id"]] if calls else [("specialist", {"request": asked})]


tools = [get_order, cancel_order]
agent = create_agent(Clerk(), tools)
hasty_agent = create_agent(Clerk(hasty=True), tools)


def _ask(agent: Any, text: str) -> str:
    return str(agent.invoke({"messages": [("user", text)]})["messages"][-1].content)


def by_function(text: str) -> str:
    return _ask(agent, text)


def hasty_by_function(text: str) -> str:
    return _ask(hasty_agent, text)


async def by_async(text: str) -> str:
    state = await agent.ainvoke({"messages": [("user", text)]})
    return str(state["messages"][-1].content)


async def hasty_by_async(text: str) -> str:
    state = await hasty_agent.ainvoke({"messages": [("user", text)]})
    return str(state["messages"][-1].content)


@tool
def specialist(request: str) -> str:
    """Asks the specialist for orders."""
    return by_function(request)


@tool("specialist")
def hasty_specialist(request: str) -> str:
    """Asks the specialist for orders."""
    return hasty_by_function(request)


specialist_agent = create_agent(Desk(), [specialist])
hasty_specialist_agent = create_agent(Desk(), [hasty_specialist])


def _in_thread(ask: Any, text: str) -> str:
    answers: list[str] = []
    thread = threading.Thread(target=lambda: answers.append(ask(text)))
    thread.start()
    thread.join()
    return answers[0]


def by_threads(text: str) -> str:
    return _in_thread(by_function, text)


def hasty_by_threads(text: str) -> str:
    return _in_thread(hasty_by_function, text)


class in_class:  # noqa: N801 (the name is the form's)
    hasty = False

    def __init__(self) -> None:
        self.agent = create_agent(Clerk(hasty=self.hasty), tools)

    def chat(self, text: str) -> str:
        return _ask(self.agent, text)


class HastyInClass(in_class):
    hasty = True


def _graph(model: Clerk) -> Any:
    def answer(state: MessagesState) -> dict[str, list[AnyMessage]]:
        return {"messages": [model.bind_tools(tools).invoke(state["messages"])]}

    builder = StateGraph(MessagesState)
    builder.add_node("answer", answer)
    builder.add_node("tools", ToolNode(tools))
    builder.add_edge(START, "answer")
    builder.add_conditional_edges("answer", tools_condition)
    builder.add_edge("tools", "answer")
    return builder.compile()


graph, hasty_graph = _graph(Clerk()), _graph(Clerk(hasty=True))
react, hasty_react = create_react_agent(Clerk(), tools), create_react_agent(Clerk(hasty=True), tools)


def _loop(model: Clerk, text: str) -> str:
    messages: list[AnyMessage] = [HumanMessage(text)]
    by_name = {each.name: each for each in tools}
    while True:
        answer = model.bind_tools(tools).invoke(messages)
        messages.append(answer)
        if not answer.tool_calls:
            return str(answer.content)
        messages.extend(by_name[call["name"]].invoke(call) for call in answer.tool_calls)


def by_loop(text: str) -> str:
    return _loop(Clerk(), text)


def hasty_by_loop(text: str) -> str:
    return _loop(Clerk(hasty=True), text)


MORE = {
    "graph": "a graph of one's own with a ToolNode",
    "react": "the agent of langgraph.prebuilt",
    "by_loop": "a loop without a graph that invokes the tools",
}
