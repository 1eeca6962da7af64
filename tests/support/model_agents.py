"""A shop's agents that talk to a model by the ``openai`` client, in many shapes, and the model.

Each agent writes what it really called into ``made.jsonl``, a line each: its own record.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.support.local_servers import Behaviour, LocalServer, Request, Wire, respond, respond_json

USAGE = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
RESPONSES_USAGE = {"input_tokens": 10, "output_tokens": 2, "total_tokens": 12}

TOOLS = """
import json, os
from openai import AsyncOpenAI, OpenAI

BASE = dict(base_url=os.environ["MODEL_URL"], api_key="none", max_retries=0)

def get_order(id):
    return {"id": id, "status": "shipped"}

def refund(id):
    return {"refunded": id}

def run(name, arguments):
    args = json.loads(arguments)
    result = {"get_order": get_order, "refund": refund}[name](**args)
    text = json.dumps(result)
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "made.jsonl"), "a") as log:
        log.write(json.dumps({"name": name, "args": args, "result": text}) + "\\n")
    return text
"""


def wanted(text: str, *, has_bug: bool) -> list[tuple[str, dict[str, Any]]]:
    """What the model asks for: with the bug it refunds the second order."""
    order = next((word.strip("?.") for word in text.split() if word.startswith("ORD-")), None)
    if order is None:
        return []
    calls = [("get_order", {"id": order})]
    return [*calls, ("refund", {"id": order})] if has_bug and order == "ORD-2" else calls


def model(*, has_bug: bool) -> Callable[[Request], Behaviour]:
    """Chat completions and responses, whole or streamed."""

    def answer(request: Request) -> Behaviour:
        asked = request.json
        if request.path.endswith("/responses"):
            return _responses(asked, has_bug=has_bug)
        message = _message(asked["messages"], has_bug=has_bug)
        if asked.get("stream"):
            has_usage = (asked.get("stream_options") or {}).get("include_usage")
            return _streamed(message, has_usage=has_usage or "stream_options" not in asked)
        end = "tool_calls" if message.get("tool_calls") else "stop"
        choice = {"index": 0, "message": message, "finish_reason": end}
        return respond_json({"id": "x", "object": "chat.completion", "created": 1, "model": "m",
                             "choices": [choice], "usage": USAGE})  # fmt: skip

    return answer


def _message(messages: list[dict[str, Any]], *, has_bug: bool) -> dict[str, Any]:
    if messages[-1]["role"] == "tool":
        found = [m["content"] for m in messages if m["role"] == "tool"][-1]
        told = json.loads(found)
        return {
            "role": "assistant",
            "content": f"Order {told.get('id') or told.get('refunded')} is on its way.",
        }
    calls = [
        {
            "id": f"c{len(messages)}-{at}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(args)},
        }
        for at, (name, args) in enumerate(wanted(messages[-1]["content"], has_bug=has_bug))
    ]
    if not calls:
        return {"role": "assistant", "content": "Hello."}
    return {"role": "assistant", "content": None, "tool_calls": calls}


def _streamed(message: dict[str, Any], *, has_usage: bool) -> Behaviour:
    deltas: list[dict[str, Any]] = [{"role": "assistant"}]
    for at, call in enumerate(message.get("tool_calls") or ()):
        arguments = call["function"]["arguments"]
        deltas.append(
            {"tool_calls": [{"index": at, **call, "function": {**call["function"], "arguments": ""}}]}
        )
        deltas += [{"tool_calls": [{"index": at, "function": {"arguments": part}}]} for part in arguments]
    deltas += [{"content": f"{word} "} for word in (message.get("content") or "").split()]
    end = "tool_calls" if message.get("tool_calls") else "stop"
    chunks: list[dict[str, Any]] = [
        {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m",
         "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas
    ]  # fmt: skip
    chunks.append({**chunks[0], "choices": [{"index": 0, "delta": {}, "finish_reason": end}]})
    if has_usage:
        chunks.append({**chunks[0], "choices": [], "usage": USAGE})
    body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
    return respond(body, headers={"Content-Type": "text/event-stream"})


def _responses(asked: dict[str, Any], *, has_bug: bool) -> Behaviour:
    items = asked["input"]
    outputs = [json.loads(i["output"]) for i in items if i.get("type") == "function_call_output"]
    if items[-1].get("type") == "function_call_output":
        told = outputs[-1]
        text = f"Order {told.get('id') or told.get('refunded')} is on its way."
        output: list[dict[str, Any]] = [
            {"type": "message", "id": "m", "status": "completed", "role": "assistant",
             "content": [{"type": "output_text", "text": text, "annotations": []}]}
        ]  # fmt: skip
    else:
        output = [
            {"type": "function_call", "id": f"f{at}", "call_id": f"c{len(items)}-{at}", "name": name,
             "arguments": json.dumps(args), "status": "completed"}
            for at, (name, args) in enumerate(wanted(items[-1]["content"], has_bug=has_bug))
        ]  # fmt: skip
    response = {"id": "r", "object": "response", "created_at": 1, "model": "m", "status": "completed",
                "output": output, "usage": RESPONSES_USAGE, "parallel_tool_calls": True,
                "tool_choice": "auto", "tools": []}  # fmt: skip
    if not asked.get("stream"):
        return respond_json(response)
    events: list[dict[str, Any]] = [{"type": "response.created", "response": {**response, "output": []}}]
    events += [{"type": "response.output_item.done", "output_index": at, "item": item}
               for at, item in enumerate(output)]  # fmt: skip
    events.append({"type": "response.completed", "response": response})
    body = "".join(
        f"event: {e['type']}\ndata: {json.dumps({**e, 'sequence_number': at})}\n\n"
        for at, e in enumerate(events)
    )
    return respond(body, headers={"Content-Type": "text/event-stream"})


def model_server(*, has_bug: bool = False) -> LocalServer:
    answer = model(has_bug=has_bug)

    def behave(wire: Wire) -> None:
        answer(wire.request)(wire)

    return LocalServer(behave)


AGENTS = {
    "class": """
