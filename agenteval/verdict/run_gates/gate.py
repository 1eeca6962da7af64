"""What a gate over repeated runs is made of: one ``RunGate`` says all there is to be known of it."""

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
"""Why a gate that needs several epochs holds for no recorded conversations."""


def explain_no_baseline(report: Report) -> str:
    """Why there is no baseline, for a gate that asks for one."""
    return f"nothing to compare with: {report.run.no_baseline or 'run with --baseline RUN'}"


class Evidence(NamedTuple):
    """What a gate decides on. ``samples``: what was decided of each; ``where`` the gate is written (of one of
    its keys: ``place``); ``others_decide``: whether another gate looks at each scenario by itself."""

    report: Report
    epochs: Mapping[Pairing, EpochOutcomes]
    samples: Mapping[SampleKey, SampleDecision]
    where: str
    others_decide: bool

    def place(self, gate: str, key: str) -> str:
        """Where a key of the gate is written."""
        own = self.report.plan.suite.where(f"gates.{gate}.{key}")
        return self.where if own == "default" else own


class PlannedRun(NamedTuple):
    """What is known before a run. ``epochs``: of each scenario × agent; ``where`` the gate is written."""

    epochs: Sequence[EpochRange]
    where: str


def _always(_settings: Any, *, repeats: bool) -> str:
    return ""


def _nothing(_sample: SampleReport, _scenario: Scenario, _violation: Violation) -> bool:
    return False


@dataclass(frozen=True)
class RunGate(Generic[Settings]):
    """One gate over repeated runs. It is registered in ``agenteval.verdict.run_gates.RUN_GATES`` and nowhere
    else."""

    name: str
    """The key under ``gates``; also that of its rows."""
    help: str
    """What an editor shows of the key, in a line."""
    settings: type[Settings]
    """What an author writes under the key. Its ``EXAMPLE`` is shown to who writes something else."""
    rows: Callable[[Settings, Evidence], Iterable[GateRow]]
    """The decision: a row of the gate, and one for each scenario × agent that it looks at by itself."""
    estimate_error_rates: Callable[[Settings, PlannedRun], GateErrorRates]
    """How often the decision will be wrong: what ``plan`` and ``validate`` say of it."""
    replaces_every_sample: bool = True
    """Whether it is in the place of "every sample passes": it says itself how many samples may fail."""
    reads_baseline: Callable[[Settings], bool] = lambda _: False
    """Whether it compares with ``--baseline``."""
    counts: Callable[[SampleReport, Scenario, Violation], bool] = _nothing
    """Where it is not: the broken rules of a sample that it holds against the agent by itself, so that a
    sample that breaks no others is no reason to fail the run beside it."""
    concerns: Callable[[Scenario], bool] = lambda _: True
    """Whether it may look at a scenario at all. Of a selection without any it asks nothing."""
    unapplied: Callable[..., str] = _always
    """Of the settings and ``repeats`` (whether several recorded conversations may be epochs of one scenario):
    why no recorded conversations could satisfy it; empty if some could."""
    decides_each: Callable[[Settings], bool] = lambda _: False
    """Whether it decides of each scenario by itself whether that has passed."""

    def parse_settings(self, gates: GatesConfig) -> Settings | None:
        """What a configuration says of it; ``None`` if it does not ask for it."""
        written = gates.configured_gates.get(self.name)
        return None if written is None else self.settings.model_validate(written)
