"""Send requests with the ``openai`` package: to OpenAI and Azure, and to other providers if the configuration
asks for it.

The package stands between a request body and agenteval's ``HttpSession``: it builds the URL and the headers.
Retries, limits, deadlines, budgets, adaptation to refusals and the parsing of
answers are implemented above this layer, for both alternatives. Releases 1.55 to 3.x are known to work. The
older releases use ``httpx``, which need not be installed, so this module never refers by name to the library
that the package uses."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from importlib import import_module
from typing import Any
from urllib.parse import parse_qsl, urlsplit, urlunsplit

import anyio

from agenteval.adapters.models.endpoints import Endpoint
from agenteval.adapters.transport.http_session import (
    HttpSession,
    RawReply,
    UnsendableRequestError,
    header_fields,
)
from agenteval.agentside.model_requests import exclude_client
from agenteval.core.errors import AuthorError, Problem
from agenteval.core.providers import AD_TOKEN
from agenteval.files.redaction import MASK

_SCOPE = "https://cognitiveservices.azure.com/.default"
_NO_KEY = "none"
"""A placeholder for the key that the package always requires. The placeholder is not sent."""
_PATH = "/chat/completions"
_REPLY = "agenteval_reply"
"""The key under which the package's response carries the reply as it came."""
_OF_SESSION = ("accept-encoding", "connection", "content-length", "host", "transfer-encoding")
"""The headers that the session sets itself."""
_WRAPPERS = ("openai", "httpx", "httpx2")
_CREDENTIALS = ("authorization", "api-key")
_HEADERS = frozenset((*("accept", "content-type", "user-agent", *_CREDENTIALS),))


class SignInError(Exception):
    """Raised if no token for authentication is available."""


class SdkPost:
    """Sends any number of requests to one endpoint concurrently.

    The package builds and signs the requests; ``session`` sends them. The constructor raises ``AuthorError``
    if the package is missing or cannot be set up."""

    def __init__(self, endpoint: Endpoint, provider: str, session: HttpSession) -> None:
        openai = _package()
        self._tokens = _Tokens() if provider == "azure" and not endpoint.key else None
        library = _http_library(openai)
        # The package takes headers from OPENAI_* variables, whatever the server.
        prepare = _all_headers if provider == "openai" else _header_filter(endpoint, provider)
        http = openai.DefaultAsyncHttpxClient(
            transport=_session_transport(library, session, prepare), trust_env=False, follow_redirects=False
        )
        exclude_client(http)
        options: dict[str, Any] = {"max_retries": 0, "timeout": None, "http_client": http}
        parts = urlsplit(endpoint.url)
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        address = urlunsplit((parts.scheme, parts.netloc, parts.path, "", ""))
        if provider == "azure":
            version = query.pop("api-version")
            options |= {"azure_endpoint": address, "api_version": version, **self._credential(endpoint)}
            self._client: Any = openai.AsyncAzureOpenAI(default_query=query, **options)
        else:
            options |= {"base_url": address.removesuffix(_PATH)}
            key = endpoint.key or _NO_KEY
            self._client = openai.AsyncOpenAI(api_key=key, default_query=query, **options)
        self._status_error: type[Exception] = openai.APIStatusError
        self._package_error: type[Exception] = openai.OpenAIError
        self._response_class = library.Response

    def _credential(self, endpoint: Endpoint) -> dict[str, Any]:
        if self._tokens:
            return {"azure_ad_token_provider": self._tokens.get}
        return {"azure_ad_token" if endpoint.key_name == AD_TOKEN else "api_key": endpoint.key}

    async def post(self, body: bytes) -> RawReply:
        """Send ``body`` and return the reply, regardless of its status.

        Raise ``SignInError``, and the same exceptions as ``HttpSession.exchange``."""
        # The response as it is: the package's models do not fit every server, and cost as much as a request.
        try:
            response = await self._client.post(_PATH, cast_to=self._response_class, body=_sendable(body))
        except self._status_error as refused:
            response = refused.response  # type: ignore[attr-defined]
        except self._package_error as exc:
            raise _innermost(exc) from exc
        reply: RawReply = response.extensions[_REPLY]
        if self._tokens and not reply.is_success:
            return reply._replace(content=self._tokens.mask(reply.content))
        return reply

    async def aclose(self) -> None:
        """Close the client. Calling this twice is safe."""
        await self._client.close()


