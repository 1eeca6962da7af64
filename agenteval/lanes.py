"""HTTP clients side by side, each for one request at a time.

The HTTP library's pool looks at all of its connections, busy or idle, when a request begins and again when
it ends: with 20 in flight that is a tenth of the CPU of a call, with 100 a third. A lane has one connection,
so there is nothing to look through. The one used last is taken first: it is the warmest.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable

import httpx2

from agenteval.errors import AuthorError, Problem


class Lanes:
    """``make`` gives one more client. It is called for the first one at once, so that what is wrong with it
    is told when the lanes are made."""

    def __init__(self, make: Callable[[], httpx2.AsyncClient]) -> None:
        self._make = make
        self._all = [make()]
        self._idle = list(self._all)

    def take(self) -> httpx2.AsyncClient:
        """A client that nobody else uses until it is given back."""
        if not self._idle:
            self._all.append(self._make())
            self._idle.append(self._all[-1])
        return self._idle.pop()

    def give_back(self, client: httpx2.AsyncClient) -> None:
        self._idle.append(client)

    async def aclose(self) -> None:
        """Close all connections; may be called twice."""
        for client in self._all:
            await client.aclose()


def no_certificates() -> ssl.SSLContext:
    """For clients that never speak TLS. To load the certificates of authorities takes 30 ms."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def certificates() -> ssl.SSLContext:
    """For all other clients, shared by them; ``SSL_CERT_FILE`` and ``SSL_CERT_DIR`` are heeded. Raises
    ``AuthorError``."""
    try:
        return httpx2.create_ssl_context()
    except (OSError, ValueError) as exc:
        raise not_set_up(exc) from exc


def not_set_up(exc: Exception) -> AuthorError:
    """What is said where no client can be made."""
    remedy = "check SSL_CERT_FILE, SSL_CERT_DIR, HTTP_PROXY, HTTPS_PROXY and ALL_PROXY"
    return AuthorError(Problem(f"the HTTP client cannot be set up: {exc}", remedy))
