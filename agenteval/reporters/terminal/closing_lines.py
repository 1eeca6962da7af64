"""Show the last lines of the screen: one short, copyable line for each failure, then the suggested next
commands, and finally the verdict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from rich.cells import cell_len
from rich.console import RenderableType
from rich.text import Text

from agenteval.core.decision import REPORTED, GateRow
from agenteval.core.errors import REMEDY
from agenteval.core.plurals import plural
from agenteval.core.safe_text import one_line
from agenteval.core.score import Verdict
from agenteval.files.runs import short_run_id
from agenteval.reporters.options import ReportOptions
from agenteval.reporters.sections.gates import format_figures
from agenteval.reporters.terminal.cells import style_of, truncate, unbroken, wrap_fully
from agenteval.reporters.terminal.failure_blocks import MOST_BLOCKS
from agenteval.reporters.words.facts import Facts
from agenteval.reporters.words.failure import (
    ReportedFailure,
    never_ran_text,
    run_gates,
    scenario_decision,
    split_violation_remedy,
)
from agenteval.reporters.words.places import shown_place
from agenteval.reporters.words.rerun_commands import command_of, rerun_failures_command
from agenteval.reporters.words.row_groups import RowGroup
from agenteval.reporters.words.selection import is_recorded, selectors, show_command
from agenteval.reporters.words.verdict import AUTHOR_ERROR, INCOMPLETE, NOT_DECIDED, verdict_line
from agenteval.verdict.report import Report
from agenteval.verdict.run_gates import replaces_every_sample

MOST = 1000
"""The maximum number of lines. Nobody is expected to read this many."""
_LEAST_REASON = 30
_DETAILS = "Details"
_NOT_ITS_FAULT = ("infrastructure", "judge", "simulator")
_INDENT = 7


def failure_list(facts: Facts, options: ReportOptions) -> Iterator[RenderableType]:
    """Yield a line for each decisive scenario and for each gate on the whole run. Failed scenarios come
    before undecided scenarios. Each scenario is identified by the argument that selects it in ``run``. If
    several data rows had the same outcome, the first of these rows represents all of them."""
    decision = facts.decision
    if decision.verdict is Verdict.PASSED and not decision.author_errors:
        return
    gates = run_gates(decision)
    together = facts.decisive_rows
    blocks = [] if options.quiet else together[:MOST_BLOCKS]  # these show the remedy already
    remedies = {group.rows[0][0].rules[0].remedy for group in blocks}
    for gate in gates:
        yield from _gate_lines(gate, options)
    names = selectors(facts.report)
    for group in together[: MOST - len(gates)]:
        entry = _to_entry(group, names, facts)
        yield from _entry_lines(entry, options, is_new=entry.remedy not in remedies)
        remedies.add(entry.remedy)
    if (more := len(gates) + len(together) - MOST) > 0:
        yield Text(f"… and {more:,} more")
    if never_ran := never_ran_text(facts.decisive):
        word = Verdict.INCONCLUSIVE
        line = Text(word.upper(), style=f"bold {style_of(word)}", no_wrap=True)
        yield line.append(" ").append_text(
            truncate(never_ran, options.width - line.cell_len, "not bold default")
        )


class _ListEntry(NamedTuple):
    """An entry in the list of failures."""

    verdict: Verdict
    name: str
    """The name of the rule, or the argument that selects the scenario in ``run``."""
    what: str
    """The description of the failure."""
    remedy: str = ""


def _gate_lines(gate: GateRow, options: ReportOptions) -> Iterator[Text]:
    value, bound = format_figures(gate)
    place = shown_place(gate.where, options.root)
    reason = f"{value}, bound {bound}" + (f", {place}" if place else "")
    yield from _entry_lines(_ListEntry(gate.verdict, one_line(gate.name, 80), reason), options)
    # The basis includes what would decide the gate.
    if gate.basis.strip():
        yield from _below(wrap_fully(gate.basis, options.width - _INDENT))


def _to_entry(group: RowGroup, names: Mapping[str, str], facts: Facts) -> _ListEntry:
    """Build the list entry for a group of rows. ``names`` maps each scenario id to the argument that selects
    the scenario in ``run``."""
    failed = group.rows[0]
    first = _most_informative(failed, facts.report)
    name = names[first.scenario]
    if first.several_agents:
        name += f" · {one_line(first.agent, 60)}"
    rule = first.rules[0]
    counts = (f"{group.count_text}; " if group.count_text else "") + _how_many(failed, first)
    what, _ = split_violation_remedy(rule.violation, counts + rule.gist)
    verdict = scenario_decision(facts.decision, first.scenario_report).verdict
    if facts.decision.is_reported:  # only its own rules decide
        verdict = failed[0].verdict
    return _ListEntry(verdict, name, what, rule.remedy)


def _how_many(group: Sequence[ReportedFailure], shown: ReportedFailure) -> str:
    """Return the number of conversations with the same verdict as the displayed conversation, such as ``2 of
    3 conversations: ``. Return an empty string if only one conversation was planned."""
    planned = len(shown.scenario_report.samples) + len(shown.scenario_report.missing)
    many = sum(each.key is not None and each.verdict is shown.verdict for each in group)
    return f"{many} of {plural(planned, 'conversation')}: " if planned > 1 and many else ""


def _most_informative(group: Sequence[ReportedFailure], report: Report) -> ReportedFailure:
    """Return the failure to display. For a gate across repeated runs, this is the failure of the gate itself;
    otherwise, it is the first conversation with the group's verdict."""
    if replaces_every_sample(report.plan.suite.gates):
        return group[0]
    conversations = (each for each in group if each.key is not None and each.verdict is group[0].verdict)
    return next(conversations, group[0])


