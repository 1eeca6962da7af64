"""``--last-failed``: what did not pass in the latest run, and nothing else."""

from __future__ import annotations

import json
import re
import shlex

import pytest

from tests.support.cut_runs import cut_after, journal
from tests.support.kit import Project

AGENT = """
import pathlib, time
def agent(m, ctx):
    with pathlib.Path("asked").open("a") as file:
        file.write(f"{ctx.scenario_id}@{ctx.epoch}\\n")
    if ctx.scenario_id == "lost" and not pathlib.Path("mended").exists():
        raise ConnectionRefusedError("nobody there")
    return "good" if pathlib.Path("mended").exists() else "bad"
"""
SCENARIOS = """
defaults: {turns: [hello]}
scenarios:
- {id: passes, tags: [a], checks: none}
- {id: fails, tags: [a], expect: {output: {contains: [good]}}}
- {id: lost, tags: [b], checks: none}
- {id: passes-too, checks: none}
"""
RENAMED = SCENARIOS.replace("id: fails", "id: renamed")


@pytest.fixture
def ran(project: Project) -> Project:
    """One scenario failed, one was not decided, two passed."""
    project.agent(AGENT)
    project.config("agent_concurrency: 1")
    project.scenarios(SCENARIOS)
    assert project.call("run").code == 1
    (project.root / "asked").unlink()
    return project


def asked(project: Project) -> list[str]:
    """The scenarios of the conversations that were played, sorted; what was lost was played once more."""
    path = project.root / "asked"
    lines = path.read_text("utf-8").split() if path.exists() else []
    return sorted(line.partition("@")[0] for line in set(lines))


def test_what_failed_or_was_not_decided_is_run(ran: Project) -> None:
    assert ran.run("--last-failed").code == 1
    assert asked(ran) == ["fails", "lost"]
    assert [s["id"] for s in ran.results()["scenarios"]] == ["fails", "lost"]


def test_what_failed_and_was_renamed_is_named(ran: Project) -> None:
    ran.write("mended", "")
    ran.scenarios(RENAMED)
    listed = ran.call("list", "--last-failed")
    done = ran.run("--last-failed")
    assert done.code == 0
    assert asked(ran) == ["lost"]
    assert listed.out == "scenarios/suite.yaml::lost\n"
    for text in (done.out, listed.err):
        assert re.search(r"\b1 scenario .*: fails\b", " ".join(text.split()))


@pytest.mark.parametrize(
    ("files", "arguments", "facts"),
    [
        ({"suite": RENAMED.replace("id: lost", "id: found")}, [], ["fails, lost"]),
        # What is in a file that was not named is not gone.
        ({"more": "scenarios: [{id: other, turns: [hi], checks: none}]"}, ["scenarios/more.yaml"], []),
        ({}, ["-s", "passes"], []),
    ],
    ids=["all that failed is gone", "another file", "filters leave nothing"],
)
def test_where_nothing_of_it_is_left_nothing_is_run(
    ran: Project, files: dict[str, str], arguments: list[str], facts: list[str]
) -> None:
    (run,) = (folder.name for folder in (ran.root / ".agenteval/runs").iterdir())
    for name, text in files.items():
        ran.scenarios(text, f"scenarios/{name}.yaml")
    done = ran.call("run", *arguments, "--last-failed")
    assert (done.code, done.out) == (5, "")
    assert all(fact in done.err for fact in (run, *facts)), done.err
    assert facts or not any(name in done.err for name in ("fails", "lost"))
    assert asked(ran) == []


def rerun_line(out: str) -> list[str]:
    """The arguments of the command that a run ended with."""
    (line,) = (line for line in out.splitlines() if "agenteval run" in line and "--failed-in" in line)
    return shlex.split(line.partition("agenteval ")[2].partition("     ")[0])


def test_the_rerun_line_plays_what_it_stands_under_whatever_ran_since(ran: Project) -> None:
    first = ran.call("report", "latest", "--report", "terminal").out
    ran.write("mended", "")
    assert ran.call("run", "-s", "passes").code == 0  # now the latest run
    (ran.root / "asked").unlink()
    (ran.root / "mended").unlink()
    line = rerun_line(first)
    assert ran.call(*line).code == 1
    assert asked(ran) == ["fails", "lost"]
    (ran.root / "asked").unlink()
    assert ran.call(*line).code == 1
    assert asked(ran) == ["fails", "lost"]
    older = ran.call("report", line[-1], "--report", "terminal").out  # no longer the latest either
    assert rerun_line(older) == line
    ran.write("mended", "")
    assert ran.call(*line).code == 0
    (ran.root / "asked").unlink()
    assert ran.call("run", "--last-failed").code == 5  # of the latest nothing did
    assert ran.call(*line).code == 0
    assert asked(ran) == ["fails", "lost"]


