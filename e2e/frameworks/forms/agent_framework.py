"""A shop's agent in Microsoft's Agent Framework, in the forms in which people publish one.

Its model is scripted: it looks up the orders that the user names and says how they are. The hasty ones cancel
the first of them as well.
"""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any

from agent_framework import (
    Agent,
    BaseChatClient,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationContext,
    FunctionInvocationLayer,
    Message,
    ResponseStream,
    WorkflowBuilder,
    tool,
)

MORE = {
    "by_workflow": "a function that makes a workflow of one agent and runs it",
    "by_stream": "an async function that streams",
    "by_loop": "a loop of one's own that calls tools by tool.invoke",
}
Call = tuple[str, dict[str, Any]]


def _mark(name: str) -> None:
    with open(os.environ["RAN"], "a", encoding="utf-8") as file:
        file.write(f"{name}\n")


def get_order(
    ctx: FunctionInvocationContext, order_id: Annotated[str, "as A-7"], verbose: bool = False
) -> dict[str, Any]:
    """Look an order up."""
    assert isinstance(ctx, FunctionInvocationContext)
    _mark("get_order")
    return {"status": "real"}


async def cancel_order(order_id: Annotated[str, "as A-7"]) -> dict[str, Any]:
    """Cancel an order."""
    _mark("cancel_order")
    return {"status": "cancelled"}


class Scripted(FunctionInvocationLayer, BaseChatClient):
    def __init__(self, hasty: bool = False) -> None:
        super().__init__(function_invocation_configuration={"include_detailed_errors": True})
        self.hasty = hasty

    def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Mapping[str, Any], **kwargs: Any
    ) -> Awaitable[ChatResponse] | ResponseStream[ChatResponseUpdate, ChatResponse]:
        contents = self.reply(messages)

        async def whole() -> ChatResponse:
            return ChatResponse(messages=[Message(role="assistant", contents=contents)])

        async def pieces() -> AsyncIterator[ChatResponseUpdate]:
            yield ChatResponseUpdate(role="assistant", contents=contents)

        return ResponseStream(pieces(), finalizer=ChatResponse.from_updates) if stream else whole()

    def reply(self, messages: Sequence[Message]) -> list[Content]:
        last = max(at for at, message in enumerate(messages) if message.role == "user")
        since = messages[last + 1 :]
        steps, done = self.steps(messages[last].text), sum(message.role == "assistant" for message in since)
        if done == len(steps):
            return [Content.from_text(self.answer([part for message in since for part in message.contents]))]
        return [
            Content.from_function_call(f"call_{len(messages)}_{at}", name, arguments=json.dumps(args))
            for at, (name, args) in enumerate(steps[done])
        ]

    def steps(self, asked: str) -> list[list[Call]]:
        """The tool calls of each reply."""
        if asked == "bad":
            return [[("get_order", {"id": "A-7"})]]
        orders = asked.split()[1:] if asked.startswith("order") else []
        looks = [("get_order", {"order_id": order}) for order in orders]
        cancels = [("cancel_order", {"order_id": order}) for order in orders[:1]] if self.hasty else []
        return [calls for calls in (looks, cancels) if calls]

    def answer(self, contents: Sequence[Content]) -> str:
        results = {part.call_id: str(part.result) for part in contents if part.type == "function_result"}
        looks = [part for part in contents if part.type == "function_call" and part.name == "get_order"]
        orders = [(json.loads(look.arguments).get("order_id", "It"), results[look.call_id]) for look in looks]
        return ", ".join(f"{order} is {_status(result)}" for order, result in orders) or "Which order?"


class ScriptedFrontDesk(Scripted):
    def steps(self, asked: str) -> list[list[Call]]:
        return [[("specialist", {"task": asked})]]

    def answer(self, contents: Sequence[Content]) -> str:
        return next(str(part.result) for part in contents if part.type == "function_result")


def _status(result: str) -> str:
    return str(json.loads(result)["status"]) if result.startswith("{") else f"ERROR: {result}"


def _build(hasty: bool = False, name: str = "shop") -> Agent:
    instructions = "You help the customers of a shop."
    return Agent(Scripted(hasty), instructions=instructions, name=name, tools=[get_order, cancel_order])


def _build_front_desk(hasty: bool = False) -> Agent:
    specialist = _build(hasty).as_tool(name="specialist", description="Knows all about orders.")
    return Agent(ScriptedFrontDesk(), name="front_desk", tools=[specialist])


async def _ask(asked: Agent, text: str) -> str:
    return (await asked.run(text)).text


async def _run_workflow(text: str, hasty: bool = False) -> str:
    shop = _build(hasty)
    workflow = WorkflowBuilder(start_executor=shop, output_from=[shop]).build()
    outputs = (await workflow.run(text)).get_outputs()
    return "".join(output.text for output in outputs)


async def _stream(text: str, hasty: bool = False) -> str:
    return "".join([update.text async for update in _build(hasty).run(text, stream=True)])


async def _loop(text: str, hasty: bool = False) -> str:
    client, tools = Scripted(hasty), {each.__name__: tool(each) for each in (get_order, cancel_order)}
    messages = [Message(role="user", contents=[text])]
    while True:
        contents = client.reply(messages)
        messages.append(Message(role="assistant", contents=contents))
        calls = [part for part in contents if part.type == "function_call"]
        if not calls:
            return messages[-1].text
        for call in calls:
            try:
                result: Any = await tools[call.name].invoke(arguments=json.loads(call.arguments))
            except Exception as error:
                result = f"Error: {error}"
            answered = Content.from_function_result(call.call_id, result=result)
            messages.append(Message(role="tool", contents=[answered]))


agent, hasty_agent = _build(), _build(hasty=True)
specialist_agent, hasty_specialist_agent = _build_front_desk(), _build_front_desk(hasty=True)


async def by_async(text: str) -> str:
    return await _ask(_build(), text)


async def hasty_by_async(text: str) -> str:
    return await _ask(_build(hasty=True), text)


def by_function(text: str) -> str:
    return asyncio.run(by_async(text))


def hasty_by_function(text: str) -> str:
    return asyncio.run(hasty_by_async(text))


def by_workflow(text: str) -> str:
    return asyncio.run(_run_workflow(text))


def hasty_by_workflow(text: str) -> str:
    return asyncio.run(_run_workflow(text, hasty=True))


async def by_stream(text: str) -> str:
    return await _stream(text)


async def hasty_by_stream(text: str) -> str:
    return await _stream(text, hasty=True)


async def by_loop(text: str) -> str:
    return await _loop(text)


async def hasty_by_loop(text: str) -> str:
    return await _loop(text, hasty=True)


def by_threads(text: str) -> str:
    with ThreadPoolExecutor() as pool:
        return pool.submit(by_function, text).result()


def hasty_by_threads(text: str) -> str:
    with ThreadPoolExecutor() as pool:
        return pool.submit(hasty_by_function, text).result()


class in_class:  # noqa: N801
    def __init__(self, hasty: bool = False) -> None:
        self.agent = _build(hasty)
        self.session = self.agent.create_session()

    def chat(self, text: str) -> str:
        return asyncio.run(self._chat(text))

    async def _chat(self, text: str) -> str:
        return (await self.agent.run(text, session=self.session)).text


class HastyInClass(in_class):
    def __init__(self) -> None:
        super().__init__(hasty=True)
