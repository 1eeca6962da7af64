"""Replies kept on disk: the same question, asked again of the same model in the same epoch, is not sent."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Mapping
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol

from pydantic import BaseModel, ValidationError

from agenteval.adapters.models.structured import schema_of
from agenteval.conversation.current_sample import current
from agenteval.core.config import ModelConfig
from agenteval.core.protocols import ChatModel, ModelReply, ModelRequest
from agenteval.core.trajectory import Usage
from agenteval.files.redact import within

FORMAT = 2
"""Of keys and entries: raised, it makes all earlier entries misses."""
_NOT_ASKED = frozenset(("api_key_env", "client", "timeout_s", "context"))
"""What of a model's configuration does not reach the model."""


class Replies(Protocol):
    """Where replies are kept, by the hash of all that was asked."""

    def get(self, key: str, /) -> Mapping[str, Any] | None: ...

    def put(self, key: str, entry: Mapping[str, Any], /) -> None: ...


class ReplyCache:
    """Entries in a folder, one file each, under the hash of their request. Several runs may share it.

    What cannot be read, or was changed, is a miss; what cannot be written is reported once (``notice``) and
    costs nothing but the next call. ``redact`` takes secrets out of what is written.
    """

    def __init__(self, folder: Path, *, notice: Callable[[str], None], redact: Callable[[str], str]) -> None:
        self._folder = folder
        self._notice = notice
        self._redact = redact
        self._is_broken = False

    def get(self, key: str) -> dict[str, Any] | None:
        try:
            check, _, text = self._path(key).read_text(encoding="utf-8").partition("\n")
            entry = json.loads(text) if check == _hash(text) else None
        except (OSError, ValueError):
            return None
        return entry if isinstance(entry, dict) and entry.get("key") == key else None

    def put(self, key: str, entry: Mapping[str, Any]) -> None:
        text = json.dumps({"key": key, **within(entry, self._redact)})
        try:
            _replace(self._path(key), f"{_hash(text)}\n{text}")
        except OSError as error:
            if not self._is_broken:
                self._is_broken = True
                self._notice(f"the cache cannot be written: {error}; replies are not cached")

    def _path(self, key: str) -> Path:
        return self._folder / key[:2] / f"{key}.json"


def _hash(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _replace(path: Path, text: str) -> None:
    """Whole or not at all: another run may read it at any time."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle, temporary = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


class CachedModel:
    """A ``ChatModel`` that asks ``model`` only what the cache does not know. Errors are not kept, and
    neither is a reply that could not be read: both are exceptions. A reply from the cache is not a call:
    its usage says ``cached_calls`` and no tokens.

    ``endpoint``: where the model is, if not by its configuration alone.
    """

    def __init__(self, model: ChatModel, config: ModelConfig, cache: Replies, *, endpoint: str = "") -> None:
        self._model = model
        self._cache = cache
        asked = config.model_dump(mode="json", exclude=set(_NOT_ASKED))
        self._asked = json.dumps([FORMAT, asked, endpoint], sort_keys=True)

    async def complete(self, request: ModelRequest) -> ModelReply:
        key = request_hash(request, self._asked)
        known = self._cache.get(key)
        reply = _reply_of(known, request) if known else None
        if reply is not None:
            return reply
        reply = await self._model.complete(request)
        value = reply.value.model_dump(mode="json")
        entry = {"value": value, "model": reply.model, "scripted": reply.scripted}
        self._cache.put(key, {**entry, "metric": request.subject.metric})
        return reply

    async def aclose(self) -> None:
        await self._model.aclose()


def request_hash(request: ModelRequest, asked: str) -> str:
    """SHA-256 of all that the reply may depend on: ``asked`` (the model and its parameters), role, texts,
    the shape of the answer and who states it, and the epoch, since epochs are to be independent."""
    sample = current()
    epoch = sample.epoch if sample else request.subject.epoch
    shape = (schema_text(request.reply), request.states_form)
    parts = [asked, request.role, request.system, request.prompt, *shape, epoch]
    return _hash(json.dumps(parts))


@lru_cache(maxsize=256)
def schema_text(reply: type[BaseModel]) -> str:
    """The JSON Schema of a reply, as a text that equal schemas share."""
    return json.dumps(schema_of(reply), sort_keys=True)


def _reply_of(entry: Mapping[str, Any], request: ModelRequest) -> ModelReply | None:
    try:
        value = request.reply.model_validate(entry["value"])
        usage = Usage(cached_calls=1, cost=0.0)
        reply = ModelReply(value, usage, str(entry["model"]), scripted=bool(entry["scripted"]))
    except (ValidationError, LookupError):
        return None
    # What is asked of an answer may have become more since it was kept.
    return None if request.flaw_left_in(reply.value, reply.scripted) else reply
