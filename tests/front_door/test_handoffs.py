"""Who of a multi-agent system spoke and called, through the command line."""

from __future__ import annotations

import json
import re
from typing import Any, TypeAlias

import pytest

from tests.support.kit import Project, failed_checks
from tests.support.local_servers import LocalServer, respond_json
from tests.support.refused_rows import assert_each_refused

AGENTS = """
from agenteval import AgentReply

def call(name, **args):
    return {"id": name, "type": "function", "function": {"name": name, "arguments": args}}

def says(agent, text, *calls):
    yield {"role": "assistant", "name": agent, "content": text, "tool_calls": list(calls)}
    for each in calls:
        yield {"role": "tool", "tool_call_id": each["id"], "content": "done"}

def turn(*parts):
    return [message for part in parts for message in part]

def fixed(messages):
    if len(messages) == 1:
        asked = says("triage", "One moment.", call("find_order"), call("transfer"))
        return turn(asked, says("billing", "It is 9 euro."))
    return turn(says("billing", "", call("refund", id=1)), says("billing", "Refunded."))

def order(messages):
    if len(messages) == 1:
        return fixed(messages)
    refunded = says("triage", "Refunded.", call("refund", id=1))
    return turn(says("billing", "Wait."), refunded, says("billing", "Done."))

def forbidden(messages):
    if len(messages) == 1:
        return fixed(messages)
    return turn(says("billing", "", call("find_order"), call("refund", id=1)), says("billing", "Refunded."))

def caller(messages):
    if len(messages) == 1:
        asked = says("triage", "One moment.", call("find_order"), call("refund", id=1))
        return turn(asked, says("billing", "9 euro."))
    return turn(says("billing", "Refunded."))

def nameless(messages):
    for message in fixed(messages):
        message.pop("name", None)
        yield message

def half(messages):
    for message in fixed(messages):
        if message.get("name") == "triage":
            message.pop("name")
        yield message

def through_ctx(messages, ctx):
    found = ctx.call_tool_sync("find_order")
    return fixed(messages)

def through_ctx_unnamed(messages, ctx):
    ctx.call_tool_sync("find_order")
    return AgentReply("Yes.", agent="billing")

def one_reply(messages):
    return AgentReply("Refunded.", agent="triage" if len(messages) == 1 else "billing")
"""

SUITE = """
scenarios:
  - id: refund
    turns:
      - {user: What is it?, expect: {agents: [triage, billing]}}
      - user: Refund it.
        expect:
          agents: [billing]
          tool_calls: {forbidden: [{name: find_order, agent: billing}]}
    expect:
      agents: [triage, billing]
      tool_calls: {calls: [{name: find_order, agent: triage}, {name: refund, args: {id: 1}, agent: billing}]}
  - {id: in order, turns: [Hi, Go], expect: {agents: [triage, billing]}}
  - {id: in another order, turns: [Hi, Go], expect: {agents: [billing, triage]}}
  - {id: forbidden, turns: [Hi, Go], expect: {tool_calls: {forbidden: [{name: refund, agent: triage}]}}}
  - id: through ctx
    turns: [Hi]
    tools: {find_order: {returns: 1}}
    expect: {tool_calls: {forbidden: [{name: find_order, agent: triage}]}}
  - {id: python named, turns: [Hi, Go], expect: {python: "../checks.py:handed"}}
  - {id: python nobody, turns: [Hi, Go], expect: {python: "../checks.py:nobody"}}
"""
CHECKS = """
def handed(conversation):
    first, second = conversation.turns
    assert [call.agent for call in conversation.tool_calls] == ["triage", "triage", "billing"]
    return (first.agents, second.agents) == (("triage", "billing"), ("billing",))

def nobody(conversation):
    return all(turn.agents == () for turn in conversation.turns)
"""
Samples: TypeAlias = dict[tuple[str, str], dict[str, Any]]


