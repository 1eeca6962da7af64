"""``agenteval report RUN --rejudge``: a kept run judged anew. It is ``score`` over the run's journal, which
knows what its judges were asked and said: only what changed is asked."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, redirect_stdout
from dataclasses import replace
from pathlib import Path

import anyio
from rich.console import RenderableType

from agenteval.adapters.traffic.kept import AskedCounts, Kept, answers_in
from agenteval.adapters.traffic.middleware import Recording
from agenteval.cli.commands.output import deliver, options_of
from agenteval.cli.commands.report import runs_root
from agenteval.cli.commands.score import score
from agenteval.cli.known import KNOWN
from agenteval.cli.way_out import say
from agenteval.conversation.pipeline import Control
from agenteval.conversation.rescoring import Rescoring, rescore
from agenteval.core.config import Config, ReporterChoice
from agenteval.core.errors import AuthorError, Problem
from agenteval.core.event import Event, SampleFinished
from agenteval.core.plan import Plan
from agenteval.core.plurals import plural
from agenteval.core.protocols import Scorer
from agenteval.core.trajectory import Usage
from agenteval.files import runs
from agenteval.files.prompts import CRITERIA
from agenteval.importers.logs import Remarks
from agenteval.planning.forecast import REPLY_TOKENS
from agenteval.planning.score_prepare import (
    ScoreRequest,
    conversations_of,
    files_of,
    prepare,
    reader_of,
    with_sources,
)
from agenteval.reporters.options import Detail
from agenteval.reporters.terminal.cells import free, plain_table
from agenteval.reporters.terminal.screen import painted
from agenteval.reporters.words.spending import amount
from agenteval.scoring.judges.custom_scorer import CustomScorer
from agenteval.verdict.ledger import cost_of, how_to_price, price_of


def rejudge(
    name: str,
    request: ScoreRequest,
    *,
    dry: bool = False,
    reports: Sequence[ReporterChoice] = (),
    detail: Detail = "usual",
) -> int:
    """Returns the exit code of the new run, in a folder of its own. ``request``: what else was asked for.
    With ``dry`` nothing is called or written: what it would ask is reported. Raises ``AuthorError``."""
    if dry and reports:
        what = "--dry-run writes no report"
        raise AuthorError(Problem(what, "remove --report, or judge without --dry-run"))
    path = runs.find_run(name, runs_root())
    journal = path / runs.JOURNAL if path.is_dir() else path
    kept = Kept(answers_in(runs.load_run(path)))
    recording = Recording(kept=kept, asks=not dry)
    request = replace(request, files=(str(journal),), must_judge=True, recording=recording)
    if not dry:
        return score(request, reports=reports, detail=detail)
    with redirect_stdout(sys.stderr):
        config, parts = _forecast(request, kept)
    options = options_of(ReporterChoice(name="terminal"), folder=Path(config.root), detail=detail)
    deliver("terminal", painted(parts, options), None)
    return 0


def _forecast(request: ScoreRequest, kept: Kept) -> tuple[Config, list[RenderableType]]:
    """Every question of the judges is made as it would be sent, and none is."""
    with ExitStack() as stack:
        prepared = prepare(request, KNOWN)
        remarks = Remarks()
        sources = files_of(request, Path(prepared.config.root), stack, tell=remarks.add, tell_waiting=say)
        prepared = with_sources(prepared, request, sources)
        reader = reader_of(request, prepared, sources, remarks)
        conversations = conversations_of(reader, request, prepared)
        judges = [judge for judge in prepared.judges if not isinstance(judge, CustomScorer)]
        classes = [judge.metric for judge in prepared.judges if isinstance(judge, CustomScorer)]
        seen: Counter[type[Event]] = Counter()
        rescoring = Rescoring(
            _no_checks,
            judges,
            visibility=prepared.plan.visibility,
            in_flight=prepared.config.concurrency,
        )
        anyio.run(rescore, conversations, rescoring, lambda event: seen.update([type(event)]), Control())
    return prepared.config, list(_parts(kept.tally, seen[SampleFinished], classes, prepared.plan))


def _no_checks(_: object) -> Sequence[Scorer]:
    """Code costs nothing, and the author's is not called."""
    return ()


# ── words ────────────────────────────────────────────────────────────────────────────────────────


def _parts(
    tally: AskedCounts, conversations: int, classes: Sequence[str], plan: Plan
) -> Iterator[RenderableType]:
    model = plan.suite.model("judge")
    yield free(f"{plural(conversations, 'conversation')}, judged by {model}; nothing was called\n")
    table = plain_table()
    table.add_column("metric", overflow="fold")
    for title in ("kept", "calls", "tokens in"):
        table.add_column(title, justify="right", no_wrap=True)
    for name in tally.metrics:
        calls, tokens = tally.calls[name], tally.tokens[name]
        table.add_row(free(name), f"{tally.taken[name]:,}", f"{calls:,}", f"≈{tokens:,}" if tokens else "0")
    yield table
    calls, tokens = tally.calls.total(), tally.tokens.total()
    said = calls * REPLY_TOKENS["judge"]
    sums = f"{plural(calls, 'call')}, ≈{tokens:,} tokens in, ≈{said:,} out" if calls else "0 calls"
    yield free(f"\n{sums}{_cost(Usage(input_tokens=tokens, output_tokens=said), model, plan)}")
    for note in _notes(tally, classes, plan):
        yield free(f"note: {note}")


def _cost(usage: Usage, model: str, plan: Plan) -> str:
    if not usage.tokens:
        return ""
    price = price_of(model, plan.suite.prices)
    return (
        f", cost ≈{amount(cost_of(usage, price))} USD" if price else f", cost unknown: {how_to_price(model)}"
    )


def _notes(tally: AskedCounts, classes: Sequence[str], plan: Plan) -> Iterator[str]:
    if not tally.taken:
        yield "the journal has no answer to any of these requests: prompts, model or record have changed"
    if tally.calls and plan.suite.corroborate:
        yield "verdicts that would fail or excuse something are asked again, as is a tenth of the clean ones"
    if classes:
        yield f"what {', '.join(classes)} ask{'s' if len(classes) == 1 else ''} of a model is not counted"
    if CRITERIA in tally.calls and tally.calls[CRITERIA] > 1:
        yield f"{CRITERIA}: a call for each sentence"
    yield "the grouping of issues is asked again if other faults are found"
