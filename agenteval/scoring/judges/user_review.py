"""Reviews the simulated user (user simulator): whether it acted as a real user with this persona would. A
model reviews each conversation that failed, and one tenth of the remaining conversations. Recorded
conversations are also reviewed; if there is no scenario, their users are unknown.

If a fault by the user explains how the conversation ended, the outcome is attributed to the simulator: it is
neither red nor green. Anything proven by the turns before the fault remains valid. Code checks which speaker
the model quotes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict, WithJsonSchema

from agenteval.conversation.simulated_user import format_beliefs, format_list
from agenteval.core.call_outcomes import format_user_call
from agenteval.core.decision import SampleDecision
from agenteval.core.event import Event
from agenteval.core.protocols import ChatModel, ModelRequest, Scorer, Subject
from agenteval.core.reasoning import agent_texts
from agenteval.core.sample_report import SampleReport
from agenteval.core.scenario import Sample, Scenario
from agenteval.core.score import (
    AS_IT_SHOULD,
    HELPED,
    HINDERED,
    NOT_CLEAR,
    NOT_IN_SCENARIO,
    ScoreFailure,
    UserReview,
    Verdict,
)
from agenteval.core.trajectory import StopReason, Trajectory
from agenteval.files.prompt_templates import fence
from agenteval.files.prompts import USER_REVIEW, Prompt
from agenteval.scoring.goals import get_goal_scores
from agenteval.scoring.judges.corroboration import ask_model, is_drawn
from agenteval.scoring.judges.quotations import is_quoted
from agenteval.scoring.judges.references import check_quotation
from agenteval.scoring.transcript import latest_answer
from agenteval.scoring.verdict_parsing import parse_label

LABELS = (AS_IT_SHOULD, HINDERED, HELPED, NOT_IN_SCENARIO, NOT_CLEAR)
NOT_KNOWN = "Not known."
"""The text for unknown values in a recorded conversation without a scenario."""


def _label(value: Any) -> Any:
    """Parse a label, regardless of its spelling."""
    label = parse_label(value, LABELS) if isinstance(value, str) else None
    if label is None:
        raise ValueError(f"the label must be one of: {', '.join(LABELS)}")
    return label


class ReviewReply(BaseModel):
    """The evidence and the reason precede the verdict. A scripted reply may leave out the source and what the
    fault explains."""

    model_config = ConfigDict(extra="ignore")

    evidence: str
    source: str = ""
    reason: str
    label: Annotated[str, BeforeValidator(_label), WithJsonSchema({"type": "string", "enum": list(LABELS)})]
    explains: bool = True


class EndedConversation(NamedTuple):
    """A finished conversation, with its verdict as the report decides it."""

    sample: SampleReport
    decision: SampleDecision
    failed: bool
    """True if the verdict is red, or if failed samples are tolerated and the conversation counts as a
    failure."""


@dataclass(frozen=True)
class UserReviewer:
    """Decides which conversations are reviewed, and which model reviews them for faults by the simulated
    user."""

    model: ChatModel
    decide: Callable[[Sample, Sequence[Event]], EndedConversation]
    """A function that decides how a conversation ended, based on all its events."""
    prompt: Prompt
    seed: int = 0
    now: str = ""
    is_asked: Callable[[Subject], bool] = lambda _subject: True
    """A function that checks whether the model can answer at all (a scripted model may have no answer)."""

    def __call__(self, sample: Sample, events: Sequence[Event]) -> Scorer | None:
        """Return the review of a conversation, given all its events, or ``None`` if the conversation is not
        reviewed."""
        if sample.scenario.is_scripted:
            return None
        found, decided, failed = self.decide(sample, events)
        passed = decided.verdict is Verdict.PASSED and not failed
        if not failed and not (passed and is_drawn(self.seed, USER_REVIEW, str(sample.key))):
            return None
        subject = Subject(
            scenario=sample.scenario.id,
            metric=USER_REVIEW,
            text=latest_answer(found.trajectory),
            epoch=sample.key.epoch,
        )
        if not any(turn.script is None for turn in found.trajectory.turns) or not self.is_asked(subject):
            return None
        outcome = "\n".join(_failures(found, decided)) if failed else "Nothing failed."
        return _Review(self, subject, outcome, failed=failed)


def _failures(sample: SampleReport, decided: SampleDecision) -> Iterator[str]:
    for violation in decided.violations:
        if violation.verdict is Verdict.FAILED:
            at = "" if violation.turn is None else f" (turn {violation.turn + 1})"
            yield f"- {violation.name}{at}: {violation.detail}"
    yield from (
        f"- the goal: {goal.label}: {goal.reason}" for goal in get_goal_scores(sample) if goal.value == 0
    )


@dataclass(frozen=True)
class _Review:
    """The review of one conversation: a scorer that runs when the conversation is over."""

    reviews: UserReviewer
    subject: Subject
    outcome: str
    failed: bool
    scope: str = "conversation"
    metric: str = USER_REVIEW

    async def __call__(
        self, scenario: Scenario, trajectory: Trajectory
    ) -> Sequence[UserReview | ScoreFailure]:
        reply = await ask_model(self.reviews.model, self._request(scenario, trajectory))
        if isinstance(reply, ScoreFailure):
            return (reply,)
        answer: Any = reply.value
        is_fault = answer.label in (HELPED, HINDERED)
        return (
            UserReview(
                label=answer.label,
                explains=is_fault and answer.explains,
                turn=_find_fault_turn(answer.evidence, trajectory) if is_fault else None,
                failed=self.failed,
                evidence=answer.evidence,
                source=answer.source,
                reason=answer.reason,
                by=reply.model,
                scripted=reply.scripted,
                usage=reply.usage,
                recorded=_is_recorded(trajectory),
            ),
        )

    def _request(self, scenario: Scenario, trajectory: Trajectory) -> ModelRequest:
        known = _is_user_known(scenario)
        rendered = self.reviews.prompt.render(
            profile=scenario.profile or ("Nothing particular." if known else NOT_KNOWN),
            goal=scenario.goal or NOT_KNOWN,
            knowledge=format_list(scenario.knowledge) if known else NOT_KNOWN,
            beliefs=format_list(format_beliefs(scenario)) if known else NOT_KNOWN,
            now=self.reviews.now or "Not given.",
            transcript="\n\n".join((*_render_history(scenario), *_render_turns(trajectory))),
            outcome=fence(self.outcome),
            labels=", ".join(f'"{label}"' for label in LABELS),
        )
        return ModelRequest(
            role="judge",
            system=rendered.system,
            prompt=rendered.prompt,
            reply=ReviewReply,
            subject=self.subject,
            states_form=True,
            flaw_in=lambda answer, is_scripted: _find_flaw(answer, is_scripted, scenario, trajectory),
        )


def _is_user_known(scenario: Scenario) -> bool:
    """Check whether the scenario states anything about the user's identity or wishes."""
    return bool(scenario.goal or scenario.profile or scenario.knowledge or scenario.beliefs)


