"""The sample that the running task belongs to.

A scorer is shared by all samples of an agent and receives only the scenario and the trajectory, which may be
equal in two epochs. Code that must keep the model calls of different samples apart (the cache, a cassette)
looks up the current sample here."""

from __future__ import annotations

from contextvars import ContextVar

from agenteval.core.scenario import SampleKey

_CURRENT: ContextVar[SampleKey | None] = ContextVar("agenteval_current_sample", default=None)


def enter_sample(key: SampleKey) -> None:
    """Assign this task, and every task that it starts, to the sample."""
    _CURRENT.set(key)


def current_sample_key() -> SampleKey | None:
    """Return the key of the running task's sample, or ``None`` if the task does not belong to a sample
    (deduplication, for example, is done for the run as a whole)."""
    return _CURRENT.get()
