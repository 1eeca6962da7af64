"""Record the request features that a server accepts, by endpoint and model.

Nothing is inferred from a model's name. Tables of model names become outdated, whereas a server's own refusal
is always up to date."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import anyio

from agenteval.adapters.models.response_formats import FormatLevel
from agenteval.conversation.deadlines import pause_deadlines


@dataclass(frozen=True)
class ServerCapabilities:
    """The request features that a server was found to accept for one model."""

    refused: frozenset[str] = frozenset()
    """Parameters that are no longer sent because the server refused them."""
    format_level: FormatLevel = FormatLevel.STRICT
    """The format in which the structure of the answer is requested."""
    folds_system: bool = False
    """True if the system prompt is moved into the user message."""
    needs_budget: bool = False
    """True if requests must include a limit on output tokens."""
    streams: bool = False
    """True if the server supports only streaming responses."""


@dataclass
class CapabilityEntry:
    """The findings about one model at one endpoint, shared by all of its callers."""

    capabilities: ServerCapabilities = ServerCapabilities()
    noticed: set[str] = field(default_factory=set)
    """Findings that have already been reported."""
    lock: anyio.Lock = field(default_factory=anyio.Lock)
    """A lock held while one call finds out which features are accepted. Other calls wait for the findings;
    otherwise, the server would refuse them for the same reason."""

    async def wait_settled(self) -> None:
        """Wait while another call is finding out which features are accepted."""
        if self.lock.locked():
            with pause_deadlines():
                async with self.lock:
                    pass


class Capabilities:
    """All findings of a run."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, str], CapabilityEntry] = {}

    def entry_for(self, endpoint: str, model: str) -> CapabilityEntry:
        """Return the entry for a model at an endpoint, which is identified by its URL without credentials."""
        return self._entries.setdefault((endpoint, model), CapabilityEntry())

    @property
    def discovered(self) -> Mapping[tuple[str, str], ServerCapabilities]:
        """The findings keyed by endpoint and model. Models that accepted everything are omitted."""
        return {
            place: entry.capabilities
            for place, entry in self._entries.items()
            if entry.capabilities != ServerCapabilities()
        }
