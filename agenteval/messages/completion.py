"""Assembles a chat completion from the chunks of a streaming response. Handles the quirks of real servers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from agenteval.messages import chat
from agenteval.messages.json_fields import drop_empty, drop_none, is_json, list_of, object_at, objects_of
from agenteval.messages.sse import ends_stream, texts_of
from agenteval.messages.texts import unplaced_in_part
from agenteval.messages.unplaced_entries import UNKNOWN_EVENTS_KEY, is_signal


class UnreadableResponseError(Exception):  # callers that know the endpoint raise AgentError
    """Raised for a reply that is not a chat completion.

    ``what`` completes the phrase "the reply …". ``evidence`` is the server's original text, to be quoted in
    messages. ``error`` is the error that a stream reported, if any."""

    def __init__(self, what: str, evidence: str = "", *, error: Any = None) -> None:
        super().__init__(what)
        self.what = what
        self.evidence = evidence
        self.error = error


def parse_object(text: str) -> dict[str, Any]:
    """Return the JSON object in ``text``. Raise ``UnreadableResponseError`` if the text is not such an
    object."""
    try:
        value = json.loads(text, object_pairs_hook=chat.keep_duplicate_keys)
    except (ValueError, RecursionError):
        raise UnreadableResponseError(describe_non_json(text), text) from None
    if not isinstance(value, dict):
        raise UnreadableResponseError("is JSON but not an object", text)
    return value


def describe_non_json(text: str) -> str:
    if not text.strip():
        return "is empty"
    return "is a web page: check the API URL" if text.lstrip().startswith("<") else "is not JSON"


def assemble_completion(payloads: Sequence[str]) -> dict[str, Any]:
    """Assemble a chat completion from the payloads of a stream (server-sent events, SSE).

    Raise ``UnreadableResponseError`` for a payload that is not an object, for an error in the stream, for a
    stream that ends with neither a ``finish_reason`` nor ``[DONE]``, and for a stream that ends without a
    ``finish_reason`` after content that looks like an error."""
    completion = _CompletionBuilder()
    for chunk in _parse_chunks(payloads):
        if error := _error_in(chunk):
            raise _stream_error(error)
        completion.add(chunk)
    if not completion.finished and (error := completion.trailing_error):
        raise _stream_error(error)
    if not completion.finished and not any(map(ends_stream, payloads)):
        raise UnreadableResponseError(
            "was cut off: the stream has neither `finish_reason` nor [DONE]", "".join(payloads[-1:])
        )
    return completion.document()


def assemble_partial_completion(payloads: Sequence[str]) -> dict[str, Any]:
    """Assemble a partial completion from the payloads of a stream that was interrupted, regardless of how
    incomplete the result is."""
    completion = _CompletionBuilder()
    with suppress(UnreadableResponseError):
        for chunk in _parse_chunks(payloads):
            if not _error_in(chunk):
                completion.add(chunk)
    return completion.document()


def _error_in(chunk: Mapping[str, Any]) -> Any:
    return chunk.get("error") or (chunk if chunk.get("object") == "error" else None)


def _stream_error(error: Any) -> UnreadableResponseError:
    return UnreadableResponseError("ended with an error", json.dumps(error), error=error)


_CODE_KEYS = ("code", "status", "status_code", "statusCode")
_ERROR_KEYS = ("detail", "errors", "exception", "error_code", "error_message", "errorCode", "errorMessage")
_KIND_KEYS = ("type", "event", "status", "role")


def _looks_like_error(chunk: Mapping[str, Any]) -> bool:
    """Check whether a chunk is a status or text about a failure instead of a part of an answer.

    A chunk that contains only a message is an error, unless a different field states the type of the event.
    """
    if "choices" in chunk or chunk.get("type") == "error":
        return "choices" not in chunk
    codes = [code for name in _CODE_KEYS if isinstance(code := chunk.get(name), int)]
    if codes:
        return max(codes) >= 400
    is_message = isinstance(chunk.get("message"), str) and not any(chunk.get(kind) for kind in _KIND_KEYS)
    return is_message or any(chunk.get(name) for name in _ERROR_KEYS)


def _parse_chunks(payloads: Sequence[str]) -> Iterator[dict[str, Any]]:
    return map(parse_object, texts_of(payloads))


class _CompletionBuilder:
    """Builds a completion chunk by chunk. Only the choice with index 0 is used."""

    def __init__(self) -> None:
        self.trailing_error: Mapping[str, Any] | None = None
        """Text that came after the last piece of the answer and looks like an error."""
        self._fields: dict[str, Any] = {}
        self._events: list[Any] = []
        self._choice: dict[str, Any] | None = None
        self._message: dict[str, Any] = {}
        self._texts: dict[str, list[str]] = {}
        self._calls = ToolCallAssembler()
        self._legacy = _ToolCallBuilder()

    @property
    def finished(self) -> bool:
        return bool(self._choice and self._choice.get("finish_reason"))

    def add(self, chunk: Mapping[str, Any]) -> None:
        if _is_unknown_event(chunk):
            self._events.append(chunk)
        else:
            self._fields.update(_groq_usage(chunk) | _present_fields(chunk, without={"choices"}))
        choices = chunk.get("choices")
        if choices or _looks_like_error(chunk):
            self.trailing_error = None if choices else chunk
        for choice in objects_of(choices):
            if not choice.get("index"):
                self._add_choice(choice)
            elif any(map(_asks_for_tools, (object_at(choice, "delta"), object_at(choice, "message")))):
                self._events.append(choice)

    def _add_choice(self, choice: Mapping[str, Any]) -> None:
        self._choice = (self._choice or {}) | _present_fields(choice, without={"delta", "message", "index"})
        if isinstance(message := choice.get("message"), dict):
            self._replace_message(message)
        self._merge(object_at(choice, "delta"))

    def _replace_message(self, message: Mapping[str, Any]) -> None:
        """Replace all previous pieces with a complete message from the stream."""
        self._message, self._texts, self._calls, self._legacy = (
            {},
            {},
            ToolCallAssembler(),
            _ToolCallBuilder(),
        )
        self._merge(message)

    def _merge(self, delta: Mapping[str, Any]) -> None:
        for name, value in _present_fields(delta).items():
            match name, value:
                case "tool_calls", list():
                    for piece in value:
                        self._calls.add(piece)
                case "function_call", dict():
                    self._legacy.add({"function": value})
                case "content", _:
                    self._texts.setdefault(name, []).append(chat.text_of(value) or "")
                    self._events += [part for part in list_of(value) if any(unplaced_in_part(part))]
                case "role" | "name", _:
                    self._message[name] = value
                case _, str():
                    self._texts.setdefault(name, []).append(value)
                case _, list():
                    self._message[name] = [*self._message.get(name, ()), *value]
                case _:
                    self._message[name] = value

    def document(self) -> dict[str, Any]:
        if self._events:
            self._fields[UNKNOWN_EVENTS_KEY] = self._events
        if self._choice is None:
            return {**self._fields, "choices": []}
        message = self._message | {name: "".join(pieces) for name, pieces in self._texts.items()}
        if calls := self._calls.build():
            message["tool_calls"] = calls
        if self._legacy.name:
            message["function_call"] = self._legacy.build()["function"]
        return {**self._fields, "choices": [{**self._choice, "message": message}]}


def _groq_usage(chunk: Mapping[str, Any]) -> dict[str, Any]:
    """Return the token usage that Groq reports in a separate field of its last chunk."""
    usage = object_at(chunk, "x_groq").get("usage")
    return {"usage": usage} if usage else {}


def _asks_for_tools(message: Mapping[str, Any]) -> bool:
    return bool(message.get("tool_calls") or message.get("function_call"))


_CHUNK_FIELDS = frozenset((
    "id", "object", "created", "model", "usage", "system_fingerprint", "service_tier", "provider", "error",
    "x_groq", "timings", "obfuscation", "prompt_filter_results", "citations", "search_results", "type",
))  # fmt: skip


def _is_unknown_event(chunk: Mapping[str, Any]) -> bool:
    """Check whether an event is not a completion chunk and contains more than its type."""
    is_known = "choices" in chunk or chunk.keys() <= _CHUNK_FIELDS or is_signal(chunk)
    return not is_known and not _looks_like_error(chunk)


def _present_fields(
    fields: Mapping[str, Any], *, without: frozenset[str] | set[str] = frozenset()
) -> dict[str, Any]:
    return {name: value for name, value in drop_none(fields).items() if name not in without}


class _ToolCallBuilder:
    """Builds one tool call from its pieces.

    The id is sent once. The name is sent in pieces, or repeated in full in each piece. The arguments are sent
    as pieces of text or, contrary to the standard, as an object."""

    def __init__(self) -> None:
        self.name = ""
        self.id = ""
        self._fields: dict[str, Any] = {}
        self._function: dict[str, Any] = {}
        self._arguments: list[str] = []

    def add(self, piece: Mapping[str, Any]) -> None:
        function = object_at(piece, "function")
        self.id = self.id or str(piece.get("id") or "")
        self._fields.update(_present_fields(piece, without={"id", "index", "function"}))
        self._function.update(_present_fields(function, without={"name"}))
        name = str(function.get("name") or "")
        if name.startswith(self.name):
            self.name = name or self.name
        else:
            self.name += name
        if isinstance(arguments := function.get("arguments"), str):
            self._arguments.append(arguments)

    @property
    def is_whole(self) -> bool:
        return is_json("".join(self._arguments))

    def build(self) -> dict[str, Any]:
        function = {**self._function, "name": self.name}
        if self._arguments:
            function["arguments"] = "".join(self._arguments)
        return {**self._fields, **drop_empty({"id": self.id}), "function": function}


class ToolCallAssembler:
    """Assembles the streamed tool calls of a message, ordered by index. This order may differ from the order
    of arrival."""

    def __init__(self) -> None:
        self._calls: list[tuple[Any, _ToolCallBuilder]] = []
        self._by_index: dict[int, _ToolCallBuilder] = {}
        self._by_id: dict[tuple[Any, str], _ToolCallBuilder] = {}

    def add(self, piece: Any) -> None:
        if not isinstance(piece, dict):
            raise UnreadableResponseError("has a tool call that is not an object", json.dumps(piece))
        index = piece.get("index")
        index = index if isinstance(index, int) and not isinstance(index, bool) else None
        call = self._find_continued(piece, index)
        if call is None:
            call = _ToolCallBuilder()
            self._calls.append((index, call))
        if index is not None:
            self._by_index[index] = call
        call.add(piece)
        for place in (index, None) if call.id else ():
            self._by_id.setdefault((place, call.id), call)

    def _find_continued(self, piece: Mapping[str, Any], index: int | None) -> _ToolCallBuilder | None:
        """Return the call to which the piece belongs, or ``None`` if the piece starts a new call.

        A piece belongs to the call with the same index and id, or otherwise to the last call with that index.
        A piece without an index belongs to the last call. If a server gives each call the index 0, a new id
        together with a name starts a new call. If a server sends neither an index nor an id, a name after
        complete arguments starts a new call."""
        call_id, name = str(piece.get("id") or ""), object_at(piece, "function").get("name")
        if call_id and (known := self._by_id.get((index, call_id))):
            return known
        last = self._calls[-1][1] if self._calls else None
        call = last if index is None else self._by_index.get(index)
        if call is None or not name:
            return call
        if call_id and call.id and call_id != call.id:
            return None
        is_next = index is None and not call_id and call.is_whole
        return None if is_next else call

    def build(self) -> list[dict[str, Any]]:
        return [call.build() for _, call in chat.sort_by_index(self._calls, lambda each: each[0])]
