"""The limits and the budget of a run whose conversations are played by several processes (distributed rate
limiting).

The limits themselves are kept by a coordinator in one place. A process asks it for a *lease* before each
request, and reports the outcome when the request is answered: then everybody profits from a free slot, and a
server that is too busy for one process is left alone by all. A lease is held only while a request is on its
way."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from hashlib import sha256
from itertools import count
from typing import NamedTuple, Protocol, TypeAlias

from agenteval.adapters.models.circuit_breaker import CURRENT_RUBRIC_CALL
from agenteval.adapters.models.pool import METERED_CALL
from agenteval.adapters.transport.limits import CallSlots, PauseTooLong, RateTerms, ServerTerms
from agenteval.conversation.deadlines import pause_deadlines
from agenteval.core.config import BudgetConfig, Price
from agenteval.core.errors import BudgetError
from agenteval.core.trajectory import Usage
from agenteval.verdict.ledger import BudgetLedger

_GATHER_S = 0.002
"""The time, in seconds, for which reports are gathered: the success of a call is known shortly after its
lease ends."""


class ThrottleTerms(NamedTuple):
    """What limits the calls of one model or agent. Secrets in it are hashed."""

    server: ServerTerms
    rate: RateTerms
    slots: tuple[tuple[str, int], ...]
    """The limits across all servers, as ``CallSlots.places``. Empty if there are none."""


class LeaseRequest(NamedTuple):
    """A request for permission to send one request."""

    terms: ThrottleTerms
    tokens: int
    """The estimated number of tokens."""
    left_s: float
    """The time that may be spent waiting for pauses."""
    call: int | None
    """The number of the call in the budget that the request belongs to."""


class LeaseAnswer(NamedTuple):
    """The coordinator's answer to a request for a lease. If all are empty, the lease is granted."""

    waited_s: float = 0.0
    """The time for which the coordinator held the request."""
    has_answered: bool = False
    """True if the server has answered somebody."""
    refusal: str = ""
    """The reason why the budget does not allow the request."""
    pause: tuple[float, float, str] | None = None
    """The arguments of ``PauseTooLong`` if the server asks for a pause that is too long."""


@dataclass(frozen=True)
class LeaseEnded:
    """The request was answered, failed, or was never sent. ``delay_s`` is an upper bound of the time between
    the grant and the request. ``asked_s`` and ``reason`` are set if the server was too busy."""

    lease: int
    delay_s: float = 0.0
    is_throttled: bool = False
    asked_s: float | None = None
    reason: str = ""


@dataclass(frozen=True)
class LeaseSucceeded:
    """The request of a lease, which may have ended before, was successful."""

    lease: int
    tokens: int | None


@dataclass(frozen=True)
class CallSettled:
    """A call in the budget has ended."""

    call: int
    usage: Usage
    is_failed: bool


CallReport: TypeAlias = LeaseEnded | LeaseSucceeded | CallSettled


class CallCoordinator(Protocol):
    """Keeps the limits and the budget of a run. ``holder`` is the process that asks. Its numbers of leases
    and calls are its own."""

    async def lease(self, holder: str, lease: int, request: LeaseRequest) -> LeaseAnswer:
        """Wait until a request may be sent."""

    async def take(self, holder: str, rate: RateTerms) -> None:
        """Wait until an agent may be called, and count the call."""

    async def open_call(
        self, holder: str, call: int, name: str, price: Price | None, prompt_tokens: int, role: str
    ) -> str:
        """Reserve budget for a call. Return the reason why there is none left, or an empty string."""

    def report(self, holder: str, reports: Sequence[CallReport]) -> None:
        """Take in the outcomes of leases and calls. Does not wait."""


class LeasedCalls:
    """The limits of a run in a process that asks the coordinator for leases (``CallLimits``). ``holder`` is
    the name of the process."""

    def __init__(self, holder: str) -> None:
        self._holder = holder
        self._coordinator: CallCoordinator | None = None
        self._numbers = count(1)
        self._throttles: dict[ThrottleTerms, LeasedThrottle] = {}
        self._reports: list[CallReport] = []
        self._is_gathering = False

    def connect(self, coordinator: CallCoordinator) -> None:
        """Set the coordinator. Before, nothing can be called."""
        self._coordinator = coordinator

    @property
    def coordinator(self) -> CallCoordinator:
        assert self._coordinator, "the coordinator is set before the first call"
        return self._coordinator

    def throttle(
        self, server: ServerTerms, rate: RateTerms, slots: CallSlots | None = None
    ) -> LeasedThrottle:
        hashed = (sha256(part.encode("utf-8", "surrogatepass")).hexdigest() for part in rate.name)
        terms = ThrottleTerms(
            server._replace(key=sha256(server.key.encode("utf-8", "surrogatepass")).hexdigest()),
            rate._replace(name=tuple(hashed)),
            slots.places if slots else (),
        )
        return self._throttles.setdefault(terms, LeasedThrottle(self, terms))

    def rate(self, terms: RateTerms) -> LeasedRate | None:
        return LeasedRate(self, terms) if terms.is_limited else None

    def next_number(self) -> int:
        return next(self._numbers)

    async def lease(self, number: int, request: LeaseRequest) -> LeaseAnswer:
        return await self.coordinator.lease(self._holder, number, request)

    async def take(self, rate: RateTerms) -> None:
        await self.coordinator.take(self._holder, rate)

    async def open_call(
        self, number: int, name: str, price: Price | None, prompt_tokens: int, role: str
    ) -> str:
        return await self.coordinator.open_call(self._holder, number, name, price, prompt_tokens, role)

    def report(self, report: CallReport) -> None:
        """Report an outcome, together with those that follow at once."""
        self._reports.append(report)
        if not self._is_gathering:
            self._is_gathering = True
            asyncio.get_running_loop().call_later(_GATHER_S, self.flush)

    def flush(self) -> None:
        """Send the reports that have been gathered."""
        self._is_gathering = False
        if self._reports:
            reports, self._reports = self._reports, []
            self.coordinator.report(self._holder, reports)


