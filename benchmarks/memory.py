"""How much memory commands need at their peak, and how it grows with the number of cases.

::

    python benchmarks/memory.py [RUNS] [--counts 1000 10000]

Cases of two turns with a tool call in each, a Python agent that fails three of ten, checks in code. ``run``
plays them twice (with and without JSON), ``report``, ``diff`` and ``score`` read what it kept. A peak does
not depend on what else the machine does; 10,000 cases take some minutes.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from processes import AGENTEVAL, Done, spawn, spread

AGENT = """
WORDS = "The order was found, it left the warehouse on Monday and it is to be delivered within two days. "

async def agent(messages, ctx):
    state = await ctx.call_tool("look_up", {"order": messages[-1]["content"].split()[-1]})
    number = int(state["order"])
    return f"Order {number}: {'unknown' if number % 10 < 3 else state['state']}. {WORDS * (1 + number % 3)}"
"""
CONFIG = "agent: {type: python, target: 'agent.py:agent'}\nmetrics: []\n"
COMMANDS = {
    "run": ("run",),
    "run, JSON": ("run", "--report", "json=results.json"),
    "report": ("report", "latest"),
    "report, JSON": ("report", "latest", "--report", "json=report.json"),
    "diff": ("diff", "previous", "latest"),
    "diff, JSON": ("diff", "previous", "latest", "--report", "json=diff.json"),
    "score": ("score", "latest"),
    "score, JSON": ("score", "latest", "--report", "json=score.json"),
}


def write_project(root: Path, count: int) -> None:
    """JSON is YAML, too."""
    tool = {
        "description": "Looks an order up.",
        "parameters": {"type": "object", "properties": {"order": {"type": "string"}}, "required": ["order"]},
        "returns": {"order": "${args.order}", "state": "on its way", "lines": ["lamp", "table", "chair"]},
    }
    cases = [
        {
            "id": f"case-{number}",
            "turns": [f"Where is order {number}", f"Are you sure about order {number}"],
            "tools": {"look_up": tool},
            "expect": {
                "output": {"contains": ["on its way"]},
                "tool_calls": {"calls": [{"name": "look_up"}]},
            },
        }
        for number in range(count)
    ]
    (root / "scenarios").mkdir()
    (root / "scenarios" / "cases.yaml").write_text(json.dumps({"scenarios": cases}), encoding="utf-8")
    (root / "agenteval.yaml").write_text(CONFIG, encoding="utf-8")
    (root / "agent.py").write_text(AGENT, encoding="utf-8")


def measure(count: int) -> Iterator[tuple[str, Done]]:
    """Each command once. Raises ``RuntimeError`` if one ends as it should not: ``diff`` of two equal runs of
    one epoch finds no regression or cannot decide, the others report what failed."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write_project(root, count)
        for name, words in COMMANDS.items():
            done = spawn([*AGENTEVAL, *words], root)
            if done.code not in ((0, 3) if words[0] == "diff" else (1,)):
                raise RuntimeError(f"{name} of {count} cases ended with {done.code}:\n{done.output[-2000:]}")
            yield name, done
        scenarios = json.loads((root / "results.json").read_text(encoding="utf-8"))["scenarios"]
        failed = sum(scenario["verdict"] == "failed" for scenario in scenarios)
        if (len(scenarios), failed) != (count, count * 3 // 10):
            raise RuntimeError(f"{failed} of {len(scenarios)} cases failed")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("runs", nargs="?", type=int, default=3)
    parser.add_argument("--counts", nargs="+", type=int, default=[1000, 10_000])
    asked = parser.parse_args()
    peaks: dict[tuple[str, int], list[float]] = {}
    for _ in range(asked.runs):
        for count in asked.counts:
            for name, done in measure(count):
                peaks.setdefault((name, count), []).append(done.max_rss_mb)
                print(f"{name}, {count:,} cases: {done.max_rss_mb:.0f} MB", file=sys.stderr)
    few, many = min(asked.counts), max(asked.counts)
    heads = "".join(f"  {f'{count:,} cases, MB':23}" for count in asked.counts)
    print(f"{'peak (min / median / max)':26} {'n':>2}{heads}  {'ratio':18}  kB a case more")
    for name in COMMANDS:
        columns = "".join(f"  {spread(peaks[name, count], 0):23}" for count in asked.counts)
        pairs = list(zip(peaks[name, few], peaks[name, many], strict=True))
        each = [(more - less) * 1024 / max(1, many - few) for less, more in pairs]
        row = f"{name:26} {asked.runs:2}{columns}  {spread([more / less for less, more in pairs], 2):18}"
        print(f"{row}  {spread(each, 1)}")


if __name__ == "__main__":
    main()
