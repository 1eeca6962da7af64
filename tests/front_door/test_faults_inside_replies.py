"""A provider's fault inside a reply of status 200 is read like the status that it names."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.kit import Project, failed_checks
from tests.support.local_servers import Behaviour, LocalServer, chat, completion, delta, respond_json, sse

SUITE = "{id: a, turns: [Hello], expect: {output: {contains: [Hello]}}}"
TEXT = {"type": "output_text", "text": "Hello.", "annotations": []}
ITEM = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [TEXT]}
RESPONSE = {"id": "r", "object": "response", "status": "completed", "error": None, "output": [ITEM]}
MESSAGE = {
    "role": "assistant",
    "type": "message",
    "stop_reason": "end_turn",
    "content": [{"type": "text", "text": "Hello."}],
}
STREAM = "body: {stream: true}, streaming: true, "

Forms = dict[str, tuple[str, str, Callable[[Any], Behaviour], Behaviour]]
FORMS: Forms = {
    # what the agent is configured with; how an error is sent; a good answer
    "chat": ("chat/completions", "", lambda error: respond_json({"error": error}), chat("Hello.")),
    "choice": (
        "chat/completions",
        "",
        lambda error: respond_json({**completion(""), "choices": [{"index": 0, "error": error}]}),
        chat("Hello."),
    ),
    "bare": (
        "chat/completions",
        "",
        lambda error: respond_json({"object": "error", **error}),
        chat("Hello."),
    ),
    "stream": (
        "chat/completions",
        "streaming: true, ",
        lambda error: sse(delta("Hel"), {"error": error}),
        sse(delta("Hello."), delta(finish_reason="stop")),
    ),
    "responses": (
        "v1/responses",
        "",
        lambda error: respond_json({**RESPONSE, "status": "failed", "output": [], "error": error}),
        respond_json(RESPONSE),
    ),
    "failed response": (
        "v1/responses",
        "streaming: true, ",
        lambda error: sse({"type": "response.failed", "response": {"status": "failed", "error": error}}),
        sse({"type": "response.completed", "response": RESPONSE}),
    ),
    "messages": (
        "v1/messages",
        "",
        lambda error: respond_json({"type": "error", "error": error}),
        respond_json(MESSAGE),
    ),
    "event": (
        "v1/messages",
        "streaming: true, ",
        lambda error: sse({"type": "message_start", "message": {**MESSAGE, "content": []}},
                          {"type": "error", "error": error}),
        sse({"type": "message_start", "message": MESSAGE}, {"type": "message_stop"}),
    ),
    "named code": (
        "ask",
        'request: {message: "${message}"}, reply: {text: said, error: code}, ',
        lambda error: respond_json({"code": error.get("code"), "said": "Hello."}),
        respond_json({"code": 0, "said": "Hello."}),
    ),
    "any API": (
        "ask",
        'request: {message: "${message}"}, reply: {text: said, error: fault}, ',
        lambda error: respond_json({"fault": error}),
        respond_json({"said": "Hello."}),
    ),
}  # fmt: skip


def play(project: Project, form: str, *behaviours: Behaviour) -> int:
    path, options, _, _ = FORMS[form]
    with LocalServer(*behaviours) as server:
        address = f"{server.address}/{path}"
        agent = f"{{name: bot, endpoint: '{address}', {options}max_wait_s: 5}}"
        project.write("agenteval.yaml", f"agent: {agent}\nmetrics: []\n")
        project.scenarios(SUITE)
        return project.run().code


@pytest.mark.parametrize("form", FORMS)
def test_what_the_agent_did_not_break_is_nobodys_failure(project: Project, form: str) -> None:
    _, _, failing, answer = FORMS[form]
    access = failing({"code": 403, "message": "no access"})
    assert play(project, form, access) == 3
    shown = json.dumps(project.sample())
    assert "HTTP status 403" in shown
    assert "in a reply of status 200" in shown
    assert failed_checks(project.sample()) == set()
    # The agent's own error, in the same place, is its failure.
    assert play(project, form, failing({"code": "KeyError", "message": "city"})) == 1
    assert play(project, form, failing({"code": 500, "message": "city"})) == 1
    assert play(project, form, answer) == 0


@pytest.mark.parametrize("form", FORMS)
def test_what_may_pass_is_asked_again(project: Project, form: str) -> None:
    _, _, failing, answer = FORMS[form]
    limit = failing({"type": "rate_limit_error", "code": "429", "message": "Too many requests, slow down."})
    assert play(project, form, limit, answer) == 0


@pytest.mark.parametrize(("tool", "code"), [("refund", 1), ("look", 3)])
def test_a_forbidden_call_before_the_fault_counts(project: Project, tool: str, code: int) -> None:
    call = {"index": 0, "id": "c1", "type": "function", "function": {"name": tool, "arguments": "{}"}}
    with LocalServer(sse(delta(tool_calls=[call]), {"error": {"code": 503}})) as server:
        agent = (
            f"{{name: bot, endpoint: '{server.address}/chat/completions', streaming: true, max_wait_s: 0}}"
        )
        project.write("agenteval.yaml", f"agent: {agent}\nmetrics: []\n")
        project.scenarios(
            "{id: a, turns: [Hello], tools: {refund: {returns: done}, look: {returns: done}},"
            " expect: {tool_calls: {forbidden: [{name: refund}]}}}"
        )
        done = project.run()
    assert done.code == code, done.all
