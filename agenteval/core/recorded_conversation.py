"""A recorded conversation as it is passed to scoring."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from agenteval.core.event import RunStarted
from agenteval.core.scenario import SampleKey, Scenario
from agenteval.core.score import Check, UserReview
from agenteval.core.trajectory import StopReason, Trajectory


@dataclass(frozen=True, slots=True)
class RecordedConversation:
    """A conversation to be scored."""

    key: SampleKey
    scenario: Scenario
    trajectory: Trajectory
    where: str
    """Its file and line."""
    checks: tuple[Check, ...] = ()
    """Known results that cannot be determined again, such as its outcome."""
    notes: tuple[str, ...] = ()
    """Warnings about content that was not read as written."""
    run: RunStarted | None = None
    """For a journal of agenteval, the run that played it, so that the scenario is the one that was used."""
    review: UserReview | None = None
    """The review of its simulated user in that run."""
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The fingerprints of its failures before anything was masked."""

    @property
    def is_readable(self) -> bool:
        stop = self.trajectory.stop
        return stop is None or stop.reason is not StopReason.UNREADABLE
