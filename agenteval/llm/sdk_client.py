"""The ``openai`` package, as far as it is used: one request, and its exceptions translated once.

Its response models are bypassed: they cost as much CPU as all the rest of a call (see
``benchmarks/model_calls.py``), and servers that only resemble OpenAI do not fit them anyway. So are its
retries, which would sleep in a slot of the pool, and its habit of taking headers from the environment,
which would send one provider's identifiers to another.
"""

from __future__ import annotations

import json
import ssl
import time
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any

import anyio
import httpx2
import openai

from agenteval.errors import AuthorError, Problem
from agenteval.http_faults import KINDS, Fault, FaultKind, fault_kind, quote
from agenteval.llm.endpoints import Endpoint
from agenteval.llm.refusals import Refusal, refusal_of
from agenteval.transport import retry_after_s

_CONNECT_S = 10.0
# Common servers close an idle connection after 5 s; a request sent just then would be lost.
_KEEPALIVE_S = 3.0


class FailedCall(Exception):  # noqa: N818  # control flow within this package, never seen outside
    """A request without a completion: the server refused it, or there was no reply."""

    def __init__(self, cause: Refusal | Fault) -> None:
        super().__init__(cause)
        self.cause = cause


class SdkClient:
    """Requests to one endpoint. ``timeout_s`` bounds each from its start to its last byte."""

    def __init__(self, endpoint: Endpoint, *, timeout_s: float) -> None:
        self._endpoint = endpoint
        self._timeout_s = timeout_s
        self._client = _Client(endpoint)

    async def post(self, body: bytes) -> Any:
        """The reply to ``body`` as JSON. Raises ``FailedCall``."""
        try:
            with anyio.fail_after(self._timeout_s):
                response = await self._client.post(self._endpoint.url, cast_to=httpx2.Response, content=body)
        except TimeoutError as exc:
            raise FailedCall(self._fault(FaultKind.DEADLINE, f"{self._timeout_s:g} s")) from exc
        except (openai.OpenAIError, httpx2.InvalidURL, UnicodeError, OverflowError) as exc:
            raise FailedCall(self._cause(exc)) from exc
        return self._completion(response)

    async def aclose(self) -> None:
        """Close all connections; may be called twice."""
        await self._client.close()

    def _completion(self, response: httpx2.Response) -> Any:
        reply = _json(response)
        if isinstance(reply, dict) and reply.get("choices"):
            return reply
        if isinstance(reply, str):
            what = "a web page" if "<html" in reply[:1000].lower() else "no JSON"
            raise FailedCall(self._fault(FaultKind.GARBLED, f"it is {what}: {reply}"))
        if isinstance(reply, dict) and (reply.get("error") or reply.get("detail")):
            raise FailedCall(refusal_of(response.status_code, reply, retry_after_s=_asked_s(response)))
        return reply

    def _cause(self, exc: Exception) -> Refusal | Fault:
        """What an exception of the package, or of the HTTP library below it, means."""
        if isinstance(exc, openai.APIStatusError):
            response = exc.response
            if response.is_redirect:
                to = response.headers.get("location", "").partition("?")[0]
                return self._fault(FaultKind.STATUS, f"to {to}", response.status_code)
            return refusal_of(response.status_code, _json(response), retry_after_s=_asked_s(response))
        return self._fault(_kind(exc.__cause__ or exc), str(exc.__cause__ or exc))

    def _fault(self, kind: FaultKind, detail: str, status: int | None = None) -> Fault:
        return Fault(kind, self._endpoint.shown, quote(detail, (self._endpoint.key,), 300), status)


class _Client(openai.AsyncOpenAI):
    """The package's client with the headers that we choose: a key only where there is one, and nothing
    about this machine or from ``OPENAI_*`` variables."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._ours: dict[str, Any] = {
            "Accept": "application/json",
            "Content-Type": "application/json",
            "User-Agent": "agenteval",
        }
        if endpoint.key:
            self._ours["Authorization"] = f"Bearer {endpoint.key}"
        # The key goes into the headers above; an empty one keeps the package from looking for its own.
        super().__init__(
            api_key="",
            base_url=endpoint.url,
            max_retries=0,
            timeout=httpx2.Timeout(None, connect=_CONNECT_S),
            http_client=_http_client(),
            _enforce_credentials=False,
        )

    @property
    def default_headers(self) -> dict[str, Any]:
        return self._ours

    def _validate_headers(self, headers: Any, custom_headers: Any) -> None:
        """No key is no mistake: local servers want none."""


def _http_client() -> httpx2.AsyncClient:
    this_machine = ("localhost", "127.0.0.1", "[::1]")
    try:
        return httpx2.AsyncClient(
            follow_redirects=False,  # a redirect would take the key along
            limits=httpx2.Limits(
                max_connections=None, max_keepalive_connections=None, keepalive_expiry=_KEEPALIVE_S
            ),
            mounts={f"all://{host}": None for host in this_machine},
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
        )
    except (OSError, ValueError, ImportError, httpx2.InvalidURL) as exc:
        remedy = "check SSL_CERT_FILE, SSL_CERT_DIR, HTTP_PROXY, HTTPS_PROXY and ALL_PROXY"
        raise AuthorError(Problem(f"the HTTP client cannot be set up: {exc}", remedy)) from exc


def _json(response: httpx2.Response) -> Any:
    """The body as JSON, or its text."""
    try:
        return json.loads(response.content)
    except ValueError:
        return response.content.decode("utf-8", "replace")


def _asked_s(response: httpx2.Response) -> float | None:
    return retry_after_s(response.headers, now_s=time.time())


def _kind(exc: BaseException) -> FaultKind:
    if isinstance(exc, ssl.SSLError):
        return FaultKind.TLS
    if isinstance(exc, anyio.EndOfStream):
        return FaultKind.DROPPED
    known = isinstance(exc, Exception) and any(cls in KINDS for cls in type(exc).__mro__)
    return fault_kind(exc) if known else FaultKind.GARBLED  # type: ignore[arg-type]
