"""HTTP agents that are down, slow, rude or broken: real servers, one run, and whose fault each one is."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pytest

from tests.support.http_runs import HttpAgent, HttpRun, error_of, run_http_agents
from tests.support.kit import Project, failed_checks
from tests.support.local_servers import (
    Behaviour,
    Request,
    Wire,
    answer,
    chat,
    chunked,
    closed_port,
    completion,
    delta,
    drop,
    hang,
    raw,
    reset,
    respond,
    respond_json,
    sse,
)


class Bad(NamedTuple):
    """A server, the end of the conversation, and what the error names."""

    server: Behaviour
    fact: str
    stop: str = "agent_error"


def calls(arguments: Any = "{}", *, times: int = 1, **fields: Any) -> Behaviour:
    """Asks for a tool, and answers once it has a result."""
    call = {"type": "function", "id": "c1", "function": {"name": "t", "arguments": arguments}} | fields
    call = {key: value for key, value in call.items() if value is not None}
    asks = chat(None, finish_reason="tool_calls", tool_calls=[call] * times)
    return answer(lambda request: chat("ok") if _has_result(request) else asks)


def _has_result(request: Request) -> bool:
    return any(message["role"] == "tool" for message in request.json["messages"])


def drip(wire: Wire) -> None:
    """A byte now and then, for ever."""
    wire.head(200, {"Content-Type": "application/json", "Transfer-Encoding": "chunked"})
    while not wire.stopped.wait(0.05):
        wire.write(b"1\r\n \r\n")


def plain(value: str | bytes) -> Behaviour:
    return respond(value, headers={"Content-Type": "application/json"})


def status(code: int, body: str = "", **headers: str) -> Behaviour:
    return respond(body, status=code, headers=headers)


def asks(call: Any) -> Behaviour:
    return chat(None, tool_calls=[call])


TIMEOUT = "agent_timeout"
FAILED = {
    **{f"status {code}": Bad(status(code, "oops"), f"{code}: oops") for code in (400, 404, 500)},
    "status 422": Bad(status(422, '{"detail": "no"}'), '422: {"detail": "no"}'),
    "redirect": Bad(status(302, Location="/x?key=k"), "302"),
    "empty body": Bad(plain(""), "empty"),
    "web page": Bad(respond("<html>Hello"), "<html>Hello"),
    "half of JSON": Bad(plain('{"choices": ['), "JSON"),
    "more than JSON": Bad(plain(json.dumps(completion("ok")) + "!"), "JSON"),
    "very deep JSON": Bad(plain("[" * 200_000), "JSON"),
    "a list": Bad(respond_json([1]), "object"),
    "null": Bad(respond_json(None), "object"),
    "no choices": Bad(respond_json({"choices": []}), "choices"),
    "choices are a number": Bad(respond_json({"choices": 5}), "choices"),
    "choice is null": Bad(respond_json({"choices": [None]}), "choices"),
    "no message": Bad(respond_json({"choices": [{}]}), "message"),
    "error in a 200": Bad(respond_json({"error": {"message": "overloaded"}}), "overloaded"),
    "cut by length": Bad(chat("half", finish_reason="length"), "finish_reason=length"),
    "content is a number": Bad(chat(5), "int"),
    "content is an object": Bad(chat({"a": 1}), "dict"),
    "calls are an object": Bad(chat(None, tool_calls={"a": 1}), "tool_calls"),
    "call is a number": Bad(asks(1), "int"),
    "call without a name": Bad(asks({"id": "1"}), "name"),
    "endless calls": Bad(asks({"function": {"name": "t", "arguments": "{}"}}), "50", "tool_loop"),
    "no HTTP": Bad(raw(b"\0\1\2 not http\r\n\r\n"), "read"),
    "broken compression": Bad(respond(b"not gzip", headers={"Content-Encoding": "gzip"}), "read"),
    "hangs": Bad(hang(), "0.5 s", TIMEOUT),
    "hangs in the body": Bad(chunked([b'{"choi'], end="hang"), "0.5 s", TIMEOUT),
    "drips": Bad(drip, "0.5 s", TIMEOUT),
    "stream without an end": Bad(sse(delta("half"), done=False), "half"),
    "stream of no JSON": Bad(sse("oops"), "JSON"),
    "stream of numbers": Bad(sse(5), "object"),
    "stream with an error": Bad(sse(delta("half"), {"error": {"message": "boom"}}), "boom"),
    "stream that hangs": Bad(sse(delta("half"), done=False, end="hang"), "0.5 s", TIMEOUT),
    "stream of nothing": Bad(sse(), "choices"),
}  # fmt: skip
BUSY = {"Retry-After": "0"}
NOT_THE_AGENT = {
    "status 401": Bad(status(401, "bad key"), "401"),
    "status 403": Bad(status(403), "403"),
    "status 429": Bad(status(429, **BUSY), "agent_concurrency"),
    "status 503": Bad(status(503, "busy", **BUSY), "503: busy"),
    "drops": Bad(drop(), "dropped"),
    "resets": Bad(reset(), "dropped"),
    "resets in the body": Bad(chunked([b'{"choi'], end="reset"), "dropped"),
    "drops the stream": Bad(sse(delta("half"), done=False, end="drop"), "dropped"),
}
ELSEWHERE = {
    "refused": (f"http://127.0.0.1:{closed_port()}/", "refused"),
    "unknown host": ("http://nohost.invalid/", "unknown"),
    "no TLS": ("https://127.0.0.1:PORT/", "TLS"),
}
USAGE = {"prompt_tokens": 1, "completion_tokens": 1}


def nested(depth: int) -> Any:
    value: Any = {}
    for _ in range(depth):
        value = {"a": value}
    return value


READ_ANYWAY: dict[str, tuple[Behaviour, Any]] = {
    "text/plain": (respond(json.dumps(completion("ok"))), []),
    "a stream that nobody asked for": (sse(delta("ok"), delta(finish_reason="stop")), []),
    "no stream though asked": (chat("ok"), []),
    "byte order mark": (plain(b"\xef\xbb\xbf" + json.dumps(completion("ok")).encode()), []),
    "half a surrogate pair": (plain(json.dumps(completion("ok \ud800"))), []),
    "odd usage": (respond_json({**completion("ok"), "usage": {"prompt_tokens": "many"}}), []),
    "5 MB": (chat("ok" + "y" * 5_000_000), []),
    "arguments as an object": (calls({"a": 1}), [({"a": 1}, None)]),
    "arguments in Python": (calls("{'a': True}"), [(None, "{'a': True}")]),
    "arguments cut": (calls('{"a":'), [(None, '{"a":')]),
    "arguments a list": (calls("[1]"), [(None, "[1]")]),
    "arguments a number": (calls(5), [(None, "5")]),
    "arguments with NaN": (calls('{"a": NaN}'), [(None, '{"a": NaN}')]),
    "arguments with infinity": (calls('{"a": 1e999}'), [(None, '{"a": 1e999}')]),
    "arguments empty": (calls(""), [({}, None)]),
    "no id": (calls(id=None), [({}, None)]),
    "id used twice": (calls(times=2), [({}, None), ({}, None)]),
    "odd number of calls": (respond_json({**completion("ok"), "usage": {**USAGE, "calls": "x"}}), []),
    "a deep field": (respond_json(completion("ok", more=nested(400))), []),
    "502, then an answer": (status(502, **BUSY), []),
}  # fmt: skip
LARGE = {"large": Bad(chat("x" * 11 * 2**20), "10 MiB")}


def agent(name: str, *behaviours: Behaviour, limit_s: float = 30, endpoint: str = "") -> HttpAgent:
    """One whose name has the word is asked for a stream."""
    streaming = str("stream" in name).lower()
    scenario = "turns: [hello], checks: none, tools: {t: {returns: 1}}"
    options = f"timeout_s: {limit_s}, streaming: {streaming}"
    return HttpAgent(options, behaviours, "", scenario, endpoint)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> HttpRun:
    rows = {
        name: agent(name, bad.server, limit_s=0.5 if bad.stop == TIMEOUT else 30)
        for name, bad in (FAILED | LARGE | NOT_THE_AGENT).items()
    }
    rows |= {name: agent(name, server) for name, (server, _) in READ_ANYWAY.items()}
    rows["502, then an answer"] = agent("", READ_ANYWAY["502, then an answer"][0], chat("ok"))
    rows |= {name: agent(name, endpoint=endpoint) for name, (endpoint, _) in ELSEWHERE.items()}
    return run_http_agents(Project(tmp_path_factory.mktemp("http")), rows)


@pytest.mark.parametrize("name", FAILED | LARGE)
def test_a_broken_agent_fails(ran: HttpRun, name: str) -> None:
    sample, bad = ran.samples[name], (FAILED | LARGE)[name]
    assert (sample["verdict"], sample["fault"], sample["stop"]) == ("failed", "agent", bad.stop)
    assert bad.fact in error_of(sample)
    assert (0, "no_error") in failed_checks(sample) or (None, "no_error") in failed_checks(sample)


@pytest.mark.parametrize("name", NOT_THE_AGENT | ELSEWHERE)
def test_a_fault_of_the_network_or_the_provider_is_inconclusive(ran: HttpRun, name: str) -> None:
    sample = ran.samples[name]
    found = (sample["verdict"], sample["fault"], sample["stop"])
    assert found == ("inconclusive", "infrastructure", "infrastructure")
    assert (NOT_THE_AGENT | ELSEWHERE)[name][1] in error_of(sample)
    assert not failed_checks(sample)


@pytest.mark.parametrize("name", READ_ANYWAY)
def test_oddities_are_read_and_kept_as_evidence(ran: HttpRun, name: str) -> None:
    sample = ran.samples[name]
    assert sample["verdict"] == "passed"
    (turn,) = sample["turns"]
    assert turn["agent"].startswith("ok")
    assert [(c["args"], c.get("raw_args")) for c in turn["tool_calls"]] == READ_ANYWAY[name][1]


def test_only_what_may_help_is_tried_again(ran: HttpRun) -> None:
    """A request, and then the conversation that is lost nevertheless."""
    count = {name: len(requests) for name, requests in ran.asked.items()}
    assert (count["status 503"], count["status 429"], count["502, then an answer"]) == (6, 6, 2)
    once = [*FAILED.keys() - {"endless calls"}, "status 401", "status 403", "drops", "resets"]
    assert {name: count[name] for name in once} == dict.fromkeys(once, 1)


def test_the_journal_has_the_end_of_each_sample(ran: HttpRun) -> None:
    assert ran.done.code == 1
    (path,) = (ran.project.root / ".agenteval/runs").glob("*/events.jsonl")
    journal = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    finished = [event for event in journal if event["type"] == "sample_finished" and "again" not in event]
    assert len(finished) == len(ran.samples)
    assert journal[-1]["type"] == "run_finished"  # the deep field did not switch it off


def test_only_faults_that_are_not_the_agents_leave_the_run_inconclusive(project: Project) -> None:
    rows = {"status 401": agent("", status(401)), "fine": agent("", chat("ok"))}
    assert run_http_agents(project, rows).done.code == 3
