"""What an agent's code returned, or a program wrote, as an ``AgentReply``: the documented return styles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import Any

from agenteval.core.errors import AgentError
from agenteval.core.protocols import AgentReply
from agenteval.core.trajectory import Message
from agenteval.messages import chat
from agenteval.messages import message_adapters as foreign
from agenteval.messages.endings import cut_of, last_answer


def read_reply(value: Any) -> AgentReply:
    """Any of the documented return styles as an ``AgentReply``. Raises ``AgentError`` for others."""
    if isinstance(value, AgentReply):
        return _read_agent_reply(value)
    if value is None or isinstance(value, str):
        return AgentReply(text=value)
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return AgentReply(messages=_read_messages(value))
    if hasattr(value, "model_dump"):
        value = value.model_dump(exclude_none=True)
    if isinstance(value, Mapping):
        return _read_mapping(value)
    raise AgentError(
        f"the agent returned {type(value).__name__}; expected the answer's text, an assistant message, the"
        " list of this turn's messages, or an AgentReply",
        kind="protocol",
    )


def _read_agent_reply(reply: AgentReply) -> AgentReply:
    """Checked; ``text`` may be any of the other return styles."""
    inner = AgentReply(reply.text) if isinstance(reply.text, str | None) else read_reply(reply.text)
    listed: Any = reply.messages or ()
    if not isinstance(listed, Sequence) or isinstance(listed, str | bytes):
        raise AgentError(f"AgentReply.messages is {type(listed).__name__}, expected a list", kind="protocol")
    return AgentReply(
        inner.text,
        [
            *inner.tool_calls,
            *(call for call in chat.calls_of(reply.tool_calls) if call not in inner.tool_calls),
        ],
        _both(_read_messages(listed), inner.messages),
        reply.usage if reply.usage is not None else inner.usage,
        latency_ms=_time(reply.latency_ms),
        extra=reply.extra,
        alone=reply.alone or (inner.alone and not listed),
    )


def _read_messages(listed: Sequence[Any], around: Any = None) -> list[Message]:
    """Messages of a turn, of which the last is the answer; ``around``: what they came in."""
    messages = [foreign.as_message(message) for message in listed]
    _check_whole(last_answer(listed), around)
    return messages


def _check_whole(answer: Any, around: Any = None) -> None:
    """Raises ``AgentError`` for an answer that was cut off, whatever of it there is."""
    if cut := cut_of(answer, around):
        remedy = " — raise the agent's token limit?" if cut.at_limit else ""
        raise AgentError(f"the agent's reply {cut.what}{remedy}", kind="protocol")


def _both(listed: Sequence[Message], more: Sequence[Message]) -> Sequence[Message]:
    """Two lists of messages as one. Who gives a list twice, or its last message once more, means it once."""
    return listed if not more or list(more) == list(listed[-len(more) :]) else [*listed, *more]


def _time(value: Any) -> float | None:
    """A time that an agent told, if it is one: we take our own else. JSON, and so the journal, has no NaN."""
    return value if isinstance(value, int | float) and 0 <= value < inf else None


def _read_mapping(value: Mapping[str, Any]) -> AgentReply:
    if "choices" in value:  # a whole completion of a client library
        return _read_completion(value)
    if not value.keys() & {"role", "content", "tool_calls", "messages", "function_call", "refusal"}:
        raise AgentError(
            f"the agent returned a mapping with {', '.join(map(str, list(value)[:5])) or 'nothing'};"
            " expected an assistant message with content or tool_calls",
            kind="protocol",
        )
    if isinstance(listed := value.get("messages"), Sequence) and not isinstance(listed, str):
        return _read_listed(listed, {key: told for key, told in value.items() if key != "messages"})
    _check_whole(value)
    message, is_plain = foreign.answer_in(value)
    if not is_plain:
        usage = value.get("usage") or value.get("usage_metadata")
        return AgentReply(messages=[message], usage=usage, alone=True)
    calls = list(chat.calls_of(message.get("tool_calls")))
    if legacy := message.get("function_call"):
        calls.append(legacy)
    step = chat.step_of({**message, "tool_calls": None, "function_call": None})
    usage = value.get("usage") or value.get("usage_metadata")
    return AgentReply(step.text, calls, usage=usage, extra=step.extra)


def _read_listed(listed: Sequence[Any], beside: Mapping[str, Any]) -> AgentReply:
    """Messages, as graphs return them in their state; with ``content``, a message that has its turn's."""
    reply = AgentReply(messages=_read_messages(listed, beside), usage=beside.get("usage"))
    if "content" not in beside:
        return reply
    inner = _read_mapping(beside)
    return replace(inner, messages=_both(reply.messages, inner.messages), alone=False)


def _read_completion(value: Mapping[str, Any]) -> AgentReply:
    try:
        choice = value["choices"][0]
        message = choice["message"]
        _check_whole(message, choice)
        return _read_mapping({**message, "usage": value.get("usage")})
    except (LookupError, TypeError):
        raise AgentError(
            "the agent returned a completion without choices[0].message", kind="protocol"
        ) from None
