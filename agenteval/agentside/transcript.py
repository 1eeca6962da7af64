"""The wire format, which consists of OpenAI chat messages as plain dicts.

Adapters write the messages of their frameworks with a ``Transcript``, so that only this module contains the
keys of the format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from .world import ToolAnswer

if TYPE_CHECKING:
    from collections.abc import Iterable

    Message = dict[str, Any]


class ToolCall(NamedTuple):
    """A tool call made by the model."""

    id: Any
    """The framework's id for the call."""
    name: str
    arguments: Any
    """The arguments. A string is treated as JSON written by the model. Any other value is encoded as JSON."""

    def to_openai(self) -> Message:
        function = {"name": self.name, "arguments": ToolAnswer(self.arguments).text}
        return {"id": self.id, "type": "function", "function": function}


class Transcript:
    """The messages in a turn, in the order in which they are added."""

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        """Start with ``messages``, the turn's messages that are already in this format."""
        self._messages: list[Message] = [*messages]

    def answer(
        self, text: str | None, calls: Iterable[ToolCall] = (), *, agent: str | None = None, **more: Any
    ) -> None:
        """Add an agent's text, its calls, or both. ``more`` contains additional fields of the message. Fields
        with the value ``None`` are omitted."""
        fields = {"agent": agent or None, **more}
        known = {key: value for key, value in fields.items() if value is not None}
        message: Message = {"role": "assistant", "content": text, **known}
        self._messages.append(message)
        _add_calls(message, calls)

    def more_calls(self, calls: Iterable[ToolCall], *, agent: str | None = None) -> None:
        """Add calls to the last message if that message is from the same agent. Otherwise, add a message
        without text."""
        last = self._messages[-1] if self._messages else {}
        if last.get("role") == "assistant" and last.get("agent") == (agent or None):
            _add_calls(last, calls)
        else:
            self.answer(None, calls, agent=agent)

    def result(self, call_id: Any, value: Any, *, error: bool = False, name: str | None = None) -> None:
        """Add the result of a call. A string remains unchanged, and any other value is encoded as JSON.
        ``error`` is True if the call failed, or if it was refused before its tool ran."""
        message: Message = {"role": "tool", "tool_call_id": call_id, "content": ToolAnswer(value).text}
        if name:
            message["name"] = name
        self._messages.append(mark_as_error(message) if error else message)

    def end_with(self, text: str, *, agent: str | None = None) -> None:
        """Make ``text`` the turn's answer. The text replaces the last message if that message is an answer.
        Otherwise, the text is added as this agent's message."""
        if self.ends_in_answer:
            self._messages[-1]["content"] = text
        else:
            self.answer(text, agent=agent)

    @property
    def ends_in_answer(self) -> bool:
        """True if the last message is an agent's text without calls."""
        last = self._messages[-1] if self._messages else {}
        return last.get("role") == "assistant" and not last.get("tool_calls")

    def to_openai(self) -> list[Message]:
        return list(self._messages)


def mark_as_error(result: Message) -> Message:
    """Return the result of a call, marked as an error."""
    return {**result, "status": "error"}


def _add_calls(message: Message, calls: Iterable[ToolCall]) -> None:
    encoded = [call.to_openai() for call in calls]
    if encoded:
        message["tool_calls"] = [*message.get("tool_calls", ()), *encoded]
