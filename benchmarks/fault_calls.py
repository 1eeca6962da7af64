"""Faults in which tool is called: the same call twice, or a tool that is not there."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from copy import deepcopy
from random import Random

from planting import Planted, alone, call_and_result, call_id, one_of, said_once
from recorded import Recorded, parameters_of

# -- repeated_tool_call ----------------------------------------------------------------------------------


def _again(recorded: Recorded, rng: Random, *, writes: bool) -> Planted | None:
    kinds = ("writes", "destructive") if writes else ("reads",)
    places = [c for c in said_once(recorded) if recorded.marks.get(c.name) in kinds and alone(recorded, c)]
    call = one_of(places, rng)
    if call is None:
        return None
    messages = recorded.copy()
    at = call.result_at + 1
    messages[at:at] = call_and_result(call.name, call.raw, call.result, rng)
    return Planted(messages, call.turn, (call.index + 1,), f"{call.name} again at once")


def read_again_at_once(recorded: Recorded, rng: Random) -> Planted | None:
    """The same look-up in the next step."""
    return _again(recorded, rng, writes=False)


def write_again_at_once(recorded: Recorded, rng: Random) -> Planted | None:
    """The same change in the next step: a double booking."""
    return _again(recorded, rng, writes=True)


def later_in_turn(recorded: Recorded, rng: Random) -> Planted | None:
    """The same look-up again, after one or more other look-ups of the same turn."""
    places = []
    for call in said_once(recorded):
        after = [c for c in recorded.calls if c.turn == call.turn and c.index > call.index]
        only_reads = all(recorded.marks.get(c.name) == "reads" for c in [call, *after])
        if after and only_reads and alone(recorded, after[-1]):
            places.append((call, after[-1]))
    place = one_of(places, rng)
    if place is None:
        return None
    call, last = place
    messages = recorded.copy()
    at = last.result_at + 1
    messages[at:at] = call_and_result(call.name, call.raw, call.result, rng)
    return Planted(
        messages, call.turn, (last.index + 1,), f"{call.name} again, {last.index - call.index} later"
    )


def parallel_twice(recorded: Recorded, rng: Random) -> Planted | None:
    """The same call twice in one message."""
    places = [c for c in said_once(recorded) if alone(recorded, c)]
    call = one_of(places, rng)
    if call is None:
        return None
    messages = recorded.copy()
    twin, result = deepcopy(messages[call.at]["tool_calls"][0]), deepcopy(messages[call.result_at])
    twin["id"] = result["tool_call_id"] = call_id(rng)
    messages[call.at]["tool_calls"].append(twin)
    messages.insert(call.result_at + 1, result)
    return Planted(messages, call.turn, (call.index + 1, call.index), f"{call.name} twice in one message")


# -- unknown_tool ----------------------------------------------------------------------------------------


def _renamed(recorded: Recorded, rng: Random, change: Callable[[str], str]) -> Planted | None:
    """A call under another name, which is not declared."""
    declared = set(parameters_of(recorded.tools))
    places = [c for c in recorded.calls if c.name in declared and change(c.name) not in declared]
    call = one_of(places, rng)
    if call is None:
        return None
    messages, name = recorded.copy(), change(call.name)
    messages[call.at]["tool_calls"][call.slot]["function"]["name"] = name
    if "name" in messages[call.result_at]:
        messages[call.result_at]["name"] = name
    return Planted(messages, call.turn, (call.index,), f"{call.name} as {name}")


def name_typo(recorded: Recorded, rng: Random) -> Planted | None:
    """A letter is missing, doubled or swapped, or a plural is wrong."""
    kind, share = rng.randrange(4), rng.random()

    def change(name: str) -> str:
        at = 1 + int(share * (len(name) - 3))
        swapped = name[:at] + name[at + 1] + name[at] + name[at + 2 :]
        plural = name[:-1] if name.endswith("s") else name + "s"
        return (name[:at] + name[at + 1 :], name[:at] + name[at] + name[at:], swapped, plural)[kind]

    return _renamed(recorded, rng, change)


def other_case(recorded: Recorded, rng: Random) -> Planted | None:
    """snake_case in place of CamelCase, or the other way round."""
    first = rng.choice([str.lower, str.upper])

    def change(name: str) -> str:
        if "_" in name:
            camel = "".join(part.capitalize() for part in name.split("_"))
            return first(camel[0]) + camel[1:]
        snake = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
        return (
            snake
            if snake != name
            else first(name[0]) + name[1:]
            if first(name[0]) != name[0]
            else name.title()
        )

    return _renamed(recorded, rng, change)


def prefixed(recorded: Recorded, rng: Random) -> Planted | None:
    """With the name space that a model puts in front."""
    prefix = rng.choice(["functions.", "tools.", "api_", "default_api.", "mcp__"])
    return _renamed(recorded, rng, lambda name: prefix + name)


_MADE_UP = [
    "lookup_customer_profile", "verify_identity", "get_loyalty_points", "check_flight_status",
    "send_confirmation_email", "get_weather_alerts", "browse_web", "search_knowledge_base",
    "translate_text", "get_current_time", "escalate_ticket", "python", "web.run",
]  # fmt: skip


def invented_name(recorded: Recorded, rng: Random) -> Planted | None:
    """A call of a tool that nobody declared, before the turn's first call; the runner refuses it."""
    declared = set(parameters_of(recorded.tools))
    call = one_of([c for c in recorded.calls if alone(recorded, c)], rng)
    if call is None or not declared:
        return None
    name = rng.choice([name for name in _MADE_UP if name not in declared])
    result = rng.choice(
        [f"Error: unknown tool {name}", '{"error": "tool not found"}', f"No such tool: {name}"]
    )
    messages = recorded.copy()
    arguments = rng.choice(['{"query": "details"}', "{}", json.dumps(call.args or {})])
    messages[call.at : call.at] = call_and_result(name, arguments, result, rng)
    return Planted(messages, call.turn, (call.index,), f"{name} is invented")
