"""What a Python agent does is heard where its clients ask models; nobody has to say so."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import pytest
import yaml

from tests.support.kit import Done, Project, failed_checks
from tests.support.local_servers import LocalServer, hang
from tests.support.model_agents import AGENTS, SUITE, TOOLS, listed, made, model_server, target_of
from tests.support.model_dialects import ASKS, DIALECTS, agent_of, dialect_server


def play(
    project: Project,
    code: str,
    server: LocalServer,
    *,
    suite: str = SUITE,
    target: str = "agent.py:agent",
    **more: Any,
) -> Done:
    (project.root / "made.jsonl").unlink(missing_ok=True)
    project.agent(TOOLS + code)
    agent = {"name": "bot", "target": target, **more}
    project.write("agenteval.yaml", yaml.safe_dump({"agent": agent, "metrics": []}))
    project.scenarios(suite)
    return project.run(env={"MODEL_URL": f"{server.address}/v1"})


@pytest.mark.parametrize("where", ["here", "interpreter"])
@pytest.mark.parametrize("kind", AGENTS)
def test_red_with_a_bug_and_green_without_and_all_calls_are_the_agents_own(
    project: Project, kind: str, where: str
) -> None:
    more = {"interpreter": sys.executable} if where == "interpreter" else {}
    for has_bug in (False, True):
        with model_server(has_bug=has_bug) as server:
            done = play(project, AGENTS[kind], server, target=target_of(kind), **more)
        assert done.code == (1 if has_bug else 0), done.all
        assert listed(project) == made(project)
        sample = project.sample()
        assert failed_checks(sample) == ({(1, "tool_calls")} if has_bug else set())
        assert [len(turn["tool_calls"]) for turn in sample["turns"]] == [1, 2 if has_bug else 1]
        assert [turn["steps"] for turn in sample["turns"]] == [2, 2]
        for turn in sample["turns"]:
            usage = turn["usage"]
            assert (usage["calls"], usage["input_tokens"], usage["output_tokens"]) == (2, 20, 4)
            assert usage["estimated"] is False
            assert all(call["observed"] for call in turn["tool_calls"])


def test_two_conversations_at_once_keep_their_calls_apart(project: Project) -> None:
    """The first conversation waits within its turn until the second one has begun its own."""
    suite = """
    scenarios:
      - {id: one, turns: [{user: Where is ORD-1?, expect: &E {tool_calls: {match: strict, calls: [
          {name: get_order, args: {id: ORD-1}}]}}}]}
      - {id: two, turns: [{user: Where is ORD-3?, expect: {tool_calls: {match: strict, calls: [
          {name: get_order, args: {id: ORD-3}}]}}}]}
    """
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
    with model_server() as server:
        done = play(project, AGENTS["streamed"] + meeting, server, suite=suite)
    assert done.code == 0, done.all
    assert [
        c["args"]["id"] for id in ("one", "two") for c in project.sample(id)["turns"][0]["tool_calls"]
    ] == [
        "ORD-1",
        "ORD-3",
    ]


THREADED = """
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


@pytest.mark.parametrize("where", ["here", "interpreter"])
def test_a_request_from_a_thread_is_followed_where_the_turn_started_it(project: Project, where: str) -> None:
    more = {"interpreter": sys.executable} if where == "interpreter" else {}
    suite = "{id: a, turns: [Where is ORD-2?], expect: {tool_calls: {forbidden: [{name: refund}]}}}"
    with model_server(has_bug=True) as server:
        done = play(project, AGENTS["swallows"] + THREADED, server, suite=suite, **more)
        assert done.code == 1, done.all
        assert listed(project) == made(project)
        done = play(project, AGENTS["swallows"] + IN_A_THREAD_OF_ALL, server, suite=suite, **more)
    assert done.code == 3, done.all
    assert "came from a thread that agenteval cannot follow" in done.all


SECOND = "id: a\nturns:\n" + SUITE[SUITE.index("  - {user: And") :]


