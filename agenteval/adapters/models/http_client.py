"""Send single requests to a language model server, and translate the HTTP library's exceptions in one place.

Requests are usually sent with the HTTP library itself. The ``openai`` package (``sdk_client``) is used only
for Azure and if the configuration asks for it: the package takes half a second to import, and its response
models do not fit servers that merely resemble OpenAI."""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Callable
from typing import Any, Protocol

import anyio
import httpx2

from agenteval.adapters.models.endpoints import Endpoint
from agenteval.adapters.models.refusals import ServerRefusal, parse_refusal
from agenteval.adapters.models.sdk_client import SdkPost, SignInError
from agenteval.adapters.transport.bodies import (
    ENCODINGS,
    TooLargeError,
    encoding_of,
    read_body,
    read_error_body,
)
from agenteval.adapters.transport.connections import (
    Connection,
    Connections,
    RawReply,
    certificates,
    client_setup_error,
    empty_ssl_context,
    is_direct,
)
from agenteval.adapters.transport.http_faults import FaultKind, HttpFault, fault_kind, quote
from agenteval.adapters.transport.retry_after import parse_retry_after
from agenteval.agentside.model_requests import exclude_client
from agenteval.core.errors import AuthorError, Problem
from agenteval.messages.error_status import find_error
from agenteval.messages.sse import SseParser, looks_like_sse

_CONNECT_S = 10.0
# Common servers close an idle connection after 5 s; a request sent just then would be lost.
_KEEPALIVE_S = 3.0
_THIS_MACHINE = ("localhost", "127.0.0.1", "::1")
# In addition to the library's own: what the resolver raises for impossible host names, and what passes
# through untranslated when TLS breaks in the middle of a connection.
_LIBRARY_ERRORS = (
    *(httpx2.HTTPError, httpx2.InvalidURL),
    *(UnicodeError, OverflowError),
    *(ssl.SSLError, anyio.EndOfStream),
)


class FailedCall(Exception):  # noqa: N818  # control flow within this package, never seen outside
    """Raised for a request without a completion: the server refused the request or did not reply.

    ``tried`` describes the attempts and is used in messages."""

    def __init__(self, cause: ServerRefusal | HttpFault) -> None:
        super().__init__(cause)
        self.cause = cause
        self.tried = ""

    @property
    def retry_after_s(self) -> float | None:
        """The number of seconds that the server asks callers to wait (``Retry-After``), or ``None`` if the
        server does not ask for a wait."""
        return self.cause.retry_after_s if isinstance(self.cause, ServerRefusal) else None


class HttpClient:
    """A client for one endpoint. ``timeout_s`` limits the duration of each request, from its start to the
    last byte.

    Proxy settings in the environment (except for this machine itself), ``SSL_CERT_FILE`` and ``SSL_CERT_DIR``
    are honored. A key, if set, is sent only to the configured host, because redirects are not followed.
    ``sdk`` is the provider whose requests are sent with the ``openai`` package, or an empty string."""

    def __init__(
        self, endpoint: Endpoint, *, timeout_s: float, now: Callable[[], float] = time.time, sdk: str = ""
    ) -> None:
        self._endpoint = endpoint
        self._now = now
        self._timeout_s = timeout_s
        self._connections = Connections(_sdk_senders(endpoint, sdk) if sdk else _senders(endpoint))

    async def post(self, body: bytes) -> RawReply:
        """Send ``body`` and return the reply unchanged. Raise ``FailedCall`` if there is no reply."""
        connection = self._connections.take()
        try:
            with anyio.fail_after(self._timeout_s):
                reply = await connection.post(body)
        except TimeoutError as exc:
            raise FailedCall(self._fault(FaultKind.DEADLINE, f"{self._timeout_s:g} s")) from exc
        except TooLargeError as exc:
            raise FailedCall(self._fault(FaultKind.TOO_LARGE, "")) from exc
        except SignInError as exc:
            raise FailedCall(self._fault(FaultKind.SIGN_IN, str(exc))) from exc
        except _LIBRARY_ERRORS as exc:
            raise FailedCall(self._fault(_kind(exc), str(exc))) from exc
        finally:
            self._connections.give_back(connection)
        return reply

    async def aclose(self) -> None:
        """Close all connections. Calling this twice is safe."""
        await self._connections.aclose()

    def decode_completion(self, http: RawReply) -> Any:
        """Decode the reply as JSON. Raise ``FailedCall`` if the reply is an error or is not a completion."""
        status, reply = http.status, _json(http.content)
        if http.is_redirect:
            to = httpx2.Headers(http.headers).get("location", "").partition("?")[0]
            raise FailedCall(self._fault(FaultKind.STATUS, f"to {to}", status))
        if not http.is_success or _is_error(reply):
            refusal = parse_refusal(status, reply)
            headers = httpx2.Headers(http.headers)
            asked_s = parse_retry_after(headers, now_s=self._now(), text=refusal.text)
            raise FailedCall(refusal._replace(retry_after_s=asked_s))
        if what := _unlike_a_completion(reply):
            raise FailedCall(self._fault(FaultKind.GARBLED, f"{what}: {reply}"))
        return reply

    def _fault(self, kind: FaultKind, detail: str, status: int | None = None) -> HttpFault:
        return HttpFault(kind, self._endpoint.shown, quote(detail, (self._endpoint.key,), 300), status)


