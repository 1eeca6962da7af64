"""Programs that are agents: what a project starts, and how a program takes a message."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agenteval.cli.new_project import programs
from agenteval.cli.new_project.programs import (
    PROGRAM_FORMS,
    detect_form,
    json_object,
    make_command_keys,
    missing_file_error,
    node_program,
    node_server,
    program_of,
)
from agenteval.core.errors import AuthorError


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project in which npm, node and a python are installed."""
    known = ("npm", "node", sys.executable)
    monkeypatch.setattr(programs, "find_program", lambda name, *_: name if name in known else None)
    for name in ("bot.py", "bot.js", "run", "sub/other.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    return tmp_path


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["node", "bot.js"], None),
        (["node", "--flag", "bot.js"], None),
        (["node", "--flag"], None),
        (["node"], None),
        (["node", "unknown.txt"], None),
        (["node", "module"], None),
        (["node", "bot.js", "gone.js"], None),
        (["npm", "start"], ["npm", "-s", "start", "--"]),
        (["npm", "-s", "start"], ["npm", "-s", "start", "--"]),
        (["npm", "run", "x", "--", "y"], ["npm", "-s", "run", "x", "--", "y"]),
        (["npm"], ["npm", "-s", "--"]),
    ],
    ids=str,
)
def test_a_program_that_is_there(root: Path, words: list[str], expected: list[str] | None) -> None:
    assert program_of(words, root) == (expected or words)


@pytest.mark.parametrize(
    ("words", "facts"),
    [
        (["gone"], ["'gone'", "spelling"]),
        (["run"], ["'run'", "./run"]),
        (["bot.py"], ["'bot.py'", "./bot.py"]),
        (["bott.py"], ["'bott.py'", "bot.py"]),
        (["sub/othr.py"], ["sub/othr.py", "sub/other.py"]),
        *((["node", f"gone{end}"], [f"gone{end}"]) for end in sorted(programs._SCRIPTS)),
        (["node", "--flag", "bott.js"], ["'bott.js'", "bot.js"]),
        (["x" * 300], ["xxx", "spelling"]),
        (["x" * 300 + ".py"], ["xxx"]),
        (["node", "x" * 300 + ".js"], ["xxx"]),
    ],
    ids=str,
)
def test_a_program_that_is_not_there(root: Path, words: list[str], facts: list[str]) -> None:
    with pytest.raises(AuthorError) as error:
        program_of(words, root)
    (problem,) = error.value.problems
    for fact in facts:
        assert fact in f"{problem.what} {problem.remedy}"


def test_only_files_of_the_same_kind_are_proposed(root: Path) -> None:
    (problem,) = missing_file_error(Path("bot.ts"), root).problems
    assert "bot.ts" in problem.what
    assert not any(name in (problem.remedy or "") for name in ("bot.js", "bot.py"))


def test_keys_of_each_form() -> None:
    made = {form: make_command_keys(["a", "b"], form) for form in PROGRAM_FORMS}
    assert made == {
        "json": {"command": ["a", "b"]},
        "argument": {"command": {"run": ["a", "b", "${message}"]}},
        "input": {"command": {"run": ["a", "b"]}},
    }


def heard_argument(words: list[str], typed: bytes) -> bytes:
    return words[-1].encode()


def heard_input(_: list[str], typed: bytes) -> bytes:
    return typed


def heard_both(words: list[str], typed: bytes) -> bytes:
    return words[-1].encode() + typed


def heard_nothing(*_: Any) -> bytes:
    return b"usage"


def breaks(*_: Any) -> bytes:
    raise OSError


def breaks_with_argument(words: list[str], typed: bytes) -> bytes:
    if words != ["bot"]:
        raise subprocess.TimeoutExpired("bot", 30)
    return typed


