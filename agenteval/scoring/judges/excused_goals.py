"""Reviews goals that were ruled out or withdrawn. Such an outcome excuses a missed goal, so the outcome must
not depend on a single answer from a judge, and the judge is asked again.

The review starts when all conversations in the scenario are over. If another conversation reached the goal,
the goal was not impossible, unless the judge is shown that conversation and names the difference (a user who
gave up the goal is a sufficient difference). By then it is also known whether another metric contradicts the
outcome in the same conversation."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import anyio

from agenteval.conversation.current_sample import enter_sample
from agenteval.core.errors import AuthorError
from agenteval.core.event import Event, Reconsidered, Scored
from agenteval.core.protocols import Emit, ModelReply
from agenteval.core.sample_report import SampleReport, ScenarioReport
from agenteval.core.scenario import Scenario
from agenteval.core.score import EXCUSES, MISSED, RULED_OUT, WITHDRAWN, Finding, Score, ScoreFailure, Vote
from agenteval.core.trajectory import Usage, sum_usage
from agenteval.files.prompt_templates import fence
from agenteval.scoring.goals import GOAL, get_goal_scores, has_reached
from agenteval.scoring.judges.corroboration import build_vote, find_majority
from agenteval.scoring.judges.goal import GoalJudge, Twin
from agenteval.scoring.judges.judge_question import AnswerSide, JudgeQuestion

DISOBEYED = "disobey user request"
"""The label that contradicts a ruled-out or withdrawn goal in the same conversation."""
OBJECTION = (
    "Another check of this conversation found that the agent disobeyed the user's request:\n\n{}\n\n"
    "If that is about the same wish, and the user had not given it up by then, the two cannot both be"
    " right.\n\n"
)
REFUTE = {RULED_OUT: "judge_refute_ruled_out", WITHDRAWN: "judge_refute_withdrawn"}
"""The prompts for the second opinion, keyed by outcome."""
DECIDE = "judge_decide_ruled_out"
_AGREED = 2
"""The number of answers that must agree."""


def is_goal_excused(event: Event) -> bool:
    """Check whether an event reports that a goal was ruled out or withdrawn."""
    if not isinstance(event, Scored) or event.turn is not None:
        return False
    scores = (item for item in event.items if isinstance(item, Score))
    return any(score.metric == GOAL and score.label in EXCUSES and score.is_open for score in scores)


@dataclass(frozen=True)
class ExcusedGoalReviewer:
    """Asks judges about excused goals again."""

    judge_of: Callable[[str], GoalJudge | None]
    """A function that returns the judge for an agent's goals."""
    corroborate: bool = True
    """False if judges are never asked again."""
    baseline_sample_of: Callable[[str], SampleReport | None] = lambda _scenario: None
    """A function that returns a baseline conversation that reached the scenario's goal."""

    async def __call__(self, scenarios: Sequence[ScenarioReport], emit: Emit) -> int:
        """Settle the open goals concurrently and return the number of open goals. Goals that are already
        settled are skipped."""
        cases = [case for case in self._cases(scenarios) if case.is_open]
        async with anyio.create_task_group() as group:
            for case in cases:
                group.start_soon(self._settle, case, emit)
        return len(cases)

    async def _settle(self, case: _Case, emit: Emit) -> None:
        enter_sample(case.sample.key)
        emit(Reconsidered(key=case.sample.key, metric=GOAL, items=await self._settled(case)))

    def _cases(self, scenarios: Sequence[ScenarioReport]) -> Iterator[_Case]:
        together: dict[str, list[SampleReport]] = {}
        for each in scenarios:
            together.setdefault(each.scenario.id, []).extend(each.samples)
        for each in scenarios:
            if judge := self.judge_of(each.agent):
                excused = ((sample, goal) for sample in each.samples for goal in _excused_goals(sample))
                for sample, goal in excused:
                    yield self._case(sample, each.scenario, goal, judge, together[each.scenario.id])

    def _case(
        self,
        sample: SampleReport,
        scenario: Scenario,
        goal: Score,
        judge: GoalJudge,
        others: Sequence[SampleReport],
    ) -> _Case:
        twin, name = self._reached(sample, others) if goal.label == RULED_OUT else (None, "")
        is_asked = self.corroborate and not goal.scripted
        texts = twin.in_full if twin else None
        return _Case(sample.in_full, scenario, goal, judge, texts, name, is_asked)

    def _reached(
        self, sample: SampleReport, others: Sequence[SampleReport]
    ) -> tuple[SampleReport | None, str]:
        """Return another conversation that reached the goal, and the name of that conversation."""
        if twin := find_twin(sample, others):
            which = f"conversation {twin.key.variant}" if twin.key.variant else f"epoch {twin.key.epoch + 1}"
            return twin, which if twin.key.agent == sample.key.agent else f"{which} of {twin.key.agent}"
        twin = self.baseline_sample_of(sample.key.scenario)
        return twin, f"the baseline ({twin.key})" if twin else ""

    async def _settled(self, case: _Case) -> tuple[Score | Finding | ScoreFailure, ...]:
        if not case.is_asked:
            return _build_miss(case)
        usage = case.goal.usage
        try:
            return await _GoalReview(case, self._twin(case)).run()
        except AuthorError as error:
            return (ScoreFailure(metric=GOAL, message=str(error), usage=usage, author=True),)
        except Exception as error:  # a plugin may raise anything, and the run is already paid for
            return (ScoreFailure(metric=GOAL, message=f"the scorer failed: {error!r}", usage=usage),)

    def _twin(self, case: _Case) -> Twin | None:
        if case.twin is None:
            return None
        judge = self.judge_of(case.twin.key.agent) or case.judge
        return judge.build_twin(case.twin_name, case.scenario, case.twin.trajectory, apart_from=case.judge)