class Agent:
    def __init__(self):
        self.messages = []
        self.client = OpenAI(**BASE)

    def chat(self, message: str) -> str:
        self.messages.append({"role": "user", "content": message})
        while True:
            reply = self.client.chat.completions.create(model="m", messages=self.messages).choices[0].message
            self.messages.append(reply)
            if not reply.tool_calls:
                return reply.content
            for call in reply.tool_calls:
                result = run(call.function.name, call.function.arguments)
                self.messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
""",
    "async": """
import asyncio

client = AsyncOpenAI(**BASE)

async def agent(messages):
    messages = list(messages)
    while True:
        reply = (await client.chat.completions.create(model="m", messages=messages)).choices[0].message
        messages.append(reply)
        if not reply.tool_calls:
            return reply.content
        results = await asyncio.gather(*(
            asyncio.to_thread(run, c.function.name, c.function.arguments) for c in reply.tool_calls))
        for call, result in zip(reply.tool_calls, results):
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
""",
    "streamed": """
client = OpenAI(**BASE)

def agent(messages):
    messages = list(messages)
    while True:
        calls, text = {}, ""
        stream = client.chat.completions.create(
            model="m", messages=messages, stream=True, stream_options={"include_usage": True})
        for chunk in stream:
            delta = chunk.choices[0].delta if chunk.choices else None
            for piece in (delta and delta.tool_calls) or ():
                call = calls.setdefault(piece.index, {"id": "", "name": "", "arguments": ""})
                call["id"] = piece.id or call["id"]
                call["name"] += piece.function.name or ""
                call["arguments"] += piece.function.arguments or ""
            text += (delta and delta.content) or ""
        if not calls:
            yield text
            return
        asked = [{"id": c["id"], "type": "function",
                  "function": {"name": c["name"], "arguments": c["arguments"]}} for c in calls.values()]
        messages.append({"role": "assistant", "content": None, "tool_calls": asked})
        for call in calls.values():
            result = run(call["name"], call["arguments"])
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
""",
    "async-streamed": """
client = AsyncOpenAI(**BASE)

async def agent(messages):
    messages = list(messages)
    while True:
        async with client.chat.completions.stream(model="m", messages=messages) as stream:
            reply = (await stream.get_final_completion()).choices[0].message
        messages.append({"role": "assistant", "content": reply.content, "tool_calls": [
            {"id": c.id, "type": "function",
             "function": {"name": c.function.name, "arguments": c.function.arguments}}
            for c in reply.tool_calls or ()] or None})
        if not reply.tool_calls:
            return reply.content
        for call in reply.tool_calls:
            result = run(call.function.name, call.function.arguments)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
""",
    "raw": """
client = OpenAI(**BASE)

def agent(messages):
    messages = list(messages)
    while True:
        raw = client.chat.completions.with_raw_response.create(model="m", messages=messages)
        reply = raw.parse().choices[0].message
        messages.append(reply)
        if not reply.tool_calls:
            return reply.content
        for call in reply.tool_calls:
            result = run(call.function.name, call.function.arguments)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
""",
    "responses": """
client = OpenAI(**BASE)

def agent(messages):
    items = [{"role": m["role"], "content": m["content"]} for m in messages]
    while True:
        reply = client.responses.create(model="m", input=items)
        calls = [item for item in reply.output if item.type == "function_call"]
        items += [item.to_dict() for item in reply.output]
        if not calls:
            return reply.output_text
        for call in calls:
            output = run(call.name, call.arguments)
            items.append({"type": "function_call_output", "call_id": call.call_id, "output": output})
""",
    "responses-streamed": """
client = AsyncOpenAI(**BASE)

async def agent(messages):
    items = [{"role": m["role"], "content": m["content"]} for m in messages]
    while True:
        async for event in await client.responses.create(model="m", input=items, stream=True):
            if event.type == "response.completed":
                reply = event.response
        calls = [item for item in reply.output if item.type == "function_call"]
        items += [item.to_dict() for item in reply.output]
        if not calls:
            return reply.output_text
        for call in calls:
            output = run(call.name, call.arguments)
            items.append({"type": "function_call_output", "call_id": call.call_id, "output": output})
""",
    "swallows": """
client = OpenAI(**BASE)

def agent(messages):
    messages = list(messages)
    try:
        while True:
            reply = client.chat.completions.create(model="m", messages=messages).choices[0].message
            messages.append(reply)
            if not reply.tool_calls:
                raise RuntimeError(reply.content)
            for call in reply.tool_calls:
                result = run(call.function.name, call.function.arguments)
                messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    except Exception as error:
        return f"Sorry: {error}"
""",
}
"""Agents as people write them: each is ``agent.py:agent``, or the method ``Agent.chat``."""
