"""Ctrl-C in the middle of a run: what is done is in the journal and in the report; the exit code is 130."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.kit import Done, Project
from tests.support.patience import HANG_S, eventually

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals to a process group")

INT, TERM, HUP, KILL = signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL

# Each appends to a file when it is asked, so that a test knows how far the run is.
AGENTS = """
import asyncio, pathlib, time
def asked(m):
    with pathlib.Path('asked').open('a') as file:
        file.write(m[-1]['content'] + '\\n')
    return m[-1]['content'] == 'quick'
async def waits(m):
    if asked(m): return 'hi'
    while not pathlib.Path('go on').exists():
        await asyncio.sleep(0.01)
    return 'hi'
async def hangs(m):
    if asked(m): return 'hi'
    await asyncio.sleep(600)
def hangs_in_a_thread(m):
    if asked(m): return 'hi'
    time.sleep(600)
async def blocks(m):
    if asked(m): return 'hi'
    time.sleep(600)
async def uses_a_tool(m, ctx):
    if asked(m): return 'hi'
    await ctx.call_tool('t', {'done': True})
    asked([{'content': 'after the tool'}])
    await asyncio.sleep(600)
async def hangs_in_asyncios_threads(m):
    if asked(m): return 'hi'
    await asyncio.to_thread(time.sleep, 600)
