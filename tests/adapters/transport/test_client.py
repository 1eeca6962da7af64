"""The transport against real servers: pooling, deadlines, retries, and whose fault it is."""

from __future__ import annotations

import gzip
import itertools
import json
import socket
import threading
import time
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from email.utils import formatdate
from pathlib import Path
from typing import Any
from urllib.parse import quote

import anyio
import pytest

from agenteval.adapters.transport import client as transport_module
from agenteval.adapters.transport.client import HttpReply, RequestPolicy, Transport
from agenteval.adapters.transport.http_faults import FaultKind, HttpFault
from agenteval.adapters.transport.retry import Retry, RetryPolicy
from agenteval.core.errors import AgentError, AgentevalError, AuthorError, InfrastructureError
from agenteval.messages.sse import SseParser
from tests.support.local_servers import (
    LocalServer,
    after,
    answer,
    chunked,
    closed_port,
    drop,
    hang,
    plain_environment,
    raw,
    reset,
    respond,
    respond_json,
    sse,
)


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    plain_environment(monkeypatch, tmp_path)


class Waits:
    """A policy that notes the waits instead of waiting."""

    def __init__(self, **settings: Any) -> None:
        self.seconds: list[float] = []
        self.told: list[Retry] = []
        self.policy = RetryPolicy(**{"sleep": self._sleep, "jitter": lambda: 0.0, **settings})

    async def _sleep(self, seconds: float) -> None:
        self.seconds.append(seconds)


def post(
    url: str,
    *,
    times: int = 1,
    waits: Waits | None = None,
    headers: Mapping[str, str] | None = None,
    timeout_s: float = 20,
    **rules: Any,
) -> HttpReply:
    """The last of some replies, from one transport."""

    async def main() -> HttpReply:
        noted = waits or Waits()
        transport = Transport(retry=noted.policy)
        known = RequestPolicy(timeout_s, on_retry=noted.told.append, **rules)
        try:
            for _ in range(times):
                reply = await transport.exchange(url, {"n": 1}, known, headers=headers)
            return reply
        finally:
            await transport.aclose()

    return anyio.run(main)


def fault_of(url: str, **options: Any) -> AgentevalError:
    with pytest.raises(AgentevalError) as caught:
        post(url, **options)
    return caught.value


