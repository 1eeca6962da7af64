"""What does not fit together in an HTTP agent is refused at its place, with what to write."""

from __future__ import annotations

import pytest

from tests.support.kit import Project

REQUEST = 'request: {m: "${message}"}'
REPLY = "reply: {text: t}"
MISTAKES = {
    REQUEST: "1:43: `request` needs `reply` — write where the answer is: reply: {text: answer}",
    REPLY: "1:43: `reply` needs `request`",
    f"{REQUEST}, reply: {{txt: t}}": "unknown key 'txt' — did you mean 'text'?",
    f"{REQUEST}, reply: {{session: s}}": "`reply` does not say where the answer is — add text: PATH",
    f"{REQUEST}, reply: answer": "expected",
    f'request: "${{message}}", {REPLY}': "expected",
    f"request: {{a: b}}, {REPLY}": "`request` has neither ${message} nor ${messages}",
    f"{REQUEST}, {REPLY}, body: {{model: m}}": "`body` does not go with `request` — write its keys",
    f"{REQUEST}, {REPLY}, send_tools: false": "`send_tools` does not go with `request`",
    f"{REQUEST}, {REPLY}, observed_messages: a": "write reply: {messages: …}",
    f"{REQUEST}, {REPLY}, api: messages": "`api` does not go with `request`",
    'request: {m: "${message}", tool_results: []}, reply: {text: t, tool_calls: c}': (
        "`reply.tool_calls` are answered, but `request` has no place for the results — write tool_results:"
        ' "${tool_results}", or send the conversation with "${messages}"'
    ),
    f'request: {{m: "${{message}}", r: "${{tool_results}}"}}, {REPLY}': "add tool_calls: PATH to reply",
    f"{REQUEST}, reply: {{text: '$.data[0].text'}}": "is not a dotted path — write for example data.0.text",
    f"{REQUEST}, reply: {{text: 'a..b'}}": "'a..b' is not a dotted path",
    f"{REQUEST}, reply: {{text: t, session: s}}": "`reply.session` is read, but no request has ${session}",
    f"{REQUEST}, reply: {{text: t, session: {{header: a, cookie: b}}}}": "expected one of header and cookie",
    f"{REQUEST}, {REPLY}, poll: {{job: id}}": "`poll` does not say where the state of the job is",
    f"{REQUEST}, {REPLY}, poll: {{status: s, url: '/${{job}}'}}": "`poll.job` is missing — add job: PATH",
    f"{REQUEST}, {REPLY}, poll: {{status: s, url: /x, job: id}}": "`poll.url` has no ${job}",
    f"{REQUEST}, {REPLY}, streaming: true, poll: {{status: s}}": "`poll` does not go with `streaming`",
    f"{REQUEST}, {REPLY}, poll: {{status: s, every_s: 0}}": "every_s: must be more than 0, got 0",
    "poll: {status: s}": "`poll` needs `request` and `reply`",
    "headers: {X: '${session}'}": "`headers.X` has ${session}, which needs `request`",
    f'request: {{m: "${{mesage}}"}}, {REPLY}': "the variable mesage is not set — did you mean 'message'",
    f'request: {{m: "${{message}}", u: "${{mcp_url}}"}}, {REPLY}': "${mcp_url} has no value: no MCP server",
    "api: responsess": "expected one of chat_completions, responses, messages",
    "api: a2a": "agent.api: expected one of chat_completions, responses, messages, got 'a2a'",
    "api: responses, observed_messages: a": "`observed_messages` does not go with api: responses",
    "api: responses, body: {input: hi}": "`body.input` is not a list of items",
}


@pytest.mark.parametrize("options", MISTAKES)
def test_a_mistake_is_told_at_its_place(project: Project, options: str) -> None:
    project.write("agenteval.yaml", f"agent: {{endpoint: 'http://localhost:1/x', {options}}}\nmetrics: []\n")
    project.scenarios("scenarios: [{name: s, turns: [hi], expect: {output: {contains: [x]}}}]")
    done = project.call("validate")
    assert done.code == 2, done.all
    assert MISTAKES[options] in done.err
    assert "agenteval.yaml:1:" in done.err


def test_a_session_in_an_endpoint_must_be_ours(project: Project) -> None:
    project.write(
        "agenteval.yaml",
        "agent: {endpoint: 'http://localhost:1/${session}', request: {m: '${message}'},"
        " reply: {text: t, session: s}}\nmetrics: []\n",
    )
    done = project.call("validate", "x.yaml")
    assert done.code == 2
    assert "drop reply.session: agenteval then creates the ID" in done.err


def test_what_an_api_has_not_is_refused_where_the_address_names_it(project: Project) -> None:
    project.write(
        "agenteval.yaml",
        "agent: {endpoint: 'http://localhost:1/v1/messages', observed_messages: a}\nmetrics: []\n",
    )
    done = project.call("validate", "x.yaml")
    assert done.code == 2
    assert "drop it, or write api: chat_completions" in done.err
