"""What gated a run, what did not, what it used, and the verdict in one line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from agenteval.core.decision import EVERY_SAMPLE, Decision, GateRow
from agenteval.core.figures import figure
from agenteval.core.plurals import plural
from agenteval.core.safe_text import brief, one_line
from agenteval.core.score import Verdict
from agenteval.core.trajectory import Usage
from agenteval.reporters.options import ReportOptions
from agenteval.reporters.terminal.cells import (
    NOTHING,
    UNDECIDED,
    free,
    free_line,
    heading,
    indented,
    labelled,
    mark,
    plain_table,
    style_of,
    unbroken,
    whole,
)
from agenteval.reporters.words.judge import (
    ReplyCounts,
    overridden_text,
    refusals,
    replies_by_role,
    scripted_text,
    second_opinions_text,
    simulation,
    simulation_text,
)
from agenteval.reporters.words.places import shown_place
from agenteval.reporters.words.score_cells import SCRIPTED
from agenteval.reporters.words.spending import dollars, sum_text, unknown_texts
from agenteval.reporters.words.verdict import resolutions
from agenteval.verdict.gate_chances import every_sample_chances
from agenteval.verdict.reliability import repeats_of
from agenteval.verdict.report import Report
from agenteval.verdict.run_gates import replaces_every_sample
from agenteval.verdict.run_gates.chance import COIN
from agenteval.verdict.statistics import Stability

WIDE = 70
"""Below so many columns each gate is a few lines instead of a row."""
VERY_WIDE = 110
"""From so many columns on, all of a gate fits into one row."""
_FIGURE_LIMIT = 16


def gates(report: Report, decision: Decision, options: ReportOptions) -> Iterator[RenderableType]:
    """The rules that decided, broken ones first; then what was measured and decides nothing."""
    rows = sorted(decision.gates, key=lambda row: list(Verdict).index(row.verdict), reverse=True)
    if rows:
        yield heading("What gated this run")
        yield indented(_gate_table(rows, options) if options.width >= WIDE else _gate_lines(rows, options))
        yield Text()
    if decision.ungated:
        names = ", ".join(one_line(name, 80) for name in decision.ungated)
        yield Text("Judged or measured, but gates nothing")
        yield indented(Text(names))
        yield Text()


def _gate_table(rows: Sequence[GateRow], options: ReportOptions) -> RenderableType:
    """Where there is room for it, what a rule is based on and its place have columns of their own."""
    wide = options.width >= VERY_WIDE
    told = [figures(row) for row in rows]
    table = plain_table()
    table.add_column("", width=1)
    table.add_column("rule", overflow="fold", ratio=None if wide else 1)
    for title, index in (("value", 0), ("bound", 1)):
        longest = max(len(pair[index]) for pair in told)
        table.add_column(title, overflow="fold", width=max(5, min(longest, _FIGURE_LIMIT)))
    for title in ("based on", "where") if wide else ():
        table.add_column(title, overflow="fold")
    table.add_column("verdict", no_wrap=True, width=max(7, *(len(row.verdict) for row in rows)))
    for row, pair in zip(rows, told, strict=True):
        rule, basis = free_line(_rule(row), 200), _unlimited(row.basis)
        place = free_line(shown_place(row.where, options.root), 200, "dim")
        said = [rule, *_texts(pair), basis, place] if wide else [_stacked(rule, basis, place), *_texts(pair)]
        table.add_row(mark(row.verdict), *said, Text(row.verdict, style=style_of(row.verdict)))
    return table


def _texts(figures: tuple[str, str]) -> list[Text]:
    return [free_line(figure, 80) for figure in figures]


def _stacked(rule: Text, basis: Text, place: Text) -> Text:
    """The rule, and on a line below it what it is based on and where it is written."""
    details = Text("; ").join(part for part in (basis, place) if part)
    details.stylize("dim")
    return Text("\n").join([rule, details]) if details else rule


def _gate_lines(rows: Sequence[GateRow], options: ReportOptions) -> RenderableType:
    table = plain_table(show_header=False)
    table.add_column(width=1)
    table.add_column(overflow="fold")
    for row in rows:
        value, bound = figures(row)
        words = f"{_rule(row)}: {row.verdict}, value {value}, bound {bound}"
        details = "; ".join(part for part in (row.basis, shown_place(row.where, options.root)) if part)
        table.add_row(mark(row.verdict), _unlimited(f"{words} ({details})" if details else words))
    return table


def _unlimited(text: str) -> Text:
    """What a rule is based on says as well what would decide it."""
    return free_line(text, len(text))


def _rule(row: GateRow) -> str:
    place = " · ".join(part for part in (row.scenario, row.agent) if part)
    return f"{row.name} · {place}" if place else row.name


def figures(row: GateRow) -> tuple[str, str]:
    """Value and bound, with as many digits as it takes to tell the one from the other."""
    return _figure(row.value, row.bound), _figure(row.bound, row.value)


def _figure(value: float | str | None, other: float | str | None) -> str:
    if value is None:
        return NOTHING
    return value if isinstance(value, str) else figure(value, other)


def notes(report: Report, decision: Decision, options: ReportOptions) -> Iterator[RenderableType]:
    """The author's mistakes, warnings, and what was used by role; then where the journal is."""
    # Each line is indented: none of them can pass for one of ours.
    rows = list(_labelled(report, decision))
    indent = max((len(label) for label, _ in rows), default=0) + 2
    for label, text in rows:
        for number, line in enumerate(whole(text.plain, options.width - indent)):
            yield labelled("" if number else label.plain.removesuffix(":"), line, label.style, indent)
    if options.journal:
        yield unbroken(f"journal: {one_line(options.journal, 1000)}")


