"""Track during a run how many of each agent's tool calls are seen.

Any turn of any conversation may provide the evidence. A judge of a conversation without a call therefore has
to wait until some turn of the agent has provided the evidence or until no running conversation can still do
so."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import anyio

from agenteval.core.event import CallsSeen, Event, SampleFinished, TurnFinished
from agenteval.core.protocols import Emit
from agenteval.core.scenario import Sample, SampleKey
from agenteval.core.tool_visibility import KnownVisibility, conversation_visibility, visibility_of
from agenteval.core.trajectory import CallEvidence, ToolVisibility, Trajectory, Turn


class VisibilityTracker:
    """The evidence that a run has collected about the visibility of its agents' calls. ``known`` contains
    what is known before the run, keyed by agent (``""`` stands for all other agents). ``evidence`` contains
    what earlier parts of the run have shown. ``may_start`` is true if additional conversations follow.
    ``passthrough`` is true if agents also have tools of their own."""

    def __init__(
        self,
        known: Mapping[str, KnownVisibility],
        *,
        evidence: Mapping[str, Collection[CallEvidence]] | None = None,
        passthrough: bool = False,
        may_start: bool = True,
    ) -> None:
        self._known = known
        self._evidence = {agent: set(found) for agent, found in (evidence or {}).items()}
        self._passthrough = passthrough
        self._playing = 0
        self._may_start = may_start
        self._changed = anyio.Event()

    # ── running conversations ──

    def note_conversation_start(self) -> None:
        """Note that a conversation starts."""
        self._playing += 1

    def note_conversation_end(self) -> None:
        """Note that a conversation has ended and will provide no more evidence."""
        self._playing -= 1
        self._wake()

    @property
    def may_start(self) -> bool:
        """True if more conversations will start without waiting for a judge."""
        return self._may_start

    @may_start.setter
    def may_start(self, may_start: bool) -> None:
        self._may_start = may_start
        self._wake()

    @property
    def may_learn(self) -> bool:
        """True if a conversation that is running or will start may provide evidence."""
        return bool(self._playing or self._may_start)

    async def wait_for_change(self) -> None:
        """Wait until evidence was provided or a conversation ended."""
        await self._changed.wait()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    # ── what turns show ──

    def wrap_emit(self, emit: Emit) -> Emit:
        """Return ``emit``, extended to report each type of evidence about an agent once."""

        def emit_with_evidence(event: Event) -> None:
            emit(event)
            if isinstance(event, TurnFinished):
                self._note(event.key, event.turn, emit)
            elif isinstance(event, SampleFinished) and event.unfinished:
                self._note(event.key, event.unfinished, emit)

        return emit_with_evidence

    def _note(self, key: SampleKey, turn: Turn, emit: Emit) -> None:
        found = self._evidence.setdefault(key.agent, set())
        if turn.evidence is None or turn.evidence in found:
            return
        found.add(turn.evidence)
        emit(CallsSeen(agent=key.agent, evidence=turn.evidence, key=key))
        self._wake()

    @property
    def all_evidence(self) -> dict[str, frozenset[CallEvidence]]:
        """All evidence so far, keyed by agent."""
        return {agent: frozenset(found) for agent, found in self._evidence.items()}

    def add_evidence(self, evidence: Mapping[str, Collection[CallEvidence]]) -> None:
        """Add the evidence of conversations that another process plays."""
        for agent, found in evidence.items():
            self._evidence.setdefault(agent, set()).update(found)
        self._wake()

    def evidence_events(self, agent: str) -> list[CallsSeen]:
        """Return events for all evidence about an agent so far."""
        return [CallsSeen(agent=agent, evidence=each) for each in sorted(self._evidence.get(agent, ()))]

    # ── what is known ──

    def _visibility_of(self, agent: str) -> ToolVisibility:
        """Return the currently known visibility of an agent's calls."""
        return visibility_of(
            self._known_of(agent), self._evidence.get(agent, ()), passthrough=self._passthrough
        )

    def _known_of(self, agent: str) -> KnownVisibility | None:
        return self._known.get(agent) or self._known.get("")

    def with_current_visibility(self, sample: Sample, trajectory: Trajectory) -> Trajectory:
        """Return a trajectory for checks in code, which do not wait. Results that depend on the absence of a
        call remain undecided as long as evidence may still show that all calls are seen."""
        return trajectory if self._is_open(sample) else self._with_known_visibility(sample, trajectory)

    async def with_final_visibility(self, sample: Sample, trajectory: Trajectory) -> Trajectory:
        """Return a trajectory for a judge, once nothing can change how many of the agent's calls are seen.
        For a scenario without tools, too little depends on the visibility to justify waiting."""
        while self._is_open(sample):
            await self._changed.wait()
        return self._with_known_visibility(sample, trajectory)

    def _with_known_visibility(self, sample: Sample, trajectory: Trajectory) -> Trajectory:
        """Set the known visibility of the agent's calls. For a scenario without tools, judges do not wait, so
        the visibility is determined from the conversation itself."""
        if sample.scenario.tools:
            found = self._visibility_of(sample.key.agent)
        else:
            known = self._known_of(sample.key.agent)
            found = conversation_visibility(known, trajectory.all_turns, passthrough=self._passthrough)
        return trajectory.model_copy(update={"visibility": found})

    def _is_open(self, sample: Sample) -> bool:
        """Check whether a running conversation may still change the visibility of the agent's calls."""
        if not self.may_learn:
            return False
        known = self._known_of(sample.key.agent)
        if not sample.scenario.tools or (
            known and (known.is_authors or known.calls is ToolVisibility.UNSEEN)
        ):
            return False
        return self._visibility_of(sample.key.agent) is not ToolVisibility.ALL
