"""Assembles a logged streaming response from its pieces. Pure.

The known formats are the streams of OpenAI (both APIs), Anthropic and Google: as server-sent events (SSE), as
one JSON object per line, or as a list of such objects. A stream that cannot be assembled is not an answer."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from agenteval.core.errors import AgentError
from agenteval.core.json_text import parse_or
from agenteval.messages.completion import UnreadableResponseError, assemble_completion
from agenteval.messages.field_shapes import SOURCES
from agenteval.messages.json_fields import drop_none, first_nonempty, list_at, object_at, object_of
from agenteval.messages.sse import DONE, SseParser, ends_stream
from agenteval.messages.unplaced_entries import UNKNOWN_EVENTS_KEY, Unplaced, is_signal, unplaced_fields

_SSE_START = re.compile(r"(?:\s*(?::|(?:event|id|retry):)[^\n]*\n)*\s*data: ?(?:[{\[]|$)", re.MULTILINE)
"""Matches the beginning of server-sent events. No answer begins in this way."""
_INDENT = re.compile(r"^[^\S\r\n]+", re.MULTILINE)
"""Matches the white space that a log may add before the lines of a stream."""
_PIECE_FIELDS = frozenset((
    "message", "content_block", "delta", "usage", "response", "item", "part", "annotation", "error",
    "candidates", "choices",
))  # fmt: skip
"""The fields of a piece that are parsed, or that are repeated in a complete object that is parsed."""
_TRAILING_KINDS = ("ping", DONE)
"""The types of pieces that may follow the end of a response. A piece of any other type belongs to another
response, which is not parsed."""
_FINAL_EVENTS = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")
_END_KINDS = (*_FINAL_EVENTS, "message_stop")
_ITEM_DONE = "response.output_item.done"


def parse_stream_pieces(value: Any) -> list[dict[str, Any]] | None:
    """Parse the pieces (chunks) of a stream, or return ``None`` if the value is not a stream. Raise
    ``UnreadableResponseError`` for a stream that cannot be parsed."""
    match value:
        case list():
            return value if value and all(map(_is_piece, value)) else None
        case str():
            return _parse_events(value) if _SSE_START.match(value) else _parse_lines(value)
    return None


def _parse_lines(text: str) -> list[dict[str, Any]] | None:
    """Return the pieces of a stream that has one piece per line, or ``None`` if the text is not such a
    stream."""
    lines = [line for line in text.split("\n") if line.strip()] if text.lstrip().startswith("{") else []
    found = {line: _parse_piece(line) for line in lines}
    pieces = [piece for piece in found.values() if piece is not None]
    if len(pieces) < 2 and not (len(found) > 1 and any(map(_is_piece, pieces))):
        return None
    if broken := next((line for line, piece in found.items() if piece is None), ""):
        raise UnreadableResponseError("is a stream with an event that is not a JSON object", broken)
    return [json.loads(line) for line in lines]


def assemble_response(pieces: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Assemble a streaming response from its pieces, or return the error that the pieces report.

    Raise ``UnreadableResponseError`` if the stream ends too early or its format is unknown."""
    if error := first_nonempty(("error",), *pieces):
        return {"error": error}
    if any(isinstance(piece.get("choices"), list) for piece in pieces):
        return _assemble_chunks(pieces)
    kinds = {str(piece.get("type")) for piece in pieces}
    if any(kind.startswith("response.") for kind in kinds):
        response = _find_final_response(pieces)
        return _with_unknown_events(response, pieces, list(_stray_call_events(response, pieces)))
    if "message_start" in kinds:
        return _with_unknown_events(_assemble_message(pieces), pieces)
    if any("candidates" in piece for piece in pieces):
        return _with_unknown_events(_assemble_candidate(pieces), pieces)
    raise UnreadableResponseError("is a stream of an unknown kind")


