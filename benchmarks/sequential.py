"""Sequential epochs: are the stated error rates held, and how many conversations are saved?

::

    python benchmarks/sequential.py [RUNS] [--seed N]

RUNS (default 2000) simulated runs of each row, each of 20 scenarios under ``pass_rate: {at_least: 0.9,
reject_below: 0.7, confidence: 0.95}``, beside the exact chance from arithmetic over all paths. A row misses
when the 99.9 % interval of the simulation leaves the exact figure outside, or when what it shows breaks the
promise: green at most 5 % where a scenario has a rate of 0.7 or less, red at most 5 % of runs where all have
0.9 or more. The reference is a run of 335 conversations in the mean, green in 98 %, for an agent of 0.95. The
last row shows what becomes of the rates when epochs are taken as they complete.
"""

from __future__ import annotations

import argparse
import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from agenteval.verdict.statistics import (
    PassRateRule,
    RateTest,
    StatisticalOutcome,
    clopper_pearson,
    epochs_for_green,
    in_epoch_order,
    rate_test,
    wilson,
)

SCENARIOS = 20
RULE = PassRateRule(at_least=0.9, reject_below=0.7, confidence=0.95, scenarios=SCENARIOS)
PROMISE = 0.05
REFERENCE_CONVERSATIONS = 335
REFERENCE_GREEN = 0.98
LEAST = 3
MOST = (20, 50, 100)
RATES = (1.0, 0.98, 0.95, 0.9, 0.8, 0.7, 0.5)
SLOW = 4.0
"""How much longer a conversation takes that fails: the agent tries again and again."""


class Played(NamedTuple):
    """One scenario of one run: what was decided, and how many conversations were held for it."""

    outcome: StatisticalOutcome
    conversations: int


Play = Callable[[Random, RateTest, float], Played]


def in_order(random: Random, test: RateTest, rate: float) -> Played:
    decision = test.decide([random.random() < rate for _ in range(test.max_epochs)])
    return Played(decision.outcome, decision.epochs)


def with_losses(share: float) -> Play:
    """``share`` of the conversations are lost; each is replaced once."""

    def play(random: Random, test: RateTest, rate: float) -> Played:
        drawn = {
            epoch: None if random.random() < share else random.random() < rate
            for epoch in range(2 * test.max_epochs)
        }
        decision = test.decide(in_epoch_order(drawn, test.max_epochs))
        replaced = sum(drawn[epoch] is None for epoch in range(decision.epochs))
        return Played(decision.outcome, decision.epochs + replaced)

    return play


def as_they_complete(random: Random, test: RateTest, rate: float) -> Played:
    """The mistake: ten conversations at a time, failures slow, decided on whatever has finished."""
    flying: list[tuple[float, int, bool]] = []
    finished: list[bool] = []
    started = 0
    now = 0.0
    while True:
        while len(flying) < 10 and started < test.max_epochs:
            success = random.random() < rate
            length = random.uniform(0.5, 1.5) * (1 if success else SLOW)
            heapq.heappush(flying, (now + length, started, success))
            started += 1
        now, _, success = heapq.heappop(flying)
        finished.append(success)
        decision = test.decide(finished)
        if decision.outcome is not StatisticalOutcome.CONTINUE:
            return Played(decision.outcome, started)


@dataclass(frozen=True)
class Row:
    """``rates``: the true rate of each scenario. ``exact``: whether arithmetic covers how it is played."""

    name: str
    rates: tuple[float, ...]
    test: RateTest
    play: Play = in_order
    exact: bool = True

    @property
    def promise(self) -> str:
        if min(self.rates) <= RULE.reject_below:
            return "green"
        return "red" if min(self.rates) >= RULE.at_least else ""


class Measured(NamedTuple):
    runs: int
    green: int
    red: int
    conversations: int


def measure(row: Row, runs: int, seed: int) -> Measured:
    random = Random(f"{seed} {row.name} {row.test.max_epochs}")
    green = red = conversations = 0
    for _ in range(runs):
        played = [row.play(random, row.test, rate) for rate in row.rates]
        outcomes = {scenario.outcome for scenario in played}
        red += StatisticalOutcome.REJECT in outcomes
        green += outcomes == {StatisticalOutcome.ACCEPT}
        conversations += sum(scenario.conversations for scenario in played)
    return Measured(runs, green, red, conversations)


def exact_rates(row: Row) -> tuple[float, float, float]:
    """Green, red, and the mean number of conversations."""
    green = kept = 1.0
    conversations = 0.0
    for rate in row.rates:
        chances = row.test.chances(rate)
        green, kept = green * chances.accept, kept * (1 - chances.reject)
        conversations += chances.epochs
    return green, 1 - kept, conversations


