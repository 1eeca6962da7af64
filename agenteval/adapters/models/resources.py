"""Define the resources that all models of a run share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from agenteval.adapters.models.capabilities import Capabilities
    from agenteval.adapters.models.pool import ModelPool
    from agenteval.adapters.transport.limits import CallLimits


class ModelResources(NamedTuple):
    """The resources that all models of a run share."""

    pool: ModelPool
    """The limit on model calls in flight."""
    capabilities: Capabilities
    """The request features that servers were found to accept."""
    notify: Callable[[str], None]
    """The function that is called with a notice about each finding and each retry."""
    limits: CallLimits | None = None
    """The rate limits for calls to servers."""