def _with_unknown_events(
    response: Mapping[str, Any], pieces: Sequence[Mapping[str, Any]], unread: Sequence[Any] = ()
) -> Mapping[str, Any]:
    """Return the response together with the pieces of its stream that were not understood.

    ``unread`` contains additional pieces that were not used in assembling the response."""
    end = next((at for at, piece in enumerate(pieces) if piece.get("type") in _END_KINDS), len(pieces))
    unknown = [
        piece
        for at, piece in enumerate(pieces)
        if (at > end and piece.get("type") not in _TRAILING_KINDS)
        or _is_unread(piece)
        or any(piece is each for each in unread)
    ]
    return {**response, UNKNOWN_EVENTS_KEY: unknown} if unknown else response


def _stray_call_events(
    response: Mapping[str, Any], pieces: Sequence[Mapping[str, Any]]
) -> Iterator[Mapping[str, Any]]:
    """Yield the events of calls that are not among the items of the response."""
    done = [piece for piece in pieces if piece.get("type") == _ITEM_DONE]
    items = [*response["output"], *(piece.get("item") for piece in pieces)]
    ids = {item.get("id") for item in items if isinstance(item, dict)}
    places = {*range(len(response["output"])), *(piece.get("output_index") for piece in done)}
    for piece in pieces:
        is_known = piece.get("item_id") in ids or piece.get("output_index") in places
        if "_call" in str(piece.get("type")) and not is_known:
            yield piece


def _is_unread(piece: Mapping[str, Any]) -> bool:
    is_known = _is_piece(piece) or is_signal(piece)
    return not is_known or _has_unknown_delta(piece) or any(_unread_fields(piece))


def _unread_fields(piece: Mapping[str, Any]) -> Iterator[Unplaced]:
    """Yield the fields of a piece that are not used in assembling the response."""
    yield from unplaced_fields(piece, _PIECE_FIELDS, owner="an event")
    yield from unplaced_fields(object_at(piece, "delta"), (), owner="a delta", shapes={"citation": SOURCES})
    candidate = _first_candidate(piece)
    yield from unplaced_fields(candidate, ("content",), owner="a candidate")
    yield from unplaced_fields(object_at(candidate, "content"), ("parts",), owner="a candidate's content")


