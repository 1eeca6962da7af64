"""What a developer, the CI script and the workflows run is written once: in the Makefile."""

from __future__ import annotations

import re
import runpy
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.lock import locked

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
        assert made >= {"suite", "bench", "check", "build", "e2e"}, name
        assert _command_of_the_tests() in _text(name), name
    assert "make newest" in _text(".github/workflows/newest.yml")


# ── the lock ─────────────────────────────────────────────────────────────────────────────────────


def _command_of_the_tests() -> str:
    """What the README says to run the tests with."""
    (command,) = re.findall(r"`(pip install [^`]+ && pytest)`", _text("README.md"))
    return str(command)


def _required() -> Iterator[Requirement]:
    """What pyproject.toml asks for, and what that asks for, where it is installed as the lock has it."""
    project = tomllib.loads(_text("pyproject.toml"))["project"]
    extras = project["optional-dependencies"]
    open_ = [Requirement(text) for each in (project["dependencies"], *extras.values()) for text in each]
    known: set[str] = set()
    while open_:
        one = open_.pop()
        if one.name == project["name"] or str(one) in known:
            continue
        known.add(str(one))
        yield one
        with suppress(PackageNotFoundError):
            found = distribution(one.name)
            if found.version == locked().get(canonicalize_name(one.name)):
                below = [Requirement(text) for text in found.requires or ()]
                sets = [{"extra": extra} for extra in one.extras or ("",)]
                open_ += [b for b in below if not b.marker or any(map(b.marker.evaluate, sets))]


def test_the_readme_tests_with_the_lock_and_the_lock_has_all_that_is_needed() -> None:
    assert _command_of_the_tests() == 'pip install -c constraints.txt -e ".[test]" && pytest'
    pins = locked()
    missing = [str(one) for one in _required() if canonicalize_name(one.name) not in pins]
    assert not missing, "run: make lock"
    unfit = [str(r) for r in _required() if not r.specifier.contains(pins[canonicalize_name(r.name)])]
    assert not unfit, "run: make lock"


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
