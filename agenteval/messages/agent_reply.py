"""Parses an agent's complete answer.

All adapters use this module, so that answers from HTTP endpoints, functions and programs are parsed in the
same way."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import Any

from agenteval.core.errors import AgentError, InfrastructureError
from agenteval.core.protocols import AgentReply, ReadReply
from agenteval.core.trajectory import CallEvidence, Message
from agenteval.messages import chat
from agenteval.messages import message_adapters as foreign
from agenteval.messages.agent_names import read_agent_name
from agenteval.messages.completion import UnreadableResponseError
from agenteval.messages.error_status import ACCESS_DENIED_STATUSES, INFRASTRUCTURE_STATUSES, find_error_status
from agenteval.messages.finish_reasons import find_truncation, last_assistant_message
from agenteval.messages.reported_usage import usage_in
from agenteval.messages.responses import unread_in_response

TOKEN_LIMIT_REMEDY = "raise the agent's token limit"
"""The suggested remedy for an answer that was cut off by a token limit."""
_MAX_QUOTED = 200
HOLDS_ERROR = "contains an error instead of a message"
_TEXT_PIECE_KEYS = frozenset(
    ("delta", "chunk", "token", "piece", "answer", "response", "text_delta", "output_text")
)
"""Keys that servers use for a piece of streamed text. In no dialect does a message consist of just one of
these keys."""


def require_complete(answer: Any, *around: Any, remedy: str = TOKEN_LIMIT_REMEDY) -> None:
    """Raise ``UnreadableResponseError`` if an answer was cut off, even if a part of the answer was received.

    ``around`` contains the objects that enclose the answer."""
    if cut := find_truncation(answer, *around):
        raise UnreadableResponseError(f"{cut.what} — {remedy}" if cut.at_limit else cut.what)


def parse_agent_answer(
    message: Mapping[str, Any], *around: Any, usage: Any = None, remedy: str = TOKEN_LIMIT_REMEDY
) -> ReadReply:
    """Parse a single message as an agent's answer.

    A message in another library's format, or with additional content besides an answer and its calls, is kept
    unchanged and parsed later together with the whole conversation. Raise ``UnreadableResponseError`` if the
    message was cut off, and ``AgentError`` for a call in a known form that cannot be parsed."""
    require_complete(message, *around, remedy=remedy)
    single, is_plain, unplaced = foreign.parse_reply_message(message)
    usage = usage_in(message) if usage is None else usage
    if not is_plain:
        return ReadReply(messages=[single], usage=usage)
    step = chat.parse_step({**single, "tool_calls": None, "function_call": None})
    extra = {name: value for name, value in step.extra.items() if value is not None}
    calls = list(chat.collect_tool_calls(single))
    return ReadReply(step.text, calls, usage=usage, agent=step.agent, extra=extra, unplaced=unplaced)


def unplaced_in_completion(completion: Mapping[str, Any], *read: str) -> tuple[str, ...]:
    """Return descriptions of the fields next to a completion's message that could not be placed.

    ``read`` lists the keys that are parsed elsewhere."""
    unread = {key: value for key, value in completion.items() if key not in read}
    return tuple(each.phrase for each in unread_in_response(unread))


def parse_choice(choice: Mapping[str, Any], *, remedy: str = TOKEN_LIMIT_REMEDY) -> Any:
    """Return the message from a completion's choice, or ``None`` if the choice has no message.

    Raise ``UnreadableResponseError`` if the choice contains an error instead of a message, or if the message
    was cut off."""
    if error := choice.get("error"):
        raise UnreadableResponseError(HOLDS_ERROR, json.dumps(error, default=str), error=error)
    message = choice.get("message")
    require_complete(message, choice, remedy=remedy)
    return message


def parse_agent_answers(
    listed: Sequence[Any], *around: Any, remedy: str = TOKEN_LIMIT_REMEDY
) -> list[Message]:
    """Parse the messages of a turn. The agent's last message is its answer.

    Raise ``UnreadableResponseError`` if the answer was cut off, and ``AgentError`` for an element that is not
    a message."""
    require_complete(last_assistant_message(listed), *around, remedy=remedy)
    return foreign.parse_entries(listed)


# ── replies of agents in code ────────────────────────────────────────────────────────────────────


def parse_reply(value: Any) -> ReadReply:
    """Parse the return value of an agent that is a Python function, in any of the documented forms.

    Raise ``AgentError`` for any other value and for an incomplete answer, and ``InfrastructureError`` for a
    provider's error that is not the agent's fault, such as a rate limit (HTTP 429)."""
    try:
        return _parse_reply(value)
    except UnreadableResponseError as error:
        evidence = f": {error.evidence[:_MAX_QUOTED]}" if error.evidence else ""
        status = find_error_status(error.error)
        if status in INFRASTRUCTURE_STATUSES:
            what = f"the agent's reply {error.what}{evidence}"
            raise InfrastructureError(what, is_final=status in ACCESS_DENIED_STATUSES) from None
        raise AgentError(f"the agent's reply {error.what}{evidence}", kind="protocol") from None


def read_or_none(read: Callable[[], ReadReply]) -> ReadReply | None:
    """Return the part of an answer that ``read`` finds alongside or before an error, or ``None`` if that part
    cannot be parsed."""
    try:
        return read()
    except AgentError:
        return None


def _parse_reply(value: Any) -> ReadReply:
    if isinstance(value, AgentReply):
        return _read_agent_reply(value)
    if value is None or isinstance(value, str):
        return ReadReply(text=value)
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        if value and all(isinstance(each, Mapping) and _TEXT_PIECE_KEYS.issuperset(each) for each in value):
            key = next(iter(value[0]), "nothing")
            raise AgentError(
                f"the agent returned {len(value)} mappings with '{key}', which are not messages — yield text"
                " chunks as strings, or messages with `role` and `content`",
                kind="protocol",
            )
        if parts := _parts_in(value):
            return _read_mapping({"role": "assistant", "content": parts})
        return ReadReply(messages=_require_read(parse_agent_answers(value)))
    if hasattr(value, "model_dump"):
        value = value.model_dump(exclude_none=True)
    if isinstance(value, Mapping):
        return _read_mapping(value)
    if foreign.is_like_message(value):
        return _read_mapping(foreign.as_message(value))
    raise no_answer_error(type(value).__name__)


def no_answer_error(type_name: str) -> AgentError:
    return AgentError(
        f"the agent returned {type_name}; expected the answer text, an assistant message, a list of this"
        " turn's messages, or an `AgentReply`",
        kind="protocol",
    )


_PART_KINDS = frozenset(("text", "output_text", "reasoning", "thinking", "redacted_thinking", "refusal"))
"""Types of content parts that can only occur inside a message."""


def _parts_in(value: Sequence[Any]) -> list[Any]:
    """Return the content parts if a function returned the content of a message as a list. Otherwise, return
    an empty list."""
    parts = [each.model_dump(exclude_none=True) if hasattr(each, "model_dump") else each for each in value]
    are_parts = all(
        isinstance(each, Mapping) and each.get("type") in _PART_KINDS and "role" not in each for each in parts
    )
    return parts if are_parts else []


def _read_agent_reply(reply: AgentReply) -> ReadReply:
    """Validate and parse an ``AgentReply``. Its ``text`` may have any other form of return value."""
    inner = ReadReply(reply.text) if isinstance(reply.text, str | None) else _parse_reply(reply.text)
    listed: Any = reply.messages or ()
    if not isinstance(listed, Sequence) or isinstance(listed, str | bytes):
        raise AgentError(
            f"`AgentReply.messages` is {type(listed).__name__}; expected a list", kind="protocol"
        )
    return ReadReply(
        inner.text,
        [
            *inner.tool_calls,
            *(call for call in chat.validate_tool_calls(reply.tool_calls) if call not in inner.tool_calls),
        ],
        _merge_messages(parse_agent_answers(listed), inner.messages),
        reply.usage if reply.usage is not None else inner.usage,
        latency_ms=_parse_latency(reply.latency_ms),
        agent=read_agent_name(reply.agent) or inner.agent,
        unplaced=inner.unplaced,
    )


def _require_read(messages: Sequence[Message]) -> Sequence[Message]:
    """Return the messages in a reply that consists only of messages.

    Raise ``AgentError`` if none of the messages is recognized. In that case, the answer is unknown, which is
    not the same as empty."""
    if phrase := foreign.describe_unread_list(messages):
        what = f"none of the {len(messages)} messages that the agent returned could be parsed ({phrase})"
        known = "OpenAI, Anthropic, Google, LangChain, pydantic-ai or ADK"
        raise AgentError(f"{what}; return the answer text, or messages in {known} format", kind="protocol")
    return messages


def _merge_messages(messages: Sequence[Message], added: Sequence[Message]) -> Sequence[Message]:
    """Append ``added`` to ``messages``, unless ``messages`` already ends with ``added``."""
    return messages if not added or list(added) == list(messages[-len(added) :]) else [*messages, *added]


def _parse_latency(value: Any) -> float | None:
    """Return the latency that an agent reported, or ``None`` if the value is not a valid duration.

    If ``None`` is returned, agenteval's own measurement is used. JSON, and therefore the journal, cannot
    represent NaN."""
    return value if isinstance(value, int | float) and 0 <= value < inf else None


def _read_mapping(value: Mapping[str, Any]) -> ReadReply:
    if (error := value.get("error")) and not (value.get("choices") or value.get("content")):
        raise UnreadableResponseError(HOLDS_ERROR, json.dumps(error, default=str), error=error)
    if "choices" in value:  # a completion as a client library returns it
        return _read_completion(value)
    if not value.keys() & {"role", "content", "tool_calls", "messages", "function_call", "refusal"}:
        raise AgentError(
            f"the agent returned a mapping with {', '.join(map(str, list(value)[:5])) or 'no keys'};"
            " expected the answer text, or an assistant message with `content` or `tool_calls`",
            kind="protocol",
        )
    if isinstance(listed := value.get("messages"), Sequence) and not isinstance(listed, str):
        return _read_listed(listed, {key: field for key, field in value.items() if key != "messages"})
    return parse_agent_answer(value)


def _read_listed(listed: Sequence[Any], state: Mapping[str, Any]) -> ReadReply:
    """Parse the messages in a graph's state, or in a message that contains the other messages of its turn.

    A message, unlike a state, has ``content``."""
    reply = ReadReply(messages=parse_agent_answers(listed, state), usage=usage_in(state))
    if "content" not in state:
        _require_read(reply.messages)
        reply = replace(reply, unplaced=unplaced_in_completion({"messages": (), **state}))
    if isinstance(unknown := state.get("unknown_tools"), list):  # agenteval's key, for framework objects
        evidence = CallEvidence.LISTED if state.get("lists_tools") is True else None
        unplaced = tuple(map(str, state.get("unplaced") or ()))
        reply = replace(reply, unknown_tools=unknown, is_over=True, evidence=evidence, unplaced=unplaced)
    if "content" not in state:
        return reply
    inner = _read_mapping(state)
    return replace(inner, messages=_merge_messages(reply.messages, inner.messages))


def _read_completion(value: Mapping[str, Any]) -> ReadReply:
    try:
        message = {**parse_choice(value["choices"][0])}
    except (LookupError, TypeError):
        raise AgentError(
            "the agent returned a completion without `choices[0].message`", kind="protocol"
        ) from None
    reply = _read_mapping(message)
    unplaced = (*reply.unplaced, *unplaced_in_completion(value))
    return replace(reply, usage=usage_in(value) or reply.usage, unplaced=unplaced)
