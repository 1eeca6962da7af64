"""``agenteval init``: find the agent, write a configuration, a scenario and a CI workflow, and try them."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import anyio

from agenteval.cli.commands import schema
from agenteval.cli.commands.prepare import Request, prepare
from agenteval.cli.commands.validate import close_agents
from agenteval.cli.editor_schemas import Kind
from agenteval.cli.known import KNOWN
from agenteval.cli.new_project import texts
from agenteval.cli.new_project.choosing import Choice, Questions, choose
from agenteval.cli.new_project.programs import FORMS, command_of, form_that_is_heard
from agenteval.cli.way_out import print_out, say
from agenteval.core.config import Config
from agenteval.core.errors import AgentevalError, AuthorError, Place, Problem
from agenteval.files import config_file, named_scenarios

CONFIG, FIRST = "agenteval.yaml", "scenarios/first.yaml"
_WAIT_S = 20
"""For an answer in JSON lines, where nobody knows yet whether there will be one."""
_WORKFLOWS = {
    "github": (".github/workflows/agenteval.yml", texts.workflow_text),
    "gitlab": ("agenteval.gitlab-ci.yml", texts.gitlab_text),
}


@dataclass(frozen=True)
class InitRequest:
    """What the command line asked for. ``agent``: as its author wrote it; without it one is looked for."""

    folder: str = "."
    agent: str | None = None
    ci: str | None = None
    assumes_yes: bool = False
    plays: bool = True


def init(request: InitRequest) -> int:
    """Returns the exit code: that of the trial; 0 where there was nothing to try."""
    if request.ci not in (None, "none", *_WORKFLOWS):
        raise AuthorError(Problem(f"--ci {request.ci} is not known", "write github, gitlab or none"))
    root = _folder(request.folder)
    source = _existing_config(root)
    root = source.parent if source else root
    top = next((each for each in (root, *root.parents) if (each / ".git").exists()), root)
    questions = Questions(assumes_yes=request.assumes_yes)
    config = _config(source, request.agent) if source else None
    if config:
        choice = Choice(dict(config.agent.own) if config.agent else {})
    else:
        choice = choose(request.agent, root, top, questions)
    ci = request.ci or ("gitlab" if (top / ".gitlab-ci.yml").exists() else "github")
    files = dict(_files(root, top, choice, ci, config))
    new = [path for path in files if not os.path.lexists(path)]
    workflow = list(files)[-1] if request.ci is None else None
    if workflow in new and not questions.agree(f"Write a CI workflow, {_shown(workflow)}? y or n"):
        del files[workflow]
    is_tried = not {root / CONFIG, root / FIRST}.isdisjoint(new)
    plays = request.plays and is_tried
    if plays:
        question = "Play one conversation with the agent now? y or n"
        plays = questions.agree(question, unasked=request.assumes_yes)
    written = _write(files, root)
    code = _try(source or root / CONFIG, choice, written, plays=plays) if is_tried else 0
    _say_what_next(root, choice, code, written)
    return code


def _config(source: Path, agent: str | None) -> Config:
    """The configuration that is there. Raises ``AuthorError`` if it is broken, or if an agent was named."""
    if agent is not None:
        what = f"init overwrites no configuration: --agent {agent} would not be written"
        raise AuthorError(
            Problem(what, "write the agent there, or one more under agents:", Place(_shown(source)))
        )
    config = config_file.load_config(source, KNOWN, environ=os.environ, flags={}).config
    print_out(f"{_shown(source)} exists, left as it is")
    return config


def _folder(name: str) -> Path:
    folder = Path(os.path.abspath(name))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise AuthorError(Problem(f"{name} is no folder, and cannot be made one: {error.strerror}")) from None
    return folder


def _existing_config(root: Path) -> Path | None:
    """The configuration that ``run`` would use there, unless it is that of another repository around."""
    found = config_file.find_config(root)
    between = [each for each in (root, *root.parents) if found and each.is_relative_to(found.parent)]
    return None if any((each / ".git").exists() for each in between[:-1]) else found


def _shown(path: Path) -> str:
    return Path(os.path.relpath(path)).as_posix()


# ── files ────────────────────────────────────────────────────────────────────────────────────────


def _files(
    root: Path, top: Path, choice: Choice, ci: str, config: Config | None
) -> Iterator[tuple[Path, str]]:
    """What has to be there: each file with its text."""
    if config is None:
        yield root / CONFIG, _config_text(choice)
    if choice.is_starter:
        yield root / texts.STARTER_FILE, texts.STARTER
    is_default = config is None or config.where("include") == "default"
    if is_default and not (config and named_scenarios.asked_for((), config, root).files):
        yield root / FIRST, texts.STARTER_SCENARIO if choice.is_starter else texts.scenario_text()
    if ci != "none":
        file, text_of = _WORKFLOWS[ci]
        yield top / file, text_of(root, top, choice.keys)


def _config_text(choice: Choice) -> str:
    return texts.config_text(choice.keys, choice.note, choice.words)


def _save(path: Path, text: str, root: Path, mode: Literal["x", "w"]) -> None:
    """Write a file; ``w``: over one that this command has written. Raises ``OSError`` and ``AuthorError``."""
    kinds: dict[Path, Kind] = {root / CONFIG: "config", root / FIRST: "scenario"}
    kind = kinds.get(path)
    text = (_schema_line(kind, path, root) if kind else "") + text
    with open(path, mode, encoding="utf-8", newline="\n") as file:
        file.write(text)


def _schema_line(kind: Kind, file: Path, root: Path) -> str:
    """The first line of a YAML file, by which an editor finds its schema; the schema is written, too."""
    path = schema.place_of(kind, root)
    schema.write(kind, path)
    return f"{schema.editor_line(path, file)}\n"


def _write(files: dict[Path, str], root: Path) -> set[Path]:
    """Write what is not there; say of each file what became of it. Raises ``AuthorError``."""
    written = set()
    for path, text in files.items():
        if os.path.lexists(path):
            print_out(f"{_shown(path)} exists, left as it is")
            continue
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            _save(path, text, root, "x")
        except OSError as error:
            what = f"{_shown(path)} cannot be written: {error.strerror}"
            raise AuthorError(Problem(what, "run init again once it can; what is there stays")) from None
        written.add(path)
        print_out(f"wrote {_shown(path)}")
    return written


# ── trial ────────────────────────────────────────────────────────────────────────────────────────


def _try(config: Path, choice: Choice, written: set[Path], *, plays: bool) -> int:
    """Play the first scenario, or only load everything; the exit code is that of ``run`` or ``validate``."""
    root = config.parent
    if "target" in choice.keys and not choice.is_starter and root / FIRST in written:
        _mock_tools(config)
    if not (plays and (root / FIRST).is_file()):
        return _agenteval(root, "validate")
    if choice.words:
        _find_form(root, choice)
    code = _agenteval(root, "run", FIRST)
    if code in (0, 1):
        _agenteval(root, "show")
    return code


def _mock_tools(config: Path) -> None:
    """Let the first scenario answer the tools of a framework's object, which are known once it is loaded."""
    first = config.parent / FIRST
    try:
        with redirect_stdout(sys.stderr):
            prepared = prepare(Request(config=str(config), paths=(str(first),)))
            anyio.run(close_agents, prepared.runtime.agents.values())
    except AgentevalError:  # the trial shows it
        return
    have = [tool for tools in prepared.resources.agents_have.values() for tool in tools]
    names = [tool.name for tool in have if tool.name and not (tool.hosted or tool.is_agent)]
    if names:
        _save(first, texts.scenario_text(names), config.parent, "w")


