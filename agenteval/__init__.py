"""A test runner for AI agents: it plays YAML scenarios and returns an exit code that CI can trust.

This module is only a table of contents: it lists what the code of authors and of other packages subclasses,
constructs, raises or receives. Names are imported when they are first used, so that ``import agenteval``
costs nothing; ``tests/test_architecture.py`` checks the table."""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_EXPORTS = {
    "AfterAnswerError": "agenteval.core.errors",
    "Agent": "agenteval.core.protocols",
    "AgentAdapter": "agenteval.core.protocols",
    "AgentContext": "agenteval.adapters.agents.python",
    "AgentError": "agenteval.core.errors",
    "AgentFactory": "agenteval.core.protocols",
    "AgentReply": "agenteval.core.protocols",
    "AgentTool": "agenteval.core.protocols",
    "AgentevalError": "agenteval.core.errors",
    "AuthorError": "agenteval.core.errors",
    "ChatModel": "agenteval.core.protocols",
    "Check": "agenteval.core.score",
    "Conversation": "agenteval.scoring.checks.conversation",
    "ConversationMetric": "agenteval.scoring.judges.custom",
    "GateRow": "agenteval.core.decision",
    "Importer": "agenteval.core.protocols",
    "InconclusiveError": "agenteval.api.run_report",
    "InfrastructureError": "agenteval.core.errors",
    "Item": "agenteval.reporters.sections.section",
    "KnownVisibility": "agenteval.core.tool_visibility",
    "LineImporter": "agenteval.core.protocols",
    "LocationCell": "agenteval.reporters.sections.section",
    "Mistake": "agenteval.core.errors",
    "ModelReply": "agenteval.core.protocols",
    "ModelRequest": "agenteval.core.protocols",
    "NothingSelectedError": "agenteval.core.errors",
    "Problem": "agenteval.core.errors",
    "Provider": "agenteval.core.providers",
    "QualResult": "agenteval.scoring.judges.custom",
    "QualitativeMetric": "agenteval.scoring.judges.custom",
    "QuantResult": "agenteval.scoring.judges.custom",
    "QuantitativeMetric": "agenteval.scoring.judges.custom",
    "ReportOptions": "agenteval.reporters.options",
    "ReportSections": "agenteval.reporters.sections.report_sections",
    "RunOptions": "agenteval.api.requests",
    "RunReport": "agenteval.api.run_report",
    "ScenarioResult": "agenteval.reporters.sections.report_sections",
    "ScoreInput": "agenteval.scoring.judges.custom",
    "Section": "agenteval.reporters.sections.section",
    "StyledText": "agenteval.reporters.sections.section",
    "Tone": "agenteval.reporters.sections.section",
    "ToolError": "agenteval.core.errors",
    "ToolVisibility": "agenteval.core.trajectory",
    "TurnTools": "agenteval.core.protocols",
    "UnreadableReplyError": "agenteval.core.errors",
    "Usage": "agenteval.core.trajectory",
    "Verdict": "agenteval.core.score",
    "VerdictError": "agenteval.api.run_report",
    "run": "agenteval.api.runs",
    "run_sync": "agenteval.api.runs",
    "scenarios": "agenteval.api.pytest_functions",
    "score": "agenteval.api.runs",
}

__all__ = [
    "AfterAnswerError",
    "Agent",
    "AgentAdapter",
    "AgentContext",
    "AgentError",
    "AgentFactory",
    "AgentReply",
    "AgentTool",
    "AgentevalError",
    "AuthorError",
    "ChatModel",
    "Check",
    "Conversation",
    "ConversationMetric",
    "GateRow",
    "Importer",
    "InconclusiveError",
    "InfrastructureError",
    "Item",
    "KnownVisibility",
    "LineImporter",
    "LocationCell",
    "Mistake",
    "ModelReply",
    "ModelRequest",
    "NothingSelectedError",
    "Problem",
    "Provider",
    "QualResult",
    "QualitativeMetric",
    "QuantResult",
    "QuantitativeMetric",
    "ReportOptions",
    "ReportSections",
    "RunOptions",
    "RunReport",
    "ScenarioResult",
    "ScoreInput",
    "Section",
    "StyledText",
    "Tone",
    "ToolError",
    "ToolVisibility",
    "TurnTools",
    "UnreadableReplyError",
    "Usage",
    "Verdict",
    "VerdictError",
    "__version__",
    "run",
    "run_sync",
    "scenarios",
    "score",
]

if TYPE_CHECKING:
    from agenteval.adapters.agents.python import AgentContext
    from agenteval.api.pytest_functions import scenarios
    from agenteval.api.requests import RunOptions
    from agenteval.api.run_report import InconclusiveError, RunReport, VerdictError
    from agenteval.api.runs import run, run_sync, score
    from agenteval.core.decision import GateRow
    from agenteval.core.errors import (
        AfterAnswerError,
        AgentError,
        AgentevalError,
        AuthorError,
        InfrastructureError,
        Mistake,
        NothingSelectedError,
        Problem,
        ToolError,
        UnreadableReplyError,
    )
    from agenteval.core.protocols import (
        Agent,
        AgentAdapter,
        AgentFactory,
        AgentReply,
        AgentTool,
        ChatModel,
        Importer,
        LineImporter,
        ModelReply,
        ModelRequest,
        TurnTools,
    )
    from agenteval.core.providers import Provider
    from agenteval.core.score import Check, Verdict
    from agenteval.core.tool_visibility import KnownVisibility
    from agenteval.core.trajectory import ToolVisibility, Usage
    from agenteval.reporters.options import ReportOptions
    from agenteval.reporters.sections.report_sections import ReportSections, ScenarioResult
    from agenteval.reporters.sections.section import Item, LocationCell, Section, StyledText, Tone
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