@pytest.fixture
def project(project: Project) -> Project:
    project.agent(AGENTS)
    project.write("checks.py", CHECKS)
    project.scenarios(SUITE)
    return project


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Samples:
    """By scenario and agent: every agent in every scenario."""
    project = Project(tmp_path_factory.mktemp("handoffs"))
    project.agent(AGENTS)
    project.write("checks.py", CHECKS)
    project.scenarios(SUITE)
    names = re.findall(r"def (\w+)\(messages", AGENTS)
    others = ", ".join(f"{{name: {name}, target: 'agent.py:{name}'}}" for name in names if name != "fixed")
    project.write(
        "agenteval.yaml",
        f"metrics: []\nagent: {{name: fixed, target: 'agent.py:fixed'}}\ncompare: [{others}]\n",
    )
    project.run()
    return {(s["id"], s["agent"]): s["samples"][0] for s in project.results()["scenarios"]}


def detail(sample: dict[str, Any], name: str, turn: int | None) -> str:
    checks = sample["checks"] if turn is None else sample["turns"][turn]["checks"]
    return next(check["detail"] for check in checks if check["name"] == name)  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("scenario", "agent", "verdict", "failed"),
    [
        ("refund", "fixed", "passed", set()),
        ("refund", "order", "failed", {(1, "agents"), (None, "agents"), (None, "tool_calls")}),
        ("refund", "forbidden", "failed", {(1, "tool_calls")}),
        ("refund", "caller", "failed", {(None, "tool_calls")}),
        # Where nobody is named, nothing is decided; where some are, only what the others cannot change.
        ("refund", "nameless", "inconclusive", set()),
        ("refund", "half", "inconclusive", set()),
        ("in another order", "half", "failed", {(None, "agents")}),
        # A call of an unknown agent is not green where it is forbidden to one.
        ("forbidden", "fixed", "passed", set()),
        ("forbidden", "nameless", "inconclusive", set()),
        ("forbidden", "caller", "failed", {(None, "tool_calls")}),
        # A reply may name its agent.
        ("in order", "one_reply", "passed", set()),
        ("in another order", "one_reply", "failed", {(None, "agents")}),
        # A call through ctx is of the agent that lists it, else of nobody known.
        ("through ctx", "through_ctx", "failed", {(None, "tool_calls")}),
        ("through ctx", "through_ctx_unnamed", "inconclusive", set()),
        # Checks in Python see who spoke and called.
        ("python named", "fixed", "passed", set()),
        ("python nobody", "nameless", "passed", set()),
        ("python nobody", "fixed", "failed", {(None, "python")}),
    ],
)
def test_who_spoke_and_called_decides(
    samples: Samples, scenario: str, agent: str, verdict: str, failed: set[tuple[int | None, str]]
) -> None:
    sample = samples[scenario, agent]
    assert (failed_checks(sample), sample["verdict"]) == (failed, verdict)


@pytest.mark.parametrize(
    ("scenario", "agent", "check", "turn", "facts"),
    [
        ("refund", "order", "agents", 1, ["expected: billing", "billing, triage, billing"]),
        ("refund", "order", "agents", None, ["triage, billing;", "triage, billing, triage, billing"]),
        ("refund", "forbidden", "tool_calls", 1, ["find_order(…) by billing", "find_order() by billing"]),
        ("refund", "caller", "tool_calls", None,
         ["missing: refund(id=1) by billing", "refund(id=1) by triage", '"billing"', '"triage"']),
        ("refund", "nameless", "agents", 0, ["name: billing"]),
        ("refund", "nameless", "agents", 1, ["name: billing"]),
        ("refund", "nameless", "agents", None, ["name: billing"]),
        ("refund", "nameless", "tool_calls", None, ["name: billing"]),
        ("refund", "half", "agents", 0, ["(not named), billing"]),
        ("forbidden", "nameless", "tool_calls", None, ["refund(id=1)"]),
    ],
)  # fmt: skip
def test_a_check_names_the_agents_that_were_expected_and_found(
    samples: Samples, scenario: str, agent: str, check: str, turn: int | None, facts: list[str]
) -> None:
    found = detail(samples[scenario, agent], check, turn)
    assert all(fact in found for fact in facts), found


