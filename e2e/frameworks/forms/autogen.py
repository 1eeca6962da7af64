"""A shop's agent in AutoGen, in the forms in which people publish one.

Its model is scripted: it looks up the orders that the user names and says how they are. The hasty ones cancel
the first of them as well.
"""

import ast
import asyncio
import json
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_agentchat.tools import AgentTool
from autogen_core import CancellationToken, FunctionCall
from autogen_core.models import (
    AssistantMessage,
    ChatCompletionClient,
    CreateResult,
    FunctionExecutionResult,
    FunctionExecutionResultMessage,
    LLMMessage,
    ModelInfo,
    RequestUsage,
    UserMessage,
)
from autogen_core.tools import FunctionTool

MORE = {
    "team": "a RoundRobinGroupChat of one agent",
    "by_team": "a function that makes a team and runs it",
    "by_loop": "a loop of one's own that calls tools by tool.run_json",
}


def _mark(name: str) -> None:
    with open(os.environ["RAN"], "a", encoding="utf-8") as file:
        file.write(f"{name}\n")


def get_order(
    order_id: str, verbose: bool = False, *, cancellation_token: CancellationToken
) -> dict[str, Any]:
    """Look an order up."""
    assert not cancellation_token.is_cancelled()
    _mark("get_order")
    return {"status": "real"}


async def cancel_order(order_id: str) -> dict[str, Any]:
    """Cancel an order."""
    _mark("cancel_order")
    return {"status": "cancelled"}


class Scripted(ChatCompletionClient):
    def __init__(self, hasty: bool = False) -> None:
        self.hasty = hasty

    async def create(self, messages: Sequence[LLMMessage], **kwargs: Any) -> CreateResult:
        last = max(at for at, message in enumerate(messages) if isinstance(message, UserMessage))
        steps = self.steps(str(messages[last].content))
        done = sum(isinstance(message, AssistantMessage) for message in messages[last + 1 :])
        content: str | list[FunctionCall]
        if done < len(steps):
            content = [
                FunctionCall(id=f"call_{len(messages)}_{at}", name=name, arguments=json.dumps(args))
                for at, (name, args) in enumerate(steps[done])
            ]
        else:
            content = self.answer(messages[last + 1 :])
        ended = "stop" if isinstance(content, str) else "function_calls"
        used = RequestUsage(prompt_tokens=20, completion_tokens=5)
        return CreateResult(finish_reason=ended, content=content, usage=used, cached=False)

    def steps(self, asked: str) -> list[list[tuple[str, dict[str, Any]]]]:
        """The tool calls of each reply."""
        if asked == "bad":
            return [[("get_order", {"id": "A-7"})]]
        orders = asked.split()[1:] if asked.startswith("order") else []
        looks = [("get_order", {"order_id": order}) for order in orders]
        cancels = [("cancel_order", {"order_id": order}) for order in orders[:1]] if self.hasty else []
        return [calls for calls in (looks, cancels) if calls]

    def answer(self, messages: Sequence[LLMMessage]) -> str:
        results, looks = dict[str, FunctionExecutionResult](), list[FunctionCall]()
        for message in messages:
            if isinstance(message, FunctionExecutionResultMessage):
                results |= {result.call_id: result for result in message.content}
            elif isinstance(message, AssistantMessage):
                looks += [call for call in message.content if call.name == "get_order"]
        orders = [(json.loads(call.arguments).get("order_id", "It"), results[call.id]) for call in looks]
        return ", ".join(f"{order} is {_status(result)}" for order, result in orders) or "Which order?"

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


class ScriptedFrontDesk(Scripted):
    def steps(self, asked: str) -> list[list[tuple[str, dict[str, Any]]]]:
        return [[("specialist", {"task": asked})]]

    def answer(self, messages: Sequence[LLMMessage]) -> str:
        return str(messages[-1].content[0].content)


def _status(result: FunctionExecutionResult) -> str:
    return f"ERROR: {result.content}" if result.is_error else str(ast.literal_eval(result.content)["status"])


def _build(hasty: bool = False, name: str = "shop") -> AssistantAgent:
    tools = [get_order, cancel_order]
    return AssistantAgent(
        name, Scripted(hasty), description="Knows all about orders.", tools=tools, max_tool_iterations=4
    )


def _build_front_desk(hasty: bool = False) -> AssistantAgent:
    specialist = AgentTool(_build(hasty, name="specialist"), return_value_as_last_message=True)
    return AssistantAgent("front_desk", ScriptedFrontDesk(), tools=[specialist], max_tool_iterations=4)


def _build_team(hasty: bool = False) -> RoundRobinGroupChat:
    return RoundRobinGroupChat([_build(hasty)], max_turns=1)


async def _ask(runner: AssistantAgent | RoundRobinGroupChat, text: str) -> str:
    result = await runner.run(task=text)
    return str(result.messages[-1].content)


async def _loop(text: str, hasty: bool = False) -> str:
    client, tools = (
        Scripted(hasty),
        [FunctionTool(each, each.__doc__ or "") for each in (get_order, cancel_order)],
    )
    messages: list[LLMMessage] = [UserMessage(content=text, source="user")]
    while True:
        reply = await client.create(messages, tools=tools)
        if isinstance(reply.content, str):
            return reply.content
        messages.append(AssistantMessage(content=reply.content, source="assistant"))
        results = list[FunctionExecutionResult]()
        for call in reply.content:
            tool = next(each for each in tools if each.name == call.name)
            try:
                value = await tool.run_json(json.loads(call.arguments), CancellationToken(), call_id=call.id)
                content, failed = tool.return_value_as_string(value), False
            except Exception as error:
                content, failed = str(error), True
            results.append(
                FunctionExecutionResult(content=content, call_id=call.id, name=call.name, is_error=failed)
            )
        messages.append(FunctionExecutionResultMessage(content=results))


agent, hasty_agent = _build(), _build(hasty=True)
specialist_agent, hasty_specialist_agent = _build_front_desk(), _build_front_desk(hasty=True)
team, hasty_team = _build_team(), _build_team(hasty=True)


async def by_async(text: str) -> str:
    return await _ask(_build(), text)


async def hasty_by_async(text: str) -> str:
    return await _ask(_build(hasty=True), text)


def by_function(text: str) -> str:
    return asyncio.run(by_async(text))


def hasty_by_function(text: str) -> str:
    return asyncio.run(hasty_by_async(text))


def by_team(text: str) -> str:
    return asyncio.run(_ask(_build_team(), text))


def hasty_by_team(text: str) -> str:
    return asyncio.run(_ask(_build_team(hasty=True), text))


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

    def chat(self, text: str) -> str:
        return asyncio.run(_ask(self.agent, text))


class HastyInClass(in_class):
    def __init__(self) -> None:
        super().__init__(hasty=True)
