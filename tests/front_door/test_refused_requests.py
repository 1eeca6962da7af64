"""A server that refuses the form of a request: the agent fails, in the words of the server."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.kit import Project
from tests.support.local_servers import completion
from tests.support.model_servers import Json, ModelServer, Reply, error
from tests.support.quirks import piece, stream

SUITE = """
id: a
turns:
- {user: Hello, expect: {output: {contains: [done]}}}
- {user: Where is it?, expect: {output: {contains: [done]}, tool_calls: {calls: [{name: look_up}]}}}
tools: {look_up: {parameters: {type: object}, returns: shipped}}
"""
NULL = "Invalid value for 'content': expected a string, got null."
CALL = {"id": "call_1", "type": "function", "function": {"name": "look_up", "arguments": "{}"}}


def played(project: Project, server: ModelServer, more: str = "") -> tuple[int, dict[str, Any]]:
    agent = f"agent: {{name: bot, endpoint: '{server.base_url}/chat/completions'{more}}}\n"
    project.config(agent, target="")
    project.scenarios(SUITE)
    done = project.run()
    return done.code, project.sample()


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("content", [None, ""])
def test_a_server_that_refuses_what_it_sent_itself_is_red_there(
    content: str | None, streamed: bool, project: Project
) -> None:
    """The one with the bug sends null and refuses it; the other one gets back what it sent."""

    def serve(asked: Json) -> Reply:
        messages = asked["messages"]
        if any(each.get("content", 0) is None for each in messages):
            return error(NULL)
        is_call = messages[-1]["content"] == "Where is it?"
        if not streamed:
            calls = {"tool_calls": [CALL], "finish_reason": "tool_calls"} if is_call else {}
            return Reply(completion(content if is_call else "Done.", **calls))
        if not is_call:
            return stream(piece("Done.", reason="stop"))
        first = {
            "choices": [{"index": 0, "delta": {"content": content, "tool_calls": [{"index": 0, **CALL}]}}]
        }
        return stream(first, piece(reason="tool_calls"))

    with ModelServer(serve) as server:
        code, sample = played(project, server, ", streaming: true" if streamed else "")
        asked = server.asked
    if content is None:
        assert (code, sample["verdict"], sample["stop"]) == (1, "failed", "agent_error")
        told = sample["turns"][1]["error"]
        assert NULL in told
        assert "`request` and `reply` describe another one" in told
        assert [json.dumps(each) for each in asked].count(json.dumps(asked[-1])) == 1
    else:
        assert code == 0
    assert sample["turns"][0]["agent"] == "Done."
    assert [call["name"] for call in sample["turns"][1]["tool_calls"]] == ["look_up"]


@pytest.mark.parametrize("body", ["", ", body: {stream_options: null}"])
def test_the_failure_names_the_key_that_mends_it(body: str, project: Project) -> None:
    def serve(asked: Json) -> Reply:
        if "stream_options" in asked:
            return error("Extra inputs are not permitted: stream_options", status=422)
        if asked["messages"][-1]["content"] == "Where is it?":
            delta = {"tool_calls": [{"index": 0, **CALL}]}
            return stream({"choices": [{"index": 0, "delta": delta}]}, piece(reason="tool_calls"))
        return stream(piece("Done.", reason="stop"))

    with ModelServer(serve) as server:
        code, sample = played(project, server, f", streaming: true{body}")
    assert code == (not body)
    if not body:
        told = sample["turns"][0]["error"]
        assert "HTTP status 422" in told
        assert "Extra inputs are not permitted: stream_options" in told
        assert "`body: {stream_options: null}` leaves stream_options out" in told
        assert "`send_tools: false` leaves tools out" in told
