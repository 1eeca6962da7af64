"""The wire format: OpenAI's chat messages, as plain dicts. Whatever a framework's own messages look like, an
adapter writes them with a ``Transcript``, and nobody else knows which keys there are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from .world import ToolAnswer

if TYPE_CHECKING:
    from collections.abc import Iterable

    Message = dict[str, Any]


class ToolCall(NamedTuple):
    """A call that the model made."""

    id: Any
    """What the framework knows it by."""
    name: str
    arguments: Any
    """A text is taken for the JSON that the model wrote; all else becomes JSON."""

    def to_openai(self) -> Message:
        function = {"name": self.name, "arguments": ToolAnswer(self.arguments).text}
        return {"id": self.id, "type": "function", "function": function}


class Transcript:
    """The messages of a turn, in the order in which they are added."""

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        """``messages``: those of the turn that have this format already."""
        self._messages: list[Message] = [*messages]

    def answer(
        self, text: str | None, calls: Iterable[ToolCall] = (), *, agent: str | None = None, **more: Any
    ) -> None:
        """Add what an agent says, calls, or both. ``more``: other fields of the message; those that are
        ``None`` are left out."""
        fields = {"agent": agent or None, **more}
        known = {key: value for key, value in fields.items() if value is not None}
        message: Message = {"role": "assistant", "content": text, **known}
        self._messages.append(message)
        _add_calls(message, calls)

    def more_calls(self, calls: Iterable[ToolCall], *, agent: str | None = None) -> None:
        """Add calls to the last message, if this agent said it; else as an answer without words."""
        last = self._messages[-1] if self._messages else {}
        if last.get("role") == "assistant" and last.get("agent") == (agent or None):
            _add_calls(last, calls)
        else:
            self.answer(None, calls, agent=agent)

    def result(self, call_id: Any, value: Any, *, error: bool = False, name: str | None = None) -> None:
        """Add what a call gave: a text as it is, all else as JSON. ``error``: it failed, or was refused
        before its tool ran."""
        message: Message = {"role": "tool", "tool_call_id": call_id, "content": ToolAnswer(value).text}
        if name:
            message["name"] = name
        self._messages.append(mark_as_error(message) if error else message)

    def end_with(self, text: str, *, agent: str | None = None) -> None:
        """Make ``text`` the turn's answer: in place of the last one, or, if the last message is none, as one
        more of this agent."""
        if self.ends_in_answer:
            self._messages[-1]["content"] = text
        else:
            self.answer(text, agent=agent)

    @property
    def ends_in_answer(self) -> bool:
        """Whether the last message is what an agent says, and calls nothing."""
        last = self._messages[-1] if self._messages else {}
        return last.get("role") == "assistant" and not last.get("tool_calls")

    def to_openai(self) -> list[Message]:
        return list(self._messages)


def mark_as_error(result: Message) -> Message:
    """Return the result of a call as one that failed."""
    return {**result, "status": "error"}


def _add_calls(message: Message, calls: Iterable[ToolCall]) -> None:
    encoded = [call.to_openai() for call in calls]
    if encoded:
        message["tool_calls"] = [*message.get("tool_calls", ()), *encoded]
