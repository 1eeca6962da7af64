"""Show each failure in at most twelve lines: the turn, the broken rule with expected and actual values, the
location of the rule, and the command that shows the whole conversation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from rich.cells import cell_len
from rich.console import RenderableType
from rich.text import Text

from agenteval.core.decision import Violation
from agenteval.core.errors import REMEDY
from agenteval.core.excerpts import excerpt
from agenteval.core.plurals import join_first, plural
from agenteval.core.safe_text import one_line
from agenteval.core.sample_report import SampleReport
from agenteval.core.score import Verdict
from agenteval.core.trajectory import StopReason
from agenteval.reporters.options import ReportOptions
from agenteval.reporters.terminal.cells import (
    first_line,
    mark,
    truncate,
    unbroken,
    wrap_fully,
    wrap_lines,
    wrap_with_remedy,
)
from agenteval.reporters.terminal.failures import fault_text, turn_lines, unreported_lines
from agenteval.reporters.words.facts import Facts
from agenteval.reporters.words.failure import BrokenRule, ReportedFailure
from agenteval.reporters.words.judge import strip_retry_counts
from agenteval.reporters.words.places import relative_place, shown_place, shown_places
from agenteval.reporters.words.selection import show_command
from agenteval.reporters.words.transcript_lines import TranscriptLine, how_it_ended

MOST_BLOCKS = 10
_WIDEST = 100
MOST_LINES = 12
_MOST_RULE_LINES, _MOST_LINES_PER_RULE = 7, 3
_MOST_RULES = 4
"""The maximum number of rules shown for each failure. If there are more, their number is stated."""
_UNDECIDED_LINES = 3
_MOST_NAMED = 5
_SIGNS = {"user": "user", "agent": "agent", "call": "→", "result": "←", "error": "error", "note": ""}
_LABEL = 11
"""The width of the columns to the left of a message, which contain the turn number and the speaker."""


class _FailureBlock(NamedTuple):
    """The failures of a scenario with an agent."""

    group: tuple[ReportedFailure, ...]
    shown: ReportedFailure
    """The first conversation with the worst verdict, or the failure of the scenario's own rules if there is
    no such conversation."""
    rules: tuple[BrokenRule, ...]
    alike: tuple[str, ...] = ()
    """The names of other scenarios that are undecided for the same reason, or of other variants of the
    scenario that failed for the same reasons."""
    rows: tuple[str, ...] = ()
    """The names of other data rows of the scenario that had the same outcome."""
    how_many: str = ""
    """A phrase that states the share of the scenario's data rows that had this outcome."""

    @property
    def is_failed(self) -> bool:
        return self.shown.verdict is Verdict.FAILED


def failure_blocks(facts: Facts, options: ReportOptions) -> Iterator[RenderableType]:
    """Yield the first few failures. The list at the end of the screen includes all failures."""
    blocks = list(_blocks(facts))
    options = replace(options, width=min(options.width, _WIDEST))
    for block in blocks[:MOST_BLOCKS]:
        yield from _lines(block, options)
        yield Text()
    rest = sum(1 + len(block.alike) + len(block.rows) for block in blocks[MOST_BLOCKS:])
    if rest:
        yield Text(f"… and {rest:,} more, listed below", style="dim")
        yield Text()


def scenario_failure(group: tuple[ReportedFailure, ...], options: ReportOptions) -> Iterator[RenderableType]:
    """Yield the failures of one scenario with one agent."""
    yield from _lines(_block(group), options)


def _blocks(facts: Facts) -> Iterator[_FailureBlock]:
    failed: dict[tuple[str, ...], list[_FailureBlock]] = {}
    undecided: dict[str, list[_FailureBlock]] = {}
    # One line of the list at the end names the scenarios that never ran.
    for (first, *others), how_many in facts.decisive_rows:
        names = tuple(_title(group[0]) for group in others)
        block = _block(first)._replace(rows=names, how_many=how_many)
        if block.is_failed:
            # A failure that no fault caused is that of each variant in which the fault was not reached.
            failed.setdefault(_reasons(block), []).append(block)
        else:
            # A server that was down is shown once, no matter how many scenarios it affected.
            undecided.setdefault(block.rules[0].gist, []).append(block)
    for one, *alike in (*failed.values(), *undecided.values()):
        same = (name for block in alike for name in (_title(block.shown), *block.rows))
        yield one._replace(alike=tuple(same))


