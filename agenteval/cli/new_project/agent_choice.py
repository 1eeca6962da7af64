"""The agent of a new configuration, as chosen by ``agenteval init``."""

from __future__ import annotations

from typing import Any, NamedTuple


class AgentChoice(NamedTuple):
    """An agent that may be written to the configuration. The agent was named by its author or found in the
    project."""

    keys: dict[str, Any]
    """The agent's keys in the configuration."""
    label: str = ""
    note: str = ""
    """A note about settings that the author must check."""
    words: tuple[str, ...] = ()
    """The command that runs the program; set only if it is unknown how the program accepts a message."""
    others: tuple[str, ...] = ()
    """The labels of the other agents that were found."""
    is_starter: bool = False
    is_object: bool = False
    """True if the agent is a framework object."""
    is_open: bool = False
    """True if the request and reply keys are unknown."""

    def __str__(self) -> str:
        return self.label

    @property
    def shows_calls(self) -> bool:
        """True if the agent's tool calls are visible with this configuration (docs/agents.md, "Which calls
        are seen")."""
        is_known = "endpoint" in self.keys and "messages" in self.keys.get("reply", ("messages",))
        return self.is_object or is_known or isinstance(self.keys.get("command"), list)
