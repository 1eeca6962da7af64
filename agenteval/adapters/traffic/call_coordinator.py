"""Keep the limits and the budget of a run whose conversations are played by several processes.

The coordinator is the other end of ``leased_calls``. It uses the same limiters, rates, slots and ledger as a
run in one process, so the limits mean the same. It knows nothing of how the processes reach it."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, assert_never

from agenteval.adapters.models.pool import METERED_CALL, ModelPool
from agenteval.adapters.traffic.leased_calls import (
    CallReport,
    CallSettled,
    LeaseAnswer,
    LeaseEnded,
    LeaseRequest,
    LeaseSucceeded,
    ThrottleTerms,
)
from agenteval.adapters.transport.limits import PauseTooLong, Permit, RateLimits, RateTerms, Throttle
from agenteval.core.config import BudgetConfig, Price
from agenteval.core.errors import BudgetError
from agenteval.core.trajectory import Usage
from agenteval.verdict.ledger import BudgetLedger, OpenCall

MARGIN_S = 1.0
"""The time, in seconds, by which the window of a rate is widened: a request reaches its server somewhat later
than its lease was granted."""
SILENCE_S = 30.0
"""The time, in seconds, after which a process without a heartbeat loses its leases."""
_REMEMBERED = 1_000
"""The ended leases of a process of which the success may still be reported."""


@dataclass(frozen=True)
class BudgetStopped:
    """The budget of the run is used up."""

    why: str


@dataclass(frozen=True)
class RoleStopped:
    """The budget of a role is used up."""

    why: str


@dataclass(frozen=True)
class HolderSilent:
    """A process has sent no heartbeat for too long. Its leases were taken back."""

    holder: str


News: TypeAlias = BudgetStopped | RoleStopped | HolderSilent
"""What the coordinator tells whoever plays the run."""


@dataclass
class _Lease:
    """A lease that a process waits for or holds. ``permit`` is set when it is granted."""

    answer: asyncio.Future[LeaseAnswer]
    asked_at: float
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    permit: Permit | None = None
    task: asyncio.Task[None] | None = None


@dataclass
class _Holder:
    """A process that asks for leases."""

    seen_at: float
    leases: dict[int, _Lease] = field(default_factory=dict)
    calls: dict[int, OpenCall] = field(default_factory=dict)
    permits: OrderedDict[int, Permit] = field(default_factory=OrderedDict)
    """The permits of ended leases of which the success may still be reported."""


class Coordinator:
    """The limits and the budget of a run (``CallCoordinator``). ``concurrency`` is the maximum number of
    model calls in flight. ``carried`` is the spending from before the run was resumed, with its role."""

    def __init__(
        self,
        concurrency: int,
        budget: BudgetConfig | None = None,
        carried: Iterable[tuple[Usage, str]] = (),
        *,
        margin_s: float = MARGIN_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._limits = RateLimits(margin_s=margin_s, clock=clock)
        self._pool = ModelPool(concurrency)
        self._throttles: dict[ThrottleTerms, Throttle] = {}
        self._holders: dict[str, _Holder] = {}
        self._news: asyncio.Queue[News] = asyncio.Queue()
        self._ledger: BudgetLedger | None = None
        if budget:
            self._ledger = BudgetLedger(
                budget,
                on_stop=lambda why: self._news.put_nowait(BudgetStopped(why)),
                on_spent=lambda why: self._news.put_nowait(RoleStopped(why)),
            )
            for usage, role in carried:
                self._ledger.carry_over(usage, role)

    # ── leases ──

    async def lease(self, holder: str, lease: int, request: LeaseRequest) -> LeaseAnswer:
        asking = self._holder(holder)
        found = _Lease(asyncio.get_running_loop().create_future(), self._clock())
        asking.leases[lease] = found
        call = asking.calls.get(request.call) if request.call is not None else None
        found.task = asyncio.create_task(self._hold(asking, lease, found, request, call))
        return await found.answer

    async def _hold(
        self, asking: _Holder, number: int, lease: _Lease, request: LeaseRequest, call: OpenCall | None
    ) -> None:
        throttle = self._throttle(request.terms)
        METERED_CALL.set(call)  # of this task
        try:
            async with throttle.call(tokens=request.tokens, left_s=request.left_s) as lease.permit:
                asking.permits[number] = lease.permit
                while len(asking.permits) > _REMEMBERED and next(iter(asking.permits)) not in asking.leases:
                    asking.permits.popitem(last=False)
                waited_s = self._clock() - lease.asked_at
                _answer(lease, LeaseAnswer(waited_s, throttle.has_answered))
                await lease.ended.wait()
        except PauseTooLong as pause:
            _answer(lease, LeaseAnswer(pause=(pause.waited_s, pause.pause_s, pause.reason)))
        except BudgetError as error:
            _answer(lease, LeaseAnswer(refusal=str(error)))
        finally:
            asking.leases.pop(number, None)
            if not lease.answer.done():
                lease.answer.cancel()

    def _throttle(self, terms: ThrottleTerms) -> Throttle:
        if terms not in self._throttles:
            pool = self._pool
            for name, size in terms.slots[1:]:
                pool = pool.narrowed(name, size)
            self._throttles[terms] = self._limits.throttle(
                terms.server, terms.rate, pool if terms.slots else None
            )
        return self._throttles[terms]

    async def take(self, holder: str, rate: RateTerms) -> None:
        self._holder(holder)
        if limit := self._limits.rate(rate):
            await limit.take()

    async def open_call(
        self, holder: str, call: int, name: str, price: Price | None, prompt_tokens: int, role: str
    ) -> str:
        if self._ledger is not None:
            try:
                found = await self._ledger.open_call(name, price, prompt_tokens, role)
            except BudgetError as error:
                return str(error)
            self._holder(holder).calls[call] = found
        return ""

    def report(self, holder: str, reports: Sequence[CallReport]) -> None:
        reporting = self._holder(holder)
        for each in reports:
            match each:
                case LeaseEnded():
                    _end_lease(reporting, each)
                case LeaseSucceeded():
                    if permit := reporting.permits.pop(each.lease, None):
                        permit.record_success(each.tokens)
                case CallSettled():
                    if call := reporting.calls.pop(each.call, None):
                        call.settle(each.usage, is_failed=each.is_failed)
                case _:
                    assert_never(each)

    # ── processes ──

    def beat(self, holder: str) -> None:
        """Note that a process is alive (heartbeat)."""
        self._holder(holder)

    def lose(self, holder: str) -> None:
        """Take back the leases of a process that is gone. Its calls count as made, because they may have
        been."""
        gone = self._holders.pop(holder, None)
        if gone is None:
            return
        for lease in list(gone.leases.values()):
            lease.ended.set()
            if lease.permit is None and lease.task:
                lease.task.cancel()
        for call in gone.calls.values():
            call.settle(Usage(calls=call.requests), is_failed=True)

    async def watch(self, every_s: float = 5.0, silence_s: float = SILENCE_S) -> None:
        """Take back the leases of processes that have become silent, until cancelled."""
        while True:
            await asyncio.sleep(every_s)
            self.check_silence(silence_s)

    def check_silence(self, silence_s: float = SILENCE_S) -> None:
        """Take back the leases of processes without a heartbeat for ``silence_s`` seconds."""
        now = self._clock()
        for name in [name for name, each in self._holders.items() if now - each.seen_at > silence_s]:
            self.lose(name)
            self._news.put_nowait(HolderSilent(name))

    async def next_news(self) -> list[News]:
        """Wait for news, and return all that there are."""
        return [await self._news.get(), *self.take_news()]

    def take_news(self) -> list[News]:
        """Return the news that nobody has asked for yet."""
        return [self._news.get_nowait() for _ in range(self._news.qsize())]

    def _holder(self, name: str) -> _Holder:
        holder = self._holders.setdefault(name, _Holder(self._clock()))
        holder.seen_at = self._clock()
        return holder


def _answer(lease: _Lease, answer: LeaseAnswer) -> None:
    if not lease.answer.done():
        lease.answer.set_result(answer)


def _end_lease(holder: _Holder, end: LeaseEnded) -> None:
    lease = holder.leases.get(end.lease)
    if lease is None:
        return
    if lease.permit is None:  # whoever waited has given up
        if lease.task:
            lease.task.cancel()
        return
    lease.permit.record_delay(end.delay_s)
    if end.is_throttled:
        holder.permits.pop(end.lease, None)
        lease.permit.record_throttled(end.asked_s, end.reason)
    lease.ended.set()
