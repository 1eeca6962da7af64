"""Mistakes of the first days: what is emptied, misspelt or in the way is told, and turns nothing green."""

from __future__ import annotations

import pytest

from tests.support.kit import Project

AGENT = "async def agent(messages, ctx):\n    await ctx.call_tool('send', {})\n    return 'Hello.'\n"
SUITE = """
id: greet
tools: {send: {returns: {}}, look: {python: "mocks.py:look"}}
turns: [Hi]
expect: {output: {contains: hello}}
"""


@pytest.fixture
def suite(project: Project) -> Project:
    project.config("")
    project.agent(AGENT)
    project.scenarios(SUITE)
    project.write("scenarios/mocks.py", "def look(args):\n    return {}\n")
    return project


# ── reports in the place of what is read ─────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["agent.py", "scenarios/mocks.py", "scenarios/suite.yaml", "agenteval.yaml"])
def test_no_report_takes_the_place_of_what_the_run_is_made_of(suite: Project, name: str) -> None:
    path = suite.root / name
    text = path.read_text()
    assert suite.call("run").code == 0
    commands = (["run"], ["run", "--resume", "latest"], ["report", "latest"], ["diff", "latest", "latest"])
    for command in commands:
        done = suite.call(*command, "--report", f"json={name}")
        assert done.code == 2, done.all
        assert f"{name}, which is an input of the run — write it to another file" in " ".join(
            done.err.split()
        )
        assert path.read_text() == text


# ── checks without a value ───────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("expect", "named"),
    [
        ("{output: {contains: hello}, limits: }", "expect.limits"),
        ("{output: {contains: hello}, limits: {steps: }}", "expect.limits.steps"),
        ("{output: {contains: hello}, tool_calls: }", "expect.tool_calls"),
        ("{tool_calls: {calls: [{name: send}]}, output: }", "expect.output"),
        ("{tool_calls: {calls: [{name: send, args: }]}}", "expect.tool_calls.calls.args"),
    ],
)
def test_a_check_without_a_value_is_refused(suite: Project, expect: str, named: str) -> None:
    suite.scenarios(SUITE.replace("{output: {contains: hello}}", expect))
    done = suite.call("validate")
    assert done.code == 2, done.all
    assert f": {named}: it has no value — write a value, or remove the key" in done.err
    at_a_turn = SUITE.replace("[Hi]", f"[{{user: Hi, expect: {expect}}}]")
    suite.scenarios(at_a_turn)
    assert f": turns.{named}: it has no value" in suite.call("validate").err


def test_null_takes_away_a_check_of_the_defaults(suite: Project) -> None:
    both = "\n".join(
        f"  - {{id: {name}, turns: [Hi], tools: {{send: {{returns: {{}}}}}}, expect: {expect}}}"
        for name, expect in (
            ("bound", "{}"),
            ("free", "{limits: {tool_calls: null}}"),
            ("all", "{limits: null}"),
        )
    )
    defaults = "defaults: {expect: {output: {contains: hello}, limits: {tool_calls: 0}}}"
    suite.scenarios(f"{defaults}\nscenarios:\n{both}\n")
    assert suite.run().code == 1
    verdicts = {s["id"]: s["verdict"] for s in suite.results()["scenarios"]}
    assert verdicts == {"bound": "failed", "free": "passed", "all": "passed"}


# ── names ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "is_told"),
    [("send_mial", True), ("send_mails", True), ("cancel_mail", False), ("send_mail", False)],
)
def test_a_forbidden_tool_that_is_misspelt_is_told(suite: Project, name: str, is_told: bool) -> None:
    expect = f"{{tool_calls: {{forbidden: [{{name: {name}}}]}}}}"
    suite.scenarios(SUITE.replace("send:", "send_mail:").replace("{output: {contains: hello}}", expect))
    done = suite.call("validate")
    assert done.code == 0, done.all
    assert ("which is not one of its tools" in done.err) is is_told
    if is_told:
        assert "(scenarios/suite.yaml:4): did you mean 'send_mail'?" in done.err


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        (
            "include: [scenario/*.yaml]",
            "agenteval.yaml:3:1: no scenario was found: 'scenario/*.yaml' matches no file in",
        ),
        ("include: []", "agenteval.yaml:3:1: no scenario was found: `include` is empty"),
        ("exclude: [scenarios]", "not excluded by `exclude`"),
    ],
)
def test_where_no_scenario_is_found_is_told_where_it_was_looked(
    suite: Project, settings: str, why: str
) -> None:
    suite.config(settings)
    done = suite.call("run")
    assert done.code == 5, done.all
    assert why in done.err


def test_a_threshold_on_a_metric_that_is_not_judged_says_so(suite: Project) -> None:
    suite.config("thresholds: {helpfulness: 3}")
    done = suite.run()
    assert done.code == 1, done.all
    assert "nothing was judged: it is not among the metrics" in " ".join(done.out.split())


