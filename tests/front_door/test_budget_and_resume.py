"""A run that its budget ended goes on when the budget is raised: what has no judgement yet is judged."""

from __future__ import annotations

from pathlib import Path

import pytest

from agenteval.files import journal
from agenteval.importers.journals import replay_journal
from agenteval.importers.sources import Source
from tests.support.kit import Project


def judged(project: Project, metric: str, reply: str, *, more: str = "") -> None:
    """Four scenarios, each of one turn and so of one judgement; the budget has room for two of these."""
    project.agent("def agent(messages):\n    return 'ok'\n")
    listed = "".join(f"  - {{id: s{n}, turns: [hi], checks: none}}\n" for n in range(4))
    project.scenarios(f"scenarios:\n{listed}")
    project.write("replies.yaml", f"replies: [{{when: {{role: judge}}, reply: {reply}}}]\n")
    project.config(
        f"models: {{default: scripted/replies.yaml}}\nmetrics: [{metric}]\nbudget: {{max_calls: 6}}\n{more}"
    )


def raise_budget(project: Project) -> None:
    path = project.root / "agenteval.yaml"
    path.write_text(path.read_text().replace("max_calls: 6", "max_calls: 60"))


@pytest.mark.parametrize(
    ("metric", "verdict", "more", "first", "then"),
    [
        ("agent_behavior_failure", "label: no failure", "", 3, 0),
        ("helpfulness", "score: 5", "thresholds: {helpfulness: 4}\n", 3, 0),
        ("helpfulness", "score: 2", "thresholds: {helpfulness: 4}\n", 1, 1),
    ],
)
def test_what_the_budget_kept_from_its_judge_is_judged_when_the_run_goes_on(
    project: Project, metric: str, verdict: str, more: str, first: int, then: int
) -> None:
    judged(project, metric, f"{{evidence: ok, reason: '', {verdict}}}", more=more)
    assert project.run().code == first
    raise_budget(project)
    done = project.call("run", "--resume", "latest", "--report", "json=results.json")
    assert (done.code, "2 of 4" in done.err) == (then, True), done.all
    turns = [s["samples"][0]["turns"][0] for s in project.results()["scenarios"]]
    assert [(list(turn["scores"]), turn["score_failures"]) for turn in turns] == [([metric], [])] * 4


def test_a_sample_that_was_held_anew_for_its_judge_is_scored_once(project: Project) -> None:
    judged(project, "helpfulness", "{evidence: '', reason: '', score: 5}")
    assert project.run().code == 3
    (path,) = (project.root / ".agenteval" / "runs").glob("*/events.jsonl")
    assert len(list(replay_journal(Source(path, "run"), lambda *_: ""))) == 4
    raise_budget(project)
    assert project.call("run", "--resume", "latest").code == 0
    ends = [event for event in journal.read_journal(path) if event.type == "sample_finished"]
    assert sorted(event.refused for event in ends) == [False] * 4 + [True] * 2
    assert len(list(replay_journal(Source(path, "run"), lambda *_: ""))) == 4


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_lock_without_the_name_of_its_owner_locks_nevertheless(tmp_path: Path) -> None:
    """As on a full disk."""
    (tmp_path / journal.LOCK_FILE).symlink_to("/dev/full")
    with journal.lock_run(tmp_path):
        pass
