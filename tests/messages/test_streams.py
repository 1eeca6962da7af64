"""Logged streams: what is one, and the response that its pieces make."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from agenteval.messages.completion import UnreadableResponseError
from agenteval.messages.streams import assemble_partial_response, assemble_response, parse_stream_pieces

CHUNK = {"choices": [{"index": 0, "delta": {"content": "Hi"}}]}
END = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
DONE = {"type": "[DONE]"}
PING = {"type": "ping"}


def lines(*pieces: Any) -> str:
    return "\n".join(each if isinstance(each, str) else json.dumps(each) for each in pieces)


# ── what is a stream ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("piece", "is_piece"),
    [
        ({"type": "response.created"}, True),
        ({"type": "message_start"}, True),
        ({"type": "content_block_stop"}, True),
        ({"type": "ping"}, True),
        ({"type": "error"}, True),
        ({"type": "[DONE]"}, True),
        ({"candidates": None}, True),
        ({"choices": []}, True),
        ({"choices": None}, False),
        ({"type": "message"}, False),
        ({"type": "response"}, False),
        ({"type": ["ping"]}, False),
        ({"type": "ping", "role": "user"}, False),
        ({}, False),
        ("ping", False),
        (None, False),
    ],
)
def test_what_is_a_piece(piece: Any, is_piece: bool) -> None:
    assert parse_stream_pieces([piece]) == ([piece] if is_piece else None)
    assert parse_stream_pieces([CHUNK, piece]) == ([CHUNK, piece] if is_piece else None)


@pytest.mark.parametrize("value", [[], None, 5, CHUNK, {}, "", "Hello.", "[]", "data", "metadata: {}"])
def test_what_is_no_stream(value: Any) -> None:
    assert parse_stream_pieces(value) is None


@pytest.mark.parametrize(
    "text",
    [
        lines(CHUNK, END),
        f"\n{lines(CHUNK, '', END)}\n",
        lines({"type": "x"}, {"a": 1}),  # two objects are a stream of an unknown kind
    ],
)
def test_one_piece_per_line(text: str) -> None:
    assert parse_stream_pieces(text) == [json.loads(line) for line in text.split("\n") if line]


def test_equal_lines_are_pieces_of_their_own() -> None:
    assert parse_stream_pieces(lines(CHUNK, CHUNK, END)) == [CHUNK, CHUNK, END]


@pytest.mark.parametrize("text", [lines(CHUNK), lines({"a": 1}), lines({"a": 1}, "oops"), '{"a":\n1}'])
def test_one_object_is_no_stream(text: str) -> None:
    assert parse_stream_pieces(text) is None


@pytest.mark.parametrize("broken", ["oops", '{"choices": [', "[1]", "5"])
@pytest.mark.parametrize("pieces", [[CHUNK], [{"a": 1}, {"b": 2}]])
def test_a_line_that_is_no_object(pieces: list[Any], broken: str) -> None:
    with pytest.raises(UnreadableResponseError) as error:
        parse_stream_pieces(lines(*pieces, broken))
    assert error.value.evidence == broken


SENT = json.dumps(CHUNK)


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        (f"data: {SENT}\n\ndata: [DONE]\n\n", [CHUNK, DONE]),
        (f"data:{SENT}\n\n", [CHUNK]),
        (f"\n\ndata: {SENT}", [CHUNK]),  # cut off by the end
        (f"data: {SENT}\ndata: {SENT}\n", [CHUNK, CHUNK]),  # without blank lines between
        (f"data: {SENT}\ndata: [DONE]\n", [CHUNK, DONE]),
        (f": a comment\nevent: message\nid: 1\nretry: 5\ndata: {SENT}\n\n", [CHUNK]),
        ('data: {"a":\ndata: 1}\n\n', [{"a": 1}]),
        (f" data: {SENT}\n\n", [CHUNK]),  # indented by the log
        (f"\n  event: message\r\n  data: {SENT}\r\n\r\n\tdata: [DONE]\r\n", [CHUNK, DONE]),
        (f"data: {SENT}\n\n  data: {SENT}\n\n", [CHUNK, CHUNK]),
        ("  data: {oops\n\n", UnreadableResponseError),
        ("data: []\n\n", UnreadableResponseError),
        ("data: {oops\n\n", UnreadableResponseError),
        (f"data: {SENT}\n\ndata: oops\n\n", UnreadableResponseError),
        ("data:\n\n", []),
        ("data: an answer that begins so", None),
        (f"note: x\ndata: {SENT}", None),
        (f"Hello.\ndata: {SENT}", None),
    ],
)
def test_server_sent_events(text: str, pieces: Any) -> None:
    if pieces is UnreadableResponseError:
        with pytest.raises(UnreadableResponseError):
            parse_stream_pieces(text)
    else:
        assert parse_stream_pieces(text) == pieces


# ── responses ────────────────────────────────────────────────────────────────────────────────────


def unread(response: Mapping[str, Any]) -> Any:
    return response.get("events", [])


@pytest.mark.parametrize(
    "pieces",
    [
        [{"error": {"code": 500}}],
        [CHUNK, {"error": {"code": 500}}, {"error": "later"}],
        [{"type": "message_start", "message": {}}, {"type": "error", "error": {"code": 500}}],
        [CHUNK, {"error": None}, {"error": {}}, {"error": {"code": 500}}],
    ],
)
def test_the_first_error_is_all_that_is_returned(pieces: list[Any]) -> None:
    assert assemble_response(pieces) == {"error": {"code": 500}}


@pytest.mark.parametrize("pieces", [[], [PING], [{"a": 1}], [DONE], [{"type": "content_block_stop"}]])
def test_a_stream_of_an_unknown_kind(pieces: list[Any]) -> None:
    with pytest.raises(UnreadableResponseError):
        assemble_response(pieces)


def test_chunks_of_a_completion() -> None:
    (choice,) = assemble_response([CHUNK, CHUNK, END])["choices"]
    assert (choice["message"]["content"], choice["finish_reason"]) == ("HiHi", "stop")
    (choice,) = assemble_response([CHUNK, DONE])["choices"]
    assert choice["message"]["content"] == "Hi"


@pytest.mark.parametrize(
    "pieces",
    [
        [CHUNK],  # neither a reason nor [DONE]
        [{"choices": [{"text": "Hi"}]}, DONE],  # the legacy API
        [CHUNK, {"choices": [{"text": None}]}, DONE],
        [{"choices": [{"index": 0, "delta": {"content": 5}}]}, DONE],
    ],
)
def test_chunks_that_are_no_answer(pieces: list[Any]) -> None:
    with pytest.raises(UnreadableResponseError):
        assemble_response(pieces)


def item(id: Any, **fields: Any) -> dict[str, Any]:
    return {"type": "response.output_item.done", "item": {"id": id, **fields}}


def final(*output: Any, kind: str = "completed") -> dict[str, Any]:
    return {"type": f"response.{kind}", "response": {"status": kind, "output": list(output)}}


@pytest.mark.parametrize("kind", ["completed", "incomplete", "failed", "cancelled"])
def test_the_last_event_has_the_response(kind: str) -> None:
    created = {"type": "response.created", "response": {"output": []}}
    assert assemble_response([created, final({"id": "a"}, kind=kind)]) == {
        "status": kind,
        "output": [{"id": "a"}],
    }


@pytest.mark.parametrize(
    ("pieces", "output"),
    [
        ([item("a"), final({"id": "a", "x": 1})], [{"id": "a", "x": 1}]),
        ([item("a"), item("b"), final({"id": "b"})], [{"id": "a"}, {"id": "b"}]),
        ([item("a"), item("b"), final()], [{"id": "a"}, {"id": "b"}]),
        ([item(None, x=1), final({"id": None, "x": 1})], [{"id": None, "x": 1}]),
        ([item(None, x=1), final({"id": None, "x": 2})], [{"id": None, "x": 1}, {"id": None, "x": 2}]),
        ([item("", x=1), final({"id": ""})], [{"id": "", "x": 1}, {"id": ""}]),
        ([{**item("a"), "item": "text"}, final()], []),
        ([{**item("a"), "type": "response.output_item.added"}, final()], []),
        ([final({"id": "a"}), item("b")], [{"id": "a"}]),
        ([final({"id": "a"}), final({"id": "b"})], [{"id": "a"}]),
        ([{"type": "response.completed"}, final({"id": "a"})], [{"id": "a"}]),
    ],
)
def test_items_of_earlier_events_are_added(pieces: list[Any], output: list[Any]) -> None:
    assert assemble_response(pieces)["output"] == output


@pytest.mark.parametrize("pieces", [[item("a")], [{"type": "response.completed", "response": None}]])
def test_a_response_without_its_end(pieces: list[Any]) -> None:
    with pytest.raises(UnreadableResponseError):
        assemble_response(pieces)


CALLED = {"type": "response.mcp_call.in_progress"}


@pytest.mark.parametrize(
    ("event", "is_read"),
    [
        ({**CALLED, "item_id": "a"}, True),
        ({**CALLED, "output_index": 0}, True),
        ({**CALLED, "output_index": 3}, True),  # of an item that was done
        ({**CALLED, "item_id": "c", "output_index": 0}, True),
        ({**CALLED, "item_id": "added"}, True),
        ({**CALLED, "item_id": "c"}, False),
        ({**CALLED, "output_index": 2}, False),
        (CALLED, False),
        ({"type": "response.function_call_arguments.delta", "item_id": "c"}, False),
        ({"type": "response.output_text.delta", "item_id": "c", "delta": "Hi"}, True),
    ],
)
def test_events_of_calls_that_are_no_item(event: dict[str, Any], is_read: bool) -> None:
    added = {"type": "response.output_item.added", "item": {"id": "added"}}
    pieces = [added, {**item("b"), "output_index": 3}, event, final({"id": "a"})]
    assert unread(assemble_response(pieces)) == ([] if is_read else [event])


def start(**message: Any) -> dict[str, Any]:
    return {"type": "message_start", "message": {"id": "m", "content": [], **message}}


def block(index: Any, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": fields}


def delta(index: Any, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": fields}


STOP = {"type": "message_stop"}
TEXT = {"type": "text", "text": ""}


@pytest.mark.parametrize(
    ("pieces", "content"),
    [
        ([], []),
        ([block(0, **TEXT)], [TEXT]),
        ([block(0, **TEXT), delta(0, text="a"), delta(0, text="b")], [{"type": "text", "text": "ab"}]),
        ([block(0, type="text", text=None), delta(0, text="a")], [{"type": "text", "text": "a"}]),
        ([block(0, type="text", text="x"), delta(0, text="a")], [{"type": "text", "text": "xa"}]),
        (
            [block(0, type="thinking"), delta(0, thinking="Hm"), delta(0, signature="s", text=5)],
            [{"type": "thinking", "thinking": "Hm", "signature": "s"}],
        ),
        (
            [block(0, type="tool_use"), delta(0, partial_json='{"a"'), delta(0, partial_json=": 1}")],
            [{"type": "tool_use", "input": '{"a": 1}'}],
        ),
        ([block(0, type="tool_use", input={})], [{"type": "tool_use", "input": {}}]),
        (
            [block(0, **TEXT), block(1), delta(1, text="b"), delta(0, text="a"), delta("1", text="c")],
            [{"type": "text", "text": "a"}, {"text": "bc"}],
        ),
        ([block(0, **TEXT), delta(5, text="lost")], [TEXT]),
        ([block(0, **TEXT), {"type": "content_block_stop", "index": 0}], [TEXT]),
    ],
)  # fmt: skip
def test_blocks_grow(pieces: list[Any], content: list[Any]) -> None:
    assert assemble_response([start(), *pieces, STOP]) == {"id": "m", "content": content, "role": "assistant"}


def test_what_a_message_begins_with_is_kept() -> None:
    found = assemble_response([start(content=[TEXT], model="x"), block(0, **TEXT), STOP])
    assert (found["content"], found["model"]) == ([TEXT, TEXT], "x")


def test_the_usage_of_a_message_is_brought_up_to_date() -> None:
    pieces = [
        start(usage={"input_tokens": 5, "output_tokens": 1}),
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn"},
            "usage": {"input_tokens": None, "output_tokens": 7},
        },
        {"type": "message_delta", "delta": {}},
        STOP,
    ]
    found = assemble_response(pieces)
    assert found["usage"] == {"input_tokens": 5, "output_tokens": 7}
    assert found["stop_reason"] == "end_turn"


def test_a_message_without_its_end() -> None:
    with pytest.raises(UnreadableResponseError):
        assemble_response([start(), block(0, **TEXT)])


def candidate(*parts: Any, **fields: Any) -> dict[str, Any]:
    return {"candidates": [{"content": {"role": "model", "parts": list(parts)}, **fields}]}


@pytest.mark.parametrize(
    ("pieces", "parts"),
    [
        ([candidate({"text": "a"}), candidate({"text": "b"}, finishReason="STOP")], [{"text": "ab"}]),
        (
            [candidate({"text": "a", "thought": True}, {"text": "b"}, finishReason="STOP")],
            [{"text": "a", "thought": True}, {"text": "b"}],
        ),
        (
            [candidate({"text": "a"}, {"functionCall": {"name": "f"}}, {"text": "b"}, finishReason="STOP")],
            [{"text": "a"}, {"functionCall": {"name": "f"}}, {"text": "b"}],
        ),
        ([candidate({"text": "a"}, finishReason="STOP"), candidate(), {"candidates": []}], [{"text": "a"}]),
        ([candidate(finishReason="SAFETY")], []),
        ([candidate("a", "b", finishReason="STOP")], ["a", "b"]),
    ],
)
def test_parts_of_a_candidate(pieces: list[Any], parts: list[Any]) -> None:
    (found,) = assemble_response(pieces)["candidates"]
    assert found["content"] == {"role": "model", "parts": parts}
    assert found["finishReason"] in ("STOP", "SAFETY")


def test_only_the_first_candidate_and_the_last_fields_are_kept() -> None:
    first, other = candidate({"text": "a"})["candidates"][0], candidate({"text": "b"})["candidates"][0]
    pieces = [
        {"candidates": [first, other], "modelVersion": "v", "usageMetadata": {"totalTokenCount": 1}},
        {**candidate(finishReason="STOP", index=0), "usageMetadata": {"totalTokenCount": 2}},
    ]
    found = assemble_response(pieces)
    assert found["candidates"] == [
        {"content": {"role": "model", "parts": [{"text": "a"}]}, "finishReason": "STOP", "index": 0}
    ]
    assert (found["modelVersion"], found["usageMetadata"]) == ("v", {"totalTokenCount": 2})


@pytest.mark.parametrize("pieces", [[candidate({"text": "a"})], [{"candidates": []}], [{"candidates": None}]])
def test_a_candidate_without_its_end(pieces: list[Any]) -> None:
    with pytest.raises(UnreadableResponseError):
        assemble_response(pieces)


# ── what was not understood ──────────────────────────────────────────────────────────────────────

NOTE = {"anything": "x"}


@pytest.mark.parametrize(
    ("piece", "is_read"),
    [
        (PING, True),
        ({"type": "progress", "index": 1, "status": "running"}, True),  # says no more than its kind
        ({"type": "progress", "text": "I cancel it"}, False),
        ({"type": "progress", "status": [1]}, False),
        ({"type": "content_block_stop", "extra_field": NOTE}, False),
        ({"type": "content_block_stop", "extra_field": "x"}, True),
        ({"type": "content_block_stop", "part": NOTE, "annotation": NOTE, "response": NOTE}, True),
        (delta(0, type="text_delta", text="a"), True),
        (delta(0, type="input_json_delta"), True),
        (delta(0, type="thinking_delta"), True),
        (delta(0, type="signature_delta"), True),
        (delta(0, type="citations_delta", citation={"title": "x"}), True),
        (delta(0, type="compaction_delta"), True),
        (delta(0, text="a"), True),
        (delta(0, type="hologram_delta", text="a"), False),
        (delta(0, type="text_delta", other=NOTE), False),
        ({"type": "message_delta", "delta": {"type": "x"}}, True),
    ],
)
def test_pieces_that_say_more_than_is_read(piece: dict[str, Any], is_read: bool) -> None:
    found = assemble_response([start(), block(0, **TEXT), piece, STOP])
    assert unread(found) == ([] if is_read else [piece])


@pytest.mark.parametrize(
    ("piece", "is_read"),
    [
        (PING, True),
        (DONE, True),
        ({"type": "message_delta", "delta": {}}, False),
        ({"type": "progress"}, False),
        (start(), False),
    ],
)
def test_what_follows_the_end_is_of_another_response(piece: dict[str, Any], is_read: bool) -> None:
    for pieces in ([start(), STOP], [final()]):
        assert unread(assemble_response([*pieces, piece])) == ([] if is_read else [piece])


@pytest.mark.parametrize(
    ("fields", "is_read"),
    [
        ({"finishReason": "STOP", "index": 0}, True),
        ({"finishReason": "STOP", "safetyRatings": [{"category": "x", "probability": "LOW"}]}, True),
        ({"finishReason": "STOP", "other": NOTE}, False),
        ({"finishReason": "STOP", "content": {"parts": [], "other": NOTE}}, False),
        ({"finishReason": "STOP", "content": {"parts": [NOTE], "role": "model"}}, True),
    ],
)
def test_fields_of_a_candidate(fields: dict[str, Any], is_read: bool) -> None:
    piece = {"candidates": [fields]}
    assert unread(assemble_response([piece])) == ([] if is_read else [piece])


# ── interrupted streams ──────────────────────────────────────────────────────────────────────────


def test_a_part_of_a_message() -> None:
    found = assemble_partial_response([start(), block(0, **TEXT), delta(0, text="Hal")])
    assert found == {"id": "m", "role": "assistant", "content": [{"type": "text", "text": "Hal"}]}
    assert assemble_partial_response([]) == {"role": "assistant", "content": []}


def test_a_part_of_a_response() -> None:
    progress = {"type": "response.progress", "text": NOTE}
    assert assemble_partial_response([item("a"), item("b")]) == {"output": [{"id": "a"}, {"id": "b"}]}
    found = assemble_partial_response([item("a"), progress])
    assert found == {"output": [{"id": "a"}], "events": [progress]}
