"""Show each failure with its reason, its location, the conversation, and the command to reproduce it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from rich.cells import cell_len
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from agenteval.core.plurals import plural
from agenteval.core.safe_text import one_line
from agenteval.core.sample_report import SampleReport
from agenteval.core.score import Verdict
from agenteval.core.trajectory import Stop, StopReason
from agenteval.files.prompts import CRITERIA
from agenteval.reporters.options import ReportOptions
from agenteval.reporters.terminal.cells import clean_text, heading, indented, mark, unbroken, wrap_fully
from agenteval.reporters.terminal.scores import conversation_scores
from agenteval.reporters.words.facts import Facts
from agenteval.reporters.words.failure import (
    NEVER_RAN,
    ReportedFailure,
    never_ran_text,
    split_violation_remedy,
    title,
)
from agenteval.reporters.words.judge import MissingScore, classify_missing_score
from agenteval.reporters.words.places import shown_place, shown_places
from agenteval.reporters.words.transcript_lines import TranscriptLine, has_several_agents, transcript

_INDENT = 4
IN_FULL = 10
"""The number of failures shown in full. Each remaining failure is shown on one line, and its conversation is
shown further below."""

MOST_LINES = 12
"""The maximum number of lines shown for each reason."""
MOST_FINGERPRINTS = 3
"""The maximum number of fingerprints shown for the accept list."""
MOST_TURNS = 3
"""The maximum number of turns shown from each transcript."""

_SIGNS = {"user": "user", "agent": "agent", "call": "→", "result": "←", "error": "error", "note": ""}
_STYLES = {"user": "bold", "call": "magenta", "result": "magenta", "error": "red", "note": "dim"}
_FAULTS = {
    "agent": "the agent failed",
    "infrastructure": "not the agent's fault: network, provider or agenteval itself",
    "simulator": "not the agent's fault: the simulated user",
    "judge": "not the agent's fault: the judge failed",
    "undecided": "not decided: the result depends on something unknown",
    "author": "a mistake in the scenario",
    "recording": "not the agent's fault: unreadable record",
    "interrupted": "cut off",
    "budget": "stopped by the budget",
}


class _EpochGroup(NamedTuple):
    """Epochs of a scenario that failed for exactly the same reasons. Only the first epoch is shown."""

    first: ReportedFailure
    others: tuple[ReportedFailure, ...] = ()


def _groups(failed: Iterable[ReportedFailure]) -> list[_EpochGroup]:
    """Group failures with identical reasons. Decisive failures come before tolerated failures, and failed
    samples before inconclusive samples."""
    grouped: dict[tuple[object, ...], list[ReportedFailure]] = {}
    for failure in failed:
        variant = failure.sample.key.variant if failure.sample else ""
        is_scenario_rule = failure.epoch is None
        key = (failure.scenario, failure.agent, variant, is_scenario_rule, failure.verdict, failure.reasons)
        grouped.setdefault(key, []).append(failure)
    groups = [_EpochGroup(first, tuple(others)) for first, *others in grouped.values()]
    return sorted(groups, key=lambda group: _urgency(group.first))


def failure_section(facts: Facts, options: ReportOptions) -> Iterator[RenderableType]:
    """Yield everything that did not pass. The first few failures are shown in full, and each remaining
    failure is shown on one line."""
    every_group = _groups(facts.failures)
    groups = [group for group in every_group if not group.first.never_ran]
    if not every_group:
        return
    yield heading("Did not pass")
    for group in groups[:IN_FULL]:
        yield from _full_failure(group, facts, options)
        yield Text()
    if rest := groups[IN_FULL:]:
        yield indented(_lines(rest, options))
        yield Text()
    if never := never_ran_text([group.first] for group in every_group):
        yield indented(clean_text(never))
        yield Text()


def _urgency(failure: ReportedFailure) -> tuple[bool, bool]:
    """Return a sort key that puts decisive failures before tolerated failures, and failed samples before
    inconclusive samples."""
    return failure.tolerated, failure.verdict is not Verdict.FAILED


def _full_failure(group: _EpochGroup, facts: Facts, options: ReportOptions) -> Iterator[RenderableType]:
    failure = group.first
    yield indented(_head(failure, options))
    for line in _reasons(failure, options):
        yield unbroken(" " * _INDENT).append_text(line)
    if group.others:
        yield _below(Text(f"the same in {_epochs(group)}", style="dim"))
    if failure.sample is not None:
        yield _below(conversation(unreported_lines(_relevant_lines(failure), failure.reasons)))
        judged = conversation_scores(failure.sample, facts.columns)
        yield from [_below(judged)] if judged else []
    else:
        yield from (_below(clean_text(line, "dim")) for line in failure.evidence)
    yield unbroken(f"    repeat: {failure.repro}", "bold")


def _reasons(failure: ReportedFailure, options: ReportOptions) -> Iterator[Text]:
    """Yield each broken rule with its location."""
    for violation, reason in zip(failure.violations, failure.reasons, strict=True):
        lines = reason.split("\n")
        left = lines[MOST_LINES:]
        advice = [f"— {remedy}" for line in left if (remedy := split_violation_remedy(violation, line)[1])]
        more = [f"… {plural(len(left), 'more line')}"] if left else []
        wrapped = wrap_fully("\n".join((*lines[:MOST_LINES], *more, *advice)), options.width - _INDENT)
        if violation.where and violation.where != failure.where:
            place = shown_place(violation.where, options.root)
            if wrapped[-1].cell_len + cell_len(place) + _INDENT + 2 <= options.width:
                wrapped[-1].append(f"  {place}", style="dim")
            else:
                wrapped += wrap_fully(place, options.width - _INDENT, "dim")
        yield from wrapped
        fingerprints = zip(violation.fingerprints, violation.covers, strict=True)
        for name, covers in list(fingerprints)[:MOST_FINGERPRINTS]:
            yield from wrap_fully(f"#{name} covers {covers}", options.width - _INDENT, "dim")


def _below(content: RenderableType) -> Padding:
    return Padding(content, (0, 0, 0, _INDENT))


def _epochs(group: _EpochGroup) -> str:
    epochs = [str(failure.epoch + 1) for failure in group.others if failure.epoch is not None]
    return f"epoch{'s' if len(epochs) > 1 else ''} {', '.join(epochs)}"


def fault_text(fault: str, sample: SampleReport | None) -> str:
    missing = {classify_missing_score(failure) for failure in sample.all_failures} if sample else set()
    if fault == "judge" and missing == {MissingScore.DETECTOR}:
        return "not the agent's fault: a detector failed"
    if sample and fault in ("judge", "undecided") and not missing - {MissingScore.UNCLEAR}:
        criteria = (check for check in sample.all_checks if check.name == CRITERIA and check.passed is None)
        if missing or any(check.by for check in criteria):
            return "not decided: unclear to the judge"
    return _FAULTS.get(fault, fault)


def _head(failure: ReportedFailure, options: ReportOptions) -> Text:
    place = shown_places((failure.where, failure.scenario_report.scenario.row), options.root)
    line = Text.assemble(mark(failure.verdict), " ", (one_line(failure.title, 250), "bold"))
    line.append(f"  {place}", style="dim")
    remarks = [fault_text(failure.fault, failure.sample)] if failure.fault else []
    tolerated = "reported" if failure.is_reported else "tolerated"
    remarks += [tolerated] if failure.tolerated else []
    return line.append(f"  ({'; '.join(remarks)})" if remarks else "")


def _lines(rest: Sequence[_EpochGroup], options: ReportOptions) -> Text:
    """Format each failure on one line that fits the width, with its symbol, name, number of epochs and first
    reason."""
    lines = []
    for failure, others in rest:
        again = f" (and {plural(len(others), 'more epoch')})" if others else ""
        name = f"{one_line(failure.title, 250)}{again}"
        why = one_line(failure.reasons[0], max(20, options.width - len(name) - 6))
        lines.append(Text.assemble(mark(failure.verdict), f" {name}  {why}"))
    return Text("\n").join(lines)


def _relevant_lines(failure: ReportedFailure) -> tuple[TranscriptLine, ...]:
    """Return the transcript of the turns in which rules were broken, or of the whole conversation if a rule
    applies to the whole conversation."""
    sample = failure.sample
    if sample is None:
        return ()
    turns, sample = _relevant_turns(failure), sample.in_full
    if turns is None:
        return transcript(sample)
    lines = [line for turn in turns[:MOST_TURNS] for line in turn_lines(sample, turn)]
    if len(turns) > MOST_TURNS:
        others = ", ".join(str(turn + 1) for turn in turns[MOST_TURNS:][:20])
        lines.append(TranscriptLine("note", f"… and turns {others}"))
    return tuple(lines)


def _relevant_turns(failure: ReportedFailure) -> list[int] | None:
    """Return the turns to which a failure applies, or ``None`` if it applies to the whole conversation."""
    turns = {violation.turn for violation in failure.violations}
    turn_count = len(failure.sample.turns) if failure.sample else 0
    relevant = sorted(turn for turn in turns if turn is not None and turn < turn_count)
    return None if None in turns or not relevant else relevant


def unreported_lines(
    lines: Sequence[TranscriptLine], reasons: Sequence[str], where: str = "above"
) -> list[TranscriptLine]:
    """Return the lines, omitting text that repeats ``reasons``. An error that repeats a reason is replaced by
    a reference to the reason."""
    reported = " ".join(one_line(reason, 4000) for reason in reasons)
    remaining: list[TranscriptLine] = []
    for line in lines:
        after_error = bool(remaining) and remaining[-1].speaker == "error"
        is_end = line.speaker == "note" and line.text.startswith("(")
        why = line.text.partition(": ")[2].removesuffix(")").removesuffix("…")
        if line.speaker == "error" and line.text.removesuffix("…") in reported:
            remaining.append(line._replace(text=f"(see {where})"))
        elif not (is_end and (after_error or (why and why in reported))):
            remaining.append(line)
    return remaining


def turn_lines(sample: SampleReport, turn: int) -> Iterator[TranscriptLine]:
    """Yield the transcript lines for a turn, including lines that would be omitted from a long transcript. A
    note on how the conversation ended is included with the last turn."""
    sample = sample.in_full
    is_last = turn == len(sample.turns) - 1
    stop = sample.stop if is_last else Stop(reason=StopReason.SCRIPT_DONE)
    shown, by_name = replace(sample, turns=(sample.turns[turn],), stop=stop), has_several_agents(sample)
    for line in transcript(shown, by_name=by_name):
        yield line if line.turn is None else line._replace(turn=turn)


def conversation(lines: Sequence[TranscriptLine]) -> Table:
    """Format a transcript in two columns: speaker and text. If there are several turns, they are numbered
    from 1."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    several = any(line.turn for line in lines)
    turn = None
    for line in lines:
        if several and line.turn is not None and line.turn != turn:
            turn = line.turn
            table.add_row(f"turn {turn + 1}", "")
        # An empty message is shown, because robustness tests send one.
        table.add_row(_SIGNS[line.speaker], clean_text(line.text or "(empty)", _STYLES.get(line.speaker, "")))
    return table


def transcripts(facts: Facts, options: ReportOptions) -> Iterator[RenderableType]:
    """Yield the conversations that are not already shown in full among the failures."""
    groups = _groups(facts.failures)[:IN_FULL]
    shown = {group.first.sample.key for group in groups if group.first.sample}
    rest = [
        (scenario, sample)
        for scenario in facts.report.scenarios
        for sample in scenario.samples
        if sample.key not in shown
    ]
    if rest:
        yield heading("Other conversations" if shown else "Conversations")
    for scenario, sample in rest:
        decided = facts.decision.samples.get(sample.key, NEVER_RAN)
        name = title(scenario, sample.key, several_agents=facts.report.has_several_agents)
        yield indented(Text.assemble(mark(decided.verdict), " ", (name, "bold")))
        yield _below(conversation(transcript(sample)))
        judged = conversation_scores(sample, facts.columns)
        yield from [_below(judged)] if judged else []
        yield Text()
