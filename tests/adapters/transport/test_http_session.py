"""One request after another, or many at once, over one pool of connections, against real servers."""

from __future__ import annotations

import gzip
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import aiohttp
import anyio
import pytest

from agenteval.adapters.transport.bodies import UnreadableBodyError
from agenteval.adapters.transport.http_faults import FaultKind, fault_kind
from agenteval.adapters.transport.http_session import (
    HttpSession,
    RawReply,
    UnsendableRequestError,
    header_fields,
)
from tests.support.local_servers import (
    Behaviour,
    LocalServer,
    after,
    answer,
    chat,
    drop,
    hang,
    plain_environment,
    raw,
    respond,
)

Value = TypeVar("Value")


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    plain_environment(monkeypatch, tmp_path)


def in_session(act: Callable[[HttpSession], Awaitable[Value]]) -> Value:
    async def run() -> Value:
        session = HttpSession()
        try:
            return await act(session)
        finally:
            await session.aclose()
            await session.aclose()

    return anyio.run(run)


async def post(
    session: HttpSession, url: str, body: bytes = b"{}", headers: Mapping[str, str] | None = None
) -> RawReply:
    return await session.exchange("POST", url, headers=headers or {}, content=body)


def posted(*behaviours: Behaviour) -> tuple[list[RawReply], int]:
    """The replies to as many requests as there are behaviours, and over how many connections they came."""

    async def act(session: HttpSession) -> list[RawReply]:
        return [await post(session, server.url) for _ in behaviours]

    with LocalServer(*behaviours) as server:
        return in_session(act), server.connections


# ── connections ──────────────────────────────────────────────────────────────────────────────────


def test_requests_share_a_connection() -> None:
    replies, connections = posted(*[respond("well")] * 3)
    assert [(reply.status, reply.content) for reply in replies] == [(200, b"well")] * 3
    assert connections == 1


def test_one_that_the_server_closes_is_made_anew() -> None:
    closed = respond("well", headers={"Connection": "close"})
    assert posted(closed, closed)[1] == 2


def test_as_many_as_there_are_requests_in_flight() -> None:
    many, all_here = 300, threading.Event()

    def behave(_: object) -> Behaviour:
        if len(server.requests) == many:
            all_here.set()
        return after(all_here, respond("well"))

    async def act(session: HttpSession) -> None:
        async with anyio.create_task_group() as group:
            for _ in range(many):
                group.start_soon(post, session, server.url)

    with LocalServer(answer(behave)) as server:
        in_session(act)
    assert server.connections == many


def test_after_a_deadline_and_a_lost_connection_comes_a_new_one() -> None:
    async def act(session: HttpSession) -> bytes:
        with anyio.move_on_after(0.05) as scope:
            await post(session, server.url)
        assert scope.cancelled_caught
        with pytest.raises(aiohttp.ServerDisconnectedError):
            await post(session, server.url)
        return (await post(session, server.url)).content

    with LocalServer(hang(), drop(), respond("well")) as server:
        assert in_session(act) == b"well"
        assert server.connections == 3


def test_a_post_is_not_repeated_when_its_connection_turns_out_to_be_closed() -> None:
    """The server may have acted on it. (A GET is repeated by the library: asking twice changes nothing.)"""

    async def act(session: HttpSession) -> None:
        await post(session, server.url)
        with pytest.raises(aiohttp.ServerDisconnectedError):
            await post(session, server.url)

    with LocalServer(respond("well"), drop(), respond("never")) as server:
        in_session(act)
    assert (len(server.requests), server.connections) == (2, 1)


def test_a_new_session_opens_after_the_old_one_was_closed() -> None:
    async def act(session: HttpSession) -> bytes:
        await post(session, server.url)
        await session.aclose()
        return (await post(session, server.url)).content

    with LocalServer(respond("well")) as server:
        assert in_session(act) == b"well"
    assert server.connections == 2


def test_a_session_without_a_request_opens_nothing() -> None:
    async def act(session: HttpSession) -> None:
        assert session._session is None

    in_session(act)


# ── what is sent ─────────────────────────────────────────────────────────────────────────────────


