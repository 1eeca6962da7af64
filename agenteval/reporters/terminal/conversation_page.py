"""Show a single conversation (``agenteval show``), with the judgments for each turn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from agenteval.core.call_outcomes import format_user_call
from agenteval.core.decision import Decision, SampleDecision, Violation
from agenteval.core.event import ModelAsked
from agenteval.core.plurals import plural
from agenteval.core.safe_text import clean, one_line
from agenteval.core.sample_report import SampleReport, ScenarioReport, TurnReport
from agenteval.core.scenario import SampleKey
from agenteval.core.score import Check, Finding, References, Score, ScoreFailure, Verdict
from agenteval.core.trajectory import Step, ToolCall, Trajectory, Turn
from agenteval.files.prompts import BUILT_IN_METRICS
from agenteval.reporters.options import ReportOptions
from agenteval.reporters.terminal.cells import UNDECIDED_STYLE, clean_text, mark, style_of, unbroken
from agenteval.reporters.words.failure import (
    NEVER_RAN,
    planned,
    sample_violations,
    scenario_decision,
    scenario_violations,
)
from agenteval.reporters.words.json_tree import MOST_LINES, message_text, tree_lines
from agenteval.reporters.words.judge import classify_missing_score, describe_missing_score
from agenteval.reporters.words.places import shown_place, shown_places, split_place
from agenteval.reporters.words.rerun_commands import sample_name
from agenteval.reporters.words.score_cells import (
    ScoreColumn,
    brief_score,
    is_low,
    score_columns,
    threshold_of,
)
from agenteval.reporters.words.state_lines import state_lines
from agenteval.reporters.words.transcript_lines import (
    call_text,
    disclosed_secrets,
    fault_text,
    has_several_agents,
    how_it_ended,
    mask_secrets,
)
from agenteval.verdict.recorded_logs import SEVERE
from agenteval.verdict.report import Report

_WHO = 7
"""The width of the speaker column. The turn number and spacing take up another ``_MARGIN`` columns."""
_MARGIN = 4
_STYLES = {"user": "bold", "→": "magenta", "←": "magenta", "error": "red"}
_ASKED_LINES = 1
_LONGEST = 20_000
"""The maximum number of characters shown for each message. The JSON output contains the full message."""


NOT_RECORDED = "the judge questions were not recorded: the run is older, had no judges, or a file is missing"


def judged_metrics(asked: ModelAsked) -> tuple[str, ...]:
    """Return the name under which a question was asked, followed by the metrics that one call for several
    answered."""
    return asked.metric, *(name for name in asked.answer or () if name in BUILT_IN_METRICS)


@dataclass(frozen=True)
class JudgeExchange:
    """The questions to the judges and their answers, which are shown with ``--judge``."""

    answers: tuple[ModelAsked, ...] | None
    """The recorded questions and answers; ``None`` if the run did not record any."""
    metric: str = ""
    """The only metric to show, with the full text of the question. If this is empty, all metrics are shown in
    short form."""

    @property
    def selected_answers(self) -> tuple[ModelAsked, ...]:
        return tuple(each for each in self.answers or () if self.metric in ("", *judged_metrics(each)))

    def answers_at(self, key: SampleKey, turn: int | None) -> tuple[ModelAsked, ...]:
        return tuple(each for each in self.selected_answers if (each.key, each.turn) == (key, turn))


@dataclass(frozen=True)
class ConversationPage:
    """A conversation of a run, with all information shown on its page."""

    report: Report
    decision: Decision
    scenario_report: ScenarioReport
    key: SampleKey
    sample: SampleReport | None
    """The conversation; ``None`` if it was planned but has not run."""
    running: bool = False
    """True if the run is still in progress."""
    rerun_command: str = ""
    """The command that runs the conversation again; empty if there is no such command."""
    next_command: str = ""
    """The command that shows the next conversation that did not pass; empty if there is no such
    conversation."""
    judge_transcript: JudgeExchange | None = None
    """The questions to the judges and their answers; ``None`` to omit them."""

    @property
    def verdict(self) -> Verdict:
        return self.decision.samples.get(self.key, NEVER_RAN).verdict


def render_page(page: ConversationPage, options: ReportOptions) -> Iterator[RenderableType]:
    """Yield the page, from the name of the conversation to the suggested next commands."""
    yield _head(page)
    yield Text(_place(page, options), style="dim")
    if note := (page.scenario_report.scenario.note or "").strip():
        yield clean_text(f"note: {note}", "dim")
    if page.judge_transcript and page.judge_transcript.answers is None:
        yield Text(NOT_RECORDED, style=UNDECIDED_STYLE)
    if page.sample is not None:
        yield _conversation(page, page.sample, options)
    yield from _foot(page, options)


# ── head and foot ────────────────────────────────────────────────────────────────────────────────


def _head(page: ConversationPage) -> Text:
    line = Text.assemble((sample_name(page.key), "bold"), "  ", (_state(page), style_of(page.verdict)))
    several = page.report.has_several_agents
    parts = [f"agent {one_line(page.scenario_report.agent, 60)}"] if several else []
    parts += [f"run {page.report.run.run_id}"]
    if page.sample is not None:
        parts += list(_figures(page.sample.trajectory))
    if page.report.scripted and page.sample is not None and page.sample.scripted:
        parts.append("scripted: no model judged it")
    return line.append(f"   {' · '.join(parts)}", style="dim")


def _state(page: ConversationPage) -> str:
    if page.sample is not None and page.sample.stop is None:
        return "UNDER WAY" if page.running else "CUT OFF"
    if page.sample is None:
        return "NOT STARTED" if page.running else "NOT RUN"
    return page.verdict.upper()


def _figures(trajectory: Trajectory) -> Iterator[str]:
    yield plural(len(trajectory.all_turns), "turn")
    if trajectory.tool_calls:
        yield plural(len(trajectory.tool_calls), "call")
    if trajectory.latency_ms:
        yield duration(trajectory.latency_ms)
    if trajectory.tokens:
        yield f"{'≈' if trajectory.usage.estimated else ''}{trajectory.tokens:,} tokens"


def duration(ms: float) -> str:
    """Format a duration as ``26 ms`` or ``3.4 s``."""
    return f"{ms:,.0f} ms" if round(ms) < 1000 else f"{ms / 1000:,.1f} s"


def _place(page: ConversationPage, options: ReportOptions) -> str:
    record = page.sample.record if page.sample else ""
    spec = page.scenario_report.scenario
    place = shown_places((record or spec.where(), spec.row), options.root)
    name = one_line(page.scenario_report.scenario.name, 200)
    return f"{place}  {name}" if name and name != page.scenario_report.scenario.id else place


def _foot(page: ConversationPage, options: ReportOptions) -> Iterator[RenderableType]:
    epochs = list(planned(page.scenario_report))
    if len(epochs) > 1:
        line = Text("epochs ", style="dim")
        for key, _ in epochs:
            verdict = page.decision.samples.get(key, NEVER_RAN).verdict
            here = "bold" if key == page.key else "dim"
            line.append(f" {_variant(key)}{key.epoch + 1} ", style=here).append_text(mark(verdict))
        yield line
    for violation in scenario_violations(page.scenario_report, page.decision):
        yield _rule(violation, "", options)
    if page.rerun_command:
        yield unbroken(f"repeat: {page.rerun_command}", "dim")
    if page.next_command:
        yield unbroken(f"next:   {page.next_command}", "dim")


def _variant(key: SampleKey) -> str:
    return f"[{one_line(key.variant, 30)}]" if key.variant else ""


# ── the conversation ─────────────────────────────────────────────────────────────────────────────


class _TurnTable:
    """A table with columns for turn, speaker and text. The turn number is shown in the first row of each
    turn."""

    def __init__(self, sample: SampleReport) -> None:
        self.table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1, 0, 0))
        self.table.add_column(style="dim", justify="right", no_wrap=True)
        self.table.add_column(no_wrap=True, min_width=_WHO - 1)
        self.table.add_column(overflow="fold")
        self._hidden = disclosed_secrets(sample)
        self._turn = ""

    def begin(self, turn: int) -> None:
        self._turn = str(turn + 1)

    def begin_earlier(self) -> None:
        """Begin a turn that precedes the conversation."""
        self._turn = "before"

    def add(self, who: str, content: str | Text, style: str = "") -> None:
        text = content if isinstance(content, Text) else Text(self.safe(content), style=style)
        self.table.add_row(self._turn, Text(who, style=_STYLES.get(who, "dim")), text)
        self._turn = ""

    def safe(self, text: str) -> str:
        """Remove characters that a terminal would interpret, and mask secrets that the agent disclosed."""
        if len(text) > _LONGEST:
            text = f"{text[:_LONGEST]}… {plural(len(text) - _LONGEST, 'more character')}; --json shows all"
        return mask_secrets(clean(text), self._hidden)


def _conversation(page: ConversationPage, sample: SampleReport, options: ReportOptions) -> Table:
    sample = sample.in_full
    table = _TurnTable(sample)
    width = max(30, options.width - _WHO - _MARGIN)
    annotations = _TurnAnnotations(page, sample, table, options)
    by_name = has_several_agents(sample)
    for earlier in page.scenario_report.scenario.history_turns:
        table.begin_earlier()
        _add_turn(table, earlier, width, by_name=by_name)
    for index, turn in enumerate(sample.turns):
        table.begin(index)
        _add_turn(table, turn.turn, width, by_name=by_name)
        before = sample.turns[index - 1].turn.state if index else None
        for line in state_lines(before, turn.turn.state):
            table.add("state", line, "cyan")
        annotations.turn(index, turn)
    if end_state := sample.trajectory.end_state:
        for line in state_lines(sample.turns[-1].turn.state if sample.turns else None, end_state):
            table.add("state", f"after the last answer: {line}", "cyan")
    annotations.whole()
    return table.table


def _add_turn(table: _TurnTable, turn: Turn, width: int, *, by_name: bool) -> None:
    for call in turn.user_tool_calls:
        table.add("does", one_line(format_user_call(call), _LONGEST), "cyan")
    table.add("user", message_text(turn.user, width) or "(empty)", "bold")
    if turn.user_wrote is not None:
        table.add("", f"(written: {message_text(turn.user_wrote, width)})", "dim")
    for step in turn.steps:
        if step.text or not step.tool_calls:
            text = message_text((step.text or "").strip("\n"), width) or "(empty)"
            table.add("agent", _speaker_prefix(step.agent, by_name) + text)
        for at, call in enumerate(step.tool_calls):
            _add_call(table, call, step if at == 0 and len(turn.steps) > 1 else None, width, by_name=by_name)
    if turn.error:
        table.add("error", turn.error, "red")


def _speaker_prefix(agent: str, by_name: bool) -> str:
    return f"({one_line(agent, 60)}) " if by_name and agent else ""


def _add_call(table: _TurnTable, call: ToolCall, step: Step | None, width: int, *, by_name: bool) -> None:
    latency = f"  {duration(step.latency_ms)}" if step and step.latency_ms else ""
    head = Text(table.safe(_speaker_prefix(call.agent, by_name) + _call(call, width)), style="magenta")
    table.add("→", head.append(latency, style="dim"))
    if call.given_up:
        table.add("←", "(the agent did not wait)", "dim")
    elif call.result is not None:
        is_error = call.result.is_error
        table.add("←", "\n".join(tree_lines(call.result.value, width)), "red" if is_error else "")
        if call.result.fault:
            table.add("", one_line(fault_text(call.result.fault), 200), "yellow")


def _call(call: ToolCall, width: int) -> str:
    """Format a call on one line if it fits; otherwise, format the arguments as a tree below the name."""
    line = call_text(call)
    if call.args is None or (len(line) <= width and not line.endswith("…)")):
        return line
    below = "\n".join(f"  {each}" for each in tree_lines(call.args, width - 2))
    return f"{one_line(call.name, 80)}\n{below}"


# ── annotations ──────────────────────────────────────────────────────────────────────────────────


class _TurnAnnotations:
    """The checks, scores and findings of a conversation, each of which is shown at its turn on the page.
    Annotations on the whole conversation are shown at the end, along with any remaining reasons for the
    verdict."""

    def __init__(
        self, page: ConversationPage, sample: SampleReport, table: _TurnTable, options: ReportOptions
    ) -> None:
        self._page = page
        self._sample = sample
        self._table = table
        self._options = options
        self._judge = ""  # the model that was named last
        # If so, only the head of the page says it.
        self._all_scripted = all(score.scripted for score in sample.all_scores)
        self._columns = {column.name: column for column in score_columns(page.report)}

    def turn(self, index: int, report: TurnReport) -> None:
        details = [duration(report.turn.latency_ms)] if report.turn.latency_ms else []
        details += [
            report.turn.user_fault and f"the user's first attempt was refused: {report.turn.user_fault}"
        ]
        self._add_annotations(
            report.checks, report.scores, report.score_failures, index, "", [each for each in details if each]
        )

    def whole(self) -> None:
        sample = self._sample
        self._add_annotations(sample.checks, sample.scores, sample.score_failures, None, "whole", [])
        if sample.review and sample.review.is_fault:
            self._table.add("user?", sample.review.sentence, UNDECIDED_STYLE)
        end = "" if sample.record else how_it_ended(sample)
        if end:
            self._table.add("end", end, "dim")
        for violation in self._unreported(end):
            self._table.add("", _rule(violation, self._page.scenario_report.scenario.where(), self._options))
        for accepted in self._decided.accepted:
            self._table.add("", f"accepted: {accepted.name}: {accepted.detail}", "dim")

    @property
    def _decided(self) -> SampleDecision:
        return self._page.decision.samples.get(self._page.key, NEVER_RAN)

    def _unreported(self, end: str) -> list[Violation]:
        """Return the reasons why the sample did not pass, excluding reasons that are shown at a turn."""
        shown = {check.name for check in self._sample.all_checks if not check.passed} | {SEVERE, "judge"}
        violations = sample_violations(
            self._sample, self._decided, self._page.scenario_report.scenario.where()
        )
        shown_text = " ".join((end, *(report.turn.error or "" for report in self._sample.turns)))
        return [
            v for v in violations if v.name not in shown and not (v.detail.strip() and v.detail in shown_text)
        ]

    def _add_annotations(
        self,
        checks: Sequence[Check],
        scores: Sequence[Score],
        failures: Sequence[ScoreFailure],
        turn: int | None,
        who: str,
        more: Sequence[str],
    ) -> None:
        findings = [finding for finding in self._sample.findings if finding.turn == turn]
        found = {finding.metric for finding in findings}
        rows = [
            self._brief(checks, [s for s in scores if s.metric not in found or s.value is not None], more)
        ]
        rows += [self._check(check) for check in checks if not check.passed]
        rows += [row for finding in findings for row in self._finding(finding)]
        rows += [row for score in scores if score.metric not in found for row in self._why(score)]
        rows += [self._missing_score(failure) for failure in failures]
        for row in filter(None, rows):
            self._table.add(who, row)
            who = ""
        if self._page.judge_transcript:
            for who, row in self._judged(scores, turn):
                self._table.add(who, row)

    # ── --judge ──────────────────────────────────────────────────────────────────────────────────

    def _judged(self, scores: Sequence[Score], turn: int | None) -> Iterator[tuple[str, Text]]:
        """Yield the question to each judge, the judge's answer, and the result of verifying the answer's
        references."""
        judging = self._page.judge_transcript
        assert judging is not None
        answers = judging.answers_at(self._page.key, turn)
        for each in answers:
            by = f" · {one_line(each.model, 80)}" if each.model not in ("", self._judge) else ""
            self._judge = each.model or self._judge
            question = self._table.safe(self._question(each, whole=bool(judging.metric)))
            yield "judge", Text(self._table.safe(f"{each.metric}{by}"), style="bold")
            yield "asked", Text(question, style="dim")
            yield "said", self._answer(each)
        answered = {each.metric for each in answers}
        for score in scores:
            if judging.metric in ("", score.metric) and (line := self._checked(score)):
                yield ("" if score.metric in answered else "judge"), line

    def _question(self, asked: ModelAsked, *, whole: bool) -> str:
        """Return the question without the transcript of the conversation, which the page already shows."""
        if whole:
            return f"{asked.system}\n\n{asked.prompt}".strip()
        rules = asked.prompt[asked.record :]
        lines = [line for line in rules.rpartition("\n# ")[2].split("\n") if line.strip()]
        more = len(rules.split("\n")) - _ASKED_LINES
        rest = f" … {plural(more, 'more line')}; --metric {asked.metric} shows all" if more > 0 else ""
        return " ".join(lines[1 : 1 + _ASKED_LINES] or lines) + rest

    def _answer(self, asked: ModelAsked) -> Text:
        """Format the judge's answer key by key, with the full text of each value, omitting empty values."""
        if asked.answer is None:
            return Text(self._table.safe(asked.error or "nothing"), style="red")
        width = max(30, self._options.width - _WHO - _MARGIN)
        lines = []
        for name, value in asked.answer.items():
            if isinstance(value, str):
                lines += [f"{name}: {value}"] if value.strip() else []
            elif value not in (None, [], {}):
                below = tree_lines(value, width, most=10 * MOST_LINES)
                lines.append(f"{name}: {below[0]}" if len(below) == 1 else "\n  ".join((f"{name}:", *below)))
        return Text(self._table.safe("\n".join(lines) or "nothing"))

    def _checked(self, score: Score) -> Text | None:
        parts = list(self._references(score.references))
        if score.votes:
            votes = ", ".join(one_line(str(vote.verdict), 60) for vote in score.votes)
            parts.append(f"asked {len(score.votes)} times: {votes}")
        if not parts:
            return None
        line = Text.assemble((f"{self._column(score).short} {self._brief_score(score)}", "bold"), " ")
        return line.append(self._table.safe(" · ".join(parts)))

    def _references(self, references: References) -> Iterator[str]:
        """Yield the references of a score. They were verified by code: an answer with a wrong reference is
        discarded."""
        calls = self._sample.trajectory.tool_calls
        for name, at in (("call", references.call), ("repeats call", references.other_call)):
            if at is not None:
                what = f" {call_text(calls[at])}" if at < len(calls) else ""
                yield f"{name} {at + 1}{what}"
        yield from [f"parameter {references.parameter}"] if references.parameter else []
        yield from [f"tool {references.tool}, not called"] if references.tool else []
        yield from [f'source "{one_line(references.source, 300)}"'] if references.source else []
        yield from [f'rule "{one_line(references.rule, 300)}"'] if references.rule else []

    def _brief(self, checks: Sequence[Check], scores: Sequence[Score], more: Sequence[str]) -> Text | None:
        passed = sum(check.passed is True for check in checks)
        line = Text()
        if passed:
            line.append("✓", style="green").append(f" {plural(passed, 'check')}", style="dim")
        judged = [f"{self._column(score).short} {self._brief_score(score)}" for score in scores]
        for part in (*judged, *more):
            line.append(f"{' · ' if line else ''}{self._table.safe(part)}", style="dim")
        return line or None

    def _brief_score(self, score: Score) -> str:
        return brief_score(score.model_copy(update={"scripted": False}) if self._all_scripted else score)

    def _column(self, score: Score) -> ScoreColumn:
        return self._columns.get(score.metric) or ScoreColumn(score.metric, score.metric, is_rate=False)

    def _check(self, check: Check) -> Text:
        verdict = Verdict.FAILED if check.passed is False else Verdict.INCONCLUSIVE
        line = Text.assemble(mark(verdict), " ", (one_line(check.name, 80), "bold"))
        line.append(
            _line_of(check.where, self._page.scenario_report.scenario.where(), self._options), style="dim"
        )
        return line.append(f"  {self._table.safe(check.detail)}" if check.detail.strip() else "")

    def _finding(self, finding: Finding) -> Iterator[Text]:
        counts = self._page.report.plan.suite.fail_on
        gates = counts is not None and finding.severity.rank >= counts.rank
        verdict, style = (Verdict.FAILED, "bold") if gates else (None, UNDECIDED_STYLE)
        sign = mark(verdict) if verdict else Text("!", style=UNDECIDED_STYLE)
        head = f"{finding.severity}: {one_line(finding.label, 80)}"
        line = Text.assemble(sign, " ", (head, style))
        call = f", call {finding.call + 1}" if finding.call is not None else ""
        line.append(f"  ({one_line(finding.found_by, 100)}{call})", style="dim")
        yield line.append(f"  {self._table.safe(finding.explanation)}" if finding.explanation.strip() else "")
        yield from self._quoted(finding.evidence)

    def _quoted(self, evidence: str) -> Iterator[Text]:
        if evidence.strip():
            yield Text(f'  "{self._table.safe(" ".join(evidence.split()))}"', style="italic")

    def _why(self, score: Score) -> Iterator[Text]:
        column = self._column(score)
        bound = threshold_of(self._page.scenario_report, score.metric)
        if score.is_open:
            sign = mark(Verdict.INCONCLUSIVE)
        elif not is_low(score, column, bound):
            return
        else:
            sign = mark(Verdict.FAILED) if self._is_violated(score) else Text("↓", style=UNDECIDED_STYLE)
        line = Text.assemble(sign, " ", (f"{column.short} {self._brief_score(score)}", "bold"))
        yield line.append(f"  {self._table.safe(score.reason)}" if score.reason.strip() else "")
        yield from self._quoted(score.evidence)

    def _is_violated(self, score: Score) -> bool:
        violations = scenario_decision(self._page.decision, self._page.scenario_report).violations
        return any(violation.metric == score.metric for violation in violations)

    def _missing_score(self, failure: ScoreFailure) -> Text:
        line = Text.assemble(mark(Verdict.INCONCLUSIVE), " ", (one_line(failure.metric, 80), "bold"))
        why = describe_missing_score(classify_missing_score(failure))
        return line.append(f"  {why}: {self._table.safe(failure.message)}")


def _rule(violation: Violation, near: str, options: ReportOptions) -> Text:
    line = Text.assemble(mark(violation.verdict), " ", (one_line(violation.name, 80), "bold"))
    line.append(_line_of(violation.where, near, options), style="dim")
    return line.append(f"  {clean(violation.detail)}" if violation.detail.strip() else "")


def _line_of(where: str, near: str, options: ReportOptions) -> str:
    """Return ``  line 94`` if the rule is in the scenario's own file; otherwise, return the full location.
    Return an empty string if there is no location."""
    path, line = split_place(where)
    if not path or where == near:
        return ""
    if line and path == split_place(near)[0]:
        return f"  line {line}"
    return f"  {shown_place(where, options.root)}"
