"""What the gates say: the verdict of a run and of all its parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from agenteval.core.config import AcceptedFailure
from agenteval.core.scenario import SampleKey
from agenteval.core.score import Verdict

RESUME, RERUN_FAILED = "agenteval run --resume latest", "agenteval run --last-failed"
"""What decides a gate that lacks conversations which were not held, or were lost."""
RERUN_AFTER_FIX = f"agenteval doctor says what is wrong; once that is mended, {RERUN_FAILED}"
"""The same where to play them again would bring the same: no access, no such host, a judge that fails."""
REPORTED = "reported"
"""The verdict of a log of which nothing is expected, and that no gate held against anything."""
EVERY_SAMPLE = "every sample passes"
"""The gate of a run that has none over repeated runs."""
TOLERANCE = "fault_tolerance"
"""The gate of lost samples: a row for the run, and one for each scenario that lost more than any may."""


@dataclass(frozen=True)
class GateRow:
    """One line of "what gated this run": a rule, its value and bound, what it is based on, its place.

    ``scenario`` and ``agent`` are empty for a rule over the whole run; ``metric`` for one that is no
    threshold. ``resolution``: of one that is not decided, what to write or to run so that it may be."""

    name: str
    value: float | str | None
    bound: float | str
    basis: str
    where: str
    verdict: Verdict
    scenario: str = ""
    agent: str = ""
    metric: str = ""
    resolution: str = ""


@dataclass(frozen=True)
class Violation:
    """A broken (or undecided) rule of a scenario: its name, a sentence, its place, its turn; ``metric`` of
    a threshold. ``fingerprints``: the failures of a sample that it tells of (see ``fingerprints``), and
    ``covers``: what each of them covers, in words."""

    name: str
    detail: str
    where: str
    verdict: Verdict = Verdict.FAILED
    epoch: int | None = None
    turn: int | None = None
    metric: str = ""
    fingerprints: tuple[str, ...] = ()
    covers: tuple[str, ...] = ()


@dataclass(frozen=True)
class SampleDecision:
    """``fault``: ``agent``, ``infrastructure``, ``simulator``, ``judge``, ``author``, ``interrupted``,
    ``undecided`` (what a rule is based on is not known) or ``None`` (a sample that passed, or that failed an
    expectation). ``accepted``: broken rules that do not count, since the accept list knows their
    failures."""

    verdict: Verdict
    fault: str | None = None
    violations: tuple[Violation, ...] = ()
    accepted: tuple[Violation, ...] = ()


class AcceptedState(StrEnum):
    """``UNUSED``: in force, and not met in this run."""

    IN_FORCE = "accepted"
    EXPIRED = "expired"
    UNUSED = "not met"


@dataclass(frozen=True)
class AcceptedUse:
    """An entry of the accept list, and in how many ``samples`` of this run its failure was met.
    ``elsewhere``: a scenario that met it, and is not the one that the entry names."""

    entry: AcceptedFailure
    state: AcceptedState
    samples: int = 0
    elsewhere: str = ""


@dataclass(frozen=True)
class ScenarioDecision:
    verdict: Verdict
    violations: tuple[Violation, ...] = ()


@dataclass(frozen=True)
class Decision:
    """The verdict of a run, and of all its parts. ``scenarios`` is keyed by (scenario id, agent).

    ``ungated`` names what was judged or measured and gates nothing; ``author_errors`` are mistakes
    that showed only while running (exit code 2). ``accepted``: what became of the accept list.
    ``without_scenarios``: of a log of which nothing is expected; ``is_reported``: of such a log, no
    conversation decides by itself, and what nothing gates has not passed."""

    verdict: Verdict
    exit_code: int
    gates: tuple[GateRow, ...]
    samples: Mapping[SampleKey, SampleDecision]
    scenarios: Mapping[tuple[str, str], ScenarioDecision]
    ungated: tuple[str, ...] = ()
    author_errors: tuple[str, ...] = ()
    accepted: tuple[AcceptedUse, ...] = ()
    without_scenarios: bool = False
    is_reported: bool = False

    @property
    def verdict_label(self) -> str:
        """The verdict for a reader: ``reported`` where nothing was to pass."""
        return REPORTED if self.is_reported and self.verdict is Verdict.PASSED else self.verdict.value

    def tolerates_losses(self, scenario: str, agent: str) -> bool:
        """Whether the inconclusive samples of a scenario × agent decide nothing."""
        rows = [row for row in self.gates if row.name == TOLERANCE]
        rows = [row for row in rows if (row.scenario, row.agent) in (("", ""), (scenario, agent))]
        return bool(rows) and all(row.verdict is Verdict.PASSED for row in rows)
