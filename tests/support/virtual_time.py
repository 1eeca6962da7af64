"""Time for tests that wait: an event loop whose clock moves on when every task waits, and costs none.

::

    async def main(time: VirtualTime) -> None: ...
    run_virtually(main)

For code that waits for nothing but events and clocks: it does not see sockets and threads.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Awaitable, Callable
from typing import Any

import anyio


class _Loop(asyncio.SelectorEventLoop):
    """Jumps to the next timer whenever nothing else is to be done."""

    now_s = 0.0

    def time(self) -> float:
        return self.now_s

    def _run_once(self) -> None:
        inner: Any = self
        while inner._scheduled and inner._scheduled[0]._cancelled:
            heapq.heappop(inner._scheduled)._scheduled = False
            inner._timer_cancelled_count -= 1
        if not inner._ready and not self._stopping:  # type: ignore[attr-defined]
            assert inner._scheduled, "everybody waits, and nobody sleeps"
            self.now_s = max(self.now_s, inner._scheduled[0]._when)
        super()._run_once()  # type: ignore[misc]


class VirtualTime:
    """``time()`` is the clock, in seconds from 0."""

    def __call__(self) -> float:
        return anyio.current_time()

    @property
    def now_s(self) -> float:
        return anyio.current_time()

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(seconds)


def run_virtually(main: Callable[[VirtualTime], Awaitable[None]]) -> None:
    anyio.run(main, VirtualTime(), backend_options={"loop_factory": _Loop})
