"""Path arguments of the command line: files, folders, and ``FILE::ID`` for one scenario of a file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agenteval.core.config import Config
from agenteval.core.errors import AuthorError, NothingSelectedError
from agenteval.core.scenario import Scenario
from agenteval.files.path_arguments import PathSelection, absolute_path_argument, resolve_path_arguments


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("s/a.yaml", "s/b.yaml", "t/a.yaml", "odd::name.yaml"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("id: x\n")
    return tmp_path


def resolved(
    root: Path, *paths: str, cwd: str = "", include: tuple[str, ...] = ("s/*.yaml",)
) -> PathSelection:
    config = Config(root=str(root), include=include)
    return resolve_path_arguments(paths, config, root / cwd)


def files(root: Path, found: PathSelection) -> list[str]:
    return [Path(os.path.relpath(path, root)).as_posix() for path in found.files]


def ids(root: Path, found: PathSelection) -> dict[str, tuple[str, ...]]:
    real = os.path.realpath(root)
    return {Path(os.path.relpath(path, real)).as_posix(): names for path, names in found.ids_by_file.items()}


@pytest.mark.parametrize(
    ("paths", "cwd", "named", "selected"),
    [
        pytest.param([], "", ["s/a.yaml", "s/b.yaml"], {}, id="what is included"),
        pytest.param([], "t", ["s/a.yaml", "s/b.yaml"], {}, id="what is included, from a folder"),
        pytest.param(["t/a.yaml"], "", ["t/a.yaml"], {}, id="a file"),
        pytest.param(["a.yaml"], "t", ["t/a.yaml"], {}, id="a file in a folder"),
        pytest.param(["s"], "", ["s/a.yaml", "s/b.yaml"], {}, id="a folder"),
        pytest.param(["s/a.yaml::x"], "", ["s/a.yaml"], {"s/a.yaml": ("x",)}, id="one scenario"),
        pytest.param(
            ["s/a.yaml::x", "s/a.yaml::y", "s/a.yaml::x"],
            "",
            ["s/a.yaml"],
            {"s/a.yaml": ("x", "y")},
            id="two",
        ),
        pytest.param(
            ["s/b.yaml", "s/a.yaml::x"],
            "",
            ["s/b.yaml", "s/a.yaml"],
            {"s/a.yaml": ("x",)},
            id="a file and one",
        ),
        pytest.param(["s/a.yaml::x", "s/a.yaml"], "", ["s/a.yaml"], {}, id="one and the whole file"),
        pytest.param(["s/a.yaml::x", "s"], "", ["s/a.yaml", "s/b.yaml"], {}, id="one and its folder"),
        pytest.param(
            ["s/a.yaml::x::y"], "", ["s/a.yaml"], {"s/a.yaml": ("x::y",)}, id="an id with a separator"
        ),
        pytest.param(["odd::name.yaml"], "", ["odd::name.yaml"], {}, id="a file with a separator"),
        pytest.param(["a.yaml::x"], "", ["s/a.yaml"], {"s/a.yaml": ("x",)}, id="the end of a path"),
        pytest.param(["a.yaml::x"], "t", ["t/a.yaml"], {"t/a.yaml": ("x",)}, id="a file that is there"),
        pytest.param(["s/b.yaml::x"], "t", ["s/b.yaml"], {"s/b.yaml": ("x",)}, id="as a report shows it"),
    ],
)
def test_what_is_selected(
    root: Path, paths: list[str], cwd: str, named: list[str], selected: dict[str, tuple[str, ...]]
) -> None:
    found = resolved(root, *paths, cwd=cwd)
    assert files(root, found) == named
    assert ids(root, found) == selected


def test_the_end_of_several_paths(root: Path) -> None:
    found = resolved(root, "a.yaml::x", include=("s/*.yaml", "t/*.yaml"))
    assert files(root, found) == ["s/a.yaml", "t/a.yaml"]
    assert ids(root, found) == {"s/a.yaml": ("x",), "t/a.yaml": ("x",)}


@pytest.mark.parametrize("path", ["none.yaml", "none.yaml::x", "x/a.yaml::x", "yaml::x", "s/::x.yaml"])
def test_a_path_that_does_not_exist(root: Path, path: str) -> None:
    with pytest.raises(AuthorError):
        resolved(root, path)


def test_a_folder_has_no_ids(root: Path) -> None:
    with pytest.raises(AuthorError) as error:
        resolved(root, "s::x")
    (problem,) = error.value.problems
    assert "s::x" in problem.what
    assert "-s ID" in problem.remedy


# ── the scenarios of a selection ─────────────────────────────────────────────────────────────────


def scenarios(root: Path) -> list[Scenario]:
    places = {"a1": "s/a.yaml", "a2": "s/a.yaml", "a3": "s/a.yaml", "b1": "s/b.yaml"}
    return [Scenario(id=id, source=f"{root / file}:{n}") for n, (id, file) in enumerate(places.items(), 1)]


@pytest.mark.parametrize(
    ("paths", "selected"),
    [
        ([], ["a1", "a2", "a3", "b1"]),
        (["s/a.yaml::a2"], ["a2", "b1"]),
        (["s/a.yaml::a3", "s/a.yaml::a1"], ["a1", "a3", "b1"]),
        (["s/a.yaml::a1", "s/b.yaml::b1"], ["a1", "b1"]),
        (["s/a.yaml::a1", "s/a.yaml"], ["a1", "a2", "a3", "b1"]),
    ],
)
def test_ids_select_within_their_file(root: Path, paths: list[str], selected: list[str]) -> None:
    found = resolved(root, *paths).select_scenarios(scenarios(root))
    assert [each.id for each in found] == selected


def test_ids_that_their_file_does_not_have(root: Path) -> None:
    selection = resolved(root, "s/a.yaml::a11", "s/a.yaml::a1", "s/b.yaml::a1")
    with pytest.raises(NothingSelectedError) as error:
        selection.select_scenarios(scenarios(root))
    first, second = error.value.problems
    assert "a.yaml" in first.what
    assert "'a11'" in first.what
    assert "b.yaml" in second.what
    assert "'a1'" in second.what


# ── paths that outlive their folder ──────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("path", "absolute"),
    [
        ("s/a.yaml", "{root}/s/a.yaml"),
        ("s", "{root}/s"),
        ("t/../s/a.yaml", "{root}/s/a.yaml"),
        ("none.yaml", "{root}/none.yaml"),
        ("{root}/s/a.yaml", "{root}/s/a.yaml"),
        ("s/a.yaml::x", "{root}/s/a.yaml::x"),
        ("a.yaml::x", "a.yaml::x"),  # the end of a path, which is the same everywhere
        ("odd::name.yaml", "{root}/odd::name.yaml"),
    ],
)
def test_absolute_paths(root: Path, path: str, absolute: str) -> None:
    written = path.replace("{root}", str(root))
    assert absolute_path_argument(written, str(root)) == absolute.replace("{root}", str(root))
