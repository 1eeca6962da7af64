"""Run a Python agent in another interpreter (virtual environment), so that its packages are separate from
agenteval's."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from agenteval import agentside
from agenteval.adapters.agents import AgentResources
from agenteval.adapters.agents.dialogue import Program
from agenteval.adapters.agents.mcp_server import mcp_url
from agenteval.adapters.agents.observed_requests import ObservedRequests, parse_agent_tools
from agenteval.adapters.agents.process import find_program, is_executable
from agenteval.adapters.agents.process_agents import (
    START_S,
    AnswerParser,
    ProcessAgents,
    ProgramPool,
    parse_program_error,
    should_reuse_process,
)
from agenteval.adapters.transport.limits import agent_rate
from agenteval.agentside.targets.target_resolution import describe_plan
from agenteval.agentside.world import RequestedCall
from agenteval.core.config import AgentConfig
from agenteval.core.errors import (
    AgentError,
    AgentevalError,
    AuthorError,
    InfrastructureError,
    Place,
    Problem,
    did_you_mean,
)
from agenteval.core.protocols import AgentReply, NoHistory, ReadReply
from agenteval.core.scenario import Sample
from agenteval.core.trajectory import CallEvidence
from agenteval.messages.agent_reply import no_answer_error, parse_reply, read_or_none
from agenteval.messages.model_calls import KnownCalls

_USUAL = ("bin/python", "Scripts/python.exe")
START = Path(agentside.__file__).with_name("start.py")
_NOT_INHERITED = ("__PYVENV_LAUNCHER__",)
"""The environment variables that macOS sets for *this* process only."""


def interpreter_agents(
    agent: AgentConfig,
    *,
    target: str,
    deps: str = "",
    interpreter: str,
    keep: bool | None,
    intercept: Mapping[str, str] | None = None,
    resources: AgentResources,
    start_s: float = START_S,
) -> ProcessAgents:
    """Create the agents of a run in another Python interpreter. Its processes are started in the
    configuration's folder.

    The first process is started at once. Raise ``AuthorError`` if it does not become ready."""
    root = resources.config.root
    env = {key: value for key, value in os.environ.items() if key not in _NOT_INHERITED}
    where = resources.place_of(agent, "interpreter")
    python = _find_interpreter(interpreter, root, env, where)
    settings = {
        "intercept": dict(intercept or {}),
        "declared": sorted(resources.declared_tools),
        "runs_others": resources.config.unmocked_tools == "passthrough",
    }
    program = Program(
        f"the agent's process ({interpreter})",
        (python, str(START), target, root, deps, json.dumps(settings)),
        root,
        env,
        is_worker=True,
    )
    keep = should_reuse_process(agent.name, keep, resources.place_of(agent, "keep"), default=True)
    programs = ProgramPool(program, keep=keep, start_s=start_s, warn=resources.warn)
    try:
        variables = resources.write_example_databases(agent.name)
        first = programs.start(variables)
    except (OSError, AgentError) as error:
        what = f"agent '{agent.name}': the interpreter '{interpreter}' {_describe_failure(error)}"
        remedy = (
            "check that the interpreter is Python, and that importing the target does not end the process"
        )
        raise AuthorError(Problem(what, remedy, where)) from error
    if problem := _refusal(first.greeting.result(), agent.name, interpreter):
        first.kill()
        place = where if problem.is_of_interpreter else resources.place_of(agent, problem.key)
        imported = first.greeting.result()["refused"].get("imported")
        raise AuthorError(Problem("; ".join(filter(None, (problem.what, imported))), problem.remedy, place))
    ready = first.greeting.result()["ready"]
    if imported := ready.get("imported"):
        resources.warn(f"agent '{agent.name}': {imported}")
    summary = ready["agent"]
    if summary["one_at_a_time"]:
        programs.disable_reuse()  # separate processes keep conversations apart
    is_shared = keep and not summary["one_at_a_time"]

    def request_fields(sample: Sample) -> dict[str, Any]:
        is_kept = is_shared and not (sample.scenario.state and sample.scenario.state.expose)
        if is_kept and summary["warning"] and sample.scenario.has_several_turns:
            resources.warn(summary["warning"])
        return {"scenario_id": sample.key.scenario, "epoch": sample.key.epoch, "seed": sample.seed}

    if mcp_url() or variables:
        programs.release(first)  # its MCP address and its databases belong to no conversation
    else:
        programs.put_prestarted(first)
    agents = ProcessAgents(
        programs,
        reader=_WorkerAnswerReader(agent.name, resources.warn),
        timeout_s=agent.timeout_s,
        rate=resources.limits().rate(agent_rate(agent)),
        request_fields=request_fields,
    )
    agents.tools = parse_agent_tools(summary)
    agents.no_history = NoHistory(*summary["no_history"]) if summary["no_history"] else None
    agents.does = describe_plan(summary, interpreter=interpreter, intercepted=intercept or ())
    return agents


def _describe_failure(error: Exception) -> str:
    return f"cannot be started: {error.strerror}" if isinstance(error, OSError) else str(error)


def _find_interpreter(written: str, root: str, env: Mapping[str, str], place: Place | None) -> str:
    """Return the interpreter's path as specified. A virtual environment's symbolic link is not resolved."""
    path = find_program(written, root, env)
    if path is None:
        folder = Path(root, written)
        inside = next((each for each in _USUAL if os.path.isfile(folder / each)), "")
        remedy = f"use {written.rstrip('/')}/{inside}" if inside else f"paths are relative to {root}"
        if not os.path.dirname(written) and not inside:
            remedy = "use its path, such as ../app/.venv/bin/python"
        raise AuthorError(Problem(f"no such interpreter: '{written}'", remedy, place))
    if not is_executable(path):
        raise AuthorError(Problem(f"the interpreter '{written}' cannot be executed", "", place))
    return os.path.abspath(path)


class _WorkerRefusal(NamedTuple):
    what: str
    remedy: str
    is_of_interpreter: bool = False
    key: str = "target"


def _refusal(greeting: Mapping[str, Any], name: str, interpreter: str) -> _WorkerRefusal | None:
    """Return the reason why the worker cannot run the agent, or ``None`` if it can."""
    refused = greeting.get("refused")
    if not isinstance(refused, Mapping):
        what = f"agent '{name}': the interpreter '{interpreter}' is not Python"
        return (
            None if "ready" in greeting else _WorkerRefusal(what, "use the path of the agent's Python", True)
        )
    what, remedy = str(refused.get("what")), str(refused.get("remedy") or "")
    if refused.get("of") == "python":
        return _WorkerRefusal(
            f"agent '{name}': the interpreter '{interpreter}' is too old: {what}", remedy, True
        )
    if refused.get("of") == "agent":
        return _WorkerRefusal(what, remedy)
    if refused.get("of") == "intercept":
        return _WorkerRefusal(what, remedy, key=f"intercept.{refused.get('tool')}")
    known = [str(each) for each in refused.get("known") or ()]
    return _WorkerRefusal(f"agent '{name}'{what}", remedy or did_you_mean(str(refused.get("asked")), known))


class _WorkerAnswerReader:
    """Reads the answers of one sample's agent, including the agent's requests to its models."""

    def __init__(self, name: str, warn: Callable[[str], None]) -> None:
        self._observed = ObservedRequests(name, warn)

    def __call__(self, sample: Sample) -> AnswerParser:
        def read(answer: Mapping[str, Any]) -> ReadReply:
            exchanges = answer.get("exchanges") or ()
            known = KnownCalls(
                [RequestedCall(*each) for each in answer.get("asked") or ()],
                answer.get("met") or (),
                sample.scenario.tools_named,
                [RequestedCall(*each) for each in answer.get("made") or ()],
                bool(answer.get("is_met")),
                bool(answer.get("is_of_framework")),
            )
            try:
                reply = parse_worker_answer(answer)
            except AgentevalError as error:
                error.seen = self._observed.enrich_reply(error.seen, exchanges, known)
                raise
            return self._observed.enrich_reply(reply, exchanges, known) or reply

        return read


def parse_worker_answer(answer: Mapping[str, Any]) -> ReadReply:
    """Parse the worker's report of the target's return value, as if the target had been called in this
    process.

    Raise ``InfrastructureError`` if a call or request that may have been the agent's was not recorded."""
    missed = str(answer.get("missed") or "")
    try:
        reply = _returned(answer)
    except AgentError as error:
        if missed:
            raise InfrastructureError(missed, seen=error.seen, is_final=True) from error
        raise
    if missed:
        raise InfrastructureError(missed, seen=reply, is_final=True)
    return reply


def _returned(answer: Mapping[str, Any]) -> ReadReply:
    if "error" in answer and answer["error"].get("kind") == "author":
        raise AuthorError(str(answer["error"].get("message")))
    if "error" in answer:
        rest = {key: value for key, value in answer.items() if key != "error"}
        raise parse_program_error(answer["error"], seen=read_or_none(lambda: _returned(rest)))
    if isinstance(fields := answer.get("agent_reply"), Mapping):
        parts = {key: value for key, value in fields.items() if value is not None}
        return _with_evidence(parse_reply(AgentReply(**parts)), answer)
    if "too_large" in answer:
        raise AgentError(f"the agent's reply is {answer['too_large']}", kind="protocol")
    if "value" in answer:
        return _with_evidence(parse_reply(answer["value"]), answer)
    raise no_answer_error(answer.get("returned", "nothing"))


def _with_evidence(reply: ReadReply, answer: Mapping[str, Any]) -> ReadReply:
    asked = CallEvidence.ASKED if answer.get("list_asked") else None
    return replace(reply, evidence=reply.evidence or asked)
