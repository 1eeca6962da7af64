"""What an agent returns, as one line of plain JSON."""

from __future__ import annotations

import json
from collections import UserList, namedtuple
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest

from agenteval.agentside.targets.serialization import to_plain_json, to_reply_line


class Role(Enum):
    USER = "user"


class Level(IntEnum):
    HIGH = 3


class Letters(str):
    def __str__(self) -> str:
        return "abc"


class Model:
    def __init__(self, **fields: Any) -> None:
        self._fields = fields

    def model_dump(self, *, exclude_none: bool = False) -> Any:
        return {name: value for name, value in self._fields.items() if not (exclude_none and value is None)}


class Bits(Sequence[int]):
    def __len__(self) -> int:
        return 2

    def __getitem__(self, at: Any) -> Any:
        return (1, 0)[at]


@dataclass
class Message:
    role: Role
    content: str | None = None
    parts: list[Any] = field(default_factory=list)
    _kept: int = 5


class Computed:
    """Like messages whose text and kind are computed."""

    def __init__(self) -> None:
        self.extra = 1
        self._kept = 2
        self.nothing = None

    role = property(lambda _: "assistant")
    type = property(lambda _: "ai")
    content = property(lambda _: "Hi")
    tool_calls = property(lambda _: [])
    tool_call_id = property(lambda _: "c1")
    name = property(lambda _: "bot")
    parts = property(lambda _: ("p",))
    other = property(lambda _: "not read")


class Slots:
    __slots__ = ("content",)

    def __init__(self) -> None:
        self.content = "Hi"


Pair = namedtuple("Pair", ["a", "b"])

READS: dict[str, tuple[Any, Any]] = {
    "nothing": (None, None),
    "true": (True, True),
    "a number": (0, 0),
    "a fraction": (0.5, 0.5),
    "infinite": (float("inf"), "inf"),
    "no number": (float("nan"), "nan"),
    "text": ("é", "é"),
    "a text of its own class": (Letters("x"), "abc"),
    "an enum": (Role.USER, "user"),
    "an enum that is a number": (Level.HIGH, 3),
    "a mapping": (MappingProxyType({"a": {"b": (1,)}}), {"a": {"b": [1]}}),
    "keys": ({1: 1, Role.USER: 2, None: 3}, {"1": 1, "user": 2, "None": 3}),
    "a list": ([1, [Role.USER]], [1, ["user"]]),
    "a tuple": ((1, 2), [1, 2]),
    "a named tuple": (Pair(1, 2), [1, 2]),
    "a set": ({1}, [1]),
    "a frozen set": (frozenset({1}), [1]),
    "a sequence of another class": (UserList([1, Role.USER]), [1, "user"]),
    "one's own sequence": (Bits(), [1, 0]),
    "a model, without its nulls": (Model(a=1, b=None, c=Role.USER), {"a": 1, "c": "user"}),
    "fields": (Message(Role.USER, "Hi"), {"role": "user", "content": "Hi", "parts": []}),
    "fields without nulls": (Message(Role.USER), {"role": "user", "parts": []}),
    "attributes": (SimpleNamespace(a=1, b=None, _c=2), {"a": 1}),
    "attributes, then what messages compute": (
        Computed(),
        {
            "extra": 1,
            "role": "assistant",
            "type": "ai",
            "content": "Hi",
            "tool_calls": [],
            "tool_call_id": "c1",
            "name": "bot",
            "parts": ["p"],
        },
    ),
    "one without a dictionary": (Slots(), {"content": "Hi"}),
}


@pytest.mark.parametrize(("value", "read"), READS.values(), ids=READS)
def test_a_value_as_plain_json(value: Any, read: Any) -> None:
    found = to_plain_json(value)
    assert found == read
    assert type(found) is type(read)
    assert json.loads(json.dumps(found)) == read


@pytest.mark.parametrize(
    ("value", "name"),
    [(object(), "object"), (Message, "type"), (b"ab", "bytes"), (bytearray(b"a"), "bytearray")],
)
def test_what_is_not_json_is_named_by_its_class(value: Any, name: str) -> None:
    found = to_plain_json([value])
    assert isinstance(found[0], str)
    assert found[0].split()[0] == name


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


WRAPPED: dict[str, Any] = {
    "list": lambda value: [value],
    "mapping": lambda value: {"a": value},
    "model": lambda value: Model(a=value),
    "fields": lambda value: SimpleNamespace(a=value),
}


@pytest.mark.parametrize("wrap", WRAPPED.values(), ids=WRAPPED)
def test_what_is_too_deep_is_refused(wrap: Any) -> None:
    value: Any = 1
    for _ in range(101):
        value = wrap(value)
    with pytest.raises(ValueError):
        to_plain_json(value)


def test_the_depth_that_is_read() -> None:
    assert to_plain_json(nested(100)) == nested(100)
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(ValueError):
        to_plain_json(endless)


def test_exceptions_of_the_objects_are_raised() -> None:
    class Broken:
        def model_dump(self, **_: Any) -> Any:
            raise LookupError("not yet")

    with pytest.raises(LookupError):
        to_plain_json([Broken()])


# ── an answer ────────────────────────────────────────────────────────────────────────────────────


class AgentReply:
    """Of another agenteval than that of this process."""

    def __init__(self, **fields: Any) -> None:
        self.tool_calls: Any = []
        vars(self).update(fields)


LINES: dict[str, tuple[Any, dict[str, Any]]] = {
    "nothing": (None, {"value": None}),
    "text": ("Hi", {"value": "Hi"}),
    "no text": ("", {"value": ""}),
    "a message": ({"role": Role.USER}, {"value": {"role": "user"}}),
    "messages": ([{"a": 1}, Message(Role.USER)], {"value": [{"a": 1}, {"role": "user", "parts": []}]}),
    "a tuple of messages": (({"a": 1},), {"value": [{"a": 1}]}),
    "another sequence": (UserList([1]), {"value": [1]}),
    "a model": (Model(a=1), {"value": {"a": 1}}),
    "a number": (5, {"returned": "int"}),
    "a truth": (True, {"returned": "bool"}),
    "a set": ({1}, {"returned": "set"}),
    "bytes": (b"Hi", {"returned": "bytes"}),
    "a byte array": (bytearray(b"Hi"), {"returned": "bytearray"}),
    "an object": (SimpleNamespace(a=1), {"returned": "SimpleNamespace"}),
    "a reply": (
        AgentReply(text="Hi", usage=SimpleNamespace(tokens=5), latency_ms=1.5, agent="desk", more=1),
        {
            "agent_reply": {
                "text": "Hi",
                "tool_calls": [],
                "messages": None,
                "usage": {"tokens": 5},
                "latency_ms": 1.5,
                "agent": "desk",
            }
        },
    ),
    "a reply with calls and messages": (
        AgentReply(tool_calls=[{"name": "a"}], messages=({"role": "assistant"},)),
        {
            "agent_reply": {
                "text": None,
                "tool_calls": [{"name": "a"}],
                "messages": [{"role": "assistant"}],
                "usage": None,
                "latency_ms": None,
                "agent": None,
            }
        },
    ),
}


@pytest.mark.parametrize(("value", "line"), LINES.values(), ids=LINES)
def test_an_answer_is_one_line(value: Any, line: dict[str, Any]) -> None:
    assert to_reply_line(value) == line


def test_a_class_of_that_name_without_calls_is_no_reply() -> None:
    other: Any = type("AgentReply", (), {})()
    assert to_reply_line(other) == {"returned": "AgentReply"}
