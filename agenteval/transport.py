"""HTTP for the adapters: one connection pool a run, deadlines, retries, server-sent events.

The HTTP library does not show above this module: see ``http_faults`` for its exceptions.
"""

from __future__ import annotations

import contextlib
import json
import math
import random
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, NamedTuple

import anyio
import httpx2

from agenteval.errors import AuthorError, Problem
from agenteval.http_faults import (
    MAX_BODY,
    Classify,
    Fault,
    FaultKind,
    classify,
    describe,
    fault_kind,
    is_web_address,
    quote,
    without_query,
)
from agenteval.sse import SseParser, ends_stream, looks_like_sse

_ERROR_BODY = 64 * 2**10  # of an error reply only a quotation is used
_CONNECT_S = 10.0
_DRAIN_S = 0.2
# Common servers close an idle connection after 5 s; a request sent just then would be lost.
_KEEPALIVE_S = 3.0
_RETRIED = frozenset({408, 425, 429, 502, 503, 504, 529})


class Retry(NamedTuple):
    """A request will be sent again. ``attempt``: the number of the one that failed, from 1."""

    where: str
    reason: str
    attempt: int
    wait_s: float


@dataclass(frozen=True)
class RetryPolicy:
    """When to try again: exponential back-off with jitter, or as the server's ``Retry-After`` says.

    A longer ``Retry-After`` than ``max_wait_s``, or waits of more than ``max_total_s``, are not
    waited for. ``sleep``, ``jitter`` (0 to 1) and ``now`` (seconds since 1970) are seams.
    """

    retries: int = 2
    base_s: float = 0.5
    max_wait_s: float = 30.0
    max_total_s: float = 60.0
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep
    jitter: Callable[[], float] = random.random
    now: Callable[[], float] = time.time

    def wait_s(self, attempt: int, *, waited_s: float, asked_s: float | None) -> float | None:
        """Seconds to wait after ``attempt`` failed; ``None``: do not try again."""
        if attempt > self.retries:
            return None
        jitter = self.jitter()
        wait = self.base_s * 2 ** (attempt - 1) * (1 + jitter) / 2
        if asked_s is not None:
            if asked_s > self.max_wait_s:
                return None
            # Jitter here too: all conversations were told the same moment.
            wait = asked_s + self.base_s * jitter
        return None if waited_s + wait > self.max_total_s else wait


def retry_after_s(headers: Mapping[str, str], *, now_s: float) -> float | None:
    """What the server asks to wait: ``retry-after-ms``, or ``retry-after`` as seconds or a date."""
    number = r"\s*\d{1,9}(\.\d+)?\s*"
    millis, after = headers.get("retry-after-ms", ""), headers.get("retry-after", "")
    if re.fullmatch(number, millis):
        return float(millis) / 1000
    if re.fullmatch(number, after):
        return float(after)
    try:
        return max(0.0, parsedate_to_datetime(after).timestamp() - now_s)
    except (ValueError, OverflowError):
        return None


@dataclass(frozen=True)
class HttpReply:
    """A reply with a status of success. ``headers`` have lower-case names. ``latency_ms`` is that of
    the successful attempt, to the last byte needed. ``events``: the payloads of the body's
    server-sent events, ``None`` if the body is something else."""

    status: int
    headers: Mapping[str, str]
    text: str
    latency_ms: float
    attempts: int = 1
    events: tuple[str, ...] | None = None


@dataclass(frozen=True)
class _Request:
    url: str
    content: bytes
    headers: httpx2.Headers
    timeout_s: float
    secrets: tuple[str, ...]

    def fault(self, kind: FaultKind, detail: str = "", *, status: int | None = None) -> Fault:
        return Fault(kind, quote(without_query(self.url), self.secrets), quote(detail, self.secrets), status)


class _FailedAttempt(Exception):  # noqa: N818  # control flow inside this module, never seen outside
    def __init__(self, fault: Fault, asked_s: float | None = None) -> None:
        super().__init__(fault)
        self.fault = fault
        self.asked_s = asked_s

    @property
    def may_retry(self) -> bool:
        """Only if the request was surely not carried out, or the server asks for it."""
        return self.fault.kind is FaultKind.REFUSED or self.fault.status in _RETRIED


@dataclass
class _Progress:
    """How far an attempt is. A deadline before the request has begun to leave is a matter of the
    connection; one after that, of whoever answers."""

    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    sent: bool = False

    async def trace(self, event: str, info: Mapping[str, Any]) -> None:
        if event.endswith("send_request_headers.started"):
            self.sent = self.sent or info["request"].method == b"POST"  # not the CONNECT to a proxy


@dataclass
class _Body:
    data: bytearray = field(default_factory=bytearray)
    events: list[str] = field(default_factory=list)
    read_at: float = 0.0


