"""Limit the total number of model calls in flight (concurrency), regardless of the caller."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from contextvars import ContextVar

import anyio

from agenteval.adapters.models.circuit_breaker import CURRENT_RUBRIC_CALL
from agenteval.conversation.deadlines import pause_deadlines
from agenteval.verdict.ledger import BudgetedCall

# A model may send several requests for one answer (a repair), deep inside its adapter. This variable
# identifies the call of the budget that a request belongs to.
METERED_CALL: ContextVar[BudgetedCall | None] = ContextVar("agenteval_metered_call", default=None)


class ModelPool(AbstractAsyncContextManager[None]):
    """A concurrency limit: at most ``limit`` model calls are in flight, each within ``async with pool``.

    A call is one HTTP request. A caller that waits for a retry does not occupy a slot. The budget is reserved
    before a request is sent. A call in a pool created by ``narrowed`` also occupies a slot in the original
    pool."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.name = ""
        """The server of a narrower pool."""
        self._limiter = anyio.CapacityLimiter(limit)
        self._wider: ModelPool | None = None
        self._narrower: dict[str, ModelPool] = {}

    @property
    def places(self) -> tuple[tuple[str, int], ...]:
        return (*self._wider.places, (self.name, self.limit)) if self._wider else ((self.name, self.limit),)

    @property
    def in_flight(self) -> int:
        """The number of requests that have not been answered yet."""
        return self._limiter.borrowed_tokens

    def narrowed(self, server: str, limit: int) -> ModelPool:
        """Return a smaller pool for a server that can handle only ``limit`` calls."""
        if server not in self._narrower:
            pool = self._narrower[server] = ModelPool(limit)
            pool.name, pool._wider = server, self
        return self._narrower[server]

    async def __aenter__(self) -> None:
        """Wait until a call may be sent, which then occupies a slot until the block ends."""
        # Its own limit first, so that a call waiting for a narrow server holds up no others.
        try:
            self._limiter.acquire_nowait()
        except anyio.WouldBlock:
            with pause_deadlines():
                await self._limiter.acquire()
        try:
            if rubric_call := CURRENT_RUBRIC_CALL.get():
                rubric_call.send()
            if self._wider:
                await self._wider.__aenter__()
            elif call := METERED_CALL.get():
                call.request()
        except BaseException:
            self._limiter.release()
            raise

    async def __aexit__(self, *error: object) -> None:
        if self._wider:
            await self._wider.__aexit__(*error)
        self._limiter.release()
