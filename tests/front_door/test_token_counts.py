"""Reasoning tokens beside the others: they count, by whatever way the usage comes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.judged_projects import (
    KEY,
    MODEL,
    contented,
    judged_project,
    model_config,
    scenario,
    usage_of,
)
from tests.support.kit import Project, failed_checks
from tests.support.local_servers import LocalServer, completion, delta, respond_json, sse
from tests.support.model_servers import ModelServer

SUITE = "{id: s, turns: [hi], expect: {limits: {tokens: 1099}}}"
both = pytest.mark.parametrize("answered", [40, 30], ids=["bug", "fix"])
"""1,000 tokens in, 60 of reasoning that stand beside these tokens out: 1,100 or 1,090."""


def counts(answered: int) -> dict[str, Any]:
    return {
        "prompt_tokens": 1000,
        "completion_tokens": answered,
        "total_tokens": 1060 + answered,
        "completion_tokens_details": {"reasoning_tokens": 60},
    }


def responses_counts(answered: int) -> dict[str, Any]:
    return {
        "input_tokens": 1000,
        "output_tokens": answered,
        "total_tokens": 1060 + answered,
        "output_tokens_details": {"reasoning_tokens": 60},
    }


def is_decided_rightly(project: Project, answered: int, suite: str = SUITE) -> None:
    project.scenarios(suite)
    done = project.run()
    sample = project.sample()
    assert failed_checks(sample) == ({(None, "limits.tokens")} if answered == 40 else set()), done.all
    assert done.code == (1 if answered == 40 else 0)
    usage = sample["usage"]
    assert (usage["input_tokens"], usage["output_tokens"]) == (1000, 60 + answered)
    assert (usage["estimated"], usage["cost"]) == (False, pytest.approx((1000 + 100 * (60 + answered)) / 1e6))


PRICES = "prices: {bot: {input: 1, output: 100}}"
RETURNS = {
    "a message": "{'role': 'assistant', 'content': 'ok', 'usage': USAGE}",
    "a list": "[{'role': 'assistant', 'content': 'ok', 'usage': USAGE}]",
    "a reply": "AgentReply(text='ok', usage=USAGE)",
    "a completion": "{'choices': [{'message': {'role': 'assistant', 'content': 'ok'}}], 'usage': USAGE}",
}


@both
@pytest.mark.parametrize("returned", RETURNS)
def test_of_a_python_agent(project: Project, returned: str, answered: int) -> None:
    project.config(PRICES)
    project.agent(
        f"from agenteval import AgentReply\nUSAGE = {counts(answered)}\n"
        f"def agent(messages):\n    return {RETURNS[returned]}\n"
    )
    is_decided_rightly(project, answered)


@both
def test_of_gemini(project: Project, answered: int) -> None:
    usage = {"promptTokenCount": 1000, "candidatesTokenCount": answered, "thoughtsTokenCount": 60}
    message = {"role": "model", "parts": [{"text": "ok"}], "usageMetadata": usage}
    project.config(PRICES)
    project.agent(f"def agent(messages):\n    return [{message}]\n")
    is_decided_rightly(project, answered)


def events(answered: int) -> tuple[Any, ...]:
    """The last event has the counts; some servers count in each."""
    started = {"usage": {"prompt_tokens": 1000, "completion_tokens": 1, "total_tokens": 1001}}
    return (
        {**delta("o"), **started},
        delta("k", finish_reason="stop"),
        {"choices": [], "usage": counts(answered)},
    )


@both
def test_of_chat_completions(project: Project, answered: int) -> None:
    with LocalServer(respond_json({**completion("ok"), "usage": counts(answered)})) as server:
        project.write(
            "agenteval.yaml", f"agent: {{name: bot, endpoint: '{server.url}'}}\nmetrics: []\n{PRICES}\n"
        )
        is_decided_rightly(project, answered)
    with LocalServer(sse(*events(answered))) as server:
        options = f"{{name: bot, endpoint: '{server.url}', streaming: true}}"
        project.write("agenteval.yaml", f"agent: {options}\nmetrics: []\n{PRICES}\n")
        is_decided_rightly(project, answered)


@both
def test_of_a_stream_of_groq(project: Project, answered: int) -> None:
    """It reports them in the last chunk, under a name of its own."""
    own = {"x_groq": {"id": "req_1"}}, {"x_groq": {"id": "req_1", "usage": counts(answered)}}
    pieces = ({**delta("o"), **own[0]}, delta("k"), {**delta("", finish_reason="stop"), **own[1]})
    with LocalServer(sse(*pieces)) as server:
        options = f"{{name: bot, endpoint: '{server.url}', streaming: true}}"
        project.write("agenteval.yaml", f"agent: {options}\nmetrics: []\n{PRICES}\n")
        is_decided_rightly(project, answered)


@both
def test_of_responses(project: Project, answered: int) -> None:
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "ok"}]}
    reply = {"id": "r", "object": "response", "status": "completed", "output": [said]}
    with LocalServer(respond_json({**reply, "usage": responses_counts(answered)})) as server:
        address = f"{server.address}/v1/responses"
        project.write(
            "agenteval.yaml", f"agent: {{name: bot, endpoint: '{address}'}}\nmetrics: []\n{PRICES}\n"
        )
        is_decided_rightly(project, answered)


@both
def test_of_any_json_api_and_of_a_program(project: Project, answered: int) -> None:
    with LocalServer(respond_json({"said": "ok", "used": counts(answered)})) as server:
        options = "request: {m: '${message}'}, reply: {text: said, usage: used}"
        config = f"agent: {{name: bot, endpoint: '{server.url}', {options}}}\nmetrics: []\n{PRICES}\n"
        project.write("agenteval.yaml", config)
        is_decided_rightly(project, answered)
    line = json.dumps({"text": "ok", "usage": counts(answered)})
    project.write("bot.py", f"import sys\nfor _ in sys.stdin:\n    print({line!r}, flush=True)\n")
    project.write(
        "agenteval.yaml", f"agent: {{name: bot, command: [python3, bot.py]}}\nmetrics: []\n{PRICES}\n"
    )
    is_decided_rightly(project, answered)


@both
def test_of_a_log(project: Project, answered: int) -> None:
    said = {"role": "assistant", "content": "ok", "usage": counts(answered)}
    line = {"id": "s", "messages": [{"role": "user", "content": "hi"}, said]}
    project.write("logs.jsonl", json.dumps(line) + "\n")
    project.write("suite.yaml", "scenarios: [{id: s, turns: [hi], expect: {limits: {tokens: 1099}}}]")
    done = project.call("score", "logs.jsonl", "--scenarios", "suite.yaml", "--no-judge")
    assert done.code == (1 if answered == 40 else 0), done.all
    assert ("1,100" in done.all and "1,099" in done.all) is (answered == 40)


def test_of_our_own_models(project: Project) -> None:
    """They pay for what they think as well: a budget counts it."""
    beside = {"total_tokens": 170, "completion_tokens_details": {"reasoning_tokens": 60}}
    with ModelServer(contented(**beside)) as server:
        config = model_config(
            server, f"metrics: [helpfulness]\nprices: {{{MODEL}: {{input: 1, output: 10}}}}"
        )
        judged_project(project, [scenario("a", "hi")], config)
        project.run(env=KEY)
    judge = usage_of(project)["judge"]
    assert (judge["input_tokens"], judge["output_tokens"], judge["estimated"]) == (100, 70, False)
    assert judge["cost"] == pytest.approx(0.0008)


@pytest.mark.parametrize("total", [1100, 1090], ids=["bug", "fix"])
def test_a_total_alone_decides_the_limit_and_no_cost(project: Project, total: int) -> None:
    """What went in and what came out have prices of their own."""
    project.config(f"{PRICES}\ngates: {{cost: {{mean: 1}}}}")
    project.agent(
        "from agenteval import AgentReply\n"
        f"def agent(messages):\n    return AgentReply(text='ok', usage={{'total_tokens': {total}}})\n"
    )
    project.scenarios(SUITE)
    done = project.run()
    assert done.code == (1 if total == 1100 else 3), done.all
    (check,) = (each for each in project.sample()["checks"] if each["name"] == "limits.tokens")
    assert (check["passed"], f"{total:,}" in check["detail"]) == (total < 1100, True)
    usage = project.sample()["usage"]
    assert (usage["unsplit"], usage["estimated"], usage["cost"]) == (True, False, None)
    assert all(fact in done.all for fact in ("input", "output tokens"))

    project.config(PRICES)
    assert project.run("--record", "tape.jsonl").code == (1 if total == 1100 else 0)
    assert project.run("--replay", "tape.jsonl").code == (1 if total == 1100 else 0)
    assert project.sample()["usage"] == usage


@both
def test_of_the_ai_sdk_between_its_parts(project: Project, answered: int) -> None:
    usage = {
        "inputTokens": {"total": 1000, "noCache": 400, "cacheRead": 600},
        "outputTokens": {"total": 60 + answered, "text": answered, "reasoning": 60},
        "totalTokens": 1060 + answered,
    }
    project.config(PRICES)
    project.agent(
        f"def agent(messages):\n    return {{'role': 'assistant', 'content': 'ok', 'usage': {usage}}}\n"
    )
    is_decided_rightly(project, answered)
    assert project.sample()["usage"]["cached_tokens"] == 600


def test_a_gap_that_nothing_explains_was_used_and_is_marked(project: Project) -> None:
    """Whether it went in or came out nobody reported: the cost is that of output, and about."""
    usage = {"prompt_tokens": 1000, "completion_tokens": 40, "total_tokens": 1100}
    project.config(PRICES)
    project.agent(
        f"def agent(messages):\n    return {{'role': 'assistant', 'content': 'ok', 'usage': {usage}}}\n"
    )
    project.scenarios(SUITE)
    assert project.run().code == 1
    (check,) = (each for each in project.sample()["checks"] if each["name"] == "limits.tokens")
    assert all(fact in check["detail"] for fact in ("1,100", "1,099", "estimated"))
    assert project.sample()["usage"]["estimated"] is True