def test_headers_and_body() -> None:
    async def act(session: HttpSession) -> None:
        await post(session, server.url, b'{"a": 1}', {"Authorization": "Bearer k", "Accept": "x/y"})

    with LocalServer(respond("well")) as server:
        in_session(act)
    (request,) = server.requests
    assert (request.method, request.body) == ("POST", b'{"a": 1}')
    names = ("authorization", "accept", "user-agent", "accept-encoding", "content-length")
    assert [request.headers[name] for name in names] == ["Bearer k", "x/y", "agenteval", "gzip, deflate", "8"]
    assert "transfer-encoding" not in request.headers


def test_a_get_request_has_no_body() -> None:
    async def act(session: HttpSession) -> RawReply:
        return await session.exchange("GET", server.url, headers={}, content=None)

    with LocalServer(respond("well")) as server:
        assert in_session(act).content == b"well"
    assert (server.requests[0].method, server.requests[0].body) == ("GET", b"")


@pytest.mark.parametrize("query", ["a=b%2Bc%2Fd&e=1+2", "sig=%26%3D%25&x=", "q=%C3%BC"])
def test_an_encoded_query_is_sent_as_it_is(query: str) -> None:
    async def act(session: HttpSession) -> None:
        await post(session, f"{server.address}/v1/a%2Fb?{query}#not-this")

    with LocalServer(respond("well")) as server:
        in_session(act)
    assert server.requests[0].path == f"/v1/a%2Fb?{query}"


def test_what_a_url_must_not_hold_is_encoded() -> None:
    async def act(session: HttpSession) -> None:
        await post(session, f"{server.address}/a b/ü?q={{x}}")

    with LocalServer(respond("well")) as server:
        in_session(act)
    assert server.requests[0].path == "/a%20b/%C3%BC?q=%7Bx%7D"


def test_a_name_and_password_in_the_url_are_sent_as_credentials() -> None:
    async def act(session: HttpSession) -> None:
        url = server.url.replace("//", "//m%C3%A9:w%40rd@")
        await post(session, url)
        await post(session, url, headers={"AUTHORIZATION": "Bearer k"})

    with LocalServer(respond("well")) as server:
        in_session(act)
    sent = [request.headers["authorization"] for request in server.requests]
    assert sent == ["Basic bcOpOndAcmQ="] * 2


@pytest.mark.parametrize(
    "url", ["http://[::1/", f"http://{'a' * 64}/", "http://127.0.0.1:99999/", "ftp://127.0.0.1/", "no/url"]
)
def test_what_cannot_be_sent(url: str) -> None:
    async def act(session: HttpSession) -> None:
        await post(session, url)

    with pytest.raises((UnsendableRequestError, aiohttp.ClientError)) as caught:
        in_session(act)
    assert fault_kind(caught.value) is FaultKind.INVALID


@pytest.mark.parametrize("headers", [{"X": "a\r\nEvil: yes"}, {"X\n": "a"}])
def test_a_header_with_a_line_break_reaches_no_server(headers: dict[str, str]) -> None:
    async def act(session: HttpSession) -> None:
        await post(session, server.url, headers=headers)

    with LocalServer(respond("well")) as server, pytest.raises(UnsendableRequestError):
        in_session(act)
    assert not server.requests


def test_a_body_of_many_megabytes() -> None:
    body = b"x" * (5 * 2**20)

    async def act(session: HttpSession) -> None:
        await post(session, server.url, body)

    with LocalServer(respond("well")) as server:
        in_session(act)
    (request,) = server.requests
    assert request.body == body
    assert request.headers["content-length"] == str(len(body))


def test_a_server_that_refuses_before_it_has_read_all_is_heard() -> None:
    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(100)
            connection.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 4\r\n\r\nlong")
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(2**20):
                pass

    async def act(session: HttpSession) -> RawReply:
        return await post(session, url, b"x" * 2**22)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, daemon=True).start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        reply = in_session(act)
    assert (reply.status, reply.content) == (413, b"long")


# ── what comes ───────────────────────────────────────────────────────────────────────────────────


