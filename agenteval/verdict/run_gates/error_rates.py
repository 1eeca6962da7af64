"""How often a gate will be wrong, as a value, and in a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from agenteval.verdict.statistics import Design, error_rates

GOOD, BAD = 0.95, 0.7
"""The success rates, of each scenario, of an agent that should be green and of one that should not be, where
the gate itself names none."""

UNINFORMATIVE_ABOVE = 0.2
"""A gate that errs more often than this is called a coin."""


class GateErrorRates(NamedTuple):
    """``false_red``: how often a run of an agent is red whose true rate is ``good`` in every scenario.
    ``false_green``: how often one is green that has ``bad``, ``bad_where`` says in how many scenarios.
    ``green``: how often the good one is green; what is neither is not decided. ``None``: not estimable.
    ``advice`` says what would do better; where nobody can know the chances beforehand (not ``is_known``),
    what is known."""

    gate: str
    good: float
    bad: float
    false_red: float | None
    false_green: float | None
    green: float | None
    where: str = ""
    advice: str = ""
    bad_where: str = "in one scenario"
    is_known: bool = True

    @property
    def is_uninformative(self) -> bool:
        """Whether the gate is so often wrong, or so seldom says anything, that it tells little."""
        if not self.is_known:
            return False
        if self.false_red is None or self.false_green is None or self.green is None:
            return True
        return max(self.false_red, self.false_green, 1 - self.green - self.false_red) > UNINFORMATIVE_ABOVE

    @property
    def sentence(self) -> str:
        """What chance alone makes of the gate, in words; a coin marked."""
        if self.false_red is None or self.false_green is None or self.green is None:
            return f"{self.gate}: {self.advice}"
        worth = "little better than tossing a coin" if self.is_uninformative else ""
        advice = "; ".join(filter(None, (worth, self.advice)))
        undecided = max(0.0, 1 - self.green - self.false_red)
        open_too = f" and undecided in {_share(undecided)}" if undecided > 0.005 else ""
        return (
            f"{self.gate}: an agent that truly succeeds in {_share(self.good)} of conversations is red by"
            f" chance in {_share(self.false_red)} of runs{open_too}; one that truly succeeds in"
            f" {_share(self.bad)} {self.bad_where} is green by chance in"
            f" {_share(self.false_green)}{f' — {advice}' if advice else ''}"
        )


def unknown_error_rates(gate: str, where: str, told: str) -> GateErrorRates:
    """Of a gate whose chances nobody can know beforehand; ``told``: what is known."""
    return GateErrorRates(gate, GOOD, BAD, None, None, None, where, told, is_known=False)


def _share(chance: float) -> str:
    if 0 < chance < 0.001:
        return "under 0.1 %"
    return f"{chance:.1%}".replace("%", " %").replace(".0 ", " ")


def count_error_rates(
    gate: str,
    designs: Sequence[Design],
    where: str,
    advice: str,
    *,
    good: float = GOOD,
    bad: float = BAD,
) -> GateErrorRates:
    """Of a gate that counts successes; ``designs``: what each scenario asks of its count. ``advice`` is given
    to coins alone."""
    rates = error_rates(designs, good=good, bad=bad)
    row = GateErrorRates(gate, good, bad, rates.false_red, rates.false_green, rates.green_when_good, where)
    return row._replace(advice=advice) if row.is_uninformative else row
