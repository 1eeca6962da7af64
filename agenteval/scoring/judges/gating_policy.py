"""Decides the consequences of a judge's verdict: whether the verdict gates (fails the sample), and whether
the judge is asked again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from agenteval.core.plan import ScenarioRules, SuitePolicy
from agenteval.core.scenario import Scenario
from agenteval.core.score import Severity


@dataclass(frozen=True)
class GatingPolicy:
    """Decides which verdicts fail a sample (quality gate), and whether the judge is asked again about these
    verdicts."""

    fail_on: Severity | None = Severity.CRITICAL
    """The lowest severity that fails a sample."""
    severities: Mapping[str, Severity] = field(default_factory=dict)
    """The author's own severities, keyed by label."""
    rules_for: Callable[[Scenario], ScenarioRules] = lambda _: ScenarioRules()
    """A function that returns the rules that apply to a scenario."""
    corroborate: bool = True
    """True if the judge is asked again about a verdict that would gate."""
    seed: int = 0
    """The seed used to select the clean verdicts that are also checked again."""
    may_be_raised: bool = False
    """True if a model may later propose a severity that is one level higher (``severity_from: model``). No
    judge is asked again at that point."""

    @classmethod
    def from_suite(cls, suite: SuitePolicy, rules_for: Callable[[Scenario], ScenarioRules]) -> GatingPolicy:
        return cls(
            fail_on=suite.fail_on,
            severities=suite.severities,
            rules_for=rules_for,
            corroborate=suite.corroborate,
            seed=suite.seed,
            may_be_raised=suite.severity_from == "model",
        )

    def highest_threshold(self, metric: str, scenario: Scenario) -> float | None:
        """Return the highest value that a threshold on the metric requires for the scenario, or ``None`` if
        there is no threshold."""
        threshold = self.rules_for(scenario).thresholds.get(metric)
        return threshold.bar if threshold else None

    def is_severe(self, severity: Severity, metric: str, scenario: Scenario) -> bool:
        """Check whether a failing label of this severity would fail a sample, or would lower a share that has
        a threshold."""
        if self.highest_threshold(metric, scenario) is not None:
            return True
        return self.gates_at(severity)

    def gates_at(self, severity: Severity) -> bool:
        """Check whether a finding of this severity would fail a sample, or could do so once its severity is
        raised."""
        worst = severity.raised_towards(Severity.CRITICAL) if self.may_be_raised else severity
        return self.fail_on is not None and worst.rank >= self.fail_on.rank
