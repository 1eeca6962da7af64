"""What the screen shows of a run: the bug in the first lines, each failure with its turn, and the list of
failures, the next commands and the verdict in the last ones."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.support.kit import Done, Project
from tests.support.local_servers import LocalServer, respond
from tests.support.results import has, last_line

FIRST = 40
AGENT = """
def agent(messages, ctx):
    text = messages[-1]["content"]
    if text == "raise":
        raise KeyError("no_such_order")
    if text == "refuse":
        raise ConnectionRefusedError("refused")
    return "well" if ctx.epoch else "bad"
"""
FINE: dict[str, Any] = {"expect": {"output": {"contains": ["bad"]}}}


def suite(project: Project, *scenarios: dict[str, Any], config: str = "") -> None:
    """Scenarios of which each fails in its first epoch, unless it says otherwise."""
    project.agent(AGENT)
    project.config(config)
    expect = {"output": {"contains": ["well"]}}
    entries = [{"turns": ["hi"], "expect": expect, **each} for each in scenarios]
    project.scenarios("scenarios:\n" + "".join(f"- {json.dumps(each)}\n" for each in entries))


def listed(done: Done) -> list[str]:
    """What did not pass: the last lines but for the next commands and the verdict."""
    lines = done.out.splitlines()[:-2]
    start = max(number for number, line in enumerate(lines) if not line)
    return lines[start + 1 :]


# ── the list of failures ─────────────────────────────────────────────────────────────────────────


def test_what_never_ran_is_one_line(project: Project) -> None:
    """After ``--fail-fast`` the failure is what there is to read; without it every scenario has its line."""
    later = ({"id": f"later-{number}"} for number in range(7))
    suite(project, {"id": "red"}, *later, config="agent_concurrency: 1")
    done = project.run("-x")
    assert done.code == 1
    red, never = listed(done)
    assert has(red, "FAILED suite.yaml::red ", '"well"', '"bad"')
    assert never.startswith("INCONCLUSIVE 7 ")
    assert has(never, *(f"later-{number}" for number in range(5)), "2 more")
    assert "later-6" not in done.out
    assert project.call("report", "latest", "-v").out.count("later-6") == 1  # its row of the table
    assert len(listed(project.run())) == 8


def test_a_failing_run_ends_with_what_failed_why_and_where(project: Project) -> None:
    suite(
        project,
        {"id": "lost", "turns": ["refuse"]},
        {"id": "fine", **FINE},
        {"id": "two words", "turns": ["hi"]},
        {"id": "broke", "turns": ["raise"]},
        {"id": "often", "epochs": 3},
    )
    done = project.run()
    assert done.code == 1
    last = last_line(done)
    assert has(last, "FAILED", "3 of 5", "1 inconclusive", "1 passed", "exit 1")
    words, broke, often, lost = listed(done)
    assert has(words, "FAILED 'suite.yaml::two words' ", '"well"', '"bad"')
    assert has(broke, "FAILED suite.yaml::broke ", "turn 1", "agent_error", "KeyError")
    assert has(often, "FAILED suite.yaml::often ", "1 of 3", '"well"')
    assert has(lost, "INCONCLUSIVE suite.yaml::lost ", "turn 1")
    again, *rest = done.out.splitlines()[-2].split("     ")
    assert "agenteval run --failed-in " in again
    (inspect,) = rest
    assert inspect.endswith("agenteval show 'two words'")
    assert listed(project.run("-s", "broke")) == [broke]
    assert listed(project.call("report", "latest")) == [broke]
    assert "FAILED" not in project.run("-s", "fine").out


def test_all_are_listed_and_ten_are_shown(project: Project) -> None:
    names = [f"s{n:02}" for n in range(23)]
    suite(project, *({"id": name} for name in names))
    done = project.run()
    assert [line.split()[1] for line in listed(done)] == [f"suite.yaml::{name}" for name in names]
    assert done.out.count("\n── ") == 10
    assert re.search(r"^… .*13 more", done.out, flags=re.MULTILINE)


def test_quiet_is_only_the_list_and_the_verdict(project: Project) -> None:
    suite(project, {"id": "lost", "turns": ["refuse"]}, {"id": "wrong"})
    wrong, lost, verdict = project.run("-q").out.splitlines()
    assert wrong.startswith("FAILED suite.yaml::wrong ")
    assert lost.startswith("INCONCLUSIVE suite.yaml::lost ")
    assert has(verdict, "FAILED", "1 of 2", "1 inconclusive", "exit 1")
    assert project.run("-q", "-v").code == 2
    suite(project, {"id": "fine", **FINE})
    (verdict,) = project.run("--quiet").out.splitlines()
    assert has(verdict, "PASSED", "1 scenario", "exit 0")


@pytest.mark.parametrize("count", [1, 60])
def test_all_green_is_short(project: Project, count: int) -> None:
    suite(project, *({"id": f"s{n:03}", **FINE} for n in range(count)))
    done = project.run()
    assert done.code == 0
    assert len(done.out.splitlines()) <= 20
    assert "Capability" in done.out  # the table of the three dimensions


def test_a_failure_takes_at_most_twelve_lines(project: Project) -> None:
    """Whatever is wrong, and however much was said."""
    expect = {
        "output": {
            "contains": [f"never said {n}" for n in range(20)],
            "matches": "price|cost",
            "not_contains": ["word"],
        },
        "tool_calls": {"calls": [{"name": f"tool_{n}"} for n in range(20)]},
        "limits": {"tool_calls": 3, "steps": 2},
    }
    suite(
        project,
        {"id": "much", "turns": ["hi " * 300], "tools": {"look_up": {"returns": {}}}, "expect": expect},
    )
    project.agent("""
        def agent(messages, ctx):
            for n in range(20):
                ctx.call_tool_sync("look_up", {"n": n})
            return "word " * 400
    """)
    done = project.run()
    assert done.code == 1
    (block,) = [part for part in done.out.split("\n\n") if part.startswith("── much")]
    lines = block.splitlines()
    assert len(lines) <= 12
    assert "scenarios/suite.yaml:" in lines[0]
    assert has(block, "user", "tool_calls", "tool_0", "look_up")
    assert "agenteval show much" in lines[-1]


@pytest.mark.parametrize(
    ("epochs", "gates", "facts"),
    [
        # Of a gate over repeated runs its row is the reason; a rule over the whole run has its own line.
        (
            20,
            "pass_rate: {at_least: 0.99, reject_below: 0.98}",
            ("suite.yaml::a ", "20 of 20", "pass_rate: 0"),
        ),
        (6, "pass_hat_k: {k: 2, at_least: 0.99, over: suite}", ("pass_hat_k ", "0", "agenteval.yaml:3")),
    ],
)
def test_the_gate_that_failed_is_the_reason(
    project: Project, epochs: int, gates: str, facts: tuple[str, ...]
) -> None:
    suite(project, {"id": "a", "epochs": epochs}, config=f"gates: {{{gates}}}\n")
    project.agent("def agent(messages, ctx):\n    return 'bad'\n")
    done = project.run()
    assert done.code == 1, done.out
    line = listed(done)[0]
    assert line.startswith(f"FAILED {facts[0]}")
    assert has(line, *facts)


@pytest.mark.parametrize(
    ("agent", "fact"),
    [
        ("def agent(messages):\n    return {}['price']\n", "KeyError: 'price'"),
        ("import no_such_module\n", "no_such_module"),
        ("def agent(messages):\n    return 'The price is 12.'\n", '"well"'),
        ("def agent(messages):\n    raise ConnectionRefusedError('db')\n", "ConnectionRefusedError: db"),
        ("def answer(messages):\n    return ''\n", "agent.py"),
    ],
    ids=["raises", "import", "assertion", "refused", "not there"],
)
def test_the_first_bug_of_a_project_stands_in_the_first_lines(
    project: Project, agent: str, fact: str
) -> None:
    """Of as many scenarios as make every table long."""
    suite(project, *({"id": f"s{n:02}", "category": "capability", "goal": "A price."} for n in range(23)))
    project.agent(agent)
    done = project.run()
    assert done.code in (1, 2, 3)
    assert fact in "\n".join([*done.err.splitlines(), *done.out.splitlines()][:FIRST])


# ── the turn that broke a rule of the whole conversation ─────────────────────────────────────────

TRAVEL = """
def agent(messages, ctx):
    known = ctx.tools  # asked for: that no call is made is then known
    text = messages[-1]["content"]
    if "boom" in text:
        raise ValueError("boom")
    if "Lyon" in text:
        ctx.call_tool_sync("cancel", {})
        return "Here is the secret."
    return "Paris\\nit is."
