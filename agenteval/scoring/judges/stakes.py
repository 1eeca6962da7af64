"""What a judge's verdict may decide: whether it needs references, and whether it is asked again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from agenteval.core.plan import Plan, ScenarioRules
from agenteval.core.scenario import Scenario
from agenteval.core.score import Severity


@dataclass(frozen=True)
class Stakes:
    """``fail_on``: the least severity that fails a sample. ``rules_for``: what applies to a
    scenario. ``corroborate``: whether what would gate is asked again; ``seed`` draws the clean verdicts that
    are, too. ``may_be_raised``: a model may propose one level more later (``severity_from: model``), when
    nobody is asked again."""

    fail_on: Severity | None = Severity.CRITICAL
    severities: Mapping[str, Severity] = field(default_factory=dict)
    rules_for: Callable[[Scenario], ScenarioRules] = lambda _: ScenarioRules()
    corroborate: bool = True
    seed: int = 0
    may_be_raised: bool = False

    @classmethod
    def of(cls, plan: Plan, rules_for: Callable[[Scenario], ScenarioRules]) -> Stakes:
        return cls(
            fail_on=plan.suite.fail_on,
            severities=plan.suite.severities,
            rules_for=rules_for,
            corroborate=plan.suite.corroborate,
            seed=plan.suite.seed,
            may_be_raised=plan.suite.severity_from == "model",
        )

    def bar(self, metric: str, scenario: Scenario) -> float | None:
        """The highest number that a threshold on the metric names for the scenario."""
        held = self.rules_for(scenario).thresholds.get(metric)
        return held.bar if held else None

    def is_severe(self, severity: Severity, metric: str, scenario: Scenario) -> bool:
        """Whether a failing label of this severity would fail a sample, or lowers a share that a threshold
        asks for."""
        if self.bar(metric, scenario) is not None:
            return True
        return self.gates_at(severity)

    def gates_at(self, severity: Severity) -> bool:
        """Whether a finding of this severity would fail a sample, or could once it is raised."""
        worst = severity.raised_towards(Severity.CRITICAL) if self.may_be_raised else severity
        return self.fail_on is not None and worst.rank >= self.fail_on.rank
