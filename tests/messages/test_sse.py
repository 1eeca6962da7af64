"""Server-sent events from bytes: however the stream is cut, each event is there once."""

from __future__ import annotations

import json

import pytest

from agenteval.messages.sse import SseParser


def payloads(*chunks: bytes) -> list[str]:
    parser, found = SseParser(), []
    for chunk in chunks:
        found += parser.feed(chunk)
    return found + parser.feed(b"", final=True)


@pytest.mark.parametrize(
    ("stream", "found"),
    [
        (b"data: a\n\ndata: b\n\n", ["a", "b"]),
        (b"data: a\n\ndata: b\n", ["a", "b"]),
        (b"data: a\n\ndata: b", ["a", "b"]),
        (b"data: a\r\n\r\ndata: b\r\n\r\n", ["a", "b"]),
        (b"data: a\r\rdata: b\r\r", ["a", "b"]),
        (b"data: a\ndata: b\n\n", ["a\nb"]),
        (b"data:a\n\ndata:  b\n\n", ["a", " b"]),
        (b": a comment\nid: 7\nretry: 3\ndata: a\n\n", ["a"]),
        (b"\xef\xbb\xbfdata: a\n\n", ["a"]),
        (b"event: ping\n\ndata: a\n\n", ["", "a"]),
        (b"\n\n\n", []),
        (b"", []),
        ("data: é€\n\n".encode(), ["é€"]),
    ],
)
def test_the_events_of_a_stream(stream: bytes, found: list[str]) -> None:
    assert payloads(stream) == found
    assert payloads(*(stream[at : at + 1] for at in range(len(stream)))) == found


def test_an_event_is_given_as_soon_as_it_is_complete() -> None:
    parser = SseParser()
    assert parser.feed(b"data: a\n") == []
    assert parser.feed(b"\ndata: b") == ["a"]


@pytest.mark.parametrize("name", ["error", "ERROR"])
def test_an_error_event_is_an_object_with_that_key(name: str) -> None:
    (found,) = payloads(f"event: {name}\ndata: overloaded\n\n".encode())
    assert "overloaded" in json.dumps(json.loads(found)["error"])
    (found,) = payloads(f'event: {name}\ndata: {{"error": {{"code": 1}}}}\n\n'.encode())
    assert json.loads(found) == {"error": {"code": 1}}
