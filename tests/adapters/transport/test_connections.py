"""A line does what a client of the HTTP library does where neither proxy nor password is needed."""

from __future__ import annotations

import gzip
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import httpcore2
import httpx2
import pytest

from agenteval.adapters.models.endpoints import Endpoint
from agenteval.adapters.models.http_client import FailedCall, HttpClient
from agenteval.adapters.transport.connections import Connection, RawReply, empty_ssl_context, is_direct
from agenteval.core.errors import AuthorError
from tests.support.local_servers import (
    Behaviour,
    LocalServer,
    chat,
    drop,
    hang,
    plain_environment,
    raw,
    respond,
)
from tests.support.model_bench import KEY, Bench
from tests.support.patience import HANG_S

GOOD = '{"evidence": "words", "reason": "words", "score": 1}'


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    plain_environment(monkeypatch, tmp_path)


def line(url: str, *, keepalive_s: float = 3.0) -> Connection:
    parsed = httpx2.URL(url)
    host = (b"Host", parsed.netloc)
    return Connection(parsed, [host], verify=empty_ssl_context(), connect_s=5.0, keepalive_s=keepalive_s)


def posted(
    *behaviours: Behaviour, keepalive_s: float = 3.0, until_expired: bool = False
) -> tuple[list[RawReply], int]:
    """The replies to as many requests as there are behaviours, and over how many connections they came."""

    async def run() -> list[RawReply]:
        one = line(server.url, keepalive_s=keepalive_s)
        replies = []
        for _ in behaviours:
            replies.append(await one.post(b"{}"))
            with anyio.fail_after(HANG_S):
                while until_expired and not one._connection.has_expired():  # noqa: ASYNC110
                    await anyio.sleep(0.001)
        await one.aclose()
        await one.aclose()
        return replies

    with LocalServer(*behaviours) as server:
        return anyio.run(run), server.connections


def test_requests_share_a_connection() -> None:
    replies, connections = posted(*[respond("well")] * 3)
    assert [(reply.status, reply.content) for reply in replies] == [(200, b"well")] * 3
    assert connections == 1


def test_one_that_the_server_closes_is_made_anew() -> None:
    closed = respond("well", headers={"Connection": "close"})
    assert posted(closed, closed)[1] == 2


def test_one_that_the_server_closes_without_a_word_is_made_anew() -> None:
    reply = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nwell"
    replies, connections = posted(raw(reply), raw(reply), until_expired=True)
    assert [each.content for each in replies] == [b"well"] * 2
    assert connections == 2


def test_one_that_was_idle_for_long_is_made_anew() -> None:
    assert posted(respond("a"), respond("b"), keepalive_s=0.0, until_expired=True)[1] == 2


def test_after_a_deadline_and_a_lost_connection_comes_a_new_one() -> None:
    async def run() -> bytes:
        one = line(server.url)
        with anyio.move_on_after(0.05) as scope:
            await one.post(b"{}")
        assert scope.cancelled_caught
        with pytest.raises(httpx2.RemoteProtocolError):
            await one.post(b"{}")
        return (await one.post(b"{}")).content

    with LocalServer(hang(), drop(), respond("well")) as server:
        assert anyio.run(run) == b"well"
        assert server.connections == 3


def test_a_failed_connection_is_tried_anew() -> None:
    async def run() -> bytes:
        one = line(server.url.replace(str(server.port), str(free)))
        with pytest.raises(httpx2.ConnectError):
            await one.post(b"{}")
        with socket.create_server(("127.0.0.1", free)) as listener:
            threading.Thread(target=_answer_once, args=(listener,), daemon=True).start()
            return (await one.post(b"{}")).content

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        free = probe.getsockname()[1]
    with LocalServer(respond("never")) as server:
        assert anyio.run(run) == b"well"


def _answer_once(listener: socket.socket) -> None:
    connection, _ = listener.accept()
    with connection:
        connection.recv(2**16)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nwell")


def test_head_and_body_are_one_packet() -> None:
    first: list[bytes] = []

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            first.append(connection.recv(2**16))
            connection.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, daemon=True).start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        assert anyio.run(lambda: line(url).post(b'{"a": 1}')).status == 204
    assert first[0].startswith(b"POST /v1 HTTP/1.1\r\n")
    assert first[0].endswith(b'\r\n\r\n{"a": 1}')


def test_a_server_that_refuses_before_it_has_read_all_is_heard() -> None:
    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(100)
            connection.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 4\r\n\r\nlong")
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(2**20):
                pass

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, daemon=True).start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        reply = anyio.run(lambda: line(url).post(b"x" * 2**22))
    assert (reply.status, reply.content) == (413, b"long")


