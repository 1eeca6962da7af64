"""Test through the front door: a temporary project and the real command line."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Done:
    """A finished command: its exit code and what it printed."""

    code: int
    out: str
    err: str

    @property
    def all(self) -> str:
        return self.out + self.err


class ReadyProcess:
    """Runs commands in forks of a process that is ready; see ``ready_process``."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("ready_process.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def call(self, cwd: Path, arguments: Sequence[str], env: Mapping[str, str], *, timeout_s: float) -> Done:
        assert self._process.stdin
        with tempfile.TemporaryDirectory() as folder:
            out, err = Path(folder, "out"), Path(folder, "err")
            request = {"arguments": arguments, "cwd": str(cwd), "env": env, "out": str(out), "err": str(err)}
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            child = self._answer()
            timer = threading.Timer(timeout_s, os.killpg, (child, signal.SIGKILL))
            timer.start()
            code = self._answer()
            timer.cancel()
            assert code != -signal.SIGKILL, f"no end within {timeout_s} s: agenteval {arguments}"
            return Done(code, _text(out), _text(err))

    def _answer(self) -> int:
        assert self._process.stdout
        return int(self._process.stdout.readline())


def _fresh(cwd: Path, arguments: Sequence[str], env: Mapping[str, str], *, timeout_s: float) -> Done:
    command = [sys.executable, "-m", "agenteval", *arguments]
    done = subprocess.run(
        command, cwd=cwd, env=env, capture_output=True, text=True, encoding="utf-8", timeout=timeout_s
    )
    return Done(done.returncode, done.stdout, done.stderr)


def _text(path: Path) -> str:
    return path.read_bytes().decode("utf-8") if path.exists() else ""


@cache
def _ready() -> ReadyProcess:
    return ReadyProcess()


class Project:
    """A folder with a configuration, scenarios and agents; ``run`` is a user's ``agenteval run``."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")
        return path

    def config(self, text: str = "", *, target: str = "agent.py:agent") -> None:
        """``agenteval.yaml`` with a Python agent and, below, ``text``."""
        head = f"agent: {{name: bot, target: '{target}'}}\n" if target else ""
        if "metrics:" not in text and "models:" not in text:
            head += "metrics: []\n"  # code checks only: no model is needed
        self.write("agenteval.yaml", head + textwrap.dedent(text))

    def agent(self, text: str) -> None:
        self.write("agent.py", text)
        # Compiled code is told from that of a text of the same length by the second it was written in.
        shutil.rmtree(self.root / "__pycache__", ignore_errors=True)

    def scenarios(self, text: str, name: str = "scenarios/suite.yaml") -> None:
        self.write(name, text)

    def call(self, *arguments: str, env: dict[str, str] | None = None, timeout_s: float = 60) -> Done:
        changes_python = any(name.startswith("PYTHON") for name in env or {})
        start = _fresh if changes_python else _ready().call
        done = start(self.root, arguments, environment(env), timeout_s=timeout_s)
        assert "Traceback (most recent call last)" not in done.all, done.err
        return done

    def run(self, *arguments: str, env: dict[str, str] | None = None) -> Done:
        return self.call("run", "--report", "json=results.json", *arguments, env=env)

    def results(self) -> dict[str, Any]:
        """The last run's results."""
        results: dict[str, Any] = json.loads((self.root / "results.json").read_text(encoding="utf-8"))
        return results

    def sample(self, scenario: str | None = None) -> dict[str, Any]:
        """The only sample of a scenario (of the only scenario, if none is named)."""
        found = [s for s in self.results()["scenarios"] if scenario in (None, s["id"])]
        assert len(found) == 1, [s["id"] for s in self.results()["scenarios"]]
        (sample,) = found[0]["samples"]
        return sample  # type: ignore[no-any-return]


def environment(extra: dict[str, str] | None = None) -> dict[str, str]:
    """This process's environment without what would change a run."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("AGENTEVAL_", "GITHUB_", "OPENAI_"))}
    return {**kept, "COLUMNS": "120", **(extra or {})}


def failed_checks(sample: dict[str, Any]) -> set[tuple[int | None, str]]:
    """``(turn, name)`` of each check that did not hold; turn ``None`` for the whole conversation."""
    found: set[tuple[int | None, str]] = {
        (None, check["name"]) for check in sample["checks"] if check["passed"] is False
    }
    for index, turn in enumerate(sample["turns"]):
        found |= {(index, check["name"]) for check in turn["checks"] if check["passed"] is False}
    return found
