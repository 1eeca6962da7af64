"""Agents that would take the whole run with them: end it, hang it, or silence its journal."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading

import pytest

from agenteval.conversation import user_code
from agenteval.conversation.shared_loop import shared_loop
from tests.support.agent_zoo import HEAD, Bad, Zoo, run_all
from tests.support.kit import Project

GOOD = "def agent(m): return 'hi'"
CASE = "cases: [{id: x, input: hello}]"

OUTLIVED = {
    "keyboard interrupt": Bad("def agent(m): raise KeyboardInterrupt"),
    "base exception": Bad("class Odd(BaseException): pass\ndef agent(m): raise Odd('odd')", says="Odd"),
    "base exception in async": Bad(
        "class Odd(BaseException): pass\nasync def agent(m): raise Odd('odd')", says="Odd"
    ),
    "constructor exits": Bad(
        "class agent:\n    def __init__(self): sys.exit(0)\n    def __call__(self, m): return 'hi'",
        says="SystemExit",
    ),
    "cancelled": Bad("async def agent(m): raise asyncio.CancelledError"),
    "cancels itself": Bad(
        "async def agent(m):\n    asyncio.current_task().cancel()\n    await asyncio.sleep(9)"
    ),
    "hangs, cancelled in vain": Bad(
        """
        async def agent(m):
            while True:
                try: await asyncio.sleep(0.05)
                except BaseException: pass
        """,
        "agent_timeout",
    ),
    "loops, errors of tools caught": Bad(
        """
        async def agent(m, ctx):
            while True:
                try: await ctx.call_tool('t')
                except Exception: pass
        """,
        "tool_loop",
    ),
    "hangs in a thread of asyncio": Bad(
        "async def agent(m): await asyncio.to_thread(time.sleep, 600)", "agent_timeout"
    ),
    "hangs in an executor": Bad(
        """
        def agent(m):
            from concurrent.futures import ThreadPoolExecutor
            with ThreadPoolExecutor() as pool: return pool.submit(time.sleep, 600).result()
        """,
        "agent_timeout",
    ),
    "hangs in its constructor": Bad(
        "class agent:\n    def __init__(self): time.sleep(600)\n    def __call__(self, m): return 'hi'",
        "agent_timeout",
    ),
}


@pytest.fixture(scope="module")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> Zoo:
    """All of them in one run, and a good one."""
    codes = {name: bad.code for name, bad in OUTLIVED.items()}
    return run_all(Project(tmp_path_factory.mktemp("zoo")), {**codes, "good": GOOD})


@pytest.mark.parametrize("name", OUTLIVED)
def test_no_agent_ends_or_outlives_the_run(zoo: Zoo, name: str) -> None:
    assert zoo.done.code == 1
    assert zoo.samples["good"]["verdict"] == "passed"
    sample, bad = zoo.samples[name], OUTLIVED[name]
    assert (sample["verdict"], sample["fault"], sample["stop"]) == ("failed", "agent", bad.stop)
    assert bad.says in sample["turns"][-1]["error"]


def write(project: Project, code: str, scenarios: str, more: str = "") -> None:
    project.agent(code)
    project.write("agenteval.yaml", f"metrics: []\nagent: {{target: 'agent.py:agent'{more}}}\n")
    project.scenarios(scenarios)


def test_an_agent_that_ends_the_process_does_not_end_it_green(project: Project) -> None:
    write(project, "import os\ndef agent(m):\n    os._exit(0)\n", "cases: [{id: leaves, input: hello}]")
    done = project.run()
    assert done.code == 3
    assert "os._exit(0)" in done.err


@pytest.mark.parametrize(("answer", "code"), [("bye", 1), ("hello", 0)])
def test_what_is_done_at_exit_changes_no_verdict(project: Project, answer: str, code: int) -> None:
    at_exit = f"atexit.register(os._exit, {1 - code})"
    code_of_agent = f"import atexit, os\ndef agent(m):\n    {at_exit}\n    return '{answer}'\n"
    write(project, code_of_agent, "cases: [{id: leaves, input: hello, expected_output_contains: hello}]")
    # In a process of its own: that of the other tests ends without what is registered.
    command = [sys.executable, "-m", "agenteval", "run"]
    assert subprocess.run(command, cwd=project.root, capture_output=True).returncode == code


def test_a_child_process_of_an_agent_ends_as_it_likes(project: Project) -> None:
    code = """
        import os
        def agent(m):
            child = os.fork()
            if child == 0:
                os._exit(7)
            return f"ended with {os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}"
    """
    write(project, code, "cases: [{id: forks, input: hello, expected_output_contains: ended with 7}]")
    assert project.run().code == 0


def test_a_background_task_that_exits_ends_no_other_sample(project: Project) -> None:
    leaves = """
