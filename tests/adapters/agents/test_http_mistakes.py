"""Options of an HTTP agent that contradict each other: each contradiction at its key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from agenteval.adapters.agents.http_mistakes import option_mistakes

REQUEST = {"m": "${message}", "s": "${session}"}
REPLY = {"text": "a.b"}
BOTH = {"request": {"m": "${message}"}, "reply": REPLY}
RESPONSES = "http://h/v1/responses"
POLL = {"status": "state"}


def with_reply(**reply: Any) -> dict[str, Any]:
    return {"request": REQUEST, "reply": {"text": "a", **reply}}


def with_request(**request: Any) -> dict[str, Any]:
    return {"request": {"m": "${message}", **request}, "reply": REPLY}


def with_poll(**poll: Any) -> dict[str, Any]:
    return {**BOTH, "poll": {**POLL, **poll}}


ROWS: dict[str, tuple[Mapping[str, Any], list[tuple[str, ...]]]] = {
    "nothing": ({}, []),
    "request alone": ({"request": REQUEST}, [("request",)]),
    "reply alone": ({"reply": REPLY}, [("reply",)]),
    "both": (BOTH, []),
    # what does not go with request and reply
    "body": ({**BOTH, "body": {"a": 1}}, [("body",)]),
    "an empty body": ({**BOTH, "body": {}}, []),
    "no body": ({**BOTH, "body": None}, []),
    "send_tools": ({**BOTH, "send_tools": True}, [("send_tools",)]),
    "send_tools: false is said, too": ({**BOTH, "send_tools": False}, [("send_tools",)]),
    "observed_messages": ({**BOTH, "observed_messages": "a"}, [("observed_messages",)]),
    "api": ({**BOTH, "api": "responses"}, [("api",)]),
    "two of them, in the table's order": ({**BOTH, "api": "x", "body": {"a": 1}}, [("body",), ("api",)]),
    # wrong types are reported elsewhere
    "request is a text": ({"request": "x", "reply": {}}, []),
    "reply is a text": ({"request": {}, "reply": "x"}, []),
    # the request
    "no message": ({"request": {"m": "hi"}, "reply": REPLY}, [("request",)]),
    "the conversation": ({"request": {"m": ["${messages}"]}, "reply": REPLY}, []),
    "results by a key": (
        {"request": {"m": "${message}", "tool_results": []}, "reply": {"text": "a", "tool_calls": "c"}},
        [("request", "tool_results")],
    ),
    "results by a key, no calls": (with_request(tool_results=[]), []),
    "results are added": ({"request": {"m": "${message}"}, "reply": {"text": "a", "tool_calls": "c"}}, []),
    "results by their name": (
        {"request": {"m": "${message}", "tool_results": "${tool_results}"},
         "reply": {"text": "a", "tool_calls": "c"}},
        [],
    ),
    "results in the conversation": (
        {"request": {"m": "${messages}", "tool_results": 1}, "reply": {"text": "a", "tool_calls": "c"}},
        [],
    ),
    "results without calls": (with_request(r="${tool_results}"), [("request",)]),
    # the reply
    "no answer": ({"request": REQUEST, "reply": {"usage": "u"}}, [("reply",)]),
    "delta": ({"request": REQUEST, "reply": {"delta": "d"}}, []),
    "messages": ({"request": REQUEST, "reply": {"messages": "d"}}, []),
    "header": (with_reply(session={"header": "X"}), []),
    "cookie": (with_reply(session={"cookie": "X"}), []),
    "header and cookie": (with_reply(session={"cookie": "X", "header": "Y"}), [("reply", "session")]),
    "neither": (with_reply(session={"other": "X"}), [("reply", "session")]),
    # paths
    **{
        f"path {path!r}": (with_reply(usage=path), [] if is_path else [("reply", "usage")])
        for path, is_path in {
            ".": True, "a": True, "a.0.b": True, "a.b?": True, "a.*.b": True,
            "": False, "?": False, "a..b": False, ".a": False, "a.": False, "a. .b": False,
            "$.a": False, "$": False, "a[0]": False, "a[*].b?": False,
        }.items()
    },
    **{
        f"path of {key}": (with_reply(**{key: "a..b"}), [("reply", key)])
        for key in ("text", "delta", "tool_calls", "messages", "session", "usage", "error", "done")
    },
    "marks are no paths": (with_reply(done={"a..b": 1}, error={"": 2}), []),
    # the session
    "session, sent": (with_reply(session="s"), []),
    "session, never sent": ({**BOTH, "reply": {"text": "a", "session": "s"}}, [("reply", "session")]),
    "session, in a header": (
        {**BOTH, "reply": {"text": "a", "session": "s"}, "headers": {"X": "${session}"}},
        [],
    ),
    "session, in the endpoint": (
        {**with_reply(session="s"), "endpoint": "http://h/${session}"},
        [("endpoint",)],
    ),
    "own session in the endpoint": ({**BOTH, "endpoint": "http://h/${session}"}, []),
    # polling
    "poll": (with_poll(), []),
    "poll is a text": ({**BOTH, "poll": "x"}, []),
    "poll and streaming": ({**with_poll(), "streaming": True}, [("poll",)]),
    "poll and no streaming": ({**with_poll(), "streaming": False}, []),
    "no status": ({**BOTH, "poll": {"every_s": 1}}, [("poll",)]),
    "status is no path": (with_poll(status="a..b"), [("poll", "status")]),
    "job is no path": (with_poll(job="a[0]"), [("poll", "job")]),
    "url and job": (with_poll(url="/j/${job}", job="id"), []),
    "url without job": (with_poll(url="/j/${job}"), [("poll", "url")]),
    "job without its place": (with_poll(url="/j", job="id"), [("poll", "url")]),
    "url alone": (with_poll(url="/j"), []),
    "job alone": (with_poll(job="id"), []),
    # an API of a known form
    "poll alone": ({"poll": POLL}, [("poll",)]),
    "session alone": ({"headers": {"A": "${session}", "B": "b"}}, [("headers", "A")]),
    "session in the url alone": ({"endpoint": "http://h/${session}"}, [("endpoint",)]),
    "another name": ({"headers": {"A": "${message}"}}, []),
    "headers are a text": ({"headers": "${session}"}, []),
    "observed and responses": ({"api": "responses", "observed_messages": "a"}, [("observed_messages",)]),
    "observed and messages": ({"api": "messages", "observed_messages": "a"}, [("observed_messages",)]),
    "observed and completions": ({"api": "chat_completions", "observed_messages": "a"}, []),
    "observed and the endpoint": (
        {"endpoint": RESPONSES, "observed_messages": "a"},
        [("observed_messages",)],
    ),
    "observed, the API is said": (
        {"endpoint": RESPONSES, "api": "chat_completions", "observed_messages": "a"},
        [],
    ),
    "nothing observed": ({"api": "responses", "observed_messages": None}, []),
    "an API that is no text": ({"api": 7, "observed_messages": "a"}, []),
    "an input that is a text": ({"api": "responses", "body": {"input": "hi"}}, [("body", "input")]),
    "an input that is a list": ({"api": "responses", "body": {"input": []}}, []),
    "no input": ({"api": "responses", "body": {"a": 1}}, []),
    "an input of another API": ({"api": "messages", "body": {"input": "hi"}}, []),
    "a body that is no mapping": ({"api": "responses", "body": "input"}, []),
}  # fmt: skip


@pytest.mark.parametrize(("options", "paths"), ROWS.values(), ids=ROWS)
def test_each_contradiction_is_at_its_key(options: Mapping[str, Any], paths: list[tuple[str, ...]]) -> None:
    found = list(option_mistakes(options))
    assert [mistake.path for mistake in found] == paths
    assert all(mistake.what and mistake.remedy for mistake in found)


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("$.a.b", "a.b"),
        ("a[0].b", "a.0.b"),
        ("$['a']", "a"),
        ('$["a"][\'it"s\'][*].b', 'a.it"s.*.b'),
        ("a[", "a"),
        ("$", "data.reply"),
        ("$.a..b", "data.reply"),
        ("a..b", "data.reply"),
    ],
)
def test_a_path_of_another_notation_is_shown_in_ours(path: str, shown: str) -> None:
    (mistake,) = option_mistakes(with_reply(text=path))
    assert shown == mistake.remedy.split()[-1]
    assert f"'{path}'" in mistake.what


def test_an_api_that_the_endpoint_implies_can_be_changed() -> None:
    implied, said = (
        {"endpoint": RESPONSES, "observed_messages": "a"},
        {"api": "responses", "observed_messages": "a"},
    )
    assert ["api: chat_completions" in next(option_mistakes(each)).remedy for each in (implied, said)] == [
        True,
        False,
    ]
