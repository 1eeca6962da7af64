"""One recorded message, in any of the shapes that logs have, as what somebody said, called or got back.

Known are OpenAI's chat messages and response items, Anthropic's and Google's content blocks, LangChain's
messages and ShareGPT's pairs. What is not known is skipped and told, never guessed at.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias, cast

from agenteval.chat import MAX_DEPTH, depth_of, read_arguments

Role: TypeAlias = Literal["user", "assistant", "tool", "system"]
Tell: TypeAlias = Callable[[str], None]
"""Takes one sentence about something that was not read as it stands."""

_ROLES: dict[str, Role] = {
    "user": "user",
    "human": "user",
    "customer": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "gpt": "assistant",
    "bot": "assistant",
    "model": "assistant",
    "agent": "assistant",
    "chatgpt": "assistant",
    "tool": "tool",
    "function": "tool",
    "observation": "tool",
    "tool_response": "tool",
    "function_response": "tool",
    "ipython": "tool",
    "system": "system",
    "developer": "system",
}
_CALL_ITEMS = frozenset(("function_call", "tool_call", "custom_tool_call"))
_RESULT_ITEMS = frozenset(("function_call_output", "tool_call_output", "custom_tool_call_output"))
_SILENT = frozenset(("reasoning", "thinking", "redacted_thinking", "item_reference", "step-start"))
_TEXTS = frozenset(("text", "input_text", "output_text", "summary_text"))
_MESSAGE_CLASSES = {"Human": "human", "AI": "ai", "Tool": "tool", "Function": "function", "System": "system"}


class Call(NamedTuple):
    """A tool call. ``args`` is ``None`` where ``raw_args`` could not be read as an object."""

    name: str
    args: dict[str, Any] | None
    raw_args: str | None
    id: str


class Said(NamedTuple):
    """A message in its plain form. ``value``, ``id`` and ``name`` are of a tool's result."""

    role: Role
    text: str | None = None
    calls: tuple[Call, ...] = ()
    value: Any = None
    id: str = ""
    name: str = ""
    is_error: bool = False
    usage: Any = None


def said_in(messages: Iterable[Any], tell: Tell) -> Iterator[Said]:
    """What was said, in order."""
    for message in messages:
        if isinstance(message, dict):
            if plain := _plain(message):
                yield plain
            else:
                yield from _said(message, tell)
        else:
            tell(f"a message that is {_kind(message)} and no object was skipped")


def _plain(message: dict[str, Any]) -> Said | None:
    """OpenAI's messages of one text, which is nearly all that logs hold: without the detour that the others
    take."""
    role, content = message.get("role"), message.get("content")
    if not isinstance(content, str):
        return None
    if role == "assistant" and content and not any(map(message.get, _BESIDE_TEXT)):
        return Said("assistant", content, usage=message.get("usage") or message.get("usage_metadata"))
    if role == "user" or role == "system":
        return Said(role, content)
    return _result(message, content) if role == "tool" else None


_BESIDE_TEXT = ("tool_calls", "function_call", "invalid_tool_calls", "additional_kwargs")


def is_message(value: Any) -> bool:
    """Whether a value looks like one message, and not like a whole conversation."""
    return isinstance(value, dict) and (
        any(isinstance(value.get(key), str) for key in ("role", "from", "type", "speaker", "sender"))
        or "kwargs" in value
    )


def is_agents(value: Any) -> bool:
    """Whether a message is one of the agent's."""
    if not isinstance(value, dict):
        return False
    role = value.get("role") or _written_role(_unwrapped(value))
    return _ROLES.get(str(role).lower()) == "assistant"


