"""The checks in code that an author can ask for in ``expect``, each one object.

To add one: its field in ``agenteval.scenario`` (the path of it is the rule's name), its ``Rule`` in a module
here, its test. What it has to say of itself is listed in ``agenteval.scorers.checks.rule``.
"""

from agenteval.scorers.checks.calls import TOOL_CALLS
from agenteval.scorers.checks.cites import CITES
from agenteval.scorers.checks.json_output import JSON
from agenteval.scorers.checks.limits import LIMITS
from agenteval.scorers.checks.output import OUTPUT
from agenteval.scorers.checks.python import PYTHON
from agenteval.scorers.checks.rule import Rule

RULES: tuple[Rule, ...] = (*TOOL_CALLS, *OUTPUT, *JSON, *CITES, *LIMITS, *PYTHON)
"""All of them, in the order in which results list them."""
