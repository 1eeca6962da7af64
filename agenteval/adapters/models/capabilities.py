"""What servers were found to accept, by endpoint and model. Nothing is inferred from a model's name:
such tables rot, while a server's own refusal is always up to date.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import anyio

from agenteval.adapters.models.response_formats import FormatLevel
from agenteval.conversation.deadlines import pause_deadlines


@dataclass(frozen=True)
class ServerCapabilities:
    """What one endpoint and model taught. ``refused``: parameters that are no longer sent. ``rung``:
    how the shape of the answer is asked for. ``folds_system``: the system text goes into the user's
    message. ``needs_budget``: a limit of output tokens must be sent. ``streams``: it only answers in
    streams."""

    refused: frozenset[str] = frozenset()
    format_level: FormatLevel = FormatLevel.STRICT
    folds_system: bool = False
    needs_budget: bool = False
    streams: bool = False


@dataclass
class CapabilityEntry:
    """What is known of one endpoint and model, shared by all who call it.

    ``lock`` is held while one call finds out what is accepted, so that the others wait for the answer
    instead of being refused the same way. ``noticed``: what was reported already.
    """

    capabilities: ServerCapabilities = ServerCapabilities()
    noticed: set[str] = field(default_factory=set)
    lock: anyio.Lock = field(default_factory=anyio.Lock)

    async def wait_settled(self) -> None:
        """Waits while another call is finding out."""
        if self.lock.locked():
            with pause_deadlines():
                async with self.lock:
                    pass


class Capabilities:
    """The memories of a run."""

    def __init__(self) -> None:
        self._memories: dict[tuple[str, str], CapabilityEntry] = {}

    def entry_for(self, endpoint: str, model: str) -> CapabilityEntry:
        """The memory of a model at an endpoint (its URL without credentials)."""
        return self._memories.setdefault((endpoint, model), CapabilityEntry())

    @property
    def discovered(self) -> Mapping[tuple[str, str], ServerCapabilities]:
        """By endpoint and model; only of those that taught anything."""
        return {
            place: memory.capabilities
            for place, memory in self._memories.items()
            if memory.capabilities != ServerCapabilities()
        }
