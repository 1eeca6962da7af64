"""The HTTP client for all adapters, with one connection pool per run, request timeouts (deadlines), retries,
and server-sent events (SSE).

The types of the HTTP library are not exposed above this module. For its exceptions, see ``http_faults``."""

from __future__ import annotations

import contextlib
import json
import math
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any

import anyio
import httpx2

from agenteval.adapters.transport.bodies import ENCODINGS, Body, TooLargeError, read_error_body
from agenteval.adapters.transport.connections import Connections, certificates, client_setup_error
from agenteval.adapters.transport.error_patterns import THROTTLE_STATUSES, is_quota_exhausted
from agenteval.adapters.transport.http_faults import (
    Classify,
    FaultKind,
    HttpFault,
    classify,
    describe,
    fault_kind,
    is_web_address,
    quote,
)
from agenteval.adapters.transport.limits import PauseTooLong, RateLimits, Throttle
from agenteval.adapters.transport.retry import Retry, RetryBudget, RetryPolicy
from agenteval.adapters.transport.retry_after import parse_retry_after
from agenteval.core.json_text import as_text
from agenteval.files.redaction import redact_url
from agenteval.messages.error_status import find_error_status
from agenteval.messages.sse import SseParser, ends_stream, looks_like_sse

_ERROR_BODY = 64 * 2**10  # an error reply is only quoted
_CONNECT_S = 10.0
_DRAIN_S = 0.2
# Common servers close an idle connection after 5 s; a request sent just then would be lost.
_KEEPALIVE_S = 3.0
_RETRIED = frozenset({408, 425, 429, 502, 503, 504, 529})
_REFUSED_UNHEARD = frozenset({408, 425, 429})
_IF_ASKED_TO = frozenset({502, 503, 529})


@dataclass(frozen=True)
class HttpReply:
    """A reply with a success status."""

    status: int
    headers: Mapping[str, str]
    """The headers, with names in lower case."""
    text: str
    latency_ms: float
    """The latency of the successful attempt in milliseconds, up to the last byte that is needed."""
    events: tuple[str, ...] | None = None
    """The payloads of the server-sent events (SSE) in the body, or ``None`` if the body is not an event
    stream."""


@dataclass(frozen=True)
class _HttpRequest:
    method: str
    url: str
    content: bytes
    headers: httpx2.Headers
    timeout_s: float
    secrets: tuple[str, ...]
    error_in: Callable[[HttpReply], Any]

    def fault(self, kind: FaultKind, detail: str = "", *, status: int | None = None) -> HttpFault:
        return HttpFault(kind, quote(redact_url(self.url), self.secrets), quote(detail, self.secrets), status)


class _FailedAttempt(Exception):  # noqa: N818  # control flow inside this module, never seen outside
    def __init__(self, fault: HttpFault, asked_s: float | None = None) -> None:
        super().__init__(fault)
        self.fault = fault
        self.retry_after_s = asked_s


def is_retryable(fault: HttpFault, asked_s: float | None) -> bool:
    """Check whether the same request may be accepted later (for example after HTTP 429), ignoring side
    effects."""
    if fault.kind is not FaultKind.STATUS:
        return fault.kind is FaultKind.REFUSED
    return fault.status in _RETRIED and not (fault.status == 429 and is_quota_exhausted(fault.detail))


def is_retryable_unsent(fault: HttpFault, asked_s: float | None) -> bool:
    """Check whether a request that must not be executed twice may be retried. A retry is allowed only if the
    request was certainly not executed.

    A gateway may return its status after the server behind it has acted. Such a status allows a retry only if
    the reply states when to retry."""
    is_unheard = fault.kind is FaultKind.REFUSED or fault.status in _REFUSED_UNHEARD
    return is_retryable(fault, asked_s) and (
        is_unheard or (asked_s is not None and fault.status in _IF_ASKED_TO)
    )