def _entry_lines(entry: _ListEntry, options: ReportOptions, *, is_new: bool = True) -> Iterator[Text]:
    """Yield the reason next to the name, or below the name if there is not enough room. A remedy that does
    not fit is shown in full on additional lines, unless it already appears in the list."""
    verdict, name, what, remedy = entry
    line = unbroken("").append(verdict.upper(), style=f"bold {style_of(verdict)}").append(f" {name}")
    sentence = REMEDY.join(filter(None, (what, remedy)))
    room, below = options.width - line.cell_len - 2, options.width - _INDENT
    is_whole = is_new and "\n" not in remedy and cell_len(sentence) <= max(room, below)
    shown = sentence if is_whole else what
    if cell_len(shown) <= room or (shown == what and room >= min(_LEAST_REASON, cell_len(what))):
        yield line.append("  ").append_text(truncate(shown, room))
    else:
        yield line
        yield from _below([truncate(shown, below)])
    if shown != sentence and is_new:
        yield from _below(wrap_fully(f"— {remedy}", below))


def _below(lines: Iterable[Text]) -> Iterator[Text]:
    return (unbroken(" " * _INDENT).append_text(line) for line in lines)


def ending(facts: Facts, options: ReportOptions) -> Iterator[RenderableType]:
    """Yield the suggested next commands and the verdict."""
    commands = [] if options.quiet else list(next_commands(facts, options.run))
    if options.verbose:
        commands = [(label, command) for label, command in commands if label != _DETAILS]
    line = "     ".join(f"{label}: {command}" for label, command in commands)
    if cell_len(line) <= options.width:
        yield from [unbroken(line)] if line else []
    else:
        yield from (unbroken(f"{label}: {command}") for label, command in commands)
    yield last_line(facts)


def last_line(facts: Facts) -> Text:
    """Return the last line, which contains the verdict, the number of scenarios for each outcome, the exit
    code and the caveats."""
    word, rest = verdict_line(facts)
    style = _WORD_STYLES.get(word) or style_of(facts.decision.verdict)
    line = Text(f"{word}: ", style=f"bold {style}")
    line.append(rest, style="not bold default")
    line.no_wrap, line.overflow = True, "ignore"
    return line


_WORD_STYLES = {
    INCOMPLETE: style_of(Verdict.INCONCLUSIVE),
    NOT_DECIDED: style_of(Verdict.INCONCLUSIVE),
    AUTHOR_ERROR: "red",
    REPORTED.upper(): "default",
}


def _can_go_on(report: Report) -> bool:
    """Check whether the run was interrupted and can be resumed without running anything twice."""
    is_cut_off = report.finished is None or report.finished.outcome in ("interrupted", "budget", "deadline")
    return is_cut_off and bool(report.run.request)


def next_commands(facts: Facts, run: str = "") -> Iterator[tuple[str, str]]:
    """Yield the suggested next commands as (label, command) pairs. ``run`` is the name of the run, or empty
    for the latest run."""
    report, groups = facts.report, facts.decisive
    if facts.decision.verdict is Verdict.PASSED or not groups:
        if report.samples:
            yield _DETAILS, command_of(["agenteval", "report", run or "latest", "-v"])
        return
    name = run if run not in ("", report.run.run_id) else short_run_id(report.run.run_id)
    if _can_go_on(report):
        yield "Resume", command_of(["agenteval", "run", "--resume", name])
    else:
        yield (
            "Re-run",
            groups[0][0].repro if is_recorded(report) else rerun_failures_command(report.run, name),
        )
    if all(failure.fault in _NOT_ITS_FAULT for group in groups for failure in group[:1]):
        yield "Check", "agenteval doctor"
    else:
        yield "Inspect", show_command(groups[0][0], run)