def _kind(exc: Exception) -> FaultKind:
    if isinstance(exc, ssl.SSLError):
        return FaultKind.TLS
    if isinstance(exc, anyio.EndOfStream):
        return FaultKind.DROPPED
    return FaultKind.INVALID if isinstance(exc, UnicodeError | OverflowError) else fault_kind(exc)


def _is_error(reply: Any) -> bool:
    """Check whether the reply is an error. Some gateways return an error with status 200."""
    if not isinstance(reply, dict):
        return False
    return bool(find_error(reply)) or (not reply.get("choices") and bool(reply.get("detail")))


def _unlike_a_completion(reply: Any) -> str:
    """Describe why a reply is not a completion. Return an empty string if the reply is a completion."""
    if isinstance(reply, str):
        return "it is a web page" if "<html" in reply[:1000].lower() else "it is not valid JSON"
    choices = reply.get("choices") if isinstance(reply, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    if choice is None:
        return "it has no `choices`"
    message = choice.get("message") if isinstance(choice, dict) else None
    return "" if isinstance(message, dict) else "it has no `message`"


def _json(body: bytes) -> Any:
    """Decode the body as JSON, after assembling a stream if necessary. Return the body as text if it is not
    JSON."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        text = body.decode("utf-8", "replace")
        return _streamed(body) or text if looks_like_sse(text) else text


def _streamed(body: bytes) -> dict[str, Any] | None:
    """Assemble a stream of server-sent events (SSE) into its completion or its error. Return ``None`` if the
    stream was interrupted."""
    from agenteval.messages.completion import UnreadableResponseError, assemble_completion

    try:
        return assemble_completion(SseParser().feed(body, final=True))
    except UnreadableResponseError as unreadable:
        error = unreadable.error
        return None if error is None else {"error": error}


def _url(endpoint: Endpoint) -> httpx2.URL:
    try:
        return httpx2.URL(endpoint.url)
    except (httpx2.InvalidURL, UnicodeError) as exc:
        raise AuthorError(Problem(f"{endpoint.shown} is not a URL: {exc}", "check `base_url`")) from exc


class _Sender(Protocol):
    """Sends requests to one endpoint, one at a time."""

    async def post(self, body: bytes) -> RawReply: ...

    async def aclose(self) -> None: ...


class _ClientSender:
    """Sends requests with the library's client, which supports proxies."""

    def __init__(self, client: httpx2.AsyncClient, url: httpx2.URL) -> None:
        self._client = client
        self._url = url

    async def post(self, body: bytes) -> RawReply:
        async with self._client.stream("POST", self._url, content=body) as response:
            headers = response.headers.raw
            read = read_body if response.is_success else read_error_body
            content = await read(response.aiter_raw(), encoding_of(headers))
            return RawReply(response.status_code, headers, content)

    async def aclose(self) -> None:
        await self._client.aclose()


def _sdk_senders(endpoint: Endpoint, provider: str) -> Callable[[], _Sender]:
    """Return a factory that always returns the same sender. The ``openai`` package has its own pool."""
    verify, trust_env = _tls_settings(_url(endpoint))
    post = SdkPost(endpoint, provider, verify=verify, trust_env=trust_env, connect_s=_CONNECT_S)
    return lambda: post


def _tls_settings(url: httpx2.URL) -> tuple[ssl.SSLContext, bool]:
    """Return the certificates for a server, and whether the settings in the environment apply to that server.

    A server on this machine that uses plain HTTP needs neither. For such a server, only proxies could be set
    in the environment, and these are not intended for it."""
    is_here = url.scheme == "http" and url.host in _THIS_MACHINE
    return (empty_ssl_context() if is_here else certificates()), not is_here


def _senders(endpoint: Endpoint) -> Callable[[], _Sender]:
    """Return a factory that creates identical senders for an endpoint."""
    url = _url(endpoint)
    verify, trust_env = _tls_settings(url)

    def client() -> httpx2.AsyncClient:
        return _client(endpoint, verify=verify, trust_env=trust_env)

    if not is_direct(url, trust_env=trust_env):
        return lambda: _ClientSender(client(), url)
    headers = [(k, v) for k, v in client().build_request("POST", url).headers.raw if k != b"Content-Length"]
    return lambda: Connection(url, headers, verify=verify, connect_s=_CONNECT_S, keepalive_s=_KEEPALIVE_S)


def _client(endpoint: Endpoint, *, verify: ssl.SSLContext, trust_env: bool) -> httpx2.AsyncClient:
    headers = {
        "accept": "application/json",
        "content-type": "application/json",
        "user-agent": "agenteval",
        "accept-encoding": ENCODINGS,
    }
    if endpoint.key:
        headers["authorization"] = f"Bearer {endpoint.key}"
    try:
        client = httpx2.AsyncClient(
            headers=headers,
            verify=verify,
            follow_redirects=False,
            trust_env=trust_env,
            timeout=httpx2.Timeout(None, connect=_CONNECT_S),
            limits=httpx2.Limits(
                max_connections=None, max_keepalive_connections=None, keepalive_expiry=_KEEPALIVE_S
            ),
        )
    except (OSError, ValueError, ImportError, httpx2.InvalidURL) as exc:
        raise client_setup_error(exc) from exc
    exclude_client(client)
    return client
