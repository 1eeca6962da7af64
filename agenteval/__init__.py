"""A test runner for AI agents: YAML scenarios in, an exit code that CI can trust out.

This module is a table of contents. Names are imported when they are first used, so that
``import agenteval`` costs nothing; ``tests/test_architecture.py`` checks the table.
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_EXPORTS = {
    "AgentAdapter": "agenteval.core.protocols",
    "AgentContext": "agenteval.adapters.agents.python",
    "AgentReply": "agenteval.core.protocols",
    "Check": "agenteval.core.score",
    "Conversation": "agenteval.scoring.checks.conversation",
    "ConversationMetric": "agenteval.scoring.judges.custom",
    "QualResult": "agenteval.scoring.judges.custom",
    "QualitativeMetric": "agenteval.scoring.judges.custom",
    "QuantResult": "agenteval.scoring.judges.custom",
    "QuantitativeMetric": "agenteval.scoring.judges.custom",
    "ScoreInput": "agenteval.scoring.judges.custom",
    "ToolError": "agenteval.core.errors",
    "Usage": "agenteval.core.trajectory",
}

__all__ = [
    "AgentAdapter",
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
    from agenteval.adapters.agents.python import AgentContext
    from agenteval.core.errors import ToolError
    from agenteval.core.protocols import AgentAdapter, AgentReply
    from agenteval.core.score import Check
    from agenteval.core.trajectory import Usage
    from agenteval.scoring.checks.conversation import Conversation
    from agenteval.scoring.judges.custom import (
        ConversationMetric,
        QualitativeMetric,
        QualResult,
        QuantitativeMetric,
        QuantResult,
        ScoreInput,
    )


def __getattr__(name: str) -> Any:
    if name in _EXPORTS:
        from importlib import import_module

        return getattr(import_module(_EXPORTS[name]), name)
    raise AttributeError(f"module 'agenteval' has no attribute {name!r}")
