"""A target whose import runs the agent: what was called is reported, and no tool of the suite runs."""

from __future__ import annotations

import pytest

from tests.support.kit import Done, Project
from tests.support.toy import PLACES, install_toy

AGENT = """
import pathlib, threading
from toy import Tool

def _ran(name):
    with pathlib.Path("REAL").open("a") as log:
        log.write(name + "\\n")

def get_order(id: str):
    _ran("get_order")
    return {"status": "real"}

def audit(text: str):
    _ran("audit")
    return "noted"

get_order, audit = Tool(get_order), Tool(audit)

def ask(message):
    audit.run({"text": message})
    return f"It is {get_order.run({'id': message})['status']}."

def agent(message: str) -> str:
    return ask(message)

"""
RUNS = """
def main():
    try:
        print(ask("ORD-0"), get_order.run({"id": "again"}))
    except Exception as error:
        print(error)

main()
"""
IN_A_THREAD = """
thread = threading.Thread(target=get_order.run, args=({"id": "ORD-0"},))
thread.start()
thread.join()
"""
SUITE = """
scenarios:
- id: a
  turns: [ORD-1]
  tools: {get_order: {returns: {status: shipped}}}
  expect: {output: {contains: [shipped]}, tool_calls: {calls: [{name: get_order, times: 1}]}}
- id: other
  turns: [ORD-2]
  checks: none
  tools: {get_order: {returns: {status: lost}}}
"""


def shop(project: Project, agent: str, where: str, unmocked: str = "passthrough") -> None:
    install_toy(project)
    project.agent(agent)
    project.scenarios(SUITE)
    config = f"agent: {{name: bot, target: 'agent.py:agent', calls: all{where}}}\n"
    project.config(f"{config}metrics: []\nunmocked_tools: {unmocked}\n", target="")


def ran(project: Project) -> str:
    marks = project.root / "REAL"
    return marks.read_text() if marks.exists() else ""


def warns(done: Done, *facts: str) -> bool:
    """Whether a line that names the agent's file has all of them."""
    flat = " ".join(done.all.split())
    return all(fact in flat for fact in ("agent.py", *facts))


@pytest.mark.parametrize("where", PLACES)
def test_a_main_without_a_guard_is_warned_of_and_mocks_hold(project: Project, where: str) -> None:
    shop(project, AGENT + RUNS, where)
    line = (project.root / "agent.py").read_text().splitlines().index("main()") + 1
    facts = ("'bot'", f"(agent.py:{line})", "audit (the real ", "get_order (not run)")
    for command in ("validate", "run"):
        done = project.call(command)
        assert done.code == 0, done.all
        assert warns(done, *facts, '`if __name__ == "__main__":`'), done.all
        assert "get_order" not in ran(project)

    guarded = RUNS.replace("\nmain()", '\nif __name__ == "__main__":\n    main()')
    shop(project, AGENT + guarded, where)
    (project.root / "REAL").unlink()
    done = project.call("validate")
    assert (done.code, "get_order (" in done.all, ran(project)) == (0, False, "")


NO_AUDIT = AGENT.replace("    audit.run", "    # audit.run")


@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize(
    ("code", "unmocked", "command", "exit_code", "facts"),
    [
        (NO_AUDIT + "audit.run({'text': 'x'})\n", "error", "run", 0, ("audit (not run)",)),
        (AGENT + IN_A_THREAD, "passthrough", "validate", 0, ("get_order (not run)",)),
        (
            AGENT + "get_order.run({'id': 'ORD-0'})['status']\n",
            "passthrough",
            "validate",
            2,
            ("agenteval.yaml:1", "'agent.py'", "TypeError", "get_order (not run)"),
        ),
    ],
    ids=["no tool is left to the agent", "a thread of the import", "it breaks on the answer"],
)
def test_an_import_that_calls_tools_runs_none_of_them(
    project: Project,
    where: str,
    code: str,
    unmocked: str,
    command: str,
    exit_code: int,
    facts: tuple[str, ...],
) -> None:
    shop(project, code, where, unmocked)
    done = project.call(command)
    assert done.code == exit_code, done.all
    assert warns(done, *facts), done.all
    assert ran(project) == ""


@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize("is_loop", [True, False], ids=["loop", "queue"])
def test_a_thread_of_the_module_is_of_no_conversation(project: Project, where: str, is_loop: bool) -> None:
    """An event loop that the module starts gets the caller's context with each coroutine; a thread that reads
    a queue does not, so that its calls run nothing."""
    loop = """
import asyncio
loop = asyncio.new_event_loop()
threading.Thread(target=loop.run_forever, daemon=True).start()

async def later(message):
    return ask(message)

def agent(message: str) -> str:
    return asyncio.run_coroutine_threadsafe(later(message), loop).result(30)
"""
    queue = """
import queue
jobs = queue.Queue()

def work():
    while True:
        message, done = jobs.get()
        try:
            done.put(ask(message))
        except Exception as error:
            done.put(str(error))

threading.Thread(target=work, daemon=True).start()

def agent(message: str) -> str:
    done = queue.Queue()
    jobs.put((message, done))
    return done.get(timeout=30)
"""
    shop(project, AGENT + (loop if is_loop else queue), where)
    done = project.run()
    assert done.code == (0 if is_loop else 3), done.all
    assert "get_order (" not in done.all  # the import called nothing
    assert "get_order" not in ran(project)


def test_a_module_that_a_mock_imports_first_is_watched_too(project: Project) -> None:
    shop(project, AGENT + RUNS, "")
    project.write("scenarios/mocks.py", "from agent import get_order\n\ndef order(args):\n    return {}\n")
    project.scenarios("{id: a, turns: [Hi], checks: none, tools: {get_order: {python: 'mocks.py:order'}}}")
    done = project.call("validate")
    assert (done.code, warns(done, "get_order (not run)")) == (0, True), done.all
    assert "get_order" not in ran(project)
