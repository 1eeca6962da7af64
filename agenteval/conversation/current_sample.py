"""Which sample the running task belongs to.

A scorer is shared by all samples of an agent and is told scenario and trajectory alone, which two epochs
may have in common. What keeps their model calls apart (the cache, a cassette) asks here.
"""

from __future__ import annotations

from contextvars import ContextVar

from agenteval.core.scenario import SampleKey

_CURRENT: ContextVar[SampleKey | None] = ContextVar("agenteval_current_sample", default=None)


def enter_sample(key: SampleKey) -> None:
    """From here on this task, and all that it starts, belongs to the sample."""
    _CURRENT.set(key)


def current_sample_key() -> SampleKey | None:
    """``None`` outside all samples: de-duplication is about the whole run."""
    return _CURRENT.get()
