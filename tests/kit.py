"""Test through the front door: a temporary project and the real command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from dataclasses import dataclass
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

    def scenarios(self, text: str, name: str = "scenarios/suite.yaml") -> None:
        self.write(name, text)

    def call(self, *arguments: str, env: dict[str, str] | None = None, timeout_s: float = 60) -> Done:
        done = subprocess.run(
            [sys.executable, "-m", "agenteval", *arguments],
            cwd=self.root,
            env=environment(env),
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=timeout_s,
        )
        assert "Traceback (most recent call last)" not in done.stdout + done.stderr, done.stderr
        return Done(done.returncode, done.stdout, done.stderr)

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
