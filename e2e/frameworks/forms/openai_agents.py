"""A shop's agent in the OpenAI Agents SDK, in the forms in which such agents are published. Nothing in here
knows of agenteval; the model is scripted, a ``Model`` of the SDK's."""

import asyncio
import json
import os
import re
import threading
from collections.abc import AsyncIterator
from typing import Any

from agents import (
    Agent,
    Model,
    ModelResponse,
    RunContextWrapper,
    Runner,
    Usage,
    function_tool,
    set_tracing_disabled,
)
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

set_tracing_disabled(True)


def _mark(name: str) -> None:
    with open(os.environ["RAN"], "a", encoding="utf-8") as file:
        file.write(f"{name}\n")


@function_tool
def get_order(ctx: RunContextWrapper[Any], order_id: str, verbose: bool = False) -> dict[str, str]:
    """Look an order up."""
    assert ctx.usage is not None
    _mark("get_order")
    return {"status": "real"}


@function_tool
async def cancel_order(order_id: str) -> dict[str, str]:
    """Cancel an order."""
    _mark("cancel_order")
    return {"status": "real"}


class Clerk(Model):
    def __init__(self, hasty: bool = False) -> None:
        self.hasty = hasty

    async def get_response(
        self, system_instructions: Any, input: Any, *args: Any, **options: Any
    ) -> ModelResponse:
        usage = Usage(requests=1, input_tokens=40, output_tokens=8, total_tokens=48)
        return ModelResponse(output=self._output(input), usage=usage, response_id=None)

    async def stream_response(
        self, system_instructions: Any, input: Any, *args: Any, **options: Any
    ) -> AsyncIterator[Any]:
        whole = Response(
            id="r", created_at=0, model="scripted", object="response", output=self._output(input),
            parallel_tool_calls=True, tool_choice="auto", tools=[],
        )  # fmt: skip
        yield ResponseCompletedEvent(type="response.completed", response=whole, sequence_number=0)

    def _output(self, input: Any) -> list[Any]:
        items = [{"role": "user", "content": input}] if isinstance(input, str) else input
        asked = max(at for at, item in enumerate(items) if item.get("role") == "user")
        since = items[asked + 1 :]
        calls = [
            (each["name"], each["call_id"], json.loads(each["arguments"]))
            for each in since
            if each.get("type") == "function_call" and not each["name"].startswith("transfer_to")
        ]
        results = {e["call_id"]: str(e["output"]) for e in since if e.get("type") == "function_call_output"}
        reply = self._next(str(items[asked]["content"]), calls, results)
        if isinstance(reply, str):
            text = ResponseOutputText(type="output_text", text=reply, annotations=[])
            return [
                ResponseOutputMessage(
                    id="answer", type="message", role="assistant", status="completed", content=[text]
                )
            ]
        return [
            ResponseFunctionToolCall(
                type="function_call",
                call_id=f"call_{len(items)}_{at}",
                name=name,
                arguments=json.dumps(args),
            )
            for at, (name, args) in enumerate(reply)
        ]

    def _next(self, asked: str, calls: list[Any], results: dict[str, str]) -> Any:
        """The calls to make, or the answer."""
        orders = asked.split()[1:]
        if not calls:
            wanted = [{"order_id": each} for each in orders] or [{"number": "A-7"}]
            return [("get_order", args) for args in wanted]
        if self.hasty and all(name != "cancel_order" for name, _, _ in calls):
            return [("cancel_order", {"order_id": orders[0]})]
        looked = [(args, results[id]) for name, id, args in calls if name == "get_order"]
        return ", ".join(_sentence(args, result) for args, result in looked)


def _sentence(args: dict[str, Any], result: str) -> str:
    found = re.search(r"""status['"]: ?['"]([^'"]+)""", result)
    return f"{args.get('order_id')} is {found[1]}" if found else f"ERROR: {result}"


class Desk(Clerk):
    """Passes on what it is asked, and repeats the answer."""

    def _next(self, asked: str, calls: list[Any], results: dict[str, str]) -> Any:
        return results[calls[0][1]] if calls else [("specialist", {"input": asked})]


class FrontDesk(Clerk):
    def _next(self, asked: str, calls: list[Any], results: dict[str, str]) -> Any:
        return [("transfer_to_orders", {})]


def _agent(hasty: bool = False) -> Agent[Any]:
    return Agent(
        name="Orders",
        instructions="You look after orders.",
        model=Clerk(hasty),
        tools=[get_order, cancel_order],
    )


agent, hasty_agent = _agent(), _agent(hasty=True)


def by_function(text: str) -> str:
    return str(Runner.run_sync(agent, text).final_output)


def hasty_by_function(text: str) -> str:
    return str(Runner.run_sync(hasty_agent, text).final_output)


async def by_async(text: str) -> str:
    return str((await Runner.run(agent, text)).final_output)


async def hasty_by_async(text: str) -> str:
    return str((await Runner.run(hasty_agent, text)).final_output)


def _desk(agent: Agent[Any]) -> Agent[Any]:
    tool = agent.as_tool(tool_name="specialist", tool_description="Asks the specialist for orders.")
    return Agent(name="Desk", model=Desk(), tools=[tool])


specialist_agent, hasty_specialist_agent = _desk(agent), _desk(hasty_agent)


def _in_thread(ask: Any, text: str) -> str:
    answers: list[str] = []

    def run() -> None:
        asyncio.set_event_loop(asyncio.new_event_loop())  # older releases need one in the thread
        answers.append(ask(text))

    thread = threading.Thread(target=run)
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
        self.agent = _agent(self.hasty)
        self.items: list[Any] = []

    async def _chat(self, text: str) -> str:
        result = await Runner.run(self.agent, [*self.items, {"role": "user", "content": text}])
        self.items = result.to_input_list()
        return str(result.final_output)

    def chat(self, text: str) -> str:
        return asyncio.run(self._chat(text))


class HastyInClass(in_class):
    hasty = True


handing_over = Agent(name="Front desk", model=FrontDesk(), handoffs=[agent])
hasty_handing_over = Agent(name="Front desk", model=FrontDesk(), handoffs=[hasty_agent])


async def _stream(agent: Agent[Any], text: str) -> str:
    result = Runner.run_streamed(agent, text)
    async for _ in result.stream_events():
        pass
    return str(result.final_output)


async def by_stream(text: str) -> str:
    return await _stream(agent, text)


async def hasty_by_stream(text: str) -> str:
    return await _stream(hasty_agent, text)


MORE = {
    "handing_over": "an agent that hands over to another",
    "by_stream": "a streamed run",
}
