"""Findings become issues: one root cause each, grouped in code; a model merges and names the worst of them.

Read ``deduplicate`` first: it calls the others in the order of what happens. ``grouping`` is what code can
tell of causes, ``grouping_model`` what a model is shown, what it may answer and how that is booked.
"""

from agenteval.scoring.issues.deduplicate import MAX_EXAMPLES, deduplicate, find_issues
from agenteval.scoring.issues.grouping_model import MAX_CHARACTERS, MAX_ENTRIES, DedupReply, Setting

__all__ = [
    "MAX_CHARACTERS",
    "MAX_ENTRIES",
    "MAX_EXAMPLES",
    "DedupReply",
    "Setting",
    "deduplicate",
    "find_issues",
]
