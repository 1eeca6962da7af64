"""Find the parts of an answer, as specified by the key ``reply``, in a JSON reply of any shape or in a stream
of server-sent events (SSE).

A path that matches nothing is an error; otherwise, an agent with a misspelled path would look like one that
made no calls. A path that ends in ``?`` is optional and may match nothing. An answer needs no text if the
reply requests tool calls."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

from agenteval.adapters.agents.http_api import parse_reply_json, require_storable
from agenteval.adapters.transport.client import HttpReply
from agenteval.core.errors import AgentError
from agenteval.core.json_text import as_text, parse_or, to_json
from agenteval.core.protocols import ReadReply
from agenteval.core.trajectory import Message
from agenteval.core.value import Text, Value
from agenteval.messages import chat
from agenteval.messages import message_adapters as foreign
from agenteval.messages.agent_reply import parse_agent_answers, require_complete
from agenteval.messages.completion import ToolCallAssembler, UnreadableResponseError
from agenteval.messages.finish_reasons import last_assistant_message
from agenteval.messages.record_paths import MISSING, find_value
from agenteval.messages.sse import Payload, ends_stream
from agenteval.messages.unplaced_entries import is_signal, make_unplaced

_WEB_PAGE = re.compile(r"\s*<(?:!doctype\s+html|html)\b", re.IGNORECASE)
WHOLE_REPLY = "."
"""The path of the complete reply, which may be plain text."""
_JSON_LINES = ("ndjson", "jsonl", "json-lines", "jsonlines", "stream+json", "json-stream")
_EVENT = "event"
_KINDS = ("type", "event", "kind", "object", "status", "state", "done", "final", "is_final", "partial")
_NAMES = ("name", "tool", "tool_name", "toolName")
_ARGUMENTS = ("arguments", "args", "input", "parameters", "params")
_RESULTS = ("result", "output", "response", "observation")
_WHERE_NONE = "if replies without any omit it"


class SessionPlace(Value):
    """The location of a server's session ID outside the body."""

    header: Text | None = None
    """Name of the header that contains the session ID."""
    cookie: Text | None = None
    """Name of the cookie that contains the session ID."""


class ReplyPaths(Value):
    """Dotted paths into a reply. ``delta`` can be combined with ``text``, which is then the path of a
    stream's complete text."""

    text: Text | None = None
    """Path of the answer's text."""
    delta: Text | None = None
    """Path of a text fragment (delta) in a stream."""
    tool_calls: Text | None = None
    """Path of the tool calls that the scenario answers."""
    messages: Text | None = None
    """Path of the messages, for an agent that executes its own tools."""
    session: Text | SessionPlace | None = None
    """Path of the session ID, or the name of the header or cookie that contains it."""
    usage: Text | None = None
    """Path of the token usage."""
    error: Text | dict[str, Any] | None = None
    """How to recognize a failure: the path of a value that is then true, or paths with expected values."""
    done: Text | dict[str, Any] | None = None
    """How to recognize a stream's last event: the path of a value that is then true, or paths with expected
    values."""


class ReplyDocument(NamedTuple):
    """A parsed reply: a single value, or the events of a stream."""

    events: tuple[Any, ...]
    is_stream: bool = False


def parse_document(reply: HttpReply, paths: ReplyPaths, *, streaming: bool) -> ReplyDocument:
    """Parse the body of a reply. Raise ``UnreadableResponseError`` if the body cannot be parsed."""
    if reply.events is not None:
        return _events(reply.events, paths)
    kind = reply.headers.get("content-type", "").lower()
    if streaming or any(name in kind for name in _JSON_LINES):
        return _lines(reply.text, paths)
    return ReplyDocument((_parse_value(reply.text, paths),))


def _is_text(paths: ReplyPaths) -> bool:
    return WHOLE_REPLY in (paths.text, paths.delta)


def _parse_value(text: str, paths: ReplyPaths) -> Any:
    if not _is_text(paths):
        return parse_reply_json(text)
    try:
        value = parse_reply_json(text)
    except UnreadableResponseError:
        if _WEB_PAGE.match(text):
            raise
        value = require_storable(str(text))
    return value if isinstance(value, str | Mapping | list) else text