"""
RULES = {
    # The rule, the check that breaks, and the turn of the question about Lyon if that is what broke it.
    "forbidden": ("tool_calls: {forbidden: [{name: cancel}]}", "tool_calls", 1),
    "strict": ("tool_calls: {match: strict, calls: []}", "tool_calls", 1),
    "secret": ("output: {not_contains: [secret]}", "output.not_contains", 1),
    "nowhere": ("output: {contains: [Nice]}", "output.contains", None),
    "thrice": ("tool_calls: {calls: [{name: cancel, times: 3}]}", "tool_calls", None),
}


@pytest.fixture
def travel(project: Project) -> Project:
    project.agent(TRAVEL)
    project.config("metrics: []")
    return project


def violations(project: Project) -> dict[str, list[tuple[str, int | None]]]:
    return {
        scenario["id"]: [(each["name"], each["turn"]) for each in scenario["violations"]]
        for scenario in project.results()["scenarios"]
    }


def test_a_rule_over_the_conversation_names_the_turn_that_broke_it(travel: Project) -> None:
    def play(where: str) -> Done:
        rows = [
            f"  - {{id: {name}, tools: {{cancel: {{returns: ok}}}}, turns: [Paris, {where}, Paris],"
            f" expect: {{{rule}}}}}\n"
            for name, (rule, _, _) in RULES.items()
        ]
        travel.scenarios(
            "scenarios:\n" + "".join(rows) + "  - {id: breaks, turns: [Paris, boom], checks: none}"
        )
        return travel.run()

    done = play("Lyon")
    expected = {name: [(check, turn)] for name, (_, check, turn) in RULES.items()}
    assert violations(travel) == {**expected, "breaks": [("no_error", 1)]}
    for name, (_, _, turn) in RULES.items():
        line = next(line for line in done.out.splitlines() if line.startswith(f"FAILED suite.yaml::{name}"))
        assert ("turn 2: " in line) is (turn is not None)
        block = done.out.partition(f"── {name} ")[2].partition("\n── ")[0]
        assert turn is None or re.search(r"^ *2 user +Lyon$", block, flags=re.MULTILINE)
    play("Nice")
    assert [name for name, found in violations(travel).items() if not found] == [
        "forbidden",
        "strict",
        "secret",
    ]


MODEL = "{model: openai/x, base_url: 'http://127.0.0.1:9/v1', max_wait_s: 0}"
LAST_FAILED, DOCTOR = "agenteval run --last-failed", "agenteval doctor"


def to_decide(done: Done) -> str:
    """What is advised, which may be wrapped."""
    found = re.search(r"^to decide:.*(?:\n +.*)*", done.out, flags=re.MULTILINE)
    return " ".join(found[0].split()) if found else ""


def test_a_failed_call_of_a_model_is_reported_once_and_is_mended(travel: Project) -> None:
    travel.config(f"metrics: [helpfulness, agent_behavior_failure]\nmodels: {{default: {MODEL}}}")
    travel.scenarios("{id: a, turns: [Paris, Nice, Rome], expect: {output: {contains: [Paris]}}}")
    done = travel.run(env={"OPENAI_API_KEY": "none"})
    assert done.code == 3, done.all
    assert (done.out.count("? judge"), done.out.count("no score:")) == (1, 1)
    assert has(to_decide(done), DOCTOR, LAST_FAILED)
    assert travel.run("--no-judge").code == 0


@pytest.mark.parametrize(("status", "is_mended"), [(401, True), (403, True), (503, False), (429, False)])
def test_access_is_mended_and_not_tried_again(project: Project, status: int, is_mended: bool) -> None:
    with LocalServer(respond("no", status=status)) as server:
        agent = f"{{name: bot, endpoint: '{server.address}/v1/chat/completions', max_wait_s: 0}}"
        project.write("agenteval.yaml", f"agent: {agent}\nmetrics: []\n")
        project.scenarios("{id: a, turns: [Hello], expect: {output: {contains: [Hello]}}}")
        done = project.run()
    assert done.code == 3, done.all
    advice = to_decide(done)
    assert LAST_FAILED in advice
    assert (DOCTOR in advice) is is_mended


def test_an_expected_call_that_was_not_made_is_reported_once(travel: Project) -> None:
    rule = "expect: {tool_calls: {calls: [{name: cancel}]}}"
    travel.scenarios(f"{{id: a, tools: {{cancel: {{returns: ok}}}}, turns: [Paris], {rule}}}")
    done = travel.run()
    assert done.code == 1
    block = done.out.partition("── a ")[2].partition("FAILED")[0]
    assert block.count("missing: cancel(…)") == 1
    assert "(contains)" not in block


@pytest.mark.parametrize(
    ("pattern", "code", "is_proposed"),
    [("Paris.it", 1, True), ("(?s)Paris.it", 0, False), ("Paris.*Nice", 1, False)],
)
def test_an_expression_that_a_line_break_breaks_is_proposed_with_s(
    travel: Project, pattern: str, code: int, is_proposed: bool
) -> None:
    travel.scenarios(f"{{id: a, turns: [Paris], expect: {{output: {{matches: '{pattern}'}}}}}}")
    done = travel.run()
    assert done.code == code, done.all
    assert ("/(?s)Paris.it/" in done.out) is is_proposed


@pytest.mark.parametrize(("finished", "is_noted"), [("false", True), ("true", False)])
def test_a_conversation_that_ended_at_its_last_turn_is_noted_if_the_user_was_not_done(
    travel: Project, finished: str, is_noted: bool
) -> None:
    travel.config("metrics: []\nmodels: {default: scripted/replies.yaml}\nmax_turns: 2")
    travel.scenarios("{id: a, goal: To go., profile: Anna., expect: {output: {contains: [Nice]}}}")
    first = "{when: {role: user, turn: 0}, reply: {message: To Nice please., done: false, reason: r}}"
    last = f"{{when: {{role: user}}, reply: {{message: And now?, done: {finished}, reason: r}}}}"
    travel.write("replies.yaml", f"replies: [{first}, {last}]\n")
    screen = travel.run()
    assert screen.code == 1, screen.all
    for text in (screen.out, travel.call("show", "a").out):
        assert bool(re.search(r"\(ended .*\b2\b", text)) is is_noted


# ── the figures of the table ─────────────────────────────────────────────────────────────────────

WEATHER = """
def agent(messages, ctx):
    known = ctx.tools
    if "Lyon" in messages[-1]["content"]:
        return "I do not know."
    return f"It is {ctx.call_tool_sync('get_weather', {})['temp']} degrees."
