"""The HTTP agent adapter against real servers: what is sent, what is read, and what breaks."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from agenteval.adapters.agents.http import HttpAgents
from agenteval.adapters.transport.client import Transport
from agenteval.adapters.transport.retry import RetryPolicy
from agenteval.core.config import AgentConfig
from agenteval.core.errors import AgentError, AgentevalError, AuthorError, InfrastructureError
from agenteval.core.protocols import AgentReply, TurnTools
from agenteval.core.scenario import Sample, SampleKey, Scenario
from tests.support.local_servers import (
    Behaviour,
    LocalServer,
    chat,
    chunked,
    closed_port,
    completion,
    delta,
    drop,
    hang,
    plain_environment,
    respond,
    respond_json,
    sse,
)

HELLO = [{"role": "user", "content": "Hello"}]
WEATHER = {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}
SAMPLE = Sample(key=SampleKey(scenario="s", agent="a"), scenario=Scenario(id="s", name="s", turns=("Hello",)))


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    plain_environment(monkeypatch, tmp_path)


async def _no_call(name: str, args: Any) -> Any:
    raise AssertionError("an HTTP agent has no way to call a tool itself")


class Clock:
    """Time that passes when somebody sleeps."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now_s

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now_s += seconds


def ask(
    config: AgentConfig,
    *,
    messages: list[dict[str, Any]] | None = None,
    schemas: tuple[dict[str, Any], ...] = (),
    secrets: tuple[str, ...] = (),
) -> AgentReply:
    async def main() -> AgentReply:
        clock = Clock()
        transport = Transport(retry=RetryPolicy(sleep=clock.sleep, clock=clock))
        agents = HttpAgents(config, transport=transport, secrets=secrets)
        try:
            tools = TurnTools(turn=0, schemas=schemas, call=_no_call)
            return await agents.make(SAMPLE).reply(HELLO if messages is None else messages, tools)
        finally:
            await agents.aclose()
            await transport.aclose()

    return anyio.run(main)


def reply_of(behaviour: Behaviour, **config: Any) -> AgentReply:
    with LocalServer(behaviour) as server:
        return ask(AgentConfig(endpoint=server.url, **config))


def error_of(behaviour: Behaviour, **config: Any) -> AgentevalError:
    with pytest.raises(AgentevalError) as caught:
        reply_of(behaviour, **config)
    return caught.value


def sent_by(config: dict[str, Any], **options: Any) -> Any:
    """The body of the request that the agent makes."""
    with LocalServer(chat("ok")) as server:
        ask(AgentConfig(endpoint=server.url, **config), **options)
    assert server.errors == []
    return server.requests[0].json


def assert_unreadable(error: AgentevalError, *words: str) -> None:
    assert isinstance(error, AgentError), repr(error)
    assert error.kind == "protocol"
    for word in words:
        assert word in str(error)


# --- what is sent -----------------------------------------------------------------------------------


def test_the_body_is_merged_and_its_messages_go_first() -> None:
    system = {"role": "system", "content": "Be brief."}
    body = {"model": "org/my:model", "temperature": 0, "messages": [system]}
    assert sent_by({"body": body}) == {
        "model": "org/my:model",
        "temperature": 0,
        "messages": [system, *HELLO],
    }


def test_messages_are_sent_as_they_are() -> None:
    messages = [
        {"role": "user", "content": ""},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}], "thought_signature": "x"},
        {"role": "tool", "tool_call_id": "1", "content": "{}"},
    ]
    assert sent_by({}, messages=messages) == {"messages": messages}


def test_neither_configuration_nor_conversation_is_changed() -> None:
    config = {"messages": [{"role": "system", "content": "x"}], "stream_options": {"a": 1}}
    agent = AgentConfig(endpoint="http://127.0.0.1", body=config, streaming=True)
    body, messages = copy.deepcopy(agent.body), copy.deepcopy(HELLO)
    with LocalServer(chat("ok")) as server:
        ask(agent.model_copy(update={"endpoint": server.url}), messages=messages)
        ask(agent.model_copy(update={"endpoint": server.url}), messages=messages)
    assert (agent.body, messages) == (body, HELLO)
    assert server.requests[0].json == server.requests[1].json


