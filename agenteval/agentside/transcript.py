"""The wire format: OpenAI's chat messages, as plain dicts.

Adapters write the messages of their frameworks with a ``Transcript``, so that only this module knows the
keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from .world import ToolAnswer

if TYPE_CHECKING:
    from collections.abc import Iterable

    Message = dict[str, Any]


class ToolCall(NamedTuple):
    """A call that the model made."""

    id: Any
    """The framework's id for the call."""
    name: str
    arguments: Any
    """The arguments: a string is taken for JSON that the model wrote; anything else is encoded as JSON."""

    def to_openai(self) -> Message:
        function = {"name": self.name, "arguments": ToolAnswer(self.arguments).text}
        return {"id": self.id, "type": "function", "function": function}


class Transcript:
    """The messages of a turn, in the order in which they are added."""

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        """Start with ``messages`` of the turn that are already in this format."""
        self._messages: list[Message] = [*messages]

    def answer(
        self, text: str | None, calls: Iterable[ToolCall] = (), *, agent: str | None = None, **more: Any
    ) -> None:
        """Add an agent's text, its calls, or both. ``more`` holds other fields of the message; ``None``
        values are left out."""
        fields = {"agent": agent or None, **more}
        known = {key: value for key, value in fields.items() if value is not None}
        message: Message = {"role": "assistant", "content": text, **known}
        self._messages.append(message)
        _add_calls(message, calls)

    def more_calls(self, calls: Iterable[ToolCall], *, agent: str | None = None) -> None:
        """Add calls to the last message if it is this agent's; otherwise add a message without text."""
        last = self._messages[-1] if self._messages else {}
        if last.get("role") == "assistant" and last.get("agent") == (agent or None):
            _add_calls(last, calls)
        else:
            self.answer(None, calls, agent=agent)

    def result(self, call_id: Any, value: Any, *, error: bool = False, name: str | None = None) -> None:
        """Add the result of a call: a string unchanged, anything else as JSON. ``error``: the call failed, or
        was refused before its tool ran."""
        message: Message = {"role": "tool", "tool_call_id": call_id, "content": ToolAnswer(value).text}
        if name:
            message["name"] = name
        self._messages.append(mark_as_error(message) if error else message)

    def end_with(self, text: str, *, agent: str | None = None) -> None:
        """Make ``text`` the turn's answer. It replaces the last message if that is an answer; otherwise it is
        added as this agent's message."""
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
