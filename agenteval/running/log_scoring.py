"""Scores recorded conversations (offline evaluation). Nothing is simulated."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

from agenteval.adapters.traffic.recorded_answers import RejudgedAnswers
from agenteval.conversation.rescoring import Rescoring, rescore
from agenteval.conversation.runtime import RunControl
from agenteval.core.errors import did_you_mean
from agenteval.core.event import Notice
from agenteval.core.plan import Plan
from agenteval.core.plurals import plural
from agenteval.core.protocols import Reviewer, Scorer
from agenteval.core.recorded_conversation import RecordedConversation
from agenteval.core.score import ScoreFailure
from agenteval.core.trajectory import StopReason
from agenteval.files.journal import Journal
from agenteval.importers.logs import JOURNAL, ExpectedScenarios, ImportWarnings, Reader, Source
from agenteval.messages.unplaced_entries import CallFreeNames
from agenteval.planning import judge_setup
from agenteval.planning.plan_resolution import ScenarioRulesCache
from agenteval.planning.score_preparation import (
    RecordedSuite,
    ScoreRequest,
    WiredScore,
    find_score_sources,
    load_score,
    make_reader,
    read_conversations,
    resolve_score,
    wire_score,
)
from agenteval.planning.wiring import make_user_reviewer
from agenteval.running.execution import (
    JournalFold,
    RunSetup,
    RunSteps,
    make_run_folder,
    new_run_id,
    open_emitter,
    perform_run,
    stamp_run_finished,
    stamp_run_started,
)
from agenteval.running.goal_recheck import GoalRecheck, goal_judges
from agenteval.running.observer import Observer
from agenteval.running.registries import REGISTRIES
from agenteval.running.stored_runs import DecidedRun
from agenteval.scoring.judges.excused_goals import ExcusedGoalReviewer
from agenteval.verdict import gates
from agenteval.verdict.report import Report
from agenteval.verdict.stable_fingerprints import StableFingerprints


@dataclass(frozen=True)
class Scoring:
    """All objects that are needed to score recorded conversations."""

    suite: RecordedSuite
    plan: Plan
    wired: WiredScore
    reader: Reader
    sources: Sequence[Source]


def open_scoring(request: ScoreRequest, stack: ExitStack, observer: Observer) -> Scoring:
    """Load and check everything without calling a model. Temporary files are removed when ``stack`` ends.
    Raise ``AuthorError`` if a file or the configuration is invalid."""
    suite = load_score(request, REGISTRIES)
    wired = wire_score(suite)
    remarks = ImportWarnings()
    sources = find_score_sources(
        request, Path(suite.config.root), stack, warn=remarks.add, warn_waiting=observer.show_line
    )
    plan = resolve_score(suite, sources)
    return Scoring(suite, plan, wired, make_reader(suite, sources, remarks), sources)


def score_log(scoring: Scoring, observer: Observer, control: RunControl | None = None) -> DecidedRun:
    """Score all conversations in a new run folder. ``control`` lets another thread stop the run."""
    conversations = read_conversations(scoring.suite, scoring.reader, scoring.wired)
    folder = make_run_folder(Path(scoring.suite.config.root), new_run_id())
    with Journal(folder / JOURNAL) as journal:
        report = _score(scoring, conversations, journal, observer, control or RunControl())
    return DecidedRun(report, gates.decide(report), folder)


def _score(
    scoring: Scoring,
    conversations: Iterator[RecordedConversation],
    journal: Journal,
    observer: Observer,
    control: RunControl,
) -> Report:
    suite, plan, wired, reader = scoring.suite, scoring.plan, scoring.wired, scoring.reader
    settings, expected, resources = suite.settings, suite.expected_scenarios, wired.resources
    started = time.monotonic()
    # The same judge judges the goals of all agents.
    judge = goal_judges({"": wired.judges}).get("")
    goal_recheck = GoalRecheck(ExcusedGoalReviewer(lambda _agent: judge, plan.suite.corroborate))
    # A log is the same in every environment, even if one of them masks some of its words.
    names = StableFingerprints(resources.config_secrets)
    rescoring = Rescoring(
        _make_checks(scoring),
        wired.judges,
        rules_for=ScenarioRulesCache(plan),
        visibility=plan.visibility,
        max_concurrent=suite.config.concurrency,
        reviewer=_make_reviewer(scoring),
    )
    folder, fold = journal.path.parent, JournalFold(journal)
    steps = RunSteps(
        partial(rescore, conversations, rescoring),
        goal_recheck,
        fold.report,
        failures=partial(_find_unmet_expectations, expected, reader),
    )
    with (
        observer.watch(None) as watching,
        open_emitter(resources, folder, [journal, fold, goal_recheck, watching], names) as emit,
    ):
        prompts = judge_setup.hash_prompts(settings.metrics, plan.suite) if wired.judges else {}
        public = settings.public.model_copy(update={"gates": plan.suite.gates})
        # The content of a stream is known only at its end: scenarios are reported with their samples.
        emit(
            stamp_run_started(public, plan, folder.name, suite.request.command, scenarios=(), prompts=prompts)
        )
        perform_run(RunSetup(settings, plan, resources), steps, emit, control, observer.show_line)
        for text in (
            *_rejudged_notes(settings.recording.rejudged),
            *_remarks(scoring, complete=not control.is_stopping),
        ):
            emit(Notice(level="warning", text=text))
        if coverage := reader.coverage.text:
            is_whole = reader.coverage.is_whole
            emit(Notice(level="info" if is_whole else "warning", text=coverage))
            if is_whole:
                observer.show_line(coverage)  # reports list only warnings as remarks
        # If conversations were selected, some expectations may be unmatched; if all are, it is a mistake.
        is_all_read = not control.is_stopping and not reader.search_texts and not expected.is_unmatched
        emit(stamp_run_finished(control, started, expected.unmatched if is_all_read else {}))
    return fold.report()


def _make_reviewer(scoring: Scoring) -> Reviewer | None:
    """Return the reviewer of simulated users, or None if there are no judges. The reviewer checks
    conversations that failed, and conversations with a finding that may exceed a ``--max-rate`` limit."""
    if not scoring.wired.judges:
        return None
    plan = scoring.plan
    bounds = [*plan.suite.max_rates, *([plan.suite.fail_on] if plan.suite.fail_on else [])]
    if bounds:
        least = min(bounds, key=lambda severity: severity.rank)
        plan = plan.with_suite(fail_on_severity=least)
    return make_user_reviewer(plan, scoring.suite.settings.metrics, scoring.wired.resources)


def _make_checks(scoring: Scoring) -> Callable[[RecordedConversation], Sequence[Scorer]]:
    from agenteval.scoring.checks.expectations import ConversationExpectations, TurnExpectations
    from agenteval.scoring.detectors.scorer import DetectorScorer
    from agenteval.scoring.fault_scorer import FaultScorer
    from agenteval.scoring.judges.unjudged_checks import UnjudgedChecks

    plan, wired = scoring.plan, scoring.wired
    of_turns = {is_log: TurnExpectations(recorded=is_log) for is_log in (True, False)}
    always: list[Scorer] = [ConversationExpectations()]
    if not wired.judges:
        always.append(UnjudgedChecks(lambda _: False, "no judge was asked"))
        always.append(FaultScorer(60.0, None, "no judge was asked"))

    @lru_cache(maxsize=1)  # usually all conversations have one policy
    def detectors(agent: str, policy: str, run: tuple[str, str | None] | None) -> Scorer:
        secrets = wired.resources.marked.for_agent(agent, plan.secrets)
        if run is None:
            return DetectorScorer(plan.suite, policy, secrets, recorded=True)
        unmocked, now = run
        update = {"unmocked_tools": unmocked, "now": plan.suite.now or now}
        then = plan.suite.model_copy(update=update)
        return DetectorScorer(then, policy, secrets)

    def checks_of(recorded: RecordedConversation) -> Sequence[Scorer]:
        run = _run_conditions(recorded)
        found = detectors(recorded.key.agent, recorded.scenario.policy, run)
        return (of_turns[run is None], *always, found)

    return checks_of


def _run_conditions(recorded: RecordedConversation) -> tuple[str, str | None] | None:
    """Return the unmocked-tools setting and the current time in the agenteval run to which a conversation
    belongs. Return None for a conversation from a log."""
    run, stop = recorded.run, recorded.trajectory.stop
    if run is None or (stop is not None and stop.reason is StopReason.RECORDED):
        return None
    return run.plan.suite.unmocked_tools, run.plan.suite.now


def _find_unmet_expectations(suite: ExpectedScenarios, reader: Reader) -> Iterator[ScoreFailure]:
    """Yield a failure for each expectation that applied to no conversation, and for each search text that
    matched no conversation. Without these failures, the run would pass although nothing was checked."""
    for text in reader.unmatched_texts:
        what = f"-s {text}: no conversation id contains this text — use an id or part of an id"
        yield ScoreFailure(metric="-s", message=what, author=True)
    if suite.is_unmatched:
        what = "--scenarios: no scenario id matches a conversation, so no expectation was checked"
        what = f"{suite.source}: {what}"
        remedy = "use the conversation ids, or specify the field that contains them with --scenario-from"
        yield ScoreFailure(metric="scenarios", message=f"{what} — {remedy}", author=True)


def _rejudged_notes(answers: RejudgedAnswers | None) -> Iterator[str]:
    """Yield a note with the counts of reused and new answers if a run was judged again."""
    if answers is None:
        return
    reused_count, asked = answers.counts.reused.total(), answers.counts.calls
    named = ", ".join(f"{name} {count:,}" for name, count in sorted(asked.items()))
    reused = plural(reused_count, "answer")
    yield f"judged again: {reused} from the run's journal, {asked.total():,} new" + (
        f" ({named})" if named else ""
    )


def _remarks(scoring: Scoring, *, complete: bool) -> Iterator[str]:
    plan, reader = scoring.plan, scoring.reader
    if not scoring.wired.judges:
        yield "nothing was judged, only code checks were run (use -m PROVIDER/MODEL to run judges)"
    if scoring.suite.dropped_thresholds:
        yield "thresholds were not applied, because nothing was judged"
    for name, why in plan.unapplied.items():
        where = plan.suite.where(f"gates.{name}")
        yield f"`gates.{name}` ({where}) was not applied: {why}"
    yield from reader.warnings.texts()
    yield from _unused_call_free_names(reader.no_calls_in) if complete and not reader.search_texts else ()
    if complete and not reader.search_texts:
        yield from scoring.suite.expected_scenarios.unmatched_warnings()


def _unused_call_free_names(no_calls_in: CallFreeNames) -> Iterator[str]:
    """Warn about names in ``--no-calls-in`` that matched no entry. Such a name may contain a typo, in which
    case the intended entries remain undecided."""
    for name in sorted(no_calls_in.names - no_calls_in.matched):
        near = (
            did_you_mean(name, no_calls_in.unmatched)
            if no_calls_in.unmatched
            else "all entries were recognized"
        )
        yield f"--no-calls-in {name}: no unrecognized entry has this key, role or type — {near}"
