"""Calls that a model wrote into its text: a text is a text, and what looks like a call is reported. Pure.

Whether a framework ran such a call, the text does not show. So its turn is not fully seen: "no call was made"
is not known there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from agenteval.core.expressions import expression
from agenteval.messages.calls import listed
from agenteval.messages.placed import Unplaced
from agenteval.messages.said import Said, not_placed
from agenteval.messages.without_calls import is_typed_call

_TAGS = (
    "<tool_call>", "<functioncall>", "<function_call>", "<function=", "<|python_tag|>", "<|tool_call",
    "[TOOL_CALLS]",
)  # fmt: skip
"""How calls begin in the texts of models, each a token of its own in their templates."""
_LABELS = expression(
    r"^[ \t*]*Action(?: \d{1,3})?[*]{0,2}[:：].*\n(?:.*\n)?[ \t*]*Action Input", re.MULTILINE
)
"""Agents that think and act in turn: ``Action:`` and, below it, ``Action Input:``."""
_LIKE_PYTHON = expression(r"\s*\[\s*[A-Za-z_][\w.]*\(.*\)\s*\]\s*", re.DOTALL)
"""A whole text of calls in Python's notation: ``[weather(city="Rome")]``."""
_ELEMENT = expression(r"<([a-z]+(?:_[a-z]+)+)>\s*<([a-z_]+)>.*</\2>\s*</\1>\s*\Z", re.DOTALL)
"""A text that ends in an element with its arguments: ``<read_file><path>a.py</path></read_file>``."""


def with_text_calls_unplaced(said: Iterable[Said]) -> list[Said]:
    """What was said; behind each text of the agent that looks like a call, that it is not placed. An agent
    that makes calls of its own writes none: such a text shows somebody how they look."""
    every = list(said)
    if any(each.calls for each in every):
        return every
    return [one for each in every for one in (each, *_unplaced_in(each))]


def _unplaced_in(said: Said) -> Iterable[Said]:
    if said.role != "assistant" or not said.text:
        return ()
    name = _notation_in(said.text)
    return [not_placed(Unplaced("what looks like a tool call in a text", (name,), said.text))] if name else ()


def _notation_in(text: str) -> str:
    """How a text writes what looks like a call; empty if there is none in it."""
    if tag := next((each for each in _TAGS if each in text), ""):
        return tag
    if text.lstrip()[:1] in ("[", "{") and any(map(is_typed_call, listed(text))):
        return "JSON"
    if "Action" in text and _LABELS.search(text):
        return "Action:"
    if text[-1] in ")]" and _LIKE_PYTHON.fullmatch(text):
        return "[f()]"
    found = _ELEMENT.search(text) if text.rstrip().endswith(">") else None
    return f"<{found[1]}>" if found else ""
