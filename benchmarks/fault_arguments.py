"""Faults in the arguments of a call: against the tool's schema, or unreadable."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from copy import deepcopy
from random import Random
from typing import Any

from planting import Planted, one_of
from recorded import Call, Message, Recorded, parameters_of

# -- wrong_arguments -------------------------------------------------------------------------------------


def _valid_calls(recorded: Recorded) -> Iterator[tuple[Call, dict[str, Any]]]:
    from jsonschema import Draft202012Validator

    schemas = parameters_of(recorded.tools)
    for call in recorded.calls:
        schema = schemas.get(call.name)
        if schema and call.args is not None and Draft202012Validator(schema).is_valid(call.args):
            yield call, schema


def _with_arguments(recorded: Recorded, call: Call, arguments: str) -> list[Message]:
    messages = recorded.copy()
    messages[call.at]["tool_calls"][call.slot]["function"]["arguments"] = arguments
    return messages


def _broken(
    recorded: Recorded, rng: Random, change: Callable[..., Iterator[tuple[Any, str]]]
) -> Planted | None:
    """Plant one of the changes that ``change(args, schema, rng)`` offers and that breaks the schema."""
    from jsonschema import Draft202012Validator

    places = [
        (call, args, note)
        for call, schema in _valid_calls(recorded)
        for args, note in change(deepcopy(call.args), schema, rng)
        if not Draft202012Validator(schema).is_valid(args)
    ]
    place = one_of(places, rng)
    if place is None:
        return None
    call, args, note = place
    messages = _with_arguments(recorded, call, json.dumps(args, ensure_ascii=False))
    return Planted(messages, call.turn, (call.index,), f"{call.name}: {note}")


def required_dropped(recorded: Recorded, rng: Random) -> Planted | None:
    """A key that is required is left out."""

    def change(args: dict[str, Any], schema: dict[str, Any], _: Random) -> Iterator[tuple[Any, str]]:
        for key in schema.get("required", ()):
            yield {k: v for k, v in args.items() if k != key}, f"without {key}"

    return _broken(recorded, rng, change)


def _other_type(value: Any, rng: Random) -> Any:
    """The value as a model gets its type wrong."""
    match value:
        case bool():
            return "yes" if value else "no"
        case int() | float():
            return rng.choice([str(value), f"{value} USD", [value], None])
        case str():
            return rng.choice([[value], {"value": value}, {"id": value}, None, len(value)])
        case list():
            return rng.choice([json.dumps(value), value[0] if value else "", {"items": value}])
        case _:
            return json.dumps(value)


def type_changed(recorded: Recorded, rng: Random) -> Planted | None:
    """A value of another type than declared: a number as text, a list as text, a text in a list."""

    def change(args: dict[str, Any], schema: dict[str, Any], rng: Random) -> Iterator[tuple[Any, str]]:
        for key in sorted(schema.get("properties", {}).keys() & args.keys()):
            yield {**args, key: (made := _other_type(args[key], rng))}, f"{key} = {made!r}"

    return _broken(recorded, rng, change)


_INVENTED = {
    "economy": ["premium_economy", "coach", "Economy Plus", "standard"],
    "business": ["first", "first_class", "Business Class"],
    "basic_economy": ["basic", "Basic Economy", "saver"],
    "round_trip": ["return", "roundtrip", "multi_city"],
    "one_way": ["oneway", "single", "multi_city"],
    "yes": ["included", "full", "true"],
    "no": ["none", "false", "declined"],
}


def enum_invented(recorded: Recorded, rng: Random) -> Planted | None:
    """A value that sounds right and is not among the allowed ones."""

    def change(args: dict[str, Any], schema: dict[str, Any], rng: Random) -> Iterator[tuple[Any, str]]:
        for key, declared in schema.get("properties", {}).items():
            if "enum" in declared and key in args:
                others = _INVENTED.get(str(args[key]), [f"{args[key]}_default", f"other_{args[key]}"])
                yield {**args, key: (made := rng.choice(others))}, f"{key} = {made!r}"

    return _broken(recorded, rng, change)


_EXTRA = {
    "notes": "customer request",
    "currency": "USD",
    "language": "en",
    "reason": "requested",
    "force": True,
}


def unknown_key(recorded: Recorded, rng: Random) -> Planted | None:
    """A key that the schema does not know and, since its tool allows no others, forbids."""
    schemas = parameters_of(recorded.tools)
    places = [
        call
        for call, schema in _valid_calls(recorded)
        if all((c.args or {}).keys() <= schema.get("properties", {}).keys()
               for c in recorded.calls if c.name == call.name)
    ]  # fmt: skip
    call = one_of(places, rng)
    if call is None:
        return None
    key = rng.choice([key for key in _EXTRA if key not in schemas[call.name].get("properties", {})])
    tools = deepcopy(recorded.tools)
    parameters_of(tools)[call.name]["additionalProperties"] = False
    messages = _with_arguments(recorded, call, json.dumps({**call.args, key: _EXTRA[key]}))
    return Planted(messages, call.turn, (call.index,), f"{call.name}: {key} is unknown", tools)


def nested_broken(recorded: Recorded, rng: Random) -> Planted | None:
    """One item of a list is not what its schema says."""

    def change(args: dict[str, Any], _: dict[str, Any], rng: Random) -> Iterator[tuple[Any, str]]:
        for key, items in args.items():
            if not isinstance(items, list) or not items:
                continue
            at = rng.randrange(len(items))
            for made in _broken_items(items[at], rng):
                yield {**args, key: [*items[:at], made, *items[at + 1 :]]}, f"{key}[{at}] = {made!r}"

    return _broken(recorded, rng, change)


def _broken_items(item: Any, rng: Random) -> Iterator[Any]:
    if isinstance(item, dict) and item:
        dropped = rng.choice(sorted(item))
        yield {k: v for k, v in item.items() if k != dropped}
        yield ", ".join(str(value) for value in item.values())
        yield {**item, dropped: [item[dropped]]}
    else:
        yield {"value": item}
        yield 1


# -- malformed_arguments ---------------------------------------------------------------------------------


def _unreadable(recorded: Recorded, rng: Random, change: Callable[[Call], str], note: str) -> Planted | None:
    places = [c for c in recorded.calls if c.args and isinstance(c.raw, str)]
    call = one_of(places, rng)
    if call is None:
        return None
    made = change(call)
    try:
        json.loads(made)
    except ValueError:
        messages = _with_arguments(recorded, call, made)
        return Planted(messages, call.turn, (call.index,), f"{call.name}: {note}: {made[:80]}")
    return None


def cut_off(recorded: Recorded, rng: Random) -> Planted | None:
    """The text ends too early, as at a limit of tokens."""
    share = rng.uniform(0.2, 0.98)
    return _unreadable(recorded, rng, lambda c: c.raw[: max(1, int(len(c.raw.rstrip()) * share))], "cut off")


def trailing_text(recorded: Recorded, rng: Random) -> Planted | None:
    """The object is followed by what does not belong there."""
    tails = [
        "}",
        "\n\nI'll look that up for you now.",
        "</tool_call>",
        " // as requested",
        "<|im_end|>",
        '"}',
    ]
    tail = rng.choice(tails)
    return _unreadable(recorded, rng, lambda c: c.raw + tail, "trailing text")


def single_quotes(recorded: Recorded, rng: Random) -> Planted | None:
    """Single quotes in place of double ones, while other calls of the conversation are as they should be:
    a log that holds Python's notation throughout is read, and no fault of the agent's."""
    if len(recorded.calls) < 2:
        return None
    return _unreadable(recorded, rng, lambda c: json.dumps(c.args).replace('"', "'"), "single quotes")


def unquoted_keys(recorded: Recorded, rng: Random) -> Planted | None:
    """Keys without quotes, as in JavaScript."""
    return _unreadable(
        recorded, rng, lambda c: re.sub(r'"(\w+)":', r"\1:", json.dumps(c.args)), "unquoted keys"
    )


def code_fence(recorded: Recorded, rng: Random) -> Planted | None:
    """The object in a fence of Markdown."""
    return _unreadable(recorded, rng, lambda c: f"```json\n{json.dumps(c.args, indent=2)}\n```", "code fence")


def keyword_arguments(recorded: Recorded, rng: Random) -> Planted | None:
    """Written as the call of a function."""

    def change(call: Call) -> str:
        return ", ".join(f"{key}={value!r}" for key, value in (call.args or {}).items())

    return _unreadable(recorded, rng, change, "keyword arguments")
