"""A history beside the question that follows it: Cohere's requests, chains over documents. Pure.

Such a history has messages with roles, or pairs of texts: a role and what was said, or a question and its
answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agenteval.messages.said import PASSAGES
from agenteval.messages.speakers import ROLES

_HISTORY = "chat_history"
_ASKED = ("message", "question", "query", "input")
_STEPS = "intermediate_steps"
_SOURCES = ("source_documents",)
_OF_COHERE = ("documents", "search_queries", "search_results", "citations", "connectors")
_ANSWERS = ("answer", "response", "output", "text")


class _ChatHistory:
    name = "chat-history"

    def matches(self, record: Any) -> bool:
        if not isinstance(record, dict) or isinstance(record.get("messages"), list):
            return False
        return isinstance(record.get(_HISTORY), list) or _is_request(record.get("request"))

    def read(self, record: Mapping[str, Any]) -> list[dict[str, Any]]:
        inside = record.get(_HISTORY)
        return [_answered(record, inside) if isinstance(inside, list) else _exchange(record)]


def _is_request(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get(_HISTORY), list)


def _answered(record: Mapping[str, Any], inside: list[Any]) -> dict[str, Any]:
    messages = [*_history(inside), *_asked(record), *_between(record)]
    answer = next((record[key] for key in _ANSWERS if isinstance(record.get(key), str)), "")
    if answer and not _is_said(messages, answer):
        messages.append({"role": "assistant", "content": answer})
    read = (_HISTORY, _STEPS, *_SOURCES, *_ASKED, *_ANSWERS, *_OF_COHERE)
    rest = {key: value for key, value in record.items() if key not in read}
    policy = {"system": record["preamble"]} if isinstance(record.get("preamble"), str) else {}
    return {**rest, **policy, "messages": messages}


def _exchange(record: Mapping[str, Any]) -> dict[str, Any]:
    """A request that has a history, with its response."""
    request, response = record["request"], record.get("response")
    messages = [*_history(request[_HISTORY]), *_asked(request)]
    read = (_HISTORY, *_ASKED, "request")
    fields = {key: value for key, value in {**record, **request}.items() if key not in read}
    fields["messages"] = messages
    if isinstance(response, dict) and isinstance(response.get("text"), str):
        answer = {"role": "assistant", "content": response["text"], "tool_calls": response.get("tool_calls")}
        fields["response"] = answer
    return fields


def _history(inside: list[Any]) -> Sequence[Any]:
    pairs = [each for each in inside if isinstance(each, list) and len(each) == 2]
    if not pairs or len(pairs) < len(inside):
        return inside
    if all(isinstance(one, str) and one.lower() in ROLES for one, _ in pairs):
        return [{"role": one, "content": other} for one, other in pairs]
    said = (item for one, other in pairs for item in (("user", one), ("assistant", other)))
    return [{"role": role, "content": text} for role, text in said if text]


def _asked(fields: Mapping[str, Any]) -> Iterator[Any]:
    asked = next((fields[key] for key in _ASKED if isinstance(fields.get(key), str) and fields[key]), None)
    if asked is not None:
        yield {"role": "user", "content": asked}


def _between(record: Mapping[str, Any]) -> Iterator[Any]:
    """What the agent saw before it answered: passages, and steps as LangChain keeps them."""
    for key in _SOURCES:
        if record.get(key):
            yield {"role": "tool", "type": PASSAGES, "content": record[key]}
    steps = record.get(_STEPS) or []
    for step in steps if isinstance(steps, list) else [steps]:
        if _is_step(step):
            yield {"role": "assistant", "tool_calls": [step[0]]}
            yield {"role": "tool", "content": step[1]}
        else:
            yield {_STEPS: step}


def _is_step(step: Any) -> bool:
    return isinstance(step, list) and len(step) == 2 and isinstance(step[0], dict)


def _is_said(messages: Sequence[Any], answer: str) -> bool:
    last = messages[-1] if messages and isinstance(messages[-1], dict) else {}
    return answer in (last.get("content"), last.get("message"))


importer = _ChatHistory()
