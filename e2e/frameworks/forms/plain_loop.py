"""A shop's agent without a framework: a loop over the ``openai`` client, whose tools are functions that it
calls by itself. Nothing in here knows of agenteval; the client's environment says where the model is."""

import asyncio
import json
import os
import threading
from typing import Any

from openai import AsyncOpenAI, OpenAI


def _mark(name: str) -> None:
    with open(os.environ["RAN"], "a", encoding="utf-8") as file:
        file.write(f"{name}\n")


def get_order(order_id: str, verbose: bool = False) -> dict[str, str]:
    """Look an order up."""
    _mark("get_order")
    return {"status": "real"}


async def cancel_order(order_id: str) -> dict[str, str]:
    """Cancel an order."""
    _mark("cancel_order")
    return {"status": "real"}


def _schema(name: str, description: str) -> Any:
    parameters = {"type": "object", "properties": {"order_id": {"type": "string"}}, "required": ["order_id"]}
    function = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", "function": function}


TOOLS = [_schema("get_order", "Look an order up."), _schema("cancel_order", "Cancel an order.")]
CAREFUL, HASTY = "careful", "hasty"


def _result(call: Any) -> dict[str, str]:
    args = json.loads(call.function.arguments)
    found = get_order(**args) if call.function.name == "get_order" else asyncio.run(cancel_order(**args))
    return {"role": "tool", "tool_call_id": call.id, "content": json.dumps(found)}


def _ask(model: str, text: str) -> str:
    messages: list[Any] = [{"role": "user", "content": text}]
    with OpenAI() as client:
        while True:
            reply = client.chat.completions.create(model=model, messages=messages, tools=TOOLS)
            answer = reply.choices[0].message
            messages.append(answer.model_dump(exclude_none=True))
            if not answer.tool_calls:
                return answer.content or ""
            messages.extend(_result(call) for call in answer.tool_calls)


async def _ask_async(model: str, text: str) -> str:
    messages: list[Any] = [{"role": "user", "content": text}]
    async with AsyncOpenAI() as client:
        while True:
            reply = await client.chat.completions.create(model=model, messages=messages, tools=TOOLS)
            answer = reply.choices[0].message
            messages.append(answer.model_dump(exclude_none=True))
            if not answer.tool_calls:
                return answer.content or ""
            for call in answer.tool_calls:
                args = json.loads(call.function.arguments)
                found = get_order(**args) if call.function.name == "get_order" else await cancel_order(**args)
                messages.append({"role": "tool", "tool_call_id": call.id, "content": json.dumps(found)})


def by_function(text: str) -> str:
    return _ask(CAREFUL, text)


def hasty_by_function(text: str) -> str:
    return _ask(HASTY, text)


async def by_async(text: str) -> str:
    return await _ask_async(CAREFUL, text)


async def hasty_by_async(text: str) -> str:
    return await _ask_async(HASTY, text)


def _in_thread(model: str, text: str) -> str:
    answers: list[str] = []
    thread = threading.Thread(target=lambda: answers.append(_ask(model, text)))
    thread.start()
    thread.join()
    return answers[0]


def by_threads(text: str) -> str:
    return _in_thread(CAREFUL, text)


def hasty_by_threads(text: str) -> str:
    return _in_thread(HASTY, text)


class in_class:  # noqa: N801 (the name is the form's)
    model = CAREFUL

    def __init__(self) -> None:
        self.client = OpenAI()
        self.messages: list[Any] = []

    def chat(self, text: str) -> str:
        self.messages.append({"role": "user", "content": text})
        while True:
            reply = self.client.chat.completions.create(model=self.model, messages=self.messages, tools=TOOLS)
            answer = reply.choices[0].message
            self.messages.append(answer.model_dump(exclude_none=True))
            if not answer.tool_calls:
                return answer.content or ""
            self.messages.extend(_result(call) for call in answer.tool_calls)


class HastyInClass(in_class):
    model = HASTY
