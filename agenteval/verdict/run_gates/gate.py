"""What a gate over repeated runs is made of: one ``RunGate`` says all there is to be known of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from agenteval.core.config import GatesConfig
from agenteval.core.decision import GateRow, SampleDecision
from agenteval.core.plan import Pairing
from agenteval.core.scenario import EpochRange, SampleKey
from agenteval.core.score import Verdict
from agenteval.core.value import Value
from agenteval.verdict.epochs import Epochs
from agenteval.verdict.report import Report
from agenteval.verdict.run_gates.chance import GateChances
from agenteval.verdict.statistics import Outcome

Settings = TypeVar("Settings", bound=Value)

VERDICT_OF = {
    Outcome.ACCEPT: Verdict.PASSED,
    Outcome.REJECT: Verdict.FAILED,
    Outcome.CONTINUE: Verdict.INCONCLUSIVE,
    Outcome.UNDECIDED: Verdict.INCONCLUSIVE,
}

ONE_EACH = "each conversation is a scenario of its own: --scenario-from PATH makes them epochs"
"""Why a gate that needs several epochs holds for no recorded conversations."""


class Evidence(NamedTuple):
    """What a gate decides on. ``samples``: what was decided of each; ``where`` the gate is written;
    ``others_decide``: whether another gate looks at each scenario by itself."""

    report: Report
    epochs: Mapping[Pairing, Epochs]
    samples: Mapping[SampleKey, SampleDecision]
    where: str
    others_decide: bool


class Prospect(NamedTuple):
    """What is known before a run. ``epochs``: of each scenario × agent; ``where`` the gate is written."""

    epochs: Sequence[EpochRange]
    where: str


def _always(_settings: Any, *, repeats: bool) -> str:
    return ""


@dataclass(frozen=True)
class RunGate(Generic[Settings]):
    """One gate over repeated runs. It is registered in ``agenteval.verdict.run_gates.RUN_GATES`` and nowhere
    else."""

    name: str
    """The key under ``gates``; also that of its rows."""
    settings: type[Settings]
    """What an author writes under the key. Its ``EXAMPLE`` is shown to who writes something else."""
    rows: Callable[[Settings, Evidence], Iterable[GateRow]]
    """The decision: a row of the gate, and one for each scenario × agent that it looks at by itself."""
    chances: Callable[[Settings, Prospect], GateChances]
    """How often the decision will be wrong: what ``plan`` and ``validate`` say of it."""
    unapplied: Callable[..., str] = _always
    """Of the settings and ``repeats`` (whether several recorded conversations may be epochs of one scenario):
    why no recorded conversations could satisfy it; empty if some could."""
    decides_each: Callable[[Settings], bool] = lambda _: False
    """Whether it decides of each scenario by itself whether that has passed."""

    def of(self, gates: GatesConfig) -> Settings | None:
        """What a configuration says of it; ``None`` if it does not ask for it."""
        written = gates.written.get(self.name)
        return None if written is None else self.settings.model_validate(written)
