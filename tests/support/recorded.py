"""Records of logs as they are read, whatever form they are in."""

from __future__ import annotations

from typing import Any

from agenteval.core.errors import AuthorError, Problem
from agenteval.importers.importer_registry import import_entries
from agenteval.importers.reader import conversation_of
from agenteval.importers.records import ImportedConversation, ToolSets
from agenteval.messages.log_entry import Record, UnreadableRecord


def conversations(record: Any) -> list[ImportedConversation]:
    """Raises ``AuthorError`` for a record that cannot be read."""
    found: list[ImportedConversation] = []
    for entry in import_entries([Record(record, "log:1")]):
        if isinstance(entry, UnreadableRecord):
            raise AuthorError(Problem(entry.reason))
        found.append(conversation_of(entry, ToolSets()))
    return found


def read(record: Any) -> ImportedConversation:
    """The only conversation of a record."""
    (found,) = conversations(record)
    return found
