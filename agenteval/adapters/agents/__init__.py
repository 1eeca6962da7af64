"""The agents under test: each type is one ``AgentAdapter`` with its own options.

To add one: a module here with an ``ADAPTER``, a line in ``AGENTS``, and a test."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from pydantic import BaseModel

from agenteval.core.config import AgentConfig, Config
from agenteval.core.errors import Place
from agenteval.core.protocols import AgentAdapter
from agenteval.core.registry import Registry
from agenteval.core.scenario import SampleKey

if TYPE_CHECKING:
    from agenteval.adapters.transport.client import Transport
    from agenteval.adapters.transport.limits import RateLimits


class AgentResources(Protocol):
    """The shared resources of a run, as an adapter sees them."""

    @property
    def config(self) -> Config: ...

    @property
    def secrets(self) -> Sequence[str]:
        """The texts that nothing may show."""

    @property
    def declared_tools(self) -> Collection[str]:
        """The tools that any scenario of the suite declares."""

    def notify(self, text: str, key: SampleKey | None = None) -> None:
        """Show a notice; one about a single sample has its ``key``."""

    def warn(self, text: str) -> None:
        """Show a notice that concerns the verdict; the same text is shown once."""

    def place_of(self, agent: AgentConfig, key: str) -> Place:
        """Return the place where a key of an agent is written."""

    def limits(self) -> RateLimits: ...

    def transport(self) -> Transport: ...


def _of_plugin(found: Any) -> AgentAdapter:
    """Return a plugin's adapter, or build one without options from a function that makes the agents."""
    if isinstance(found, AgentAdapter):
        if not (isinstance(found.options, type) and issubclass(found.options, BaseModel)):
            raise TypeError("its options are not a pydantic model")
        return found
    if not callable(found):
        raise TypeError("it is not an AgentAdapter")
    return AgentAdapter(lambda agent, _options, resources: found(agent, resources))


AGENTS: Registry[AgentAdapter] = Registry(
    "agent type",
    "agenteval.agents",
    {
        "python": "agenteval.adapters.agents.python:ADAPTER",
        "http": "agenteval.adapters.agents.http:ADAPTER",
        "command": "agenteval.adapters.agents.command:ADAPTER",
    },
    _of_plugin,
)
