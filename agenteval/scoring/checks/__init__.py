"""The checks in code that an author can ask for in ``expect``, each one object.

To add one: its field in ``agenteval.core.scenario`` (the path of it is the rule's name), its ``Rule`` in a
module here, its test. What it has to say of itself is listed in ``agenteval.scoring.checks.check_rule``.
"""

from agenteval.scoring.checks.agents import AGENTS
from agenteval.scoring.checks.calls import TOOL_CALLS
from agenteval.scoring.checks.check_rule import CheckRule
from agenteval.scoring.checks.citations import CITES
from agenteval.scoring.checks.json_output import JSON
from agenteval.scoring.checks.limits import LIMITS
from agenteval.scoring.checks.output import OUTPUT
from agenteval.scoring.checks.python_checks import PYTHON

RULES: tuple[CheckRule, ...] = (*TOOL_CALLS, *AGENTS, *OUTPUT, *JSON, *CITES, *LIMITS, *PYTHON)
"""All of them, in the order in which results list them."""
