"""Whose fault an exception is that an agent's client library raised: by its type and what it carries."""

from __future__ import annotations

import errno
import http.client
import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest

from agenteval.adapters.agents.python import classify_exception
from agenteval.core.errors import AgentError, InfrastructureError

# ── real clients, real servers ───────────────────────────────────────────────────────────────────


class Server(BaseHTTPRequestHandler):
    """Answers ``/503`` with 503, hangs up on ``/drop``, and breaks off what it says to the others."""

    def do_GET(self) -> None:
        what = self.path.strip("/")
        if what.isdigit():
            self.send_error(int(what))
        elif what != "drop":
            self.send_response(200)
            kind = {"half": ("Content-Length", "100"), "chunk": ("Transfer-Encoding", "chunked")}
            self.send_header(*kind[what])
            self.end_headers()
            self.wfile.write(b"5\r\nab")
        self.close_connection = True

    def log_message(self, *_: Any) -> None:
        return


@contextmanager
def served() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Server) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


@contextmanager
def silent() -> Iterator[str]:
    """Takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"127.0.0.1:{listening.getsockname()[1]}"


def closed_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


def by_urllib(url: str) -> None:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    opener.open(url, timeout=30).read()


def by_http_client(url: str) -> None:
    host, path = url.removeprefix("http://").split("/")
    client = http.client.HTTPConnection(host, timeout=30)
    client.request("GET", f"/{path}")
    if (reply := client.getresponse()).read() and reply.status >= 400:
        raise urllib.error.HTTPError(url, reply.status, "", reply.headers, None)


def by_httpx2(url: str) -> None:
    with httpx2.Client(trust_env=False, timeout=30) as client:
        client.get(url).raise_for_status()


Fetch = Callable[[str], None]
CLIENTS = pytest.mark.parametrize("fetch", [by_urllib, by_http_client, by_httpx2])


def raised(fetch: Fetch, url: str) -> BaseException:
    with pytest.raises(Exception) as caught:
        fetch(url)
    return caught.value


@CLIENTS
def test_a_connection_that_fails_is_not_the_agents(fetch: Fetch) -> None:
    with served() as host:
        for what in ("drop", "half", "chunk", "401", "403", "429", "502", "503", "504"):
            assert isinstance(
                classify_exception(raised(fetch, f"http://{host}/{what}")), InfrastructureError
            ), what
    assert isinstance(classify_exception(raised(fetch, f"http://{closed_port()}/x")), InfrastructureError)
    assert isinstance(classify_exception(raised(fetch, "http://no-such-host.invalid/x")), InfrastructureError)


@CLIENTS
def test_what_the_server_makes_of_the_request_is_the_agents(fetch: Fetch) -> None:
    with served() as host:
        for what in ("400", "404", "422", "500"):
            assert isinstance(classify_exception(raised(fetch, f"http://{host}/{what}")), AgentError), what


@pytest.mark.parametrize("fetch", [by_urllib, by_httpx2])
def test_no_tls_is_not_the_agents(fetch: Fetch) -> None:
    with served() as host:
        assert isinstance(classify_exception(raised(fetch, f"https://{host}/200")), InfrastructureError)


def test_no_answer_in_time_is_the_agents() -> None:
    with silent() as host, pytest.raises(TimeoutError) as caught:
        urllib.request.build_opener(urllib.request.ProxyHandler({})).open(f"http://{host}/", timeout=0.3)
    fault = classify_exception(caught.value)
    assert isinstance(fault, AgentError)
    assert fault.kind == "timeout"


# ── other libraries, by the shape of their exceptions ────────────────────────────────────────────


def family(*names: str, base: type[Exception] = Exception, **attributes: Any) -> type[Exception]:
    """The class of the last name, each one derived from the one before."""
    for name in names:
        base = type(name, (base,), {})
    return type(base.__name__, base.__bases__, attributes)


def made(
    *names: str, args: tuple[Any, ...] = (), base: type[Exception] = Exception, **attributes: Any
) -> Any:
    error = family(*names, base=base)(*args)
    for name, value in attributes.items():
        setattr(error, name, value)
    return error


def grpc(status: str, *names: str) -> Any:
    codes = Enum("StatusCode", {status: 1})  # type: ignore[misc]
    return made("RpcError", *names, code=lambda: codes[status])


def aws(status: int) -> Any:
    return made("ClientError", response={"ResponseMetadata": {"HTTPStatusCode": status}})


def after(error: Exception, cause: BaseException) -> Exception:
    error.__cause__ = cause
    return error


def retried(reason: Exception, *names: str) -> Any:
    """As ``requests`` tells that ``urllib3`` has given up."""
    return made(*names, args=(made("HTTPError", "MaxRetryError", args=("retries",), reason=reason),))


LATE = made("TimeoutError", "ReadTimeoutError")
UNREACHABLE = made("NewConnectionError")
BROKEN_OFF = made("HTTPError", "ProtocolError", args=("aborted", http.client.RemoteDisconnected("gone")))

NOT_THE_AGENTS = {
    "requests, refused": retried(UNREACHABLE, "RequestException", "ConnectionError"),
    "requests, no connection in time": retried(
        made("TimeoutError", "ConnectTimeoutError"), "ConnectionError", "ConnectTimeout"
    ),
    "requests, no TLS": made("ConnectionError", "SSLError", args=(ssl.SSLError("bad"),)),
    "requests, dropped": made("RequestException", "ConnectionError", args=(BROKEN_OFF,)),
    "requests, half a reply": made("RequestException", "ChunkedEncodingError"),
    "requests, status": made("HTTPError", response=SimpleNamespace(status_code=503)),
    "requests, status again and again": retried(
        made("ResponseError", args=("too many 503 error responses",)), "RetryError"
    ),
    "urllib3, dropped": BROKEN_OFF,
    "urllib3, half a reply": made("HTTPError", "ProtocolError", args=("x", http.client.IncompleteRead(b""))),
    "urllib, no connection in time": urllib.error.URLError(TimeoutError("timed out")),
    "httpx, dropped": made("TransportError", "NetworkError", "ReadError"),
    "httpx, no HTTP": made("TransportError", "ProtocolError", "RemoteProtocolError"),
    "httpx, no connection in time": made("TransportError", "TimeoutException", "ConnectTimeout"),
    "aiohttp, refused": made("ClientError", "ClientConnectionError", "ClientOSError", "ClientConnectorError"),
    "aiohttp, dropped": made("ClientConnectionError", "ServerConnectionError", "ServerDisconnectedError"),
    "aiohttp, half a reply": made("ClientError", "ClientPayloadError"),
    "aiohttp, no connection in time": made("ServerTimeoutError", "ConnectionTimeoutError"),
    "aiohttp, status": made("ClientResponseError", status=503, code=503),
    "grpc, down": grpc("UNAVAILABLE"),
    "grpc, no access": grpc("UNAUTHENTICATED", "AioRpcError"),
    "grpc, no rights": grpc("PERMISSION_DENIED", "_InactiveRpcError"),
    "grpc, too much": grpc("RESOURCE_EXHAUSTED", "_MultiThreadedRendezvous"),
    "google, status": made("GoogleAPICallError", "ServiceUnavailable", code=503),
    "aws, status": aws(429),
    "aws, refused": made("BotoCoreError", "ConnectionError", "EndpointConnectionError"),
    "anthropic, status": made("APIStatusError", status_code=529),
    "anthropic, dropped": made("APIError", "APIConnectionError"),
    "anthropic, no connection in time": after(
        made("APIConnectionError", "APITimeoutError"), made("TimeoutException", "ConnectTimeout")
    ),
    "litellm, dropped": made("APIConnectionError", base=RuntimeError, status_code=500),
    "no route": OSError(errno.EHOSTUNREACH, "No route to host"),
    "no network": OSError(errno.ENETUNREACH, "Network is unreachable"),
    "no connection in time": TimeoutError(errno.ETIMEDOUT, "Connection timed out"),
    "raised from another": after(RuntimeError("no index"), made("HTTPError", code=401)),
    "raised from a group": after(
        OSError("all failed"), ExceptionGroup("two", [ConnectionRefusedError()] * 2)
    ),
    "each one of a group": ExceptionGroup("two", [made("ConnectError"), made("HTTPError", code=503)]),
}

THE_AGENTS = {
    "requests, late": retried(LATE, "ConnectionError"),
    "requests, late once": made("RequestException", "Timeout", "ReadTimeout", args=(LATE,)),
    "requests, status": made("HTTPError", response=SimpleNamespace(status_code=404)),
    "requests, status again and again": retried(
        made("ResponseError", args=("too many 500 error responses",)), "RetryError"
    ),
    "urllib, no such file": urllib.error.URLError(FileNotFoundError(errno.ENOENT, "no such file")),
    "urllib, no such protocol": urllib.error.URLError("unknown url type: shop"),
    "httpx, late": made("TransportError", "TimeoutException", "ReadTimeout"),
    "httpx, its own mistake": made("TransportError", "ProtocolError", "LocalProtocolError"),
    "aiohttp, late": made("ClientConnectionError", "ServerTimeoutError", base=TimeoutError),
    "aiohttp, status": made("ClientResponseError", status=422),
    "grpc, its own mistake": grpc("INVALID_ARGUMENT"),
    "google, status": made("GoogleAPICallError", "BadRequest", code=400),
    "aws, status": aws(400),
    "anthropic, late": after(made("APIConnectionError", "APITimeoutError"), made("ReadTimeout")),
    "no such file": FileNotFoundError(errno.ENOENT, "no such file"),
    "late": TimeoutError("mine"),
    "a word in a text": RuntimeError("ConnectionError: too many 503 error responses"),
    "a word in arguments": RuntimeError("ConnectionError", 503),
    "an archive": made("TarError", "ReadError"),
    "a code of its own": SystemExit(401),
    "a code that is text": made("Odd", code="503"),
    "a code that is a function": made("Odd", code=lambda: 503),
    "one of two": ExceptionGroup("two", [ConnectionRefusedError(), ValueError("mine")]),
    "raised from such a group": after(
        RuntimeError("x"), ExceptionGroup("two", [ConnectionRefusedError(), ValueError("mine")])
    ),
}


@pytest.mark.parametrize("name", NOT_THE_AGENTS)
def test_a_network_or_a_provider_is_not_the_agents(name: str) -> None:
    assert isinstance(classify_exception(NOT_THE_AGENTS[name]), InfrastructureError)


@pytest.mark.parametrize("name", THE_AGENTS)
def test_everything_else_is_the_agents(name: str) -> None:
    assert isinstance(classify_exception(THE_AGENTS[name]), AgentError)


def test_an_exception_that_breaks_when_it_is_read_is_the_agents() -> None:
    def broken(_: Any) -> Any:
        raise RuntimeError("not readable")

    names = ("args", "reason", "response", "status_code", "status", "code")
    evil = type("RpcError", (Exception,), {name: property(broken) for name in names})
    assert isinstance(classify_exception(evil()), AgentError)


def test_exceptions_that_hold_each_other_are_read_once() -> None:
    one, other = Exception(), Exception()
    one.args, other.args, one.__cause__, other.__cause__ = (other,), (one,), other, one
    assert isinstance(classify_exception(one), AgentError)
