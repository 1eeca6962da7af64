"""One bound on all model calls in flight, whoever makes them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import anyio

from agenteval.adapters.models.circuit import ASKED
from agenteval.conversation.deadlines import waiting


class ModelPool:
    """Lets at most ``limit`` model calls be in flight. A call is one HTTP request; waiting for a retry
    is none, so a slot is held by no one who sleeps.

    ``calls`` counts the requests sent, ``in_flight`` those not yet answered, ``most`` the highest that
    this has been. A pool made by ``narrowed`` counts for itself and for the pool it was made from.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._limiter = anyio.CapacityLimiter(limit)
        self._wider: ModelPool | None = None
        self._narrower: dict[str, ModelPool] = {}
        self.calls = 0
        self.in_flight = 0
        self.most = 0

    def narrowed(self, server: str, limit: int) -> ModelPool:
        """The pool for a server that can bear only ``limit`` calls; its calls count in this one too."""
        if server not in self._narrower:
            pool = self._narrower[server] = ModelPool(limit)
            pool._wider = self
        return self._narrower[server]

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Waits until a call may be sent, and counts it."""
        # Its own limit first: who waits for a narrow server keeps no one else waiting.
        try:
            self._limiter.acquire_nowait()
        except anyio.WouldBlock:
            with waiting():
                await self._limiter.acquire()
        try:
            if asked := ASKED.get():
                asked.send()
            if self._wider:
                async with self._wider.slot():
                    with self._counted():
                        yield
            else:
                with self._counted():
                    yield
        finally:
            self._limiter.release()

    @contextmanager
    def _counted(self) -> Iterator[None]:
        self.calls += 1
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)
        try:
            yield
        finally:
            self.in_flight -= 1
