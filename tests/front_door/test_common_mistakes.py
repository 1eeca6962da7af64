"""Mistakes of the first days: what is emptied, misspelt or in the way is reported; nothing turns green."""

from __future__ import annotations

import pytest

from tests.support.kit import Project

AGENT = "async def agent(messages, ctx):\n    await ctx.call_tool('send', {})\n    return 'Hello.'\n"
EXPECT = "{output: {contains: hello}}"
SUITE = f"""
id: greet
tools: {{send: {{returns: {{}}}}, look: {{python: "mocks.py:look"}}}}
turns: [Hi]
expect: {EXPECT}
"""


@pytest.fixture
def suite(project: Project) -> Project:
    project.config("")
    project.agent(AGENT)
    project.scenarios(SUITE)
    project.write("scenarios/mocks.py", "def look(args):\n    return {}\n")
    return project


def test_no_report_takes_the_place_of_what_the_run_is_made_of(suite: Project) -> None:
    inputs = [
        suite.root / name
        for name in ("agent.py", "scenarios/mocks.py", "scenarios/suite.yaml", "agenteval.yaml")
    ]
    texts = [path.read_text() for path in inputs]
    assert suite.call("run").code == 0
    for path in inputs:
        name = path.relative_to(suite.root).as_posix()
        for command in ("run", "run --resume latest", "report latest", "diff latest latest"):
            done = suite.call(*command.split(), "--report", f"json={name}")
            done.refuses("agenteval", "json", name)
    assert [path.read_text() for path in inputs] == texts


# ── checks without a value ───────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("expect", "column", "named"),
    [
        ("{output: {contains: hello}, limits: }", 37, "expect.limits"),
        ("{output: {contains: hello}, limits: {steps: }}", 46, "expect.limits.steps"),
        ("{output: {contains: hello}, tool_calls: }", 37, "expect.tool_calls"),
        ("{tool_calls: {calls: [{name: send}]}, output: }", 47, "expect.output"),
        ("{tool_calls: {calls: [{name: send, args: }]}}", 44, "expect.tool_calls.calls.args"),
    ],
)
def test_a_check_without_a_value_is_refused(suite: Project, expect: str, column: int, named: str) -> None:
    suite.scenarios(SUITE.replace(EXPECT, expect))
    suite.call("validate").refuses(f"scenarios/suite.yaml:4:{column}", named)
    suite.scenarios(SUITE.replace("[Hi]", f"[{{user: Hi, expect: {expect}}}]"))
    column += len("turns: [{user: Hi, ")
    suite.call("validate").refuses(f"scenarios/suite.yaml:3:{column}", f"turns.{named}")


def test_null_takes_away_a_check_of_the_defaults(suite: Project) -> None:
    suite.scenarios("""
        defaults:
          turns: [Hi]
          tools: {send: {returns: {}}}
          expect: {output: {contains: hello}, limits: {tool_calls: 0}}
        scenarios:
          - {id: bound, expect: {}}
          - {id: free, expect: {limits: {tool_calls: null}}}
          - {id: all, expect: {limits: null}}
    """)
    assert suite.run().code == 1
    verdicts = {s["id"]: s["verdict"] for s in suite.results()["scenarios"]}
    assert verdicts == {"bound": "failed", "free": "passed", "all": "passed"}


# ── names ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "is_reported"),
    [("send_mial", True), ("send_mails", True), ("cancel_mail", False), ("send_mail", False)],
)
def test_a_forbidden_tool_that_is_misspelt_is_reported(suite: Project, name: str, is_reported: bool) -> None:
    expect = f"{{tool_calls: {{forbidden: [{{name: {name}}}]}}}}"
    suite.scenarios(SUITE.replace("send:", "send_mail:").replace(EXPECT, expect))
    done = suite.call("validate")
    assert done.code == 0, done.all
    warned = [line for line in done.err.splitlines() if "scenarios/suite.yaml:4" in line and name in line]
    assert ["'send_mail'" in line for line in warned] == [True] * is_reported