class LeasedRate:
    """The rate limit of an agent that is not called over HTTP (``CallRate``)."""

    def __init__(self, calls: LeasedCalls, terms: RateTerms) -> None:
        self._calls = calls
        self._terms = terms

    async def take(self) -> None:
        with pause_deadlines():
            await self._calls.take(self._terms)


class LeasedThrottle:
    """The limits on the calls of one model or agent (``CallThrottle``)."""

    def __init__(self, calls: LeasedCalls, terms: ThrottleTerms) -> None:
        self._calls = calls
        self._terms = terms
        self._in_flight = 0
        self.has_answered = False

    @property
    def is_busy(self) -> bool:
        return self._in_flight > 0

    @asynccontextmanager
    async def call(self, *, tokens: int = 0, left_s: float = math.inf) -> AsyncIterator[LeasedPermit]:
        lease, asked = self._calls.next_number(), time.monotonic()
        metered = METERED_CALL.get() if self._terms.slots else None
        number = metered.number if isinstance(metered, LeasedCall) else None
        permit = LeasedPermit(self, lease)
        try:
            with pause_deadlines():
                answer = await self._calls.lease(lease, LeaseRequest(self._terms, tokens, left_s, number))
            if answer.pause:
                raise PauseTooLong(*answer.pause)
            if answer.refusal:
                raise BudgetError(answer.refusal)
            self.has_answered |= answer.has_answered
            if rubric_call := CURRENT_RUBRIC_CALL.get():
                rubric_call.send()
            permit.delay_s = max(0.0, time.monotonic() - asked - answer.waited_s)
            self._in_flight += 1
            try:
                yield permit
            finally:
                self._in_flight -= 1
        finally:  # also if the wait was cancelled: then the lease may have been granted in the meantime
            self._calls.report(permit.ending())

    def record_success(self, lease: int, tokens: int | None) -> None:
        self.has_answered = True
        self._calls.report(LeaseSucceeded(lease, tokens))


class LeasedPermit:
    """An admitted call (``CallPermit``)."""

    def __init__(self, throttle: LeasedThrottle, lease: int) -> None:
        self._throttle = throttle
        self._lease = lease
        self._throttled: tuple[float | None, str] | None = None
        self.delay_s = 0.0

    def record_success(self, tokens: int | None = None) -> None:
        self._throttle.record_success(self._lease, tokens)

    def record_throttled(self, asked_s: float | None, reason: str = "") -> None:
        self._throttled = asked_s, reason

    def ending(self) -> LeaseEnded:
        """Return the report about the end of the request."""
        asked_s, reason = self._throttled or (None, "")
        return LeaseEnded(self._lease, self.delay_s, self._throttled is not None, asked_s, reason)


class LeasedBudget:
    """The budget of a run in a process that asks the coordinator (``CallBudget``)."""

    def __init__(self, calls: LeasedCalls, budget: BudgetConfig) -> None:
        self._calls = calls
        self._limits = BudgetLedger(budget)
        self.carried: list[tuple[Usage, str]] = []
        """The spending from before the run was resumed, with its role."""

    def needs_estimate(self, role: str = "") -> bool:
        return self._limits.needs_estimate(role)

    def counts_tokens(self, role: str = "") -> bool:
        return self._limits.counts_tokens(role)

    def carry_over(self, usage: Usage, role: str = "") -> None:
        self.carried.append((usage, role))

    async def open_call(
        self, name: str, price: Price | None, prompt_tokens: int, role: str = ""
    ) -> LeasedCall:
        call = LeasedCall(self._calls, self._calls.next_number())
        try:
            refusal = await self._calls.open_call(call.number, name, price, prompt_tokens, role)
        except asyncio.CancelledError:
            call.settle(Usage())
            raise
        if refusal:
            raise BudgetError(refusal)
        return call


class LeasedCall:
    """A call in the coordinator's budget (``BudgetedCall``)."""

    def __init__(self, calls: LeasedCalls, number: int) -> None:
        self._calls = calls
        self.number = number

    def request(self) -> None:
        """Do nothing: a lease reserves the budget of its request. Only a model in this process, which costs
        nothing, sends requests without a lease."""

    def settle(self, usage: Usage, *, is_failed: bool = False) -> None:
        self._calls.report(CallSettled(self.number, usage, is_failed))
