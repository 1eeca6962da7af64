"""``agenteval score``: the scorers over recorded conversations; nothing is simulated."""

from __future__ import annotations

import platform
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import anyio

from agenteval import __version__
from agenteval.adapters.models.kept import Kept
from agenteval.cli.commands.execution import Fan, new_folder, new_id, now
from agenteval.cli.commands.garbage import few_collections
from agenteval.cli.commands.interrupt import completing, interruptible
from agenteval.cli.commands.output import Target, require_apart, targets_of, write_reports
from agenteval.cli.commands.score_journal import JournalFile
from agenteval.cli.commands.score_prepare import (
    PreparedScore,
    ScoreRequest,
    conversations_of,
    files_of,
    prepare,
    read_by,
    reader_of,
    with_its_gates,
    with_known_secrets,
    with_known_visibility,
)
from agenteval.cli.commands.second_look import SecondLook, goal_judges
from agenteval.cli.way_out import say
from agenteval.cli.wiring import user_reviews
from agenteval.conversation.pipeline import Control
from agenteval.conversation.rescoring import Rescoring, rescore
from agenteval.core.config import ReporterChoice
from agenteval.core.decision import Decision
from agenteval.core.errors import did_you_mean
from agenteval.core.event import Event, IssuesFound, Notice, RunFinished, RunStarted, SampleFinished
from agenteval.core.plurals import plural
from agenteval.core.protocols import Emit, Reviewer, Scorer
from agenteval.core.score import ScoreFailure
from agenteval.core.trajectory import StopReason
from agenteval.files.asked_file import ASKED, AskedFile
from agenteval.files.plain_files import for_me_alone
from agenteval.files.recorded.identity import Recorded
from agenteval.files.recorded.reader import Reader, Remarks
from agenteval.files.recorded.sources import JOURNAL
from agenteval.files.recorded.suite import Suite
from agenteval.files.redact import redacting
from agenteval.messages.placed import NoCallsIn
from agenteval.reporters import REPORTERS
from agenteval.reporters.options import Detail
from agenteval.scoring import judging
from agenteval.scoring.judges.excused_goals import ExcusedGoals
from agenteval.scoring.resolve import AppliesInTurn, as_written
from agenteval.verdict import gates
from agenteval.verdict.report import Report, fold
from agenteval.verdict.retention import KEPT_IN_FULL, Retained
from agenteval.verdict.stable_names import StableNames

_HEARTBEAT_S = 5.0
_PIECE = 1 << 20


def score(request: ScoreRequest, *, reports: Sequence[ReporterChoice] = (), detail: Detail = "usual") -> int:
    """Returns the exit code: that of ``run``. Raises ``AuthorError``."""
    with few_collections(), ExitStack() as ending:
        with redirect_stdout(sys.stderr):
            scored = _scored(request, reports, ending, detail=detail)
        report, decision, targets, folder = scored
        return write_reports(report, decision, targets, folder=folder, detail=detail)


class _Scored(NamedTuple):
    report: Report
    decision: Decision
    targets: Sequence[Target]
    folder: Path


def _scored(
    request: ScoreRequest, reports: Sequence[ReporterChoice], ending: ExitStack, *, detail: Detail
) -> _Scored:
    """``ending`` is what holds from the first conversation to the last report."""
    with ExitStack() as stack:
        prepared = prepare(request)
        targets = targets_of(prepared.config, reports)
        remarks = Remarks()
        sources = files_of(request, Path(prepared.config.root), stack, tell=remarks.add)
        require_apart(targets, read_by(request, prepared, sources))
        prepared = with_known_visibility(with_its_gates(prepared, request, sources), sources)
        prepared = with_known_secrets(prepared, sources)
        reader = reader_of(request, prepared, sources, remarks)
        conversations = conversations_of(reader, request, prepared)
        retained = _retained(prepared, targets, detail=detail)
        folder = new_folder(Path(prepared.config.root), new_id())
        ending.enter_context(completing())
        _run(prepared, reader, conversations, retained, folder, request.recording.kept)
    told = fold(retained.events())
    return _Scored(told, gates.decide(told), targets, folder)


def _retained(prepared: PreparedScore, targets: Sequence[Target], *, detail: Detail) -> Retained:
    """What the reports will show is kept until they are written; all of what was paid for."""
    shown = {REPORTERS.get(choice.name).shows for choice, _ in targets}
    if detail == "verbose" or prepared.judges or "all" in shown:
        return Retained(prepared.plan, everything=True)
    return Retained(prepared.plan, most=sys.maxsize if "failed" in shown else KEPT_IN_FULL)


# ── scoring ──────────────────────────────────────────────────────────────────────────────────────