def _labelled(report: Report, decision: Decision) -> Iterator[tuple[Text, Text]]:
    if profile := report.run.config.profile:
        yield Text("profile:"), free_line(profile, 80)
    for error in decision.author_errors:
        yield Text("error:", style="red"), free(error)
    yield from _notices(report)
    repeated = _repeats(report, decision)
    if repeated:
        yield Text("repeats:"), Text(repeated)
    if repeated and (rates := error_rates_text(report, decision)):
        yield Text("error rates:"), Text(rates)
    told = simulation_text(report)
    if told and not refusals(report):
        who = "simulated user" if simulation(report.samples).messages else "users"
        yield Text("note:"), Text(f"{who}: {told}")
    replies = replies_by_role(report)
    used = [
        f"{role} {_spent(usage, replies.get(role, ReplyCounts()))}"
        for role, usage in report.usage.items()
        if usage.is_spent or usage.cached_calls
    ]
    if used:
        yield Text("usage:"), Text("\n".join(used))
    if told := second_opinions_text(report):
        yield Text("judges:"), Text(told)
    told = "\n".join(filter(None, (sum_text(report), *unknown_texts(report))))
    if told:
        yield Text("cost:"), free(told)
    if told := overridden_text(report):
        yield Text("note:"), free(told)
    if ends := resolutions(decision):
        yield Text("to decide:"), free("\n".join(ends))
    if report.scripted:
        yield Text("note:"), Text(f"{scripted_text(report)}, which measure nothing")


def _notices(report: Report) -> Iterator[tuple[Text, Text]]:
    told = Counter((n.level, n.text, n.key) for n in report.notices)
    for (level, text, key), times in told.items():
        place = f" ({key})" if key else ""
        again = f" (×{times})" if times > 1 else ""
        yield Text(f"{level}:", style=_STYLES[level]), Text(brief(f"{text}{place}{again}", 1000))


_STYLES = {"info": "dim", "warning": UNDECIDED, "error": "red"}


