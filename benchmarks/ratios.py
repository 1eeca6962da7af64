"""How often ``no_worse_than`` is wrong, and how often it decides: a table of docs/gates.md.

::

    python benchmarks/ratios.py [DRAWS] [--seed N]

Two runs of one suite. Scenarios differ in what they take (by a factor of about two), conversations of one
scenario scatter around that, and each scenario changes by a factor of its own around the true ratio. DRAWS
(default 2,000) pairs of runs for each cell, drawn with a seed: a share is good to about 2 points. A miss is
an interval that leaves out the true ratio of the means.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from math import exp, log
from random import Random
from typing import NamedTuple

from agenteval.verdict.statistics import StatisticalOutcome
from agenteval.verdict.statistics.ratios import RatioPair, Side, ratio_of

BOUND = 1.2
SUITES = ((3, 1), (5, 3), (10, 1), (20, 1), (20, 5), (100, 1))
RATIOS = (0.4, 1.0, 1.2, 1.5)


class World(NamedTuple):
    """``draw``: a conversation's number, of its scenario's usual one; what of it is random."""

    name: str
    draw: Callable[[Random, float], float]
    own: float
    """How far the scenarios' own ratios scatter around the true one (standard deviation of logarithms)."""


def _noisy(random: Random, usual: float) -> float:
    return usual * exp(random.gauss(0, 0.3))


def _spiky(random: Random, usual: float) -> float:
    """One call in twenty takes five times as long."""
    return _noisy(random, usual) * (5 if random.random() < 0.05 else 1)


def _whole(random: Random, usual: float) -> float:
    """Steps: mostly as many as ever; what the ratio asks beyond comes in leaps to twice as many."""
    base = 2.0 if usual < 4 else 4.0
    return base * (2 if random.random() < usual / base - 1 else 1)


WORLDS = (
    World("latency, ± 30 %", _noisy, 0.1),
    World("latency with spikes", _spiky, 0.1),
    World("steps, whole numbers", _whole, 0.0),
)


def pairs_of(world: World, ratio: float, scenarios: int, epochs: int, random: Random) -> list[RatioPair]:
    pairs = []
    for number in range(scenarios):
        if world.draw is _whole:
            usual, then = 2.0, 2.0 * exp(log(ratio))
        else:
            usual = exp(random.gauss(0, 0.7))
            then = usual * ratio * exp(random.gauss(0, world.own))
        before, after = (
            Side(tuple(world.draw(random, mean) for _ in range(epochs))) for mean in (usual, then)
        )
        pairs.append(RatioPair(str(number), before, after))
    return pairs


class Found(NamedTuple):
    """Shares of the draws: red, not decided, green; and how often the interval misses on either side."""

    red: float
    undecided: float
    green: float
    above: float
    below: float


def measured(world: World, ratio: float, scenarios: int, epochs: int, *, draws: int, seed: int = 0) -> Found:
    random = Random(f"{world.name} {ratio} {scenarios} {epochs} {seed}")
    told = dict.fromkeys(StatisticalOutcome, 0)
    above = below = 0
    for _ in range(draws):
        found = ratio_of(pairs_of(world, ratio, scenarios, epochs, random))
        told[found.against(BOUND)] += 1
        above += found.low > ratio
        below += found.high < ratio
    shares = (
        told[StatisticalOutcome.REJECT],
        told[StatisticalOutcome.UNDECIDED],
        told[StatisticalOutcome.ACCEPT],
        above,
        below,
    )
    return Found(*(count / draws for count in shares))


def table(draws: int, seed: int) -> list[str]:
    rows = ["| what is measured | true ratio | " + " | ".join(f"{n} × {k}" for n, k in SUITES) + " |"]
    rows.append("|---|---|" + "---|" * len(SUITES))
    for world in WORLDS:
        for ratio in RATIOS:
            if world.draw is _whole and ratio < 1:
                continue  # it only leaps up
            cells = [_cell(measured(world, ratio, n, k, draws=draws, seed=seed)) for n, k in SUITES]
            rows.append(f"| {world.name} | {ratio:g} | " + " | ".join(cells) + " |")
    return rows


def _cell(found: Found) -> str:
    shares = " / ".join(f"{share * 100:.0f}" for share in (found.red, found.undecided, found.green))
    return f"{shares} ({found.above * 100:.0f}, {found.below * 100:.0f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("draws", type=int, nargs="?", default=2000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    print("\n".join(table(asked.draws, asked.seed)))


if __name__ == "__main__":
    main()
