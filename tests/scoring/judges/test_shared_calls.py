"""Several questions in one call: when it is made, which of its answers count, and what it costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import anyio
import pytest
from pydantic import ValidationError

from agenteval.core.errors import AuthorError, InfrastructureError, Problem, UnreadableReplyError
from agenteval.core.protocols import ModelReply, ModelRequest, Subject
from agenteval.core.score import ScoreFailure
from agenteval.core.trajectory import Usage
from agenteval.files.prompts import Rubric
from agenteval.scoring.judges.corroboration import JudgeAnswer
from agenteval.scoring.judges.gating_policy import GatingPolicy
from agenteval.scoring.judges.judge_question import JudgeQuestion
from agenteval.scoring.judges.shared_calls import SHARED, ask_shared
from agenteval.scoring.transcript import JudgeTranscript

Answer = dict[str, Any]


def usage(calls: int) -> Usage:
    return Usage(calls=calls, input_tokens=10 * calls, output_tokens=calls)


class Model:
    """Answers each request by its metric; what has not the asked shape is an unreadable reply."""

    def __init__(self, answers: Mapping[str, Answer | Exception]) -> None:
        self._answers = answers
        self.asked: list[str] = []

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.asked.append(request.subject.metric)
        answer = self._answers[request.subject.metric]
        if isinstance(answer, Exception):
            raise answer
        try:
            value = request.reply.model_validate(answer)
        except ValidationError as error:
            raise UnreadableReplyError("not the asked shape", raw=str(answer)) from error
        return ModelReply(value, usage(1), "lab/model", False)

    async def aclose(self) -> None: ...


def score(value: Any) -> Answer:
    return {"evidence": "e", "reason": "because", "score": value}


def question(
    name: str,
    *,
    flaw_in: Callable[[Any, bool], str] = lambda *_: "",
    gates: Callable[[Any], bool] = lambda _: False,
    misfit: str = "",
    **more: Any,
) -> JudgeQuestion:
    rubric = Rubric(name, "turn", f"Is it {name}?", scale=(1.0, 5.0))
    record = JudgeTranscript("THE RECORD", misfit=misfit)
    return JudgeQuestion(rubric, record, Subject(scenario="s", metric=name), flaw_in, gates, **more)


def ask(
    model: Model, *questions: JudgeQuestion, is_shared: bool = True, **gating: Any
) -> dict[str, JudgeAnswer | ScoreFailure]:
    named = {each.subject.metric: each for each in questions}

    async def run() -> dict[str, JudgeAnswer | ScoreFailure]:
        return await ask_shared(model, named, GatingPolicy(**gating), is_shared=is_shared)

    return anyio.run(run)


def value(answer: JudgeAnswer | ScoreFailure) -> Any:
    assert isinstance(answer, JudgeAnswer)
    return answer.reply.value.score  # type: ignore[attr-defined]


A, B, C = question("a"), question("b"), question("c")
ALONE = {"a": score(1), "b": score(2), "c": score(3)}
BOTH = {SHARED: {"a": score(4), "b": score(5)}, **ALONE}


def test_one_call_answers_all_and_the_first_bears_its_cost() -> None:
    model = Model(BOTH)
    found = ask(model, A, B)
    assert model.asked == [SHARED]
    assert {name: value(each) for name, each in found.items()} == {"a": 4, "b": 5}
    assert [each.usage for each in found.values()] == [usage(1), Usage()]


@pytest.mark.parametrize(
    ("questions", "is_shared"),
    [((A, B), False), ((A,), True), ((A, question("b", misfit="too long")), True)],
    ids=["not to be shared", "a single one", "a record that does not fit"],
)
def test_otherwise_each_is_asked_alone(questions: tuple[JudgeQuestion, ...], is_shared: bool) -> None:
    model = Model(BOTH)
    found = ask(model, *questions, is_shared=is_shared)
    assert SHARED not in model.asked
    assert value(found["a"]) == 1


def test_nothing_is_asked_about_a_record_that_does_not_fit() -> None:
    model = Model(BOTH)
    failure = ask(model, question("a", misfit="too long"), question("b", misfit="too long"))["a"]
    assert model.asked == []
    assert isinstance(failure, ScoreFailure)
    assert (failure.metric, failure.message) == ("a", "too long")


def test_no_question_no_call() -> None:
    model = Model({})
    assert ask(model) == {}
    assert model.asked == []


@pytest.mark.parametrize("part", [None, {"score": 4}, score(9), "oops"])
def test_a_missing_or_malformed_part_is_asked_again_alone(part: Any) -> None:
    model = Model({**BOTH, SHARED: {"a": score(4), "b": part}})
    found = ask(model, A, B)
    assert model.asked == [SHARED, "b"]
    assert {name: value(each) for name, each in found.items()} == {"a": 4, "b": 2}
    assert [each.usage for each in found.values()] == [usage(1), usage(1)]


def test_a_flawed_part_is_asked_again_alone() -> None:
    flawed = question(
        "a", flaw_in=lambda answer, scripted: "void" if answer.score == 4 and not scripted else ""
    )
    model = Model(BOTH)
    assert value(ask(model, flawed, B)["a"]) == 1
    assert model.asked == [SHARED, "a"]


def test_a_part_that_would_gate_is_asked_again_and_the_votes_decide() -> None:
    gating = question("a", gates=lambda answer: answer.score < 3)
    model = Model({SHARED: {"a": score(1), "b": score(5)}, "a": score(2), "b": score(2)})
    found = ask(model, gating, B)
    assert model.asked == [SHARED, "a"]
    answer = found["a"]
    assert isinstance(answer, JudgeAnswer)
    assert len(answer.votes) == 2
    assert answer.usage == usage(2)


def test_a_shared_call_that_fails_costs_nothing_but_the_call() -> None:
    model = Model({**ALONE, SHARED: InfrastructureError("down")})
    found = ask(model, A, B)
    assert sorted(model.asked) == ["a", "b", SHARED]
    assert {name: value(each) for name, each in found.items()} == {"a": 1, "b": 2}


def test_answers_keep_the_order_of_the_questions() -> None:
    model = Model({SHARED: {"c": score(3), "b": None, "a": score(5)}, **ALONE})
    assert list(ask(model, C, B, A)) == ["c", "b", "a"]


def test_a_failure_is_that_of_its_question_and_bears_the_cost_if_it_is_first() -> None:
    model = Model({SHARED: {"a": None, "b": score(5)}, "a": InfrastructureError("down")})
    found = ask(model, A, B)
    failure = found["a"]
    assert isinstance(failure, ScoreFailure)
    assert (failure.metric, failure.usage) == ("a", usage(1))
    assert value(found["b"]) == 5
    assert found["b"].usage == Usage()


def test_a_mistake_of_the_author_is_raised_as_it_is() -> None:
    mistake = AuthorError(Problem("no key", "set it"))
    with pytest.raises(AuthorError, match="no key"):
        ask(Model({"a": mistake, "b": mistake}), A, B, is_shared=False)
