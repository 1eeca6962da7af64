"""The calls of a Python agent are observed in what its clients ask models, without any configuration."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import Any

import pytest
import yaml

from tests.support.kit import Done, Project, failed_checks
from tests.support.local_servers import LocalServer, Wire, hang
from tests.support.model_agents import AGENTS, TOOLS, model
from tests.support.model_dialects import ASKS, DIALECTS, agent_of, dialect_answer

Json = dict[str, Any]
HERE: Json = {}
INTERPRETER: Json = {"interpreter": sys.executable}


def order(name: str) -> Json:
    return {"tool_calls": {"match": "strict", "calls": [{"name": "get_order", "args": {"id": name}}]}}


NO_REFUND: Json = {"tool_calls": {"forbidden": [{"name": "refund"}]}}


def second(name: str) -> Json:
    return {"user": f"And {name}?", "expect": {**NO_REFUND, "output": {"contains": [name]}}}


def shop_server() -> LocalServer:
    """A model for every client; it wants a refund of ORD-2, and of no other order."""
    as_openai = model(has_bug=True)

    def behave(wire: Wire) -> None:
        path = wire.request.path
        if path.startswith("/hangs"):
            hang()(wire)
        elif path.startswith("/v1/") and not path.endswith("/messages"):
            as_openai(wire.request)(wire)
        else:
            dialect_answer(wire.request, has_bug=True)(wire)

    return LocalServer(behave)


@dataclass(frozen=True)
class Shop:
    """An agent in a folder of its own, and the tools that its scenarios have."""

    code: str
    target: str = "agent"
    more: Json = field(default_factory=dict)
    tools: Json = field(default_factory=dict)

    def write(self, project: Project, name: str) -> Json:
        """Its configuration, with ``HERE`` as its folder."""
        project.write(f"{name}/agent.py", self.code)
        more = json.loads(json.dumps(self.more).replace("HERE", name))
        return {"target": f"{name}/agent.py:{self.target}", **more}


def play(
    project: Project, shops: Mapping[str, Shop], scenarios: list[Json], *arguments: str, **config: Any
) -> Done:
    agents = {name: shop.write(project, name) for name, shop in shops.items()}
    settings = {"agents": agents, "metrics": [], "agent_concurrency": 1, **config}
    project.write("agenteval.yaml", yaml.safe_dump(settings))
    project.scenarios(json.dumps({"scenarios": scenarios}))
    with shop_server() as server:
        return project.run(*arguments, env={"MODEL_URL": f"{server.address}/v1"})


def calls_of(sample: Json) -> list[Json]:
    calls = (call for turn in sample["turns"] for call in turn["tool_calls"])
    return [{key: call[key] for key in ("name", "args", "result")} for call in calls]


def made(project: Project, name: str) -> list[Json]:
    """The agent's own record of what it called."""
    path = project.root / name / "made.jsonl"
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []


def same_calls(listed: list[Json], recorded: list[Json]) -> bool:
    """Parallel calls are recorded as they end; a result may be listed as JSON or as its text."""

    def plain(calls: list[Json]) -> list[str]:
        texts = ((call["result"], call) for call in calls)
        return sorted(
            json.dumps(
                {**call, "result": json.loads(text) if isinstance(text, str) else text}, sort_keys=True
            )
            for text, call in texts
        )

    return plain(listed) == plain(recorded)


# ── a bug is red and its fix green, whatever the agent looks like ────────────────────────────────

HANDS_ON = """
client = OpenAI(**BASE)

def agent(messages):
    return client.chat.completions.create(model="m", messages=messages).choices[0].message
"""
CALLS_THROUGH_CTX = (
    AGENTS["async"]
    .replace("(messages):", "(messages, ctx):")
    .replace("asyncio.to_thread(run, c", "through(ctx, c")
    + """
async def through(ctx, name, arguments):
    return json.dumps(await ctx.call_tool(name, json.loads(arguments)))
"""
)
RETURNS_CALLS = AGENTS["class"].replace("return reply.content", "return list(self.messages)")
CALLS_ITS_FUNCTIONS = (
    AGENTS["async"].replace("asyncio.to_thread(run,", "asyncio.to_thread(by_name,")
    + """
def by_name(name, arguments):
    return json.dumps({"get_order": get_order, "refund": refund}[name](**json.loads(arguments)))
"""
)
CALLS_INTERCEPTED = (
    CALLS_ITS_FUNCTIONS.replace("messages=messages", "messages=messages, tools=OFFERED")
    + """
OFFERED = [{"type": "function", "function": {"name": "get_order", "parameters": {"type": "object"}}}]
"""
)
SEES_NO_OBSERVED_CALLS = AGENTS["async"].replace(
    "    messages = list(messages)\n",
    "    assert all(isinstance(m['content'], str) and m['role'] != 'tool' for m in messages), messages\n"
    "    messages = list(messages)\n",
)
WITHOUT_USAGE = (
    AGENTS["streamed"]
    + """
real = client.chat.completions.create
client.chat.completions.create = lambda **asked: real(**{**asked, "stream_options": None})
"""
)
INTERCEPTS_IT = {"intercept": {"get_order": "HERE/agent.py:get_order"}}
GET_ORDER = {"get_order": {"returns": {"id": "${args.id}"}}}
WORLD = {**GET_ORDER, "refund": {"returns": {"refunded": "${args.id}"}}}