def _events(payloads: Sequence[str], paths: ReplyPaths) -> ReplyDocument:
    """Parse the events of a stream. An event's name is stored under the key ``event``, unless the event
    already contains that key."""
    contents = [payload for payload in payloads if not ends_stream(payload)]
    if _is_text(paths):
        return ReplyDocument(
            tuple(_with_event_name(_parse_value(each, paths), each) for each in contents), is_stream=True
        )
    return ReplyDocument(
        tuple(_event(each) for each in contents if each.strip() or _event_name(each)), is_stream=True
    )


def _event(payload: str) -> Any:
    if not payload.strip():
        return {_EVENT: _event_name(payload)}
    try:
        return _with_event_name(parse_reply_json(payload), payload)
    except UnreadableResponseError as error:
        raise UnreadableResponseError("is a stream with an event that is not valid JSON", payload) from error


def _with_event_name(value: Any, payload: str) -> Any:
    name = _event_name(payload)
    if isinstance(value, str):
        return Payload(value, name)
    return {_EVENT: name, **value} if name and isinstance(value, Mapping) else value


def _event_name(payload: str) -> str:
    return payload.event if isinstance(payload, Payload) else ""


def _lines(text: str, paths: ReplyPaths) -> ReplyDocument:
    if isinstance(parse_or(text), Mapping | list):
        return ReplyDocument((parse_reply_json(text),), is_stream=True)
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        raise UnreadableResponseError("is empty")
    return _events(lines, paths)


# ── the parts ────────────────────────────────────────────────────────────────────────────────────


def extract_session(
    reply: HttpReply, document: ReplyDocument, paths: ReplyPaths, *, known: str | None
) -> str | None:
    """Return the server's session ID (conversation ID). If the ID is already ``known``, the reply need
    not contain it."""
    where = paths.session
    if where is None:
        return known
    if isinstance(where, SessionPlace):
        found = _in_headers(reply.headers, where)
        if not found and known is None:
            name = f"header '{where.header}'" if where.header else f"cookie '{where.cookie}'"
            raise UnreadableResponseError(
                f"has no {name} for the session; its headers are", ", ".join(reply.headers)
            )
        return found or known
    values = [value for value in _values_at(document, where) if value not in (None, "")]
    if not values:
        if known is None and not where.endswith("?"):
            raise _missing_path_error("session", where, document, "if only some replies have it")
        return known
    if isinstance(values[-1], Mapping | list):
        raise UnreadableResponseError(f"has no text at `reply.session: {where}`", json.dumps(values[-1]))
    return values[-1] if isinstance(values[-1], str) else json.dumps(values[-1])


def _in_headers(headers: Mapping[str, str], where: SessionPlace) -> str | None:
    if where.header:
        return headers.get(where.header.lower())
    name = re.escape(where.cookie or "")
    found = re.search(rf"(?:^|[,;]\s*){name}=([^;,]*)", headers.get("set-cookie", ""))
    return found[1].strip('"') if found else None


def extract_reply_answer(document: ReplyDocument, paths: ReplyPaths) -> ReadReply:
    """Return the answer in a reply. Raise ``UnreadableResponseError`` or ``AgentError`` if the reply is not a
    complete answer."""
    if not document.events:
        raise UnreadableResponseError("is an empty stream")
    refuse_errors(document, paths)
    if (
        document.is_stream
        and paths.done is not None
        and not any(_is_marked(event, paths.done) for event in document.events)
    ):
        what = f"was cut off: no event matches `reply.done: {as_text(paths.done)}`"
        raise UnreadableResponseError(what, to_json(document.events[-1]))
    _refuse_cut(document, paths)
    calls = list(_calls(document, paths))
    messages = _messages(document, paths)
    return ReadReply(
        text=_text(
            document, paths, optional=bool(calls or _has_content(last_assistant_message(messages), paths))
        ),
        tool_calls=calls,
        messages=messages,
        usage=_usage(document, paths),
        unplaced=tuple(_unread_events(document, paths)),
    )


def _unread_events(document: ReplyDocument, paths: ReplyPaths) -> Iterator[str]:
    """Yield the events of a stream that contain more than their type but are not matched by any path.

    If no path for calls is configured, calls are not visible anyway."""
    if not document.is_stream or not (paths.tool_calls or paths.messages):
        return
    named = [path for name in ReplyPaths.model_fields if isinstance(path := getattr(paths, name), str)]
    marks = [mark for mark in (paths.done, paths.error) if isinstance(mark, Mapping)]
    for event in document.events:
        if not isinstance(event, Mapping) or is_signal(event):
            continue
        is_named = any(_values_at(ReplyDocument((event,)), path) for path in named)
        if not is_named and not any(_is_marked(event, mark) for mark in marks):
            yield make_unplaced(event, "an event that no path in `reply` matches").phrase


