"""Test through the front door: a temporary project and the real command line."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from tests.support.patience import HANG_S


@dataclass(frozen=True)
class Done:
    """A finished command: its exit code and what it printed."""

    code: int
    out: str
    err: str

    @property
    def all(self) -> str:
        return self.out + self.err

    def refuses(self, place: str, *facts: str, code: int = 2) -> None:
        """Assert that the command ended with ``code``, and that one message at ``place`` (``file:line:col``,
        or as much as is known) contains every fact: keys, values, the remedy's command; never wording."""
        assert self.code == code, self.all
        flat = re.sub(r"\n +", " ", self.err)
        found = [line for line in flat.splitlines() if f"{place}:" in line]
        assert any(all(fact in line for fact in facts) for line in found), (place, facts, self.err)


class ReadyProcess:
    """Runs commands in forks of a process that is ready, one at a time; see ``ready_process``."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("ready_process.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def start(self, request: Mapping[str, Any]) -> int:
        """The id of the process that carries it out."""
        assert self._process.stdin
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return self.answer()

    def answer(self) -> int:
        """After ``start``: the exit code, once there is one."""
        assert self._process.stdout
        return int(self._process.stdout.readline())


class FreshProcess:
    """As ``ReadyProcess``, where no process can be forked, or none that has threads: each command is a new
    one."""

    def start(self, request: Mapping[str, Any]) -> int:
        command = [sys.executable, "-m", "agenteval", *request["arguments"]]
        env = {**request["env"], "PYTHONIOENCODING": "utf-8"}
        with open(request["out"], "wb") as out, open(request["err"], "wb") as err:
            self._process = subprocess.Popen(
                command, cwd=request["cwd"], env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                start_new_session=True,
            )  # fmt: skip
        return self._process.pid

    def answer(self) -> int:
        return self._process.wait()


CommandProcess: TypeAlias = ReadyProcess | FreshProcess
_IDLE: list[CommandProcess] = []


def _command_process() -> CommandProcess:
    if _IDLE:
        return _IDLE.pop()
    return ReadyProcess() if sys.platform == "linux" else FreshProcess()


class Started:
    """A command that runs, in a process group of its own. Whoever starts one waits for it, or kills it."""

    def __init__(self, cwd: Path, arguments: Sequence[str], env: Mapping[str, str]) -> None:
        self._arguments = arguments
        self._folder = tempfile.TemporaryDirectory()
        out, err = (Path(self._folder.name, name) for name in ("out", "err"))
        self._texts = {"out": out, "err": err}
        process = _command_process()
        self.pid = process.start({
            "arguments": arguments, "cwd": str(cwd), "env": env, "out": str(out), "err": str(err)
        })  # fmt: skip
        self._code: int | None = None
        self._reader = threading.Thread(target=self._read, args=(process,), daemon=True)
        self._reader.start()

    def _read(self, process: CommandProcess) -> None:
        self._code = process.answer()
        _IDLE.append(process)

    def poll(self) -> int | None:
        """The exit code, if it has ended; below 0: the signal that ended it."""
        return None if self._reader.is_alive() else self._code

    def said(self, where: Literal["out", "err"]) -> str:
        """What it has printed by now."""
        return _text(self._texts[where])

    def send(self, number: signal.Signals) -> None:
        if sys.platform == "win32":
            os.kill(self.pid, number)
        else:
            os.killpg(self.pid, number)

    def kill(self) -> None:
        """Nothing, if it has ended."""
        if self.poll() is None:
            self.send(signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL)
        self._reader.join()

    def wait(self, timeout_s: float = HANG_S) -> Done:
        self._reader.join(timeout_s)
        code = self.poll()
        self.kill()
        out, err = self.said("out"), self.said("err")
        self._folder.cleanup()
        assert code is not None, f"no end within {timeout_s} s: agenteval {self._arguments}: {err}"
        return Done(code, out, err)


def _fresh(cwd: Path, arguments: Sequence[str], env: Mapping[str, str], *, timeout_s: float) -> Done:
    command = [sys.executable, "-m", "agenteval", *arguments]
    done = subprocess.run(
        command, cwd=cwd, env=env, capture_output=True, text=True, encoding="utf-8", timeout=timeout_s
    )
    return Done(done.returncode, done.stdout, done.stderr)


def _text(path: Path) -> str:
    return path.read_bytes().decode("utf-8").replace(os.linesep, "\n") if path.exists() else ""


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

    def call(self, *arguments: str, env: dict[str, str] | None = None, timeout_s: float = HANG_S) -> Done:
        if any(name.startswith("PYTHON") for name in env or {}):
            done = _fresh(self.root, arguments, environment(env), timeout_s=timeout_s)
        else:
            done = self.start(*arguments, env=env).wait(timeout_s)
        assert "Traceback (most recent call last)" not in done.all, done.err
        return done

    def start(self, *arguments: str, env: dict[str, str] | None = None) -> Started:
        """A command to be sent signals, or to be looked at while it runs."""
        return Started(self.root, arguments, environment(env))

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
    kept = {
        k: v
        for k, v in os.environ.items()
        if not k.startswith(("AGENTEVAL_", "AZURE_", "GITHUB_", "OPENAI_"))
    }
    return {**kept, "COLUMNS": "120", **(extra or {})}


def failed_checks(sample: dict[str, Any]) -> set[tuple[int | None, str]]:
    """``(turn, name)`` of each check that did not hold; turn ``None`` for the whole conversation."""
    found: set[tuple[int | None, str]] = {
        (None, check["name"]) for check in sample["checks"] if check["passed"] is False
    }
    for index, turn in enumerate(sample["turns"]):
        found |= {(index, check["name"]) for check in turn["checks"] if check["passed"] is False}
    return found
