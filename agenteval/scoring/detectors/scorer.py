"""Failures that code can prove: the detectors, run over a finished conversation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from agenteval.core.plan import Plan
from agenteval.core.safe_text import at_most
from agenteval.core.scenario import Scenario, Tool
from agenteval.core.score import Check, Finding, ScoreFailure
from agenteval.core.sight import is_observed
from agenteval.core.trajectory import Trajectory
from agenteval.scoring.detectors.conversation import Conversation, Proof, ToolFacts
from agenteval.scoring.detectors.table import DETECTORS, Detector

UNKNOWN_TOOL = "unknown_tool"
_MOST_NAMED = 20


class Detectors:
    """A finding for each failure that the configured detectors prove, and a check that fails the sample
    if a tool was called that does not exist, be its detector switched off or not.

    ``policy``: the agent's instructions. ``recorded``: the conversations were not run here, so that all
    their calls are observed. Of conversations that ended by a fault which is not the agent's they look at the
    turns that were finished by then: what these prove stands.
    """

    scope: Final = "conversation"

    def __init__(self, plan: Plan, policy: str = "", *, recorded: bool = False) -> None:
        names = DETECTORS if plan.detectors is None else dict.fromkeys(plan.detectors)
        self._detectors = tuple(DETECTORS[name] for name in names)
        self._severities = plan.severities
        self._unmocked = plan.unmocked_tools
        self._now = plan.now or ""
        self._policy = policy
        self._recorded = recorded
        self._known: tuple[Mapping[str, Tool], Mapping[str, ToolFacts]] | None = None

    async def __call__(
        self, scenario: Scenario, trajectory: Trajectory
    ) -> Sequence[Check | Finding | ScoreFailure]:
        return self.look_at(scenario, trajectory)

    def look_at(self, scenario: Scenario, trajectory: Trajectory) -> Sequence[Check | Finding | ScoreFailure]:
        """The same, for who cannot wait."""
        if trajectory.stop and trajectory.stop.fault not in (None, "agent"):
            trajectory = trajectory.model_copy(update={"unfinished": None})
        conversation = self.conversation(scenario, trajectory)
        unknown = tuple(self._unknown(conversation))
        items: list[Check | Finding | ScoreFailure] = list(_check(scenario, unknown))
        for detector in self._detectors:
            if detector.needs_all_calls and not conversation.observed:
                continue
            try:
                proofs = unknown if detector.name == UNKNOWN_TOOL else tuple(detector.find(conversation))
            except (
                Exception
            ) as error:  # a defect of ours, told as such; the others have found what they found
                items.append(ScoreFailure(metric=detector.name, message=repr(error)))
                continue
            items += (self._finding(detector, _in_answer(proof, conversation)) for proof in proofs)
        return items

    def conversation(self, scenario: Scenario, trajectory: Trajectory) -> Conversation:
        """What the detectors see of it."""
        declared = self._recorded or self._unmocked == "error"
        return Conversation.of(
            trajectory,
            tools=self._facts_of(scenario.tools),
            undeclared_exist=not (declared and scenario.tools),
            policy=self._policy,
            truths=tuple(
                filter(None, (scenario.profile, scenario.goal, *scenario.knowledge, *scenario.facts))
            ),
            beliefs=tuple(held.belief for held in scenario.beliefs),
            now=self._now,
            observed=is_observed(scenario, trajectory),
        )

    def _facts_of(self, tools: Mapping[str, Tool]) -> Mapping[str, ToolFacts]:
        """Mostly one set of tools is that of all conversations."""
        known = self._known
        if known is None or known[0] is not tools:
            known = self._known = (tools, {name: _facts(tool) for name, tool in tools.items()})
        return known[1]

    def _unknown(self, conversation: Conversation) -> Iterator[Proof]:
        """In a run, an agent's own tools need no declaration: calls that it ran itself do not count."""
        for proof in DETECTORS[UNKNOWN_TOOL].find(conversation):
            observed = proof.call is not None and conversation.calls[proof.call].call.observed
            if self._recorded or not observed:
                yield proof

    def _finding(self, detector: Detector, proof: Proof) -> Finding:
        return Finding(
            detector=detector.name,
            metric=detector.metric,
            label=detector.label,
            severity=detector.severity_of(self._severities, proven=proof.severity),
            turn=proof.turn,
            call=proof.call,
            evidence=proof.evidence,
            explanation=proof.explanation,
            span=proof.span,
        )


def _in_answer(proof: Proof, conversation: Conversation) -> Proof:
    """With its span in the final text of the turn; without one, if it quotes what was said before that."""
    before = conversation.answers_at.get(proof.turn, 0)
    if not before or proof.span is None:
        return proof
    start, end = proof.span
    return proof._replace(span=(start - before, end - before) if start >= before else None)


def _facts(tool: Tool) -> ToolFacts:
    return ToolFacts(
        parameters=tool.parameters,
        reads=tool.reads,
        writes=tool.writes or tool.destructive,
        destructive=tool.destructive,
        description=tool.description or "",
    )


def _check(scenario: Scenario, unknown: Iterable[Proof]) -> Iterator[Check]:
    told = {proof.explanation: proof.evidence for proof in unknown}
    if told:
        yield Check(
            name=UNKNOWN_TOOL,
            passed=False,
            detail="; ".join(told),
            where=scenario.where("tools"),
            parts=at_most(_MOST_NAMED, told.values()),
        )
