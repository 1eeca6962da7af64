"""One request to a model's server: which replies are completions, and what became of one without."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import anyio
import pytest

from agenteval.adapters.models.endpoints import Endpoint
from agenteval.adapters.models.http_client import FailedCall, HttpClient
from agenteval.adapters.models.refusals import ServerRefusal
from agenteval.adapters.models.sdk_client import SignInError
from agenteval.adapters.transport.bodies import TooLargeError, UnreadableBodyError
from agenteval.adapters.transport.http_faults import FaultKind, HttpFault
from agenteval.adapters.transport.http_session import RawReply, UnsendableRequestError
from agenteval.core.errors import AuthorError
from tests.support.local_servers import LocalServer, chat, plain_environment
from tests.support.virtual_time import VirtualTime, run_virtually

KEY = "sk-secret-0123456789"
URL = "http://h/v1/chat/completions"
GOOD = {"choices": [{"message": {"content": "Hi"}}]}


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    plain_environment(monkeypatch, tmp_path)


def endpoint(url: str = URL, key: str = KEY) -> Endpoint:
    return Endpoint(url, "http://shown", key, "KEY", "max_tokens")


def client(timeout_s: float = 60.0) -> HttpClient:
    return HttpClient(endpoint(), timeout_s=timeout_s, now=lambda: 0.0)


def reply(content: Any, status: int = 200, **headers: str) -> RawReply:
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return RawReply(status, raw, body)


def failed(http: RawReply) -> FailedCall:
    with pytest.raises(FailedCall) as error:
        client().decode_completion(http)
    return error.value


def fault(http: RawReply) -> HttpFault:
    cause = failed(http).cause
    assert isinstance(cause, HttpFault)
    assert cause.where == "http://shown"
    return cause


def refusal(http: RawReply) -> ServerRefusal:
    cause = failed(http).cause
    assert isinstance(cause, ServerRefusal)
    return cause


# ── completions ──────────────────────────────────────────────────────────────────────────────────


def chunk(content: str | None, **choice: Any) -> bytes:
    value = {"choices": [{"index": 0, "delta": {"content": content}, **choice}]}
    return b"data: " + json.dumps(value).encode() + b"\n\n"


@pytest.mark.parametrize(
    "value",
    [
        GOOD,
        {**GOOD, "detail": "fine"},
        {**GOOD, "error": None},
        {"choices": [{"message": {}}, "other"]},
    ],
)
@pytest.mark.parametrize("status", [200, 201, 299])
def test_a_completion(value: Any, status: int) -> None:
    assert client().decode_completion(reply(value, status)) == value


def test_a_stream_is_assembled_whatever_its_type_is() -> None:
    done = chunk("Hel") + chunk("lo", finish_reason="stop") + b"data: [DONE]\n\n"
    found = client().decode_completion(reply(done))
    assert found["choices"][0]["message"]["content"] == "Hello"


def test_a_stream_that_was_interrupted_is_none() -> None:
    assert fault(reply(b"data: [1")).kind is FaultKind.GARBLED
    assert fault(reply(chunk("Hel")[:-20])).kind is FaultKind.GARBLED


def test_a_stream_may_end_in_an_error() -> None:
    error = b'data: {"error": {"message": "boom", "code": 503}}\n\n'
    assert "boom" in refusal(reply(chunk("Hel") + error)).text


@pytest.mark.parametrize(
    ("content", "fact"),
    [
        (b"hello", "not valid JSON"),
        (b"", "not valid JSON"),
        (b"\xff", "not valid JSON"),
        (b"[" * 100_000, "not valid JSON"),
        (b"<!doctype html><HTML>", "web page"),
        (b" " * 995 + b"<html", "web page"),
        (b" " * 996 + b"<html", "not valid JSON"),
        ([], "`choices`"),
        (7, "`choices`"),
        ({}, "`choices`"),
        ({"choices": None}, "`choices`"),
        ({"choices": []}, "`choices`"),
        ({"choices": {"0": {}}}, "`choices`"),
        ({"choices": [None]}, "`choices`"),
        ({"choices": [{}]}, "`message`"),
        ({"choices": ["x"]}, "`message`"),
        ({"choices": [{"message": "Hi"}]}, "`message`"),
    ],
)
def test_what_is_no_completion(content: Any, fact: str) -> None:
    found = fault(reply(content))
    assert found.kind is FaultKind.GARBLED
    assert fact in found.detail
    assert found.status is None


def test_a_quotation_is_short_and_without_the_key() -> None:
    found = fault(reply({"x": f"{KEY} " + "a" * 1000}))
    assert KEY not in found.detail
    assert "***" in found.detail
    assert len(found.detail) == 300


# ── errors ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("content", "status", "text"),
    [
        ({"error": {"message": "boom"}}, 400, "boom"),
        ({"error": {"message": "boom"}}, 500, "boom"),
        (b"boom", 502, "boom"),
        (GOOD, 404, "Hi"),
        ({"error": {"message": "boom"}}, 200, "boom"),
        ({"error": "boom"}, 200, "boom"),
        ({**GOOD, "error": {"message": "boom"}}, 200, "boom"),
        ({"detail": "boom"}, 200, "boom"),
        ({"choices": [], "detail": "boom"}, 200, "boom"),
    ],
)
def test_an_error_also_with_a_status_of_success(content: Any, status: int, text: str) -> None:
    found = refusal(reply(content, status))
    assert text in found.text
    assert status == 200 or found.status == status


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry_after": "7"}, 7.0),
        ({"Retry_After_Ms": "1500"}, 1.5),
        ({"retry_after": "Thu, 01 Jan 1970 00:00:09 GMT"}, 9.0),
    ],
)
def test_how_long_the_server_asks_to_wait(headers: dict[str, str], seconds: float | None) -> None:
    error = failed(reply({"error": {"message": "slow down"}}, 429, **headers))
    assert error.retry_after_s == seconds
    assert error.tried == ""


def test_only_a_server_asks_to_wait() -> None:
    assert failed(reply(b"hello", retry_after="7")).retry_after_s is None


@pytest.mark.parametrize("status", [300, 301, 307, 399])
def test_a_redirect_is_not_followed(status: int) -> None:
    found = fault(reply(b"", status, Location="https://other/v1?token=secret"))
    assert (found.kind, found.status, found.detail) == (FaultKind.STATUS, status, "to https://other/v1")


# ── sending ──────────────────────────────────────────────────────────────────────────────────────


class Sender:
    """Answers each request with ``end``, or raises it, after ``takes_s``."""

    def __init__(self, end: RawReply | Exception, takes_s: float = 0.0) -> None:
        self.end = end
        self.takes_s = takes_s
        self.bodies: list[bytes] = []
        self.closed = 0

    async def post(self, body: bytes) -> RawReply:
        self.bodies.append(body)
        await anyio.sleep(self.takes_s)
        if isinstance(self.end, Exception):
            raise self.end
        return self.end

    async def aclose(self) -> None:
        self.closed += 1


def over(make: Callable[[], Any], timeout_s: float = 60.0) -> HttpClient:
    made = client(timeout_s)
    made._sender = make()
    return made


def test_a_reply_is_returned_as_it_is() -> None:
    sender = Sender(reply(b"oops", 500))
    made = over(lambda: sender)
    assert anyio.run(made.post, b"body") is sender.end
    assert anyio.run(made.post, b"again") is sender.end
    assert sender.bodies == [b"body", b"again"]
    anyio.run(made.aclose)
    assert sender.closed == 1


FAULTS: dict[str, tuple[Exception, FaultKind, str]] = {
    "too large": (TooLargeError(), FaultKind.TOO_LARGE, ""),
    "sign in": (SignInError("no token"), FaultKind.SIGN_IN, "no token"),
    "dropped": (aiohttp.ServerDisconnectedError("lost"), FaultKind.DROPPED, "lost"),
    "cut short": (aiohttp.ClientPayloadError("lost"), FaultKind.DROPPED, "lost"),
    "connecting": (aiohttp.ConnectionTimeoutError("slow"), FaultKind.CONNECT_TIMEOUT, "slow"),
    "waiting": (aiohttp.SocketTimeoutError("slow"), FaultKind.DEADLINE, "slow"),
    "url": (aiohttp.InvalidURL("odd"), FaultKind.INVALID, "odd"),
    "host name": (UnsendableRequestError("label too long"), FaultKind.INVALID, "label"),
    "encoding": (UnreadableBodyError("no gzip"), FaultKind.GARBLED, "no gzip"),
    "another": (aiohttp.ClientError("odd"), FaultKind.GARBLED, "odd"),
    "the key": (aiohttp.ClientOSError(f"with {KEY}"), FaultKind.DROPPED, "with ***"),
}


@pytest.mark.parametrize(("error", "kind", "detail"), FAULTS.values(), ids=FAULTS)
def test_a_request_without_a_reply(error: Exception, kind: FaultKind, detail: str) -> None:
    sender = Sender(error)
    made = over(lambda: sender)
    for _ in range(2):  # its connection is there for the next one
        with pytest.raises(FailedCall) as caught:
            anyio.run(made.post, b"{}")
        cause = caught.value.cause
        assert isinstance(cause, HttpFault)
        assert (cause.kind, cause.where, cause.status) == (kind, "http://shown", None)
        assert detail in cause.detail
        assert KEY not in cause.detail
        assert caught.value.retry_after_s is None


def test_other_exceptions_are_not_ours() -> None:
    with pytest.raises(ZeroDivisionError):
        anyio.run(over(lambda: Sender(ZeroDivisionError())).post, b"")


def test_a_request_has_a_deadline() -> None:
    async def main(time: VirtualTime) -> None:
        assert await over(lambda: Sender(reply(b""), 29), 30).post(b"")
        with pytest.raises(FailedCall) as caught:
            await over(lambda: Sender(reply(b""), 31), 30).post(b"")
        cause = caught.value.cause
        assert isinstance(cause, HttpFault)
        assert (cause.kind, cause.detail, time()) == (FaultKind.DEADLINE, "30 s", 59)

    run_virtually(main)


def test_many_requests_are_in_flight_at_once() -> None:
    async def main(time: VirtualTime) -> None:
        one = over(lambda: Sender(reply(b""), 1))
        async with anyio.create_task_group() as group:
            for _ in range(100):
                group.start_soon(one.post, b"")
        assert time() == 1

    run_virtually(main)


# ── setting up ───────────────────────────────────────────────────────────────────────────────────


def test_the_headers_of_a_request() -> None:
    with LocalServer(chat("well")) as server:
        for key in (KEY, ""):
            made = HttpClient(endpoint(server.url, key), timeout_s=60)

            async def act(made: HttpClient = made) -> None:
                await made.post(b'{"a": 1}')
                await made.aclose()

            anyio.run(act)
    with_key, without = (request.headers for request in server.requests)
    assert with_key["authorization"] == f"Bearer {KEY}"
    assert with_key["accept"] == with_key["content-type"] == "application/json"
    assert with_key["user-agent"] == "agenteval"
    assert with_key["accept-encoding"] == "gzip, deflate"
    assert with_key["content-length"] == "8"
    assert "authorization" not in without
    assert [request.json for request in server.requests] == [{"a": 1}] * 2


@pytest.mark.parametrize("url", ["https://h/v1", URL])
def test_an_environment_that_cannot_work_is_told_at_once(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5://p:1")
    with pytest.raises(AuthorError, match="ALL_PROXY is a SOCKS proxy"):
        HttpClient(endpoint(url), timeout_s=1)
    HttpClient(endpoint("http://localhost:1/v1"), timeout_s=1)  # which is reached without


def test_a_private_authority_is_trusted_and_an_unknown_one_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(url: str) -> None:
        async def act() -> None:
            made = HttpClient(endpoint(url), timeout_s=60)
            try:
                await made.post(b"{}")
            finally:
                await made.aclose()

        anyio.run(act)

    with LocalServer(chat("well"), tls=True) as server:
        ask(server.url)
        monkeypatch.delenv("SSL_CERT_FILE")
        with pytest.raises(FailedCall) as caught:
            ask(server.url)
    cause = caught.value.cause
    assert isinstance(cause, HttpFault)
    assert cause.kind is FaultKind.TLS
    monkeypatch.setenv("SSL_CERT_FILE", "/no/such.pem")
    with pytest.raises(AuthorError, match="SSL_CERT_FILE"):
        ask("https://model.example/v1")
