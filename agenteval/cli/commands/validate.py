"""``agenteval validate``: load and check everything, call nothing."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout

import anyio

from agenteval.cli.commands.output import say
from agenteval.cli.commands.prepare import Prepared, Request, prepare
from agenteval.cli.preflight import unmocked_tools, without_twin
from agenteval.core.plurals import plural
from agenteval.files.redact import hide
from agenteval.verdict.gate_chances import chances_asked_for, sentences


def validate(request: Request) -> int:
    with redirect_stdout(sys.stderr):
        prepared = prepare(request)
        anyio.run(_close, prepared)
        for text in (*prepared.remarks, *without_twin(prepared.suite)):
            say(f"warning: {text}")
    files = {scenario.source.rpartition(":")[0] for scenario in prepared.scenarios}
    sys.stdout.write(
        f"valid: {plural(len(prepared.scenarios), 'scenario')} in {plural(len(files), 'file')},"
        f" {plural(len(prepared.samples), 'sample')} to run\n"
    )
    have = prepared.resources.agents_have
    unmocked = dict(unmocked_tools(prepared.samples, have, prepared.plan.unmocked_tools))
    for name, does in prepared.resources.agents_do.items():
        if does:
            more = f"; {unmocked[name]}" if name in unmocked else ""
            sys.stdout.write(hide(f"  {name}: {does}{more}\n"))
    for sentence in sentences(chances_asked_for(prepared.plan)):
        sys.stdout.write(hide(f"  {sentence}\n"))
    return 0


async def _close(prepared: Prepared) -> None:
    """The agents that were started to see whether they can be."""
    for agents in prepared.runtime.agents.values():
        await agents.aclose()
