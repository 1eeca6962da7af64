"""A target whose import runs the agent: what was called is said, and no tool of the suite runs."""

from __future__ import annotations

import sys

import pytest

from tests.support.kit import Project
from tests.support.toy import install_toy

PLACES = ["", f", interpreter: '{sys.executable}'"]
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


def shop(project: Project, agent: str, where: str, more: str = "") -> None:
    install_toy(project)
    project.agent(agent)
    project.scenarios(SUITE)
    config = f"agent: {{name: bot, target: 'agent.py:agent', calls: all{where}}}\n"
    project.write("agenteval.yaml", f"{config}metrics: []\nunmocked_tools: passthrough\n{more}")


def ran(project: Project) -> str:
    marks = project.root / "REAL"
    return marks.read_text() if marks.exists() else ""


@pytest.mark.parametrize("where", PLACES, ids=["here", "interpreter"])
def test_a_main_without_a_guard_is_said_and_its_mocked_tools_do_not_run(project: Project, where: str) -> None:
    shop(project, AGENT + RUNS, where)
    line = (project.root / "agent.py").read_text().splitlines().index("main()") + 1
    for command in ("validate", "run"):
        done = project.call(command)
        assert done.code == 0, done.all
        said = " ".join(done.all.split())
        assert f"agent 'bot': importing agent.py runs the agent (agent.py:{line})" in said
        assert "tools were called: audit (the real one ran), get_order (not run)" in said
        assert '— put the code that runs it under `if __name__ == "__main__":`' in said
        assert "get_order" not in ran(project)

    guarded = RUNS.replace("\nmain()", '\nif __name__ == "__main__":\n    main()')
    shop(project, AGENT + guarded, where)
    (project.root / "REAL").unlink()
    done = project.call("validate")
    assert (done.code, "runs the agent" in done.all, ran(project)) == (0, False, "")


@pytest.mark.parametrize("where", PLACES, ids=["here", "interpreter"])
def test_nothing_real_runs_where_the_suite_leaves_no_tool_to_the_agent(project: Project, where: str) -> None:
    shop(project, AGENT.replace("    audit.run", "    # audit.run") + "audit.run({'text': 'x'})\n", where)
    config = (project.root / "agenteval.yaml").read_text().replace("passthrough", "error")
    project.write("agenteval.yaml", config)
    done = project.run()
    assert done.code == 0, done.all
    assert "tools were called: audit (not run)" in " ".join(done.all.split())
    assert ran(project) == ""


@pytest.mark.parametrize("where", PLACES, ids=["here", "interpreter"])
def test_a_thread_that_an_import_starts_is_of_the_import(project: Project, where: str) -> None:
    shop(project, AGENT + IN_A_THREAD, where)
    done = project.call("validate")
    assert "tools were called: get_order (not run)" in " ".join(done.all.split())
    assert ran(project) == ""


@pytest.mark.parametrize("where", PLACES, ids=["here", "interpreter"])
def test_an_import_that_breaks_on_the_answer_says_what_it_called(project: Project, where: str) -> None:
    shop(project, AGENT + "get_order.run({'id': 'ORD-0'})['status']\n", where)
    done = project.call("validate")
    assert done.code == 2, done.all
    said = " ".join(done.all.split())
    assert "agenteval.yaml:1" in said
    assert "importing 'agent.py' failed: TypeError" in said
    assert "importing agent.py runs the agent" in said
    assert "get_order (not run)" in said
    assert ran(project) == ""


@pytest.mark.parametrize("where", PLACES, ids=["here", "interpreter"])
@pytest.mark.parametrize("is_loop", [True, False], ids=["loop", "queue"])
def test_a_thread_of_the_module_is_of_no_conversation_but_what_a_loop_in_it_is_asked_for(
    project: Project, where: str, is_loop: bool
) -> None:
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
    assert "runs the agent" not in done.all
    assert "get_order" not in ran(project)


def test_a_module_that_a_mock_imports_first_is_watched_too(project: Project) -> None:
    shop(project, AGENT + RUNS, "")
    project.write("scenarios/mocks.py", "from agent import get_order\n\ndef order(args):\n    return {}\n")
    project.scenarios("{id: a, turns: [Hi], checks: none, tools: {get_order: {python: 'mocks.py:order'}}}")
    done = project.call("validate")
    assert (done.code, "importing agent.py runs the agent" in " ".join(done.all.split())) == (0, True)
    assert "get_order" not in ran(project)
