"""One request to a model's server: which replies are completions, and what became of one without."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from agenteval.adapters.models.endpoints import Endpoint
from agenteval.adapters.models.http_client import FailedCall, HttpClient
from agenteval.adapters.models.refusals import ServerRefusal
from agenteval.adapters.models.sdk_client import SignInError
from agenteval.adapters.transport.bodies import TooLargeError
from agenteval.adapters.transport.connections import Connection, Connections, RawReply
from agenteval.adapters.transport.http_faults import FaultKind, HttpFault
from agenteval.core.errors import AuthorError
from tests.support.local_servers import plain_environment
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
    made._connections = Connections(make)
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
    "dropped": (httpx2.ReadError("lost"), FaultKind.DROPPED, "lost"),
    "library": (httpx2.ConnectTimeout("slow"), FaultKind.CONNECT_TIMEOUT, "slow"),
    "url": (httpx2.InvalidURL("odd"), FaultKind.INVALID, "odd"),
    "host name": (UnicodeError("label too long"), FaultKind.INVALID, "label"),
    "overflow": (OverflowError("port"), FaultKind.INVALID, "port"),
    "TLS": (ssl.SSLError("bad record"), FaultKind.TLS, "bad record"),
    "end": (anyio.EndOfStream(), FaultKind.DROPPED, ""),
    "the key": (httpx2.ReadError(f"with {KEY}"), FaultKind.DROPPED, "with ***"),
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


def test_each_request_in_flight_has_its_connection() -> None:
    made: list[Sender] = []

    def make() -> Sender:
        made.append(Sender(reply(b""), 1))
        return made[-1]

    async def main(time: VirtualTime) -> None:
        one = over(make)
        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(one.post, b"")
        await one.post(b"")

    run_virtually(main)
    assert len(made) == 3


# ── setting up ───────────────────────────────────────────────────────────────────────────────────


def connection(url: str = URL, key: str = KEY) -> Any:
    return HttpClient(endpoint(url, key), timeout_s=1)._connections.take()


def headers_of(one: Any) -> dict[str, str]:
    return {name.decode().lower(): value.decode() for name, value in one._headers}


def test_the_headers_of_a_request() -> None:
    headers = headers_of(connection())
    assert headers["host"] == "h"
    assert headers["authorization"] == f"Bearer {KEY}"
    assert headers["accept"] == headers["content-type"] == "application/json"
    assert headers["user-agent"] == "agenteval"
    assert headers["accept-encoding"] == "gzip, deflate"
    assert "content-length" not in headers
    assert "authorization" not in headers_of(connection(key=""))


@pytest.mark.parametrize(
    ("url", "proxied"),
    [
        (URL, True),
        ("https://h/v1", True),
        ("http://localhost:1/v1", False),
        ("http://127.0.0.1:1/v1", False),
        ("http://[::1]:1/v1", False),
        ("https://localhost:1/v1", True),
    ],
)
def test_a_proxy_is_used_except_toward_this_machine(
    url: str, proxied: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(connection(url), Connection)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.setenv(name, "http://proxy:3128")
    assert isinstance(connection(url), Connection) is not proxied


def test_a_password_in_the_url_needs_the_library() -> None:
    assert not isinstance(connection("http://u:p@h/v1"), Connection)


def test_a_url_that_is_none_is_the_authors_mistake() -> None:
    with pytest.raises(AuthorError) as error:
        connection("http://h:x/v1")
    assert "base_url" in str(error.value)
    assert "http://shown" in str(error.value)
