"""Selects the agent for a new configuration. This is the agent named by the author or, if none is named, an
agent found in the project."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import typer

from agenteval.cli.new_project.agent_choice import AgentChoice
from agenteval.cli.new_project.endpoints import local_endpoints, local_ports, probe_endpoint
from agenteval.cli.new_project.programs import (
    PROGRAM_FORMS,
    make_command_keys,
    missing_file_error,
    node_program,
    node_server,
    program_of,
)
from agenteval.cli.new_project.python_agents import (
    PythonAgentCandidate,
    find_project_interpreter,
    find_python_agents,
    top_level_names,
)
from agenteval.cli.new_project.templates import STARTER_FILE
from agenteval.cli.safe_output import print_err
from agenteval.core.errors import AuthorError, Problem, did_you_mean

_TARGET = re.compile(r"(.+\.py|[^\W\d][\w.]*):[^\W\d][\w.]*")
_HOST_AND_PORT = re.compile(r"[\w.-]+:\d+(/\S*)?")
_MOST_LISTED, _TRIES = 9, 3
_AS_WRITTEN = "FILE.py:NAME, a URL or a command"


T = TypeVar("T")


class Questions:
    """Asks questions on a terminal, and repeats a question after an invalid answer. With ``--yes``, or if
    there is no terminal, the default answer is used."""

    def __init__(self, *, assumes_yes: bool) -> None:
        self.are_asked = not assumes_yes and sys.stdin is not None and sys.stdin.isatty()

    def ask(self, question: str, default: str, read: Callable[[str], T]) -> T:
        """Ask a question and return the answer as parsed by ``read``. After several invalid answers, raise
        the ``AuthorError`` from ``read``."""
        for _ in range(_TRIES - 1 if self.are_asked else 0):
            try:
                return read(self._answer(question, default))
            except AuthorError as error:
                print_err(str(error))
        return read(self._answer(question, default))

    def _answer(self, question: str, default: str) -> str:
        if not self.are_asked:
            return default
        print_err(f"{question} [{default}]" if default else question)
        try:
            answer = sys.stdin.readline()
        except (KeyboardInterrupt, UnicodeDecodeError):
            answer = ""
        if not answer:
            print_err("agenteval: interrupted; nothing was written")
            raise typer.Exit(130)
        return answer.strip() or default

    def choose(self, question: str, options: Sequence[T], read: Callable[[str], T], default: str = "1") -> T:
        """Ask the user to choose an option by number. Any other answer is parsed by ``read``."""
        for number, option in enumerate(options, 1):
            if self.are_asked:
                print_err(f"  {number}  {option}")
        numbered = {str(number): option for number, option in enumerate(options, 1)}

        def chosen(answer: str) -> T:
            if answer.isdigit() and answer not in numbered:
                raise AuthorError(Problem(f"there is no option {answer}", f"enter {_numbers(options)}"))
            return numbered[answer] if answer in numbered else read(answer)

        return self.ask(question, default, chosen)

    def agree(self, question: str, *, unasked: bool = True) -> bool:
        return self.ask(question, "y", _yes_or_no) if self.are_asked else unasked


def _numbers(options: Sequence[object]) -> str:
    return f"a number from 1 to {len(options)}" if options else _AS_WRITTEN


def _yes_or_no(answer: str) -> bool:
    if answer.lower() not in ("y", "yes", "n", "no"):
        raise AuthorError(Problem(f"'{answer}' is not a valid answer", "enter y or n"))
    return answer.lower().startswith("y")


def choose_agent(agent: str | None, root: Path, top: Path, questions: Questions) -> AgentChoice:
    """Return the agent named by the author or, if none is named, an agent found in the project. If the
    project is a service, endpoints that answer are preferred to the agents in its files. If no agent is
    found, a new agent is offered. Raise ``AuthorError`` if the named agent does not exist or the service does
    not answer."""

    def parse(answer: str) -> AgentChoice:
        return _parse_agent(answer, root, top)

    if agent is not None:
        return _complete_choice(parse(agent), questions)
    python = find_python_agents(root)
    found = [_python_choice(each, root, top, python.missing) for each in python.agents]
    found += [_command_choice(words)] if (words := node_program(root)) else []
    default = "1"
    if server := python.server or node_server(root):
        ports = local_ports(root)
        answering = list(local_endpoints(ports))
        found = (answering + found)[:_MOST_LISTED]
        if not (answering or any(each.is_object for each in found)):
            silent = _no_answer_error(server, ports, found)
            if not questions.are_asked:
                raise silent
            print_err(str(silent))
            default = ""
    if not found and default:
        return _complete_choice(_ask_for_agent(root, questions, parse), questions)
    found = found[:_MOST_LISTED]
    which = f"Which one is the agent? {'A number, or ' if found else ''}{_AS_WRITTEN}"
    chosen = questions.choose(which, found, parse, default)
    others = () if questions.are_asked else tuple(each.label for each in found if each is not chosen)
    return _complete_choice(chosen, questions)._replace(others=others)


def _no_answer_error(server: str, ports: Sequence[int], found: Sequence[AgentChoice]) -> AuthorError:
    where = ", ".join(f"localhost:{port}" for port in ports)
    names = " or ".join(
        [f"http://localhost:{ports[0]}/PATH", *(str(each.keys.get("target", each)) for each in found)]
    )
    return AuthorError(
        Problem(
            f"this project is a service ({server}), but no agent answers on {where}",
            f"start it and run init again, or specify the agent: --agent {names}",
        )
    )


def _parse_agent(agent: str, root: Path, top: Path) -> AgentChoice:
    """Parse the author's description of the agent. Raise ``AuthorError`` if there is no such agent."""
    if _HOST_AND_PORT.fullmatch(agent):
        agent = f"http://{agent}"
    if agent.startswith(("http://", "https://")):
        return probe_endpoint(agent)
    if _TARGET.fullmatch(agent) or (agent.endswith(".py") and os.path.isfile(root / agent)):
        _check_target(agent, root)
        python, path = find_python_agents(root), os.path.normpath(agent).replace(os.sep, "/")
        known = [each for each in python.agents if path in (each.target, each.target.rpartition(":")[0])]
        if not known and not _TARGET.fullmatch(agent):
            raise AuthorError(
                Problem(
                    f"nothing in {agent} looks like an agent",
                    f"use {agent}:NAME, or a command: python {agent}",
                )
            )
        return _python_choice(known[0] if known else PythonAgentCandidate(agent), root, top, python.missing)
    try:
        words = shlex.split(agent)
    except ValueError as error:
        raise AuthorError(
            Problem(f"the command {agent} cannot be parsed: {error}", "quote it as in a shell")
        ) from None
    if not words:
        raise AuthorError(Problem("the agent is empty", f"use {_AS_WRITTEN}"))
    return _command_choice(program_of(words, root))


