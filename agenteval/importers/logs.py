"""The door for recorded conversations: sources are found, a ``Reader`` makes ``Recorded`` of them, an
``ExpectedScenarios`` adds what the author expects, and journals of our own tell more."""

from agenteval.importers.expected_scenarios import ExpectedScenarios
from agenteval.importers.identity import Naming, Paths
from agenteval.importers.journals import placeholders_in, visibility_in
from agenteval.importers.reader import Reader, Remarks, require_paths
from agenteval.importers.sources import (
    JOURNAL,
    Source,
    check_journals,
    each_once,
    is_journal,
    is_stream,
    lines_of,
    sources_of,
    spooled,
    spooled_from,
)

__all__ = [
    "JOURNAL",
    "ExpectedScenarios",
    "Naming",
    "Paths",
    "Reader",
    "Remarks",
    "Source",
    "check_journals",
    "each_once",
    "is_journal",
    "is_stream",
    "lines_of",
    "placeholders_in",
    "require_paths",
    "sources_of",
    "spooled",
    "spooled_from",
    "visibility_in",
]
