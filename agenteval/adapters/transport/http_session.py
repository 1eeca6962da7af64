"""Send HTTP requests with aiohttp, the only HTTP client of agenteval.

The types of aiohttp are not exposed outside this package. For its exceptions, see ``http_faults``."""

from __future__ import annotations

import io
import math
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import aiohttp
from yarl import URL

from agenteval.adapters.transport.bodies import ENCODINGS, encoding_of, read_body, read_error_body
from agenteval.adapters.transport.environment import ProxyTable, certificates, check_certificates

CONNECT_S = 10.0
"""The maximum time in seconds for connecting to a server: DNS, TCP, TLS, and a proxy's tunnel."""
# Common servers close an idle connection after 5 s; a request sent just then would be lost.
_KEEPALIVE_S = 3.0
_LONGEST_HEADER = 2**16
_LARGE = 2**20

RawHeaders: TypeAlias = Sequence[tuple[bytes, bytes]]


class UnsendableRequestError(Exception):
    """Raised if a request cannot be sent, because its URL or a header is malformed."""


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


class HttpSession:
    """A pool of connections, with any number of requests in flight.

    Proxy settings in the environment (except for this machine itself), ``SSL_CERT_FILE`` and ``SSL_CERT_DIR``
    are honored. Redirects are not followed and cookies are not stored, so requests share no state. A request
    is never repeated, except for a GET request whose connection the server closed before answering.

    The session opens with the first request, in the event loop of that request."""

    def __init__(self) -> None:
        self._proxies = ProxyTable()
        self._session: aiohttp.ClientSession | None = None

    def require(self, url: str) -> None:
        """Raise ``AuthorError`` if the environment's proxy or certificates for ``url`` cannot be used."""
        with suppress(ValueError):  # a malformed URL is a fault of the request
            address, _ = _address(url)
            check_certificates(address)
            self._proxies.proxy_for(address)

    async def send(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        content: bytes | None,
        connect_s: float = CONNECT_S,
    ) -> aiohttp.ClientResponse:
        """Send a request and return the response as soon as its headers have arrived. The body has not been
        read or decompressed yet. The caller must use the response as an asynchronous context manager.

        Raise ``UnsendableRequestError`` or an exception of the HTTP library."""
        session = self._session or self._open()
        try:
            address, credentials = _address(url)
            if credentials:  # in place of others
                others = {name: value for name, value in headers.items() if name.lower() != "authorization"}
                headers = {**others, "Authorization": credentials}
            return await session.request(
                method,
                address,
                data=io.BytesIO(content) if content and len(content) > _LARGE else content,
                headers=headers,
                allow_redirects=False,
                proxy=self._proxies.proxy_for(address),
                ssl=certificates() if address.scheme == "https" else True,
                timeout=aiohttp.ClientTimeout(total=None, connect=connect_s, ceil_threshold=math.inf),
            )
        except aiohttp.ClientError:
            raise
        except (ValueError, OverflowError) as exc:  # such as a label of a host name that is too long
            raise UnsendableRequestError(str(exc)) from exc

    async def exchange(
        self, method: str, url: str, *, headers: Mapping[str, str], content: bytes | None
    ) -> RawReply:
        """Send a request and read the complete reply. Raise the same errors as ``send`` and ``read_body``."""
        async with await self.send(method, url, headers=headers, content=content) as response:
            raw = response.raw_headers
            read = read_body if response.ok else read_error_body
            body = await read(response.content.iter_any(), encoding_of(raw))
            return RawReply(response.status, raw, body)

    async def aclose(self) -> None:
        """Close all connections. Calling this twice is safe."""
        session, self._session = self._session, None
        if session:
            await session.close()

    def _open(self) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(
            limit=0,
            keepalive_timeout=_KEEPALIVE_S,
            # The system's resolver, whatever else is installed: it knows the host names of this machine.
            resolver=aiohttp.ThreadedResolver(),
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": "agenteval", "Accept-Encoding": ENCODINGS},
            auto_decompress=False,
            max_line_size=_LONGEST_HEADER,
            max_field_size=_LONGEST_HEADER,
        )
        return self._session


def header_fields(raw: RawHeaders) -> dict[str, str]:
    """Decode raw headers: names in lower case, and the values of repeated headers joined by commas."""
    found: dict[str, str] = {}
    for raw_name, raw_value in raw:
        name, value = raw_name.decode("latin-1").lower(), _decode(raw_value)
        found[name] = f"{found[name]}, {value}" if name in found else value
    return found


def _decode(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


@lru_cache(maxsize=256)
def _address(url: str) -> tuple[URL, str]:
    """Parse a URL. Also return its user name and password as the value of an ``Authorization`` header, which
    is empty if there are none.

    A URL whose characters are all allowed is sent as it is, because a signature in it may cover its encoding.
    """
    parsed = URL(url, encoded=bool(_URL_CHARACTERS.fullmatch(url)))
    if parsed.user is None and parsed.password is None:
        return parsed, ""
    credentials = b64encode(f"{parsed.user or ''}:{parsed.password or ''}".encode()).decode()
    return parsed.with_user(None), f"Basic {credentials}"


_URL_CHARACTERS = re.compile(r"[A-Za-z0-9\-._~:/?#\[\]@!$&'(),;=%+*]*")  # RFC 3986, section 2
