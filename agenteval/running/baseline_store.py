"""Stores baseline runs by commit: ``--keep-baseline`` stores a run, and ``--baseline merge-base`` finds the
run.

The path of a stored run is ``.agenteval/baselines/COMMIT/events.jsonl``; if a profile is used, the folder is
``COMMIT.PROFILE``. The file is small enough to be cached or stored as a CI artifact, and no other run for
that commit is needed. Runs in ``.agenteval/runs`` also record their commit."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from agenteval.core.errors import AuthorError
from agenteval.files.runs import JOURNAL_FILE, find_run_folders, load_run, load_run_start, read_run_commit
from agenteval.running.git import NoCommitError, merge_base
from agenteval.verdict.report import Report
from agenteval.verdict.resumption import run_ending
from agenteval.verdict.shard_rows import is_only_part

MERGE_BASE = "merge-base"
_SHORT = 12


class NoBaselineError(Exception):
    """The reason why there is no baseline, with a remedy. The run continues without a baseline; the reason is
    reported, and gates that require a baseline remain undecided."""


def baselines_under(root: Path) -> Path:
    return root / ".agenteval" / "baselines"


def is_merge_base(name: str) -> bool:
    """Check whether a name is ``merge-base`` or ``merge-base:BRANCH``."""
    return name.partition(":")[0] == MERGE_BASE


def find_merge_base_run(name: str, root: Path, profile: str) -> Path:
    """Return the stored run of the commit at which the current branch started (the merge base). Raise
    ``NoBaselineError`` if there is no such run."""
    try:
        commit = merge_base(root, name.partition(":")[2], os.environ)
    except NoCommitError as error:
        raise NoBaselineError(f"--baseline {name}: {error}") from None
    home = baselines_under(root)
    for folder in (home / _folder_name(commit, profile), home / commit):
        if (folder / JOURNAL_FILE).is_file():
            return folder
    for folder in reversed(find_run_folders(root)):
        if read_run_commit(folder) == commit and _is_complete(folder):
            return folder
    raise NoBaselineError(
        f"--baseline {name}: no baseline is stored for {commit[:_SHORT]}; run that commit with `agenteval run"
        f" --keep-baseline`, and keep the folder {Path('.agenteval', 'baselines').as_posix()}"
    )


def _folder_name(commit: str, profile: str) -> str:
    return f"{commit}.{profile}" if profile else commit


def _is_complete(folder: Path) -> bool:
    """Check whether a run finished completely, with all of its shards."""
    try:
        if load_run_start(folder).plan.shard:
            return False
        end = run_ending(load_run(folder))
    except AuthorError:
        return False
    return end is not None and end.outcome == "complete"


def save_baseline(report: Report, folder: Path, root: Path) -> str:
    """Save baseline data: store the run as the baseline of its commit and replace any earlier baseline.
    Return a line that says where it is stored, or why it cannot be stored."""
    run = report.run
    why = ""
    if not run.commit:
        why = "its git commit is unknown"
    elif run.dirty:
        why = f"files have changed since {run.commit[:_SHORT]}, so it does not represent that commit"
    elif report.finished is None or report.finished.outcome != "complete" or is_only_part(report):
        why = "it did not finish"
    if why:
        return f"agenteval: this run is not kept as a baseline: {why}"
    destination = baselines_under(root) / _folder_name(run.commit, run.plan.suite.profile)
    try:
        destination.mkdir(parents=True, mode=0o700, exist_ok=True)
        temporary = destination / f"{JOURNAL_FILE}.part"
        shutil.copyfile(folder / JOURNAL_FILE, temporary)
        os.replace(temporary, destination / JOURNAL_FILE)
    except OSError as error:
        return f"agenteval: this run cannot be kept as a baseline in {destination}: {error.strerror}"
    return f"kept as the baseline of {run.commit[:_SHORT]}: {destination.relative_to(root).as_posix()}"