def test_calls_of_a_turn_that_broke_are_told_at_their_turn(project: Project) -> None:
    broken = AGENTS["async"].replace(
        "            return reply.content\n", "            raise ValueError('no')\n"
    )
    for has_bug in (True, False):
        with model_server(has_bug=has_bug) as server:
            assert play(project, broken, server, suite=SECOND).code == 1
        sample = project.sample()
        assert failed_checks(sample) == {(None, "no_error"), *([(0, "tool_calls")] if has_bug else [])}
        assert listed(project) == made(project)


def test_clients_of_mocks_and_judges_are_nobodys_calls(project: Project) -> None:
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
    suite = """
    id: a
    tools: {ask: {python: "../mocks.py:ask"}}
    turns: [Where is ORD-1?]
    expect:
      tool_calls: {match: strict, calls: [{name: ask}, {name: get_order}]}
      criteria: [It is friendly.]
    """
    with model_server(has_bug=True) as server:
        (project.root / "made.jsonl").unlink(missing_ok=True)
        project.agent(TOOLS + code)
        agent = {"name": "bot", "target": "agent.py:agent"}
        judge = {
            "model": "openai-compatible/m",
            "base_url": f"{server.address}/v1",
            "client": "sdk",
        }
        config = {"agent": agent, "metrics": [], "models": {"default": judge}}
        project.write("agenteval.yaml", yaml.safe_dump(config))
        project.scenarios(suite)
        done = project.run(env={"MODEL_URL": f"{server.address}/v1"})
    sample = project.sample()
    assert [c["name"] for c in sample["turns"][0]["tool_calls"]] == ["ask", "get_order"], done.all
    assert (None, "tool_calls") not in failed_checks(sample)
    assert "cannot follow" not in done.all


def test_of_an_agent_that_asks_no_model_nothing_is_known(project: Project) -> None:
    suite = "{id: a, turns: [Hi], expect: {tool_calls: {forbidden: [{name: refund}]}}}"
    with model_server() as server:
        done = play(project, "\ndef agent(messages):\n    return 'Hello.'\n", server, suite=suite)
    assert done.code == 3, done.all


OFFERED = """
client = OpenAI(**BASE)
TOOL = {"type": "function", "function": {"name": "refund", "parameters": {"type": "object"}}}

def ask(client, **more):
    said = [{"role": "user", "content": "Hi"}]
    return client.chat.completions.create(model="m", messages=said, tools=[TOOL], **more)

def agent(messages):
    %s
    return "Hello."
"""
FAILS = """try:
        ask(OpenAI(base_url="http://127.0.0.1:9/v1", api_key="k", max_retries=0))
    except Exception:
        pass"""


@pytest.mark.parametrize(
    ("asks", "code"),
    [("ask(client)", 0), (FAILS, 3), ("ask(client, stream=True).close()", 3)],
    ids=["answered", "failed", "stream that was not read"],
)
def test_tools_that_were_offered_where_no_answer_was_read_show_nothing(
    project: Project, asks: str, code: int
) -> None:
    suite = "{id: a, turns: [Hi], expect: {tool_calls: {forbidden: [{name: refund}]}}}"
    with model_server() as server:
        done = play(project, OFFERED % asks, server, suite=suite)
    assert done.code == code, done.all


def test_a_request_that_is_not_understood_leaves_calls_undecided(project: Project) -> None:
    code = """
client = OpenAI(**BASE)

def agent(messages):
    client.chat.completions.create(model="m", messages=messages)
    try:
        client.post("/threads/runs", cast_to=object, body={})
    except Exception:
        pass
    return "Hello."
"""
    suite = "{id: a, turns: [Hi ORD-1], expect: {tool_calls: {forbidden: [{name: refund}]}}}"
    with model_server() as server:
        done = play(project, code, server, suite=suite)
        assert done.code == 3, done.all
        assert "/threads/runs" in done.all
        done = play(project, code.replace("/threads/runs", "/embeddings"), server, suite=suite)
    assert done.code == 0, done.all