def plain(kind: str, more: Json) -> Shop:
    return Shop(TOOLS + AGENTS[kind], "Agent.chat" if kind == "class" else "agent", more)


OBSERVED = {
    **{kind: plain(kind, HERE) for kind in AGENTS},
    **{f"{kind}-interpreter": plain(kind, INTERPRETER) for kind in AGENTS},
    **{f"{dialect}-{how}": Shop(agent_of(dialect, how)) for dialect in DIALECTS for how in ASKS},
    "explicit": plain("async", {"observe": "openai"}),
    "without-usage": Shop(TOOLS + WITHOUT_USAGE),
    "history": Shop(TOOLS + SEES_NO_OBSERVED_CALLS),
}
"""Agents that call their tools themselves, which is seen only in their requests."""
ANSWERED = {
    "handed-on": Shop(TOOLS + HANDS_ON, tools=WORLD),
    "through-ctx": Shop(TOOLS + CALLS_THROUGH_CTX, tools=WORLD),
    "returned": Shop(TOOLS + RETURNS_CALLS, "Agent.chat"),
    "intercepted": Shop(
        TOOLS + CALLS_INTERCEPTED,
        more=INTERCEPTS_IT,
        tools=GET_ORDER,
    ),
}
"""Agents whose calls are in their requests and known in another way, too."""
SHOPS = OBSERVED | ANSWERED


