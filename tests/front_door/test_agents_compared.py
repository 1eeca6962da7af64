"""``compare:``: the agents of one run in one table, which of them is better, or that it cannot be told."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.kit import Done, Project

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


def agents(
    project: Project, old: dict[str, Any], new: dict[str, Any], *, epochs: int = 5, ids: Any = TEN
) -> Done:
    told = {"fails": {}, "tokens": 1000, "ms": 1000}
    project.write("agent.py", AGENT.format(**{**told, **old}))
    project.write("new.py", AGENT.format(**{**told, **new}))
    lines = "".join(
        f"  - {{id: {id}, turns: [hi], expect: {{output: {{contains: [done]}}}}}}\n" for id in ids
    )
    project.scenarios(f"scenarios:\n{lines}")
    project.config(COMPARE.format(epochs=epochs))
    return project.run("--report", "markdown=report.md")


def beside(project: Project) -> dict[str, Any]:
    (agent,) = project.results()["summary"]["agents_compared"]["agents"]
    return agent  # type: ignore[no-any-return]


def numbers(project: Project) -> dict[str, str]:
    return {number["name"]: number["reference_verdict"] for number in beside(project)["numbers"]}


def test_a_better_agent_is_told_with_what_it_takes(project: Project) -> None:
    done = agents(project, {"fails": {id: range(2) for id in TEN}}, {"ms": 400})
    found = beside(project)
    assert (found["reference"], found["success"]) == (pytest.approx(0.6), 1.0)
    assert found["low"] > 0
    assert found["reference_verdict"] == "more"
    assert numbers(project)["latency_ms"] == "less"
    assert numbers(project)["tokens"] == "indistinguishable"
    assert numbers(project)["cost per success"] == "less"
    (latency,) = [number for number in found["numbers"] if number["name"] == "latency_ms"]
    assert latency["low"] < 0.4 < latency["high"]
    sentence = "new is better: it succeeds more often, costs less for each success and is faster"
    assert sentence in " ".join(done.out.split())
    markdown = (project.root / "report.md").read_text(encoding="utf-8")
    assert "## Agents compared" in markdown
    assert sentence in markdown
    assert "corrected together" in markdown


def test_a_worse_agent_is_told_too(project: Project) -> None:
    done = agents(project, {}, {"fails": {id: range(5) for id in TEN[:6]}, "tokens": 3000})
    assert beside(project)["reference_verdict"] == "less"
    assert "new is worse: it succeeds less often" in done.out
    assert numbers(project)["tokens"] == "more"


def test_agents_that_are_alike_are_not_told_apart(project: Project) -> None:
    done = agents(project, {"fails": {"s1": range(1)}}, {"fails": {"s2": range(1), "s3": range(1)}})
    assert beside(project)["reference_verdict"] == "indistinguishable"
    assert "too few epochs to show whether bot or new succeeds more often" in " ".join(done.out.split())
    assert set(numbers(project).values()) == {"indistinguishable"}
    assert beside(project)["epochs_to_decide"] > 5


def test_one_scenario_says_nothing_of_what_agents_take(project: Project) -> None:
    agents(project, {}, {"ms": 10}, ids=["a"])
    assert set(numbers(project).values()) == {"indistinguishable"}


def test_the_single_scenarios_that_differ_are_named(project: Project) -> None:
    done = agents(project, {}, {"fails": {"s4": range(15)}}, epochs=15)
    assert beside(project)["worse_in"] == ["s4"]
    assert "new is worse in s4" in done.out


def test_a_cost_that_is_not_known_is_not_compared(project: Project) -> None:
    agents(project, {}, {})
    assert "cost" in numbers(project)
    text = COMPARE.format(epochs=2).replace(", new: {input: 1, output: 1}", "")
    project.config(text)
    project.run()
    assert "cost" not in numbers(project)
    assert "cost per success" not in numbers(project)


def test_agents_are_played_in_turn(project: Project) -> None:
    """Whatever changes during a run meets both alike."""
    agents(project, {}, {}, epochs=2, ids=["a", "b"])
    project.config(COMPARE.format(epochs=2) + "agent_concurrency: 1\n")
    project.run()
    (journal,) = sorted((project.root / ".agenteval/runs").glob("*/events.jsonl"))[-1:]
    events = map(json.loads, journal.read_text(encoding="utf-8").splitlines())
    begun = [event["key"] for event in events if event["type"] == "sample_started"]
    told = [(key["scenario"], key.get("epoch", 0), key["agent"]) for key in begun]
    assert told == [(id, epoch, agent) for id in "ab" for epoch in (0, 1) for agent in ("bot", "new")]


def test_one_agent_is_compared_with_nothing(project: Project) -> None:
    agents(project, {}, {})
    done = project.run("--agent", "new")
    assert project.results()["summary"]["agents_compared"] is None
    assert "Agents compared" not in done.out
