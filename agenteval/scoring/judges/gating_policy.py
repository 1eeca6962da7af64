"""Decides what a judge's verdict may cause: whether it gates, and whether it is asked again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from agenteval.core.plan import ScenarioRules, SuitePolicy
from agenteval.core.scenario import Scenario
from agenteval.core.score import Severity


@dataclass(frozen=True)
class GatingPolicy:
    """Decides which verdicts fail a sample, and whether these are asked again."""

    fail_on: Severity | None = Severity.CRITICAL
    """The lowest severity that fails a sample."""
    severities: Mapping[str, Severity] = field(default_factory=dict)
    """The author's own severities, by label."""
    rules_for: Callable[[Scenario], ScenarioRules] = lambda _: ScenarioRules()
    """Returns the rules that apply to a scenario."""
    corroborate: bool = True
    """True if a verdict that would gate is asked again."""
    seed: int = 0
    """The seed that draws the clean verdicts that are asked again, too."""
    may_be_raised: bool = False
    """True if a model may later propose one level more (``severity_from: model``), when no judge is asked
    again."""

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
        """Return the highest number that a threshold on the metric requires for the scenario; ``None``
        without one."""
        threshold = self.rules_for(scenario).thresholds.get(metric)
        return threshold.bar if threshold else None

    def is_severe(self, severity: Severity, metric: str, scenario: Scenario) -> bool:
        """Check whether a failing label of this severity would fail a sample, or lower a share that has a
        threshold."""
        if self.highest_threshold(metric, scenario) is not None:
            return True
        return self.gates_at(severity)

    def gates_at(self, severity: Severity) -> bool:
        """Check whether a finding of this severity would fail a sample, or could once it is raised."""
        worst = severity.raised_towards(Severity.CRITICAL) if self.may_be_raised else severity
        return self.fail_on is not None and worst.rank >= self.fail_on.rank
