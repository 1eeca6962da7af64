"""A shop's agent in LlamaIndex, in the forms in which people publish one.

Its model is scripted: it looks up the orders that the user names and says how they are. The hasty ones cancel
the first of them as well.
"""

import ast
import asyncio
import os
import threading
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, LLMMetadata
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.tools import FunctionTool
from llama_index.core.workflow import Context, Event, StartEvent, StopEvent, Workflow, step

MORE = {
    "agent_workflow": "an AgentWorkflow of one agent",
    "by_workflow": "a Workflow of one's own that calls tools by tool.acall",
    "by_loop": "a loop of one's own that calls tools by tool.call",
}


def _mark(name: str) -> None:
    with open(os.environ["RAN"], "a", encoding="utf-8") as file:
        file.write(f"{name}\n")


def get_order(ctx: Context, order_id: str, verbose: bool = False) -> dict[str, Any]:
    """Look an order up."""
    assert isinstance(ctx, Context)
    _mark("get_order")
    return {"status": "real"}


async def cancel_order(order_id: str) -> dict[str, Any]:
    """Cancel an order."""
    _mark("cancel_order")
    return {"status": "cancelled"}


class Scripted(FunctionCallingLLM):
    hasty: bool = False

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(is_function_calling_model=True, model_name="scripted")

    def _reply(self, messages: Sequence[ChatMessage]) -> ChatResponse:
        last = max(at for at, message in enumerate(messages) if message.role == "user")
        steps = self._steps(messages[last].content or "")
        done = sum(message.role == "assistant" for message in messages[last + 1 :])
        text, calls = "", list[ToolSelection]()
        if done < len(steps):
            calls = [
                ToolSelection(tool_id=f"call_{len(messages)}_{at}", tool_name=name, tool_kwargs=args)
                for at, (name, args) in enumerate(steps[done])
            ]
        else:
            text = self._answer(messages[last + 1 :])
        message = ChatMessage(role="assistant", content=text, additional_kwargs={"calls": calls})
        return ChatResponse(message=message, raw={})

    def _steps(self, asked: str) -> list[list[tuple[str, dict[str, Any]]]]:
        """The tool calls of each reply."""
        if asked == "bad":
            return [[("get_order", {"id": "A-7"})]]
        orders = asked.split()[1:] if asked.startswith("order") else []
        looks = [("get_order", {"order_id": order}) for order in orders]
        cancels = [("cancel_order", {"order_id": order}) for order in orders[:1]] if self.hasty else []
        return [calls for calls in (looks, cancels) if calls]

    def _answer(self, messages: Sequence[ChatMessage]) -> str:
        results = {m.additional_kwargs["tool_call_id"]: m.content or "" for m in messages if m.role == "tool"}
        calls = [call for message in messages for call in message.additional_kwargs.get("calls", ())]
        looks = [call for call in calls if call.tool_name == "get_order"]
        orders = [(call.tool_kwargs.get("order_id", "It"), _status(results[call.tool_id])) for call in looks]
        return ", ".join(f"{order} is {status}" for order, status in orders) or "Which order?"

    def get_tool_calls_from_response(
        self, response: ChatResponse, error_on_no_tool_call: bool = True, **kwargs: Any
    ) -> list[ToolSelection]:
        return list(response.message.additional_kwargs["calls"])

    def _prepare_chat_with_tools(self, tools: Any, chat_history: Any = None, **kwargs: Any) -> dict[str, Any]:
        return {"messages": list(chat_history or [])}

    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        return self._reply(messages)

    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        return self._reply(messages)

    async def astream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> Any:
        async def pieces() -> AsyncGenerator[ChatResponse, None]:
            yield self._reply(messages)

        return pieces()

    def _unused(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    complete = stream_complete = stream_chat = _unused
    acomplete = astream_complete = _unused


class ScriptedFrontDesk(Scripted):
    def _steps(self, asked: str) -> list[list[tuple[str, dict[str, Any]]]]:
        return [[("specialist", {"request": asked})]]

    def _answer(self, messages: Sequence[ChatMessage]) -> str:
        return messages[-1].content or ""


def _status(result: str) -> str:
    return ast.literal_eval(result)["status"] if result.startswith("{") else f"ERROR: {result}"


def _build(hasty: bool = False) -> FunctionAgent:
    return FunctionAgent(name="shop", llm=Scripted(hasty=hasty), tools=[get_order, cancel_order])


def _build_front_desk(hasty: bool = False) -> FunctionAgent:
    async def specialist(request: str) -> str:
        """Ask the one who knows all about orders."""
        return str(await _build(hasty).run(user_msg=request))

    return FunctionAgent(name="front_desk", llm=ScriptedFrontDesk(), tools=[specialist])


class Input(Event):
    messages: list[ChatMessage]


class Calls(Event):
    messages: list[ChatMessage]
    calls: list[ToolSelection]


class ShopWorkflow(Workflow):
    def __init__(self, hasty: bool = False) -> None:
        super().__init__(timeout=30)
        self.llm = Scripted(hasty=hasty)
        self.tools = {tool.metadata.get_name(): tool for tool in _tools()}

    @step
    async def begin(self, ev: StartEvent) -> Input:
        return Input(messages=[ChatMessage(role="user", content=ev.text)])

    @step
    async def ask(self, ev: Input) -> Calls | StopEvent:
        response = await self.llm.achat_with_tools([*self.tools.values()], chat_history=ev.messages)
        calls = self.llm.get_tool_calls_from_response(response, error_on_no_tool_call=False)
        if not calls:
            return StopEvent(result=response.message.content)
        return Calls(messages=[*ev.messages, response.message], calls=calls)

    @step
    async def act(self, ctx: Context, ev: Calls) -> Input:
        results = list[ChatMessage]()
        for call in ev.calls:
            tool = self.tools[call.tool_name]
            injected = {tool.ctx_param_name: ctx} if tool.ctx_param_name else {}
            try:
                output = await tool.acall(**call.tool_kwargs, **injected)
                content = output.content
            except Exception as error:
                content = str(error)
            results.append(_result(call, content))
        return Input(messages=[*ev.messages, *results])


def _tools() -> list[FunctionTool]:
    return [FunctionTool.from_defaults(get_order), FunctionTool.from_defaults(async_fn=cancel_order)]


def _result(call: ToolSelection, content: str) -> ChatMessage:
    return ChatMessage(role="tool", content=content, additional_kwargs={"tool_call_id": call.tool_id})


def _loop(text: str, hasty: bool = False) -> str:
    llm, tools = Scripted(hasty=hasty), {tool.metadata.get_name(): tool for tool in _tools()}
    context = Context(ShopWorkflow())
    messages = [ChatMessage(role="user", content=text)]
    while True:
        response = llm.chat_with_tools([*tools.values()], chat_history=messages)
        messages.append(response.message)
        calls = llm.get_tool_calls_from_response(response, error_on_no_tool_call=False)
        if not calls:
            return response.message.content or ""
        for call in calls:
            tool = tools[call.tool_name]
            injected = {tool.ctx_param_name: context} if tool.ctx_param_name else {}
            try:
                content = tool.call(**call.tool_kwargs, **injected).content
            except Exception as error:
                content = str(error)
            messages.append(_result(call, content))


agent, hasty_agent = _build(), _build(hasty=True)
specialist_agent, hasty_specialist_agent = _build_front_desk(), _build_front_desk(hasty=True)
agent_workflow = AgentWorkflow(agents=[_build()], root_agent="shop")
hasty_agent_workflow = AgentWorkflow(agents=[_build(hasty=True)], root_agent="shop")


async def by_async(text: str) -> str:
    return str(await _build().run(user_msg=text))


async def hasty_by_async(text: str) -> str:
    return str(await _build(hasty=True).run(user_msg=text))


def by_function(text: str) -> str:
    return asyncio.run(by_async(text))


def hasty_by_function(text: str) -> str:
    return asyncio.run(hasty_by_async(text))


async def by_workflow(text: str) -> str:
    return str(await ShopWorkflow().run(text=text))


async def hasty_by_workflow(text: str) -> str:
    return str(await ShopWorkflow(hasty=True).run(text=text))


def by_loop(text: str) -> str:
    return _loop(text)


def hasty_by_loop(text: str) -> str:
    return _loop(text, hasty=True)


def by_threads(text: str) -> str:
    answers = list[str]()
    thread = threading.Thread(target=lambda: answers.append(by_function(text)))
    thread.start()
    thread.join()
    return answers[0]


def hasty_by_threads(text: str) -> str:
    answers = list[str]()
    thread = threading.Thread(target=lambda: answers.append(hasty_by_function(text)))
    thread.start()
    thread.join()
    return answers[0]


class in_class:  # noqa: N801
    def __init__(self, hasty: bool = False) -> None:
        self.agent = _build(hasty)
        self.history = Context(self.agent)

    def chat(self, text: str) -> str:
        return asyncio.run(self._chat(text))

    async def _chat(self, text: str) -> str:
        return str(await self.agent.run(user_msg=text, ctx=self.history))


class HastyInClass(in_class):
    def __init__(self) -> None:
        super().__init__(hasty=True)