def test_calls_that_agenteval_answers_for_the_model_count_once(project: Project) -> None:
    """The agent hands the model's message on, and the scenario answers its calls; or it calls through ctx."""
    handed = """
client = OpenAI(**BASE)

def agent(messages):
    return client.chat.completions.create(model="m", messages=messages).choices[0].message
"""
    through = (
        AGENTS["async"]
        .replace("(messages):", "(messages, ctx):")
        .replace(
            "asyncio.to_thread(run, c.function.name, c.function.arguments)",
            "through(ctx, c.function.name, c.function.arguments)",
        )
        + """
async def through(ctx, name, arguments):
    return json.dumps(await ctx.call_tool(name, arguments))
"""
    )
    returned = AGENTS["class"].replace("return reply.content", "return list(self.messages)")
    world = "tools: {get_order: {returns: {id: '${args.id}'}}, refund: {returns: {refunded: '${args.id}'}}}\n"
    for code, target, has_world in (
        (handed, "agent", True),
        (through, "agent", True),
        (returned, "Agent.chat", False),
    ):
        for has_bug in (False, True):
            with model_server(has_bug=has_bug) as server:
                suite = SUITE + (world if has_world else "")
                done = play(project, code, server, suite=suite, target=f"agent.py:{target}")
            assert done.code == (1 if has_bug else 0), done.all
            names = [[c["name"] for c in turn["tool_calls"]] for turn in project.sample()["turns"]]
            assert names == [["get_order"], ["get_order", "refund"] if has_bug else ["get_order"]]


def test_with_intercepted_functions_each_call_counts_once(project: Project) -> None:
    code = (
        AGENTS["async"]
        .replace("asyncio.to_thread(run, c.function.name", "asyncio.to_thread(run2, c.function.name")
        .replace("messages=messages", "messages=messages, tools=OFFERED")
        + """
OFFERED = [{"type": "function", "function": {"name": "get_order", "parameters": {"type": "object"}}}]

def run2(name, arguments):
    return json.dumps({"get_order": get_order, "refund": refund}[name](**json.loads(arguments)))
"""
    )
    world = "tools: {get_order: {returns: {id: '${args.id}'}}}\n"
    for has_bug in (False, True):
        with model_server(has_bug=has_bug) as server:
            done = play(
                project, code, server, suite=SUITE + world, intercept={"get_order": "agent.py:get_order"}
            )
        assert done.code == (1 if has_bug else 0), done.all
        names = [[c["name"] for c in turn["tool_calls"]] for turn in project.sample()["turns"]]
        assert names == [["get_order"], ["get_order", "refund"] if has_bug else ["get_order"]]


def test_observe_openai_is_accepted_and_changes_nothing(project: Project) -> None:
    for more in ({}, {"observe": "openai"}):
        with model_server(has_bug=True) as server:
            done = play(project, AGENTS["async"], server, **more)
        assert done.code == 1, done.all
        assert failed_checks(project.sample()) == {(1, "tool_calls")}
        assert "observe" not in done.all
    write = "agent: {{name: bot, {agent}, observe: {observe}}}\nmetrics: []\n"
    target = "target: 'agent.py:agent'"
    for agent, observe, said in (
        ("endpoint: 'http://localhost:1/x'", "openai", "a Python agent that agenteval starts"),
        ("command: [x]", "openai", "name its target"),
        (target, "openia", "observe: 'openia' is not known — remove it"),
        (target, "{how: openai, port: 1}", "observe: openai has no port"),
    ):
        project.write("agenteval.yaml", write.format(agent=agent, observe=observe))
        done = project.call("validate")
        assert (done.code, said in done.all) == (2, True), done.all