def _run(
    prepared: PreparedScore,
    reader: Reader,
    conversations: Iterator[Recorded],
    retained: Retained,
    folder: Path,
    kept: Kept | None,
) -> None:
    control = Control()
    began = time.monotonic()
    # Unless judges are paid, a score is soon made again, and lines are written faster in large pieces.
    with (
        open(folder / JOURNAL, "xb", buffering=_PIECE, opener=for_me_alone) as file,
        AskedFile(folder / ASKED) as asked,
    ):
        journal = JournalFile(file, at_once=bool(prepared.judges))
        again = _second_look(prepared)
        # A log is the same in every environment, whichever of its words one of them masks.
        names = StableNames(prepared.resources.named)
        sinks = Fan([retained, journal, asked, again, _Heartbeat()])
        resources = prepared.resources
        emit = redacting(sinks, resources.secrets, names, marked=resources.marked.all)
        emit(_started(prepared, folder.name))
        try:
            anyio.run(_score_and_close, prepared, reader, conversations, emit, control, retained, again)
        except KeyboardInterrupt:
            control.stop("interrupted")
        for text in (*_anew(kept), *_remarks(prepared, reader, complete=not control.stopping)):
            emit(Notice(level="warning", text=text))
        if coverage := reader.coverage.text:
            is_whole = reader.coverage.is_whole
            emit(Notice(level="info" if is_whole else "warning", text=coverage))
            if is_whole:
                say(coverage)  # what is no warning stands in no remark
        elapsed_s = round(time.monotonic() - began, 3)
        # Where conversations were chosen it is no wonder that some were not met; that none was is a mistake.
        whole = not control.stopping and not reader.texts and not prepared.suite.is_unmet
        unmet = prepared.suite.unmet if whole else {}
        emit(RunFinished(finished_at=now(), outcome=control.outcome, elapsed_s=elapsed_s, unmet=unmet))


def _started(prepared: PreparedScore, run_id: str) -> RunStarted:
    """Its scenarios and samples are reported with the samples: what a stream holds is known at its end."""
    return RunStarted(
        run_id=run_id,
        started_at=now(),
        config=prepared.public,
        plan=as_written(prepared.plan, prepared.public),
        scenarios=(),
        versions={"agenteval": __version__, "python": platform.python_version()},
        prompts=judging.hashes_of(prepared.metrics, prepared.plan) if prepared.judges else {},
        command=tuple(sys.argv[1:]),
    )


async def _score_and_close(
    prepared: PreparedScore,
    reader: Reader,
    conversations: Iterator[Recorded],
    emit: Emit,
    control: Control,
    retained: Retained,
    again: SecondLook,
) -> None:
    prepared.resources.attach(emit, control)
    rescoring = Rescoring(
        _checks_of(prepared),
        prepared.judges,
        applies_of=AppliesInTurn(prepared.plan),
        visibility=prepared.plan.visibility,
        in_flight=prepared.config.concurrency,
        review=_review_of(prepared),
    )
    try:
        with interruptible(control):
            await rescore(conversations, rescoring, emit, control)
            await again.take(retained.events(), emit, control)
            await _find_issues(prepared, reader, emit, control, retained)
    finally:
        with anyio.CancelScope(shield=True):
            await prepared.resources.aclose()


def _review_of(prepared: PreparedScore) -> Reviewer | None:
    """Users are looked at where judges are asked: in conversations that failed, or that have a finding by
    which ``--max-rate`` may."""
    if not prepared.judges:
        return None
    plan = prepared.plan
    bounds = [*plan.max_rates, *([plan.fail_on] if plan.fail_on else [])]
    if bounds:
        least = min(bounds, key=lambda severity: severity.rank)
        plan = plan.model_copy(update={"fail_on_severity": least})
    return user_reviews(plan, prepared.metrics, prepared.resources)


def _second_look(prepared: PreparedScore) -> SecondLook:
    """Whoever the agents are, one judge has judged all goals."""
    judge = goal_judges({"": prepared.judges}).get("")
    return SecondLook(ExcusedGoals(lambda _agent: judge, prepared.plan.corroborate))


def _checks_of(prepared: PreparedScore) -> Callable[[Recorded], Sequence[Scorer]]:
    from agenteval.scoring.checks.expectations import ConversationExpectations, TurnExpectations
    from agenteval.scoring.judges.not_judged import NotJudged

    always: list[Scorer] = [ConversationExpectations()]
    if not prepared.judges:
        always.append(NotJudged(lambda _: False, "no judge was asked"))
    of_runs: Scorer = TurnExpectations()
    of_logs: Scorer = TurnExpectations(recorded=True)
    detectors: dict[tuple[str, str], Scorer] = {}

    def checks_of(recorded: Recorded) -> Sequence[Scorer]:
        policy = recorded.scenario.policy
        if recorded.replayed is not None:
            of_turns = of_logs if _is_log(recorded) else of_runs
            return (of_turns, *always, _detectors(prepared, recorded))
        of_agent = policy, recorded.key.agent
        if of_agent not in detectors:  # mostly one policy holds for all
            detectors.clear()
            detectors[of_agent] = _detectors(prepared, recorded)
        return (of_logs, *always, detectors[of_agent])

    return checks_of


