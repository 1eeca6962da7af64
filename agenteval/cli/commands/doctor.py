"""Implements ``agenteval doctor`` (health check): makes one real call to each model and agent, and reports
whether everything that a run needs is working."""

from __future__ import annotations

import os
import platform
import re
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

import anyio
from pydantic import BaseModel

from agenteval import __version__
from agenteval.adapters.agents.http import HttpOptions
from agenteval.cli.safe_output import print_out
from agenteval.core import selection, tokens
from agenteval.core.config import AgentConfig, Config, ModelConfig
from agenteval.core.errors import AgentError, AgentevalError, AuthorError, InfrastructureError
from agenteval.core.plan import ROLES
from agenteval.core.protocols import AgentFactory, AgentReply, ModelRequest, TurnTools, finish
from agenteval.core.safe_text import one_line, one_line_message
from agenteval.core.scenario import Sample, SampleKey, Scenario
from agenteval.core.selection import Filters
from agenteval.core.trajectory import ToolResult, Turn
from agenteval.files import config_file, prompts
from agenteval.files.redaction import register_secrets
from agenteval.messages import agent_messages as observed
from agenteval.messages import chat
from agenteval.messages.reported_usage import read_usage, unread_usage, usage_in
from agenteval.planning import judge_setup, wiring
from agenteval.running.registries import REGISTRIES

_WAIT_S = 2.0  # for retries: a diagnosis should not take minutes
_GREETING = "Hello"
_TOOL = {
    "type": "function",
    "function": {
        "name": "look_up_nothing",
        "description": "Does nothing. There is no need to call it.",
        "parameters": {"type": "object", "properties": {}},
    },
}
_REFUSED = re.compile(r"HTTP status (400|422)\b")
_SYSTEM = "You are asked one small question, to find out whether you can be reached."
_PROMPT = "Which number is one more than three?"


class _Answer(BaseModel):
    """The answer that models are asked for. Like any judge's answer, it consists of text followed by a
    value."""

    reason: str
    answer: int


class DoctorState(StrEnum):
    """The status of one check."""

    OK = "ok"
    NOTE = "note"
    FAULT = "FAIL"
    """A server does not answer."""
    MISTAKE = "fail"
    """The author made a mistake, so no call is made."""


class DoctorRow(NamedTuple):
    """One line in the table of checks."""

    what: str
    state: DoctorState
    found: str
    remedy: str = ""
    """The suggested remedy, or an empty string if it is unnecessary or obvious."""


@dataclass(frozen=True)
class DoctorRequest:
    config: str | None = None
    agent: str | None = None
    flags: Mapping[str, Any] | None = None
    asks_agents: bool = True
    fetches_vocabulary: bool = False


def doctor(request: DoctorRequest) -> int:
    """Run all checks and print the table. Return exit code 0 if everything works, 2 if the configuration is
    wrong, and 3 if a server does not answer."""
    with redirect_stdout(sys.stderr):  # the author's code may print
        path = Path(request.config) if request.config else config_file.find_config(Path.cwd())
        loaded = config_file.load_config(path, REGISTRIES, environ=os.environ, flags=request.flags or {})
        rows = [
            *_setup_rows(loaded.config),
            _tokens_row(request),
            *anyio.run(_call_rows, loaded.config, loaded.secrets, request),
        ]
    register_secrets(wiring.all_secrets(loaded.config, loaded.secrets))
    print_out("\n".join(_table(rows)))
    states = {row.state for row in rows}
    return 2 if DoctorState.MISTAKE in states else 3 if DoctorState.FAULT in states else 0


def _table(rows: Iterable[DoctorRow]) -> Iterator[str]:
    rows = list(rows)
    width = max(len(row.what) for row in rows)
    yield f"agenteval {__version__}, Python {platform.python_version()}, {platform.system()}"
    for row in rows:
        state = "FAIL" if row.state is DoctorState.MISTAKE else str(row.state)
        yield f"  {state:4}  {row.what:{width}}  {one_line_message(row.found, 600)}"
        if row.remedy:
            yield f"  {'':4}  {'':{width}}  → {one_line(row.remedy, len(row.remedy))}"


# ── what needs no call ───────────────────────────────────────────────────────────────────────────


def _setup_rows(config: Config) -> Iterator[DoctorRow]:
    if config.source:
        yield DoctorRow("configuration", DoctorState.OK, config.source)
    else:
        yield DoctorRow(
            "configuration", DoctorState.NOTE, "no file found; defaults are used", "create agenteval.yaml"
        )
    yield _prompts_row(config)


