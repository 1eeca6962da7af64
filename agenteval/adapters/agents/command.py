"""Agents that are commands (command-line agents, subprocesses): any program, in any language, that exchanges
JSON lines (JSONL) over stdin and stdout or prints its answer as text."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Discriminator, Tag

from agenteval.adapters.agents import AgentResources
from agenteval.adapters.agents.dialogue import Program
from agenteval.adapters.agents.observe_options import (
    OBSERVE_SHORTHAND,
    ObserveOptions,
    observe_mistakes,
    parse_observe_option,
)
from agenteval.adapters.agents.process import find_program, is_executable
from agenteval.adapters.agents.process_agents import (
    ProcessAgent,
    ProcessAgents,
    ProgramPool,
    parse_program_error,
    should_reuse_process,
)
from agenteval.adapters.agents.request_template import names_in
from agenteval.adapters.agents.text_programs import TextAgent, TextAgents, TextProgram, TextProgramOptions
from agenteval.adapters.transport.limits import agent_rate
from agenteval.core.config import AgentConfig
from agenteval.core.errors import AgentError, AuthorError, Mistake, Place, Problem, did_you_mean
from agenteval.core.protocols import Agent, AgentAdapter, AgentFactory, AgentReply, ReadReply
from agenteval.core.safe_text import one_line
from agenteval.core.tool_visibility import KnownVisibility
from agenteval.core.trajectory import ToolVisibility
from agenteval.core.value import Text, Value
from agenteval.messages.agent_names import read_agent_name
from agenteval.messages.agent_reply import parse_reply, read_or_none

_EXAMPLE = "command: [node, bot.js]"
_ANSWER = ("text", "tool_calls", "messages")
_PARTS = (*_ANSWER, "usage", "error", "latency_ms", "agent")
_MESSAGE = frozenset(("role", "content", "choices", "function_call", "refusal"))
_PRINTS = (
    "the output of a text program shows no calls — set `mcp: true` if it gets its tools from an MCP server,"
    " `observe: otlp` if it exports spans, or `calls: all` if it gets all its tools from agenteval"
)


_IN_LINES, _PRINTING = "JSON lines", "text program"


def _form(command: Any) -> str:
    return _PRINTING if isinstance(command, TextProgramOptions | Mapping) else _IN_LINES


class CommandOptions(Value):
    """The options specific to a command agent."""

    command: Annotated[
        Annotated[tuple[Text, ...], Tag(_IN_LINES)] | Annotated[TextProgramOptions, Tag(_PRINTING)],
        Discriminator(_form),
    ] = ()
    """Program and its arguments. It exchanges JSON lines or, if set as {run: […]}, prints its answer as
    text."""
    keep: bool | None = None
    """True if one process is reused for several conversations, one after another."""
    observe: Annotated[ObserveOptions | None, BeforeValidator(parse_observe_option), OBSERVE_SHORTHAND] = None
    """If set to otlp, the agent's calls are read from the OpenTelemetry spans that it exports."""


def _mistakes(options: Mapping[str, Any]) -> Iterator[Mistake]:
    yield from observe_mistakes(options.get("observe"), "command")
    command = options.get("command")
    if isinstance(command, Mapping) and command:
        yield from _run_mistakes(command.get("run"), options.get("keep"))
    elif isinstance(command, str):
        yield Mistake(_IS_TEXT, f"use a list, such as {_as_list(command)}", ("command",))
    elif not command:
        what = "an agent of type command requires `command`" if command is None else "the command is empty"
        yield Mistake(what, f"set {_EXAMPLE}", ("command",))


_IS_TEXT = "the command is a string, which cannot be split into arguments unambiguously"


def _run_mistakes(run: Any, keep: Any) -> Iterator[Mistake]:
    at = ("command", "run")
    if isinstance(run, str):
        yield Mistake(_IS_TEXT, f"use a list, such as run: {_as_list(run)}", at)
    elif run in ([], ()):
        yield Mistake("`run` is empty", f"use {TextProgramOptions.EXAMPLE}", at)
    elif isinstance(run, list | tuple) and any(names_in(run[0])):
        yield Mistake(
            "the program name cannot contain ${…}",
            "put the program first, then arguments with ${…}",
            (*at, 0),
        )
    if keep is not None:
        what = "`keep` applies only to programs that answer in JSON lines; a text program runs once per turn"
        yield Mistake(what, "remove it", ("keep",))


def _as_list(command: str) -> str:
    """Convert a command to a list."""
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    return json.dumps(words, ensure_ascii=False)


def _agents(agent: AgentConfig, options: CommandOptions, resources: AgentResources) -> AgentFactory:
    """Create the command agents of a run. Their programs are started in the configuration's folder.

    Raise ``AuthorError`` if a program does not exist."""
    observe = options.observe
    if observe is None:
        return _start_agents(agent, options, resources, {})

    from agenteval.adapters.agents.tracing import TracedAgents

    def made(address: str) -> AgentFactory:
        return _start_agents(
            agent, options, resources, {_OTLP: address, **_OTLP_USUAL, **_environment_values(_OTLP_USUAL)}
        )

    def send(asked: Agent, traceparent: str) -> None:
        assert isinstance(asked, ProcessAgent | TextAgent)
        asked.traceparent = traceparent

    place = resources.place_of(agent, "observe")
    port = observe.port if "port" in observe.model_fields_set else 0
    return TracedAgents(
        made, observe, port=port, send=send, warn=resources.warn, place=place, name=agent.name
    )


