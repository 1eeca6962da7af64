"""A recorded conversation in the form in which it is passed to scoring."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from agenteval.core.event import RunStarted
from agenteval.core.scenario import SampleKey, Scenario
from agenteval.core.score import Check, UserReview
from agenteval.core.trajectory import StopReason, Trajectory
from agenteval.core.world_state import ReferenceState


@dataclass(frozen=True, slots=True)
class RecordedConversation:
    """A recorded conversation to be scored."""

    key: SampleKey
    scenario: Scenario
    trajectory: Trajectory
    where: str
    """The file and line of the record."""
    checks: tuple[Check, ...] = ()
    """Known results that cannot be determined again, such as the outcome of the conversation."""
    notes: tuple[str, ...] = ()
    """Warnings about content that was not imported exactly as written."""
    run: RunStarted | None = None
    """For an agenteval journal, the run that produced the conversation. The scenario is the one used in that
    run."""
    review: UserReview | None = None
    """The review of the simulated user in that run."""
    references: tuple[ReferenceState, ...] = ()
    """The states that the calls of ``same_as`` left in that run."""
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The fingerprints that the failures had before anything was masked."""

    @property
    def is_readable(self) -> bool:
        stop = self.trajectory.stop
        return stop is None or stop.reason is not StopReason.UNREADABLE
