"""Answers of models that a run's journal keeps: whoever judges the run anew asks only what changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agenteval.conversation.current_sample import current
from agenteval.core.errors import AgentevalError, NotAskedError
from agenteval.core.event import Answered, Asked, Event
from agenteval.core.protocols import ChatModel, ModelReply, ModelRequest
from agenteval.core.scenario import SampleKey
from agenteval.core.tokens import count_tokens
from agenteval.files.prompts import BUILT_IN_METRICS, CRITERIA
from agenteval.scoring.judges.together import SHARED


def answers_in(events: Iterable[Event]) -> dict[str, Mapping[str, Any]]:
    """By the hash of their questions; of one that was asked again, the latest."""
    return {event.asked: event.answer for event in events if isinstance(event, Answered)}


@dataclass
class AskedCounts:
    """By metric: answers that were taken from a journal, calls that were made (or would be), and the tokens
    that go into those."""

    taken: Counter[str] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)
    tokens: Counter[str] = field(default_factory=Counter)

    @property
    def metrics(self) -> tuple[str, ...]:
        return tuple(sorted({*self.taken, *self.calls}))


@dataclass(frozen=True)
class Kept:
    """The answers of the run that is judged anew, and what becomes of them."""

    answers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    tally: AskedCounts = field(default_factory=AskedCounts)


class JournalReplies:
    """``Replies`` that are those of another run's journal, and are written into this one's by ``note``."""

    def __init__(self, kept: Kept | None, note: Callable[[Event], None]) -> None:
        self._kept = kept or Kept()
        self._note = note

    def get(self, key: str) -> Mapping[str, Any] | None:
        entry = self._kept.answers.get(key)
        if entry is not None:
            self._kept.tally.taken[str(entry.get("metric", ""))] += 1
            self._note(Answered(key=current(), asked=key, answer=dict(entry)))
        return entry

    def put(self, key: str, entry: Mapping[str, Any]) -> None:
        self._kept.tally.calls[str(entry["metric"])] += 1
        self._note(Answered(key=current(), asked=key, answer=dict(entry)))


class NotedModel:
    """A ``ChatModel`` that tells ``note`` what it was asked and said, whoever answered."""

    def __init__(self, model: ChatModel, note: Callable[[Event], None]) -> None:
        self._model = model
        self._note = note

    async def complete(self, request: ModelRequest) -> ModelReply:
        asked = Asked(
            key=current(),
            role=request.role,
            metric=request.subject.metric,
            turn=request.subject.turn,
            system=request.system,
            prompt=request.prompt,
            record=max(request.shared, default=0),
        )
        try:
            reply = await self._model.complete(request)
        except AgentevalError as error:
            self._note(asked.model_copy(update={"error": str(error)}))
            raise
        answer = reply.value.model_dump(mode="json")
        said = {"model": reply.model, "scripted": reply.scripted, "answer": answer}
        self._note(asked.model_copy(update=said))
        return reply

    async def aclose(self) -> None:
        await self._model.aclose()


class CountedModel:
    """A ``ChatModel`` that is asked nothing: what it would be asked is counted. What a call for several asks
    is asked alone when that is refused, as it is here: it counts once, as part of the call for all."""

    def __init__(self, tally: AskedCounts) -> None:
        self._tally = tally
        self._shared: set[tuple[SampleKey | None, int | None, str]] = set()

    async def complete(self, request: ModelRequest) -> ModelReply:
        sample, turn, metric = current(), request.subject.turn, request.subject.metric
        if metric == SHARED:
            parts = request.reply.model_fields
            names = parts if any(part in BUILT_IN_METRICS for part in parts) else (CRITERIA,)
            self._shared |= {(sample, turn, name) for name in names}
        elif (sample, turn, metric) in self._shared:
            raise NotAskedError("nothing is asked here")
        self._tally.calls[metric] += 1
        self._tally.tokens[metric] += count_tokens(request.system) + count_tokens(request.prompt)
        raise NotAskedError("nothing is asked here")

    async def aclose(self) -> None:
        """Nothing is open."""
