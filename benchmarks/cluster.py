"""What an agent that uses CPU gains on two workers, as ratios in one run.

    pip install -e ".[ray]"
    python benchmarks/cluster.py [--samples 60] [--cpu-ms 50] [--rounds 3]

The same conversations are played by one process, by two plain processes side by side (two shards), and by
two workers of Ray on this machine; each time with ``--samples`` and with three times as many, so that what a
sample costs is told from what a start costs. *Gain* is the ratio of what a sample costs, *whole* that of the
longer runs as a whole.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

_AGENT = """
import time

def agent(messages):
    end = time.thread_time() + {seconds}
    while time.thread_time() < end:
        pass
    return "It is done."
"""
_CONFIG = "agent: {name: bot, target: 'agent.py:agent'}\nmetrics: []\nreporters: []\nagent_concurrency: 8\n"
_TURNS = 2


def make_project(folder: Path, samples: int, cpu_ms: float) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "agent.py").write_text(_AGENT.format(seconds=cpu_ms / 1000), encoding="utf-8")
    (folder / "agenteval.yaml").write_text(_CONFIG, encoding="utf-8")
    scenarios = folder / "scenarios"
    scenarios.mkdir(exist_ok=True)
    lines = (
        f"- {{id: s{at}, turns: [one {at}, two {at}], expect: {{output: {{contains: [done]}}}}}}"
        for at in range(samples)
    )
    (scenarios / "s.yaml").write_text("scenarios:\n" + "\n".join(lines) + "\n", encoding="utf-8")


def run(folder: Path, *commands: Sequence[str]) -> tuple[float, float]:
    """Run commands side by side. Return the wall time and the CPU time of everything, in seconds."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "agenteval", "run", *options],
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for options in commands
    ]
    for each in running:
        each.wait()
        if each.returncode not in (0, 3):  # a shard alone decides nothing
            raise SystemExit(f"exit code {each.returncode}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.monotonic() - began, cpu_s


WAYS: dict[str, Callable[[Path], tuple[float, float]]] = {
    "one process": lambda folder: run(folder, []),
    "two shards": lambda folder: run(folder, ["--shard", "1/2"], ["--shard", "2/2"]),
    "ray, two workers": lambda folder: run(folder, ["--backend", "ray"]),
}


def main() -> None:
    parser = argparse.ArgumentParser(description="An agent that uses CPU, on two workers.")
    parser.add_argument("--samples", type=int, default=60)
    parser.add_argument("--cpu-ms", type=float, default=50)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    few, many = asked.samples, 3 * asked.samples
    wall: dict[tuple[str, int], list[float]] = {}
    with tempfile.TemporaryDirectory() as place:
        folders = {count: Path(place, str(count)) for count in (few, many)}
        for count, folder in folders.items():
            make_project(folder, count, asked.cpu_ms)
        for _ in range(asked.rounds):
            for name, way in WAYS.items():
                for count, folder in folders.items():
                    wall.setdefault((name, count), []).append(way(folder)[0])
    print(
        f"{few} and {many} samples of {_TURNS} × {asked.cpu_ms:g} ms CPU, {os.cpu_count()} cores,"
        f" median of {asked.rounds}"
    )
    print(f"{'':18}{'wall s':>8}{'wall s':>8}{'ms/sample':>11}{'start s':>9}{'gain':>7}{'whole':>7}")
    base: float | None = None
    base_whole = statistics.median(wall["one process", many])
    for name in WAYS:
        first, last = (statistics.median(wall[name, count]) for count in (few, many))
        each_ms = (last - first) / (many - few) * 1000
        base = base or each_ms
        start_s = first - few * each_ms / 1000
        print(
            f"{name:18}{first:8.2f}{last:8.2f}{each_ms:11.1f}{start_s:9.2f}"
            f"{base / each_ms:6.2f}x{base_whole / last:6.2f}x"
        )


if __name__ == "__main__":
    main()
