"""What a provider refuses: an error inside a reply of status 200, and the form of a request."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.http_runs import HttpAgent, HttpRun, error_of, run_http_agents
from tests.support.kit import Project, failed_checks
from tests.support.local_servers import Behaviour, chat, completion, delta, respond_json, sse
from tests.support.model_servers import Json, ModelServer, Reply, error
from tests.support.quirks import piece, stream

SUITE = "turns: [Hello], expect: {output: {contains: [Hello]}}"
TEXT = {"type": "output_text", "text": "Hello.", "annotations": []}
ITEM = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [TEXT]}
RESPONSE = {"id": "r", "object": "response", "status": "completed", "error": None, "output": [ITEM]}
MESSAGE = {
    "role": "assistant",
    "type": "message",
    "stop_reason": "end_turn",
    "content": [{"type": "text", "text": "Hello."}],
}


def any_api(error: Any) -> Behaviour:
    return respond_json({"fault": error})


STARTED = {"type": "message_start", "message": {**MESSAGE, "content": []}}
ANY = 'request: {message: "${message}"}, reply: {text: said, error: KEY}, '
CHAT, STREAMING = "chat/completions", "streaming: true, "
Form = tuple[str, str, Callable[[Any], Behaviour], Behaviour]
FORMS: dict[str, Form] = {
    # the path; the options; how an error is sent; a good answer
    "chat": (CHAT, "", lambda error: respond_json({"error": error}), chat("Hello.")),
    "choice": (
        CHAT, "",
        lambda error: respond_json({**completion(""), "choices": [{"index": 0, "error": error}]}),
        chat("Hello."),
    ),
    "bare": (CHAT, "", lambda error: respond_json({"object": "error", **error}), chat("Hello.")),
    "stream": (
        CHAT, STREAMING,
        lambda error: sse(delta("Hel"), {"error": error}),
        sse(delta("Hello."), delta(finish_reason="stop")),
    ),
    "responses": (
        "v1/responses", "",
        lambda error: respond_json({**RESPONSE, "status": "failed", "output": [], "error": error}),
        respond_json(RESPONSE),
    ),
    "failed response": (
        "v1/responses", STREAMING,
        lambda error: sse({"type": "response.failed", "response": {"status": "failed", "error": error}}),
        sse({"type": "response.completed", "response": RESPONSE}),
    ),
    "messages": (
        "v1/messages", "",
        lambda error: respond_json({"type": "error", "error": error}),
        respond_json(MESSAGE),
    ),
    "event": (
        "v1/messages", STREAMING,
        lambda error: sse(STARTED, {"type": "error", "error": error}),
        sse({"type": "message_start", "message": MESSAGE}, {"type": "message_stop"}),
    ),
    "named code": (
        "ask", ANY.replace("KEY", "code"),
        lambda error: respond_json({"code": error.get("code"), "said": "Hello."}),
        respond_json({"code": 0, "said": "Hello."}),
    ),
    "any API": ("ask", ANY.replace("KEY", "fault"), any_api, respond_json({"said": "Hello."})),
}  # fmt: skip
CASES: dict[str, tuple[str, str | None, Any]] = {
    # the verdict, the fault, and what is sent (by the form's failing and good replies)
    "no access": ("inconclusive", "infrastructure", [{"code": 403, "message": "no access"}]),
    "its own name": ("failed", "agent", [{"code": "KeyError", "message": "city"}]),
    "its own 500": ("failed", "agent", [{"code": 500, "message": "city"}]),
    "answers": ("passed", None, []),
    "limit": ("passed", None, [{"type": "rate_limit_error", "code": "429", "message": "Too many requests"}]),
}


def forbidden(tool: str) -> HttpAgent:
    """An agent that calls a tool before its provider breaks."""
    call = {"index": 0, "id": "c1", "type": "function", "function": {"name": tool, "arguments": "{}"}}
    broken = sse(delta(tool_calls=[call]), {"error": {"code": 503}})
    scenario = "turns: [Hello], tools: {refund: {returns: done}, look: {returns: done}}, "
    scenario += "expect: {tool_calls: {forbidden: [{name: refund}]}}"
    return HttpAgent("streaming: true, max_wait_s: 0", (broken,), "/chat/completions", scenario)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> HttpRun:
    rows = {"calls refund": forbidden("refund"), "calls look": forbidden("look")}
    for form, (path, options, failing, good) in FORMS.items():
        for case, (_, _, errors) in CASES.items():
            behaviours = (*map(failing, errors), good)
            rows[f"{form}, {case}"] = HttpAgent(f"{options}max_wait_s: 5", behaviours, f"/{path}", SUITE)
    return run_http_agents(Project(tmp_path_factory.mktemp("faults")), rows)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", CASES)
def test_an_error_in_a_reply_counts_as_its_status(ran: HttpRun, form: str, case: str) -> None:
    sample, (verdict, fault, _) = ran.samples[f"{form}, {case}"], CASES[case]
    assert (sample["verdict"], sample["fault"]) == (verdict, fault), sample
    assert len(ran.asked[f"{form}, {case}"]) == (2 if case == "limit" else 1)
    if case == "no access":
        assert "403" in error_of(sample)
        assert "200" in error_of(sample)
        assert failed_checks(sample) == set()


@pytest.mark.parametrize(("tool", "verdict"), [("refund", "failed"), ("look", "inconclusive")])
def test_a_forbidden_call_before_the_fault_counts(ran: HttpRun, tool: str, verdict: str) -> None:
    assert ran.samples[f"calls {tool}"]["verdict"] == verdict


# ── a server that refuses the form of a request: the agent fails, in the words of the server ────────

TWO_TURNS = """
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
    project.scenarios(TWO_TURNS)
    done = project.run()
    return done.code, project.sample()


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("content", [None, ""])
def test_a_server_that_refuses_what_it_sent_is_red(
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
        message = sample["turns"][1]["error"]
        assert NULL in message
        assert "`request`" in message
        assert "`reply`" in message
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
        message = sample["turns"][0]["error"]
        facts = ("422", "Extra inputs are not permitted: stream_options", "`body: {stream_options: null}`")
        assert all(fact in message for fact in (*facts, "`send_tools: false`")), message
