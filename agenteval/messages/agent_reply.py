"""Is this a complete answer of an agent, and what is in it? One reading for every adapter: what an endpoint
sent, what a function returned and what a program wrote is the same answer if it says the same."""

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
from agenteval.messages.agent_names import name_of
from agenteval.messages.completion import Unreadable
from agenteval.messages.endings import cut_of, last_answer
from agenteval.messages.error_status import NO_ACCESS, NOT_THE_AGENTS, named_status
from agenteval.messages.reported_usage import usage_in
from agenteval.messages.responses import unread_in_response

LIMIT = "raise the agent's token limit?"
"""What to do about an answer that a limit of tokens cut off."""
_QUOTED = 200
HOLDS_ERROR = "holds an error instead of a message"
_PIECES = frozenset(("delta", "chunk", "token", "piece", "answer", "response", "text_delta", "output_text"))
"""Of a text in a stream, as servers send them: no dialect has messages of nothing else."""


def require_complete(answer: Any, *around: Any, remedy: str = LIMIT) -> None:
    """Raises ``Unreadable`` for an answer that was cut off, whatever of it there is. ``around``: what it came
    in."""
    if cut := cut_of(answer, *around):
        raise Unreadable(f"{cut.what} — {remedy}" if cut.at_limit else cut.what)


def answer_of(message: Mapping[str, Any], *around: Any, usage: Any = None, remedy: str = LIMIT) -> ReadReply:
    """What one message says. One in another library's shape, or that holds more than an answer and its calls,
    is kept as it is, to be read with the whole conversation. Raises ``Unreadable`` for one that was cut off,
    and ``AgentError`` for a call in a known form that cannot be read."""
    require_complete(message, *around, remedy=remedy)
    single, is_plain, unplaced = foreign.answer_in(message)
    usage = usage_in(message) if usage is None else usage
    if not is_plain:
        return ReadReply(messages=[single], usage=usage)
    step = chat.step_of({**single, "tool_calls": None, "function_call": None})
    extra = {name: value for name, value in step.extra.items() if value is not None}
    calls = list(chat.given_calls(single))
    return ReadReply(step.text, calls, usage=usage, agent=step.agent, extra=extra, unplaced=unplaced)


def unplaced_around(completion: Mapping[str, Any], *read: str) -> tuple[str, ...]:
    """What nobody could place of a completion beside its message. ``read``: keys that are read otherwise."""
    rest = {key: value for key, value in completion.items() if key not in read}
    return tuple(each.phrase for each in unread_in_response(rest))


def message_of(choice: Mapping[str, Any], *, remedy: str = LIMIT) -> Any:
    """The message of a choice of a completion; ``None`` if it has none. Raises ``Unreadable`` for an error in
    its place, and for one that was cut off."""
    if error := choice.get("error"):
        raise Unreadable(HOLDS_ERROR, json.dumps(error, default=str), error=error)
    message = choice.get("message")
    require_complete(message, choice, remedy=remedy)
    return message


def answers_in(listed: Sequence[Any], *around: Any, remedy: str = LIMIT) -> list[Message]:
    """The messages of a turn, of which the last of the agent's is the answer. Raises ``Unreadable``, and
    ``AgentError`` for what is no message."""
    require_complete(last_answer(listed), *around, remedy=remedy)
    return foreign.entries_in(listed)


# ── what code returns ────────────────────────────────────────────────────────────────────────────


def reply_of(value: Any) -> ReadReply:
    """What an agent in code returned, in any of the documented styles. Raises ``AgentError`` for others, and
    for what is no complete answer; ``InfrastructureError`` for an error of a provider's that is none of the
    agent's."""
    try:
        return _reply_of(value)
    except Unreadable as error:
        evidence = f": {error.evidence[:_QUOTED]}" if error.evidence else ""
        status = named_status(error.error)
        if status in NOT_THE_AGENTS:
            what = f"the agent's reply {error.what}{evidence}"
            raise InfrastructureError(what, is_final=status in NO_ACCESS) from None
        raise AgentError(f"the agent's reply {error.what}{evidence}", kind="protocol") from None


def seen_by(read: Callable[[], ReadReply]) -> ReadReply | None:
    """What ``read`` finds of an answer beside an error, or before one; ``None`` where it cannot read it."""
    try:
        return read()
    except AgentError:
        return None


def _reply_of(value: Any) -> ReadReply:
    if isinstance(value, AgentReply):
        return _read_agent_reply(value)
    if value is None or isinstance(value, str):
        return ReadReply(text=value)
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        if value and all(isinstance(each, Mapping) and _PIECES.issuperset(each) for each in value):
            key = next(iter(value[0]), "nothing")
            raise AgentError(
                f"the agent gave {len(value)} mappings with '{key}', which are no messages — let it yield the"
                " pieces of its text themselves, or messages with role and content",
                kind="protocol",
            )
        if parts := _parts_in(value):
            return _read_mapping({"role": "assistant", "content": parts})
        return ReadReply(messages=_require_read(answers_in(value)))
    if hasattr(value, "model_dump"):
        value = value.model_dump(exclude_none=True)
    if isinstance(value, Mapping):
        return _read_mapping(value)
    if foreign.is_like_message(value):
        return _read_mapping(foreign.as_message(value))
    raise no_answer(type(value).__name__)