def _excused_goals(sample: SampleReport) -> list[Score]:
    return [goal for goal in get_goal_scores(sample) if goal.label in EXCUSES and goal.is_open]


def find_twin(sample: SampleReport, others: Iterable[SampleReport]) -> SampleReport | None:
    """Return another conversation in the scenario that reached the goal. A conversation with the same agent
    is preferred."""

    def order(other: SampleReport) -> tuple[bool, str, int, str]:
        key = other.key
        return key.agent != sample.key.agent, key.agent, key.epoch, key.variant

    return min(filter(has_reached, others), key=order, default=None)


@dataclass(frozen=True)
class _Case:
    """A goal that was ruled out or withdrawn."""

    sample: SampleReport
    scenario: Scenario
    goal: Score
    judge: GoalJudge
    twin: SampleReport | None
    twin_name: str
    is_asked: bool
    """True if a judge can be asked again."""

    @property
    def outcome(self) -> str:
        return str(self.goal.label)

    @property
    def votes(self) -> tuple[Vote, ...]:
        """All answers so far."""
        return self.goal.votes or (_build_score_vote(self.goal),)

    @property
    def contradiction(self) -> Finding | None:
        """The finding by another metric in the same conversation that contradicts the outcome."""
        return next((each for each in self.sample.findings if each.label == DISOBEYED), None)

    @property
    def is_twin_new(self) -> bool:
        """True if another conversation reached the goal, and that conversation has not been shown to the
        judge."""
        return self.twin is not None and self.goal.twin == ""

    @property
    def needs_second_opinion(self) -> bool:
        agreed = sum(vote.verdict == self.outcome for vote in self.votes)
        return self.is_twin_new or agreed < _AGREED

    @property
    def needs_third_opinion(self) -> bool:
        return self.contradiction is not None and len(self.votes) <= _AGREED

    @property
    def is_open(self) -> bool:
        """True if the case still has to be decided."""
        if not self.is_asked:
            return self.is_twin_new
        return self.needs_second_opinion or self.needs_third_opinion


def _build_miss(case: _Case) -> tuple[Score | Finding, ...]:
    """Return a missed goal, because no judge can name a difference from the conversation that reached the
    goal."""
    goal = case.goal
    reason = f"{goal.reason} (the judge answered ruled out, but {case.twin_name} reached it)".strip()
    missed = _build_score_vote(goal).model_copy(update={"verdict": MISSED, "against": True, "reason": reason})
    return case.judge.build_result(
        missed,
        case.scenario,
        case.sample.trajectory,
        by=goal.by,
        scripted=goal.scripted,
        usage=goal.usage,
        votes=goal.votes,
        twin=case.twin_name,
    )


def _build_score_vote(goal: Score) -> Vote:
    return Vote(
        verdict=goal.label,
        against=False,
        reason=goal.reason,
        evidence=goal.evidence,
        references=goal.references,
        usage=goal.usage,
    )


