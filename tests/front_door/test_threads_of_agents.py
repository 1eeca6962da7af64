"""Threads that an agent starts by itself: whose calls are made in them is known, or nothing is judged."""

from __future__ import annotations

import sys

import pytest

from tests.support.kit import Project, failed_checks
from tests.support.toy import PLACES, install_toy

HEAD = """
import asyncio, contextvars, pathlib, queue, threading
from concurrent.futures import ThreadPoolExecutor
from toy import Tool

def _ran(name):
    with pathlib.Path("REAL").open("a") as log:
        log.write(name + "\\n")

def get_order(id: str):
    _ran("get_order")
    return {"status": "real"}

def cancel(id: str):
    _ran("cancel")
    return "real"

get_order, cancel = Tool(get_order), Tool(cancel)
all_began = threading.Barrier(4, timeout=30)

def work(id, meets=True):
    if meets:
        all_began.wait()  # all of the conversations at once
    status = get_order.run({"id": id})["status"]
    if id in BUGGY:
        cancel.run({"id": id})
    return f"{id} is {status}"

"""
KINDS = {
    "a thread": """
def agent(message: str) -> str:
    found = []
    thread = threading.Thread(target=lambda: found.append(work(message)))
    thread.start()
    thread.join()
    return found[0]
""",
    "a pool": """
pool = ThreadPoolExecutor(4)

async def agent(messages):
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(pool, work, messages[-1]["content"])
""",
    "map of a pool": """
def agent(message: str) -> str:
    with ThreadPoolExecutor(2) as pool:
        return [*pool.map(work, [message])][0]
""",
    "a loop": """
loops, lock = [], threading.Lock()

def started():  # in the first conversation, for all
    with lock:
        if not loops:
            loops.append(asyncio.new_event_loop())
            threading.Thread(target=loops[0].run_forever, daemon=True).start()
    return loops[0]

async def later(id):
    return work(id, meets=False)

def agent(message: str) -> str:
    all_began.wait()
    return asyncio.run_coroutine_threadsafe(later(message), started()).result(30)
""",
    "a queue with contexts": """
jobs, lock, threads = queue.Queue(), threading.Lock(), []

def serve():
    while True:
        run, id, done = jobs.get()
        done.put(run(work, id, False))

def agent(message: str) -> str:
    with lock:
        if not threads:
            threads.append(threading.Thread(target=serve, daemon=True))
            threads[0].start()
    all_began.wait()
    done = queue.Queue()
    jobs.put((contextvars.copy_context().run, message, done))
    return done.get(timeout=30)
""",
}
EACH = """
- id: "{id}"
  turns: ["{id}"]
  tools: {{get_order: {{returns: {{status: "shipped to {id}"}}}}, cancel: {{returns: ok}}}}
  expect:
    output: {{contains: ["{id} is shipped to {id}"]}}
    tool_calls:
      calls: [{{name: get_order, args: {{id: "{id}"}}, times: 1}}]
      forbidden: [{{name: cancel}}]
"""
IDS = ["A1", "B2", "C3", "D4"]


def shop(
    project: Project, agent: str, buggy: str = "", *, suite: str = "", more: str = "", at_once: int = 4
) -> None:
    install_toy(project)
    project.agent(HEAD + f"BUGGY = {buggy!r}.split()\n" + agent)
    project.scenarios(suite or "scenarios:\n" + "".join(EACH.format(id=each) for each in IDS))
    config = f"agent: {{name: bot, target: 'agent.py:agent', calls: all, timeout_s: 60{more}}}\n"
    project.config(f"{config}metrics: []\nagent_concurrency: {at_once}\n", target="")


def verdicts(project: Project) -> dict[str, str]:
    assert not (project.root / "REAL").exists()  # no real tool ran
    return {each["id"]: each["verdict"] for each in project.results()["scenarios"]}


