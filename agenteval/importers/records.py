"""Parses one record of a log as a conversation, including its tools and its name. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from agenteval.core.errors import AuthorError, Problem, did_you_mean
from agenteval.core.json_text import parse_or
from agenteval.core.scenario import Tool
from agenteval.core.tool_effects import marks_from_hints
from agenteval.core.value import compact
from agenteval.importers.conversation_validation import require_one_conversation, users_in
from agenteval.importers.exchanges import MESSAGE_KEYS, LoggedMessages, find_logged_messages
from agenteval.importers.traces import find_trace_messages
from agenteval.importers.turns import ParsedConversation, parse_conversation
from agenteval.messages.calls import OnWarning
from agenteval.messages.chat import MAX_DEPTH, depth_of
from agenteval.messages.json_fields import (
    first_nonempty,
    first_text,
    list_of,
    object_at,
    object_of,
    objects_of,
)
from agenteval.messages.log_entry import IMPORTER_REMEDY
from agenteval.messages.message_parser import describe_json_type
from agenteval.messages.record_paths import MISSING
from agenteval.messages.roles import is_message
from agenteval.messages.unplaced_entries import CallFreeNames, Unplaced

_ID_KEYS = ("id", "conversation_id", "session_id", "thread_id", "trace_id", "uuid")
_TOOL_KEYS = ("tools", "functions", "available_tools", "tool_definitions")
_POLICY_KEYS = (
    "system", "system_prompt", "instructions", "policy", "systemInstruction", "system_instruction",
)  # fmt: skip
_SETTINGS_KEYS = ("config", "toolConfig", "tool_config")
"""Keys under which requests of Google's client and of Bedrock store instructions and tools."""
_DEEPEST_TEXT = 4
_ID_LIMIT = 200
_MOST_SETS = 8


@dataclass(frozen=True, slots=True)
class ImportedConversation:
    """A conversation that was parsed from a record."""

    id: str
    """The record's own id, or an empty string if the record contains none."""
    agent: str
    """The agent's name, or an empty string if the record does not contain it."""
    parsed: ParsedConversation
    tools: Mapping[str, Tool]
    policy: str
    record: Any
    """The complete record, in which dotted paths are looked up."""
    notes: tuple[str, ...] = ()
    """Warnings about content that was not imported exactly as written."""
    lost: str = ""
    """The reason why the last request was not answered, which is not the agent's fault, or an empty string if
    it was answered."""
    outcome: Any = MISSING
    """True if the conversation succeeded, according to an importer."""


class ToolSets:
    """A cache of parsed tools, keyed by their declarations, because logs repeat the declarations in each
    conversation. It contains the tools of the most recent agents."""

    def __init__(self) -> None:
        self._read: list[_ToolSet] = []

    def tools_of(self, declared: Any, warn: OnWarning) -> dict[str, Tool]:
        at = next((at for at, known in enumerate(self._read) if known.declared == declared), None)
        known = self._read.pop(at) if at is not None else _read_tool_set(declared)
        self._read = [known, *self._read[: _MOST_SETS - 1]]
        for text in known.warnings:
            warn(text)
        return known.tools


class _ToolSet(NamedTuple):
    declared: Any
    tools: dict[str, Tool]
    warnings: tuple[str, ...]


def _read_tool_set(declared: Any) -> _ToolSet:
    warnings: dict[str, None] = {}
    tools = _read_tools(declared, warnings.setdefault)
    # In the compact form, these are the tools that the reports of all conversations share.
    return _ToolSet(declared, {name: compact(tool) for name, tool in tools.items()}, tuple(warnings))


def read_conversation(
    record: Any,
    tool_sets: ToolSets,
    *,
    around: Sequence[Unplaced] = (),
    no_calls_in: CallFreeNames | None = None,
) -> ImportedConversation:
    """Parse a record in a built-in form: an object with messages, a bare array of messages, a logged request
    with its response, or a trace.

    ``around`` holds unplaced content that surrounds the record. For ``no_calls_in``, see
    ``parse_conversation``. Raise ``AuthorError`` (without a location) if the record has none of these forms.
    """
    logged = _find_messages(record)
    require_one_conversation(logged.messages)
    notes = dict.fromkeys((*_several_users_warnings(logged.messages), *logged.notes))
    fields = object_of(record)
    outer = (fields, *logged.requests)
    places = (*outer, *(object_at(each, key) for each in outer for key in _SETTINGS_KEYS))
    tools = tool_sets.tools_of(first_nonempty(_TOOL_KEYS, *places), notes.setdefault)
    logged = logged._replace(unplaced=(*logged.unplaced, *around))
    parsed = parse_conversation(
        logged, notes.setdefault, tools=tools, no_calls_in=no_calls_in or CallFreeNames()
    )
    if tools:
        tools = {**tools, **{name: Tool() for name in sorted(parsed.provider_tools - tools.keys())}}
    policies = dict.fromkeys(
        (parsed.policy, *(_text(each.get(key)) for each in places for key in _POLICY_KEYS))
    )
    return ImportedConversation(
        id=_id(fields) or _id(logged.response),
        agent=next(filter(None, map(_agent, places)), ""),
        parsed=parsed,
        tools=tools,
        policy="\n\n".join(filter(None, policies)),
        record=record,
        notes=tuple(notes),
        lost=logged.lost,
    )


def _several_users_warnings(messages: Sequence[Any]) -> Iterator[str]:
    users = users_in(messages)
    if len(users) > 1:
        names = ", ".join(users[:4]) + (", …" if len(users) > 4 else "")
        yield f"{len(users)} people write as the user ({names}) and are treated as one"