def test_compressed_replies() -> None:
    packed = respond(gzip.compress(b"well"), headers={"Content-Encoding": "gzip"})
    assert posted(packed)[0][0].content == b"well"
    with pytest.raises(httpx2.DecodingError):
        posted(respond(b"no gzip at all", headers={"content-encoding": "gzip"}))


def below(cls: type[BaseException]) -> Iterator[type[BaseException]]:
    yield cls
    for each in cls.__subclasses__():
        yield from below(each)


CORE = sorted(
    {
        each
        for cls in vars(httpcore2).values()
        if isinstance(cls, type)
        and issubclass(cls, Exception)
        and cls is not httpcore2.ConnectionNotAvailable
        for each in below(cls)
    },
    key=lambda cls: cls.__name__,
)


@pytest.mark.parametrize("cls", CORE)
def test_what_the_lower_layer_raises_is_raised_as_by_the_client(
    cls: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: Any) -> None:
        raise cls("broken")

    monkeypatch.setattr(httpcore2.AsyncHTTPConnection, "handle_async_request", broken)
    with pytest.raises(getattr(httpx2, cls.__name__), match="broken"):
        anyio.run(lambda: line("http://127.0.0.1:1/").post(b"{}"))


# ── when there is a line, and that it is not a different ────────────────────────────────────────────


@pytest.mark.parametrize(
    ("url", "environ", "direct"),
    [
        ("http://model.example/v1", {}, True),
        ("https://model.example/v1", {"NO_PROXY": "*"}, True),
        ("http://model.example/v1", {"HTTP_PROXY": "http://p:1"}, False),
        ("http://model.example/v1", {"https_proxy": "http://p:1"}, False),
        ("http://model.example/v1", {"ALL_PROXY": "http://p:1"}, False),
        ("http://me:word@model.example/v1", {}, False),
        ("ftp://model.example/v1", {}, False),
        ("model.example/v1", {}, False),
    ],
)
def test_what_is_direct(
    url: str, environ: dict[str, str], direct: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert is_direct(httpx2.URL(url), trust_env=True) is direct
    assert is_direct(httpx2.URL(url), trust_env=False) is (direct or bool(environ))


def ask(url: str, key: str = KEY) -> Any:
    async def run() -> Any:
        client = HttpClient(Endpoint(url, url, key, "KEY", "max_tokens"), timeout_s=5.0)
        try:
            return await client.post(b'{"a": 1}')
        finally:
            await client.aclose()

    return anyio.run(run)


@contextmanager
def proxy(monkeypatch: pytest.MonkeyPatch, name: str) -> Iterator[LocalServer]:
    with LocalServer(chat("well")) as server:
        monkeypatch.setenv(name, server.address)
        yield server


def test_a_line_sends_what_a_client_sends(monkeypatch: pytest.MonkeyPatch) -> None:
    with LocalServer(chat("well")) as server:
        by_line = ask(server.url)
        monkeypatch.setattr("agenteval.adapters.models.http_client.is_direct", lambda *_, **__: False)
        assert ask(server.url) == by_line
    one, other = server.requests
    assert (one.method, one.path, one.headers, one.body) == (
        other.method,
        other.path,
        other.headers,
        other.body,
    )
    assert one.headers["authorization"] == f"Bearer {KEY}"


def test_a_proxy_of_the_environment_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    with proxy(monkeypatch, "HTTP_PROXY") as server:
        ask("http://model.example/v1/chat/completions")
    assert server.requests[0].path == "http://model.example/v1/chat/completions"


def test_a_password_in_the_url_is_sent() -> None:
    with LocalServer(chat("well")) as server:
        ask(server.url.replace("//", "//me:word@"), key="")
    assert server.requests[0].headers["authorization"].startswith("Basic ")


def test_this_machine_is_reached_past_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    with proxy(monkeypatch, "HTTP_PROXY") as server, LocalServer(chat("well")) as model:
        ask(model.url)
    assert (len(server.requests), len(model.requests)) == (0, 1)


def test_certificates_are_those_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with LocalServer(chat(GOOD), tls=True) as server:
        assert Bench(f"{server.address}/v1").ask(times=2)
        assert server.connections == 1
        monkeypatch.delenv("SSL_CERT_FILE")
        with pytest.raises(FailedCall) as caught:
            ask(server.url)
    assert caught.value.cause.kind == "tls"  # type: ignore[union-attr]
    monkeypatch.setenv("SSL_CERT_FILE", "/no/such.pem")
    with pytest.raises(AuthorError, match="SSL_CERT_FILE"):
        ask("https://model.example/v1")