def _tokens_row(request: DoctorRequest) -> DoctorRow:
    what = "tokens"
    if request.fetches_vocabulary and not tokens.is_vocabulary_available():
        from agenteval.adapters.transport.vocabulary import fetch_vocabulary

        try:
            where = anyio.run(fetch_vocabulary)
        except AuthorError as error:
            return _failure_row(what, error)
        except InfrastructureError as error:
            remedy = f"download {tokens.VOCABULARY} manually to {tokens.vocabulary_path()}"
            return DoctorRow(
                what, DoctorState.FAULT, f"{error}; token counts are estimates until then", remedy
            )
        return DoctorRow(
            what, DoctorState.OK, f"counted with tiktoken: its vocabulary was downloaded to {where}"
        )
    if tokens.is_vocabulary_available():
        return DoctorRow(what, DoctorState.OK, "counted with tiktoken if a server does not report them")
    found = "estimated if a server does not report them, because tiktoken's vocabulary is missing"
    return DoctorRow(
        what,
        DoctorState.NOTE,
        found,
        "run `agenteval doctor --fetch-vocabulary`, unless estimates are good enough",
    )


def _prompts_row(config: Config) -> DoctorRow:
    names = (*prompts.BUILT_IN_METRICS, prompts.CRITERIA)
    try:
        hashes = prompts.SHIPPED_PROMPTS.hashes(map(prompts.SHIPPED_PROMPTS.rubric, names))
    except AuthorError as error:
        return DoctorRow("prompts", DoctorState.MISTAKE, str(error), "reinstall agenteval")
    try:
        overridden = judge_setup.load_project_prompts(config).overridden
    except AuthorError as error:
        return DoctorRow("prompts", DoctorState.MISTAKE, str(error))
    summary = f"all {len(hashes)} are complete"
    return DoctorRow(
        "prompts",
        DoctorState.OK,
        f"{summary}; overridden: {', '.join(overridden)}" if overridden else summary,
    )


# ── calls ────────────────────────────────────────────────────────────────────────────────────────


async def _call_rows(config: Config, secrets: tuple[str, ...], request: DoctorRequest) -> list[DoctorRow]:
    agents = selection.agents_of(config, Filters(agent=request.agent))
    agents = {name: agent for name, agent in agents.items() if request.agent in (None, name)}
    rows = [await _agent_row(agent, config, secrets, request) for agent in agents.values()]
    if not agents:
        remedy = "set `agent: {target: …}` or `agent: {endpoint: …}`"
        rows.append(DoctorRow("agent", DoctorState.NOTE, "none is configured", remedy))
    models = _models_with_roles(config)
    rows += [await _model_row(chosen, roles, Path(config.root)) for chosen, roles in models]
    if not models:
        remedy = "set `models.default` for judges and simulated users; code checks need no model"
        rows.append(DoctorRow("models", DoctorState.NOTE, "none is configured", remedy))
    return rows


def _models_with_roles(config: Config) -> list[tuple[ModelConfig, list[str]]]:
    """Return the distinct models, each with its roles."""
    found: list[tuple[ModelConfig, list[str]]] = []
    for role in ROLES:
        chosen = config.models.model_for(role)
        roles = next((roles for other, roles in found if other == chosen), None)
        if roles is not None:
            roles.append(role)
        elif chosen:
            found.append((chosen, [role]))
    return found


def _failure_row(what: str, error: AgentevalError) -> DoctorRow:
    text, _, remedy = str(error).rpartition(" — ")
    state = DoctorState.MISTAKE if isinstance(error, AuthorError) else DoctorState.FAULT
    return DoctorRow(what, state, text or remedy, remedy if text else "")


# ── agents ───────────────────────────────────────────────────────────────────────────────────────


async def _agent_row(
    agent: AgentConfig, config: Config, secrets: tuple[str, ...], request: DoctorRequest
) -> DoctorRow:
    what = f"agent {agent.name}"
    if not request.asks_agents:
        return DoctorRow(what, DoctorState.NOTE, "not called (--no-agent)")
    http = HttpOptions.model_validate(agent.adapter_options) if agent.kind == "http" else None
    if http:
        agent = agent.model_copy(update={"max_wait_s": min(http.max_wait_s, _WAIT_S)})
    resources = wiring.Resources(config, secrets)
    probe = _AgentProbe(agent, http)
    try:
        return await probe.row(what, wiring.make_agent_factory(agent, resources))
    except AgentevalError as error:
        return _failure_row(what, error)
    finally:
        await resources.aclose()


