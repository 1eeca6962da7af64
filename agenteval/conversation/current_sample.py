"""The sample that the running task belongs to.

A scorer is shared by all samples of an agent and receives only scenario and trajectory, which two epochs may
have in common. Whatever keeps their model calls apart (the cache, a cassette) looks up the sample here."""

from __future__ import annotations

from contextvars import ContextVar

from agenteval.core.scenario import SampleKey

_CURRENT: ContextVar[SampleKey | None] = ContextVar("agenteval_current_sample", default=None)


def enter_sample(key: SampleKey) -> None:
    """Assign this task, and every task that it starts, to the sample."""
    _CURRENT.set(key)


def current_sample_key() -> SampleKey | None:
    """Return the sample of the running task; ``None`` outside all samples, because de-duplication is about
    the whole run."""
    return _CURRENT.get()