def _reasons(block: _FailureBlock) -> tuple[str, ...]:
    scenario = block.shown.scenario_report.scenario
    written = scenario.variant.of if scenario.variant else scenario.id
    return (written, block.shown.agent, *(rule.gist for rule in block.rules))


def _block(group: tuple[ReportedFailure, ...]) -> _FailureBlock:
    worst = Verdict.worst(failure.verdict for failure in group)
    of_worst = [failure for failure in group if failure.verdict is worst]
    shown = next((failure for failure in of_worst if failure.key is not None), of_worst[0])
    scenario_failures = [failure for failure in of_worst if failure.key is None and failure is not shown]
    rules = [rule for failure in (shown, *scenario_failures) for rule in failure.rules]
    # Undecided rules matter only if nothing failed, so they come last.
    return _FailureBlock(
        group, shown, tuple(sorted(rules, key=lambda rule: rule.violation.verdict is not worst))
    )


def _lines(block: _FailureBlock, options: ReportOptions) -> Iterator[RenderableType]:
    yield from _head(block, options)
    note = one_line(block.shown.scenario_report.scenario.note or "", options.width)
    if note:
        yield unbroken("  ").append_text(truncate(f"note: {note}", options.width - 2, "dim"))
    room = MOST_LINES - 3 - bool(note)
    turn, sample = _turn_of(block), block.shown.sample
    rules = list(_rules(block, turn, options))
    rule_lines = _rule_lines(rules, _MOST_RULE_LINES if block.is_failed else _UNDECIDED_LINES, options.width)
    if block.is_failed and sample is not None and turn is not None:
        yield from _conversation_lines(
            sample, turn, block.shown.reasons, room - len(rule_lines), options.width
        )
    yield from rule_lines
    if sample is not None and sample.stop and sample.stop.reason is StopReason.MAX_TURNS:
        yield from _indented(how_it_ended(sample), options.width)
    if block.shown.fault:
        yield from _indented(f"({fault_text(block.shown.fault, sample)})", options.width)
    for what, others in (("the same", block.alike), ("further rows", block.rows)):
        if others:
            names = join_first([one_line(name, 60) for name in others], _MOST_NAMED)
            yield from _indented(f"{what}: {names}", options.width)
    yield _foot(block, options)


def _indented(text: str, width: int) -> Iterator[Text]:
    return (unbroken("  ").append_text(line) for line in wrap_fully(text, width - 2))


def _head(block: _FailureBlock, options: ReportOptions) -> Iterator[Text]:
    """Yield a heading such as ``── two-wishes ─────── conversations.yaml:78``. The location is placed on the
    next line if there is not enough room."""
    shown = block.shown
    extent = [block.how_many, *_extent(block)]
    left = truncate(" · ".join(filter(None, [_title(shown), *extent])), max(12, options.width - 6), "bold")
    place = shown_places((shown.where, shown.scenario_report.scenario.row), options.root)
    blanks = options.width - left.cell_len - cell_len(place) - 6
    line = Text.assemble(("── ", "dim"), left, " ", no_wrap=True)
    if blanks > 0:
        yield line.append("─" * (blanks + 1), style="dim").append(f" {place}" if place else "", style="dim")
    else:
        yield line.append("──", style="dim")
        yield unbroken(f"   {place}", "dim")


def _title(failure: ReportedFailure) -> str:
    name = one_line(failure.scenario, 120)
    return f"{name} · {one_line(failure.agent, 40)}" if failure.several_agents else name


def _extent(block: _FailureBlock) -> list[str]:
    """Return the number of failed conversations, such as ``2 of 3 conversations``, and the displayed epoch.
    Return an empty list if only one conversation was planned."""
    scenario = block.shown.scenario_report
    planned = len(scenario.samples) + len(scenario.missing)
    failed = [each for each in block.group if each.key is not None and each.verdict is block.shown.verdict]
    if planned < 2 or not failed:
        return []
    parts = [f"{len(failed)} of {plural(planned, 'conversation')}"]
    if block.shown.epoch is not None:
        variant = block.shown.key.variant if block.shown.key else ""
        parts.append(f"here {f'{one_line(variant, 40)}, ' if variant else ''}epoch {block.shown.epoch + 1}")
    return parts


def _turn_of(block: _FailureBlock) -> int | None:
    """Return the turn to show: the first turn in which a rule was broken, or the last turn if there is no
    such turn."""
    sample = block.shown.sample
    if sample is None or not sample.turns:
        return None
    turns = [v.turn for v in block.shown.violations if v.turn is not None and v.turn < len(sample.turns)]
    return min(turns, default=len(sample.turns) - 1)


