"""Records of frameworks that write messages in a way of their own, in the common one. Pure.

Known are pydantic-ai, Google's ADK (sessions, and the cases of its evaluations), AutoGen, Letta, opencode,
the Agent Trajectory Interchange Format, Spring AI, threads of OpenAI's assistants, pairs of texts, dialogues
of a user with a ``SYSTEM``, and a history beside the question that follows it. Each is told by the keys that
all of its messages have; anything else stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from agenteval.messages.calls import Tell, word
from agenteval.messages.speakers import ROLES

_PLACES = ("messages", "conversation", "events", "steps", "turns", "history", "message_history", "data")
"""Where such messages may be; those that the rest of the reader does not look at, too."""
_HISTORY = "chat_history"
_ASKED = ("message", "question", "query", "input", "user_input", "prompt")
_STEPS = "intermediate_steps"
_SOURCES = ("source_documents", "sourceDocuments", "documents", "context", "contexts", "search_results")
_ANSWERS = ("answer", "response", "output", "text")


class _Dialect(NamedTuple):
    """``is_one``: whether something may be a message of it, which all must be; ``common``: its messages."""

    is_one: Callable[[Mapping[str, Any]], bool]
    common: Callable[[Sequence[Any], Tell], Iterable[Any]]


def in_common(record: Any, tell: Tell) -> Any:
    """A record whose messages are in the common form: the one that is given, or a new one."""
    if isinstance(record, list):
        found = _rewritten(record, tell)
        return record if found is None else {"messages": found}
    if not isinstance(record, dict):
        return record
    for key in _PLACES:
        if isinstance(inside := record.get(key), list):
            found = _rewritten(inside, tell)
            if found is not None:
                rest = {name: value for name, value in record.items() if name != key}
                return {**rest, "messages": found}
            if key == "messages":
                return record
    return _with_history(record, tell)


def _rewritten(messages: Sequence[Any], tell: Tell) -> list[Any] | None:
    """``None`` for messages in no such form: nearly all name a role, and none of these does."""
    first = messages[0] if messages else None
    if isinstance(first, list):
        return _of_pairs(messages)
    if not isinstance(first, dict) or ("role" in first and "object" not in first):
        return None
    for is_one, common in _DIALECTS:
        if is_one(first) and all(isinstance(each, dict) and is_one(each) for each in messages):
            return list(common(messages, tell))
    return None


# ── a history and what follows it ────────────────────────────────────────────────────────────────


def _with_history(record: dict[str, Any], tell: Tell) -> dict[str, Any]:
    """What Cohere's requests and chains over documents have: the history, and beside it the question and
    what was answered; or a request that has them, with its response."""
    inside = record.get(_HISTORY)
    if isinstance(inside, list):
        messages = [*_history(inside, tell), *_asked(record), *_between(record, tell)]
        answer = next((record[key] for key in _ANSWERS if isinstance(record.get(key), str)), "")
        if answer and not _is_said(messages, answer):
            messages.append({"role": "assistant", "content": answer})
        rest = {key: value for key, value in record.items() if key not in (_HISTORY, *_ASKED, *_ANSWERS)}
        return {**rest, **_policy(record), "messages": messages}
    request, response = record.get("request"), record.get("response")
    if not (isinstance(request, dict) and isinstance(request.get(_HISTORY), list)):
        return record
    messages = [*_history(request[_HISTORY], tell), *_asked(request)]
    if isinstance(response, dict) and isinstance(response.get("text"), str):
        answer = {"role": "assistant", "content": response["text"], "tool_calls": response.get("tool_calls")}
        return {**record, "request": {**request, "messages": messages}, "response": answer}
    return {**record, "request": {**request, "messages": messages}}


def _history(inside: list[Any], tell: Tell) -> list[Any]:
    found = _rewritten(inside, tell)
    return inside if found is None else found


def _asked(fields: Mapping[str, Any]) -> Iterator[Any]:
    """The question, and the results of tools that are handed in with it."""
    asked = next((fields[key] for key in _ASKED if isinstance(fields.get(key), str) and fields[key]), None)
    if asked is not None:
        yield {"role": "user", "content": asked}
    if fields.get("tool_results"):
        yield {"role": "tool", "tool_results": fields["tool_results"]}


def _between(record: Mapping[str, Any], tell: Tell) -> Iterator[Any]:
    """What the agent saw before it answered: passages, and steps as LangChain keeps them."""
    yield from ({"role": "tool", "content": record[key]} for key in _SOURCES if record.get(key))
    for step in record.get(_STEPS) or ():
        if isinstance(step, list) and len(step) == 2 and isinstance(step[0], dict):
            yield {"role": "assistant", "tool_calls": [step[0]]}
            yield {"role": "tool", "content": step[1]}
        else:
            tell(f"what stands in '{_STEPS}' looks like tool calls, and was not read")


def _is_said(messages: Sequence[Any], answer: str) -> bool:
    last = messages[-1] if messages and isinstance(messages[-1], dict) else {}
    return answer in (last.get("content"), last.get("message"))


def _policy(record: Mapping[str, Any]) -> dict[str, Any]:
    return {"system": record["preamble"]} if isinstance(record.get("preamble"), str) else {}


def _of_pairs(messages: Sequence[Any]) -> list[Any] | None:
    """Pairs of texts: a role and what was said, or a question and its answer."""
    pairs = [each for each in messages if isinstance(each, list) and len(each) == 2]
    if len(pairs) < len(messages) or not all(_is_text(text) for pair in pairs for text in pair):
        return None
    if all(isinstance(one, str) and one.lower() in ROLES for one, _ in pairs):
        return [{"role": one, "content": other} for one, other in pairs]
    if any(isinstance(one, str) and one.lower() in ROLES for one, _ in pairs):
        return None
    said = (item for one, other in pairs for item in (("user", one), ("assistant", other)))
    return [{"role": role, "content": text} for role, text in said if text]


def _is_text(value: Any) -> bool:
    return value is None or isinstance(value, str)


# ── pydantic-ai ──────────────────────────────────────────────────────────────────────────────────


def _is_pydantic(message: Mapping[str, Any]) -> bool:
    parts = message.get("parts")
    if message.get("kind") not in ("request", "response") or not isinstance(parts, list):
        return False
    return all(isinstance(part, dict) and "part_kind" in part for part in parts)


def _of_pydantic(messages: Sequence[Any], tell: Tell) -> Iterator[Any]:
    told: set[str] = set()
    for message in messages:
        instructions = message.get("instructions")
        if isinstance(instructions, str) and instructions not in told:
            told.add(instructions)
            yield {"role": "system", "content": instructions}
        if message["kind"] == "response":
            parts = [part for each in message["parts"] if (part := _reply_part(each))]
            yield {"role": "assistant", "content": parts, "usage": message.get("usage")}
        else:
            yield from filter(None, (_request_part(part, tell) for part in message["parts"]))


_BUILT_IN = "builtin-"
_KINDS = {"tool-call": "tool_call", "tool-return": "tool_result"}


def _reply_part(part: Mapping[str, Any]) -> dict[str, Any]:
    kind = str(part["part_kind"])
    known = _KINDS.get(kind.removeprefix(_BUILT_IN), kind)
    if known == "tool_call" and kind.startswith(_BUILT_IN):
        known = "server_tool_use"
    own = {key: part[key] for key in ("content", "args", "tool_name", "tool_call_id") if key in part}
    return {"type": known, **own}


def _request_part(part: Mapping[str, Any], tell: Tell) -> dict[str, Any] | None:
    kind, content = part["part_kind"], part.get("content")
    if kind == "system-prompt":
        return {"role": "system", "content": content}
    if kind == "user-prompt":
        return {"role": "user", "content": content}
    if kind == "retry-prompt" and not part.get("tool_name"):
        tell("what the framework told the agent to do anew was left out")
        return None
    if kind in ("tool-return", "retry-prompt"):
        failed = kind == "retry-prompt" or part.get("outcome") in ("failed", "denied")
        named = {"name": part.get("tool_name"), "tool_call_id": part.get("tool_call_id")}
        return {"role": "tool", "content": content, "is_error": failed, **named}
    return {"role": kind}


# ── Google's ADK ─────────────────────────────────────────────────────────────────────────────────


def _is_adk(event: Mapping[str, Any]) -> bool:
    content = event.get("content")
    is_content = isinstance(content, dict) and isinstance(content.get("parts"), list)
    is_event = "invocationId" in event or "invocation_id" in event
    return isinstance(event.get("author"), str) and (is_content or (is_event and content is None))


def _of_adk(events: Sequence[Any], _: Tell) -> Iterator[Any]:
    """Without what is the beginning of an event that follows."""
    for event in events:
        if isinstance(content := event.get("content"), dict) and not event.get("partial"):
            speaker = "user" if event["author"] == "user" else "model"
            yield {"role": content.get("role") or speaker, "parts": content.get("parts") or []}


def _is_invocation(message: Mapping[str, Any]) -> bool:
    return isinstance(message.get("user_content", message.get("userContent")), dict)


def _of_invocations(invocations: Sequence[Any], _: Tell) -> Iterator[Any]:
    for each in invocations:
        between = _either(each, "intermediate_data", "intermediateData")
        yield {**_either(each, "user_content", "userContent"), "role": "user"}
        for call in _either(between, "tool_uses", "toolUses", []):
            yield {"role": "model", "parts": [{"function_call": call}]}
        for result in _either(between, "tool_responses", "toolResponses", []):
            yield {"role": "user", "parts": [{"function_response": result}]}
        for event in _either(between, "invocation_events", "invocationEvents", []):
            yield {"role": "model", **(event.get("content") or {})}
        for told in _either(between, "intermediate_responses", "intermediateResponses", []):
            yield {"role": "model", "parts": told[-1]}  # behind the name of the agent that told it
        answer = _either(each, "final_response", "finalResponse")
        if any(isinstance(part, dict) and part.get("text") for part in answer.get("parts") or ()):
            yield {**answer, "role": "model"}


def _either(fields: Mapping[str, Any], key: str, other: str, default: Any = None) -> Any:
    return fields.get(key) or fields.get(other) or ({} if default is None else default)


# ── AutoGen ──────────────────────────────────────────────────────────────────────────────────────

_SPOKEN = frozenset(("TextMessage", "MultiModalMessage", "StopMessage", "HandoffMessage",
                     "ToolCallSummaryMessage", "StructuredMessage"))  # fmt: skip
_CALLING = frozenset(("ToolCallRequestEvent", "ToolCallExecutionEvent", "FunctionExecutionResultMessage"))
_BETWEEN = frozenset(("ThoughtEvent", "MemoryQueryEvent", "UserInputRequestedEvent", "SelectSpeakerEvent",
                      "SelectorEvent", "ModelClientStreamingChunkEvent"))  # fmt: skip
_CONTEXT = {"UserMessage": "user", "AssistantMessage": "assistant", "SystemMessage": "system"}


def _is_autogen(message: Mapping[str, Any]) -> bool:
    kind = word(message, "type")
    return kind in _SPOKEN or kind in _CALLING or kind in _BETWEEN or kind in _CONTEXT


def _of_autogen(messages: Sequence[Any], _: Tell) -> Iterator[Any]:
    for message in messages:
        kind, content = message["type"], message.get("content")
        if kind in ("ToolCallExecutionEvent", "FunctionExecutionResultMessage"):
            yield {"role": "tool", "tool_responses": content}
        elif kind == "ToolCallRequestEvent" or (kind == "AssistantMessage" and isinstance(content, list)):
            yield {"role": "assistant", "tool_calls": content}
        elif kind not in _BETWEEN:
            speaker = "user" if message.get("source") == "user" else "assistant"
            yield {"role": _CONTEXT.get(kind, speaker), "content": content}


# ── Letta, opencode, Spring AI ───────────────────────────────────────────────────────────────────

_OF_LETTA = {"user": "user", "assistant": "assistant", "system": "system", "tool_call": "assistant",
             "approval_request": "assistant", "tool_return": "tool"}  # fmt: skip


def _is_letta(message: Mapping[str, Any]) -> bool:
    return word(message, "message_type").endswith("_message")


def _of_letta(messages: Sequence[Any], tell: Tell) -> Iterator[Any]:
    for message in messages:
        kind = message["message_type"].removesuffix("_message")
        if kind == "tool_return":
            named = {key: message.get(key) for key in ("tool_call_id", "name")}
            failed = message.get("status") == "error"
            yield {"role": "tool", "content": message.get("tool_return"), "is_error": failed, **named}
        elif kind in _OF_LETTA:
            own = {key: message[key] for key in ("content", "tool_call") if key in message}
            yield {"role": _OF_LETTA[kind], **own}
        elif kind not in ("reasoning", "hidden_reasoning"):
            tell(f"a message of the unknown type '{kind[:40]}' was skipped")


def _is_opencode(message: Mapping[str, Any]) -> bool:
    info = message.get("info")
    return isinstance(info, dict) and "role" in info and isinstance(message.get("parts"), list)


def _of_opencode(messages: Sequence[Any], _: Tell) -> Iterator[Any]:
    for message in messages:
        parts = (part for part in message["parts"] if isinstance(part, dict))
        kept = [_opencode_part(part) for part in parts if part.get("type") not in _OF_STEPS]
        yield {"role": message["info"]["role"], "content": kept}


_OF_STEPS = ("step-start", "step-finish", "snapshot", "patch", "agent", "retry", "compaction")


def _opencode_part(part: dict[str, Any]) -> dict[str, Any]:
    state = part.get("state")
    if part.get("type") != "tool" or not isinstance(state, dict):
        return part
    outcome = {key: state[key] for key in ("output", "error", "status") if state.get(key) is not None}
    call = {"type": "tool_call", "id": part.get("callID"), "name": part.get("tool")}
    return {**call, "input": state.get("input"), **outcome}


def _is_spring(message: Mapping[str, Any]) -> bool:
    return word(message, "messageType").lower() in ROLES


def _of_spring(messages: Sequence[Any], _: Tell) -> Iterator[Any]:
    for message in messages:
        listed = message.get("responses")
        results = [{**each, "content": each.get("responseData")} for each in listed or () if _is_dict(each)]
        own = {key: message[key] for key in ("text", "content", "toolCalls") if message.get(key)}
        yield {"role": message["messageType"], **own, **({"tool_responses": results} if results else {})}


def _is_dict(value: Any) -> bool:
    return isinstance(value, dict)


# ── steps, threads, events, dialogues ────────────────────────────────────────────────────────────────────


def _is_step(message: Mapping[str, Any]) -> bool:
    return "step_id" in message and message.get("source") in ("user", "agent", "system")


def _of_steps(steps: Sequence[Any], _: Tell) -> Iterator[Any]:
    for step in steps:
        calls = [{**each, "id": each.get("tool_call_id")} for each in step.get("tool_calls") or ()]
        content = step.get("message")
        yield {"role": step["source"], "content": content, **({"tool_calls": calls} if calls else {})}
        for result in (step.get("observation") or {}).get("results") or ():
            if calls and result.get("content") is not None:
                identity = result.get("source_call_id")
                yield {"role": "tool", "tool_call_id": identity, "content": result["content"]}


def _is_of_thread(message: Mapping[str, Any]) -> bool:
    return message.get("object") == "thread.message" and isinstance(message.get("created_at"), int | float)


def _of_thread(messages: Sequence[Any], _: Tell) -> list[Any]:
    """In the order of time: the interface gives the latest first."""
    times = [message["created_at"] for message in messages]
    latest_first = times == sorted(times, reverse=True) and times[0] != times[-1]
    return list(reversed(messages)) if latest_first else list(messages)


def _is_managed(event: Mapping[str, Any]) -> bool:
    return word(event, "type").startswith(("user.", "agent.", "session.", "span."))


def _of_managed(events: Sequence[Any], _: Tell) -> Iterator[Any]:
    """Of the events of Anthropic's managed agents those of the conversation."""
    for event in events:
        speaker, _dot, kind = event["type"].partition(".")
        if kind == "message":
            yield {"role": "user" if speaker == "user" else "assistant", "content": event.get("content")}
        elif kind.endswith("tool_use"):
            yield {"role": "assistant", "content": [{**event, "type": "tool_use"}]}
        elif kind.endswith("tool_result"):
            identity = next((event[key] for key in event if key.endswith("tool_use_id")), None)
            named = {"tool_call_id": identity, "is_error": event.get("is_error")}
            yield {"role": "tool", "content": event.get("content"), **named}


def _is_dialogue(message: Mapping[str, Any]) -> bool:
    is_known = word(message, "speaker").lower() in ("user", "system")
    return is_known and isinstance(message.get("utterance"), str)


def _of_dialogue(messages: Sequence[Any], _: Tell) -> Iterator[Any]:
    """In such sets of data the system is who answers."""
    for message in messages:
        role = "user" if message["speaker"].lower() == "user" else "assistant"
        yield {"role": role, "content": message["utterance"]}


_DIALECTS = (
    _Dialect(_is_pydantic, _of_pydantic),
    _Dialect(_is_adk, _of_adk),
    _Dialect(_is_invocation, _of_invocations),
    _Dialect(_is_autogen, _of_autogen),
    _Dialect(_is_letta, _of_letta),
    _Dialect(_is_opencode, _of_opencode),
    _Dialect(_is_spring, _of_spring),
    _Dialect(_is_step, _of_steps),
    _Dialect(_is_of_thread, _of_thread),
    _Dialect(_is_managed, _of_managed),
    _Dialect(_is_dialogue, _of_dialogue),
)
