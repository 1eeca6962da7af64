"""A conversation by the author's template: what each request holds, and whose session it is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agenteval.adapters.agents.http_api import AgentFailure, ApiRequest, PendingAnswer
from agenteval.adapters.agents.polling import PollOptions
from agenteval.adapters.agents.reply_paths import ReplyPaths
from agenteval.adapters.agents.template_api import Template, TemplateApi
from agenteval.adapters.transport.client import HttpReply
from agenteval.core.protocols import ReadReply, TurnTools
from agenteval.core.trajectory import Message, ToolResult
from agenteval.messages.completion import UnreadableResponseError

USER: Message = {"role": "user", "content": "Hi"}


async def no_call(*_: Any) -> ToolResult:
    raise AssertionError


def tools(turn: int = 0, *schemas: dict[str, Any]) -> TurnTools:
    return TurnTools(turn, schemas, no_call)


def template(**given: Any) -> Template:
    parts: dict[str, Any] = {
        "endpoint": "http://h/chat",
        "headers": {},
        "request": {"m": "${message}"},
        "reply": {"text": "text"},
        "poll": None,
        "streaming": False,
        **given,
    }
    poll = parts["poll"]
    parts["reply"] = ReplyPaths.model_validate(parts["reply"])
    parts["poll"] = PollOptions.model_validate(poll) if poll else None
    return Template(**parts)


class Conversation:
    def __init__(self, **given: Any) -> None:
        self.warnings: list[str] = []
        self.api = TemplateApi(template(**given), self.warnings.append)

    def asks(
        self, turn: int = 0, *schemas: dict[str, Any], messages: tuple[Message, ...] = (USER,)
    ) -> ApiRequest:
        return self.api.build_request(list(messages), tools(turn, *schemas))

    def gets(self, value: Any, **headers: str) -> ReadReply | PendingAnswer:
        return self.api.read(reply(value, **headers))


def reply(value: Any, **headers: str) -> HttpReply:
    text = value if isinstance(value, str) else json.dumps(value)
    return HttpReply(200, {name.replace("_", "-"): each for name, each in headers.items()}, text, 1.0)


def test_the_names_in_all_of_a_request() -> None:
    made = template(
        endpoint="http://h/${session}", headers={"A": "${turn}", "B": "b"}, request={"x": ["${message}"]}
    )
    assert made.names == {"session", "turn", "message"}
    assert template(request={}).names == frozenset()


def test_a_request_is_filled_in() -> None:
    tool = {"type": "function", "function": {"name": "f"}}
    talk = Conversation(request={"m": "${message}", "all": "${messages}", "n": "${turn}", "t": "${tools}"})
    request = talk.asks(2, tool)
    assert request == ApiRequest({"m": "Hi", "all": [USER], "n": 2, "t": [tool]}, "http://h/chat", {})
    assert "t" not in (talk.asks().body or {})


@pytest.mark.parametrize(
    ("request_template", "turn", "warns"),
    [
        ({"m": "${message}"}, 0, False),
        ({"m": "${message}"}, 1, True),
        ({"m": "${messages}"}, 1, False),
        ({"m": "${message}", "s": "${session}"}, 1, False),
    ],
)
def test_an_agent_without_memory_is_warned_of(request_template: Any, turn: int, warns: bool) -> None:
    talk = Conversation(request=request_template)
    talk.asks(turn)
    assert len(talk.warnings) == warns
    assert all("${session}" in text for text in talk.warnings)


# ── headers ──────────────────────────────────────────────────────────────────────────────────────


def test_headers_are_filled_in_with_the_session_alone() -> None:
    talk = Conversation(
        headers={"X-Plain": "a ${message} $${b}", "X-Session": "s ${session}", "X-No": "$${session}"},
        reply={"text": "text", "session": "id"},
    )
    plain = {"X-Plain": "a ${message} $${b}", "X-No": "${session}"}
    assert talk.asks().headers == plain
    talk.gets({"text": "x", "id": "7"})
    assert talk.asks(1).headers == {**plain, "X-Session": "s 7"}


@pytest.mark.parametrize(
    ("headers", "streaming", "accepts"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"accept": "x"}, True, False),
        ({"ACCEPT": "x"}, True, False),
        ({"Other": "x"}, True, True),
    ],
)
def test_a_stream_is_asked_for(headers: dict[str, str], streaming: bool, accepts: bool) -> None:
    sent = Conversation(headers=headers, streaming=streaming).asks().headers or {}
    assert ("Accept" in sent) is accepts
    assert {name: value for name, value in sent.items() if name != "Accept"} == headers
    if accepts:
        assert "text/event-stream" in sent["Accept"]
        assert "ndjson" in sent["Accept"]


# ── sessions ─────────────────────────────────────────────────────────────────────────────────────

WITH_SESSION = {"m": "${message}", "s": "${session}"}


def test_without_a_servers_session_agenteval_makes_one() -> None:
    one, two = Conversation(request=WITH_SESSION), Conversation(request=WITH_SESSION)
    first, second = ((talk.asks().body or {})["s"] for talk in (one, two))
    assert first != second
    assert len(first) == 32
    one.gets({"text": "x", "id": "7"})
    assert (one.asks(1).body or {})["s"] == first


def test_it_may_stand_in_the_endpoint() -> None:
    talk = Conversation(endpoint="http://h/${session}/chat")
    url = talk.asks().url
    assert url.startswith("http://h/")
    assert len(url) == len("http://h//chat") + 32
    assert talk.asks(1).url == url
    assert Conversation(endpoint="http://h/$${x}").asks().url == "http://h/$${x}"


def test_a_servers_session_is_sent_back() -> None:
    talk = Conversation(request=WITH_SESSION, reply={"text": "text", "session": "id"})
    assert talk.asks().body == {"m": "Hi"}
    talk.gets({"text": "x", "id": "7"})
    assert talk.asks(1).body == {"m": "Hi", "s": "7"}
    talk.gets({"text": "x"})
    assert talk.asks(2).body == {"m": "Hi", "s": "7"}
    talk.gets({"text": "x", "id": "8"})
    assert talk.asks(3).body == {"m": "Hi", "s": "8"}


def test_the_first_reply_must_have_the_session() -> None:
    talk = Conversation(request=WITH_SESSION, reply={"text": "text", "session": "id"})
    talk.asks()
    with pytest.raises(UnreadableResponseError):
        talk.gets({"text": "x"})


@pytest.mark.parametrize(
    ("session", "fits"), [("a b~", True), ("ü", False), ("a\nb", False), ("a\x7f", False)]
)
@pytest.mark.parametrize("in_headers", [False, True])
def test_a_session_must_fit_where_it_is_sent(session: str, fits: bool, in_headers: bool) -> None:
    where: dict[str, Any] = {"headers": {"X": "${session}"}} if in_headers else {"request": WITH_SESSION}
    talk = Conversation(**where, reply={"text": "text", "session": "id"})
    talk.asks()
    if fits or not in_headers:
        talk.gets({"text": "x", "id": session})
        sent = talk.asks(1)
        assert (sent.headers or {}).get("X", (sent.body or {}).get("s")) == session
        return
    with pytest.raises(UnreadableResponseError) as error:
        talk.gets({"text": "x", "id": session})
    assert error.value.evidence == session


# ── replies ──────────────────────────────────────────────────────────────────────────────────────


def test_an_answer_is_read_by_its_paths() -> None:
    talk = Conversation(reply={"text": "text", "usage": "u"})
    talk.asks()
    found = talk.gets({"text": "Hello", "u": {"input_tokens": 1}})
    assert isinstance(found, ReadReply)
    assert (found.text, found.usage) == ("Hello", {"input_tokens": 1})
    with pytest.raises(UnreadableResponseError):
        talk.gets({"text": "x", "error": "boom"})
    streamed = Conversation(streaming=True, reply={"text": "text"})
    streamed.asks()
    joined = streamed.gets('{"text": "Hel"}\n{"text": "lo"}')
    assert isinstance(joined, ReadReply)
    assert joined.text == "Hello"


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ({"text": "x"}, None),
        ({}, None),
        ({"error": "boom"}, "boom"),
        ({"error": {"code": 1}}, {"code": 1}),
        ("hello", None),
    ],
)
def test_the_error_in_a_reply(value: Any, error: Any) -> None:
    assert Conversation().api.error_in(reply(value)) == error


def test_the_error_in_a_stream() -> None:
    streamed = Conversation(streaming=True)
    assert streamed.api.error_in(reply('{"text": "a"}\n{"error": "boom"}')) == "boom"


def test_what_an_incomplete_answer_tells() -> None:
    talk = Conversation(reply={"text": "text", "done": "end"}, streaming=True)
    found = talk.api.read_partial(reply('{"text": "Hel"}\n{"te'))
    assert found is not None
    assert found.text == "Hel"
    assert (
        Conversation(reply={"text": "text"}).api.read_partial(reply({"text": "x", "error": "e"})) is not None
    )


# ── jobs ─────────────────────────────────────────────────────────────────────────────────────────

POLL = {"job": "id", "url": "/jobs/${job}", "status": "state", "every_s": 2}


def test_a_job_is_asked_for_until_it_is_done() -> None:
    talk = Conversation(headers={"X": "x"}, poll=POLL)
    talk.asks()
    for state in ("queued", "running"):
        later = talk.gets({"id": "7", "state": state})
        assert isinstance(later, PendingAnswer)
        assert later == PendingAnswer(ApiRequest(None, "http://h/jobs/7", {"X": "x"}), 2, state)
    done = talk.gets({"state": "done", "text": "Hello"})
    assert isinstance(done, ReadReply)
    assert done.text == "Hello"
    talk.asks(1)
    with pytest.raises(AgentFailure):
        talk.gets({"id": "8", "state": "failed"})


def test_one_of_a_jobs_replies_has_the_session() -> None:
    by = {"text": "text", "session": "sid"}
    talk = Conversation(request=WITH_SESSION, poll=POLL, reply=by)
    talk.asks()
    talk.gets({"id": "7", "state": "running"})
    talk.gets({"id": "7", "state": "running", "sid": "s1"})
    talk.gets({"state": "done", "text": "x"})
    assert talk.asks(1).body == {"m": "Hi", "s": "s1"}
    late = Conversation(request=WITH_SESSION, poll=POLL, reply=by)
    late.asks()
    late.gets({"id": "7", "state": "running"})
    late.gets({"state": "done", "text": "x", "sid": "s2"})
    assert late.asks(1).body == {"m": "Hi", "s": "s2"}
    never = Conversation(request=WITH_SESSION, poll=POLL, reply=by)
    never.asks()
    never.gets({"id": "7", "state": "running"})
    with pytest.raises(UnreadableResponseError):
        never.gets({"state": "done", "text": "x"})
