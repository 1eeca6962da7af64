"""Implements ``agenteval run`` (the run command): runs the test suite, writes the journal and the reports,
and returns the exit code."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import nullcontext, redirect_stdout
from pathlib import Path

from agenteval.cli.commands.output import refuse_overwriting_inputs, resolve_targets, write_reports
from agenteval.cli.commands.resume import resume
from agenteval.cli.progress import TerminalObserver
from agenteval.conversation.exits import EXIT_UNDECIDED
from agenteval.core.config import ReporterChoice
from agenteval.planning.request import Request
from agenteval.planning.run_files import list_input_files
from agenteval.planning.run_preparation import prepare
from agenteval.reporters.options import Detail
from agenteval.running.interrupt import finish_on_interrupt
from agenteval.running.live_run import plan_start, play
from agenteval.running.registries import REGISTRIES


def run(
    request: Request,
    *,
    reports: Sequence[ReporterChoice] = (),
    detail: Detail = "usual",
    opens: bool = False,
    record_tools: Path | None = None,
) -> int:
    """Run scenarios against the agent and return the exit code. If ``opens`` is True, the HTML report is
    opened in a browser. ``record_tools`` is the file for the answers of the agent's own tools. Output
    printed by the author's code is redirected to stderr, because stdout is reserved for results."""
    if request.resume is not None:
        return resume(request, reports=reports, detail=detail, opens=opens, record_tools=record_tools)
    observer = TerminalObserver()
    with redirect_stdout(sys.stderr):
        prepared = prepare(request, REGISTRIES)
        config = prepared.suite.settings.config
        tools_file = None
        if record_tools:
            from agenteval.cli.commands.record_tools import ToolRecordingFile

            agent_tools = prepared.wired.resources.agent_tools
            tools_file = ToolRecordingFile(record_tools, config, prepared.plan.agents, agent_tools)
        # The modules of reporters do not affect the results, so they are loaded after the start of the run
        # is planned: a change in them does not prevent a resume.
        started = plan_start(prepared, observer)
        targets = resolve_targets(config, reports)
        inputs = list_input_files(config, prepared.wired.scenarios, cwd=request.cwd)
        refuse_overwriting_inputs(targets, inputs)
        if tools_file:
            tools_file.refuse_reports(targets)
        if profile := prepared.plan.suite.profile:
            observer.show_line(f"profile {profile}")
    with finish_on_interrupt():
        with redirect_stdout(sys.stderr), tools_file.written_at_end() if tools_file else nullcontext():
            also = (tools_file.recorder,) if tools_file else ()
            played = play(prepared, started, observer, also=also)
        code = write_reports(
            played.report, played.decision, targets, folder=played.folder, detail=detail, opens=opens
        )
        return code or (EXIT_UNDECIDED if tools_file and tools_file.has_failed else 0)