@dataclass(frozen=True)
class RequestPolicy:
    """The rules that apply to one caller's requests, such as the request timeout."""

    timeout_s: float
    """The time limit in seconds for each attempt, up to the last byte. Time spent waiting for rate limits and
    retries does not count."""
    throttle: Throttle | None = None
    """The rate limits that apply to requests, or ``None`` for no limits."""
    may_repeat: Callable[[HttpFault, float | None], bool] = is_retryable
    """The function that decides whether a request may be sent again, given its fault and the wait that the
    server asked for."""
    max_wait_s: float | None = None
    """The maximum total wait in seconds, or ``None`` to use the limit of the retry policy."""
    on_retry: Callable[[Retry], None] | None = None
    """The function that is called before each retry."""
    secrets: tuple[str, ...] = ()
    """The strings that must not appear in any fault."""
    classify: Classify = classify
    """The function that converts a fault to an error."""
    error_in: Callable[[HttpReply], Any] = lambda _: None
    """The function that returns the error if a reply with a success status contains an error instead of an
    answer."""


@dataclass
class _Body:
    data: bytearray = field(default_factory=bytearray)
    events: list[str] = field(default_factory=list)
    read_at: float = 0.0


@dataclass
class _Progress:
    """The progress of one attempt.

    If the deadline passes before any part of the request is sent, the fault is a connection problem. If the
    deadline passes later, the server is at fault."""

    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    sent: bool = False
    response: httpx2.Response | None = None
    body: _Body = field(default_factory=_Body)

    def reply(self) -> HttpReply | None:
        """Return the part of the reply that has arrived, or ``None`` if the body has not started yet."""
        return _reply(self.response, self.body) if self.response and self.body.data else None

    async def trace(self, event: str, info: Mapping[str, Any]) -> None:
        if event.endswith("send_request_headers.started"):
            self.sent = self.sent or info["request"].method != b"CONNECT"  # a CONNECT goes to a proxy


