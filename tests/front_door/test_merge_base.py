"""``--keep-baseline`` and ``--baseline merge-base``: a branch is compared with the commit where it began."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.kit import Done, Project

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")

GATES = "gates: {no_regression: {margin: 0.3}}\nepochs: 10\n"
GOOD = 'def agent(messages, ctx):\n    return "done"\n'
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


def test_a_branch_is_compared_with_the_commit_where_it_began(repository: Project) -> None:
    base = git(repository.root, "rev-parse", "HEAD")
    done = repository.run("--keep-baseline")
    assert f"kept as the baseline of {base[:12]}: .agenteval/baselines/{base}" in done.err
    shutil.rmtree(repository.root / ".agenteval" / "runs")  # the kept one is enough
    git(repository.root, "checkout", "-q", "-b", "feature")
    commit(repository, BAD)
    assert against(repository).code == 1
    assert gate(repository)["verdict"] == "failed"
    told = repository.results()["run"]
    assert told["commit"] == git(repository.root, "rev-parse", "HEAD")
    assert told["dirty"] is False
    commit(repository, GOOD + "# the same\n")
    assert against(repository).code == 0


def test_main_may_have_gone_on_since(repository: Project) -> None:
    repository.run("--keep-baseline")
    git(repository.root, "checkout", "-q", "-b", "feature")
    commit(repository, GOOD + "# the same\n")
    git(repository.root, "checkout", "-q", "main")
    commit(repository, BAD)
    repository.run("--keep-baseline")
    git(repository.root, "checkout", "-q", "feature")
    repository.agent(GOOD + "# the same\n")
    assert against(repository).code == 0
    assert repository.run("--baseline", "merge-base:main").code == 0


def test_a_run_of_that_commit_that_lies_here_is_found_too(repository: Project) -> None:
    repository.run()
    git(repository.root, "checkout", "-q", "-b", "feature")
    commit(repository, BAD)
    assert against(repository).code == 1


def test_a_run_of_changed_files_is_of_no_commit(repository: Project) -> None:
    repository.agent(GOOD + "# not committed\n")
    done = repository.run("--keep-baseline")
    assert "is not kept as a baseline: files have changed since" in done.err
    assert repository.results()["run"]["dirty"] is True
    repository.agent(GOOD)
    repository.write("new_tool.py", "X = 1\n")
    assert "files have changed since" in repository.run("--keep-baseline").err
    (repository.root / "new_tool.py").unlink()
    git(repository.root, "checkout", "-q", "-b", "feature")
    commit(repository, GOOD + "# the same\n")
    assert against(repository).code == 3


def test_a_commit_without_a_run_leaves_the_gate_undecided_with_words(repository: Project) -> None:
    git(repository.root, "checkout", "-q", "-b", "feature")
    commit(repository, GOOD + "# the same\n")
    done = against(repository)
    assert done.code == 3
    assert "is kept; run that commit with agenteval run --keep-baseline" in gate(repository)["basis"]
    assert "warning: --baseline merge-base: no run of" in done.err
    repository.config(GATES + "on_undecided: neutral\n")
    assert against(repository).code == 0
    repository.config("")  # nothing asks for a baseline
    assert against(repository).code == 0


def test_a_shallow_clone_says_what_to_do(
    repository: Project, tmp_path_factory: pytest.TempPathFactory
) -> None:
    git(repository.root, "checkout", "-q", "-b", "feature")
    commit(repository, GOOD + "# the same\n")
    git(repository.root, "checkout", "-q", "main")
    commit(repository, GOOD + "# main\n")
    git(repository.root, "checkout", "-q", "feature")
    clone = tmp_path_factory.mktemp("clone") / "shallow"
    url = repository.root.as_uri()
    subprocess.run(["git", "clone", "-q", "--depth", "1", "--no-single-branch", url, str(clone)], check=True)
    done = against(Project(clone), GITHUB_BASE_REF="main")
    assert done.code == 3
    assert "the clone is shallow" in done.err
    assert "fetch-depth: 0" in done.err


def test_a_branch_that_is_not_there_and_no_repository_at_all(repository: Project) -> None:
    done = against(repository, GITHUB_BASE_REF="develop")
    assert done.code == 3
    assert "the branch 'develop' is not in this clone: git fetch origin develop" in done.err
    shutil.rmtree(repository.root / ".git")
    done = against(repository, GIT_CEILING_DIRECTORIES=str(repository.root.parent))
    assert done.code == 3
    assert "not a git repository" in done.err
    assert "git does not know its commit" in repository.run("--keep-baseline").err


def test_gitlab_says_the_commit_itself(repository: Project) -> None:
    base = git(repository.root, "rev-parse", "HEAD")
    repository.run("--keep-baseline")
    git(repository.root, "checkout", "-q", "-b", "feature")
    commit(repository, BAD)
    git(repository.root, "branch", "-D", "main")
    assert against(repository, CI_MERGE_REQUEST_DIFF_BASE_SHA=base).code == 1


def test_base_and_head_are_played_side_by_side_out_of_a_worktree(
    repository: Project, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """As docs/comparing.md has it: the old agent in a process of its own, in the same run."""
    base = tmp_path_factory.mktemp("worktree") / "base"
    git(repository.root, "worktree", "add", "-q", "--detach", str(base), "HEAD")
    git(repository.root, "checkout", "-q", "-b", "feature")
    commit(repository, BAD)
    old = f"{{name: base, target: '{base}/agent.py:agent', interpreter: '{sys.executable}'}}"
    repository.config(f"epochs: 2\nprofiles: {{beside: {{compare: [{old}]}}}}\n")
    done = repository.run("--profile", "beside")
    assert done.code == 1
    (found,) = repository.results()["summary"]["agents_compared"]["agents"]
    assert (found["agent"], found["success"], found["reference"]) == ("base", 1.0, 0.0)
    assert "base is better: it succeeds more often" in done.out


def test_each_profile_keeps_its_own(repository: Project) -> None:
    repository.config(GATES + "profiles: {pr: {epochs: 4}}\n")
    base = commit(repository, GOOD)
    repository.run("--keep-baseline", "--profile", "pr")
    repository.run("--keep-baseline")
    kept = {path.name for path in (repository.root / ".agenteval/baselines").iterdir()}
    assert kept == {base, f"{base}.pr"}
