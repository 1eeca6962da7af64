"""``code_only``: a suite without keys is green or red by its code checks alone, and says so."""

from __future__ import annotations

import pytest

from tests.support.kit import Project

SUITE = """
scenarios:
  - id: both
    turns: [hi]
    expect: {output: {contains: [done]}, criteria: [The answer is polite.]}
  - {id: code, turns: [hi], expect: {output: {contains: [done]}}}
  - {id: judged, turns: [hi], expect: {criteria: [The answer is polite.]}}
  - {id: simulated, profile: A hurried person., goal: Get it done., expect: {output: {contains: [done]}}}
"""
CONFIG = """
models: {default: openai/gpt-5-mini}
thresholds: {helpfulness: 3}
profiles: {keyless: {code_only: true}}
"""


@pytest.fixture
def keyless(project: Project) -> Project:
    project.agent('def agent(messages, ctx):\n    return "done"\n')
    project.scenarios(SUITE)
    project.config(CONFIG)
    return project


def test_a_suite_without_keys_is_green_by_its_code_checks(keyless: Project) -> None:
    done = keyless.run("--profile", "keyless")
    assert done.code == 0, done.all
    assert [each["id"] for each in keyless.results()["scenarios"]] == ["both", "code"]
    last = done.out.splitlines()[-1]
    assert [n for n in ("1 criterion", "1 threshold", "2 scenarios") if n not in last] == [], last
    assert "judged, simulated" in done.all


def test_and_red_by_them(keyless: Project) -> None:
    keyless.agent('def agent(messages, ctx):\n    return "no"\n')
    assert keyless.run("--profile", "keyless").code == 1
    assert {each["verdict"] for each in keyless.results()["scenarios"]} == {"failed"}


def test_without_it_what_was_not_judged_stays_undecided(keyless: Project) -> None:
    assert keyless.run("--no-judge", "-s", "both").code == 3


def test_a_lost_conversation_is_no_green_one(keyless: Project) -> None:
    keyless.agent('def agent(messages, ctx):\n    raise ConnectionError("refused")\n')
    assert keyless.run("--profile", "keyless").code == 3


def test_a_selection_that_needs_a_model_selects_nothing(keyless: Project) -> None:
    done = keyless.run("--profile", "keyless", "-s", "judged")
    assert (done.code, "model" in done.err) == (5, True), done.all


def test_two_runs_of_code_checks_are_compared(keyless: Project) -> None:
    assert keyless.run("--profile", "keyless").code == 0
    keyless.agent('def agent(messages, ctx):\n    return "done."\n')
    assert keyless.run("--profile", "keyless", "--baseline", "latest").code == 0