class Transport:
    """The HTTP connection pool of a run. The creator of the pool must close it.

    Proxy settings in the environment (except for this machine itself), ``SSL_CERT_FILE`` and ``SSL_CERT_DIR``
    are honored. Redirects are not followed and cookies are not stored, so conversations share no state."""

    def __init__(self, *, retry: RetryPolicy | None = None, limits: RateLimits | None = None) -> None:
        self._retry = retry or RetryPolicy()
        self.limits = limits or RateLimits(clock=self._retry.clock, sleep=self._retry.sleep)
        self._connections = Connections(_client_factory())

    async def exchange(
        self,
        url: str,
        body: Mapping[str, Any] | None,
        rules: RequestPolicy,
        *,
        headers: Mapping[str, str] | None = None,
    ) -> HttpReply:
        """Send an HTTP request with ``body`` as JSON (or a GET request if ``body`` is ``None``). Read the
        complete reply, which may be a stream of server-sent events (SSE). Retry failed attempts.

        Raise the error that the policy's ``classify`` returns for a fault. Every status outside 200–299 is a
        fault."""
        request = _request(url, body, headers, rules)
        if not is_web_address(url):
            raise rules.classify(request.fault(FaultKind.INVALID))
        budget = RetryBudget(self._retry, rules.max_wait_s)
        while True:
            try:
                return await self._attempt_when_admitted(request, rules.throttle, budget)
            except PauseTooLong as pause:
                fault = request.fault(FaultKind.PAUSED, f"for {pause.pause_s:.0f} s more: {pause.reason}")
                raise rules.classify(_with_attempts(fault, budget, pause.waited_s)) from pause
            except _FailedAttempt as failed:
                wait_s = self._next_wait_s(failed, rules, budget)
                if wait_s is None:
                    raise rules.classify(_with_attempts(failed.fault, budget)) from failed.__cause__
                _notify_retry(rules.on_retry, failed.fault, budget.failures, wait_s)
            await budget.wait(wait_s)

    def retry_after_s(self, reply: HttpReply) -> float | None:
        """Return the number of seconds that a reply asks callers to wait before the next request
        (``Retry-After``)."""
        asked = {name: value for name, value in reply.headers.items() if name.startswith("retry-after")}
        return parse_retry_after(asked, now_s=self._retry.now())

    async def pause(self, seconds: float) -> None:
        """Wait between two requests. The wait counts as agent time."""
        await self._retry.sleep(seconds)

    async def aclose(self) -> None:
        """Close all connections. Calling this twice is safe."""
        await self._connections.aclose()

    def _next_wait_s(self, failed: _FailedAttempt, rules: RequestPolicy, budget: RetryBudget) -> float | None:
        retries = self._retry.retries
        if rules.throttle and rules.throttle.limiter.has_answered:
            retries = self._retry.proven_retries
        if not rules.may_repeat(failed.fault, failed.retry_after_s):
            retries = 0
        return budget.next_wait_s(retry_after_s=failed.retry_after_s, retries=retries)

    async def _attempt_when_admitted(
        self, request: _HttpRequest, throttle: Throttle | None, budget: RetryBudget
    ) -> HttpReply:
        """Make one attempt as soon as the throttle admits it."""
        if throttle is None:
            return await self._attempt(request)
        async with throttle.call(left_s=budget.left_s) as call:
            try:
                reply = await self._attempt(request)
            except _FailedAttempt as failed:
                if failed.fault.status in THROTTLE_STATUSES and not is_quota_exhausted(failed.fault.detail):
                    call.record_throttled(failed.retry_after_s, _reason(failed.fault))
                raise
            call.record_success()
            return reply

    async def _attempt(self, request: _HttpRequest) -> HttpReply:
        progress = _Progress()
        client = self._connections.take()
        try:
            with anyio.fail_after(request.timeout_s) as progress.scope:
                return await self._exchange(client, request, progress)
        except TimeoutError as exc:
            kind = FaultKind.DEADLINE if progress.sent else FaultKind.CONNECT_TIMEOUT
            fault = request.fault(kind, f"{request.timeout_s:g} s")
            raise _FailedAttempt(fault._replace(reply=progress.reply())) from exc
        except (httpx2.HTTPError, httpx2.InvalidURL) as exc:
            fault = request.fault(fault_kind(exc), str(exc))
            raise _FailedAttempt(fault._replace(reply=progress.reply())) from exc
        finally:
            self._connections.give_back(client)

    async def _exchange(
        self, client: httpx2.AsyncClient, request: _HttpRequest, progress: _Progress
    ) -> HttpReply:
        started = time.perf_counter()
        async with client.stream(
            request.method,
            request.url,
            content=request.content or None,
            headers=request.headers,
            # Below the deadline: only if the library itself gives up does it close its half-open socket.
            timeout=httpx2.Timeout(None, connect=min(_CONNECT_S, 0.9 * request.timeout_s)),
            extensions={"trace": progress.trace},
        ) as response:
            if not response.is_success:
                raise await self._refusal(request, response)
            progress.response = response
            chunks = response.aiter_raw()
            await _read(chunks, request, response.headers.get("content-encoding"), progress.body)
            progress.scope.deadline = math.inf  # the reply is complete; only cleanup follows
            await _drain(chunks)
        reply = _reply(response, progress.body, (progress.body.read_at - started) * 1000)
        if refused := self._find_inner_error(request, reply):
            raise refused
        return reply

    def _find_inner_error(self, request: _HttpRequest, reply: HttpReply) -> _FailedAttempt | None:
        """Return the failure if a successful reply contains an error with its own status; otherwise, return
        ``None``."""
        error = request.error_in(reply)
        status = find_error_status(error) if error else None
        if status is None:
            return None
        detail = as_text(error)
        asked_s = parse_retry_after(reply.headers, now_s=self._retry.now(), text=detail)
        fault = request.fault(
            FaultKind.STATUS, f"in a reply of status {reply.status}: {detail}", status=status
        )
        return _FailedAttempt(fault._replace(reply=reply), asked_s)

    async def _refusal(self, request: _HttpRequest, response: httpx2.Response) -> _FailedAttempt:
        """Return the failure for an error status. The body, which may be incomplete, is used only as a
        quotation."""
        encoding = response.headers.get("content-encoding")
        body = await read_error_body(response.aiter_raw(), encoding, _ERROR_BODY)
        detail = body.decode("utf-8", "replace")
        if response.has_redirect_location:
            detail = f"to {response.headers['location'].partition('?')[0]}"
        asked_s = parse_retry_after(response.headers, now_s=self._retry.now(), text=detail)
        fault = request.fault(FaultKind.STATUS, detail, status=response.status_code)
        came = _Body(data=bytearray(body))
        return _FailedAttempt(fault._replace(reply=_reply(response, came)), asked_s)


