"""A conversation as an author's check in Python gets it: copies, so that the record stays unchanged."""

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
    """The arguments; ``None`` if they were not a JSON object."""
    result: Any
    """The value that the tool returned (an error: ``{"error": …}``); ``None`` if there is none."""
    agent: str = ""
    """The agent that made the call, if there are several; empty if it is not named."""


@dataclass(frozen=True)
class ConversationTurn:
    """A turn."""

    user: str
    """The user's message."""
    answer: str
    """The agent's final text, without its reasoning."""
    text: str
    """All text of the agent in this turn; the text beside its tool calls comes first."""
    tool_calls: tuple[ToolCallRecord, ...]
    """The calls in this turn, in order."""
    agents: tuple[str, ...] = ()
    """The names of the agents that spoke, in order, if there are several; empty if none is named."""


@dataclass(frozen=True)
class Conversation:
    """A conversation up to the turn that is checked."""

    scenario: str
    """The scenario's id."""
    turns: tuple[ConversationTurn, ...]
    """The turns up to the one that is checked, which is the last; all turns if the whole conversation is
    checked."""
    messages: tuple[Message, ...]
    """The same conversation as OpenAI messages."""
    observed: bool = True
    """True if the agent's calls could be seen; if not, empty ``tool_calls`` prove nothing."""

    @property
    def answer(self) -> str:
        """The last final text; empty if there is none."""
        return self.turns[-1].answer if self.turns else ""

    @property
    def text(self) -> str:
        """All text of the agent."""
        return "\n\n".join(turn.text for turn in self.turns if turn.text)

    @property
    def tool_calls(self) -> tuple[ToolCallRecord, ...]:
        """The calls of all turns, in order."""
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