def _is_log(recorded: Recorded) -> bool:
    stop = recorded.trajectory.stop
    return recorded.replayed is None or (stop is not None and stop.reason is StopReason.RECORDED)


def _detectors(prepared: PreparedScore, recorded: Recorded) -> Scorer:
    """Of a run of ours it is known what could be called and when it was; of a log, what it declares."""
    from agenteval.scoring.detectors.scorer import Detectors

    plan, policy, sample = prepared.plan, recorded.scenario.policy, recorded.replayed
    secrets = prepared.resources.marked.of(recorded.key.agent, plan.secrets)
    if sample is None or _is_log(recorded):
        return Detectors(plan, policy, secrets, recorded=True)
    then = {"unmocked_tools": sample.plan.unmocked_tools, "now": plan.now or sample.plan.now}
    return Detectors(plan.model_copy(update=then), policy, secrets)


async def _find_issues(
    prepared: PreparedScore, reader: Reader, emit: Emit, control: Control, retained: Retained
) -> None:
    """Group the findings; by a model only where judges were asked."""
    from agenteval.scoring.issues import find_issues

    asks = bool(prepared.judges) and not control.stopping
    unmet = () if control.stopping else tuple(_unmet(prepared.suite, reader))
    found = await find_issues(
        fold(retained.events(found=True)).scenarios,
        prepared.resources.model("dedup") if asks else None,
        prompt=prepared.metrics.prompts.prompt("error_deduplication"),
        weighs=prepared.plan.severity_from == "model",
    )
    if found or unmet:
        found = found or IssuesFound(issues=())
        emit(found.model_copy(update={"failures": (*found.failures, *unmet)}))


def _unmet(suite: Suite, reader: Reader) -> Iterator[ScoreFailure]:
    """Expectations that hold for nothing, and conversations that are not there, would leave everything
    green."""
    for text in reader.unmet:
        what = f"-s {text}: no conversation has that in its id — -s takes part of an id"
        yield ScoreFailure(metric="-s", message=what, author=True)
    if suite.is_unmet:
        what = "--scenarios: none of its scenarios has the id of a conversation, so that nothing was expected"
        what = f"{suite.source}: {what}"
        remedy = "give the ids of the conversations, or name where records have them with --scenario-from"
        yield ScoreFailure(metric="scenarios", message=f"{what} — {remedy}", author=True)


def _anew(kept: Kept | None) -> Iterator[str]:
    """Of a run that was judged anew: what of it was asked."""
    if kept is None:
        return
    taken, asked = kept.tally.taken.total(), kept.tally.calls
    named = ", ".join(f"{name} {count:,}" for name, count in sorted(asked.items()))
    answers = plural(taken, "answer")
    yield f"judged again: {answers} from the journal of the run, {asked.total():,} asked" + (
        f" ({named})" if named else ""
    )


def _remarks(prepared: PreparedScore, reader: Reader, *, complete: bool) -> Iterator[str]:
    if not prepared.judges:
        yield "nothing was judged: only checks in code (-m PROVIDER/MODEL asks judges)"
    if prepared.without_bounds:
        yield "thresholds were not applied: nothing was judged"
    for name, why in prepared.plan.unapplied.items():
        where = prepared.plan.where(f"gates.{name}")
        yield f"gates.{name} ({where}) was not applied: {why}"
    yield from reader.remarks.texts()
    yield from _not_met(reader.no_calls_in) if complete and not reader.texts else ()
    if complete and not reader.texts:
        yield from prepared.suite.remarks()


def _not_met(no_calls_in: NoCallsIn) -> Iterator[str]:
    """A slip in a name would leave undecided what it was to decide."""
    for name in sorted(no_calls_in.names - no_calls_in.met):
        near = did_you_mean(name, no_calls_in.others) if no_calls_in.others else "everything was placed"
        yield f"--no-calls-in {name}: nothing that could not be placed has that key, role or type — {near}"


class _Heartbeat:
    """A sink that says now and then how far it is: of a stream nobody knows the length."""

    def __init__(self) -> None:
        self._scored = 0
        self._told = time.monotonic()

    def __call__(self, event: Event) -> None:
        if isinstance(event, SampleFinished):
            self._scored += 1
            if time.monotonic() - self._told >= _HEARTBEAT_S:
                self._told = time.monotonic()
                say(f"{self._scored:,} conversations scored")
