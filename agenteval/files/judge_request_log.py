"""Stores the requests to judges (the prompts of the LLM-as-a-judge) next to the journal. A string that many
requests share is stored once and referred to by its hash.

The file consists of gzip members that contain JSON Lines. One member is written whenever a conversation ends.
A line is a string (``{"text": HASH, "is": …}``), a string composed of other strings (``{"text": HASH, "of":
[HASH, …]}``), or a request, which refers to its strings. A prompt consists of the record of the conversation,
which begins with the record of the previous turn, and the rules of a metric, which are identical in all
requests. Therefore only a small part of each request is new, and that part is compressed.

When a resumed run repeats a sample, the line ``{"anew": KEY}`` marks the earlier requests of the sample as
obsolete. Only the HTML report uses this file. Incomplete parts, left by a killed process, are ignored."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeAlias, assert_never

from pydantic import ValidationError

from agenteval.core.event import (
    CallsSeen,
    Event,
    IssuesFound,
    ModelAsked,
    Notice,
    Reconsidered,
    ReferenceStatesMade,
    RunFinished,
    RunResumed,
    RunStarted,
    SampleFinished,
    SampleStarted,
    Scored,
    TurnFinished,
)
from agenteval.core.scenario import SampleKey
from agenteval.files.regular_files import private_opener

JUDGE_REQUESTS_FILE = "asked.jsonl.gz"
"""The name of the file with the requests to judges, which is stored next to the journal."""
_SHORTEST_PIECE = 60
"""The minimum length of a piece, in characters. A shorter piece takes up less space than its hash."""
_PARAGRAPHS = re.compile(r"(?<!\n)(?=\n\n)")
_MAGIC = b"\x1f\x8b\x08"


class JudgeRequestLog:
    """A sink that stores ``ModelAsked`` events. The file is created when the first request is stored. Can be
    used as a context manager."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._is_resumed = path.exists()
        self._started: set[SampleKey] = set()
        self._known: set[str] = set()
        self._lines: list[str] = []

    def __call__(self, event: Event) -> None:
        match event:
            case ModelAsked():
                self._lines += self._entries_for(event)
            case SampleStarted() if self._is_resumed or event.key in self._started:
                key = event.key.model_dump(mode="json", exclude_defaults=True)
                self._lines.append(json.dumps({"anew": key}))
            case SampleStarted():
                self._started.add(event.key)
            case SampleFinished():
                self._write()
            case (
                RunStarted() | RunResumed() | TurnFinished() | Scored() | Reconsidered() | Notice()
                | ReferenceStatesMade() | CallsSeen() | IssuesFound() | RunFinished()
            ):  # fmt: skip
                pass
            case _:
                assert_never(event)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):  # an error must not cost the run, which is almost over
            self._write()

    def _write(self) -> None:
        """Write the collected lines in one piece."""
        if self._lines:
            text = "".join(f"{line}\n" for line in self._lines)
            self._lines.clear()
            with open(self._path, "ab", buffering=0, opener=private_opener) as file:
                file.write(gzip.compress(text.encode("utf-8", "replace"), 5, mtime=0))

    def _entries_for(self, event: ModelAsked) -> Iterator[str]:
        texts = (event.system, event.prompt[: event.record], event.prompt[event.record :])
        hashes = tuple(map(_text_hash, texts))
        for text_hash, text in zip(hashes, texts, strict=True):
            if text_hash not in self._known:
                yield from self._text_entries(text_hash, text)
        fields = event.model_dump(mode="json", exclude=_SEPARATE_FIELDS, exclude_defaults=True)
        yield _json({"asked": {"system": hashes[0], "prompt": hashes[1:]}, **fields})

    def _text_entries(self, text_hash: str, text: str) -> Iterator[str]:
        pieces = _pieces(text)
        hashes = list(map(_text_hash, pieces))
        self._known.add(text_hash)
        for piece_hash, piece in dict(zip(hashes, pieces, strict=True)).items():
            if piece_hash not in self._known or piece_hash == text_hash:
                self._known.add(piece_hash)
                yield _json({"text": piece_hash, "is": piece})
        if text_hash not in hashes:
            yield _json({"text": text_hash, "of": hashes})


_SEPARATE_FIELDS = {"type", "hash", "system", "prompt"}
_json = json.JSONEncoder(ensure_ascii=False, check_circular=False).encode


