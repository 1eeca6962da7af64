"""What a developer, the CI script and the workflows run is written once: in the Makefile."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def _text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def _workflow(path: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)
    return loaded


def _targets() -> set[str]:
    return set(re.findall(r"^([a-z0-9]+):", _text("Makefile"), re.MULTILINE))


@pytest.mark.parametrize(
    "name", ["CONTRIBUTING.md", ".ci/run", *(str(p.relative_to(ROOT)) for p in WORKFLOWS)]
)
def test_only_targets_that_exist_are_made(name: str) -> None:
    named = re.findall(r"(?:^|run: |timeout \d+ )make ([a-z0-9 ]+?)(?: *[#$]|$)", _text(name), re.MULTILINE)
    assert named
    assert {target for each in named for target in each.split()} <= _targets()


def test_ci_runs_every_check() -> None:
    for name in (".ci/run", ".github/workflows/ci.yml"):
        made = set(re.findall(r"\b[a-z0-9]+\b", " ".join(re.findall(r"make ([a-z0-9 ]+)", _text(name)))))
        assert made >= {"test", "suite", "check", "build", "e2e"}, name


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_may_only_read_and_runs_no_pull_request_with_secrets(path: Path) -> None:
    workflow = _workflow(path)
    assert "pull_request_target" not in workflow["on"]
    assert workflow["permissions"] in ({"contents": "read"}, {})
    for name, job in workflow["jobs"].items():
        allowed = {"id-token": "write"} if name == "publish" else {"contents": "read"}
        assert job.get("permissions", {}).items() <= allowed.items(), name
    assert "secrets." not in path.read_text(encoding="utf-8")


def test_only_what_was_checked_is_published_and_somebody_approves() -> None:
    jobs = _workflow(ROOT / ".github" / "workflows" / "release.yml")["jobs"]
    assert set(jobs["publish"]["needs"]) == {"check", "build"}
    assert jobs["publish"]["environment"]
    assert not any("run" in step for step in jobs["publish"]["steps"])
    assert any("version_of_tag" in step.get("run", "") for step in jobs["build"]["steps"])


@pytest.mark.parametrize(
    ("tag", "changelog", "wrong"),
    [
        ("v1.2.0", "# Changelog\n\n## [1.2.0] - 2026-12-01\n", []),
        ("v1.2.1", "## [1.2.0] - 2026-12-01\n", ["the tag is v1.2.1"]),
        ("1.2.0", "## [1.2.0] - 2026-12-01\n", ["the tag is 1.2.0"]),
        ("v1.2.0", "## [1.2.0] - unreleased\n", ["CHANGELOG.md has no line"]),
    ],
)
def test_a_tag_must_be_the_version_and_the_changelog_must_know_it(
    tag: str, changelog: str, wrong: list[str]
) -> None:
    problems = runpy.run_path(str(ROOT / ".ci" / "version_of_tag.py"))["problems"]
    found = problems(tag, "1.2.0", changelog)
    assert len(found) == len(wrong)
    assert all(told.startswith(begin) for told, begin in zip(found, wrong, strict=True))
