"""Prepares ``agenteval score`` in the same steps as a run: load, find the sources (``find_score_sources``),
resolve, and wire."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from agenteval.adapters.traffic.middleware import RecordingOptions
from agenteval.core.config import Config
from agenteval.core.errors import AuthorError, NothingSelectedError, Problem, parse_place
from agenteval.core.event import RunStarted
from agenteval.core.plan import Plan
from agenteval.core.plurals import plural
from agenteval.core.protocols import Scorer
from agenteval.core.recorded_conversation import RecordedConversation
from agenteval.core.scenario import Scenario
from agenteval.core.score import Severity
from agenteval.core.tool_visibility import declared_visibility
from agenteval.files import runs, scenario_loader
from agenteval.files.config_checks import Registries
from agenteval.files.redaction import register_marked_secrets
from agenteval.importers.logs import (
    JOURNAL,
    ExpectedScenarios,
    FieldPaths,
    ImportWarnings,
    Naming,
    Reader,
    Source,
    check_journals,
    deduplicate_sources,
    find_sources,
    is_journal,
    is_stream,
    lines_of,
    placeholders_in,
    require_paths,
    spool_path,
    spool_stream,
    visibility_in,
)
from agenteval.messages.log_entry import UnreadableRecord
from agenteval.messages.unplaced_entries import CallFreeNames
from agenteval.planning import judge_setup, preflight
from agenteval.planning.plan_resolution import make_plan, rules_for, suite_policy
from agenteval.planning.request import JudgeChoice, Request
from agenteval.planning.run_files import is_unchanged_file, list_input_files
from agenteval.planning.suite import Settings, load_config, make_settings
from agenteval.planning.wiring import Resources, make_resources, policy_file, policy_of
from agenteval.scoring.checks import RULES
from agenteval.verdict.run_gates import unapplied

_MOST_PROBLEMS = 5


@dataclass(frozen=True)
class ScoreRequest:
    """The scoring request from the command line."""

    files: tuple[str, ...] = ()
    config: str | None = None
    judging: JudgeChoice = field(default_factory=JudgeChoice)
    paths: FieldPaths = field(default_factory=FieldPaths)
    scenarios: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    no_calls_in: tuple[str, ...] = ()
    """The names of log entries that do not contain tool calls."""
    max_rates: Mapping[Severity, float] = field(default_factory=dict)
    must_judge: bool = False
    """True if conversations are judged even when no option names a model or a metric."""
    recording: RecordingOptions = field(default_factory=RecordingOptions)
    """The recording options of the run that is judged again."""
    command: tuple[str, ...] = field(default_factory=lambda: tuple(sys.argv[1:]))
    """The arguments of the command line that repeats this request."""
    overrides: Mapping[str, Any] = field(default_factory=dict)
    """The configuration keys that are set in Python. See ``Request``."""


@dataclass(frozen=True)
class RecordedSuite:
    """The settings and expectations for recorded conversations."""

    settings: Settings
    request: ScoreRequest
    expected_scenarios: ExpectedScenarios
    dropped_thresholds: bool = False
    """True if thresholds were set but cannot be evaluated, because nothing is judged."""

    @property
    def config(self) -> Config:
        return self.settings.config


def load_score(request: ScoreRequest, known: Registries) -> RecordedSuite:
    """Load the configuration and the expectations. Raise ``AuthorError`` if either is invalid."""
    loaded = load_config(
        Request(config=request.config, judging=request.judging, overrides=request.overrides), known
    )
    judged = not request.judging.no_judge and _is_judging_asked(request, loaded.config)
    metrics = judge_setup.load_metrics(loaded.config)
    scenarios = _load_expected_scenarios(request)
    has_thresholds = bool(loaded.config.thresholds) or any(scenario.thresholds for scenario in scenarios)
    drops_thresholds = not judged and not request.judging.no_judge
    if drops_thresholds:
        metrics = replace(metrics, selected=())
        # Nothing is judged, so that thresholds on judgements cannot be evaluated; a warning says so. With
        # --no-judge they stay and are undecided, as in a run.
        loaded = loaded.without_thresholds()
    policy = suite_policy(loaded.config, metrics.available.values(), metrics.selected, no_judge=not judged)
    policy = policy.model_copy(update={"max_rates": dict(request.max_rates)})
    settings = make_settings(loaded, metrics, policy, request.recording)
    return RecordedSuite(settings, request, ExpectedScenarios(scenarios), has_thresholds and drops_thresholds)


@dataclass(frozen=True)
class WiredScore:
    """The objects that are needed to score recorded conversations."""

    resources: Resources
    judges: tuple[Scorer, ...]


def wire_score(suite: RecordedSuite) -> WiredScore:
    """Create the objects that the configuration names, without calling any model. Raise ``AuthorError`` with
    all problems found."""
    settings, scenarios = suite.settings, suite.expected_scenarios.scenarios
    no_judge = settings.policy.no_judge
    resources = make_resources(settings)
    problems = (
        *preflight.detector_problems(settings.config),
        *preflight.price_problems((), settings.config, settings.metrics, no_judge=no_judge),
        *preflight.check_problems(scenarios),
    )
    if problems:
        raise AuthorError(*problems)
    has_criteria = any(scenario.all_criteria for scenario in scenarios)
    judges = () if no_judge else _make_judges(settings, resources, has_criteria=has_criteria)
    resources.no_judge = not judges
    resources.model("dedup")  # reports a broken model before anything is asked
    return WiredScore(resources, judges)


def _is_judging_asked(request: ScoreRequest, config: Config) -> bool:
    """Check whether judging was requested. Judging costs money for each turn, so a default model in a
    configuration that was found automatically does not count as a request; a configuration named explicitly
    (``-c``) does."""
    named = request.must_judge or request.judging.model or request.judging.metric
    is_meant = request.config is not None and config.models.model_for("judge") is not None
    from_environment = any(key.startswith("models") for key in config.origins)
    return bool(named) or config.models.judge is not None or is_meant or from_environment


def _load_expected_scenarios(request: ScoreRequest) -> tuple[Scenario, ...]:
    if not request.scenarios:
        return ()
    files = scenario_loader.find_files_under(request.scenarios, Path.cwd())
    return scenario_loader.load_scenario_files(files, rules=RULES, root=Path.cwd())


def _make_judges(settings: Settings, resources: Resources, *, has_criteria: bool) -> tuple[Scorer, ...]:
    chosen, policy = settings.metrics, settings.policy
    model = resources.model("judge")
    needed = has_criteria or any(chosen.is_rubric(spec.name) for spec in chosen.selected)
    if model is None and needed:
        remedy = "add -m PROVIDER/MODEL (for example openai/gpt-5-mini), or set `models: {judge: …}`"
        raise AuthorError(Problem("judges were requested, but no model is set", remedy))
    # A journal may have criteria and faults of its own.
    return judge_setup.make_judges(
        chosen,
        model,
        policy,
        rules_for=partial(rules_for, suite=policy),
        policy_of=lambda scenario: scenario.policy,
        criteria=model is not None,
        faults=model is not None,
    )


def _without_thresholds(recorded: RecordedConversation) -> RecordedConversation:
    if not recorded.scenario.thresholds:
        return recorded
    return replace(recorded, scenario=recorded.scenario.model_copy(update={"thresholds": {}}))


def find_score_sources(
    request: ScoreRequest,
    root: Path,
    stack: ExitStack,
    *,
    warn: Callable[[str], None],
    warn_waiting: Callable[[str], None],
) -> list[Source]:
    """Return the sources without duplicates: files, folders, run ids, pipes, and ``-`` for standard input.
    ``warn`` is called for each omission. ``warn_waiting`` is called on another thread while agenteval waits
    for a stream. Raise ``AuthorError`` if a source does not exist."""
    found: list[Source] = []
    streams: set[str] = set()
    for name in request.files:
        if name != "-" and not is_stream(Path(name)):
            run = _find_journal_of_run(name, root)
            found += find_sources([str(run)] if run else [name], Path.cwd(), warn=warn)
        elif (real := name if name == "-" else os.path.realpath(name)) in streams:
            warn(f"{name} is specified twice, but was read only once")  # the first read left nothing
        else:
            streams.add(real)
            found.append(_spool(name, stack, warn_waiting))
    sources = deduplicate_sources(found, warn)
    check_journals(sources)
    return sources


def list_score_inputs(suite: RecordedSuite, sources: Iterable[Source]) -> Iterator[Path]:
    """Yield the files that scoring reads."""
    yield from (source.path for source in sources)
    request = suite.request
    if "-" in request.files:
        yield Path("/dev/stdin")  # resolves to the file that the shell redirects from
    if request.scenarios:
        yield from scenario_loader.find_files_under(request.scenarios, Path.cwd())
    yield from list_input_files(suite.config, suite.expected_scenarios.scenarios, cwd=os.getcwd())


def _spool(name: str, stack: ExitStack, warn_waiting: Callable[[str], None]) -> Source:
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="agenteval-")))
    with _warn_while_waiting("standard input" if name == "-" else name, warn_waiting):
        return spool_stream(sys.stdin.buffer, folder) if name == "-" else spool_path(Path(name), folder, name)


_WARN_AFTER_S = 2.0


@contextmanager
def _warn_while_waiting(stream: str, warn: Callable[[str], None]) -> Iterator[None]:
    """Warn if no data is written to a pipe for a while. Like any program that reads from a pipe, agenteval
    waits indefinitely."""
    what = f"waiting for {stream}: it is scored once the writer closes it"
    timer = threading.Timer(_WARN_AFTER_S, warn, [what])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _find_journal_of_run(name: str, root: Path) -> Path | None:
    """Return the journal of the run with this id, or None if there is no such run."""
    if os.path.exists(name) or "/" in name or os.sep in name:
        return None
    known = {folder.name for folder in runs.find_run_folders(root)}
    if name in known or name in ("latest", "previous"):
        return runs.find_run(name, root) / JOURNAL
    return None


def resolve_score(suite: RecordedSuite, sources: Iterable[Source]) -> Plan:
    """Return the plan for scoring, including information from the sources. The sources determine which gates
    can be satisfied. For agenteval journals, the tool-call visibility is read from the journal; for all other
    sources, the configuration declares the visibility. The placeholders for agents' secrets are taken from
    the configuration and from agenteval journals."""
    settings, journals = suite.settings, [source for source in sources if is_journal(source)]
    gates = settings.policy.gates
    # Gates that can never be satisfied would leave every score inconclusive. If none is left, every
    # conversation has to pass.
    left_out = unapplied(gates, repeats=suite.request.paths.scenario is not None or bool(journals))
    agent = settings.config.agent
    declared = declared_visibility(agent.calls) if agent else None
    visibility = {"": declared} if declared else {}
    secrets = dict(settings.marked_secrets.placeholders)
    for source in journals:
        visibility |= visibility_in(_readable_lines(source))
        for name, placeholders in placeholders_in(_readable_lines(source)).items():
            secrets[name] = tuple(dict.fromkeys((*secrets.get(name, ()), *placeholders)))
    register_marked_secrets((each for placeholders in secrets.values() for each in placeholders), also=True)
    return make_plan(
        settings.policy.model_copy(update={"gates": gates.without(left_out)}),
        settings.config,
        (),
        {},
        unapplied=left_out,
        secrets=secrets,
        visibility=visibility,
    )


def _readable_lines(source: Source) -> Iterator[bytes]:
    return (line.data for line in lines_of(source) if not isinstance(line, UnreadableRecord))


def make_reader(suite: RecordedSuite, sources: Sequence[Source], remarks: ImportWarnings) -> Reader:
    """Create the reader for the sources. Raise ``AuthorError`` if a path given as an option does not exist in
    any record."""
    request, config, expected = suite.request, suite.config, suite.expected_scenarios
    require_paths(sources, request.paths.options)
    policy = policy_of(config.agent, config.root) if config.agent else ""
    reader = Reader(
        sources,
        naming=Naming(request.paths, policy, expected.ids),
        policy_of=partial(_policy_in_journal, config),
        expected=expected,
        search_texts=request.texts,
        warnings=remarks,
        no_calls_in=CallFreeNames(frozenset(request.no_calls_in)),
    )
    again = Naming(request.paths, policy, expected.ids)
    return reader.with_exact(again) if request.texts else reader


def _policy_in_journal(config: Config, run: RunStarted, name: str) -> str:
    """Return the policy of an agent in a recorded run. A journal may come from anyone, so it must not cause
    arbitrary files on this machine to be opened. The policy file is read only if ``config`` also names the
    file, or if the file is byte-for-byte identical to the file that the run read. Otherwise, raise
    ``AuthorError``."""
    agent, configured = (
        next((agent for agent in each.all_agents if agent.name == name), None)
        for each in (run.config, config)
    )
    if agent is None:
        return ""
    if configured and configured.policy == agent.policy:
        return policy_of(configured, config.root)
    file = policy_file(agent, run.config.root)
    if file and not is_unchanged_file(file, run.config.root, run.sources):
        what = (
            f"{run.run_id}: the policy of agent '{name}', {agent.policy}, differs from the file that the run"
            " used"
        )
        raise AuthorError(Problem(what, "score it with the configuration of that run (-c)"))
    return policy_of(agent, run.config.root)


def read_conversations(
    suite: RecordedSuite, reader: Reader, wired: WiredScore
) -> Iterator[RecordedConversation]:
    """Return all conversations if at least one can be read. Raise the same errors as
    ``_from_first_readable``."""
    conversations = _from_first_readable(reader, suite.request)
    keeps_thresholds = wired.judges or suite.request.judging.no_judge
    return conversations if keeps_thresholds else map(_without_thresholds, conversations)


def _from_first_readable(reader: Reader, request: ScoreRequest) -> Iterator[RecordedConversation]:
    """Return all conversations if at least one can be read. Raise ``AuthorError`` with the first problems if
    no conversation can be read, and ``NothingSelectedError`` if there are no conversations."""
    conversations = iter(reader)
    unreadable: list[RecordedConversation] = []
    for recorded in conversations:
        if recorded.is_readable:
            return chain(unreadable, [recorded], conversations)
        unreadable.append(recorded)
    if unreadable:
        problems = [_to_problem(each) for each in unreadable[:_MOST_PROBLEMS]]
        if len(unreadable) > _MOST_PROBLEMS:
            problems.append(
                Problem(f"… and {plural(len(unreadable) - _MOST_PROBLEMS, 'more line')} like these")
            )
        raise AuthorError(*problems)
    if request.texts:
        asked = " ".join(f"-s {text}" for text in request.texts)
        raise NothingSelectedError(Problem(f"{asked} matches no conversation", "use an id or part of an id"))
    names = ", ".join(request.files)
    raise NothingSelectedError(
        Problem(f"{names}: no conversation found", "each line must contain a conversation")
    )


def _to_problem(unreadable: RecordedConversation) -> Problem:
    stop = unreadable.trajectory.stop
    detail = stop.detail.removeprefix(f"{unreadable.where}: ") if stop else ""
    return Problem(detail, "", parse_place(unreadable.where))
