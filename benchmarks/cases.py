"""What a run costs where the agent costs nothing: CPU and memory by test cases, and the start alone.

::

    python benchmarks/cases.py [RUNS]

Test cases with checks of tool calls and of the answer, against a Python agent that answers at once;
through the command line, terminal and JSON reports included. RUNS (default 5) of each size; the sizes
take turns.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
import tempfile
import tracemalloc
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from processes import AGENTEVAL, Done, spawn, spread

SIZES = (1, 500, 1000, 2000)
START_RUNS = 4
"""Times as many runs of what is short: it is the more easily disturbed."""

AGENT = """
def agent(messages, ctx):
    said = messages[-1]["content"]
    city = said.rpartition(" ")[2].rstrip("?")
    weather = ctx.call_tool_sync("get_weather", {"city": city})
    return f"It is {weather['temp']} degrees and {weather['sky']} in {city}."
"""


def write_project(root: Path, cases: int) -> None:
    """A folder as a user has it; JSON is YAML, too."""
    config = {"agent": {"name": "instant", "target": "agent.py:agent"}, "metrics": []}
    tool = {
        "description": "The weather of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        "returns": {"city": "${args.city}", "temp": 25, "sky": "sunny"},
    }
    suite = [
        {
            "id": f"case-{number}",
            "category": ("capability", "efficiency", "robustness")[number % 3],
            "input": f"What is the weather in City{number}?",
            "expected_tools": ["get_weather"],
            "expected_output_contains": ["25", "sunny"],
            "expect": {"limits": {"steps": 4, "tool_calls": 2}},
        }
        for number in range(cases)
    ]
    (root / "scenarios").mkdir()
    (root / "agent.py").write_text(AGENT, encoding="utf-8")
    (root / "agenteval.yaml").write_text(json.dumps(config), encoding="utf-8")
    document = {"defaults": {"tools": {"get_weather": tool}}, "cases": suite}
    (root / "scenarios" / "suite.yaml").write_text(json.dumps(document, indent=1), encoding="utf-8")


def run_once(cases: int) -> Done:
    with tempfile.TemporaryDirectory() as folder:
        write_project(Path(folder), cases)
        done = spawn([*AGENTEVAL, "run", "--report", "json=results.json"], Path(folder))
        if done.code != 0:
            raise RuntimeError(f"{cases} cases ended with {done.code}:\n{done.output[-3000:]}")
        results = json.loads((Path(folder) / "results.json").read_text(encoding="utf-8"))
        assert len(results["scenarios"]) == cases
    return done


def help_once() -> Done:
    with tempfile.TemporaryDirectory() as folder:
        return spawn([*AGENTEVAL, "--help"], Path(folder))


def python_once() -> Done:
    """The interpreter alone, which no program can do without."""
    with tempfile.TemporaryDirectory() as folder:
        return spawn([sys.executable, "-c", "pass"], Path(folder))


# ── memory ───────────────────────────────────────────────────────────────────────────────────────


def trace_memory(*, keeps_events: bool) -> None:
    """In a process of its own: the memory that Python holds after so many cases, as JSON lines. Without
    the events, which are the results, nothing should be left of a case that is done."""
    import anyio

    from agenteval.cli.commands.prepare import Request, prepare
    from agenteval.conversation import pipeline
    from agenteval.core.event import Event, SampleFinished

    plan = prepare(Request()).plan
    kept: list[Event] = []
    finished = 0

    def emit(event: Event) -> None:
        nonlocal finished
        if keeps_events:
            kept.append(event)
        finished += isinstance(event, SampleFinished)
        if isinstance(event, SampleFinished) and finished in SIZES:
            gc.collect()
            print(json.dumps([finished, tracemalloc.get_traced_memory()[0]]), flush=True)

    tracemalloc.start()
    anyio.run(pipeline.run, plan, emit, pipeline.Control())


def memory(keeps_events: bool) -> dict[int, float]:
    """Megabytes held after so many cases."""
    with tempfile.TemporaryDirectory() as folder:
        write_project(Path(folder), SIZES[-1])
        flags = ("--trace", "kept" if keeps_events else "dropped")
        done = spawn([sys.executable, str(Path(__file__).resolve()), *flags], Path(folder))
    if done.code != 0:
        raise RuntimeError(done.output[-3000:])
    lines = [line for line in done.output.splitlines() if line.startswith("[")]
    marks: list[tuple[int, int]] = [json.loads(line) for line in lines]
    return {cases: held / 2**20 for cases, held in marks}


# ── tables ───────────────────────────────────────────────────────────────────────────────────────


def start_rows(runs: dict[str, list[Done]]) -> Iterator[str]:
    yield f"{'CPU, ms (min / median / max)':32} {'n':>3} {'target':>8}"
    targets = {"agenteval --help": "≤ 100", "a run of one case": "≤ 600"}
    for name, dones in runs.items():
        values = spread([done.cpu_s * 1000 for done in dones], 0)
        yield f"{name:32} {len(dones):3} {targets.get(name, ''):>8}  {values}"


def case_rows(runs: dict[int, list[Done]]) -> Iterator[str]:
    yield f"{'CPU per case all told, ms':32} {'n':>3} {'target':>8}  {'':22} peak memory, MB"
    for cases, dones in runs.items():
        if cases > 1:
            each = spread([done.cpu_s * 1000 / cases for done in dones], 2)
            target = "≤ 4" if cases == SIZES[-1] else ""
            rss = spread([done.max_rss_mb for done in dones], 0)
            yield f"{cases:<6} cases {'':19} {len(dones):3} {target:>8}  {each:22} {rss}"
    slope = slopes(runs[SIZES[-2]], runs[SIZES[-1]], SIZES[-1] - SIZES[-2])
    yield f"{'one case more':32} {len(slope):3} {'':>8}  {spread(slope, 2)}"


def slopes(few: Sequence[Done], many: Sequence[Done], difference: int) -> list[float]:
    return [(more.cpu_s - less.cpu_s) * 1000 / difference for less, more in zip(few, many, strict=True)]


def memory_rows() -> Iterator[str]:
    dropped, kept = memory(False), memory(True)
    yield f"{'memory held by Python, MB':32} " + "".join(f"{cases:>8}" for cases in dropped)
    for name, held in (("beside the results", dropped), ("with the results", kept)):
        yield f"{name:32} " + "".join(f"{value:8.2f}" for value in held.values())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", type=int, nargs="?", default=5)
    parser.add_argument("--trace", choices=("kept", "dropped"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.trace:
        sys.path.insert(0, os.getcwd())
        trace_memory(keeps_events=given.trace == "kept")
        return
    runs: dict[int, list[Done]] = {cases: [] for cases in SIZES}
    starts: dict[str, Any] = {"python -c pass": [], "agenteval --help": [], "a run of one case": []}
    for _ in range(given.runs):
        for cases in SIZES[1:]:
            runs[cases].append(run_once(cases))
        for _ in range(START_RUNS):
            starts["python -c pass"].append(python_once())
            starts["agenteval --help"].append(help_once())
            starts["a run of one case"].append(run_once(1))
    print("", *start_rows(starts), "", *case_rows(runs), "", *memory_rows(), sep="\n")


if __name__ == "__main__":
    main()
