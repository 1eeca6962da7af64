"""Plays the faults of tools (fault injection): which calls have one, and what it makes of their results.

Everything is drawn from a seed of its own for each call, so that a fault does not depend on the order in
which the calls of a conversation arrive. What a fault makes of a result depends on the arguments instead: who
asks again sees the same false value or the same missing rows, as in a source that is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from http import HTTPStatus
from random import Random
from typing import Any, NamedTuple, TypeAlias

from agenteval.core.json_text import as_text
from agenteval.core.tool_faults import CANARY, FAILING_KINDS, PlayedFault, ToolFault
from agenteval.core.trajectory import ToolResult
from agenteval.core.value import copy_with

_TIMEOUT_S = 30
_RETRY_AFTER_S = 30
_DEFAULT_STATUS = 503
_WORDS = ("Heron", "Juniper", "Kestrel", "Lantern", "Marigold", "Nettle", "Osprey", "Pewter")
_Loc: TypeAlias = tuple[str | int, ...]


class FaultDraws:
    """Decides which calls of a conversation have which fault."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        # A word, a number and no more: nothing else in a conversation looks like it by chance.
        self._canary = f"{_WORDS[seed % len(_WORDS)]}-{seed % 9_000_000 + 1_000_000}"
        self._calls: dict[str, int] = {}
        self._played: dict[tuple[str, int], int] = {}

    def draw(
        self, tool: str, args: Mapping[str, Any] | None, faults: Sequence[ToolFault]
    ) -> DrawnFault | None:
        """Count a call to a tool, and return its fault: the first one that applies, or ``None``."""
        call = self._calls[tool] = self._calls.get(tool, 0) + 1
        for number, fault in enumerate(faults):
            draws = Random(f"{self._seed}/{tool}/{number}/{call}")
            if self._applies(fault, call, self._played.get((tool, number), 0), draws):
                self._played[tool, number] = self._played.get((tool, number), 0) + 1
                return DrawnFault(
                    fault,
                    Random(f"{self._seed}/{tool}/{number}/{json.dumps(args, sort_keys=True, default=str)}"),
                    self._canary,
                )
        return None

    def _applies(self, fault: ToolFault, call: int, played: int, draws: Random) -> bool:
        if fault.on_call not in (None, call) or (fault.calls is not None and played >= fault.calls):
            return False
        return fault.probability is None or draws.random() < fault.probability


class DrawnFault(NamedTuple):
    """The fault of one call, with the random numbers for its details."""

    fault: ToolFault
    draws: Random
    canary: str

    @property
    def planted(self) -> str:
        """The text that ``inject`` plants."""
        return (self.fault.text or "").replace(CANARY, self.canary)


def failed_result(fault: ToolFault) -> ToolResult | None:
    """Return the error of a call that a fault prevents, or ``None`` if the call is carried out."""
    if fault.kind not in FAILING_KINDS:
        return None
    message = _failure_message(fault)
    return ToolResult(
        value={"error": message}, is_error=True, fault=PlayedFault(kind=fault.kind, detail=message)
    )


def _failure_message(fault: ToolFault) -> str:
    match fault.kind:
        case "timeout":
            return f"timed out: no answer within {_TIMEOUT_S} s"
        case "rate_limit":
            return f"HTTP 429 Too Many Requests; retry after {_RETRY_AFTER_S} s"
        case "http_error":
            return f"HTTP {_status_line(fault.status or _DEFAULT_STATUS)}"
        case _:
            return fault.text or ""


