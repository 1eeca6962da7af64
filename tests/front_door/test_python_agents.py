"""Python agents through the command line: every return style, ``ctx``, steps, observed calls, limits."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.kit import Project, failed_checks

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


def text_sync(messages, ctx):
    return "plain"


async def text_async(messages, ctx):
    return "plain"


def pieces(messages):
    yield "pla"
    yield "in"


async def pieces_async(messages, ctx):
    yield await ctx.call_tool("text", {})
    yield "!"


def observed_generator(messages):
    yield from own_run()


def one_argument(messages):
    return "user said " + messages[-1]["content"]


def message_only(messages):
    return {"role": "assistant", "content": "as a message"}


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


def observed_list(messages, ctx):
    return own_run()


def observed_reply(messages, ctx):
    return AgentReply(messages=own_run(), usage={"input_tokens": 1, "output_tokens": 1})


def observed_reply_and_text(messages, ctx):
    return AgentReply(text="it is 42", messages=own_run())


def observed_other_tool(messages, ctx):
    return own_run(name="other")


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


async def ctx_seed(messages, ctx):
    return str(ctx.seed)


async def three_rounds(messages, ctx):
    await ctx.call_tool("text", {})
    await asyncio.gather(ctx.call_tool("text", {}), ctx.call_tool("text", {}))
    await ctx.call_tool("text", {})
    return "done"


def bad_arguments(messages, ctx):
    if not since_user(messages):
        return asking(call("text", '{"a": '))
    return "recovered"


def dict_arguments(messages, ctx):
    if not since_user(messages):
        return asking(call("text", {"a": 1}))
    return "fine"


def fifty(messages, ctx):
    return asking(call("text")) if len(since_user(messages)) < 2 * 50 else "done"


def fifty_one(messages, ctx):
    return asking(call("text")) if len(since_user(messages)) < 2 * 51 else "done"


async def thousand(messages, ctx):
    for _ in range(1000):
        await ctx.call_tool("text", {})
    return "done"


async def thousand_and_one(messages, ctx):
    for _ in range(1001):
        await ctx.call_tool("text", {})
    return "done"
"""

NAMES = [
    line.split("(")[0].split()[-1].rstrip(":")
    for line in AGENTS.splitlines()
    if line.startswith(("def ", "async def ", "class "))
]
NAMES = [name for name in NAMES if name not in {"call", "asking", "since_user", "own_run"}]

LONG = ("fifty", "fifty_one", "thousand", "thousand_and_one")

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


def suite() -> str:
    """Loops of very many calls are played for one turn only."""
    entries = [
        f"  - {{id: {name}, agent: {name}, turns: {'[one]' if name in LONG else '[one, two]'}}}"
        for name in NAMES
        if not name.startswith("observed")
    ]
    return TOOLS + "scenarios:\n" + "\n".join(entries)


def observed() -> str:
    """Agents that run their own tools: no ``tools:`` here, and no ``unmocked_tools``."""
    expect = "{tool_calls: {match: strict, calls: [{name: own, args: {q: 1}}, {name: own, args: {q: 1}}]}}"
    entries = [
        f"  - {{id: {name}, name: {name}, agent: {name}, turns: [one, two], expect: {expect}}}"
        for name in NAMES
        if name.startswith("observed") and name != "observed_parallel"
    ]
    entries.append(
        "  - {id: observed_parallel, name: x, agent: observed_parallel, turns: [one], checks: none}"
    )
    return "scenarios:\n" + "\n".join(entries)


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """The sample of each agent, all run at once in one process."""
    project = Project(tmp_path_factory.mktemp("agents"))
    project.agent(AGENTS)
    agents = "".join(f"  {name}: {{target: 'agent.py:{name}', timeout_s: 30}}\n" for name in NAMES)
    project.config(f"agents:\n{agents}", target="agent.py:text_sync")
    project.scenarios(suite(), "scenarios/suite.yaml")
    project.scenarios(observed(), "scenarios/observed.yaml")
    project.write("scenarios/mocks.py", MOCKS)
    done = project.run()
    assert done.code == 1, done.all
    return {s["id"]: s["samples"][0] for s in project.results()["scenarios"]}


Samples = dict[str, dict[str, Any]]


def answers(sample: dict[str, Any]) -> list[str]:
    return [turn["agent"] for turn in sample["turns"]]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("text_sync", ["plain", "plain"]),
        ("text_async", ["plain", "plain"]),
        ("pieces", ["plain", "plain"]),
        ("pieces_async", ["some text!", "some text!"]),
        ("one_argument", ["user said one", "user said two"]),
        ("message_only", ["as a message"] * 2),
        ("PlainClass", ["turn 1", "turn 2"]),
        ("OnePerSample", ["one", "one, two"]),
        ("tool_reply", ["done"] * 2),
        ("observed_list", ["it is 42"] * 2),
        ("observed_reply", ["it is 42"] * 2),
        ("observed_reply_and_text", ["it is 42"] * 2),
    ],
)
def test_each_return_style_gives_its_text(name: str, expected: list[str], samples: Samples) -> None:
    assert answers(samples[name]) == expected
    assert (samples[name]["verdict"], samples[name]["stop"]) == ("passed", "script_done")


