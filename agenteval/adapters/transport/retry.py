"""When a call is tried again, how long it waits before, and when it gives up."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

import anyio

from agenteval.conversation.deadlines import pause_deadlines

MAX_WAIT_S = 180.0
"""What one call waits for limits and retries in all, unless the author says otherwise."""
_ASKED_FREE_S = 1.0


class Retry(NamedTuple):
    """A request will be sent again. ``attempt``: the number of the one that failed, from 1."""

    where: str
    reason: str
    attempt: int
    wait_s: float


def _jitter() -> Callable[[], float]:
    return Random(0).random


@dataclass(frozen=True)
class RetryPolicy:
    """When to try again: exponential back-off with jitter, or as the server asks to wait.

    ``retries``: of a server that has not answered yet, which may well be a wrong address; of one that
    has, ``proven_retries``. ``max_wait_s``: all the waits of one call; what would be longer is not waited
    for. ``sleep``, ``jitter`` (0 to 1), ``now`` (seconds since 1970) and ``clock`` (seconds) are seams.
    """

    retries: int = 2
    proven_retries: int = 8
    base_s: float = 0.5
    max_backoff_s: float = 20.0
    max_wait_s: float = MAX_WAIT_S
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep
    jitter: Callable[[], float] = field(default_factory=_jitter)
    now: Callable[[], float] = time.time
    clock: Callable[[], float] = time.monotonic

    def wait_s(
        self,
        attempt: int,
        *,
        waited_s: float,
        retry_after_s: float | None,
        retries: int | None = None,
        max_wait_s: float | None = None,
    ) -> float | None:
        """Seconds to wait after ``attempt`` failed; ``None``: do not try again. ``retries`` and
        ``max_wait_s`` stand over the policy's own."""
        if attempt > (self.retries if retries is None else retries):
            return None
        limit = self.max_wait_s if max_wait_s is None else max_wait_s
        jitter = self.jitter()
        if retry_after_s is not None:
            # Jitter here too: all callers were told the same moment.
            return None if waited_s + retry_after_s > limit else retry_after_s + self.base_s * jitter
        wait = min(self.max_backoff_s, self.base_s * 2 ** (attempt - 1)) * (1 + jitter) / 2
        return None if waited_s + wait > limit else wait


@dataclass
class RetryBudget:
    """What one call has left: how often it failed, and how long it has waited. ``max_wait_s`` stands over
    the policy's."""

    policy: RetryPolicy
    max_wait_s: float | None = None
    failures: int = 0
    waited_s: float = 0.0
    _counted: int = 0

    @property
    def left_s(self) -> float:
        limit = self.policy.max_wait_s if self.max_wait_s is None else self.max_wait_s
        return max(0.0, limit - self.waited_s)

    def next_wait_s(self, *, retry_after_s: float | None, retries: int) -> float | None:
        """Seconds to wait after one more failure; ``None``: give up. A second or more that the server
        asks for uses up no retry: the wait itself has an end."""
        self.failures += 1
        if retry_after_s is None or retry_after_s < _ASKED_FREE_S:
            self._counted += 1
        if retries <= 0:
            return None
        return self.policy.wait_s(
            self._counted,
            waited_s=self.waited_s,
            retry_after_s=retry_after_s,
            retries=retries,
            max_wait_s=self.max_wait_s,
        )

    async def wait(self, seconds: float) -> None:
        with pause_deadlines():
            await self.policy.sleep(seconds)
        self.waited_s += seconds

    @property
    def summary(self) -> str:
        """What was done, for a message; empty if the first failure was the last."""
        if self.failures < 2 and self.waited_s < 0.05:
            return ""
        times = "once" if self.failures == 1 else f"{self.failures} times"
        return f"tried {times}, waited {self.waited_s:.1f} s"
