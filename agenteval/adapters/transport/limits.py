"""Limit how fast a server is called (rate limiting). The limits apply to calls in flight (concurrency) and to
calls and tokens per minute. Pauses that the server asks for are also observed.

A ``Limiter`` belongs to a server, which is identified by its address and key. All callers of the server share
the limiter, so a pause requested in reply to one call applies to all of them. A ``Rate`` belongs to a model
or an agent. A ``Throttle`` applies both to a caller's calls."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import TYPE_CHECKING, NamedTuple, Protocol

import anyio

from agenteval.conversation.deadlines import pause_deadlines

if TYPE_CHECKING:
    from agenteval.core.config import AgentConfig

_MINUTE_S = 60.0


class ServerTerms(NamedTuple):
    """A server, and how many calls a caller may have in flight to it."""

    address: str
    key: str
    who: str
    """The caller, such as all models or one agent."""
    calls: int


class RateTerms(NamedTuple):
    """The calls and tokens per minute that a model or an agent may use. ``None`` means no limit."""

    name: tuple[str, ...]
    requests: int | None
    tokens: int | None = None

    @property
    def is_limited(self) -> bool:
        return self.requests is not None or self.tokens is not None


def agent_rate(agent: AgentConfig) -> RateTerms:
    """Return the calls per minute that an agent may use."""
    return RateTerms(("agent", agent.name), agent.requests_per_minute)


class CallPermit(Protocol):
    """An admitted call. The outcome of the call must be reported to its permit."""

    def record_success(self, tokens: int | None = None) -> None:
        """Record that the call succeeded. ``tokens`` is the actual token count of the call."""

    def record_throttled(self, asked_s: float | None, reason: str = "") -> None:
        """Record that the server was too busy, and the seconds that it asked callers to wait."""


class CallThrottle(Protocol):
    """The limits on the calls of one model or agent."""

    @property
    def has_answered(self) -> bool:
        """True if the server has answered successfully."""

    @property
    def is_busy(self) -> bool:
        """True if calls to the server are in flight."""

    def call(self, *, tokens: int = 0, left_s: float = math.inf) -> AbstractAsyncContextManager[CallPermit]:
        """Wait until a call may be sent. ``tokens`` is an estimate; ``left_s`` limits the time spent waiting
        for pauses. Raise ``PauseTooLong`` if a pause exceeds this time."""


class CallRate(Protocol):
    """The rate limit of an agent that is not called over HTTP."""

    async def take(self) -> None:
        """Wait until the agent may be called, and count the call."""


class CallSlots(AbstractAsyncContextManager[None], Protocol):
    """A limit across all servers. A call is sent within it."""

    @property
    def places(self) -> tuple[tuple[str, int], ...]:
        """The name and the size of this limit, preceded by those of the wider limits that contain it."""


class CallLimits(Protocol):
    """All limits on the calls of a run."""

    def throttle(self, server: ServerTerms, rate: RateTerms, slots: CallSlots | None = None) -> CallThrottle:
        """Return the limits on the calls of one model or agent. All callers of a server share its limiter."""

    def rate(self, terms: RateTerms) -> CallRate | None:
        """Return the rate limit of an agent, or ``None`` if it has none."""


class PauseTooLong(Exception):  # noqa: N818  # control flow between a throttle and its caller
    """Raised if a server asks for a pause that exceeds a call's remaining waiting time.

    ``reason`` quotes the server."""

    def __init__(self, waited_s: float, pause_s: float, reason: str) -> None:
        super().__init__(f"waited {waited_s:.1f} s; another {pause_s:.0f} s are requested")
        self.waited_s = waited_s
        self.pause_s = pause_s
        self.reason = reason


class Limiter:
    """The limit on calls in flight to one server, and the pauses that the server asks for.

    The limit starts at the sum of the callers' allowances for calls in flight, and never exceeds this sum. It
    is halved when the server reports that it is too busy (for example with HTTP 429). It grows by one after a
    number of successful replies equal to its current value (additive increase, multiplicative decrease, AIMD:
    Chiu and Jain, 1989). Calls that are in flight when the limit is halved were sent under the old limit, so
    a refusal of such a call does not halve the limit again. Callers are admitted in the order in which they
    arrived."""

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._shares: dict[str, int] = {}
        self._queue: deque[_Waiter] = deque()
        self._era = 0
        self._pause_from = self._pause_until = -math.inf
        self._paused_before = 0.0
        self.reason = ""
        self.most = 0
        self.allowed = 0.0
        self.in_flight = 0
        self.has_answered = False
        """True if the server has answered successfully, so that its address is known to be correct and
        problems may be temporary."""

    def share(self, who: str, calls: int) -> None:
        """Set the number of ``calls`` that ``who`` (such as all models or all agents) may have in flight. The
        new number replaces the previous one."""
        more = calls - self._shares.get(who, 0)
        self._shares[who] = calls
        self.most += more
        self.allowed = max(1.0, min(self.most, self.allowed + more))

    @property
    def pause_s(self) -> float:
        """The number of seconds until the server may be called again."""
        return max(0.0, self._pause_until - self._clock())

    @property
    def is_open(self) -> bool:
        return self._pause_until <= self._clock()

    @property
    def waiting(self) -> int:
        """The number of calls that are waiting to be admitted."""
        return len(self._queue)

    @property
    def paused_s(self) -> float:
        """The total time, in seconds, for which calls to the server have been paused."""
        return self._paused_before + max(0.0, min(self._clock(), self._pause_until) - self._pause_from)

    async def acquire(self, left_s: float = math.inf) -> int:
        """Wait to be admitted, and return the era, which ``record_throttled`` requires.

        ``left_s`` limits the time spent waiting for pauses. Raise ``PauseTooLong`` if a pause exceeds this
        time. ``release`` must be called for every admitted call."""
        if self._queue or not self._is_free:
            with pause_deadlines():
                await self._wait_in_queue(left_s)
        else:
            self.in_flight += 1
        return self._era

    def release(self) -> None:
        self.in_flight -= 1
        self._wake()

    def record_success(self) -> None:
        """Record that a call succeeded."""
        self.has_answered = True
        if self.allowed < self.most:
            self.allowed = min(self.most, self.allowed + 1 / self.allowed)
            self._wake()

    def record_throttled(self, era: int, asked_s: float | None, reason: str = "") -> None:
        """Record that the server was too busy for a call that was admitted in ``era``.

        ``asked_s`` is the number of seconds that the server asked callers to wait before the next call."""
        if era == self._era:
            self._era += 1
            self.allowed = max(1.0, min(self.allowed, self.in_flight) / 2)
        if asked_s:
            now = self._clock()
            if self._pause_until < now:
                self._paused_before = self.paused_s
                self._pause_from = now
            self._pause_until = max(self._pause_until, now + asked_s)
            self.reason = reason

    @property
    def _is_free(self) -> bool:
        return self.in_flight < int(self.allowed) and self.is_open

    def _wake(self) -> None:
        if self._queue:
            self._queue[0].woken.set()

    async def _wait_in_queue(self, left_s: float) -> None:
        waiter = _Waiter()
        self._queue.append(waiter)
        paused_before = self.paused_s
        try:
            while self._queue[0] is not waiter or not self._is_free:
                waited_s, pause_s = self.paused_s - paused_before, self.pause_s
                if pause_s and waited_s + pause_s > left_s:
                    raise PauseTooLong(waited_s, pause_s, self.reason)
                # Only the first in the queue watches the clock; it wakes the next one.
                if pause_s and self._queue[0] is waiter:
                    await self._sleep(pause_s)
                else:
                    await waiter.until_woken()
            self.in_flight += 1
        finally:
            self._queue.remove(waiter)
            self._wake()


class _Waiter:
    def __init__(self) -> None:
        self.woken = anyio.Event()

    async def until_woken(self) -> None:
        await self.woken.wait()
        self.woken = anyio.Event()


class Rate:
    """A rate limit (requests per minute, tokens per minute): ``requests`` calls and ``tokens`` tokens in any
    60 seconds. It is a sliding window, not a token bucket. Calls count from the time they are sent.

    The token count of a call is an estimate until the call is answered. A call that exceeds the limit by
    itself is sent once no other calls count toward the limit. ``margin_s`` widens the window, for calls that
    are sent somewhat later than they are admitted."""

    def __init__(
        self,
        requests: int | None,
        tokens: int | None,
        *,
        margin_s: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        self.requests = math.inf if requests is None else requests
        self.tokens = math.inf if tokens is None else tokens
        self._window_s = _MINUTE_S + margin_s
        self._clock = clock
        self._sleep = sleep
        self._lock = anyio.Lock()
        self._sent: deque[RateReservation] = deque()
        self._unsent: set[RateReservation] = set()
        self._changed = anyio.Event()

    def narrow(self, requests: int | None, tokens: int | None) -> None:
        """Lower the limits to the given values if these are lower, because the same model may be configured
        twice."""
        self.requests = min(self.requests, math.inf if requests is None else requests)
        self.tokens = min(self.tokens, math.inf if tokens is None else tokens)

    async def take(self) -> None:
        """Wait until a call may be sent, and count it as sent."""
        (await self.reserve()).sent()

    async def reserve(self, tokens: int = 0) -> RateReservation:
        """Wait until a call with ``tokens`` tokens may be sent, and reserve capacity for it."""
        with pause_deadlines():
            async with self._lock:
                return await self._reserve(tokens)

    async def _reserve(self, tokens: int) -> RateReservation:
        while (wait_s := self._wait_s(tokens)) > 0:
            if wait_s < math.inf:
                await self._sleep(wait_s)
            else:
                await self._until_changed()
        reservation = RateReservation(self, tokens)
        self._unsent.add(reservation)
        return reservation

    async def _until_changed(self) -> None:
        self._changed = anyio.Event()
        await self._changed.wait()

    def _wait_s(self, tokens: int) -> float:
        """Return the number of seconds until a call with ``tokens`` tokens may be sent.

        The result is 0 if the call may be sent now, and infinity if it has to wait until another call with a
        reservation is sent or cancelled."""
        now = self._clock()
        while self._sent and self._sent[0].at + self._window_s <= now:
            self._sent.popleft()
        booked = (*self._sent, *self._unsent)
        used = sum(booking.tokens for booking in booked)
        is_free = len(booked) < self.requests and used + tokens <= self.tokens
        if is_free or not booked:
            return 0.0
        return self._sent[0].at + self._window_s - now if self._sent else math.inf

    def _send(self, reservation: RateReservation) -> None:
        self._unsent.discard(reservation)
        reservation.at = self._clock()
        self._sent.append(reservation)
        self._changed.set()

    def _cancel(self, reservation: RateReservation) -> None:
        self._unsent.discard(reservation)
        self._changed.set()


class RateReservation:
    """The capacity reserved for a call in a rate limit. ``at`` is the time at which the call was sent."""

    def __init__(self, rate: Rate, tokens: int) -> None:
        self._rate = rate
        self.tokens = tokens
        self.at = math.nan

    def sent(self) -> None:
        self._rate._send(self)

    def cancelled(self) -> None:
        """Release the reservation of a call that will not be sent. Do nothing if the call was sent."""
        self._rate._cancel(self)


class Permit:
    """An admitted call. The outcome of the call must be reported to its permit."""

    def __init__(self, limiter: Limiter, era: int, reservation: RateReservation | None) -> None:
        self._limiter = limiter
        self._era = era
        self._reservation = reservation

    def record_success(self, tokens: int | None = None) -> None:
        """Record that the call succeeded. ``tokens`` is the actual token count of the call."""
        self._limiter.record_success()
        if self._reservation and tokens is not None:
            self._reservation.tokens = tokens

    def record_throttled(self, asked_s: float | None, reason: str = "") -> None:
        self._limiter.record_throttled(self._era, asked_s, reason)

    def record_delay(self, seconds: float) -> None:
        """Record that the call was sent this much later than it was admitted."""
        if self._reservation:
            self._reservation.at += seconds


class Throttle:
    """The limits on the calls of one model or agent: its rate, its server's limiter, and a limit across all
    servers (``slots``, within which a call is sent).

    A call waits for these limits in this order, so a call that is waiting for its own server does not delay
    calls to other servers."""

    def __init__(
        self,
        limiter: Limiter,
        *,
        rate: Rate | None = None,
        slots: AbstractAsyncContextManager[None] | None = None,
    ) -> None:
        self.limiter = limiter
        self._rate = rate
        self._slots = slots or nullcontext()

    @property
    def has_answered(self) -> bool:
        return self.limiter.has_answered

    @property
    def is_busy(self) -> bool:
        return self.limiter.in_flight > 0

    @asynccontextmanager
    async def call(self, *, tokens: int = 0, left_s: float = math.inf) -> AsyncIterator[Permit]:
        """Wait until a call may be sent. ``tokens`` is an estimate; ``left_s`` is passed to
        ``Limiter.acquire``."""
        reservation = await self._rate.reserve(tokens) if self._rate else None
        limiter = self.limiter
        try:
            while True:
                era = await limiter.acquire(left_s)
                try:
                    async with self._slots:
                        # A pause may have begun while this call waited for its slot.
                        if limiter.is_open:
                            if reservation:
                                reservation.sent()
                            yield Permit(limiter, era, reservation)
                            return
                finally:
                    limiter.release()
        finally:
            if reservation:
                reservation.cancelled()


class RateLimits:
    """All limiters and rates of a run. ``margin_s`` widens the windows of its rates."""

    def __init__(
        self,
        *,
        margin_s: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        self._margin_s = margin_s
        self._clock = clock
        self._sleep = sleep
        self._limiters: dict[tuple[str, str], Limiter] = {}
        self._rates: dict[tuple[str, ...], Rate] = {}

    def throttle(self, server: ServerTerms, rate: RateTerms, slots: CallSlots | None = None) -> Throttle:
        """Return the limits on the calls of one model or agent. A server's limiter is set to the number of
        calls that the caller may have in flight."""
        return Throttle(self.limiter(server), rate=self.rate(rate), slots=slots)

    def limiter(self, server: ServerTerms) -> Limiter:
        place = (server.address, server.key)
        if place not in self._limiters:
            self._limiters[place] = Limiter(clock=self._clock, sleep=self._sleep)
        self._limiters[place].share(server.who, server.calls)
        return self._limiters[place]

    def rate(self, terms: RateTerms) -> Rate | None:
        """Return the rate limit of a model or an agent, or ``None`` if no limit was ever set."""
        name, requests, tokens = terms
        if not terms.is_limited:
            return self._rates.get(name)
        if name in self._rates:
            self._rates[name].narrow(requests, tokens)
        else:
            self._rates[name] = Rate(
                requests, tokens, margin_s=self._margin_s, clock=self._clock, sleep=self._sleep
            )
        return self._rates[name]
