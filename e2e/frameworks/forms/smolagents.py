"""A shop's agent in smolagents, in the forms in which people publish one.

Its model is scripted: it looks up the orders that the user names and says how they are. The hasty ones cancel
the first of them as well.
"""

import ast
import asyncio
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from smolagents import ChatMessage, CodeAgent, LogLevel, Model, ToolCallingAgent, tool
from smolagents.models import ChatMessageToolCall, ChatMessageToolCallFunction, MessageRole

MORE = {"coding": "a CodeAgent", "coding_by_function": "a function around a CodeAgent"}
Call = tuple[str, dict[str, Any]]


def _mark(name: str) -> None:
    with open(os.environ["RAN"], "a", encoding="utf-8") as file:
        file.write(f"{name}\n")


@tool
def get_order(order_id: str, verbose: bool = False) -> dict:
    """Look an order up.

    Args:
        order_id: The order's id.
        verbose: With all details.
    """
    _mark("get_order")
    return {"status": "real"}


@tool
def cancel_order(order_id: str) -> dict:
    """Cancel an order.

    Args:
        order_id: The order's id.
    """
    _mark("cancel_order")
    return {"status": "cancelled"}


def _read(messages: list[ChatMessage]) -> tuple[str, list[str]]:
    """What is asked, and what each step since then came to."""
    asked, previous, seen = "", "", list[str]()
    for message in messages:
        content = message.content or ""
        text = content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
        if text.startswith("New task:"):
            lines = text.splitlines()
            heading = "Task:" if "Task:" in lines else "New task:"  # a managed agent's is within a prompt
            asked, seen = lines[lines.index(heading) + 1], []
        elif text.startswith("Call id:") and seen and previous.startswith("Observation:"):
            seen[-1] += f"\n{text}"  # code that printed something before it failed
        elif message.role == MessageRole.TOOL_RESPONSE:
            seen.append(text)
        previous = text
    return asked, seen


def _orders(asked: str) -> list[str]:
    return asked.split()[1:] if asked.startswith("order") else []


def _statuses(observed: str) -> list[str]:
    if "Error:" in observed:
        return ["ERROR: " + " ".join(observed.split())]
    return [ast.literal_eval(line)["status"] for line in observed.splitlines() if line.startswith("{")]


class Scripted(Model):
    def __init__(self, hasty: bool = False) -> None:
        super().__init__(model_id="scripted")
        self.hasty = hasty

    def generate(self, messages: list[ChatMessage], *args: Any, **kwargs: Any) -> ChatMessage:
        asked, seen = _read(messages)
        steps = self.steps(asked)
        if len(seen) < len(steps):
            return self.message(steps[len(seen)], len(seen))
        return self.message([("final_answer", {"answer": self.answer(asked, seen)})], len(seen))

    def steps(self, asked: str) -> list[list[Call]]:
        """The tool calls of each reply."""
        if asked == "bad":
            return [[("get_order", {"id": "A-7"})]]
        orders = _orders(asked)
        looks = [("get_order", {"order_id": order}) for order in orders]
        cancels = [("cancel_order", {"order_id": order}) for order in orders[:1]] if self.hasty else []
        return [step for step in (looks, cancels) if step]

    def answer(self, asked: str, seen: list[str]) -> str:
        if not seen:
            return "Which order?"
        orders, statuses = _orders(asked) or ["It"], _statuses(seen[0])
        statuses += statuses[-1:] * (len(orders) - len(statuses))  # one error for all calls of a step
        return ", ".join(f"{order} is {status}" for order, status in zip(orders, statuses, strict=True))

    def message(self, calls: list[Call], step: int) -> ChatMessage:
        asked = [
            ChatMessageToolCall(
                id=f"call_{step}_{at}",
                type="function",
                function=ChatMessageToolCallFunction(name=name, arguments=args),
            )
            for at, (name, args) in enumerate(calls)
        ]
        return ChatMessage(role=MessageRole.ASSISTANT, content=None, tool_calls=asked)


class ScriptedCoder(Scripted):
    def message(self, calls: list[Call], step: int) -> ChatMessage:
        lines = [
            f"{name}({', '.join(f'{key}={value!r}' for key, value in args.items())})" for name, args in calls
        ]
        code = "\n".join(line if "final_answer" in line else f"print({line})" for line in lines)
        return ChatMessage(role=MessageRole.ASSISTANT, content=f"<code>\n{code}\n</code>")


class ScriptedManager(Scripted):
    def steps(self, asked: str) -> list[list[Call]]:
        return [[("specialist", {"task": asked, "additional_args": {}})]]  # 1.21 asks for both

    def answer(self, asked: str, seen: list[str]) -> str:
        return seen[0]


def _build(hasty: bool = False, **named: Any) -> ToolCallingAgent:
    return ToolCallingAgent([get_order, cancel_order], Scripted(hasty), verbosity_level=LogLevel.OFF, **named)


def _build_coding(hasty: bool = False) -> CodeAgent:
    return CodeAgent([get_order, cancel_order], ScriptedCoder(hasty), verbosity_level=LogLevel.OFF)


def _build_manager(hasty: bool = False) -> ToolCallingAgent:
    specialist = _build(hasty, name="specialist", description="Knows all about orders.")
    return ToolCallingAgent([], ScriptedManager(), managed_agents=[specialist], verbosity_level=LogLevel.OFF)


agent, hasty_agent = _build(), _build(hasty=True)
coding, hasty_coding = _build_coding(), _build_coding(hasty=True)
specialist_agent, hasty_specialist_agent = _build_manager(), _build_manager(hasty=True)


def by_function(text: str) -> str:
    return str(_build().run(text))


def hasty_by_function(text: str) -> str:
    return str(_build(hasty=True).run(text))


def coding_by_function(text: str) -> str:
    return str(_build_coding().run(text))


def hasty_coding_by_function(text: str) -> str:
    return str(_build_coding(hasty=True).run(text))


async def by_async(text: str) -> str:
    return str(await asyncio.to_thread(_build().run, text))


async def hasty_by_async(text: str) -> str:
    return str(await asyncio.to_thread(_build(hasty=True).run, text))


def by_threads(text: str) -> str:
    with ThreadPoolExecutor() as pool:
        return pool.submit(by_function, text).result()


def hasty_by_threads(text: str) -> str:
    with ThreadPoolExecutor() as pool:
        return pool.submit(hasty_by_function, text).result()


class in_class:  # noqa: N801
    def __init__(self) -> None:
        self.agent = _build()

    def chat(self, text: str) -> str:
        return str(self.agent.run(text, reset=False))


class HastyInClass:
    def __init__(self) -> None:
        self.agent = _build(hasty=True)

    def chat(self, text: str) -> str:
        return str(self.agent.run(text, reset=False))
