"""The resources that all models of a run share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from agenteval.adapters.models.capabilities import Capabilities
    from agenteval.adapters.models.pool import ModelPool
    from agenteval.adapters.transport.limits import RateLimits


class ModelResources(NamedTuple):
    """The resources that all models of a run share."""

    pool: ModelPool
    """The limit on calls in flight."""
    capabilities: Capabilities
    """What servers were found to accept."""
    notify: Callable[[str], None]
    """Gets a notice of what was found, and of retries."""
    limits: RateLimits | None = None
    """The limits on how fast servers are called."""