def _is_recorded(trajectory: Trajectory) -> bool:
    return trajectory.stop is not None and trajectory.stop.reason is StopReason.RECORDED


def _render_history(scenario: Scenario) -> Iterator[str]:
    """Yield what had been said before the test. The model that played the user did not write it."""
    for turn in scenario.history_turns:
        agent = "\n\n".join(agent_texts(turn)) or "(nothing)"
        user = f"The user said, as its author had written:\n{fence(turn.user)}"
        yield f"Before the conversation\n{user}\nThe agent said:\n{fence(agent)}"


def _render_turns(trajectory: Trajectory) -> Iterator[str]:
    for number, turn in enumerate(trajectory.turns, 1):
        who = "The user said" if turn.script is None else "The user said, as its author had written"
        agent = "\n\n".join(agent_texts(turn)) or "(nothing)"
        calls = "\n".join(map(format_user_call, turn.user_tool_calls))
        did = f"The user did, with its own tools:\n{fence(calls)}\n" if calls else ""
        yield f"Turn {number}\n{did}{who}:\n{fence(turn.original_user)}\nThe agent said:\n{fence(agent)}"
    stop = trajectory.stop
    yield f"Then the conversation ended ({stop.reason if stop else 'broken off'})."


def _find_flaw(answer: Any, is_scripted: bool, scenario: Scenario, trajectory: Trajectory) -> str:
    """Describe to the model what is wrong with the quotations in an answer that reports a fault, or return an
    empty string if nothing is wrong."""
    if answer.label not in (HELPED, HINDERED):
        return ""
    if "explains" not in answer.model_fields_set and not is_scripted:
        return '"explains" must be true or false'
    own_texts = [turn.original_user for turn in trajectory.turns if turn.script is None]
    if answer.label == HELPED:
        return _find_helped_flaw(answer, own_texts, is_known=_is_user_known(scenario))
    turns = (*scenario.history_turns, *trajectory.turns)
    agent = [text for turn in turns for text in agent_texts(turn)]
    place = "what the user said, or the agent's that it left unanswered"
    flaw = check_quotation("evidence", answer.evidence, (*own_texts, *agent), place)
    if flaw or (is_scripted and not answer.source.strip()):
        return flaw
    texts = (*_at_odds_with(answer, own_texts, scenario), *agent)
    return check_quotation("source", answer.source, texts, "what the user was told, or what the agent said")


def _find_helped_flaw(answer: Any, own_texts: Sequence[str], *, is_known: bool) -> str:
    """Check the claim that the user disclosed too much. The user's own words must be quoted, and the
    information that the user was supposed to withhold must be known."""
    if not is_known:
        return f'nobody knows what this user was told, so the label cannot be "{HELPED}"'
    return check_quotation("evidence", answer.evidence, own_texts, "what the user said")


def _at_odds_with(answer: Any, own_texts: Sequence[str], scenario: Scenario) -> Iterable[str]:
    """Return the texts that a user who hindered the agent may have contradicted.

    These are the texts that describe the user. If there are none, they are the user's own words, except the
    words that are at fault."""
    if not _is_user_known(scenario):
        return [text for text in own_texts if not is_quoted(answer.evidence, (text,))]
    beliefs = (each.belief for each in scenario.beliefs)
    return filter(None, (scenario.profile, scenario.goal, *scenario.knowledge, *beliefs))


def _find_fault_turn(evidence: str, trajectory: Trajectory) -> int:
    """Return the turn of the fault, from 0: the turn with the user's words, or the turn after the agent's
    unanswered words."""
    turns = trajectory.turns
    for index, turn in enumerate(turns):
        if turn.script is None and is_quoted(evidence, (turn.original_user,)):
            return index
    return next((i + 1 for i, turn in enumerate(turns) if is_quoted(evidence, agent_texts(turn))), 0)
