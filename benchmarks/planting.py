"""What planting a fault needs: where calls are, how a step with a call looks, what was planted."""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any, NamedTuple, TypeAlias

from recorded import Call, Message, Recorded


class Planted(NamedTuple):
    """A conversation with one fault. ``turn`` and ``calls`` say where it is; empty ``calls``: in the
    answer. ``note`` is what was done, for a person. ``tools``: the declarations, if they changed."""

    messages: list[Message]
    turn: int
    calls: tuple[int, ...]
    note: str
    tools: list[dict[str, Any]] | None = None


Variant: TypeAlias = Callable[[Recorded, Random], Planted | None]

_ALPHABET = string.ascii_letters + string.digits
_ERROR = re.compile(
    r"(?i)^\W*(error|traceback|http [45]\d\d)|\"errors?\":|\"(success|ok)\": false"
    r"|\"status\": \"(fail|err)"
)


def failed(result: str) -> bool:
    """Whether a tool's result tells of an error."""
    return bool(_ERROR.search(result[:200]))


def call_id(rng: Random) -> str:
    return "call_" + "".join(rng.choices(_ALPHABET, k=24))


def call_and_result(name: str, arguments: Any, result: str, rng: Random) -> list[Message]:
    """A step with one call, and what the tool gave back."""
    ident = call_id(rng)
    call = {"id": ident, "type": "function", "function": {"name": name, "arguments": arguments}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": ident, "name": name, "content": result},
    ]


def one_of(places: Sequence[Any], rng: Random) -> Any:
    """Any of them, or ``None`` where there is none."""
    return rng.choice(places) if places else None


def said_once(recorded: Recorded) -> Iterator[Call]:
    """Calls that went well and are not said again in their turn."""
    for call in recorded.calls:
        twins = [c for c in recorded.calls if (c.turn, c.name, c.args) == (call.turn, call.name, call.args)]
        if call.args is not None and len(twins) == 1 and not failed(call.result) and call.name != "think":
            yield call


def alone(recorded: Recorded, call: Call) -> bool:
    """Whether a message holds this call only."""
    return len(recorded.messages[call.at]["tool_calls"]) == 1