def _find_form(root: Path, choice: Choice) -> None:
    """Write the configuration anew with the way in which the program is asked, if trying shows it."""
    words = list(choice.words)
    say(f"trying how {choice.label} is asked")
    keys = {**command_of(words, "json"), "timeout_s": _WAIT_S}
    try:
        _save(root / CONFIG, _config_text(choice._replace(keys=keys)), root, "w")
        is_json = _agenteval(root, "run", FIRST, is_shown=False) == 0
        form = "json" if is_json else form_that_is_heard(words, root)
        unheard = f"what it prints does not depend on the message; see the comments in {CONFIG}"
        print_out(f"{choice.label}: {FORMS.get(form, unheard)}")
        if form:
            choice = choice._replace(keys=command_of(words, form), words=())
    finally:
        _save(root / CONFIG, _config_text(choice), root, "w")


def _agenteval(root: Path, *arguments: str, is_shown: bool = True) -> int:
    """In a process of its own, which loads nothing of the author's by the name of a library (``-P``)."""
    command = [sys.executable, "-P", "-m", "agenteval", *arguments]
    stream = None if is_shown else subprocess.DEVNULL
    done = subprocess.run(command, cwd=root, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream)
    return done.returncode


def _say_what_next(root: Path, choice: Choice, code: int, written: set[Path]) -> None:
    lines = [f"agent: {choice.label}"] if choice.label else []
    lines += [f"also found: {each}" for each in choice.others]
    lines += [f"look at {CONFIG}: {choice.note}"] if choice.note else []
    if any(path.name == _WORKFLOWS["gitlab"][0] for path in written):
        lines.append("add to .gitlab-ci.yml: include: agenteval.gitlab-ci.yml")
    if code:
        lines.append("The files stand. What is wrong is shown above; once it is mended:")
    elif not written:
        lines.append("nothing to write: everything is there")
    change = "" if root == Path.cwd() else f"cd {shlex.quote(_shown(root))} && "
    print_out("\n".join([*lines, f"next: {change}agenteval run"]))
