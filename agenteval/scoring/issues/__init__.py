"""Groups findings into issues, one root cause each: code groups them; a model merges and names the worst.

Read ``deduplicate_findings`` first: it calls the others in the order of events. ``grouping`` has what code
knows of causes, ``grouping_request`` what a model is shown, what it may answer and how that is applied."""

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
