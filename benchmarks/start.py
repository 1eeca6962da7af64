"""What a command costs before it does anything: the CPU of ``--help``, of ``validate`` and of a run of one
case with a Python agent and checks in code, as multiples of the CPU of ``import typer``.

::

    python benchmarks/start.py [ROUNDS]

The commands take turns; a ratio is one of the same round.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from processes import AGENTEVAL, Done, spawn, spread

PYTHON = (sys.executable, "-c")
BASE = "import typer"
COMMANDS = {
    "nothing at all": (*PYTHON, "pass"),
    BASE: (*PYTHON, "import typer"),
    "agenteval --help": (*AGENTEVAL, "--help"),
    "agenteval run --help": (*AGENTEVAL, "run", "--help"),
    "agenteval validate": (*AGENTEVAL, "validate"),
    "agenteval run, one case": (*AGENTEVAL, "run"),
}
AIMS = {"agenteval --help": "≤ 1.2"}
FILES = {
    "agenteval.yaml": "agent: {type: python, target: 'agent.py:agent'}\nmetrics: []\n",
    "agent.py": "def agent(messages):\n    return 'Hello, I have your order.'\n",
    "scenarios/order.yaml": "id: order\nturns: [Where is it?]\nexpect: {output: {contains: [order]}}\n",
}


def write_project(root: Path) -> None:
    for name, text in FILES.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")


def measure(root: Path, rounds: int) -> dict[str, list[Done]]:
    """So many runs of each command, after one that compiles what is not compiled yet. Raises
    ``RuntimeError`` if a command fails."""
    done: dict[str, list[Done]] = {name: [] for name in COMMANDS}
    for at in range(rounds + 1):
        for name, command in COMMANDS.items():
            one = spawn(command, root)
            if one.code:
                raise RuntimeError(f"{name} ended with {one.code}:\n{one.output}")
            if at:
                done[name].append(one)
    return done


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("rounds", nargs="?", type=int, default=20)
    with tempfile.TemporaryDirectory() as folder:
        write_project(Path(folder))
        done = measure(Path(folder), parser.parse_args().rounds)
    print(f"{'min / median / max':24} {'n':>3}  {'aim':5}  {'× import typer':21}  {'CPU, s':21}  clock, s")
    for name, runs in done.items():
        ratios = [one.cpu_s / base.cpu_s for one, base in zip(runs, done[BASE], strict=True)]
        cpu, wall = ([getattr(one, field) for one in runs] for field in ("cpu_s", "wall_s"))
        row = f"{name:24} {len(runs):3}  {AIMS.get(name, ''):5}  {spread(ratios, 2):21}"
        print(f"{row}  {spread(cpu):21}  {spread(wall)}")


if __name__ == "__main__":
    main()
