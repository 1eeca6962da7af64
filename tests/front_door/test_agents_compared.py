"""``compare:``: the agents of one run in one table, which of them is better, or that it is open."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.kit import Project

AGENT = """
from random import Random

from agenteval import AgentReply
from agenteval.core.trajectory import Usage

FAILS = {fails!r}

def agent(messages, ctx):
    noise = Random(f"{{ctx.scenario_id}} {{ctx.epoch}} {{__name__}}").gauss(1, 0.1)
    fails = ctx.epoch in FAILS.get(ctx.scenario_id, ())
    usage = Usage(calls=1, input_tokens=int({tokens} * noise), output_tokens=10)
    return AgentReply(text="no" if fails else "done", latency_ms={ms} * noise, usage=usage)
"""
COMPARE = """
epochs: {epochs}
compare: [{{name: new, target: "new.py:agent"}}]
prices: {{bot: {{input: 1, output: 1}}, new: {{input: 1, output: 1}}}}
gates: {{pass_hat_k: {{k: 1, at_least: 0.01, over: suite}}}}
"""
TEN = [f"s{number}" for number in range(10)]


def two_agents(
    project: Project, old: dict[str, Any], new: dict[str, Any], *, epochs: int = 5, ids: Any = TEN
) -> Project:
    alike = {"fails": {}, "tokens": 1000, "ms": 1000}
    project.write("agent.py", AGENT.format(**{**alike, **old}))
    project.write("new.py", AGENT.format(**{**alike, **new}))
    each = "  - {{id: {}, turns: [hi], expect: {{output: {{contains: [done]}}}}}}\n"
    project.scenarios("scenarios:\n" + "".join(map(each.format, ids)))
    project.config(COMPARE.format(epochs=epochs))
    return project


def compared(project: Project) -> tuple[dict[str, Any], dict[str, str]]:
    """The agent beside the first one, and how its numbers differ."""
    (agent,) = project.results()["summary"]["agents_compared"]["agents"]
    return agent, {number["name"]: number["reference_verdict"] for number in agent["numbers"]}


def test_a_better_agent_is_shown_with_what_it_takes(project: Project) -> None:
    two_agents(project, {"fails": {id: range(2) for id in TEN}}, {"ms": 400})
    done = project.run("--report", "markdown=report.md")
    found, numbers = compared(project)
    assert (found["reference"], found["success"]) == (pytest.approx(0.6), 1.0)
    assert found["low"] > 0
    assert found["reference_verdict"] == "more"
    assert numbers["latency_ms"] == numbers["cost per success"] == "less"
    assert numbers["tokens"] == "indistinguishable"
    (latency,) = [number for number in found["numbers"] if number["name"] == "latency_ms"]
    assert latency["low"] < 0.4 < latency["high"]
    markdown = (project.root / "report.md").read_text(encoding="utf-8")
    assert "## Agents compared" in markdown
    assert all("new is better" in " ".join(text.split()) for text in (done.out, markdown))


def test_a_worse_agent_is_shown_too(project: Project) -> None:
    fails = {id: range(5) for id in TEN[:6]}
    done = two_agents(project, {}, {"fails": fails, "tokens": 3000}).run()
    found, numbers = compared(project)
    assert (found["reference_verdict"], numbers["tokens"]) == ("less", "more")
    assert "new is worse" in done.out


def test_agents_that_are_alike_are_indistinguishable(project: Project) -> None:
    one, two = {"fails": {"s1": range(1)}}, {"fails": {"s2": range(1), "s3": range(1)}}
    done = two_agents(project, one, two).run()
    found, numbers = compared(project)
    assert found["reference_verdict"] == "indistinguishable"
    assert not any(word in done.out for word in ("new is better", "new is worse"))
    assert set(numbers.values()) == {"indistinguishable"}
    assert found["epochs_to_decide"] > 5


def test_one_scenario_shows_nothing_of_what_agents_take(project: Project) -> None:
    two_agents(project, {}, {"ms": 10}, ids=["a"]).run()
    assert set(compared(project)[1].values()) == {"indistinguishable"}


def test_the_single_scenarios_that_differ_are_named(project: Project) -> None:
    done = two_agents(project, {}, {"fails": {"s4": range(15)}}, epochs=15, ids=["s3", "s4", "s5"]).run()
    assert compared(project)[0]["worse_in"] == ["s4"]
    assert any("worse" in line and "s4" in line for line in done.out.splitlines()), done.out


def test_a_cost_that_is_not_known_is_not_compared(project: Project) -> None:
    two_agents(project, {}, {}, epochs=2).run()
    assert "cost" in compared(project)[1]
    project.config(COMPARE.format(epochs=2).replace(", new: {input: 1, output: 1}", ""))
    project.run()
    assert not {"cost", "cost per success"} & compared(project)[1].keys()


def test_agents_are_played_in_turn(project: Project) -> None:
    """Whatever changes during a run meets both alike."""
    two_agents(project, {}, {}, ids=["a", "b"])
    project.config(COMPARE.format(epochs=2) + "agent_concurrency: 1\n")
    project.run()
    (journal,) = (project.root / ".agenteval/runs").glob("*/events.jsonl")
    events = map(json.loads, journal.read_text(encoding="utf-8").splitlines())
    begun = [event["key"] for event in events if event["type"] == "sample_started"]
    order = [(key["scenario"], key.get("epoch", 0), key["agent"]) for key in begun]
    assert order == [(id, epoch, agent) for id in "ab" for epoch in (0, 1) for agent in ("bot", "new")]


def test_one_agent_is_compared_with_nothing(project: Project) -> None:
    done = two_agents(project, {}, {}, epochs=2).run("--agent", "new")
    assert project.results()["summary"]["agents_compared"] is None
    assert "Agents compared" not in done.out