# ── the conversation ─────────────────────────────────────────────────────────────────────────────


def _conversation_lines(
    sample: SampleReport, turn: int, reasons: Sequence[str], room: int, width: int
) -> Iterator[Text]:
    """Yield the user's message, as many calls as fit on the screen, and the agent's answer."""
    unreported = unreported_lines(tuple(turn_lines(sample, turn)), reasons, "below")
    lines = [line for line in unreported if line.text and not line.text.startswith("(recorded: ")]
    first = [line for line in lines[:1] if line.speaker == "user"]
    last = lines[len(first) :][-1:]
    between = lines[len(first) : len(lines) - len(last)]
    calls = room - len(first) - len(last)
    ends = 2 if calls > len(between) else 1  # lines of the answer
    shown = between if len(between) <= calls else between[: max(0, calls - 1)]
    for number, line in enumerate([*first, *shown]):
        yield from _format_line(line, f"{turn + 1}" if not number else "", 1, width)
    if len(between) > len(shown):
        yield Text(
            f"{'':{_LABEL}}… {plural(len(between) - len(shown), 'more line')}", style="dim", no_wrap=True
        )
    for line in last:
        yield from _format_line(line, "" if first or shown else f"{turn + 1}", ends, width)


def _format_line(line: TranscriptLine, turn: str, most: int, width: int) -> Iterator[Text]:
    label = f"{turn:>3} {_SIGNS[line.speaker]:<7}"
    for text in wrap_lines(line.text, width - _LABEL, most):
        yield Text(label, style="dim", no_wrap=True).append_text(_plain(text))
        label = " " * _LABEL


def _plain(text: Text) -> Text:
    text.style = "not dim"
    return text


# ── the rules ────────────────────────────────────────────────────────────────────────────────────


class _RuleText(NamedTuple):
    """A broken rule with its name, its message and its location."""

    verdict: Verdict
    name: str
    details: tuple[tuple[str, str], ...]
    """The lines of the message, each with its remedy. Remedies are never truncated."""
    place: str


def _rules(block: _FailureBlock, turn: int | None, options: ReportOptions) -> Iterator[_RuleText]:
    evidence = list(_score_evidence(block))
    for violation, name, lines, _ in _without_repeated_failures(block.rules):
        quoted = _answer_of(block.shown.sample, turn)
        if quoted and violation.turn in (turn, None):  # it is shown above
            lines = tuple((what.replace(f" in the answer {quoted}", ""), remedy) for what, remedy in lines)
        if violation.turn is not None and violation.turn != turn:
            name = f"{name} (turn {violation.turn + 1})".strip()
        details = _without_repeats(lines)
        details += [(evidence.pop(0), "")] if violation.metric and evidence else []
        yield _RuleText(violation.verdict, name, tuple(details), _place(violation, block, options))


def _without_repeated_failures(rules: Sequence[BrokenRule]) -> Iterator[BrokenRule]:
    """Yield the rules, omitting repeated failures of a judge. A judge that fails in every turn is shown only
    once, along with the reason for its failure."""
    seen: set[str] = set()
    for rule in rules:
        if rule.violation.name == "judge":
            reason = strip_retry_counts(rule.violation.detail)
            if reason in seen:
                continue
            seen.add(reason)
        yield rule


_FAULT_PREFIXES = {"expected (contains): ": "missing: ", "not allowed: ": "forbidden: "}
"""The prefix of a line that states an expectation, mapped to the prefix of the line that reports that the
expectation was not met."""