@pytest.mark.parametrize(
    ("config", "schemas", "sent"),
    [
        ({}, (WEATHER,), [WEATHER]),
        ({}, (), "nothing"),
        ({"send_tools": False}, (WEATHER,), "nothing"),
        ({"body": {"tools": []}}, (WEATHER,), []),
    ],
)
def test_declared_tools_are_sent_unless_told_otherwise(config: Any, schemas: Any, sent: Any) -> None:
    assert sent_by(config, schemas=schemas).get("tools", "nothing") == sent


@pytest.mark.parametrize(
    ("body", "options"),
    [
        ({}, {"include_usage": True}),
        ({"stream_options": {"x": 1}}, {"x": 1, "include_usage": True}),
        ({"stream_options": {"include_usage": False}}, {"include_usage": False}),
        ({"stream_options": None}, "nothing"),
    ],
)
def test_streaming_asks_for_usage(body: dict[str, Any], options: Any) -> None:
    sent = sent_by({"streaming": True, "body": body})
    assert sent["stream"] is True
    assert sent.get("stream_options", "nothing") == options


def test_without_streaming_nothing_is_said_of_it() -> None:
    assert sent_by({}).keys() == {"messages"}


@pytest.mark.parametrize("value", ["Bearer ", "Bearer", "", "  "])
def test_an_authorization_without_a_key_is_left_out(value: str) -> None:
    with LocalServer(chat("ok")) as server:
        ask(
            AgentConfig(
                endpoint=server.url, headers={"Authorization": value, "X-Team": " a ", "X": "$${session}"}
            )
        )
    assert "authorization" not in server.requests[0].headers
    assert server.requests[0].headers["x-team"] == "a"
    assert server.requests[0].headers["x"] == "${session}"


# --- configurations that cannot work ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "word"),
    [
        ({}, "endpoint"),
        ({"endpoint": "localhost:3000/v1"}, "endpoint"),
        ({"endpoint": "file:///etc/passwd"}, "endpoint"),
        ({"endpoint": "http://"}, "endpoint"),
        ({"endpoint": "http://h:99999/"}, "endpoint"),
        ({"headers": {"Bad Name": "x"}}, "Bad Name"),
        ({"headers": {"X-Key": "s3cret\r\nX-Other: 1"}}, "X-Key"),
        ({"headers": {"X-Key": "s3crét"}}, "X-Key"),
        ({"body": {"messages": "hello"}}, "body.messages"),
        ({"body": {"messages": ["hello"]}}, "body.messages"),
        ({"body": {"stream_options": True}}, "stream_options"),
        ({"body": {"x": {1, 2}}}, "JSON"),
    ],
)
def test_a_configuration_that_cannot_work_is_refused(config: dict[str, Any], word: str) -> None:
    defaults = {"endpoint": "http://localhost/v1"} if config else {}
    with pytest.raises(AuthorError) as caught:
        ask(AgentConfig(name="wonderbot", **{**defaults, **config}))
    assert "agent 'wonderbot'" in str(caught.value)
    assert word in str(caught.value)
    assert "s3cr" not in str(caught.value)


# --- what is read -----------------------------------------------------------------------------------


def test_a_plain_answer() -> None:
    reply = reply_of(chat("Hi there"))
    assert (reply.text, reply.tool_calls, reply.messages, reply.extra) == ("Hi there", [], [], {})
    assert reply.usage == {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    assert reply.latency_ms is not None
    assert reply.latency_ms > 0


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("", ""),
        (None, None),
        (
            [
                {"type": "text", "text": "a"},
                {"type": "reasoning", "text": "no"},
                {"type": "text", "text": "b"},
            ],
            "ab",
        ),
        ([], ""),
        ("<think>hm</think>Yes", "<think>hm</think>Yes"),
    ],
)
def test_the_forms_of_content(content: Any, text: str | None) -> None:
    assert reply_of(chat(content)).text == text


@pytest.mark.parametrize("content", [None, "", [], [{"type": "refusal", "refusal": "I will not."}]])
def test_a_refusal_is_the_answer(content: Any) -> None:
    field = {} if isinstance(content, list) and content else {"refusal": "I will not."}
    assert reply_of(chat(content, **field)).text == "I will not."


