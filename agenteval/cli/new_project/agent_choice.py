"""The agent of a new configuration."""

from __future__ import annotations

from typing import Any, NamedTuple


class AgentChoice(NamedTuple):
    """An agent that may be written to the configuration: named by its author, or found."""

    keys: dict[str, Any]
    """The agent's keys in the configuration."""
    label: str = ""
    note: str = ""
    """What its author has to check."""
    words: tuple[str, ...] = ()
    """The command of a program if it is unknown how it takes a message."""
    others: tuple[str, ...] = ()
    """The labels of other agents that were found."""
    is_starter: bool = False
    is_object: bool = False
    """True if the agent is an object of a framework."""
    is_open: bool = False
    """True if nothing says which keys request and reply have."""

    def __str__(self) -> str:
        return self.label

    @property
    def shows_calls(self) -> bool:
        """True if this configuration shows the agent's calls (docs/agents.md, "Which calls are seen")."""
        is_known = "endpoint" in self.keys and "messages" in self.keys.get("reply", ("messages",))
        return self.is_object or is_known or isinstance(self.keys.get("command"), list)