def _reply(response: httpx2.Response, body: _Body, latency_ms: float = 0.0) -> HttpReply:
    text = body.data.decode("utf-8-sig", "replace")
    is_sse = "text/event-stream" in response.headers.get("content-type", "") or looks_like_sse(text)
    return HttpReply(
        status=response.status_code,
        headers=dict(response.headers),
        text=text,
        latency_ms=latency_ms,
        events=tuple(body.events) if is_sse else None,
    )


def _reason(fault: HttpFault) -> str:
    return describe(fault).removeprefix(f"{fault.where}: ")


def _with_attempts(fault: HttpFault, budget: RetryBudget, waited_s: float = 0.0) -> HttpFault:
    budget.waited_s += waited_s
    return fault._replace(tried=budget.summary)


def _notify_retry(
    on_retry: Callable[[Retry], None] | None, fault: HttpFault, attempt: int, wait_s: float
) -> None:
    if on_retry:
        on_retry(Retry(fault.where, _reason(fault), attempt, wait_s))


async def _read(
    chunks: AsyncIterator[bytes], request: _HttpRequest, encoding: str | None, body: _Body
) -> None:
    """Read ``body`` to its end, or to the event that ends a stream."""
    parser, unpacked = SseParser(), Body(encoding)
    async for chunk in chunks:
        try:
            data = unpacked.feed(chunk)
        except TooLargeError:
            raise _FailedAttempt(request.fault(FaultKind.TOO_LARGE)) from None
        body.data += data
        new = parser.feed(data)
        body.events += new
        if any(map(ends_stream, new)):
            break
    else:
        body.events += parser.feed(b"", final=True)
    body.read_at = time.perf_counter()


async def _drain(chunks: AsyncIterator[bytes]) -> None:
    """Read the data after the last event. A connection can be reused only if all of its data has been read.

    If the server keeps the connection open, the wait is short."""
    with contextlib.suppress(httpx2.HTTPError), anyio.move_on_after(_DRAIN_S):
        async for _ in chunks:
            pass


def _request(
    url: str, body: Mapping[str, Any] | None, headers: Mapping[str, str] | None, rules: RequestPolicy
) -> _HttpRequest:
    # Escaping all but ASCII keeps lone surrogates, which UTF-8 cannot encode, from raising here.
    content = b"" if body is None else json.dumps(body).encode()
    made = _headers(headers)
    if body is None:
        made.pop("content-type", None)
    method = "GET" if body is None else "POST"
    return _HttpRequest(method, url, content, made, rules.timeout_s, rules.secrets, rules.error_in)


def _headers(extra: Mapping[str, str] | None) -> httpx2.Headers:
    headers = httpx2.Headers({"content-type": "application/json", "accept": "application/json"})
    headers.update(extra or {})
    return headers


def _client_factory() -> Callable[[], httpx2.AsyncClient]:
    """Return a factory that creates identical clients."""
    this_machine = ("localhost", "127.0.0.1", "[::1]")
    verify = certificates()

    def make() -> httpx2.AsyncClient:
        try:
            return httpx2.AsyncClient(
                verify=verify,
                follow_redirects=False,
                limits=httpx2.Limits(
                    max_connections=None, max_keepalive_connections=None, keepalive_expiry=_KEEPALIVE_S
                ),
                mounts={f"all://{host}": None for host in this_machine},
                cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
                headers={"user-agent": "agenteval", "accept-encoding": ENCODINGS},
            )
        except (OSError, ValueError, ImportError, httpx2.InvalidURL) as exc:
            raise client_setup_error(exc) from exc

    return make
