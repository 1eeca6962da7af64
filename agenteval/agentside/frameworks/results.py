"""Extract the answer from a framework result that the author's function returns unchanged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..world import ToolAnswer, as_json_text
from .seam import kinds

if TYPE_CHECKING:
    from collections.abc import Callable


def _field(name: str) -> Callable[[Any], Any]:
    return lambda result: getattr(result, name)


def _last_message(result: Any) -> Any:
    return result.messages[-1].to_text() if result.messages else ""


_ANSWERS: dict[str, Callable[[Any], Any]] = {
    "agent_framework._types.AgentResponse": _field("text"),
    "agents.result.RunResultBase": _field("final_output"),
    "autogen_agentchat.base._chat_agent.Response": lambda result: result.chat_message.to_text(),
    "autogen_agentchat.base._task.TaskResult": _last_message,
    "crewai.crews.crew_output.CrewOutput": _field("raw"),
    "crewai.lite_agent_output.LiteAgentOutput": _field("raw"),
    "llama_index.core.agent.workflow.workflow_events.AgentOutput": str,
    "llama_index.core.base.response.schema.Response": str,
    "llama_index.core.chat_engine.types.AgentChatResponse": str,
    "pydantic_ai.run.AgentRunResult": _field("output"),
    "smolagents.agents.RunResult": _field("output"),
    "strands.agent.agent_result.AgentResult": str,
}
"""The functions that extract the answer, keyed by the class of the result."""


def extract_answer(value: Any) -> Any:
    """Return the answer in a framework result: a string without its trailing newlines, and an object as JSON.
    A value that is not a framework result is returned unchanged."""
    if isinstance(value, (str, dict, list, tuple, type)) or value is None:
        return value
    read = next((_ANSWERS[kind] for kind in kinds(value) if kind in _ANSWERS), None)
    if read is None:
        return value
    found = read(value)
    if isinstance(found, str):
        return found.rstrip("\n")
    return ToolAnswer(
        as_json_text(found.model_dump(mode="json") if hasattr(found, "model_dump") else found)
    ).text