def _has_content(answer: Any, paths: ReplyPaths) -> bool:
    """Check whether a message may contain the answer. In a stream of deltas, a message that contains only
    calls does not."""
    if paths.delta is None or not isinstance(answer, Mapping):
        return answer is not None
    return bool(answer.get("content") or not answer.get("tool_calls"))


def extract_partial_reply(reply: HttpReply, paths: ReplyPaths, *, streaming: bool) -> ReadReply:
    """Return the readable parts of an incomplete answer."""
    try:
        document = parse_document(reply, paths, streaming=streaming)
    except UnreadableResponseError:
        document = _readable(reply, paths)
    lenient = paths.model_copy(update={key: _lenient(getattr(paths, key)) for key in _PARTS})
    seen = ReadReply()
    for part, read in _PARTS.items():
        with suppress(UnreadableResponseError, AgentError):
            seen = replace(seen, **{part: read(document, lenient)})
    return seen


def _readable(reply: HttpReply, paths: ReplyPaths) -> ReplyDocument:
    """Return the readable events of a stream. An interrupted stream may end in the middle of an event."""
    events: list[Any] = []
    for payload in reply.text.splitlines() if reply.events is None else reply.events:
        with suppress(UnreadableResponseError):
            events += _events([payload], paths).events
    return ReplyDocument(tuple(events), is_stream=True)


def _lenient(path: str | None) -> str | None:
    return f"{path.removesuffix('?')}?" if path else path


def refuse_errors(document: ReplyDocument, paths: ReplyPaths) -> None:
    """Raise ``UnreadableResponseError`` for an error that a reply contains instead of an answer."""
    where = paths.error or "error"
    for event in document.events:
        if _is_marked(event, where):
            error = event if isinstance(where, Mapping) else find_value(event, where.removesuffix("?"))
            what = "was interrupted by an error" if document.is_stream else "is an error"
            raise UnreadableResponseError(what, as_text(error), error=error)


def _refuse_cut(document: ReplyDocument, paths: ReplyPaths) -> None:
    for event in document.events:
        for path in filter(None, (paths.text, paths.delta)):
            levels = list(_levels(event, path.removesuffix("?")))
            if levels:
                require_complete(levels[-1], *levels[:-1])


def _levels(value: Any, path: str) -> Iterator[Mapping[str, Any]]:
    """Yield the objects along a path, from the outermost to the innermost."""
    if isinstance(value, Mapping):
        yield value
    head = ""
    for name in path.split(".")[:-1]:
        head = f"{head}.{name}" if head else name
        inner = find_value(value, head)
        if isinstance(inner, Mapping):
            yield inner


def _is_marked(event: Any, by: str | Mapping[str, Any]) -> bool:
    if isinstance(by, str):
        value = _find_items(event, by.removesuffix("?"))
        return value is not MISSING and bool(value)
    return bool(by) and all(is_one_of(_find_items(event, path), values) for path, values in by.items())


def is_one_of(value: Any, wanted: Any) -> bool:
    """Check whether a value equals ``wanted`` or, if that is a list, one of its items. Case is ignored."""
    several = wanted if isinstance(wanted, list | tuple) else (wanted,)
    return value is not MISSING and _word(value) in map(_word, several)


def _word(value: Any) -> str:
    return (value if isinstance(value, str) else json.dumps(value)).strip().casefold()


def _values_at(document: ReplyDocument, path: str) -> list[Any]:
    """Return the values at a path, one for each event that contains the path."""
    bare = path.removesuffix("?")
    if bare == WHOLE_REPLY:
        return list(document.events)
    return [value for event in document.events if (value := _find_items(event, bare)) is not MISSING]


def _find_items(value: Any, path: str) -> Any:
    """Find a value as ``find_value`` does, where ``*`` stands for every item of a list.

    A path with ``*`` returns a list of the values found; items without a value are skipped."""
    if isinstance(value, Payload):
        return value.event if path == _EVENT and value.event else MISSING
    before, star, after = f".{path}.".partition(".*.")
    if not star:
        return find_value(value, path)
    listed = find_value(value, before[1:]) if before else value
    if not isinstance(listed, list):
        return MISSING
    rest = after.rstrip(".")
    items = [_find_items(item, rest) for item in listed] if rest else listed
    kept = [item for item in items if item is not MISSING]
    return kept if kept or not listed else MISSING


