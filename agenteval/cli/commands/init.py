"""Implements ``agenteval init`` (project setup, scaffolding): finds the agent, writes a configuration, a
scenario and a CI workflow, and tries them out."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import anyio

from agenteval.cli.commands import schema
from agenteval.cli.commands.validate import close_agents
from agenteval.cli.editor_schemas import SchemaKind
from agenteval.cli.new_project import templates
from agenteval.cli.new_project.agent_choice import AgentChoice
from agenteval.cli.new_project.agent_selection import Questions, choose_agent
from agenteval.cli.new_project.programs import PROGRAM_FORMS, detect_form, make_command_keys
from agenteval.cli.safe_output import print_err, print_out
from agenteval.core.config import Config
from agenteval.core.errors import AgentevalError, AuthorError, Place, Problem
from agenteval.files import config_file, path_arguments
from agenteval.files.regular_files import read_file
from agenteval.files.runs import ensure_project_folder
from agenteval.planning.request import Request
from agenteval.planning.run_preparation import prepare
from agenteval.running.registries import REGISTRIES

CONFIG, FIRST = "agenteval.yaml", "scenarios/first.yaml"
_WAIT_S = 20
"""The timeout in seconds for an answer in JSON lines. It applies as long as it is unknown whether the program
writes JSON lines."""
_WORKFLOWS = {
    "github": (".github/workflows/agenteval.yml", templates.workflow_text),
    "gitlab": ("agenteval.gitlab-ci.yml", templates.gitlab_text),
}


@dataclass(frozen=True)
class InitRequest:
    """The options of ``agenteval init``."""

    folder: str = "."
    agent: str | None = None
    """The agent named by the author, or None to search for an agent."""
    ci: str | None = None
    assumes_yes: bool = False
    plays: bool = True


def init(request: InitRequest) -> int:
    """Write the files and try them out. Return the exit code of the trial, or 0 if nothing could be tried."""
    _require_ci(request.ci)
    root, top, source = _find_project(request.folder)
    questions = Questions(assumes_yes=request.assumes_yes)
    if source and request.agent is not None:
        raise _existing_config_error(source, request.agent, top)
    config = _load_existing_config(source) if source else None
    choice = _configured_agent(config) if config else choose_agent(request.agent, root, top, questions)
    ci = request.ci or ("gitlab" if (top / ".gitlab-ci.yml").exists() else "github")
    files = dict(_files_to_write(root, top, choice, ci, config))
    workflow = top / _WORKFLOWS[ci][0] if ci in _WORKFLOWS else None
    if workflow and request.ci is None and not _may_write_workflow(workflow, questions):
        del files[workflow]
    is_tried = not all(map(os.path.lexists, files.keys() & {root / CONFIG, root / FIRST}))
    plays = is_tried and _should_play(request, questions)
    _print_choice(choice)
    written = _write(files, root)
    code = _try(source or root / CONFIG, choice, written, plays=plays) if is_tried else 0
    _print_next_steps(root, choice, code, written, workflow if workflow in written else None)
    return code


def _require_ci(name: str | None) -> None:
    """Raise ``AuthorError`` if there is no workflow template for the CI service."""
    if name not in (None, "none", *_WORKFLOWS):
        raise AuthorError(Problem(f"--ci {name} is not supported", "use github, gitlab or none"))


class _Project(NamedTuple):
    """The folders and the configuration of a project."""

    root: Path
    top: Path
    """The root folder of the repository."""
    source: Path | None
    """The existing configuration file, or None."""


def _find_project(folder: str) -> _Project:
    """Return the project that contains the folder."""
    requested = _folder(folder)
    source = _existing_config(requested)
    root = source.parent if source else requested
    top = next((each for each in (root, *root.parents) if (each / ".git").exists()), root)
    return _Project(root, top, source)


def _print_choice(choice: AgentChoice) -> None:
    if choice.label:
        print_out("\n".join([f"agent: {choice.label}", *(f"also found: {each}" for each in choice.others)]))


def _configured_agent(config: Config) -> AgentChoice:
    """Return the agent that the configuration defines."""
    options = config.agent.adapter_options if config.agent else {}
    return AgentChoice({key: value for key, value in options.items() if value is not None})


def _may_write_workflow(workflow: Path, questions: Questions) -> bool:
    """Check whether a workflow may be written without having been requested. An existing workflow is never
    changed."""
    if os.path.lexists(workflow):
        return True
    return questions.agree(f"Create a CI workflow, {_display_path(workflow)}? y or n")


def _should_play(request: InitRequest, questions: Questions) -> bool:
    question = "Run one conversation with the agent now? y or n"
    return request.plays and questions.agree(question, unasked=request.assumes_yes)


def _existing_config_error(source: Path, agent: str, top: Path) -> AuthorError:
    """Return the error for an agent that is named although a configuration already exists. Raise
    ``AuthorError`` if the named agent does not exist."""
    keys = choose_agent(agent, source.parent, top, Questions(assumes_yes=True)).keys
    line = "" if source.name == config_file.PYPROJECT else f" to {templates.agent_line(keys)}"
    what = f"init does not overwrite a configuration, so --agent {agent} would have no effect"
    return AuthorError(
        Problem(
            what, f"change the agent there{line}, or add one under `agents`", Place(_display_path(source))
        )
    )


def _load_existing_config(source: Path) -> Config:
    """Load the existing configuration. Raise ``AuthorError`` if the configuration is invalid."""
    config = config_file.load_config(source, REGISTRIES, environ=os.environ, flags={}).config
    print_out(f"{_display_path(source)} exists and is unchanged")
    return config


def _folder(name: str) -> Path:
    folder = Path(os.path.abspath(name))
    try:
        is_folder = folder.is_dir() or not os.path.lexists(folder)
    except OSError as error:
        what = f"{name} cannot be used as a folder: {error.strerror}"
        raise AuthorError(Problem(what, "specify another folder")) from error
    if not is_folder:
        raise AuthorError(
            Problem(f"{name} is not a folder", "specify a folder; it is created if it does not exist")
        )
    return folder


def _existing_config(root: Path) -> Path | None:
    """Return the configuration that ``run`` would use in the folder, unless that configuration belongs to an
    outer repository."""
    found = config_file.find_config(root)
    between = [each for each in (root, *root.parents) if found and each.is_relative_to(found.parent)]
    return None if any((each / ".git").exists() for each in between[:-1]) else found


def _display_path(path: Path) -> str:
    return Path(os.path.relpath(path)).as_posix()


# ── files ────────────────────────────────────────────────────────────────────────────────────────


def _files_to_write(
    root: Path, top: Path, choice: AgentChoice, ci: str, config: Config | None
) -> Iterator[tuple[Path, str]]:
    """Yield each required file with its content."""
    if config is None:
        yield root / CONFIG, _config_text(root, choice)
    if choice.is_starter:
        yield root / templates.STARTER_FILE, templates.STARTER
    has_first = os.path.lexists(root / FIRST)
    is_default = config is None or config.where("include") == "default"
    if has_first or (
        is_default and not (config and path_arguments.resolve_path_arguments((), config, root).files)
    ):
        yield root / FIRST, _first_text(root, choice)
    if ci != "none":
        file, text_of = _WORKFLOWS[ci]
        yield top / file, text_of(root, top, choice.keys)
    news: dict[SchemaKind, bool] = {"config": config is None, "scenario": not has_first}
    for kind, is_new in news.items():
        path = root / (CONFIG if kind == "config" else FIRST)
        line = _schema_line(kind, path, root).encode()
        if is_new or (path.is_file() and read_file(path).startswith(line)):
            yield schema.editor_schema_path(kind, root), schema.editor_schema_text(kind)


def _config_text(root: Path, choice: AgentChoice) -> str:
    text = templates.config_text(choice.keys, choice.note, choice.words)
    return _schema_line("config", root / CONFIG, root) + text


def _first_text(root: Path, choice: AgentChoice, tools: Sequence[str] = ()) -> str:
    text = templates.scenario_text(tools, shows_calls=choice.shows_calls, is_python="target" in choice.keys)
    return _schema_line("scenario", root / FIRST, root) + (
        templates.STARTER_SCENARIO if choice.is_starter else text
    )


def _save(path: Path, text: str, mode: Literal["x", "w"]) -> None:
    """Write a file. The mode ``w`` overwrites a file that this command wrote earlier. Raise ``OSError`` on
    failure."""
    with open(path, mode, encoding="utf-8", newline="\n") as file:
        file.write(text)


def _schema_line(kind: SchemaKind, file: Path, root: Path) -> str:
    """Return the first line of a YAML file, which tells an editor where to find the schema."""
    return f"{schema.editor_line(schema.editor_schema_path(kind, root), file)}\n"


def _write(files: dict[Path, str], root: Path) -> set[Path]:
    """Write the files that do not exist yet, and print a line for each file. Raise ``AuthorError`` if a file
    cannot be written."""
    written = set()
    for path, text in files.items():
        if os.path.lexists(path):
            print_out(f"{_display_path(path)} exists and is unchanged")
            continue
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.name.endswith(".schema.json"):
                ensure_project_folder(root)
            _save(path, text, "x")
        except OSError as error:
            what = f"{_display_path(path)} cannot be written: {error.strerror}"
            raise AuthorError(Problem(what, "fix this and run init again; existing files are kept")) from None
        written.add(path)
        print_out(f"wrote {_display_path(path)}")
    return written


# ── trial ────────────────────────────────────────────────────────────────────────────────────────


def _try(config: Path, choice: AgentChoice, written: set[Path], *, plays: bool) -> int:
    """Play the first scenario, or only validate the project. Return the exit code of the command (``run`` or
    ``validate``)."""
    root = config.parent
    if "target" in choice.keys and not choice.is_starter and root / FIRST in written:
        _mock_tools(config, choice)
    if not (plays and (root / FIRST).is_file()):
        if choice.words and root / CONFIG in written:
            print_out(
                f"how {choice.label} receives messages is a guess; see the comments in"
                f" {_display_path(config)}"
            )
        return _run_agenteval(root, "validate")
    if choice.words:
        _find_form(root, choice, written)
    code = _run_agenteval(root, "run", FIRST)
    if code in (0, 1):
        _run_agenteval(root, "show")
    return code


def _mock_tools(config: Path, choice: AgentChoice) -> None:
    """Mock the tools of a framework's agent object in the first scenario. The tools are known only after the
    object is loaded."""
    first = config.parent / FIRST
    try:
        with redirect_stdout(sys.stderr):
            prepared = prepare(Request(config=str(config), paths=(str(first),)), REGISTRIES)
            anyio.run(close_agents, prepared.wired.runtime.agents.values())
    except AgentevalError:  # the trial reports it
        return
    have = [tool for tools in prepared.wired.resources.agent_tools.values() for tool in tools]
    names = [tool.name for tool in have if tool.name and not (tool.hosted or tool.is_agent)]
    if names:
        _save(first, _first_text(config.parent, choice._replace(is_object=True), names), "w")


def _find_form(root: Path, choice: AgentChoice, written: set[Path]) -> None:
    """Determine by trial how the program accepts a message, and update the configuration accordingly."""
    words = list(choice.words)
    print_err(f"detecting how {choice.label} receives messages")
    keys = {**make_command_keys(words, "json"), "timeout_s": _WAIT_S}
    try:
        _save(root / CONFIG, _config_text(root, choice._replace(keys=keys)), "w")
        is_json = _run_agenteval(root, "run", FIRST, is_shown=False) == 0
        form = "json" if is_json else detect_form(words, root)
        unheard = f"its output does not depend on the message; see the comments in {CONFIG}"
        print_out(f"{choice.label}: {PROGRAM_FORMS.get(form, unheard)}")
        if form:
            choice = choice._replace(keys=make_command_keys(words, form), words=())
    finally:
        _save(root / CONFIG, _config_text(root, choice), "w")
        if root / FIRST in written:
            _save(root / FIRST, _first_text(root, choice), "w")


def _run_agenteval(root: Path, *arguments: str, is_shown: bool = True) -> int:
    """Run agenteval in a new process in which the author's files cannot shadow a library (``-P``)."""
    command = [sys.executable, "-P", "-m", "agenteval", *arguments]
    stream = None if is_shown else subprocess.DEVNULL
    done = subprocess.run(command, cwd=root, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream)
    return done.returncode


