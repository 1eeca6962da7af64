"""Reasoning tokens beside the others: they count, by whatever way the usage comes."""

from __future__ import annotations

import json
from collections.abc import Callable
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
from tests.support.local_servers import (
    Behaviour,
    LocalServer,
    Request,
    answer,
    completion,
    delta,
    respond_json,
    sse,
)
from tests.support.model_servers import ModelServer
from tests.support.scored_logs import expect, log, score, verdicts

LIMIT = "expect: {limits: {tokens: 1099}}"
SUITE = f"{{id: s, turns: [hi], {LIMIT}}}"
ANSWERED = {"bug": 40, "fix": 30}
"""Tokens out: with 1,000 tokens in and 60 of reasoning that stand beside them, 1,100 or 1,090."""


def counts(answered: int) -> dict[str, Any]:
    return {
        "prompt_tokens": 1000,
        "completion_tokens": answered,
        "total_tokens": 1060 + answered,
        "completion_tokens_details": {"reasoning_tokens": 60},
    }


def check_sample(sample: dict[str, Any], answered: int) -> None:
    """The limit is broken by a token; the usage and the cost are whole and known."""
    assert failed_checks(sample) == ({(None, "limits.tokens")} if answered == 40 else set())
    assert sample["verdict"] == ("failed" if answered == 40 else "passed")
    usage = sample["usage"]
    assert (usage["input_tokens"], usage["output_tokens"]) == (1000, 60 + answered)
    assert (usage["estimated"], usage["cost"]) == (False, pytest.approx((1000 + 100 * (60 + answered)) / 1e6))


BOT_PRICES = "prices: {bot: {input: 1, output: 100}}"
PRICE = {"input": 1, "output": 100}


# ── what Python agents return ────────────────────────────────────────────────────────────────────


def of_gemini(answered: int) -> Any:
    usage = {"promptTokenCount": 1000, "candidatesTokenCount": answered, "thoughtsTokenCount": 60}
    return [{"role": "model", "parts": [{"text": "ok"}], "usageMetadata": usage}]


def of_ai_sdk(answered: int) -> Any:
    """Between its parts."""
    usage = {
        "inputTokens": {"total": 1000, "noCache": 400, "cacheRead": 600},
        "outputTokens": {"total": 60 + answered, "text": answered, "reasoning": 60},
        "totalTokens": 1060 + answered,
    }
    return message("ok", usage)


def message(text: str, usage: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": text, "usage": usage}


RETURNS: dict[str, Callable[[int], str]] = {
    "message": lambda n: repr(message("ok", counts(n))),
    "list": lambda n: repr([message("ok", counts(n))]),
    "reply": lambda n: f"AgentReply(text='ok', usage={counts(n)})",
    "completion": lambda n: repr({**completion("ok"), "usage": counts(n)}),
    "gemini": lambda n: repr(of_gemini(n)),
    "ai-sdk": lambda n: repr(of_ai_sdk(n)),
}


def test_reasoning_tokens_of_what_a_python_agent_returns_count(project: Project) -> None:
    rows = [(name, kind) for name in RETURNS for kind in ANSWERED]
    made = "\n".join(f"    '{name}-{kind}': {RETURNS[name](ANSWERED[kind])}," for name, kind in rows)
    agent = f"MADE = {{\n{made}\n}}\ndef agent(messages, ctx):\n    return MADE[ctx.scenario_id]\n"
    project.config(BOT_PRICES)
    project.agent(f"from agenteval import AgentReply\n{agent}")
    scenarios = [f"  - {{id: {name}-{kind}, turns: [hi], {LIMIT}}}\n" for name, kind in rows]
    project.scenarios(f"scenarios:\n{''.join(scenarios)}")
    assert project.run().code == 1
    for name, kind in rows:
        check_sample(project.sample(f"{name}-{kind}"), ANSWERED[kind])
    assert project.sample("ai-sdk-fix")["usage"]["cached_tokens"] == 600


# ── what endpoints and programs answer ───────────────────────────────────────────────────────────


def of_responses(answered: int) -> Any:
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "ok"}]}
    usage = {
        "input_tokens": 1000,
        "output_tokens": answered,
        "total_tokens": 1060 + answered,
        "output_tokens_details": {"reasoning_tokens": 60},
    }
    return {"id": "r", "object": "response", "status": "completed", "output": [said], "usage": usage}


def events(answered: int) -> tuple[Any, ...]:
    """The last event has the counts; some servers count in each."""
    started = {"usage": {"prompt_tokens": 1000, "completion_tokens": 1, "total_tokens": 1001}}
    last = {"choices": [], "usage": counts(answered)}
    return {**delta("o"), **started}, delta("k", finish_reason="stop"), last


