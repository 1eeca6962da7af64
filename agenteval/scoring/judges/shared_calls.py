"""Asks several questions about one record in a single (batched) model call. This is cheaper than separate
calls, and each question is still decided separately.

If the answer to a question is missing, malformed or flawed, or would gate, the question is asked again alone:
a verdict that causes a failure never depends on a shared call alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import anyio

from agenteval.core.errors import AuthorError
from agenteval.core.protocols import ChatModel, ModelReply
from agenteval.core.score import ScoreFailure
from agenteval.core.trajectory import Usage, sum_usage
from agenteval.scoring.judges.corroboration import JudgeAnswer, ask_once, ask_with_second_opinion
from agenteval.scoring.judges.gating_policy import GatingPolicy
from agenteval.scoring.judges.judge_question import JudgeQuestion
from agenteval.scoring.judges.requests import build_shared_request

SHARED = "shared"
"""The metric of a shared call, used wherever calls are counted or limited by metric."""


async def ask_shared(
    model: ChatModel,
    questions: Mapping[str, JudgeQuestion],
    gating: GatingPolicy,
    *,
    is_shared: bool,
) -> dict[str, JudgeAnswer | ScoreFailure]:
    """Return the answer to each question about one record, keyed by its name in the shared answer. All
    questions are asked concurrently.

    If ``is_shared`` is true, several questions are first asked in one call, whose usage is added to the usage
    of the first answer."""
    shared = None
    fits = not any(question.record.misfit for question in questions.values())
    if is_shared and len(questions) > 1 and fits:
        shared = await ask_once(model, build_shared_request(questions, SHARED))
    shared_replies = dict(_usable_replies(shared, questions)) if isinstance(shared, ModelReply) else {}
    known = [(question, shared_replies.get(name)) for name, question in questions.items()]
    answers = dict(zip(questions, await ask_concurrently(model, known, gating), strict=True))
    return dict(_assign_usage(answers, list(questions), shared.usage if shared else None))


async def ask_concurrently(
    model: ChatModel, questions: Sequence[tuple[JudgeQuestion, ModelReply | None]], gating: GatingPolicy
) -> list[JudgeAnswer | ScoreFailure]:
    """Return the answers to questions, each of which may come with a reply that is already known. Second
    opinions are obtained as needed. Raise ``AuthorError`` for a mistake of the author's."""
    answers: dict[int, JudgeAnswer | ScoreFailure] = {}
    mistakes: list[AuthorError] = []

    async def answer(number: int, question: JudgeQuestion, known: ModelReply | None) -> None:
        try:
            answers[number] = await ask_with_second_opinion(model, question, gating, known)
        except AuthorError as error:
            mistakes.append(error)  # raised below, because a task group would wrap it in an exception group

    async with anyio.create_task_group() as group:
        for number, (question, known) in enumerate(questions):
            group.start_soon(answer, number, question, known)
    if mistakes:
        raise mistakes[0]
    return [answers[number] for number in range(len(questions))]


def _usable_replies(
    shared: ModelReply, questions: Mapping[str, JudgeQuestion]
) -> Iterator[tuple[str, ModelReply]]:
    """Yield the answers from the shared call that can be used unchanged."""
    for name, question in questions.items():
        part = getattr(shared.value, name)
        if part is not None and not question.flaw_in(part, shared.scripted):
            yield name, ModelReply(part, Usage(), shared.model, shared.scripted)


def _assign_usage(
    answers: Mapping[str, JudgeAnswer | ScoreFailure], names: Sequence[str], spent: Usage | None
) -> Iterator[tuple[str, JudgeAnswer | ScoreFailure]]:
    """Yield the answers in the order of the questions. The first answer includes the usage of the shared
    call."""
    for name in names:
        answer = answers[name]
        usage = sum_usage(filter(None, (answer.usage, spent)))
        spent = None
        if isinstance(answer, ScoreFailure):
            yield name, answer.model_copy(update={"usage": usage})
        else:
            yield name, answer._replace(usage=usage)
