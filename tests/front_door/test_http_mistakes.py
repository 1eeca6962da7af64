"""What does not fit together in an HTTP agent is refused at its place, with what to write."""

from __future__ import annotations

import pytest

from tests.support.kit import Project

REQUEST = 'request: {m: "${message}"}'
REPLY = "reply: {text: t}"
TOOL_RESULTS = 'request: {m: "${message}", tool_results: []}, reply: {text: t, tool_calls: c}'
# The options of an agent, the column that is refused, and what the message names.
MISTAKES = [
    (REQUEST, 43, "`reply`", "reply: {text: answer}"),
    (REPLY, 43, "`request`", 'request: {message: "${message}"}'),
    (f"{REQUEST}, reply: {{txt: t}}", 79, "'txt'", "'text'"),
    (f"{REQUEST}, reply: {{session: s}}", 71, "`reply`", "text: PATH"),
    (f"{REQUEST}, reply: answer", 71, "agent.reply", "'answer'"),
    (f'request: "${{message}}", {REPLY}', 43, "agent.request", "'${message}'"),
    (f"request: {{a: b}}, {REPLY}", 43, "${message}", "${messages}", '{message: "${message}"}'),
    (f"{REQUEST}, {REPLY}, body: {{model: m}}", 89, "`body`", "`request`"),
    (f"{REQUEST}, {REPLY}, send_tools: false", 89, "`send_tools`", '"${tools}"'),
    (f"{REQUEST}, {REPLY}, observed_messages: a", 89, "`observed_messages`", "reply: {messages: …}"),
    (f"{REQUEST}, {REPLY}, api: messages", 89, "`api`", "`request`"),
    (TOOL_RESULTS, 70, "`reply.tool_calls`", 'tool_results: "${tool_results}"', '"${messages}"'),
    (f'request: {{m: "${{message}}", r: "${{tool_results}}"}}, {REPLY}', 43, "tool_calls: PATH"),
    (f"{REQUEST}, reply: {{text: '$.data[0].text'}}", 79, "'$.data[0].text'", "data.0.text"),
    (f"{REQUEST}, reply: {{text: 'a..b'}}", 79, "'a..b'", "data.reply"),
    (f"{REQUEST}, reply: {{text: t, session: s}}", 88, "`reply.session`", 'session: "${session}"'),
    (f"{REQUEST}, reply: {{text: t, session: {{header: a, cookie: b}}}}", 88, "header", "cookie"),
    (f"{REQUEST}, {REPLY}, poll: {{job: id}}", 89, "`poll`", "status: PATH"),
    (f"{REQUEST}, {REPLY}, poll: {{status: s, url: '/${{job}}'}}", 107, "`poll.job`", "job: PATH"),
    (f"{REQUEST}, {REPLY}, poll: {{status: s, url: /x, job: id}}", 107, "`poll.url`", "/jobs/${job}"),
    (f"{REQUEST}, {REPLY}, streaming: true, poll: {{status: s}}", 106, "`poll`", "`streaming`"),
    (f"{REQUEST}, {REPLY}, poll: {{status: s, every_s: 0}}", 107, "agent.poll.every_s", "0"),
    ("poll: {status: s}", 43, "`poll`", "`request`", "`reply`"),
    ("headers: {X: '${session}'}", 53, "`headers.X`", "${session}", "`request`"),
    (f'request: {{m: "${{mesage}}"}}, {REPLY}', 53, "mesage", "'message'"),
    (f'request: {{m: "${{message}}", u: "${{mcp_url}}"}}, {REPLY}', 43, "${mcp_url}", "mcp: true"),
    ("api: responsess", 43, "agent.api", "'responsess'", "chat_completions, responses, messages"),
    ("api: a2a", 43, "agent.api", "'a2a'", "chat_completions, responses, messages"),
    ("api: responses, observed_messages: a", 59, "`observed_messages`", "api: responses"),
    ("api: responses, body: {input: hi}", 66, "`body.input`", "{role: …, content: …}"),
]


@pytest.mark.parametrize(("options", "column", "facts"), [(o, c, f) for o, c, *f in MISTAKES])
def test_a_mistake_is_refused_at_its_place(
    project: Project, options: str, column: int, facts: list[str]
) -> None:
    project.write("agenteval.yaml", f"agent: {{endpoint: 'http://localhost:1/x', {options}}}\nmetrics: []\n")
    project.scenarios("scenarios: [{name: s, turns: [hi], expect: {output: {contains: [x]}}}]")
    project.call("validate").refuses(f"agenteval.yaml:1:{column}", *facts)


@pytest.mark.parametrize(
    ("path", "options", "facts"),
    [
        ("${session}", "request: {m: '${message}'}, reply: {text: t, session: s}", ["reply.session"]),
        ("v1/messages", "observed_messages: a", ["observed_messages", "api: chat_completions"]),
    ],
    ids=["a session that is the server's", "what the API of the address has not"],
)
def test_options_that_do_not_go_with_the_endpoint_are_refused(
    project: Project, path: str, options: str, facts: list[str]
) -> None:
    address = f"agent: {{endpoint: 'http://localhost:1/{path}', {options}}}\nmetrics: []\n"
    project.write("agenteval.yaml", address)
    project.call("validate", "x.yaml").refuses("agenteval.yaml:1", *facts)