def events_of_groq(answered: int) -> tuple[Any, ...]:
    """It reports them in the last chunk, under a name of its own."""
    first, last = {"x_groq": {"id": "req_1"}}, {"x_groq": {"id": "req_1", "usage": counts(answered)}}
    return {**delta("o"), **first}, delta("k"), {**delta("", finish_reason="stop"), **last}


CHAT = "v1/chat/completions"
ENDPOINTS: dict[str, tuple[str, dict[str, Any], Callable[[int], Behaviour]]] = {
    "chat": (CHAT, {}, lambda n: respond_json({**completion("ok"), "usage": counts(n)})),
    "stream": (CHAT, {"streaming": True}, lambda n: sse(*events(n))),
    "groq": (CHAT, {"streaming": True}, lambda n: sse(*events_of_groq(n))),
    "responses": ("v1/responses", {}, lambda n: respond_json(of_responses(n))),
    "any-json": (
        "ask",
        {"request": {"m": "${message}"}, "reply": {"text": "said", "usage": "used"}},
        lambda n: respond_json({"said": "ok", "used": counts(n)}),
    ),
}
PROGRAM = f"""
import json, sys
for line in sys.stdin:
    answered = 40 if "bug" in line else 30
    print(json.dumps({{"text": "ok", "usage": {counts(0)} | {{
        "completion_tokens": answered, "total_tokens": 1060 + answered}}}}), flush=True)
"""


def test_reasoning_tokens_of_what_endpoints_and_programs_answer_count(project: Project) -> None:
    def reply(request: Request) -> Behaviour:
        name = request.path.split("/")[1]
        return ENDPOINTS[name][2](ANSWERED["bug" if b"bug" in request.body else "fix"])

    project.write("bot.py", PROGRAM)
    names = (*ENDPOINTS, "program")
    with LocalServer(answer(reply)) as server:
        agents: dict[str, Any] = {
            name: {"endpoint": f"{server.address}/{name}/{path}", **options}
            for name, (path, options, _) in ENDPOINTS.items()
        }
        agents["program"] = {"command": ["python3", "bot.py"]}
        config = {"agent": {"name": "chat", **agents.pop("chat")}, "agents": agents, "metrics": []}
        project.write("agenteval.yaml", json.dumps(config | {"prices": dict.fromkeys(names, PRICE)}))
        rows = [(name, kind) for name in names for kind in ANSWERED]
        scenarios = [f"  - {{id: {n}-{kind}, agent: {n}, turns: [{kind}], {LIMIT}}}\n" for n, kind in rows]
        project.scenarios(f"scenarios:\n{''.join(scenarios)}")
        assert project.run().code == 1
    for name, kind in rows:
        check_sample(project.sample(f"{name}-{kind}"), ANSWERED[kind])


def test_reasoning_tokens_in_a_log_count(project: Project) -> None:
    user = {"role": "user", "content": "hi"}
    log(
        project, *({"id": kind, "messages": [user, message("ok", counts(n))]} for kind, n in ANSWERED.items())
    )
    rules = expect(project, dict.fromkeys(ANSWERED, "limits: {tokens: 1099}"))
    assert score(project, "log.jsonl", *rules, "--no-judge").code == 1
    assert verdicts(project) == {"bug": "failed", "fix": "passed"}
    (check,) = [each for each in project.sample("bug")["checks"] if each["name"] == "limits.tokens"]
    assert all(number in check["detail"] for number in ("1,100", "1,099"))


def test_reasoning_tokens_of_judges_count(project: Project) -> None:
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
    project.config(f"{BOT_PRICES}\ngates: {{cost: {{mean: 1}}}}")
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

    project.config(BOT_PRICES)
    assert project.run("--record", "tape.jsonl").code == (1 if total == 1100 else 0)
    assert project.run("--replay", "tape.jsonl").code == (1 if total == 1100 else 0)
    assert project.sample()["usage"] == usage


def test_a_gap_that_nothing_explains_was_used_and_is_marked(project: Project) -> None:
    """Whether it went in or came out nobody reported: the cost is that of output, and about."""
    usage = {"prompt_tokens": 1000, "completion_tokens": 40, "total_tokens": 1100}
    project.config(BOT_PRICES)
    project.agent(f"def agent(messages):\n    return {message('ok', usage)}\n")
    project.scenarios(SUITE)
    assert project.run().code == 1
    (check,) = (each for each in project.sample()["checks"] if each["name"] == "limits.tokens")
    assert all(fact in check["detail"] for fact in ("1,100", "1,099", "estimated"))
    assert project.sample()["usage"]["estimated"] is True
