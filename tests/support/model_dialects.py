"""The shop's agent in plain loops over ``httpx2`` alone, in the interfaces of several vendors; their models.

Each answers by HTTP, compressed, whole or as a stream; what it asks for is what ``model_agents`` says.
"""

from __future__ import annotations

import gzip
import json
from typing import Any

from tests.support.local_servers import Behaviour, Request, respond
from tests.support.model_agents import wanted

_HEAD = """
import asyncio, json, os
import httpx2

HOST = os.environ["MODEL_URL"].removesuffix("/v1")

def get_order(id):
    return {"id": id, "status": "shipped"}

def refund(id):
    return {"refunded": id}

def run(name, args):
    result = {"get_order": get_order, "refund": refund}[name](**args)
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "made.jsonl"), "a") as log:
        log.write(json.dumps({"name": name, "args": args, "result": json.dumps(result)}) + "\\n")
    return json.dumps(result)

def events(lines):
    texts = [line.removeprefix("data: ") for line in lines if line[:1] in ("{", "d")]
    return [json.loads(text) for text in texts if text != "[DONE]"]
"""

ASKS = {
    "sync": """
def ask(path, body):
    return [httpx2.post(HOST + path, json=body).json()]
""",
    "stream": """
def ask(path, body):
    with httpx2.stream("POST", HOST + STREAMED.get(path, path), json={**body, "stream": True}) as response:
        return events(response.iter_lines())
""",
    "async": """
async def ask(path, body):
    async with httpx2.AsyncClient() as client:
        return [(await client.post(HOST + path, json=body)).json()]
""",
    "async-stream": """
async def ask(path, body):
    async with httpx2.AsyncClient() as client:
        path, body = STREAMED.get(path, path), {**body, "stream": True}
        async with client.stream("POST", HOST + path, json=body) as response:
            return events([line async for line in response.aiter_lines()])
""",
}

_AGENTS = {
    "anthropic": """
STREAMED = {}
TOOLS = [{"name": name, "input_schema": {"type": "object"}} for name in ("get_order", "refund")]

def blocks_of(pieces):
    if len(pieces) == 1:
        return pieces[0]["content"]
    blocks = []
    for piece in pieces:
        if piece["type"] == "content_block_start":
            blocks.append({**piece["content_block"], "json": ""})
        elif piece["type"] == "content_block_delta":
            blocks[-1]["json"] += piece["delta"].get("partial_json", "")
            blocks[-1]["text"] = blocks[-1].get("text", "") + piece["delta"].get("text", "")
    return [{"type": "text", "text": b["text"]} if b["type"] == "text" else
            {"type": "tool_use", "id": b["id"], "name": b["name"], "input": json.loads(b["json"] or "{}")}
            for b in blocks]

def agent(messages):
    history = [{"role": m["role"], "content": m["content"]} for m in messages]
    while True:
        body = {"model": "m", "max_tokens": 100, "messages": history, "tools": TOOLS}
        blocks = blocks_of(ask("/v1/messages", body))
        history.append({"role": "assistant", "content": blocks})
        calls = [block for block in blocks if block["type"] == "tool_use"]
        if not calls:
            return "".join(block["text"] for block in blocks)
        history.append({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": call["id"], "content": run(call["name"], call["input"])}
            for call in calls]})
""",
    "gemini": """
STREAMED = {"/v1beta/models/g:generateContent": "/v1beta/models/g:streamGenerateContent?alt=sse"}
TOOLS = [{"functionDeclarations": [{"name": name} for name in ("get_order", "refund")]}]

def agent(messages):
    roles = {"user": "user", "assistant": "model"}
    contents = [{"role": roles[m["role"]], "parts": [{"text": m["content"]}]} for m in messages]
    while True:
        pieces = ask("/v1beta/models/g:generateContent", {"contents": contents, "tools": TOOLS})
        parts = [part for piece in pieces for part in piece["candidates"][0]["content"]["parts"]]
        contents.append({"role": "model", "parts": parts})
        calls = [part["functionCall"] for part in parts if "functionCall" in part]
        if not calls:
            return "".join(part["text"] for part in parts)
        contents.append({"role": "user", "parts": [
            {"functionResponse": {"name": call["name"], "response": json.loads(run(**call))}}
            for call in calls]})
""",
    "ollama": """
STREAMED = {}
TOOLS = [{"type": "function", "function": {"name": name}} for name in ("get_order", "refund")]

def agent(messages):
    history = [{"role": m["role"], "content": m["content"]} for m in messages]
    while True:
        pieces = ask("/api/chat", {"model": "m", "messages": history, "tools": TOOLS})
        calls = [call for piece in pieces for call in piece["message"].get("tool_calls") or ()]
        text = "".join(piece["message"]["content"] for piece in pieces)
        history.append({"role": "assistant", "content": text, "tool_calls": calls})
        if not calls:
            return text
        for call in calls:
            result = run(call["function"]["name"], call["function"]["arguments"])
            history.append({"role": "tool", "tool_name": call["function"]["name"], "content": result})
""",
}
DIALECTS = tuple(_AGENTS)


