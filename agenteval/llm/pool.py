"""One bound on all model calls in flight, whoever makes them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio


class ModelPool:
    """Lets at most ``limit`` model calls be in flight. A call is one HTTP request; waiting for a retry
    is none, so a slot is held by no one who sleeps.

    ``calls`` counts the requests sent, ``in_flight`` those not yet answered, ``most`` the highest that
    this has been. A pool made by ``narrowed`` counts for itself and for the pool it was made from.
    """

    def __init__(self, limit: int) -> None:
        self._limiter = anyio.CapacityLimiter(limit)
        self._wider: ModelPool | None = None
        self.calls = 0
        self.in_flight = 0
        self.most = 0

    def narrowed(self, limit: int) -> ModelPool:
        """A pool for a server that can bear fewer calls: its calls count in this one too."""
        pool = ModelPool(limit)
        pool._wider = self
        return pool

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Waits until a call may be sent, and counts it."""
        async with self._limiter:
            if self._wider is None:
                with _Counted(self):
                    yield
            else:
                # Its own limit first: who waits for a narrow server keeps no one else waiting.
                async with self._wider.slot():
                    with _Counted(self):
                        yield


class _Counted:
    def __init__(self, pool: ModelPool) -> None:
        self._pool = pool

    def __enter__(self) -> None:
        self._pool.calls += 1
        self._pool.in_flight += 1
        self._pool.most = max(self._pool.most, self._pool.in_flight)

    def __exit__(self, *_: object) -> None:
        self._pool.in_flight -= 1
