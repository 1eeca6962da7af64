"""What the models and the agent of the soak say: it depends on nothing but the question."""

from __future__ import annotations

import hashlib
import json
from random import Random
from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]

_ASKED_AGAIN = "\n\nYour answer cannot be used"
FAILURES = 0.05
"""The share of labels that tell of a failure."""
MISTAKES = 0.03
"""The share of answers of the agent that lack what they should hold."""


def question_of(asked: Json) -> str:
    """The same for a question that is put again, in the same words or with what was wrong with the answer."""
    messages = asked["messages"]
    if messages[0]["role"] == "system":
        system, user = messages[:2]
        messages = [system, {**user, "content": user["content"].partition(_ASKED_AGAIN)[0]}]
    return hashlib.sha256(json.dumps(messages).encode()).hexdigest()[:16]


def completion(message: Json) -> Json:
    """A chat completion."""
    reason = "tool_calls" if message.get("tool_calls") else "stop"
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": reason}
    usage = {"prompt_tokens": 300, "completion_tokens": 30, "total_tokens": 330}
    return {"id": "c-1", "object": "chat.completion", "model": "mock", "choices": [choice], "usage": usage}


# ── the agent ────────────────────────────────────────────────────────────────────────────────────


def agent_says(asked: Json, question: str) -> Json:
    """A tool call, and after its result the answer."""
    last = asked["messages"][-1]
    if last["role"] != "tool":
        call = {"name": "look_up", "arguments": json.dumps({"topic": last["content"][:40]})}
        calls = [{"id": f"call_{question}", "type": "function", "function": call}]
        return {"content": None, "tool_calls": calls}
    found = json.loads(last["content"])
    if Random(f"agent {question}").random() < MISTAKES:
        return {"content": f"I cannot find anything about {found['ticket']}."}
    return {"content": f"It is {found['state']}, and its ticket is {found['ticket']}."}


def ticket_of(asked: Json) -> str:
    """Which turn of which sample a request is about; empty before the tool has said it."""
    last = asked["messages"][-1]
    return json.loads(last["content"])["ticket"] if last["role"] == "tool" else ""


# ── the models ───────────────────────────────────────────────────────────────────────────────────


def model_says(asked: Json, question: str) -> Json:
    schema = asked["response_format"]["json_schema"]["schema"]
    return {"content": json.dumps(_fitting(schema, "", Random(f"model {question}")))}


def _fitting(schema: Json, name: str, chance: Random) -> Any:
    """A value that fits the schema, in words of its own. Users are never done of their own accord."""
    if "enum" in schema:
        return _label(schema["enum"], chance)
    if "anyOf" in schema:
        return _fitting(schema["anyOf"][0], name, chance)
    match schema.get("type"):
        case "object":
            return {key: _fitting(value, key, chance) for key, value in schema["properties"].items()}
        case "array":
            return []
        case "boolean":
            return False
        case "integer" | "number":
            return chance.randint(schema.get("minimum", 0), schema.get("maximum", 5))
        case _:
            return f"These are the words number {chance.randrange(10**6)} about it, and they are plain."


def _label(labels: list[str], chance: Random) -> str:
    good = [label for label in ("no failure", "pass") if label in labels]
    if good and chance.random() >= FAILURES:
        return good[0]
    return chance.choice(labels)
