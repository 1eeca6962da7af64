"""Findings become issues: one root cause each, grouped in code; a model merges and names the worst of them.

Read ``deduplicate_findings`` first: it calls the others in the order of what happens. ``grouping`` is what
code can tell of causes, ``grouping_model`` what a model is shown, what it may answer and how that is booked.
"""

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
