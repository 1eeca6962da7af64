"""Python agents through the command line: every return style, ``ctx``, steps, observed calls, limits."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.support.kit import Project, failed_checks
from tests.support.suites import samples_of, write_suite

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
LONG = ("fifty", "fifty_one", "thousand", "thousand_and_one", "observed_parallel")

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
OWN = "expect: {tool_calls: {match: strict, calls: [{name: own, args: {q: 1}}, {name: own, args: {q: 1}}]}}"


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Samples:
    """The sample of each agent, all run at once in one process. Those that run their own tools have a suite
    without ``tools:``; loops of very many calls are played for one turn only."""
    project = Project(tmp_path_factory.mktemp("agents"))
    project.agent(AGENTS)
    scenarios = {name: f"turns: {'[one]' if name in LONG else '[one, two]'}" for name in NAMES}
    observed = {name for name in NAMES if name.startswith("observed")}
    expects = {n: f"{scenarios.pop(n)}, {'checks: none' if n in LONG else OWN}" for n in observed}
    write_suite(project, NAMES, expects)
    (project.root / "scenarios/suite.yaml").rename(project.root / "scenarios/observed.yaml")
    write_suite(project, NAMES, scenarios)
    suite = project.root / "scenarios/suite.yaml"
    suite.write_text(TOOLS + suite.read_text(encoding="utf-8"), encoding="utf-8")
    project.write("scenarios/mocks.py", MOCKS)
    done = project.run()
    assert done.code == 1, done.all
    return samples_of(project)


Samples = dict[str, dict[str, Any]]
GIVEN = ["some text", 7, {"sum": 3}, None, {"error": "no luck"}]
ANSWERS = {
    "text_sync": ["plain"] * 2,
    "text_async": ["plain"] * 2,
    "pieces": ["plain"] * 2,
    "pieces_async": ["some text!"] * 2,
    "one_argument": ["user said one", "user said two"],
    "message_only": ["as a message"] * 2,
    "PlainClass": ["turn 1", "turn 2"],
    "OnePerSample": ["one", "one, two"],
    "tool_reply": ["done"] * 2,
    "tool_message": ['sum {"sum": 3} and some text'] * 2,
    "observed_list": ["it is 42"] * 2,
    "observed_reply": ["it is 42"] * 2,
    "observed_reply_and_text": ["it is 42"] * 2,
    "observed_generator": ["it is 42"] * 2,
    "observed_parallel": ["all done"],
    # the value that a result stands for, also that of an error; where a call is made
    "ctx_values": [repr(GIVEN)] * 2,
    "ctx_values_sync": [repr([GIVEN[0], GIVEN[1], *GIVEN[3:]])] * 2,
    "ctx_gather": ["True"] * 2,
    "ctx_threads": ["True"] * 2,
    "ctx_sync_in_threads_of_async": [repr(["some text"] * 4)] * 2,
    "ctx_facts": [repr(["ctx_facts", turn, 0, True, ["add"]]) for turn in (0, 1)],
    # the limits of replies and of calls in a turn
    "fifty": ["done"],
    "thousand": ["done"],
}


@pytest.mark.parametrize(("name", "expected"), ANSWERS.items(), ids=ANSWERS)
def test_an_agent_gives_its_text(name: str, expected: list[str], samples: Samples) -> None:
    assert answers(samples[name]) == expected
    assert (samples[name]["verdict"], samples[name]["stop"]) == ("passed", "script_done")


def answers(sample: dict[str, Any]) -> list[str]:
    return [turn["agent"] for turn in sample["turns"]]


OWN_CALL = ("own", {"q": 1}, "42", True)
CALLS = {
    # the number of steps of the first turn, and its calls: name, arguments, result, whether it was observed
    "tool_message": (2, [("add", {"a": 1, "b": 2}, {"sum": 3}, False), ("text", {}, "some text", False)]),
    "observed_generator": (2, [OWN_CALL]),
    "observed_list": (2, [OWN_CALL]),
    "observed_reply": (2, [OWN_CALL]),
    "observed_reply_and_text": (2, [OWN_CALL]),
    "observed_parallel": (3, [("own", {}, result, True) for result in ("first", "second", "third")]),
    "three_rounds": (4, [("text", {}, "some text", False)] * 4),
    "text_sync": (1, []),
    "ctx_sync_in_threads_of_async": (2, [("text", {}, "some text", False)] * 4),
    "dict_arguments": (2, [("text", {"a": 1}, "some text", False)]),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_are_recorded_with_the_steps_that_they_take(name: str, samples: Samples) -> None:
    turns = samples[name]["turns"]
    for turn in turns:
        calls = [(c["name"], c["args"], c["result"], c["observed"]) for c in turn["tool_calls"]]
        assert (turn["steps"], calls) == CALLS[name]
    assert samples[name]["steps"] == len(turns) * CALLS[name][0]


def test_calls_through_ctx_are_recorded(samples: Samples) -> None:
    calls = samples["ctx_values"]["turns"][0]["tool_calls"]
    assert [c["name"] for c in calls] == ["text", "number", "add", "nothing", "broken"]
    assert not any(c["observed"] for c in calls)
    for name, count in (("ctx_gather", 20), ("ctx_threads", 8)):
        assert [len(turn["tool_calls"]) for turn in samples[name]["turns"]] == [count] * 2
    assert samples["ctx_gather"]["turns"][0]["steps"] == 2
    assert len(set(answers(samples["ctx_seed"]))) == 1


def test_usage_of_a_reply_is_counted_in_either_words(samples: Samples) -> None:
    keys = ("calls", "input_tokens", "output_tokens", "estimated")
    usage = samples["tool_reply"]["turns"][0]["usage"]
    assert [usage[key] for key in keys] == [2, 15, 3, False]
    assert [samples["usage_value"]["usage"][key] for key in keys] == [2, 14, 6, False]
    assert samples["text_sync"]["usage"]["estimated"] is True


def test_an_observed_call_of_the_wrong_tool_is_red(samples: Samples) -> None:
    sample = samples["observed_other_tool"]
    assert (sample["verdict"], failed_checks(sample)) == ("failed", {(None, "tool_calls")})
    assert sample["findings"] == []


def test_unreadable_arguments_are_kept_as_they_came(samples: Samples) -> None:
    (call,) = samples["bad_arguments"]["turns"][0]["tool_calls"]
    assert (call["args"], call["raw_args"]) == (None, '{"a": ')
    assert "error" in json.dumps(call["result"])


@pytest.mark.parametrize("name", ["fifty_one", "thousand_and_one"])
def test_an_endless_tool_loop_is_the_agents_fault(name: str, samples: Samples) -> None:
    red = samples[name]
    assert (red["verdict"], red["fault"], red["stop"]) == ("failed", "agent", "tool_loop")
    assert {name for _, name in failed_checks(red)} == {"no_error"}
    assert len(red["turns"]) == 1
