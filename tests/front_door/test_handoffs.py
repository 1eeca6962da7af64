"""Who of a multi-agent system spoke and called, through the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.kit import Project, failed_checks
from tests.support.local_servers import LocalServer, respond_json

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
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path)
    project.agent(AGENTS)
    project.scenarios(SUITE)
    return project


def played(project: Project, agent: str) -> dict[str, Any]:
    project.config(target=f"agent.py:{agent}")
    project.run()
    return project.sample()


def detail(sample: dict[str, Any], name: str, turn: int | None) -> str:
    checks = sample["checks"] if turn is None else sample["turns"][turn]["checks"]
    return next(check["detail"] for check in checks if check["name"] == name)  # type: ignore[no-any-return]


def test_the_right_hand_off_is_green_and_results_name_who_spoke_and_called(project: Project) -> None:
    sample = played(project, "fixed")
    assert (failed_checks(sample), sample["verdict"]) == (set(), "passed")
    first, second = sample["turns"]
    assert (first["agents"], second["agents"]) == (["triage", "billing"], ["billing"])
    assert [call["agent"] for call in first["tool_calls"]] == ["triage", "triage"]
    assert [call["agent"] for call in second["tool_calls"]] == ["billing"]


def test_a_wrong_order_is_red_at_its_turn_with_both_orders(project: Project) -> None:
    sample = played(project, "order")
    assert sample["verdict"] == "failed"
    assert (1, "agents") in failed_checks(sample)
    assert (0, "agents") not in failed_checks(sample)
    assert detail(sample, "agents", 1) == "expected: billing; spoke: billing, triage, billing"
    assert detail(sample, "agents", None) == (
        "expected: triage, billing; spoke: triage, billing, triage, billing"
    )


def test_a_tool_that_is_forbidden_to_one_agent_is_red_for_its_call_alone(project: Project) -> None:
    sample = played(project, "forbidden")
    assert failed_checks(sample) == {(1, "tool_calls")}
    told = detail(sample, "tool_calls", 1)
    assert "not allowed: find_order(…) by billing" in told
    assert "forbidden: find_order() by billing" in told


def test_an_expected_call_by_another_agent_is_missing(project: Project) -> None:
    sample = played(project, "caller")
    assert failed_checks(sample) == {(None, "tool_calls")}
    told = detail(sample, "tool_calls", None)
    assert "missing: refund(id=1) by billing — nearest: refund(id=1) by triage" in told
    assert 'agent: expected "billing", got "triage"' in told


def test_where_nobody_is_named_nothing_is_decided_and_it_is_said_how_to(project: Project) -> None:
    sample = played(project, "nameless")
    assert (failed_checks(sample), sample["verdict"]) == (set(), "inconclusive")
    for name, turn in (("agents", 0), ("agents", 1), ("agents", None), ("tool_calls", None)):
        assert "(name: billing)" in detail(sample, name, turn), (name, turn)
    assert not any("agents" in turn for turn in sample["turns"])


def test_where_some_are_named_only_what_the_others_cannot_change_is_decided(project: Project) -> None:
    sample = played(project, "half")
    assert sample["verdict"] == "inconclusive"
    assert "spoke: (not named), billing" in detail(sample, "agents", 0)
    project.scenarios("id: other\nturns: [What is it?]\nexpect: {agents: [billing, triage]}\n")
    sample = played(project, "half")
    assert failed_checks(sample) == {(None, "agents")}


def test_a_call_of_an_unknown_agent_is_not_green_where_it_is_forbidden_to_one(project: Project) -> None:
    project.scenarios(
        "id: f\nturns: [Hi, Go]\nexpect: {tool_calls: {forbidden: [{name: refund, agent: triage}]}}\n"
    )
    assert played(project, "fixed")["verdict"] == "passed"
    sample = played(project, "nameless")
    assert sample["verdict"] == "inconclusive"
    told = detail(sample, "tool_calls", None)
    assert "not decided, because no agent is named for these calls: refund(id=1)" in told
    assert played(project, "caller")["verdict"] == "failed"


def test_a_reply_may_say_who_it_is_from(project: Project) -> None:
    project.scenarios("id: who\nturns: [Hi, Go]\nexpect: {agents: [triage, billing]}\n")
    assert played(project, "one_reply")["verdict"] == "passed"
    project.run("--record", "tape.jsonl")
    project.run("--replay", "tape.jsonl")
    assert project.sample()["turns"][1]["agents"] == ["billing"]
    project.scenarios("id: who\nturns: [Hi, Go]\nexpect: {agents: [billing, triage]}\n")
    assert failed_checks(played(project, "one_reply")) == {(None, "agents")}


def test_recorded_conversations_are_checked_and_shown_alike(project: Project) -> None:
    def log(*names: str) -> str:
        said = [{"role": "assistant", "content": "Yes.", "name": name} for name in names]
        talk = [{"role": "user", "content": "Hi"}, *said]
        return json.dumps({"id": "-".join(names), "messages": talk})

    project.config()
    project.scenarios(
        "scenarios:\n"
        "  - {id: triage-billing, turns: [Hi], expect: {agents: [triage, billing]}}\n"
        "  - {id: billing-triage, turns: [Hi], expect: {agents: [triage, billing]}}\n"
    )
    project.write("log.jsonl", "\n".join((log("triage", "billing"), log("billing", "triage"))))
    project.call("score", "log.jsonl", "--scenarios", "scenarios", "--report", "json=results.json")
    for names in ("triage-billing", "billing-triage"):
        assert project.sample(names)["turns"][0]["agents"] == names.split("-")
    assert failed_checks(project.sample("triage-billing")) == set()
    assert failed_checks(project.sample("billing-triage")) == {(None, "agents")}


def test_conversations_name_the_speaker_where_there_are_several(project: Project) -> None:
    project.config(target="agent.py:order")
    shown = project.run("--report", "markdown=report.md", "-v").all
    assert "(billing) Wait." in shown
    assert "(triage) refund(id=1)" in shown
    assert "agent: (triage) Refunded." in (project.root / "report.md").read_text(encoding="utf-8")
    project.scenarios("id: one\nturns: [Hi]\nexpect: {output: {contains: [x]}}\n")
    project.config(target="agent.py:one_reply")
    assert "(triage)" not in project.run("-v").all


@pytest.mark.parametrize(
    ("expect", "told"),
    [
        ("{agents: []}", "agents: an empty list checks nothing"),
        ("{agents: [triage, triage]}", "'triage' is listed twice in a row"),
        ("{agents: [triage, '']}", "agents: a name must not be empty"),
        ("{agents: {first: triage}}", "agents"),
        ("{tool_calls: {calls: [{name: refund, agent: ' '}]}}", "an agent name must not be empty"),
        ("{tool_calls: {forbidden: [{name: refund, agents: [a]}]}}", "agent"),
    ],
)
def test_mistakes_are_refused_at_their_place(project: Project, expect: str, told: str) -> None:
    project.config()
    project.scenarios(f"id: a\nturns: [Hi]\nexpect: {expect}\n")
    done = project.call("validate")
    assert done.code == 2
    assert told in done.err
    assert "scenarios/suite.yaml:3:" in done.err


def test_a_call_through_ctx_is_of_the_agent_that_lists_it_else_of_nobody_known(project: Project) -> None:
    project.scenarios(
        "id: c\nturns: [Hi]\ntools: {find_order: {returns: 1}}\n"
        "expect: {tool_calls: {forbidden: [{name: find_order, agent: triage}]}}\n"
    )
    sample = played(project, "through_ctx")
    assert [c["agent"] for c in sample["turns"][0]["tool_calls"]] == ["triage", "triage"]
    assert failed_checks(sample) == {(None, "tool_calls")}
    assert played(project, "through_ctx_unnamed")["verdict"] == "inconclusive"


@pytest.mark.parametrize(("order", "code"), [(("triage", "billing"), 0), (("billing", "triage"), 1)])
def test_messages_that_an_endpoint_reports_name_their_agents(
    project: Project, order: tuple[str, str], code: int
) -> None:
    trace = [{"role": "assistant", "name": name, "content": "Yes."} for name in order]
    with LocalServer(respond_json({"trace": trace})) as server:
        project.write(
            "agenteval.yaml",
            f"agent: {{name: bot, endpoint: '{server.url}/chat', observed_messages: trace}}\nmetrics: []\n",
        )
        project.scenarios("id: h\nturns: [Hi]\nexpect: {agents: [triage, billing]}\n")
        assert project.run().code == code
    assert project.sample()["turns"][0]["agents"] == list(order)


def test_checks_in_python_see_who_spoke_and_called(project: Project) -> None:
    project.write(
        "checks.py",
        """
        def handed(conversation):
            first, second = conversation.turns
            assert [call.agent for call in conversation.tool_calls] == ["triage", "triage", "billing"]
            return (first.agents, second.agents) == (("triage", "billing"), ("billing",))
        def nobody(conversation):
            return all(turn.agents == () for turn in conversation.turns)
        """,
    )
    project.scenarios("id: p\nturns: [Hi, Go]\nexpect: {python: ../checks.py:handed}\n")
    assert played(project, "fixed")["verdict"] == "passed"
    project.scenarios("id: p\nturns: [Hi, Go]\nexpect: {python: ../checks.py:nobody}\n")
    assert played(project, "nameless")["verdict"] == "passed"
    assert played(project, "fixed")["verdict"] == "failed"