def _text_hash(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _pieces(text: str) -> list[str]:
    """Split a string into paragraphs, each with the blank line before it. Short paragraphs are joined with
    the next paragraph."""
    pieces: list[str] = []
    for paragraph in _PARAGRAPHS.split(text):
        if pieces and len(pieces[-1]) < _SHORTEST_PIECE:
            pieces[-1] += paragraph
        else:
            pieces.append(paragraph)
    return pieces


# ── reading ──────────────────────────────────────────────────────────────────────────────────────


RequestTexts: TypeAlias = Mapping[str, str | list[str]]
"""The strings that requests share, keyed by hash. A string composed of other strings is a list of their
hashes."""


class StoredRequests(NamedTuple):
    """The requests to judges as they are stored, with every string stored once."""

    texts: RequestTexts
    by_sample: Mapping[SampleKey, list[dict[str, Any]]]
    """The requests of each sample, in the order of the answers. ``asked`` contains the hashes of the system
    prompt (``system``) and of the parts of the prompt (``prompt``). The other fields are those of
    ``ModelAsked``, except for fields that have their default."""


def read_stored_requests(folder: Path) -> StoredRequests | None:
    """Return all requests to judges of a run. Return ``None`` if the run stored no requests because it
    predates this file format or had no judge."""
    try:
        packed = (folder / JUDGE_REQUESTS_FILE).read_bytes()
    except OSError:
        return None
    texts: dict[str, str | list[str]] = {}
    found: dict[SampleKey, list[dict[str, Any]]] = {}
    for line in _lines(packed):
        if "text" in line:
            text = line["is"] if "is" in line else line.get("of", [])
            texts[str(line["text"])] = text if isinstance(text, str) else _hashes(text)
        elif "anew" in line and (key := _parse_key(line["anew"])):
            found.pop(key, None)
        elif _is_request(line.get("asked")) and (key := _parse_key(line.get("key"))):
            found.setdefault(key, []).append(line)
    return StoredRequests(texts, found)


def _is_request(asked: object) -> bool:
    """Check whether a line is a complete request. Damaged lines are ignored."""
    if not isinstance(asked, dict) or not isinstance(asked.get("system"), str):
        return False
    prompt = asked.get("prompt")
    return isinstance(prompt, list) and len(_hashes(prompt)) == 2


def _hashes(value: object) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def load_judge_requests(folder: Path, keys: Iterable[SampleKey]) -> tuple[ModelAsked, ...] | None:
    """Return the requests to judges for the given samples, in the order of the answers. Return ``None`` if
    the run stored no requests."""
    stored = read_stored_requests(folder)
    if stored is None:
        return None
    wanted = (line for key in dict.fromkeys(keys) for line in stored.by_sample.get(key, ()))
    restored = (_restore_request(line, stored.texts) for line in wanted)
    return tuple(request for request in restored if request)


def _lines(packed: bytes) -> Iterator[dict[str, Any]]:
    for text in _members(packed):
        for line in text.splitlines():
            try:
                value = json.loads(line)
            except ValueError:
                continue
            if isinstance(value, dict):
                yield value


def _members(packed: bytes) -> Iterator[bytes]:
    """Yield each complete gzip member. Members that a killed process left unfinished may occur between
    complete members."""
    at = packed.find(_MAGIC)
    while at >= 0:
        reader = zlib.decompressobj(wbits=31)
        try:
            text = reader.decompress(packed[at:])
        except zlib.error:
            text = b""
        if text and reader.eof:
            yield text
            at = packed.find(_MAGIC, len(packed) - len(reader.unused_data))
        else:
            at = packed.find(_MAGIC, at + 1)


def _parse_key(value: object) -> SampleKey | None:
    try:
        return SampleKey.model_validate(value)
    except ValidationError:
        return None


def _restore_request(line: Mapping[str, Any], texts: RequestTexts) -> ModelAsked | None:
    """Return the request, or ``None`` if its line is damaged."""
    fields = {name: value for name, value in line.items() if name != "asked"}
    record, rest = (_restore_text(name, texts) for name in line["asked"]["prompt"])
    system = _restore_text(line["asked"]["system"], texts)
    whole = {**fields, "system": system, "prompt": record + rest, "record": len(record)}
    try:
        return ModelAsked.model_validate(whole)
    except ValidationError:
        return None


def _restore_text(name: str, texts: RequestTexts) -> str:
    text = texts.get(name, "")
    return text if isinstance(text, str) else "".join(_restore_text(piece, texts) for piece in text)
