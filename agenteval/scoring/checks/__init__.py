"""The checks in code that an author can request in ``expect``, one object each.

To add one: add its field in ``agenteval.core.scenario`` (the path of the field is the rule's name), its
``CheckRule`` in a module here, and its test. ``agenteval.scoring.checks.check_rule`` lists what a rule
declares."""

from agenteval.scoring.checks.agents import AGENTS
from agenteval.scoring.checks.calls import TOOL_CALLS
from agenteval.scoring.checks.check_rule import CheckRule
from agenteval.scoring.checks.citations import CITES
from agenteval.scoring.checks.json_output import JSON
from agenteval.scoring.checks.limits import LIMITS
from agenteval.scoring.checks.output import OUTPUT
from agenteval.scoring.checks.python_checks import PYTHON

RULES: tuple[CheckRule, ...] = (*TOOL_CALLS, *AGENTS, *OUTPUT, *JSON, *CITES, *LIMITS, *PYTHON)
"""All rules, in the order in which results list them."""