def rows() -> list[Row]:
    found: list[Row] = []
    for most in MOST:
        test = rate_test(RULE, LEAST, most)
        found += [Row(f"all at {rate:g}", (rate,) * SCENARIOS, test) for rate in RATES]
        found.append(Row("one at 0.7, the others perfect", (0.7, *(1.0,) * (SCENARIOS - 1)), test))
        found.append(Row("one at 0.7, the others at 0.95", (0.7, *(0.95,) * (SCENARIOS - 1)), test))
    test = rate_test(RULE, LEAST, 50)
    for share in (0.1, 0.2):
        lost = f"{share:.0%} of conversations lost"
        found += [
            Row(f"{lost}, all at {rate:g}", (rate,) * SCENARIOS, test, with_losses(share), exact=False)
            for rate in (0.95, 0.9)
        ]
        one = (0.7, *(1.0,) * (SCENARIOS - 1))
        found.append(Row(f"{lost}, one at 0.7", one, test, with_losses(share), exact=False))
    found.append(
        Row("AS THEY COMPLETE, one at 0.7", (0.7, *(1.0,) * 19), test, as_they_complete, exact=False)
    )
    return found


def misses(row: Row, measured: Measured) -> list[str]:
    found = []
    figures = {"green": measured.green, "red": measured.red}
    if row.exact:
        expected = dict(zip(("green", "red"), exact_rates(row), strict=False))
        for name, count in figures.items():
            low, high = clopper_pearson(count, measured.runs, 0.999)
            if not low <= expected[name] <= high:
                found.append(f"{name}: simulated {count / measured.runs:.2%}, exact {expected[name]:.2%}")
    # Only what the simulation shows beyond doubt breaks the promise: rows lie close to it by design.
    if row.promise and clopper_pearson(figures[row.promise], measured.runs, 0.999).low > PROMISE:
        found.append(f"wrong {row.promise} {figures[row.promise] / measured.runs:.1%}, promised 5 %")
    return found


def line(row: Row, measured: Measured) -> str:
    def share(count: int, name: str) -> str:
        low, high = wilson(count, measured.runs)
        wrong = "*" if row.promise == name else " "
        return f"{count / measured.runs:7.2%}{wrong} [{low:6.2%}, {high:6.2%}]"

    exact = exact_rates(row) if row.exact else None
    beside = f"{exact[0]:7.2%} {exact[1]:7.2%} {exact[2]:7.1f}" if exact else f"{'-':>7} {'-':>7} {'-':>7}"
    mean = measured.conversations / measured.runs
    saved = 1 - mean / (SCENARIOS * row.test.max_epochs)
    figures = f"{share(measured.green, 'green')}  {share(measured.red, 'red')}  {mean:7.1f} {saved:6.0%}"
    return f"{row.test.max_epochs:4}  {row.name:42} {figures}   {beside}"


def compare_with_reference() -> list[str]:
    found = []
    for most in MOST:
        green, _, conversations = exact_rates(Row("", (0.95,) * SCENARIOS, rate_test(RULE, LEAST, most)))
        verdict = (
            "reached"
            if green >= REFERENCE_GREEN and conversations <= REFERENCE_CONVERSATIONS + 1
            else "MISSED"
        )
        found.append(
            f"at most {most:3} epochs: green {green:.1%}, {conversations:.0f} conversations: {verdict}"
        )
    needed = epochs_for_green(RULE, 0.95, chance=REFERENCE_GREEN, min_epochs=LEAST)
    found.append(f"The reference needs about {needed} epochs at most.")
    fixed = epochs_for_green(RULE, 0.95, chance=REFERENCE_GREEN)
    found.append(
        f"A fixed number that does as well: {fixed} epochs, {(fixed or 0) * SCENARIOS} conversations."
    )
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Error rates and savings of sequential epochs.")
    parser.add_argument("runs", nargs="?", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args(arguments)
    print(f"{asked.runs} runs of {SCENARIOS} scenarios a row, seed {asked.seed}, at least {LEAST} epochs;")
    print("in brackets 95 % intervals; * is the wrong verdict that was promised to stay within 5 %.\n")
    heads = f"{'green':^25} {'red':^26}  {'mean':>5} {'saved':>6}   {'exactly: green':>7}   red    mean"
    print(f"{'most':4}  {'true rates':42} {heads}")
    missed = []
    for row in rows():
        measured = measure(row, asked.runs, asked.seed)
        print(line(row, measured), flush=True)
        missed += [f"{row.test.max_epochs} epochs, {row.name}: {what}" for what in misses(row, measured)]
    print(f"\nReference: green {REFERENCE_GREEN:.0%}, {REFERENCE_CONVERSATIONS} conversations, agent of 0.95")
    print("\n".join(f"  {told}" for told in compare_with_reference()))
    print("\nMisses:" if missed else "\nNo misses.")
    print("\n".join(f"  {told}" for told in missed))


if __name__ == "__main__":
    main()
