"""What an agent reported of a turn that then broke is kept, and what was forbidden there counts."""

from __future__ import annotations

import json
import sys
import textwrap
from contextlib import ExitStack
from typing import Any

import pytest

from tests.front_door.test_observe_otlp import free_port, traced
from tests.support.kit import Project, failed_checks
from tests.support.local_servers import Behaviour, LocalServer, respond, respond_json

SUITE = """
id: a
turns:
  - Where is it?
  - {user: And now?, expect: {tool_calls: {forbidden: [{name: refund}]}, output: {contains: [sorry]}}}
"""
MOCKED = "tools: {refund: {returns: done}, look: {returns: done}}\n"
TOOLS = {"bug": "refund", "fix": "look"}


def call(tool: str, number: int = 1) -> dict[str, Any]:
    return {
        "id": f"c{number}",
        "type": "function",
        "function": {"name": tool, "arguments": '{"id": "ORD-1"}'},
    }


def reported(tool: str) -> list[dict[str, Any]]:
    """What an agent reports of a turn: a call that it made, and what came of it."""
    asked = {"role": "assistant", "content": None, "tool_calls": [call(tool)]}
    return [asked, {"role": "tool", "tool_call_id": "c1", "content": "done"}]


PYTHON = {  # an agent that answers once, reports a call in its second turn, and then raises
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
    "ctx": """
        async def agent(messages, ctx):
            if len(messages) == 1:
                return "It is on its way."
            await ctx.call_tool(TOLD[0]["tool_calls"][0]["function"]["name"], {"id": "ORD-1"})
            raise ValueError("a defect")
        """,
    "no-end": """
        import asyncio

        async def agent(messages):
            if len(messages) == 1:
                yield "It is on its way."
                return
            for each in TOLD:
                yield each
            await asyncio.sleep(1000)
        """,
    "lost": """
        def agent(messages):
            if len(messages) == 1:
                yield "It is on its way."
                return
            yield from TOLD
            raise ConnectionRefusedError("its database is down")
        """,
}
COMMAND = """
    import json, sys
    for line in sys.stdin:
        if json.loads(line)["turn"] == 0:
            print(json.dumps({"text": "It is on its way."}), flush=True)
        else:
            print(json.dumps({"messages": TOLD, "error": "a defect"}), flush=True)
    """


def cut(data: bytes) -> Behaviour:
    """A stream of which this is all that comes."""
    return respond(data, headers={"Content-Type": "text/event-stream"})


def events(*payloads: Any) -> bytes:
    return b"".join(b"data: " + json.dumps(each).encode() + b"\n\n" for each in payloads)


def chunk(**delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta}]}


SENT = {"m": "${message}", "s": "${session}"}
TEMPLATE = {"request": SENT, "reply": {"text": "answer", "messages": "trace?", "error": "error?"}}
STREAMED = {
    "request": SENT, "streaming": True, "reply": {"delta": "d", "messages": "step?", "done": {"end": True}}
}  # fmt: skip
FIRST = {"answer": "It is on its way."}
CHOSEN = {"choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": "Soon."}}]}
HTTP: dict[str, tuple[dict[str, Any], Behaviour, Any]] = {
    "error-in-the-reply": (TEMPLATE, respond_json(FIRST), lambda tool: respond_json(
        {"trace": reported(tool), "error": "x"})),
    "status": (TEMPLATE, respond_json(FIRST), lambda tool: respond_json(
        {"trace": reported(tool)}, status=500)),
    "stream": (
        STREAMED,
        cut(events({"d": "It is on its way."}, {"end": True})),
        lambda tool: cut(
            events(*({"step": each} for each in reported(tool)), {"d": "I "}) + b'data: {"d": "ca'),
    ),
    "observed_messages": (
        {"observed_messages": "trace"},
        respond_json({**CHOSEN, "trace": []}),
        lambda tool: respond_json({"trace": reported(tool), "error": {"message": "overloaded"}}),
    ),
}  # fmt: skip


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


PLACES = {"here": {}, "interpreter": {"interpreter": sys.executable}}
REPORTS = [f"{kind}-{place}" for kind in ("generator", "async-generator", "partial") for place in PLACES]
KINDS = [*REPORTS, "ctx", "no-end", "command", *HTTP, *ASKED]
"""The ways in which an agent breaks that has reported a call."""