def _http_library(openai: Any) -> Any:
    """Return the HTTP library that the package uses: ``httpx`` or, from 3.x on, ``httpx2``."""
    client = next(cls for cls in openai.DefaultAsyncHttpxClient.__mro__ if cls.__name__ == "AsyncClient")
    return import_module(client.__module__.partition(".")[0])


def _session_transport(library: Any, session: HttpSession, prepare: Callable[[dict[str, str]], None]) -> Any:
    """Return a transport for the library's client that sends requests with ``session``.

    ``prepare`` changes the headers of a request before it is sent."""

    class SessionTransport(library.AsyncBaseTransport):  # type: ignore[misc]
        async def handle_async_request(self, request: Any) -> Any:
            headers = header_fields(request.headers.raw)
            for name in _OF_SESSION:
                headers.pop(name, None)
            prepare(headers)
            url, content = str(request.url), await request.aread()
            reply = await session.exchange(request.method, url, headers=headers, content=content)
            return library.Response(reply.status, request=request, extensions={_REPLY: reply})

    return SessionTransport()


def _package() -> Any:
    """Import the ``openai`` package on demand, because the import takes half a second."""
    try:
        return import_module("openai")
    except ImportError as exc:
        what = f"the package openai cannot be imported: {exc}"
        raise AuthorError(Problem(what, "pip install 'openai>=1.55.3,<4'")) from exc


def _all_headers(headers: dict[str, str]) -> None:
    """Send all headers that the package sets."""


def _header_filter(endpoint: Endpoint, provider: str) -> Callable[[dict[str, str]], None]:
    """Return a function that removes headers that the environment added to a request.

    Only the key selected in the configuration is sent."""
    is_azure_key = provider == "azure" and endpoint.key_name != AD_TOKEN
    chosen = ("api-key", endpoint.key) if is_azure_key else ("authorization", f"Bearer {endpoint.key}")

    def prepare(headers: dict[str, str]) -> None:
        for name in [
            name for name in headers if name not in _HEADERS and not name.startswith("x-stainless-")
        ]:
            del headers[name]
        if provider == "azure" and not endpoint.key:
            return  # the token fetched for this request is there
        for name in _CREDENTIALS:
            headers.pop(name, None)
        if endpoint.key:
            headers[chosen[0]] = chosen[1]

    return prepare


def _sendable(body: bytes) -> dict[str, Any]:
    """Replace lone surrogates in the fields of a request, because the package encodes text as UTF-8."""
    fields: dict[str, Any] = json.loads(body)
    if b"\\ud" in body:
        fields = json.loads(json.dumps(fields, ensure_ascii=False).encode("utf-8", "replace"))
    return fields


# ── tokens of Entra ID ───────────────────────────────────────────────────────────────────────────


class _Tokens:
    """Provides tokens from ``azure-identity``, which caches and renews them.

    The tokens are obtained from the environment, a managed identity, or the user who is signed in on this
    machine."""

    def __init__(self) -> None:
        try:
            identity: Any = import_module("azure.identity")
        except ImportError as exc:
            what = f"azure-identity cannot be imported: {exc}"
            raise AuthorError(Problem(what, "reinstall it, or set AZURE_OPENAI_API_KEY")) from exc
        # The error contains what it would log; a configured logger still gets it.
        logging.getLogger("azure.identity").addHandler(logging.NullHandler())
        self._next = identity.get_bearer_token_provider(identity.DefaultAzureCredential(), _SCOPE)
        self._last = ""

    async def get(self) -> str:
        """Return a token. Raise ``SignInError`` if no token is available."""
        try:
            token = await anyio.to_thread.run_sync(self._next, abandon_on_cancel=True)
        except Exception as exc:
            raise SignInError(str(exc)) from exc
        self._last = str(token)
        return self._last

    def mask(self, content: bytes) -> bytes:
        """Mask the token in the server's text. No other code masks the token, because no environment variable
        contains it."""
        return content.replace(self._last.encode(), MASK.encode()) if self._last else content


# ── errors ───────────────────────────────────────────────────────────────────────────────────────


def _innermost(exc: Exception) -> Exception:
    """Return the exception that the package wrapped, which is the session's. The package's own complaint
    about a request is an ``UnsendableRequestError``."""
    cause: BaseException = exc
    while isinstance(cause.__cause__, Exception) and _package_of(cause) in _WRAPPERS:
        cause = cause.__cause__
    if isinstance(cause, Exception) and _package_of(cause) not in _WRAPPERS:
        return cause
    return UnsendableRequestError(str(exc))


def _package_of(exc: BaseException) -> str:
    return type(exc).__module__.partition(".")[0]
