"""A shop's agent in Google's ADK, in the forms in which such agents are published. Nothing in here knows of
agenteval; the model is scripted, a ``BaseLlm`` of the framework's."""

import asyncio
import json
import os
import re
import threading
from collections.abc import AsyncGenerator
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import InMemoryRunner
from google.adk.tools import ToolContext
from google.adk.tools.agent_tool import AgentTool
from google.genai import types


def _mark(name: str) -> None:
    with open(os.environ["RAN"], "a", encoding="utf-8") as file:
        file.write(f"{name}\n")


def get_order(order_id: str, tool_context: ToolContext, verbose: bool = False) -> dict[str, str]:
    """Look an order up."""
    assert tool_context.agent_name
    _mark("get_order")
    return {"status": "real"}


async def cancel_order(order_id: str) -> dict[str, str]:
    """Cancel an order."""
    _mark("cancel_order")
    return {"status": "real"}


class Clerk(BaseLlm):
    model: str = "clerk"
    hasty: bool = False

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        reply = self._next(*_since_asked(llm_request.contents))
        if isinstance(reply, str):
            parts = [types.Part(text=reply)]
        else:
            parts = [types.Part(function_call=types.FunctionCall(name=n, args=args)) for n, args in reply]
        used = types.GenerateContentResponseUsageMetadata(
            prompt_token_count=20, candidates_token_count=5, total_token_count=25
        )
        yield LlmResponse(content=types.Content(role="model", parts=parts), usage_metadata=used)

    def _next(self, asked: str, calls: list[Any], results: list[Any]) -> Any:
        """The calls to make, or the answer."""
        orders = asked.split()[1:]
        if not calls:
            wanted = [{"order_id": each} for each in orders] or [{"number": "A-7"}]
            return [("get_order", args) for args in wanted]
        if self.hasty and all(call.name != "cancel_order" for call in calls):
            return [("cancel_order", {"order_id": orders[0]})]
        looked = [pair for pair in zip(calls, results, strict=True) if pair[0].name == "get_order"]
        return ", ".join(_sentence(call.args, json.dumps(result)) for call, result in looked)


class Desk(Clerk):
    """Passes on what it is asked, and repeats the answer."""

    def _next(self, asked: str, calls: list[Any], results: list[Any]) -> Any:
        if not calls:
            return [("specialist", {"request": asked})]
        return str(results[0].get("result") or results[0])


class FrontDesk(Clerk):
    def _next(self, asked: str, calls: list[Any], results: list[Any]) -> Any:
        return [("transfer_to_agent", {"agent_name": "orders"})]


def _since_asked(contents: list[types.Content]) -> tuple[str, list[Any], list[Any]]:
    """What the user asked last (and not what the framework says of other agents), the calls since and, in
    their order, the results."""
    asked, calls, results = "", list[Any](), list[Any]()
    for part in (part for content in contents for part in content.parts or ()):
        if part.text and part.text.split()[0] in ("order", "orders", "bad"):
            asked, calls, results = part.text, [], []
        elif part.function_call:
            calls.append(part.function_call)
        elif part.function_response:
            results.append(part.function_response.response)
    return asked, calls, results


def _sentence(args: dict[str, Any], result: str) -> str:
    found = re.search(r"""status['"]: ?['"]([^'"]+)""", result)
    return f"{args.get('order_id')} is {found[1]}" if found else f"ERROR: {result}"


def _agent(name: str = "orders", hasty: bool = False) -> LlmAgent:
    return LlmAgent(
        name=name,
        description="Knows and cancels orders.",
        model=Clerk(hasty=hasty),
        instruction="Look before you cancel.",
        tools=[get_order, cancel_order],
    )


agent, hasty_agent = _agent(), _agent(hasty=True)
USER = "customer"


def _message(text: str) -> types.Content:
    return types.Content(role="user", parts=[types.Part(text=text)])


def _answer(events: list[Any]) -> str:
    answer = [event for event in events if event.is_final_response()][-1]
    return "".join(part.text or "" for part in answer.content.parts)


def ask(agent: LlmAgent, text: str) -> str:
    runner = InMemoryRunner(agent=agent, app_name="shop")
    session = asyncio.run(runner.session_service.create_session(app_name="shop", user_id=USER))
    return _answer([*runner.run(user_id=USER, session_id=session.id, new_message=_message(text))])


async def ask_async(agent: LlmAgent, text: str) -> str:
    runner = InMemoryRunner(agent=agent, app_name="shop")
    session = await runner.session_service.create_session(app_name="shop", user_id=USER)
    events = runner.run_async(user_id=USER, session_id=session.id, new_message=_message(text))
    return _answer([event async for event in events])


def by_function(text: str) -> str:
    return ask(agent, text)


def hasty_by_function(text: str) -> str:
    return ask(hasty_agent, text)


async def by_async(text: str) -> str:
    return await ask_async(agent, text)


async def hasty_by_async(text: str) -> str:
    return await ask_async(hasty_agent, text)


def _desk(hasty: bool = False) -> LlmAgent:
    tool = AgentTool(agent=_agent("specialist", hasty))
    return LlmAgent(name="desk", model=Desk(), instruction="You are the front desk.", tools=[tool])


specialist_agent, hasty_specialist_agent = _desk(), _desk(hasty=True)


def _in_thread(agent: LlmAgent, text: str) -> str:
    answers: list[str] = []
    thread = threading.Thread(target=lambda: answers.append(ask(agent, text)))
    thread.start()
    thread.join()
    return answers[0]


def by_threads(text: str) -> str:
    return _in_thread(agent, text)


def hasty_by_threads(text: str) -> str:
    return _in_thread(hasty_agent, text)


class in_class:  # noqa: N801 (the name is the form's)
    hasty = False

    def __init__(self) -> None:
        self.runner = InMemoryRunner(agent=_agent(hasty=self.hasty), app_name="shop")
        create = self.runner.session_service.create_session(app_name="shop", user_id=USER)
        self.session = asyncio.run(create)

    def chat(self, text: str) -> str:
        events = self.runner.run(user_id=USER, session_id=self.session.id, new_message=_message(text))
        return _answer([*events])


class HastyInClass(in_class):
    hasty = True


def _handing_over(hasty: bool = False) -> LlmAgent:
    return LlmAgent(
        name="front_desk",
        model=FrontDesk(),
        instruction="Hand over to who knows.",
        sub_agents=[_agent(hasty=hasty)],
    )


handing_over, hasty_handing_over = _handing_over(), _handing_over(hasty=True)


MORE = {"handing_over": "an agent that hands over to another"}
