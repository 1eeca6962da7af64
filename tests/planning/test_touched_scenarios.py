"""Which scenarios a changed file may affect."""

from __future__ import annotations

from pathlib import Path

import pytest

from agenteval.planning.request import Request
from agenteval.planning.suite import load_config, load_scenarios
from agenteval.planning.touched_scenarios import touched_scenarios
from agenteval.running.registries import REGISTRIES
from tests.support.kit import Project

A = """
scenarios:
  - {id: plain, turns: [Hi], checks: none}
  - id: mocked
    turns: [Hi]
    checks: none
    tools: {t: {python: ../mocks.py:t}}
"""
B = """
scenarios:
  - {id: checked, turns: [Hi], expect: {python: ["../checks.py:ok"]}}
  - {id: hooked, turns: [Hi], checks: none, setup: ../hooks.py:fresh, teardown: ../hooks.py:drop}
  - {id: simulated, goal: To be heard., checks: none, user_prompt: prompts/../user.md}
  - {id: "row-${row.n}", rows: rows.csv, turns: ["${row.n}"], checks: none}
"""
USER_PROMPT = "---\n---\nYou ${profile} ${goal} ${knowledge} ${beliefs} ${now}\n---\n${transcript}\n"
ALL = {"plain", "mocked", "checked", "hooked", "simulated", "row-1", "row-2"}


@pytest.mark.parametrize(
    ("changed", "touched"),
    [
        (["scenarios/a.yaml"], {"plain", "mocked"}),
        (["scenarios/b.yaml"], {"checked", "hooked", "simulated", "row-1", "row-2"}),
        (["mocks.py"], {"mocked"}),
        (["checks.py"], {"checked"}),
        (["hooks.py"], {"hooked"}),
        (["scenarios/user.md"], {"simulated"}),
        (["scenarios/rows.csv"], {"row-1", "row-2"}),
        (["mocks.py", "checks.py"], {"mocked", "checked"}),
        (["agent.py"], ALL),
        (["agenteval.yaml"], ALL),
        (["policy.md"], ALL),
        (["anything_else.py"], ALL),
        (["mocks.py", "anything_else.py"], ALL),
        ([], set()),
    ],
    ids=lambda value: "+".join(value) if isinstance(value, list) else "",
)
def test_a_file_affects_those_that_name_it_and_any_other_all(
    project: Project, monkeypatch: pytest.MonkeyPatch, changed: list[str], touched: set[str]
) -> None:
    monkeypatch.chdir(project.root)
    project.write(
        "agenteval.yaml", "agent: {name: bot, target: 'agent.py:agent', policy: policy.md}\nmetrics: []\n"
    )
    project.scenarios(A, "scenarios/a.yaml")
    project.scenarios(B, "scenarios/b.yaml")
    project.write("scenarios/rows.csv", "n\n1\n2\n")
    project.write("scenarios/user.md", USER_PROMPT)
    project.write("scenarios/prompts/other.md", "")
    for name in ("agent.py", "mocks.py", "checks.py", "hooks.py", "policy.md", "anything_else.py"):
        project.write(name, "x = 1\n")
    request = Request()
    config = load_config(request, REGISTRIES).config
    scenarios = load_scenarios(request, config).loaded
    found = touched_scenarios((Path(project.root, name) for name in changed), config, scenarios)
    assert found == touched


def test_a_file_of_the_agent_affects_all_even_if_a_scenario_names_it(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project.root)
    project.config()
    project.write("agent.py", "x = 1\n")
    project.scenarios(A.replace("../mocks.py", "../agent.py"))
    config = load_config(Request(), REGISTRIES).config
    scenarios = load_scenarios(Request(), config).loaded
    assert touched_scenarios([project.root / "agent.py"], config, scenarios) == {"plain", "mocked"}