def assemble_partial_response(pieces: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Assemble a partial response from the events of an interrupted OpenAI or Anthropic stream."""
    if items := _items_done(pieces):
        return _with_unknown_events({"output": items}, pieces)
    return _with_unknown_events(_assemble_message([*pieces, {"type": "message_stop"}]), pieces)


def _items_done(pieces: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    done = (piece for piece in pieces if piece.get("type") == _ITEM_DONE)
    return [piece["item"] for piece in done if isinstance(piece.get("item"), dict)]


def _parse_events(text: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for payload in SseParser().feed(_INDENT.sub("", text).encode("utf-8", "replace"), final=True):
        for line in [payload] if _parse_piece(payload) else payload.split("\n"):
            if ends_stream(line):
                found.append({"type": DONE})
            elif line.strip():
                piece = _parse_piece(line)
                if piece is None:
                    raise UnreadableResponseError("is a stream with an event that is not a JSON object", line)
                found.append(piece)
    return found


def _parse_piece(text: str) -> dict[str, Any] | None:
    value = parse_or(text)
    return value if isinstance(value, dict) else None


def _is_piece(value: Any) -> bool:
    if not isinstance(value, dict) or "role" in value:
        return False
    kind = value.get("type")
    known = isinstance(kind, str) and (
        kind.startswith(("response.", "message_", "content_block_")) or kind in ("ping", "error", DONE)
    )
    return known or "candidates" in value or isinstance(value.get("choices"), list)


def _truncation_error() -> UnreadableResponseError:
    return UnreadableResponseError("is a stream that was cut off")


# ── the formats ──────────────────────────────────────────────────────────────────────────────────


def _assemble_chunks(pieces: Iterable[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Assemble a completion from OpenAI's chunks.

    Also raise ``UnreadableResponseError`` for chunks from the legacy API, which has no messages."""
    chunks = [piece for piece in pieces if piece.get("type") != DONE]
    if any("text" in object_of(each) for piece in chunks for each in list_at(piece, "choices")):
        raise UnreadableResponseError("is a stream of an unknown kind")
    ends = [DONE] if any(piece.get("type") == DONE for piece in pieces) else []
    try:
        return assemble_completion([*map(json.dumps, chunks), *ends])
    except (AgentError, RecursionError) as error:  # content that is no text, or nested too deeply
        raise UnreadableResponseError(f"is a stream that cannot be assembled: {error}") from None


def _find_final_response(pieces: Iterable[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the response in the last of OpenAI's events.

    Items that occur only in earlier events are added to the response."""
    pieces = list(pieces)
    for at, piece in enumerate(pieces):
        if piece.get("type") in _FINAL_EVENTS and isinstance(piece.get("response"), dict):
            output = list_at(piece["response"], "output")
            known = {object_of(each).get("id") for each in output} - {None, ""}
            items = _items_done(pieces[:at])
            missing = [each for each in items if each.get("id") not in known and each not in output]
            return {**piece["response"], "output": [*missing, *output]}
    raise _truncation_error()


def _assemble_message(pieces: Iterable[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Assemble a message from Anthropic's events. The message's blocks grow with each delta."""
    message: dict[str, Any] = {}
    content: list[Any] = []
    blocks: dict[str, dict[str, Any]] = {}
    for piece in pieces:
        match piece.get("type"):
            case "message_start":
                message = dict(object_at(piece, "message"))
                content = list_at(message, "content")
            case "content_block_start":
                blocks[str(piece.get("index"))] = {**object_at(piece, "content_block"), "_input": ""}
            case "content_block_delta" if block := blocks.get(str(piece.get("index"))):
                _append_delta(block, object_at(piece, "delta"))
            case "message_delta":
                message.update(object_at(piece, "delta"))
                if counts := object_at(piece, "usage"):
                    message["usage"] = {**object_at(message, "usage"), **drop_none(counts)}
            case "message_stop":
                closed = [_finish_block(block) for block in blocks.values()]
                return {**message, "role": "assistant", "content": [*content, *closed]}
    raise _truncation_error()


_DELTA_FIELDS = (
    ("text", "text"),
    ("partial_json", "_input"),
    ("thinking", "thinking"),
    ("signature", "signature"),
)
"""Pairs of a field in a delta and the block field that the delta extends."""


_DELTA_KINDS = ("text_delta", "input_json_delta", "thinking_delta", "signature_delta", "citations_delta",
           "compaction_delta")  # fmt: skip


def _has_unknown_delta(piece: Mapping[str, Any]) -> bool:
    """Check whether a delta has an unknown type and is therefore not parsed."""
    delta = object_at(piece, "delta")
    return (
        piece.get("type") == "content_block_delta" and delta.get("type", _DELTA_KINDS[0]) not in _DELTA_KINDS
    )


def _append_delta(block: dict[str, Any], delta: Mapping[str, Any]) -> None:
    for key, name in _DELTA_FIELDS:
        if isinstance(delta.get(key), str):
            block[name] = str(block.get(name) or "") + delta[key]


def _finish_block(block: dict[str, Any]) -> dict[str, Any]:
    input_text = block.pop("_input")
    return {**block, "input": input_text} if input_text else block


def _assemble_candidate(pieces: Iterable[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Assemble a response from the pieces of a Google stream.

    Each piece is a response that contains the next parts of the first candidate."""
    parts: list[Any] = []
    last: Mapping[str, Any] = {}
    outer: dict[str, Any] = {}
    for piece in pieces:
        outer |= piece
        candidate = _first_candidate(piece)
        last = {**last, **candidate}
        for part in list_at(object_at(candidate, "content"), "parts"):
            if parts and _is_bare_text(part) and _is_bare_text(parts[-1]):
                part = {"text": f"{parts.pop()['text']}{part['text']}"}
            parts.append(part)
    if not last.get("finishReason"):
        raise _truncation_error()
    return {**outer, "candidates": [{**last, "content": {"role": "model", "parts": parts}}]}


def _first_candidate(piece: Mapping[str, Any]) -> Mapping[str, Any]:
    return object_of(next(iter(list_at(piece, "candidates")), None))


def _is_bare_text(part: Any) -> bool:
    return isinstance(part, dict) and set(part) == {"text"}
