"""What a judge's verdict may decide: whether it needs references, and whether it is asked again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from agenteval.core.plan import ScenarioRules, SuitePolicy
from agenteval.core.scenario import Scenario
from agenteval.core.score import Severity


@dataclass(frozen=True)
class GatingPolicy:
    """Which verdicts fail something, and whether those that would are asked again."""

    fail_on: Severity | None = Severity.CRITICAL
    """The least severity that fails a sample."""
    severities: Mapping[str, Severity] = field(default_factory=dict)
    """The author's own, by label."""
    rules_for: Callable[[Scenario], ScenarioRules] = lambda _: ScenarioRules()
    """What applies to a scenario."""
    corroborate: bool = True
    """Whether what would gate is asked again."""
    seed: int = 0
    """Draws the clean verdicts that are asked again, too."""
    may_be_raised: bool = False
    """A model may propose one level more later (``severity_from: model``), when nobody is asked again."""

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
        """The highest number that a threshold on the metric names for the scenario."""
        held = self.rules_for(scenario).thresholds.get(metric)
        return held.bar if held else None

    def is_severe(self, severity: Severity, metric: str, scenario: Scenario) -> bool:
        """Whether a failing label of this severity would fail a sample, or lowers a share that a threshold
        asks for."""
        if self.highest_threshold(metric, scenario) is not None:
            return True
        return self.gates_at(severity)

    def gates_at(self, severity: Severity) -> bool:
        """Whether a finding of this severity would fail a sample, or could once it is raised."""
        worst = severity.raised_towards(Severity.CRITICAL) if self.may_be_raised else severity
        return self.fail_on is not None and worst.rank >= self.fail_on.rank
