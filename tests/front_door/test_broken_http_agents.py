"""HTTP agents that are down, slow, rude or broken: real servers, one run, and whose fault each one is."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pytest

from tests.support.kit import Done, Project, failed_checks
from tests.support.local_servers import (
    Behaviour,
    LocalServer,
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

AGENT, INFRASTRUCTURE = ("failed", "agent"), ("inconclusive", "infrastructure")


class Bad(NamedTuple):
    """A server, and what must become of the sample."""

    server: Behaviour
    stop: str
    says: str = ""


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


def no_reply(value: Any) -> Behaviour:
    return respond_json(value)


ERROR, TIMEOUT = "agent_error", "agent_timeout"
FAILED = {
    **{
        f"status {s}": Bad(respond("oops", status=s), ERROR, f"HTTP status {s}: oops")
        for s in (400, 404, 500)
    },
    "status 422": Bad(respond('{"detail": "no"}', status=422), ERROR, 'HTTP status 422: {"detail": "no"}'),
    "redirect": Bad(respond("", status=302, headers={"Location": "/x?key=k"}), ERROR, "are not followed"),
    "empty body": Bad(plain(""), ERROR, "the reply is empty"),
    "web page": Bad(respond("<html>Hello"), ERROR, "is a web page"),
    "half of JSON": Bad(plain('{"choices": ['), ERROR, "is not JSON"),
    "more than JSON": Bad(plain(json.dumps(completion("ok")) + "!"), ERROR, "is not JSON"),
    "very deep JSON": Bad(plain("[" * 200_000), ERROR, "is not JSON"),
    "a list": Bad(no_reply([1]), ERROR, "not an object"),
    "null": Bad(no_reply(None), ERROR, "not an object"),
    "no choices": Bad(no_reply({"choices": []}), ERROR, "no choices"),
    "choices are a number": Bad(no_reply({"choices": 5}), ERROR, "no choices"),
    "choice is null": Bad(no_reply({"choices": [None]}), ERROR, "no choices"),
    "no message": Bad(no_reply({"choices": [{}]}), ERROR, "no message"),
    "error in a 200": Bad(no_reply({"error": {"message": "overloaded"}}), ERROR, "overloaded"),
    "cut by length": Bad(chat("half", finish_reason="length"), ERROR, "cut off"),
    "content is a number": Bad(chat(5), ERROR, "message content is int"),
    "content is an object": Bad(chat({"a": 1}), ERROR, "message content is dict"),
    "calls are an object": Bad(chat(None, tool_calls={"a": 1}), ERROR, "tool_calls that are not a list"),
    "call is a number": Bad(chat(None, tool_calls=[1]), ERROR, "a tool call is int"),
    "call without a name": Bad(chat(None, tool_calls=[{"id": "1"}]), ERROR, "without a name"),
    "endless calls": Bad(
        chat(None, tool_calls=[{"function": {"name": "t", "arguments": "{}"}}]), "tool_loop", "50 replies"
    ),
    "no HTTP": Bad(raw(b"\0\1\2 not http\r\n\r\n"), ERROR, "cannot be read"),
    "broken compression": Bad(
        respond(b"not gzip", headers={"Content-Encoding": "gzip"}), ERROR, "cannot be read"
    ),
    "hangs": Bad(hang(), TIMEOUT, "deadline"),
    "hangs in the body": Bad(chunked([b'{"choi'], end="hang"), TIMEOUT, "deadline"),
    "drips": Bad(drip, TIMEOUT, "deadline"),
    "stream without an end": Bad(sse(delta("half"), done=False), ERROR, "cut off"),
    "stream of no JSON": Bad(sse("oops"), ERROR, "is not JSON"),
    "stream of numbers": Bad(sse(5), ERROR, "not an object"),
    "stream with an error": Bad(sse(delta("half"), {"error": {"message": "boom"}}), ERROR, "boom"),
    "stream that hangs": Bad(sse(delta("half"), done=False, end="hang"), TIMEOUT, "deadline"),
    "stream of nothing": Bad(sse(), ERROR, "no choices"),
}
BUSY = {"Retry-After": "0"}
NOT_THE_AGENT = {
    "status 401": Bad(respond("bad key", status=401), "infrastructure", "check the key"),
    "status 403": Bad(respond("", status=403), "infrastructure", "check the key"),
    "status 429": Bad(respond("", status=429, headers=BUSY), "infrastructure", "agent_concurrency"),
    "status 503": Bad(respond("busy", status=503, headers=BUSY), "infrastructure", "HTTP status 503: busy"),
    "drops": Bad(drop(), "infrastructure", "dropped"),
    "resets": Bad(reset(), "infrastructure", "dropped"),
    "resets in the body": Bad(chunked([b'{"choi'], end="reset"), "infrastructure", "dropped"),
    "drops the stream": Bad(sse(delta("half"), done=False, end="drop"), "infrastructure", "dropped"),
}
ELSEWHERE = {
    "refused": "connection refused",
    "unknown host": "the host name is unknown",
    "no TLS": "no secure connection",
}
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
    "502, then an answer": (
        answer(lambda request: respond("", status=502, headers=BUSY) if _is_first(request) else chat("ok")),
        [],
    ),
}
WRONG = {
    "usage with odd calls": "usage.calls that is no number becomes agenteval's own error",
    "very deep unknown field": "an unknown field nested deeply switches the journal off",
}
_seen: set[str] = set()


def _is_first(request: Request) -> bool:
    first = request.path not in _seen
    _seen.add(request.path)
    return first


def nested(depth: int) -> Any:
    value: Any = {}
    for _ in range(depth):
        value = {"a": value}
    return value


class Ran(NamedTuple):
    done: Done
    samples: dict[str, Any]
    journal: list[dict[str, Any]]
    asked: dict[str, int]


def run_against(project: Project, servers: dict[str, Behaviour], elsewhere: dict[str, str]) -> Ran:
    """One run with an agent for each server; those whose name begins with "no stream" or "stream" are
    asked for a stream."""
    names = list(servers)
    with LocalServer(answer(lambda r: servers[names[int(r.path.strip("/"))]])) as server:
        urls = {name: f"{server.address}/{number}" for number, name in enumerate(names)} | elsewhere
        if "no TLS" in urls:
            urls["no TLS"] = f"https://127.0.0.1:{server.port}/"
        agents, scenarios = ["metrics: []", "agents:"], ["scenarios:"]
        for number, (name, url) in enumerate(urls.items()):
            limit = 0.5 if FAILED.get(name, Bad(drop(), "")).stop == TIMEOUT else 30
            streaming = str("stream" in name).lower()
            agents.append(f"  a{number}: {{endpoint: '{url}', timeout_s: {limit}, streaming: {streaming}}}")
            scenarios.append(f"  - {{id: '{name}', agent: a{number}, turns: [hello], checks: none,")
            scenarios.append("     tools: {t: {returns: 1}}}")
        project.write("agenteval.yaml", "\n".join(agents))
        project.scenarios("\n".join(scenarios))
        done = project.run()
        assert not server.errors
        asked = [int(request.path.strip("/")) for request in server.requests if request.method == "POST"]
    (journal,) = (project.root / ".agenteval/runs").glob("*/events.jsonl")
    return Ran(
        done,
        {s["id"]: s["samples"][0] for s in project.results()["scenarios"]},
        [json.loads(line) for line in journal.read_text("utf-8").splitlines()],
        {name: asked.count(number) for number, name in enumerate(names)},
    )


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    servers = {name: bad.server for name, bad in (FAILED | NOT_THE_AGENT).items()}
    servers |= {name: server for name, (server, _) in READ_ANYWAY.items()}
    servers["usage with odd calls"] = respond_json(
        {**completion("ok"), "usage": {"prompt_tokens": 1, "completion_tokens": 1, "calls": "x"}}
    )
    elsewhere = {"refused": f"http://127.0.0.1:{closed_port()}/", "unknown host": "http://nohost.invalid/"}
    project = Project(tmp_path_factory.mktemp("http"))
    return run_against(project, servers, elsewhere | {"no TLS": ""})


@pytest.mark.parametrize("name", FAILED)
def test_the_agents_fault(ran: Ran, name: str) -> None:
    sample = ran.samples[name]
    assert (sample["verdict"], sample["fault"], sample["stop"]) == (*AGENT, FAILED[name].stop)
    assert FAILED[name].says in sample["turns"][0]["error"]
    assert (0, "no_error") in failed_checks(sample) or (None, "no_error") in failed_checks(sample)


@pytest.mark.parametrize("name", {name: bad.says for name, bad in NOT_THE_AGENT.items()} | ELSEWHERE)
def test_not_the_agents_fault(ran: Ran, name: str) -> None:
    sample = ran.samples[name]
    assert (sample["verdict"], sample["fault"], sample["stop"]) == (*INFRASTRUCTURE, "infrastructure")
    says = ELSEWHERE.get(name) or NOT_THE_AGENT[name].says
    assert says in sample["turns"][0]["error"]
    assert not failed_checks(sample)


@pytest.mark.parametrize("name", READ_ANYWAY)
def test_oddities_are_read_and_kept_as_evidence(ran: Ran, name: str) -> None:
    sample = ran.samples[name]
    assert sample["verdict"] == "passed"
    (turn,) = sample["turns"]
    assert turn["agent"].startswith("ok")
    assert [(c["args"], c.get("raw_args")) for c in turn["tool_calls"]] == READ_ANYWAY[name][1]


def test_only_what_may_help_is_tried_again(ran: Ran) -> None:
    """A request, and then the conversation that is lost nevertheless."""
    assert {name: ran.asked[name] for name in ("status 503", "status 429")} == {
        "status 503": 6,
        "status 429": 6,
    }
    assert ran.asked["502, then an answer"] == 2
    once = [*FAILED.keys() - {"endless calls"}, "status 401", "status 403", "drops", "resets"]
    assert {name: ran.asked[name] for name in once} == dict.fromkeys(once, 1)


def test_the_run_as_a_whole(ran: Ran) -> None:
    assert ran.done.code == 1
    assert "switched off" not in ran.done.err
    finished = [event for event in ran.journal if event["type"] == "sample_finished" and "again" not in event]
    assert len(finished) == len(ran.samples)


def test_odd_usage_is_no_error_of_ours(ran: Ran) -> None:
    assert ran.samples["usage with odd calls"]["verdict"] == "passed"


def test_a_reply_that_is_too_large_is_refused(project: Project) -> None:
    over = run_against(project, {"large": chat("x" * 11 * 2**20)}, {})
    assert over.samples["large"]["fault"] == "agent"
    assert "larger than 10 MiB" in over.samples["large"]["turns"][0]["error"]


def test_a_deep_field_does_not_switch_the_journal_off(project: Project) -> None:
    deep = run_against(project, {"deep": respond_json(completion("ok", more=nested(400)))}, {})
    assert "switched off" not in deep.done.err
    assert deep.journal[-1]["type"] == "run_finished"


def test_only_faults_that_are_not_the_agents_leave_the_run_inconclusive(project: Project) -> None:
    servers = {"status 401": respond("", status=401), "fine": chat("ok")}
    assert run_against(project, servers, {}).done.code == 3