def _said(message: dict[str, Any], tell: Tell) -> Iterator[Said]:
    role = message.get("role")
    if role is None:
        message = _unwrapped(message)
        kind = _word(message, "type")
        if kind in _CALL_ITEMS:
            yield Said("assistant", calls=tuple(_calls([message], tell)))
            return
        if kind in _RESULT_ITEMS:
            yield _result(message, message.get("output"))
            return
        if kind in _SILENT:
            return
        role = _written_role(message)
    name = str(role).lower()
    known = _ROLES.get(name)
    if known is None and name in _CALL_ITEMS:
        yield Said("assistant", calls=tuple(_calls(_listed(_content(message)), tell)))
    elif known is None:
        tell(f"a message with the unknown role '{str(role)[:40]}' was skipped")
    elif known == "tool":
        yield from _tool_message(message)
    else:
        yield from _spoken(known, message, tell)


def _unwrapped(message: dict[str, Any]) -> dict[str, Any]:
    """LangChain writes the fields of a message below ``data`` or ``kwargs``."""
    inner = message.get("data")
    if isinstance(inner, dict) and "content" in inner:
        return {**inner, "type": message.get("type")}
    inner = message.get("kwargs")
    if isinstance(inner, dict) and "content" in inner:
        path = message.get("id")
        name = str(path[-1] if isinstance(path, list) and path else path or "")
        kind = next((k for start, k in _MESSAGE_CLASSES.items() if name.startswith(start)), name)
        return {**inner, "type": kind}
    return message


def _written_role(message: Mapping[str, Any]) -> Any:
    for key in ("from", "speaker", "sender", "author", "type"):
        value = message.get(key)
        if isinstance(value, dict):
            value = value.get("role")
        if value is not None:
            return value
    return None


def _content(message: Mapping[str, Any]) -> Any:
    for key in ("content", "value", "parts", "text", "message"):
        if key in message:
            return message[key]
    return None


# ── text, calls and results of a message ─────────────────────────────────────────────────────────


def _spoken(role: Role, message: dict[str, Any], tell: Tell) -> Iterator[Said]:
    content = _content(message)
    calls = tuple(_calls(_message_calls(message), tell)) if role == "assistant" else ()
    if content is None or isinstance(content, str):
        text = content
        refusal = message.get("refusal")
        if not text and isinstance(refusal, str):
            text = refusal
        yield Said(role, text, calls, usage=message.get("usage") or message.get("usage_metadata"))
        return
    said = list(_parts(role, content if isinstance(content, list) else [content], tell))
    if not said:
        said = [Said(role, "" if role == "user" else None)]
    if calls and not any(each.calls for each in said):  # LangChain writes a call in both places
        last = max((n for n, each in enumerate(said) if each.role == role), default=None)
        said = [*said, Said(role, calls=calls)] if last is None else _with_calls(said, last, calls)
    yield from said


def _with_calls(said: list[Said], at: int, calls: tuple[Call, ...]) -> list[Said]:
    return [each._replace(calls=calls) if n == at else each for n, each in enumerate(said)]


def _parts(role: Role, parts: Iterable[Any], tell: Tell) -> Iterator[Said]:
    """Blocks of content: texts and calls that stand together are one reply, up to a result."""
    texts: list[str] = []
    calls: list[Call] = []
    for part in parts:
        result = _result_part(part)
        if result is not None:
            if calls or "".join(texts).strip():
                yield Said(role, "".join(texts), tuple(calls))
            texts, calls = [], []
            yield result
        elif (call := _call_part(part)) is not None:
            calls += _calls([call], tell)
        else:
            texts.append(_text_part(part))
    if calls or texts:
        yield Said(role, "".join(texts), tuple(calls))


def _text_part(part: Any) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        return "" if part is None else json.dumps(part, ensure_ascii=False)
    kind = _word(part, "type")
    if kind in _SILENT:
        return ""
    text = part.get("text", part.get("refusal"))
    if isinstance(text, dict):  # the Assistants API: {"text": {"value": …}}
        text = text.get("value")
    if isinstance(text, str):
        return text
    if not part:
        return ""
    # A picture or a file: that something was there is part of what was said.
    return f"[{kind}]" if kind else json.dumps(part, ensure_ascii=False)


