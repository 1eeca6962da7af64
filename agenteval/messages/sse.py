"""Parses server-sent events (SSE; WHATWG HTML, section 9.2), to the extent that chat servers use them."""

from __future__ import annotations

import codecs
import io
import json
import re
from collections.abc import Iterable, Iterator

from agenteval.core.json_text import parse_or
from agenteval.messages.json_fields import is_json

DONE = "[DONE]"
"""The payload that marks the end of a chat server's stream."""


class Payload(str):
    """The ``data`` of an event, with the name of the event, if any."""

    __slots__ = ("event",)

    event: str

    def __new__(cls, text: str, event: str = "") -> Payload:
        payload = super().__new__(cls, text)
        payload.event = event
        return payload


class SseParser:
    """Parses server-sent events (SSE) incrementally from bytes, and returns the ``data`` of each event
    (WHATWG HTML, section 9.2).

    Comments and ids are dropped; an event named ``error`` becomes an object with that key. An event that is
    cut off by the end of the stream is also returned, because some servers omit the last blank line. An event
    with a name but no data is also returned, because its name is meaningful."""

    def __init__(self) -> None:
        utf8 = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._text = io.IncrementalNewlineDecoder(utf8, translate=True)
        self._line: list[str] = []
        self._data: list[str] = []
        self._event = ""

    def feed(self, chunk: bytes, *, final: bool = False) -> list[str]:
        """Return the payloads of the events that this chunk completes."""
        first, *more = self._text.decode(chunk, final).split("\n")
        self._line.append(first)
        payloads: list[str] = []
        for text in [*more, "", ""] if final else more:
            payloads += self._take_line("".join(self._line))
            self._line = [text]
        return payloads

    def _take_line(self, line: str) -> list[str]:
        if line:
            name, _, value = line.partition(":")
            if name == "data":
                self._data.append(value.removeprefix(" "))
            elif name == "event":
                self._event = value.strip()
            return []
        payload, self._data = self._data, []
        event, self._event = self._event, ""
        if event.lower() == "error":
            return [Payload(_error_payload("\n".join(payload)), event)]
        return [Payload("\n".join(payload), event)] if payload or event else []


def _error_payload(payload: str) -> str:
    """Convert the data of an event named ``error`` to the format of servers that do not name their events."""
    error = parse_or(payload, payload)
    if isinstance(error, dict) and error.get("error"):
        return payload
    return json.dumps({"error": error or "an event named 'error' without details"})


def texts_of(payloads: Iterable[str]) -> Iterator[str]:
    """Yield the JSON strings in server-sent events, without the end marker.

    Some servers omit the blank line between events. For these servers, each line is treated as an event."""
    for payload in payloads:
        is_single_event = "\n" not in payload or is_json(payload)
        lines = [payload] if is_single_event else payload.split("\n")
        yield from (line for line in lines if line.strip() and not ends_stream(line))


def ends_stream(payload: str) -> bool:
    """Check whether the last line of the payload is ``[DONE]``. Earlier lines are present if a server omitted
    a blank line."""
    return payload.rpartition("\n")[2].strip() == DONE


def looks_like_sse(text: str) -> bool:
    """Check whether the beginning of a string looks like server-sent events (SSE). JSON never begins in this
    way.

    The check is needed because some servers do not set the content type."""
    return bool(re.match(r"\s*(data|event|id|retry)?:", text))
