"""Implements ``agenteval schema``: writes JSON Schemas as local files. Editors use the schemas to complete
and validate YAML files."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from agenteval.cli.editor_schemas import GENERATED_COMMENT, SCHEMA_KINDS, SchemaKind, build_editor_schema
from agenteval.cli.safe_output import print_author_error, print_out
from agenteval.core.config import Config
from agenteval.core.errors import AuthorError, Problem, did_you_mean
from agenteval.files.config_file import PYPROJECT, find_config, load_config
from agenteval.files.regular_files import read_file
from agenteval.files.runs import ensure_project_folder
from agenteval.files.scenario_files import CONFIG_NAMES, display_path, glob_base
from agenteval.running.registries import REGISTRIES


def schema(kind: str | None, out: str | None) -> int:
    """Write the JSON Schema for one kind of file, or for all kinds, and print the line that a file uses to
    refer to its schema. ``out`` is a different output path, or ``-`` for stdout. Raise ``AuthorError`` if the
    kind is unknown or the file cannot be written."""
    if kind is not None and kind not in SCHEMA_KINDS:
        raise AuthorError(Problem(f"unknown schema '{kind}'", did_you_mean(kind, SCHEMA_KINDS)))
    kinds = tuple(known for known in SCHEMA_KINDS if kind in (None, known))
    if out is not None and len(kinds) > 1:
        remedy = " or ".join(f"`agenteval schema {known} --out {out}`" for known in SCHEMA_KINDS)
        raise AuthorError(Problem("--out requires a single schema, but there are two", f"use {remedy}"))
    if out == "-":
        print_out(editor_schema_text(kinds[0]))
        return 0
    config = _config()
    root = config.parent if config else Path.cwd()
    written = {known: Path(out) if out else editor_schema_path(known, root) for known in kinds}
    for known, path in written.items():
        write_schema(known, path)
    print_out("\n".join(_report(written, config, root)))
    return 0


def editor_schema_path(kind: SchemaKind, root: Path) -> Path:
    """Return the path of a schema in the project folder ``root``."""
    return root / ".agenteval" / f"{kind}.schema.json"


def editor_schema_text(kind: SchemaKind) -> str:
    return json.dumps(build_editor_schema(kind), ensure_ascii=False, indent=1) + "\n"


def write_schema(kind: SchemaKind, path: Path) -> None:
    """Write the schema for a kind of file, replacing an earlier version. Raise ``AuthorError`` if the path
    contains a file that is not a generated schema, or if the schema cannot be written."""
    try:
        if path.exists() and not _is_ours(read_file(path)):
            what = f"{path} exists and is not a schema written by agenteval"
            raise AuthorError(Problem(what, "remove it, or choose another path with --out"))
        if path.parent.name == ".agenteval":
            ensure_project_folder(path.parent.parent)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(editor_schema_text(kind), encoding="utf-8", newline="\n")
    except OSError as error:
        raise AuthorError(Problem(f"{path} cannot be written: {error.strerror or error}")) from error


def _is_ours(data: bytes) -> bool:
    with suppress(ValueError):
        found = json.loads(data)
        return isinstance(found, dict) and found.get("$comment") == GENERATED_COMMENT
    return False


def editor_line(path: Path, file: Path) -> str:
    """Return the line to put at the start of a YAML ``file`` so that editors apply the schema at ``path``."""
    relative = Path(os.path.relpath(path, file.parent)).as_posix()
    return f"# yaml-language-server: $schema={relative}"


def _config() -> Path | None:
    """Return the path of the configuration, or None if there is no usable configuration. Errors are only
    printed, because the schema helps to fix them."""
    try:
        return find_config(Path.cwd())
    except AuthorError as error:
        print_author_error(f"agenteval: {error}")
        return None


def _report(written: dict[SchemaKind, Path], config: Path | None, root: Path) -> Iterator[str]:
    cwd = Path.cwd()
    for path in written.values():
        yield f"wrote {display_path(path, cwd)}"
    lines = {
        display_path(file, cwd): editor_line(written[kind], file)
        for kind, file in _first_files(config, root)
        if kind in written
    }
    if lines:
        yield "With this first line, an editor completes and validates a file:"
    width = max(map(len, lines), default=0)
    yield from (f"  {name:{width}}  {line}" for name, line in lines.items())


def _first_files(config: Path | None, root: Path) -> Iterator[tuple[SchemaKind, Path]]:
    include = Config().include
    with suppress(AuthorError):
        include = load_config(config, REGISTRIES, environ=os.environ, flags={}).config.include or include
    fixed = glob_base(include[0])
    yield "scenario", root / fixed if Path(fixed) == Path(include[0]) else root / fixed / "*.yaml"
    if config is None or config.name != PYPROJECT:
        yield "config", config or root / CONFIG_NAMES[0]
