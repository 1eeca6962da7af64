"""A recorded conversation as it is handed to whoever scores it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from agenteval.core.event import RunStarted
from agenteval.core.scenario import SampleKey, Scenario
from agenteval.core.score import Check, UserReview
from agenteval.core.trajectory import StopReason, Trajectory


@dataclass(frozen=True, slots=True)
class RecordedConversation:
    """A conversation to be scored. ``where``: its file and line; ``checks``: what is known of it beforehand,
    such as its success, and cannot be found out anew; ``notes``: what was not read as it stands.

    Of a journal of ours: ``run``, so that the scenario is the one that it was held with; ``review``: what was
    found then of its simulated user; ``names``: what its failures were called before anything was masked."""

    key: SampleKey
    scenario: Scenario
    trajectory: Trajectory
    where: str
    checks: tuple[Check, ...] = ()
    notes: tuple[str, ...] = ()
    run: RunStarted | None = None
    review: UserReview | None = None
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def is_readable(self) -> bool:
        stop = self.trajectory.stop
        return stop is None or stop.reason is not StopReason.UNREADABLE
