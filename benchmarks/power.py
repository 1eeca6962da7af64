"""Which drop ``no_regression`` finds how often, how often ``pass_rate`` decides: the tables of docs/gates.md.

::

    python benchmarks/power.py [DRAWS] [--seed N]

``no_regression``: two runs of suites whose scenarios all have one true rate; in the second all of them fall,
or one alone. DRAWS (default 1,000) pairs of runs each, drawn with a seed: a share is good to about 3 points.
``pass_rate``: exact, nothing is drawn.
"""

from __future__ import annotations

import argparse
from typing import NamedTuple

from agenteval.verdict.run_gates.no_regression import SCENARIO_MARGIN
from agenteval.verdict.statistics import (
    Margins,
    OutcomeProbabilities,
    PassRateRule,
    no_regression_chances,
    rate_test,
)

RATE, MARGIN = 0.95, 0.05
SUITES = ((20, 3), (20, 5), (20, 10), (20, 20), (100, 3), (100, 5))


class Drop(NamedTuple):
    """By how much the rate of ``of_all`` falls in each scenario, and of ``of_one`` in one alone."""

    name: str
    of_all: float = 0.0
    of_one: float = 0.0


DROPS = (
    Drop("nothing"),
    Drop("all by 5 points", of_all=0.05),
    Drop("all by 10 points", of_all=0.1),
    Drop("all by 20 points", of_all=0.2),
    Drop("one from 95 to 50 %", of_one=0.45),
    Drop("one from 95 to 0 %", of_one=0.95),
)


def chances(drop: Drop, scenarios: int, epochs: int, *, draws: int, seed: int = 0) -> OutcomeProbabilities:
    after = [RATE - drop.of_all] * scenarios
    after[0] -= drop.of_one
    margins = Margins(MARGIN, SCENARIO_MARGIN)
    return no_regression_chances([RATE] * scenarios, after, epochs, margins, draws=draws, seed=seed)


def regression_rows(draws: int, seed: int) -> list[str]:
    rows = ["| what drops | " + " | ".join(f"{n} × {k}" for n, k in SUITES) + " |"]
    rows.append("|---|" + "---|" * len(SUITES))
    for drop in DROPS:
        cells = [chances(drop, n, k, draws=draws, seed=seed) for n, k in SUITES]
        rows.append(f"| {drop.name} | " + " | ".join(map(_shares, cells)) + " |")
    return rows


def _shares(found: OutcomeProbabilities) -> str:
    return " / ".join(f"{share * 100:.0f}" for share in (found.reject, found.undecided, found.accept))


def rate_rows(scenarios: int = 20) -> list[str]:
    """At the bounds 0.9 and 0.7, for a suite of ``scenarios`` that all have the rate, and one alone."""
    rows = ["| true rate of each scenario | 10 epochs | 20 epochs | 3 to 50 epochs |", "|---|---|---|---|"]
    for rate in (0.99, 0.95, 0.9, 0.8, 0.7):
        cells = []
        for least, most in ((10, 10), (20, 20), (3, 50)):
            one = rate_test(PassRateRule(0.9, 0.7, 0.95, scenarios), least, most).chances(rate)
            green, red = one.accept**scenarios, 1 - (1 - one.reject) ** scenarios
            cells.append(_shares(OutcomeProbabilities(green, red, 1 - green - red, one.epochs)))
        rows.append(f"| {rate:g} | " + " | ".join(cells) + " |")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("draws", type=int, nargs="?", default=1000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    print("\n".join([*regression_rows(asked.draws, asked.seed), "", *rate_rows()]))


if __name__ == "__main__":
    main()