def test_tool_calls_come_as_they_are() -> None:
    calls = [
        {"id": "", "type": "function", "function": {"name": "a", "arguments": "{broken"}},
        {"function": {"name": "b", "arguments": {"x": 1}}, "extra_content": {"sig": "s"}},
    ]
    reply = reply_of(chat(None, tool_calls=calls, finish_reason="tool_calls"))
    assert (reply.text, reply.tool_calls) == (None, calls)


def test_a_legacy_function_call_is_a_tool_call() -> None:
    function = {"name": "a", "arguments": "{}"}
    reply = reply_of(chat(None, function_call=function, tool_calls=None))
    assert reply.tool_calls == [{"type": "function", "function": function}]


def test_unknown_fields_are_kept_and_reasoning_is_not_the_answer() -> None:
    reply = reply_of(chat("", reasoning_content="secret plan", audio=None, vendor={"a": [1]}))
    assert reply.text == ""
    assert reply.extra == {"reasoning_content": "secret plan", "vendor": {"a": [1]}}


@pytest.mark.parametrize("usage", [None, "many", []])
def test_usage_comes_as_it_is(usage: Any) -> None:
    assert reply_of(respond_json({**completion("x"), "usage": usage})).usage == usage


def test_half_a_surrogate_pair_is_replaced() -> None:
    body = json.dumps(completion("HALF WHOLE")).replace("HALF", "\\ud83d").replace("WHOLE", "\\ud83d\\ude00")
    assert reply_of(respond(body)).text == "\ufffd 😀"


def test_a_byte_order_mark_is_no_fault() -> None:
    assert reply_of(respond(b"\xef\xbb\xbf" + json.dumps(completion("x")).encode())).text == "x"


# --- unreadable replies -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("", ["empty"]),
        ("<!DOCTYPE html><title>Welcome</title>", ["web page", "<title>Welcome"]),
        ('{"choices": [', ["not JSON", '{"choices": [']),
        ("[" * 200_000, ["not JSON"]),
        ("[1, 2]", ["not an object", "[1, 2]"]),
        ('{"error": {"message": "no such model"}}', ["error", "no such model"]),
        ('{"choices": []}', ["no choices"]),
        ('{"detail": "héllo"}', ["no choices", "héllo"]),
        ('{"choices": null}', ["no choices"]),
        ('{"choices": ["x"]}', ["no choices"]),
        ('{"choices": [{"message": null}]}', ["no message"]),
        ('{"choices": [{"error": {"message": "upstream"}, "message": {}}]}', ["error", "upstream"]),
        ('{"choices": [{"message": {"content": 7}}]}', ["content", "int"]),
        ('{"choices": [{"message": {"tool_calls": {"a": 1}}}]}', ["tool_calls"]),
    ],
)
def test_replies_that_are_no_completion(body: str, words: list[str]) -> None:
    assert_unreadable(error_of(respond(body)), *words)


def test_only_the_beginning_is_quoted() -> None:
    text = str(error_of(respond("z" * 5000)))
    assert "z" * 150 in text
    assert "z" * 201 not in text


def test_a_reply_that_was_cut_off() -> None:
    behaviour = chat("The answer is", finish_reason="length")
    assert_unreadable(error_of(behaviour), "reply was cut off (finish_reason=length)")


@pytest.mark.parametrize("reason", ["max_tokens", "content_filter", "MAX_TOKENS", "content-filter", "error"])
@pytest.mark.parametrize("content", ["The answer is", "", None])
def test_a_reply_that_was_cut_off_in_other_words(reason: str, content: str | None) -> None:
    assert_unreadable(error_of(chat(content, finish_reason=reason)), f"(finish_reason={reason})")
    streamed = sse(delta(content), delta(finish_reason=reason))
    assert_unreadable(error_of(streamed, streaming=True), f"(finish_reason={reason})")


def test_a_refusal_is_an_answer_whatever_ended_it() -> None:
    for reason in ("stop", "content_filter"):
        assert reply_of(chat(None, refusal="I will not.", finish_reason=reason)).text == "I will not."


def test_secrets_in_an_unreadable_reply_are_not_shown() -> None:
    with LocalServer(respond("keys: sk-abcdef, top-s3cret-key")) as server:
        config = AgentConfig(endpoint=server.url, headers={"Authorization": "Bearer sk-abcdef"})
        with pytest.raises(AgentError) as caught:
            ask(config, secrets=("top-s3cret-key",))
    assert "keys: ***, ***" in str(caught.value)


# --- faults of the network and of the server --------------------------------------------------------