def agents(project: Project, stack: ExitStack, kind: str, tool: str) -> dict[str, Any]:
    """The configuration of an agent that breaks so."""
    if kind in HTTP:
        options, first, second = HTTP[kind]
        server = stack.enter_context(LocalServer(first, second(tool)))
        return {"endpoint": f"{server.address}/v1/chat/completions", **options}
    if kind in ASKED:
        path, first, data = ASKED[kind]
        server = stack.enter_context(LocalServer(first, cut(data(tool))))
        return {"endpoint": f"{server.address}{path}"}
    how, _, place = kind.rpartition("-") if kind in REPORTS else (kind, "", "here")
    file = f"{how.replace('-', '_')}_{tool}.py"
    text = COMMAND if kind == "command" else PYTHON[how]
    project.write(file, f"TOLD = {reported(tool)!r}\n{textwrap.dedent(text)}")
    if kind == "command":
        return {"command": [sys.executable, file]}
    return {"target": f"{file}:agent", **PLACES[place], **({"timeout_s": 0.5} if kind == "no-end" else {})}


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """One run with an agent for each kind and tool; each scenario is a file of its own."""
    project = Project(tmp_path_factory.mktemp("broken"))
    configured = {}
    with ExitStack() as stack:
        for kind in (*KINDS, "lost"):
            for which, tool in TOOLS.items():
                name = f"{kind}-{which}"
                configured[name] = agents(project, stack, kind, tool)
                tools = MOCKED if kind == "ctx" or kind in ASKED else ""
                text = SUITE.replace("id: a", f"id: {name}")
                project.scenarios(f"{text}agent: {name}\n{tools}", f"scenarios/{name}.yaml")
        project.write("agenteval.yaml", json.dumps({"agents": configured, "metrics": []}))
        assert project.run().code == 1
    return project


@pytest.mark.parametrize("which", TOOLS)
@pytest.mark.parametrize("kind", KINDS)
def test_calls_of_a_broken_turn_are_kept_and_the_forbidden_one_is_named(
    played: Project, kind: str, which: str
) -> None:
    """The run is red for both. A call that a broken stream asked for is kept, and not carried out."""
    name, tool = f"{kind}-{which}", TOOLS[which]
    sample = played.sample(name)
    assert (sample["verdict"], sample["fault"]) == ("failed", "agent")
    assert sample["stop"] == ("agent_timeout" if kind == "no-end" else "agent_error")
    forbidden = {(1, "tool_calls")} if which == "bug" else set()
    assert failed_checks(sample) == {(None, "no_error"), *forbidden}
    assert [len(turn["tool_calls"]) for turn in sample["turns"]] == [0, 1]
    (made,) = sample["turns"][1]["tool_calls"]
    assert (made["name"], made["args"]) == (tool, {"id": "ORD-1"})
    if kind in ASKED:
        assert set(made["result"]) == {"error"}
    else:
        assert made["result"] == "done"
    if forbidden:
        (check,) = [c for c in sample["turns"][1]["checks"] if c["name"] == "tool_calls"]
        assert 'refund(id="ORD-1")' in check["detail"]
        assert check["where"].startswith(f"scenarios/{name}.yaml:4")


@pytest.mark.parametrize("which", TOOLS)
def test_recorded_calls_stand_where_the_turn_was_lost_by_no_fault_of_the_agent(
    played: Project, which: str
) -> None:
    sample = played.sample(f"lost-{which}")
    assert sample["verdict"] == ("failed" if which == "bug" else "inconclusive")
    assert failed_checks(sample) == ({(1, "tool_calls")} if which == "bug" else set())
    assert [c["name"] for c in sample["turns"][1]["tool_calls"]] == [TOOLS[which]]


def test_a_journal_scored_again_gives_the_same_failures(played: Project) -> None:
    before = {each["id"]: failed_checks(each["samples"][0]) for each in played.results()["scenarios"]}
    journal = f".agenteval/runs/{played.results()['run']['id']}/events.jsonl"
    assert played.call("score", journal, "--no-judge", "--report", "json=scored.json").code == 1
    scored = json.loads((played.root / "scored.json").read_text("utf-8"))["scenarios"]
    assert {each["id"]: failed_checks(each["samples"][0]) for each in scored} == before


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


CALLS_THREE_TIMES = """
    async def agent(messages, ctx):
        for _ in range(3):
            await ctx.call_tool("look", {})
        raise ValueError("a defect")
    """
EXPECTED: list[tuple[str, set[tuple[int | None, str]]]] = [
    ("{limits: {tool_calls: 2}}", {(0, "limits.tool_calls")}),
    ("{tool_calls: {match: strict, calls: [{name: look}]}}", {(0, "tool_calls")}),
    ("{tool_calls: {match: contains, calls: [{name: book}]}}", set()),
    ("{limits: {tool_calls: 3}}", set()),
]


def test_of_a_broken_turn_an_exceeded_limit_and_an_extra_call_count(project: Project) -> None:
    project.agent(CALLS_THREE_TIMES)
    project.config()
    entries = [
        f"- {{id: s{number}, turns: [{{user: Hi, expect: {expect}}}]}}"
        for number, (expect, _) in enumerate(EXPECTED)
    ]
    defaults = "defaults: {tools: {look: {returns: done}, book: {returns: done}}}"
    project.scenarios("\n".join([defaults, "scenarios:", *entries]) + "\n")
    assert project.run().code == 1
    for number, (expect, failed) in enumerate(EXPECTED):
        assert failed_checks(project.sample(f"s{number}")) == {(None, "no_error"), *failed}, expect