def test_compressed_replies() -> None:
    packed = respond(gzip.compress(b"well"), headers={"Content-Encoding": "gzip"})
    assert posted(packed)[0][0].content == b"well"
    with pytest.raises(UnreadableBodyError):
        posted(respond(b"no gzip at all", headers={"content-encoding": "gzip"}))


def test_a_refusal_whose_body_cannot_be_read_is_a_refusal() -> None:
    broken = respond(b"no gzip at all", status=500, headers={"Content-Encoding": "gzip"})
    assert posted(broken)[0][0].status == 500


@pytest.mark.parametrize(
    ("status", "success", "redirect"), [(204, True, False), (302, False, True), (500, False, False)]
)
def test_a_status_is_no_exception(status: int, success: bool, redirect: bool) -> None:
    ((reply,), _) = posted(respond("", status=status, headers={"Location": "http://127.0.0.1:1/"}))
    assert (reply.status, reply.is_success, reply.is_redirect) == (status, success, redirect)


def test_a_cookie_is_not_sent_back() -> None:
    async def act(session: HttpSession) -> None:
        for _ in range(2):
            await post(session, server.url)

    with LocalServer(respond("", headers={"Set-Cookie": "session=of-a; Path=/"})) as server:
        in_session(act)
    assert all("cookie" not in request.headers for request in server.requests)


def test_a_header_of_60_000_bytes_is_read_and_a_longer_one_is_a_fault() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nX-Long: %b\r\n\r\nwell"
    ((reply,), _) = posted(raw(head % (b"a" * 60_000)))
    assert header_fields(reply.headers)["x-long"] == "a" * 60_000
    with pytest.raises(aiohttp.ClientError) as caught:
        posted(raw(head % (b"a" * 70_000)))
    assert fault_kind(caught.value) is FaultKind.GARBLED


@pytest.mark.parametrize(
    "reply",
    [
        b"220 mail.example ESMTP\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}trailing",
        b"HTTP/1.1 200 OK\r\nNo colon\r\n\r\n",
    ],
)
def test_what_is_not_http_is_a_fault(reply: bytes) -> None:
    with pytest.raises(aiohttp.ClientError) as caught:
        posted(raw(reply))
    assert fault_kind(caught.value) is FaultKind.GARBLED


def test_fields_of_headers() -> None:
    headers = ((b"Set-Cookie", b"a"), (b"X-Name", "ü".encode()), (b"set-cookie", b"b"), (b"Old", b"\xfc"))
    assert header_fields(headers) == {"set-cookie": "a, b", "x-name": "ü", "old": "ü"}


# ── the environment ──────────────────────────────────────────────────────────────────────────────


@contextmanager
def proxy(monkeypatch: pytest.MonkeyPatch, name: str) -> Iterator[LocalServer]:
    with LocalServer(chat("well")) as server:
        monkeypatch.setenv(name, server.address)
        yield server


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
def test_a_proxy_of_the_environment_is_asked(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def act(session: HttpSession) -> None:
        await post(session, "http://model.example/v1")

    with proxy(monkeypatch, name) as server:
        in_session(act)
    assert server.requests[0].path == "http://model.example/v1"


def test_a_proxy_is_sent_its_own_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    async def act(session: HttpSession) -> None:
        await post(session, "http://model.example/v1", headers={"Authorization": "Bearer k"})

    with LocalServer(chat("well")) as server:
        monkeypatch.setenv("HTTP_PROXY", server.address.replace("//", "//me:word@"))
        in_session(act)
    headers = server.requests[0].headers
    assert (headers["proxy-authorization"], headers["authorization"]) == ("Basic bWU6d29yZA==", "Bearer k")


def test_this_machine_is_reached_past_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    async def act(session: HttpSession) -> None:
        await post(session, model.url)

    with proxy(monkeypatch, "HTTP_PROXY") as server, LocalServer(chat("well")) as model:
        in_session(act)
    assert (len(server.requests), len(model.requests)) == (0, 1)


def test_tls_with_a_private_authority() -> None:
    async def act(session: HttpSession) -> list[int]:
        return [(await post(session, server.url)).status for _ in range(2)]

    with LocalServer(respond("well"), tls=True) as server:
        assert in_session(act) == [200, 200]
        assert server.connections == 1
