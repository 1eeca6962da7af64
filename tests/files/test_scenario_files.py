"""Which files are scenario files: by patterns, by folders on the command line, and what is skipped."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from agenteval.core.errors import AuthorError, NothingSelectedError
from agenteval.files.scenario_files import (
    display_path,
    find_files_under,
    find_scenario_files,
    glob_base,
    near_file,
    unmatched_files,
)

SCENARIO = "id: a\nturns: [x]\n"


def write(root: Path, *names: str, text: str = SCENARIO) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def found(root: Path, *include: str, exclude: Sequence[str] = ()) -> list[str]:
    return [path.relative_to(root).as_posix() for path in find_scenario_files(root, include, exclude)]


@pytest.mark.parametrize(
    ("pattern", "base"),
    [
        ("scenarios/**/*.yaml", "scenarios"),
        ("*.yaml", "."),
        ("a/b/c.yaml", "a/b/c.yaml"),
        ("a/b?/c", "a"),
        ("a/[bc]/d", "a"),
        ("/x/*/y", "/x"),
    ],
)
def test_the_fixed_part_of_a_pattern(pattern: str, base: str) -> None:
    assert Path(glob_base(pattern)) == Path(base)


TREE = (
    *("b.yaml", "a.yml", "c.txt", "sub/d.yaml", "sub/deep/e.yaml", "sub/f1.yaml", "sub/f2.yaml"),
    *(".hidden.yaml", ".git/g.yaml", "node_modules/h.yaml", "__pycache__/i.yaml", "site-packages/j.yaml"),
    *("agenteval.yaml", "sub/agenteval.yml"),
)


@pytest.mark.parametrize(
    ("include", "files"),
    [
        (["*.yaml"], ["b.yaml"]),
        (["*"], ["a.yml", "b.yaml", "c.txt"]),
        (["**/*.yaml"], ["b.yaml", "sub/d.yaml", "sub/deep/e.yaml", "sub/f1.yaml", "sub/f2.yaml"]),
        (["sub/*.yaml"], ["sub/d.yaml", "sub/f1.yaml", "sub/f2.yaml"]),
        (["sub/**"], ["sub/d.yaml", "sub/deep/e.yaml", "sub/f1.yaml", "sub/f2.yaml"]),
        (["*/deep/*.yaml"], ["sub/deep/e.yaml"]),
        (["sub/f?.yaml"], ["sub/f1.yaml", "sub/f2.yaml"]),
        (["sub/f[2-9].yaml"], ["sub/f2.yaml"]),
        (["sub/f[!2].yaml"], ["sub/f1.yaml"]),
        (["sub/[de].yaml"], ["sub/d.yaml"]),
        (["sub/?.yaml"], ["sub/d.yaml"]),
        (["sub"], ["sub/d.yaml", "sub/deep/e.yaml", "sub/f1.yaml", "sub/f2.yaml"]),
        (["c.txt"], ["c.txt"]),
        (["agenteval.yaml"], ["agenteval.yaml"]),  # a file that is named
        (["absent.yaml"], []),
        (["absent/*.yaml"], []),
        (["b.yaml", "*.y*ml", "./b.yaml"], ["a.yml", "b.yaml"]),
        (["sub/../b.yaml"], ["b.yaml"]),
        ([], []),
    ],
)
def test_files_that_match(tmp_path: Path, include: list[str], files: list[str]) -> None:
    write(tmp_path, *TREE)
    assert found(tmp_path, *include) == files


@pytest.mark.parametrize(
    ("exclude", "files"),
    [
        (["b.yaml"], ["sub/d.yaml", "sub/deep/e.yaml"]),
        (["sub"], ["b.yaml"]),
        (["sub/deep"], ["b.yaml", "sub/d.yaml"]),
        (["**/e.yaml"], ["b.yaml", "sub/d.yaml"]),
        (["*.yaml"], ["sub/d.yaml", "sub/deep/e.yaml"]),
        (["**"], []),
        (["sub/*"], ["b.yaml"]),
        (["ub", "su"], ["b.yaml", "sub/d.yaml", "sub/deep/e.yaml"]),
    ],
)
def test_files_that_are_excluded(tmp_path: Path, exclude: list[str], files: list[str]) -> None:
    write(tmp_path, "b.yaml", "sub/d.yaml", "sub/deep/e.yaml")
    assert found(tmp_path, "**/*.yaml", exclude=exclude) == files


def test_characters_of_patterns_in_names(tmp_path: Path) -> None:
    write(tmp_path, "a.b.yaml", "aXb.yaml", "^.yaml", "(x).yaml")
    assert found(tmp_path, "a.b*") == ["a.b.yaml"]
    assert found(tmp_path, "[^x].yaml") == ["^.yaml"]
    assert found(tmp_path, "(*).yaml") == ["(x).yaml"]
    assert found(tmp_path, "*[z-a].yaml") == []


def test_virtual_environments_are_skipped(tmp_path: Path) -> None:
    write(tmp_path, "env/a.yaml", "env/pyvenv.cfg", "other/b.yaml")
    assert found(tmp_path, "**/*.yaml") == ["other/b.yaml"]


@pytest.mark.parametrize(
    ("text", "is_scenario"),
    [
        ("replies:\n- x\n", False),
        ("# a script\nreplies: []\n", False),
        ('"replies": []\n', False),
        ("{replies: []}\n", False),
        ("replies: []\nid: a\n", True),
        ("id: a\ngoal: 'replies: x'\n", True),
        ("other: []\n", True),
        ("id: a\nturns:\n  replies: x\n", True),
        ("", True),
    ],
)
def test_a_scripted_model_is_no_scenario(tmp_path: Path, text: str, is_scenario: bool) -> None:
    write(tmp_path, "a.yaml", text=text)
    assert bool(found(tmp_path, "*.yaml")) is is_scenario
    assert found(tmp_path, "a.yaml") == ["a.yaml"]


def test_a_file_that_two_paths_lead_to_is_one(tmp_path: Path) -> None:
    write(tmp_path, "real/a.yaml")
    os.symlink(tmp_path / "real", tmp_path / "link")
    os.symlink(tmp_path / "real", tmp_path / "real" / "circle")
    assert len(found(tmp_path, "**/*.yaml")) == 1
    os.symlink(tmp_path / "nowhere.yaml", tmp_path / "broken.yaml")
    assert "broken.yaml" in found(tmp_path, "*.yaml")  # the loader says what is wrong with it


def test_patterns_that_match_nothing(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml", "sub/b.yaml")
    assert unmatched_files(tmp_path, ["*.yaml", "x/*", "sub/**"]) == ["x/*"]
    assert unmatched_files(tmp_path, ["*.yaml", "sub/**"], ["sub"]) == ["sub/**"]


# ── the command line ─────────────────────────────────────────────────────────────────────────────


def under(root: Path, *paths: str) -> list[str]:
    return [path.relative_to(root).as_posix() for path in find_files_under(paths, root)]


def test_files_and_folders_in_their_order(tmp_path: Path) -> None:
    write(tmp_path, *TREE)
    below = ["sub/d.yaml", "sub/deep/e.yaml", "sub/f1.yaml", "sub/f2.yaml"]
    assert under(tmp_path, "sub", "b.yaml") == [*below, "b.yaml"]
    assert under(tmp_path, "b.yaml", "a.yml") == ["b.yaml", "a.yml"]
    assert under(tmp_path, "c.txt", "agenteval.yaml") == ["c.txt", "agenteval.yaml"]
    assert under(tmp_path, ".") == ["a.yml", "b.yaml", *below]
    assert under(tmp_path, "sub/d.yaml", "./sub/d.yaml", "sub/../sub/d.yaml") == ["sub/d.yaml"]
    assert under(tmp_path) == []


def test_paths_that_do_not_exist(tmp_path: Path) -> None:
    write(tmp_path, "sub/greet.yaml")
    (tmp_path / "empty").mkdir()
    with pytest.raises(AuthorError) as error:
        under(tmp_path, "sub/gret.yaml", "sub", "sbu/greet.yaml", "empty", "zzz")
    assert not isinstance(error.value, NothingSelectedError)
    places = [str(problem.place) for problem in error.value.problems]
    assert places == ["sub/gret.yaml", "sbu/greet.yaml", "zzz"]
    first, second, third = (problem.remedy for problem in error.value.problems)
    assert "'greet.yaml'" in first
    assert "'sub'" in second
    assert "did you" not in third


def test_folders_without_scenarios(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    write(tmp_path, "texts/a.txt", "texts/agenteval.yaml", "b.yaml")
    with pytest.raises(NothingSelectedError) as error:
        under(tmp_path, "empty", "b.yaml", "texts")
    assert [str(problem.place) for problem in error.value.problems] == ["empty", "texts"]


def test_a_file_of_a_similar_name(tmp_path: Path) -> None:
    write(tmp_path, "greet.yaml")
    (tmp_path / "great").mkdir()
    assert "'greet.yaml'" in near_file(tmp_path / "gret.yaml")
    assert near_file(tmp_path / "zzz") == ""
    assert near_file(tmp_path / "none" / "greet.yaml") == ""


def test_how_a_path_is_shown(tmp_path: Path) -> None:
    assert display_path(tmp_path / "a" / "b.yaml", tmp_path) == "a/b.yaml"
    assert display_path(tmp_path / "a" / ".." / "b.yaml", tmp_path) == "b.yaml"
    assert display_path(tmp_path / "b.yaml", tmp_path / "a") == str(tmp_path / "b.yaml")
    assert display_path(tmp_path, tmp_path) == "."