def test_faults_are_told_apart() -> None:
    for behaviour, cls, kind in (
        (respond("", status=500), AgentError, "http_status"),
        (respond("", status=422), AgentError, "http_status"),
        (respond("", status=401), InfrastructureError, None),
        (respond("", status=503), InfrastructureError, None),
        (drop(), InfrastructureError, None),
    ):
        error = error_of(behaviour)
        assert type(error) is cls
        assert getattr(error, "kind", None) == kind


def test_an_agent_that_is_not_there() -> None:
    with pytest.raises(InfrastructureError) as caught:
        ask(AgentConfig(endpoint=f"http://localhost:{closed_port()}/v1"))
    assert "refused" in str(caught.value)


def test_an_agent_that_takes_too_long() -> None:
    error = error_of(hang(), timeout_s=0.2)
    assert isinstance(error, AgentError)
    assert error.kind == "timeout"


def test_a_busy_agent_answers_in_the_end() -> None:
    with LocalServer(respond("", status=429, headers={"Retry-After": "1"}), chat("at last")) as server:
        assert ask(AgentConfig(endpoint=server.url)).text == "at last"
    assert server.requests[0].json == server.requests[1].json


# --- observed messages ------------------------------------------------------------------------------

TRACE = [
    {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": {"name": "a"}}]},
    {"role": "tool", "tool_call_id": "1", "content": "ok"},
]


@pytest.mark.parametrize("path", ["trace", "meta.runs.1.messages"])
def test_messages_of_the_turn_are_found_by_their_path(path: str) -> None:
    nested = {"trace": TRACE, "meta": {"runs": [{}, {"messages": TRACE}]}}
    reply = reply_of(respond_json({**completion("done"), **nested}), observed_messages=path)
    assert (reply.text, reply.messages) == ("done", TRACE)


def test_messages_within_the_message_are_not_sent_back_a_second_time() -> None:
    behaviour = chat("done", agent_messages=TRACE, vendor=1)
    reply = reply_of(behaviour, observed_messages="choices.0.message.agent_messages")
    assert (reply.messages, reply.extra) == (TRACE, {"vendor": 1})


def test_messages_may_be_the_whole_answer() -> None:
    reply = reply_of(respond_json({"messages": TRACE}), observed_messages="messages")
    assert (reply.text, reply.messages) == (None, TRACE)


@pytest.mark.parametrize("value", [None, []])
def test_a_turn_without_messages(value: Any) -> None:
    reply = reply_of(respond_json({**completion("x"), "trace": value}), observed_messages="trace")
    assert (reply.text, reply.messages) == ("x", [])


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("choices.²", ["observed_messages: choices.²", "'²'"]),
        ("trce", ["observed_messages: trce", "'trce'", "choices", "trace"]),
        ("trace.9", ["'9'", "list of length 2"]),
        ("choices.0.message.steps", ["'steps'", "role, content"]),
        ("model", ["no list of messages"]),
        ("numbers", ["no list of messages"]),
    ],
)
def test_a_path_that_leads_nowhere(path: str, words: list[str]) -> None:
    document = {**completion("x"), "trace": TRACE, "numbers": [1]}
    assert_unreadable(error_of(respond_json(document), observed_messages=path), *words)


def test_an_error_is_told_rather_than_the_missing_messages() -> None:
    error = error_of(respond_json({"error": "overloaded"}), observed_messages="trace")
    assert_unreadable(error, "overloaded")


# --- streams ----------------------------------------------------------------------------------------


def stream(*chunks: Any, **options: Any) -> AgentReply:
    return reply_of(sse(*chunks, **options), streaming=True)


def streamed_calls(*pieces: dict[str, Any]) -> list[Any]:
    chunks = [delta(tool_calls=[piece]) for piece in pieces]
    return list(stream(*chunks, delta(finish_reason="tool_calls")).tool_calls)


def piece(name: str | None = None, arguments: Any = None, **fields: Any) -> dict[str, Any]:
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    return {**fields, "function": function}


def call(name: str, arguments: Any, **fields: Any) -> dict[str, Any]:
    return {**fields, "function": {"name": name, "arguments": arguments}}


