"""The error rates of a gate (false-positive and false-negative probability), as values and as a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from agenteval.verdict.statistics import Design, error_rates

GOOD, BAD = 0.95, 0.7
"""The default success rates in each scenario, for gates that set none: that of an agent that should be green,
and that of an agent that should not."""

UNINFORMATIVE_ABOVE = 0.2
"""The error rate above which a gate is considered uninformative."""


class GateErrorRates(NamedTuple):
    """The probabilities that a gate is wrong by chance. A rate that cannot be estimated is ``None``."""

    gate: str
    good: float
    """The true success rate, in every scenario, of an agent that should pass (the good agent)."""
    bad: float
    """The true success rate of an agent that should not pass (the bad agent)."""
    false_red: float | None
    """The probability that a run of the good agent fails."""
    false_green: float | None
    """The probability that a run of the bad agent passes."""
    green: float | None
    """The probability that a run of the good agent passes. The remaining runs fail or are undecided."""
    where: str = ""
    advice: str = ""
    """An alternative that would do better. If the rates cannot be known in advance (``is_known`` is false),
    this text describes what is known."""
    bad_where: str = "in one scenario"
    """A phrase that states in how many scenarios the bad agent has the rate ``bad``."""
    is_known: bool = True
    """True if the rates can be known before the run."""

    @property
    def is_uninformative(self) -> bool:
        """True if the gate is wrong so often, or decides so rarely, that it provides little information."""
        if not self.is_known:
            return False
        if self.false_red is None or self.false_green is None or self.green is None:
            return True
        return max(self.false_red, self.false_green, 1 - self.green - self.false_red) > UNINFORMATIVE_ABOVE

    @property
    def sentence(self) -> str:
        """A sentence about the effect of chance on the gate. It also marks an uninformative gate."""
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


def unknown_error_rates(gate: str, where: str, known: str) -> GateErrorRates:
    """Return the row for a gate whose error rates cannot be known in advance."""
    return GateErrorRates(gate, GOOD, BAD, None, None, None, where, known, is_known=False)


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
    """Return the error rates of a gate that counts successes. ``designs`` contains the rule for the count in
    each scenario. ``advice`` is used only if the gate is uninformative."""
    rates = error_rates(designs, good=good, bad=bad)
    row = GateErrorRates(gate, good, bad, rates.false_red, rates.false_green, rates.green_when_good, where)
    return row._replace(advice=advice) if row.is_uninformative else row
