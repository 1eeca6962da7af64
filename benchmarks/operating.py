"""The operating characteristic of the gates: how often a verdict is wrong, through the command line.

::

    python benchmarks/operating.py [RUNS] [--only TEXT] [--workers N] [--seed N]

Suites of 20 scenarios whose agent succeeds with a known rate in each, judges of a known sensitivity (they see
a failure) and specificity (they let a success pass), and a known share of conversations lost to the network
or to the simulated user. Each cell is RUNS (default 100) times ``agenteval run`` on another seed, a process
of its own; the unit is the run. What the agent truly did decides which verdict would have been right:

- red is wrong if every scenario's true rate is at least 0.9 (for "every sample passes": 0.95),
- green is wrong if some scenario's is 0.7 or less (for ``no_regression``: if the mean truly fell by the
  margin or more);
- between the two either is right.

Shown per row: how often a run was green, red and not decided, the wrong verdicts with their 95 % Wilson
interval, and the conversations in the mean. A row whose wrong verdicts surely exceed 5 % is marked: those of
gates that promise nothing, too.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from agenteval.verdict.statistics import wilson

SCENARIOS = 20
GOOD, BAD, GOOD_ALWAYS = 0.9, 0.7, 0.95
PROMISE = 0.05
MARGIN = 0.1

AGENT = """
import json
import random
from pathlib import Path

WORLD = json.loads(Path(__file__).with_name("world.json").read_text())


async def agent(messages, ctx):
    luck = random.Random(f"{ctx.seed} {ctx.scenario_id} {ctx.epoch}")
    if luck.random() < WORLD["lost"]:
        raise ConnectionRefusedError("the network is down")
    good = luck.random() < WORLD["rates"][ctx.scenario_id]
    seen = luck.random() < (WORLD["specificity"] if good else WORLD["sensitivity"])
    return "done" if good == seen else "failed"
"""
"""What a judge would say is said at once: an error of the judge turns the outcome round."""


@dataclass(frozen=True)
class World:
    """``rates``: the true success rate of each scenario; ``before``: that of the baseline, if it was another.
    ``sensitivity`` and ``specificity``: of the judge. ``lost``: the share of conversations that are."""

    name: str
    rates: tuple[float, ...]
    before: tuple[float, ...] = ()
    sensitivity: float = 1.0
    specificity: float = 1.0
    lost: float = 0.0


def alike(rate: float, *others: float) -> tuple[float, ...]:
    return (*others, *[rate] * (SCENARIOS - len(others)))


@dataclass(frozen=True)
class Rule:
    """A configuration. ``promises``: whether its error rates are stated. ``only_lost``: for worlds in which
    conversations are lost."""

    name: str
    config: dict[str, Any] = field(default_factory=dict)
    promises: bool = False
    baseline: bool = False
    only_lost: bool = False


RATE = {"pass_rate": {"at_least": GOOD, "reject_below": BAD}}
RULES = (
    Rule("every sample passes, 3 epochs", {"epochs": 3}),
    Rule("pass^3 >= 0.5, 5 epochs", {"epochs": 5, "gates": {"pass_hat_k": {"k": 3, "at_least": 0.5}}}),
    Rule("pass_rate, 20 epochs", {"epochs": 20, "gates": RATE}, promises=True),
    Rule("pass_rate, 3 to 50 epochs", {"epochs": {"min": 3, "max": 50}, "gates": RATE}, promises=True),
    Rule(
        "pass_rate, 3 to 50 epochs, fault_tolerance 0.3",
        {"epochs": {"min": 3, "max": 50}, "gates": RATE, "fault_tolerance": 0.3},
        promises=True,
        only_lost=True,
    ),
    Rule(
        f"no_regression, margin {MARGIN}, 10 epochs",
        {"epochs": 10, "gates": {"no_regression": {"margin": MARGIN}}},
        promises=True,
        baseline=True,
    ),
)
WORLDS = (
    World("all 0.99", alike(0.99)),
    World("all 0.95", alike(0.95)),
    World("all 0.9", alike(0.9)),
    World("all 0.95, one 0.8", alike(0.95, 0.8)),
    World("all 0.99, one 0.7", alike(0.99, 0.7)),
    World("all 0.99, one 0.5", alike(0.99, 0.5)),
    World("all 0.7", alike(0.7)),
    World("all 0.95, 10 % lost", alike(0.95), lost=0.1),
    World("all 0.95, 20 % lost", alike(0.95), lost=0.2),
    World("all 0.99, one 0.5, 20 % lost", alike(0.99, 0.5), lost=0.2),
    World("all 0.99, judge 0.95/0.95", alike(0.99), sensitivity=0.95, specificity=0.95),
    World("all 0.99, one 0.5, judge 0.8/0.98", alike(0.99, 0.5), sensitivity=0.8, specificity=0.98),
)
CHANGES = (
    World("0.9 before and now", alike(0.9), alike(0.9)),
    World("0.95 before and now", alike(0.95), alike(0.95)),
    World(f"0.95, now {MARGIN} less", alike(0.85), alike(0.95)),
    World("0.9, now 0.7", alike(0.7), alike(0.9)),
    World("0.95, one now 0.3", alike(0.95, 0.3), alike(0.95)),
    World("0.95 before and now, 10 % lost", alike(0.95), alike(0.95), lost=0.1),
)


def right(rule: Rule, world: World) -> frozenset[int]:
    """The exit codes that are right; 3 never is wrong."""
    if world.before:
        drop = sum(b - a for b, a in zip(world.before, world.rates, strict=True)) / SCENARIOS
        dropped = any(b > a for b, a in zip(world.before, world.rates, strict=True))
        return frozenset({1, 3} if drop >= MARGIN - 1e-9 else {0, 1, 3} if dropped else {0, 3})
    good = GOOD if rule.promises else GOOD_ALWAYS
    if min(world.rates) <= BAD:
        return frozenset({1, 3})
    return frozenset({0, 3} if min(world.rates) >= good else {0, 1, 3})


# ── a run ────────────────────────────────────────────────────────────────────────────────────────


class Ended(NamedTuple):
    code: int
    conversations: int


def play(rule: Rule, world: World, seed: int) -> Ended:
    """One run, in a process of its own. Raises ``RuntimeError`` if it ends as no run should."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write_project(root, rule, world)
        more = []
        if rule.baseline:
            _set_world(root, replace(world, rates=world.before, lost=0.0))
            _run(root, "--seed", str(seed + 1_000_000))
            _set_world(root, world)
            more = ["--baseline", "latest"]
        code = _run(root, "--seed", str(seed), *more)
        if code not in (0, 1, 3):
            raise RuntimeError(f"{rule.name}, {world.name}, seed {seed}: exit {code}")
        journal = max(root.glob(".agenteval/runs/*/events.jsonl"), key=lambda path: path.stat().st_mtime_ns)
        with journal.open(encoding="utf-8") as lines:
            held = sum('"type":"sample_finished"' in line[:40] for line in lines)
        return Ended(code, held)


