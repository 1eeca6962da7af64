"""Store the questions sent to models, and the models' answers. Every store contains one entry per question.

A store is a journal (``recorded_answers``), a folder shared by several runs (``cache``), or a recording
(``recording``)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import sha256
from typing import Any, Protocol

from pydantic import BaseModel, ValidationError

from agenteval.conversation.current_sample import current_sample_key
from agenteval.core.config import ModelConfig
from agenteval.core.protocols import ChatModel, ModelReply, ModelRequest
from agenteval.core.scenario import SampleKey
from agenteval.core.trajectory import Usage

ANSWER_FORMAT = 2
"""The version of the format of questions and entries. Increasing it invalidates all earlier entries."""
_NOT_SENT = frozenset(("api_key_env", "client", "timeout_s", "context"))
"""The fields of a model's configuration that are not sent to the model."""
_PACE = ("max_wait_s", "requests_per_minute", "tokens_per_minute")
"""The fields that only decide when a request is sent. Their default values stand in a model's identity, so
that earlier entries remain valid."""


@dataclass(frozen=True, eq=False)
class Question:
    """A request in the form that identifies it in a store."""

    request: ModelRequest
    model: str
    """The model's identity, including all settings that affect its requests, or an empty string if answers
    must never come from a store."""
    sample: SampleKey | None

    @cached_property
    def hash(self) -> str:
        """The SHA-256 hash of everything that may affect the answer (the cache key).

        This includes the model and its parameters, the role, the texts, the structure of the answer, whether
        the prompt describes that structure, and the epoch. The epoch is included because epochs are
        independent."""
        request = self.request
        epoch = self.sample.epoch if self.sample else request.subject.epoch
        shape = (schema_text(request.reply), request.states_form)
        parts = [self.model, request.role, request.system, request.prompt, *shape, epoch]
        return hash_of(json.dumps(parts)) if self.model else ""


def hash_of(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@lru_cache(maxsize=256)
def schema_text(reply: type[BaseModel]) -> str:
    """Return the JSON Schema of a reply as a string. Equal schemas result in equal strings."""
    from agenteval.adapters.models.response_formats import (
        schema_of,  # a slow import; fixed replies need no hash
    )

    return json.dumps(schema_of(reply), sort_keys=True)


def identity_of(config: ModelConfig, endpoint: str = "") -> str:
    """Return the identity of a model for use in questions.

    ``endpoint`` is the model's address, if the configuration alone does not determine the address."""
    sent = config.model_dump(mode="json", exclude=set(_NOT_SENT))
    sent |= {name: ModelConfig.model_fields[name].default for name in _PACE}
    return json.dumps([ANSWER_FORMAT, sent, endpoint], sort_keys=True)


def reply_to_entry(reply: ModelReply) -> dict[str, Any]:
    return {"value": reply.value.model_dump(mode="json"), "model": reply.model, "scripted": reply.scripted}


def reply_from_entry(entry: Mapping[str, Any], request: ModelRequest) -> ModelReply:
    """Convert an entry to a reply.

    Raise ``ValidationError`` or ``LookupError`` if the entry does not answer the request. If the entry
    contains no usage, the reply does not count as a call."""
    usage = Usage.model_validate(entry.get("usage") or {"cached_calls": 1, "cost": 0.0})
    value = request.reply.model_validate(entry["value"])
    return ModelReply(value, usage, str(entry["model"]), scripted=bool(entry["scripted"]))


def usable_reply(entry: Mapping[str, Any] | None, request: ModelRequest) -> ModelReply | None:
    """Return the entry's reply, or ``None`` if the reply no longer meets the requirements of the request,
    which may have become stricter since."""
    try:
        reply = reply_from_entry(entry, request) if entry else None
    except (ValidationError, LookupError):
        return None
    if reply is None:
        return None
    find_flaw = request.flaw_left_in if request.reuses_flawed else request.flaw_in
    return None if find_flaw(reply.value, reply.scripted) else reply


class AnswerStore(Protocol):
    """A store of answers.

    Each question is looked up first. If the store has no answer, the caller obtains an answer elsewhere and
    passes it to ``put``, which returns the answer in the form that the run uses. If no answer can be
    obtained, the caller passes the error to ``failed``, unless the attempt was cancelled."""

    def get(self, question: Question) -> ModelReply | None: ...

    def put(self, question: Question, reply: ModelReply) -> ModelReply: ...

    def failed(self, question: Question, error: Exception) -> None: ...


class StoreBackedModel:
    """A ``ChatModel`` that calls ``model`` only for questions that none of the ``stores`` can answer.

    The stores are searched in order, and the answer is added to the stores that did not contain it. For
    ``identity``, see ``Question.model``."""

    def __init__(self, model: ChatModel, stores: Sequence[AnswerStore], identity: str = "") -> None:
        self._model = model
        self._stores = tuple(stores)
        self._identity = identity

    async def complete(self, request: ModelRequest) -> ModelReply:
        return await self._answer(Question(request, self._identity, current_sample_key()), self._stores)

    async def _answer(self, question: Question, stores: Sequence[AnswerStore]) -> ModelReply:
        if not stores:
            return await self._model.complete(question.request)
        store, *others = stores
        if known := store.get(question):
            return known
        try:
            reply = await self._answer(question, others)
        except Exception as error:
            store.failed(question, error)
            raise
        return store.put(question, reply)

    async def aclose(self) -> None:
        await self._model.aclose()
