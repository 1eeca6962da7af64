"""Converts OpenAI chat messages to steps, and turns to messages, including the quirks of real servers.

Parsing loses no evidence. Arguments that are not a JSON object are kept as ``raw_args``, ids are kept
unchanged (even if missing or reused), and results are paired with calls by position."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from functools import partial
from itertools import pairwise
from math import isfinite
from typing import Any, TypeVar

from pydantic_core import from_json

from agenteval.core.errors import AgentError
from agenteval.core.json_text import STRICT_DECODER, DuplicateKeyError
from agenteval.core.trajectory import Message, Step, ToolCall, ToolResult, Turn
from agenteval.messages.agent_names import agent_of, apply_handoffs, assign_agent, read_agent_name
from agenteval.messages.finish_reasons import find_refusal
from agenteval.messages.pairing import WaitingCalls
from agenteval.messages.reported_usage import USAGE_KEYS, attach_usage, usage_in

PART_TYPES = {"text", "output_text", "input_text", "refusal", "image", "image_url", "input_image", "audio",
          "input_audio", "file", "input_file", "document"}  # fmt: skip
_KNOWN_FIELDS = {"role", "content", "tool_calls", "function_call", "refusal", "type", "name", *USAGE_KEYS}


def to_chat_messages(
    turns: Iterable[Turn], is_excluded: Callable[[ToolCall], bool] = lambda _: False
) -> list[Message]:
    """Convert the conversation to chat messages in OpenAI's format, to be sent to an agent.

    The messages are valid for a strict server, with one result for each call. ``is_excluded`` returns true
    for a call that is not part of the messages between the agent and its user."""
    messages: list[Message] = []
    for turn in turns:
        messages.append({"role": "user", "content": turn.user})
        for step in turn.steps:
            calls = tuple(call for call in step.tool_calls if not is_excluded(call))
            if len(calls) < len(step.tool_calls):
                step = step.model_copy(update={"tool_calls": calls})
                if not (calls or step.text):
                    continue
            messages.extend(_step_messages(step, len(messages)))
    return messages


def _step_messages(step: Step, position: int) -> Iterable[Message]:
    if not step.tool_calls:
        yield {"role": "assistant", "content": step.text or "", **deepcopy(step.extra)}
        return
    ids = _unique_ids(step.tool_calls, position)
    calls = [
        {
            **deepcopy(call.extra),
            "id": call_id,
            "type": "function",
            # Servers refuse a request that echoes broken arguments.
            "function": {"name": call.name, "arguments": json.dumps(call.args or {}, ensure_ascii=False)},
        }
        for call, call_id in zip(step.tool_calls, ids, strict=True)
    ]
    yield {"role": "assistant", "content": step.text, "tool_calls": calls, **deepcopy(step.extra)}
    for call, call_id in zip(step.tool_calls, ids, strict=True):
        text = call.result.text if call.result else ""
        yield {"role": "tool", "tool_call_id": call_id, "content": text}


def _unique_ids(calls: Sequence[ToolCall], position: int) -> list[str]:
    """Return the ids of the calls, replacing ids that are missing or repeated in the message.

    New ids are deterministic."""
    ids: dict[str, None] = {}
    for index, call in enumerate(calls):
        call_id = call.id if call.id and call.id not in ids else f"call_{position}_{index}"
        while call_id in ids:
            call_id += "_"
        ids[call_id] = None
    return list(ids)


_SURROGATE = re.compile("[\ud800-\udfff]")


def replace_surrogates(text: str) -> str:
    """Return ``text`` with each lone surrogate replaced with U+FFFD, because lone surrogates cannot be stored
    in a file."""
    return _SURROGATE.sub("\ufffd", text)


def text_of(content: Any) -> str | None:
    """Return the text of a message's content, which is a string or a list with text parts."""
    if content is None:
        return None
    if isinstance(content, str):
        return replace_surrogates(content)
    if isinstance(content, Sequence) and not isinstance(content, bytes | bytearray):
        parts = []
        for part in content:
            if isinstance(part, str):
                parts.append(part)
            elif isinstance(part, Mapping) and part.get("type", "text") in ("text", "output_text"):
                parts.append(str(part.get("text") or ""))
        return replace_surrogates("".join(parts))
    raise AgentError(f"message content is {type(content).__name__}; expected a string", kind="protocol")


