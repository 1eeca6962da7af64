"""Convert LangChain messages to OpenAI's format.

A message is either an object or one of the other forms that LangChain accepts: a dict, a string, or a
role–string pair."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any, NamedTuple

from ...transcript import ToolCall, Transcript

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class RecordedMessage(NamedTuple):
    """A message in a turn, and the location in the graph where it was recorded."""

    message: Any
    agent: str
    """The innermost agent that the message belongs to. Empty for the graph itself."""
    is_of_graph: bool
    """True if the message reached the graph itself, rather than being internal to an agent in a subgraph."""


class MessageEncoder:
    """An encoder for the messages of a turn."""

    def __init__(self, user: Any, internal: frozenset[str]) -> None:
        """Set up the encoder. ``user`` is the id of the user's message. ``internal`` contains the names of
        tools that belong to the graph's control flow."""
        self._user = user
        self._internal = internal
        self._hidden: set[Any] = set()
        self._writers = {"ai": self._write_answer, "human": self._write_person, "tool": self._write_result}

    def hide(self, call_id: Any) -> None:
        """Omit a call and its result, because the call did not invoke a tool."""
        self._hidden.add(call_id)

    def encode(self, recorded: Iterable[RecordedMessage]) -> Transcript:
        transcript = Transcript()
        for each in recorded:
            write = self._writers.get(message_kind(each.message))
            if write is not None and not _is_handed_back(each.message):
                write(each, transcript)
        return transcript

    def _write_answer(self, recorded: RecordedMessage, transcript: Transcript) -> None:
        """Add an agent's message. A message that contains only a hand-off is added if the agent's name is
        known."""
        message = recorded.message
        made = _calls(message)
        calls = [call for call in made if call.id not in self._hidden and call.name not in self._internal]
        text = text_of(get_field(message, "content")) if recorded.is_of_graph else ""
        name = get_field(message, "name") or recorded.agent
        hands_over = any(call.name in self._internal for call in made)
        if text or calls or (hands_over and name):
            transcript.answer(text or None, calls, name=name or None)

    def _write_person(self, recorded: RecordedMessage, transcript: Transcript) -> None:
        """Add a message with the user's role. Some graphs use this role, with the agent's name, for the
        answer of an agent in a subgraph."""
        message = recorded.message
        name = get_field(message, "name")
        if recorded.is_of_graph and name and get_field(message, "id") != self._user:
            transcript.answer(text_of(get_field(message, "content")), name=name)

    def _write_result(self, recorded: RecordedMessage, transcript: Transcript) -> None:
        message = recorded.message
        call_id, name = get_field(message, "tool_call_id"), get_field(message, "name")
        if call_id not in self._hidden and name not in self._internal:
            text, has_failed = text_of(get_field(message, "content")), get_field(message, "status") == "error"
            transcript.result(call_id, text, error=has_failed, name=name)


def _is_handed_back(message: Any) -> bool:
    """Return whether a supervisor library wrote the message to mark the end of an agent's work."""
    return bool((get_field(message, "response_metadata") or {}).get("__is_handoff_back"))


# ── messages ─────────────────────────────────────────────────────────────────────────────────────


def get_field(message: Any, name: str) -> Any:
    if isinstance(message, dict):
        return message.get(name)
    if isinstance(message, (str, tuple, list)):
        role, content = ("ai", message) if isinstance(message, str) else (message[0], message[-1])
        return {"role": role, "content": content}.get(name)
    return getattr(message, name, None)


def message_kind(message: Any) -> str:
    """Return the kind of a message: ``human``, ``ai``, ``tool`` or another kind."""
    kind = str(get_field(message, "type") or get_field(message, "role") or "")
    if kind == "chat":
        kind = str(get_field(message, "role"))
    kind = kind.replace("MessageChunk", "").lower()
    return {"assistant": "ai", "user": "human", "function": "tool"}.get(kind, kind)


