"""The interface of a gate over repeated runs: one ``RunGate`` defines everything about it."""

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

ONE_EACH = "each conversation is a scenario of its own: --scenario-from PATH makes them epochs"
"""Why a gate that needs several epochs does not apply to recorded conversations."""


def explain_no_baseline(report: Report) -> str:
    """Explain why there is no baseline, for a gate that needs one."""
    return f"nothing to compare with: {report.run.no_baseline or 'run with --baseline RUN'}"


class Evidence(NamedTuple):
    """What a gate bases its decision on."""

    report: Report
    epochs: Mapping[Pairing, EpochOutcomes]
    samples: Mapping[SampleKey, SampleDecision]
    """The decision about each sample."""
    where: str
    """The place where the gate is written."""
    others_decide: bool
    """True if another gate looks at each scenario separately."""

    def place(self, gate: str, key: str) -> str:
        """Return the place where a key of the gate is written."""
        place = self.report.plan.suite.where(f"gates.{gate}.{key}")
        return self.where if place == "default" else place


class PlannedRun(NamedTuple):
    """What is known before a run."""

    epochs: Sequence[EpochRange]
    """The range for each scenario × agent."""
    where: str
    """The place where the gate is written."""


def _always(_settings: Any, *, repeats: bool) -> str:
    return ""


def _nothing(_sample: SampleReport, _scenario: Scenario, _violation: Violation) -> bool:
    return False


@dataclass(frozen=True)
class RunGate(Generic[Settings]):
    """One gate over repeated runs. It is registered only in ``agenteval.verdict.run_gates.RUN_GATES``."""

    name: str
    """The key under ``gates``, and the name of its rows."""
    help: str
    """The one-line description of the key that editors show."""
    settings: type[Settings]
    """The model of what an author writes under the key. Its ``EXAMPLE`` is shown if the value is invalid."""
    rows: Callable[[Settings, Evidence], Iterable[GateRow]]
    """The decision: a row of the gate, and one for each scenario × agent that it looks at separately."""
    estimate_error_rates: Callable[[Settings, PlannedRun], GateErrorRates]
    """The error rates of the decision, which ``plan`` and ``validate`` show."""
    replaces_every_sample: bool = True
    """True if it replaces "every sample passes" and sets itself how many samples may fail."""
    reads_baseline: Callable[[Settings], bool] = lambda _: False
    """Whether it compares with ``--baseline``."""
    counts: Callable[[SampleReport, Scenario, Violation], bool] = _nothing
    """If it does not replace "every sample passes": the broken rules that it counts itself. A sample that
    breaks no others does not fail the run otherwise."""
    concerns: Callable[[Scenario], bool] = lambda _: True
    """Whether it may apply to a scenario at all. It requires nothing of a selection without such a scenario.
    """
    unapplied: Callable[..., str] = _always
    """Given the settings and ``repeats`` (whether several recorded conversations may be epochs of one
    scenario): why no recorded conversations could satisfy it; empty if some could."""
    decides_each: Callable[[Settings], bool] = lambda _: False
    """Whether it decides for each scenario separately if that has passed."""

    def parse_settings(self, gates: GatesConfig) -> Settings | None:
        """Return the settings in the configuration; ``None`` if the gate is not configured."""
        written = gates.configured_gates.get(self.name)
        return None if written is None else self.settings.model_validate(written)