@pytest.fixture(scope="module")
def shops(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project(tmp_path_factory.mktemp("shops"))
    scenarios = [
        {
            "id": f"{name} {color}",
            "agent": name,
            "turns": [{"user": "Where is ORD-1?", "expect": order("ORD-1")}, second(last)],
            "tools": shop.tools,
        }
        for name, shop in SHOPS.items()
        for color, last in (("red", "ORD-2"), ("green", "ORD-3"))
    ]
    done = play(project, SHOPS, scenarios)
    assert done.code == 1, done.all
    assert "observe" not in done.all  # nothing to say about a key that changes nothing
    return project


@pytest.mark.parametrize("name", SHOPS)
def test_a_bug_is_red_at_its_turn_and_each_call_counts_once(shops: Project, name: str) -> None:
    red, green = (shops.sample(f"{name} {color}") for color in ("red", "green"))
    assert (red["verdict"], failed_checks(red)) == ("failed", {(1, "tool_calls")})
    assert (green["verdict"], failed_checks(green)) == ("passed", set())
    for sample, last in ((red, ["get_order", "refund"]), (green, ["get_order"])):
        assert [[c["name"] for c in turn["tool_calls"]] for turn in sample["turns"]] == [["get_order"], last]
    if name in OBSERVED:
        assert_observed(shops, name, [red, green])


def assert_observed(shops: Project, name: str, samples: list[Json]) -> None:
    assert same_calls([call for sample in samples for call in calls_of(sample)], made(shops, name))
    for turn in (turn for sample in samples for turn in sample["turns"]):
        assert turn["steps"] == 2
        assert all(call["observed"] for call in turn["tool_calls"])
        usage = turn["usage"]
        assert usage["estimated"] is (name == "without-usage")
        if not usage["estimated"]:
            assert (usage["calls"], usage["input_tokens"], usage["output_tokens"]) == (2, 20, 4)


# ── what is known where requests do not show everything ──────────────────────────────────────────

ASKS_NO_MODEL = "\ndef agent(messages):\n    return 'Hello.'\n"
OFFERED = """
client = OpenAI(**BASE)
TOOL = {"type": "function", "function": {"name": "refund", "parameters": {"type": "object"}}}

def ask(client, **more):
    asked = [{"role": "user", "content": "Hi"}]
    return client.chat.completions.create(model="m", messages=asked, tools=[TOOL], **more)

def agent(messages):
    try:
        ASK
    except Exception:
        pass
    return "Hello."
"""
NOBODY = 'OpenAI(base_url="http://127.0.0.1:9/v1", api_key="k", max_retries=0)'
POSTS = """
client = OpenAI(**BASE)

def agent(messages):
    client.chat.completions.create(model="m", messages=messages)
    try:
        client.post("PATH", cast_to=object, body={})
    except Exception:
        pass
    return "Hello."
"""
HAS_A_REQUEST_UNDER_WAY = """
import asyncio

from openai import DefaultAsyncHttpxClient

sent, kept = asyncio.Event(), []

async def note(request):
    sent.set()

client = AsyncOpenAI(**BASE, http_client=DefaultAsyncHttpxClient(event_hooks={"request": [note]}))

async def agent(messages):
    tools = [{"type": "function", "function": {"name": "refund", "parameters": {"type": "object"}}}]
    request = client.chat.completions.create(model="m", messages=messages, tools=tools)
    asked = asyncio.ensure_future(request)
    kept.append(asked)
    await sent.wait()
    WAIT
    return "Hello."
"""
HANGS = 'BASE["base_url"] = BASE["base_url"].replace("/v1", "/hangs")\n'
FORCES_ITS_FORM = """
client = OpenAI(**BASE)
TOOLS = [{"type": "function", "function": {"name": "get_order", "parameters": {"type": "object"}}}]

def agent(question: str):
    forced = {"type": "function", "function": {"name": "get_order"}} if FORCED else "auto"
    asked = [{"role": "user", "content": question}]
    reply = client.chat.completions.create(model="m", messages=asked, tools=TOOLS, tool_choice=forced)
    return reply.choices[0].message.tool_calls[0].function.arguments
"""
HAS_AN_APPLICATION = """
import httpx2

client = OpenAI(**BASE)

def agent(messages):
    client.chat.completions.create(model="m", messages=messages, tools=[
        {"type": "function", "function": {"name": "refund", "parameters": {"type": "object"}}}])
    try:
        httpx2.post(os.environ["MODEL_URL"] + "PATH", json=BODY)
    except httpx2.HTTPError:
        pass
    return "Hello."
"""
BREAKS = AGENTS["async"].replace("            return reply.content\n", "            raise ValueError('no')\n")
IN_A_POOL = """
import concurrent.futures

real = agent

def agent(messages):
    with concurrent.futures.ThreadPoolExecutor() as pool:
        return pool.submit(real, messages).result()
"""
IN_A_THREAD_OF_ALL = """
import queue, threading

real = agent
asked, answered = queue.Queue(), queue.Queue()

def work():
    while True:
        answered.put(real(asked.get()))

threading.Thread(target=work, daemon=True).start()

def agent(messages):
    asked.put(messages)
    return answered.get()
"""
IN_A_FORK = """
_in_parent = agent

def agent(messages):
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
    return _in_parent(messages)
"""
HI = {"user": "Hi", "expect": NO_REFUND}
ORDERED = {"user": "Hi ORD-1", "expect": NO_REFUND}
FEW_TOKENS = {"user": "Hi", "expect": {**NO_REFUND, "limits": {"tokens": 12}}}
WHERE = {"user": "Where is ORD-1?", "expect": order("ORD-1")}
REFUNDED = {"user": "Where is ORD-2?", "expect": NO_REFUND}
NO_CALL = {"user": "Where is ORD-1?", "expect": {"limits": {"tool_calls": 0}}}
MOCKED = {"get_order": {"returns": {"id": "${args.id}", "status": "mocked"}}}
CHAT = '"messages": [{"role": "user", "content": "Hi"}]'


def posts(path: str) -> str:
    return POSTS.replace("PATH", path)


def sends(wait: str) -> str:
    return HAS_A_REQUEST_UNDER_WAY.replace("WAIT", wait)


def application(path: str, body: str) -> str:
    return HAS_AN_APPLICATION.replace("PATH", path).replace("BODY", body)


@dataclass(frozen=True)
class Row:
    """A conversation of one turn and what is known of it; ``named`` stands in the reason."""

    code: str
    turn: Json
    verdict: str
    named: tuple[str, ...] = ()
    failed: Set[tuple[int | None, str]] = frozenset()
    more: Json = field(default_factory=dict)
    tools: Json = field(default_factory=dict)


CALL_FAILED = {(0, "tool_calls")}
BROKE: set[tuple[int | None, str]] = {(None, "no_error")}
SWALLOWS = AGENTS["swallows"]
ROWS = {
    "no model was asked": Row(ASKS_NO_MODEL, HI, "inconclusive"),
    "offered and answered": Row(OFFERED.replace("ASK", "ask(client)"), HI, "passed"),
    "offered and failed": Row(OFFERED.replace("ASK", f"ask({NOBODY})"), HI, "inconclusive"),
    "unread stream": Row(OFFERED.replace("ASK", "ask(client, stream=True).close()"), HI, "inconclusive"),
    "unknown request": Row(posts("/threads/runs"), ORDERED, "inconclusive", ("/threads/runs",)),
    "request without calls": Row(posts("/embeddings"), ORDERED, "passed"),
    "pending request": Row(HANGS + sends("pass"), HI, "inconclusive", ("pending",)),
    "awaited request": Row(sends("await asked"), HI, "passed"),
    "forced form of an answer": Row(FORCES_ITS_FORM.replace("FORCED", "True"), NO_CALL, "passed"),
    "call that was not forced": Row(
        FORCES_ITS_FORM.replace("FORCED", "False"), NO_CALL, "failed", failed={(0, "limits.tool_calls")}
    ),
    "mails": Row(application("/messages", f"{{{CHAT}}}"), FEW_TOKENS, "passed"),
    "mails with tools": Row(
        application("/messages", '{"messages": ["a mail"], "max_tokens": 1, "tools": []}'),
        FEW_TOKENS,
        "passed",
    ),
    "survey": Row(application("/responses", '{"input": "Hi"}'), FEW_TOKENS, "passed"),
    "chat of people": Row(application("/chat", f'{{{CHAT}, "tools": []}}'), FEW_TOKENS, "passed"),
    "chat that offers a tool": Row(
        application("/v2/chat", f'{{{CHAT}, "tools": [{{"name": "refund"}}]}}'),
        FEW_TOKENS,
        "inconclusive",
        ("/v2/chat",),
    ),
    "agent that broke after a bug": Row(BREAKS, second("ORD-2"), "failed", failed=CALL_FAILED | BROKE),
    "agent that broke": Row(BREAKS, second("ORD-3"), "failed", failed=BROKE),
    "mocked tool that ran": Row(CALLS_ITS_FUNCTIONS, WHERE, "inconclusive", ("'get_order'",), tools=MOCKED),
    "intercepted tool": Row(CALLS_ITS_FUNCTIONS, WHERE, "passed", more=INTERCEPTS_IT, tools=MOCKED),
    "correct": Row(AGENTS["async"], WHERE, "passed"),
    **{
        f"{name}, {where}": row
        for where, more in (("here", HERE), ("interpreter", INTERPRETER))
        for name, row in {
            "pool of the turn": Row(SWALLOWS + IN_A_POOL, REFUNDED, "failed", (), CALL_FAILED, more),
            "thread of all": Row(
                SWALLOWS + IN_A_THREAD_OF_ALL, REFUNDED, "inconclusive", ("thread",), more=more
            ),
        }.items()
    },
}
if hasattr(os, "fork"):
    ROWS["fork"] = Row(AGENTS["streamed"] + IN_A_FORK, WHERE, "inconclusive", ("fork",))


def folder(row: str) -> str:
    return row.replace(" ", "_").replace(",", "")


@pytest.fixture(scope="module")
def limits_of_observation(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, Done]:
    """All rows, one conversation after the other, and the same run replayed as ``replayed.json``."""
    project = Project(tmp_path_factory.mktemp("limits"))
    agents = {folder(name): Shop(TOOLS + row.code, more=row.more) for name, row in ROWS.items()}
    scenarios = [
        {"id": name, "agent": folder(name), "turns": [row.turn], "tools": row.tools}
        for name, row in ROWS.items()
    ]
    done = play(project, agents, scenarios, "--record", "run.jsonl")
    assert done.code == 1, done.all
    again = project.call("run", "--replay", "run.jsonl", "--report", "json=replayed.json")
    assert again.code == 1, again.all
    return project, done


@pytest.mark.parametrize("name", ROWS)
def test_what_requests_show_decides_and_no_more(
    limits_of_observation: tuple[Project, Done], name: str
) -> None:
    project, _ = limits_of_observation
    row = ROWS[name]
    sample = project.sample(name)
    assert (sample["verdict"], failed_checks(sample)) == (row.verdict, row.failed), sample["reason"]
    assert all(fact in sample["reason"] for fact in row.named), sample["reason"]
    if not row.tools and made(project, folder(name)):
        assert row.verdict == "inconclusive" or same_calls(calls_of(sample), made(project, folder(name)))


def test_a_replayed_run_knows_as_much_of_the_calls_as_the_recorded_one(
    limits_of_observation: tuple[Project, Done],
) -> None:
    project, _ = limits_of_observation

    def known(name: str) -> dict[str, Any]:
        scenarios = json.loads((project.root / name).read_text("utf-8"))["scenarios"]
        return {
            scenario["id"]: (sample["verdict"], failed_checks(sample), calls_of(sample))
            for scenario in scenarios
            for sample in scenario["samples"]
        }

    assert known("replayed.json") == known("results.json")


def test_a_mocked_tool_that_a_plain_loop_ran_is_observed_and_an_intercepted_one_is_answered(
    limits_of_observation: tuple[Project, Done],
) -> None:
    project, done = limits_of_observation
    assert "intercept: {get_order: " in " ".join(done.all.split())
    for name, is_observed in (("mocked tool that ran", True), ("intercepted tool", False)):
        (call,) = project.sample(name)["turns"][0]["tool_calls"]
        assert call["observed"] is is_observed


# ── several conversations, several clients ───────────────────────────────────────────────────────


def test_two_conversations_at_once_keep_their_calls_apart(project: Project) -> None:
    """The first conversation waits within its turn until the second one has begun its own."""
    meeting = """
import threading
met = threading.Barrier(2, timeout=30)
real = agent

def agent(messages):
    met.wait()
    answer = "".join(real(messages))
    met.wait()
    return answer
"""
    scenarios = [
        {"id": name, "agent": "a", "turns": [{"user": f"Where is {name}?", "expect": order(name)}]}
        for name in ("ORD-1", "ORD-3")
    ]
    done = play(project, {"a": Shop(TOOLS + AGENTS["streamed"] + meeting)}, scenarios, agent_concurrency=2)
    assert done.code == 0, done.all
    for name in ("ORD-1", "ORD-3"):
        assert [call["args"]["id"] for call in calls_of(project.sample(name))] == [name]


def test_requests_of_mocks_and_judges_are_no_calls_of_the_agent(project: Project) -> None:
    """agenteval's own models may be asked by the same package in the same process, and so may a mock."""
    code = (
        AGENTS["async"]
        .replace("async def agent(messages):", "async def agent(messages, ctx):")
        .replace("    while True:", "    await ctx.call_tool('ask', {})\n    while True:")
    )
    project.write(
        "mocks.py",
        """
        import os
        from openai import OpenAI

        def ask(args):
            client = OpenAI(base_url=os.environ["MODEL_URL"], api_key="none", max_retries=0)
            messages = [{"role": "user", "content": "refund ORD-2"}]
            client.chat.completions.create(model="m", messages=messages)
            return "asked"
        """,
    )
    expect = {
        "tool_calls": {"match": "strict", "calls": [{"name": "ask"}, {"name": "get_order"}]},
        "criteria": ["It is friendly."],
    }
    tools = {"ask": {"python": "../mocks.py:ask"}}
    scenario = {"id": "a", "agent": "a", "turns": ["Where is ORD-1?"], "tools": tools, "expect": expect}
    judge = {"model": "openai-compatible/m", "base_url": "${MODEL_URL}", "client": "sdk"}
    done = play(project, {"a": Shop(TOOLS + code)}, [scenario], models={"default": judge})
    sample = project.sample()
    assert [call["name"] for call in calls_of(sample)] == ["ask", "get_order"], done.all
    (calls,) = (check for check in sample["checks"] if check["name"] == "tool_calls")
    assert calls["passed"] is True, calls


@pytest.mark.parametrize(
    ("agent", "facts"),
    [
        ("endpoint: 'http://localhost:1/x', observe: openai", ("observe: openai", "Python")),
        ("command: [x], observe: openai", ("observe: openai", "target")),
        ("target: 'agent.py:agent', observe: openia", ("observe", "'openia'")),
        ("target: 'agent.py:agent', observe: {how: openai, port: 1}", ("observe: openai", "port")),
    ],
    ids=["endpoint", "command", "unknown", "port"],
)
def test_observe_is_refused_where_it_cannot_work(
    project: Project, agent: str, facts: tuple[str, ...]
) -> None:
    project.write("agenteval.yaml", f"agent: {{name: bot, {agent}}}\nmetrics: []\n")
    project.call("validate").refuses("agenteval.yaml:1", *facts)
