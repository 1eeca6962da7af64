"""``agenteval score``: the scorers over recorded conversations; nothing is simulated."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, redirect_stdout
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import IO, Any, NamedTuple

import anyio

from agenteval import __version__, config_file, gates, judging, loading, preflight, runs, wiring
from agenteval.commands.interrupt import interruptible
from agenteval.commands.output import Target, say, targets_of, write_reports
from agenteval.commands.run import Fan, new_folder, new_id, now
from agenteval.config import Config, ReporterChoice
from agenteval.decision import Decision
from agenteval.errors import AuthorError, NothingSelectedError, Place, Problem
from agenteval.event import Event, IssuesFound, Notice, RunFinished, RunStarted, SampleFinished
from agenteval.findings import located
from agenteval.journal import to_json
from agenteval.pipeline import Control
from agenteval.protocols import Emit, Scorer
from agenteval.recorded.files import JOURNAL, Source, sources_of, spooled
from agenteval.recorded.identity import Naming, Paths, Recorded
from agenteval.recorded.reader import Reader, require_paths
from agenteval.recorded.suite import Suite
from agenteval.redact import redacting
from agenteval.report import Report, fold
from agenteval.rescoring import Rescoring, rescore
from agenteval.retention import KEPT_IN_FULL, Retained
from agenteval.scenario import Scenario
from agenteval.score import ScoreFailure
from agenteval.trajectory import StopReason

_OF_A_FEW = frozenset(("terminal", "github"))
"""Reports that show what was said in a few conversations that failed …"""
_OF_FAILED = _OF_A_FEW | {"junit", "markdown"}
"""… and in all of them. Others show every conversation."""
_HEARTBEAT_S = 5.0
_PIECE = 1 << 20
_MOST_PROBLEMS = 5


@dataclass(frozen=True)
class ScoreRequest:
    """What the command line asked for. ``flags`` are configuration keys that it sets; ``asks_judges``:
    whether it named a model or a metric."""

    files: tuple[str, ...]
    config: str | None = None
    flags: Mapping[str, Any] = field(default_factory=dict)
    paths: Paths = field(default_factory=Paths)
    scenarios: str | None = None
    texts: tuple[str, ...] = ()
    no_judge: bool = False
    asks_judges: bool = False


@dataclass(frozen=True)
class _Prepared:
    config: Config
    public: Config
    resources: wiring.Resources
    metrics: judging.Metrics
    suite: Suite
    judges: tuple[Scorer, ...]
    without_bounds: bool = False
    """Whether thresholds were set that nothing can be held against."""


def score(request: ScoreRequest, *, reports: Sequence[ReporterChoice] = (), verbose: bool = False) -> int:
    """Returns the exit code: that of ``run``. Raises ``AuthorError``."""
    with redirect_stdout(sys.stderr):
        scored = _scored(request, reports, verbose=verbose)
    report, decision, targets, folder = scored
    written = write_reports(report, decision, targets, folder=folder, verbose=verbose)
    return decision.exit_code if written or decision.exit_code else 3


class _Scored(NamedTuple):
    report: Report
    decision: Decision
    targets: Sequence[Target]
    folder: Path


def _scored(request: ScoreRequest, reports: Sequence[ReporterChoice], *, verbose: bool) -> _Scored:
    with ExitStack() as stack:
        prepared = _prepare(request)
        targets = targets_of(prepared.config, reports)
        sources = _sources(request, Path(prepared.config.root), stack)
        require_paths(sources, request.paths.options)
        reader = _reader(request, prepared, sources)
        conversations = _from_first_readable(reader, request)
        if not prepared.judges:
            conversations = map(_without_bounds, conversations)
        retained = _retained(prepared, targets, verbose=verbose)
        folder = new_folder(Path(prepared.config.root), new_id())
        _run(prepared, reader, conversations, retained, folder)
    told = fold(retained.events())
    return _Scored(told, gates.decide(told), targets, folder)


def _retained(prepared: _Prepared, targets: Sequence[Target], *, verbose: bool) -> Retained:
    """What the reports will show is kept until they are written; all of what was paid for."""
    names = {choice.name for choice, _ in targets}
    if verbose or prepared.judges or names - _OF_FAILED:
        return Retained(prepared.config, everything=True)
    return Retained(prepared.config, most=KEPT_IN_FULL if names <= _OF_A_FEW else sys.maxsize)


# ── before anything is scored ────────────────────────────────────────────────────────────────────


def _prepare(request: ScoreRequest) -> _Prepared:
    path = Path(request.config) if request.config else config_file.find_config(Path.cwd())
    loaded = config_file.load_config(path, environ=os.environ, flags=request.flags)
    config = loaded.config
    judged = not request.no_judge and _is_judging_asked(request, config)
    chosen = judging.metrics_of(config)
    if not judged:
        chosen = replace(chosen, asked=())
    scenarios = _scenarios(request)
    bounds = bool(config.thresholds) or any(scenario.thresholds for scenario in scenarios)
    if not judged:
        # Nothing is judged, so that no bound on judgements can be held or broken; that is told.
        config = config.model_copy(update={"thresholds": {}})
    resources = wiring.Resources(config, loaded.secrets, no_judge=not judged)
    has_criteria = any(scenario.all_criteria for scenario in scenarios)
    priced = preflight.price_problems((), config, chosen, no_judge=not judged)
    if problems := (*preflight.detector_problems(config), *priced):
        raise AuthorError(*problems)
    judges = _judges(chosen, resources, config, has_criteria=has_criteria) if judged else ()
    public = loaded.public.model_copy(update={"thresholds": config.thresholds})
    return _Prepared(config, public, resources, chosen, Suite(scenarios), judges, bounds and not judged)


def _is_judging_asked(request: ScoreRequest, config: Config) -> bool:
    """A model costs money with each turn of each conversation: that it is set for runs is not enough."""
    from_environment = "models.default" in config.origins or "models" in config.origins
    return request.asks_judges or config.models.judge is not None or from_environment


def _scenarios(request: ScoreRequest) -> tuple[Scenario, ...]:
    if request.scenarios is None:
        return ()
    files = loading.find_under([request.scenarios], Path.cwd())
    return loading.load(files, root=Path.cwd())


def _judges(
    chosen: judging.Metrics, resources: wiring.Resources, config: Config, *, has_criteria: bool
) -> tuple[Scorer, ...]:
    model = resources.model("judge")
    needed = has_criteria or any(chosen.is_rubric(spec.name) for spec in chosen.asked)
    if model is None and needed:
        remedy = "add -m PROVIDER/MODEL (for example openai/gpt-5-mini), or set models: {judge: …}"
        raise AuthorError(Problem("judges are asked for, and no model is set", remedy))
    # A journal may bring criteria of its own.
    return judging.scorers_of(
        chosen, model, config, policy_of=lambda scenario: scenario.policy, criteria=model is not None
    )


def _without_bounds(recorded: Recorded) -> Recorded:
    if not recorded.scenario.thresholds:
        return recorded
    return replace(recorded, scenario=recorded.scenario.model_copy(update={"thresholds": {}}))


def _sources(request: ScoreRequest, root: Path, stack: ExitStack) -> list[Source]:
    """Files, folders, ids of runs, and ``-`` for standard input. Raises ``AuthorError``."""
    found: list[Source] = []
    for name in request.files:
        if name == "-":
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="agenteval-"))
            found.append(spooled(sys.stdin.buffer, Path(folder)))
            continue
        run = _run_named(name, root)
        found += sources_of([str(run)] if run else [name], Path.cwd())
    return list(dict.fromkeys(found))


def _run_named(name: str, root: Path) -> Path | None:
    """The journal of the run whose id this is, if it is one."""
    if os.path.exists(name) or "/" in name or os.sep in name:
        return None
    known = {folder.name for folder in runs.runs_under(root)}
    if name in known or name in ("latest", "previous"):
        return runs.find_run(name, root) / JOURNAL
    return None


def _reader(request: ScoreRequest, prepared: _Prepared, sources: Sequence[Source]) -> Reader:
    agent = prepared.config.agent
    policy = wiring.policy_of(agent, prepared.config.root) if agent else ""
    return Reader(
        sources,
        naming=Naming(request.paths, policy),
        policy_of=_policy_in_journal,
        suite=prepared.suite,
        texts=request.texts,
    )


def _policy_in_journal(config: Config, name: str) -> str:
    agents = [*([config.agent] if config.agent else []), *config.agents.values(), *config.compare]
    agent = next((agent for agent in agents if agent.name == name), None)
    return wiring.policy_of(agent, config.root) if agent else ""


def _from_first_readable(reader: Reader, request: ScoreRequest) -> Iterator[Recorded]:
    """All conversations, if there is one that can be read. Raises ``AuthorError`` with the first problems
    where there is none, and ``NothingSelectedError`` where there is nothing."""
    conversations = iter(reader)
    lost: list[Recorded] = []
    for recorded in conversations:
        if recorded.is_readable:
            return chain(lost, [recorded], conversations)
        lost.append(recorded)
    if lost:
        problems = [_problem(each) for each in lost[:_MOST_PROBLEMS]]
        if len(lost) > _MOST_PROBLEMS:
            problems.append(Problem(f"… and {len(lost) - _MOST_PROBLEMS:,} more lines like these"))
        raise AuthorError(*problems)
    if request.texts:
        asked = " ".join(f"-s {text}" for text in request.texts)
        raise NothingSelectedError(Problem(f"{asked} selects no conversation", "-s takes part of an id"))
    names = ", ".join(request.files)
    raise NothingSelectedError(Problem(f"{names}: no conversation", "each line holds one"))


def _problem(lost: Recorded) -> Problem:
    path, _, line = lost.where.rpartition(":")
    stop = lost.trajectory.stop
    detail = stop.detail.removeprefix(f"{lost.where}: ") if stop else ""
    return Problem(detail, "", Place(path, int(line) if line.isdigit() else 0))


# ── scoring ──────────────────────────────────────────────────────────────────────────────────────


def _run(
    prepared: _Prepared,
    reader: Reader,
    conversations: Iterator[Recorded],
    retained: Retained,
    folder: Path,
) -> None:
    control = Control()
    began = time.monotonic()
    # Unless judges are paid, a score is soon made again, and lines are written faster in large pieces.
    with (folder / JOURNAL).open("xb", buffering=_PIECE) as file:
        journal = _JournalFile(file, at_once=bool(prepared.judges))
        emit = redacting(Fan([retained, journal, _Heartbeat()]), prepared.resources.secrets)
        emit(_started(prepared, folder.name))
        try:
            anyio.run(_score_and_close, prepared, conversations, emit, control, retained)
        except KeyboardInterrupt:
            control.stop("interrupted")
        for text in _remarks(prepared, reader, complete=not control.stopping):
            emit(Notice(level="warning", text=text))
        elapsed_s = round(time.monotonic() - began, 3)
        emit(RunFinished(finished_at=now(), outcome=control.outcome, elapsed_s=elapsed_s))


class _JournalFile:
    """A sink. With ``at_once`` each line is on its way to the disk before the next is told."""

    def __init__(self, file: IO[bytes], *, at_once: bool) -> None:
        self._file = file
        self._at_once = at_once

    def __call__(self, event: Event) -> None:
        self._file.write(f"{to_json(event)}\n".encode())
        if self._at_once:
            self._file.flush()


def _started(prepared: _Prepared, run_id: str) -> RunStarted:
    """Its scenarios and samples are told with the samples: what a stream holds is known at its end."""
    return RunStarted(
        run_id=run_id,
        started_at=now(),
        config=prepared.public,
        scenarios=(),
        samples=(),
        seed=prepared.config.seed,
        versions={"agenteval": __version__, "python": platform.python_version()},
        prompts=judging.hashes_of(prepared.metrics) if prepared.judges else {},
        metrics=tuple(prepared.metrics.known.values()),
        judged=tuple(spec.name for spec in prepared.metrics.asked),
        no_judge=prepared.resources.no_judge,
        command=tuple(sys.argv[1:]),
    )


async def _score_and_close(
    prepared: _Prepared,
    conversations: Iterator[Recorded],
    emit: Emit,
    control: Control,
    retained: Retained,
) -> None:
    prepared.resources.attach(emit, control)
    config = prepared.config
    plan = Rescoring(_checks_of(prepared), prepared.judges, in_flight=config.concurrency)
    try:
        with interruptible(control):
            await rescore(conversations, plan, emit, control)
            await _find_issues(prepared, emit, control, retained)
    finally:
        with anyio.CancelScope(shield=True):
            await prepared.resources.aclose()


def _checks_of(prepared: _Prepared) -> Callable[[Recorded], Sequence[Scorer]]:
    from agenteval.scorers.expectations import ConversationExpectations, TurnExpectations
    from agenteval.scorers.not_judged import NotJudged

    always: list[Scorer] = [TurnExpectations(), ConversationExpectations()]
    if not prepared.judges:
        always.append(NotJudged(lambda _: False))
    detectors: dict[str, Scorer] = {}

    def checks_of(recorded: Recorded) -> Sequence[Scorer]:
        policy = recorded.scenario.policy
        if recorded.replayed is not None:
            return (*always, _detectors(prepared.config, recorded))
        if policy not in detectors:  # mostly one policy holds for all
            detectors.clear()
            detectors[policy] = _detectors(prepared.config, recorded)
        return (*always, detectors[policy])

    return checks_of


def _detectors(config: Config, recorded: Recorded) -> Scorer:
    """Of a run of ours it is known what could be called and when it was; of a log, what it declares."""
    from agenteval.scorers.detectors import Detectors

    policy, sample, stop = recorded.scenario.policy, recorded.replayed, recorded.trajectory.stop
    if sample is None or (stop and stop.reason is StopReason.RECORDED):
        return Detectors(config, policy, recorded=True)
    then = {"unmocked_tools": sample.config.unmocked_tools, "now": config.now or sample.config.now}
    return Detectors(config.model_copy(update=then), policy)


async def _find_issues(prepared: _Prepared, emit: Emit, control: Control, retained: Retained) -> None:
    """Group the findings; by a model only where judges were asked."""
    samples = fold(retained.events(found=True)).samples
    found = located((sample.key, sample.trajectory, sample.findings) for sample in samples)
    if not found:
        return
    from agenteval.issues import deduplicate

    model = prepared.resources.model("dedup") if prepared.judges and not control.stopping else None
    try:
        grouped = await deduplicate(found, model)
    except AuthorError as error:
        grouped = await deduplicate(found)
        failure = ScoreFailure(metric="error_deduplication", message=str(error), author=True)
        grouped = grouped._replace(failures=(failure,))
    emit(IssuesFound(issues=grouped.issues, usage=grouped.usage, failures=grouped.failures))


def _remarks(prepared: _Prepared, reader: Reader, *, complete: bool) -> Iterator[str]:
    if not prepared.judges:
        yield "nothing was judged: checks in code alone (-m PROVIDER/MODEL asks judges)"
    if prepared.without_bounds:
        yield "thresholds were not applied: there are no judgements to hold against them"
    yield from reader.remarks.texts()
    if complete and not reader.texts:
        yield from prepared.suite.remarks()


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
