"""What a judge's verdict may decide: whether it needs references, and whether it is asked again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from agenteval.core.config import Config
from agenteval.core.scenario import Scenario, Thresholds
from agenteval.core.score import Severity
from agenteval.core.severity import of_label
from agenteval.scoring.metrics import thresholds_of


@dataclass(frozen=True)
class Stakes:
    """``fail_on``: the least severity that fails a sample. ``thresholds``: the suite's. ``corroborate``:
    whether what would gate is asked again; ``seed`` draws the clean verdicts that are, too."""

    fail_on: Severity | None = Severity.CRITICAL
    severities: Mapping[str, Severity] = field(default_factory=dict)
    thresholds: Thresholds = field(default_factory=dict)
    corroborate: bool = True
    seed: int = 0

    @classmethod
    def of(cls, config: Config) -> Stakes:
        bound = config.fail_on_severity
        return cls(
            fail_on=bound if isinstance(bound, Severity) else None,
            severities=config.severities,
            thresholds=config.thresholds,
            corroborate=config.judge.corroborate,
            seed=config.seed,
        )

    def bar(self, metric: str, scenario: Scenario) -> float | None:
        """The highest number that a threshold on the metric names for the scenario."""
        held = thresholds_of(scenario, self.thresholds).get(metric)
        return held.bar if held else None

    def is_severe(self, label: str, metric: str, scenario: Scenario, own: Mapping[str, Severity]) -> bool:
        """Whether a failing label would fail a sample, or lowers a share that a threshold asks for. ``own``:
        the severities that the rubric sets."""
        if self.bar(metric, scenario) is not None:
            return True
        severity = of_label(label, {**own, **self.severities})
        return self.fail_on is not None and severity.rank >= self.fail_on.rank