"""
SUITE = """
metrics: []
agent: {{target: 'agents.py:{agent}', timeout_s: 900}}
agent_concurrency: {concurrency}
"""
SCENARIOS = """
defaults: {checks: none, tools: {t: {returns: 1}}}
scenarios:
- {id: quick-1, turns: [quick]}
- {id: quick-2, turns: [quick]}
- {id: slow-1, turns: [quick, slow]}
- {id: slow-2, turns: [quick, slow]}
- {id: never-1, turns: [slow]}
- {id: never-2, turns: [slow]}
"""


class Ended(NamedTuple):
    code: int
    out: str
    err: str
    journal: list[dict[str, Any]]
    results: dict[str, Any] | None

    def samples(self) -> dict[str, Any]:
        assert self.results is not None
        return {s["id"]: s["samples"][0] for s in self.results["scenarios"]}

    def finished(self) -> list[str]:
        return sorted(e["key"]["scenario"] for e in self.journal if e["type"] == "sample_finished")


class Run:
    """``agenteval run`` in a process group of its own."""

    def __init__(self, project: Project, agent: str, *, concurrency: int = 2) -> None:
        self.root = project.root
        project.write("agents.py", AGENTS)
        project.write("agenteval.yaml", SUITE.format(agent=agent, concurrency=concurrency))
        project.scenarios(SCENARIOS)
        self.process = project.start("run", "--report", "json=results.json")

    def wait_for(self, text: str, times: int = 1, *, file: str = "asked") -> None:
        deadline = time.monotonic() + HANG_S
        while self._text(file).count(text) < times:
            assert self.process.poll() is None, self.process.said("err")
            assert time.monotonic() < deadline, f"'{text}' never came: {self._text(file)}"
            time.sleep(0.01)

    def send(self, first: signal.Signals, *again: signal.Signals) -> None:
        """Send a signal, and another one once the first has been seen."""
        self.process.send(first)
        if again:
            self.wait_for("interrupted", file="err")
            self.process.send(*again)

    def end(self, timeout_s: float = HANG_S) -> Ended:
        done = self.process.wait(timeout_s)
        journals = list((self.root / ".agenteval/runs").glob("*/events.jsonl"))
        lines = journals[0].read_text("utf-8").splitlines() if journals else []
        results = self.root / "results.json"
        return Ended(
            done.code,
            done.out,
            done.err,
            [json.loads(line) for line in lines],
            json.loads(results.read_text("utf-8")) if results.exists() else None,
        )

    def _text(self, name: str) -> str:
        if name == "err":
            return self.process.said("err")
        path = self.root / name
        return path.read_text("utf-8") if path.exists() else ""


def assert_one_line(err: str) -> None:
    """However often it was interrupted, one line says so."""
    (line,) = [line for line in err.splitlines() if "interrupt" in line.casefold()]
    assert line.startswith("interrupted"), err
    assert "Traceback" not in err
    assert "\n\n" not in err


def assert_whole(ended: Ended, *, finished: list[str]) -> None:
    """130, one line on the screen, and everything that was done is in the journal and in both reports."""
    assert_one_line(ended.err)
    assert ended.code == 130
    assert ended.journal[-1]["type"] == "run_finished"
    assert ended.journal[-1]["outcome"] == "interrupted"
    assert ended.finished() == finished
    samples = ended.samples()
    assert len(samples) == 6
    assert all(samples[name]["verdict"] == "passed" for name in ("quick-1", "quick-2"))
    assert samples["slow-1"]["turns"][0]["agent"] == "hi"
    assert all(samples[name]["verdict"] == "inconclusive" for name in ("never-1", "never-2"))
    assert ended.results is not None
    assert ended.results["summary"]["exit_code"] == 130
    assert "exit 130" in ended.out
    never = [name for name in samples if name not in finished]
    (line,) = [
        line for line in ended.out.splitlines() if line.startswith("INCONCLUSIVE") and "never-1" in line
    ]
    assert f"INCONCLUSIVE {len(never)} " in line
    assert all(name in line for name in never)
    assert "interrupted" in ended.out


QUICK = ["quick-1", "quick-2"]
SLOW = [*QUICK, "slow-1", "slow-2"]


@pytest.mark.parametrize("number", [INT, TERM, HUP])
def test_once_lets_what_runs_finish(project: Project, number: signal.Signals) -> None:
    run = Run(project, "waits")
    run.wait_for("slow", 2)
    run.send(number)
    run.wait_for("interrupted", file="err")
    project.write("go on", "")
    ended = run.end()
    assert_whole(ended, finished=SLOW)
    assert [t["agent"] for t in ended.samples()["slow-2"]["turns"]] == ["hi", "hi"]
    assert ended.samples()["slow-2"]["verdict"] == "passed"


@pytest.mark.parametrize(
    ("agent", "signals", "blocked"),
    [
        ("hangs", (INT, INT), 2),
        ("hangs", (TERM, TERM), 2),
        ("hangs", (INT, TERM), 2),
        ("hangs_in_a_thread", (INT, INT), 2),
        ("hangs_in_asyncios_threads", (INT, INT), 2),
        ("blocks", (INT, INT), 1),  # all conversations share one event loop
    ],
)
def test_twice_ends_what_runs_at_once(
    project: Project, agent: str, signals: tuple[signal.Signals, ...], blocked: int
) -> None:
    run = Run(project, agent)
    run.wait_for("slow", blocked)
    run.send(*signals)
    ended = run.end()
    assert_whole(ended, finished=SLOW)
    sample = ended.samples()["slow-1"]
    assert [sample[key] for key in ("verdict", "fault", "stop")] == [
        "inconclusive", "interrupted", "interrupted",
    ]  # fmt: skip


def test_twice_ends_a_run_of_one_conversation_at_a_time(project: Project) -> None:
    run = Run(project, "blocks", concurrency=1)
    run.wait_for("slow")
    run.send(INT, INT)
    assert_whole(run.end(), finished=[*QUICK, "slow-1"])


def test_what_an_interrupted_turn_had_done_is_kept(project: Project) -> None:
    run = Run(project, "uses_a_tool")
    run.wait_for("after the tool", 2)
    run.send(INT, INT)
    ended = run.end()
    assert_whole(ended, finished=SLOW)
    turns = ended.samples()["slow-1"]["turns"]
    assert len(turns) == 2
    assert turns[1]["user"] == "slow"
    assert [call["name"] for call in turns[1]["tool_calls"]] == ["t"]


def test_a_killed_run_leaves_a_journal_that_can_be_read(project: Project) -> None:
    run = Run(project, "hangs")
    run.wait_for("slow", 2)
    run.send(KILL)
    ended = run.end()
    assert ended.finished() == QUICK
    turns = [(e["key"]["scenario"], e["turn"]["user"]) for e in ended.journal if e["type"] == "turn_finished"]
    assert ("slow-1", "quick") in turns
    assert ended.journal[0]["type"] == "run_started"


def test_while_the_agent_is_imported(project: Project) -> None:
    project.write("agents.py", AGENTS + "\nasked([{'content': 'imported'}])\ntime.sleep(600)\n")
    project.write("agenteval.yaml", SUITE.format(agent="hangs", concurrency=1))
    project.scenarios(SCENARIOS)
    process = project.start("run")
    try:
        assert eventually((project.root / "asked").exists)
        process.send(INT)
        done = process.wait()
    finally:
        process.kill()
    assert (done.code, done.out) == (130, "")
    assert_one_line(done.err)


JUDGED = """
metrics: [patient]
custom_metrics: ['metrics.py:Patient']
agent: {name: bot, target: 'agent.py:agent'}
"""
PATIENT = """
import asyncio, pathlib
from agenteval import QuantitativeMetric, QuantResult, ScoreInput
class Patient(QuantitativeMetric):
    name = "patient"
    async def score(self, input: ScoreInput) -> QuantResult:
        with pathlib.Path("judged").open("a") as file:
            file.write("x")
        while not pathlib.Path("go on").exists():
            await asyncio.sleep(0.01)
        return QuantResult(4.0, "it took its time")
