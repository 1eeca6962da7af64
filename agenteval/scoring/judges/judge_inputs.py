"""The inputs of a judge in addition to its rubric, and the view of a conversation that the judge receives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from agenteval.core.protocols import ChatModel
from agenteval.core.scenario import Scenario
from agenteval.core.score import Finding
from agenteval.core.trajectory import Trajectory
from agenteval.scoring.judges.gating_policy import GatingPolicy
from agenteval.scoring.judges.references import QuotableRecord, build_quotable_record
from agenteval.scoring.transcript import (
    MAX_TRANSCRIPT_BYTES,
    JudgeTranscript,
    TranscriptOptions,
    build_transcript,
    list_tool_schemas,
)

PolicyOf: TypeAlias = Callable[[Scenario], str]
ToolsOf: TypeAlias = Callable[[Scenario], Sequence[dict[str, Any]]]
FindingsOf: TypeAlias = Callable[[Scenario, Trajectory], Iterable[Finding]]


def no_findings(_scenario: Scenario, _trajectory: Trajectory) -> Iterable[Finding]:
    """Return no findings: the default if no code searches for findings."""
    return ()


def no_policy(_scenario: Scenario) -> str:
    """Return an empty policy: the default for an agent whose policy is unknown."""
    return ""


@dataclass(frozen=True)
class JudgeInputs:
    """The inputs that the judges of a run share."""

    model: ChatModel
    policy_of: PolicyOf = no_policy
    """A function that returns the agent's policy in a scenario."""
    tools_of: ToolsOf = list_tool_schemas
    """A function that returns the tools that the agent could call in a scenario, in OpenAI's format."""
    now: str | None = None
    gating: GatingPolicy = field(default_factory=GatingPolicy)
    """The policy that decides which verdicts gate. A verdict that counts against the agent needs references,
    which code checks. The judge is asked again about a verdict that would gate, unless the failure is among
    the ``proofs``."""
    proofs: FindingsOf = no_findings
    """A function that returns the findings that code made in a conversation."""
    find_raised_questions: FindingsOf = no_findings
    """A function that returns the questions that code raises about a conversation. Each question is shown to
    the judge of its turn."""
    limit: int = MAX_TRANSCRIPT_BYTES
    """The maximum size of a record, in bytes."""


@dataclass(frozen=True)
class ConversationView:
    """Shows a conversation to its judges. If ``parameters`` is true, the view includes the parameters of the
    tools."""

    inputs: JudgeInputs
    parameters: bool = False

    def transcript(
        self,
        scenario: Scenario,
        trajectory: Trajectory,
        turn: int | None,
        *,
        reserved: int = 0,
        every_turn: bool = False,
    ) -> JudgeTranscript:
        """Build the record. ``reserved`` is the number of bytes within the limit that are needed for other
        content. If ``every_turn`` is true, the turns up to ``turn`` are judged, and not that turn alone."""
        inputs = self.inputs
        options = TranscriptOptions(
            policy=inputs.policy_of(scenario),
            tools=inputs.tools_of(scenario),
            now=inputs.now,
            upto=turn,
            parameters=self.parameters,
            limit=inputs.limit - reserved,
            every_turn=every_turn,
        )
        return build_transcript(scenario, trajectory, options)

    def diff_setup(self, other: ConversationView, scenario: Scenario) -> tuple[str, Sequence[dict[str, Any]]]:
        """Return the agent's policy and tools. Either one is empty if it is the same in the other view."""
        policies = [view.inputs.policy_of(scenario) for view in (self, other)]
        tools = [tuple(view.inputs.tools_of(scenario)) for view in (self, other)]
        return policies[0] if policies[0] != policies[1] else "", tools[0] if tools[0] != tools[1] else ()

    def build_quotable_record(
        self, scenario: Scenario, trajectory: Trajectory, turn: int | None
    ) -> QuotableRecord:
        """Build the same record, grouped by speaker, for checking references."""
        policy, tools = self.inputs.policy_of(scenario), self.inputs.tools_of(scenario)
        return build_quotable_record(scenario, trajectory, turn, policy=policy, tools=tools)
