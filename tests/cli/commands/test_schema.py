"""``agenteval schema``: which file each schema is written to, and which line of a file names it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agenteval.cli.commands.schema import (
    editor_line,
    editor_schema_path,
    editor_schema_text,
    schema,
    write_schema,
)
from agenteval.cli.editor_schemas import GENERATED_COMMENT, SchemaKind
from agenteval.core.errors import AuthorError

CONFIG, SCENARIO = ".agenteval/config.schema.json", ".agenteval/scenario.schema.json"


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def files(root: Path) -> set[str]:
    return {each.relative_to(root).as_posix() for each in root.rglob("*.json") if each.is_file()}


def lines(capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    """The first line that each file should have."""
    rows = [line.split("  #") for line in capsys.readouterr().out.splitlines() if line.startswith("  ")]
    return {name.strip(): f"#{line}" for name, line in rows}


@pytest.mark.parametrize(
    ("kind", "out", "written"),
    [
        (None, None, {CONFIG, SCENARIO}),
        ("config", None, {CONFIG}),
        ("scenario", None, {SCENARIO}),
        ("config", "deep/c.json", {"deep/c.json"}),
        ("config", "-", set()),
    ],
)
def test_the_files_that_are_written(
    root: Path, capsys: pytest.CaptureFixture[str], kind: str | None, out: str | None, written: set[str]
) -> None:
    assert schema(kind, out) == 0
    assert files(root) == written
    said = capsys.readouterr()
    assert said.err == ""
    for name in written:
        assert f"wrote {name}" in said.out
        assert json.loads((root / name).read_text())["$comment"] == GENERATED_COMMENT
    if out == "-":
        assert said.out == editor_schema_text("config")
    assert (root / ".agenteval" / ".gitignore").exists() is (out is None)


@pytest.mark.parametrize(
    ("kind", "out", "facts"),
    [
        ("configs", None, ["'configs'", "config"]),
        ("", None, ["''"]),
        (None, "x.json", ["schema scenario --out x.json", "schema config --out x.json"]),
        (None, "-", ["schema config --out -"]),
    ],
)
def test_what_is_refused(root: Path, kind: str | None, out: str | None, facts: list[str]) -> None:
    with pytest.raises(AuthorError) as error:
        schema(kind, out)
    for fact in facts:
        assert fact in str(error.value)
    assert files(root) == set()


@pytest.mark.parametrize(
    ("config", "kind", "expected"),
    [
        (None, None, {"scenarios/*.yaml": f"../{SCENARIO}", "agenteval.yaml": CONFIG}),
        (None, "config", {"agenteval.yaml": CONFIG}),
        (None, "scenario", {"scenarios/*.yaml": f"../{SCENARIO}"}),
        ("agenteval.yml", None, {"scenarios/*.yaml": f"../{SCENARIO}", "agenteval.yml": CONFIG}),
        ("pyproject.toml", None, {"scenarios/*.yaml": f"../{SCENARIO}"}),
    ],
)
def test_first_lines(
    root: Path,
    capsys: pytest.CaptureFixture[str],
    config: str | None,
    kind: str | None,
    expected: dict[str, str],
) -> None:
    if config:
        (root / config).write_text("[tool.agenteval]\n" if config.endswith(".toml") else "metrics: []\n")
    schema(kind, None)
    assert lines(capsys) == {
        name: f"# yaml-language-server: $schema={path}" for name, path in expected.items()
    }


@pytest.mark.parametrize(
    ("include", "name", "up"),
    [
        ("deep/er/**/*.yaml", "deep/er/*.yaml", "../../"),
        ("one.yaml", "one.yaml", ""),
        ("*.yaml", "*.yaml", ""),
    ],
)
def test_scenarios_lie_where_the_configuration_says(
    root: Path, capsys: pytest.CaptureFixture[str], include: str, name: str, up: str
) -> None:
    (root / "agenteval.yaml").write_text(f"include: ['{include}', other.yaml]\n")
    schema("scenario", None)
    assert lines(capsys) == {name: f"# yaml-language-server: $schema={up}{SCENARIO}"}


def test_a_broken_configuration_still_gets_its_schema(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root / "agenteval.yaml").write_text("include: [\n")
    assert schema(None, None) == 0
    assert set(lines(capsys)) == {"scenarios/*.yaml", "agenteval.yaml"}


def test_schemas_lie_beside_the_configuration(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "agenteval.yaml").write_text("metrics: []\n")
    (root / "deep").mkdir()
    monkeypatch.chdir(root / "deep")
    schema("config", None)
    assert files(root) == {CONFIG}


@pytest.mark.parametrize(
    ("before", "is_ours"),
    [
        (json.dumps({"$comment": GENERATED_COMMENT}), True),
        (json.dumps({"$comment": "mine"}), False),
        ("{}", False),
        ("[]", False),
        ("", False),
        ("{", False),
    ],
)
def test_only_a_schema_of_ours_is_replaced(root: Path, before: str, is_ours: bool) -> None:
    path = root / "s.json"
    path.write_text(before)
    if is_ours:
        write_schema("config", path)
        assert path.read_text() == editor_schema_text("config")
        return
    with pytest.raises(AuthorError) as error:
        write_schema("config", path)
    assert "--out" in str(error.value)
    assert path.read_text() == before


@pytest.mark.parametrize("name", ["folder", "file/s.json"])
def test_a_path_that_cannot_be_written(root: Path, name: str) -> None:
    (root / "folder").mkdir()
    (root / "file").write_text("")
    with pytest.raises(AuthorError) as error:
        write_schema("config", root / name)
    assert str(root / name) in str(error.value)


@pytest.mark.parametrize(
    ("kind", "file", "line"),
    [
        ("scenario", "scenarios/a/b.yaml", f"../../{SCENARIO}"),
        ("config", "agenteval.yaml", CONFIG),
    ],
)
def test_the_line_of_a_file(root: Path, kind: SchemaKind, file: str, line: str) -> None:
    found = editor_line(editor_schema_path(kind, root), root / file)
    assert found == f"# yaml-language-server: $schema={line}"


def test_a_schema_is_a_text_that_ends(root: Path) -> None:
    kinds: tuple[SchemaKind, ...] = ("config", "scenario")
    for kind in kinds:
        assert editor_schema_text(kind).endswith("}\n")
        assert json.loads(editor_schema_text(kind))["type"] == "object"
