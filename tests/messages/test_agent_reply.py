"""What an endpoint sends and what a function returns is one answer, if it says the same."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agenteval.adapters.agents.http import read_reply
from agenteval.adapters.transport.client import HttpReply
from agenteval.core.errors import AgentError
from agenteval.core.protocols import ReadReply
from agenteval.messages.agent_reply import parse_reply
from agenteval.messages.completion import UnreadableResponseError
from tests.support.kit import Project

CALL = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"a": 1}'}}
OLDER = {"name": "find", "arguments": '{"a":1}'}
MESSAGES: dict[str, dict[str, Any]] = {
    "a text": {"content": "Yes."},
    "parts": {"content": [{"type": "text", "text": "Y"}, {"type": "text", "text": "es."}]},
    "a refusal": {"content": None, "refusal": "No."},
    "a refusal among the parts": {"content": [{"type": "refusal", "refusal": "No."}]},
    "calls": {"content": None, "tool_calls": [CALL]},
    "calls in another order": {
        "content": "x", "tool_calls": [{**CALL, "index": 1}, {**CALL, "id": "c0", "index": 0}]
    },
    "an older call": {"content": None, "function_call": OLDER},
    "an older call that is told twice": {"content": None, "tool_calls": [CALL], "function_call": OLDER},
    "an older call beside another": {
        "content": None, "tool_calls": [CALL], "function_call": {**OLDER, "arguments": '{"a": 2}'}
    },
    "further fields": {"content": "x", "reasoning_content": "hm", "audio": None},
    "blocks of another library": {
        "content": [{"type": "tool_use", "id": "t", "name": "find", "input": {"a": 1}}]
    },
    "nothing": {"content": None},
}  # fmt: skip


def completion(message: dict[str, Any], **choice: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "message": {"role": "assistant", **message}, **choice}]}


def from_endpoint(document: dict[str, Any]) -> ReadReply:
    return read_reply(HttpReply(200, {}, json.dumps(document), 1))


def told(reply: ReadReply) -> tuple[Any, ...]:
    return reply.text, list(reply.tool_calls), list(reply.messages), dict(reply.extra)


@pytest.mark.parametrize("name", MESSAGES)
def test_one_message_is_one_answer(name: str) -> None:
    document = completion(MESSAGES[name])
    assert told(from_endpoint(document)) == told(parse_reply(document))
    assert told(parse_reply(document["choices"][0]["message"])) == told(parse_reply(document))


@pytest.mark.parametrize("reason", ["length", "max_tokens", "content_filter", "error", "stop"])
@pytest.mark.parametrize("name", ["a text", "calls", "nothing"])
def test_what_is_no_complete_answer_is_none_anywhere(name: str, reason: str) -> None:
    document = completion(MESSAGES[name], finish_reason=reason)
    if reason == "stop":
        assert told(from_endpoint(document)) == told(parse_reply(document))
        return
    with pytest.raises(UnreadableResponseError, match=r"(cut off|ended with an error)") as sent:
        from_endpoint(document)
    with pytest.raises(AgentError, match=r"(cut off|ended with an error)") as returned:
        parse_reply(document)
    assert sent.value.what.partition(" — ")[0] in str(returned.value)


@pytest.mark.parametrize("beside", [{}, {"message": {"role": "assistant", "content": "Hal"}}])
def test_an_error_in_a_choice_is_no_answer_anywhere(beside: dict[str, Any]) -> None:
    document = {"choices": [{"index": 0, "error": {"message": "overloaded"}, **beside}]}
    with pytest.raises(UnreadableResponseError, match="contains an error instead of a message"):
        from_endpoint(document)
    with pytest.raises(AgentError, match=r"contains an error instead of a message.*overloaded"):
        parse_reply(document)


def scenario(project: Project, code: str, expect: str) -> int:
    project.agent(f"def agent(messages):\n    if len(messages) > 1: return 'done'\n    return {code}\n")
    project.config()
    project.scenarios(f"{{id: a, turns: [hi], tools: {{find: {{returns: 1}}}}, expect: {expect}}}\n")
    return project.call("run").code


def test_a_refusal_among_parts_is_what_a_python_agent_answered(project: Project) -> None:
    parts = "{'role': 'assistant', 'content': [{'type': 'refusal', 'refusal': 'I must not.'}]}"
    assert scenario(project, parts, "{output: {contains: must not}}") == 0
    assert scenario(project, parts.replace("I must not.", ""), "{output: {contains: must not}}") == 1


def test_a_completion_whose_choice_holds_an_error_is_no_answer(project: Project) -> None:
    broken = "{'choices': [{'error': {'code': 'x1'}, 'message': {'role': 'assistant', 'content': 'Yes.'}}]}"
    assert scenario(project, broken, "{output: {contains: 'Yes'}}") == 1
    assert (
        scenario(project, broken.replace("'error': {'code': 'x1'}, ", ""), "{output: {contains: 'Yes'}}") == 0
    )


def test_an_error_of_a_provider_in_what_a_function_returns_is_nobodys_failure(project: Project) -> None:
    broken = "{'choices': [{'error': {'code': 529}, 'message': {'role': 'assistant', 'content': 'Yes.'}}]}"
    for returned in (
        broken,
        "{'error': {'type': 'overloaded_error'}}",
        "{'error': {'code': 429}, 'choices': None}",
    ):
        assert scenario(project, returned, "{output: {contains: 'Yes'}}") == 3
    assert scenario(project, "{'error': {'code': 500}}", "{output: {contains: 'Yes'}}") == 1


def test_a_call_that_is_told_in_both_fields_was_made_once(project: Project) -> None:
    both = f"{{'role': 'assistant', 'tool_calls': [{CALL}], 'function_call': {OLDER}}}"
    assert scenario(project, both, "{limits: {tool_calls: 1}}") == 0
    other = both.replace('{"a":1}', '{"a":2}')
    assert scenario(project, other, "{limits: {tool_calls: 1}}") == 1
