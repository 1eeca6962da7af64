"""A journal's answers are used again where the question is the same, and every call is counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import anyio
import pytest
from pydantic import BaseModel, create_model

from agenteval.adapters.traffic.answer_stores import Question
from agenteval.adapters.traffic.recorded_answers import (
    AnswerCounts,
    CountingModel,
    JournalAnswers,
    RejudgedAnswers,
    collect_answers,
)
from agenteval.conversation.current_sample import enter_sample
from agenteval.core.errors import RequestSkippedError
from agenteval.core.event import Event, ModelAsked
from agenteval.core.protocols import ModelReply, ModelRequest, Subject
from agenteval.core.scenario import SampleKey
from agenteval.core.tokens import count_tokens
from agenteval.core.trajectory import Usage
from agenteval.files.prompts import BUILT_IN_METRICS, CRITERIA
from agenteval.scoring.judges.shared_calls import SHARED
from tests.support.verdict_runs import PASS, events_of


class Grade(BaseModel):
    score: int


KEY = SampleKey(scenario="s", agent="a", epoch=1)
REQUEST = ModelRequest(
    "judge", "system", "prompt", Grade, Subject(scenario="s", turn=2, metric="tone"), shared=(3, 5)
)
QUESTION = Question(REQUEST, "openai/x", KEY)
REPLY = ModelReply(Grade(score=3), Usage(calls=1), "openai/x-1")
ENTRY = {"value": {"score": 3}, "model": "openai/x-1", "scripted": False}


def asked(hash: str, score: int, **more: Any) -> ModelAsked:
    return ModelAsked(role="judge", metric="tone", hash=hash, answer={"score": score}, model="m", **more)


def test_the_latest_answer_to_each_question() -> None:
    events: list[Event] = [
        asked("a", 1),
        *events_of({"s": [PASS]}),
        asked("b", 2, scripted=True),
        asked("a", 3),
    ]
    assert collect_answers(events) == {
        "a": {"value": {"score": 3}, "model": "m", "scripted": False},
        "b": {"value": {"score": 2}, "model": "m", "scripted": True},
    }
    assert collect_answers([]) == {}


def test_the_metrics_that_were_counted() -> None:
    counts = AnswerCounts()
    assert not counts.metrics
    counts.calls["tone"] += 1
    counts.reused["goal"] += 1
    counts.reused["tone"] += 1
    counts.tokens["other"] += 1
    counts.calls.update(["e", "b", "d", "a", "c"])
    assert counts.metrics == ("a", "b", "c", "d", "e", "goal", "tone")


# ── the store ────────────────────────────────────────────────────────────────────────────────────


def journal(answers: dict[str, Any] | None) -> tuple[JournalAnswers, RejudgedAnswers, list[ModelAsked]]:
    notes: list[Any] = []
    rejudged = RejudgedAnswers(answers or {})
    return JournalAnswers(None if answers is None else rejudged, notes.append), rejudged, notes


def test_a_known_answer_is_used_noted_and_counted() -> None:
    store, rejudged, notes = journal({QUESTION.hash: ENTRY})
    reply = store.get(QUESTION)
    assert reply == REPLY._replace(usage=Usage(cached_calls=1, cost=0.0))
    assert notes == [
        ModelAsked(
            key=KEY,
            role="judge",
            metric="tone",
            turn=2,
            hash=QUESTION.hash,
            system="system",
            prompt="prompt",
            record=5,
            model="openai/x-1",
            answer={"score": 3},
        )
    ]
    assert (rejudged.counts.reused, rejudged.counts.calls) == ({"tone": 1}, {})


@pytest.mark.parametrize("answers", [None, {}, {"other": ENTRY}, {QUESTION.hash: {"value": {"score": "?"}}}])
def test_an_unknown_answer_is_not_noted(answers: dict[str, Any] | None) -> None:
    store, rejudged, notes = journal(answers)
    assert store.get(QUESTION) is None
    assert not notes
    assert not rejudged.counts.reused


def test_a_new_answer_is_noted_and_counted() -> None:
    store, rejudged, notes = journal({})
    assert store.put(QUESTION, REPLY._replace(scripted=True)).value == REPLY.value
    (note,) = notes
    assert (note.hash, note.answer, note.model, note.scripted, note.error) == (
        QUESTION.hash,
        {"score": 3},
        "openai/x-1",
        True,
        "",
    )
    assert (rejudged.counts.reused, rejudged.counts.calls) == ({}, {"tone": 1})


def test_a_fixed_reply_is_no_call() -> None:
    store, rejudged, notes = journal({})
    store.put(replace(QUESTION, model=""), REPLY)
    assert notes[0].hash == ""
    assert not rejudged.counts.calls


def test_a_failure_is_noted_without_an_answer() -> None:
    store, rejudged, notes = journal({})
    store.failed(QUESTION, OSError("down"))
    (note,) = notes
    assert (note.error, note.answer, note.model) == ("down", None, "")
    assert not rejudged.counts.metrics


def test_a_question_may_share_nothing() -> None:
    store, _, notes = journal(None)
    store.put(replace(QUESTION, request=replace(REQUEST, shared=()), sample=None), REPLY)
    assert (notes[0].record, notes[0].key) == (0, None)


# ── what a dry run counts ────────────────────────────────────────────────────────────────────────


def about(metric: str, turn: int | None = None, reply: type[BaseModel] = Grade) -> ModelRequest:
    return ModelRequest("judge", "s" * 40, "p" * 80, reply, Subject(metric=metric, turn=turn))


def counted(*requests: tuple[ModelRequest, int]) -> AnswerCounts:
    """Each request with the epoch of its sample."""
    counts = AnswerCounts()
    model = CountingModel(counts)

    async def ask(request: ModelRequest, epoch: int) -> None:
        enter_sample(SampleKey(scenario="s", agent="a", epoch=epoch))
        with pytest.raises(RequestSkippedError):
            await model.complete(request)

    async def main(rows: Sequence[tuple[ModelRequest, int]]) -> None:
        for row in rows:
            async with anyio.create_task_group() as group:
                group.start_soon(ask, *row)
        await model.aclose()

    anyio.run(main, requests)
    return counts


TOKENS = count_tokens("s" * 40) + count_tokens("p" * 80)
FIRST, SECOND = sorted(BUILT_IN_METRICS)[:2]


def shared(*parts: str) -> type[BaseModel]:
    fields: dict[str, Any] = dict.fromkeys(parts, (int, ...))
    return create_model("Shared", **fields)


def test_each_call_and_its_tokens_are_counted() -> None:
    counts = counted((about("tone"), 0), (about("tone", 1), 0), (about("goal"), 0))
    assert counts.calls == {"tone": 2, "goal": 1}
    assert counts.tokens == {"tone": 2 * TOKENS, "goal": TOKENS}
    assert not counts.reused


def test_the_parts_of_a_shared_call_are_not_counted_again() -> None:
    together = about(SHARED, 1, shared(FIRST, SECOND))
    alone = [(about(metric, 1), 0) for metric in (FIRST, SECOND)]
    counts = counted((together, 0), *alone, *alone)
    assert counts.calls == {SHARED: 1}
    assert counts.tokens == {SHARED: TOKENS}


@pytest.mark.parametrize(
    "other", [(about(FIRST, 2), 0), (about(FIRST), 0), (about(FIRST, 1), 1), (about("tone", 1), 0)]
)
def test_another_turn_sample_or_metric_is_counted(other: tuple[ModelRequest, int]) -> None:
    counts = counted((about(SHARED, 1, shared(FIRST, SECOND)), 0), other)
    assert counts.calls == {SHARED: 1, other[0].subject.metric: 1}


def test_a_metric_of_its_own_may_share_a_call_with_built_in_ones() -> None:
    counts = counted(
        (about(SHARED, 1, shared(FIRST, "tone")), 0), (about("tone", 1), 0), (about(FIRST, 1), 0)
    )
    assert counts.calls == {SHARED: 1}


def test_a_shared_call_for_criteria_covers_the_criteria() -> None:
    counts = counted((about(SHARED, 1, shared("c1", "c2")), 0), (about(CRITERIA, 1), 0), (about(FIRST, 1), 0))
    assert counts.calls == {SHARED: 1, FIRST: 1}