def _status_line(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def mark_played(result: ToolResult, fault: ToolFault, detail: str) -> ToolResult:
    """Return the result of a call with the fault that it had. An error of the tool itself is none."""
    if result.is_error:
        return result
    return result.model_copy(update={"fault": PlayedFault(kind=fault.kind, detail=detail)})


ValuesOf: TypeAlias = Callable[[str, Any], Iterable[Any]]
"""Returns values that a field has in the state, to replace one of them by another."""


def distort(
    result: ToolResult, drawn: DrawnFault, args: Mapping[str, Any], values_of: ValuesOf = lambda *_: ()
) -> ToolResult:
    """Return what a fault makes of the result of a call with these arguments. The result stays as it is, and
    has no fault, if the fault cannot change it: an error is not distorted, and a text has no rows."""
    if result.is_error:
        return result
    value = deepcopy(result.value)
    if drawn.fault.kind == "wrong_value":
        found = _alter(value, drawn, args, values_of)
    else:
        found = _DISTORTIONS[drawn.fault.kind](value, drawn)
    if found is None:
        return result
    played = PlayedFault(kind=drawn.fault.kind, detail=found.detail)
    if played.kind == "inject":
        canary = drawn.canary if CANARY in (drawn.fault.text or "") else ""
        played = copy_with(played, {"planted": drawn.planted, "canary": canary})
    return result.model_copy(update={"value": found.value, "fault": played})


class _Distorted(NamedTuple):
    value: Any
    detail: str


# ── texts that are cut or broken ─────────────────────────────────────────────────────────────────


def _truncate(value: Any, drawn: DrawnFault) -> _Distorted | None:
    text = as_text(value)
    if len(text) < 2:
        return None
    kept = drawn.draws.randrange(len(text) // 3, 2 * len(text) // 3 + 1) or 1
    return _Distorted(text[:kept], f"cut after {kept:,} of {len(text):,} characters")


def _break(value: Any, drawn: DrawnFault) -> _Distorted | None:
    """Remove one character of the syntax, so that the text is no JSON. A text that is none is garbled."""
    text = as_text(value)
    if isinstance(value, str) and not _is_json_container(text):
        return _garble(text, drawn)
    places = [at for at, char in enumerate(text) if char in '{}[]":,']
    drawn.draws.shuffle(places)
    for at in places:
        broken = text[:at] + text[at + 1 :]
        if not _is_json(broken):
            return _Distorted(broken, f"without the character {text[at]} at {at:,}")
    return _Distorted(f"{text}}}", "with a bracket too many")


def _is_json_container(text: str) -> bool:
    return text.lstrip().startswith(("{", "[")) and _is_json(text)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _garble(text: str, drawn: DrawnFault) -> _Distorted | None:
    """Replace a third of the letters and digits, as a wrong encoding does."""
    places = [at for at, char in enumerate(text) if char.isalnum()]
    if not places:
        return None
    lost = set(drawn.draws.sample(places, max(1, len(places) // 3)))
    return _Distorted(
        "".join("\ufffd" if at in lost else char for at, char in enumerate(text)),
        f"{len(lost):,} characters unreadable",
    )


def _empty(value: Any, _drawn: DrawnFault) -> _Distorted | None:
    nothing: Any = {} if isinstance(value, dict) else [] if isinstance(value, list) else ""
    nothing = nothing if isinstance(value, dict | list | str) else None
    return None if value == nothing else _Distorted(nothing, "empty instead of the answer")


def _inject(value: Any, drawn: DrawnFault) -> _Distorted | None:
    """Put the text where a reader of the result cannot miss it: behind the longest text in it."""
    planted = drawn.planted
    if isinstance(value, str):
        return _Distorted(f"{value}\n\n{planted}" if value else planted, "planted instructions")
    texts = [(loc, text) for loc, text in _leaves(value) if isinstance(text, str)]
    if texts:
        loc, longest = max(texts, key=lambda each: len(each[1]))
        return _Distorted(
            _replaced(value, loc, f"{longest} {planted}"), f"planted instructions in {_path(loc)}"
        )
    if isinstance(value, dict):
        return _Distorted({**value, "note": planted}, "planted instructions in note")
    if isinstance(value, list):
        return _Distorted([*value, planted], "planted instructions in the last item")
    return _Distorted(f"{as_text(value)}\n\n{planted}", "planted instructions")


# ── values that are wrong, missing or elsewhere ──────────────────────────────────────────────────


def _drop_rows(value: Any, drawn: DrawnFault) -> _Distorted | None:
    """Keep half of the rows of the longest list."""
    lists = [(loc, each) for loc, each in _containers(value) if isinstance(each, list) and each]
    if not lists:
        return None
    loc, rows = max(lists, key=lambda each: len(each[1]))
    kept = sorted(drawn.draws.sample(range(len(rows)), len(rows) // 2))
    shorter = _replaced(value, loc, [rows[at] for at in kept])
    return _Distorted(shorter, f"{len(kept):,} of {len(rows):,} rows")


def _rename(value: Any, drawn: DrawnFault) -> _Distorted | None:
    fault = drawn.fault
    objects = [each for _, each in _containers(value) if isinstance(each, dict) and each]
    names = [fault.field] if fault.field else sorted({name for each in objects[:1] for name in each})
    if not names:
        return None
    name = drawn.draws.choice(names)
    new = fault.to or _other_spelling(name)
    found = [each for each in objects if name in each]
    if not found or any(new in each for each in found):
        return None
    for each in found:
        items = [(new if key == name else key, item) for key, item in each.items()]
        each.clear()
        each.update(items)
    return _Distorted(value, f"{name} is called {new}")


def _other_spelling(name: str) -> str:
    """Return the name as another version of an interface would spell it: ``order_id`` for ``orderId`` and
    the other way round, or ``status_value`` for ``status``."""
    if "_" in name.strip("_"):
        head, *rest = name.split("_")
        return head + "".join(part.capitalize() for part in rest)
    snake = "".join(f"_{char.lower()}" if char.isupper() else char for char in name).lstrip("_")
    return snake if snake != name else f"{name}_value"


def _alter(value: Any, drawn: DrawnFault, args: Mapping[str, Any], values_of: ValuesOf) -> _Distorted | None:
    """Replace one value by a plausible wrong one: that of another row, or the same with two digits
    transposed. What the agent sent as an argument is left alone, since an echo would give the fault away."""
    fault, sent = drawn.fault, {_as_key(item) for _, item in _leaves(dict(args))}
    candidates: list[tuple[_Loc, Any, list[Any]]] = []
    for loc, item in _leaves(value):
        if (fault.field and not _is_named(loc, fault.field)) or (not fault.field and _as_key(item) in sent):
            continue
        if wrong := _wrong_values(value, loc, item, values_of, is_named=fault.field is not None):
            candidates.append((loc, item, wrong))
    if not candidates:
        return None
    loc, item, choices = drawn.draws.choice(candidates)
    wrong_item = drawn.draws.choice(choices)
    detail = f"{_path(loc)}: {as_text(wrong_item)} instead of {as_text(item)}"
    return _Distorted(_replaced(value, loc, wrong_item), detail)


def _as_key(item: Any) -> tuple[bool, str]:
    return isinstance(item, bool), as_text(item)


def _is_named(loc: _Loc, field: str) -> bool:
    """Check whether a place is that of a field, given by its name or by its dotted path."""
    path = _path(loc)
    return path == field or path.endswith(f".{field}")


def _wrong_values(value: Any, loc: _Loc, item: Any, values_of: ValuesOf, *, is_named: bool) -> list[Any]:
    name = next((key for key in reversed(loc) if isinstance(key, str)), "")
    for others in (_same_field_of_other_rows(value, loc), values_of(name, item)):
        if wrong := [each for each in others if each != item and type(each) is type(item) and each != ""]:
            return wrong
    if isinstance(item, bool):
        return [not item] if is_named else []
    if isinstance(item, int | float):
        swapped = _transpose(json.dumps(item))
        return [json.loads(each) for each in swapped if _is_json(each) and json.loads(each) != item]
    return _transpose(item) if isinstance(item, str) else []


def _same_field_of_other_rows(value: Any, loc: _Loc) -> Iterator[Any]:
    """Yield the values of the same field in the other rows of the innermost list around a place."""
    at = next((at for at in range(len(loc) - 1, -1, -1) if isinstance(loc[at], int)), None)
    if at is None or at == len(loc) - 1:
        return
    rows = _at(value, loc[:at])
    for number in range(len(rows)):
        if number != loc[at]:
            other = _at(rows[number], loc[at + 1 :])
            if other is not None and not isinstance(other, dict | list):
                yield other


def _transpose(text: str) -> list[str]:
    """Return the text with two neighbouring different digits exchanged, or, if there are none, with one digit
    raised. A leading zero of a number is left alone."""
    swapped = [
        text[:at] + text[at + 1] + text[at] + text[at + 2 :]
        for at in range(len(text) - 1)
        if text[at].isdecimal() and text[at + 1].isdecimal() and text[at] != text[at + 1]
        if text[at + 1] != "0" or (at and text[at - 1].isdecimal())
    ]
    if swapped:
        return swapped
    at = max((at for at, char in enumerate(text) if char.isascii() and char.isdigit()), default=-1)
    return [] if at < 0 else [f"{text[:at]}{(int(text[at]) + 1) % 10}{text[at + 1 :]}"]


_DISTORTIONS: Mapping[str, Callable[[Any, DrawnFault], _Distorted | None]] = {
    "malformed": _break,
    "truncated": _truncate,
    "empty": _empty,
    "inject": _inject,
    "partial": _drop_rows,
    "renamed": _rename,
}


# ── parts of a value ─────────────────────────────────────────────────────────────────────────────


def _containers(value: Any, loc: _Loc = ()) -> Iterator[tuple[_Loc, Any]]:
    """Yield all mappings and lists within a value, the outer ones first."""
    if isinstance(value, dict | list):
        yield loc, value
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _containers(item, (*loc, key))


def _leaves(value: Any, loc: _Loc = ()) -> Iterator[tuple[_Loc, Any]]:
    """Yield everything within a value that is neither a mapping nor a list nor null."""
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _leaves(item, (*loc, key))
    elif value is not None:
        yield loc, value


def _at(value: Any, loc: _Loc) -> Any:
    for key in loc:
        if isinstance(value, dict):
            value = value.get(key)
        elif isinstance(value, list) and isinstance(key, int) and key < len(value):
            value = value[key]
        else:
            return None
    return value


def _replaced(value: Any, loc: _Loc, new: Any) -> Any:
    """Return the value with another part at a place. The value is changed."""
    if not loc:
        return new
    _at(value, loc[:-1])[loc[-1]] = new
    return value


def _path(loc: _Loc) -> str:
    return ".".join(map(str, loc)) or "the result"
