"""The sample that the running task belongs to.

A scorer is shared by all samples of an agent and receives only the scenario and the trajectory, which may be
equal in two epochs. Code that must keep the model calls of different samples apart (the cache, a cassette)
looks up the current sample here."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from agenteval.core.scenario import SampleKey

_CURRENT: ContextVar[SampleKey | None] = ContextVar("agenteval_current_sample", default=None)
_MEMORY: ContextVar[dict[Any, Any] | None] = ContextVar("agenteval_sample_memory", default=None)


def enter_sample(key: SampleKey) -> None:
    """Assign this task, and every task that it starts, to the sample."""
    _CURRENT.set(key)
    _MEMORY.set({})


def leave_sample() -> None:
    """Clear the memory of this task's sample, which is over. A connection that outlives the sample may keep
    the context in which it was opened."""
    sample_memory().clear()


def sample_memory() -> dict[Any, Any]:
    """Return what is kept for the running task's sample because its other scorers or its later turns need it
    too. The keys are the types of the values. If the task does not belong to a sample, return a new, empty
    dictionary."""
    memory = _MEMORY.get()
    return {} if memory is None else memory


def current_sample_key() -> SampleKey | None:
    """Return the key of the running task's sample, or ``None`` if the task does not belong to a sample
    (deduplication, for example, is done for the run as a whole)."""
    return _CURRENT.get()
