"""A conversation as an author's check in Python sees it: copies, so that the record stays as it was."""

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
    """Of the tool."""
    args: dict[str, Any] | None
    """``None`` if they were no JSON object."""
    result: Any
    """The value that the tool gave (an error: ``{"error": …}``); ``None`` if there is none."""
    agent: str = ""
    """Which of several agents made it; empty if nobody says."""


@dataclass(frozen=True)
class ConversationTurn:
    """One turn."""

    user: str
    """The user's message."""
    answer: str
    """The agent's final text, without what the model thought."""
    text: str
    """All that the agent said in it, what stood beside its tool calls first."""
    tool_calls: tuple[ToolCallRecord, ...]
    """The calls in it, in order."""
    agents: tuple[str, ...] = ()
    """Who of several agents spoke, in order, each by its name; empty if nobody says."""


@dataclass(frozen=True)
class Conversation:
    """A conversation up to the turn that is checked."""

    scenario: str
    """The scenario's id."""
    turns: tuple[ConversationTurn, ...]
    """The turns up to the one that is checked, which is the last; of a whole conversation, all."""
    messages: tuple[Message, ...]
    """The same as OpenAI's messages."""
    observed: bool = True
    """Whether the agent's calls could be seen; where not, that there are no ``tool_calls`` says nothing."""

    @property
    def answer(self) -> str:
        """The last final text; empty if there is none."""
        return self.turns[-1].answer if self.turns else ""

    @property
    def text(self) -> str:
        """All that the agent said."""
        return "\n\n".join(turn.text for turn in self.turns if turn.text)

    @property
    def tool_calls(self) -> tuple[ToolCallRecord, ...]:
        """Those of all turns, in order."""
        return tuple(call for turn in self.turns for call in turn.tool_calls)


def conversation_of(scenario: str, turns: Sequence[Turn], *, observed: bool) -> Conversation:
    messages = tuple(deepcopy(chat.to_chat_messages(turns)))
    return Conversation(scenario, tuple(map(_turn, turns)), messages, observed)


def _turn(turn: Turn) -> ConversationTurn:
    calls = tuple(map(call_record, turn.tool_calls))
    agents = turn.spoken if any(turn.spoken) else ()
    return ConversationTurn(turn.user, final_answer(turn), agent_text(turn), calls, agents)


def call_record(made: ToolCall) -> ToolCallRecord:
    result = deepcopy(made.result.value) if made.result else None
    return ToolCallRecord(made.name, deepcopy(made.args), result, made.agent)
