"""A Python agent in an interpreter of its own: what is installed there is the agent's alone."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from agenteval.adapters.agents.dialogue import Program
from agenteval.adapters.agents.process import is_executable, search_path
from agenteval.adapters.agents.process_agents import START_S, ProcessAgents, Programs, error_in
from agenteval.adapters.agents.python import read_reply
from agenteval.adapters.transport.limits import Rate
from agenteval.conversation import targets
from agenteval.core.errors import AgentError, AuthorError, Place, Problem, did_you_mean
from agenteval.core.protocols import AgentReply
from agenteval.core.scenario import Sample
from agenteval.core.value import Text, Value

_USUAL = ("bin/python", "Scripts/python.exe")
START = Path(targets.__file__).with_name("start.py")
_NOT_INHERITED = ("__PYVENV_LAUNCHER__",)
"""How macOS says which environment *this* process is of."""


class InterpreterOptions(Value):
    """``interpreter``: the Python that the target runs in. ``keep``: a process plays one conversation after
    the other; without it each conversation has a process of its own."""

    target: Text
    interpreter: Text
    keep: bool = True


def interpreter_agents(
    options: InterpreterOptions,
    *,
    name: str,
    root: str,
    timeout_s: float,
    rate: Rate | None = None,
    place_of: Callable[[str], Place | None] = lambda _: None,
    start_s: float = START_S,
) -> ProcessAgents:
    """The agents of a run in another interpreter, started in the folder ``root``. The first process is
    started here and now: raises ``AuthorError`` for what keeps it from getting ready."""
    env = {key: value for key, value in os.environ.items() if key not in _NOT_INHERITED}
    python = _python(options.interpreter, root, env, place_of("interpreter"))
    command = (python, str(START), options.target, root)
    program = Program(f"the agent's process ({options.interpreter})", command, root, env, greets=True)
    programs = Programs(program, keep=options.keep, start_s=start_s)
    try:
        first = programs.start()
    except (OSError, AgentError) as error:
        what = f"agent '{name}': the interpreter '{options.interpreter}' {_unready(error)}"
        remedy = "does importing the target end the process, or is it no Python?"
        raise AuthorError(Problem(what, remedy, place_of("interpreter"))) from error
    greeting = first.greeting.result()
    if "ready" not in greeting:
        first.kill()
        raise AuthorError(_refusal(greeting, name, options, place_of))
    programs.put_first(first)
    return ProcessAgents(programs, read=read_answer, timeout_s=timeout_s, rate=rate, more=_of_sample)


def _unready(error: Exception) -> str:
    return f"cannot be started: {error.strerror}" if isinstance(error, OSError) else str(error)


def _python(written: str, root: str, env: Mapping[str, str], place: Place | None) -> str:
    """Its path as it is written: a link of a virtual environment must not be followed."""
    found = search_path(written, root, env)
    if found is None:
        folder = Path(root, written)
        inside = next(
            (each for each in ("bin/python", "Scripts/python.exe") if (folder / each).is_file()), ""
        )
        remedy = f"write {written.rstrip('/')}/{inside}" if inside else f"looked in {root}"
        if not os.path.dirname(written) and not inside:
            remedy = "write its path, such as ../app/.venv/bin/python"
        raise AuthorError(Problem(f"there is no interpreter '{written}'", remedy, place))
    if not is_executable(found):
        raise AuthorError(Problem(f"the interpreter '{written}' cannot be executed", "", place))
    return os.path.abspath(found)


def _refusal(
    greeting: Mapping[str, Any],
    name: str,
    options: InterpreterOptions,
    place_of: Callable[[str], Place | None],
) -> Problem:
    refused = greeting.get("refused")
    if not isinstance(refused, Mapping):
        what = f"agent '{name}': the interpreter '{options.interpreter}' is no Python"
        return Problem(what, "write the path of the agent's python", place_of("interpreter"))
    what, remedy = str(refused.get("what")), str(refused.get("remedy") or "")
    match refused.get("of"):
        case "python":
            what = f"the interpreter '{options.interpreter}' is too old: {what}"
            return Problem(what, remedy, place_of("interpreter"))
        case "agent":
            return Problem(what, remedy, place_of("target"))
    asked, known = str(refused.get("asked") or ""), refused.get("known") or ()
    remedy = remedy or did_you_mean(asked, map(str, known))
    return Problem(f"agent '{name}'{what}", remedy, place_of("target"))


def _of_sample(sample: Sample) -> dict[str, Any]:
    return {"scenario_id": sample.key.scenario, "epoch": sample.key.epoch, "seed": sample.seed}


def read_answer(answer: Mapping[str, Any]) -> AgentReply:
    """What the worker says that the target returned, read as if it had been called here."""
    if "error" in answer:
        raise error_in(answer["error"])
    if isinstance(told := answer.get("agent_reply"), Mapping):
        parts = {key: value for key, value in told.items() if value is not None}
        return read_reply(AgentReply(**parts))
    if "value" in answer:
        return read_reply(answer["value"])
    raise AgentError(
        f"the agent returned {answer.get('returned', 'nothing')}; expected the answer's text, an assistant"
        " message, the list of this turn's messages, or an AgentReply",
        kind="protocol",
    )
