"""One record of a log as a conversation: its messages, its tools, its name. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agenteval.chat import MAX_DEPTH, depth_of
from agenteval.errors import AuthorError, Problem, did_you_mean
from agenteval.recorded.messages import Tell, is_message
from agenteval.recorded.turns import Talk, talk_of
from agenteval.scenario import Tool

MESSAGES = ("messages", "conversation", "conversations", "trajectory", "traj", "history", "chat", "dialogue",
            "dialog", "turns", "transcript", "items", "contents", "input")  # fmt: skip
"""Where the messages of a record may be; the first that holds a list counts."""
_IDS = ("id", "conversation_id", "session_id", "thread_id", "trace_id", "uuid")
_TOOLS = ("tools", "functions", "available_tools")
_POLICIES = ("system", "system_prompt", "instructions", "policy")
_ID_LIMIT = 200


@dataclass(frozen=True, slots=True)
class Conversation:
    """A record that could be read. ``id`` and ``agent`` are empty where it names none; ``record`` is the
    whole of it, for dotted paths; ``notes`` tell what was not read as it stands."""

    id: str
    agent: str
    talk: Talk
    tools: Mapping[str, Tool]
    policy: str
    record: Any
    notes: tuple[str, ...] = ()


class ToolSets:
    """Tools by their declarations: a log repeats them with each conversation, and they are read once."""

    def __init__(self) -> None:
        self._declared: Any = None
        self._tools: dict[str, Tool] = {}
        self._told: tuple[str, ...] = ()

    def tools_of(self, declared: Any, tell: Tell) -> dict[str, Tool]:
        if declared != self._declared:
            told: dict[str, None] = {}
            self._tools = _tools(declared, lambda text: told.setdefault(text))
            self._declared, self._told = declared, tuple(told)
        for text in self._told:
            tell(text)
        return self._tools


def read_conversation(record: Any, tool_sets: ToolSets) -> Conversation:
    """A record as a conversation: an object with messages, or a bare array of messages.

    Raises ``AuthorError`` (without a place) for a record that is neither.
    """
    notes: dict[str, None] = {}

    def tell(text: str) -> None:
        notes.setdefault(text)

    fields = record if isinstance(record, dict) else {}
    talk = talk_of(messages_of(record), tell)
    said = (fields.get(key) for key in _POLICIES)
    policies = [talk.policy, *(text for text in said if isinstance(text, str) and text != talk.policy)]
    return Conversation(
        id=_id(fields),
        agent=_agent(fields),
        talk=talk,
        tools=tool_sets.tools_of(next((fields[k] for k in _TOOLS if fields.get(k)), None), tell),
        policy="\n\n".join(filter(None, policies)),
        record=record,
        notes=tuple(notes),
    )


def messages_of(record: Any) -> list[Any]:
    """The messages of a record, wherever it keeps them. Raises ``AuthorError``."""
    if isinstance(record, list):
        if record and not any(map(is_message, record)):
            raise AuthorError(Problem("a list without any message", "each message needs a role and content"))
        return record
    if not isinstance(record, dict):
        what = f"expected a conversation, got {json.dumps(record)[:60]}"
        raise AuthorError(Problem(what, 'write {"id": …, "messages": […]}, or a list of messages'))
    for key in MESSAGES:
        found = _list_in(record.get(key))
        if found is not None:
            return found + _reply(record, key)
    raise AuthorError(Problem("no messages", _remedy(record)))


def _reply(record: dict[str, Any], key: str) -> list[Any]:
    """The answer to logged requests stands apart: ``output`` of responses, ``choices`` of completions."""
    if key == "input" and isinstance(record.get("output"), list):
        return list(record["output"])
    response = record.get("response")
    choices = record.get("choices") or (response.get("choices") if isinstance(response, dict) else None)
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, dict) else None
    return [message] if isinstance(message, dict) else []


def _list_in(value: Any) -> list[Any] | None:
    """A list, one written as JSON text, or one in an object of its own."""
    if isinstance(value, str) and value.lstrip().startswith(("[", "{")):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    if isinstance(value, dict):
        value = next((value[key] for key in MESSAGES if isinstance(value.get(key), list)), None)
    return value if isinstance(value, list) else None


def _remedy(record: Mapping[str, Any]) -> str:
    keys = [str(key)[:40] for key in record][:12]
    near = next((near for key in keys if (near := did_you_mean(key, MESSAGES)).startswith("did")), "")
    there = f"there is {', '.join(keys)}" if keys else "the object is empty"
    return f"expected a list of them in 'messages'; {there}" + (f"; {near}" if near else "")


def _id(fields: Mapping[str, Any]) -> str:
    for key in _IDS:
        value = fields.get(key)
        if isinstance(value, str | int) and not isinstance(value, bool) and str(value).strip():
            return str(value).strip()[:_ID_LIMIT]
    return ""


def _agent(fields: Mapping[str, Any]) -> str:
    for key in ("agent", "model"):
        value = fields.get(key)
        if isinstance(value, dict):
            value = value.get("name")
        if isinstance(value, str) and value.strip():
            return value.strip()[:_ID_LIMIT]
    return ""


# ── tools ────────────────────────────────────────────────────────────────────────────────────────


def _tools(declared: Any, tell: Tell) -> dict[str, Tool]:
    if isinstance(declared, str):
        try:
            declared = json.loads(declared)
        except (ValueError, RecursionError):
            # A text is a name of nothing: "auto", a name of a set, a path.
            tell("a declaration of a tool could not be read and is left out")
    if isinstance(declared, dict):
        declared = [{"name": k, **(v if isinstance(v, dict) else {})} for k, v in declared.items()]
    tools: dict[str, Tool] = {}
    for each in declared if isinstance(declared, list) else ():
        for schema in _schemas(each):
            name, tool = _tool(schema)
            if name and tool:
                tools[name] = tool
            else:
                tell("a declaration of a tool could not be read and is left out")
    return tools


def _schemas(declared: Any) -> list[Any]:
    """OpenAI nests a declaration below ``function``, Google a list of them below a key of its own."""
    if isinstance(declared, dict):
        for key in ("functionDeclarations", "function_declarations"):
            if isinstance(declared.get(key), list):
                return list(declared[key])
        if isinstance(declared.get("function"), dict):
            return [declared["function"]]
        if isinstance(declared.get("toolSpec"), dict):
            return [declared["toolSpec"]]
    return [declared]


def _tool(schema: Any) -> tuple[str, Tool | None]:
    if isinstance(schema, str):
        return schema, Tool()
    if not isinstance(schema, dict):
        return "", None
    name = schema.get("name") or (schema.get("type") if "parameters" not in schema else "")
    if not isinstance(name, str) or not name:
        return "", None
    parameters = next((schema[key] for key in _PARAMETERS if isinstance(schema.get(key), dict)), None)
    if parameters is not None and isinstance(parameters.get("json"), dict):
        parameters = parameters["json"]
    if parameters is not None and depth_of(parameters) > MAX_DEPTH:
        parameters = None
    text = schema.get("description")
    description = text if isinstance(text, str) else None
    return name, Tool(description=description, parameters=parameters)


_PARAMETERS = ("parameters", "input_schema", "inputSchema", "parameters_json_schema")
