"""Conversations written down by hand, one line after another."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from recorded import Conversation, Message


def tool(name: str, description: str, **properties: str) -> dict[str, Any]:
    """A declaration. A property is its type; those that end with ``?`` may be left out."""
    schema = {key: {"type": kind.rstrip("?")} for key, kind in properties.items()}
    required = [key for key, kind in properties.items() if not kind.endswith("?")]
    parameters = {"type": "object", "properties": schema, "required": required}
    return {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": parameters},
    }


class Talk:
    """A conversation that grows: ``user``, ``call`` and ``agent`` add to it. Messages alone matter."""

    def __init__(self, tools: list[dict[str, Any]], marks: Mapping[str, str], policy: str = "") -> None:
        self._tools, self._marks = tools, dict(marks)
        self._messages: list[Message] = [{"role": "system", "content": policy}] if policy else []
        self._calls = 0

    def user(self, text: str) -> Talk:
        self._messages.append({"role": "user", "content": text})
        return self

    def agent(self, text: str) -> Talk:
        self._messages.append({"role": "assistant", "content": text})
        return self

    def call(self, name: str, result: Any, **arguments: Any) -> Talk:
        """A step with one call; ``result`` is a text or any JSON value."""
        return self.calls((name, result, arguments))

    def calls(self, *made: tuple[str, Any, dict[str, Any]]) -> Talk:
        """A step with calls made at the same time: name, result, arguments."""
        idents = [f"call_{self._calls + number}" for number in range(len(made))]
        self._calls += len(made)
        entries = [
            {"id": ident, "type": "function", "function": {"name": name, "arguments": _json(arguments)}}
            for ident, (name, _, arguments) in zip(idents, made, strict=True)
        ]
        self._messages.append({"role": "assistant", "content": None, "tool_calls": entries})
        for ident, (_, result, _) in zip(idents, made, strict=True):
            text = result if isinstance(result, str) else _json(result)
            self._messages.append({"role": "tool", "tool_call_id": ident, "content": text})
        return self

    def done(self, ident: str) -> Conversation:
        return {
            "id": ident,
            "messages": self._messages,
            "tools": self._tools,
            "tool_marks": self._marks,
        }


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
