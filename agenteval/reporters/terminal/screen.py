"""Render the report for a person at a terminal: an overview, the failures and their causes, and the most
important lines at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from io import StringIO
from typing import TypeAlias

from rich.console import Console, RenderableType
from rich.text import Text

from agenteval.core.decision import Decision
from agenteval.core.safe_text import neutralize_workflow_commands
from agenteval.reporters.options import ReportOptions
from agenteval.reporters.sections import accepted, agents, issues, scenarios
from agenteval.reporters.sections.faults import faults
from agenteval.reporters.sections.message_variants import message_variants
from agenteval.reporters.sections.section import Section
from agenteval.reporters.terminal.closing_lines import ending, failure_list
from agenteval.reporters.terminal.failure_blocks import failure_blocks
from agenteval.reporters.terminal.failure_rates import failures_by_rate
from agenteval.reporters.terminal.failures import failure_section, transcripts
from agenteval.reporters.terminal.gates import gates
from agenteval.reporters.terminal.issues import issue_lines
from agenteval.reporters.terminal.overview import dimensions, files, head, passing_margins
from agenteval.reporters.terminal.remarks import accept_list, author_errors, notes, remarks
from agenteval.reporters.terminal.scores import score_table
from agenteval.reporters.terminal.sections import render_section
from agenteval.reporters.terminal.tables import dimension_tables
from agenteval.reporters.words.facts import Facts
from agenteval.verdict.report import Report

Part: TypeAlias = Callable[[Facts, ReportOptions], Iterator[RenderableType]]
"""A function that yields a part of the report, or nothing if there is nothing to show."""


def _part(sections: Callable[[Facts], Iterator[Section]]) -> Part:
    def part(facts: Facts, options: ReportOptions) -> Iterator[RenderableType]:
        for section in sections(facts):
            yield from render_section(section, options)

    return part


def _variant_tables(facts: Facts, options: ReportOptions) -> Iterator[RenderableType]:
    for section in (*faults(facts), *message_variants(facts)):
        yield Text()
        yield from render_section(section, options)


# What matters most comes last, because a terminal and the log of a CI job show the end of a text.
QUIET: tuple[Part, ...] = (author_errors, failure_list, ending)
USUAL: tuple[Part, ...] = (
    head,
    files,
    dimensions,
    passing_margins,
    _part(agents.sections),
    _variant_tables,
    failure_blocks,
    issue_lines,
    failures_by_rate,
    remarks,
    author_errors,
    failure_list,
    ending,
)
VERBOSE: tuple[Part, ...] = (
    head,
    files,
    failure_section,
    failures_by_rate,
    dimension_tables,
    score_table,
    _part(scenarios.dimensions),
    _part(agents.sections),
    _variant_tables,
    transcripts,
    _part(issues.issues),
    _part(issues.failures_outside_agent),
    _part(accepted.sections),
    accept_list,
    gates,
    notes,
    failure_list,
    ending,
)

_MIN_WIDTH = 20
_ANY_HEIGHT = 25


def render(report: Report, decision: Decision, options: ReportOptions) -> str:
    """Render the complete report for a terminal as text that ends with a newline. Colors are used only if
    ``options.color`` is true."""
    parts = QUIET if options.quiet else VERBOSE if options.verbose else USUAL
    facts = Facts(report, decision)
    return render_parts((each for part in parts for each in part(facts, options)), options)


def render_parts(parts: Iterable[RenderableType], options: ReportOptions) -> str:
    """Render the parts one below another, fitted to ``options.width``. The output is safe to print to the log
    of a CI job."""
    out = StringIO()
    console = _console(out, options)
    for part in parts:
        _print(console, part)
    text = "\n".join(line.rstrip() for line in out.getvalue().split("\n"))
    # CI systems interpret certain lines of a log as commands. Colour codes prevent that, and would be
    # damaged by the escaping.
    return text if options.color else neutralize_workflow_commands(text)


def _print(console: Console, part: RenderableType) -> None:
    # Rich ignores the wrapping of a text unless print() gets it too.
    text = part if isinstance(part, Text) else Text()
    console.print(part, crop=False, no_wrap=text.no_wrap, overflow=text.overflow)


def _console(out: StringIO, options: ReportOptions) -> Console:
    """Create a console that depends only on the options, not on the environment."""
    return Console(
        file=out,
        width=max(_MIN_WIDTH, options.width),
        height=_ANY_HEIGHT,  # without it, rich reads the width from the environment as well
        force_terminal=options.color,
        color_system="standard" if options.color else None,
        no_color=not options.color,
        legacy_windows=False,
        force_jupyter=False,
        markup=False,
        highlight=False,
        emoji=False,
    )
