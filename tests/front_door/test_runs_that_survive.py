"""What outside testers of repeated runs and of runs that survive have met, through the front door."""

from __future__ import annotations

import pytest

from agenteval.verdict.statistics import PassRateRule, rate_test
from tests.support.kit import Project

AGENT = "def agent(messages):\n    return 'all ok'\n"
SUITE = """
scenarios:
  - id: first
    turns: [{user: hi, expect: {output: {contains: [ok]}}}]
"""


@pytest.fixture
def project(tmp_path):
    project = Project(tmp_path)
    project.agent(AGENT)
    project.scenarios(SUITE)
    return project


@pytest.mark.parametrize("word", ["no", "off", "yes", "5", "''"])
def test_a_word_for_a_switch_is_no_folder_of_the_cache(project, word):
    """`no` is a text in YAML 1.2, and a text names a folder: it would switch the cache on."""
    project.config(f"cache: {word}")
    done = project.run()
    assert done.code == 2
    assert "agenteval.yaml:3" in done.err
    assert "write true, false or a path such as ./cache" in done.err


def test_a_cache_in_a_folder_is_taken(project):
    project.config("cache: ./no")
    assert project.run().code == 0


def test_a_negative_seed_is_refused_in_the_file_as_on_the_command_line(project):
    project.config("seed: -1")
    done = project.run()
    assert (done.code, "seed: must be at least 0" in done.err) == (2, True)
    project.config()
    assert project.run(env={"AGENTEVAL_SEED": "-1"}).code == 2


def test_a_gate_that_nothing_can_fail_is_refused(project):
    """In place of "every sample passes" it would make every run green."""
    project.config("epochs: 3\ngates: {pass_hat_k: {k: 2, at_least: 0}}")
    done = project.run()
    assert (done.code, "gates.pass_hat_k.at_least: must be more than 0" in done.err) == (2, True)


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
    done = judged.run("--baseline", "latest")
    assert done.code == 2
    assert "--baseline: the model of the judge differs: replies " in done.err
    judged.run()
    assert judged.call("diff", "previous", "latest").code == 2


def test_a_baseline_of_which_nothing_fits_is_refused(project):
    project.config()
    assert project.run().code == 0
    project.scenarios(SUITE.replace("hi", "hello"))
    done = project.run("--baseline", "latest")
    assert done.code == 2
    assert "--baseline: scenario 'first' differs: turns differ" in done.err
    assert "--common" not in done.err  # an option of diff, not of run


def test_a_run_that_was_cut_off_is_never_green(project):
    """Not by tolerance, and not when the cut came after its last sample."""
    project.config("epochs: 4\nfault_tolerance: 0.9")
    assert project.run().code == 0
    (journal,) = project.root.glob(".agenteval/runs/*/events.jsonl")
    lines = journal.read_bytes().splitlines(keepends=True)
    ends = [at for at, line in enumerate(lines, 1) if b'"type":"sample_finished"' in line]
    for upto in (ends[0], ends[-1], len(lines) - 1):
        journal.write_bytes(b"".join(lines[:upto]) + lines[upto][:30])
        done = project.call("report", "latest", "--report", "json=cut.json", "--report", "terminal")
        assert (done.code, "INCOMPLETE" in done.out) == (3, True)
        assert "complete run" in done.out
    assert project.run("--resume", "latest").code == 0
