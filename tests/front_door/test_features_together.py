"""What outside testers have met where states and features meet: budgets and resumption, selections and
baselines, code of the author's that begins processes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from agenteval.files import journal
from agenteval.importers.journals import replay_journal
from agenteval.importers.sources import Source
from tests.support.kit import Project

SUITE = """
scenarios:
  - id: one
    turns: [{user: hi, expect: {output: {contains: [ok]}}}]
"""


def judged(project: Project, metric: str, reply: str, *, more: str = "") -> None:
    """Four scenarios, each of one turn and so of one judgement; the budget has room for two of these."""
    project.agent("def agent(messages):\n    return 'ok'\n")
    listed = "".join(f"  - {{id: s{n}, turns: [hi], checks: none}}\n" for n in range(4))
    project.scenarios(f"scenarios:\n{listed}")
    project.write("replies.yaml", f"replies: [{{when: {{role: judge}}, reply: {reply}}}]\n")
    project.config(
        f"models: {{default: scripted/replies.yaml}}\nmetrics: [{metric}]\nbudget: {{max_calls: 6}}\n{more}"
    )


def raise_budget(project: Project) -> None:
    path = project.root / "agenteval.yaml"
    path.write_text(path.read_text().replace("max_calls: 6", "max_calls: 60"))


@pytest.mark.parametrize(
    ("metric", "verdict", "more", "first", "then"),
    [
        ("agent_behavior_failure", "label: no failure", "", 3, 0),
        ("helpfulness", "score: 5", "thresholds: {helpfulness: 4}\n", 3, 0),
        ("helpfulness", "score: 2", "thresholds: {helpfulness: 4}\n", 1, 1),
    ],
)
def test_what_the_budget_kept_from_its_judge_is_judged_when_the_run_goes_on(
    project, metric, verdict, more, first, then
):
    """It counted as done: a run whose budget was raised stayed undecided for ever, or was green with half of
    its scores."""
    judged(project, metric, f"{{evidence: ok, reason: '', {verdict}}}", more=more)
    assert project.run().code == first
    raise_budget(project)
    done = project.call("run", "--resume", "latest", "--report", "json=results.json")
    assert (done.code, "2 of 4 samples are done" in done.err) == (then, True), done.all
    turns = [s["samples"][0]["turns"][0] for s in project.results()["scenarios"]]
    assert [(list(turn["scores"]), turn["score_failures"]) for turn in turns] == [([metric], [])] * 4


def test_a_sample_that_was_held_anew_for_its_judge_is_scored_once(project):
    judged(project, "helpfulness", "{evidence: '', reason: '', score: 5}")
    assert project.run().code == 3
    (path,) = (project.root / ".agenteval" / "runs").glob("*/events.jsonl")
    assert len(list(replay_journal(Source(path, "run"), lambda *_: ""))) == 4
    raise_budget(project)
    assert project.call("run", "--resume", "latest").code == 0
    ends = [event for event in journal.read_journal(path) if event.type == "sample_finished"]
    assert sorted(event.refused for event in ends) == [False] * 4 + [True] * 2
    assert len(list(replay_journal(Source(path, "run"), lambda *_: ""))) == 4


def of_two_agents(project: Project) -> None:
    project.agent("def good(messages): return 'ok'\ndef bad(messages): return 'no'\n")
    project.write(
        "agenteval.yaml",
        "metrics: []\nepochs: 12\ngates: {no_regression: {margin: 0.5}}\n"
        "agent: {name: one, target: 'agent.py:good'}\n"
        "compare: [{name: two, target: 'agent.py:bad'}]\n",
    )
    project.scenarios(SUITE)
    project.scenarios(SUITE.replace("id: one", "id: other"), "scenarios/other.yaml")
    assert project.run().code == 3  # nothing to compare with


def test_a_selection_of_an_agent_or_of_files_is_compared_with_a_baseline_of_all(project):
    """Only `--scenario`, `--tag` and the like were taken for selections: others were refused with 2."""
    of_two_agents(project)
    (first,) = (folder.name for folder in (project.root / ".agenteval" / "runs").iterdir())
    assert project.run("--agent", "one", "--baseline", first).code == 0
    assert project.run("scenarios/other.yaml", "--baseline", first).code == 0
    done = project.run("--baseline", "latest")  # all, with a baseline of one file
    assert done.code == 1, done.all  # what is not in it stands on its own checks, and agent two fails them
    assert "new: not in the baseline" in done.out
    project.agent("def good(messages): return 'no'\ndef bad(messages): return 'no'\n")
    assert project.run("--agent", "one", "--baseline", first).code == 1
    assert project.run("--agent", "two", "--baseline", first).code == 0


EXEC = {
    "execv": "def agent(messages):\n    os.execv(sys.executable, [sys.executable, '-c', ''])\n",
    "execlp, async": "async def agent(messages):\n    os.execlp('env', 'env')\n",
    "while it is imported": "os.execlpe('env', 'env', {})\nasync def agent(messages):\n    return 'ok'\n",
}


@pytest.mark.parametrize("code", EXEC.values(), ids=EXEC)
def test_another_program_in_place_of_the_run_is_not_its_end(project, code):
    """The exit code was that program's: 0."""
    project.agent(f"import os, sys\n{code}")
    project.config()
    project.scenarios(SUITE)
    done = project.run()
    assert (done.code, "the process ended before a verdict (exit 3)" in done.err) == (3, True)


def test_a_program_that_is_not_there_or_of_a_child_begins_as_ever(project):
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
def test_a_fork_that_goes_on_as_the_agent_is_no_second_run(project, word):
    """Its copy of the event loop ran for ever, and whoever read the output waited with it."""
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


def test_an_agent_and_its_mocks_share_the_module_that_both_name(project):
    """The file was imported twice, and what the agent changed no mock ever saw."""
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


def test_a_process_that_an_agent_begins_finds_its_functions(project):
    """It waited for ever: the module had a name under which nobody else can import it."""
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


def test_two_files_of_one_name_are_two_modules(project):
    for folder, answer in (("good", "ok"), ("bad", "no")):
        project.write(f"{folder}/bot.py", f"def agent(messages):\n    return '{answer}'\n")
    project.write(
        "agenteval.yaml",
        "metrics: []\nagent: {name: good, target: 'good/bot.py:agent'}\n"
        "compare: [{name: bad, target: 'bad/bot.py:agent'}]\n",
    )
    project.scenarios(SUITE)
    assert project.run().code == 1
    told = {s["agent"]: s["verdict"] for s in project.results()["scenarios"]}
    assert told == {"good": "passed", "bad": "failed"}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_lock_that_cannot_say_whose_it_is_locks_nevertheless(tmp_path):
    """On a full disk this was a defect of agenteval's own."""
    (tmp_path / journal.LOCK_FILE).symlink_to("/dev/full")
    with journal.lock_run(tmp_path):
        pass
