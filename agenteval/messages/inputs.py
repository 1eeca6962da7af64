"""What is written for a tool in a text: as JSON, in Python's notation, or as words. Pure."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from agenteval.core.scenario import Tool
from agenteval.messages.chat import MAX_DEPTH, depth_of, read_arguments

_NOTHING = ("", "none", "null", "n/a")
_FENCE = "```"
_DECODER = json.JSONDecoder()


class Given(NamedTuple):
    """Arguments of a call (``None``: ``raw_args`` could not be read), and the text that follows them."""

    args: dict[str, Any] | None
    raw_args: str | None = None
    rest: str = ""


def given_in(text: str, tool: Tool | None) -> Given:
    """The arguments in a text. Words are for the one parameter that the tool has, else for ``input``."""
    bare = unfenced(text)
    if bare.casefold() in _NOTHING:
        return Given({})
    if bare.startswith("{"):
        return _object_in(bare)
    if len(bare) > 1 and bare[0] == bare[-1] and bare[0] in "\"'`":
        bare = bare[1:-1]
    return Given({_only_parameter(tool): bare})


def _object_in(text: str) -> Given:
    """Either notation is what such agents are asked for: neither is malformed."""
    args, _ = read_arguments(text, lenient=True)
    if args is not None:
        return Given(args)
    end = _end_of_json(text) or text.find("}\n") + 1
    args, _ = read_arguments(text[:end], lenient=True) if end else (None, None)
    if args is not None:
        return Given(args, rest=text[end:].strip("` \n"))
    return Given(None, text)


def _end_of_json(text: str) -> int:
    try:
        return _DECODER.raw_decode(text)[1]
    except (ValueError, RecursionError):
        return 0


def _only_parameter(tool: Tool | None) -> str:
    fields = (tool.parameters if tool else None) or {}
    for names in (fields.get("required"), fields.get("properties")):
        if isinstance(names, list | dict) and len(names) == 1:
            return str(next(iter(names)))
    return "input"


class Blob(NamedTuple):
    """A call in one object: ``action`` and ``action_input``."""

    name: str
    given: Any


def blob_in(text: str) -> Blob | None:
    bare = unfenced(text)
    if not bare.startswith("{") or '"action_input"' not in bare:
        return None
    try:
        value, _ = _DECODER.raw_decode(bare)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or depth_of(value) > MAX_DEPTH or not isinstance(value.get("action"), str):
        return None
    return Blob(value["action"], value.get("action_input"))


def unfenced(text: str) -> str:
    """A text without the fences of a block of code around it, of which one may stand elsewhere."""
    text = text.strip()
    if text.startswith(_FENCE):
        text = text[3:].lstrip("abcdefghijklmnopqrstuvwxyz")
    return without_open_fence(text) if not text.endswith(_FENCE) else text[:-3].strip()


def without_open_fence(text: str) -> str:
    """A text without the end of a block of code that begins before it."""
    text = text.strip()
    return text[:-3].rstrip() if text.endswith(_FENCE) and text.count(_FENCE) % 2 else text