class Transport:
    """The connection pool of a run. Whoever makes it closes it.

    Environment proxies (not for this machine itself), ``SSL_CERT_FILE`` and ``SSL_CERT_DIR`` are
    honoured. Redirects are not followed, and cookies are not kept: conversations share nothing.
    """

    def __init__(
        self, *, retry: RetryPolicy | None = None, on_retry: Callable[[Retry], None] | None = None
    ) -> None:
        self._retry = retry or RetryPolicy()
        self._on_retry = on_retry
        self._client = _client()

    async def post_json(
        self,
        url: str,
        body: Mapping[str, Any],
        *,
        headers: Mapping[str, str] | None = None,
        timeout_s: float,
        secrets: tuple[str, ...] = (),
        classify: Classify = classify,
    ) -> HttpReply:
        """Send ``body`` as JSON and read the whole reply, plain or as server-sent events.

        ``timeout_s`` bounds each attempt from start to last byte. Raises what ``classify`` makes of a
        fault, every status outside 200–299 being one.
        """
        # Escaping all but ASCII keeps lone surrogates, which UTF-8 cannot hold, from raising here.
        request = _Request(url, json.dumps(body).encode(), _headers(headers), timeout_s, secrets)
        if not is_web_address(url):
            raise classify(request.fault(FaultKind.INVALID))
        waited_s, attempt = 0.0, 0
        while True:
            attempt += 1
            try:
                return await self._attempt(request, attempt)
            except _FailedAttempt as failed:
                wait_s = None
                if failed.may_retry:
                    wait_s = self._retry.wait_s(attempt, waited_s=waited_s, asked_s=failed.asked_s)
                if wait_s is None:
                    raise classify(failed.fault) from failed.__cause__
                self._tell(failed.fault, attempt, wait_s)
            await self._retry.sleep(wait_s)
            waited_s += wait_s

    async def aclose(self) -> None:
        """Close all connections; may be called twice."""
        await self._client.aclose()

    def _tell(self, fault: Fault, attempt: int, wait_s: float) -> None:
        if self._on_retry:
            reason = describe(fault).removeprefix(f"{fault.where}: ")
            self._on_retry(Retry(fault.where, reason, attempt, wait_s))

    async def _attempt(self, request: _Request, attempt: int) -> HttpReply:
        progress = _Progress()
        try:
            with anyio.fail_after(request.timeout_s) as progress.scope:
                return await self._exchange(request, attempt, progress)
        except TimeoutError as exc:
            kind = FaultKind.DEADLINE if progress.sent else FaultKind.CONNECT_TIMEOUT
            raise _FailedAttempt(request.fault(kind, f"{request.timeout_s:g} s")) from exc
        except (httpx2.HTTPError, httpx2.InvalidURL) as exc:
            raise _FailedAttempt(request.fault(fault_kind(exc), str(exc))) from exc

    async def _exchange(self, request: _Request, attempt: int, progress: _Progress) -> HttpReply:
        started = time.perf_counter()
        async with self._client.stream(
            "POST",
            request.url,
            content=request.content,
            headers=request.headers,
            # Below the deadline: when the library itself gives up, it closes its half-open socket.
            timeout=httpx2.Timeout(None, connect=min(_CONNECT_S, 0.9 * request.timeout_s)),
            extensions={"trace": progress.trace},
        ) as response:
            if not response.is_success:
                raise await self._refusal(request, response)
            chunks = response.aiter_bytes()
            body = await _read(chunks, request)
            progress.scope.deadline = math.inf  # the reply is whole: what follows is tidying up
            await _drain(chunks)
        text = body.data.decode("utf-8-sig", "replace")
        is_sse = "text/event-stream" in response.headers.get("content-type", "") or looks_like_sse(text)
        return HttpReply(
            status=response.status_code,
            headers=dict(response.headers),
            text=text,
            latency_ms=(body.read_at - started) * 1000,
            attempts=attempt,
            events=tuple(body.events) if is_sse else None,
        )

    async def _refusal(self, request: _Request, response: httpx2.Response) -> _FailedAttempt:
        """A status that is no success; its body, whole or not, is only quoted."""
        body = bytearray()
        with contextlib.suppress(httpx2.HTTPError):  # the status says more than a body cut short
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > _ERROR_BODY:
                    break
        detail = body[:_ERROR_BODY].decode("utf-8", "replace")
        if response.has_redirect_location:
            detail = f"to {response.headers['location'].partition('?')[0]}"
        asked_s = retry_after_s(response.headers, now_s=self._retry.now())
        fault = request.fault(FaultKind.STATUS, detail, status=response.status_code)
        return _FailedAttempt(fault, asked_s)


async def _read(chunks: AsyncIterator[bytes], request: _Request) -> _Body:
    """The body, up to its end or to the event that ends a stream."""
    body, parser = _Body(), SseParser()
    async for chunk in chunks:
        body.data += chunk
        if len(body.data) > MAX_BODY:
            raise _FailedAttempt(request.fault(FaultKind.TOO_LARGE))
        new = parser.feed(chunk)
        body.events += new
        if any(map(ends_stream, new)):
            break
    else:
        body.events += parser.feed(b"", final=True)
    body.read_at = time.perf_counter()
    return body


async def _drain(chunks: AsyncIterator[bytes]) -> None:
    """Read what is left after the last event: a connection read to its end can be used again. A server
    that leaves it open is not waited for long."""
    with contextlib.suppress(httpx2.HTTPError), anyio.move_on_after(_DRAIN_S):
        async for _ in chunks:
            pass


def _headers(given: Mapping[str, str] | None) -> httpx2.Headers:
    headers = httpx2.Headers({"content-type": "application/json", "accept": "application/json"})
    headers.update(given or {})
    return headers


def _client() -> httpx2.AsyncClient:
    this_machine = ("localhost", "127.0.0.1", "[::1]")
    try:
        return httpx2.AsyncClient(
            follow_redirects=False,
            limits=httpx2.Limits(
                max_connections=None, max_keepalive_connections=None, keepalive_expiry=_KEEPALIVE_S
            ),
            mounts={f"all://{host}": None for host in this_machine},
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            headers={"user-agent": "agenteval"},
        )
    except (OSError, ValueError, ImportError, httpx2.InvalidURL) as exc:
        remedy = "check SSL_CERT_FILE, SSL_CERT_DIR, HTTP_PROXY, HTTPS_PROXY and ALL_PROXY"
        raise AuthorError(Problem(f"the HTTP client cannot be set up: {exc}", remedy)) from exc