def test_the_rerun_line_names_the_files_that_the_run_was_given(ran: Project) -> None:
    """Which may be others than the configuration's."""
    ran.scenarios("scenarios: [{id: apart, turns: [hi], expect: {output: {contains: [good]}}}]", "apart.yaml")
    line = rerun_line(ran.call("run", "apart.yaml").out)
    (ran.root / "asked").unlink()
    assert ran.call(*line).code == 1
    assert asked(ran) == ["apart"]


def test_a_run_that_does_not_exist_cannot_be_looked_in(ran: Project) -> None:
    done = ran.call("run", "--failed-in", "2031")
    assert (done.code, "'2031'" in done.err) == (2, True)


def test_it_is_the_latest_run_that_counts(ran: Project) -> None:
    ran.write("mended", "")
    assert ran.call("run", "--last-failed").code == 0
    assert ran.call("run", "--last-failed").code == 5
    assert asked(ran) == ["fails", "lost"]


def test_what_never_ran_is_run(ran: Project) -> None:
    cut_after(ran, "sample_finished")  # the first: the other three are missing now
    ran.call("run", "--last-failed")
    assert asked(ran) == ["fails", "lost", "passes-too"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["-s", "fails"], ["fails"]),
        (["--tag", "b"], ["lost"]),
        (["--epochs", "2"], ["fails", "fails", "lost", "lost"]),
        (["--first", "1"], ["fails"]),
        (["-k", "not fails"], ["lost"]),
    ],
)
def test_it_goes_together_with_filters(ran: Project, arguments: list[str], expected: list[str]) -> None:
    ran.call("run", "--last-failed", *arguments)
    assert asked(ran) == expected


def test_without_an_earlier_run_there_is_nothing_to_look_in(project: Project) -> None:
    project.agent(AGENT)
    project.config()
    project.scenarios(SCENARIOS)
    assert project.call("run", "--last-failed").code == 2
    assert asked(project) == []
    assert project.call("run").code == 1


def test_of_two_agents_the_one_that_failed(project: Project) -> None:
    project.write("agents.py", "def good(m): return 'good'\ndef bad(m): return 'bad'\n")
    project.write(
        "agenteval.yaml",
        "metrics: []\nagent: {name: good, target: 'agents.py:good'}\n"
        "compare: [{name: bad, target: 'agents.py:bad'}]\n",
    )
    project.scenarios("{id: x, turns: [hello], expect: {output: {contains: [good]}}}")
    assert project.run().code == 1
    assert project.run("--last-failed").code == 1
    assert [(s["id"], s["agent"]) for s in project.results()["scenarios"]] == [("x", "bad")]


def test_a_gate_over_the_whole_run_fails_no_scenario(project: Project) -> None:
    project.agent("def agent(m, ctx): return 'good' if ctx.epoch else 'bad'\n")
    project.config("gates: {pass_hat_k: {k: 2, at_least: 0.9, over: suite}}\nepochs: 4")
    project.scenarios("{id: x, turns: [hello], expect: {output: {contains: [good]}}}")
    assert project.call("run").code == 1
    done = project.call("run", "--last-failed")
    assert done.code == 5
    assert "'pass_hat_k'" in done.err


def test_scored_conversations_are_no_run(ran: Project) -> None:
    messages = [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]
    ran.write("talk.jsonl", json.dumps({"id": "a", "messages": messages}) + "\n")
    assert ran.call("score", "talk.jsonl").code == 0
    ran.call("run", "--last-failed")
    assert asked(ran) == ["fails", "lost"]


def test_such_a_run_can_be_resumed(ran: Project) -> None:
    earlier = journal(ran).parent
    ran.call("run", "--last-failed")
    (latest,) = set((ran.root / ".agenteval/runs").iterdir()) - {earlier}
    lines = (latest / "events.jsonl").read_bytes().splitlines(keepends=True)
    events = [json.loads(line) for line in lines]
    kept = [
        line
        for line, event in zip(lines, events, strict=True)
        if (event.get("key") or {}).get("scenario") != "lost" and event["type"] != "run_finished"
    ]  # which of the two is played first depends on how long they took before
    (latest / "events.jsonl").write_bytes(b"".join(kept))
    (ran.root / "asked").unlink()
    assert ran.call("run", "--resume", "latest", "--report", "json=results.json").code == 1
    assert asked(ran) == ["lost"]
    assert [s["id"] for s in ran.results()["scenarios"]] == ["fails", "lost"]