def write_project(root: Path, rule: Rule, world: World) -> None:
    config = {"agent": {"name": "bot", "target": "agent.py:agent"}, "metrics": [], **rule.config}
    (root / "scenarios").mkdir()
    (root / "agent.py").write_text(AGENT, encoding="utf-8")
    (root / "agenteval.yaml").write_text(json.dumps(config), encoding="utf-8")
    _set_world(root, world)
    scenarios = [
        {"id": f"s{number}", "turns": ["Please do it."], "expect": {"output": {"contains": ["done"]}}}
        for number in range(SCENARIOS)
    ]
    suite = root / "scenarios" / "suite.yaml"
    suite.write_text(json.dumps({"scenarios": scenarios}), encoding="utf-8")


def _set_world(root: Path, world: World) -> None:
    told = {
        "rates": {f"s{number}": rate for number, rate in enumerate(world.rates)},
        "sensitivity": world.sensitivity,
        "specificity": world.specificity,
        "lost": world.lost,
    }
    (root / "world.json").write_text(json.dumps(told), encoding="utf-8")


def _run(root: Path, *arguments: str) -> int:
    """``agenteval run``: the real command in a fork of this process, which has imported it already."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    code: object = 70
    try:
        os.chdir(root)
        with open(os.devnull, "w", encoding="utf-8") as nowhere:
            os.dup2(nowhere.fileno(), 1)
            os.dup2(nowhere.fileno(), 2)
        sys.argv, sys.path[0] = ["agenteval", "run", "--report", "json=results.json", *arguments], str(root)
        from agenteval.cli.main import main

        main()
        code = 0
    except SystemExit as stop:
        code = stop.code
    finally:
        os._exit(code if isinstance(code, int) else 70)


# ── the table ────────────────────────────────────────────────────────────────────────────────────


class Row(NamedTuple):
    rule: Rule
    world: World
    ended: tuple[Ended, ...]

    def count(self, code: int) -> int:
        return sum(end.code == code for end in self.ended)

    @property
    def wrong(self) -> int:
        allowed = right(self.rule, self.world)
        return sum(end.code not in allowed for end in self.ended)

    @property
    def text(self) -> str:
        n = len(self.ended)
        low, high = wilson(self.wrong, n)
        mean = sum(end.conversations for end in self.ended) / n
        wrong = "either is right" if right(self.rule, self.world) == {0, 1, 3} else ""
        wrong = wrong or f"{self.wrong / n:6.1%} [{low:.1%}, {high:.1%}]"
        mark = "  over 5 %" if low > PROMISE else ""
        shares = "  ".join(f"{self.count(code) / n:5.0%}" for code in (0, 1, 3))
        return f"{self.world.name:36}{n:4}  {shares}  {mean:8.0f}   {wrong}{mark}"


def rows(runs: int, only: str, seed: int, workers: int) -> Iterator[Row]:
    with ProcessPoolExecutor(max_workers=workers) as pool:
        for rule in RULES:
            for world in CHANGES if rule.baseline else WORLDS:
                if only in f"{rule.name} | {world.name}" and (world.lost or not rule.only_lost):
                    seeds = [seed + number for number in range(runs)]
                    ended = pool.map(play, [rule] * runs, [world] * runs, seeds, chunksize=5)
                    yield Row(rule, world, tuple(ended))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("runs", nargs="?", type=int, default=100)
    parser.add_argument("--only", default="", help="rows whose rule or world holds this text")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args(arguments)
    reporters = ("reporters.terminal.summary", "reporters.results.document")
    for name in ("cli.main", "cli.commands.run", "adapters.agents.python", *reporters):
        __import__(f"agenteval.{name}")
    told, broken = "", 0
    with contextlib.suppress(KeyboardInterrupt):
        for row in rows(asked.runs, asked.only, asked.seed, asked.workers):
            if row.rule.name != told:
                told = row.rule.name
                stated = "error rates stated" if row.rule.promises else "nothing stated"
                print(f"\n{told} ({stated})")
                print(f"{'true rates':36}{'n':>4}  green    red   open  convers.   wrong verdicts [95 %]")
            print(row.text, flush=True)
            broken += row.rule.promises and wilson(row.wrong, len(row.ended)).low > PROMISE
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