def parse_tool_result(content: Any) -> Any:
    """Return the value in a tool message's content: its text, or any other value as JSON.

    Agents that run their own tools store the returned value in the content."""
    if content is None or isinstance(content, str) or _are_parts(content):
        return text_of(content)
    try:
        return jsonable(content)
    except ValueError as error:
        return f"{type(content).__name__} that is not JSON: {error}"


def _are_parts(content: Any) -> bool:
    """Check whether the content is a list of content parts from a server, rather than a list that a tool
    returned."""
    if not isinstance(content, list | tuple):
        return False
    objects = [part for part in content if not isinstance(part, str)]
    return bool(objects) and all(isinstance(part, Mapping) and _is_part(part) for part in objects)


def _is_part(part: Mapping[str, Any]) -> bool:
    return part.get("type") in PART_TYPES if "type" in part else set(part) == {"text"}


def read_arguments(raw: Any, *, lenient: bool = False) -> tuple[dict[str, Any] | None, str | None]:
    """Parse the arguments of a tool call, and return them as ``(args, raw_args)``. If the arguments cannot be
    parsed, ``args`` is ``None`` and ``raw_args`` is their text.

    Missing arguments become an empty object, which a schema with required properties rejects. A key that
    occurs twice in an object at any depth makes the arguments unreadable, because the intended value is
    unknown. ``lenient`` (for recorded conversations) also accepts a Python dict literal, which no tool runner
    would accept in a live conversation; its text is kept as ``raw_args``."""
    if isinstance(raw, str):
        return _parse_arguments_text(raw, lenient=lenient) if raw else ({}, None)
    if isinstance(raw, Mapping):
        if text := _duplicate_key_text(raw):
            return None, text
        try:
            return jsonable(dict(raw)), None
        except ValueError as error:
            return None, f"{type(raw).__name__} that is not JSON: {error}"
    return ({}, None) if raw is None else (None, json.dumps(raw, ensure_ascii=False, default=str))


def _parse_arguments_text(raw: str, *, lenient: bool) -> tuple[dict[str, Any] | None, str | None]:
    try:
        value = _decode_json(raw)
    except DuplicateKeyError:
        return None, raw
    except (ValueError, RecursionError):
        value = _parse_python_literal(raw) if lenient else None
        return (value, raw) if isinstance(value, dict) else (None, raw)
    if value is None:
        return {}, None
    # A text cannot be nested deeper than its number of brackets.
    is_shallow = raw.count("{") + raw.count("[") < MAX_DEPTH or depth_of(value) <= MAX_DEPTH
    return (value, None) if isinstance(value, dict) and is_shallow else (None, raw)


def _decode_json(text: str) -> Any:
    try:
        value = from_json(text, allow_inf_nan=False)  # three times as fast; it rejects what is not strict
    except (ValueError, TypeError):
        return STRICT_DECODER.decode(replace_json_surrogates(text))
    # Each key has its own colon: if there are no more colons than keys, no key was repeated.
    if text.count(":") == _count_keys(value):
        return value
    return STRICT_DECODER.decode(replace_json_surrogates(text))


def _count_keys(value: Any) -> int:
    """Return the number of keys in a value, or -1 if the value contains an infinity.

    The fast parser converts 1e999 to infinity."""
    count, level = 0, [value]
    while level:
        item = level.pop()
        if isinstance(item, dict):
            count += len(item)
            level += item.values()
        elif isinstance(item, list):
            level += item
        elif isinstance(item, float) and not isfinite(item):
            return -1
    return count


