"""The last lines of the screen: what did not pass, in few words, to be pasted back; what to do next; and the
verdict, as the very last one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from rich.cells import cell_len
from rich.console import RenderableType
from rich.text import Text

from agenteval.core.decision import REPORTED, Decision, GateRow
from agenteval.core.errors import REMEDY
from agenteval.core.plurals import plural
from agenteval.core.safe_text import one_line
from agenteval.core.score import Verdict
from agenteval.reporters.options import ReportOptions
from agenteval.reporters.sections.gates import figures
from agenteval.reporters.terminal.blocks import IN_FULL
from agenteval.reporters.terminal.cells import cut, style_of, unbroken, whole
from agenteval.reporters.words.failure import (
    Failure,
    advised_lines,
    decisive,
    gist,
    never_ran_text,
    run_gates,
    scenario_decision,
    split_advice,
)
from agenteval.reporters.words.next_commands import DETAILS, next_commands
from agenteval.reporters.words.places import shown_place
from agenteval.reporters.words.rows import count_text, folded_failures, rows_of, written
from agenteval.reporters.words.selection import selectors
from agenteval.reporters.words.verdict import AUTHOR_ERROR, INCOMPLETE, verdict_line
from agenteval.verdict.report import Report
from agenteval.verdict.run_gates import replaces_every_sample

MOST = 1000
"""Far more than anybody reads: of a suite of tens of thousands that all failed, the first ones."""
_LEAST_REASON = 30
_INDENT = 7


def failure_list(report: Report, decision: Decision, options: ReportOptions) -> Iterator[RenderableType]:
    """A line for each scenario that decided, failed ones first, and for each rule over the whole run. What
    stands there of a scenario is what ``run`` takes; of many rows it is the first that ended so."""
    if decision.verdict is Verdict.PASSED and not decision.author_errors:
        return
    names = selectors(report)
    gates = run_gates(decision)
    decided = decisive(report, decision)
    together = folded_failures(group for group in decided if not group[0].never_ran)
    rows = rows_of(report.scenarios)
    blocks = [] if options.quiet else together[:IN_FULL]  # in which it stands already
    remedies = {_remedy(group[0]) for group, *_ in blocks}
    for gate in gates:
        yield from _of_gate(gate, options)
    for first, *others in together[: MOST - len(gates)]:
        verdict = scenario_decision(decision, first[0].of).verdict
        if decision.is_reported:  # its conversations decide nothing, its own rules do
            verdict = first[0].verdict
        count = count_text((first, *others), rows[written(first[0].of)])
        listed = _Listed(verdict, names[first[0].scenario], count)
        yield from _of_scenario(first, listed, report, options, remedies)
    if (more := len(gates) + len(together) - MOST) > 0:
        yield Text(f"… and {more:,} more")
    if told := never_ran_text(decided):
        word = Verdict.INCONCLUSIVE
        line = Text(word.upper(), style=f"bold {style_of(word)}", no_wrap=True)
        yield line.append(" ").append_text(cut(told, options.width - line.cell_len, "not bold default"))


def _of_gate(gate: GateRow, options: ReportOptions) -> Iterator[Text]:
    value, bound = figures(gate)
    place = shown_place(gate.where, options.root)
    reason = f"{value}, bound {bound}" + (f", {place}" if place else "")
    yield from _line(gate.verdict, one_line(gate.name, 80), (reason, ""), options)
    # What it is based on says as well what would decide it.
    yield from _below(whole(gate.basis, options.width - _INDENT))


class _Listed(NamedTuple):
    """``name``: what ``run`` takes; ``rows``: how many of a scenario are meant, in words."""

    verdict: Verdict
    name: str
    rows: str


def _of_scenario(
    group: Sequence[Failure],
    listed: _Listed,
    report: Report,
    options: ReportOptions,
    remedies: set[str],
) -> Iterator[Text]:
    first, name = _deciding(group, report), listed.name
    if first.several_agents:
        name += f" · {one_line(first.agent, 60)}"
    planned = len(first.of.samples) + len(first.of.missing)
    many = sum(each.key is not None and each.verdict is first.verdict for each in group)
    of = f"{many} of {plural(planned, 'conversation')}: " if planned > 1 and many else ""
    rows = f"{listed.rows}; " if listed.rows else ""
    what, _ = split_advice(first.violations[0], rows + of + gist(first.violations[0]))
    remedy = _remedy(first)
    yield from _line(listed.verdict, name, (what, remedy), options, is_new=remedy not in remedies)
    remedies.add(remedy)


def _remedy(failure: Failure) -> str:
    return next((remedy for _, remedy in advised_lines(failure.violations[0]) if remedy), "")


def _deciding(group: Sequence[Failure], report: Report) -> Failure:
    """Of a gate over repeated runs its own row; else what happened in a conversation says most."""
    if replaces_every_sample(report.plan.suite.gates):
        return group[0]
    own = (each for each in group if each.key is not None and each.verdict is group[0].verdict)
    return next(own, group[0])


def _line(
    verdict: Verdict, name: str, said: tuple[str, str], options: ReportOptions, *, is_new: bool = True
) -> Iterator[Text]:
    """The reason beside the name, or below it where there is no room; what to do about it in whole where
    that has no room either, if it does not stand in the list already."""
    line = unbroken("").append(verdict.upper(), style=f"bold {style_of(verdict)}").append(f" {name}")
    what, remedy = said
    sentence = REMEDY.join(filter(None, said))
    room, below = options.width - line.cell_len - 2, options.width - _INDENT
    shown = sentence if "\n" not in remedy and cell_len(sentence) <= max(room, below) else what
    if cell_len(shown) <= room or (shown == what and room >= min(_LEAST_REASON, len(what))):
        yield line.append("  ").append_text(cut(shown, room))
    else:
        yield line
        yield from _below([cut(shown, below)])
    if shown != sentence and is_new:
        yield from _below(whole(f"— {remedy}", below))


def _below(lines: Iterable[Text]) -> Iterator[Text]:
    return (unbroken(" " * _INDENT).append_text(line) for line in lines)


def ending(report: Report, decision: Decision, options: ReportOptions) -> Iterator[RenderableType]:
    """What to do next, and the verdict."""
    told = [] if options.quiet else list(next_commands(report, decision, options.run))
    if options.verbose:
        told = [(label, command) for label, command in told if label != DETAILS]
    line = "     ".join(f"{label}: {command}" for label, command in told)
    if len(line) <= options.width:
        yield from [unbroken(line)] if line else []
    else:
        yield from (unbroken(f"{label}: {command}") for label, command in told)
    yield last_line(report, decision)


def last_line(report: Report, decision: Decision) -> Text:
    """The verdict, how many scenarios ended how, the exit code, and what did not gate."""
    word, rest = verdict_line(report, decision)
    style = _WORD_STYLES.get(word) or style_of(decision.verdict)
    line = Text(f"{word}: ", style=f"bold {style}")
    line.append(rest, style="not bold default")
    line.no_wrap, line.overflow = True, "ignore"
    return line


_WORD_STYLES = {INCOMPLETE: style_of(Verdict.INCONCLUSIVE), AUTHOR_ERROR: "red", REPORTED.upper(): "default"}
