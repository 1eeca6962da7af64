"""Agents that start, fork or become other processes, and the modules that they share with mocks."""

from __future__ import annotations

import sys

import pytest

from tests.support.kit import Project

SUITE = """
scenarios:
  - id: one
    turns: [{user: hi, expect: {output: {contains: [ok]}}}]
"""
EXEC = {
    "execv": "def agent(messages):\n    os.execv(sys.executable, [sys.executable, '-c', ''])\n",
    "execlp, async": "async def agent(messages):\n    os.execlp('env', 'env')\n",
    "during its import": "os.execlpe('env', 'env', {})\nasync def agent(messages):\n    return 'ok'\n",
}


@pytest.mark.parametrize("code", EXEC.values(), ids=EXEC)
def test_another_program_in_place_of_the_run_is_not_its_end(project: Project, code: str) -> None:
    project.agent(f"import os, sys\n{code}")
    project.config()
    project.scenarios(SUITE)
    done = project.run()
    assert (done.code, "exit 3" in done.err) == (3, True)


def test_a_program_that_is_not_there_or_of_a_child_begins_as_ever(project: Project) -> None:
    project.agent(
        f"""
        import os, subprocess
        def agent(messages):
            try:
                os.execlp("no-such-program", "x")
            except FileNotFoundError:
                child = os.fork()
            if not child:
                os.execv({sys.executable!r}, ["python", "-c", "raise SystemExit(7)"])
            subprocess.run(["env"], check=True, preexec_fn=lambda: None, stdout=subprocess.DEVNULL)
            return "ok" if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7 else "no"
        """
    )
    project.config()
    project.scenarios(SUITE)
    assert project.run().code == 0


@pytest.mark.parametrize("word", ["", "async "])
def test_a_fork_that_goes_on_as_the_agent_is_no_second_run(project: Project, word: str) -> None:
    project.agent(
        f"""
        import os
        {word}def agent(messages):
            child = os.fork()
            if child:
                return f"ok, {{os.waitpid(child, 0)[1]}}"
            return "no"
        """
    )
    project.config()
    project.scenarios(SUITE.replace("[ok]", "['ok, 0']"))
    done = project.run()
    assert (done.code, done.out.count("exit 0")) == (0, 1), done.all


def test_an_agent_and_its_mocks_share_the_module_that_both_name(project: Project) -> None:
    project.agent(
        """
        import store
        async def agent(messages, ctx):
            store.ORDERS["1"] = "ok"
            return await ctx.call_tool("look", {})
        """
    )
    project.write("store.py", "ORDERS = {}\ndef look(args):\n    return ORDERS.get('1', 'nothing')\n")
    project.config()
    project.scenarios(SUITE + "    tools: {look: {python: ../store.py:look}}\n")
    assert project.run().code == 0


def test_a_process_that_an_agent_begins_finds_its_functions(project: Project) -> None:
    project.agent(
        """
        import multiprocessing
        def work(text):
            return text
        def agent(messages):
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                return pool.apply(work, ("ok",))
        """
    )
    project.write("agenteval.yaml", "agent: {target: 'agent.py:agent', timeout_s: 20}\nmetrics: []\n")
    project.scenarios(SUITE)
    assert project.run(env={"PYTHONUNBUFFERED": "1"}).code == 0  # in a process of its own


def test_two_files_of_one_name_are_two_modules(project: Project) -> None:
    for folder, answer in (("good", "ok"), ("bad", "no")):
        project.write(f"{folder}/bot.py", f"def agent(messages):\n    return '{answer}'\n")
    project.write(
        "agenteval.yaml",
        "metrics: []\nagent: {name: good, target: 'good/bot.py:agent'}\n"
        "compare: [{name: bad, target: 'bad/bot.py:agent'}]\n",
    )
    project.scenarios(SUITE)
    assert project.run().code == 1
    verdicts = {s["agent"]: s["verdict"] for s in project.results()["scenarios"]}
    assert verdicts == {"good": "passed", "bad": "failed"}