@pytest.mark.parametrize(
    ("settings", "place", "fact"),
    [
        ("include: [scenario/*.yaml]", "agenteval.yaml:3:1", "'scenario/*.yaml'"),
        ("include: []", "agenteval.yaml:3:1", "`include`"),
        ("exclude: [scenarios]", "agenteval", "`exclude`"),
    ],
)
def test_where_no_scenario_is_found_the_key_is_named(
    suite: Project, settings: str, place: str, fact: str
) -> None:
    suite.config(settings)
    suite.call("run").refuses(place, fact, code=5)


def test_a_threshold_on_a_metric_that_is_not_judged_is_violated(suite: Project) -> None:
    suite.config("thresholds: {helpfulness: 3}")
    assert suite.run().code == 1
    (row,) = [g for g in suite.results()["summary"]["gates"] if g["name"].startswith("thresholds")]
    assert (row["name"], row["verdict"]) == ("thresholds.helpfulness", "failed")


@pytest.mark.parametrize(
    ("word", "ours"),
    [("ordered", "in_order"), ("exact", "strict"), ("subset", "within"), ("Stric", "strict")],
)
def test_another_word_for_a_way_to_match_is_refused_with_ours(suite: Project, word: str, ours: str) -> None:
    suite.scenarios(SUITE.replace(EXPECT, f"{{tool_calls: {{match: {word}, calls: [{{name: send}}]}}}}"))
    suite.call("validate").refuses("scenarios/suite.yaml:4", f"'{word}'", f"'{ours}'")


def test_a_missing_model_hides_no_other_mistake(project: Project) -> None:
    """What is wrong in the files is reported together with it, and then what the agent lacks."""
    project.write("agenteval.yaml", "agent: {name: bot, target: 'agnt.py:agent'}\n")
    misspelt = "scenarios:\n- {id: a, turns: [hi], expcet: {}}\n- {id: b, goal: Get a lamp.}\n"
    project.scenarios(misspelt)
    done = project.call("validate")
    done.refuses("scenarios/suite.yaml:2", "'expcet'")
    for needing in ("'b'", "helpfulness"):  # a simulated user, and a judge
        done.refuses("agenteval", needing)
    project.scenarios("scenarios: [{id: b, goal: Get a lamp.}]\n")
    done = project.call("validate")
    for fact in ("'b'", "helpfulness", "'agnt.py'"):
        done.refuses("agenteval", fact)


def test_validate_imports_agents_that_no_scenario_uses(project: Project) -> None:
    project.agent("def agent(messages):\n    return 'Hi.'\n")
    project.scenarios("{id: a, turns: [Hi], checks: none}")
    config = "agent: {name: bot, target: 'agent.py:agent'}\nmetrics: []\nagents: {other: {target: '%s'}}\n"
    project.write("agenteval.yaml", config % "agent.py:agent")
    done = project.call("validate")
    assert (done.code, "other: agent.py:agent" in done.out) == (0, True)
    project.write("agenteval.yaml", config % "agent.py:nothing")
    project.call("validate").refuses("agenteval.yaml:3:18", "'other'", "'agent.py'", "'nothing'")


def test_a_misspelt_command_is_one_mistake(project: Project) -> None:
    project.write("agenteval.yaml", "agent: {name: bot, comand: [node, x.js]}\nmetrics: []\n")
    project.scenarios("{id: a, turns: [Hi], checks: none}")
    done = project.call("validate")
    done.refuses("agenteval.yaml:1:20", "'comand'", "'command'")
    assert done.err.count("agenteval: ") == 1


# ── texts that break off ─────────────────────────────────────────────────────────────────────────


def test_a_line_that_breaks_off_in_a_text_is_refused_at_its_column(project: Project) -> None:
    project.write("log.jsonl", '{"messages": [{"role": "user')
    project.call("score", "log.jsonl").refuses("log.jsonl:1", "JSON", "column 24")


def test_why_the_users_model_failed_is_named_once(suite: Project) -> None:
    suite.write("replies.yaml", "replies: [{when: {role: user}, reply: I am sorry.}]\n")
    suite.config("metrics: []\nmodels: {default: scripted/replies.yaml}\n")
    suite.scenarios("id: sim\ngoal: Say hello.\nepochs: 1\nexpect: {output: {contains: hello}}\n")
    done = suite.call("run")
    assert done.code == 3, done.all
    assert " ".join(done.out.split()).count("JSON") == 1
