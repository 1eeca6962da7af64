"""Runs the detectors on a finished conversation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from agenteval.core.plan import SuitePolicy
from agenteval.core.safe_text import limit_texts
from agenteval.core.scenario import Scenario, Tool
from agenteval.core.score import Check, Finding, References, ScoreFailure, Severity
from agenteval.core.trajectory import ToolVisibility, Trajectory
from agenteval.scoring.detectors.detector_input import DetectorInput, Proof, ToolFacts
from agenteval.scoring.detectors.table import DETECTORS, Detector
from agenteval.scoring.finding_severity import rate_finding
from agenteval.scoring.questions import asks_judge

UNKNOWN_TOOL = "unknown_tool"
CLAIMED = "claimed_action_not_called"
_MOST_NAMED = 20


class DetectorScorer:
    """Yields a finding for each failure that the configured detectors prove.

    The scorer also yields a check that fails the sample if the agent called a nonexistent tool, even if the
    detector for unknown tools is switched off.

    ``policy`` contains the agent's instructions. ``secrets`` maps the texts that the agent must never reveal
    to placeholders. If ``recorded`` is true, the conversations were not run by agenteval, so all their calls
    are considered observed. If a fault that the agent did not cause ended a conversation, the detectors
    examine the turns that were finished by then, because failures proven in these turns remain valid."""

    scope: Final = "conversation"

    def __init__(
        self,
        suite: SuitePolicy,
        policy: str = "",
        secrets: Mapping[str, str] = MappingProxyType({}),
        *,
        recorded: bool = False,
    ) -> None:
        names = DETECTORS if suite.detectors is None else dict.fromkeys(suite.detectors)
        self._detectors = tuple(DETECTORS[name] for name in names)
        self._severities = suite.severities
        self._unmocked = suite.unmocked_tools
        self._now = suite.now or ""
        self._policy = policy
        self._secrets = secrets
        self._recorded = recorded
        self._is_judged = asks_judge(suite)
        self._known: tuple[Mapping[str, Tool], Mapping[str, ToolFacts]] | None = None

    async def __call__(
        self, scenario: Scenario, trajectory: Trajectory
    ) -> Sequence[Check | Finding | ScoreFailure]:
        return self.run_detectors(scenario, trajectory)

    def run_detectors(
        self, scenario: Scenario, trajectory: Trajectory
    ) -> Sequence[Check | Finding | ScoreFailure]:
        """Run the detectors synchronously. If it is not yet known whether all calls are visible, mark the
        items that depend on this."""
        if trajectory.visibility is not None:
            return self._run_detectors(scenario, trajectory)
        seen, unseen = (
            self._run_detectors(scenario, trajectory.model_copy(update={"visibility": visibility}))
            for visibility in (ToolVisibility.ALL, ToolVisibility.UNSEEN)
        )
        return [
            *(each if each in unseen else _if_all_seen(each) for each in seen),
            *(_unless_all_seen(each) for each in unseen if each not in seen),
        ]

    def _run_detectors(
        self, scenario: Scenario, trajectory: Trajectory
    ) -> Sequence[Check | Finding | ScoreFailure]:
        if trajectory.stop and trajectory.stop.fault not in (None, "agent"):
            trajectory = trajectory.model_copy(update={"unfinished": None})
        conversation = self.build_input(scenario, trajectory)
        unknown = tuple(self._unknown(conversation))
        items: list[Check | Finding | ScoreFailure] = list(_unknown_tool_check(scenario, unknown))
        for detector in self._detectors:
            if detector.needs_all_calls and not conversation.observed:
                items += () if self._is_judged else _report_open_claim(detector, conversation, trajectory)
                continue
            try:
                proofs = unknown if detector.name == UNKNOWN_TOOL else tuple(detector.find(conversation))
            except (
                Exception
            ) as error:  # a bug in a detector; reported as such, and the results of the others stand
                items.append(ScoreFailure(metric=detector.name, message=repr(error)))
                continue
            for proof in proofs:
                items.append(self._finding(detector, _in_answer(proof, conversation), scenario, trajectory))
        return items

    def build_input(self, scenario: Scenario, trajectory: Trajectory) -> DetectorInput:
        """Build the input of the detectors."""
        declared = self._recorded or self._unmocked == "error"
        return DetectorInput.from_trajectory(
            trajectory,
            history=scenario.history_turns,
            tools=self._facts_of(scenario.tools),
            user_tools=frozenset(scenario.user_tools),
            undeclared_exist=not (declared and scenario.tools),
            policy=self._policy,
            secrets=self._secrets,
            truths=tuple(
                filter(None, (scenario.profile, scenario.goal, *scenario.knowledge, *scenario.facts))
            ),
            beliefs=tuple(each.belief for each in scenario.beliefs),
            now=self._now,
            observed=trajectory.all_calls_seen,
            agreed=self._agreed(scenario, trajectory),
        )

    def _agreed(self, scenario: Scenario, trajectory: Trajectory) -> frozenset[int]:
        """Return the calls that need no consent. They are determined only if a tool requires consent."""
        if not any(tool.destructive for tool in scenario.tools.values()):
            return frozenset()
        from agenteval.scoring.detectors.consent import find_consented_calls

        return find_consented_calls(scenario, trajectory, is_judged=self._is_judged)

    def _facts_of(self, tools: Mapping[str, Tool]) -> Mapping[str, ToolFacts]:
        """Return the properties of the tools. The result is cached, because all conversations usually share
        one set of tools."""
        known = self._known
        if known is None or known[0] is not tools:
            known = self._known = (tools, {name: _facts(tool) for name, tool in tools.items()})
        return known[1]

    def _unknown(self, conversation: DetectorInput) -> Iterator[Proof]:
        """Yield calls to unknown tools.

        In a run, the agent's own tools need no declaration, so calls that the agent ran itself are skipped,
        unless it is a tool of the user."""
        for proof in DETECTORS[UNKNOWN_TOOL].find(conversation):
            call = None if proof.call is None else conversation.calls[proof.call].call
            is_own = call is not None and call.observed and call.name not in conversation.user_tools
            if self._recorded or not is_own:
                yield proof

    def _finding(
        self, detector: Detector, proof: Proof, scenario: Scenario, trajectory: Trajectory
    ) -> Finding:
        finding = Finding(
            detector=detector.name,
            metric=detector.metric,
            label=detector.label,
            severity=Severity.LOW,
            turn=proof.turn,
            call=proof.call,
            evidence=proof.evidence,
            explanation=proof.explanation,
            references=References(tool=proof.tool),
            span=proof.span,
        )
        effect = rate_finding(finding, trajectory, scenario.tools).severity
        severity = detector.severity_of(effect, self._severities, case_severity=proof.severity)
        return finding.model_copy(update={"severity": severity})


def _if_all_seen(item: Check | Finding | ScoreFailure) -> Check | Finding | ScoreFailure:
    return item.model_copy(update={"if_all_seen": True}) if isinstance(item, Finding) else item


def _unless_all_seen(item: Check | Finding | ScoreFailure) -> Check | Finding | ScoreFailure:
    return item.model_copy(update={"unless_all_seen": True}) if isinstance(item, ScoreFailure) else item


def _report_open_claim(
    detector: Detector, conversation: DetectorInput, trajectory: Trajectory
) -> Iterator[ScoreFailure]:
    """Yield a scoring failure for a claimed action that an unobserved call may have carried out.

    This applies if no judge is used. No other finding that depends on the absence of a call is reported."""
    if detector.name != CLAIMED or trajectory.visibility is ToolVisibility.DECLARED_UNSEEN:
        return
    for proof in detector.find(conversation):
        message = (
            f"“{proof.evidence}” (turn {proof.turn + 1}): no recorded call did this,"
            " but not all calls are recorded"
        )
        yield ScoreFailure(metric=detector.name, message=message, unclear=True)
        return


def _in_answer(proof: Proof, conversation: DetectorInput) -> Proof:
    """Convert the proof's span to positions in the final text of the turn, or drop the span if it refers to
    earlier text."""
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
    )


def _unknown_tool_check(scenario: Scenario, unknown: Iterable[Proof]) -> Iterator[Check]:
    unknown_calls = {proof.explanation: proof.evidence for proof in unknown}
    if unknown_calls:
        yield Check(
            name=UNKNOWN_TOOL,
            passed=False,
            detail="; ".join(unknown_calls),
            where=scenario.where("tools"),
            parts=limit_texts(_MOST_NAMED, unknown_calls.values()),
        )