class _AgentProbe:
    """A test conversation with an agent, consisting of a single message."""

    def __init__(self, agent: AgentConfig, http: HttpOptions | None) -> None:
        self._agent = agent
        self._http = http
        self._called: list[str] = []

    async def row(self, what: str, factory: AgentFactory) -> DoctorRow:
        try:
            offers_tools = bool(self._http and self._http.offers_tools)
            try:
                return self._describe_reply(
                    what, await self._ask(factory, with_tools=offers_tools), offers_tools
                )
            except AgentError as error:
                if not (offers_tools and _REFUSED.search(str(error))):
                    raise
                return await self._without_tools(what, factory, error)
        finally:
            await factory.aclose()

    async def _without_tools(self, what: str, factory: AgentFactory, error: AgentError) -> DoctorRow:
        """Repeat the request without tools. An agent may reject tools, which is acceptable if the scenarios
        do not declare any."""
        try:
            reply = await self._ask(factory, with_tools=False)
        except AgentError:
            raise error from None
        row = self._describe_reply(what, reply, offers_tools=False)
        remedy = "set `send_tools: false`, unless scenarios declare tools with `parameters`"
        return row._replace(
            state=DoctorState.NOTE, found=f"{row.found}; rejects `tools`: {error}", remedy=remedy
        )

    async def _ask(self, factory: AgentFactory, *, with_tools: bool) -> AgentReply:
        scenario = Scenario(id="doctor", name="doctor", turns=(_GREETING,))
        sample = Sample(key=SampleKey(scenario="doctor", agent=self._agent.name), scenario=scenario)
        tools = TurnTools(turn=0, schemas=(_TOOL,) if with_tools else (), call=self._call)
        agent = factory.make(sample)
        reply = await agent.reply([{"role": "user", "content": _GREETING}], tools)
        await finish(agent)
        return reply

    async def _call(self, name: str, args: Any, batch: int) -> ToolResult:
        self._called.append(name)
        return ToolResult(value={"error": "this is agenteval doctor: there are no tools"}, is_error=True)

    def _describe_reply(self, what: str, reply: AgentReply, offers_tools: bool) -> DoctorRow:
        steps = observed.read_turn(reply.messages, (Turn(user=_GREETING),)).steps
        calls = [*self._called, *(call.name for step in steps for call in step.tool_calls)]
        calls += [chat.read_tool_call(call).name for call in reply.tool_calls]
        parts = [f"answered in {reply.latency_ms or 0:.0f} ms"]
        parts.append(_describe_usage(reply))
        if calls:
            parts.append(f"calls tools ({', '.join(dict.fromkeys(calls))})")
        elif offers_tools:
            parts.append("accepts tools")
        if self._http:
            parts.append("streamed" if self._http.streaming else "not streamed (`streaming` is off)")
        is_empty = not (reply.text or calls or any(step.text for step in steps))
        if is_empty:
            parts.insert(0, "the answer is empty")
            return DoctorRow(what, DoctorState.NOTE, "; ".join(parts), f"the message was: {_GREETING}")
        return DoctorRow(what, DoctorState.OK, "; ".join(parts))


def _describe_usage(reply: AgentReply) -> str:
    reported = [reply.usage, *map(usage_in, reply.messages)]
    if any(map(read_usage, reported)):
        return "usage reported"
    how = "unreadable" if any(map(unread_usage, reported)) else "not reported"
    return f"usage {how}, tokens are estimates"


# ── models ───────────────────────────────────────────────────────────────────────────────────────


async def _model_row(chosen: ModelConfig, roles: list[str], root: Path) -> DoctorRow:
    what = f"model {', '.join(roles)}"
    try:
        return await _call_model(what, chosen, root)
    except (AuthorError, InfrastructureError) as error:
        return _failure_row(what, error)


async def _call_model(what: str, chosen: ModelConfig, root: Path) -> DoctorRow:
    from agenteval.adapters.models import ModelResources, make_model
    from agenteval.adapters.models.capabilities import Capabilities
    from agenteval.adapters.models.pool import ModelPool

    capabilities, notices = Capabilities(), list[str]()
    model = make_model(
        chosen.model_copy(update={"max_wait_s": min(chosen.max_wait_s, _WAIT_S)}),
        role="judge",
        shared=ModelResources(ModelPool(1), capabilities, notices.append),
        environ=os.environ,
        root=root,
    )
    try:
        if chosen.provider == "scripted":
            return DoctorRow(what, DoctorState.OK, f"{chosen.model}: fixed replies; no model is called")
        began = time.perf_counter()
        reply = await model.complete(ModelRequest("judge", _SYSTEM, _PROMPT, _Answer))
        took_ms = (time.perf_counter() - began) * 1000
    finally:
        await model.aclose()
    form = next((each.format_level for each in capabilities.discovered.values()), "json_schema")
    parts = [f"{chosen.model}: answered in {took_ms:.0f} ms", f"response format {form}"]
    parts.append("usage not reported, tokens are estimates" if reply.usage.estimated else "usage reported")
    if reply.usage.calls > 1:
        parts.append(f"{reply.usage.calls} attempts until an answer was valid")
    notes = [note.rpartition(": ")[2] for note in notices]
    return DoctorRow(what, DoctorState.OK, "; ".join([*parts, *notes]))