@contextmanager
def silent_port() -> Iterator[int]:
    """A port that takes connections and never says anything."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(8)
        yield listener.getsockname()[1]


# --- requests and replies ---------------------------------------------------------------------------


def test_body_headers_and_reply_go_through() -> None:
    with LocalServer(respond_json({"a": "ü"}, headers={"X-Thing": "7"})) as server:
        reply = post(server.url, headers={"Authorization": "Bearer k", "Accept": "x/y"})
    request = server.requests[0]
    assert (request.method, request.path, request.json) == ("POST", "/v1/chat/completions", {"n": 1})
    assert request.headers["content-type"] == "application/json"
    assert (request.headers["authorization"], request.headers["accept"]) == ("Bearer k", "x/y")
    assert (reply.status, json.loads(reply.text), reply.headers["x-thing"]) == (200, {"a": "ü"}, "7")
    assert reply.events is None


def test_a_lone_surrogate_in_the_body_is_sent() -> None:
    async def main(url: str) -> None:
        transport = Transport()
        await transport.exchange(url, {"text": "\ud83d"}, RequestPolicy(20))
        await transport.aclose()

    with LocalServer(respond_json({})) as server:
        anyio.run(main, server.url)
    assert server.requests[0].json == {"text": "\ud83d"}


def test_connections_are_used_again() -> None:
    with LocalServer(respond_json({})) as server:
        post(server.url, times=3)
    assert (len(server.requests), server.connections) == (3, 1)


def test_a_stream_read_to_its_done_leaves_the_connection_to_use_again() -> None:
    with LocalServer(sse("{}")) as server:
        post(server.url, times=3)
    assert (len(server.requests), server.connections) == (3, 1)


def test_many_requests_are_in_flight_at_once() -> None:
    many, all_here = 120, threading.Event()

    def behave(_: Any) -> Any:
        if len(server.requests) == many:
            all_here.set()
        return after(all_here, respond_json({}))

    async def main() -> None:
        transport = Transport()
        async with anyio.create_task_group() as group:
            for _ in range(many):
                group.start_soon(lambda: transport.exchange(server.url, {}, RequestPolicy(20)))
        await transport.aclose()

    with LocalServer(answer(behave)) as server:
        anyio.run(main)
    assert server.connections == many


def test_cookies_are_not_kept() -> None:
    with LocalServer(respond_json({}, headers={"Set-Cookie": "session=of-a; Path=/"})) as server:
        post(server.url, times=2)
    assert "cookie" not in server.requests[1].headers


def test_gzip_is_read() -> None:
    body = gzip.compress(b'{"a": 1}')
    with LocalServer(respond(body, headers={"Content-Encoding": "gzip"})) as server:
        assert post(server.url).text == '{"a": 1}'


def test_closing_twice_is_fine() -> None:
    async def main() -> None:
        transport = Transport()
        await transport.aclose()
        await transport.aclose()

    anyio.run(main)


# --- whose fault it is ------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [401, 403, 407, 429, 502, 503, 504, 529])
def test_statuses_that_are_not_the_agents_fault(status: int) -> None:
    with LocalServer(respond("no", status=status)) as server:
        error = fault_of(server.url)
    assert isinstance(error, InfrastructureError)
    assert f"HTTP status {status}: no" in str(error)


@pytest.mark.parametrize("status", [300, 304, 400, 404, 405, 408, 413, 418, 422, 425, 500, 501, 599])
def test_statuses_that_are_the_agents_fault(status: int) -> None:
    with LocalServer(respond("", status=status)) as server:
        error = fault_of(server.url)
    assert isinstance(error, AgentError)
    assert error.kind == "http_status"
    assert f"HTTP status {status}" in str(error)


def test_404_hints_at_the_usual_causes() -> None:
    with LocalServer(respond_json({"detail": "Not Found"}, status=404)) as server:
        text = str(fault_of(server.url))
    assert text.startswith(server.url)
    assert "/v1" in text
    assert "model" in text
    assert '{"detail": "Not Found"}' in text


def test_a_redirect_is_not_followed_and_its_target_is_named() -> None:
    with LocalServer(respond_json({})) as target:
        there = {"Location": f"{target.url}?key=hidden"}
        with LocalServer(respond("", status=307, headers=there)) as server:
            error = fault_of(server.url, headers={"Authorization": "Bearer k"})
    assert target.requests == []
    assert isinstance(error, AgentError)
    assert target.url in str(error)
    assert "hidden" not in str(error)


def test_refused_connections_are_retried_and_then_nobodys_fault() -> None:
    waits = Waits()
    error = fault_of(f"http://127.0.0.1:{closed_port()}/v1", waits=waits)
    assert isinstance(error, InfrastructureError)
    assert "connection refused" in str(error)
    assert waits.seconds == [0.25, 0.5]


def test_a_host_name_that_nobody_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: Any, **__: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    waits = Waits()
    error = fault_of("http://no-such-host.example/v1", waits=waits)
    assert isinstance(error, InfrastructureError)
    assert "host name is unknown" in str(error)
    assert waits.seconds == []


@pytest.mark.parametrize("behaviour", [drop(), reset()], ids=["drop", "reset"])
def test_a_dropped_request_is_never_sent_again(behaviour: Any) -> None:
    with LocalServer(behaviour) as server:
        error = fault_of(server.url)
    assert isinstance(error, InfrastructureError)
    assert "dropped" in str(error)
    assert len(server.requests) == 1


@pytest.mark.parametrize("end", ["drop", "reset"])
def test_a_connection_lost_in_the_middle_of_the_body(end: str) -> None:
    with LocalServer(chunked([b'{"choices": ['], end=end)) as server:
        error = fault_of(server.url)
    assert isinstance(error, InfrastructureError)
    assert "dropped" in str(error)


def test_a_body_shorter_than_its_length_was_dropped() -> None:
    with LocalServer(raw(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}")) as server:
        assert isinstance(fault_of(server.url), InfrastructureError)


def test_a_server_that_speaks_no_http() -> None:
    with LocalServer(raw(b"220 mail.example ESMTP\r\n\r\n")) as server:
        error = fault_of(server.url)
    assert isinstance(error, AgentError)
    assert error.kind == "protocol"


def test_broken_compression() -> None:
    with LocalServer(respond(b"no gzip at all", headers={"Content-Encoding": "gzip"})) as server:
        error = fault_of(server.url)
    assert isinstance(error, AgentError)
    assert error.kind == "protocol"


def test_a_malformed_url_is_the_authors_fault() -> None:
    for url in ("ftp://127.0.0.1/x", "http://[::1/x", "http://127.0.0.1:99999/x", f"http://{'a' * 64}/"):
        assert isinstance(fault_of(url), AuthorError), url


def test_another_server_may_put_the_blame_elsewhere() -> None:
    seen: list[HttpFault] = []

    def judge_of_models(fault: HttpFault) -> AgentevalError:
        seen.append(fault)
        return InfrastructureError("a model's fault")

    with LocalServer(respond('{"param": "temperature"}', status=400)) as server:
        error = fault_of(server.url + "?key=1", classify=judge_of_models)
    assert str(error) == "a model's fault"
    (fault,) = seen
    assert fault._replace(reply=None) == HttpFault(
        FaultKind.STATUS, server.url, '{"param": "temperature"}', 400
    )


# --- deadlines --------------------------------------------------------------------------------------


def test_no_answer_in_time_is_the_agents_timeout() -> None:
    with LocalServer(hang()) as server:
        error = fault_of(server.url, timeout_s=0.2)
    assert isinstance(error, AgentError)
    assert error.kind == "timeout"
    assert "0.2 s" in str(error)
    assert len(server.requests) == 1


def test_the_deadline_is_for_the_whole_reply_not_for_each_piece() -> None:
    def dripping() -> Iterator[bytes]:
        while True:
            yield b" "
            time.sleep(0.02)

    with LocalServer(chunked(dripping())) as server:
        error = fault_of(server.url, timeout_s=0.3)
    assert isinstance(error, AgentError)
    assert error.kind == "timeout"


def test_a_connection_that_does_not_come_about_is_not_the_agents_timeout() -> None:
    with silent_port() as port:
        error = fault_of(f"https://127.0.0.1:{port}/v1", timeout_s=0.2)
    assert isinstance(error, InfrastructureError)
    assert "the connection timed out" in str(error)


def test_a_whole_reply_is_not_lost_to_a_deadline_while_its_connection_is_tidied_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transport_module, "_DRAIN_S", 0.8)
    with LocalServer(sse("{}", end="hang")) as server:
        assert post(server.url, timeout_s=0.5).events == ("{}", "[DONE]")


# --- retries ----------------------------------------------------------------------------------------


def test_retry_after_is_waited_for_and_told() -> None:
    waits = Waits()
    busy = respond("busy", status=429, headers={"Retry-After": "2"})
    with LocalServer(busy, respond_json({"ok": True})) as server:
        reply = post(server.url, waits=waits)
    assert (len(server.requests), reply.text) == (2, '{"ok": true}')
    assert waits.seconds == [2.0]
    [told] = waits.told
    assert (told.where, told.attempt, told.wait_s) == (server.url, 1, 2.0)
    assert told.reason.startswith("HTTP status 429: busy")


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"retry-after-ms": "1500", "Retry-After": "9"}, 1.5),
        ({"Retry-After": "0"}, 0.0),
        ({"Retry-After": formatdate(1_000_007, usegmt=True)}, 7.0),
        ({"Retry-After": formatdate(999_000, usegmt=True)}, 0.0),
        ({"Retry-After": "soon"}, 0.25),
        ({"Retry-After": "-5"}, 0.25),
        ({}, 0.25),
    ],
)
def test_the_forms_of_retry_after(headers: dict[str, str], wait: float) -> None:
    waits = Waits(now=lambda: 1_000_000.0)
    with LocalServer(respond("", status=503, headers=headers), respond_json({})) as server:
        post(server.url, waits=waits)
    assert waits.seconds == [wait]


def test_a_long_retry_after_is_not_waited_for() -> None:
    waits = Waits()
    with LocalServer(respond("daily limit", status=429, headers={"Retry-After": "3600"})) as server:
        error = fault_of(server.url, waits=waits)
    assert isinstance(error, InfrastructureError)
    assert (waits.seconds, len(server.requests)) == ([], 1)


def test_all_waits_together_are_bounded() -> None:
    waits = Waits(retries=9, max_wait_s=60.0)
    with LocalServer(respond("", status=503, headers={"Retry-After": "29"})) as server:
        fault_of(server.url, waits=waits)
    assert waits.seconds == [29.0, 29.0]


@pytest.mark.parametrize("status", [408, 425, 429, 502, 503, 504, 529])
def test_statuses_that_pass_are_retried_twice(status: int) -> None:
    waits = Waits()
    with LocalServer(respond("", status=status)) as server:
        fault_of(server.url, waits=waits)
    assert (len(server.requests), waits.seconds) == (3, [0.25, 0.5])


@pytest.mark.parametrize("status", [302, 400, 401, 403, 404, 405, 422, 500])
def test_other_statuses_are_not_retried(status: int) -> None:
    with LocalServer(respond("", status=status)) as server:
        fault_of(server.url)
    assert len(server.requests) == 1


def test_jitter_spreads_the_waits() -> None:
    for jitter, waits in ((0.0, [0.25, 0.5]), (1.0, [0.5, 1.0])):
        policy = RetryPolicy(jitter=lambda jitter=jitter: jitter)
        assert [policy.wait_s(n, waited_s=0, retry_after_s=None) for n in (1, 2)] == waits
        assert policy.wait_s(1, waited_s=0, retry_after_s=3) == 3 + 0.5 * jitter


def test_latency_is_that_of_the_successful_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]

    async def sleep(seconds: float) -> None:
        clock[0] += 1000  # as if the wait took that long

    monkeypatch.setattr(transport_module.time, "perf_counter", lambda: clock[0])
    with LocalServer(respond("", status=503), respond_json({})) as server:
        reply = post(server.url, waits=Waits(sleep=sleep))
    assert (len(server.requests), reply.latency_ms, clock) == (2, 0, [1000])


# --- size -------------------------------------------------------------------------------------------


def test_an_endless_body_is_given_up() -> None:
    with LocalServer(chunked(itertools.repeat(b"x" * 2**18))) as server:
        error = fault_of(server.url)
    assert isinstance(error, AgentError)
    assert error.kind == "protocol"
    assert "10 MiB" in str(error)


def test_a_small_body_that_unpacks_to_a_big_one_is_given_up() -> None:
    bomb = gzip.compress(bytes(20 * 2**20), 1)
    with LocalServer(respond(bomb, headers={"Content-Encoding": "gzip"})) as server:
        assert "10 MiB" in str(fault_of(server.url))


def test_an_endless_error_page_is_given_up() -> None:
    def behave(wire: Any) -> None:
        wire.head(500, {"Transfer-Encoding": "chunked"})
        while True:
            wire.write(b"5\r\noops \r\n" * 10_000)

    with LocalServer(behave) as server:
        error = fault_of(server.url)
    assert "HTTP status 500: oops oops" in str(error)
    assert len(str(error)) < 700


# --- secrets and control characters -----------------------------------------------------------------


def test_secrets_that_a_server_echoes_are_not_shown() -> None:
    secret = "s3cr/t+key=="
    forms = [secret, quote(secret, safe=""), b64encode(secret.encode()).decode()]
    with LocalServer(respond(f"bad key: {' | '.join(forms)}", status=400)) as server:
        text = str(fault_of(f"{server.url}/{secret}?key={secret}", secrets=(secret,)))
    assert "bad key: *** | *** | ***" in text
    assert not any(form in text for form in forms)


def test_a_secret_at_the_cut_or_with_a_control_character_within_is_not_shown() -> None:
    secret = "sk-0123456789"
    with LocalServer(respond("x" * 492 + secret, status=400)) as server:
        assert "sk-0" not in str(fault_of(server.url, secrets=(secret,)))
    with LocalServer(respond("sk-01234\x0056789", status=400)) as server:
        assert "56789" not in str(fault_of(server.url, secrets=(secret,)))


def test_credentials_in_the_url_are_not_shown() -> None:
    text = str(fault_of(f"http://me:pass@127.0.0.1:{closed_port()}/v1?key=hidden"))
    assert "pass" not in text
    assert "hidden" not in text


def test_quoted_bodies_are_one_harmless_line() -> None:
    with LocalServer(respond("a\r\n::error::b\x1b[2J\u202e" + "c" * 900, status=400)) as server:
        text = str(fault_of(server.url))
    assert text.isprintable()
    assert text.count("c" * 300) == 1
    assert "c" * 500 not in text


# --- the environment --------------------------------------------------------------------------------


def test_a_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with LocalServer(respond_json({})) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.address)
        post("http://agent.example/v1")
    assert proxy.requests[0].path == "http://agent.example/v1"


def test_this_machine_is_reached_without_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{closed_port()}")
    with LocalServer(respond_json({})) as server:
        post(server.url)
        post(server.url.replace("127.0.0.1", "localhost"))
    assert len(server.requests) == 2


def test_a_proxy_that_refuses_is_not_the_agents_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    with LocalServer(respond("", status=407)) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.address)
        error = fault_of("https://agent.example/v1")
    assert proxy.requests[0].method == "CONNECT"
    assert isinstance(error, InfrastructureError)
    assert "HTTPS_PROXY" in str(error)


def test_a_proxy_that_hangs_is_not_the_agents_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    with LocalServer(hang()) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.address)
        error = fault_of("https://agent.example/v1", timeout_s=0.2)
    assert isinstance(error, InfrastructureError)
    assert "the connection timed out" in str(error)


def test_a_private_ca_is_trusted_through_the_environment() -> None:
    with LocalServer(respond_json({}), tls=True) as server:
        assert post(server.url).status == 200


def test_a_certificate_that_nobody_vouches_for(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
    with LocalServer(respond_json({}), tls=True) as server:
        error = fault_of(server.url)
    assert isinstance(error, InfrastructureError)
    assert "SSL_CERT_FILE" in str(error)
    assert server.requests == []


def test_https_to_a_server_that_speaks_http() -> None:
    with LocalServer(respond_json({})) as server:
        error = fault_of(server.url.replace("http:", "https:"))
    assert isinstance(error, InfrastructureError)
    assert "https or http" in str(error)


@pytest.mark.parametrize(("name", "value"), [("SSL_CERT_FILE", "/no/such.pem"), ("HTTP_PROXY", "ftp://x")])
def test_an_environment_that_cannot_work_is_told_at_once(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    transport = Transport()
    scheme = "http" if name == "HTTP_PROXY" else "https"
    with pytest.raises(AuthorError) as caught:
        transport.require(f"{scheme}://agent.example/v1")
    assert name in str(caught.value)
    transport.require("http://localhost:1/v1")  # which needs neither


# --- server-sent events -----------------------------------------------------------------------------

STREAM = (
    '\ufeff: keep-alive\r\n\r\ndata: {"a":1}\r\n\r\nevent: delta\nid: 7\ndata:{"b":"ü😀"}\n\n'
    ": ping\n\ndata: one\rdata: two\r\r\n\ndata\nretry: 10\n\ndata:  spaced\n\ndata: last"
)
PAYLOADS = ['{"a":1}', '{"b":"ü😀"}', "one\ntwo", "", " spaced", "last"]


def test_events_are_read_wherever_the_stream_is_split() -> None:
    whole = STREAM.encode()
    for size in range(1, len(whole) + 1):
        parser = SseParser()
        pieces = (whole[start : start + size] for start in range(0, len(whole), size))
        got = [payload for piece in pieces for payload in parser.feed(piece)]
        assert [*got, *parser.feed(b"", final=True)] == PAYLOADS, size


@pytest.mark.parametrize("kind", ["text/event-stream; charset=utf-8", "text/plain"])
def test_a_stream_is_known_by_its_type_or_its_look(kind: str) -> None:
    with LocalServer(chunked([STREAM.encode()], headers={"Content-Type": kind})) as server:
        assert post(server.url).events == tuple(PAYLOADS)


def test_json_that_holds_something_like_an_event_is_json() -> None:
    body = '{"text": "\\ndata: x"}'
    with LocalServer(respond(body)) as server:
        reply = post(server.url)
    assert (reply.events, reply.text) == (None, body)


def test_nothing_is_waited_for_after_done() -> None:
    with LocalServer(sse('{"a": 1}', end="hang")) as server:
        assert post(server.url).events == ('{"a": 1}', "[DONE]")


def test_a_stream_that_is_dropped() -> None:
    with LocalServer(sse('{"a": 1}', done=False, end="drop")) as server:
        assert isinstance(fault_of(server.url), InfrastructureError)
