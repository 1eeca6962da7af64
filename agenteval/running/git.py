"""Reads git information about the folder of a run: the current commit and the commit at which a branch
started (merge base)."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

_TIMEOUT_S = 20
_CODE = (".py", ".yaml", ".yml", ".toml", ".js", ".ts", ".sh")
"""The file types that count as part of a run. Untracked files of other types, such as the reports of an
earlier run, are ignored."""


class Checkout(NamedTuple):
    """The commit and state of a working copy."""

    commit: str
    is_dirty: bool
    """True if the working copy contains uncommitted changes. A run of code with uncommitted changes does not
    represent the commit."""


class NoCommitError(Exception):
    """The reason why git cannot determine the commit, with a remedy."""


def checkout_of(folder: Path) -> Checkout | None:
    """Return the checkout that contains a folder, or None if git is not installed or the folder is not in a
    repository."""
    commit = _git(folder, "rev-parse", "HEAD")
    if not commit:
        return None
    status = _git(folder, "status", "--porcelain", "--untracked-files=all")
    lines = () if status is None else status.split("\n")
    return Checkout(commit, status is None or any(_is_change(line) for line in lines if line))


def _is_change(line: str) -> bool:
    return not line.startswith("??") or line.rstrip('"').endswith(_CODE)


def merge_base(folder: Path, ref: str, environ: Mapping[str, str]) -> str:
    """Return the commit at which ``HEAD`` diverged from the branch ``ref`` (the merge base). If ``ref`` is
    empty, use the target branch of the pull request or, failing that, the main branch. Raise
    ``NoCommitError`` if the commit cannot be determined."""
    if _git(folder, "rev-parse", "HEAD") is None:
        raise NoCommitError("this is not a git repository, or git is not installed")
    diff_base = environ.get("CI_MERGE_REQUEST_DIFF_BASE_SHA", "")
    if diff_base and not ref:
        return diff_base
    candidates = [
        each for each in _branches(folder, ref, environ) if _git(folder, "rev-parse", "--verify", each)
    ]
    if not candidates:
        branch = _named_branch(ref, environ) or "main"
        raise NoCommitError(
            f"the branch '{branch}' is not in this clone: run `git fetch origin {branch}` (with fetch-depth:"
            " 0"
            " in actions/checkout, GIT_DEPTH: 0 in GitLab), or specify it with --baseline merge-base:BRANCH"
        )
    if base := _git(folder, "merge-base", "HEAD", candidates[0]):
        return base
    if _git(folder, "rev-parse", "--is-shallow-repository") == "true":
        raise NoCommitError(
            f"the clone is shallow without the merge base of HEAD and {candidates[0]}: use fetch-depth: 0"
            " in"
            " actions/checkout, GIT_DEPTH: 0 in GitLab, or `git fetch --unshallow`"
        )
    raise NoCommitError(f"HEAD and {candidates[0]} have no common ancestor")


def _named_branch(ref: str, environ: Mapping[str, str]) -> str:
    """Return the branch that was requested or, failing that, the target branch of the pull request. Return
    an empty string if there is neither."""
    targets = ("GITHUB_BASE_REF", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME")
    return ref or next(filter(None, map(environ.get, targets)), "")


def _branches(folder: Path, ref: str, environ: Mapping[str, str]) -> Iterator[str]:
    """Yield the candidate branches in order of preference. Remote branches are preferred, because a remote
    branch is newer than its local copy."""
    if branch := _named_branch(ref, environ):
        yield from (f"origin/{branch}", branch)
        return
    main = _git(folder, "symbolic-ref", "--short", "refs/remotes/origin/HEAD")
    yield from [main] if main else []
    yield from ("origin/main", "origin/master", "main", "master")


def _git(folder: Path, *arguments: str) -> str | None:
    """Return the output of a git command, or None if the command fails or git is not installed."""
    env = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            timeout=_TIMEOUT_S,
            env=env,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode("utf-8", "replace").strip() if not done.returncode else None
