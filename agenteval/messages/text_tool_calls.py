"""Reports text in which a model appears to have written a tool call. Pure.

The text is kept as text. Because it does not show whether a framework executed such a call, it is unknown
whether a call was made, and the turn's calls are not fully observed."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import lru_cache

from agenteval.messages.calls import parse_list
from agenteval.messages.field_shapes import is_broken_message, is_typed_call
from agenteval.messages.parsed_message import ParsedMessage, unplaced_message
from agenteval.messages.unplaced_entries import Unplaced

_TAGS = (
    "<tool_call>", "<functioncall>", "<function_call>", "<function=", "<|python_tag|>", "<|tool_call",
    "[TOOL_CALLS]",
)  # fmt: skip
"""Markers for tool calls in the texts of models. Each marker is a separate token in the models' chat
templates."""
_REACT_LABELS = re.compile(
    r"^[ \t*]*Action(?: \d{1,3})?[*]{0,2}[:：].*\n(?:.*\n)?[ \t*]*Action Input", re.MULTILINE
)
"""Matches the labels of agents that alternate between reasoning and acting (ReAct): ``Action:`` and, below
it, ``Action Input:``."""
_PLAIN_WORD = re.compile(r"[A-Z]?[a-z]+")
_DELIMITERS = "\"'`<>/([{"


def mark_text_calls(parsed: Iterable[ParsedMessage], tools: Collection[str] = ()) -> list[ParsedMessage]:
    """Return the messages, with an unplaced entry inserted after each message by the agent that may be or
    contain a tool call.

    This applies to a message that is truncated JSON or that looks like a call. If the agent makes real calls,
    a message that looks like a call is assumed to be an example. ``tools`` contains the names of the declared
    tools."""
    messages = list(parsed)
    has_calls = any(each.calls for each in messages)
    tool_pattern = None if has_calls else _tool_name_pattern(frozenset(tools))
    return [
        one
        for each in messages
        for one in (each, *_unplaced_in(each, tool_pattern, may_look_like_calls=not has_calls))
    ]


def _unplaced_in(
    message: ParsedMessage, tool_pattern: re.Pattern[str] | None, *, may_look_like_calls: bool
) -> Iterable[ParsedMessage]:
    if message.role != "assistant" or not message.text:
        return
    if is_broken_message(message.text):
        yield unplaced_message(Unplaced("message JSON that cannot be parsed", ("JSON",), message.text))
    elif may_look_like_calls and (name := _find_call_notation(message.text, tool_pattern)):
        yield unplaced_message(Unplaced("text that looks like a tool call", (name,), message.text))


@lru_cache(maxsize=16)
def _tool_name_pattern(tools: frozenset[str]) -> re.Pattern[str] | None:
    """Return a pattern that matches tool names in a form that does not occur in prose, or ``None`` if there
    are no tools.

    The pattern matches a name that is not an ordinary word, and any name in quotes, in a tag, or directly
    before its arguments."""
    if not (names := sorted(filter(None, tools))):
        return None
    any_name = "|".join(map(re.escape, names))
    unusual = [re.escape(each) for each in names if not _PLAIN_WORD.fullmatch(each)]
    forms = [
        rf"[\"'`](?:{any_name})[\"'`]",
        rf"</?(?:{any_name})(?=[\s/>])",
        rf"(?<![\w-])(?:{any_name})[(\[{{]",
    ]
    forms += [rf"(?<![\w-])(?:{'|'.join(unusual)})(?![\w-])"] if unusual else []
    return re.compile("|".join(forms))


def _find_call_notation(text: str, tool_pattern: re.Pattern[str] | None) -> str:
    """Return the notation of a possible call in a message, or the name of the called tool. Return an empty
    string if there is no such call."""
    if tag := next((each for each in _TAGS if each in text), ""):
        return tag
    if text.lstrip()[:1] in ("[", "{") and any(map(is_typed_call, parse_list(text))):
        return "JSON"
    if "Action" in text and _REACT_LABELS.search(text):
        return "Action:"
    found = tool_pattern.search(text) if tool_pattern else None
    return found[0].strip(_DELIMITERS) if found else ""
