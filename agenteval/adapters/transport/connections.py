"""Maintain a pool of HTTP clients, each of which handles one request at a time.

The HTTP library's own pool scans all of its connections, busy or idle, when a request begins and again when
it ends. With 20 requests in flight, the scan takes a tenth of the CPU time of a call; with 100, a third.
Here, each client has only one connection, so there is nothing to scan. The most recently used client is used
first, because its connection is most likely to be open."""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar
from urllib.request import getproxies

import httpcore2
import httpx2

from agenteval.adapters.transport.bodies import encoding_of, read_body, read_error_body
from agenteval.core.errors import AuthorError, Problem


class _Closable(Protocol):
    async def aclose(self) -> None: ...


Client = TypeVar("Client", bound=_Closable)


class Connections(Generic[Client]):
    """A pool of clients that are created by ``make``.

    The first client is created at once, so that an incorrect setup is reported early."""

    def __init__(self, make: Callable[[], Client]) -> None:
        self._make = make
        self._all = [make()]
        self._idle = list(self._all)

    def take(self) -> Client:
        """Return a client for exclusive use until it is returned to the pool."""
        if not self._idle:
            self._all.append(self._make())
            self._idle.append(self._all[-1])
        return self._idle.pop()

    def give_back(self, client: Client) -> None:
        self._idle.append(client)

    async def aclose(self) -> None:
        """Close all connections. Calling this twice is safe."""
        for client in self._all:
            await client.aclose()


RawHeaders: TypeAlias = Sequence[tuple[bytes, bytes]]


class RawReply(NamedTuple):
    """A complete HTTP reply."""

    status: int
    headers: RawHeaders
    content: bytes
    """The decompressed body."""

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300

    @property
    def is_redirect(self) -> bool:
        return 300 <= self.status < 400


class Connection:
    """A connection to one server. It handles one request at a time and is reopened after being closed.

    It replaces the library's client where the client's handling of pools, proxies, redirects and cookies is
    not needed, because that handling takes two fifths of the CPU time of a call. ``headers`` contains all
    headers except for the content length; ``connect_s`` and ``keepalive_s`` are in seconds. Requests raise
    the library's exceptions."""

    def __init__(
        self,
        url: httpx2.URL,
        headers: RawHeaders,
        *,
        verify: ssl.SSLContext,
        connect_s: float,
        keepalive_s: float,
    ) -> None:
        self._url = httpcore2.URL(
            scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
        )
        self._headers = tuple(headers)
        self._verify = verify
        self._timeouts = {"timeout": {"connect": connect_s}}
        self._keepalive_s = keepalive_s
        self._is_used = False
        self._connection = self._new()

    async def post(self, body: bytes) -> RawReply:
        """Send ``body`` and return the reply. Raise ``TooLargeError`` if the reply is too large."""
        request = httpcore2.Request(
            "POST",
            self._url,
            headers=[*self._headers, (b"Content-Length", b"%d" % len(body))],
            content=body,
            extensions=self._timeouts,
        )
        try:
            reply = await (await self._connected()).handle_async_request(request)
            try:
                read = read_body if 200 <= reply.status < 300 else read_error_body
                data = await read(reply.aiter_stream(), encoding_of(reply.headers))
            finally:
                await reply.aclose()
        except _CORE as exc:
            raise _to_client_error(exc) from exc
        return RawReply(reply.status, reply.headers, data)

    async def aclose(self) -> None:
        """Close the connection. Calling this twice is safe."""
        await self._connection.aclose()

    async def _connected(self) -> httpcore2.AsyncHTTPConnection:
        """Return a connection that can send a request. The server may have closed the previous connection."""
        if self._is_used and (not self._connection.is_available() or self._connection.has_expired()):
            await self._connection.aclose()
            self._connection = self._new()
        self._is_used = True
        return self._connection

    def _new(self) -> httpcore2.AsyncHTTPConnection:
        return httpcore2.AsyncHTTPConnection(
            self._url.origin,
            ssl_context=self._verify,
            keepalive_expiry=self._keepalive_s,
            network_backend=_SingleWriteBackend(),
        )


class _SingleWriteBackend(httpcore2.AnyIOBackend):
    """A network backend whose streams send each request in a single write."""

    async def connect_tcp(self, *args: Any, **options: Any) -> httpcore2.AsyncNetworkStream:
        return _SingleWriteStream(await super().connect_tcp(*args, **options))


class _SingleWriteStream(httpcore2.AsyncNetworkStream):
    """A stream that buffers data until an empty write indicates that the data is complete, and then sends the
    data.

    The library writes the headers and the body separately, and a second packet takes a twelfth of the CPU
    time of a call."""

    def __init__(self, stream: httpcore2.AsyncNetworkStream) -> None:
        self._stream = stream
        self._written: list[bytes] = []

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        if buffer:
            self._written.append(buffer)
        else:
            await self._send(timeout)

    async def _send(self, timeout: float | None) -> None:
        data, self._written = b"".join(self._written), []
        await self._stream.write(data, timeout)

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        if self._written:
            await self._send(timeout)
        return await self._stream.read(max_bytes, timeout)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def start_tls(self, *args: Any, **options: Any) -> httpcore2.AsyncNetworkStream:
        return _SingleWriteStream(await self._stream.start_tls(*args, **options))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


_CORE = (
    *(httpcore2.TimeoutException, httpcore2.NetworkError),
    *(httpcore2.ProtocolError, httpcore2.UnsupportedProtocol, httpcore2.ProxyError),
)


def _to_client_error(exc: Exception) -> Exception:
    """Convert an exception of the library's lower layer to the upper layer's exception of the same name."""
    converted: Exception = getattr(httpx2, type(exc).__name__)(str(exc))
    return converted


def is_direct(url: httpx2.URL, *, trust_env: bool) -> bool:
    """Check whether a ``Connection`` can be used for ``url``. This is the case if no proxy is set and the URL
    contains no password."""
    proxies = getproxies() if trust_env else {}
    is_proxied = any(proxies.get(scheme) for scheme in ("http", "https", "all"))
    return url.scheme in ("http", "https") and not url.userinfo and not is_proxied


def empty_ssl_context() -> ssl.SSLContext:
    """Return an empty TLS context for clients that never use TLS, because loading CA certificates takes 30
    ms."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def certificates() -> ssl.SSLContext:
    """Return the TLS context that all other clients share. ``SSL_CERT_FILE`` and ``SSL_CERT_DIR`` are
    honored.

    Raise ``AuthorError`` if the certificates cannot be loaded."""
    try:
        return _certificates(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))
    except (OSError, ValueError) as exc:
        raise client_setup_error(exc) from exc


@cache
def _certificates(file: str | None, folder: str | None) -> ssl.SSLContext:
    """Load the certificates once for each combination of values of ``SSL_CERT_FILE`` and ``SSL_CERT_DIR``."""
    return httpx2.create_ssl_context()


def client_setup_error(exc: Exception) -> AuthorError:
    """Return the error for a client that cannot be set up."""
    remedy = "check SSL_CERT_FILE, SSL_CERT_DIR, HTTP_PROXY, HTTPS_PROXY and ALL_PROXY"
    return AuthorError(Problem(f"the HTTP client cannot be set up: {exc}", remedy))