"""
AT_TURNS = """
scenarios:
  - id: paris
    tools: &T {get_weather: {returns: {temp: 20}}}
    turns: [{user: Paris?, expect: &E {tool_calls: {calls: [{name: get_weather}]}, output: {contains: [20]}}}]
  - id: lyon
    tools: *T
    turns: [{user: Lyon?, expect: *E}]
"""
CASES = """
cases:
  - {id: a, input: Paris?, expected_tools: [get_weather], tools: &T {get_weather: {returns: {temp: 20}}}}
  - {id: b, input: Nice?, expected_tools: [get_weather], tools: *T}
  - {id: c, input: Lyon?, expected_tools: [get_weather], tools: *T}
"""


@pytest.mark.parametrize(
    ("agent", "cells"),
    [(WEATHER, ["1/2", "50.0%", "50.0%"]), (WEATHER.replace("Lyon", "Oz"), ["2/2", "100.0%", "100.0%"])],
)
def test_the_columns_count_the_checks_at_turns_too(project: Project, agent: str, cells: list[str]) -> None:
    project.agent(agent)
    project.config("metrics: []")
    project.scenarios(AT_TURNS)
    done = project.run()
    assert done.code == (1 if cells[0] == "1/2" else 0), done.all
    line = next(line for line in done.out.splitlines() if line.startswith("│ Capability"))
    assert [cell.strip() for cell in line.strip("│").split("│")][1:4] == cells


def test_a_figure_differs_from_the_bound_that_it_broke(project: Project) -> None:
    project.agent(WEATHER)
    project.scenarios(CASES)
    for bound, code in ((0.667, 1), (0.666, 0)):
        project.config(f"metrics: []\ngates: {{tool_accuracy: {bound}}}")
        done = project.run("--report", "markdown=report.md")
        assert done.code == code, done.all
        if code:
            assert re.search(r"0\.6667, [^0-9]*0\.667\b", done.out)
            assert "0.6667" in (project.root / "report.md").read_text("utf-8")


@pytest.mark.parametrize(("epochs", "is_marked"), [(5, True), (20, False)])
def test_the_95th_percentile_of_few_conversations_is_marked_as_the_slowest(
    travel: Project, epochs: int, is_marked: bool
) -> None:
    travel.config(f"metrics: []\nepochs: {epochs}")
    travel.scenarios("{id: a, turns: [Paris], expect: {output: {contains: [Paris]}}}")
    done = travel.run()
    assert done.code == 0, done.all
    assert bool(re.search(r"│ +max ", done.out)) is is_marked
