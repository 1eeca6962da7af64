"""Findings become issues: one root cause each, grouped in code; a model merges and names the worst of them.

Read ``deduplicate`` first: it calls the others in the order of what happens. ``grouping`` is what code can
tell of causes, ``request`` what a model is shown, ``reply`` what it may answer and how that is booked.
"""

from agenteval.scoring.issues.deduplicate import MAX_EXAMPLES, deduplicate, find_issues
from agenteval.scoring.issues.reply import DedupReply
from agenteval.scoring.issues.request import MAX_CHARACTERS, MAX_ENTRIES, Setting

__all__ = [
    "MAX_CHARACTERS",
    "MAX_ENTRIES",
    "MAX_EXAMPLES",
    "DedupReply",
    "Setting",
    "deduplicate",
    "find_issues",
]
