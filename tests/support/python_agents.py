"""Python agents of every return style, and tools for them: ``AGENTS`` is the code of ``agent.py``."""

from __future__ import annotations

import re

AGENTS = """
import asyncio
import threading

from agenteval import AgentReply, Usage

def call(name, args="{}", id="c1"):
    return {"id": id, "type": "function", "function": {"name": name, "arguments": args}}

def asking(*calls, text=None):
    return {"role": "assistant", "content": text, "tool_calls": list(calls)}

def since_user(messages):
    start = max(i for i, m in enumerate(messages) if m["role"] == "user")
    return messages[start + 1:]

def own_run(name="own", result="42", text="it is 42"):
    return [
        {"role": "assistant", "content": None, "tool_calls": [call(name, '{"q": 1}', "o1")]},
        {"role": "tool", "tool_call_id": "o1", "content": result},
        {"role": "assistant", "content": text},
    ]

def text_sync(messages, ctx): return "plain"
async def text_async(messages, ctx): return "plain"
def pieces(messages):
    yield "pla"
    yield "in"

async def pieces_async(messages, ctx):
    yield await ctx.call_tool("text", {})
    yield "!"

def observed_generator(messages): yield from own_run()
def one_argument(messages): return "user said " + messages[-1]["content"]
def message_only(messages): return {"role": "assistant", "content": "as a message"}

def tool_message(messages, ctx):
    done = since_user(messages)
    if not done:
        return asking(call("add", '{"a": 1, "b": 2}'), call("text", "{}", "c2"), text="let me see")
    return "sum " + " and ".join(m["content"] for m in done if m["role"] == "tool")

async def tool_reply(messages, ctx):
    if not since_user(messages):
        usage = {"prompt_tokens": 5, "completion_tokens": 2}
        return AgentReply(tool_calls=[call("add", '{"a": 1, "b": 2}')], usage=usage)
    return AgentReply(text="done", usage={"input_tokens": 10, "output_tokens": 1})

def usage_value(messages, ctx):
    return AgentReply(text="done", usage=Usage(calls=1, input_tokens=7, output_tokens=3))

def observed_list(messages, ctx): return own_run()
def observed_reply(messages, ctx):
    return AgentReply(messages=own_run(), usage={"input_tokens": 1, "output_tokens": 1})

def observed_reply_and_text(messages, ctx): return AgentReply(text="it is 42", messages=own_run())
def observed_other_tool(messages, ctx): return own_run(name="other")
def observed_parallel(messages, ctx):
    return [
        asking(call("own", "{}", "o1"), call("own", "{}", "o2")),
        {"role": "tool", "tool_call_id": "o2", "content": "second"},
        {"role": "tool", "tool_call_id": "o1", "content": "first"},
        asking(call("own", "{}", "o3")),
        {"role": "tool", "tool_call_id": "o3", "content": "third"},
        {"role": "assistant", "content": "all done"},
    ]

class OnePerSample:
    made = 0

    def __init__(self):
        type(self).made += 1
        self.seen = []

    async def __call__(self, messages, ctx):
        self.seen.append(messages[-1]["content"])
        await asyncio.sleep(0.01)
        return ", ".join(self.seen)

class PlainClass:
    def __init__(self):
        self.turns = 0

    def __call__(self, messages):
        self.turns += 1
        return f"turn {self.turns}"

async def ctx_values(messages, ctx):
    name = await ctx.call_tool("text", {})
    number = await ctx.call_tool("number", {})
    mapping = await ctx.call_tool("add", {"a": 1, "b": 2})
    nothing = await ctx.call_tool("nothing", {})
    error = await ctx.call_tool("broken", {})
    return repr([name, number, mapping, nothing, error])

def ctx_values_sync(messages, ctx):
    return repr([ctx.call_tool_sync(name, {}) for name in ("text", "number", "nothing", "broken")])

async def ctx_gather(messages, ctx):
    results = await asyncio.gather(*(ctx.call_tool("add", {"a": n, "b": 0}) for n in range(20)))
    return repr([r["sum"] for r in results] == list(range(20)))

def ctx_threads(messages, ctx):
    results = {}

    def work(n):
        results[n] = ctx.call_tool_sync("add", {"a": n, "b": 0})["sum"]

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return repr(results == {n: n for n in range(8)})

async def ctx_sync_in_threads_of_async(messages, ctx):
    results = await asyncio.gather(*(asyncio.to_thread(ctx.call_tool_sync, "text", {}) for _ in range(4)))
    return repr(results)

async def ctx_facts(messages, ctx):
    names = sorted(t["function"]["name"] for t in ctx.tools)
    return repr([ctx.scenario_id, ctx.turn, ctx.epoch, isinstance(ctx.seed, int), names])

async def ctx_seed(messages, ctx): return str(ctx.seed)

async def three_rounds(messages, ctx):
    await ctx.call_tool("text", {})
    await asyncio.gather(ctx.call_tool("text", {}), ctx.call_tool("text", {}))
    await ctx.call_tool("text", {})
    return "done"

def bad_arguments(messages, ctx):
    return "recovered" if since_user(messages) else asking(call("text", '{"a": '))

def dict_arguments(messages, ctx):
    return "fine" if since_user(messages) else asking(call("text", {"a": 1}))

def fifty(messages, ctx):
    return asking(call("text")) if len(since_user(messages)) < 2 * 50 else "done"

def fifty_one(messages, ctx):
    return asking(call("text")) if len(since_user(messages)) < 2 * 51 else "done"

async def thousand(messages, ctx, count=1000):
    for _ in range(count):
        await ctx.call_tool("text", {})
    return "done"

async def thousand_and_one(messages, ctx): return await thousand(messages, ctx, 1001)
"""

NAMES = re.findall(r"^(?:async def|def|class) (\w+)", AGENTS, re.MULTILINE)
NAMES = [name for name in NAMES if name not in {"call", "asking", "since_user", "own_run"}]
TOOLS = """
defaults:
  checks: none
  tools:
    add:
      description: Adds two numbers.
      parameters: {type: object, properties: {a: {type: integer}, b: {type: integer}}, required: [a, b]}
      python: mocks.py:add
    text: {returns: some text}
    number: {returns: 7}
    nothing: {returns: null}
    broken: {error: no luck}
"""
MOCKS = """
def add(args, ctx):
    return {"sum": args["a"] + args["b"]}
"""
