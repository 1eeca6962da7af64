"""Observed or not: where no call of the agent could be seen, the absence of one proves nothing."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

from agenteval.core.scenario import Scenario
from agenteval.core.trajectory import Sight, Step, Trajectory, Turn
from agenteval.files.prompts import load_rubric
from agenteval.scoring.judges.judge import Judge
from agenteval.scoring.transcript import NOT_OBSERVED
from tests.support.fake_models import FakeModel
from tests.support.kit import Done, Project, failed_checks
from tests.support.local_servers import LocalServer, chat, completion, respond_json

MERE_TEXT = "def agent(messages):\n    return 'Done.'\n"
LISTS = """
def agent(messages):
    if len(messages) < 3:
        return [{"role": "assistant", "content": "Done."}]
    call = {"id": "1", "type": "function", "function": {"name": "delete_all", "arguments": "{}"}}
    return [
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "ok"},
        {"role": "assistant", "content": "Done."},
    ]
"""
ASKS = """
def agent(messages):
    if len(messages) == 3:
        call = {"id": "1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        return {"role": "assistant", "content": "Looking.", "tool_calls": [call]}
    return "Done."
"""
RULES = """
scenarios:
  - {id: forbidden, turns: [Hi], expect: {tool_calls: {forbidden: [{name: delete_all}]}}}
  - {id: missing, turns: [Hi], expect: {tool_calls: {calls: [{name: look}]}}}
  - {id: in-order, turns: [Hi], expect: {tool_calls: {match: in_order, calls: [{name: look}]}}}
  - {id: strict, turns: [Hi], expect: {tool_calls: {match: strict, calls: []}}}
  - {id: unordered, turns: [Hi],
     expect: {tool_calls: {match: unordered, calls: [{name: a, times: {at_least: 0}}]}}}
  - {id: within, turns: [Hi], expect: {tool_calls: {match: within, calls: [{name: look}]}}}
  - {id: calls, turns: [Hi], expect: {limits: {tool_calls: 3}}}
  - {id: steps, turns: [Hi], expect: {limits: {steps: 3}}}
  - {id: at-turn, turns: [{user: Hi, expect: {tool_calls: {forbidden: [{name: delete_all}]}}}]}
  - {id: words, turns: [Hi], expect: {output: {contains: [Done]}}}
cases:
  - {id: case, input: Hi, expected_tools: [look]}
"""
OF_CALLS = (
    "forbidden",
    "missing",
    "in-order",
    "strict",
    "unordered",
    "within",
    "calls",
    "steps",
    "at-turn",
    "case",
)
MISSING = ("missing", "in-order", "case")


def verdicts(project: Project) -> dict[str, str]:
    return {scenario["id"]: scenario["verdict"] for scenario in project.results()["scenarios"]}


def checks(project: Project, scenario: str) -> dict[tuple[int | None, str], Any]:
    sample = project.sample(scenario)
    found = {(None, check["name"]): check for check in sample["checks"]}
    for index, turn in enumerate(sample["turns"]):
        found |= {(index, check["name"]): check for check in turn["checks"]}
    return found


def play(project: Project, agent: str, scenarios: str = RULES, *, config: str = "", keys: str = "") -> Done:
    project.agent(agent)
    project.write(
        "agenteval.yaml", f"agent: {{name: bot, target: 'agent.py:agent'{keys}}}\nmetrics: []\n{config}"
    )
    project.scenarios(scenarios)
    return project.run()


def test_of_mere_text_no_rule_of_calls_is_decided_and_one_line_says_how(project: Project) -> None:
    done = play(project, MERE_TEXT)
    assert done.code == 3
    assert verdicts(project) == {**dict.fromkeys(OF_CALLS, "inconclusive"), "words": "passed"}
    for scenario in OF_CALLS:
        (told,) = [check for check in checks(project, scenario).values() if check["passed"] is None]
        assert "\n" not in told["detail"]
        for way in ("messages", "ctx", "tools in the scenario", "observed_messages", "tools: visible"):
            assert way in told["detail"], (scenario, way)
    assert project.sample("case")["tool_accuracy"] is None
    assert project.run("-s", "forbidden").code == 3  # alone as in the whole run


def test_what_is_no_list_of_the_turns_messages_shows_no_calls(project: Project) -> None:
    rule = "{id: a, turns: [Hi], expect: {tool_calls: {forbidden: [{name: delete_all}]}}}"
    for mere in (
        "{'role': 'assistant', 'content': 'Done.'}",
        "{'role': 'model', 'parts': [{'text': 'Done.'}], 'content': None}",
    ):
        assert play(project, f"def agent(messages):\n    return {mere}\n", rule).code == 3, mere
    listed = "def agent(messages):\n    return [{'role': 'assistant', 'content': 'Done.'}]\n"
    assert play(project, listed, rule).code == 0


@pytest.mark.parametrize(
    ("keys", "config"), [(", tools: visible", ""), ("", "unmocked_tools: empty")], ids=["declared", "empty"]
)
def test_where_calls_can_be_seen_an_absence_is_an_absence(project: Project, keys: str, config: str) -> None:
    assert play(project, MERE_TEXT, keys=keys, config=config).code == 1
    held = {name for name, verdict in verdicts(project).items() if verdict == "passed"}
    assert held == {"words", *OF_CALLS} - set(MISSING)
    assert {name for name, verdict in verdicts(project).items() if verdict == "failed"} == set(MISSING)
    assert project.sample("case")["tool_accuracy"] == 0


TWO_TURNS = """
scenarios:
  - id: a
    turns:
      - {user: Hi, expect: {tool_calls: {forbidden: [{name: delete_all}]}, limits: {tool_calls: 0}}}
      - {user: Again, expect: {tool_calls: {calls: [{name: look}]}}}
    expect: {limits: {tool_calls: 2}}
"""


@pytest.mark.parametrize(
    ("agent", "config"),
    [(ASKS, "unmocked_tools: passthrough"), (LISTS.replace("delete_all", "look"), "")],
    ids=["asks", "lists"],
)
def test_a_call_in_the_second_turn_shows_that_the_first_made_none(
    project: Project, agent: str, config: str
) -> None:
    done = play(project, agent, TWO_TURNS, config=config)
    assert done.code == 0, done.out
    found = checks(project, "a")
    assert found[0, "tool_calls"]["passed"] is True
    assert found[0, "limits.tool_calls"]["detail"] == "0 tool calls, at most 0 allowed"
    # The same from the journal, by a report and by a score of it; and before the end nothing was red.
    (journal,) = project.root.glob(".agenteval/runs/*/events.jsonl")
    items = [i for e in map(json.loads, journal.read_text().splitlines()) for i in e.get("items", ())]
    assert not [item for item in items if item.get("passed") is False]
    assert project.call("report", "latest", "--report", "json=again.json").code == 0
    assert project.call("score", str(journal)).code == 0


def test_a_red_that_only_the_second_turn_decides_is_red_at_its_turn(project: Project) -> None:
    scenarios = TWO_TURNS.replace("limits: {tool_calls: 0}", "limits: {tokens: 100000}").replace(
        "tool_calls: {forbidden: [{name: delete_all}]}", "tool_calls: {calls: [{name: look}]}"
    )
    agent = LISTS.replace("delete_all", "look")
    assert play(project, agent, scenarios).code == 1
    assert failed_checks(project.sample("a")) == {(0, "tool_calls")}
    assert play(project, MERE_TEXT, scenarios).code == 3
    assert failed_checks(project.sample("a")) == set()
    assert project.run("--fail-fast").code == 3


def test_a_call_that_was_seen_breaks_its_rule_whatever_is_declared(project: Project) -> None:
    rules = """
scenarios:
  - {id: forbidden, turns: [Hi, Again], expect: {tool_calls: {forbidden: [{name: delete_all}]}}}
  - {id: strict, turns: [Hi, Again], expect: {tool_calls: {match: strict, calls: []}}}
  - {id: calls, turns: [Hi, Again], expect: {limits: {tool_calls: 0}}}
  - {id: made, turns: [Hi, Again], expect: {tool_calls: {calls: [{name: delete_all}]}}}
  - {id: other, turns: [Hi, Again], expect: {tool_calls: {forbidden: [{name: look}]}}}
  - {id: missing, turns: [Hi, Again], expect: {tool_calls: {calls: [{name: look}]}}}
  - {id: within, turns: [Hi, Again], expect: {tool_calls: {match: within, calls: [{name: delete_all}]}}}
"""
    red = dict.fromkeys(("forbidden", "strict", "calls"), "failed")
    play(project, LISTS, rules)
    seen = {"made": "passed", "other": "passed", "missing": "failed", "within": "passed"}
    assert verdicts(project) == red | seen
    play(project, LISTS, rules, keys=", tools: none")
    hidden = {"made": "passed", **dict.fromkeys(("other", "missing", "within"), "inconclusive")}
    assert verdicts(project) == red | hidden
    assert "tools: none" in checks(project, "other")[None, "tool_calls"]["detail"]


def test_declared_tools_are_the_agents_way_to_them_unless_it_has_another(project: Project) -> None:
    rule = "{id: a, turns: [Hi], tools: {look: {returns: 1}}, expect: {tool_calls: {calls: [{name: look}]}}}"
    done = play(project, MERE_TEXT, rule)
    assert (done.code, failed_checks(project.sample("a"))) == (1, {(None, "tool_calls")})
    assert "no call of agent 'bot' seen" in done.out.strip().split("\n")[-1]
    assert play(project, MERE_TEXT, rule, keys=", tools: none").code == 3
    done = play(project, "def agent(messages, ctx):\n    return str(ctx.call_tool_sync('look'))\n", rule)
    assert done.code == 0
    assert "seen" not in done.out.strip().split("\n")[-1]


def test_an_endpoint_is_observed_where_it_reports_its_messages(project: Project) -> None:
    project.scenarios("{id: a, turns: [Hi], expect: {tool_calls: {forbidden: [{name: delete_all}]}}}")
    for answer, keys, code in (
        (chat("Done."), "", 3),
        (respond_json({**completion("Done."), "trace": []}), ", observed_messages: trace", 0),
        (chat("Done."), ", tools: visible", 0),
    ):
        with LocalServer(answer) as server:
            project.write("agenteval.yaml", f"agent: {{endpoint: '{server.url}'{keys}}}\nmetrics: []\n")
            assert project.run().code == code, keys


# ── recorded conversations ───────────────────────────────────────────────────────────────────────


def test_a_log_shows_calls_where_it_holds_one_or_declares_tools(project: Project) -> None:
    said = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Done."}]
    call = {"id": "1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    made = [said[0], {"role": "assistant", "tool_calls": [call]}, *said[1:]]
    schema = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
    log = [
        {"id": "text", "messages": said},
        {"id": "made", "messages": made},
        {"id": "declared", "messages": said, "tools": [schema]},
    ]
    project.write("log.jsonl", "\n".join(map(json.dumps, log)))
    rule = "turns: [Hi], expect: {tool_calls: {forbidden: [{name: delete_all}]}}"
    project.scenarios(
        "scenarios:\n" + "".join(f"  - {{id: {each['id']}, {rule}}}\n" for each in log), "suite.yaml"
    )
    score = ("score", "log.jsonl", "--scenarios", "suite.yaml", "--report", "json=results.json")
    assert project.call(*score).code == 3
    held = {"text": "inconclusive", "made": "passed", "declared": "passed"}
    assert verdicts(project) == held
    assert project.call("score", "latest", "--report", "json=results.json").code == 3
    assert verdicts(project) == held
    project.write("agenteval.yaml", "agent: {target: 'a.py:agent', tools: visible}\nmetrics: []\n")
    assert project.call(*score).code == 0
    project.write("agenteval.yaml", "metrics: []\n")
    suite = project.root / "suite.yaml"
    suite.write_text(f"defaults: {{tools: {{look: {{returns: 1}}}}}}\n{suite.read_text()}")
    assert project.call(*score).code == 0


# ── judges and detectors ─────────────────────────────────────────────────────────────────────────

JUDGE = """
replies:
  - when: {role: judge, metric: goal_completion}
    reply: {evidence: "", reason: cannot be told, score: null}
  - when: {role: judge, metric: criteria}
    reply: {evidence: "", reason: cannot be told, label: not clear}
  - when: {role: judge, metric: tool_call_behavior_failure}
    reply: {evidence: "", reason: r, label: no failure}
"""
JUDGED = """
scenarios:
  - id: other
    goal: The order is looked up.
    turns: [Hi]
    expect: {criteria: [Looks up the order.], output: {contains: [Done]}}
  - {id: alone, turns: [Hi], expect: {criteria: [Looks up the order.]}}
"""


def test_what_needs_an_unseen_call_is_not_clear_and_gates_nothing(project: Project) -> None:
    project.write("judge.yaml", JUDGE)
    config = "models: {default: scripted/judge.yaml}"
    project.agent(MERE_TEXT)
    project.scenarios(JUDGED)
    for keys, other in (("", "passed"), (", tools: visible", "inconclusive")):
        project.write(
            "agenteval.yaml",
            f"agent: {{target: 'agent.py:agent'{keys}}}\nmetrics: [goal_completion]\n{config}\n",
        )
        assert project.run().code == 3
        assert verdicts(project) == {"other": other, "alone": "inconclusive"}
    project.write("agenteval.yaml", f"agent: {{target: 'agent.py:agent'}}\nmetrics: []\n{config}\n")
    done = project.run("-s", "other")
    assert done.code == 0, done.all
    assert done.out.splitlines()[-1].endswith("(exit 0) — with 1 criterion not clear")


def test_a_missing_call_is_not_offered_to_the_judge_of_an_agent_that_hides_its_own() -> None:
    asked = {}
    for sight in (Sight.TOOLS, Sight.HIDDEN):
        model = FakeModel({"evidence": "", "reason": "r", "label": "no failure"})
        turns = (Turn(user="Hi", steps=(Step(text="It rains."),), sight=sight),)
        scenario = Scenario.model_validate({"id": "a", "tools": {"look": {"returns": 1}}})
        judge = Judge(load_rubric("tool_call_behavior_failure"), model)
        anyio.run(judge, scenario, Trajectory(turns=turns))
        (asked[sight],) = model.requests
    assert "missing tool call" in asked[Sight.TOOLS].prompt
    assert NOT_OBSERVED not in asked[Sight.TOOLS].prompt
    assert "missing tool call" not in asked[Sight.HIDDEN].prompt
    assert NOT_OBSERVED in asked[Sight.HIDDEN].prompt
    assert (
        "missing tool call"
        not in asked[Sight.HIDDEN].reply.model_json_schema()["properties"]["label"]["enum"]
    )


def test_detectors_that_rest_on_a_missing_call_do_not_run_there(project: Project) -> None:
    agent = "def agent(messages):\n    return 'I cancelled order ORD-4711, the refund is $45.17.'\n"
    tools = "{cancel_order: {returns: {ok: true}}}"
    rule = f"{{id: a, turns: [Cancel my order please.], tools: {tools}, checks: none}}"
    for keys, found in (("", True), (", tools: visible", True), (", tools: none", False)):
        play(project, agent, rule, keys=keys)
        names = {each["detector"] for each in project.sample("a")["findings"]}
        assert bool(names & {"claimed_action_not_called", "ungrounded_value"}) is found, keys


# ── the declaration ──────────────────────────────────────────────────────────────────────────────


def test_a_declaration_that_is_neither_is_refused(project: Project) -> None:
    done = play(project, MERE_TEXT, keys=", tools: hidden")
    assert done.code == 2
    assert "visible" in done.err
    assert "none" in done.err
