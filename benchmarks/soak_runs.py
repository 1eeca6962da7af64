"""Runs of the soak: the project, the process, what it used, and what it left behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from soak_server import Books, FaultyServer

EPOCHS = 10
CONCURRENCY = 20
TIMEOUT_S = 1.5
_PROBE = Path(__file__).parent / "soak_probe.py"
_LOOK_S = 0.1
_MOCKS = """\
def look_up(args, ctx):
    sample = ctx.sample
    return {"ticket": f"{sample.scenario}/{sample.epoch}/{ctx.turn}", "state": "in progress"}
"""


def _scenario(number: int) -> dict[str, Any]:
    """Every other one has a simulated user."""
    name = f"case-{number:03}"
    scenario: dict[str, Any] = {
        "id": name,
        "name": f"customer {number} asks about {name}",
        "knowledge": [f"{name} was opened on a Monday."],
        "epochs": EPOCHS,
        "tools": {
            "look_up": {
                "parameters": {"type": "object", "properties": {"topic": {"type": "string"}}},
                "python": "mocks.py:look_up",
            }
        },
        "expect": {
            "tool_calls": {"calls": [{"name": "look_up"}, {"name": "look_up"}]},
            "output": {"not_contains": ["cannot find"]},
        },
    }
    if number % 2:
        return {**scenario, "turns": [f"What is the state of {name}?", f"And what comes next in {name}?"]}
    goal = f"Find out the state of {name} and what comes next."
    return {**scenario, "profile": "In a hurry.", "goal": goal, "max_turns": 2}


def write_project(root: Path, samples: int, server: FaultyServer) -> None:
    """A folder as a user has it; JSON is YAML, too."""
    model = {
        "model": "openai-compatible/mock",
        "base_url": server.model_url,
        "timeout_s": TIMEOUT_S,
        "max_tokens": 200,
    }
    config = {
        "agent": {"name": "bench", "type": "http", "endpoint": server.agent_url},
        "models": {"default": model},
        "concurrency": CONCURRENCY,
        "metrics": ["helpfulness", "agent_behavior_failure", "goal_completion"],
        "thresholds": {"helpfulness": 3},
        "fail_on_severity": "medium",
        "reporters": ["terminal", "json"],
    }
    (root / "scenarios").mkdir(parents=True)
    (root / "agenteval.yaml").write_text(json.dumps(config), encoding="utf-8")
    (root / "scenarios" / "mocks.py").write_text(_MOCKS, encoding="utf-8")
    suite = {"scenarios": [_scenario(number) for number in range(samples // EPOCHS)]}
    (root / "scenarios" / "suite.yaml").write_text(json.dumps(suite), encoding="utf-8")


# ── a process ────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Watched:
    """A process and what it used. ``memory``: how many samples had finished, and the resident memory then in
    MiB, until the last sample finished."""

    code: int
    output: str
    wall_s: float
    cpu_s: float
    memory: list[tuple[int, float]] = field(default_factory=list)

    def growth(self) -> tuple[float, float]:
        """The highest of the first half of the samples, and that of the second, in MiB."""
        half = self.memory[-1][0] / 2 if self.memory else 0
        first = [size for done, size in self.memory if done <= half]
        second = [size for done, size in self.memory if done > half]
        return max(first, default=0.0), max(second, default=0.0)


class Tail:
    """Counts the samples that have finished, by the end of the journal that was not read yet."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._at = 0
        self.finished = 0

    def look(self) -> int:
        path = journal_of(self._root)
        if path is None:
            return 0
        with path.open("rb") as file:
            file.seek(self._at)
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        self._at += len(whole)
        self.finished += whole.count(b'"type":"sample_finished"')
        return self.finished


def journal_of(root: Path) -> Path | None:
    found = list(root.glob(".agenteval/runs/*/events.jsonl"))
    return found[0] if found else None