@pytest.mark.parametrize("kind", KINDS)
def test_each_conversation_gets_its_own_answers(project: Project, kind: str) -> None:
    shop(project, KINDS[kind], buggy="C3")
    done = project.run()
    assert done.code == 1, done.all
    assert verdicts(project) == {"A1": "passed", "B2": "passed", "C3": "failed", "D4": "passed"}
    assert failed_checks(project.results()["scenarios"][2]["samples"][0]) == {(None, "tool_calls")}


QUEUE = """
jobs, lock, threads = queue.Queue(), threading.Lock(), []
ended = {id: threading.Event() for id in ("A1", "B2", "C3", "D4")}
all_answered = threading.Barrier(4, timeout=30)

def serve():
    while True:
        id, done = jobs.get()
        done.put(work(id, False))

def agent(message: str) -> str:
    if message == "A1":
        threads.append(threading.Thread(target=serve, daemon=True))
        threads[0].start()
    all_began.wait()
    done = queue.Queue()
    jobs.put((message, done))
    answer = done.get(timeout=30)
    all_answered.wait()
    %s
    ended[message].set()
    return answer
"""
ORDERS = {
    "the first ends last": "[each.wait(30) for id, each in ended.items() if message == 'A1' != id]",
    "the first ends first": "ended['A1'].wait(30) if message != 'A1' else None",
}


@pytest.mark.parametrize("order", ORDERS)
def test_a_thread_that_serves_other_conversations_leaves_all_undecided(project: Project, order: str) -> None:
    """Their calls are in the records of the first: without them the others would be green, or red."""
    forbidden = "tools: {get_order: {returns: {status: x}}}"
    forbidden += ", expect: {tool_calls: {forbidden: [{name: get_order}]}}"
    suite = "scenarios:\n" + "".join(f"- {{id: {each}, turns: [{each}], {forbidden}}}\n" for each in IDS)
    shop(project, QUEUE % ORDERS[order], suite=suite)
    done = project.run()
    found = verdicts(project)
    assert found.pop("A1") == "failed"  # what it recorded stands
    assert set(found.values()) == {"inconclusive"}, done.all
    flat = " ".join(done.all.split())
    assert all(fact in flat for fact in ("get_order", "thread", "contextvars.copy_context().run")), flat

    shop(project, QUEUE % ORDERS[order])
    done = project.run()
    assert done.code == 3, done.all
    assert set(verdicts(project).values()) == {"inconclusive"}


OUTLIVES = """
asked, called = threading.Event(), threading.Event()

def later():
    asked.wait(30)
    try:
        cancel.run({"id": "late"})
    finally:
        called.set()

def agent(messages):
    if len(messages) == 1:
        threading.Thread(target=later, daemon=True).start()
        return "One moment."
    asked.set()
    called.wait(30)
    return "Done."
"""


@pytest.mark.parametrize("where", PLACES)
def test_a_thread_that_outlives_its_turn_runs_nothing(project: Project, where: str) -> None:
    expect = "tools: {cancel: {returns: ok}}, expect: {tool_calls: {calls: [{name: cancel}]}}"
    shop(project, OUTLIVES, suite=f"{{id: a, turns: [Hi, Then], {expect}}}", more=where)
    done = project.run()
    assert done.code == 3, done.all
    assert verdicts(project) == {"a": "inconclusive"}
    assert all(fact in done.all for fact in ("cancel", "thread")), done.all


def test_a_thread_of_a_kept_process_is_of_none_of_its_later_conversations(project: Project) -> None:
    """The refusal may have ended the thread: the conversation after it has a process that is whole."""
    agent = QUEUE.replace('if message == "A1":', "if not threads:") % "pass"
    agent = agent.replace("    all_began.wait()\n", "").replace("    all_answered.wait()\n", "")
    agent = agent.replace("done.get(timeout=30)", "done.get(timeout=1)")
    shop(project, agent, more=f", interpreter: '{sys.executable}'", at_once=1)
    done = project.run()
    assert done.code == 3, done.all
    assert sorted(verdicts(project).values()) == ["inconclusive", "inconclusive", "passed", "passed"]
