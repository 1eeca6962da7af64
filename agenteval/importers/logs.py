"""The public interface for recorded conversations. It finds log files, reads them with a ``Reader``, matches
conversations with the author's expectations (``ExpectedScenarios``), and reads additional facts from
agenteval's journals."""

from agenteval.importers.expected_scenarios import ExpectedScenarios
from agenteval.importers.identity import FieldPaths, Naming
from agenteval.importers.journals import placeholders_in, visibility_in
from agenteval.importers.reader import ImportWarnings, Reader, require_paths
from agenteval.importers.sources import (
    JOURNAL,
    Source,
    check_journals,
    deduplicate_sources,
    find_sources,
    is_journal,
    is_stream,
    lines_of,
    spool_path,
    spool_stream,
)

__all__ = [
    "JOURNAL",
    "ExpectedScenarios",
    "FieldPaths",
    "ImportWarnings",
    "Naming",
    "Reader",
    "Source",
    "check_journals",
    "deduplicate_sources",
    "find_sources",
    "is_journal",
    "is_stream",
    "lines_of",
    "placeholders_in",
    "require_paths",
    "spool_path",
    "spool_stream",
    "visibility_in",
]
