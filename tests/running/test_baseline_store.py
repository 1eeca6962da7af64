"""Baselines by commit: which kept run is the one of a commit, and which run may become it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agenteval.running import baseline_store as module
from agenteval.running.baseline_store import (
    NoBaselineError,
    baselines_under,
    find_merge_base_run,
    is_merge_base,
    save_baseline,
)
from agenteval.running.git import NoCommitError
from agenteval.verdict.report import build_report
from tests.support.kept_runs import keep_run, write_journal
from tests.support.verdict_runs import PASS, events_of, with_suite

COMMIT = "a" * 40
OTHER = "b" * 40
HERE = {"commit": COMMIT}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("merge-base", True),
        ("merge-base:main", True),
        ("merge-base:", True),
        ("merge-bases", False),
        ("latest", False),
        ("", False),
        ("x:merge-base", False),
    ],
)
def test_the_name_of_a_merge_base(name: str, expected: bool) -> None:
    assert is_merge_base(name) is expected


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The branches that git was asked for; each began at the same commit."""
    found: list[str] = []

    def merge_base(_folder: Path, ref: str, _environ: Any) -> str:
        found.append(ref)
        return COMMIT

    monkeypatch.setattr(module, "merge_base", merge_base)
    return found


def store(root: Path, name: str) -> Path:
    folder = baselines_under(root) / name
    write_journal(folder, events_of({"a": [PASS]}))
    return folder


def keep(root: Path, name: str, day: int, outcome: Any = "complete", **changes: Any) -> Path:
    events = events_of({"a": [PASS]}, outcome=outcome)
    return keep_run(root, name, events, f"2026-11-{day:02}T00:00:00Z", **{**HERE, **changes})


@pytest.mark.parametrize(
    ("stored", "profile", "expected"),
    [
        ([COMMIT], "", COMMIT),
        ([COMMIT], "pr", COMMIT),
        ([COMMIT, f"{COMMIT}.pr"], "pr", f"{COMMIT}.pr"),
        ([COMMIT, f"{COMMIT}.pr"], "", COMMIT),
        ([f"{COMMIT}.pr"], "", ""),
        ([f"{COMMIT}.pr"], "other", ""),
        ([OTHER], "", ""),
    ],
)
def test_the_baseline_that_was_stored(
    tmp_path: Path, asked: list[str], stored: list[str], profile: str, expected: str
) -> None:
    for name in stored:
        store(tmp_path, name)
    if expected:
        found = find_merge_base_run("merge-base", tmp_path, profile)
        assert found == tmp_path / ".agenteval" / "baselines" / expected
    else:
        with pytest.raises(NoBaselineError):
            find_merge_base_run("merge-base", tmp_path, profile)


@pytest.mark.parametrize(
    ("name", "ref"), [("merge-base", ""), ("merge-base:a/b", "a/b"), ("merge-base:a:b", "a:b")]
)
def test_the_branch_that_is_named(tmp_path: Path, asked: list[str], name: str, ref: str) -> None:
    store(tmp_path, COMMIT)
    find_merge_base_run(name, tmp_path, "")
    assert asked == [ref]


def test_a_run_of_the_commit_where_none_is_stored(tmp_path: Path, asked: list[str]) -> None:
    keep(tmp_path, "r1", 1)
    second = keep(tmp_path, "r2", 2)
    keep(tmp_path, "r3", 3, outcome="interrupted")
    keep(tmp_path, "r4", 4, outcome=None)
    keep(tmp_path, "r5", 5, dirty=True)
    keep(tmp_path, "r6", 6, commit=OTHER)
    broken = keep(tmp_path, "r7", 7)
    line = (broken / "events.jsonl").read_text().splitlines()[0]
    (broken / "events.jsonl").write_text(f"{line}\noops\noops\n")
    assert find_merge_base_run("merge-base", tmp_path, "") == second
    stored = store(tmp_path, COMMIT)
    assert find_merge_base_run("merge-base", tmp_path, "") == stored


def test_no_baseline_says_which_commit_to_run(tmp_path: Path, asked: list[str]) -> None:
    with pytest.raises(NoBaselineError) as error:
        find_merge_base_run("merge-base:main", tmp_path, "")
    for fact in ("--baseline merge-base:main", COMMIT[:12], "--keep-baseline", ".agenteval/baselines"):
        assert fact in str(error.value)
    assert COMMIT not in str(error.value)


def test_a_commit_that_git_does_not_know(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def merge_base(*_: Any) -> str:
        raise NoCommitError("the clone is shallow")

    monkeypatch.setattr(module, "merge_base", merge_base)
    with pytest.raises(NoBaselineError, match=r"--baseline merge-base:x: the clone is shallow"):
        find_merge_base_run("merge-base:x", tmp_path, "")


# ── keeping ──────────────────────────────────────────────────────────────────────────────────────


def saved(root: Path, outcome: Any = "complete", profile: str = "", **changes: Any) -> tuple[list[str], str]:
    """The folders of baselines after one more run was kept, and what was said of it."""
    events = events_of({"a": [PASS]}, outcome=outcome)
    folder = keep_run(root, "r1", events, **{**HERE, **changes})
    first = events[0].model_copy(update={**HERE, **changes})
    report = build_report([first, *events[1:]])
    report = with_suite(report, profile=profile)
    said = save_baseline(report, folder, root)
    home = baselines_under(root)
    found = sorted(home.iterdir()) if home.exists() else []
    for each in found:
        assert [path.name for path in each.iterdir()] == ["events.jsonl"]
        assert (each / "events.jsonl").read_bytes() == (folder / "events.jsonl").read_bytes()
    return [each.name for each in found], said


@pytest.mark.parametrize(
    ("more", "expected", "fact"),
    [
        ({}, [COMMIT], COMMIT[:12]),
        ({"profile": "pr"}, [f"{COMMIT}.pr"], COMMIT[:12]),
        ({"commit": ""}, [], "commit is unknown"),
        ({"dirty": True}, [], COMMIT[:12]),
        ({"outcome": "interrupted"}, [], "not finish"),
        ({"outcome": "fail_fast"}, [], "not finish"),
        ({"outcome": None}, [], "not finish"),
    ],
)
def test_what_may_be_kept(tmp_path: Path, more: dict[str, Any], expected: list[str], fact: str) -> None:
    kept, said = saved(tmp_path, **more)
    assert kept == expected
    assert fact in said
    assert (f".agenteval/baselines/{expected[0]}" in said) if expected else ("not kept" in said)


def test_a_later_run_replaces_an_earlier_one(tmp_path: Path) -> None:
    folder = store(tmp_path, COMMIT)
    (folder / "events.jsonl").write_text("before")
    kept, _ = saved(tmp_path)
    assert kept == [COMMIT]


def test_a_baseline_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / ".agenteval").mkdir()
    baselines_under(tmp_path).write_text("")
    events = events_of({"a": [PASS]})
    report = build_report([events[0].model_copy(update=HERE), *events[1:]])
    assert "cannot be kept" in save_baseline(report, tmp_path, tmp_path)