def test_results_name_who_spoke_and_called(samples: Samples) -> None:
    first, second = samples["refund", "fixed"]["turns"]
    assert (first["agents"], second["agents"]) == (["triage", "billing"], ["billing"])
    assert [call["agent"] for call in first["tool_calls"]] == ["triage", "triage"]
    assert [call["agent"] for call in second["tool_calls"]] == ["billing"]
    assert not any("agents" in turn for turn in samples["refund", "nameless"]["turns"])
    (turn,) = samples["through ctx", "through_ctx"]["turns"]
    assert [call["agent"] for call in turn["tool_calls"]] == ["triage", "triage"]


def test_a_replay_names_the_agents_of_the_recording(project: Project) -> None:
    project.config(target="agent.py:one_reply")
    project.scenarios("id: who\nturns: [Hi, Go]\nexpect: {agents: [triage, billing]}\n")
    project.run("--record", "tape.jsonl")
    project.run("--replay", "tape.jsonl")
    assert project.sample()["turns"][1]["agents"] == ["billing"]


def test_recorded_conversations_are_checked_and_shown_alike(project: Project) -> None:
    project.config()
    orders = ("triage-billing", "billing-triage")
    expect = "turns: [Hi], expect: {agents: [triage, billing]}"
    project.scenarios("scenarios:\n" + "".join(f"  - {{id: {order}, {expect}}}\n" for order in orders))
    logs = []
    for order in orders:
        replies = [{"role": "assistant", "content": "Yes.", "name": name} for name in order.split("-")]
        logs.append(json.dumps({"id": order, "messages": [{"role": "user", "content": "Hi"}, *replies]}))
    project.write("log.jsonl", "\n".join(logs))
    project.call("score", "log.jsonl", "--scenarios", "scenarios", "--report", "json=results.json")
    for order, failed in zip(orders, (set(), {(None, "agents")}), strict=True):
        sample = project.sample(order)
        assert (sample["turns"][0]["agents"], failed_checks(sample)) == (order.split("-"), failed)


def test_conversations_name_the_speaker_where_there_are_several(project: Project) -> None:
    project.config(target="agent.py:order")
    shown = project.run("-s", "refund", "--report", "markdown=report.md", "-v").all
    assert "(billing) Wait." in shown
    assert "(triage) refund(id=1)" in shown
    assert "(triage) Refunded." in (project.root / "report.md").read_text(encoding="utf-8")
    project.scenarios("id: one\nturns: [Hi]\nexpect: {output: {contains: [x]}}\n")
    project.config(target="agent.py:one_reply")
    assert "(triage)" not in project.run("-v").all


def test_mistakes_are_refused_at_their_line(project: Project) -> None:
    project.config()
    rows = {
        "agents: []": ("agents",),
        "agents: [triage, triage]": ("'triage'",),
        "agents: [triage, '']": ("agents", "empty"),
        "agents: {first: triage}": ("agents",),
        "tool_calls: {calls: [{name: refund, agent: ' '}]}": ("agent", "empty"),
        "tool_calls: {forbidden: [{name: refund, agents: [a]}]}": ("'agents'", "'agent'"),
    }
    assert_each_refused(project, rows)


@pytest.mark.parametrize(("order", "code"), [(("triage", "billing"), 0), (("billing", "triage"), 1)])
def test_messages_that_an_endpoint_reports_name_their_agents(
    project: Project, order: tuple[str, str], code: int
) -> None:
    trace = [{"role": "assistant", "name": name, "content": "Yes."} for name in order]
    with LocalServer(respond_json({"trace": trace})) as server:
        endpoint = f"{{name: bot, endpoint: '{server.url}/chat', observed_messages: trace}}"
        project.write("agenteval.yaml", f"agent: {endpoint}\nmetrics: []\n")
        project.scenarios("id: h\nturns: [Hi]\nexpect: {agents: [triage, billing]}\n")
        assert project.run().code == code
    assert project.sample()["turns"][0]["agents"] == list(order)
