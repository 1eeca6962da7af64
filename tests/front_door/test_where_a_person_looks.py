"""Where a person looks: the bug in the first lines of a report, and the list of failures in the last ones."""

from __future__ import annotations

import json
import shlex

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
    """The lines between the journal's name and the verdict."""
    lines = done.out.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("journal: "))
    return lines[start + 1 : -1]


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
    assert words.startswith("✗ 'two words'  output.contains: ")
    assert words.endswith("  scenarios/suite.yaml:4")
    assert broke.startswith("✗ broke  no_error")
    assert "KeyError" in broke
    assert often.startswith("✗ often  output.contains: ")
    assert " (1 of 3 conversations)  scenarios/suite.yaml:6" in often
    assert lost.startswith("? lost  infrastructure")
    assert lost.endswith("  scenarios/suite.yaml:2")
    # What stands there selects it, as it stands there.
    (_, id, *_) = shlex.split(words)
    assert project.run("-s", id).out.splitlines()[-1] == "FAILED: 1 of 1 scenario failed (exit 1)"
    assert listed(project.call("report", "latest")) == [words]
    assert listed(project.run("-s", "fine")) == []


def test_twenty_are_listed_and_the_others_counted(project: Project) -> None:
    suite(project, *({"id": f"s{n:02}"} for n in range(23)))
    *lines, more = listed(project.run())
    assert [line.split()[1] for line in lines] == [f"s{n:02}" for n in range(20)]
    assert more == "… and 3 more"


def test_of_a_gate_over_repeated_runs_its_row_is_the_reason(project: Project) -> None:
    suite(project, {"id": "always"})
    project.config("epochs: 20\ngates: {pass_rate: {at_least: 0.99, reject_below: 0.98}}\n")
    project.agent("def agent(messages, ctx):\n    return 'bad'\n")
    done = project.run()
    assert done.code == 1, done.out
    (line,) = listed(done)
    assert line.startswith("✗ always  pass_rate: 0, expected at least 0.99")
    assert " (20 of 20 conversations)  scenarios/suite.yaml:2" in line


def test_a_rule_over_the_whole_run_is_in_the_list(project: Project) -> None:
    suite(project, {"id": "often", "epochs": 6})
    project.config("gates: {pass_hat_k: {k: 2, at_least: 0.99, over: suite}}\n")
    done = project.run()
    assert done.code == 1, done.out
    (line,) = listed(done)
    assert line.startswith("✗ pass_hat_k  0.")
    assert line.endswith("agenteval.yaml:3")


@pytest.mark.parametrize(
    ("agent", "told"),
    [
        ("def agent(messages):\n    return {}['price']\n", "KeyError: 'price'"),
        ("import no_such_module\n", "no_such_module"),
        ("def agent(messages):\n    return 'The price is 12.'\n", "output.contains: "),
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
