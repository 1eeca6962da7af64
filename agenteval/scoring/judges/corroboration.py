"""Obtains a second opinion on each LLM-judge verdict that would gate (fail the run), because a single judge's
verdict never gates by itself. The second call tries to refute the verdict; a third call decides (majority
vote).

A judge that is wrong in 2 of 100 verdicts makes most runs of 60 conversations red; two independent verdicts
that have to agree do not (``benchmarks/corroboration.py``). One tenth of the clean verdicts, selected by a
seed, is also checked again, so that a report can show how often the judge disagrees with itself
(self-consistency, judge consistency)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Awaitable, Sequence
from enum import Enum, auto
from hashlib import blake2b
from typing import Any, NamedTuple

from agenteval.conversation.current_sample import current_sample_key
from agenteval.core.errors import BudgetError, InfrastructureError, RequestSkippedError, UnreadableReplyError
from agenteval.core.protocols import ChatModel, ModelReply, ModelRequest
from agenteval.core.score import ScoreFailure, Vote
from agenteval.core.trajectory import Usage, sum_usage
from agenteval.files.prompt_templates import fence
from agenteval.scoring.judges.gating_policy import GatingPolicy
from agenteval.scoring.judges.judge_question import AnswerSide, JudgeQuestion
from agenteval.scoring.judges.replies import read_references
from agenteval.scoring.judges.requests import build_question_request

SAMPLING_INTERVAL = 10
"""The number of clean verdicts of which one is checked again."""


class JudgeAnswer(NamedTuple):
    """The answer to a question, with all votes."""

    reply: ModelReply
    """The reply that counts: the first reply on the majority's side."""
    usage: Usage
    """The total usage of all replies."""
    votes: tuple[Vote, ...] = ()
    is_sampled: bool = False
    is_split: bool = False
    """True if no two replies agree."""


async def ask_with_second_opinion(
    model: ChatModel, question: JudgeQuestion, gating: GatingPolicy, first: ModelReply | None = None
) -> JudgeAnswer | ScoreFailure:
    """Ask a judge a question, ask for second and third opinions as needed (majority vote), and return the
    answer. ``first`` is a reply that is already known."""
    if why := question.record.misfit:
        return ScoreFailure(metric=question.subject.metric, message=why)
    reply = first or await ask_model(model, build_question_request(question))
    if isinstance(reply, ScoreFailure):
        return reply
    reason = _reason_to_ask_again(reply, question, gating)
    if reason is None:
        return JudgeAnswer(reply, reply.usage)
    replies = [reply]
    for prompt in ("judge_refute", "judge_decide"):
        opinion = question.rubric.prompts.prompt(prompt).render(**_answers(replies)).prompt
        another = await ask_model(model, build_question_request(question, opinion))
        if isinstance(another, ScoreFailure):
            return _uncorroborated(another, replies, is_verdict=reason is not _SecondOpinionReason.DRAWN)
        replies.append(another)
        if question.side_of(another.value) == question.side_of(reply.value):
            break
    place = find_majority([question.side_of(each.value) for each in replies])
    return JudgeAnswer(
        reply=replies[place or 0],
        usage=sum_usage(each.usage for each in replies),
        votes=tuple(build_vote(each, against=question.gates(each.value)) for each in replies),
        is_sampled=reason is _SecondOpinionReason.DRAWN,
        is_split=place is None,
    )


class _SecondOpinionReason(Enum):
    """The reason for asking a judge again."""

    GATES = auto()
    DRAWN = auto()
    DOUBTFUL = auto()


def _reason_to_ask_again(
    reply: ModelReply, question: JudgeQuestion, gating: GatingPolicy
) -> _SecondOpinionReason | None:
    """Return the reason for asking again, or ``None`` if a single answer is sufficient."""
    if reply.scripted or not gating.corroborate:
        return None
    if question.gates(reply.value):
        return None if question.is_proven(reply.value) else _SecondOpinionReason.GATES
    if question.is_clean(reply.value) and _is_drawn(question, gating.seed):
        return _SecondOpinionReason.DRAWN
    return _SecondOpinionReason.DOUBTFUL if question.is_doubtful(reply.value) else None