def test_tool_calls_of_a_message_are_resolved_and_the_agent_called_again(samples: Samples) -> None:
    turn = samples["tool_message"]["turns"][0]
    assert [(c["name"], c["args"], c["result"], c["observed"]) for c in turn["tool_calls"]] == [
        ("add", {"a": 1, "b": 2}, {"sum": 3}, False),
        ("text", {}, "some text", False),
    ]
    assert turn["steps"] == 2
    assert turn["agent"].startswith("sum {")
    assert turn["agent"].endswith("some text")


def test_usage_of_a_reply_is_counted_in_either_words(samples: Samples) -> None:
    usage = samples["tool_reply"]["turns"][0]["usage"]
    assert (usage["calls"], usage["input_tokens"], usage["output_tokens"], usage["estimated"]) == (
        2,
        15,
        3,
        False,
    )
    total = samples["usage_value"]["usage"]
    assert (total["calls"], total["input_tokens"], total["output_tokens"], total["estimated"]) == (
        2,
        14,
        6,
        False,
    )
    assert samples["text_sync"]["usage"]["estimated"] is True


@pytest.mark.parametrize(
    "name", ["observed_generator", "observed_list", "observed_reply", "observed_reply_and_text"]
)
def test_observed_calls_are_judged_like_any_other_and_counted_once(name: str, samples: Samples) -> None:
    for turn in samples[name]["turns"]:
        (call,) = turn["tool_calls"]
        assert (call["name"], call["args"], call["result"], call["observed"]) == ("own", {"q": 1}, "42", True)
        assert turn["steps"] == 2


def test_an_observed_call_of_the_wrong_tool_is_red(samples: Samples) -> None:
    sample = samples["observed_other_tool"]
    assert (sample["verdict"], failed_checks(sample)) == ("failed", {(None, "tool_calls")})
    assert sample["findings"] == []


def test_observed_calls_made_at_once_are_one_round_with_their_own_results(samples: Samples) -> None:
    (turn,) = samples["observed_parallel"]["turns"]
    assert [c["result"] for c in turn["tool_calls"]] == ["first", "second", "third"]
    assert (turn["steps"], turn["agent"]) == (3, "all done")
    assert samples["observed_parallel"]["verdict"] == "passed"


def test_ctx_gives_the_value_that_a_result_stands_for_and_does_not_raise(samples: Samples) -> None:
    value = ["some text", 7, {"sum": 3}, None, {"error": "no luck"}]
    assert answers(samples["ctx_values"]) == [repr(value)] * 2
    assert answers(samples["ctx_values_sync"]) == [repr(["some text", 7, None, {"error": "no luck"}])] * 2
    calls = samples["ctx_values"]["turns"][0]["tool_calls"]
    assert [c["name"] for c in calls] == ["text", "number", "add", "nothing", "broken"]
    assert not any(c["observed"] for c in calls)


@pytest.mark.parametrize(
    ("name", "calls", "answer"),
    [
        ("ctx_gather", 20, "True"),
        ("ctx_threads", 8, "True"),
        ("ctx_sync_in_threads_of_async", 4, repr(["some text"] * 4)),
    ],
)
def test_ctx_is_safe_in_concurrent_calls(name: str, calls: int, answer: str, samples: Samples) -> None:
    for turn in samples[name]["turns"]:
        assert turn["agent"] == answer
        assert len(turn["tool_calls"]) == calls


def test_ctx_tells_where_it_is(samples: Samples) -> None:
    assert answers(samples["ctx_facts"]) == [repr(["ctx_facts", turn, 0, True, ["add"]]) for turn in (0, 1)]
    assert len(set(answers(samples["ctx_seed"]))) == 1


def test_steps_are_rounds_plus_one(samples: Samples) -> None:
    (turn, _) = samples["three_rounds"]["turns"]
    assert (turn["steps"], len(turn["tool_calls"])) == (4, 4)
    assert samples["three_rounds"]["steps"] == 8
    assert samples["text_sync"]["turns"][0]["steps"] == 1
    assert samples["ctx_gather"]["turns"][0]["steps"] == 2


def test_unreadable_arguments_are_kept_as_they_came(samples: Samples) -> None:
    (call,) = samples["bad_arguments"]["turns"][0]["tool_calls"]
    assert (call["args"], call["raw_args"]) == (None, '{"a": ')
    assert "error" in json.dumps(call["result"])
    (call,) = samples["dict_arguments"]["turns"][0]["tool_calls"]
    assert call["args"] == {"a": 1}


@pytest.mark.parametrize(("good", "bad"), [("fifty", "fifty_one"), ("thousand", "thousand_and_one")])
def test_an_endless_tool_loop_is_the_agents_fault(good: str, bad: str, samples: Samples) -> None:
    assert (samples[good]["verdict"], samples[good]["stop"]) == ("passed", "script_done")
    red = samples[bad]
    assert (red["verdict"], red["fault"], red["stop"]) == ("failed", "agent", "tool_loop")
    assert {name for _, name in failed_checks(red)} == {"no_error"}
    assert len(red["turns"]) == 1