class DuplicateKeyObject(dict[str, Any]):
    """A JSON object in which a key occurs twice. ``pairs`` contains all its items."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.pairs = pairs


def keep_duplicate_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object that consists of the given pairs. If a key is repeated, all pairs are kept.

    Used as the JSON parser's ``object_pairs_hook``, this function lets the caller decide how to treat a
    repeated key."""
    merged = dict(pairs)
    return merged if len(merged) == len(pairs) else DuplicateKeyObject(pairs)


def _duplicate_key_text(value: Any) -> str:
    """Return the original JSON of a value in which an object repeats a key, or an empty string if no key is
    repeated."""
    return _dump_with_duplicates(value) if _has_duplicate_keys(value) else ""


def _has_duplicate_keys(value: Any) -> bool:
    level, seen = [value], set()
    while level:
        item = level.pop()
        if isinstance(item, DuplicateKeyObject):
            return True
        if isinstance(item, dict | list) and id(item) not in seen:
            seen.add(id(item))  # a Python agent's value may contain itself
            level += item.values() if isinstance(item, dict) else item
    return False


def _dump_with_duplicates(value: Any) -> str:
    if isinstance(value, Mapping):
        pairs = value.pairs if isinstance(value, DuplicateKeyObject) else value.items()
        return (
            "{" + ", ".join(f"{json.dumps(key)}: {_dump_with_duplicates(item)}" for key, item in pairs) + "}"
        )
    if isinstance(value, list):
        return "[" + ", ".join(map(_dump_with_duplicates, value)) + "]"
    return json.dumps(value, ensure_ascii=False, default=str)


def describe_duplicate_key(raw_args: str) -> str:
    """Describe the error in arguments that repeat a key, or return an empty string if no key is repeated."""
    try:
        STRICT_DECODER.decode(replace_json_surrogates(raw_args))
    except DuplicateKeyError as twice:
        return str(twice)
    except (ValueError, RecursionError):
        pass
    return ""


def _parse_python_literal(text: str) -> Any:
    """Return the value of a Python literal that JSON can represent, or ``None`` for any other text."""
    import ast
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about odd literals, which are a log's, not code
            tree = ast.parse(text.strip(), mode="eval")
            is_clear = all(_has_unique_keys(node) for node in ast.walk(tree) if isinstance(node, ast.Dict))
            return jsonable(ast.literal_eval(tree), _refuse_value) if is_clear else None
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def _refuse_value(value: Any) -> Any:
    raise TypeError(f"{type(value).__name__} is not JSON")


def _has_unique_keys(node: Any) -> bool:
    keys = [getattr(key, "value", None) for key in node.keys]
    return len(set(keys)) == len(keys)


