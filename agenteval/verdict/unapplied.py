"""Which gates of a configuration can hold for recorded conversations. Pure."""

from __future__ import annotations

from agenteval.core.config import GatesConfig
from agenteval.verdict.run_gates import rule_of
from agenteval.verdict.statistics import least_epochs

_NO_BASELINE = "score compares with no baseline: agenteval diff A B does"
_ONE_EACH = "each conversation is a scenario of its own: --scenario-from PATH makes them epochs"


def unapplied(gates: GatesConfig, *, repeats: bool) -> dict[str, str]:
    """The gates that no recorded conversations could satisfy, by name with the reason. ``repeats``: whether
    several conversations may be epochs of one scenario."""
    found: dict[str, str] = {}
    if gates.pass_rate and not repeats and least_epochs(rule_of(gates.pass_rate, 1)) > 1:
        found["pass_rate"] = _ONE_EACH
    if gates.pass_hat_k and not repeats and gates.pass_hat_k.k > 1:
        found["pass_hat_k"] = _ONE_EACH
    if gates.no_regression:
        found["no_regression"] = _NO_BASELINE
    return found