def find_majority(sides: Sequence[AnswerSide]) -> int | None:
    """Return the index of the first answer on the majority's side.

    If several sides are tied, the last answer decides. Return ``None`` if no two answers agree, or if the
    last answer is on none of the tied sides."""
    counts = Counter(sides)
    most = max(counts.values())
    leading = [side for side in counts if counts[side] == most]
    chosen = leading[0] if len(leading) == 1 else sides[-1]
    return sides.index(chosen) if most > 1 and chosen in leading else None


def _is_drawn(question: JudgeQuestion, seed: int) -> bool:
    """Check whether a question is selected for a repeated check.

    The selection depends on the question and its sample, so that some, but not all, of several identical
    conversations are selected."""
    if question.is_drawn is not None:
        return question.is_drawn
    return is_drawn(seed, str(current_sample_key()), question.subject.metric, question.record.text)


def is_drawn(*asked_about: int | str) -> bool:
    """Check whether this verdict is the one in every ``SAMPLING_INTERVAL`` that is checked again. The
    selection is the same for part of a run as for the whole run."""
    return draw_number(*asked_about) % SAMPLING_INTERVAL == 0


def draw_number(*asked_about: int | str) -> int:
    """Return a number that depends on nothing but the arguments, as if drawn at random."""
    text = json.dumps(asked_about)
    digest = blake2b(text.encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest)


def _answers(replies: Sequence[ModelReply]) -> dict[str, str]:
    """Format the replies for the placeholders ``first`` and ``second``."""
    texts = (fence(json.dumps(reply.value.model_dump(), ensure_ascii=False)) for reply in replies)
    return dict(zip(("first", "second"), texts, strict=False))


def _uncorroborated(
    failure: ScoreFailure, replies: Sequence[ModelReply], *, is_verdict: bool
) -> ScoreFailure:
    """Return the failure for a verdict that received no second answer. The verdict remains unknown."""
    spent = [reply.usage for reply in replies]
    if failure.usage:
        spent.append(failure.usage)
    message = f"the second opinion on a verdict failed: {failure.message}"
    update = {"message": message, "usage": sum_usage(spent), "is_verdict": is_verdict}
    return failure.model_copy(update=update)


def build_vote(reply: ModelReply, *, against: bool) -> Vote:
    answer: Any = reply.value
    verdict = next(
        (getattr(answer, key) for key in ("label", "outcome", "score") if hasattr(answer, key)), None
    )
    return Vote(
        verdict=verdict,
        against=against,
        reason=answer.reason,
        evidence=answer.evidence,
        references=read_references(answer),
        usage=reply.usage,
    )


async def complete(model: ChatModel, request: ModelRequest) -> ModelReply:
    """Return the model's answer. If the answer cannot be read, send the original request once more.

    The retry does not show the model its mistake, because many models repeat what they are shown. Raise the
    same exceptions as ``ChatModel``."""
    try:
        return await model.complete(request)
    except UnreadableReplyError as error:
        if error.is_flawed or error.is_final:
            raise
        unread = error
    spent = [unread.usage] if unread.usage else []
    try:
        reply = await model.complete(request)
    except UnreadableReplyError as error:
        error.usage = sum_usage([*spent, error.usage or Usage()]) if spent else error.usage
        raise
    except BudgetError:
        raise
    except InfrastructureError:
        raise unread from None  # a missing second answer does not replace the unreadable first one
    return reply._replace(usage=sum_usage([*spent, reply.usage]))


async def ask_model(model: ChatModel, request: ModelRequest) -> ModelReply | ScoreFailure:
    """Return the model's answer, or a failure if there is no answer. The author's errors are not caught."""
    return await _answer(complete(model, request), request)


async def ask_once(model: ChatModel, request: ModelRequest) -> ModelReply | ScoreFailure:
    """Return the model's answer as ``ask_model`` does, but do not retry if the answer cannot be read.

    The caller then asks the question in another way."""
    return await _answer(model.complete(request), request)


async def _answer(reply: Awaitable[ModelReply], request: ModelRequest) -> ModelReply | ScoreFailure:
    try:
        return await reply
    except InfrastructureError as error:
        unread = error if isinstance(error, UnreadableReplyError) else None
        # Only some models report the cost of a broken answer; it is spent nevertheless.
        usage = getattr(error, "usage", None)
        return ScoreFailure(
            metric=request.subject.metric,
            message=str(error),
            raw=unread.raw if unread else "",
            usage=usage,
            refused=isinstance(error, RequestSkippedError),
            is_verdict=unread is not None and unread.is_flawed,
        )