USAGE = {"prompt_tokens": 1, "completion_tokens": 2}


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 100_000])
def test_a_streamed_answer_however_it_is_split(size: int) -> None:
    reply = stream(
        delta(role="assistant"),
        delta("Grüß"),
        delta(""),
        delta(" dich 😀"),
        delta(finish_reason="stop"),
        {"choices": [], "usage": USAGE},
        size=size,
    )
    assert (reply.text, reply.usage, reply.extra) == ("Grüß dich 😀", USAGE, {})
    assert reply.latency_ms is not None


def test_comments_line_ends_and_missing_blanks() -> None:
    data = json.dumps(delta("Hi"))
    end = json.dumps(delta(finish_reason="stop"))
    body = f": ping\r\n\r\ndata:{data}\r\n\r\nevent: x\r\ndata: {data}\r\n\r\ndata: {end}\ndata: [DONE]"
    assert reply_of(chunked([body.encode()]), streaming=True).text == "HiHi"


def test_an_event_of_several_lines() -> None:
    lines = json.dumps(delta("Hi", finish_reason="stop"), indent=1).split("\n")
    body = "".join(f"data: {line}\n" for line in lines) + "\n"
    assert reply_of(chunked([body.encode()]), streaming=True).text == "Hi"


def test_a_server_that_ignores_stream() -> None:
    assert reply_of(chat("whole"), streaming=True).text == "whole"


def test_a_server_that_streams_unasked() -> None:
    assert reply_of(sse(delta("Hi", finish_reason="stop"))).text == "Hi"


def test_only_the_first_choice_counts() -> None:
    other = {"choices": [{"index": 1, "delta": {"content": "no"}, "finish_reason": "length"}]}
    assert stream(other, delta("yes"), other, delta(finish_reason="stop")).text == "yes"


def test_done_is_enough_of_an_end() -> None:
    assert stream(delta("a"), delta("b")).text == "ab"


def test_a_finish_reason_is_enough_of_an_end() -> None:
    assert stream(delta("a", finish_reason="stop"), done=False).text == "a"


def test_a_stream_that_is_cut_off() -> None:
    assert_unreadable(error_of(sse(delta("The ans"), done=False), streaming=True), "cut off", "The ans")
    cut = sse(delta("The ans"), delta(finish_reason="length"))
    assert_unreadable(error_of(cut, streaming=True), "reply was cut off (finish_reason=length)")


@pytest.mark.parametrize("end", ["drop", "reset"])
def test_a_stream_that_is_dropped_is_not_the_agents_fault(end: str) -> None:
    error = error_of(sse(delta("The ans"), done=False, end=end), streaming=True)
    assert isinstance(error, InfrastructureError)


def test_a_stream_that_stalls_is_the_agents_timeout() -> None:
    error = error_of(sse(delta("The ans"), done=False, end="hang"), streaming=True, timeout_s=0.2)
    assert isinstance(error, AgentError)
    assert error.kind == "timeout"


def test_an_error_in_the_stream() -> None:
    broken = sse(delta("a"), {"error": {"message": "overloaded"}})
    assert_unreadable(error_of(broken, streaming=True), "error", "overloaded")


@pytest.mark.parametrize(("payload", "word"), [("{oops", "not JSON"), ("[]", "not an object")])
def test_an_event_that_is_no_object(payload: str, word: str) -> None:
    assert_unreadable(error_of(sse(delta("a"), payload), streaming=True), word, payload)


def test_a_stream_without_choices() -> None:
    assert_unreadable(error_of(sse({"choices": [], "usage": USAGE}), streaming=True), "no choices")


def test_unknown_fields_of_deltas_are_put_together() -> None:
    reply = stream(
        delta("", reasoning_content="think", audit=[1], level=1),
        delta("Yes", reasoning_content="ing", audit=[2], level=2),
        delta(refusal="", finish_reason="stop"),
    )
    assert reply.text == "Yes"
    assert reply.extra == {"reasoning_content": "thinking", "audit": [1, 2], "level": 2}


def test_a_streamed_refusal() -> None:
    assert stream(delta(refusal="I will"), delta(refusal=" not.", finish_reason="stop")).text == "I will not."


def test_content_in_parts() -> None:
    part = [{"type": "text", "text": "a"}]
    assert stream(delta(part), delta(part, finish_reason="stop")).text == "aa"


def test_a_whole_message_at_the_end_of_a_stream() -> None:
    last = {
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "ab"}, "finish_reason": "stop"}]
    }
    assert stream(delta("a"), delta("b"), last).text == "ab"


