"""Tool calls that a model writes between tags: ``<tool_call>{…}</tool_call>``. Pure.

Models of the Hermes and Qwen families write their calls so, and get what came back between
``<tool_response>`` tags, in a message of a tool or of the user. Logs that keep the texts of a model as they
are, and most sets of training data, have nothing else of a call.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from agenteval.core.expressions import expression
from agenteval.core.scenario import Tool
from agenteval.core.speech import thought_ends
from agenteval.messages.calls import Call, Tell, call_in
from agenteval.messages.chat import read_arguments
from agenteval.messages.inputs import unfenced
from agenteval.messages.said import Said, result_said
from agenteval.messages.texts import joined

_TAG = expression(r"<(tool_call|tool_response)>(.*?)(?:</\1>|\Z)", re.DOTALL)
_MARKS = ("<functioncall>", "<function_call", "<|python_tag|>", "[TOOL_CALLS]", "<function=", "<|tool_call")
"""How calls begin in the texts of other models, which are not read."""
_LIKE_PYTHON = expression(r"\s*\[\s*[A-Za-z_][\w.]*\(.*\)\s*\]\s*", re.DOTALL)
"""Calls as the models of some leader boards write them: ``[weather(city="Rome")]``."""
_ELEMENT = expression(r"<([a-z]+(?:_[a-z]+)+)>\s*(?:<[a-z_]+>.*)?</\1>\s*\Z", re.DOTALL)
"""Calls as coding agents write them: ``<read_file><path>a.py</path></read_file>``."""
_NOBODY = Said("system")
_CALL, _RESPONSE = "<tool_call>", "<tool_response>"
_NAME = expression(r'["\']name["\']\s*:\s*["\']([^"\'\s]{1,80})["\']')
_FUNCTION = expression(r"\s*<function=([^>\s]{1,80})>(.*?)(?:</function>\s*)?\Z", re.DOTALL)
_PARAMETER = expression(r"<parameter=([^>]{1,80})>\n?(.*?)\n?</parameter>", re.DOTALL)
_NAMED = expression(r"\s*([\w.-]{1,80})\s*(<arg_key>.*)?\Z", re.DOTALL)
_ARGUMENT = expression(r"<arg_key>(.*?)</arg_key>\s*<arg_value>(.*?)</arg_value>", re.DOTALL)
_OF_RESULTS = frozenset(("name", "content", "tool_call_id", "id", "status", "error", "is_error"))
_DECODER = json.JSONDecoder()


class _Tagged(NamedTuple):
    """What stands between tags, and where: from ``start`` to ``end``. ``calls`` are empty for a result."""

    start: int
    end: int
    body: str
    calls: tuple[Call, ...] = ()


def may_hold_tags(said: Said) -> bool:
    text = said.text
    if said.role != "assistant" or not text:
        return False
    return _CALL in text or text.startswith(_MARKS) or text[-1] in ")>]"


def with_tagged_calls(said: Sequence[Said], tools: Mapping[str, Tool], tell: Tell) -> Sequence[Said]:
    """What was said, with the calls and the results that texts hold between tags. They are some where a
    result follows, the system explains them or the tool is declared; else somebody shows how they look."""
    if not _is_proven(said, tools):
        if any(_is_unread(each, following, tools) for each, following in pairwise([*said, _NOBODY])):
            tell("what looks like tool calls in a text of the agent was not read")
        return said
    read: list[Said] = []
    for each in said:
        is_awaited = bool(read) and (bool(read[-1].calls) or read[-1].role == "tool")
        if each.role in ("tool", "user") and is_awaited and (results := _results_of(each)):
            read += results
        else:
            read += _taken_apart(each, tools)
    return read


def _is_unread(said: Said, following: Said, tools: Mapping[str, Tool]) -> bool:
    """Whether a text looks like a call: as one that was not proven, or as one in an unknown notation."""
    if not may_hold_tags(said):
        return False
    text = said.text or ""
    if _CALL in text or text.startswith(_MARKS):
        return bool(_tagged_in(said, tools)) or _is_result(following) or text.startswith(_MARKS)
    if _LIKE_PYTHON.fullmatch(text):
        return _is_result(following)
    element = _ELEMENT.search(text)
    return element is not None and _is_of_element(following, element[1])


def _is_of_element(said: Said, name: str) -> bool:
    """Whether the next message of the user is what came of a call written as an element of that name."""
    text = said.text or ""
    return said.role == "user" and text.startswith(f"[{name}") and "Result:" in text[:2000]


def _is_proven(said: Sequence[Said], tools: Mapping[str, Tool]) -> bool:
    is_explained = any(each.role == "system" and _CALL in (each.text or "") for each in said)
    for at, each in enumerate(said):
        tagged = _tagged_in(each, tools)
        names = {call.name for one in tagged for call in one.calls}
        if names and (is_explained or names & tools.keys()):
            return True
        following = said[at + 1] if at + 1 < len(said) else None
        if names and (not all(one.calls for one in tagged) or (following and _is_result(following))):
            return True
    return False


def _is_result(said: Said) -> bool:
    return said.role == "tool" or (said.role == "user" and (said.text or "").lstrip().startswith(_RESPONSE))


# ── a text and its tags ──────────────────────────────────────────────────────────────────────────


def _tagged_in(said: Said, tools: Mapping[str, Tool]) -> list[_Tagged]:
    """The calls in a text of the agent, and the results behind them: none that it thinks of, or quotes."""
    text = said.text or ""
    if said.role != "assistant" or _CALL not in text:
        return []
    found: list[_Tagged] = []
    for each in _TAG.finditer(text, thought_ends(text)):
        if text.count("```", 0, each.start()) % 2 or text[: each.start()].endswith(("`", '"', "'")):
            continue
        if each[1] == "tool_call":
            if calls := tuple(_calls_in(each[2], tools)):
                found.append(_Tagged(each.start(), each.end(), each[2], calls))
        elif found:
            found.append(_Tagged(each.start(), each.end(), each[2]))
    return found


def _taken_apart(said: Said, tools: Mapping[str, Tool]) -> Iterator[Said]:
    tagged = _tagged_in(said, tools)
    if not tagged:
        yield said
        return
    text, at = said.text or "", 0
    reply = said._replace(text=None)
    for each in tagged:
        words = joined(filter(None, (reply.text, text[at : each.start].strip())))
        at = each.end
        if each.calls:
            reply = reply._replace(text=words or None, calls=(*reply.calls, *each.calls))
        else:
            if reply.calls or words:
                yield reply._replace(text=words or None)
            yield from _results_in(each.body)
            reply = Said("assistant", agent=said.agent)
    words = joined(filter(None, (reply.text, text[at:].strip())))
    if reply.calls or words:
        yield reply._replace(text=words or None)


# ── calls ────────────────────────────────────────────────────────────────────────────────────────


def _calls_in(body: str, tools: Mapping[str, Tool]) -> Iterator[Call]:
    """The calls between two tags; none for what nobody could take for one."""
    bare = unfenced(body)
    values = _values_in(bare)
    if values and all(isinstance(each, dict) for each in values):
        yield from filter(None, map(call_in, values))
    elif written := _FUNCTION.match(bare):
        yield _spelled(written[1], _PARAMETER.findall(written[2]), tools)
    elif bare.startswith("{"):
        # It was to be a call, and is none that anybody could read: so are its arguments.
        if name := _NAME.search(bare):
            yield Call(name[1], None, bare, "")
    elif (written := _NAMED.match(bare)) and (written[2] or written[1] in tools):
        yield _spelled(written[1], _ARGUMENT.findall(written[2] or ""), tools)


def _values_in(text: str) -> list[Any]:
    """The values in a text: one, those of a list, or one after another; in Python's notation only one. Empty
    if it holds anything else."""
    if not text.startswith(("{", "[")):
        return []
    values: list[Any] = []
    at = 0
    try:
        while at < len(text):
            value, at = _DECODER.raw_decode(text, at)
            values += value if isinstance(value, list) else [value]
            while at < len(text) and text[at] in " \t\r\n,":
                at += 1
    except (ValueError, RecursionError):
        args, _ = read_arguments(text, lenient=True)
        return [] if args is None else [args]
    return values


def _spelled(name: str, given: Iterable[tuple[str, str]], tools: Mapping[str, Tool]) -> Call:
    """A call whose arguments stand between tags of their own: each a text if that is what its tool takes."""
    tool = tools.get(name)
    properties = ((tool.parameters if tool else None) or {}).get("properties")
    schemas = properties if isinstance(properties, dict) else {}
    return Call(name, {key.strip(): _value(text, schemas.get(key.strip())) for key, text in given}, None, "")


def _value(text: str, schema: Any) -> Any:
    if isinstance(schema, dict) and schema.get("type") == "string":
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


# ── results ──────────────────────────────────────────────────────────────────────────────────────


def _results_of(said: Said) -> list[Said]:
    """The results that a message hands to the agent, and what else the user says in it; empty: none are in
    tags."""
    text = said.value if said.role == "tool" else said.text
    if not isinstance(text, str) or not text.lstrip().startswith(_RESPONSE):
        return []
    found = [each for each in _TAG.finditer(text) if each[1] == "tool_response"]
    results = [result for each in found for result in _results_in(each[2])]
    if len(results) == 1 and said.role == "tool":
        own = results[0]
        return [
            own._replace(
                id=own.id or said.id, name=own.name or said.name, is_error=own.is_error or said.is_error
            )
        ]
    rest = text[found[-1].end() :].strip()
    return [*results, Said("user", rest)] if rest and said.role == "user" else results


def _results_in(body: str) -> Iterator[Said]:
    """What came back, without what tells only which tool it is from; of a list of such, each."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, list) and value and all(map(_is_named, value)):
        yield from (result_said(each, each["content"]) for each in value)
    elif _is_named(value):
        yield result_said(value, value["content"])
    else:
        yield Said("tool", value=body.strip())


def _is_named(value: Any) -> bool:
    return isinstance(value, dict) and "name" in value and "content" in value and value.keys() <= _OF_RESULTS
