"""A shop's agent in CrewAI, in the forms in which people publish one.

Its model is scripted: it looks up the orders that the user names and says how they are. The hasty ones cancel
the first of them as well.
"""

import ast
import json
import os
import threading
from typing import Any

from crewai import Agent, BaseLLM, Crew, Task
from crewai.flow.flow import Flow, start
from crewai.tools import tool

MORE = {
    "by_crew": "a function around a Crew",
    "by_crew_async": "an async function around a Crew",
    "by_flow": "a function around a Flow that runs a Crew",
    "by_text": "a function around an agent whose model writes its calls as text",
}
Call = tuple[str, dict[str, Any]]
Results = list[tuple[Call, str]]


def _mark(name: str) -> None:
    with open(os.environ["RAN"], "a", encoding="utf-8") as file:
        file.write(f"{name}\n")


@tool("get_order")
def get_order(order_id: str, verbose: bool = False) -> dict[str, Any]:
    """Look an order up."""
    _mark("get_order")
    return {"status": "real"}


@tool("cancel_order")
async def cancel_order(order_id: str) -> dict[str, Any]:
    """Cancel an order."""
    _mark("cancel_order")
    return {"status": "cancelled"}


class Scripted(BaseLLM):
    hasty: bool = False

    def supports_function_calling(self) -> bool:
        return True

    def call(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
        tasks = [at for at, message in enumerate(messages) if "Current Task:" in str(message.get("content"))]
        asked = messages[tasks[-1]]["content"].partition("Current Task:")[2].strip().splitlines()[0]
        since = messages[tasks[-1] + 1 :]
        steps, done = self.steps(asked), sum(message["role"] == "assistant" for message in since)
        if done == len(steps):
            return self.answer(self.results(since))
        calls = [{"name": name, "arguments": json.dumps(args)} for name, args in steps[done]]
        return [
            {"id": f"call_{len(messages)}_{at}", "type": "function", "function": call}
            for at, call in enumerate(calls)
        ]

    def steps(self, asked: str) -> list[list[Call]]:
        """The tool calls of each reply."""
        if asked == "bad":
            return [[("get_order", {"id": "A-7"})]]
        orders = asked.split()[1:] if asked.startswith("order") else []
        looks = [("get_order", {"order_id": order}) for order in orders]
        cancels = [("cancel_order", {"order_id": order}) for order in orders[:1]] if self.hasty else []
        return [calls for calls in (looks, cancels) if calls]

    def results(self, messages: list[dict[str, Any]]) -> Results:
        texts = {each["tool_call_id"]: str(each["content"]) for each in messages if each["role"] == "tool"}
        found = Results()
        for call in (call for message in messages for call in message.get("tool_calls") or ()):
            function = call["function"]
            found.append(((function["name"], json.loads(function["arguments"])), texts[call["id"]]))
        return found

    def answer(self, results: Results) -> str:
        looks = [(args.get("order_id", "It"), text) for (name, args), text in results if name == "get_order"]
        return ", ".join(f"{order} is {_status(text)}" for order, text in looks) or "Which order?"


class ScriptedByText(Scripted):
    """One call a reply, as `Action:` and `Action Input:`."""

    def supports_function_calling(self) -> bool:
        return False

    def call(self, messages: Any, *args: Any, **kwargs: Any) -> str:
        reply = super().call(messages)
        if isinstance(reply, str):
            return f"Thought: I now can give a great answer\nFinal Answer: {reply}"
        call = reply[0]["function"]
        return f"Thought: I need a tool.\nAction: {call['name']}\nAction Input: {call['arguments']}"

    def steps(self, asked: str) -> list[list[Call]]:
        return [[call] for calls in super().steps(asked) for call in calls]

    def results(self, messages: list[dict[str, Any]]) -> Results:
        found = Results()
        for message in messages:
            call, _, result = str(message["content"]).partition("\nObservation: ")
            if message["role"] == "assistant" and result:
                name, _, args = call.partition("Action: ")[2].partition("\nAction Input: ")
                found.append(((name, json.loads(args)), result))
        return found


class ScriptedFrontDesk(Scripted):
    def steps(self, asked: str) -> list[list[Call]]:
        return [[("specialist", {"request": asked})]]

    def answer(self, results: Results) -> str:
        return results[0][1]


def _status(result: str) -> str:
    if result.startswith("{"):
        return str(ast.literal_eval(result)["status"])
    words = result.partition("Moving on then.")[0]  # what follows says how to write an answer
    return f"ERROR: {' '.join(words.split())}"


def _build(llm: Scripted) -> Agent:
    return Agent(
        role="Clerk",
        goal="Help the customers of a shop",
        backstory="You have been at the counter for years.",
        llm=llm,
        tools=[get_order, cancel_order],
    )


def _shop(hasty: bool = False) -> Agent:
    return _build(Scripted(model="scripted", hasty=hasty))


def _front_desk(hasty: bool = False) -> Agent:
    @tool("specialist")
    def specialist(request: str) -> str:
        """Ask the one who knows all about orders."""
        return str(_shop(hasty).kickoff(request).raw)

    return Agent(
        role="Front desk",
        goal="Pass on what customers want",
        backstory="You are new.",
        llm=ScriptedFrontDesk(model="scripted"),
        tools=[specialist],
    )


def _crew(hasty: bool = False) -> Crew:
    clerk = _shop(hasty)
    return Crew(agents=[clerk], tasks=[Task(description="{text}", expected_output="An answer", agent=clerk)])


class ShopFlow(Flow):  # type: ignore[type-arg]
    @start()
    def answer(self) -> str:
        crew = _crew(self.state["hasty"])
        return str(crew.kickoff(inputs={"text": self.state["text"]}).raw)


agent, hasty_agent = _shop(), _shop(hasty=True)
specialist_agent, hasty_specialist_agent = _front_desk(), _front_desk(hasty=True)


def by_function(text: str) -> str:
    return str(_shop().kickoff(text).raw)


def hasty_by_function(text: str) -> str:
    return str(_shop(hasty=True).kickoff(text).raw)


async def by_async(text: str) -> str:
    return str((await _shop().kickoff_async(text)).raw)


async def hasty_by_async(text: str) -> str:
    return str((await _shop(hasty=True).kickoff_async(text)).raw)


def by_crew(text: str) -> str:
    return str(_crew().kickoff(inputs={"text": text}).raw)


def hasty_by_crew(text: str) -> str:
    return str(_crew(hasty=True).kickoff(inputs={"text": text}).raw)


async def by_crew_async(text: str) -> str:
    return str((await _crew().akickoff(inputs={"text": text})).raw)


async def hasty_by_crew_async(text: str) -> str:
    return str((await _crew(hasty=True).akickoff(inputs={"text": text})).raw)


def by_flow(text: str) -> str:
    return str(ShopFlow().kickoff(inputs={"text": text, "hasty": False}))


def hasty_by_flow(text: str) -> str:
    return str(ShopFlow().kickoff(inputs={"text": text, "hasty": True}))


def by_text(text: str) -> str:
    return str(_build(ScriptedByText(model="scripted")).kickoff(text).raw)


def hasty_by_text(text: str) -> str:
    return str(_build(ScriptedByText(model="scripted", hasty=True)).kickoff(text).raw)


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
        self.agent = _shop(hasty)
        self.messages: list[dict[str, str]] = []

    def chat(self, text: str) -> str:
        self.messages.append({"role": "user", "content": text})
        answer = str(self.agent.kickoff(self.messages).raw)
        self.messages.append({"role": "assistant", "content": answer})
        return answer


class HastyInClass(in_class):
    def __init__(self) -> None:
        super().__init__(hasty=True)
