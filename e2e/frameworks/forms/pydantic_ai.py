"""A shop's agent in Pydantic AI, in the forms in which such agents are published. Nothing in here knows of
agenteval; the model is scripted, a ``FunctionModel`` of the framework's."""

import asyncio
import os
import re
import threading
from typing import Any

from pydantic_ai import Agent, RunContext
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    RetryPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.toolsets import FunctionToolset


def _mark(name: str) -> None:
    with open(os.environ["RAN"], "a", encoding="utf-8") as file:
        file.write(f"{name}\n")


def get_order(ctx: RunContext[None], order_id: str, verbose: bool = False) -> dict[str, str]:
    """Look an order up."""
    assert ctx.tool_call_id
    _mark("get_order")
    return {"status": "real"}


async def cancel_order(order_id: str) -> dict[str, str]:
    """Cancel an order."""
    _mark("cancel_order")
    return {"status": "real"}


def _clerk(hasty: bool = False) -> FunctionModel:
    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        asked, calls, results = _since_asked(messages)
        orders = asked.split()[1:]
        if not calls:
            wanted = [{"order_id": each} for each in orders] or [{"number": "A-7"}]
            return ModelResponse(parts=[ToolCallPart("get_order", args) for args in wanted])
        if hasty and all(call.tool_name != "cancel_order" for call in calls):
            return ModelResponse(parts=[ToolCallPart("cancel_order", {"order_id": orders[0]})])
        looked = [call for call in calls if call.tool_name == "get_order"]
        sentences = (_sentence(call.args_as_dict(), results[call.tool_call_id]) for call in looked)
        return ModelResponse(parts=[TextPart(", ".join(sentences))])

    return FunctionModel(answer)


def _desk(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Passes on what it is asked, and repeats the answer."""
    asked, calls, results = _since_asked(messages)
    if calls:
        return ModelResponse(parts=[TextPart(results[calls[0].tool_call_id])])
    return ModelResponse(parts=[ToolCallPart("specialist", {"request": asked})])


def _since_asked(messages: list[ModelMessage]) -> tuple[str, list[ToolCallPart], dict[str, str]]:
    asked, calls, results = "", list[ToolCallPart](), dict[str, str]()
    for part in (part for message in messages for part in message.parts):
        if isinstance(part, UserPromptPart):
            asked, calls, results = str(part.content), [], {}
        elif isinstance(part, ToolCallPart):
            calls.append(part)
        elif isinstance(part, ToolReturnPart):
            results[part.tool_call_id] = part.model_response_str()
        elif isinstance(part, RetryPromptPart):
            results[part.tool_call_id] = part.model_response()
    return asked, calls, results


def _sentence(args: dict[str, Any], result: str) -> str:
    found = re.search(r"""status['"]: ?['"]([^'"]+)""", result)
    return f"{args.get('order_id')} is {found[1]}" if found else f"ERROR: {result}"


def _agent(hasty: bool = False) -> Agent[None, str]:
    return Agent(_clerk(hasty), instructions="You look after orders.", tools=[get_order, cancel_order])


agent, hasty_agent = _agent(), _agent(hasty=True)


def by_function(text: str) -> str:
    return agent.run_sync(text).output


def hasty_by_function(text: str) -> str:
    return hasty_agent.run_sync(text).output


async def by_async(text: str) -> str:
    return (await agent.run(text)).output


async def hasty_by_async(text: str) -> str:
    return (await hasty_agent.run(text)).output


specialist_agent = Agent(FunctionModel(_desk), instructions="You are the front desk.")
hasty_specialist_agent = Agent(FunctionModel(_desk), instructions="You are the front desk.")


@specialist_agent.tool
async def specialist(ctx: RunContext[None], request: str) -> str:
    """Asks the specialist for orders."""
    return (await agent.run(request, usage=ctx.usage)).output


@hasty_specialist_agent.tool(name="specialist")
async def hasty_specialist(ctx: RunContext[None], request: str) -> str:
    """Asks the specialist for orders."""
    return (await hasty_agent.run(request, usage=ctx.usage)).output


def _in_thread(ask: Any, text: str) -> str:
    answers: list[str] = []
    thread = threading.Thread(target=lambda: answers.append(asyncio.run(ask(text))))
    thread.start()
    thread.join()
    return answers[0]


def by_threads(text: str) -> str:
    return _in_thread(by_async, text)


def hasty_by_threads(text: str) -> str:
    return _in_thread(hasty_by_async, text)


class in_class:  # noqa: N801 (the name is the form's)
    hasty = False

    def __init__(self) -> None:
        self.agent = _agent(self.hasty)
        self.messages: list[ModelMessage] = []

    def chat(self, text: str) -> str:
        result = self.agent.run_sync(text, message_history=self.messages)
        self.messages = result.all_messages()
        return result.output


class HastyInClass(in_class):
    hasty = True


def _with_toolset(hasty: bool = False) -> Agent[None, str]:
    toolset = FunctionToolset(tools=[get_order, cancel_order]).filtered(lambda ctx, tool: True)
    return Agent(_clerk(hasty), toolsets=[toolset])


with_toolset, hasty_with_toolset = _with_toolset(), _with_toolset(hasty=True)


async def _step_by_step(agent: Agent[None, str], text: str) -> str:
    async with agent.iter(text) as run:
        async for _ in run:
            pass
    return run.result.output if run.result else ""


async def by_steps(text: str) -> str:
    return await _step_by_step(agent, text)


async def hasty_by_steps(text: str) -> str:
    return await _step_by_step(hasty_agent, text)


MORE = {
    "with_toolset": "tools in a toolset around a toolset",
    "by_steps": "a loop over agent.iter()",
}