# ── words ────────────────────────────────────────────────────────────────────────────────────────


def test_a_line_that_breaks_off_in_a_text_is_told_once_where(project: Project) -> None:
    project.write("log.jsonl", '{"messages": [{"role": "user')
    assert "not JSON: Unterminated string starting at column 24" in project.call("score", "log.jsonl").err


def test_why_the_user_s_model_failed_is_told_once(suite: Project) -> None:
    suite.write("replies.yaml", "replies: [{when: {role: user}, reply: I am sorry.}]\n")
    suite.config("metrics: []\nmodels: {default: scripted/replies.yaml}\n")
    suite.scenarios("id: sim\ngoal: Say hello.\nepochs: 1\nexpect: {output: {contains: hello}}\n")
    done = suite.call("run")
    assert done.code == 3, done.all
    assert " ".join(done.out.split()).count("it holds no valid JSON") == 1


@pytest.mark.parametrize(
    ("word", "ours"),
    [("ordered", "in_order"), ("exact", "strict"), ("subset", "within"), ("Stric", "strict")],
)
def test_a_word_of_others_for_a_way_to_match_names_ours(word: str, ours: str, project: Project) -> None:
    project.agent("def agent(messages):\n    return 'x'\n")
    project.config()
    calls = f"expect: {{tool_calls: {{match: {word}, calls: [{{name: t}}]}}}}"
    project.scenarios(f"scenarios: [{{id: a, turns: [hi], {calls}}}]")
    done = project.call("validate")
    assert done.code == 2
    assert f"got '{word}' — did you mean '{ours}'?" in done.err


def test_a_missing_model_hides_no_other_mistake(project: Project) -> None:
    """What the files say wrong, and then what the agent lacks, is told together with it."""
    project.write("agenteval.yaml", "agent: {name: bot, target: 'agnt.py:agent'}\n")
    project.scenarios("""
        scenarios:
          - {id: a, turns: [hi], expcet: {}}
          - {id: b, goal: Get a lamp.}
    """)
    done = project.call("validate")
    assert done.code == 2
    for told in (
        "suite.yaml:2:",
        "needs a model for its simulated user",
        "a model to be judged (helpfulness",
    ):
        assert told in done.err
    project.scenarios("scenarios: [{id: b, goal: Get a lamp.}]\n")
    done = project.call("validate")
    for told in ("needs a model for its simulated user", "a model to be judged", "no such file: 'agnt.py'"):
        assert told in done.err


def test_validate_imports_agents_that_no_scenario_uses(project: Project) -> None:
    project.agent("def agent(messages):\n    return 'Hi.'\n")
    project.scenarios("{id: a, turns: [Hi], checks: none}")
    for target, code, told in (
        ("agent.py:agent", 0, "other: agent.py:agent"),
        ("agent.py:nothing", 2, "agenteval.yaml:2:18: agent 'other': 'agent.py' has no 'nothing'"),
    ):
        config = (
            f"agent: {{name: bot, target: 'agent.py:agent'}}\nagents: {{other: {{target: '{target}'}}}}\n"
        )
        project.write("agenteval.yaml", f"{config}metrics: []\n")
        done = project.call("validate")
        assert (done.code, told in done.all) == (code, True), done.all


def test_a_misspelt_command_is_one_mistake(project: Project) -> None:
    project.write("agenteval.yaml", "agent: {name: bot, comand: [node, x.js]}\nmetrics: []\n")
    project.scenarios("{id: a, turns: [Hi], checks: none}")
    done = project.call("validate")
    assert done.code == 2
    assert "unknown key 'comand' — did you mean 'command'?" in done.all
    assert "neither a target nor an endpoint" not in done.all


LATER = "history: [{role: user, content: earlier}]"


@pytest.mark.parametrize("place", ["scenario", "case", "defaults", "one scenario"])
def test_an_earlier_conversation_is_not_supported_yet_and_never_ignored(project: Project, place: str) -> None:
    project.agent("def agent(messages): return 'Done.'\n")
    project.config()
    expect = "expect: {output: {contains: [Done]}}"
    files = {
        "scenario": (f"scenarios:\n- id: a\n  {LATER}\n  turns: [Hi]\n  {expect}\n", "3:3"),
        "case": (f"cases:\n- id: a\n  {LATER}\n  input: Hi\n  {expect}\n", "3:3"),
        "defaults": (f"defaults:\n  {LATER}\nscenarios:\n- {{id: a, turns: [Hi], {expect}}}\n", "2:3"),
        "one scenario": (f"id: a\n{LATER}\nturns: [Hi]\n{expect}\n", "2:1"),
    }
    text, at = files[place]
    project.scenarios(text)
    for command in ("validate", "run"):
        done = project.call(command)
        assert done.code == 2, done.all
        assert f".yaml:{at}: 'history' is not supported yet — write the earlier messages as turns" in done.all
    project.scenarios(text.replace(LATER, "tags: [plain]"))
    assert project.run().code == 0
