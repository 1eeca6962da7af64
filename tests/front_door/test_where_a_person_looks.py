"""Where a person looks: the bug in the first lines of a report, and the list of failures in the last ones."""

from __future__ import annotations

import json

import pytest

from tests.support.kit import Done, Project

FIRST = 40

AGENT = """
def agent(messages, ctx):
    said = messages[-1]["content"]
    if said == "raise":
        raise KeyError("no_such_order")
    if said == "refuse":
        raise ConnectionRefusedError("refused")
    return "well" if ctx.epoch else "bad"
"""


def suite(project: Project, *scenarios: dict[str, object]) -> None:
    project.agent(AGENT)
    project.config("")
    expect = {"output": {"contains": ["well"]}}
    entries = [{"turns": ["hi"], "expect": expect, **each} for each in scenarios]
    project.scenarios("scenarios:\n" + "".join(f"- {json.dumps(each)}\n" for each in entries))


def listed(done: Done) -> list[str]:
    """What did not pass: the last lines but for the next commands and the verdict."""
    lines = done.out.splitlines()[:-2]
    start = max(number for number, line in enumerate(lines) if not line)
    return lines[start + 1 :]


def test_what_never_ran_is_one_line(project: Project) -> None:
    """After ``--fail-fast`` the failure is what there is to read; without it every scenario has its line."""
    suite(project, {"id": "red"}, *({"id": f"later-{number}"} for number in range(7)))
    project.config("agent_concurrency: 1")
    done = project.run("-x")
    assert done.code == 1
    red, never = listed(done)
    assert red == 'FAILED suite.yaml::red  missing "well" in the answer "bad"'
    assert never == (
        "INCONCLUSIVE 7 scenarios never ran: later-0, later-1, later-2, later-3, later-4 and 2 more"
    )
    whole = project.call("report", "latest", "-v").out
    for text in (done.out, whole):
        assert text.count("later-6") == (1 if text is whole else 0)  # its row of the table
    assert len(listed(project.run())) == 8


def test_a_failing_run_ends_with_what_failed_why_and_where(project: Project) -> None:
    fine = {"output": {"contains": ["bad"]}}
    suite(
        project,
        {"id": "lost", "turns": ["refuse"]},
        {"id": "fine", "expect": fine},
        {"id": "two words", "turns": ["hi"]},
        {"id": "broke", "turns": ["raise"]},
        {"id": "often", "epochs": 3},
    )
    done = project.run()
    assert done.code == 1
    assert done.out.splitlines()[-1] == "FAILED: 3 of 5 scenarios failed, 1 inconclusive, 1 passed (exit 1)"
    words, broke, often, lost = listed(done)
    assert words == 'FAILED \'suite.yaml::two words\'  missing "well" in the answer "bad"'
    assert broke.startswith("FAILED suite.yaml::broke  turn 1: agent_error: KeyError")
    assert often.startswith('FAILED suite.yaml::often  1 of 3 conversations: missing "well"')
    assert lost.startswith("INCONCLUSIVE suite.yaml::lost  turn 1: ")
    again, *rest = done.out.splitlines()[-2].split("     ")
    assert again.startswith("Re-run: agenteval run --failed-in ")
    assert rest == ["Inspect: agenteval show 'two words'"]
    assert listed(project.run("-s", "broke")) == [broke]
    assert listed(project.call("report", "latest")) == [broke]
    assert "FAILED" not in project.run("-s", "fine").out


def test_all_are_listed_and_ten_are_shown(project: Project) -> None:
    suite(project, *({"id": f"s{n:02}"} for n in range(23)))
    done = project.run()
    assert [line.split()[1] for line in listed(done)] == [f"suite.yaml::s{n:02}" for n in range(23)]
    assert done.out.count("\n── ") == 10
    assert "\n… and 13 more, listed below\n" in done.out


def test_quiet_is_the_list_and_the_verdict_alone(project: Project) -> None:
    suite(project, {"id": "lost", "turns": ["refuse"]}, {"id": "wrong"})
    wrong, lost, verdict = project.run("-q").out.splitlines()
    assert wrong.startswith("FAILED suite.yaml::wrong ")
    assert lost.startswith("INCONCLUSIVE suite.yaml::lost ")
    assert verdict == "FAILED: 1 of 2 scenarios failed, 1 inconclusive (exit 1)"
    assert project.run("-q", "-v").code == 2
    fine = {"output": {"contains": ["bad"]}}
    suite(project, {"id": "fine", "expect": fine})
    assert project.run("--quiet").out == "PASSED: 1 scenario passed (exit 0)\n"


