"""One judge's word gates nothing alone: what would is asked again, to be refuted; a third call decides.

A judge that is wrong in 2 of 100 verdicts makes most runs of 60 conversations red; two fresh looks that have
to agree do not (``benchmarks/corroboration.py``). A tenth of the clean verdicts, drawn by a seed, is asked
again as well, so that a report can say how often the judge does not agree with itself.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, NamedTuple, Protocol, TypeAlias

from agenteval.conversation.current_sample import current
from agenteval.core.errors import BudgetError, InfrastructureError, NotAskedError, UnreadableReplyError
from agenteval.core.protocols import ChatModel, ModelReply, ModelRequest, Subject, never
from agenteval.core.score import References, ScoreFailure, Vote
from agenteval.core.trajectory import Usage, total_of
from agenteval.files.prompt_templates import fence
from agenteval.files.prompts import Rubric
from agenteval.scoring.judges.stakes import Stakes
from agenteval.scoring.transcript import Transcript

SAMPLED = 10
"""One clean verdict in so many is asked again."""


Side: TypeAlias = bool | str
"""What an answer comes to: whether it would fail something, or of a goal that was not missed the outcome. Two
answers agree if they are on one side."""


@dataclass(frozen=True)
class Question:
    """What a judge is asked. ``gates``: whether an answer would fail something by itself; ``flaw_in``: what
    is wrong with one, and ``accepts_flawed`` whether it is an answer all the same; ``is_proven``: whether
    code has proven what it says; ``is_clean``: whether it finds no fault, so that it may be drawn;
    ``is_doubtful``: whether one that would fail nothing is asked again;
    ``side``: what it comes to, where that is more than whether it gates.
    ``criterion`` as in ``request_of``."""

    rubric: Rubric
    record: Transcript
    subject: Subject
    flaw_in: Callable[[Any, bool], str]
    gates: Callable[[Any], bool]
    is_proven: Callable[[Any], bool] = lambda _said: False
    is_clean: Callable[[Any], bool] = lambda _said: False
    is_doubtful: Callable[[Any], bool] = lambda _answer: False
    side: Callable[[Any], Side] | None = None
    criterion: Mapping[str, str] | None = None
    accepts_flawed: Callable[[Any, bool], bool] = never

    def side_of(self, answer: Any) -> Side:
        return self.side(answer) if self.side else self.gates(answer)


class Asked(NamedTuple):
    """``reply`` is the one that counts: the first that the majority agrees with; ``is_split``: none does, as
    no two agree. ``usage`` is that of all."""

    reply: ModelReply
    usage: Usage
    votes: tuple[Vote, ...] = ()
    is_sampled: bool = False
    is_split: bool = False


class RequestOf(Protocol):
    def __call__(
        self,
        rubric: Rubric,
        record: Transcript,
        *,
        subject: Subject,
        criterion: Mapping[str, str] | None = None,
        opinion: str = "",
        flaw_in: Callable[[Any, bool], str],
    ) -> ModelRequest: ...


def request_for(question: Question, opinion: str, request_of: RequestOf) -> ModelRequest:
    """The request that asks a question. ``opinion`` as in ``request_of``."""
    request = request_of(
        question.rubric,
        question.record,
        subject=question.subject,
        criterion=question.criterion,
        opinion=opinion,
        flaw_in=question.flaw_in,
    )
    return replace(request, accepts_flawed=question.accepts_flawed)


async def asked(
    model: ChatModel,
    question: Question,
    stakes: Stakes,
    request_of: RequestOf,
    first: ModelReply | None = None,
) -> Asked | ScoreFailure:
    """The answer to a question, asked as often as it takes. ``first``: the answer that is there already."""

    async def ask_with(opinion: str = "") -> ModelReply | ScoreFailure:
        return await ask(model, request_for(question, opinion, request_of))

    if why := question.record.misfit:
        return ScoreFailure(metric=question.subject.metric, message=why)
    reply = first or await ask_with()
    if isinstance(reply, ScoreFailure):
        return reply
    first = reply
    would_gate = question.gates(first.value)
    is_drawn = not would_gate and question.is_clean(first.value) and _is_drawn(question, stakes.seed)
    is_asked_again = would_gate or is_drawn or question.is_doubtful(first.value)
    if first.scripted or not stakes.corroborate or not is_asked_again:
        return Asked(first, first.usage)
    if would_gate and question.is_proven(first.value):
        return Asked(first, first.usage)
    replies = [first]
    for prompt in ("judge_refute", "judge_decide"):
        reply = await ask_with(question.rubric.prompts.prompt(prompt).render(**_answers(replies)).prompt)
        if isinstance(reply, ScoreFailure):
            return _uncorroborated(reply, replies, is_verdict=not is_drawn)
        replies.append(reply)
        if question.side_of(reply.value) == question.side_of(first.value):
            break
    place = standing([question.side_of(reply.value) for reply in replies])
    return Asked(
        reply=replies[place or 0],
        usage=total_of(reply.usage for reply in replies),
        votes=tuple(vote_of(reply, against=question.gates(reply.value)) for reply in replies),
        is_sampled=is_drawn,
        is_split=place is None,
    )


def standing(sides: Sequence[Side]) -> int | None:
    """The place of the first answer on the side that most are on. Between equally many the last one decides;
    ``None``: no two agree, or it is on neither side."""
    counts = Counter(sides)
    most = max(counts.values())
    leading = [side for side in counts if counts[side] == most]
    chosen = leading[0] if len(leading) == 1 else sides[-1]
    return sides.index(chosen) if most > 1 and chosen in leading else None


def _is_drawn(question: Question, seed: int) -> bool:
    """By what is asked about and the sample that it is from, so that a part of a run draws the same as the
    whole, and of conversations that are alike some are drawn."""
    asked_about = json.dumps([seed, str(current()), question.subject.metric, question.record.text])
    digest = blake2b(asked_about.encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest) % SAMPLED == 0


def _answers(replies: Sequence[ModelReply]) -> dict[str, str]:
    """By the placeholders ``first`` and ``second``."""
    texts = (fence(json.dumps(reply.value.model_dump(), ensure_ascii=False)) for reply in replies)
    return dict(zip(("first", "second"), texts, strict=False))


def _uncorroborated(
    failure: ScoreFailure, replies: Sequence[ModelReply], *, is_verdict: bool
) -> ScoreFailure:
    """What was asked again and not answered is not known."""
    spent = [reply.usage for reply in replies]
    if failure.usage:
        spent.append(failure.usage)
    message = f"a verdict was asked again, but there was no answer: {failure.message}"
    said = {"message": message, "usage": total_of(spent), "is_verdict": is_verdict}
    return failure.model_copy(update=said)


def vote_of(reply: ModelReply, *, against: bool) -> Vote:
    said: Any = reply.value
    given = {name: getattr(said, name, None) for name in References.model_fields}
    verdict = next((getattr(said, key) for key in ("label", "outcome", "score") if hasattr(said, key)), None)
    return Vote(
        verdict=verdict,
        against=against,
        reason=said.reason,
        evidence=said.evidence,
        references=References(**{name: value for name, value in given.items() if value is not None}),
        usage=reply.usage,
    )


async def complete(model: ChatModel, request: ModelRequest) -> ModelReply:
    """The model's answer. One that could not be read is asked for once more, afresh: a repair shows the model
    its own mistake, and many a model repeats what it is shown. Raises as ``ChatModel``."""
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
        error.usage = total_of([*spent, error.usage or Usage()]) if spent else error.usage
        raise
    except BudgetError:
        raise
    except InfrastructureError:
        raise unread from None  # no answer is no other answer
    return reply._replace(usage=total_of([*spent, reply.usage]))


async def ask(model: ChatModel, request: ModelRequest) -> ModelReply | ScoreFailure:
    """The model's answer, or that there is none. The author's mistakes are not caught."""
    return await _answer(complete(model, request), request)


async def ask_once(model: ChatModel, request: ModelRequest) -> ModelReply | ScoreFailure:
    """The same where one that cannot be read is asked for in another way."""
    return await _answer(model.complete(request), request)


async def _answer(reply: Awaitable[ModelReply], request: ModelRequest) -> ModelReply | ScoreFailure:
    try:
        return await reply
    except InfrastructureError as error:
        unread = error if isinstance(error, UnreadableReplyError) else None
        # What a broken answer cost is known only to some models; it is spent nevertheless.
        usage = getattr(error, "usage", None)
        return ScoreFailure(
            metric=request.subject.metric,
            message=str(error),
            raw=unread.raw if unread else "",
            usage=usage,
            refused=isinstance(error, NotAskedError),
            is_verdict=unread is not None and unread.is_flawed,
        )
