"""WonderBot as a ReAct agent over any model that speaks OpenAI's chat API.

Run the suite against it with ``agenteval run --agent react`` and these variables:

- ``WONDERBOT_MODEL``: the model's name, required;
- ``OPENAI_API_KEY``: the provider's key; a local server mostly needs none;
- ``WONDERBOT_BASE_URL`` or ``OPENAI_BASE_URL``: the server, unless it is OpenAI's own.

The loop is the usual one: the model may call tools, their results go back to it, until it answers
in text.
"""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from agenteval import AgentReply, AuthorError, Problem, Usage

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from openai.types import CompletionUsage
    from openai.types.chat import ChatCompletion

Json = dict[str, Any]

MAX_ROUNDS = 8
SYSTEM_PROMPT = Path(__file__).with_name("policy.md").read_text(encoding="utf-8")
ASK = "Please ask me a question: about the weather, the WonderBot plans, or a calculation."
GAVE_UP = (
    f"I could not finish this within {MAX_ROUNDS} rounds of tool calls. Please ask for one thing at a time."
)

# A connection pool belongs to the event loop that opened it.
_clients: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[str | None, str | None], AsyncOpenAI]]
_clients = WeakKeyDictionary()


async def agent(messages: list[Json], ctx: Any) -> AgentReply:
    """Answers the last user message. Raises ``AuthorError`` if no model is configured."""
    if not messages[-1]["content"].strip():
        return AgentReply(ASK)  # several providers refuse an empty message with status 400
    history: list[Json] = [{"role": "system", "content": SYSTEM_PROMPT}, *messages]
    usage = Usage()
    for _ in range(MAX_ROUNDS):
        completion = await complete(history, ctx.tools)
        usage = usage + usage_of(completion.usage)
        message = completion.choices[0].message
        if not message.tool_calls:
            return AgentReply(message.content or message.refusal or "", usage=reported(usage))
        calls = [as_sent(call.model_dump(exclude_none=True), i) for i, call in enumerate(message.tool_calls)]
        results = await asyncio.gather(*(run_tool(call, ctx) for call in calls))
        history.append(
            {"role": "assistant", "content": message.content, "tool_calls": list(map(echo, calls))}
        )
        history += results
    return AgentReply(GAVE_UP, usage=reported(usage))


async def complete(history: list[Json], tools: list[Json]) -> ChatCompletion:
    """The model's next message. ``tools`` is left out when empty: some servers refuse an empty list."""
    model = model_name()
    request: Json = {"model": model, "messages": history, **({"tools": tools} if tools else {})}
    completion: ChatCompletion = await client().chat.completions.create(**request)
    if not completion.choices:
        raise RuntimeError(f"the model {model} sent a reply without choices")
    return completion


def as_sent(call: Json, index: int) -> Json:
    """A tool call of the model with the two things that some servers leave out."""
    return {**call, "id": call.get("id") or f"call_{index}", "function": call.get("function") or {"name": ""}}


async def run_tool(call: Json, ctx: Any) -> Json:
    """The message that answers a tool call. Arguments go to agenteval as the model wrote them: it
    answers broken ones with an error, and the report shows them."""
    function = call["function"]
    result = await ctx.call_tool(function["name"], function.get("arguments"))
    text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
    return {"role": "tool", "tool_call_id": call["id"], "content": text}


def echo(call: Json) -> Json:
    """The call as it goes back to the server, which would refuse broken arguments in the history."""
    try:
        intact = isinstance(json.loads(call["function"].get("arguments") or ""), dict)
    except ValueError:
        intact = False
    return call if intact else {**call, "function": {**call["function"], "arguments": "{}"}}


def usage_of(counted: CompletionUsage | None) -> Usage:
    """The tokens of one call; a server that counts none leaves the sum an estimate."""
    if counted is None:
        return Usage(calls=1, estimated=True)
    details = counted.prompt_tokens_details
    return Usage(
        calls=1,
        input_tokens=counted.prompt_tokens or 0,
        output_tokens=counted.completion_tokens or 0,
        cached_tokens=(details and details.cached_tokens) or 0,
    )


def reported(usage: Usage) -> Usage | None:
    """``None`` if the server counted nothing at all; agenteval then makes its own estimate."""
    return usage if usage.tokens else None


def model_name() -> str:
    name = os.environ.get("WONDERBOT_MODEL", "").strip()
    if not name:
        raise AuthorError(
            Problem(
                "WonderBot's ReAct agent has no model",
                "set WONDERBOT_MODEL, for example to gpt-5-mini, and OPENAI_API_KEY; for a local server"
                " OPENAI_BASE_URL too",
            )
        )
    return name


def client() -> AsyncOpenAI:
    """The client of the running event loop for the current settings, made when first needed."""
    base_url = os.environ.get("WONDERBOT_BASE_URL") or os.environ.get("OPENAI_BASE_URL") or None
    api_key = os.environ.get("OPENAI_API_KEY") or None
    if not (base_url or api_key):
        raise AuthorError(
            Problem(
                "WonderBot's ReAct agent has no key for its model",
                "set OPENAI_API_KEY, or OPENAI_BASE_URL for a local server",
            )
        )
    ours = _clients.setdefault(asyncio.get_running_loop(), {})
    if (base_url, api_key) not in ours:
        from openai import AsyncOpenAI  # half a second to import, which the other agent need not wait for

        ours[base_url, api_key] = AsyncOpenAI(base_url=base_url, api_key=api_key or "none")
    return ours[base_url, api_key]