def iter_keyed_messages(messages: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
    """Yield each message with its key in the conversation. The key is the message's id or, if it has no id,
    the message's content together with the number of earlier occurrences of this content."""
    count: dict[Any, int] = {}
    for message in messages:
        key = get_field(message, "id")
        if key is None:
            text, calls = text_of(get_field(message, "content")), repr(get_field(message, "tool_calls"))
            content = (message_kind(message), text, calls, get_field(message, "tool_call_id"))
            count[content] = count.get(content, 0) + 1
            key = (*content, count[content])
        yield key, message


def text_of(content: Any) -> str:
    """Return the text of a message, including text in provider-specific blocks."""
    if isinstance(content, list):
        return "".join(each if isinstance(each, str) else _text_of_block(each) for each in content)
    return content if isinstance(content, str) else "" if content is None else to_json_text(content)


def _text_of_block(block: Any) -> str:
    return str(block.get("text") or "") if isinstance(block, dict) and block.get("type") == "text" else ""


def to_json_text(value: Any) -> str:
    if hasattr(value, "model_dump"):
        value = value.model_dump(mode="json")
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = dataclasses.asdict(value)
    return json.dumps(value, ensure_ascii=False, default=str)


# ── calls ────────────────────────────────────────────────────────────────────────────────────────

_AT_PROVIDER = ("server_tool_use", "server_tool_call", "mcp_tool_use")
_READ = frozenset(
    (
        *("text", "reasoning", "thinking", "redacted_thinking", "refusal", "citation", "input_json_delta"),
        *("tool_use", "tool_call", "tool_call_chunk", "invalid_tool_call", "function_call"),
        *("image", "image_url", "audio", "input_audio", "video", "file", "document", "text-plain", "media"),
        *_AT_PROVIDER,
    )
)
"""The block types in a reply that are supported, that repeat the reply's calls, or that contain no calls."""


def _calls(message: Any) -> list[ToolCall]:
    listed = get_field(message, "tool_calls") or ()
    made = [ToolCall(each["id"], each["name"], each["args"]) for each in listed if "args" in each]
    if isinstance(message, dict):
        made += [_call_of_openai(each) for each in listed if "function" in each]
    made += server_calls(message)
    invalid = get_field(message, "invalid_tool_calls") or ()
    return made + [ToolCall(each["id"], each["name"], each.get("args")) for each in invalid]


def _call_of_openai(call: Any) -> ToolCall:
    return ToolCall(call["id"], call["function"]["name"], call["function"].get("arguments", ""))


def server_calls(message: Any) -> list[ToolCall]:
    """Return the calls that ran on the model provider's servers, in the forms in which some providers list
    them."""
    listed = [each for each in _blocks(message) if each.get("type") in _AT_PROVIDER and "name" in each]
    return [
        ToolCall(each.get("id"), each["name"], each.get("args", each.get("input")) or {}) for each in listed
    ]


def describe_unread(message: Any) -> Iterator[str]:
    """Yield a description of each part of a reply that may contain calls but is not supported."""
    for block in _blocks(message):
        kind = str(block.get("type"))
        if kind not in _READ and not kind.endswith("_result"):
            yield f"unsupported block '{kind}' in a message"
    if (get_field(message, "additional_kwargs") or {}).get("tool_outputs"):
        yield "the model used provider tools, whose calls are not recorded"


def _blocks(message: Any) -> list[dict[str, Any]]:
    content = get_field(message, "content")
    return [each for each in content if isinstance(each, dict)] if isinstance(content, list) else []


def answered_call_ids(written: Any) -> set[str]:
    """Return the ids of calls whose results were written by a node."""
    messages = written.get("messages") if isinstance(written, dict) else None
    listed = messages if isinstance(messages, (list, tuple)) else [messages]
    return {str(call_id) for each in listed if (call_id := get_field(each, "tool_call_id"))}
