"""Recorded conversations as the benchmarks of the detectors see them: turns and calls with their places.

This reading is independent of the one under test. It knows only the shape that is written in the
documentation: OpenAI chat messages, one conversation a line.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

Message: TypeAlias = dict[str, Any]
Conversation: TypeAlias = dict[str, Any]

DATA = Path(__file__).resolve().parents[1] / ".." / "shared" / "data"
FILES = {
    "tau_airline": "tau_airline.jsonl.gz",
    "tau2_runs": "tau2_runs.jsonl.gz",
    "tooltalk": "tooltalk.jsonl.gz",
}


class MissingDataError(Exception):
    """The conversations are not where they are expected."""


class Turn(NamedTuple):
    """``user_at`` and ``answer_at`` are places in the list of messages; ``answer_at`` is ``None`` where the
    turn has no final text."""

    number: int
    user_at: int
    answer_at: int | None


class Call(NamedTuple):
    """``index`` counts over the conversation; ``at`` is the message and ``slot`` the place in it."""

    turn: int
    index: int
    at: int
    slot: int
    name: str
    raw: Any
    args: dict[str, Any] | None
    result_at: int | None
    result: str


class Recorded(NamedTuple):
    """One conversation, taken apart. ``marks``: tool -> reads, writes or destructive."""

    id: str
    messages: list[Message]
    tools: list[dict[str, Any]]
    marks: Mapping[str, str]
    turns: tuple[Turn, ...]
    calls: tuple[Call, ...]

    @property
    def policy(self) -> str:
        return "\n".join(text_of(m) for m in self.messages if m["role"] == "system")

    def user(self, turn: Turn) -> str:
        return text_of(self.messages[turn.user_at])

    def answer(self, turn: Turn) -> str:
        """The final text of a turn, empty if there is none."""
        return "" if turn.answer_at is None else text_of(self.messages[turn.answer_at])

    def answered(self) -> list[Turn]:
        """The turns with a final text."""
        return [turn for turn in self.turns if self.answer(turn).strip()]

    def calls_in(self, turn: Turn) -> list[Call]:
        return [call for call in self.calls if call.turn == turn.number]

    def copy(self) -> list[Message]:
        """The messages, to be changed."""
        return deepcopy(self.messages)


def load(path: Path) -> list[Conversation]:
    """The conversations of a file in JSON Lines, gzip or not. Raises ``MissingDataError``."""
    if not path.is_file():
        raise MissingDataError(f"{path} is not there; give files of recorded conversations with --data FILE")
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def load_sets(files: Sequence[Path] = ()) -> dict[str, list[Conversation]]:
    """The named sets, or those of ``files``. Raises ``MissingDataError``."""
    chosen = {path.name.split(".")[0]: path for path in files} or {n: DATA / f for n, f in FILES.items()}
    return {name: load(path) for name, path in chosen.items()}


def text_of(message: Message) -> str:
    content = message.get("content")
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) if isinstance(part, dict) else str(part) for part in content)
    return content or ""


def take_apart(conversation: Conversation, marks: Mapping[str, str] | None = None) -> Recorded:
    """The structure of a conversation. Its messages are not copied."""
    messages = conversation["messages"]
    calls, turns = tuple(calls_of(messages)), tuple(turns_of(messages))
    tools = conversation.get("tools") or []
    return Recorded(str(conversation["id"]), messages, tools, marks or {}, turns, calls)


def is_regular(conversation: Conversation) -> bool:
    """Whether turns and calls can be counted in one way only: a user begins, no two user messages follow
    each other, and each call has its result right behind it."""
    roles = [m["role"] for m in conversation["messages"] if m["role"] != "system"]
    doubled = any(a == b == "user" for a, b in pairwise(roles))
    paired = all(call.result_at is not None for call in calls_of(conversation["messages"]))
    return bool(roles) and roles[0] == "user" and not doubled and paired


def turns_of(messages: Sequence[Message]) -> Iterator[Turn]:
    starts = [at for at, message in enumerate(messages) if message["role"] == "user"]
    for number, start in enumerate(starts):
        end = starts[number + 1] if number + 1 < len(starts) else len(messages)
        said = [at for at in range(start + 1, end) if messages[at]["role"] == "assistant"]
        final = said[-1] if said and text_of(messages[said[-1]]).strip() else None
        yield Turn(number, start, None if final is not None and messages[final].get("tool_calls") else final)


def calls_of(messages: Sequence[Message]) -> Iterator[Call]:
    """Every call with its result, paired by position: ids are used again in real logs."""
    turn, index = -1, 0
    for at, message in enumerate(messages):
        turn += message["role"] == "user"
        for slot, raw in enumerate(message.get("tool_calls") or ()):
            function = raw["function"]
            result_at = _result_at(messages, at, slot)
            result = "" if result_at is None else text_of(messages[result_at])
            args = _read(function["arguments"])
            yield Call(
                turn, index, at, slot, function["name"], function["arguments"], args, result_at, result
            )
            index += 1


def _result_at(messages: Sequence[Message], at: int, slot: int) -> int | None:
    place = at + 1 + slot
    between = messages[at + 1 : place + 1]
    return place if len(between) == slot + 1 and all(m["role"] == "tool" for m in between) else None


def _read(arguments: Any) -> dict[str, Any] | None:
    if isinstance(arguments, dict):
        return arguments
    try:
        value = json.loads(arguments)
    except (TypeError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def parameters_of(tools: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """The JSON Schema of each declared tool."""
    return {tool["function"]["name"]: tool["function"].get("parameters") or {} for tool in tools}


def induced_tools(conversations: Iterable[Conversation]) -> list[dict[str, Any]]:
    """Declarations for a set that has none, from all its calls: the keys that every call has are
    required, no other key is allowed, and a few short words that come again and again are an enum."""
    seen: dict[str, list[dict[str, Any]]] = {}
    for conversation in conversations:
        for call in calls_of(conversation["messages"]):
            seen.setdefault(call.name, []).append(call.args or {})
    return [_declaration(name, calls) for name, calls in sorted(seen.items())]


def _declaration(name: str, calls: Sequence[dict[str, Any]]) -> dict[str, Any]:
    keys = Counter(key for args in calls for key in args)
    properties = {key: _property([args[key] for args in calls if key in args]) for key in sorted(keys)}
    parameters = {
        "type": "object",
        "properties": properties,
        "required": [key for key in sorted(keys) if keys[key] == len(calls)],
        "additionalProperties": False,
    }
    return {"type": "function", "function": {"name": name, "description": name, "parameters": parameters}}


_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}


def _property(values: Sequence[Any]) -> dict[str, Any]:
    types = sorted({_TYPES.get(type(value), "null") for value in values})
    schema: dict[str, Any] = {"type": types[0] if len(types) == 1 else types}
    words = {value for value in values if isinstance(value, str)}
    if len(values) >= 5 and len(words) <= 3 and all(word.isalpha() for word in words) and words:
        schema["enum"] = sorted(words)
    if types == ["array"] and all(isinstance(item, str) for value in values for item in value):
        schema["items"] = {"type": "string"}
    return schema