_OTLP = "OTEL_EXPORTER_OTLP_ENDPOINT"
_OTLP_USUAL = {"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf", "OTEL_BSP_SCHEDULE_DELAY": "200"}
"""Settings that make the exporter send spans in a supported format and with little delay."""


def _environment_values(names: Iterable[str]) -> dict[str, str]:
    """Return the values of the environment variables that are set."""
    return {name: os.environ[name] for name in names if name in os.environ}


def _start_agents(
    agent: AgentConfig, options: CommandOptions, resources: AgentResources, more: Mapping[str, str]
) -> ProcessAgents | TextAgents:
    root, env = resources.config.root, {**os.environ, **more}
    rate = resources.limits().rate(agent_rate(agent))
    if isinstance(options.command, TextProgramOptions):
        run, place = options.command, resources.place_of(agent, "command.run")
        path = _require_program(agent.name, run.run[0], root, env, place)
        text_program = TextProgram(_short_command(run.run), path, run, root, env, place)
        return TextAgents(text_program, timeout_s=agent.timeout_s, rate=rate, warn=resources.warn)
    name, *arguments = options.command
    path = _require_program(agent.name, name, root, env, resources.place_of(agent, "command"))
    program = Program(f"'{_short_command(options.command)}'", (path, *arguments), root, env)
    keep = should_reuse_process(agent.name, options.keep, resources.place_of(agent, "keep"), default=False)
    agents = ProcessAgents(
        ProgramPool(program, keep=keep, warn=resources.warn),
        reader=lambda _sample: parse_program_answer,
        timeout_s=agent.timeout_s,
        rate=rate,
    )
    kind = "kept running for several conversations" if keep else "one process per conversation"
    agents.does = (
        f"{_short_command(options.command)}, {kind}, gets the latest user message and the messages so far"
    )
    return agents


def _require_program(agent: str, name: str, root: str, env: Mapping[str, str], place: Place) -> str:
    """Return the path of a program. Raise ``AuthorError`` if the program does not exist."""
    found = find_program(name, root, env)
    if found is None:
        what = f"agent '{agent}': no such program: '{name}'"
        remedy = (
            f"paths are relative to {root}"
            if os.path.dirname(name)
            else "check that it is installed and on the PATH"
        )
    elif not is_executable(found):
        what = f"agent '{agent}': '{name}' cannot be executed"
        remedy = f"make it executable (chmod +x), or specify its interpreter, such as [sh, {name}]"
    else:
        return found
    raise AuthorError(Problem(what, remedy, place))


def _short_command(command: tuple[str, ...]) -> str:
    name, *arguments = command
    return one_line(" ".join((os.path.basename(name), *arguments)), 60)


def parse_program_answer(answer: Mapping[str, Any]) -> ReadReply:
    """Parse an answer line. The line contains either the parts defined by the protocol or an unmodified
    assistant message or completion."""
    if answer.get("error") is not None:
        rest = {key: value for key, value in answer.items() if key != "error"}
        raise parse_program_error(answer["error"], seen=read_or_none(lambda: parse_program_answer(rest)))
    if answer.keys() & _MESSAGE:
        return parse_reply(answer)
    unknown = sorted(answer.keys() - set(_PARTS))
    if unknown or answer.keys().isdisjoint(_ANSWER):
        keys = "an unknown key" if len(unknown) == 1 else "unknown keys"
        has = f"{keys}: {', '.join(unknown)}" if unknown else "no text, calls or messages"
        what = f"the answer has {has}"
        remedy = did_you_mean(unknown[0], _PARTS) if unknown else 'use {"text": …}'
        raise AgentError(f"{what} — {remedy}", kind="protocol")
    return parse_reply(
        AgentReply(
            _part(answer, "text", str, "a string"),
            _part(answer, "tool_calls", list, "a list") or (),
            answer.get("messages") or (),
            answer.get("usage"),
            answer.get("latency_ms"),
            read_agent_name(answer.get("agent")),
        )
    )


def _part(answer: Mapping[str, Any], name: str, kind: type, shown: str) -> Any:
    """Return a part of an answer, or ``None`` if the answer does not contain the part. Raise ``AgentError``
    if the part has the wrong type."""
    value = answer.get(name)
    if value is None or isinstance(value, kind):
        return value
    what = f"the answer's `{name}` must be {shown}, but is {type(value).__name__}"
    raise AgentError(what, kind="protocol")


def _visibility(options: CommandOptions, _tools: frozenset[str]) -> KnownVisibility | None:
    if options.observe or not isinstance(options.command, TextProgramOptions):
        return None
    return KnownVisibility(calls=ToolVisibility.UNSEEN, why=_PRINTS)


ADAPTER = AgentAdapter(
    _agents,
    CommandOptions,
    _mistakes,
    visibility=_visibility,
    hears_mcp_url=lambda _options: True,
    example=_EXAMPLE,
)