def _text(document: ReplyDocument, paths: ReplyPaths, *, optional: bool) -> str | None:
    complete = _texts(document, paths.text, "text", optional=optional or paths.delta is not None)
    if paths.delta is None:
        return _join_pieces(complete, document, paths.text or "") if complete else None
    if complete:
        return complete[-1]
    pieces = _texts(document, paths.delta, "delta", optional=optional)
    return "".join(pieces) if pieces else None


def _texts(document: ReplyDocument, path: str | None, key: str, *, optional: bool) -> list[str]:
    if path is None:
        return []
    values = _values_at(document, path) if optional else _required(document, path, key)
    if document.is_stream and path == WHOLE_REPLY:
        values = [value for value in values if not isinstance(value, Mapping)]  # only texts are pieces
    return [_as_text(value, key, path) for value in values if value is not None]


def _as_text(value: Any, key: str, path: str) -> str:
    if "*" in path and isinstance(value, list):
        return "\n".join(_as_text(each, key, path.replace("*", "0", 1)) for each in value if each is not None)
    if isinstance(value, str | list):
        try:
            return str(chat.text_of(value) or "")  # also of a stream's event
        except AgentError:
            pass
    what = f"has no text at `reply.{key}: {path}`, but {_kind(value)}"
    raise UnreadableResponseError(what, ", ".join(value) if isinstance(value, Mapping) else to_json(value))


def _join_pieces(pieces: Sequence[str], document: ReplyDocument, path: str) -> str:
    """Join the fragments of a streamed text. If a last event of a different type repeats the complete text,
    include the text only once."""
    before, last = "".join(pieces[:-1]), pieces[-1]
    if len(pieces) < 2 or last != before:
        return before + last
    bare = path.removesuffix("?")
    holders = [event for event in document.events if find_value(event, bare) not in (MISSING, None)]
    kinds = [_kind_of(event) for event in holders]
    return last if kinds and kinds[-1] not in kinds[:-1] else before + last


def _kind_of(event: Any) -> tuple[str, ...]:
    return tuple(to_json(event.get(key)) for key in _KINDS) if isinstance(event, Mapping) else ()


def _calls(document: ReplyDocument, paths: ReplyPaths) -> Iterator[Any]:
    """Yield the calls that a reply requests. A call that appears in several events is yielded only once."""
    if paths.tool_calls is None:
        return
    found: list[Any] = []
    for value in _required(document, paths.tool_calls, "tool_calls", _WHERE_NONE):
        calls = [value] if isinstance(value, Mapping) and value else _flat(value, paths.tool_calls) or []
        if not isinstance(calls, list):
            what = f"has no list of tool calls at `reply.tool_calls: {paths.tool_calls}`, but {_kind(value)}"
            raise UnreadableResponseError(what, to_json(value))
        found += calls
    yield from chat.sort_by_index(_merge_calls(found) if document.is_stream else found)


def _merge_calls(entries: Sequence[Any]) -> list[Any]:
    """Return the calls in a stream. Fragments of a call that have the same index are joined; otherwise, the
    last version of each call is used."""
    if entries and all(map(_is_piece, entries)):
        pieces = ToolCallAssembler()
        for piece in entries:
            pieces.add(piece)
        return pieces.build()
    calls: dict[Any, Any] = {}
    for call in entries:
        call_id = call.get("id") if isinstance(call, Mapping) else None
        calls[call_id if isinstance(call_id, str) and call_id else len(calls)] = call
    return list(calls.values())


def _is_piece(call: Any) -> bool:
    if not isinstance(call, Mapping):
        return False
    return isinstance(call.get("index"), int) and isinstance(call.get("function"), Mapping)


def _flat(value: Any, path: str) -> Any:
    """Flatten the lists found by ``*`` into one list."""
    if "*" not in path or not isinstance(value, list):
        return value
    return [item for each in value for item in (each if isinstance(each, list) else [each])]


def _messages(document: ReplyDocument, paths: ReplyPaths) -> list[Message]:
    return parse_agent_answers(_reported_messages(document, paths))