@pytest.mark.parametrize(
    ("program", "form"),
    [
        (heard_argument, "argument"),
        (heard_input, "input"),
        (heard_both, "argument"),
        (heard_nothing, ""),
        (breaks, ""),
        (breaks_with_argument, "input"),
    ],
)
def test_the_output_has_to_depend_on_the_message(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, program: Callable[..., bytes], form: str
) -> None:
    def run(words: list[str], **options: Any) -> subprocess.CompletedProcess[bytes]:
        assert options["cwd"] == tmp_path
        assert options["timeout"] == 30
        return subprocess.CompletedProcess(words, 1, program(words, options["input"]), b"")

    monkeypatch.setattr(subprocess, "run", run)
    assert detect_form(["bot"], tmp_path) == form


# ── package.json ─────────────────────────────────────────────────────────────────────────────────


def package(root: Path, **keys: Any) -> Path:
    (root / "package.json").write_text(json.dumps(keys))
    return root


@pytest.mark.parametrize(
    ("dependencies", "server"),
    [
        ({"left-pad": "1"}, ""),
        *(
            ({name: "1"}, name)
            for name in ("express", "fastify", "koa", "hono", "@hono/node-server", "@hapi/hapi", "next")
        ),
        ({"@nestjs/core": "1", "x": "1"}, "@nestjs/core"),
        ({"koa": "1", "express": "1"}, "express"),
        ({}, ""),
        (["express"], ""),
        (None, ""),
    ],
)
def test_a_package_that_is_a_service(root: Path, dependencies: Any, server: str) -> None:
    package(root, dependencies=dependencies, main="bot.js")
    assert node_server(root) == (f"package.json depends on {server}" if server else "")
    assert node_program(root) == ([] if server else ["node", "bot.js"])


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({}, []),
        ({"scripts": {"start": "node bot.js --quick"}}, ["node", "bot.js", "--quick"]),
        ({"scripts": {"start": "node bot.js"}, "main": "index.js"}, ["node", "bot.js"]),
        ({"scripts": {"start": "next start"}}, []),
        ({"scripts": {"start": "nodemon bot.js"}}, []),
        *(({"scripts": {"start": f"node bot.js {sign} x"}}, []) for sign in "&|;<>$`'\""),
        ({"scripts": {"start": "node a.js && b"}, "main": "bot.js"}, ["node", "bot.js"]),
        ({"scripts": {"start": None}, "main": "bot.js"}, ["node", "bot.js"]),
        ({"scripts": "node x", "main": "bot.js"}, ["node", "bot.js"]),
        ({"bin": "./bot.js"}, ["node", "bot.js"]),
        ({"bin": {"bot": "./bot.js", "b": "c.js"}}, ["node", "bot.js"]),
        ({"bin": {}}, []),
        ({"bin": {}, "main": "bot.js"}, ["node", "bot.js"]),
        ({"bin": "gone.js", "main": "bot.js"}, ["node", "bot.js"]),
        ({"bin": ["bot.js"], "main": "bot.js"}, ["node", "bot.js"]),
        ({"bin": "bot.js", "main": "other.js"}, ["node", "bot.js"]),
        ({"main": "gone.js"}, []),
        ({"main": "sub"}, []),
    ],
    ids=str,
)
def test_the_program_of_a_package(root: Path, keys: dict[str, Any], words: list[str]) -> None:
    assert node_program(package(root, **keys)) == words


def test_the_usual_file_is_last_and_needs_a_package(root: Path) -> None:
    (root / "index.js").write_text("")
    assert node_program(root) == []
    assert node_program(package(root, name="x")) == ["node", "index.js"]
    assert node_program(package(root, main="bot.js")) == ["node", "bot.js"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [('{"a": 1}', {"a": 1}), ("[1]", {}), ("null", {}), ("{", {}), ("", {}), (None, {})],
)
def test_an_object_or_nothing(tmp_path: Path, text: str | None, expected: dict[str, Any]) -> None:
    if text is not None:
        (tmp_path / "x.json").write_text(text)
    assert json_object(tmp_path / "x.json") == expected
