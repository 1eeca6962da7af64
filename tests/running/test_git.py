"""The commit of a run and the commit at which its branch began, as git says it."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agenteval.running.git import Checkout, NoCommitError, checkout_of, merge_base

HEAD = "rev-parse HEAD"
STATUS = "status --porcelain --untracked-files=all"
ORIGIN = "symbolic-ref --short refs/remotes/origin/HEAD"


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What git answers; it fails with any other arguments."""
    known: dict[str, str] = {}

    def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[bytes]:
        assert command[:3] == ["git", "-C", "folder"]
        assert options["env"]["GIT_OPTIONAL_LOCKS"] == "0"
        assert options["env"]["LC_ALL"] == "C"
        assert options["stdin"] is subprocess.DEVNULL
        asked = " ".join(command[3:])
        code = 0 if asked in known else 128
        return subprocess.CompletedProcess(command, code, f"{known.get(asked, 'fatal')}\n".encode(), b"")

    monkeypatch.setattr(subprocess, "run", run)
    return known


@pytest.mark.parametrize(
    ("status", "dirty"),
    [
        ("", False),
        (" M README.md", True),
        ("A  notes.txt", True),
        ("?? report.html", False),
        ("?? report.html\n?? out/log.txt", False),
        ("?? report.html\n M a.txt", True),
        *((f"?? new{ending}", True) for ending in (".py", ".yaml", ".yml", ".toml", ".js", ".ts", ".sh")),
        ('?? "with space.py"', True),
        ('?? "with space.txt"', False),
        ("?? py", False),
        (None, True),
    ],
)
def test_a_checkout_is_dirty_by_changes_and_new_code(
    answers: dict[str, str], status: str | None, dirty: bool
) -> None:
    answers |= {HEAD: "abc"} | ({} if status is None else {STATUS: status})
    assert checkout_of(Path("folder")) == Checkout("abc", dirty)


@pytest.mark.parametrize("head", [None, ""])
def test_without_a_commit_there_is_no_checkout(answers: dict[str, str], head: str | None) -> None:
    answers |= {STATUS: " M a.py"} | ({} if head is None else {HEAD: head})
    assert checkout_of(Path("folder")) is None


@pytest.mark.parametrize("error", [FileNotFoundError("git"), subprocess.TimeoutExpired("git", 20)])
def test_without_git_there_is_no_checkout(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def run(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(subprocess, "run", run)
    assert checkout_of(Path("folder")) is None
    with pytest.raises(NoCommitError):
        merge_base(Path("folder"), "", {})


def branches(*names: str) -> dict[str, str]:
    return {
        HEAD: "here",
        **{f"rev-parse --verify {name}": "x" for name in names},
        **{f"merge-base HEAD {name}": f"base-of-{name}" for name in names},
    }


DIFF = {"CI_MERGE_REQUEST_DIFF_BASE_SHA": "diff-base"}
GITHUB = {"GITHUB_BASE_REF": "release"}
GITLAB = {"CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "stable"}
ALL = ("origin/main", "origin/master", "main", "master")
TARGETS = ("origin/release", "release", "origin/stable", "stable", *ALL)


@pytest.mark.parametrize(
    ("names", "ref", "environ", "expected"),
    [
        (ALL, "", {}, "base-of-origin/main"),
        (ALL[1:], "", {}, "base-of-origin/master"),
        (ALL[2:], "", {}, "base-of-main"),
        (ALL[3:], "", {}, "base-of-master"),
        (("origin/topic", "topic", *ALL), "topic", {}, "base-of-origin/topic"),
        (("topic", *ALL), "topic", {}, "base-of-topic"),
        (TARGETS, "", GITHUB, "base-of-origin/release"),
        (TARGETS[1:], "", GITHUB, "base-of-release"),
        (TARGETS, "", GITLAB, "base-of-origin/stable"),
        (TARGETS, "", {**GITHUB, **GITLAB}, "base-of-origin/release"),
        (TARGETS, "main", {**GITHUB, **GITLAB}, "base-of-origin/main"),
        ((), "", DIFF, "diff-base"),
        (ALL, "", DIFF, "diff-base"),
        (ALL, "main", DIFF, "base-of-origin/main"),
    ],
)
def test_the_branch_from_which_the_commits_come(
    answers: dict[str, str], names: tuple[str, ...], ref: str, environ: Mapping[str, str], expected: str
) -> None:
    answers |= branches(*names)
    assert merge_base(Path("folder"), ref, environ) == expected


def test_the_main_branch_is_the_one_of_the_remote(answers: dict[str, str]) -> None:
    answers |= branches("origin/trunk", *ALL) | {ORIGIN: "origin/trunk"}
    assert merge_base(Path("folder"), "", {}) == "base-of-origin/trunk"


@pytest.mark.parametrize(
    ("known", "ref", "environ", "facts"),
    [
        ({}, "", DIFF, ["not a git repository"]),
        ({HEAD: "here"}, "", {}, ["'main'", "git fetch origin main", "fetch-depth", "GIT_DEPTH"]),
        ({HEAD: "here"}, "", GITHUB, ["'release'", "git fetch origin release"]),
        (branches(*ALL), "topic", GITHUB, ["'topic'", "git fetch origin topic", "merge-base:"]),
        (branches(*ALL), "", GITHUB, ["'release'"]),
        ({HEAD: "here"}, "", GITLAB, ["'stable'", "git fetch origin stable", "GIT_DEPTH"]),
        (branches(*ALL), "", GITLAB, ["'stable'"]),
        (branches(*ALL), "", {**GITHUB, **GITLAB}, ["'release'"]),
        (branches(*ALL), "topic", GITLAB, ["'topic'"]),
        ({HEAD: "here"}, "", {"GITHUB_BASE_REF": "", **GITLAB}, ["'stable'"]),
    ],
)
def test_a_branch_that_is_not_there(
    answers: dict[str, str], known: dict[str, str], ref: str, environ: Mapping[str, str], facts: list[str]
) -> None:
    answers |= known
    with pytest.raises(NoCommitError) as error:
        merge_base(Path("folder"), ref, environ)
    for fact in facts:
        assert fact in str(error.value)


@pytest.mark.parametrize(("shallow", "is_shallow"), [("true", True), ("false", False)])
def test_no_common_commit(answers: dict[str, str], shallow: str, is_shallow: bool) -> None:
    answers |= {HEAD: "here", "rev-parse --verify main": "x"}
    answers["rev-parse --is-shallow-repository"] = shallow
    with pytest.raises(NoCommitError) as error:
        merge_base(Path("folder"), "", {})
    assert "main" in str(error.value)
    assert ("--unshallow" in str(error.value)) is is_shallow