@pytest.mark.parametrize("count", [1, 200])
def test_all_green_is_short(project: Project, count: int) -> None:
    fine = {"output": {"contains": ["bad"]}}
    suite(project, *({"id": f"s{n:03}", "expect": fine} for n in range(count)))
    done = project.run()
    assert done.code == 0
    assert len(done.out.splitlines()) <= 20
    assert "Capability" in done.out  # the table of the three dimensions


def test_a_failure_takes_at_most_twelve_lines(project: Project) -> None:
    """Whatever is wrong, and however much was said."""
    project.config("")
    calls = "\n".join(f"    ctx.call_tool_sync('look_up', {{'n': {n}}})" for n in range(20))
    project.agent(f"def agent(messages, ctx):\n{calls}\n    return 'word ' * 400\n")
    contains = [f"never said {n}" for n in range(20)]
    expected = [{"name": f"tool_{n}"} for n in range(20)]
    expect = {
        "output": {"contains": contains, "matches": "price|cost", "not_contains": ["word"]},
        "tool_calls": {"calls": expected},
        "limits": {"tool_calls": 3, "steps": 2},
    }
    scenario = {"id": "much", "turns": ["hi " * 300], "tools": {"look_up": {"returns": {}}}, "expect": expect}
    project.scenarios(json.dumps({"scenarios": [scenario]}))
    done = project.run()
    assert done.code == 1
    (block,) = [part for part in done.out.split("\n\n") if part.startswith("── much")]
    lines = block.splitlines()
    assert len(lines) <= 12
    assert "scenarios/suite.yaml:" in lines[0]
    assert any("user" in line for line in lines)
    assert any("tool_calls" in line for line in lines)
    assert "expected (contains): tool_0" in block
    assert "called: look_up" in block
    assert "agenteval show much" in lines[-1]


def test_of_a_gate_over_repeated_runs_its_row_is_the_reason(project: Project) -> None:
    suite(project, {"id": "always"})
    project.config("epochs: 20\ngates: {pass_rate: {at_least: 0.99, reject_below: 0.98}}\n")
    project.agent("def agent(messages, ctx):\n    return 'bad'\n")
    done = project.run()
    assert done.code == 1, done.out
    (line,) = listed(done)
    assert line.startswith("FAILED suite.yaml::always  20 of 20 conversations: pass_rate: 0, expected at ")


def test_a_rule_over_the_whole_run_is_in_the_list(project: Project) -> None:
    suite(project, {"id": "often", "epochs": 6})
    project.config("gates: {pass_hat_k: {k: 2, at_least: 0.99, over: suite}}\n")
    done = project.run()
    assert done.code == 1, done.out
    line, basis = listed(done)
    assert line.startswith("FAILED pass_hat_k  0.")
    assert basis.startswith("       ")
    assert line.endswith("agenteval.yaml:3")


@pytest.mark.parametrize(
    ("agent", "told"),
    [
        ("def agent(messages):\n    return {}['price']\n", "KeyError: 'price'"),
        ("import no_such_module\n", "no_such_module"),
        ("def agent(messages):\n    return 'The price is 12.'\n", 'missing "well"'),
        ("def agent(messages):\n    raise ConnectionRefusedError('db')\n", "ConnectionRefusedError: db"),
        ("def answer(messages):\n    return ''\n", "agent.py"),
    ],
    ids=["raises", "import", "assertion", "refused", "not there"],
)
def test_the_first_bug_of_a_project_stands_in_the_first_lines(
    project: Project, agent: str, told: str
) -> None:
    """Of as many scenarios as make every table long."""
    suite(project, *({"id": f"s{n:02}", "category": "capability", "goal": "A price."} for n in range(23)))
    project.agent(agent)
    done = project.run()
    assert done.code in (1, 2, 3)
    assert told in "\n".join([*done.err.splitlines(), *done.out.splitlines()][:FIRST])