def test_a_request_that_is_under_way_when_the_agent_answers_leaves_calls_undecided(project: Project) -> None:
    code = """
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
    suite = "{id: a, turns: [Hello], expect: {tool_calls: {forbidden: [{name: refund}]}}}"
    for wait, server, code_of in (("await asked", model_server(), 0), ("pass", LocalServer(hang()), 3)):
        with server:
            done = play(project, code.replace("WAIT", wait), server, suite=suite)
        assert done.code == code_of, done.all
    assert "was still pending when the agent answered" in done.all


def test_a_replayed_run_knows_as_much_of_the_calls_as_the_recorded_one(project: Project) -> None:
    unread = """
client = OpenAI(**BASE)

def agent(messages):
    client.chat.completions.create(model="m", messages=messages)
    try:
        client.post("/threads/runs", cast_to=object, body={})
    except Exception:
        pass
    return "Hello."
"""
    broken = AGENTS["async"].replace(
        "            return reply.content\n", "            raise ValueError('no')\n"
    )
    forbidden = "{id: a, turns: [Hi], expect: {tool_calls: {forbidden: [{name: refund}]}}}"
    for code, suite, ended in ((unread, forbidden, 3), (broken, SECOND, 1), (AGENTS["async"], SUITE, 0)):
        (project.root / "run.jsonl").unlink(missing_ok=True)
        with model_server(has_bug=ended == 1) as server:
            env = {"MODEL_URL": f"{server.address}/v1"}
            play(project, code, server, suite=suite)
            assert project.run("--record", "run.jsonl", env=env).code == ended
        recorded = failed_checks(project.sample()), listed(project)
        assert project.run("--replay", "run.jsonl", env=env).code == ended
        assert (failed_checks(project.sample()), listed(project)) == recorded


MOCKED = "tools: {get_order: {returns: {id: '${args.id}', status: mocked}}}\n"


def test_a_mocked_tool_that_a_plain_loop_ran_itself_leaves_it_undecided(project: Project) -> None:
    suite = "id: a\nturns: [Where is ORD-1?]\nexpect: {tool_calls: {calls: [{name: get_order}]}}\n" + MOCKED
    by_name = AGENTS["async"].replace("asyncio.to_thread(run,", "asyncio.to_thread(by_name,")
    by_name += """
def by_name(name, arguments):
    return json.dumps({"get_order": get_order, "refund": refund}[name](**json.loads(arguments)))
"""
    for more, code in (({}, 3), ({"intercept": {"get_order": "agent.py:get_order"}}, 0)):
        with model_server() as server:
            done = play(project, by_name, server, suite=suite, **more)
        assert done.code == code, done.all
        (call,) = project.sample()["turns"][0]["tool_calls"]
        assert call["observed"] is not bool(more)
        if not more:
            assert "the mock of 'get_order' did not answer" in done.all
            assert "intercept: {get_order: " in " ".join(done.all.split())


def test_the_form_of_an_answer_that_a_request_forces_is_no_call(project: Project) -> None:
    code = """
client = OpenAI(**BASE)
TOOLS = [{"type": "function", "function": {"name": "get_order", "parameters": {"type": "object"}}}]

def agent(question: str):
    forced = {"type": "function", "function": {"name": "get_order"}} if FORCED else "auto"
    asked = [{"role": "user", "content": question}]
    reply = client.chat.completions.create(model="m", messages=asked, tools=TOOLS, tool_choice=forced)
    return reply.choices[0].message.tool_calls[0].function.arguments