def _check_target(target: str, root: Path) -> None:
    """Raise ``AuthorError`` if the file, or the name in the file, does not exist. Module names are not
    checked, because a module may be located anywhere."""
    file, _, name = target.rpartition(":")
    if not file.endswith(".py"):
        return
    if not os.path.isfile(root / file):
        raise missing_file_error(Path(file), root)
    names, name = top_level_names(root / file), name.partition(".")[0]
    if names is not None and name not in names:
        raise AuthorError(Problem(f"{file} has no '{name}' at its top level", did_you_mean(name, names)))


def _python_choice(agent: PythonAgentCandidate, root: Path, top: Path, missing: Sequence[str]) -> AgentChoice:
    """Return the choice for a Python agent. If agenteval's environment lacks packages that the agent needs,
    the project's own environment is used."""
    keys = {"target": agent.target}
    if (agent.is_object or missing) and (interpreter := find_project_interpreter(root, top)):
        keys["interpreter"] = interpreter
    kind = f", {agent.kind}" if agent.kind else ""
    return AgentChoice(keys, f"{agent.target}{kind}", is_object=agent.is_object)


def _command_choice(words: list[str]) -> AgentChoice:
    return AgentChoice(make_command_keys(words, "argument"), shlex.join(words), words=tuple(words))


def _complete_choice(choice: AgentChoice, questions: Questions) -> AgentChoice:
    """Ask the author for settings that cannot be detected."""
    if not questions.are_asked:
        return choice
    return _with_form(choice, questions) if choice.words else _with_paths(choice, questions)


def _with_paths(choice: AgentChoice, questions: Questions) -> AgentChoice:
    if not choice.is_open:
        return choice
    request, reply = choice.keys["request"], choice.keys["reply"]
    message = next(iter(request))
    key = questions.ask("Which key of the request contains the message?", message, str)
    path = questions.ask("Which key of the reply contains the answer?", reply["text"], str)
    request = {key if each == message else each: value for each, value in request.items()}
    keys = {**choice.keys, "request": request, "reply": {**reply, "text": path}}
    return choice._replace(keys=keys, note=choice.note if len(request) > 1 else "")


def _with_form(choice: AgentChoice, questions: Questions) -> AgentChoice:
    def none(answer: str) -> str:
        raise AuthorError(Problem(f"'{answer}' is not an option", f"enter {_numbers(options)}"))

    options = ["Not sure: try each", *PROGRAM_FORMS.values()]
    chosen = questions.choose(f"How does {choice.label} receive messages? A number", options, none)
    form = ["", *PROGRAM_FORMS][options.index(chosen)]
    return choice._replace(keys=make_command_keys(list(choice.words), form), words=()) if form else choice


def _ask_for_agent(root: Path, questions: Questions, parse: Callable[[str], AgentChoice]) -> AgentChoice:
    question = f"No agent was found. Enter {_AS_WRITTEN}, or new to create one"
    return questions.ask(
        question, "new", lambda answer: _starter_choice(root) if answer == "new" else parse(answer)
    )


def _starter_choice(root: Path) -> AgentChoice:
    if os.path.lexists(root / STARTER_FILE):
        what = f"no agent was found, and nothing in the existing {STARTER_FILE} looks like one"
        raise AuthorError(Problem(what, f"specify yours: --agent {_AS_WRITTEN}"))
    label = f"{STARTER_FILE}:agent, a new one because none was found; set yours in agenteval.yaml"
    return AgentChoice({"target": f"{STARTER_FILE}:agent"}, label, is_starter=True)
