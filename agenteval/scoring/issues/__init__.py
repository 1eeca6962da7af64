"""Groups (clusters) findings into issues, each with one root cause. Code forms the groups; a model merges
them and names the worst groups.

Start with ``deduplicate_findings``, which calls the other functions in chronological order. ``grouping``
contains what code knows about causes. ``grouping_request`` contains the request to the model, the permitted
answers and their application."""

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
