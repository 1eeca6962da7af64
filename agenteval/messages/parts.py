"""Parses the parts of a message's content into texts, calls and results. Pure.

``parse_part`` recognizes the calls and results in each format, with one function for each form. Any other
part is either text (``agenteval.messages.texts``) or unplaced."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from agenteval.messages.calls import CALL_FIELDS, ParsedCall, parse_raw_call, unplaced_in_call
from agenteval.messages.field_shapes import ARGUMENT_KEYS, is_call_kind, is_typed_call
from agenteval.messages.json_fields import first_present, first_text, object_at, object_of
from agenteval.messages.parsed_message import ParsedMessage, Role, result_message, unplaced_message
from agenteval.messages.results import ERROR_FLAGS, find_inline_outcome, unwrap_untyped_parts
from agenteval.messages.texts import is_media_kind, join_texts, passages_in, text_in, unplaced_in_part
from agenteval.messages.unplaced_entries import (
    ADDITIONAL_KWARGS,
    Unplaced,
    make_unplaced,
    unplaced_calls,
    unplaced_fields,
)

# ── one part ─────────────────────────────────────────────────────────────────────────────────────


class CallPart(NamedTuple):
    """A tool call that is a part of a message's content."""

    raw: Mapping[str, Any]
    """The call, in a form that ``parse_raw_call`` accepts."""
    is_within: bool = False
    """True if the call is an object inside the part. The part may then have additional fields."""


_RESULT_KINDS = ("tool_result", "tool-result", "tool-error", "tool_call_response", "tool_response")
_RESULT_KEYS = ("functionResponse", "function_response", "toolResult", "toolResponse")
_CALL_KEYS = frozenset(
    ("functionCall", "function_call", "toolUse", "toolInvocation", "toolCall", "executableCode")
)
RESULT_VALUES = ("content", "output", "result", "tool_result", "response", "outputs")
"""Keys for the value of a result."""


def parse_part(part: Any) -> CallPart | ParsedMessage | None:
    """Parse a content part that is a tool call or a tool result. Return ``None`` for any other part. A part
    that is both a call and a result is parsed as a result."""
    return _parse_result(part) or parse_call(part)


def _parse_result(part: Any) -> ParsedMessage | None:
    kind = first_text(object_of(part), "type")
    match part:
        case {"type": _} if kind.endswith(_RESULT_KINDS) and "state" not in part:
            return _typed_result(part, kind)
        case (
            {"functionResponse": dict(inner)}
            | {"function_response": dict(inner)}
            | {"toolResult": dict(inner)}
            | {"toolResponse": dict(inner)}
        ):
            return _keyed_result(inner)
        case {"codeExecutionResult": dict(inner)}:
            return _google_code_result(inner)
    return None


def parse_call(part: Any) -> CallPart | None:
    """Parse a content part that is a call, even if it is also a result. Return ``None`` if the part is not a
    call."""
    kind = first_text(object_of(part), "type")
    match part:
        case {"type": _, "state": _} if kind.startswith(("tool-", "dynamic-tool")):
            return _ai_sdk_call(part, kind)
        case {"type": _} if is_call_kind(kind):
            return _typed_call(part)
        case (
            {"functionCall": dict(inner)}
            | {"function_call": dict(inner)}
            | {"toolUse": dict(inner)}
            | {"toolInvocation": dict(inner)}
        ):
            return _keyed_call(inner)
        case {"toolCall": dict(inner)} if first_text(inner, "toolType"):
            return _google_provider_call(inner)
        case {"executableCode": dict(code)}:
            return _google_code(code)
    return None


def _typed_call(part: Mapping[str, Any]) -> CallPart:
    """Parse a call in the format of Anthropic, LangChain or OpenTelemetry.

    ``{"type": "tool_use", "id": "1", "name": "find", …}``"""
    return CallPart(object_at(part, "tool_call") or part)


def _ai_sdk_call(part: Mapping[str, Any], kind: str) -> CallPart:
    """Parse a call in the format of Vercel's AI SDK.

    ``{"type": "tool-find", "toolCallId": "1", "state": "output-available", "input": {}, "output": 1}``"""
    return CallPart({"toolName": kind.removeprefix("tool-"), **part})


def _keyed_call(inner: Mapping[str, Any]) -> CallPart:
    """Parse a call that is the value of a key.

    Google: ``{"functionCall": {"name": "find", "args": {}}}``; Bedrock: ``{"toolUse": {"name": "find",
    "input": {}}}``; the AI SDK: ``{"toolInvocation": {"toolName": "find", "args": {}}}``."""
    return CallPart(inner, is_within=True)


