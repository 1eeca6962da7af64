"""The verdict of a run (pass/fail decision) and of each of its parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from agenteval.core.config import AcceptedFailure
from agenteval.core.scenario import SampleKey
from agenteval.core.score import Verdict

RESUME, RERUN_FAILED = "agenteval run --resume latest", "agenteval run --last-failed"
"""The commands that decide a gate that lacks some conversations because they were not run or were lost."""
RERUN_AFTER_FIX = f"agenteval doctor shows the cause; once it is fixed, {RERUN_FAILED}"
"""The remedy to show instead of ``RERUN_FAILED`` if a repetition would fail in the same way, for example
because access is denied, a host is unknown, or a judge fails."""
MERGE = "agenteval merge RUN…"
"""The command that decides what a shard of a run leaves open."""
REPORTED = "reported"
"""The verdict of a log that contains no expectations and was not evaluated by a gate."""
EVERY_SAMPLE = "every sample passes"
"""The name of the gate that applies if there are no gates across repeated runs."""
TOLERANCE = "fault_tolerance"
"""The name of the gate for lost samples. It has one row for the run, and one for each scenario that lost more
samples than allowed."""


@dataclass(frozen=True)
class GateRow:
    """One row of the "what gated this run" table: a rule, its value, bound, basis and location."""

    name: str
    """The name of the rule, such as ``thresholds.helpfulness``."""
    value: float | str | None
    """The value that was measured, or ``None`` if it is unknown."""
    bound: float | str
    """The value that the rule requires."""
    basis: str
    """What the value is based on, such as ``5 samples``."""
    where: str
    """The location of the rule, such as ``agenteval.yaml:4``."""
    verdict: Verdict
    """Whether the rule holds."""
    scenario: str = ""
    """The id of the scenario. Empty, as is ``agent``, for a rule that applies to the entire run."""
    agent: str = ""
    """The name of the agent."""
    metric: str = ""
    """The metric of a threshold. Empty for all other rules."""
    resolution: str = ""
    """For an undecided rule, the change or the run that would allow a decision."""


@dataclass(frozen=True)
class Violation:
    """A broken or undecided rule in a scenario."""

    name: str
    detail: str
    """A description of what happened, as a sentence."""
    where: str
    verdict: Verdict = Verdict.FAILED
    epoch: int | None = None
    turn: int | None = None
    metric: str = ""
    """The metric of a threshold, or an empty string for other rules."""
    fingerprints: tuple[str, ...] = ()
    """The fingerprints of the failures that the violation reports (see ``fingerprints``)."""
    covers: tuple[str, ...] = ()
    """A description of the failures that each fingerprint covers."""


@dataclass(frozen=True)
class SampleDecision:
    """The verdict of one sample."""

    verdict: Verdict
    fault: str | None = None
    """The party at fault: ``agent``, ``infrastructure``, ``simulator``, ``judge``, ``author``,
    ``interrupted``, or ``undecided`` (the basis of a rule is unknown). ``None`` if the sample passed, or
    failed an expectation."""
    violations: tuple[Violation, ...] = ()
    accepted: tuple[Violation, ...] = ()
    """Broken rules that do not count, because their failures are in the accept list."""


class AcceptedState(StrEnum):
    """The state of an entry in the accept list."""

    IN_FORCE = "accepted"
    EXPIRED = "expired"
    UNUSED = "not met"
    """The entry applies, but its failure did not occur in this run."""


@dataclass(frozen=True)
class AcceptedUse:
    """An entry in the accept list, with the number of times its failure occurred in this run."""

    entry: AcceptedFailure
    state: AcceptedState
    samples: int = 0
    """The number of samples in which the failure occurred."""
    elsewhere: str = ""
    """A scenario in which the failure occurred although it did not occur in the entry's own scenario."""


@dataclass(frozen=True)
class ScenarioDecision:
    verdict: Verdict
    violations: tuple[Violation, ...] = ()


@dataclass(frozen=True)
class Decision:
    """The verdict of a run, and of each of its parts."""

    verdict: Verdict
    exit_code: int
    gates: tuple[GateRow, ...]
    samples: Mapping[SampleKey, SampleDecision]
    scenarios: Mapping[tuple[str, str], ScenarioDecision]
    """The decisions, keyed by scenario id and agent."""
    ungated: tuple[str, ...] = ()
    """Results that were judged or measured but are not used by any gate."""
    author_errors: tuple[str, ...] = ()
    """Mistakes by the author that were only detected during the run (exit code 2)."""
    accepted: tuple[AcceptedUse, ...] = ()
    """The use of each entry in the accept list."""
    without_scenarios: bool = False
    """True for a log that contains no expectations."""
    is_reported: bool = False
    """True for a log without expectations if none of its conversations is decided on its own. If there is no
    gate, such a log has not passed."""

    @property
    def verdict_label(self) -> str:
        """The verdict shown to readers. It is ``reported`` if nothing was required to pass."""
        return REPORTED if self.is_reported and self.verdict is Verdict.PASSED else self.verdict.value

    def tolerates_losses(self, scenario: str, agent: str) -> bool:
        """Check whether the number of inconclusive samples for a scenario × agent is within the tolerance."""
        rows = [row for row in self.gates if row.name == TOLERANCE]
        rows = [row for row in rows if (row.scenario, row.agent) in (("", ""), (scenario, agent))]
        return bool(rows) and all(row.verdict is Verdict.PASSED for row in rows)
