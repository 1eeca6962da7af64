"""Several questions on one record in one call: cheaper, and each is still decided by itself.

What is missing in the common answer, does not fit or has a flaw is asked again alone, and so is what would
gate: a verdict that fails something never rests on a shared call only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Annotated, Any, Protocol

import anyio
from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError, WithJsonSchema, create_model

from agenteval.core.errors import AuthorError
from agenteval.core.protocols import ChatModel, ModelReply, ModelRequest
from agenteval.core.score import ScoreFailure
from agenteval.core.trajectory import Usage, total_of
from agenteval.scoring.judges.corroboration import Asked, Question, RequestOf, ask_once, asked
from agenteval.scoring.judges.stakes import Stakes

SHARED = "shared"
"""The metric of a call for several, to whoever counts or limits calls by it."""


class RequestOfAll(Protocol):
    def __call__(self, questions: Mapping[str, Question], metric: str) -> ModelRequest: ...


async def asked_together(
    model: ChatModel,
    questions: Mapping[str, Question],
    stakes: Stakes,
    request_of: RequestOf,
    request_of_all: RequestOfAll | None,
) -> dict[str, Asked | ScoreFailure]:
    """The answer to each question on one record, by the name that it has in the common answer, all at once.
    Without ``request_of_all``, and of one question, there is no call for all. The usage of that call is
    beside that of the first answer."""
    shared = None
    fits = not any(question.record.misfit for question in questions.values())
    if request_of_all is not None and len(questions) > 1 and fits:
        shared = await ask_once(model, request_of_all(questions, SHARED))
    given = dict(_given(shared, questions)) if isinstance(shared, ModelReply) else {}
    answers: dict[str, Asked | ScoreFailure] = {}
    mistakes: list[AuthorError] = []

    async def answer(name: str, question: Question) -> None:
        try:
            answers[name] = await asked(model, question, stakes, request_of, given.get(name))
        except AuthorError as error:
            mistakes.append(error)  # raised below: out of a task group it would be in a group

    async with anyio.create_task_group() as group:
        for name, question in questions.items():
            group.start_soon(answer, name, question)
    if mistakes:
        raise mistakes[0]
    return dict(_paid(answers, list(questions), shared.usage if shared else None))


def _given(shared: ModelReply, questions: Mapping[str, Question]) -> Iterator[tuple[str, ModelReply]]:
    """The answers of the shared call that can be taken as they are."""
    for name, question in questions.items():
        part = getattr(shared.value, name)
        if part is not None and not question.flaw_in(part, shared.scripted):
            yield name, ModelReply(part, Usage(), shared.model, shared.scripted)


def _paid(
    answers: Mapping[str, Asked | ScoreFailure], names: Sequence[str], spent: Usage | None
) -> Iterator[tuple[str, Asked | ScoreFailure]]:
    """In the order of the questions; what the shared call cost is the first one's."""
    for name in names:
        answer = answers[name]
        usage = total_of(filter(None, (answer.usage, spent)))
        spent = None
        if isinstance(answer, ScoreFailure):
            yield name, answer.model_copy(update={"usage": usage})
        else:
            yield name, answer._replace(usage=usage)


@cache
def reply_of_all(names: tuple[str, ...], types: tuple[type[BaseModel], ...]) -> type[BaseModel]:
    """An object with an answer for each name; one that does not fit is ``None``, and spoils no other."""
    fields: dict[str, Any] = {name: (_perhaps(of), None) for name, of in zip(names, types, strict=True)}
    return create_model(
        "SharedReply",
        __config__=ConfigDict(
            extra="ignore", json_schema_extra={"additionalProperties": False, "required": list(names)}
        ),
        **fields,
    )


def _perhaps(of: type[BaseModel]) -> Any:
    def read(value: Any) -> Any:
        try:
            return of.model_validate(value)
        except ValidationError:
            return None

    schema = of.model_json_schema()
    schema.pop("title", None)
    return Annotated[of | None, BeforeValidator(read), WithJsonSchema(schema)]
