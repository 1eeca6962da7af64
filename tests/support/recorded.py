"""Records of logs as they are read, whatever form they are in."""

from __future__ import annotations

from typing import Any

from agenteval.core.errors import AuthorError, Problem
from agenteval.importers.custom_importer import imported
from agenteval.importers.reader import conversation_of
from agenteval.importers.records import Conversation, ToolSets
from agenteval.messages.entry import Record, Unreadable


def conversations(record: Any) -> list[Conversation]:
    """Raises ``AuthorError`` for a record that cannot be read."""
    found: list[Conversation] = []
    for entry in imported([Record(record, "log:1")]):
        if isinstance(entry, Unreadable):
            raise AuthorError(Problem(entry.why))
        found.append(conversation_of(entry, ToolSets()))
    return found


def read(record: Any) -> Conversation:
    """The only conversation of a record."""
    (found,) = conversations(record)
    return found
