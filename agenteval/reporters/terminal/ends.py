"""The last lines of a run that did not pass, above its verdict: what did not, in few words, and where."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from agenteval.core.decision import Decision, GateRow
from agenteval.core.plurals import plural
from agenteval.core.safe_text import one_line
from agenteval.core.score import Verdict
from agenteval.reporters.options import ReportOptions
from agenteval.reporters.terminal.cells import mark, unbroken
from agenteval.reporters.words.failure import Failure, decisive, run_gates
from agenteval.reporters.words.places import shown_place
from agenteval.reporters.words.repeat_command import quoted
from agenteval.verdict.report import Report

MOST = 20
_REASON, _LEAST_REASON = 160, 40


def failure_list(report: Report, decision: Decision, options: ReportOptions) -> Iterator[RenderableType]:
    """A line for each scenario that decided, failed ones first, and for each rule over the whole run. An id
    stands as a shell takes it, to be given to ``-s``."""
    if decision.verdict is Verdict.PASSED and not decision.author_errors:
        return
    lines = [_of_gate(gate, options) for gate in run_gates(decision)]
    lines += [_of_scenario(group, options) for group in decisive(report, decision)]
    yield from lines[:MOST]
    if len(lines) > MOST:
        yield Text(f"… and {len(lines) - MOST:,} more")


def _of_gate(gate: GateRow, options: ReportOptions) -> Text:
    reason = f"{gate.value}, bound {gate.bound}"
    return _line(gate.verdict, one_line(gate.name, 80), reason, gate.where, options)


def _of_scenario(group: Sequence[Failure], options: ReportOptions) -> Text:
    first = group[0]
    name = quoted(first.scenario)
    if first.several_agents:
        name += f" · {one_line(first.agent, 60)}"
    planned = len(first.of.samples) + len(first.of.missing)
    many = sum(each.key is not None for each in group)
    of = f" ({many} of {plural(planned, 'conversation')})" if planned > 1 and many else ""
    return _line(first.verdict, name, first.reasons[0], first.where, options, of)


def _line(verdict: Verdict, name: str, reason: str, where: str, options: ReportOptions, of: str = "") -> Text:
    place = shown_place(where, options.root)
    room = options.width - len(name) - len(place) - len(of) - 6
    said = one_line(reason, max(_LEAST_REASON, min(_REASON, room)))
    line = unbroken("").append_text(mark(verdict)).append(f" {name}  {said}{of}")
    return line.append(f"  {place}" if place else "", style="dim")
