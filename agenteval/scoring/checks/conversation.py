"""The conversation that is passed to an author's Python check. It consists of copies, so that the record
cannot be changed."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from agenteval.core.reasoning import agent_text, final_answer
from agenteval.core.trajectory import Message, ToolCall, Turn
from agenteval.messages import chat


@dataclass(frozen=True)
class ToolCallRecord:
    """A tool call."""

    name: str
    """The name of the tool."""
    args: dict[str, Any] | None
    """The arguments, or ``None`` if they were not a JSON object."""
    result: Any
    """The value that the tool returned (``{"error": …}`` for an error), or ``None`` if there is no result."""
    agent: str = ""
    """The agent that made the call, if there are several agents. Empty if the agent is not named."""


@dataclass(frozen=True)
class ConversationTurn:
    """A turn in the conversation."""

    user: str
    """The user's message."""
    answer: str
    """The agent's final text, excluding its reasoning."""
    text: str
    """Everything that the agent wrote in this turn. The text that accompanies its tool calls comes first."""
    tool_calls: tuple[ToolCallRecord, ...]
    """The calls in this turn, in order."""
    agents: tuple[str, ...] = ()
    """The names of the agents that spoke, in order, if there are several agents. Empty if no agent is
    named."""


@dataclass(frozen=True)
class Conversation:
    """A conversation up to and including the turn that is checked."""

    scenario: str
    """The scenario's id."""
    turns: tuple[ConversationTurn, ...]
    """The turns up to and including the turn that is checked, or all turns if the whole conversation is
    checked."""
    messages: tuple[Message, ...]
    """The same conversation as OpenAI messages."""
    observed: bool = True
    """True if the agent's calls were visible. If false, empty ``tool_calls`` prove nothing."""

    @property
    def answer(self) -> str:
        """The final text of the last turn, or an empty string if there are no turns."""
        return self.turns[-1].answer if self.turns else ""

    @property
    def text(self) -> str:
        """Everything that the agent wrote."""
        return "\n\n".join(turn.text for turn in self.turns if turn.text)

    @property
    def tool_calls(self) -> tuple[ToolCallRecord, ...]:
        """The calls in all turns, in order."""
        return tuple(call for turn in self.turns for call in turn.tool_calls)


def build_conversation(scenario: str, turns: Sequence[Turn], *, observed: bool) -> Conversation:
    messages = tuple(deepcopy(chat.to_chat_messages(turns)))
    return Conversation(scenario, tuple(map(_turn, turns)), messages, observed)


def _turn(turn: Turn) -> ConversationTurn:
    calls = tuple(map(build_call_record, turn.tool_calls))
    agents = turn.spoken if any(turn.spoken) else ()
    return ConversationTurn(turn.user, final_answer(turn), agent_text(turn), calls, agents)


def build_call_record(call: ToolCall) -> ToolCallRecord:
    result = deepcopy(call.result.value) if call.result else None
    return ToolCallRecord(call.name, deepcopy(call.args), result, call.agent)