async def agent(m, ctx):
    async def leave(): sys.exit(0)
    if ctx.scenario_id == 'leaves':
        kept.append(asyncio.create_task(leave()))
    await asyncio.sleep(0.05)
    return 'hi'
"""
    write(
        project,
        HEAD + leaves,
        "cases: [{id: leaves, input: hello}, {id: other, input: hello}]",
        ", timeout_s: 3",
    )
    done = project.run()
    assert {s["id"]: s["verdict"] for s in project.results()["scenarios"]}["other"] == "passed"
    assert done.code in (0, 1)  # not the code of its exit


def test_a_call_that_is_cancelled_before_its_first_step_keeps_nobody_waiting() -> None:
    async def answer() -> str:
        return "hi"

    async def ask() -> None:
        loop, held = shared_loop().loop, threading.Event()
        loop.call_soon_threadsafe(held.wait)
        call = asyncio.ensure_future(user_code.call_user_code(answer))
        await asyncio.sleep(0)  # it is asked for; and then, in the same step of the loop, all are cancelled
        loop.call_soon_threadsafe(lambda: [task.cancel() for task in asyncio.all_tasks(loop)])
        held.set()
        with pytest.raises(user_code.CancelledUserCodeError):
            await asyncio.wait_for(call, 30)

    asyncio.run(ask())


def test_a_call_is_timed_from_when_it_begins(project: Project) -> None:
    # A client that blocks, called in an async function: every call is short, all of them are not.
    blocks = "import time\nasync def agent(m):\n    time.sleep(0.15)\n    return 'hi'\n"
    write(project, blocks, "cases: [{id: x, input: hello, epochs: 12}]", ", timeout_s: 1.5")
    project.run()
    (scenario,) = project.results()["scenarios"]
    assert [sample["verdict"] for sample in scenario["samples"]] == ["passed"] * 12


UNSERIALIZABLE = {
    "half a surrogate pair": "def agent(m): return 'lone \\ud800 here'",
    "half a pair in arguments": "def agent(m, ctx): return str(ctx.call_tool_sync('t', {'\\ud800': 1}))",
    "half a pair in an error": "def agent(m): raise ValueError('\\ud800')",
    "an object in an unknown field": "def agent(m): return {'content': 'hi', 'more': object()}",
    "an endless unknown field": "def agent(m):\n    x = {'content': 'hi'}; x['x'] = x\n    return x",
    "deep arguments": "def agent(m, ctx): ctx.call_tool_sync('t', '{\"x\":' + '[' * 500 + ']' * 500 + '}')",
}


def test_no_agent_switches_the_journal_off(project: Project) -> None:
    ran = run_all(project, UNSERIALIZABLE | {"good": GOOD})
    assert ran.journal[-1]["type"] == "run_finished"
    assert {e["key"]["scenario"] for e in ran.journal if e["type"] == "sample_finished"} == set(ran.samples)


def test_an_agent_does_not_move_the_reports(project: Project) -> None:
    write(project, "import os\ndef agent(m):\n    os.chdir('elsewhere')\n    return 'hi'\n", CASE)
    (project.root / "elsewhere").mkdir()
    assert project.run().code == 0
    assert (project.root / "results.json").is_file()


def test_an_agent_that_closes_stdout(project: Project) -> None:
    write(project, "import sys\ndef agent(m):\n    sys.stdout.close()\n    return 'hi'\n", CASE)
    done = project.run()
    assert project.results()["summary"]["verdict"] == "passed"
    assert done.code != 1  # no gate has failed
