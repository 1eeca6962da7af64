"""What all models of a run share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from agenteval.adapters.models.capabilities import Capabilities
    from agenteval.adapters.models.pool import ModelPool
    from agenteval.adapters.transport.limits import RateLimits


class ModelResources(NamedTuple):
    """One bound on calls in flight, what servers taught, who is told of that,
    and how fast servers are asked."""

    pool: ModelPool
    capabilities: Capabilities
    notify: Callable[[str], None]
    limits: RateLimits | None = None
