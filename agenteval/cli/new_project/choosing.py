"""Which agent a new configuration names: the author's word, else what is found."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import typer

from agenteval.cli.new_project.endpoints import Endpoint, endpoint_of, local_endpoints
from agenteval.cli.new_project.programs import FORMS, command_of, node_program
from agenteval.cli.new_project.python_agents import PythonAgent, find_python_agents, own_interpreter
from agenteval.cli.new_project.texts import STARTER_FILE
from agenteval.cli.way_out import say
from agenteval.core.errors import AuthorError, Problem

_TARGET = re.compile(r"(.+\.py|[^\W\d][\w.]*):[^\W\d][\w.]*")
_MOST_LISTED = 9
_AS_WRITTEN = "FILE.py:NAME, a URL or a command"


class Questions:
    """Asked on a terminal. Under ``--yes``, or where nobody can answer, the default is taken."""

    def __init__(self, *, assumes_yes: bool) -> None:
        self.are_asked = not assumes_yes and sys.stdin is not None and sys.stdin.isatty()

    def ask(self, question: str, default: str) -> str:
        if not self.are_asked:
            return default
        say(f"{question} [{default}]")
        try:
            answer = sys.stdin.readline()
        except (KeyboardInterrupt, UnicodeDecodeError):
            answer = ""
        if not answer:
            say("agenteval: interrupted; nothing was written")
            raise typer.Exit(130)
        return answer.strip() or default

    def choose(self, question: str, options: Sequence[str]) -> int | str:
        """The index of the option whose number is the answer; any other answer as it is."""
        for number, option in enumerate(options, 1):
            if self.are_asked:
                say(f"  {number}  {option}")
        answer = self.ask(question, "1")
        return int(answer) - 1 if answer in map(str, range(1, len(options) + 1)) else answer

    def agree(self, question: str, *, unasked: bool = True) -> bool:
        return self.ask(question, "y").lower().startswith("y") if self.are_asked else unasked


class Choice(NamedTuple):
    """The agent that is written."""

    keys: dict[str, Any]
    """Its own, in the configuration."""
    label: str = ""
    note: str = ""
    """What its author has to look at."""
    words: tuple[str, ...] = ()
    """Those of a program of which nobody knows yet how it is asked."""
    others: tuple[str, ...] = ()
    """What else was found."""
    is_starter: bool = False


def choose(agent: str | None, root: Path, top: Path, questions: Questions) -> Choice:
    """The agent as its author wrote it; else what is found in the project's files, else on this machine, else
    one to begin with. Raises ``AuthorError``."""
    if agent is not None:
        return _named(agent, root, top, questions)
    python = find_python_agents(root)
    found = [_of_python(each, root, top, python.missing) for each in python.agents]
    found += [_of_words(words)] if (words := node_program(root)) else []
    found = (found or [_of_endpoint(each) for each in local_endpoints()])[:_MOST_LISTED]
    if not found:
        return _starter(root, top, questions)
    chosen = questions.choose(
        f"Which is the agent? A number, or {_AS_WRITTEN}", [each.label for each in found]
    )
    if isinstance(chosen, str):
        return _named(chosen, root, top, questions)
    others = () if questions.are_asked else tuple(each.label for each in found if each is not found[chosen])
    return _with_form(found[chosen], questions)._replace(others=others)


def _named(agent: str, root: Path, top: Path, questions: Questions) -> Choice:
    if agent.startswith(("http://", "https://")):
        return _of_endpoint(_with_paths(endpoint_of(agent), questions))
    if _TARGET.fullmatch(agent) or (agent.endswith(".py") and (root / agent).is_file()):
        python, path = find_python_agents(root), os.path.normpath(agent).replace(os.sep, "/")
        known = [each for each in python.agents if path in (each.target, each.target.rpartition(":")[0])]
        if not known and not _TARGET.fullmatch(agent):
            raise AuthorError(
                Problem(
                    f"nothing in {agent} looks like an agent",
                    f"write {agent}:NAME, or a command: python {agent}",
                )
            )
        return _of_python(known[0] if known else PythonAgent(agent), root, top, python.missing)
    try:
        words = shlex.split(agent)
    except ValueError as error:
        raise AuthorError(
            Problem(f"the command {agent} cannot be read: {error}", "write it as in a shell")
        ) from None
    if not words:
        raise AuthorError(Problem("the agent has no name", f"write {_AS_WRITTEN}"))
    return _with_form(_of_words(words), questions)


def _of_python(agent: PythonAgent, root: Path, top: Path, missing: Sequence[str]) -> Choice:
    """With the project's own environment, if agenteval's lacks what the agent needs."""
    keys = {"target": agent.target}
    if (agent.is_object or missing) and (interpreter := own_interpreter(root, top)):
        keys["interpreter"] = interpreter
    kind = f", {agent.kind}" if agent.kind else ""
    return Choice(keys, f"{agent.target}{kind}")


def _of_endpoint(endpoint: Endpoint) -> Choice:
    return Choice(endpoint.keys, endpoint.url, endpoint.unknown)


def _of_words(words: list[str]) -> Choice:
    return Choice(command_of(words, "argument"), shlex.join(words), words=tuple(words))


def _with_paths(endpoint: Endpoint, questions: Questions) -> Endpoint:
    """With the author's word for what no description says."""
    if endpoint.is_agent or not questions.are_asked:
        return endpoint
    request, reply = endpoint.keys["request"], endpoint.keys["reply"]
    message = next(iter(request))
    key = questions.ask("Which key of the request holds the message?", message)
    path = questions.ask("Which key of the reply holds the answer?", reply["text"])
    request = {key if each == message else each: value for each, value in request.items()}
    keys = {**endpoint.keys, "request": request, "reply": {**reply, "text": path}}
    return Endpoint(keys, endpoint.unknown if len(request) > 1 else "")


def _with_form(choice: Choice, questions: Questions) -> Choice:
    if not (choice.words and questions.are_asked):
        return choice
    options = ["nobody knows: it is tried", *FORMS.values()]
    chosen = questions.choose(f"How is {choice.label} asked? A number", options)
    form = ["", *FORMS][chosen] if isinstance(chosen, int) else ""
    return choice._replace(keys=command_of(list(choice.words), form), words=()) if form else choice


def _starter(root: Path, top: Path, questions: Questions) -> Choice:
    answer = questions.ask(f"No agent was found. Write {_AS_WRITTEN}, or new for one to begin with", "new")
    if answer != "new":
        return _named(answer, root, top, questions)
    if os.path.lexists(root / STARTER_FILE):
        what = f"no agent was found, and {STARTER_FILE} is there, in which nothing looks like one"
        raise AuthorError(Problem(what, f"name yours: --agent {_AS_WRITTEN}"))
    label = f"{STARTER_FILE}:agent, a new one, since none was found; yours is to be named in agenteval.yaml"
    return Choice({"target": f"{STARTER_FILE}:agent"}, label, is_starter=True)