def agent_of(dialect: str, how: str) -> str:
    code = _AGENTS[dialect]
    if how.startswith("async"):
        code = code.replace("def agent", "async def agent").replace("ask(", "await ask(")
    return _HEAD + ASKS[how] + code


def dialect_answer(request: Request, *, has_bug: bool) -> Behaviour:
    path, asked = request.path.partition("?")[0], request.json
    if path.endswith("/messages"):
        return _anthropic(asked, has_bug=has_bug)
    if path.endswith("/api/chat"):
        return _ollama(asked, has_bug=has_bug)
    return _gemini(asked, is_stream=path.endswith(":streamGenerateContent"), has_bug=has_bug)


def _said(found: dict[str, Any]) -> str:
    return f"Order {found.get('id') or found.get('refunded')} is on its way."


def _events(pieces: list[dict[str, Any]], *, named: bool = False) -> Behaviour:
    heads = [f"event: {piece['type']}\n" if named else "" for piece in pieces]
    body = "".join(f"{head}data: {json.dumps(piece)}\n\n" for head, piece in zip(heads, pieces, strict=True))
    return _zipped(body, "text/event-stream")


def _zipped(body: str, kind: str = "application/json") -> Behaviour:
    return respond(gzip.compress(body.encode()), headers={"Content-Type": kind, "Content-Encoding": "gzip"})


def _anthropic(asked: dict[str, Any], *, has_bug: bool) -> Behaviour:
    last = asked["messages"][-1]["content"]
    if isinstance(last, list):
        blocks: list[dict[str, Any]] = [{"type": "text", "text": _said(json.loads(last[-1]["content"]))}]
    else:
        blocks = [
            {"type": "tool_use", "id": f"t{len(asked['messages'])}-{at}", "name": name, "input": args}
            for at, (name, args) in enumerate(wanted(last, has_bug=has_bug))
        ]
    end = "tool_use" if blocks[0]["type"] == "tool_use" else "end_turn"
    whole = {"id": "msg", "type": "message", "role": "assistant", "model": "m", "content": blocks,
             "stop_reason": end, "usage": {"input_tokens": 10, "output_tokens": 2}}  # fmt: skip
    if not asked.get("stream"):
        return _zipped(json.dumps(whole))
    start = {**whole, "content": [], "stop_reason": None, "usage": {"input_tokens": 10, "output_tokens": 1}}
    pieces: list[dict[str, Any]] = [{"type": "message_start", "message": start}]
    for at, block in enumerate(blocks):
        is_call = block["type"] == "tool_use"
        text = json.dumps(block["input"]) if is_call else block["text"]
        empty = {**block, "input": {}} if is_call else {"type": "text", "text": ""}
        pieces.append({"type": "content_block_start", "index": at, "content_block": empty})
        for piece in (text[:5], text[5:]):
            delta = (
                {"type": "input_json_delta", "partial_json": piece}
                if is_call
                else {"type": "text_delta", "text": piece}
            )
            pieces.append({"type": "content_block_delta", "index": at, "delta": delta})
        pieces.append({"type": "content_block_stop", "index": at})
    pieces.append({"type": "message_delta", "delta": {"stop_reason": end}, "usage": {"output_tokens": 2}})
    return _events([*pieces, {"type": "message_stop"}], named=True)


def _gemini(asked: dict[str, Any], *, is_stream: bool, has_bug: bool) -> Behaviour:
    last = asked["contents"][-1]["parts"][-1]
    if "functionResponse" in last:
        parts: list[dict[str, Any]] = [{"text": _said(last["functionResponse"]["response"])}]
    else:
        parts = [
            {"functionCall": {"name": name, "args": args}}
            for name, args in wanted(last["text"], has_bug=has_bug)
        ]
    usage = {"promptTokenCount": 10, "candidatesTokenCount": 2, "totalTokenCount": 12}
    whole = {
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": usage, "modelVersion": "g", "responseId": "r",
    }  # fmt: skip
    if not is_stream:
        return _zipped(json.dumps(whole))
    pieces = [
        {"candidates": [{"content": {"role": "model", "parts": [part]}, "index": 0}], "modelVersion": "g"}
        for part in parts
    ]
    last_piece = {**whole, "candidates": [{**pieces[-1]["candidates"][0], "finishReason": "STOP"}]}  # type: ignore[index,dict-item]
    return _events([*pieces[:-1], last_piece])


def _ollama(asked: dict[str, Any], *, has_bug: bool) -> Behaviour:
    last = asked["messages"][-1]
    message: dict[str, Any] = {"role": "assistant", "content": ""}
    if last["role"] == "tool":
        message["content"] = _said(json.loads(last["content"]))
    else:
        message["tool_calls"] = [
            {"function": {"name": name, "arguments": args}}
            for name, args in wanted(last["content"], has_bug=has_bug)
        ]
    end = {"model": "m", "done": True, "done_reason": "stop", "prompt_eval_count": 10, "eval_count": 2}
    if not asked.get("stream"):
        return _zipped(json.dumps({**end, "message": message}))
    first = {"model": "m", "message": message, "done": False}
    pieces = [first, {**end, "message": {"role": "assistant", "content": ""}}]
    return _zipped("".join(json.dumps(piece) + "\n" for piece in pieces), "application/x-ndjson")
