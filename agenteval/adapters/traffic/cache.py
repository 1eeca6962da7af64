"""Cache model answers on disk (response cache). A question that the same model has already answered in the
same epoch is not sent again."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agenteval.adapters.traffic.answer_stores import Question, hash_of, reply_to_entry, usable_reply
from agenteval.core.protocols import ModelReply
from agenteval.files.redaction import mask_value


class AnswerCache:
    """An ``AnswerStore`` in a folder, with one file per answer, named after the hash of the question.

    Several runs may share the folder. An unreadable or modified file is a cache miss. The first failed write
    is reported to ``notify``; the only effect of a failed write is that the question must be sent again next
    time. Errors are not cached. ``redact`` removes secrets from the data to be written."""

    def __init__(self, folder: Path, *, notify: Callable[[str], None], redact: Callable[[str], str]) -> None:
        self._folder = folder
        self._notify = notify
        self._redact = redact
        self._is_broken = False

    def get(self, question: Question) -> ModelReply | None:
        return usable_reply(self._entry(question.hash), question.request)

    def _entry(self, key: str) -> dict[str, Any] | None:
        try:
            check, _, text = self._path(key).read_text(encoding="utf-8").partition("\n")
            entry = json.loads(text) if check == hash_of(text) else None
        except (OSError, ValueError):
            return None
        return entry if isinstance(entry, dict) and entry.get("key") == key else None

    def put(self, question: Question, reply: ModelReply) -> ModelReply:
        text = json.dumps({"key": question.hash, **mask_value(reply_to_entry(reply), self._redact)})
        try:
            _replace(self._path(question.hash), f"{hash_of(text)}\n{text}")
        except OSError as error:
            if not self._is_broken:
                self._is_broken = True
                self._notify(f"the cache cannot be written: {error}; replies are not cached")
        return reply

    def failed(self, question: Question, error: Exception) -> None:
        """Do nothing, because failures are not cached."""

    def _path(self, key: str) -> Path:
        return self._folder / key[:2] / f"{key}.json"


def _replace(path: Path, text: str) -> None:
    """Write the file atomically, because another run may read it at any time."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle, temporary = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
