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
from typing import Any

import aiohttp
import anyio

from agenteval.adapters.transport.bodies import Body, encoding_of, read_error_body
from agenteval.adapters.transport.error_patterns import THROTTLE_STATUSES, is_quota_exhausted
from agenteval.adapters.transport.http_faults import (
    SEND_ERRORS,
    Classify,
    FaultKind,
    HttpFault,
    classify,
    describe,
    fault_detail,
    fault_kind,
    is_web_address,
    quote,
)
from agenteval.adapters.transport.http_session import CONNECT_S, HttpSession, header_fields
from agenteval.adapters.transport.limits import CallLimits, CallThrottle, PauseTooLong, RateLimits
from agenteval.adapters.transport.retry import Retry, RetryBudget, RetryPolicy
from agenteval.adapters.transport.retry_after import parse_retry_after
from agenteval.core.json_text import as_text
from agenteval.files.redaction import redact_url
from agenteval.messages.error_status import find_error_status
from agenteval.messages.sse import SseParser, ends_stream, looks_like_sse

_ERROR_BODY = 64 * 2**10  # an error reply is only quoted
_DRAIN_S = 0.2
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
    content: bytes | None
    headers: Mapping[str, str]
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
    throttle: CallThrottle | None = None
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
    """The progress of one attempt."""

    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    response: aiohttp.ClientResponse | None = None
    body: _Body = field(default_factory=_Body)

    def reply(self) -> HttpReply | None:
        """Return the part of the reply that has arrived, or ``None`` if the body has not started yet."""
        return _reply(self.response, self.body) if self.response and self.body.data else None


class Transport:
    """Exchanges requests with a run's agents through one ``HttpSession``. The creator must close it."""

    def __init__(self, *, retry: RetryPolicy | None = None, limits: CallLimits | None = None) -> None:
        self._retry = retry or RetryPolicy()
        self.limits: CallLimits = limits or RateLimits(clock=self._retry.clock, sleep=self._retry.sleep)
        self._session = HttpSession()

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

    def require(self, url: str) -> None:
        """Raise ``AuthorError`` if the environment's proxy or certificates for ``url`` cannot be used."""
        self._session.require(url)

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
        await self._session.aclose()

    def _next_wait_s(self, failed: _FailedAttempt, rules: RequestPolicy, budget: RetryBudget) -> float | None:
        retries = self._retry.retries
        if rules.throttle and rules.throttle.has_answered:
            retries = self._retry.proven_retries
        if not rules.may_repeat(failed.fault, failed.retry_after_s):
            retries = 0
        return budget.next_wait_s(retry_after_s=failed.retry_after_s, retries=retries)

    async def _attempt_when_admitted(
        self, request: _HttpRequest, throttle: CallThrottle | None, budget: RetryBudget
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
        try:
            with anyio.fail_after(request.timeout_s) as progress.scope:
                return await self._exchange(request, progress)
        except SEND_ERRORS as exc:  # some of which are ``TimeoutError``, too
            fault = request.fault(fault_kind(exc), fault_detail(exc))
            if fault.kind is not FaultKind.TOO_LARGE:
                fault = fault._replace(reply=progress.reply())
            raise _FailedAttempt(fault) from exc
        except TimeoutError as exc:
            fault = request.fault(FaultKind.DEADLINE, f"{request.timeout_s:g} s")
            raise _FailedAttempt(fault._replace(reply=progress.reply())) from exc

    async def _exchange(self, request: _HttpRequest, progress: _Progress) -> HttpReply:
        started = time.perf_counter()
        async with await self._session.send(
            request.method,
            request.url,
            headers=request.headers,
            content=request.content,
            # Below the deadline, so that a deadline that passes means that the request was sent.
            connect_s=min(CONNECT_S, 0.9 * request.timeout_s),
        ) as response:
            if not 200 <= response.status < 300:
                raise await self._refusal(request, response)
            progress.response = response
            chunks = response.content.iter_any()
            await _read(chunks, encoding_of(response.raw_headers), progress.body)
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

    async def _refusal(self, request: _HttpRequest, response: aiohttp.ClientResponse) -> _FailedAttempt:
        """Return the failure for an error status. The body, which may be incomplete, is used only as a
        quotation."""
        encoding, headers = encoding_of(response.raw_headers), header_fields(response.raw_headers)
        body = await read_error_body(response.content.iter_any(), encoding, _ERROR_BODY)
        detail = body.decode("utf-8", "replace")
        if 300 <= response.status < 400 and "location" in headers:
            detail = f"to {headers['location'].partition('?')[0]}"
        asked_s = parse_retry_after(headers, now_s=self._retry.now(), text=detail)
        fault = request.fault(FaultKind.STATUS, detail, status=response.status)
        came = _Body(data=bytearray(body))
        return _FailedAttempt(fault._replace(reply=_reply(response, came)), asked_s)


def _reply(response: aiohttp.ClientResponse, body: _Body, latency_ms: float = 0.0) -> HttpReply:
    text = body.data.decode("utf-8-sig", "replace")
    headers = header_fields(response.raw_headers)
    is_sse = "text/event-stream" in headers.get("content-type", "") or looks_like_sse(text)
    return HttpReply(
        status=response.status,
        headers=headers,
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


async def _read(chunks: AsyncIterator[bytes], encoding: str | None, body: _Body) -> None:
    """Read ``body`` to its end, or to the event that ends a stream."""
    parser, unpacked = SseParser(), Body(encoding)
    async for chunk in chunks:
        data = unpacked.feed(chunk)
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
    with contextlib.suppress(aiohttp.ClientError), anyio.move_on_after(_DRAIN_S):
        async for _ in chunks:
            pass


def _request(
    url: str, body: Mapping[str, Any] | None, headers: Mapping[str, str] | None, rules: RequestPolicy
) -> _HttpRequest:
    # Escaping all but ASCII keeps lone surrogates, which UTF-8 cannot encode, from raising here.
    content = None if body is None else json.dumps(body).encode()
    made = {"content-type": "application/json", "accept": "application/json"}
    made |= {name.lower(): value for name, value in (headers or {}).items()}
    if body is None:
        del made["content-type"]
    method = "GET" if body is None else "POST"
    return _HttpRequest(method, url, content, made, rules.timeout_s, rules.secrets, rules.error_in)
