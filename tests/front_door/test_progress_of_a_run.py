"""What a person sees on stderr while a run goes on: through the command line, in a log and at a terminal."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from tests.support.kit import Project, environment
from tests.support.patience import HANG_S, eventually

AGENT = """
import pathlib, time

def agent(messages):
    text = messages[-1]["content"]
    while text == "wait" and not pathlib.Path("go on").exists():
        time.sleep(0.01)
    if text == "refuse":
        raise ConnectionRefusedError("the shop is closed")
    return "bad" if text == "bug" else "well"
"""
SUITE = """
defaults: {expect: {output: {contains: [well]}}}
scenarios:
  - {id: bug, turns: [bug]}
  - {id: lost, turns: [refuse]}
  - {id: fix, turns: [hi]}
  - {id: slow, turns: [wait]}
"""


@pytest.fixture
def waiting(project: Project) -> Project:
    """A run that ends when there is a file ``go on``."""
    project.agent(AGENT)
    project.config()
    project.scenarios(SUITE)
    return project


def test_a_failure_is_shown_while_the_others_run(waiting: Project) -> None:
    process = waiting.start("run")
    try:
        assert eventually(lambda: "? lost" in process.said("err") and "✗ bug" in process.said("err"))
        assert process.poll() is None
        assert eventually(lambda: "[3/4] 1 passed, 1 failed, 1 undecided" in process.said("err"))
        (waiting.root / "go on").touch()
        done = process.wait()
    finally:
        process.kill()
    assert done.code == 1
    (bug,) = [line for line in done.err.splitlines() if line.startswith("✗")]
    assert re.match(r'✗ bug +[\d.]+ s .*"well".*"bad"', bug), bug
    assert "✗ fix" not in done.err
    assert "ran [4/4] 2 passed, 1 failed, 1 undecided" in done.err.splitlines()[-1]


def at_a_terminal(project: Project, **env: str) -> str:
    """What ``run`` writes to stderr where that is a terminal of 80 columns."""
    import pty

    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "agenteval", "run"]
    known = {**environment(), "COLUMNS": "80", "TERM": "xterm", "PYTHONIOENCODING": "utf-8", **env}
    known = {name: value for name, value in known.items() if value}
    process = subprocess.Popen(
        command, cwd=project.root, env=known, stdin=theirs, stdout=subprocess.PIPE, stderr=theirs
    )
    os.close(theirs)
    seen = b""
    try:
        while True:
            if b"bug  " in seen and b"lost  " in seen and "✓ 1".encode() in seen:
                (project.root / "go on").touch()
            seen += os.read(ours, 4096)
    except OSError:  # the last one has closed it
        pass
    finally:
        process.communicate(timeout=HANG_S)
        os.close(ours)
    return seen.decode()


@pytest.mark.skipif(sys.platform == "win32", reason="there is no pty")
def test_at_a_terminal_failures_scroll_above_a_bar_that_is_gone_at_the_end(waiting: Project) -> None:
    seen = at_a_terminal(waiting, CI="")
    assert "\x1b[1;31m✗\x1b[0m bug  " in seen
    assert "━" in seen
    assert "  ✓ 1  ✗ 1  ? 1  0:" in seen
    assert "slow" in seen  # what it waits for
    assert seen.index("bug  ") < seen.rindex("━")
    assert "ran [4/4] 2 passed, 1 failed, 1 undecided, " in seen.splitlines()[-1]


@pytest.mark.skipif(sys.platform == "win32", reason="there is no pty")
@pytest.mark.parametrize("env", [{"CI": "true"}, {"CI": "", "TERM": "dumb"}])
def test_where_the_output_is_kept_or_the_terminal_cannot_nothing_moves_the_cursor(
    waiting: Project, env: dict[str, str]
) -> None:
    (waiting.root / "go on").touch()
    seen = at_a_terminal(waiting, **env)
    assert "\x1b" not in seen
    assert "✗ bug  " in seen
    assert "ran [4/4]" in seen


@pytest.mark.skipif(sys.platform == "win32", reason="there is no pty")
def test_no_color_leaves_the_words(waiting: Project) -> None:
    seen = at_a_terminal(waiting, CI="", NO_COLOR="1")
    assert "\x1b[1;31m" not in seen
    assert "\x1b[31m" not in seen
    assert "✗ bug  " in seen.replace("\x1b[1m", "").replace("\x1b[0m", "")
