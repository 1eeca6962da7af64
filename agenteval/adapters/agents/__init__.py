"""The adapter registry for the agents under test. Each agent type is one ``AgentAdapter`` with its own
options.

To add an agent type, add a module with an ``ADAPTER`` here, a line in ``AGENTS``, and a test."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from pydantic import BaseModel

from agenteval.core.config import AgentConfig, Config
from agenteval.core.errors import Place
from agenteval.core.protocols import AgentAdapter
from agenteval.core.registry import Registry
from agenteval.core.scenario import SampleKey

if TYPE_CHECKING:
    from agenteval.adapters.transport.client import Transport
    from agenteval.adapters.transport.limits import CallLimits


class AgentResources(Protocol):
    """The resources of a run that adapters may use."""

    @property
    def config(self) -> Config: ...

    @property
    def secrets(self) -> Sequence[str]:
        """The secrets, which must never appear in any output."""

    @property
    def declared_tools(self) -> Collection[str]:
        """The tools declared by any scenario in the suite."""

    @property
    def write_example_databases(self) -> Callable[[str], Mapping[str, str]]:
        """Returns the environment variables for a process of an agent that is started before any
        conversation: each names a database that a scenario exposes, as it is at the start."""

    def notify(self, text: str, key: SampleKey | None = None) -> None:
        """Show a notice. A notice about a single sample includes the sample's ``key``."""

    def warn(self, text: str) -> None:
        """Show a notice that affects the verdict. Notices with the same text are shown only once."""

    def place_of(self, agent: AgentConfig, key: str) -> Place:
        """Return the location of an agent's key in the configuration file."""

    def limits(self) -> CallLimits: ...

    def transport(self) -> Transport: ...


def _of_plugin(found: Any) -> AgentAdapter:
    """Return a plugin's adapter. If the plugin is a function that creates agents, wrap the function in an
    adapter without options."""
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
