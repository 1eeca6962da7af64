"""The parts of an answer in a reply of any shape: by paths, in one value or in the events of a stream."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from agenteval.adapters.agents.reply_paths import (
    ReplyDocument,
    ReplyPaths,
    SessionPlace,
    extract_partial_reply,
    extract_reply_answer,
    extract_session,
    is_one_of,
    parse_document,
    refuse_errors,
    value_at,
)
from agenteval.adapters.transport.client import HttpReply
from agenteval.core.errors import AgentError
from agenteval.core.protocols import ReadReply
from agenteval.messages.completion import UnreadableResponseError
from agenteval.messages.sse import Payload


def http(text: str = "", events: Sequence[str] | None = None, **headers: str) -> HttpReply:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return HttpReply(200, named, text, 1.0, None if events is None else tuple(events))


def paths(**written: Any) -> ReplyPaths:
    return ReplyPaths.model_validate(written)


def one(value: Any) -> ReplyDocument:
    return ReplyDocument((value,))


def stream(*events: Any) -> ReplyDocument:
    return ReplyDocument(events, is_stream=True)


def read(document: ReplyDocument, **written: Any) -> ReadReply:
    return extract_reply_answer(document, paths(**written))


def refused(document: ReplyDocument, *facts: str, **written: Any) -> UnreadableResponseError:
    with pytest.raises(UnreadableResponseError) as error:
        read(document, **written)
    text = f"{error.value} {error.value.evidence}"
    assert all(fact in text for fact in facts), text
    return error.value


# ── parsing ──────────────────────────────────────────────────────────────────────────────────────

TEXT = paths(text="a")
WHOLE = paths(text=".")


def parsed(reply: HttpReply, by: ReplyPaths = TEXT, streaming: bool = False) -> ReplyDocument:
    return parse_document(reply, by, streaming=streaming)


@pytest.mark.parametrize("value", [{"a": 1}, [1], "x", None, 7])
def test_a_reply_is_one_value(value: Any) -> None:
    assert parsed(http(json.dumps(value))) == one(value)


@pytest.mark.parametrize(
    ("body", "value"),
    [
        ("hello", "hello"),
        ('"hello"', "hello"),
        ("7", "7"),
        ("null", "null"),
        ("", ""),
        ('{"a": 1}', {"a": 1}),
        ("[1]", [1]),
        ("a < b", "a < b"),
        ("<p>hello</p>", "<p>hello</p>"),
        ("\ud800", "�"),
    ],
)
def test_the_whole_reply_may_be_plain_text(body: str, value: Any) -> None:
    assert parsed(http(body), WHOLE) == one(value)
    assert parsed(http(body), paths(delta=".")) == one(value)


@pytest.mark.parametrize("page", ["<html>", " <!DOCTYPE html><html>", "<!doctype HTML>", "<HTML lang='en'>"])
def test_a_web_page_is_no_plain_text(page: str) -> None:
    with pytest.raises(UnreadableResponseError):
        parsed(http(page), WHOLE)


@pytest.mark.parametrize("body", ["hello", "", "{"])
def test_otherwise_a_reply_is_json(body: str) -> None:
    with pytest.raises(UnreadableResponseError):
        parsed(http(body))


LINES = '{"a": 1}\n\n {"a": 2}\n'


@pytest.mark.parametrize(
    "kind",
    [
        *("application/x-ndjson", "application/jsonl", "application/json-lines", "application/jsonlines"),
        *("application/stream+json; charset=utf-8", "Application/X-NDJSON", "application/json-stream"),
    ],
)
def test_lines_of_json_by_their_type(kind: str) -> None:
    assert parsed(http(LINES, content_type=kind)) == stream({"a": 1}, {"a": 2})


def test_lines_of_json_by_the_authors_word() -> None:
    assert parsed(http(LINES), streaming=True) == stream({"a": 1}, {"a": 2})
    assert parsed(http('{"a":\n1}'), streaming=True) == stream({"a": 1})
    assert parsed(http("[\n1]"), streaming=True) == stream([1])
    assert parsed(http("one\ntwo"), WHOLE, streaming=True) == stream("one", "two")
    for kind in ("application/json", "text/plain"):
        with pytest.raises(UnreadableResponseError):
            parsed(http(LINES, content_type=kind))


@pytest.mark.parametrize("body", ["", "\n \n", '{"a": 1}\n{"a'])
def test_lines_that_cannot_be_read(body: str) -> None:
    with pytest.raises(UnreadableResponseError):
        parsed(http(body), streaming=True)


def events_of(*payloads: str, by: ReplyPaths = TEXT) -> ReplyDocument:
    return parsed(http("ignored", payloads), by)


def test_the_events_of_a_stream() -> None:
    assert events_of('{"a": 1}', "7", "[DONE]") == stream({"a": 1}, 7)
    assert events_of() == stream()
    assert events_of("", " ") == stream()


def test_an_event_has_its_name_as_a_key() -> None:
    assert events_of(Payload('{"a": 1}', "end")) == stream({"event": "end", "a": 1})
    assert events_of(Payload('{"event": "x"}', "end")) == stream({"event": "x"})
    assert events_of(Payload("", "end")) == stream({"event": "end"})
    assert events_of(Payload("[1]", "end")) == stream([1])
    assert events_of(Payload('{"a": 1}')) == stream({"a": 1})


def test_an_event_that_is_no_json() -> None:
    with pytest.raises(UnreadableResponseError):
        events_of('{"a": 1}', "hello")


def test_events_of_plain_text() -> None:
    document = events_of("Hel", Payload("lo", "piece"), " ", "[DONE]", by=WHOLE)
    assert document == stream("Hel", "lo", " ")
    assert extract_reply_answer(document, WHOLE).text == "Hello "


# ── the text ─────────────────────────────────────────────────────────────────────────────────────

TEXTS: dict[str, tuple[Any, str, str | None]] = {
    "a key": ({"a": "Hi"}, "a", "Hi"),
    "a path": ({"a": {"b": "Hi"}}, "a.b", "Hi"),
    "a place": ({"a": ["x", "Hi"]}, "a.1", "Hi"),
    "the last place": ({"a": ["x", "Hi"]}, "a.-1", "Hi"),
    "a key with dots": ({"a.b": "Hi"}, "a.b", "Hi"),
    "an empty text": ({"a": ""}, "a", ""),
    "null": ({"a": None}, "a", None),
    "parts": ({"a": [{"type": "text", "text": "Hi"}]}, "a", "Hi"),
    "optional": ({"a": "Hi"}, "a?", "Hi"),
    "optional and absent": ({"b": "Hi"}, "a?", None),
    "the reply": ("Hi", ".", "Hi"),
    "each item": ([{"t": "a"}, {"t": "b"}], "*.t", "a\nb"),
    "each item below a key": ({"x": [{"t": "a"}, {"u": 1}, {"t": "b"}]}, "x.*.t", "a\nb"),
    "each item of each item": (
        {"x": [{"y": [{"t": "a"}]}, {"y": [{"t": "b"}]}]}, "x.*.y.*.t", "a\nb",
    ),
    "texts in a list": ({"x": ["a", "b"]}, "x.*", "a\nb"),
    "several items in each item": (
        {"x": [{"y": [{"t": "a"}, {"t": "b"}]}, {"y": [{"t": "c"}]}]}, "x.*.y.*.t", "a\nb\nc",
    ),
    "parts in each item": ({"x": [{"t": ["a", {"text": "b"}]}, {"t": "c"}]}, "x.*.t", "ab\nc"),
    "null items": ({"x": [{"t": None}, {"t": "b"}]}, "x.*.t", "b"),
    "no items": ({"x": []}, "x.*.t", ""),
}  # fmt: skip


@pytest.mark.parametrize(("reply", "path", "text"), TEXTS.values(), ids=TEXTS)
def test_the_text_at_a_path(reply: Any, path: str, text: str | None) -> None:
    assert read(one(reply), text=path).text == text


NOWHERE: dict[str, tuple[Any, str, Sequence[str]]] = {
    "no key": ({"b": 1, "c": 2}, "a", ["reply.text: a", "b, c"]),
    "no inner key": ({"a": {"b": 1}}, "a.x.y", ["a.x.y", "`a`", "b"]),
    "no place": ({"a": [1, 2]}, "a.2", ["length 2"]),
    "an empty reply": ({}, "a", ["an empty object"]),
    "a list": ([1], "a", ["length 1"]),
    "no list": ({"x": {"t": 1}}, "x.*.t", ["x.*.t"]),
    "no list of texts": ({"x": {"t": "a"}}, "x.*", ["x.*"]),
    "in no item": ({"x": [{"u": 1}]}, "x.*.t", ["x.*.t"]),
    "a number": ({"a": 7}, "a", ["reply.text: a", "7"]),
    "an object": ({"a": {"k": 1, "l": 2}}, "a", ["reply.text: a", "k, l"]),
    "an item that is no text": ({"x": [{"t": 7}]}, "x.*.t", ["7"]),
    "an empty value": (None, "a", ["null"]),
}


@pytest.mark.parametrize(("reply", "path", "facts"), NOWHERE.values(), ids=NOWHERE)
def test_a_path_without_a_text_is_the_agents_failure(reply: Any, path: str, facts: Sequence[str]) -> None:
    refused(one(reply), *facts, text=path)


def test_a_text_may_be_absent_beside_calls_or_an_answer() -> None:
    call = {"id": "1", "name": "f", "arguments": {}}
    assert read(one({"calls": [call]}), text="a", tool_calls="calls").text is None
    refused(one({"calls": []}), text="a", tool_calls="calls")
    answer = {"messages": [{"role": "assistant", "content": "Hi"}]}
    assert read(one(answer), text="a", messages="messages").text is None
    refused(one({"messages": []}), text="a", messages="messages")


# ── streams ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("events", "text"),
    [
        ([{"a": "Hel"}, {"a": "lo"}], "Hello"),
        ([{"a": "Hel"}, {"b": "x"}, {"a": None}, {"a": "lo"}], "Hello"),
        ([{"a": None}], None),
        ([{"a": "ha"}, {"a": "ha"}], "haha"),
        ([{"a": "Hel"}, {"a": "lo"}, {"a": "Hello", "type": "end"}], "Hello"),
        ([{"a": "Hel", "type": "p"}, {"a": "lo", "type": "p"}, {"a": "Hello", "type": "p"}], "HelloHello"),
        ([{"a": "Hello"}, {"a": "Hello", "done": True}], "Hello"),
        ([{"a": "Hel"}, {"a": "lo"}, {"a": "Hello!", "type": "end"}], "HelloHello!"),
    ],
)
def test_texts_are_joined_and_a_repeated_whole_counts_once(events: list[Any], text: str | None) -> None:
    assert read(stream(*events), text="a").text == text
    assert read(stream(*events), text="a?").text == text


@pytest.mark.parametrize(
    ("events", "text"),
    [
        ([{"d": "Hel"}, {"d": "lo"}], "Hello"),
        ([{"d": "Hel"}, {"d": "lo"}, {"t": "Hello"}], "Hello"),
        ([{"t": "Hi"}], "Hi"),
        ([{"t": "Hi"}, {"t": "Ho"}], "Ho"),
        ([{"d": "a"}, {"d": "a"}], "aa"),
        ([{"d": "a"}, {"t": None}], "a"),
    ],
)
def test_the_complete_text_counts_instead_of_its_pieces(events: list[Any], text: str) -> None:
    assert read(stream(*events), text="t", delta="d").text == text


def test_a_stream_without_any_piece() -> None:
    refused(stream({"x": 1}), "reply.delta: d", delta="d")
    refused(stream({"x": 1}), "reply.delta: d", delta="d", text="t")
    refused(stream(), text="a")
    assert read(stream({"x": 1}), delta="d?").text is None
    assert read(stream({"d": "a"}, {"d": "b"}), delta="d").text == "ab"


def test_only_texts_are_pieces_of_a_whole_stream() -> None:
    assert read(stream("Hel", {"usage": 1}, "lo"), text=".").text == "Hello"


@pytest.mark.parametrize(
    ("done", "last", "is_over"),
    [
        ("end", {"end": True}, True),
        ("end", {"end": "yes"}, True),
        ("end?", {"end": 1}, True),
        ("end", {"end": False}, False),
        ("end", {"end": None}, False),
        ("end", {}, False),
        ("a.b", {"a": {"b": 1}}, True),
        ({"type": "end"}, {"type": "end"}, True),
        ({"type": "end"}, {"type": "END "}, True),
        ({"type": ["stop", "end"]}, {"type": "end"}, True),
        ({"type": "end"}, {"type": "ended"}, False),
        ({"type": "end", "ok": True}, {"type": "end"}, False),
        ({"type": "end", "ok": True}, {"type": "end", "ok": True}, True),
        ({"ok": None}, {"ok": None}, True),
        ({}, {"type": "end"}, False),
    ],
)
def test_a_stream_without_its_last_event_was_cut_off(done: Any, last: Any, is_over: bool) -> None:
    document = stream({"t": "Hi"}, last)
    if is_over:
        assert read(document, text="t", done=done).text == "Hi"
    else:
        refused(document, "done", text="t", done=done)
    assert read(one({"t": "Hi", **last}), text="t", done=done).text == "Hi"


def test_the_event_that_ends_a_stream_may_stand_anywhere() -> None:
    assert read(stream({"end": 1}, {"t": "Hi"}), text="t", done="end").text == "Hi"
    assert read(events_of(Payload("", "end"), '{"t": "Hi"}'), text="t", done={"event": "end"}).text == "Hi"
    whole = events_of("Hi", Payload("bye", "end"), by=WHOLE)
    assert read(whole, text=".", done={"event": "end"}).text == "Hibye"
    refused(events_of("Hi", by=WHOLE), text=".", done={"event": "end"})


@pytest.mark.parametrize(
    "reply",
    [
        {"c": [{"finish_reason": "length", "m": {"t": "Hi"}}]},
        {"c": [{"m": {"t": "Hi", "stop_reason": "max_tokens"}}]},
        {"finish_reason": "length", "c": [{"m": {"t": "Hi"}}]},
        {"c": [{"m": {"t": None}, "finish_reason": "content_filter"}]},
    ],
)
def test_a_text_that_was_cut_off_is_no_answer(reply: Any) -> None:
    for document in (one(reply), stream(reply)):
        with pytest.raises((AgentError, UnreadableResponseError)):
            read(document, text="c.0.m.t")
        with pytest.raises((AgentError, UnreadableResponseError)):
            read(document, delta="c.0.m.t?")
    assert read(one({"c": {"finish_reason": "stop"}, "t": "Hi"}), text="t").text == "Hi"


# ── errors ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("written", "reply", "error"),
    [
        (None, {"t": "Hi"}, None),
        (None, {"error": "boom"}, "boom"),
        (None, {"error": {"code": 1}}, {"code": 1}),
        (None, {"error": None}, None),
        (None, {"error": ""}, None),
        (None, {"error": False}, None),
        (None, {"a": {"error": "boom"}}, None),
        (None, "error", None),
        ("fault", {"error": "boom"}, None),
        ("fault", {"fault": "boom"}, "boom"),
        ("a.fault?", {"a": {"fault": "boom"}}, "boom"),
        ({"ok": False}, {"ok": False, "why": "boom"}, {"ok": False, "why": "boom"}),
        ({"ok": False}, {"ok": True}, None),
        ({"ok": False}, {"error": "boom"}, None),
    ],
)
def test_an_error_instead_of_an_answer(written: Any, reply: Any, error: Any) -> None:
    by = paths(text="t?", error=written)
    for document in (one(reply), stream({"t": "Hi"}, reply)):
        if error is None:
            refuse_errors(document, by)
            continue
        with pytest.raises(UnreadableResponseError) as caught:
            refuse_errors(document, by)
        assert caught.value.error == error
        with pytest.raises(UnreadableResponseError):
            extract_reply_answer(document, by)


def test_an_error_counts_before_what_is_missing() -> None:
    assert refused(one({"error": "boom"}), text="t").error == "boom"
    assert refused(stream({"error": "boom"}), text="t", done="end").error == "boom"


@pytest.mark.parametrize(
    ("value", "wanted", "is_one"),
    [
        ("done", "done", True),
        (" Done ", "dONE", True),
        ("done", ["x", "DONE"], True),
        ("done", ("x", "done"), True),
        ("done", [], False),
        ("done", "don", False),
        (True, True, True),
        (True, "true", True),
        (1, "1", True),
        (None, None, True),
        (None, "null", True),
        (None, "", False),
    ],
)
def test_a_value_among_others(value: Any, wanted: Any, is_one: bool) -> None:
    assert is_one_of(value, wanted) is is_one


# ── calls, messages, usage ───────────────────────────────────────────────────────────────────────


def call(call_id: str | None = "1", name: str = "f", **more: Any) -> dict[str, Any]:
    return {"id": call_id, "function": {"name": name, "arguments": "{}"}, **more}


CALLS: dict[str, tuple[Any, str, list[Any]]] = {
    "a list": ({"c": [call("1"), call("2")]}, "c", [call("1"), call("2")]),
    "one": ({"c": call()}, "c", [call()]),
    "none": ({"c": []}, "c", []),
    "null": ({"c": None}, "c", []),
    "an empty object": ({"c": {}}, "c", []),
    "absent": ({}, "c?", []),
    "of each item": ({"x": [{"c": [call("1")]}, {}, {"c": call("2")}]}, "x.*.c", [call("1"), call("2")]),
    "twice the same": ({"c": [call(), call()]}, "c", [call(), call()]),
    "by their index": ({"c": [call("2", index=1), call("1", index=0)]}, "c",
                       [call("1", index=0), call("2", index=1)]),
}  # fmt: skip


@pytest.mark.parametrize(("reply", "path", "calls"), CALLS.values(), ids=CALLS)
def test_the_calls_at_a_path(reply: Any, path: str, calls: list[Any]) -> None:
    assert list(read(one({"t": "Hi", **reply}), text="t", tool_calls=path).tool_calls) == calls


@pytest.mark.parametrize("value", ["f", 7, True])
def test_what_are_no_calls(value: Any) -> None:
    refused(one({"t": "Hi", "c": value}), "reply.tool_calls: c", text="t", tool_calls="c")


def test_calls_must_be_there_unless_they_are_optional() -> None:
    refused(one({"t": "Hi"}), "reply.tool_calls: c", "`c?`", text="t", tool_calls="c")


def test_a_call_in_several_events_is_one_call() -> None:
    events = [{"c": [call("1")]}, {"c": [call("2")]}, {"c": [call("1", "g")]}]
    found = read(stream(*events), text="t", tool_calls="c").tool_calls
    assert list(found) == [call("1", "g"), call("2")]
    nameless = [{"c": call(None)}, {"c": call("")}, {"c": call(None)}]
    assert len(read(stream(*nameless), text="t", tool_calls="c").tool_calls) == 3


def test_pieces_of_a_call_are_joined() -> None:
    events = [
        {"c": [{"index": 0, "id": "1", "function": {"name": "f", "arguments": '{"a"'}}]},
        {"c": [{"index": 1, "id": "2", "function": {"name": "g", "arguments": "{}"}}]},
        {"c": [{"index": 0, "function": {"arguments": ": 1}"}}]},
    ]
    first, second = read(stream(*events), text="t", tool_calls="c").tool_calls
    assert (first["id"], first["function"]) == ("1", {"name": "f", "arguments": '{"a": 1}'})
    assert (second["id"], second["function"]["name"]) == ("2", "g")


def messages(reply: Any, path: str = "m", **more: Any) -> list[Any]:
    return list(read(one(reply), messages=path, **more).messages)


def test_messages_are_as_they_are() -> None:
    listed = [{"role": "assistant", "content": "a"}, {"role": "assistant", "content": "b"}]
    assert messages({"m": listed}) == listed
    assert messages({"x": [{"m": listed[:1]}, {"m": listed[1:]}]}, "x.*.m") == listed
    assert messages({"t": "Hi", "m": None}, text="t") == []
    assert messages({"t": "Hi"}, "m?", text="t") == []


@pytest.mark.parametrize(
    "value", ["a", 7, {"role": "assistant", "content": "a"}, ["a"], [{"role": "user"}, 7]]
)
def test_what_are_no_messages(value: Any) -> None:
    refused(one({"t": "Hi", "m": value}), "reply.messages: m", text="t", messages="m")


def test_messages_must_be_there_unless_they_are_optional() -> None:
    refused(one({"t": "Hi"}), "reply.messages: m", "`m?`", text="t", messages="m")


def test_messages_of_a_stream_are_collected() -> None:
    said = [{"role": "assistant", "content": each} for each in "abc"]
    events = [{"m": said[0]}, {"m": said[1:]}]
    assert list(read(stream(*events), messages="m").messages) == said


RECORDS: dict[str, tuple[dict[str, Any], tuple[str, str, Any, Any]]] = {
    "name, args, result": ({"name": "f", "args": {"a": 1}, "result": 2}, ("reported_0", "f", {"a": 1}, 2)),
    "its id": ({"id": "7", "tool": "f", "arguments": {}, "output": "x"}, ("7", "f", {}, "x")),
    "the call's id": ({"tool_call_id": "8", "tool_name": "f", "input": {}}, ("8", "f", {}, None)),
    "a number": ({"id": 9, "toolName": "f", "params": {}, "response": []}, ("9", "f", {}, [])),
    "observation": ({"name": "f", "parameters": {}, "observation": "o"}, ("reported_0", "f", {}, "o")),
    "an error": (
        {"name": "f", "args": {}, "result": 1, "error": "e"},
        ("reported_0", "f", {}, {"error": "e"}),
    ),
    "no error": ({"name": "f", "args": {}, "result": 1, "error": None}, ("reported_0", "f", {}, 1)),
    "the first result": ({"name": "f", "args": {}, "output": 2, "result": 1}, ("reported_0", "f", {}, 1)),
}


@pytest.mark.parametrize(("record", "facts"), RECORDS.values(), ids=RECORDS)
def test_a_record_is_a_call_and_its_result(record: Any, facts: tuple[str, str, Any, Any]) -> None:
    seen = extract_partial_reply(http(json.dumps({"m": [record]})), paths(messages="m"), streaming=False)
    asked, result = seen.messages
    (made,) = asked["tool_calls"]
    call_id, name, arguments, content = facts
    assert (asked["role"], asked["content"]) == ("assistant", None)
    assert (made["id"], made["function"]["name"]) == (call_id, name)
    given = made["function"]["arguments"]
    assert (json.loads(given) if isinstance(given, str) else given) == arguments
    assert result == {"role": "tool", "tool_call_id": call_id, "content": content}


@pytest.mark.parametrize("key", ["role", "type", "kind", "content", "parts", "tool_calls", "function"])
def test_a_message_of_another_format_is_no_record(key: str) -> None:
    message = {"name": "f", "args": {}, "result": 1, key: "x"}
    seen = extract_partial_reply(http(json.dumps({"m": [message]})), paths(messages="m"), streaming=False)
    assert list(seen.messages) == [message]


@pytest.mark.parametrize("message", [{"name": "f", "result": 1}, {"args": {}}, {"name": 7, "args": {}}])
def test_half_a_record_is_none(message: Any) -> None:
    seen = extract_partial_reply(http(json.dumps({"m": [message]})), paths(messages="m"), streaming=False)
    assert list(seen.messages) == [message]


def test_a_message_of_calls_is_no_answer_of_a_stream_of_pieces() -> None:
    by = {"delta": "d", "messages": "m"}
    asked = {"role": "assistant", "content": None, "tool_calls": [call()]}
    refused(stream({"m": asked}), "reply.delta: d", **by)
    assert read(stream({"m": {**asked, "content": "Hi"}}), **by).text is None
    assert read(stream({"m": asked}, {"m": {"role": "assistant", "content": "Hi"}}), **by).text is None
    assert read(stream({"m": asked}), text="t", messages="m").text is None


def test_records_are_numbered() -> None:
    record = {"name": "f", "args": {}, "result": 1}
    found = messages({"t": "Hi", "m": [record, {"role": "assistant", "content": "a"}, record]}, text="t")
    assert [each["tool_call_id"] for each in found if each["role"] == "tool"] == ["reported_0", "reported_2"]


@pytest.mark.parametrize(
    ("reply", "path", "usage"),
    [
        ({"u": {"input_tokens": 1}}, "u", {"input_tokens": 1}),
        ({"u": None}, "u", None),
        ({}, "u?", None),
    ],
)
def test_the_usage_at_a_path(reply: Any, path: str, usage: Any) -> None:
    assert read(one({"t": "Hi", **reply}), text="t", usage=path).usage == usage


def test_of_several_usages_the_last_counts() -> None:
    events = [{"u": {"input_tokens": 1}}, {"u": {"input_tokens": 2}}, {"u": None}, {"t": "Hi"}]
    assert read(stream(*events), text="t", usage="u").usage == {"input_tokens": 2}
    refused(stream({"t": "Hi"}), "reply.usage: u", text="t", usage="u")


UNREAD = {"tool": "find", "query": "x"}


@pytest.mark.parametrize(
    ("event", "written", "count"),
    [
        (UNREAD, {"tool_calls": "c?"}, 1),
        (UNREAD, {"messages": "m?"}, 1),
        (UNREAD, {}, 0),
        (UNREAD, {"tool_calls": "c?", "session": "query"}, 0),
        (UNREAD, {"tool_calls": "c?", "done": {"tool": "find"}}, 0),
        (UNREAD, {"tool_calls": "c?", "error": {"tool": "other"}}, 1),
        ({"type": "ping"}, {"tool_calls": "c?"}, 0),
        ("text", {"tool_calls": "c?"}, 0),
    ],
)
def test_events_that_no_path_leads_to(event: Any, written: Any, count: int) -> None:
    assert len(read(stream({"t": "Hi"}, event), text="t", **written).unplaced) == count
    assert not read(one({"t": "Hi", **UNREAD}), text="t", tool_calls="c?").unplaced


# ── the session ──────────────────────────────────────────────────────────────────────────────────


def session(where: Any, document: ReplyDocument, known: str | None = None, **headers: str) -> str | None:
    return extract_session(http(**headers), document, paths(text="t", session=where), known=known)


@pytest.mark.parametrize(
    ("where", "document", "known", "found"),
    [
        (None, one({"id": "1"}), None, None),
        (None, one({"id": "1"}), "0", "0"),
        ("id", one({"id": "1"}), None, "1"),
        ("id", one({"id": "1"}), "0", "1"),
        ("a.id", one({"a": {"id": 7}}), None, "7"),
        ("id", one({}), "0", "0"),
        ("id", one({"id": None}), "0", "0"),
        ("id", one({"id": ""}), "0", "0"),
        ("id", one({}), "", ""),
        ("id?", one({}), None, None),
        ("id", stream({"id": "1"}, {"id": "2"}, {"t": "x"}), None, "2"),
        ("id", stream({"id": "1"}, {"id": ""}), None, "1"),
    ],
)
def test_the_session_in_a_body(
    where: Any, document: ReplyDocument, known: str | None, found: str | None
) -> None:
    assert session(where, document, known) == found


@pytest.mark.parametrize("value", [{"id": {"a": 1}}, {"id": []}, {}, {"id": ""}, {"id": None}])
def test_a_body_without_the_session(value: Any) -> None:
    with pytest.raises(UnreadableResponseError):
        session("id", one(value))


HEADERS = {"x_session": "h1", "set_cookie": 'other=0; Path=/, sid="c1"; Secure, xsid=c2, Sid=c3'}


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ({"header": "X-Session"}, "h1"),
        ({"cookie": "sid"}, "c1"),
        ({"cookie": "other"}, "0"),
        ({"cookie": "xsid"}, "c2"),
    ],
)
def test_the_session_in_a_header_or_a_cookie(where: Any, found: str) -> None:
    assert session(where, one({}), None, **HEADERS) == found
    assert session(where, one({}), "old", **HEADERS) == found


@pytest.mark.parametrize("where", [{"header": "X-Other"}, {"cookie": "s.d"}, {"cookie": "id"}])
def test_headers_without_the_session(where: Any) -> None:
    assert session(where, one({}), "old", **HEADERS) == "old"
    assert session(where, one({}), "", **HEADERS) == ""
    with pytest.raises(UnreadableResponseError) as error:
        session(where, one({}), None, **HEADERS)
    name = next(iter(where.values()))
    assert f"'{name}'" in str(error.value)
    assert SessionPlace.model_validate(where)


# ── incomplete answers ───────────────────────────────────────────────────────────────────────────

ALL: dict[str, Any] = {"text": "t", "tool_calls": "c", "messages": "m", "usage": "u"}


def partial(reply: HttpReply, streaming: bool = False, **written: Any) -> ReadReply:
    return extract_partial_reply(reply, paths(**written), streaming=streaming)


def test_what_a_broken_stream_tells() -> None:
    seen = partial(http("", ['{"t": "Hel"}', '{"u": {"input_tokens": 1}}', '{"t": "lo"}', '{"t": "x']), **ALL)
    assert (seen.text, list(seen.tool_calls), seen.messages) == ("Hello", [], [])
    assert seen.usage == {"input_tokens": 1}
    assert partial(http('{"t": "a"}\n{"t'), streaming=True, **ALL).text == "a"


def test_what_cannot_be_read_is_left_out() -> None:
    reply = {"t": 7, "c": [call()], "m": "none", "u": {"input_tokens": 1}}
    seen = partial(http(json.dumps(reply)), **ALL)
    assert (seen.text, list(seen.tool_calls), list(seen.messages)) == (None, [call()], [])
    assert seen.usage == {"input_tokens": 1}


def test_an_error_does_not_hide_what_was_done() -> None:
    assert partial(http(json.dumps({"t": "Hi", "error": "boom"})), **ALL).text == "Hi"
    assert partial(http("nothing"), **ALL) == ReadReply(tool_calls=[], messages=[])


# ── one value ────────────────────────────────────────────────────────────────────────────────────


def test_the_last_value_at_a_path() -> None:
    assert value_at(one({"a": 1}), "a", "poll.status") == 1
    assert value_at(stream({"a": 1}, {"b": 1}, {"a": None}), "a", "poll.status") is None
    assert value_at(one({}), "a?", "poll.status") is None


@pytest.mark.parametrize(
    ("key", "name"), [("poll.status", "`poll.status: a.b`"), ("text", "`reply.text: a.b`")]
)
def test_a_value_that_is_not_there(key: str, name: str) -> None:
    with pytest.raises(UnreadableResponseError) as error:
        value_at(stream({"a": {"x": 1, "y": 2}}, {"a": {"x": 1, "y": 2}}, {"z": 1}), "a.b", key)
    text = f"{error.value} {error.value.evidence}"
    assert name in text
    assert text.count("in `a`: x, y; z") >= 1


def test_settings_are_texts_or_marks() -> None:
    by: Mapping[str, Any] = ReplyPaths().model_dump()
    assert set(by) == {"text", "delta", "tool_calls", "messages", "session", "usage", "error", "done"}
    assert not any(by.values())
