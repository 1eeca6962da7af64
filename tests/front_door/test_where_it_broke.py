"""At which turn a rule over a whole conversation was broken, and each fault told once."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.support.kit import Project

AGENT = """
def agent(messages, ctx):
    known = ctx.tools
    text = messages[-1]["content"]
    if "boom" in text:
        raise ValueError("boom")
    if "Lyon" in text:
        ctx.call_tool_sync("cancel", {})
        return "Here is the secret."
    return "Paris\\nit is."
"""
RULES = {
    "tool_calls: {forbidden: [{name: cancel}]}": ("tool_calls", 1),
    "tool_calls: {match: strict, calls: []}": ("tool_calls", 1),
    "output: {not_contains: [secret]}": ("output.not_contains", 1),
    "output: {contains: [Nice]}": ("output.contains", None),
    "tool_calls: {calls: [{name: cancel, times: 3}]}": ("tool_calls", None),
}


def violations(project: Project) -> list[dict[str, Any]]:
    return [violation for scenario in project.results()["scenarios"] for violation in scenario["violations"]]


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_over_the_conversation_names_the_turn_that_broke_it(project: Project, rule: str) -> None:
    name, turn = RULES[rule]
    project.agent(AGENT)
    project.config("metrics: []")
    suite = "{id: a, tools: {cancel: {returns: ok}}, turns: [Paris, WHERE, Paris], expect: {RULE}}"
    project.scenarios(suite.replace("RULE", rule).replace("WHERE", "Lyon"))
    done = project.run()
    assert done.code == 1, done.all
    (violation,) = violations(project)
    assert (violation["name"], violation["turn"]) == (name, turn)
    last = next(line for line in done.out.splitlines() if line.startswith("FAILED suite.yaml::a"))
    assert ("turn 2: " in last) == (turn is not None)
    if turn is not None:
        assert "  2 user   Lyon" in done.out
        project.scenarios(suite.replace("RULE", rule).replace("WHERE", "Nice"))
        assert project.run().code == 0


def test_an_agent_that_breaks_names_its_turn_in_json_too(project: Project) -> None:
    project.agent(AGENT)
    project.config("metrics: []")
    project.scenarios("{id: a, turns: [Paris, boom], expect: {output: {contains: [Paris]}}}")
    assert project.run().code == 1
    assert [(each["name"], each["turn"]) for each in violations(project)] == [("no_error", 1)]


def test_a_failed_call_of_a_model_is_told_once(project: Project) -> None:
    project.agent(AGENT)
    model = "{model: openai/x, base_url: 'http://127.0.0.1:9/v1', max_wait_s: 1}"
    project.config(f"metrics: [helpfulness, agent_behavior_failure]\nmodels: {{default: {model}}}")
    project.scenarios("{id: a, turns: [Paris, Nice, Rome], expect: {output: {contains: [Paris]}}}")
    done = project.run(env={"OPENAI_API_KEY": "none"})
    assert done.code == 3, done.all
    assert done.out.count("no score:") == 1
    assert done.out.count("? judge") == 1


def test_an_expected_call_that_was_not_made_is_told_once(project: Project) -> None:
    project.agent(AGENT)
    project.config("metrics: []")
    project.scenarios(
        "{id: a, tools: {cancel: {returns: ok}}, turns: [Paris],"
        " expect: {tool_calls: {calls: [{name: cancel}]}}}"
    )
    done = project.run()
    assert done.code == 1
    block = done.out.partition("── a ")[2].partition("FAILED")[0]
    assert "missing: cancel(…) — never called" in block
    assert "expected (contains)" not in block


def test_an_expression_that_a_line_break_breaks_says_how_to_cross_it(project: Project) -> None:
    project.agent(AGENT)
    project.config("metrics: []")
    for pattern, code in (("Paris.it", 1), ("(?s)Paris.it", 0), ("Paris.*Nice", 1)):
        project.scenarios(f"{{id: a, turns: [Paris], expect: {{output: {{matches: '{pattern}'}}}}}}")
        done = project.run()
        assert done.code == code, done.all
        assert ("/(?s)Paris.it/ would match" in done.out) == (pattern == "Paris.it")


def test_the_95th_percentile_of_few_conversations_says_that_it_is_the_slowest(project: Project) -> None:
    project.agent(AGENT)
    for epochs in (5, 20):
        project.config(f"metrics: []\nepochs: {epochs}")
        project.scenarios("{id: a, turns: [Paris], expect: {output: {contains: [Paris]}}}")
        done = project.run()
        assert done.code == 0, done.all
        assert bool(re.search(r"│ +max ", done.out)) == (epochs == 5)


def test_a_conversation_that_ended_at_its_last_turn_with_the_user_not_done_says_so(project: Project) -> None:
    project.agent(AGENT)
    project.config("metrics: []\nmodels: {default: scripted/replies.yaml}\nmax_turns: 2")
    project.scenarios("{id: a, goal: To go., profile: Anna., expect: {output: {contains: [Nice]}}}")
    ended = "(ended at the turn limit, 2: the user was not done)"
    for done, says in (("false", True), ("true", False)):
        first = "{when: {role: user, turn: 0}, reply: {message: To Nice please., done: false, reason: r}}"
        last = f"{{when: {{role: user}}, reply: {{message: And now?, done: {done}, reason: r}}}}"
        project.write("replies.yaml", f"replies: [{first}, {last}]\n")
        screen = project.run()
        assert screen.code == 1, screen.all
        assert (ended in screen.out) == says
        assert (ended in project.call("show", "a").out) == says