def _spent(usage: Usage, replies: ReplyCounts) -> str:
    about = "≈" if usage.estimated else ""
    parts = [plural(usage.calls, "call")] if usage.calls else []
    if usage.cached_calls:
        parts.append(f"{usage.cached_calls:,} from the cache")
    if replies.scripted:
        parts.append(f"{replies.scripted:,} scripted" if replies.real else SCRIPTED)
    if usage.tokens:
        cached = f" ({about}{usage.cached_tokens:,} cached)" if usage.cached_tokens else ""
        tokens_in = f"{about}{usage.input_tokens:,} tokens in{cached}"
        split = f"{tokens_in}, {about}{usage.output_tokens:,} out"
        parts.append(f"{about}{usage.tokens:,} tokens in and out" if usage.unsplit else split)
        parts.append(dollars(usage))
    elif not replies.scripted and usage.calls:
        parts.append("tokens not reported")
    return ", ".join(parts)


def error_rates_text(report: Report, decision: Decision) -> str:
    """What a green or red that every sample has a part in is worth, where it is worth little."""
    if not (share := _error_rate(report, decision)):
        return ""
    worth = every_sample_chances(_conversations(report))
    if decision.verdict is Verdict.PASSED:
        return (
            f"an agent that fails in {1 - worth.bad:.0%} of the conversations of one scenario would be green"
            f" in {share:.0%} of such runs; {worth.advice}"
        )
    return (
        f"an agent that fails in {1 - worth.good:.0%} of all conversations would be red in"
        f" {share:.0%} of such runs; {worth.advice}"
    )


def brief_error_rates(report: Report, decision: Decision) -> str:
    """The same in a line."""
    if not (share := _error_rate(report, decision)):
        return ""
    worth = every_sample_chances(_conversations(report))
    if decision.verdict is Verdict.PASSED:
        return f"an agent that fails {1 - worth.bad:.0%} of a scenario is green in {share:.0%} of such runs"
    return f"an agent that fails {1 - worth.good:.0%} of all is red in {share:.0%} of such runs"


def _error_rate(report: Report, decision: Decision) -> float:
    """How often such a run would end as this one for the wrong reason; 0 where that is seldom."""
    if replaces_every_sample(report.plan.gates) or decision.is_reported:
        return 0.0
    if decision.verdict is Verdict.INCONCLUSIVE:
        return 0.0
    worth = every_sample_chances(_conversations(report))
    failed = [gate.name for gate in decision.gates if gate.verdict is Verdict.FAILED]
    wrong = worth.false_green if decision.verdict is Verdict.PASSED else None
    if failed == [EVERY_SAMPLE]:
        wrong = worth.false_red
    return wrong if wrong is not None and wrong > COIN else 0.0


def _conversations(report: Report) -> list[int]:
    """Of each scenario, how many were planned."""
    return [len(scenario.samples) + len(scenario.missing) for scenario in report.scenarios]


def _repeats(report: Report, decision: Decision) -> str:
    """``pass^1 75.0 %, pass^2 50.0 %; flaky: book-morning (1 of 2)``; empty where nothing was repeated."""
    told = repeats_of(report, decision)
    again = [(key, entry) for key, entry in told.scenarios.items() if entry.tally.planned > 1]
    if not again:
        return ""
    rates = ", ".join(f"pass^{k} {value:.1%}" for k, value in list(told.pass_hat_k.items())[:4])
    flaky = flaky_text(report, decision)
    stable = f"flaky: {flaky}" if flaky else "no scenario was flaky"
    return f"{rates}; {stable}" if rates else stable


def flaky_text(report: Report, decision: Decision) -> str:
    """``book-morning (1 of 2)``: whose conversations ended differently; empty where none is."""
    several = len(report.dimensions) > 1
    flaky = [
        f"{one_line(scenario, 40)}{f' · {one_line(agent, 40)}' if several else ''}"
        f" ({entry.tally.successes} of {entry.tally.decided})"
        for (scenario, agent), entry in repeats_of(report, decision).scenarios.items()
        if entry.tally.planned > 1 and entry.stability is Stability.FLAKY
    ]
    more = f" and {len(flaky) - 5} more" if len(flaky) > 5 else ""
    return f"{', '.join(flaky[:5])}{more}"
