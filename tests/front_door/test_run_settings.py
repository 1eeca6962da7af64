"""Settings of a run that would switch something on or off unnoticed, and runs that cannot be compared."""

from __future__ import annotations

import pytest

from agenteval.verdict.statistics import PassRateRule, rate_test
from tests.support.kit import Project

SUITE = """
scenarios:
  - id: first
    turns: [{user: hi, expect: {output: {contains: [ok]}}}]
"""


@pytest.fixture
def project(tmp_path):
    project = Project(tmp_path)
    project.agent("def agent(messages):\n    return 'all ok'\n")
    project.scenarios(SUITE)
    return project


@pytest.mark.parametrize("word", ["no", "off", "yes", "5", "''"])
def test_a_word_for_a_switch_is_no_folder_of_the_cache(project, word):
    """`no` is a text in YAML 1.2, and a text names a folder: it would switch the cache on."""
    project.config(f"cache: {word}")
    project.run().refuses("agenteval.yaml:3:1", "cache", "true", "false", "./cache")


def test_a_cache_in_a_folder_is_taken(project):
    project.config("cache: ./no")
    assert project.run().code == 0


def test_a_negative_seed_is_refused_in_the_file_as_on_the_command_line(project):
    project.config("seed: -1")
    project.run().refuses("agenteval.yaml:3:1", "seed", "0", "-1")
    project.config()
    project.run(env={"AGENTEVAL_SEED": "-1"}).refuses("AGENTEVAL_SEED", "seed", "0", "-1")


def test_a_gate_that_nothing_can_fail_is_refused(project):
    """In place of "every sample passes" it would make every run green."""
    project.config("epochs: 3\ngates: {pass_hat_k: {k: 2, at_least: 0}}")
    project.run().refuses("agenteval.yaml:4:28", "gates.pass_hat_k.at_least", "0")


def test_a_plan_of_thousands_of_epochs_is_worked_out_on_open_paths_alone():
    """Of 10,000 epochs with 0.7 against 0.9 few numbers of successes are open at a time; going through all
    of them at each look took minutes."""
    test = rate_test(PassRateRule(at_least=0.9, reject_below=0.7), 1, 10_000)
    assert len(test.looks) == 10_001
    chances = test.chances(0.9)
    assert 0.0 < chances.reject <= 0.05
    assert chances.accept + chances.reject + chances.undecided == pytest.approx(1)
    assert test.chances(0.7).accept <= 0.05


JUDGED = "models: {default: scripted/replies.yaml}\nmetrics: [goal_completion]\nepochs: 3\n"
REPLIES = """
replies:
  - {{when: {{role: judge}}, reply: {{evidence: all ok, reason: "it did", score: {score}}}}}
  - {{when: {{role: dedup}}, reply: {{issues: []}}}}
"""


@pytest.fixture
def judged(project):
    """A run that a scripted judge has judged."""
    project.config(JUDGED)
    project.scenarios(SUITE.replace("turns:", "goal: greet\n    turns:"))
    project.write("replies.yaml", REPLIES.format(score=1))
    assert project.run().code == 0
    return project


def test_another_scripted_judge_is_another_judge(judged):
    """The file is the judge: with other replies under the same name nothing is comparable."""
    assert judged.run("--baseline", "latest").code == 0
    judged.write("replies.yaml", REPLIES.format(score=0))
    judged.run("--baseline", "latest").refuses("--baseline", "judge", "replies ")
    judged.run()
    assert judged.call("diff", "previous", "latest").code == 2


def test_a_baseline_of_which_nothing_fits_is_refused(project):
    project.config()
    assert project.run().code == 0
    project.scenarios(SUITE.replace("hi", "hello"))
    done = project.run("--baseline", "latest")
    done.refuses("--baseline", "'first'", "turns")
    assert "--common" not in done.err  # an option of diff, not of run
