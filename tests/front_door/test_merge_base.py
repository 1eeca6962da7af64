"""``--keep-baseline`` and ``--baseline merge-base``: a branch is compared with the commit where it began."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cut_runs import cut_after
from tests.support.kit import Done, Project

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")

GATES = "gates: {no_regression: {margin: 0.3}}\nepochs: 10\n"
GOOD = 'def agent(messages, ctx):\n    return "done"\n'
SAME = GOOD + "# the same\n"
BAD = 'def agent(messages, ctx):\n    return "no"\n'


def git(folder: Path, *arguments: str) -> str:
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(
        ["git", *who, "-C", str(folder), *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def commit(project: Project, agent: str) -> str:
    project.agent(agent)
    git(project.root, "add", "-A")
    git(project.root, "commit", "-q", "--allow-empty", "-m", "a change")
    return git(project.root, "rev-parse", "HEAD")


@pytest.fixture
def repository(project: Project) -> Project:
    lines = "".join(
        f"  - {{id: s{n}, turns: [hi], expect: {{output: {{contains: [done]}}}}}}\n" for n in range(6)
    )
    project.scenarios(f"scenarios:\n{lines}")
    project.config(GATES)
    project.write(".gitignore", "__pycache__/\nresults.json\n")
    git(project.root, "init", "-q", "-b", "main")
    commit(project, GOOD)
    return project


def against(project: Project, *arguments: str, **env: str) -> Done:
    return project.run("--baseline", "merge-base", *arguments, env={"GITHUB_BASE_REF": "", **env})


def gate(project: Project) -> dict[str, str]:
    gates = project.results()["summary"]["gates"]
    return next(row for row in gates if row["name"] == "no_regression")  # type: ignore[no-any-return]


def branch(project: Project, agent: str) -> None:
    git(project.root, "checkout", "-q", "-b", "feature")
    commit(project, agent)


def test_a_run_that_is_resumed_is_kept_where_it_was_asked_for(repository: Project) -> None:
    repository.run("--keep-baseline")
    shutil.rmtree(repository.root / ".agenteval" / "baselines")
    cut_after(repository, "sample_finished", times=3)
    assert ".agenteval/baselines/" in repository.run("--resume", "latest").err
    branch(repository, BAD)
    assert against(repository).code == 1


def test_a_branch_is_compared_with_the_commit_where_it_began(repository: Project) -> None:
    base = git(repository.root, "rev-parse", "HEAD")
    done = repository.run("--keep-baseline")
    assert f".agenteval/baselines/{base}" in done.err
    shutil.rmtree(repository.root / ".agenteval" / "runs")  # the kept one is enough
    branch(repository, BAD)
    assert against(repository).code == 1
    assert gate(repository)["verdict"] == "failed"
    run = repository.results()["run"]
    assert (run["commit"], run["dirty"]) == (git(repository.root, "rev-parse", "HEAD"), False)
    commit(repository, SAME)
    assert against(repository).code == 0
    # Main may have gone on since.
    git(repository.root, "checkout", "-q", "main")
    commit(repository, BAD)
    repository.run("--keep-baseline")
    git(repository.root, "checkout", "-q", "feature")
    repository.agent(SAME)
    assert against(repository).code == 0
    assert repository.run("--baseline", "merge-base:main").code == 0
    # GitLab names the commit itself.
    git(repository.root, "branch", "-D", "main")
    commit(repository, BAD)
    assert against(repository, CI_MERGE_REQUEST_DIFF_BASE_SHA=base).code == 1


def test_a_run_of_that_commit_that_lies_here_is_found_too(repository: Project) -> None:
    repository.run()
    branch(repository, BAD)
    assert against(repository).code == 1


def test_a_run_of_changed_files_is_of_no_commit(repository: Project) -> None:
    repository.agent(GOOD + "# not committed\n")
    done = repository.run("--keep-baseline")
    assert git(repository.root, "rev-parse", "HEAD")[:12] in done.err
    assert not (repository.root / ".agenteval/baselines").exists()
    assert repository.results()["run"]["dirty"] is True
    repository.agent(GOOD)
    repository.write("new_tool.py", "X = 1\n")
    repository.run("--keep-baseline")
    assert not (repository.root / ".agenteval/baselines").exists()
    (repository.root / "new_tool.py").unlink()
    branch(repository, SAME)
    assert against(repository).code == 3


def test_a_commit_without_a_run_leaves_the_gate_undecided_with_a_remedy(repository: Project) -> None:
    branch(repository, SAME)
    done = against(repository)
    assert done.code == 3
    assert "agenteval run --keep-baseline" in gate(repository)["basis"]
    assert any(line.startswith("warning: --baseline merge-base") for line in done.err.splitlines())
    repository.config(GATES + "on_undecided: neutral\n")
    assert against(repository).code == 0
    repository.config("")  # nothing asks for a baseline
    assert against(repository).code == 0


def test_a_shallow_clone_is_reported_with_the_remedy(
    repository: Project, tmp_path_factory: pytest.TempPathFactory
) -> None:
    branch(repository, SAME)
    git(repository.root, "checkout", "-q", "main")
    commit(repository, GOOD + "# main\n")
    git(repository.root, "checkout", "-q", "feature")
    clone = tmp_path_factory.mktemp("clone") / "shallow"
    url = repository.root.as_uri()
    subprocess.run(["git", "clone", "-q", "--depth", "1", "--no-single-branch", url, str(clone)], check=True)
    done = against(Project(clone), GITHUB_BASE_REF="main")
    assert done.code == 3
    assert "shallow" in done.err
    assert "fetch-depth: 0" in done.err


def test_a_missing_branch_or_repository_decides_nothing(repository: Project) -> None:
    done = against(repository, GITHUB_BASE_REF="develop")
    assert done.code == 3
    assert "git fetch origin develop" in done.err
    shutil.rmtree(repository.root / ".git")
    done = against(repository, GIT_CEILING_DIRECTORIES=str(repository.root.parent))
    assert done.code == 3
    assert "git" in done.err
    repository.run("--keep-baseline")
    assert not (repository.root / ".agenteval/baselines").exists()


def test_base_and_head_are_played_side_by_side_out_of_a_worktree(
    repository: Project, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """As docs/comparing.md has it: the old agent in a process of its own, in the same run."""
    base = tmp_path_factory.mktemp("worktree") / "base"
    git(repository.root, "worktree", "add", "-q", "--detach", str(base), "HEAD")
    branch(repository, BAD)
    old = f"{{name: base, target: '{base}/agent.py:agent', interpreter: '{sys.executable}'}}"
    repository.config(f"epochs: 2\nprofiles: {{with-base: {{compare: [{old}]}}}}\n")
    done = repository.run("--profile", "with-base")
    assert done.code == 1
    (found,) = repository.results()["summary"]["agents_compared"]["agents"]
    assert (found["agent"], found["success"], found["reference"]) == ("base", 1.0, 0.0)
    assert "base is better" in done.out


def test_each_profile_keeps_its_own(repository: Project) -> None:
    repository.config(GATES + "profiles: {pr: {epochs: 4}}\n")
    base = commit(repository, GOOD)
    repository.run("--keep-baseline", "--profile", "pr")
    repository.run("--keep-baseline")
    kept = {path.name for path in (repository.root / ".agenteval/baselines").iterdir()}
    assert kept == {base, f"{base}.pr"}
