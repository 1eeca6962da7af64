"""Grouping through the command line: who is asked, what about, and what its answer may change."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.support.judged_projects import KEY, MODEL
from tests.support.kit import Done, Project
from tests.support.local_servers import completion
from tests.support.model_servers import Json, ModelServer, Reply
from tests.support.scripted import judge, script

WHY = "The bank's interface was down in every conversation."
AGENT = """
def agent(messages, ctx):
    ctx.call_tool_sync("refund", {"order": "ORD-42"})
    return f"Your lamp is refunded in full. Anything else? {'HONEST' if ctx.scenario_id == 'fine' else ''}"
"""
REPLIES = """
replies:
  - when: {role: judge, text: HONEST, metric: goal_completion}
    reply: {evidence: "", reason: r, score: 1}
  - when: {role: judge, text: HONEST}
    reply: {evidence: "", reason: r, label: no failure}
  - when: {role: judge, scenario: one, metric: goal_completion}
    reply: {evidence: "is refunded in full", reason: No money came., score: 0}
  - when: {role: judge, metric: goal_completion}
    reply: {evidence: "Anything else?", reason: No money came., score: 0}
  - when: {role: judge, scenario: two, metric: agent_behavior_failure}
    reply: {evidence: "Anything else?", reason: Asked to be brief., label: disobey user request}
  - when: {role: judge, metric: agent_behavior_failure}
    reply: {evidence: "", reason: r, label: no failure}
  - when: {role: judge, metric: tool_call_behavior_failure}
    reply: {evidence: "lamp is refunded in full", reason: The bank was down., label: ignored tool result}
