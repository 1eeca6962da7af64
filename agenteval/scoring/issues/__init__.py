"""Groups (clusters) findings into issues, each with one root cause. Code forms the groups; a model merges the
groups and gives the worst ones titles.

Start with ``deduplicate_findings``, which calls the other functions in chronological order. ``grouping``
contains the rules by which code recognizes causes. ``grouping_request`` contains the request to the model,
the permitted answers and their application."""

from agenteval.scoring.issues.deduplication import MAX_EXAMPLES, deduplicate_findings, find_issues
from agenteval.scoring.issues.grouping_request import MAX_CHARACTERS, MAX_ENTRIES, AgentSetup, DedupReply

__all__ = [
    "MAX_CHARACTERS",
    "MAX_ENTRIES",
    "MAX_EXAMPLES",
    "AgentSetup",
    "DedupReply",
    "deduplicate_findings",
    "find_issues",
]