def watch(
    arguments: Sequence[str],
    root: Path,
    *,
    samples: int,
    kill_if: Callable[[int], bool] = lambda finished: False,
) -> Watched:
    """Run ``agenteval`` to its end, or kill it as soon as ``kill_if`` says so of the samples finished."""
    environment = {**os.environ, "SOAK_PROBE": str(root / "slots.json")}
    started, tail = time.perf_counter(), Tail(root)
    memory: list[tuple[int, float]] = []
    with (root / "output.txt").open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, str(_PROBE), *arguments], cwd=root, env=environment, stdout=output, stderr=output
        )
        while not (ended := os.wait4(process.pid, os.WNOHANG))[0]:
            finished = tail.look()
            if finished < samples and (resident := _resident(process.pid)):
                memory.append((finished, resident))
            if kill_if(finished):
                process.kill()
            time.sleep(_LOOK_S)
    _, status, usage = ended
    process.returncode = os.waitstatus_to_exitcode(status)
    return Watched(
        process.returncode,
        (root / "output.txt").read_text(encoding="utf-8", errors="replace"),
        time.perf_counter() - started,
        usage.ru_utime + usage.ru_stime,
        memory,
    )


def _resident(pid: int) -> float | None:
    """MiB, where the system tells."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    except (OSError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


# ── what it left ─────────────────────────────────────────────────────────────────────────────────


class Left(NamedTuple):
    """All that a run left behind. ``results``: the report as JSON; ``again``: the same, made anew from the
    journal; ``slots`` and ``peak_mib``: see ``soak_probe``."""

    done: Watched
    books: Books
    events: list[dict[str, Any]]
    results: Mapping[str, Any]
    again: Mapping[str, Any]
    slots: Mapping[str, int]
    peak_mib: float

    def keys(self, kind: str) -> list[str]:
        """The samples of all events of a kind, in order."""
        return [key_of(event["key"]) for event in self.events if event["type"] == kind]

    @property
    def planned(self) -> list[str]:
        return [key_of(key) for key in self.events[0]["samples"]]

    @property
    def samples(self) -> dict[str, dict[str, Any]]:
        """By its key, all that the results say of a sample but how long it took."""
        return {
            f"{scenario['id']}/{sample['epoch']}": timeless(sample)
            for scenario in self.results["scenarios"]
            for sample in scenario["samples"]
        }

    @property
    def notices(self) -> list[str]:
        return [event["text"] for event in self.events if event["type"] == "notice"]


def key_of(key: Mapping[str, Any]) -> str:
    return f"{key['scenario']}/{key['epoch']}"


def timeless(value: Any) -> Any:
    """Without times, and without what repeated questions have cost."""
    if isinstance(value, dict):
        left_out = ("latency_ms", "usage", "user_usage", "elapsed_s")
        return {key: timeless(item) for key, item in value.items() if key not in left_out}
    return [timeless(item) for item in value] if isinstance(value, list) else value


def events_of(root: Path) -> list[dict[str, Any]]:
    path = journal_of(root)
    lines = path.read_bytes().split(b"\n")[:-1] if path else []
    return [json.loads(line) for line in lines]


def gather(done: Watched, root: Path, server: FaultyServer) -> Left:
    """Raises ``RuntimeError`` where a run left no results."""
    books = server.books()
    journal = journal_of(root)
    results = journal and journal.parent / "results.json"
    if journal is None or results is None or not results.exists():
        raise RuntimeError(f"the run ended with {done.code} and left no results:\n{done.output[-3000:]}")
    seen = json.loads((root / "slots.json").read_text(encoding="utf-8"))
    watch(["report", journal.parent.name, "--report", "json=again.json"], root, samples=0)
    return Left(
        done,
        books,
        events_of(root),
        json.loads(results.read_text(encoding="utf-8")),
        json.loads((root / "again.json").read_text(encoding="utf-8")),
        seen["slots"],
        seen["peak_mib"],
    )
