"""Decide whether a call is retried, how long it waits before the retry (exponential backoff), and when to
give up."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

import anyio

from agenteval.conversation.deadlines import pause_deadlines

MAX_WAIT_S = 180.0
"""The total time in seconds that one call may wait for limits and retries, unless the author sets a different
limit."""
_ASKED_FREE_S = 1.0


class Retry(NamedTuple):
    """A request that is about to be sent again."""

    where: str
    reason: str
    attempt: int
    """The number of the failed attempt, starting at 1."""
    wait_s: float


def _jitter() -> Callable[[], float]:
    return Random(0).random


@dataclass(frozen=True)
class RetryPolicy:
    """The retry policy: retry with exponential backoff and jitter, or after the time that the server asks
    for.

    ``sleep``, ``jitter`` (0 to 1), ``now`` (seconds since 1970) and ``clock`` (seconds) can be replaced in
    tests."""

    retries: int = 2
    """The number of retries for a server that has not answered yet. The server's address may be wrong."""
    proven_retries: int = 8
    """The number of retries for a server that has answered before."""
    base_s: float = 0.5
    max_backoff_s: float = 20.0
    max_wait_s: float = MAX_WAIT_S
    """The limit on the total wait of one call in seconds. A wait that would exceed this limit is not
    started."""
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
        """Return the number of seconds to wait after ``attempt`` failed (exponential backoff), or ``None`` to
        give up.

        ``retries`` and ``max_wait_s`` override the limits of the policy."""
        if attempt > (self.retries if retries is None else retries):
            return None
        limit = self.max_wait_s if max_wait_s is None else max_wait_s
        jitter = self.jitter()
        if retry_after_s is not None:
            # Jitter here too, because all callers were given the same time.
            return None if waited_s + retry_after_s > limit else retry_after_s + self.base_s * jitter
        wait = min(self.max_backoff_s, self.base_s * 2 ** (attempt - 1)) * (1 + jitter) / 2
        return None if waited_s + wait > limit else wait


@dataclass
class RetryBudget:
    """The remaining retries and waiting time of one call, based on its failures and waits so far."""

    policy: RetryPolicy
    max_wait_s: float | None = None
    """A limit that overrides the policy's limit."""
    failures: int = 0
    waited_s: float = 0.0
    _counted: int = 0

    @property
    def left_s(self) -> float:
        limit = self.policy.max_wait_s if self.max_wait_s is None else self.max_wait_s
        return max(0.0, limit - self.waited_s)

    def next_wait_s(self, *, retry_after_s: float | None, retries: int) -> float | None:
        """Return the number of seconds to wait after one more failure, or ``None`` to give up.

        If the server asks for a wait of one second or more, the wait does not use up a retry, because the
        total wait is limited anyway."""
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
        """The retries and waits so far, worded for use in a message; an empty string after a single failure
        without a wait."""
        if self.failures < 2 and self.waited_s < 0.05:
            return ""
        times = "once" if self.failures == 1 else f"{self.failures} times"
        return f"tried {times}, waited {self.waited_s:.1f} s"
