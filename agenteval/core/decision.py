"""The verdict of a run and of all its parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from agenteval.core.config import AcceptedFailure
from agenteval.core.scenario import SampleKey
from agenteval.core.score import Verdict

RESUME, RERUN_FAILED = "agenteval run --resume latest", "agenteval run --last-failed"
"""The commands that decide a gate without some conversations, which were not run or were lost."""
RERUN_AFTER_FIX = f"agenteval doctor shows what is wrong; once that is fixed, {RERUN_FAILED}"
"""The same if a repetition would fail in the same way: no access, no such host, a judge that fails."""
REPORTED = "reported"
"""The verdict of a log without expectations that no gate evaluated."""
EVERY_SAMPLE = "every sample passes"
"""The gate of a run without gates over repeated runs."""
TOLERANCE = "fault_tolerance"
"""The gate of lost samples: one row for the run, and one for each scenario that lost more than allowed."""


@dataclass(frozen=True)
class GateRow:
    """One line of "what gated this run": a rule, its value and bound, what it is based on, and its place."""

    name: str
    value: float | str | None
    bound: float | str
    basis: str
    where: str
    verdict: Verdict
    scenario: str = ""
    """Empty for a rule over the whole run, like ``agent``."""
    agent: str = ""
    metric: str = ""
    """Empty for a rule that is not a threshold."""
    resolution: str = ""
    """For an undecided rule, what to write or run so that it can be decided."""


@dataclass(frozen=True)
class Violation:
    """A broken or undecided rule of a scenario."""

    name: str
    detail: str
    """What happened, as a sentence."""
    where: str
    verdict: Verdict = Verdict.FAILED
    epoch: int | None = None
    turn: int | None = None
    metric: str = ""
    """The metric of a threshold; empty for other rules."""
    fingerprints: tuple[str, ...] = ()
    """The failures of the sample that it reports (see ``fingerprints``)."""
    covers: tuple[str, ...] = ()
    """What each fingerprint covers, in words."""


@dataclass(frozen=True)
class SampleDecision:
    """The verdict of one sample."""

    verdict: Verdict
    fault: str | None = None
    """``agent``, ``infrastructure``, ``simulator``, ``judge``, ``author``, ``interrupted``, ``undecided``
    (the basis of a rule is unknown) or ``None`` (the sample passed, or failed an expectation)."""
    violations: tuple[Violation, ...] = ()
    accepted: tuple[Violation, ...] = ()
    """Broken rules that do not count, because their failures are on the accept list."""


class AcceptedState(StrEnum):
    """The state of an entry of the accept list."""

    IN_FORCE = "accepted"
    EXPIRED = "expired"
    UNUSED = "not met"
    """In force, but its failure did not occur in this run."""


@dataclass(frozen=True)
class AcceptedUse:
    """An entry of the accept list and its use in this run."""

    entry: AcceptedFailure
    state: AcceptedState
    samples: int = 0
    """The number of samples in which the failure occurred."""
    elsewhere: str = ""
    """A scenario with the failure that is not the one the entry names."""


@dataclass(frozen=True)
class ScenarioDecision:
    verdict: Verdict
    violations: tuple[Violation, ...] = ()


@dataclass(frozen=True)
class Decision:
    """The verdict of a run, and of all its parts."""

    verdict: Verdict
    exit_code: int
    gates: tuple[GateRow, ...]
    samples: Mapping[SampleKey, SampleDecision]
    scenarios: Mapping[tuple[str, str], ScenarioDecision]
    """The decisions by (scenario id, agent)."""
    ungated: tuple[str, ...] = ()
    """What was judged or measured and gates nothing."""
    author_errors: tuple[str, ...] = ()
    """Mistakes of the author that showed only while running (exit code 2)."""
    accepted: tuple[AcceptedUse, ...] = ()
    """How the entries of the accept list were used."""
    without_scenarios: bool = False
    """True for a log without expectations."""
    is_reported: bool = False
    """True for such a log if no conversation decides anything by itself; without a gate, it has then not
    passed."""

    @property
    def verdict_label(self) -> str:
        """The verdict for a reader: ``reported`` if nothing had to pass."""
        return REPORTED if self.is_reported and self.verdict is Verdict.PASSED else self.verdict.value

    def tolerates_losses(self, scenario: str, agent: str) -> bool:
        """Check whether the inconclusive samples of a scenario × agent are within the tolerance."""
        rows = [row for row in self.gates if row.name == TOLERANCE]
        rows = [row for row in rows if (row.scenario, row.agent) in (("", ""), (scenario, agent))]
        return bool(rows) and all(row.verdict is Verdict.PASSED for row in rows)