def test_observed_messages_in_a_stream() -> None:
    chunks = (delta("done", finish_reason="stop"), {"choices": [], "trace": TRACE})
    assert reply_of(sse(*chunks), streaming=True, observed_messages="trace").messages == TRACE


def test_tool_calls_by_index() -> None:
    assert streamed_calls(
        piece("get_weather", "", index=0, id="a", type="function"),
        piece("get_time", "", index=1, id="b", type="function"),
        piece(arguments='{"city":', index=0),
        piece(arguments="{}", index=1, id=None),
        piece(arguments=' "Rome"}', index=0, id=""),
    ) == [
        call("get_weather", '{"city": "Rome"}', id="a", type="function"),
        call("get_time", "{}", id="b", type="function"),
    ]


@pytest.mark.parametrize(
    "pieces",
    [
        [piece("get_", index=0, id="a"), piece("weather", "{}", index=0)],
        [piece("get_weather", "{", index=0, id="a"), piece("get_weather", "}", index=0, id="a")],
        [piece("get_", index=0, id="a"), piece("get_weather", "{}", index=0, id="a")],
        [piece("get_weather", "{", index=0, id="a"), piece(arguments="}", index=0, id="another")],
        [piece("get_weather", "{", id="a"), piece(arguments="}")],
        [piece("get_weather", "{", id="a"), piece(arguments="}", id="a")],
    ],
    ids=["in pieces", "repeated", "growing", "id in each", "no index", "no index, same id"],
)
def test_one_tool_call_in_pieces(pieces: list[dict[str, Any]]) -> None:
    assert streamed_calls(*pieces) == [call("get_weather", "{}", id="a")]


@pytest.mark.parametrize(
    ("first", "second"),
    [({"index": 0, "id": "a"}, {"index": 0, "id": "b"}), ({"id": "a"}, {"id": "b"}), ({}, {})],
    ids=["all index 0", "no index", "neither index nor id"],
)
def test_two_tool_calls_that_look_like_one(first: dict[str, Any], second: dict[str, Any]) -> None:
    calls = streamed_calls(piece("f", '{"n": 1}', **first), piece("f", '{"n": 2}', **second))
    ids = [{"id": fields["id"]} if "id" in fields else {} for fields in (first, second)]
    assert calls == [call("f", '{"n": 1}', **ids[0]), call("f", '{"n": 2}', **ids[1])]


def test_arguments_as_an_object_and_fields_that_we_do_not_know() -> None:
    assert streamed_calls(piece("f", {"n": 1}, index=0, id="a", extra_content={"sig": "s"})) == [
        call("f", {"n": 1}, id="a", extra_content={"sig": "s"})
    ]


def test_a_streamed_legacy_function_call() -> None:
    first, second = {"name": "f", "arguments": "{"}, {"arguments": "}"}
    reply = stream(
        delta(function_call=first), delta(function_call=second), delta(finish_reason="function_call")
    )
    assert reply.tool_calls == [{"type": "function", "function": {"name": "f", "arguments": "{}"}}]


def test_a_streamed_tool_call_that_is_no_object() -> None:
    assert_unreadable(error_of(sse(delta(tool_calls=["x"])), streaming=True), "tool call")


# --- conversations share nothing --------------------------------------------------------------------


def test_conversations_side_by_side_stay_apart() -> None:
    def echo(wire: Any) -> None:
        chat(wire.request.json["messages"][-1]["content"])(wire)

    async def main(url: str) -> list[str | None]:
        transport = Transport()
        agents = HttpAgents(AgentConfig(endpoint=url), transport=transport)
        texts: list[str | None] = [None] * 20

        async def converse(number: int) -> None:
            agent = agents.make(SAMPLE)
            for turn in range(3):
                message = {"role": "user", "content": f"{number}.{turn}"}
                reply = await agent.reply([message], TurnTools(turn, (), _no_call))
                assert reply.text == f"{number}.{turn}"
            texts[number] = reply.text

        async with anyio.create_task_group() as group:
            for number in range(20):
                group.start_soon(converse, number)
        await transport.aclose()
        return texts

    with LocalServer(echo) as server:
        assert anyio.run(main, server.url) == [f"{number}.2" for number in range(20)]
    assert server.connections <= 20