"""
    suite = "{id: a, turns: [Where is ORD-1?], expect: {limits: {tool_calls: 0}}}"
    for forced, ended in (("True", 0), ("False", 1)):
        with model_server() as server:
            done = play(project, code.replace("FORCED", forced), server, suite=suite)
        assert done.code == ended, done.all


def test_an_applications_own_requests_are_left_alone(project: Project) -> None:
    """The address alone makes no request a model's, nor does a list of messages."""
    code = """
import httpx2

client = OpenAI(**BASE)

def agent(messages):
    client.chat.completions.create(model="m", messages=messages, tools=[
        {"type": "function", "function": {"name": "refund", "parameters": {"type": "object"}}}])
    try:
        httpx2.post(os.environ["MODEL_URL"] + PATH, json=BODY)
    except httpx2.HTTPError:
        pass
    return "Hello."
"""
    suite = "{id: a, turns: [Hi], expect: {tool_calls: {forbidden: [{name: refund}]}, limits: {tokens: 12}}}"
    messages = '{"messages": [{"role": "user", "content": "Hi"}]'
    for path, body, ended in (
        ("/messages", messages + "}", 0),
        ("/messages", '{"messages": ["a mail"], "max_tokens": 1, "tools": []}', 0),
        ("/responses", '{"input": "Hi"}', 0),
        ("/chat", messages + ', "tools": []}', 0),
        ("/v2/chat", messages + ', "tools": [{"name": "refund"}]}', 3),
    ):
        with model_server() as server:
            asked = code.replace("PATH", repr(path)).replace("BODY", body)
            done = play(project, asked, server, suite=suite)
        assert done.code == ended, done.all
    assert "/v2/chat" in done.all


def test_the_messages_of_later_turns_have_no_calls_that_were_only_heard(project: Project) -> None:
    code = AGENTS["async"].replace(
        "    messages = list(messages)\n",
        "    assert all(isinstance(m['content'], str) and m['role'] != 'tool' for m in messages), messages\n"
        "    messages = list(messages)\n",
    )
    with model_server() as server:
        done = play(project, code, server)
    assert done.code == 0, done.all


def test_tokens_are_estimated_where_a_request_does_not_say(project: Project) -> None:
    code = AGENTS["streamed"]
    for told in (True, False):
        silent = (
            code
            if told
            else code
            + """
real = client.chat.completions.create
client.chat.completions.create = lambda **asked: real(**{**asked, "stream_options": None})
"""
        )
        with model_server() as server:
            done = play(project, silent, server)
        assert done.code == 0, done.all
        assert project.sample()["turns"][0]["usage"]["estimated"] is not told


# ── other vendors' interfaces ────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("how", ASKS)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_interfaces_of_other_vendors_are_heard(project: Project, dialect: str, how: str) -> None:
    for has_bug in (False, True):
        (project.root / "made.jsonl").unlink(missing_ok=True)
        project.agent(agent_of(dialect, how))
        project.config()
        project.scenarios(SUITE)
        with dialect_server(has_bug=has_bug) as server:
            done = project.run(env={"MODEL_URL": f"{server.address}/v1"})
        assert done.code == (1 if has_bug else 0), done.all
        sample = project.sample()
        assert failed_checks(sample) == ({(1, "tool_calls")} if has_bug else set())
        assert [turn["steps"] for turn in sample["turns"]] == [2, 2]
        names = [
            [(call["name"], call["args"]["id"]) for call in turn["tool_calls"]] for turn in sample["turns"]
        ]
        assert names[0] == [("get_order", "ORD-1")]
        assert names[1] == [("get_order", "ORD-2"), *([("refund", "ORD-2")] if has_bug else [])]
        for call, by_agent in zip(listed(project), made(project), strict=True):
            result = call["result"]
            assert (json.loads(result) if isinstance(result, str) else result) == json.loads(
                by_agent["result"]
            )
        for turn in sample["turns"]:
            usage = turn["usage"]
            assert (usage["calls"], usage["input_tokens"], usage["output_tokens"]) == (2, 20, 4)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_what_a_forked_process_asks_for_is_not_taken_for_nothing(project: Project) -> None:
    """A child inherits the observed client, and nobody hears what it asks."""
    code = next(code for code in AGENTS.values() if "\ndef agent(messages" in code)
    code += """
_in_parent = agent


def agent(messages):
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
    return _in_parent(messages)
"""
    with model_server(has_bug=False) as server:
        done = play(project, f"import os\n{code}", server)
    assert done.code == 3, done.all
    assert "forked a process" in done.all
