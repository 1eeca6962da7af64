"""The interface of a gate across repeated runs: one ``RunGate`` defines everything about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from agenteval.core.config import GatesConfig
from agenteval.core.decision import GateRow, SampleDecision, Violation
from agenteval.core.plan import Pairing
from agenteval.core.sample_report import SampleReport
from agenteval.core.scenario import EpochRange, SampleKey, Scenario
from agenteval.core.score import Verdict
from agenteval.core.value import Value
from agenteval.verdict.epochs import EpochOutcomes
from agenteval.verdict.report import Report
from agenteval.verdict.run_gates.error_rates import GateErrorRates
from agenteval.verdict.statistics import StatisticalOutcome

Settings = TypeVar("Settings", bound=Value)

VERDICT_OF = {
    StatisticalOutcome.ACCEPT: Verdict.PASSED,
    StatisticalOutcome.REJECT: Verdict.FAILED,
    StatisticalOutcome.CONTINUE: Verdict.INCONCLUSIVE,
    StatisticalOutcome.UNDECIDED: Verdict.INCONCLUSIVE,
}

BASELINE = "agenteval run --baseline RUN"

ONE_EACH = "each conversation counts as its own scenario; use `--scenario-from PATH` to group them as epochs"
"""The reason why a gate that needs several epochs does not apply to recorded conversations."""


def explain_no_baseline(report: Report) -> str:
    """Explain why a gate that needs a baseline has none. The explanation is shown as the basis of the gate's
    row."""
    return f"nothing to compare with: {report.run.no_baseline or 'run with --baseline RUN'}"


class Evidence(NamedTuple):
    """The data on which a gate bases its decision."""

    report: Report
    epochs: Mapping[Pairing, EpochOutcomes]
    samples: Mapping[SampleKey, SampleDecision]
    """The decision about each sample."""
    where: str
    """The location of the gate in the configuration."""
    others_decide: bool
    """True if another gate examines each scenario separately."""

    def place(self, gate: str, key: str) -> str:
        """Return the location of one of the gate's keys in the configuration."""
        place = self.report.plan.suite.where(f"gates.{gate}.{key}")
        return self.where if place == "default" else place


class PlannedRun(NamedTuple):
    """The facts about a run that are known before it starts."""

    epochs: Sequence[EpochRange]
    """The range of epochs for each scenario × agent."""
    where: str
    """The location of the gate in the configuration."""


def _always(_settings: Any, *, repeats: bool) -> str:
    return ""


def _nothing(_sample: SampleReport, _scenario: Scenario, _violation: Violation) -> bool:
    return False


@dataclass(frozen=True)
class RunGate(Generic[Settings]):
    """One gate across repeated runs. It is registered only in ``agenteval.verdict.run_gates.RUN_GATES``."""

    name: str
    """The gate's key under ``gates``, which is also the name of its rows."""
    help: str
    """The one-line description of the gate's key, which editors display."""
    settings: type[Settings]
    """The model of the value under the gate's key. The model's ``EXAMPLE`` is shown if the value is
    invalid."""
    rows: Callable[[Settings, Evidence], Iterable[GateRow]]
    """Makes the decision. Returns one row for the gate and one for each scenario × agent that the gate
    examines separately."""
    estimate_error_rates: Callable[[Settings, PlannedRun], GateErrorRates]
    """Estimates the error rates of the decision, which ``plan`` and ``validate`` show."""
    replaces_every_sample: bool = True
    """True if the gate replaces the rule "every sample passes" and itself sets how many samples may fail."""
    reads_baseline: Callable[[Settings], bool] = lambda _: False
    """True if the gate compares the run with ``--baseline``."""
    counts: Callable[[SampleReport, Scenario, Violation], bool] = _nothing
    """For a gate that does not replace "every sample passes": checks whether the gate itself counts a broken
    rule. A sample that broke only such rules does not otherwise fail the run."""
    concerns: Callable[[Scenario], bool] = lambda _: True
    """Checks whether the gate may apply to a scenario at all. If no selected scenario qualifies,
    the gate does not apply."""
    unapplied: Callable[..., str] = _always
    """Returns the reason why recorded conversations can never satisfy the gate, or an empty string if some
    could. The arguments are the settings and ``repeats``, which is true if several recorded conversations may
    be epochs of one scenario."""
    decides_each: Callable[[Settings], bool] = lambda _: False
    """Checks whether, with these settings, the gate decides separately for each scenario whether the scenario
    passed."""

    def parse_settings(self, gates: GatesConfig) -> Settings | None:
        """Return the gate's settings from the configuration, or ``None`` if the gate is not configured."""
        written = gates.configured_gates.get(self.name)
        return None if written is None else self.settings.model_validate(written)
