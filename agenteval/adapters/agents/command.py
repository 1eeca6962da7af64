"""An agent that is a command: any program, in any language, that reads and writes lines of JSON."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Annotated, Any

from pydantic import Field

from agenteval.adapters.agents.dialogue import Program
from agenteval.adapters.agents.process import is_executable, search_path
from agenteval.adapters.agents.process_agents import ProcessAgents, Programs, error_in
from agenteval.adapters.agents.python import read_reply
from agenteval.adapters.transport.limits import Rate
from agenteval.core.errors import AgentError, AuthorError, Place, Problem, did_you_mean
from agenteval.core.protocols import AgentReply
from agenteval.core.safe_text import one_line
from agenteval.core.value import Text, Value

_PARTS = ("text", "tool_calls", "messages", "usage", "error", "latency_ms")
_MESSAGE = frozenset(("role", "content", "choices", "function_call", "refusal"))


class CommandOptions(Value):
    """``command``: the program and its arguments. ``keep``: a program plays one conversation after the other
    instead of one alone."""

    command: Annotated[tuple[Text, ...], Field(min_length=1)]
    keep: bool = False


def command_agents(
    options: CommandOptions,
    *,
    root: str,
    timeout_s: float,
    rate: Rate | None = None,
    place: Place | None = None,
    warn: Callable[[str], None] = lambda _: None,
) -> ProcessAgents:
    """The agents of a run that are a command, started in the folder ``root``. Raises ``AuthorError`` for a
    program that is not there."""
    env = dict(os.environ)
    name, *arguments = options.command
    found = search_path(name, root, env)
    if found is None:
        remedy = f"looked in {root}" if os.path.dirname(name) else "is it installed, and on the PATH?"
        raise AuthorError(Problem(f"there is no program '{name}'", remedy, place))
    if not is_executable(found):
        remedy = f"chmod +x it, or name what runs it: [sh, {name}]"
        raise AuthorError(Problem(f"'{name}' cannot be executed", remedy, place))
    program = Program(f"the command '{_shown(options.command)}'", (found, *arguments), root, env)
    programs = Programs(program, keep=options.keep, warn=warn)
    return ProcessAgents(programs, read=read_answer, timeout_s=timeout_s, rate=rate)


def _shown(command: tuple[str, ...]) -> str:
    name, *arguments = command
    return one_line(" ".join((os.path.basename(name), *arguments)), 60)


def read_answer(answer: Mapping[str, Any]) -> AgentReply:
    """What a line says: the parts of the protocol, or an assistant message or completion as it is."""
    if answer.get("error") is not None:
        raise error_in(answer["error"])
    if answer.keys() & _MESSAGE:
        return read_reply(answer)
    unknown = sorted(answer.keys() - set(_PARTS))
    if unknown or not answer.keys() - {"usage", "latency_ms", "error"}:
        what = f"the answer has {', '.join(unknown) or 'neither text nor calls nor messages'}"
        remedy = did_you_mean(unknown[0], _PARTS) if unknown else 'write {"text": …}'
        raise AgentError(f"{what} — {remedy}", kind="protocol")
    text, calls, listed = (answer.get(part) for part in ("text", "tool_calls", "messages"))
    if text is not None and not isinstance(text, str):
        raise AgentError(f"the answer's text is {type(text).__name__}, expected a string", kind="protocol")
    if calls is not None and not isinstance(calls, list):
        raise AgentError(
            f"the answer's tool_calls is {type(calls).__name__}, expected a list", kind="protocol"
        )
    reply = AgentReply(text, calls or (), listed or (), answer.get("usage"), answer.get("latency_ms"))
    return read_reply(reply)