"""


def grouping(asked: Json) -> Reply:
    """All in one, and somebody else is to blame."""
    lines = [line for line in asked["messages"][-1]["content"].splitlines() if line.startswith('{"id": ')]
    issue = {
        "title": "Says that it has refunded",
        "explanation": "It has not.",
        "not_the_agents_fault": WHY,
        "severity": "low",
        "findings": [json.loads(line)["id"] for line in lines],
    }
    return Reply(completion(json.dumps({"issues": [issue]})))


def run(project: Project, server: ModelServer, *ids: str) -> Done:
    project.agent(AGENT)
    dedup = f"{{model: {MODEL}, base_url: '{server.base_url}', api_key_env: MODEL_KEY}}"
    project.write(
        "agenteval.yaml",
        "agent: {name: bot, target: 'agent.py:agent', policy: Lamps from the sale are not refunded.}\n"
        f"models: {{default: scripted/replies.yaml, dedup: {dedup}}}\ndetectors: []\n"
        "metrics: [goal_completion, agent_behavior_failure, tool_call_behavior_failure]\n",
    )
    project.write("replies.yaml", REPLIES)
    tools: Json = {"refund": {"description": "Pays an order back.", "returns": "the bank is down"}}
    entries = [
        {"id": i, "name": i, "goal": "My money.", "turns": ["Refund it."], "tools": tools} for i in ids
    ]
    project.scenarios(json.dumps({"scenarios": entries}))
    return project.run("--report", "markdown=report.md", env=KEY)


def issues(project: Project) -> list[dict[str, Any]]:
    return project.results()["summary"]["issues"]  # type: ignore[no-any-return]


@pytest.mark.parametrize("ids", [("one",), ("fine",)])
def test_for_one_fault_nobody_is_asked_and_the_goal_stands_with_its_cause(
    project: Project, ids: tuple[str, ...]
) -> None:
    with ModelServer(grouping) as server:
        done = run(project, server, *ids)
        assert server.asked == []
    assert project.results()["summary"]["usage"]["dedup"]["calls"] == 0
    if ids == ("fine",):
        assert (done.code, issues(project)) == (0, []), done.all
        return
    assert done.code == 1, done.all
    (only,) = issues(project)
    assert only["title"] == "ignored tool result: refund"
    assert (only["severity"], only["labels"]) == ("critical", ["goal not completed", "ignored tool result"])
    assert (only["by"], only["not_the_agents_fault"]) == ("", "")


def test_the_grouping_model_knows_the_agent_and_may_excuse_it_and_nothing_else_changes(
    project: Project,
) -> None:
    with ModelServer(grouping) as server:
        done = run(project, server, "two")
        [asked] = server.asked
        # Judged anew (the judges are fixed replies), the same question is not asked again.
        anew = project.call("report", "latest", "--rejudge", "--report", "json=anew.json", env=KEY)
        assert (anew.code, len(server.asked)) == (1, 1), anew.all
    (kept,) = json.loads((project.root / "anew.json").read_text("utf-8"))["summary"]["issues"]
    assert kept["not_the_agents_fault"] == WHY
    text = "\n".join(message["content"] for message in asked["messages"])
    assert "Lamps from the sale are not refunded." in text
    assert '{"name": "refund", "description": "Pays an order back."}' in text
    # Its opinion is shown wherever the issue is; severity, gates and exit code are as they were.
    (only,) = issues(project)
    assert (only["not_the_agents_fault"], only["proposed_severity"]) == (WHY, "low")
    assert only["severity"] == "critical"
    assert done.code == 1, done.all
    opinion = WHY.rstrip(".")
    again = project.call("report", "latest", "-v")
    assert (again.code, opinion in " ".join(again.out.split())) == (1, True)
    assert opinion in (project.root / "report.md").read_text("utf-8")


@pytest.mark.parametrize(("scenarios", "rest"), [(19, 0), (22, 4)])
def test_one_request_groups_the_worst_and_the_report_shows_what_code_grouped(
    project: Project, scenarios: int, rest: int
) -> None:
    """Of each conversation two things are found: 40 groups of findings are asked about."""
    with ModelServer(grouping) as server:
        done = run(project, server, *(f"s{n}" for n in range(scenarios)))
        assert (done.code, len(server.asked)) == (1, 1), done.all
    asked = server.asked[0]["messages"][-1]["content"]
    assert asked.count('{"id": ') == scenarios * 2 - rest
    assert [each["by"] != "" for each in issues(project)] == [True, False][: 2 if rest else 1]
    assert sum(each["findings"] for each in issues(project)) == scenarios * 2
    by_code = r"(?i)\bcode\b.*\b4 findings|\b4 findings.*\bcode\b"
    for text in (project.call("report", "latest", "-v").out, (project.root / "report.md").read_text("utf-8")):
        assert bool(re.search(by_code, text)) is (rest > 0)
    assert re.search(r"^dedup +\S+ +0–1 ", project.call("plan", env=KEY).out, re.MULTILINE)


FINE = {"evidence": "", "reason": "r", "label": "no failure"}
WORDY = {"evidence": "Anything else?", "reason": "r", "label": "lack of specific information"}
IGNORED = {"evidence": "lamp is refunded in full", "reason": "r", "label": "ignored tool result"}
MISSED = {"evidence": "refunded in full", "reason": "No money came.", "score": 0}


@pytest.mark.parametrize(
    ("behaviour", "calls", "titles"),
    [
        (WORDY, FINE, [("goal not completed", "critical"), ("lack of specific information", "medium")]),
        (FINE, IGNORED, [("ignored tool result: refund", "critical")]),
    ],
)
def test_a_missed_goal_is_grouped_with_a_fault_that_may_have_caused_it_and_no_small_one(
    project: Project, behaviour: Json, calls: Json, titles: list[tuple[str, str]]
) -> None:
    """Without a model to say so, the missed goal is else an issue of its own."""
    project.agent(AGENT)
    replies = {
        "agent_behavior_failure": behaviour,
        "tool_call_behavior_failure": calls,
        "goal_completion": MISSED,
    }
    models = "models: {default: scripted/replies.yaml}\ndetectors: []\n"
    project.config(f"{models}metrics: [{', '.join(replies)}]\n")
    script(project, *(judge(reply, metric=metric) for metric, reply in replies.items()))
    tool = {"refund": {"returns": "the bank is down"}}
    project.scenarios(json.dumps({"id": "s", "goal": "My money.", "turns": ["Refund it."], "tools": tool}))
    assert project.run().code == 1
    assert [(each["title"], each["severity"]) for each in issues(project)] == titles
