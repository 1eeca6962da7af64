"""The agent that a new configuration names."""

from __future__ import annotations

from typing import Any, NamedTuple


class AgentChoice(NamedTuple):
    """An agent that may be written: named by its author, or found."""

    keys: dict[str, Any]
    """Its own, in the configuration."""
    label: str = ""
    note: str = ""
    """What its author has to look at."""
    words: tuple[str, ...] = ()
    """Those of a program of which nobody knows yet how it is asked."""
    others: tuple[str, ...] = ()
    """What else was found."""
    is_starter: bool = False
    is_object: bool = False
    """One of a framework."""
    is_open: bool = False
    """Nothing says which keys request and reply have."""

    def __str__(self) -> str:
        return self.label

    @property
    def shows_calls(self) -> bool:
        """Whether its calls are seen as it is written here (docs/agents.md, "Which calls are seen")."""
        is_known = "endpoint" in self.keys and "messages" in self.keys.get("reply", ("messages",))
        return self.is_object or is_known or isinstance(self.keys.get("command"), list)
