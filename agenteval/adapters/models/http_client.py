"""Send single requests to a language model server, and translate the HTTP library's exceptions in one place.

OpenAI and Azure are asked through the ``openai`` package (``sdk_client``), because users expect its
environment variables and its way to sign in. All other providers are asked directly: the package takes half a
second to import, and servers that merely resemble OpenAI do not need it. Both ways use ``HttpSession``."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any, Protocol

import anyio

from agenteval.adapters.models.endpoints import Endpoint
from agenteval.adapters.models.refusals import ServerRefusal, parse_refusal
from agenteval.adapters.models.sdk_client import SdkPost, SignInError
from agenteval.adapters.transport.http_faults import (
    SEND_ERRORS,
    FaultKind,
    HttpFault,
    fault_detail,
    fault_kind,
    is_web_address,
    quote,
)
from agenteval.adapters.transport.http_session import HttpSession, RawReply, header_fields
from agenteval.adapters.transport.retry_after import parse_retry_after
from agenteval.core.errors import AuthorError, Problem
from agenteval.messages.error_status import find_error
from agenteval.messages.sse import SseParser, looks_like_sse


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
        if not is_web_address(endpoint.url):
            raise AuthorError(Problem(f"{endpoint.shown} is not the URL of a server", "check `base_url`"))
        self._endpoint = endpoint
        self._now = now
        self._timeout_s = timeout_s
        self._session = HttpSession()
        self._session.require(endpoint.url)
        self._sender: _Sender = (
            SdkPost(endpoint, sdk, self._session) if sdk else _DirectPost(endpoint, self._session)
        )

    async def post(self, body: bytes) -> RawReply:
        """Send ``body`` and return the reply unchanged. Raise ``FailedCall`` if there is no reply."""
        try:
            with anyio.fail_after(self._timeout_s):
                return await self._sender.post(body)
        except SEND_ERRORS as exc:  # some of which are ``TimeoutError``, too
            raise FailedCall(self._fault(fault_kind(exc), fault_detail(exc))) from exc
        except TimeoutError as exc:
            raise FailedCall(self._fault(FaultKind.DEADLINE, f"{self._timeout_s:g} s")) from exc
        except SignInError as exc:
            raise FailedCall(self._fault(FaultKind.SIGN_IN, str(exc))) from exc

    async def aclose(self) -> None:
        """Close all connections. Calling this twice is safe."""
        await self._sender.aclose()
        await self._session.aclose()

    def decode_completion(self, http: RawReply) -> Any:
        """Decode the reply as JSON. Raise ``FailedCall`` if the reply is an error or is not a completion."""
        status, reply = http.status, _json(http.content)
        if http.is_redirect:
            to = header_fields(http.headers).get("location", "").partition("?")[0]
            raise FailedCall(self._fault(FaultKind.STATUS, f"to {to}", status))
        if not http.is_success or _is_error(reply):
            refusal = parse_refusal(status, reply)
            asked_s = parse_retry_after(header_fields(http.headers), now_s=self._now(), text=refusal.text)
            raise FailedCall(refusal._replace(retry_after_s=asked_s))
        if what := _unlike_a_completion(reply):
            raise FailedCall(self._fault(FaultKind.GARBLED, f"{what}: {reply}"))
        return reply

    def _fault(self, kind: FaultKind, detail: str, status: int | None = None) -> HttpFault:
        return HttpFault(kind, self._endpoint.shown, quote(detail, (self._endpoint.key,), 300), status)


class _Sender(Protocol):
    """Sends requests to one endpoint, any number of them concurrently."""

    async def post(self, body: bytes) -> RawReply: ...

    async def aclose(self) -> None: ...


class _DirectPost:
    """Sends requests without the ``openai`` package."""

    def __init__(self, endpoint: Endpoint, session: HttpSession) -> None:
        self._url = endpoint.url
        self._session = session
        self._headers = {"Accept": "application/json", "Content-Type": "application/json"}
        if endpoint.key:
            self._headers["Authorization"] = f"Bearer {endpoint.key}"

    async def post(self, body: bytes) -> RawReply:
        return await self._session.exchange("POST", self._url, headers=self._headers, content=body)

    async def aclose(self) -> None:
        """Do nothing. The session is closed by its owner."""


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