"""
LOG = """
{"id": "a", "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hi"}]}
{"id": "b", "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hi"}]}
"""


@pytest.fixture
def judged(project: Project) -> Project:
    """Two conversations that are over at once, and a judge that is not."""
    project.agent("def agent(m): return 'hi'\n")
    project.write("metrics.py", PATIENT)
    project.write("r.yaml", "replies: [{when: {role: dedup}, reply: {issues: []}}]\n")
    project.write("agenteval.yaml", JUDGED)
    project.scenarios(
        "scenarios:\n- {id: good, turns: [x], expect: {output: {contains: [hi]}}}\n"
        "- {id: bad, turns: [x], expect: {output: {contains: [ho]}}}\n"
    )
    project.write("log.jsonl", LOG.strip() + "\n")
    return project


def interrupted(project: Project, *arguments: str, times: int = 1) -> Done:
    """The command, interrupted while both conversations are judged; after the first time they go on."""
    process = project.start(*arguments, "--report", "json=results.json")
    seen = project.root / "judged"
    try:
        assert eventually(lambda: seen.exists() and len(seen.read_text("utf-8")) == 2)
        process.send(INT)
        assert eventually(lambda: "interrupted" in process.said("err"))
        if times == 2:
            process.send(INT)
        else:
            project.write("go on", "")
        return process.wait()
    finally:
        process.kill()


@pytest.mark.parametrize(("names", "code"), [((), 1), (("-s", "good"), 0)])
def test_a_run_whose_conversations_were_all_played_is_complete(
    judged: Project, names: tuple[str, ...], code: int
) -> None:
    """Its judges are waited for, its verdict and its exit code are those of a run that nobody interrupted."""
    if names:
        judged.scenarios(
            "scenarios:\n" + "".join(f"- {{id: good-{n}, turns: [x], checks: none}}\n" for n in "ab")
        )
    done = interrupted(judged, "run", *names)
    assert done.code == code, done.all
    assert_one_line(done.err)
    assert "INCOMPLETE" not in done.out
    results = judged.results()
    assert results["run"]["complete"]
    assert results["summary"]["exit_code"] == code
    (score,) = results["scenarios"][0]["samples"][0]["turns"][0]["scores"].values()
    assert score["value"] == 4.0


def test_judges_that_were_stopped_leave_a_run_incomplete(judged: Project) -> None:
    done = interrupted(judged, "run", times=2)
    assert done.code == 130
    assert_one_line(done.err)
    assert not judged.results()["run"]["complete"]


@pytest.mark.parametrize(("times", "code"), [(1, 0), (2, 130)])
def test_a_score_is_ended_in_the_same_way(judged: Project, times: int, code: int) -> None:
    done = interrupted(
        judged, "score", "log.jsonl", "-c", "agenteval.yaml", "-m", "scripted/r.yaml", times=times
    )
    assert done.code == code, done.all
    assert_one_line(done.err)
    assert judged.results()["run"]["complete"] is (code == 0)


@pytest.mark.parametrize(("times", "code"), [(1, 1), (2, 130)])
def test_reports_are_written_to_their_end(judged: Project, times: int, code: int) -> None:
    """A pipe that nobody reads holds up the report, once the run is over."""
    judged.write("go on", "")
    os.mkfifo(judged.root / "pipe")
    process = judged.start("run", "--report", "junit=pipe")
    try:
        assert eventually(lambda: '"run_finished"' in "".join(p.read_text() for p in journals(judged)))
        time.sleep(0.2)
        process.send(INT)
        assert eventually(lambda: "interrupted" in process.said("err"))
        if times == 2:
            process.send(INT)
        else:
            assert "<testsuite" in (judged.root / "pipe").read_text("utf-8")
        done = process.wait()
    finally:
        process.kill()
    assert done.code == code, done.all
    assert_one_line(done.err)
    assert ("FAILED: 1 of 2 " in done.out) is (code == 1)


def journals(project: Project) -> list[Path]:
    return list((project.root / ".agenteval/runs").glob("*/events.jsonl"))


def test_while_a_log_is_waited_for(judged: Project) -> None:
    os.mkfifo(judged.root / "log.pipe")
    process = judged.start("score", "log.pipe", "--no-judge")
    try:
        with (judged.root / "log.pipe").open("w", encoding="utf-8") as pipe:
            pipe.write(LOG.strip() + "\n")
            pipe.flush()
            assert eventually(lambda: "log.pipe" in process.said("err"))
            process.send(INT)
            done = process.wait()
    finally:
        process.kill()
    assert (done.code, done.out) == (130, "")
    assert_one_line(done.err)
