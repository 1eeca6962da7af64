"""``agenteval list`` and ``agenteval runs``: what there is, in the words that other commands take back."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from agenteval.files.journal import lock_run
from tests.support.cut_runs import cut_after, journal
from tests.support.kit import Project

SUITE = """
defaults: {checks: none}
scenarios:
  - {id: book, name: Books a slot, tags: [quick], turns: [hi]}
  - {id: two words, turns: [hi], category: robustness}
  - {id: fails, turns: [hi], checks: null, expect: {output: {contains: [never]}}}
"""
BOOK, TWO_WORDS, FAILS = (f"scenarios/suite.yaml::{id}" for id in ("book", "two words", "fails"))


@pytest.fixture
def suite(project: Project) -> Project:
    project.agent("def agent(messages):\n    return 'agent'\n")
    project.config()
    project.scenarios(SUITE)
    return project


def listed(project: Project, *arguments: str) -> list[str]:
    done = project.call("list", *arguments)
    assert (done.code, done.err) == (0, ""), done.all
    return done.out.splitlines()


def runs(project: Project, *arguments: str) -> list[dict[str, Any]]:
    done = project.call("runs", "--json", *arguments)
    assert (done.code, done.err) == (0, ""), done.all
    entries: list[dict[str, Any]] = json.loads(done.out)
    return entries


# ── list ─────────────────────────────────────────────────────────────────────────────────────────


def test_each_line_is_taken_back(suite: Project) -> None:
    assert listed(suite) == [BOOK, TWO_WORDS, FAILS]
    for line in (BOOK, TWO_WORDS, FAILS):
        for arguments in ((line,), ("-s", line)):
            suite.run(*arguments)
            assert [f"scenarios/suite.yaml::{s['id']}" for s in suite.results()["scenarios"]] == [line]


def test_list_selects_as_run_does(suite: Project) -> None:
    assert listed(suite, "--tag", "quick") == [BOOK]
    assert listed(suite, "-k", "not quick", "--first", "1") == [TWO_WORDS]
    assert listed(suite, "suite.yaml::fails") == [FAILS]
    assert listed(suite, "--sample", "2", "--seed", "1") == listed(suite, "--sample", "2", "--seed", "1")
    suite.run()
    assert listed(suite, "--lf") == [FAILS]
    done = suite.call("list", "-s", "nothing")
    assert (done.code, done.out) == (5, "")
    assert suite.call("list", "--lf", "-s", "book").code == 5


def test_list_loads_no_code_and_needs_no_model(suite: Project) -> None:
    suite.config("agent_concurrency: 1\nmetrics: [helpfulness]\n", target="missing.py:agent")
    suite.write("agent.py", "raise SystemExit(7)\n")
    assert len(listed(suite)) == 3


def test_list_as_json(suite: Project) -> None:
    first, second, _ = json.loads("\n".join(listed(suite, "--json")))
    assert first == {
        "run": BOOK, "id": "book", "name": "Books a slot", "file": "scenarios/suite.yaml", "line": 3,
        "category": "capability", "tags": ["quick"], "agent": None, "note": None, "row": None,
        "simulated": False,
    }  # fmt: skip
    assert second["category"] == "robustness"


# ── runs ─────────────────────────────────────────────────────────────────────────────────────────


def test_runs_are_listed_newest_first_with_their_verdicts(suite: Project) -> None:
    suite.run()
    suite.run("-s", "book")
    last, first = runs(suite)
    assert (first["verdict"], first["exit_code"], first["state"]) == ("failed", 1, "complete")
    assert first["scenarios"] == {"passed": 2, "inconclusive": 0, "failed": 1}
    assert (last["verdict"], last["selection"], first["selection"]) == ("passed", True, False)
    assert (last["agents"], last["resumable"], last["kind"]) == (["bot"], False, "run")
    for command, code in (
        (("report", first["id"]), 1),
        (("show", first["id"]), 0),
        (("diff", first["id"], last["id"]), 3),
    ):
        assert suite.call(*command).code == code
    out = suite.call("runs").out
    assert out.index(last["id"]) < out.index(first["id"])
    assert "2 of 3" in out


def test_a_run_that_was_cut_off_can_be_resumed(suite: Project) -> None:
    suite.run()
    cut_after(suite, "sample_finished")
    (only,) = runs(suite)
    assert (only["state"], only["resumable"]) == ("cut off", True)
    assert only["verdict"] in ("failed", "inconclusive")  # whichever conversation ended first
    assert "cut off, resumable" in suite.call("runs").out
    assert suite.run("--resume", only["id"]).code == 1
    (only,) = runs(suite)
    assert (only["state"], only["resumable"], only["verdict"]) == ("complete", False, "failed")


def test_a_run_under_way_is_listed_as_such(suite: Project) -> None:
    suite.run()
    cut_after(suite, "turn_finished")
    with lock_run(journal(suite).parent):
        (only,) = runs(suite)
        assert (only["state"], only["resumable"]) == ("running", False)
        assert "UNDER WAY" in suite.call("show", "book").out
    assert "CUT OFF" in suite.call("show", "book").out


def test_a_journal_that_cannot_be_read_is_named_and_hides_no_other(suite: Project) -> None:
    suite.run()
    broken = suite.root / ".agenteval/runs/20200101-000000-aaaaaa/events.jsonl"
    broken.parent.mkdir()
    broken.write_text('{"type":"run_started","schema_version":1}\n', encoding="utf-8")
    good, bad = runs(suite)
    assert (good["state"], bad["state"], bad["verdict"]) == ("complete", "unreadable", None)
    assert "version 1" in bad["problem"]
    assert "unreadable" in suite.call("runs").out


def test_no_run_is_no_error_and_scores_are_runs_too(project: Project) -> None:
    project.config()
    done = project.call("runs")
    assert done.code == 0
    assert "agenteval run" in " ".join(done.out.split())
    assert runs(project) == []
    messages = [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]
    project.write("talk.jsonl", json.dumps({"id": "a", "messages": messages}) + "\n")
    project.call("score", "talk.jsonl")
    (only,) = runs(project)
    assert (only["kind"], only["resumable"], only["conversations"]) == ("score", False, 1)


def test_the_latest_twenty_are_listed_unless_all_are_asked_for(suite: Project) -> None:
    suite.run("-s", "book")
    folder = journal(suite).parent
    for number in range(22):
        copy = folder.with_name(f"19990101-0000{number:02}-aaaaaa")
        copy.mkdir()
        (copy / "events.jsonl").write_bytes((folder / "events.jsonl").read_bytes())
    assert (len(runs(suite)), len(runs(suite, "--all"))) == (20, 23)
    assert any("3" in line and "--all" in line for line in suite.call("runs").out.splitlines())


def test_a_complete_run_is_read_once_and_again_when_it_has_changed(suite: Project) -> None:
    suite.run()
    path = journal(suite)
    before = runs(suite)
    stat, text = path.stat(), path.read_bytes()
    path.write_bytes(b" " * len(text))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert runs(suite) == before
    path.write_bytes(text)
    cut_after(suite, "sample_finished")
    (only,) = runs(suite)
    assert only["state"] == "cut off"
    (path.parent / "listed.json").write_text("{}", encoding="utf-8")
    assert runs(suite) == [only]


def test_a_run_with_one_agent_is_a_run_of_the_whole_suite(suite: Project) -> None:
    suite.config("agents: {other: {target: 'agent.py:agent'}}")
    for options, selection in (([], False), (["-s", "book"], True)):
        suite.run("--agent", "other", *options)
        (entry, *_) = runs(suite)
        assert entry["selection"] is selection
        assert ("a selection" in suite.call("runs").out) is selection