def _google_provider_call(inner: Mapping[str, Any]) -> CallPart:
    """Parse a call to a tool that Google runs.

    ``{"toolCall": {"toolType": "GOOGLE_SEARCH", "args": {}}}``"""
    call = {"type": "server_tool_use", "name": first_text(inner, "toolType").lower(), **inner}
    return CallPart({**call, "input": inner.get("args", {})}, is_within=True)


def _google_code(code: Mapping[str, Any]) -> CallPart:
    """Parse a call to Google's code interpreter.

    ``{"executableCode": {"language": "PYTHON", "code": "1 + 1"}}``"""
    return CallPart({"type": "server_tool_use", "name": "code_execution", "input": code}, is_within=True)


def _typed_result(part: Mapping[str, Any], kind: str) -> ParsedMessage:
    """Parse a result in the format of Anthropic or the AI SDK.

    ``{"type": "tool_result", "tool_use_id": "1", "content": "3 found"}``. In OpenTelemetry parts
    (``tool_call_response``), ``id`` is the id of the call."""
    call_id = {"call_id": part.get("id")} if kind.endswith("response") else {}
    failed = {"is_error": True} if kind == "tool-error" else {}
    return result_message({**call_id, **part, **failed}, first_present(RESULT_VALUES, part))


def _keyed_result(inner: Mapping[str, Any]) -> ParsedMessage:
    """Parse a result that is the value of a key.

    Google: ``{"functionResponse": {"name": "find", "response": {}}}``; Bedrock: ``{"toolResult":
    {"toolUseId": "1", "content": [{"text": "3 found"}]}}``."""
    value = inner.get("response", unwrap_untyped_parts(inner.get("content")))
    return result_message({"call_id": inner.get("id"), **inner}, value)


def _google_code_result(inner: Mapping[str, Any]) -> ParsedMessage:
    """Parse a result from Google's code interpreter.

    ``{"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "2"}}``"""
    failed = {"is_error": first_text(inner, "outcome").endswith(("FAILED", "EXCEEDED"))}
    return result_message({"name": "code_execution", **failed}, inner.get("output"))


# ── all parts of a content ───────────────────────────────────────────────────────────────────────


def parse_parts(role: Role, parts: Iterable[Any]) -> Iterator[ParsedMessage]:
    """Parse content parts (content blocks) into messages. The texts and calls up to the next result form one
    reply."""
    reply = _ReplyBuilder(role)
    unplaced: list[Unplaced] = []
    for part in parts:
        match parse_part(part):
            case ParsedMessage() as result:
                yield from reply.messages(keep_blank=False)
                reply = _ReplyBuilder(role)
                yield result
                unplaced += unread_in_result(part)
            case CallPart() if role != "assistant":
                unplaced.append(make_unplaced(part, f"a call in a {role} message"))
            case CallPart(raw, is_within):
                called = parse_calls([raw])
                reply.add_calls(called.messages)
                unplaced += called.unplaced
                if is_within:
                    unplaced += unplaced_fields(part, _CALL_KEYS, owner="a part with a call")
            case None:
                if reply.results:
                    yield from reply.messages()
                    reply = _ReplyBuilder(role)
                reply.add_text(part)
                unplaced += unplaced_in_part(part)
    yield from reply.messages()
    yield from map(unplaced_message, unplaced)


class _ReplyBuilder:
    """Collects the texts and calls that form one reply, along with the results of those calls."""

    def __init__(self, role: Role) -> None:
        self._role = role
        self._texts: list[str] = []
        self._calls: list[ParsedCall] = []
        self.results: list[ParsedMessage] = []
        self._is_read = self._is_unread = self._is_bare = False

    def add_calls(self, called: Iterable[ParsedMessage]) -> None:
        for each in called:
            self._calls += each.calls
            self.results += [each] if each.role == "tool" else []

    def add_text(self, part: Any) -> None:
        """Add the text of a part.

        Google splits one text into parts without a type. These parts are joined without a separator."""
        was_bare, self._is_bare = self._is_bare, isinstance(part, dict) and "type" not in part
        text = text_in(part)
        if text is None:
            text = self._placeholder(first_text(part, "type"))
        elif text.strip():
            self._is_read = True
        if was_bare and self._is_bare:
            self._texts[-1] += text
        else:
            self._texts.append(text)

    def _placeholder(self, kind: str) -> str:
        """Return a placeholder for a part that is not text.

        The placeholder shows that the message contained a picture, a file or a similar part."""
        if is_media_kind(kind):
            self._is_read = True
        else:
            self._is_unread = True
        return f"[{kind or 'part'}]"

    def messages(self, *, keep_blank: bool = True) -> Iterator[ParsedMessage]:
        if self._calls or "".join(self._texts).strip() or (self._texts and keep_blank):
            is_unread = self._is_unread and not (self._is_read or self._calls)
            yield ParsedMessage(self._role, join_texts(self._texts), tuple(self._calls), is_unread=is_unread)
            yield from self.results


