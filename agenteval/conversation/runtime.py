"""The parts of a run, and the controls that end a run early. Both exist before the run, so the module imports
nothing that plays a conversation."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, runtime_checkable

from agenteval.conversation.deadlines import Deadlines
from agenteval.core.protocols import (
    AgentFactory,
    CallUserTool,
    Emit,
    Reviewer,
    SampleQueue,
    SampleRunner,
    Scorer,
    User,
)
from agenteval.core.scenario import Sample
from agenteval.core.tool_visibility import KnownVisibility
from agenteval.core.trajectory import CallEvidence

if TYPE_CHECKING:
    import anyio

    from agenteval.conversation.python_world import PythonWorld
    from agenteval.conversation.simulation import CallFunction
    from agenteval.conversation.visibility_tracker import VisibilityTracker
    from agenteval.world.database import WorldDatabase

RunOutcome: TypeAlias = Literal["complete", "interrupted", "fail_fast", "budget", "deadline"]


async def no_world(_sample: Sample, _database: WorldDatabase | None) -> None:
    """Return ``None``: no scenario has a world in Python. This is the default."""


@dataclass(frozen=True)
class Runtime:
    """Everything that a run needs: factories, scorers and settings."""

    queue: SampleQueue
    agents: Mapping[str, AgentFactory]
    make_user: Callable[[Sample, CallUserTool], User]
    call_function: CallFunction
    checks: Mapping[str, Sequence[Scorer]] = field(default_factory=dict)
    """Scorers in code, keyed by agent. They run within the conversation."""
    judges: Mapping[str, Sequence[Scorer]] = field(default_factory=dict)
    """Scorers that call models (LLM-as-a-judge), keyed by agent. They run in parallel with the
    conversation."""
    reviewer: Reviewer | None = None
    """The reviewer of finished conversations."""
    agent_concurrency: int = 20
    unmocked_tools: str = "error"
    visibility: Mapping[str, KnownVisibility] = field(default_factory=dict)
    """The visibility of each agent's calls, as known before the run, keyed by agent."""
    evidence: Mapping[str, Collection[CallEvidence]] = field(default_factory=dict)
    """The evidence from an earlier part of the run, keyed by agent."""
    fail_fast: bool = False
    """True if no sample starts before the results of earlier samples are known."""
    deadlines: Deadlines = field(default_factory=Deadlines)
    emitted_warnings: set[str] = field(default_factory=set)
    """Warnings that are given only once per run."""
    make_database: Callable[[Sample], WorldDatabase | None] = lambda _: None
    """Creates the database of a sample, or returns None if its scenario has no state."""
    open_world: Callable[[Sample, WorldDatabase | None], Awaitable[PythonWorld | None]] = no_world
    """Creates the world in Python of a sample, or returns None if its scenario has none."""
    runner: SampleRunner | None = None
    """The runner that plays the samples (see ``RemoteRunner``, too). Without it, they are played in this
    process."""


@dataclass(frozen=True)
class RunView:
    """What a runner elsewhere needs to know of the run."""

    control: RunControl
    visibility: VisibilityTracker
    """Tracks the visibility of the agents' calls in all conversations of the run."""
    none_follows: Callable[[], anyio.Event]
    """Returns the event that is set when no other sample is about to begin."""
    emit: Emit


@runtime_checkable
class RemoteRunner(SampleRunner, Protocol):
    """A runner that plays samples in other processes, which need to know of the run."""

    def attached(self, view: RunView, /) -> AbstractAsyncContextManager[None]:
        """Return the context within which samples are played."""


class RunControl:
    """The controls for ending a run early. ``interrupt`` prevents additional conversations from starting; the
    run is still complete if none remained. ``stop`` prevents anything further from starting. ``cancel`` also
    ends everything that is running."""

    def __init__(self) -> None:
        self.outcome: RunOutcome = "complete"
        self.stop_reason = "the run was interrupted"
        self.active_conversations = 0
        """The number of conversations under way, excluding those that are only being judged."""
        self._is_interrupted = False
        self._scope: anyio.CancelScope | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def is_stopping(self) -> bool:
        return self.outcome != "complete"

    def interrupt(self) -> None:
        self._is_interrupted = True

    def may_begin(self, what: object | None) -> bool:
        """Check whether ``what`` may begin next. If an interruption prevents this, mark the run as
        interrupted."""
        if what is not None and self._is_interrupted:
            self.stop("interrupted")
        return what is not None and not self.is_stopping

    @property
    def is_cut(self) -> bool:
        """True if the interruption is known to make the run incomplete."""
        return self.is_stopping or self.active_conversations > 0

    def stop(self, outcome: RunOutcome, why: str | None = None) -> None:
        """Prevent anything further from starting. ``why`` is the reason reported for samples that are
        interrupted."""
        if not self.is_stopping:
            self.outcome, self.stop_reason = outcome, why or self.stop_reason

    def cancel(self, outcome: RunOutcome, why: str | None = None) -> None:
        self.stop(outcome, why)
        if self._scope:
            self._scope.cancel()

    def attach(self, scope: anyio.CancelScope) -> None:
        self._scope = scope

    def attach_loop(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def cancel_from_thread(self, outcome: RunOutcome) -> None:
        """Cancel the run from another thread than that of its event loop."""
        self.stop(outcome)
        if self._loop and not self._loop.is_closed():
            with suppress(RuntimeError):  # the loop was closed in the meantime
                self._loop.call_soon_threadsafe(self.cancel, outcome)
