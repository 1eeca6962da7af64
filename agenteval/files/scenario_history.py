"""Reads ``history`` of a scenario: the messages in OpenAI's format that were exchanged before the
conversation begins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from agenteval.core.errors import AgentError, Problem, did_you_mean
from agenteval.core.trajectory import Step, ToolCall, ToolResult, Turn
from agenteval.files.value_parts import Loc
from agenteval.files.yaml_scalars import display_value
from agenteval.files.yaml_source import Mark
from agenteval.messages import chat

_KEYS: Mapping[str, tuple[str, ...]] = {
    "user": ("role", "content", "name"),
    "assistant": ("role", "content", "name", "tool_calls"),
    "tool": ("role", "content", "name", "tool_call_id", "status"),
}
"""The keys that messages may have, by role."""


class ParsedHistory(NamedTuple):
    """The turns of a history, which are of no use if there are problems."""

    turns: tuple[Turn, ...]
    problems: tuple[Problem, ...]


def parse_history(messages: Any, mark: Mark) -> ParsedHistory:
    """Parse the messages that ``mark`` locates. They must begin with a user message and end with an answer of
    the agent, and each call must have its result."""
    if not isinstance(messages, list | tuple):
        return ParsedHistory((), ())  # reported by the validation of the scenario
    reader = _HistoryReader(mark)
    for index, message in enumerate(messages):
        reader.read(index, message)
        if reader.problems:
            break  # what follows depends on this message
    if not reader.problems:
        reader.end(len(messages) - 1)
    return ParsedHistory(tuple(turn.to_turn() for turn in reader.turns), tuple(reader.problems))


class _EarlierTurn:
    def __init__(self, user: str) -> None:
        self.user = user
        self.steps: list[Step] = []

    def to_turn(self) -> Turn:
        return Turn(user=self.user, steps=tuple(self.steps))


class _HistoryReader:
    """Reads one message after another. After a problem, the remaining messages must not be read."""

    def __init__(self, mark: Mark) -> None:
        self.turns: list[_EarlierTurn] = []
        self.problems: list[Problem] = []
        self._mark = mark

    def read(self, index: int, message: Any) -> None:
        if not isinstance(message, Mapping):
            remedy = "use {role: user, content: …}"
            self._refuse(f"expected a message, got {display_value(message)}", remedy, index)
            return
        role = message.get("role")
        if role in ("system", "developer"):
            what = f"a message with the role '{role}' is the agent's own; the history is what was said"
            remedy = "remove it; if judges need the agent's instructions, set `policy` of the agent"
            self._refuse(what, remedy, index, "role")
        elif not isinstance(role, str) or role not in _KEYS:
            shown = display_value(role) if "role" in message else "missing"
            self._refuse(f"`role` is {shown}", did_you_mean(str(role), _KEYS), index, "role")
        elif unknown := [key for key in message if key not in _KEYS[role] and message[key] not in (None, [])]:
            remedy = did_you_mean(str(unknown[0]), _KEYS[role])
            self._refuse(f"unknown key '{unknown[0]}' of a {role} message", remedy, index, unknown[0])
        elif role == "user":
            self._user(index, message)
        elif not self.turns:
            self._refuse(
                "the history must begin with a user message", "add it before this one", index, "role"
            )
        elif role == "assistant":
            self._assistant(index, message)
        else:
            self._tool(index, message)

    def end(self, last: int) -> None:
        """Check that the last message is the agent's final answer."""
        if self.turns and not self._has_open_call(last) and not self._is_answered:
            what = "the history must end with an answer of the agent"
            self._refuse(what, "move the last user message to `turns`, or add the answer", last)

    @property
    def _is_answered(self) -> bool:
        steps = self.turns[-1].steps
        return bool(steps) and not steps[-1].tool_calls

    @property
    def _open_calls(self) -> list[tuple[int, ToolCall]]:
        steps = self.turns[-1].steps if self.turns else []
        return (
            [(at, call) for at, call in enumerate(steps[-1].tool_calls) if call.result is None]
            if steps
            else []
        )

    def _has_open_call(self, index: int) -> bool:
        """Check whether a call has no result yet, and report it at the message ``index``."""
        for _, call in self._open_calls:
            named = f" ({call.id})" if call.id else ""
            what = f"the call of '{call.name}'{named} has no result"
            self._refuse(what, "add {role: tool, tool_call_id: …, content: …} after it", index)
            return True
        return False

    def _user(self, index: int, message: Mapping[str, Any]) -> None:
        text = self._text(index, message)
        if text is None or self._has_open_call(index):
            return
        if self.turns and not self._is_answered:
            what = "the user message before this one has no answer"
            self._refuse(what, "add the agent's answer, or make them one message", index)
        elif not text.strip():
            self._refuse("the message is empty", "set `content`", index, "content")
        else:
            self.turns.append(_EarlierTurn(text))

    def _assistant(self, index: int, message: Mapping[str, Any]) -> None:
        text = self._text(index, message)
        calls = self._calls(index, message.get("tool_calls"))
        if text is None or calls is None or self._has_open_call(index):
            return
        if not calls and not text.strip():
            self._refuse("the message has neither `content` nor `tool_calls`", "set one of them", index)
        elif self._is_answered:
            what = "the agent has already answered the last user message"
            self._refuse(what, "make them one message, or add the user message between them", index)
        else:
            self.turns[-1].steps.append(
                Step(text=text or None, tool_calls=calls, agent=str(message.get("name") or ""))
            )

    def _calls(self, index: int, raw: Any) -> tuple[ToolCall, ...] | None:
        """Return the calls of a message, or ``None`` if they cannot be read."""
        if raw is None:
            return ()
        if not isinstance(raw, list | tuple):
            self._refuse(f"expected a list of calls, got {display_value(raw)}", _CALL, index, "tool_calls")
            return None
        calls: list[ToolCall] = []
        for at, each in enumerate(raw):
            try:
                call = chat.read_tool_call(each)
            except AgentError as error:
                self._refuse(str(error), _CALL, index, "tool_calls", at)
                return None
            if call.args is None:
                what = f"the arguments of '{call.name}' are no JSON object"
                self._refuse(what, _CALL, index, "tool_calls", at)
                return None
            if call.extra:
                what = f"unknown key '{next(iter(call.extra))}' of a call"
                self._refuse(what, _CALL, index, "tool_calls", at, next(iter(call.extra)))
                return None
            calls.append(call)
        return tuple(calls)

    def _tool(self, index: int, message: Mapping[str, Any]) -> None:
        called = str(message.get("tool_call_id") or "")
        at, waiting = next(
            ((at, call) for at, call in self._open_calls if not called or call.id in ("", called)),
            (0, None),
        )
        if waiting is None:
            named = f" with the id '{called}'" if called else ""
            open_ids = [call.id for _, call in self._open_calls if call.id]
            remedy = did_you_mean(called, open_ids) if open_ids else "add the agent's call before it"
            key = "tool_call_id" if called else "role"
            self._refuse(f"no call{named} waits for this result", remedy, index, key)
            return
        if "content" not in message:
            self._refuse("the result has no `content`", "set it; '' is an empty result", index)
            return
        is_error = message.get("status") == "error"
        result = ToolResult(value=chat.parse_tool_result(message["content"]), is_error=is_error)
        steps = self.turns[-1].steps
        calls = list(steps[-1].tool_calls)
        calls[at] = calls[at].model_copy(update={"result": result})
        steps[-1] = steps[-1].model_copy(update={"tool_calls": tuple(calls)})

    def _text(self, index: int, message: Mapping[str, Any]) -> str | None:
        """Return the text of a message, or ``None`` if it cannot be read."""
        content = message.get("content")
        if isinstance(content, bool | int | float):
            return self._mark.find((index, "content")).text or display_value(content)
        try:
            return chat.text_of(content) or ""
        except AgentError as error:
            self._refuse(str(error), "set `content` to a string", index, "content")
            return None

    def _refuse(self, what: str, remedy: str, *path: str | int) -> None:
        loc: Loc = path
        self.problems.append(Problem(f"`history`: {what}", remedy, self._mark.find(loc).place))


_CALL = "use {id: …, type: function, function: {name: …, arguments: '{…}'}} or {name: …, args: {…}}"
