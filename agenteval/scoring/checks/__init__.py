"""The deterministic (code-based) checks that an author can request in ``expect``, one object for each check.

To add a check, add a field in ``agenteval.core.scenario`` (the path of the field is the rule's name), a
``CheckRule`` in a module in this package, and a test. ``agenteval.scoring.checks.check_rule`` defines the
properties that a rule declares."""

from agenteval.scoring.checks.agents import AGENTS
from agenteval.scoring.checks.calls import TOOL_CALLS
from agenteval.scoring.checks.check_rule import CheckRule
from agenteval.scoring.checks.citations import CITES
from agenteval.scoring.checks.json_output import JSON
from agenteval.scoring.checks.limits import LIMITS
from agenteval.scoring.checks.output import OUTPUT
from agenteval.scoring.checks.python_checks import PYTHON
from agenteval.scoring.checks.state import STATE

RULES: tuple[CheckRule, ...] = (*TOOL_CALLS, *AGENTS, *OUTPUT, *JSON, *CITES, *LIMITS, *STATE, *PYTHON)
"""All rules, in the order in which results list them."""