def _reported_messages(document: ReplyDocument, paths: ReplyPaths) -> list[Message]:
    if paths.messages is None:
        return []
    entries: list[Any] = []
    for value in _required(document, paths.messages, "messages", _WHERE_NONE):
        is_one = document.is_stream and isinstance(value, Mapping)
        entries += [value] if is_one else _list_of(_flat(value, paths.messages), paths)
    return [message for at, each in enumerate(entries) for message in _as_messages(each, at)]


def _list_of(value: Any, paths: ReplyPaths) -> list[Any]:
    listed = [] if value is None else value
    if not isinstance(listed, list) or not all(isinstance(each, Mapping) for each in listed):
        raise UnreadableResponseError(
            f"has no list of messages at `reply.messages: {paths.messages}`", to_json(value)
        )
    return listed


def _as_messages(item: Mapping[str, Any], at: int) -> Iterable[Message]:
    """Return a message unchanged. Convert a call record to two messages: the call with its arguments, and its
    result."""
    if any(key in item for key in ("role", "type", "kind", "content", "parts", "tool_calls", "function")):
        return [dict(item)]
    name = next((item[key] for key in _NAMES if isinstance(item.get(key), str)), None)
    arguments = next((item[key] for key in _ARGUMENTS if key in item), MISSING)
    if name is None or arguments is MISSING:
        return [dict(item)]
    call_id = str(item.get("id") or item.get("tool_call_id") or f"reported_{at}")
    call = foreign.as_call({"id": call_id, "function": {"name": name, "arguments": arguments}})
    asked = {"role": "assistant", "content": None, "tool_calls": [call]}
    result = {"role": "tool", "tool_call_id": call_id, "content": _result_in(item)}
    return [asked, result]


def _result_in(record: Mapping[str, Any]) -> Any:
    """Return the result in a call record. An error in the record takes precedence."""
    if record.get("error"):
        return {"error": record["error"]}
    return next((record[key] for key in _RESULTS if key in record), None)


def _usage(document: ReplyDocument, paths: ReplyPaths) -> Any:
    if paths.usage is None:
        return None
    values = _required(document, paths.usage, "usage")
    return next((value for value in reversed(values) if value is not None), None)


_PARTS: dict[str, Callable[[ReplyDocument, ReplyPaths], Any]] = {
    "text": lambda document, paths: _text(document, paths, optional=True),
    "tool_calls": lambda document, paths: list(_calls(document, paths)),
    "messages": lambda document, paths: _reported_messages(document, paths),
    "usage": _usage,
}

# ── paths that lead to nothing ───────────────────────────────────────────────────────────────────


def value_at(document: ReplyDocument, path: str, key: str) -> Any:
    """Return the value at the path configured for ``key``, taken from the last event that contains the path.

    Raise ``UnreadableResponseError`` if no event contains the path."""
    values = _required(document, path, key)
    return values[-1] if values else None


def _required(document: ReplyDocument, path: str, key: str, when: str = "") -> list[Any]:
    """Return the values at the path configured for ``key``, one for each event that contains the path.

    Raise ``UnreadableResponseError`` if no event contains the path, unless the path is optional. ``when``
    completes the advice to make the path optional."""
    values = _values_at(document, path)
    if not values and not path.endswith("?"):
        raise _missing_path_error(key, path, document, when)
    return values


def _missing_path_error(key: str, path: str, document: ReplyDocument, when: str) -> UnreadableResponseError:
    remedy = f" (use `{path}?` {when})" if when else ""
    contents = dict.fromkeys(_keys_along(event, path) for event in document.events)
    name = key if "." in key else f"reply.{key}"
    return UnreadableResponseError(
        f"has nothing at `{name}: {path}`{remedy}; it contains", "; ".join(contents)
    )


def _keys_along(value: Any, path: str) -> str:
    """List the keys at the deepest existing level of a path."""
    at, head, inner = "", "", value
    for name in path.removesuffix("?").split("."):
        head = f"{head}.{name}" if head else name
        found = find_value(value, head)
        if not isinstance(found, Mapping | list):
            break
        at, inner = head, found
    return f"in `{at}`: {_contents(inner)}" if at else _contents(inner)


def _contents(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(map(str, value)) or "an empty object"
    return f"a list of length {len(value)}" if isinstance(value, list) else to_json(value)


def _kind(value: Any) -> str:
    if isinstance(value, Mapping):
        return "an object with the keys"
    return "a list" if isinstance(value, list) else "the value"
