"""What an agent reported of a turn that then broke is kept, and what was forbidden there counts."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
import yaml

from tests.front_door.test_observe_otlp import free_port, traced
from tests.support.kit import Project, failed_checks
from tests.support.local_servers import Behaviour, LocalServer, respond, respond_json

SUITE = """
id: a
turns:
  - Where is it?
  - {user: And now?, expect: {tool_calls: {forbidden: [{name: refund}]}, output: {contains: [sorry]}}}
"""
both = pytest.mark.parametrize("tool", ["refund", "look"], ids=["bug", "fix"])


def call(tool: str, number: int = 1) -> dict[str, Any]:
    return {
        "id": f"c{number}",
        "type": "function",
        "function": {"name": tool, "arguments": '{"id": "ORD-1"}'},
    }


def told(tool: str) -> list[dict[str, Any]]:
    """What an agent reports of a turn: a call that it made, and what came of it."""
    asked = {"role": "assistant", "content": None, "tool_calls": [call(tool)]}
    return [asked, {"role": "tool", "tool_call_id": "c1", "content": "done"}]


def judged(project: Project, tool: str, *, result: Any = "done") -> None:
    """The run is red for both; the forbidden call is named at its turn, and the other one listed there."""
    done = project.run()
    assert done.code == 1, done.all
    sample = project.sample()
    assert sample["fault"] == "agent"
    forbidden = {(1, "tool_calls")} if tool == "refund" else set()
    assert failed_checks(sample) == {(None, "no_error"), *forbidden}
    calls = [(c["name"], c["args"], c["result"]) for turn in sample["turns"] for c in turn["tool_calls"]]
    assert calls == [(tool, {"id": "ORD-1"}, result)]
    assert [len(turn["tool_calls"]) for turn in sample["turns"]] == [0, 1]
    if forbidden:
        assert 'forbidden: refund(id="ORD-1")' in done.out
        (check,) = [c for c in sample["turns"][1]["checks"] if c["name"] == "tool_calls"]
        assert check["where"].startswith("scenarios/suite.yaml:4")


PYTHON = {
    "generator": """
        def agent(messages):
            if len(messages) == 1:
                yield "It is on its way."
                return
            yield from TOLD
            raise ValueError("a defect")
        """,
    "async-generator": """
        async def agent(messages):
            if len(messages) == 1:
                yield "It is on its way."
                return
            for each in TOLD:
                yield each
            raise ValueError("a defect")
        """,
    "partial": """
        def agent(messages):
            if len(messages) == 1:
                return "It is on its way."
            error = ValueError("a defect")
            error.agenteval_partial = {"messages": TOLD}
            raise RuntimeError("the agent gave up") from error
        """,
}


@both
@pytest.mark.parametrize("where", ["here", "interpreter"])
@pytest.mark.parametrize("kind", PYTHON)
def test_messages_of_a_python_agent_that_raises(project: Project, kind: str, where: str, tool: str) -> None:
    project.agent(f"TOLD = {told(tool)!r}\n" + "\n".join(line[8:] for line in PYTHON[kind].splitlines()))
    project.config()
    if where == "interpreter":
        agent = {"name": "bot", "target": "agent.py:agent", "interpreter": sys.executable}
        project.write("agenteval.yaml", yaml.safe_dump({"agent": agent, "metrics": []}))
    project.scenarios(SUITE)
    judged(project, tool)


@both
def test_calls_through_ctx_before_an_exception(project: Project, tool: str) -> None:
    project.agent(f"""
        async def agent(messages, ctx):
            if len(messages) == 1:
                return "It is on its way."
            await ctx.call_tool("{tool}", {{"id": "ORD-1"}})
            raise ValueError("a defect")
        """)
    project.config()
    project.scenarios(f"{SUITE}tools: {{refund: {{returns: done}}, look: {{returns: done}}}}\n")
    judged(project, tool)


@both
def test_messages_of_a_generator_that_does_not_end(project: Project, tool: str) -> None:
    project.agent(f"""
        import asyncio

        async def agent(messages):
            if len(messages) == 1:
                yield "It is on its way."
                return
            for each in {told(tool)!r}:
                yield each
            await asyncio.sleep(1000)
        """)
    project.write(
        "agenteval.yaml", "agent: {name: bot, target: 'agent.py:agent', timeout_s: 0.5}\nmetrics: []\n"
    )
    project.scenarios(SUITE)
    judged(project, tool)
    assert project.sample()["stop"] == "agent_timeout"


@both
def test_messages_beside_the_error_of_a_command(project: Project, tool: str) -> None:
    project.write(
        "bot.py",
        f"""
        import json, sys
        for line in sys.stdin:
            if json.loads(line)["turn"] == 0:
                print(json.dumps({{"text": "It is on its way."}}), flush=True)
            else:
                print(json.dumps({{"messages": {told(tool)!r}, "error": "a defect"}}), flush=True)
        """,
    )
    agent = {"name": "bot", "command": [sys.executable, "bot.py"]}
    project.write("agenteval.yaml", yaml.safe_dump({"agent": agent, "metrics": []}))
    project.scenarios(SUITE)
    judged(project, tool)


def cut(data: bytes) -> Behaviour:
    """A stream of which this is all that comes."""
    return respond(data, headers={"Content-Type": "text/event-stream"})


def events(*told: Any) -> bytes:
    return b"".join(b"data: " + json.dumps(each).encode() + b"\n\n" for each in told)


def chunk(**delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta}]}


TEMPLATE = """
    request: {m: "${message}", s: "${session}"}
    reply: {text: answer, messages: "trace?", error: "error?"}