def _without_repeats(lines: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the lines for a rule. The expected call is omitted if another line describes the fault and names
    the same call."""
    first, *rest = [what for what, _ in lines] or [""]
    begins = next((fault for asked, fault in _FAULT_PREFIXES.items() if first.startswith(asked)), None)
    call = first.partition(": ")[2].removesuffix("(…)")
    if not begins or not any(line.startswith(begins + call) for line in rest):
        return list(lines)
    return sorted(lines[1:], key=lambda line: line[0].startswith("called: "))  # the fault comes first


def _score_evidence(block: _FailureBlock) -> Iterator[str]:
    """Yield the lowest scores, which lowered a mean below its threshold."""
    for failure in block.group:
        if failure.key is None:
            yield from failure.evidence


def _answer_of(sample: SampleReport | None, turn: int | None) -> str:
    if sample is None or turn is None or turn >= len(sample.turns):
        return ""
    return excerpt(sample.in_full.turns[turn].turn.answer)


def _place(violation: Violation, block: _FailureBlock, options: ReportOptions) -> str:
    if not violation.where or violation.where == block.shown.where:
        return ""
    path, line = relative_place(violation.where, options.root)
    scenario_path, _ = relative_place(block.shown.where, options.root)
    return f"line {line}" if line and path == scenario_path else shown_place(violation.where, options.root)


def _rule_lines(rules: Sequence[_RuleText], room: int, width: int) -> list[Text]:
    """Format each rule on one line, or on several lines if there is enough room."""
    most = min(_MOST_RULES, room)
    shown = rules if len(rules) <= most else rules[: min(most, room - 1)]
    spare = room - len(shown) - (len(rules) > len(shown))
    lines: list[Text] = []
    for rule in shown:
        formatted = _format_rule(rule, max(1, min(_MOST_LINES_PER_RULE, 1 + spare)), width)
        spare -= len(formatted) - 1
        lines += formatted
    if len(rules) > len(shown):
        lines.append(Text(f"    … and {len(rules) - len(shown):,} more", style="dim"))
    return lines


def _format_rule(rule: _RuleText, most: int, width: int) -> list[Text]:
    """Format a rule such as ``✗ output.matches  no match for …   line 94``. Text that does not fit is placed
    on the lines below."""
    name = truncate(rule.name, width // 2, "bold")
    line = Text.assemble("  ", mark(rule.verdict), " ", name, "  " if rule.name else "")
    details = list(rule.details)
    place = f"  {rule.place}" if rule.place else ""
    room = width - line.cell_len - cell_len(place)
    if room < _LEAST_ROOM:  # a long place goes below the rule
        place, room = "", width - line.cell_len
        details += [(rule.place, "")] if most > 1 else []
    first, rest = _split_to_fit(details, room, is_only_line=most == 1)
    blanks = " " * max(0, room - cell_len(first)) if place else ""
    line.append(first + blanks, style="not bold").append(place, style="dim")
    line.no_wrap, line.overflow = True, "ignore"
    below = _lines_below(rest, most - 1, width - 6)
    return [line, *(unbroken("      ").append_text(text) for text in below)]


def _split_to_fit(
    details: Sequence[tuple[str, str]], room: int, *, is_only_line: bool
) -> tuple[str, list[tuple[str, str]]]:
    """Split the details into the text that fits next to the rule's name and the remaining lines. A remedy
    that does not fit in full is moved to the remaining lines. A sentence that does not fit is continued
    there, or truncated if only one line is available."""
    (what, remedy), *rest = details or [("", "")]
    line = one_line(REMEDY.join(filter(None, (what, remedy))), _LONGEST)
    if "\n" in remedy or (remedy and cell_len(line) > room):
        line, rest = one_line(what, _LONGEST), [("", remedy), *rest]
    if is_only_line:
        return truncate(line, max(8, room)).plain.rstrip(), rest
    fitting = first_line(line, max(8, room))
    left = line[len(fitting) :].strip()
    return fitting.rstrip(), [(left, ""), *rest] if left else rest


def _lines_below(details: Sequence[tuple[str, str]], most: int, width: int) -> list[Text]:
    """Format the details on at most ``most`` lines. Remedies are never omitted, even if they exceed this
    limit."""
    below: list[Text] = []
    rest = list(details)
    while rest and (spare := most - len(below)):
        what, remedy = rest.pop(0)
        below += wrap_with_remedy(what, remedy, width, max(1, spare - len(rest)))
    for what, remedy in rest:
        below += wrap_with_remedy(what, remedy, width, 1) if remedy else []
    return below


_LONGEST = 4000
"""The maximum number of characters kept of a message next to a rule, before the message is truncated to the
width."""
_LEAST_ROOM = 24


def _foot(block: _FailureBlock, options: ReportOptions) -> Text:
    """Return the command that shows the conversation. If there is enough room, add the fingerprint for the
    accept list and a description of the failure that the fingerprint covers."""
    line = unbroken(f"  {show_command(block.shown, options.run)}", "bold")
    violations = (rule.violation for rule in block.rules)
    known = (pair for v in violations for pair in zip(v.fingerprints, v.covers, strict=True))
    name, covers = next(known, ("", ""))
    room = options.width - line.cell_len - 2
    if not name or room < _LEAST_COVERED:
        return line
    text = truncate(f"#{name} {covers}", room).plain
    blanks = options.width - line.cell_len - cell_len(text)
    return line.append(" " * blanks + text, style="not bold dim")


_LEAST_COVERED = 40
