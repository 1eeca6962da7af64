"""Reuse the model answers in a run's journal, so that rejudging (rescoring) the run sends only questions that
have changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agenteval.adapters.traffic.answer_stores import Question, usable_reply
from agenteval.conversation.current_sample import current_sample_key
from agenteval.core.errors import RequestSkippedError
from agenteval.core.event import Event, ModelAsked
from agenteval.core.protocols import ModelReply, ModelRequest
from agenteval.core.scenario import SampleKey
from agenteval.core.tokens import count_tokens
from agenteval.files.prompts import BUILT_IN_METRICS, CRITERIA
from agenteval.scoring.judges.shared_calls import SHARED


def collect_answers(events: Iterable[Event]) -> dict[str, Mapping[str, Any]]:
    """Collect the answers, keyed by the hash of their question. If a question was asked more than once, use
    the latest answer."""
    return {
        event.hash: {"value": event.answer, "model": event.model, "scripted": event.scripted}
        for event in events
        if isinstance(event, ModelAsked)
    }


@dataclass
class AnswerCounts:
    """The call counts in a rejudged run, keyed by metric."""

    reused: Counter[str] = field(default_factory=Counter)
    """The number of answers taken from the journal."""
    calls: Counter[str] = field(default_factory=Counter)
    """The number of calls that were made or, in a dry run, would be made."""
    tokens: Counter[str] = field(default_factory=Counter)
    """The number of input tokens in the calls that would be made."""

    @property
    def metrics(self) -> tuple[str, ...]:
        return tuple(sorted({*self.reused, *self.calls}))


@dataclass(frozen=True)
class RejudgedAnswers:
    """The answers in the run that is being rejudged, and counts of how often they are used."""

    answers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    counts: AnswerCounts = field(default_factory=AnswerCounts)


class JournalAnswers:
    """An ``AnswerStore`` that looks up answers in another run's journal. ``note`` is called with an event for
    each answer, regardless of its source."""

    def __init__(self, rejudged: RejudgedAnswers | None, note: Callable[[Event], None]) -> None:
        self._rejudged = rejudged or RejudgedAnswers()
        self._note = note

    def get(self, question: Question) -> ModelReply | None:
        entry = self._rejudged.answers.get(question.hash)
        if reply := usable_reply(entry, question.request):
            self._rejudged.counts.reused[question.request.subject.metric] += 1
            self._note(_event(question, reply))
        return reply

    def put(self, question: Question, reply: ModelReply) -> ModelReply:
        if question.hash:
            self._rejudged.counts.calls[question.request.subject.metric] += 1
        self._note(_event(question, reply))
        return reply

    def failed(self, question: Question, error: Exception) -> None:
        self._note(_event(question, error=str(error)))


def _event(question: Question, reply: ModelReply | None = None, error: str = "") -> ModelAsked:
    request, asked = question.request, question.request.subject
    return ModelAsked(
        key=question.sample,
        role=request.role,
        metric=asked.metric,
        turn=asked.turn,
        hash=question.hash,
        system=request.system,
        prompt=request.prompt,
        record=max(request.shared, default=0),
        model=reply.model if reply else "",
        scripted=bool(reply and reply.scripted),
        answer=reply.value.model_dump(mode="json") if reply else None,
        error=error,
    )


class CountingModel:
    """A ``ChatModel`` for dry runs. It never answers, but it counts the calls that would be made.

    If a call for several metrics is refused, as it always is here, each metric is then requested separately.
    Such a separate request is not counted, because the shared call already covers it."""

    def __init__(self, tally: AnswerCounts) -> None:
        self._tally = tally
        self._shared: set[tuple[SampleKey | None, int | None, str]] = set()

    async def complete(self, request: ModelRequest) -> ModelReply:
        sample, turn, metric = current_sample_key(), request.subject.turn, request.subject.metric
        if metric == SHARED:
            parts = request.reply.model_fields
            names = parts if any(part in BUILT_IN_METRICS for part in parts) else (CRITERIA,)
            self._shared |= {(sample, turn, name) for name in names}
        elif (sample, turn, metric) in self._shared:
            raise RequestSkippedError("no request is sent here")
        self._tally.calls[metric] += 1
        self._tally.tokens[metric] += count_tokens(request.system) + count_tokens(request.prompt)
        raise RequestSkippedError("no request is sent here")

    async def aclose(self) -> None:
        """Do nothing, because no connection is open."""