"""
STREAMED = """
    request: {m: "${message}", s: "${session}"}
    streaming: true
    reply: {delta: d, messages: "step?", done: {end: true}}
"""
FIRST = {"answer": "It is on its way."}
CHOSEN = {"choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": "Soon."}}]}
HTTP: dict[str, tuple[str, Behaviour, Any]] = {
    "error-beside": (TEMPLATE, respond_json(FIRST), lambda tool: respond_json(
        {"trace": told(tool), "error": "x"})),
    "status": (TEMPLATE, respond_json(FIRST), lambda tool: respond_json({"trace": told(tool)}, status=500)),
    "stream": (
        STREAMED,
        cut(events({"d": "It is on its way."}, {"end": True})),
        lambda tool: cut(events(*({"step": each} for each in told(tool)), {"d": "I "}) + b'data: {"d": "ca'),
    ),
    "observed_messages": (
        "\n    observed_messages: trace\n",
        respond_json({**CHOSEN, "trace": []}),
        lambda tool: respond_json({"trace": told(tool), "error": {"message": "overloaded"}}),
    ),
}  # fmt: skip


@both
@pytest.mark.parametrize("kind", HTTP)
def test_messages_of_an_endpoint_whose_reply_breaks(project: Project, kind: str, tool: str) -> None:
    options, first, second = HTTP[kind]
    with LocalServer(first, second(tool)) as server:
        config = f"agent:\n    name: bot\n    endpoint: {server.address}/v1/chat/completions{options}"
        project.write("agenteval.yaml", f"{config}metrics: []\n")
        project.scenarios(SUITE)
        judged(project, tool)


ASKED = {
    "chat_completions": (
        "/v1/chat/completions",
        respond_json(CHOSEN),
        lambda tool: events(chunk(tool_calls=[{"index": 0, **call(tool)}]), {"error": {"message": "broke"}}),
    ),
    "responses": (
        "/v1/responses",
        respond_json({"status": "completed", "output": [{"type": "message", "role": "assistant", "content": [
            {"type": "output_text", "text": "Soon."}]}]}),
        lambda tool: events({"type": "response.output_item.done", "item": {
            "type": "function_call", "call_id": "c1", "name": tool, "arguments": '{"id": "ORD-1"}'}}),
    ),
    "messages": (
        "/v1/messages",
        respond_json({"role": "assistant", "content": [{"type": "text", "text": "Soon."}]}),
        lambda tool: events(
            {"type": "message_start", "message": {"role": "assistant"}},
            {"type": "content_block_start", "index": 0, "content_block": {
                "type": "tool_use", "id": "c1", "name": tool, "input": {}}},
            {"type": "content_block_delta", "index": 0, "delta": {
                "type": "input_json_delta", "partial_json": '{"id": "ORD-1"}'}},
            {"type": "content_block_stop", "index": 0},
            {"type": "error", "error": {"type": "unforeseen_error", "message": "broke"}}),
    ),
}  # fmt: skip


@both
@pytest.mark.parametrize("api", ASKED)
def test_a_call_that_a_broken_stream_asked_for_is_kept_and_not_run(
    project: Project, api: str, tool: str
) -> None:
    path, first, second = ASKED[api]
    with LocalServer(first, cut(second(tool))) as server:
        config = f"agent: {{name: bot, endpoint: '{server.address}{path}'}}"
        project.write("agenteval.yaml", f"{config}\nmetrics: []\n")
        project.scenarios(f"{SUITE}tools: {{refund: {{returns: done}}, look: {{returns: done}}}}\n")
        judged(project, tool, result={"error": "not run: the reply is unreadable"})


@pytest.mark.parametrize("style", ["genai", "genai_bug"])
def test_the_spans_of_a_request_that_failed(project: Project, style: str) -> None:
    port = free_port()
    suite = SUITE.replace("Where is it?", "{user: Where is it?}")
    answered = traced(port, style, {"error": "the model is down"})
    with LocalServer(traced(port, "genai"), answered) as server:
        project.write(
            "agenteval.yaml",
            f"""
            agent:
              name: bot
              endpoint: {server.url}
              request: {{messages: "${{messages}}"}}
              reply: {{text: answer}}
              observe: {{port: {port}, wait_s: 20}}
            metrics: []
            """,
        )
        project.scenarios(suite)
        assert project.run().code == 1
    sample = project.sample()
    forbidden = {(1, "tool_calls")} if style == "genai_bug" else set()
    assert failed_checks(sample) == {(None, "no_error"), *forbidden}
    names = [c["name"] for c in sample["turns"][1]["tool_calls"]]
    assert names == ["get_order", *(["refund"] if forbidden else [])]


@both
def test_of_a_turn_that_was_lost_by_no_fault_of_the_agents_the_recorded_calls_stand_and_no_more(
    project: Project, tool: str
) -> None:
    project.agent(f"""
        def agent(messages):
            if len(messages) == 1:
                yield "It is on its way."
                return
            yield from {told(tool)!r}
            raise ConnectionRefusedError("its database is down")
        """)
    project.config()
    project.scenarios(SUITE)
    assert project.run().code == (1 if tool == "refund" else 3)
    sample = project.sample()
    assert failed_checks(sample) == ({(1, "tool_calls")} if tool == "refund" else set())
    assert [c["name"] for c in sample["turns"][1]["tool_calls"]] == [tool]


def test_a_limit_that_the_broken_turn_exceeded_and_an_extra_call_are_told_at_their_turn(
    project: Project,
) -> None:
    project.agent("""
        async def agent(messages, ctx):
            for _ in range(3):
                await ctx.call_tool("look", {})
            raise ValueError("a defect")
        """)
    project.config()
    tools = "tools: {look: {returns: done}, book: {returns: done}}"
    for expect, failed in (
        ("{limits: {tool_calls: 2}}", {(0, "limits.tool_calls")}),
        ("{tool_calls: {match: strict, calls: [{name: look}]}}", {(0, "tool_calls")}),
        ("{tool_calls: {match: contains, calls: [{name: book}]}}", set()),
        ("{limits: {tool_calls: 3}}", set()),
    ):
        project.scenarios(f"id: a\nturns: [{{user: Hi, expect: {expect}}}]\n{tools}\n")
        assert project.run().code == 1
        assert failed_checks(project.sample()) == {(None, "no_error"), *failed}, expect


def test_a_journal_scored_again_says_the_same_of_the_broken_turn(project: Project) -> None:
    project.agent(
        f"TOLD = {told('refund')!r}\n" + "\n".join(line[8:] for line in PYTHON["generator"].splitlines())
    )
    project.config()
    project.scenarios(SUITE)
    judged(project, "refund")
    (journal,) = (project.root / ".agenteval" / "runs").glob("*/events.jsonl*")
    done = project.call("score", str(journal), "--no-judge", "--report", "json=results.json")
    assert done.code == 1, done.all
    assert failed_checks(project.sample()) == {(None, "no_error"), (1, "tool_calls")}
