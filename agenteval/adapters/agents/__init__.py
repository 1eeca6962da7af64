"""The agents under test: each kind is one ``AgentAdapter``, with options of its own.

To add one: its module here, with an ``ADAPTER``; a line in ``AGENTS``; its test.
"""

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
    """What the parts of a run share, as an adapter meets it."""

    @property
    def config(self) -> Config: ...

    @property
    def secrets(self) -> Sequence[str]:
        """Texts that nothing may show."""

    @property
    def declared_tools(self) -> Collection[str]:
        """The tools that any scenario of the suite declares."""

    def tell(self, text: str, key: SampleKey | None = None) -> None:
        """A notice, of one sample if it has a ``key``."""

    def warn(self, text: str) -> None:
        """A notice that concerns the verdict; the same text is one."""

    def place_of(self, agent: AgentConfig, key: str) -> Place:
        """Where a key of an agent is written."""

    def limits(self) -> RateLimits: ...

    def transport(self) -> Transport: ...


def _of_plugin(found: Any) -> AgentAdapter:
    """An adapter; or the function that makes the agents, of an adapter without options."""
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