_ESCAPED_SURROGATE = re.compile(
    r"(\\\\)|\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])"
    r"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)


def replace_json_surrogates(text: str) -> str:
    """Return JSON in which escaped lone surrogates are replaced with U+FFFD."""
    if "\\ud" not in text and "\\uD" not in text:
        return text
    return _ESCAPED_SURROGATE.sub(lambda found: found[1] or "\\ufffd", text)


MAX_DEPTH = 100
"""The maximum nesting depth of a value. A journal cannot store values that are nested more deeply."""


def jsonable(value: Any, text_of: Callable[[Any], str] = str) -> Any:
    """Convert ``value`` to JSON-serializable data.

    Models and dataclasses become objects, and sets become lists. ``text_of`` converts all other values, such
    as dates, or raises ``TypeError``. Raise ``ValueError`` for values that JSON cannot represent: NaN,
    unusual keys, and infinite or very deep nesting."""
    default = partial(_json_default, text_of=text_of)
    try:
        parsed = json.loads(replace_json_surrogates(json.dumps(value, default=default, allow_nan=False)))
    except (TypeError, RecursionError) as error:
        raise ValueError(str(error) or "nested too deeply") from error
    if depth_of(parsed) > MAX_DEPTH:
        raise ValueError("nested too deeply")
    return parsed


def depth_of(value: Any) -> int:
    """Return the nesting depth of lists and mappings, counting at most one level beyond ``MAX_DEPTH``."""
    depth, level = 0, [value]
    while level and depth <= MAX_DEPTH:
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                below += item.values()
            elif isinstance(item, list):
                below += item
        level = below
        depth += 1
    return depth


def drop_unstorable(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``fields`` without fields that a journal cannot store."""
    kept = {}
    for key, value in fields.items():
        try:
            kept[str(key)] = jsonable(value)
        except ValueError:
            continue
    return kept


def to_storable(value: Any) -> Any:
    """Return ``value`` in the form in which a journal stores it, or its ``repr`` if it cannot be stored."""
    return drop_unstorable({"value": value}).get("value", repr(value))


def _json_default(value: Any, text_of: Callable[[Any], str]) -> Any:
    from dataclasses import asdict, is_dataclass

    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, set | frozenset):
        return sorted(value, key=str)
    return text_of(value)


def require_tool_name(name: Any, call: Callable[[], str]) -> str:
    """Return the name of the called tool. Raise ``AgentError`` for a ``call`` without a name."""
    if not isinstance(name, str) or not name.strip():
        raise AgentError(f"a tool call has no name: {call()[:200]}", kind="protocol")
    return name


OPENAI_ARGUMENT_KEYS = ("arguments", "args", "input")
"""Keys for the arguments in a call that has OpenAI's format or a flat format. The first key that is present
is used."""
ARGUMENTS_UNKNOWN = "arguments_unknown"
"""Agenteval's mark for a call whose arguments are unknown."""
ATTEMPTED = "attempted"
"""Agenteval's mark for a call that was not executed because it was denied or is waiting for approval."""
APPROVED = "approved"
"""Agenteval's mark for a call that a person approved (human in the loop)."""


def read_tool_call(raw: Any, *, observed: bool = False) -> ToolCall:
    """Parse a tool call (function call) in OpenAI's format or in a flat format (``{name, args | arguments |
    input, id}``)."""
    if isinstance(raw, ToolCall):
        return raw.model_copy(deep=True)
    if hasattr(raw, "model_dump"):
        raw = raw.model_dump(exclude_none=True)
    if not isinstance(raw, Mapping):
        raise AgentError(f"a tool call is {type(raw).__name__}; expected an object", kind="protocol")
    function = raw.get("function")
    inner: Mapping[str, Any] = function if isinstance(function, Mapping) else raw
    name = inner.get("name")
    name = require_tool_name(name, lambda: json.dumps(raw, default=str))
    arguments = next((inner[key] for key in OPENAI_ARGUMENT_KEYS if key in inner), None)
    args, raw_args = read_arguments(arguments)
    if raw.get(ARGUMENTS_UNKNOWN) is True:
        args, raw_args = None, None
    known = {
        *("id", "type", "function", "name", *OPENAI_ARGUMENT_KEYS, "index", "agent"),
        *(ARGUMENTS_UNKNOWN, ATTEMPTED, APPROVED),
    }
    return ToolCall(
        name=name,
        args=args,
        raw_args=raw_args,
        id=str(raw.get("id") or ""),
        observed=observed,
        extra=drop_unstorable({key: value for key, value in raw.items() if key not in known}),
        agent=read_agent_name(raw.get("agent")),
        attempted=raw.get(ATTEMPTED) is True,
        approved=raw.get(APPROVED) is True,
    )


def validate_tool_calls(raw: Any) -> tuple[Any, ...]:
    """Return the raw tool calls in a message. Raise ``AgentError`` if they are not in a list."""
    if raw is None:
        return ()
    if not isinstance(raw, Sequence) or isinstance(raw, str | bytes):
        raise AgentError(f"`tool_calls` is {type(raw).__name__}; expected a list", kind="protocol")
    return sort_by_index(raw)


_Item = TypeVar("_Item")


def sort_by_index(
    calls: Sequence[_Item], index_of: Callable[[_Item], Any] | None = None
) -> tuple[_Item, ...]:
    """Return the calls in one reply, sorted by ``index``.

    A call without an index stays after the preceding call. Calls with the same index keep their order,
    because some servers give each call the index 0."""
    index_of = index_of or (lambda call: call.get("index") if isinstance(call, Mapping) else None)
    keys, last = [], 0
    for call in calls:
        index = index_of(call)
        last = index if isinstance(index, int) and not isinstance(index, bool) else last
        keys.append(last)
    return tuple(calls[at] for at in sorted(range(len(calls)), key=keys.__getitem__))


def parse_steps(messages: Sequence[Message]) -> tuple[Step, ...]:
    """Parse the messages that an agent reports for a turn. Return one step for each assistant message, and
    skip messages with other roles."""
    steps: list[Step] = []
    calls: list[list[ToolCall]] = []
    waiting = WaitingCalls[int]()
    starts = [0]
    for message in messages:
        if message["role"] == "assistant":
            step = parse_step(message, observed=True)
            waiting.add(len(steps), _pending_calls(step))
            steps.append(step)
            calls.append(list(step.tool_calls))
        elif message["role"] == "user":
            starts.append(len(steps))  # which agent the user then addresses is unknown
        elif message["role"] == "tool" and (found := waiting.take(*_answered_call(message))):
            number, at = found
            update = {"result": _parse_result(message), "observed": True}
            calls[number][at] = calls[number][at].model_copy(update=update)
    done = [
        step.model_copy(update={"tool_calls": tuple(step_calls)}) if step_calls else step
        for step, step_calls in zip(steps, calls, strict=True)
    ]
    parts = (done[start:end] for start, end in pairwise([*starts, len(done)]))
    return tuple(step for part in parts for step in apply_handoffs(part))


def _pending_calls(step: Step) -> dict[int, tuple[str, Any]]:
    calls = enumerate(step.tool_calls)
    return {at: (call.id, call.name) for at, call in calls if call.result is None}


def _answered_call(message: Mapping[str, Any]) -> tuple[str, Any]:
    """Return the id and the name of the call to which a tool message responds."""
    return str(message.get("tool_call_id") or ""), message.get("name")


def _parse_result(message: Mapping[str, Any]) -> ToolResult:
    is_error = message.get("status") == "error"
    return ToolResult(value=parse_tool_result(message.get("content")), is_error=is_error)


def collect_tool_calls(message: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the raw tool calls in a message.

    The legacy ``function_call`` is included unless it repeats one of the tool calls."""
    calls, legacy = validate_tool_calls(message.get("tool_calls")), message.get("function_call")
    if not legacy or any(_is_same_call(call, legacy) for call in calls):
        return calls
    return (*calls, {"type": "function", "function": legacy} if isinstance(legacy, Mapping) else legacy)


def _is_same_call(call: Any, legacy: Any) -> bool:
    function = call.get("function", call) if isinstance(call, Mapping) else call
    if not isinstance(function, Mapping) or not isinstance(legacy, Mapping):
        return False
    current, older = (read_arguments(each.get("arguments"), lenient=True) for each in (function, legacy))
    return function.get("name") == legacy.get("name") and current == older


def parse_step(message: Mapping[str, Any], *, observed: bool = False) -> Step:
    """Parse one assistant message as a step. Its calls have no results yet."""
    calls = collect_tool_calls(message)
    text = text_of(message.get("content"))
    if not text and (refused := find_refusal(message) or message.get("refusal")):
        text = str(refused)
    step = Step(
        text=text,
        tool_calls=tuple(read_tool_call(call, observed=observed) for call in calls),
        extra=drop_unstorable({key: value for key, value in message.items() if key not in _KNOWN_FIELDS}),
    )
    return attach_usage(assign_agent(step, agent_of(message)), usage_in(message))
