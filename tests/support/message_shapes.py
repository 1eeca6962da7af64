"""Messages in the shapes of many libraries, each of them the same turn."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from pydantic import BaseModel

from agenteval.core.trajectory import Step

DONE = {"role": "assistant", "content": "done"}
ARGS = {"id": "A-1"}


def call(identity: str = "c1", arguments: Any = '{"id": "A-1"}', name: str = "cancel") -> dict[str, Any]:
    return {"id": identity, "type": "function", "function": {"name": name, "arguments": arguments}}


def asks(*calls: dict[str, Any], text: str | None = None) -> dict[str, Any]:
    return {"role": "assistant", "content": text, "tool_calls": list(calls or (call(),))}


def result(identity: str = "c1", text: str = "ok") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": identity, "content": text}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def says(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def calls_in(steps: Sequence[Step]) -> list[tuple[str, Any, Any]]:
    found = [each for step in steps for each in step.tool_calls]
    return [(each.name, each.args, each.result.value if each.result else None) for each in found]


TOOL_USE = {"type": "tool_use", "id": "t", "name": "cancel", "input": ARGS}


class Block(BaseModel):
    type: str = "tool_use"
    id: str = "t"
    name: str = "cancel"
    input: dict[str, str] = ARGS


SHAPES: dict[str, list[Any]] = {
    "OpenAI": [asks(), result(), DONE],
    "responses": [
        {"type": "reasoning", "id": "rs", "summary": []},
        {"type": "function_call", "call_id": "1", "name": "cancel", "arguments": '{"id": "A-1"}'},
        {"type": "function_call_output", "call_id": "1", "output": "ok"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "done"}]},
    ],
    "anthropic": [
        {"role": "assistant", "content": [{"type": "text", "text": "Let me."}, TOOL_USE]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "ok"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "done"}]},
    ],
    "anthropic, blocks as objects": [
        {"role": "assistant", "content": [Block()]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "ok"}]},
        DONE,
    ],
    "blocks with attributes alone": [
        {"role": "assistant", "content": [SimpleNamespace(**TOOL_USE)]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "ok"}]},
        DONE,
    ],
    "AI SDK": [
        {
            "role": "assistant",
            "content": [{"type": "tool-call", "toolName": "cancel", "toolCallId": "1", "input": ARGS}],
        },
        {
            "role": "tool",
            "content": [
                {"type": "tool-result", "toolCallId": "1", "toolName": "cancel", "output": "ok"},
            ],
        },
        DONE,
    ],
    "Gemini": [
        {"role": "model", "parts": [{"functionCall": {"name": "cancel", "args": ARGS}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "cancel", "response": "ok"}}]},
        {"role": "model", "parts": [{"text": "done"}]},
    ],
    "camel": [
        {"role": "assistant", "content": "", "toolCalls": [{"name": "cancel", "args": ARGS}]},
        result(""),
        DONE,
    ],
    "object with toolCalls": [
        SimpleNamespace(role="assistant", content="", toolCalls=[{"name": "cancel", "args": ARGS}]),
        result(""),
        DONE,
    ],
    "parameters": [
        {"role": "assistant", "content": "", "tool_calls": [{"name": "cancel", "parameters": ARGS}]},
        result(""),
        DONE,
    ],
    "LangChain": [
        {"type": "AIMessageChunk", "content": [TOOL_USE], "tool_calls": [{"name": "cancel", "args": ARGS}]},
        {"type": "tool", "content": "ok"},
        {"type": "ai", "content": "done", "additional_kwargs": {}, "invalid_tool_calls": []},
    ],
    "a role in capitals": [{**asks(), "role": "Assistant"}, result(), DONE],
}

NEW = [asks(), result(), DONE]
CANCELLED = ("cancel", ARGS, "ok")
FOUND = [asks(call("f9", '{"q": 1}', "find")), result("f9", "found")]
