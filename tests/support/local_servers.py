"""Real HTTP servers on this machine, which do what a test tells them and remember what they were asked.

::

    with LocalServer(chat("Hello"), drop()) as server:      # the first request, then every further one
        ... server.url ... server.requests[0].json ... server.connections
"""

from __future__ import annotations

import json
import socket
import ssl
import struct
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest


@dataclass(frozen=True)
class Request:
    """What a client sent. ``headers`` have lower-case names; ``connection`` counts from 0."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    connection: int

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Wire:
    """The server's end of one exchange, as a behaviour sees it."""

    def __init__(self, handler: _Handler, request: Request, stopped: threading.Event) -> None:
        self._handler = handler
        self.request = request
        self.stopped = stopped

    def head(self, status: int, headers: Mapping[str, str]) -> None:
        self._handler.send_response(status)
        for name, value in headers.items():
            self._handler.send_header(name, value)
        self._handler.end_headers()

    def write(self, data: bytes) -> None:
        self._handler.wfile.write(data)
        self._handler.wfile.flush()

    def close(self) -> None:
        self._handler.close_connection = True

    def reset(self) -> None:
        """Break the connection off at once, with a reset instead of an orderly end."""
        self._handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._handler.connection.close()
        self.close()


Behaviour = Callable[[Wire], None]


