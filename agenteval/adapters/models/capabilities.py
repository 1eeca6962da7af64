"""Remember what servers were found to accept, by endpoint and model.

Nothing is inferred from a model's name: such tables go stale, while a server's own refusal is always current.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import anyio

from agenteval.adapters.models.response_formats import FormatLevel
from agenteval.conversation.deadlines import pause_deadlines


@dataclass(frozen=True)
class ServerCapabilities:
    """What one model at one endpoint was found to accept."""

    refused: frozenset[str] = frozenset()
    """Parameters that are no longer sent."""
    format_level: FormatLevel = FormatLevel.STRICT
    """How the shape of the answer is requested."""
    folds_system: bool = False
    """True if the system text goes into the user's message."""
    needs_budget: bool = False
    """True if a limit on output tokens must be sent."""
    streams: bool = False
    """True if the server answers only in streams."""


@dataclass
class CapabilityEntry:
    """What is known of one model at one endpoint, shared by all its callers."""

    capabilities: ServerCapabilities = ServerCapabilities()
    noticed: set[str] = field(default_factory=set)
    """Findings that were already reported."""
    lock: anyio.Lock = field(default_factory=anyio.Lock)
    """Held while one call finds out what is accepted, so that the others wait for the result instead of being
    refused in the same way."""

    async def wait_settled(self) -> None:
        """Wait while another call is finding out."""
        if self.lock.locked():
            with pause_deadlines():
                async with self.lock:
                    pass


class Capabilities:
    """The findings of a run."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, str], CapabilityEntry] = {}

    def entry_for(self, endpoint: str, model: str) -> CapabilityEntry:
        """Return the entry of a model at an endpoint (its URL without credentials)."""
        return self._entries.setdefault((endpoint, model), CapabilityEntry())

    @property
    def discovered(self) -> Mapping[tuple[str, str], ServerCapabilities]:
        """The findings by endpoint and model; models that accepted everything are left out."""
        return {
            place: entry.capabilities
            for place, entry in self._entries.items()
            if entry.capabilities != ServerCapabilities()
        }
