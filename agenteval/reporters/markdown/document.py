"""A whole report in Markdown (GitHub's flavour), and its shorter form for the summary of a step.

Everything that an agent, a tool or a model wrote stands in a fence or is escaped: no markup, HTML,
link, image or mention of theirs comes to life.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from agenteval.core.decision import Decision, GateRow
from agenteval.core.figures import figure
from agenteval.core.plurals import plural
from agenteval.core.safe_text import brief, fence, markdown, one_line
from agenteval.core.sample_report import Aggregate, ScenarioReport, p95_is_highest
from agenteval.core.score import Verdict
from agenteval.core.trajectory import Usage
from agenteval.reporters.markdown.judges import scores
from agenteval.reporters.markdown.sections import printed, printed_caveats
from agenteval.reporters.markdown.table import ALL, CELL, MARKS, Extent, more, sign_of, table
from agenteval.reporters.options import ReportOptions
from agenteval.reporters.sections import accepted, agents, issues
from agenteval.reporters.sections.section import Section
from agenteval.reporters.words.failure import (
    Failure,
    failures,
    planned,
    reason_lines,
    scenario_decision,
)
from agenteval.reporters.words.failure_rates import (
    COLUMNS,
    HEAD,
    cells,
    quotation_place,
    quotation_text,
    unknown_lines,
)
from agenteval.reporters.words.judge import ReplyCounts, replies_by_role
from agenteval.reporters.words.places import shown_place, shown_places
from agenteval.reporters.words.rows import folded
from agenteval.reporters.words.score_cells import SCRIPTED, columns
from agenteval.reporters.words.spending import amount, sum_text, unknown_texts
from agenteval.reporters.words.verdict import ends_text
from agenteval.verdict.failure_rates import failure_rates
from agenteval.verdict.report import Dimension, Report

NOTHING = "–"


WHOLE = Extent(rows=5000, failures=200, characters=5_000_000)
SUMMARY = Extent(rows=50, failures=10, characters=300_000, passed=False)  # GitHub takes 1 MiB at most


def render(report: Report, decision: Decision, options: ReportOptions) -> str:
    """The report as a Markdown document."""
    return document(report, decision, options, ALL if options.verbose else WHOLE)


def document(report: Report, decision: Decision, options: ReportOptions, extent: Extent) -> str:
    """The sections that apply, each ended by a blank line."""
    sections = [
        *_head(report, decision),
        *_author_errors(decision),
        *_printed(accepted.sections(report, decision), extent),
        *_failure_rates(report, decision, extent),
        *_gates(decision, options, extent),
        *_scenarios(report, decision, extent),
        *(scores(report, decision, extent) if _is_scored(report, decision) else ()),
        *_failures(report, decision, options, extent),
        *_printed(issues.issues(report, decision), extent),
        *_printed(issues.broken(report, decision), extent),
        *_dimensions(report),
        *_printed(agents.sections(report, decision), extent),
        *_usage(report),
        *_notices(report, extent),
        *_foot(report, options),
    ]
    return "\n\n".join(sections) + "\n"


def _printed(sections: Iterable[Section], extent: Extent) -> Iterator[str]:
    for section in sections:
        yield from printed(section, extent)


def _is_scored(report: Report, decision: Decision) -> bool:
    """Not a log of which nothing is expected and nothing was judged: it has no row of its own to pass."""
    return not decision.is_reported or any(any(sample.all_scores) for sample in report.samples)


def _head(report: Report, decision: Decision) -> Iterator[str]:
    yield f"# {sign_of(decision)} agenteval: {decision.word}"
    samples = sum(len(planned(scenario)) for scenario in report.scenarios)
    elapsed = f" · {report.finished.elapsed_s:.1f} s" if report.finished else ""
    many = f"{markdown(ends_text(report, decision))} · {plural(samples, 'sample')}"
    yield f"{many} · exit code {decision.exit_code}{elapsed}"
    if profile := report.run.config.profile:
        yield f"Profile {markdown(profile)}."
    missing = sum(len(scenario.missing) for scenario in report.scenarios)
    if report.finished is None or report.finished.outcome != "complete":
        why = report.finished.outcome if report.finished else "the run was cut off"
        yield f"**Not complete** ({markdown(why)}): {plural(missing, 'planned sample')} never ran."
    yield from printed_caveats(report, decision)


def _author_errors(decision: Decision) -> Iterator[str]:
    if decision.author_errors:
        yield "## To fix in the scenarios or the configuration"
        yield "\n".join(f"- {markdown(brief(text, 1000))}" for text in decision.author_errors)


def _failure_rates(report: Report, decision: Decision, extent: Extent) -> Iterator[str]:
    rates = failure_rates(report, decision)
    if rates is None:
        return
    yield f"## {HEAD}"
    rows = rates.rows[: extent.rows]
    if rows:
        yield table(COLUMNS, map(cells, rows))
    else:
        yield f"Nothing that is looked for was found in {plural(rates.conversations, 'conversation')}."
    notes = [more(len(rates.rows) - extent.rows, "row"), *unknown_lines(rates)]
    if told := [markdown(note) for note in notes if note]:
        yield "\n".join(f"- {note}" for note in told)
    for row in rows:
        yield f"**{markdown(one_line(row.label, CELL))}** ({markdown(one_line(row.found_by, CELL))})"
        yield "\n".join(
            f"- {markdown(f'{quotation_place(each)}: {quotation_text(each)}')}" for each in row.quotations
        )


def _gates(decision: Decision, options: ReportOptions, extent: Extent) -> Iterator[str]:
    yield "## What gated this run"
    rows = [gate for gate in decision.gates if extent.passed or gate.verdict is not Verdict.PASSED]
    rows.sort(key=lambda gate: _worst_first(gate.verdict))
    passed = len(decision.gates) - len(rows)
    if rows:
        head = ("", "gate", "value", "bound", "based on", "where")
        yield table(head, (_gate_cells(gate, options) for gate in rows[: extent.rows]))
    notes = [
        more(len(rows) - extent.rows, "gate"),
        f"{plural(passed, 'gate')} passed." if passed else "",
        "" if decision.gates else "Nothing: no gate applied.",
    ]
    if decision.ungated:
        names = ", ".join(markdown(one_line(name, CELL)) for name in decision.ungated)
        notes.append(f"Judged or measured, but gates nothing: {names}.")
    yield from filter(None, notes)


def _gate_cells(gate: GateRow, options: ReportOptions) -> tuple[str, ...]:
    of = " · ".join(part for part in (gate.scenario, gate.agent if gate.scenario else "") if part)
    return (
        MARKS[gate.verdict],
        f"{gate.name} ({of})" if of else gate.name,
        _value(gate.value, gate.bound),
        _value(gate.bound, gate.value),
        gate.basis,
        shown_place(gate.where, options.root),
    )


def _scenarios(report: Report, decision: Decision, extent: Extent) -> Iterator[str]:
    report, decision = folded(report, decision)
    verdicts = [(scenario_decision(decision, scenario).verdict, scenario) for scenario in report.scenarios]
    rows = [pair for pair in verdicts if extent.passed or pair[0] is not Verdict.PASSED]
    if not rows or decision.is_reported:
        return  # in a log of which nothing is expected no conversation passes
    yield "## Scenarios" if extent.passed else "## Scenarios that did not pass"
    head = ("", "scenario", "agent", "category", "samples passed", "scores")
    judged = {column.name for column in columns(report)}
    cells = (
        _scenario_cells(verdict, scenario, decision, judged) for verdict, scenario in rows[: extent.rows]
    )
    yield table(head, cells)
    yield from filter(None, [more(len(rows) - extent.rows, "scenario")])


def _scenario_cells(
    verdict: Verdict, scenario: ScenarioReport, decision: Decision, judged: Collection[str]
) -> tuple[str, ...]:
    keys = [key for key, _ in planned(scenario)]
    passed = sum(key in decision.samples and decision.samples[key].verdict == "passed" for key in keys)
    told = [
        f"{metric} {_aggregate(value)}"
        for metric, value in scenario.aggregates.items()
        if metric not in judged and value.n  # judged metrics have a table of their own
    ]
    return (
        MARKS[verdict],
        scenario.scenario.id,
        scenario.agent,
        scenario.scenario.category.value,
        f"{passed}/{len(keys)}",
        ", ".join(told[:12]) or NOTHING,
    )


def _failures(report: Report, decision: Decision, options: ReportOptions, extent: Extent) -> Iterator[str]:
    failed = sorted(failures(report, decision), key=lambda f: (f.tolerated, _worst_first(f.verdict)))
    if not failed:
        return
    yield "## Failures"
    shown = size = 0
    for failure in failed[: extent.failures]:
        text = "\n\n".join(_failure(failure, options))
        size += len(text)
        if shown and size > extent.characters:
            break
        shown += 1
        yield text
    yield from filter(None, [more(len(failed) - shown, "failure")])


def _failure(failure: Failure, options: ReportOptions) -> Iterator[str]:
    tolerated = f" ({failure.why_tolerated})" if failure.tolerated else ""
    yield f"### {MARKS[failure.verdict]} {markdown(failure.title)}: {failure.verdict}{tolerated}"
    yield f"at {markdown(shown_places((failure.where, failure.of.scenario.row), options.root))}"
    yield fence("\n".join(reason_lines(failure, options.root)))
    yield fence(failure.repro, "sh")
    if failure.transcript:
        yield "<details><summary>Transcript</summary>"
        yield fence("\n".join(map(str, failure.transcript)))
        yield "</details>"


def _dimensions(report: Report) -> Iterator[str]:
    for agent, dimensions in report.dimensions.items():
        rows = [row for dimension in dimensions for row in _dimension_rows(dimension)]
        if rows:
            yield f"## Results by category: {markdown(one_line(agent, CELL))}"
            yield table(("category", "measure", "value", "median", "95th percentile", "n"), rows)


def _dimension_rows(dimension: Dimension) -> Iterator[tuple[str, ...]]:
    category = dimension.category.value
    for name, rate in dimension.rates.items():
        share = NOTHING if rate.value is None else f"{rate.value:.1%}"
        yield category, name.replace("_", " "), share, "", "", str(rate.n)
    for name, spread in dimension.spreads.items():
        p95 = f"{'max ' if p95_is_highest(spread.n) else ''}{_value(spread.p95)}"
        values = (_value(spread.mean), _value(spread.p50), p95)
        yield category, name.replace("_", " "), *values, str(spread.n)


def _usage(report: Report) -> Iterator[str]:
    used = {role: usage for role, usage in report.usage.items() if usage.is_spent or usage.cached_calls}
    if used:
        yield "## Usage"
        head = ("role", "calls", "input tokens", "of these cached", "output tokens", "cost")
        replies = replies_by_role(report)
        yield table(
            head,
            (_usage_cells(role, usage, replies.get(role, ReplyCounts())) for role, usage in used.items()),
        )
        if any(usage.estimated for usage in used.values()):
            yield "≈: estimated, since no provider reported it."
        for told in filter(None, (sum_text(report), *unknown_texts(report))):
            yield markdown(told)


def _usage_cells(role: str, usage: Usage, replies: ReplyCounts) -> tuple[str, ...]:
    about = "≈ " if usage.estimated else ""
    cost = "price unknown" if usage.cost is None else f"{about}{amount(usage.cost)} USD"
    if replies.scripted:
        cost = f"{replies.scripted:,} replies scripted" if replies.real else SCRIPTED
    counts = (usage.input_tokens, usage.cached_tokens, usage.output_tokens)
    tokens = tuple(f"{about}{count:,}" for count in counts)
    if usage.unsplit:
        tokens = ("not reported", "", f"{about}{usage.tokens:,} in and out")
    calls = f"{usage.calls:,}" + (f" (and {usage.cached_calls:,} cached)" if usage.cached_calls else "")
    return (role, calls, *tokens, cost)


def _notices(report: Report, extent: Extent) -> Iterator[str]:
    if report.notices:
        yield "## Notices"
        shown = report.notices[: extent.rows]
        yield "\n".join(f"- {notice.level}: {markdown(brief(notice.text, 1000))}" for notice in shown)
        yield from filter(None, [more(len(report.notices) - extent.rows, "notice")])


def _foot(report: Report, options: ReportOptions) -> Iterator[str]:
    facts = [f"run {report.run.run_id}", f"started {report.run.started_at}", f"seed {report.plan.seed}"]
    if report.run.commit:
        facts.append(f"commit {report.run.commit[:12]}{', changed since' if report.run.dirty else ''}")
    facts += [f"{name} {version}" for name, version in report.run.versions.items()]
    facts += [f"journal {options.journal}"] if options.journal else []
    yield "---"
    yield " · ".join(markdown(one_line(fact, 300)) for fact in facts)


def _aggregate(value: Aggregate) -> str:
    missing = f", {value.missing} missing" if value.missing else ""
    return f"{_value(value.value)} (n={value.n}{missing})"


def _value(value: float | str | None, bound: float | str | None = None) -> str:
    if value is None:
        return NOTHING
    return value if isinstance(value, str) else figure(value, bound)


def _worst_first(verdict: Verdict) -> int:
    return -list(Verdict).index(verdict)