def no_answer(type_name: str) -> AgentError:
    return AgentError(
        f"the agent returned {type_name}; expected the answer's text, an assistant message, the list of this"
        " turn's messages, or an AgentReply",
        kind="protocol",
    )


_PARTS = frozenset(("text", "output_text", "reasoning", "thinking", "redacted_thinking", "refusal"))
"""The types of parts of one message that make no message of their own."""


def _parts_in(value: Sequence[Any]) -> list[Any]:
    """The parts of an assistant message's content, as a function hands it on; empty for all other lists."""
    parts = [each.model_dump(exclude_none=True) if hasattr(each, "model_dump") else each for each in value]
    are_parts = all(
        isinstance(each, Mapping) and each.get("type") in _PARTS and "role" not in each for each in parts
    )
    return parts if are_parts else []


def _read_agent_reply(reply: AgentReply) -> ReadReply:
    """Checked; ``text`` may be any of the other return styles."""
    inner = ReadReply(reply.text) if isinstance(reply.text, str | None) else _reply_of(reply.text)
    listed: Any = reply.messages or ()
    if not isinstance(listed, Sequence) or isinstance(listed, str | bytes):
        raise AgentError(f"AgentReply.messages is {type(listed).__name__}, expected a list", kind="protocol")
    return ReadReply(
        inner.text,
        [
            *inner.tool_calls,
            *(call for call in chat.calls_of(reply.tool_calls) if call not in inner.tool_calls),
        ],
        _both(answers_in(listed), inner.messages),
        reply.usage if reply.usage is not None else inner.usage,
        latency_ms=_time(reply.latency_ms),
        agent=name_of(reply.agent) or inner.agent,
        unplaced=inner.unplaced,
    )


def _require_read(messages: Sequence[Message]) -> Sequence[Message]:
    """The messages of a reply that is nothing else. Raises ``AgentError`` where none of them is known:
    then it is not known what was answered, which is not that nothing was."""
    if phrase := foreign.unread_list(messages):
        what = f"none of the {len(messages)} messages that the agent returned could be read ({phrase})"
        known = "OpenAI's, Anthropic's, Google's, LangChain's, pydantic-ai's or ADK's"
        raise AgentError(
            f"{what}; return the text of the answer, or messages in a form of {known}", kind="protocol"
        )
    return messages


def _both(listed: Sequence[Message], more: Sequence[Message]) -> Sequence[Message]:
    """Two lists of messages as one. Who gives a list twice, or its last message once more, means it once."""
    return listed if not more or list(more) == list(listed[-len(more) :]) else [*listed, *more]


def _time(value: Any) -> float | None:
    """A time that an agent told, if it is one: we take our own else. JSON, and so the journal, has no NaN."""
    return value if isinstance(value, int | float) and 0 <= value < inf else None


def _read_mapping(value: Mapping[str, Any]) -> ReadReply:
    if (error := value.get("error")) and not (value.get("choices") or value.get("content")):
        raise Unreadable(HOLDS_ERROR, json.dumps(error, default=str), error=error)
    if "choices" in value:  # a whole completion of a client library
        return _read_completion(value)
    if not value.keys() & {"role", "content", "tool_calls", "messages", "function_call", "refusal"}:
        raise AgentError(
            f"the agent returned a mapping with {', '.join(map(str, list(value)[:5])) or 'nothing'};"
            " expected the answer's text, or an assistant message with content or tool_calls",
            kind="protocol",
        )
    if isinstance(listed := value.get("messages"), Sequence) and not isinstance(listed, str):
        return _read_listed(listed, {key: told for key, told in value.items() if key != "messages"})
    return answer_of(value)


def _read_listed(listed: Sequence[Any], beside: Mapping[str, Any]) -> ReadReply:
    """Messages, as graphs return them in their state; with ``content``, a message that has its turn's."""
    reply = ReadReply(messages=answers_in(listed, beside), usage=usage_in(beside))
    if "content" not in beside:
        _require_read(reply.messages)
        reply = replace(reply, unplaced=unplaced_around({"messages": (), **beside}))
    if isinstance(unknown := beside.get("unknown_tools"), list):  # our own word, of objects of frameworks
        evidence = CallEvidence.LISTED if beside.get("lists_tools") is True else None
        unplaced = tuple(map(str, beside.get("unplaced") or ()))
        reply = replace(reply, unknown_tools=unknown, is_over=True, evidence=evidence, unplaced=unplaced)
    if "content" not in beside:
        return reply
    inner = _read_mapping(beside)
    return replace(inner, messages=_both(reply.messages, inner.messages))


def _read_completion(value: Mapping[str, Any]) -> ReadReply:
    try:
        message = {**message_of(value["choices"][0])}
    except (LookupError, TypeError):
        raise AgentError(
            "the agent returned a completion without choices[0].message", kind="protocol"
        ) from None
    reply = _read_mapping(message)
    unplaced = (*reply.unplaced, *unplaced_around(value))
    return replace(reply, usage=usage_in(value) or reply.usage, unplaced=unplaced)