def with_citations(parsed: list[ParsedMessage], parts: Iterable[Any]) -> list[ParsedMessage]:
    """Add the passages cited by texts to the latest result that is a list, and return the messages.

    The passages are needed because a search may have returned encrypted pages. If there is no such result,
    the passages are added as a separate result."""
    cited = passages_in(parts)
    if not cited:
        return parsed
    for at in reversed(range(len(parsed))):
        if isinstance(value := parsed[at].value, list):
            return [*parsed[:at], parsed[at]._replace(value=[*value, *cited]), *parsed[at + 1 :]]
    return [ParsedMessage("tool", value=cited, is_passage=True), *parsed]


# ── calls ────────────────────────────────────────────────────────────────────────────────────────


class CallsWithResults(NamedTuple):
    """Calls that form one reply, with the results next to them."""

    messages: list[ParsedMessage]
    unplaced: list[Unplaced]
    """Fields of the calls that could not be placed."""


def parse_calls(raw: Iterable[Any]) -> CallsWithResults:
    """Parse raw calls, together with the results next to them."""
    calls: list[ParsedCall] = []
    results: list[ParsedMessage] = []
    unplaced: list[Unplaced] = []
    for each in raw:
        if call := parse_raw_call(each):
            calls.append(call)
            results += _parse_inline_result(each, call)
            unplaced += unplaced_in_call(each, call)
        elif not _is_empty(each):
            unplaced.append(Unplaced("a tool call without a name", (), each, is_broken_call=True))
    return CallsWithResults(
        [ParsedMessage("assistant", calls=tuple(calls)), *results] if calls else [], unplaced
    )


def _is_empty(raw: Any) -> bool:
    """Check whether a call has an empty name and no input. Some servers send such a call when no tool is
    called."""
    call = object_at(object_of(raw), "function") or object_of(raw)
    return call.get("name") == "" and not any(each for key, each in call.items() if key not in ("type", "id"))


def _parse_inline_result(raw: Any, call: ParsedCall) -> Iterator[ParsedMessage]:
    if found := find_inline_outcome(raw):
        value, failed = found
        yield ParsedMessage(
            "tool", value=value, id=call.id, name=call.name, is_error=failed, is_inline_result=True
        )


# ── unread fields of a result ────────────────────────────────────────────────────────────────────

RESULT_FIELDS = frozenset((
    *RESULT_VALUES, *ERROR_FLAGS, *CALL_FIELDS, *_RESULT_KEYS, "codeExecutionResult", "items", "parts",
    "text", "data", "artifact", "artifacts", "exception", "structuredContent", "structured_content",
    ADDITIONAL_KWARGS,
))  # fmt: skip
"""The fields of a result. Anything that a tool returned is a value and contains no calls by the agent."""
_ARTIFACT_KEYS = ("artifact", "artifacts")


def unread_in_result(part: Mapping[str, Any], owner: str = "a result") -> Iterator[Unplaced]:
    """Yield the fields of a result that were not parsed."""
    for each in (part, *(part[key] for key in _RESULT_KEYS if isinstance(part.get(key), dict))):
        yield from unplaced_fields(each, RESULT_FIELDS, owner=owner)
        yield from calls_in_result(each)


def calls_in_result(fields: Mapping[str, Any]) -> Iterator[Unplaced]:
    """Yield the calls in a result.

    A tool may return any value, so a part is treated as a call only if it has the type of a call. Calls
    anywhere in artifacts (data that a result carries for the program) are also yielded, because they may be
    those of another agent."""
    for key, value in fields.items():
        if key in _ARTIFACT_KEYS:
            yield from unplaced_calls(value, f"'{key}' in a result", key, is_match=is_typed_call)
        elif key not in ARGUMENT_KEYS:
            for part in filter(is_typed_call, value if isinstance(value, list) else (value,)):
                yield make_unplaced(part, "a call in a result")._replace(calls=(part,))
