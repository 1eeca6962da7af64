"""``run --watch``: which scenarios each round plays, what the keys do, and what ends it."""

from __future__ import annotations

import os
import queue
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.kit import Project, environment
from tests.support.patience import HANG_S

AGENT = "def agent(messages):\n    return 'Hello, ' + messages[-1]['content']\n"
A = """
scenarios:
  - {id: greet, turns: [Hi], expect: {output: {contains: Hello}}}
  - {id: refuse, turns: [No], expect: {output: {contains: sorry}}}
"""
MOCKED = """
id: mocked
turns: [Where is it?]
tools: {look_up: {python: ../mocks.py:look_up}}
expect: {output: {contains: Hello}}
"""
END = "waiting for a change"


class Watching:
    """A watch that runs, and what it prints."""

    def __init__(self, project: Project, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "agenteval", "run", "--watch", *arguments],
            cwd=project.root,
            env=environment({"PYTHONUNBUFFERED": "1"}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()
        self._runs = project.root / ".agenteval" / "runs"
        self._seen: set[str] = set()
        self.printed = ""

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self._lines.put(line)

    def press(self, keys: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(keys)
        self.process.stdin.flush()

    def until(self, text: str) -> str:
        """What is printed up to a line with ``text``."""
        self.printed = ""
        while text not in self.printed:
            self.printed += self._lines.get(timeout=HANG_S)
        return self.printed

    def round(self) -> set[str]:
        """The ids of the scenarios of the next round, once it is over; empty if it had no run."""
        self.until(END)
        new = {folder.name for folder in self._runs.iterdir()} - self._seen
        self._seen |= new
        assert len(new) <= 1
        return {name for run in new for name in played(self._runs / run)}


def played(folder: Path) -> set[str]:
    journal = (folder / "events.jsonl").read_text()
    return set(re.findall(r'"type":"sample_started","key":\{"scenario":"([^"]+)"', journal))


@pytest.fixture
def suite(project: Project) -> Project:
    project.config()
    project.agent(AGENT)
    project.scenarios(A, "scenarios/a.yaml")
    project.scenarios(MOCKED, "scenarios/b.yaml")
    project.write("mocks.py", "def look_up(args):\n    return 'here'\n")
    return project


@pytest.fixture
def watching(suite: Project) -> Iterator[Watching]:
    watch = Watching(suite)
    yield watch
    watch.process.kill()
    watch.process.wait()


def change(path: Path, text: str) -> None:
    """What an editor does."""
    before = path.stat().st_mtime
    path.write_text(text, encoding="utf-8")
    os.utime(path, (before + 2, before + 2))


def test_a_round_plays_what_the_change_may_affect_and_what_did_not_pass(
    suite: Project, watching: Watching
) -> None:
    assert watching.round() == {"greet", "refuse", "mocked"}
    change(suite.root / "scenarios/b.yaml", MOCKED.replace("Where", "Who"))
    assert watching.round() == {"refuse", "mocked"}
    change(suite.root / "mocks.py", "def look_up(args):\n    return 'there'\n")
    assert watching.round() == {"refuse", "mocked"}
    change(suite.root / "agent.py", AGENT + "\n")
    assert watching.round() == {"greet", "refuse", "mocked"}
    change(suite.root / "scenarios/a.yaml", A.replace("sorry", "Hello"))
    assert watching.round() == {"greet", "refuse"}
    change(suite.root / "mocks.py", "def look_up(args):\n    return 'gone'\n")
    assert watching.round() == {"mocked"}


def test_a_broken_file_ends_the_round_and_not_the_watch(suite: Project, watching: Watching) -> None:
    watching.round()
    change(suite.root / "scenarios/b.yaml", "id: mocked\nturms: [x]\n")
    assert watching.round() == set()
    assert "scenarios/b.yaml:2:1" in watching.printed
    change(suite.root / "scenarios/b.yaml", MOCKED)
    assert watching.round() == {"refuse", "mocked"}


def test_keys(watching: Watching) -> None:
    watching.round()
    watching.press("f")
    assert watching.round() == {"refuse"}
    watching.press("tgreet\n")
    assert watching.round() == {"greet"}
    watching.press("\n")
    assert watching.round() == {"greet"}
    watching.press("f")
    assert watching.round() == {"refuse"}
    watching.press("a")
    assert watching.round() == {"greet", "refuse", "mocked"}
    watching.press("?")
    assert "q quit" in watching.until("quit")
    watching.press("q")
    assert watching.process.wait(HANG_S) == 1


def test_a_round_that_only_writes_a_log_starts_no_other(suite: Project) -> None:
    log = "def agent(messages):\n    open('log.txt', 'a').write('x')\n"
    suite.agent(f"{log}    return 'Hello ' + messages[-1]['content']\n")
    watch = Watching(suite)
    assert watch.round() == {"greet", "refuse", "mocked"}
    watch.press("tgreet\n")
    assert watch.round() == {"greet"}
    watch.press("q")
    assert watch.process.wait(HANG_S) == 0
    assert len(list((suite.root / ".agenteval/runs").iterdir())) == 2


def test_the_watch_ends_when_the_budget_is_spent(suite: Project) -> None:
    suite.config("budget: {max_cost: 0.01}\nprices: {bot: {input: 1000, output: 1000}}\n")
    suite.agent(
        "from agenteval import AgentReply, Usage\n\n\n"
        "def agent(messages):\n"
        "    return AgentReply('Hello', usage=Usage(input_tokens=50, output_tokens=50))\n"
    )
    watch = Watching(suite)
    watch.until("`budget.max_cost`)")
    assert watch.process.wait(HANG_S) != 0


@pytest.mark.parametrize("more", [("--resume", "latest"), ("--record", "x.json")], ids=lambda more: more[0])
def test_what_cannot_be_repeated_is_refused(suite: Project, more: tuple[str, str]) -> None:
    done = suite.call("run", "--watch", *more)
    assert done.code == 2
    assert more[0] in done.err