def _call_part(part: Any) -> dict[str, Any] | None:
    if not isinstance(part, dict):
        return None
    kind = _word(part, "type")
    if kind.endswith("tool_use") or kind in ("tool-call", *_CALL_ITEMS):
        return part
    for key in ("functionCall", "function_call", "toolUse"):
        if isinstance(part.get(key), dict):
            return cast(dict[str, Any], part[key])
    return None


def _result_part(part: Any) -> Said | None:
    if not isinstance(part, dict):
        return None
    kind = _word(part, "type")
    if kind.endswith("tool_result") or kind == "tool-result":
        return _result(part, part.get("content", part.get("output", part.get("result"))))
    for key in ("functionResponse", "function_response", "toolResult"):
        if isinstance(inner := part.get(key), dict):
            return _result(inner, inner.get("response", inner.get("content")))
    return None


def _tool_message(message: dict[str, Any]) -> Iterator[Said]:
    content = _content(message)
    if isinstance(content, list):
        results = [result for part in content if (result := _result_part(part))]
        if results:
            yield from results
            return
    yield _result(message, content)


def _result(message: Mapping[str, Any], content: Any) -> Said:
    identity = next((message[key] for key in _RESULT_IDS if message.get(key)), "")
    name = message.get("name") or message.get("toolName") or ""
    failed = message.get("is_error") is True or message.get("status") == "error"
    value = _result_value(content)
    return Said("tool", value=value, id=str(identity), name=str(name), is_error=failed)


_RESULT_IDS = ("tool_call_id", "tool_use_id", "call_id", "toolCallId", "toolUseId")


def _result_value(content: Any) -> Any:
    """Text parts as one text; any other JSON value as it is."""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and content and all(map(_is_text_part, content)):
        return "".join(map(_text_part, content))
    return content if depth_of(content) <= MAX_DEPTH else json.dumps(content, ensure_ascii=False)


def _is_text_part(part: Any) -> bool:
    return isinstance(part, dict) and _word(part, "type") in _TEXTS and isinstance(part.get("text"), str)


# ── tool calls ───────────────────────────────────────────────────────────────────────────────────


def _message_calls(message: Mapping[str, Any]) -> list[Any]:
    found = _listed(message.get("tool_calls"))
    if not found:
        more = message.get("additional_kwargs")
        found = _listed(more.get("tool_calls")) if isinstance(more, dict) else []
    found += _listed(message.get("invalid_tool_calls"))
    return found + _listed(message.get("function_call"))


def _listed(value: Any) -> list[Any]:
    """A list as it is, one object as a list of one, and either of them written as JSON."""
    if not value:
        return []
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return [value]
    return list(value) if isinstance(value, list) else [value]


def _calls(raw: Iterable[Any], tell: Tell) -> Iterator[Call]:
    for each in raw:
        call = _call(each)
        if call is None:
            tell("a tool call without a name was left out")
        else:
            yield call


def _call(raw: Any) -> Call | None:
    if not isinstance(raw, dict):
        return None
    inner = raw.get("function")
    if not isinstance(inner, dict):
        inner = raw
    name = inner.get("name") or inner.get("toolName") or inner.get("tool_name") or raw.get("function")
    if not isinstance(name, str) or not name:
        return None
    given = next((inner[key] for key in _ARGUMENTS if key in inner), None)
    if isinstance(given, dict):
        args, raw_args = (given, None) if depth_of(given) <= MAX_DEPTH else (None, json.dumps(given))
    else:
        args, raw_args = read_arguments(given, lenient=True)
    identity = next((raw[key] for key in _CALL_IDS if raw.get(key)), "")
    return Call(name, args, raw_args, str(identity))


_ARGUMENTS = ("arguments", "args", "input", "parameters", "action_input")
_CALL_IDS = ("call_id", "id", "toolCallId", "toolUseId", "tool_call_id")


def _word(value: Mapping[str, Any], key: str) -> str:
    found = value.get(key)
    return found if isinstance(found, str) else ""


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    names = {str: "a text", bool: "a truth value", int: "a number", float: "a number", list: "a list"}
    return names.get(type(value), type(value).__name__)