def respond(body: bytes | str, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Behaviour:
    """A whole reply with its length; plain text unless ``headers`` say otherwise."""
    data = body.encode() if isinstance(body, str) else body

    def behave(wire: Wire) -> None:
        given = {"Content-Type": "text/plain", "Content-Length": str(len(data)), **(headers or {})}
        wire.head(status, given)
        wire.write(data)

    return behave


def respond_json(value: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Behaviour:
    return respond(
        json.dumps(value), status=status, headers={"Content-Type": "application/json", **(headers or {})}
    )


def completion(content: Any = None, *, finish_reason: str | None = "stop", **message: Any) -> dict[str, Any]:
    """A chat completion; further arguments are fields of its message."""
    whole = {"role": "assistant", "content": content, **message}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": "local",
        "choices": [{"index": 0, "message": whole, "finish_reason": finish_reason}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
    }


def chat(content: Any = None, *, finish_reason: str | None = "stop", **message: Any) -> Behaviour:
    return respond_json(completion(content, finish_reason=finish_reason, **message))


def answer(function: Callable[[Request], Behaviour]) -> Behaviour:
    """A behaviour that is chosen by the request."""
    return lambda wire: function(wire.request)(wire)


def chunked(
    pieces: Iterable[bytes],
    *,
    headers: Mapping[str, str] | None = None,
    end: str = "whole",
) -> Behaviour:
    """A reply in chunks as given. ``end``: ``whole`` (as the protocol wants it), ``drop`` (the connection
    is closed in the middle), ``reset``, or ``hang`` (it stays open and nothing comes)."""

    def behave(wire: Wire) -> None:
        wire.head(200, {"Transfer-Encoding": "chunked", **(headers or {})})
        for piece in pieces:
            wire.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        if end == "whole":
            wire.write(b"0\r\n\r\n")
        elif end == "reset":
            wire.reset()
        else:
            if end == "hang":
                wire.stopped.wait()
            wire.close()

    return behave


def sse(*payloads: Any, done: bool = True, end: str = "whole", size: int | None = None) -> Behaviour:
    """A stream of events; payloads that are no text are sent as JSON. ``size``: bytes in a chunk, else
    one event in each."""
    texts = [p if isinstance(p, str) else json.dumps(p, ensure_ascii=False) for p in payloads]
    events = [f"data: {text}\n\n".encode() for text in [*texts, *(["[DONE]"] if done else [])]]
    if size:
        whole = b"".join(events)
        events = [whole[start : start + size] for start in range(0, len(whole), size)]
    return chunked(events, headers={"Content-Type": "text/event-stream"}, end=end)


def delta(content: Any = None, *, finish_reason: str | None = None, **fields: Any) -> dict[str, Any]:
    """A chunk of a streamed completion; further arguments are fields of its delta."""
    piece = {"content": content, **fields} if content is not None else fields
    return {
        "object": "chat.completion.chunk",
        "choices": [{"index": 0, "delta": piece, "finish_reason": finish_reason}],
    }


def raw(data: bytes) -> Behaviour:
    """Bytes as they are, then the end of the connection."""

    def behave(wire: Wire) -> None:
        wire.write(data)
        wire.close()

    return behave


def drop() -> Behaviour:
    """The request is read, and the connection closed without a word."""
    return Wire.close


def reset() -> Behaviour:
    return Wire.reset


def hang() -> Behaviour:
    """The request is read, and nothing is answered while the server lives."""

    def behave(wire: Wire) -> None:
        wire.stopped.wait()
        wire.close()

    return behave


def after(event: threading.Event, behaviour: Behaviour) -> Behaviour:
    """``behaviour`` once ``event`` is set (or nothing, if the server is stopped first)."""

    def behave(wire: Wire) -> None:
        while not event.wait(0.01):
            if wire.stopped.is_set():
                return wire.close()
        return behaviour(wire)

    return behave


def closed_port() -> int:
    """A port of this machine where nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class LocalServer:
    """A server in threads. Each request takes the next behaviour; the last one serves all that follow.

    ``url`` is that of its chat completions; as a proxy it is ``address``. ``connections`` counts those
    that were accepted. ``errors`` are exceptions of behaviours: a test may want it empty.
    """

    def __init__(self, *behaviours: Behaviour, tls: bool = False) -> None:
        self._behaviours = behaviours
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self.requests: list[Request] = []
        self.connections = 0
        self.errors: list[BaseException] = []
        self._server = _Server(self)
        if tls:
            self._server.socket = _tls_context().wrap_socket(self._server.socket, server_side=True)
        self.port = int(self._server.server_address[1])
        self.address = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        self.url = f"{self.address}/v1/chat/completions"

    def __enter__(self) -> LocalServer:
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._server.shutdown()
        self._server.server_close()

    def connected(self) -> int:
        with self._lock:
            self.connections += 1
            return self.connections - 1

    def serve(self, handler: _Handler, request: Request) -> None:
        with self._lock:
            behaviour = self._behaviours[min(len(self.requests), len(self._behaviours) - 1)]
            self.requests.append(request)
        try:
            behaviour(Wire(handler, request, self._stopped))
        except ConnectionError:
            handler.close_connection = True  # the client has gone, as some tests want it to
        except Exception as error:
            handler.close_connection = True
            self.errors.append(error)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, owner: LocalServer) -> None:
        self.owner = owner
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Silent: broken connections are what many tests are about."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def setup(self) -> None:
        super().setup()
        self._connection_number = self.server.owner.connected()

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.command, self.path, headers, body, self._connection_number)
        self.server.owner.serve(self, request)

    do_POST = do_GET = do_PUT = do_PATCH = do_CONNECT = _serve  # noqa: N815

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing on the tests' terminal."""


def plain_environment(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """No proxies, and the certificate of servers with ``tls=True`` as the only one that is trusted (to
    read those of the system takes longer than most of the tests that need a client)."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    path = folder / "test-ca.pem"
    path.write_text(_CERTIFICATE, encoding="ascii")
    monkeypatch.setenv("SSL_CERT_FILE", str(path))


def _tls_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "both.pem"
        path.write_text(_KEY + _CERTIFICATE, encoding="ascii")
        context.load_cert_chain(path)
    return context


# Made for these tests alone, for localhost and 127.0.0.1; it protects nothing.
_KEY = """\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgy4WNEOTwRqjg7kp+
i9/xtm7kDrQPRlpp3LioouVs0RuhRANCAAR3H5aJVBMzF/4vPVSd9zi7fjgTkXbv
RSjAf9IkVuesnvx4HD992T6AWwWJ5vKRVklBa10xTeEy5o5cVGkYuLRd
-----END PRIVATE KEY-----
"""
_CERTIFICATE = """\
-----BEGIN CERTIFICATE-----
MIIBqzCCAVGgAwIBAgIUGfbjGtMR6pgdOFMGLo/5FuV7cZMwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyMTIyMjc1MVoYDzIxMjYxMDI4
MjIyNzUxWjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAAR3H5aJVBMzF/4vPVSd9zi7fjgTkXbvRSjAf9IkVuesnvx4HD992T6A
WwWJ5vKRVklBa10xTeEy5o5cVGkYuLRdo38wfTAdBgNVHQ4EFgQUkJTJU8JwusyS
tATgRFUMxHVHnyAwHwYDVR0jBBgwFoAUkJTJU8JwusyStATgRFUMxHVHnyAwGgYD
VR0RBBMwEYIJbG9jYWxob3N0hwR/AAABMA4GA1UdDwEB/wQEAwIChDAPBgNVHRMB
Af8EBTADAQH/MAoGCCqGSM49BAMCA0gAMEUCIQCAIU55uX8Yr5g2KWD+8AQdJn2v
1jlK+vXLeSm1PIlGjwIgQq93LJ8T6NaibwwFMB/Dg8qhfd9RR3qkV6d0tPuPRAo=
-----END CERTIFICATE-----
"""
