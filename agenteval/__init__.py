"""A test runner for AI agents: YAML scenarios in, an exit code that CI can trust out.

This module is a table of contents. Names are imported when they are first used, so that
``import agenteval`` costs nothing; ``tests/test_architecture.py`` checks the table.
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_EXPORTS = {
    "AgentContext": "agenteval.agents.python",
    "AgentReply": "agenteval.protocols",
    "Check": "agenteval.score",
    "Conversation": "agenteval.scorers.checks.conversation",
    "ConversationMetric": "agenteval.scorers.custom",
    "QualResult": "agenteval.scorers.custom",
    "QualitativeMetric": "agenteval.scorers.custom",
    "QuantResult": "agenteval.scorers.custom",
    "QuantitativeMetric": "agenteval.scorers.custom",
    "ScoreInput": "agenteval.scorers.custom",
    "ToolError": "agenteval.errors",
    "Usage": "agenteval.trajectory",
}

__all__ = [
    "AgentContext",
    "AgentReply",
    "Check",
    "Conversation",
    "ConversationMetric",
    "QualResult",
    "QualitativeMetric",
    "QuantResult",
    "QuantitativeMetric",
    "ScoreInput",
    "ToolError",
    "Usage",
    "__version__",
]

if TYPE_CHECKING:
    from agenteval.agents.python import AgentContext
    from agenteval.errors import ToolError
    from agenteval.protocols import AgentReply
    from agenteval.score import Check
    from agenteval.scorers.checks.conversation import Conversation
    from agenteval.scorers.custom import (
        ConversationMetric,
        QualitativeMetric,
        QualResult,
        QuantitativeMetric,
        QuantResult,
        ScoreInput,
    )
    from agenteval.trajectory import Usage


def __getattr__(name: str) -> Any:
    if name in _EXPORTS:
        from importlib import import_module

        return getattr(import_module(_EXPORTS[name]), name)
    raise AttributeError(f"module 'agenteval' has no attribute {name!r}")
