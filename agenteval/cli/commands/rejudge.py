"""Implements ``agenteval report RUN --rejudge``: judges a stored run again. ``score`` is applied to the run's
journal. The journal contains the earlier judge requests and their answers, so judges are asked only about
what has changed."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, redirect_stdout
from dataclasses import replace
from pathlib import Path

import anyio
from rich.console import RenderableType

from agenteval.adapters.traffic.middleware import RecordingOptions
from agenteval.adapters.traffic.recorded_answers import AnswerCounts, RejudgedAnswers, collect_answers
from agenteval.cli.commands.output import make_report_options, write_report_text
from agenteval.cli.commands.score import score
from agenteval.cli.safe_output import print_err
from agenteval.conversation.rescoring import Rescoring, rescore
from agenteval.conversation.runtime import RunControl
from agenteval.core.config import Config, ReporterChoice
from agenteval.core.errors import AuthorError, Problem
from agenteval.core.event import Event, SampleFinished
from agenteval.core.plan import Plan
from agenteval.core.plurals import plural
from agenteval.core.protocols import Scorer
from agenteval.core.trajectory import Usage
from agenteval.files import runs
from agenteval.files.prompts import CRITERIA
from agenteval.importers.logs import ImportWarnings
from agenteval.planning.forecast import REPLY_TOKENS
from agenteval.planning.score_preparation import (
    ScoreRequest,
    find_score_sources,
    load_score,
    make_reader,
    read_conversations,
    resolve_score,
    wire_score,
)
from agenteval.reporters.options import Detail
from agenteval.reporters.terminal.cells import clean_text, plain_table
from agenteval.reporters.terminal.screen import render_parts
from agenteval.reporters.words.spending import amount
from agenteval.running.registries import REGISTRIES
from agenteval.running.stored_runs import runs_root
from agenteval.scoring.judges.custom_scorer import CustomScorer
from agenteval.verdict.ledger import cost_of, how_to_price, price_of


def rejudge(
    name: str,
    request: ScoreRequest,
    *,
    dry: bool = False,
    reports: Sequence[ReporterChoice] = (),
    detail: Detail = "usual",
    opens: bool = False,
) -> int:
    """Judge a run again as a new run with its own folder, and return the exit code. ``request`` contains the
    other options. If ``dry`` is True (dry run), nothing is called or written; the requests that would be sent
    are only counted. Raise ``AuthorError`` if the run cannot be judged."""
    if dry and reports:
        what = "--report cannot be combined with --dry-run"
        raise AuthorError(Problem(what, "remove one of them"))
    path = runs.find_run(name, runs_root())
    journal = path / runs.JOURNAL_FILE if path.is_dir() else path
    answers = RejudgedAnswers(collect_answers(runs.load_run(path)))
    recording = RecordingOptions(rejudged=answers, calls_models=not dry)
    request = replace(request, files=(str(journal),), must_judge=True, recording=recording)
    if not dry:
        return score(request, reports=reports, detail=detail, opens=opens)
    with redirect_stdout(sys.stderr):
        config, parts = _forecast(request, answers)
    options = make_report_options(ReporterChoice(name="terminal"), folder=Path(config.root), detail=detail)
    write_report_text("terminal", render_parts(parts, options), None)
    return 0


def _forecast(request: ScoreRequest, answers: RejudgedAnswers) -> tuple[Config, list[RenderableType]]:
    """Build all judge requests without sending any."""
    with ExitStack() as stack:
        suite = load_score(request, REGISTRIES)
        wired = wire_score(suite)
        remarks = ImportWarnings()
        sources = find_score_sources(
            request, Path(suite.config.root), stack, warn=remarks.add, warn_waiting=print_err
        )
        plan = resolve_score(suite, sources)
        reader = make_reader(suite, sources, remarks)
        conversations = read_conversations(suite, reader, wired)
        judges = [judge for judge in wired.judges if not isinstance(judge, CustomScorer)]
        classes = [judge.metric for judge in wired.judges if isinstance(judge, CustomScorer)]
        seen: Counter[type[Event]] = Counter()
        rescoring = Rescoring(
            _no_checks,
            judges,
            visibility=plan.visibility,
            max_concurrent=suite.config.concurrency,
        )
        anyio.run(rescore, conversations, rescoring, lambda event: seen.update([type(event)]), RunControl())
    return suite.config, list(_render(answers.counts, seen[SampleFinished], classes, plan))


def _no_checks(_: object) -> Sequence[Scorer]:
    """Return no checks. Code checks cost nothing, so a forecast need not run the author's code."""
    return ()


# ── words ────────────────────────────────────────────────────────────────────────────────────────


def _render(
    tally: AnswerCounts, conversations: int, classes: Sequence[str], plan: Plan
) -> Iterator[RenderableType]:
    model = plan.suite.model("judge")
    yield clean_text(f"{plural(conversations, 'conversation')}, judged by {model}; no model was called\n")
    table = plain_table()
    table.add_column("metric", overflow="fold")
    for title in ("kept", "calls", "tokens in"):
        table.add_column(title, justify="right", no_wrap=True)
    for name in tally.metrics:
        calls, tokens = tally.calls[name], tally.tokens[name]
        table.add_row(
            clean_text(name), f"{tally.reused[name]:,}", f"{calls:,}", f"≈{tokens:,}" if tokens else "0"
        )
    yield table
    calls, tokens = tally.calls.total(), tally.tokens.total()
    tokens_out = calls * REPLY_TOKENS["judge"]
    sums = f"{plural(calls, 'call')}, ≈{tokens:,} tokens in, ≈{tokens_out:,} out" if calls else "0 calls"
    yield clean_text(f"\n{sums}{_cost(Usage(input_tokens=tokens, output_tokens=tokens_out), model, plan)}")
    for note in _notes(tally, classes, plan):
        yield clean_text(f"note: {note}")


def _cost(usage: Usage, model: str, plan: Plan) -> str:
    if not usage.tokens:
        return ""
    price = price_of(model, plan.suite.prices)
    return (
        f", cost ≈{amount(cost_of(usage, price))} USD" if price else f", cost unknown: {how_to_price(model)}"
    )


def _notes(tally: AnswerCounts, classes: Sequence[str], plan: Plan) -> Iterator[str]:
    if not tally.reused:
        yield "the journal answers none of these requests, because the prompts, model or record changed"
    if tally.calls and plan.suite.corroborate:
        yield "verdicts that would fail or excuse the agent are checked twice, as is a tenth of the others"
    if classes:
        yield f"model calls by {', '.join(classes)} are not counted"
    if CRITERIA in tally.calls and tally.calls[CRITERIA] > 1:
        yield f"{CRITERIA}: one call per sentence"
    yield "issues are grouped again if the findings differ"
