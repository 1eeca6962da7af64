"""Implements ``agenteval validate`` (the validate command): loads and checks everything without calling any
model or agent."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import redirect_stdout

from agenteval.cli.commands.output import load_reporters
from agenteval.cli.safe_output import print_err, print_out
from agenteval.core.errors import AuthorError, Problem
from agenteval.core.plurals import plural
from agenteval.core.protocols import AgentFactory, AgentTool
from agenteval.planning.preflight import (
    attackers_without_outcome,
    empty_lists,
    impossible_expectations,
    missing_twins,
    unmocked_tools,
)
from agenteval.planning.request import Request
from agenteval.planning.run_preparation import PreparedRun, prepare
from agenteval.planning.wiring import make_agent_factory
from agenteval.reporters.words.call_visibility import describe_known_visibility
from agenteval.running.registries import REGISTRIES
from agenteval.verdict.gate_error_rates import configured_gate_error_rates, describe_error_rates


def validate(request: Request) -> int:
    with redirect_stdout(sys.stderr):
        prepared = prepare(request, REGISTRIES)
        unused = tuple(_make_unused_agents(prepared))
        asyncio.run(close_agents((*prepared.wired.runtime.agents.values(), *unused)))
        load_reporters(prepared.suite.settings.config)
        suite, scenarios, samples = prepared.suite.scenarios, prepared.wired.scenarios, prepared.wired.samples
        goals = (*missing_twins(suite), *attackers_without_outcome(suite))
        agent_tools, unmocked_are = prepared.wired.resources.agent_tools, prepared.plan.suite.unmocked_tools
        impossible = impossible_expectations(samples, agent_tools, unmocked_are)
        warnings = (*prepared.remarks, *prepared.wired.resources.take_warnings())
        for text in (*warnings, *empty_lists(scenarios), *impossible, *goals):
            print_err(f"warning: {text}")
    files = {scenario.source.rpartition(":")[0] for scenario in scenarios}
    lines = [
        f"valid: {plural(len(scenarios), 'scenario')} in {plural(len(files), 'file')},"
        f" {plural(len(samples), 'sample')} to run"
    ]
    unmocked = dict(unmocked_tools(samples, agent_tools, unmocked_are))
    for name, does in prepared.wired.resources.agent_descriptions.items():
        if does:
            more = f"; {unmocked[name]}" if name in unmocked else ""
            known, lists_tools = prepared.plan.known_visibility(name), _lists_tools(agent_tools.get(name))
            more += f"; {describe_known_visibility(known, lists_tools=lists_tools)}"
            lines.append(f"  {name}: {does}{more}")
    lines += [
        f"  {sentence}" for sentence in describe_error_rates(configured_gate_error_rates(prepared.plan))
    ]
    print_out("\n".join(lines))
    return 0


def _lists_tools(tools: Sequence[AgentTool] | None) -> bool:
    """Check whether the complete list of an agent's tools is known."""
    return tools is not None and all(tool.name for tool in tools)


def _make_unused_agents(prepared: PreparedRun) -> Iterator[AgentFactory]:
    """Create the configured agents that no sample uses, to check that they can be created. Raise
    ``AuthorError`` if an agent cannot be created."""
    problems: list[Problem] = []
    for agent in prepared.suite.settings.config.all_agents:
        if agent.name in prepared.wired.runtime.agents:
            continue
        try:
            yield make_agent_factory(agent, prepared.wired.resources)
        except AuthorError as error:
            problems += error.problems
    if problems:
        raise AuthorError(*problems)


async def close_agents(started: Iterable[AgentFactory]) -> None:
    """Close agents that were created only for validation."""
    for agents in started:
        await agents.aclose()
