"""Detects programs that are agents: finds a project's program in ``package.json``, and determines how a
program accepts a message."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

from agenteval.adapters.agents.process import find_program
from agenteval.core.errors import AuthorError, Problem, did_you_mean
from agenteval.files.regular_files import read_file

PROGRAM_FORMS = {
    "json": "it reads and writes JSON lines",
    "argument": "it takes the message as an argument and prints its answer",
    "input": "it reads the message from standard input and prints its answer",
}
"""The ways in which a program can accept a message. The correct way cannot be determined without running the
program."""

_MESSAGE, _TIMEOUT_S = "Hello! What can you help me with?", 30
_SERVICES = frozenset(
    ("express", "fastify", "koa", "hono", "@hono/node-server", "@hapi/hapi", "next", "@nestjs/core")
)

_SCRIPTS = frozenset((".py", ".js", ".mjs", ".cjs", ".ts", ".mts", ".rb", ".php", ".pl", ".sh"))


def program_of(words: list[str], root: Path) -> list[str]:
    """Return the command that starts an existing program. npm is run with ``-s``, because npm's own output is
    not part of an answer. Raise ``AuthorError`` if the program does not exist, or if its first argument is a
    script that does not exist."""
    program, *rest = words
    if find_program(program, str(root), os.environ) is None:
        if program.endswith(".py") and not os.path.exists(root / program):
            raise missing_file_error(Path(program), root)
        remedy = (
            f"use ./{program}"
            if os.path.isfile(root / program)
            else "check its spelling, and that it is installed"
        )
        raise AuthorError(Problem(f"no such program: '{program}'", remedy))
    script = Path(next((each for each in rest if not each.startswith("-")), ""))
    if script.suffix in _SCRIPTS and not os.path.exists(root / script):
        raise missing_file_error(script, root)
    if program != "npm":
        return words
    return [program, *(["-s"] if "-s" not in rest else []), *rest, *(["--"] if "--" not in rest else [])]


def missing_file_error(path: Path, root: Path) -> AuthorError:
    there = [each.relative_to(root).as_posix() for each in (root / path).parent.glob(f"*{path.suffix}")]
    return AuthorError(Problem(f"no such file: '{path}'", did_you_mean(path.as_posix(), there)))


def make_command_keys(words: list[str], form: str) -> dict[str, Any]:
    """Return the agent's configuration keys for a program."""
    if form == "json":
        return {"command": words}
    return {"command": {"run": [*words, "${message}"] if form == "argument" else words}}


def detect_form(words: list[str], root: Path) -> str:
    """Detect how a program that prints its answer accepts the message. Return the first form for which the
    output depends on the message, or an empty string if the output never depends on the message."""
    without = _output_of(words, "", root)
    if _output_of([*words, _MESSAGE], "", root) != without:
        return "argument"
    return "input" if _output_of(words, f"{_MESSAGE}\n", root) != without else ""


def _output_of(words: list[str], typed: str, root: Path) -> bytes:
    try:
        done = subprocess.run(words, cwd=root, input=typed.encode(), capture_output=True, timeout=_TIMEOUT_S)
    except (OSError, subprocess.SubprocessError):
        return b""
    return done.stdout


def node_server(root: Path) -> str:
    """Return the reason why a Node.js project is a service, or an empty string if it is not a service."""
    known = json_object(root / "package.json").get("dependencies")
    found = sorted(_SERVICES.intersection(known if isinstance(known, dict) else ()))
    return f"package.json depends on {found[0]}" if found else ""


def node_program(root: Path) -> list[str]:
    """Return the command that starts the program of a Node.js project. Return an empty list if the folder
    does not contain such a project or if the project is a web service."""
    package = json_object(root / "package.json")
    if node_server(root):
        return []
    scripts, programs = package.get("scripts"), package.get("bin")
    start = str(scripts.get("start") or "") if isinstance(scripts, dict) else ""
    if isinstance(programs, dict):
        programs = next(iter(programs.values()), None)
    words = shlex.split(start) if start.startswith("node ") and not set(start) & set("&|;<>$`'\"") else []
    for file in (programs, package.get("main"), "index.js" if package else None):
        if not words and isinstance(file, str) and (root / file).is_file():
            words = ["node", file.removeprefix("./")]
    return words


def json_object(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file, or an empty dictionary if the file does not contain a JSON object."""
    try:
        found = json.loads(read_file(path))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