def _find_messages(record: Any) -> LoggedMessages:
    """Return the messages in a record, wherever the record stores them. Raise ``AuthorError`` if there are
    none."""
    if isinstance(record, list):
        if record and not any(map(is_message, record)):
            keys = ", ".join(_shown_keys(next(iter(objects_of(record)), {})))
            what = f"the list contains no messages{keys and f' (its first object has {keys})'}"
            raise AuthorError(
                Problem(what, f"give each message a `role` and `content`, or {IMPORTER_REMEDY}")
            )
        return LoggedMessages(record)
    if not isinstance(record, dict):
        what = f"expected a conversation, got {json.dumps(record)[:60]}"
        raise AuthorError(Problem(what, 'use {"id": …, "messages": […]}, or a list of messages'))
    logged = find_logged_messages(record) or find_trace_messages(record)
    if logged is None:
        raise AuthorError(Problem("the record contains no messages", _remedy(record)))
    return logged


def _text(value: Any, depth: int = _DEEPEST_TEXT) -> str:
    """Return the text of a value, which may be a string or consist of blocks, parts or contents."""
    if isinstance(value, str) or not depth:
        return value if isinstance(value, str) else ""
    if isinstance(value, list):
        return "\n\n".join(filter(None, (_text(each, depth - 1) for each in value)))
    if isinstance(value, dict):
        return next(filter(None, (_text(value.get(key), depth - 1) for key in _TEXTS)), "")
    return ""


_TEXTS = ("text", "content", "parts")


def _remedy(record: Mapping[str, Any]) -> str:
    if is_message(record) and not _MESSAGE_FIELDS.isdisjoint(record):
        return 'store the whole conversation, not a single message, as one record: {"messages": […]}'
    if found := next((key for key in MESSAGE_KEYS if key in record), None):
        others = ", ".join(key for key in _shown_keys(record) if key != found)
        other_keys = f" next to {others}" if others else ""
        there = f"which is {describe_json_type(record[found])}{other_keys}"
        return f"expected a list of messages in '{found}', {there}; otherwise, {IMPORTER_REMEDY}"
    keys = _shown_keys(record)
    lists = [key for key in keys if isinstance(record.get(key), list)]
    near = next((near for key in lists if (near := did_you_mean(key, MESSAGE_KEYS)).startswith("did")), "")
    there = f"found {', '.join(keys)}" if keys else "the object is empty"
    near = near and f"{near} otherwise, "
    return f"expected a list of messages in 'messages'; {there}; {near}{IMPORTER_REMEDY}"


def _shown_keys(record: Mapping[str, Any]) -> list[str]:
    return [str(key)[:40] for key in record][:_MOST_KEYS]


_MOST_KEYS = 12


_MESSAGE_FIELDS = frozenset(("role", "content"))


def _id(fields: Mapping[str, Any]) -> str:
    for key in _ID_KEYS:
        value = fields.get(key)
        if isinstance(value, str | int) and not isinstance(value, bool) and str(value).strip():
            return str(value).strip()[:_ID_LIMIT]
    return ""


def _agent(fields: Mapping[str, Any]) -> str:
    names = (
        first_text(fields, key) or first_text(object_at(fields, key), "name") for key in ("agent", "model")
    )
    return next(filter(None, map(str.strip, names)), "")[:_ID_LIMIT]


# ── tools ────────────────────────────────────────────────────────────────────────────────────────


def _read_tools(declared: Any, warn: OnWarning) -> dict[str, Tool]:
    if isinstance(declared, str):
        declared = parse_or(declared, MISSING)
        if declared is MISSING:  # no tool, but "auto", the name of a set, or a path
            warn(_UNREAD_TOOL)
    if isinstance(declared, dict):
        declared = [{"name": name, **object_of(each)} for name, each in declared.items()]
    tools: dict[str, Tool] = {}
    for schema in (schema for each in list_of(declared) for schema in _schemas(each)):
        name, tool = _read_tool(schema)
        if name and tool:
            tools[name] = tool
        else:
            warn(_UNREAD_TOOL)
    return tools


_UNREAD_TOOL = "a tool declaration could not be parsed and was ignored"


def _schemas(declared: Any) -> list[Any]:
    """Unwrap a tool declaration: OpenAI nests it under ``function`` or ``custom``, and Google stores a list
    under a separate key."""
    if isinstance(declared, dict):
        for key in ("functionDeclarations", "function_declarations"):
            if isinstance(declared.get(key), list):
                return list(declared[key])
        for key in ("function", "custom", "toolSpec"):
            if isinstance(declared.get(key), dict):
                return [declared[key]]
    return [declared]


def _read_tool(schema: Any) -> tuple[str, Tool | None]:
    if isinstance(schema, str):
        return schema, Tool()
    if not isinstance(schema, dict):
        return "", None
    kind = schema.get("type") if "parameters" not in schema else ""
    name = schema.get("name") or ("" if kind in _KINDS else kind)  # a provider's search tool has no name
    if not isinstance(name, str) or not name:
        return "", None
    text = schema.get("description")
    description = text if isinstance(text, str) else None
    marks = marks_from_hints(object_at(schema, "annotations"))  # from an MCP server
    fields = {"description": description, "parameters": _parameters(schema), **marks}
    return name, Tool.model_validate(fields)


def _parameters(schema: Mapping[str, Any]) -> Mapping[str, Any] | None:
    found = next((schema[key] for key in _PARAMETERS if isinstance(schema.get(key), dict)), None)
    if found is None:
        return None
    found = found["json"] if isinstance(found.get("json"), dict) else found
    return found if depth_of(found) <= MAX_DEPTH else None


_KINDS = ("function", "custom", "tool", "object")
_PARAMETERS = ("parameters", "input_schema", "inputSchema", "parameters_json_schema")
