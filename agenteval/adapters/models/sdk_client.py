"""Send requests with the ``openai`` package. The package is used if the configuration asks for it, and for
Azure OpenAI, which requires the package's URLs and authentication.

The package takes the place of agenteval's ``Connection``: it accepts a request body and returns the status,
the headers and the body. Retries, limits, deadlines, budgets, adaptation to refusals and the parsing of
answers are implemented above this layer, for both alternatives. Releases 1.55 to 3.x are known to work. The
older releases use ``httpx``, which need not be installed, so this module never refers by name to the library
that the package uses."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit, urlunsplit

import anyio
import httpx2

from agenteval.adapters.models.endpoints import Endpoint
from agenteval.adapters.transport.bodies import MAX_ERROR_BODY, read_body
from agenteval.adapters.transport.connections import RawReply, client_setup_error
from agenteval.agentside.model_requests import exclude_client
from agenteval.core.errors import AuthorError, Problem
from agenteval.core.providers import AD_TOKEN
from agenteval.files.redaction import MASK

if TYPE_CHECKING:
    import ssl

_SCOPE = "https://cognitiveservices.azure.com/.default"
_NO_KEY = "none"
"""A placeholder for the key that the package always requires. The placeholder is not sent."""
_CREDENTIALS = ("authorization", "api-key")
_HEADERS = frozenset(
    (
        *("accept", "accept-encoding", "connection", "content-length", "content-type", "host", "user-agent"),
        *("transfer-encoding", *_CREDENTIALS),
    )
)


_HTTP = (httpx2.HTTPError, httpx2.InvalidURL)


class SignInError(Exception):
    """Raised if no token for authentication is available."""


class SdkPost:
    """Sends any number of requests to one endpoint concurrently.

    ``verify`` and ``trust_env`` are passed to the HTTP library. The constructor raises ``AuthorError`` if the
    package is missing or cannot be set up."""

    def __init__(
        self,
        endpoint: Endpoint,
        provider: str,
        *,
        verify: ssl.SSLContext,
        trust_env: bool,
        connect_s: float,
    ) -> None:
        openai = _package()
        self._tokens = _Tokens() if provider == "azure" and not endpoint.key else None
        timeout = openai.Timeout(None, connect=connect_s)
        # The package takes headers from OPENAI_* variables, whatever the server.
        hooks = {} if provider == "openai" else {"request": [_header_filter(endpoint, provider)]}
        try:
            http = openai.DefaultAsyncHttpxClient(
                verify=verify, trust_env=trust_env, follow_redirects=False, timeout=timeout, event_hooks=hooks
            )
        except (OSError, ValueError, ImportError) as exc:
            raise client_setup_error(exc) from exc
        options: dict[str, Any] = {"max_retries": 0, "timeout": timeout, "http_client": http}
        parts = urlsplit(endpoint.url)
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        address = urlunsplit((parts.scheme, parts.netloc, parts.path, "", ""))
        if provider == "azure":
            version = query.pop("api-version")
            options |= {"azure_endpoint": address, "api_version": version, **self._credential(endpoint)}
            self._client: Any = openai.AsyncAzureOpenAI(default_query=query, **options)
        else:
            options |= {"base_url": address.removesuffix("/chat/completions")}
            key = endpoint.key or _NO_KEY
            self._client = openai.AsyncOpenAI(api_key=key, default_query=query, **options)
        exclude_client(http)
        # Looked up here, since that imports half of the package.
        self._create = self._client.chat.completions.with_streaming_response.create

    def _credential(self, endpoint: Endpoint) -> dict[str, Any]:
        if self._tokens:
            return {"azure_ad_token_provider": self._tokens.get}
        return {"azure_ad_token" if endpoint.key_name == AD_TOKEN else "api_key": endpoint.key}

    async def post(self, body: bytes) -> RawReply:
        """Send ``body`` and return the reply, regardless of its status.

        Raise ``SignInError``, ``TooLargeError``, and the same exceptions as agenteval's HTTP library."""
        openai = _package()
        fields = _sendable(body)
        ask = self._create(model=fields["model"], messages=fields["messages"], extra_body=fields)
        try:
            async with ask as response:
                content = await read_body(response.iter_bytes(), None)
                return RawReply(response.status_code, response.headers.raw, content)
        except openai.APIStatusError as refused:
            content = refused.response.content[:MAX_ERROR_BODY]
            if self._tokens:
                content = self._tokens.mask(content)
            return RawReply(refused.status_code, refused.response.headers.raw, content)
        except Exception as exc:
            failed = _to_own_error(exc)
        raise failed  # outside the handler, where its cause would become its own context

    async def aclose(self) -> None:
        """Close all connections. Calling this twice is safe."""
        await self._client.close()


def _package() -> Any:
    """Import the ``openai`` package on demand, because the import takes half a second."""
    try:
        return import_module("openai")
    except ImportError as exc:
        what = f"the package openai cannot be imported: {exc}"
        raise AuthorError(Problem(what, "pip install 'openai>=1.55.3,<4'")) from exc


def _header_filter(endpoint: Endpoint, provider: str) -> Callable[[Any], Awaitable[None]]:
    """Return a hook that removes headers that the environment added to a request.

    Only the key selected in the configuration is sent."""
    is_azure_key = provider == "azure" and endpoint.key_name != AD_TOKEN
    chosen = ("api-key", endpoint.key) if is_azure_key else ("authorization", f"Bearer {endpoint.key}")

    async def hook(request: Any) -> None:
        headers = request.headers
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

    return hook


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


def _to_own_error(exc: Exception) -> Exception:
    """Convert an exception to the one that agenteval's HTTP library would have raised.

    The libraries that the package uses define the same exceptions with the same names. The package wraps all
    of those exceptions."""
    while _package_of(exc) == "openai" and isinstance(exc.__cause__, Exception):
        exc = exc.__cause__
    ours = getattr(httpx2, type(exc).__name__, None)
    if _package_of(exc) == "openai":
        made: Exception = httpx2.LocalProtocolError(str(exc))
    elif _package_of(exc) == "httpx" and isinstance(ours, type) and issubclass(ours, _HTTP):
        made = httpx2.RequestError(str(exc)) if ours is httpx2.HTTPStatusError else ours(str(exc))
    else:
        return exc
    made.__cause__ = exc
    return made


def _package_of(exc: BaseException) -> str:
    return type(exc).__module__.partition(".")[0]