@dataclass(frozen=True)
class _GoalReview:
    """A goal about which the judge is asked again, at most twice."""

    case: _Case
    twin: Twin | None

    async def run(self) -> tuple[Score | Finding | ScoreFailure, ...]:
        case = self.case
        question = case.judge.build_second_question(case.scenario, case.sample.trajectory, self.twin)
        assert question is not None  # the goal has been judged, so the metric applies
        votes = list(case.votes)
        by = case.goal.by
        for prompt in (REFUTE[case.outcome], DECIDE):
            if not self._is_needed(prompt, votes):
                continue
            reply = await case.judge.ask_again(question, self._opinion(prompt, votes, question))
            if isinstance(reply, ScoreFailure):
                return (_build_failure(reply, votes, case.outcome),)
            by = reply.model
            votes.append(_build_review_vote(reply, question))
        place = find_counted_vote(votes, is_contradicted=case.contradiction is not None)
        return case.judge.build_result(
            None if place is None else self._with_twin(votes, place),
            case.scenario,
            case.sample.trajectory,
            by=by,
            usage=_usage(votes),
            votes=tuple(votes),
            twin=self.twin.name if self.twin else case.goal.twin,
        )

    def _is_needed(self, prompt: str, votes: Sequence[Vote]) -> bool:
        case = self.case
        if prompt != DECIDE:
            return case.needs_second_opinion
        is_new = len(votes) > len(case.votes)
        return (is_new and votes[-1].verdict != case.outcome) or case.needs_third_opinion

    def _opinion(self, prompt: str, votes: Sequence[Vote], question: JudgeQuestion) -> str:
        """Render the follow-up question, with instructions on how to use the previous answers."""
        prompts = question.rubric.prompts
        if prompt == REFUTE[WITHDRAWN]:
            return prompts.prompt(prompt).render(first=_format_vote(self._standing(votes))).prompt
        twin = ""
        if self.twin:
            shown = prompts.prompt("judge_twin").render(who=self.twin.name, record=self.twin.text)
            twin = f"{shown.prompt}\n\n"
        if prompt != DECIDE:
            return prompts.prompt(prompt).render(first=_format_vote(self._standing(votes)), twin=twin).prompt
        found = self.case.contradiction
        objection = OBJECTION.format(fence(found.explanation or found.evidence)) if found else ""
        answers = "\n\n".join(map(_format_vote, votes))
        return prompts.prompt(prompt).render(answers=answers, objection=objection, twin=twin).prompt

    def _with_twin(self, votes: Sequence[Vote], place: int) -> Vote:
        """Return the answer that counts.

        If another conversation was shown, return the latest answer that agrees with the answer that counts,
        and add a reference to that conversation to its reason."""
        if self.twin is None:
            return votes[place]
        vote = [each for each in votes if _side(each) == _side(votes[place])][-1]
        difference = vote.references.difference if vote.verdict == RULED_OUT else ""
        but = f"although {self.twin.name} reached it: “{difference}”" if difference else ""
        return vote.model_copy(update={"reason": f"{vote.reason} ({but or f'{self.twin.name} reached it'})"})

    def _standing(self, votes: Sequence[Vote]) -> Vote:
        return next(vote for vote in votes if vote.verdict == self.case.outcome)


def _build_review_vote(reply: ModelReply, question: JudgeQuestion) -> Vote:
    """Return the vote for a reply.

    An answer that names no difference from the conversation that reached the goal counts as a miss."""
    vote = build_vote(reply, against=question.gates(reply.value))
    if flaw := question.flaw_in(reply.value, reply.scripted):
        reason = f"{vote.reason} (answered {vote.verdict}, but {flaw})"
        return vote.model_copy(update={"verdict": MISSED, "against": True, "reason": reason})
    return vote


def _format_vote(vote: Vote) -> str:
    """Format an answer as the judge gave it."""
    references = vote.references.model_dump(exclude_defaults=True)
    answer = {"evidence": vote.evidence, **references, "reason": vote.reason, "outcome": vote.verdict}
    return fence(json.dumps(answer, ensure_ascii=False))


def find_counted_vote(votes: Sequence[Vote], *, is_contradicted: bool) -> int | None:
    """Return the index of the answer that counts, or ``None`` if no two answers agree. A contradiction is a
    vote against the outcome."""
    sides = [_side(vote) for vote in votes]
    place = find_majority([True, *sides] if is_contradicted else sides)
    if place is None or not is_contradicted:
        return place
    return place - 1 if place else sides.index(True)


def _side(vote: Vote) -> AnswerSide:
    return vote.against or str(vote.verdict)


def _usage(votes: Iterable[Vote]) -> Usage:
    return sum_usage(vote.usage for vote in votes if vote.usage)


def _build_failure(failure: ScoreFailure, votes: Sequence[Vote], outcome: str) -> ScoreFailure:
    """Return the failure for a goal about which the judge was asked again but gave no answer. The goal
    remains unknown."""
    message = f"the second opinion on a goal that was {outcome} failed: {failure.message}"
    spent = [_usage(votes), *([failure.usage] if failure.usage else [])]
    update = {"message": message, "usage": sum_usage(spent), "is_verdict": True}
    return failure.model_copy(update=update)