def _print_next_steps(
    root: Path, choice: AgentChoice, code: int, written: set[Path], workflow: Path | None
) -> None:
    """Print the next steps. ``workflow`` is the workflow file if it was written, and None otherwise."""
    lines = [f"check {CONFIG}: {choice.note}"] if choice.note else []
    if workflow and workflow.name == _WORKFLOWS["gitlab"][0]:
        lines.append("add to .gitlab-ci.yml: include: agenteval.gitlab-ci.yml")
    if workflow and (line := _line_with(templates.SERVICE_HINT, workflow)):
        lines.append(
            f"the workflow must start the service: add the command at {_display_path(workflow)}:{line}"
        )
    if code and root / CONFIG in written:
        line = _line_with("agent:", root / CONFIG)
        lines.append(f"If that is the wrong agent, change it at {_display_path(root / CONFIG)}:{line}")
    if code:
        lines.append("The files were written. Once the problem shown above is fixed:")
    elif not written:
        lines.append("nothing to write: all files exist")
    change = "" if root == Path.cwd() else f"cd {shlex.quote(_display_path(root))} && "
    print_out("\n".join([*lines, f"next: {change}agenteval run"]))


def _line_with(text: str, path: Path) -> int:
    """Return the number of the first line that starts with ``text``, or 0 if there is no such line."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return next((number for number, line in enumerate(lines, 1) if line.lstrip().startswith(text)), 0)
