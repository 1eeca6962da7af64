"""Plays one run for many pytest items, and answers how each of them ended.

The items only wait. The first item that runs starts the run, with all items that are selected, in a thread of
its own, so the conversations are as concurrent as on the command line. The outcomes are those of the complete
run: what a gate tolerates does not fail an item."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import TimeoutError as WaitTimeoutError
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from agenteval.api.runs import RunningThread
from agenteval.api.shared_run import play_shared
from agenteval.cli.run_status import RunStatus
from agenteval.cli.safe_output import clean_output
from agenteval.conversation.exits import ExitGuard
from agenteval.core.decision import GateRow
from agenteval.core.errors import AuthorError, Problem
from agenteval.core.event import Event
from agenteval.core.plan import Pairing
from agenteval.core.plurals import join_first, plural
from agenteval.core.protocols import Emit
from agenteval.core.scenario import Sample, Scenario
from agenteval.core.score import Verdict
from agenteval.planning.request import Request
from agenteval.planning.sample_selection import select
from agenteval.planning.suite import Suite, load_suite
from agenteval.reporters.options import ReportOptions
from agenteval.reporters.terminal.failure_blocks import scenario_failure
from agenteval.reporters.terminal.screen import render_parts
from agenteval.reporters.words.facts import Facts
from agenteval.reporters.words.failure import ReportedFailure, run_gates, scenario_decision
from agenteval.running.execution import new_run_id
from agenteval.running.observer import PendingLookup, nothing_pending
from agenteval.running.registries import REGISTRIES
from agenteval.running.stored_runs import DecidedRun, load_decided_run

FINISHED_RUNS = pytest.StashKey[list[str]]()
"""The folders of the runs that were played for this session."""
EXIT_GUARD = pytest.StashKey[ExitGuard]()
"""Keeps the exit code of the session, even if the agent's code ends the process."""
STATUS_S = 10.0
"""The interval, in seconds, at which a long run prints a status line."""
_POLL_S = 0.2
_NAMED = 5
NO_AGENT: Any = object()
"""Stands for an agent that no fixture provides."""
FIXTURE_AGENT = {"target": "agenteval.api.given_objects:agent_of_a_fixture"}
"""The agent with which scenarios are loaded if the configuration has none. A fixture has to provide one."""
_WIDTH = 100


class ScenarioFailedError(Exception):
    """Raised by an item whose scenario failed. The text describes the failure."""

    agenteval_word = "FAILED"
    """The word with which pytest shows the item."""


class InconclusiveScenarioError(Exception):
    """Raised by an item whose scenario was not decided, which is an error and not a failure."""

    agenteval_word = "INCONCLUSIVE"
    """The word with which pytest shows the item."""


class RunNotStartedError(Exception):
    """Raised by the items of a run that could not start because of an author's mistake."""

    agenteval_word = "ERROR"
    """The word with which pytest shows the item."""


class LoadedItems(NamedTuple):
    """The scenarios of which items are made."""

    suite: Suite
    samples: tuple[Sample, ...]

    @property
    def skipped(self) -> tuple[Scenario, ...]:
        """The scenarios that are not run because of their ``skip``."""
        return tuple(scenario for scenario in self.suite.selected_scenarios if scenario.skip)

    @property
    def root(self) -> Path:
        return Path(self.suite.settings.config.root)

    @property
    def pairings(self) -> dict[Pairing, list[Sample]]:
        """The samples of each pair of scenario and agent, in order."""
        found: dict[Pairing, list[Sample]] = {}
        for sample in self.samples:
            found.setdefault((sample.key.scenario, sample.key.agent), []).append(sample)
        return found


def load_items(request: Request) -> LoadedItems:
    """Load the scenarios without importing or calling any agent. Raise ``AuthorError`` for a mistake."""
    suite = load_suite(request, REGISTRIES)
    if all(scenario.skip for scenario in suite.selected_scenarios):
        return LoadedItems(suite, ())
    return LoadedItems(suite, select(suite).samples)


def item_name(pairing: Pairing, loaded: LoadedItems, epoch: int | None = None) -> str:
    """Return the name of an item: the scenario's id, followed by the agent if there are several, and by the
    epoch, counted from 1, if each epoch has an item. pytest does not find items with square brackets in their
    name again, so they are replaced."""
    scenario, agent = pairing
    several = len({agent for _, agent in loaded.pairings}) > 1
    parts = [scenario, *([agent] if several else []), *([] if epoch is None else [str(epoch + 1)])]
    return "@".join(parts).replace("[", "(").replace("]", ")")


class ItemOutcome(NamedTuple):
    """How the scenario of an item ended."""

    verdict: Verdict
    text: str
    """The reasons, if the scenario did not pass, or if its failure is tolerated by a gate."""
    duration_s: float
    is_neutral: bool = False
    """True if the scenario was not decided, and the configuration lets the run pass nevertheless
    (``on_undecided: neutral``)."""
    never_ran: bool = False
    """True if nothing was played, because the run stopped after its first failure."""


class RunOutcomes:
    """The outcomes of a finished run."""

    def __init__(self, run: DecidedRun) -> None:
        self.run = run
        self._facts = Facts(run.report, run.decision)

    def outcome(self, pairing: Pairing, epoch: int | None = None, *, is_last: bool = True) -> ItemOutcome:
        """Return the outcome of a scenario with an agent, or of one of its epochs. Rules over all epochs
        belong to the last epoch (``is_last``)."""
        pairing = self._played_pairing(pairing)
        failures = self._failures.get(pairing, ())
        found = [each for each in failures if self._is_of(each, epoch, is_last=is_last)]
        counted = [each for each in found if not each.tolerated]
        verdict = Verdict.worst([Verdict.PASSED, *(each.verdict for each in counted)])
        if counted and epoch is None:  # a failed conversation need not decide a rate
            verdict = scenario_decision(self.run.decision, counted[0].scenario_report).verdict
        is_neutral = verdict is Verdict.INCONCLUSIVE and self.run.decision.exit_code == 0
        return ItemOutcome(
            verdict,
            self._text(tuple(counted or found)),
            self._duration_s(pairing, epoch),
            is_neutral=is_neutral,
            never_ran=bool(counted) and self._stopped_early and all(map(_never_ran, counted)),
        )

    def _played_pairing(self, pairing: Pairing) -> Pairing:
        """Return the pair as the run has it. An agent that a fixture provides may have another name. Raise
        ``InconclusiveScenarioError`` if the scenario was not part of the run."""
        played = [(each.scenario.id, each.agent) for each in self.run.report.scenarios]
        of_scenario = [each for each in played if each[0] == pairing[0]]
        if pairing not in played and len(of_scenario) != 1:
            raise InconclusiveScenarioError(f"the run {self.run.report.run.run_id} did not play {pairing[0]}")
        return pairing if pairing in played else of_scenario[0]

    @property
    def gates(self) -> tuple[GateRow, ...]:
        """The gates over the run that did not pass, excluding those that count failed samples."""
        return run_gates(self.run.decision)

    @property
    def gate_lines(self) -> Iterator[str]:
        for row in self.gates:
            line = f"{row.name}: {row.value} (bound: {row.bound}) is {row.verdict} at {row.where}"
            yield f"{line} — {row.resolution}" if row.resolution else line
        yield from self.run.decision.author_errors

    @property
    def open_lines(self) -> Iterator[str]:
        """The scenarios that are the reason why the run did not pass."""
        names = list(dict.fromkeys(f"{each.scenario}" for each in self._facts.failures if not each.tolerated))
        if self.run.decision.exit_code and names:
            yield f"  did not pass: {join_first(names, _NAMED)}"

    @cached_property
    def _failures(self) -> dict[Pairing, list[ReportedFailure]]:
        found: dict[Pairing, list[ReportedFailure]] = {}
        for failure in self._facts.failures:
            found.setdefault((failure.scenario, failure.agent), []).append(failure)
        return found

    @property
    def _stopped_early(self) -> bool:
        finished = self.run.report.finished
        return finished is not None and finished.outcome == "fail_fast"

    def _is_of(self, failure: ReportedFailure, epoch: int | None, *, is_last: bool) -> bool:
        if epoch is None:
            return True
        return is_last if failure.epoch is None else failure.epoch == epoch

    def _duration_s(self, pairing: Pairing, epoch: int | None) -> float:
        return sum(
            sample.trajectory.latency_ms / 1000
            for sample in self.run.report.samples
            if (sample.key.scenario, sample.key.agent) == pairing and epoch in (None, sample.key.epoch)
        )

    def _text(self, group: tuple[ReportedFailure, ...]) -> str:
        if not group:
            return ""
        # ``latest`` may be another run by the time the command is used.
        options = ReportOptions(width=_WIDTH, run=self.run.report.run.run_id)
        worst = max(group, key=lambda each: each.verdict is Verdict.FAILED)
        # pytest shows the first line in its summary.
        text = f"{worst.reasons[0]}\n{render_parts(scenario_failure(group, options), options)}"
        tolerated = all(each.tolerated for each in group)
        return clean_output(f"{group[0].why_tolerated}: {text}" if tolerated else text).rstrip()


def _never_ran(failure: ReportedFailure) -> bool:
    return failure.verdict is Verdict.INCONCLUSIVE and failure.sample is None


class PytestRun:
    """One run for all items of the scenario files, or of one ``agenteval.scenarios`` in a test file."""

    def __init__(
        self, config: pytest.Config, loaded: LoadedItems, key: str = "", *, has_own_agent: bool = False
    ) -> None:
        self._has_own_agent = has_own_agent  # which takes precedence over the fixture
        self._config = config
        self._loaded = loaded
        self._id = run_id_of(config, key)
        self._outcomes: RunOutcomes | None = None
        self._error: AuthorError | None = None
        self.status = _Status()

    def outcomes(self, selected: Collection[Pairing], agent: Any = NO_AGENT) -> RunOutcomes:
        """Return the outcomes of the run, which is played at the first call.

        ``selected`` contains the pairs of scenario and agent of all items that pytest has selected. Raise
        ``RunNotStartedError`` if there is a mistake in a file."""
        if self._error:
            raise RunNotStartedError(f"the run could not start: {self._error.problems[0]}")
        if agent is None:
            raise RunNotStartedError("the fixture `agenteval_agent` returned None; return the agent")
        if self._outcomes is None:
            try:
                self._outcomes = RunOutcomes(self._play(selected, agent))
            except AuthorError as error:
                self._error = error
                raise RunNotStartedError(str(error)) from None
            self._config.stash.setdefault(FINISHED_RUNS, []).append(str(self._outcomes.run.folder))
        return self._outcomes

    def _play(self, selected: Collection[Pairing], agent: Any) -> DecidedRun:
        request = self._loaded.suite.request
        request = replace(request, fail_fast=request.fail_fast or self._config.getoption("maxfail", 0) == 1)
        if agent is NO_AGENT and request.agent == FIXTURE_AGENT:
            what = "no agent: the configuration has none, and no fixture `agenteval_agent` returns one"
            raise AuthorError(Problem(what, "set `agent`, or pass `agent=` to agenteval.scenarios"))
        if agent is not NO_AGENT and not self._has_own_agent:
            from agenteval.api.requests import choose_agent

            chosen = choose_agent(agent)
            filters = replace(request.filters, agent=chosen.name)
            request = replace(request, agent=chosen.entry, filters=filters)
        if set(selected) != set(self._loaded.pairings):
            request = replace(request, pairings=frozenset(selected))
        if not is_worker(self._config) and EXIT_GUARD not in self._config.stash:
            # An agent's code may also end the process later (``atexit``).
            self._config.stash[EXIT_GUARD] = ExitGuard()
            self._config.stash[EXIT_GUARD].guard()
        folder = self._loaded.root / ".agenteval" / "runs" / self._id
        running = RunningThread(lambda control: play_shared(request, folder, self.status, control))
        self._show(f"agenteval: {plural(len(selected), 'scenario')}, run {self._id}")
        last_line_s = time.monotonic()
        try:
            while True:
                try:
                    return running.played.result(timeout=_POLL_S)
                except WaitTimeoutError:
                    if running.played.done():  # the run itself raised this error
                        raise
                if time.monotonic() - last_line_s > STATUS_S and (line := self.status.line):
                    last_line_s = time.monotonic()
                    self._show(f"agenteval: {line}")
        except KeyboardInterrupt:
            running.stop()
            running.played.exception()
            self._show(f"agenteval: interrupted; continue with agenteval run --resume {self._id}")
            raise

    def _show(self, line: str) -> None:
        """Print a line past pytest's capture. A worker of xdist has no terminal."""
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        capture = self._config.pluginmanager.get_plugin("capturemanager")
        if (
            reporter is None
            or capture is None
            or self._config.getoption("quiet", 0)
            or is_worker(self._config)
        ):
            return
        with capture.global_and_fixture_disabled():
            reporter.ensure_newline()
            reporter.write_line(line)


class _Status:
    """Counts the events of a run."""

    def __init__(self) -> None:
        self._status: RunStatus | None = None

    def show_line(self, text: str) -> None:
        """Ignore the line: it is in the report, too."""

    @contextmanager
    def watch(
        self, total: int | None, *, past: Sequence[Event] = (), pending: PendingLookup = nothing_pending
    ) -> Iterator[Emit]:
        self._status = RunStatus(total or 0, time.monotonic, pending)
        for event in past:
            self._status.count_event(event)
        status = self._status

        def count(event: Event) -> None:
            status.count_event(event)

        yield count

    @property
    def line(self) -> str:
        return self._status.with_longest() if self._status else ""


def is_worker(config: pytest.Config) -> bool:
    """Check whether this process is a worker of pytest-xdist."""
    return hasattr(config, "workerinput")


def run_id_of(config: pytest.Config, key: str) -> str:
    """Return the id of a run. All workers of pytest-xdist have the same id for the same ``key``."""
    uid = getattr(config, "workerinput", {}).get("testrunuid", "")
    if not uid:
        return new_run_id()
    suffix = f"-{sha256(key.encode()).hexdigest()[:6]}" if key else ""
    return f"pytest-{uid[:12]}{suffix}"


def check(found: ItemOutcome) -> ItemOutcome:
    """Return an outcome that is decided. Raise ``InconclusiveScenarioError`` for one that is not, and skip
    the test if its scenario never ran because the run stopped after a failure."""
    if found.never_ran:
        pytest.skip("not run, because the run stopped after its first failure")
    if found.is_neutral:
        pytest.skip(f"not decided, which `on_undecided: neutral` allows: {found.text.partition(chr(10))[0]}")
    if found.verdict is Verdict.INCONCLUSIVE:
        raise InconclusiveScenarioError(found.text)
    return found


def exit_code_of(folders: Collection[str]) -> int:
    """Return the worst exit code of the runs in ``folders``."""
    return max((load_decided_run(folder).decision.exit_code for folder in folders), default=0)


def summary_lines(folders: Collection[str]) -> Iterator[str]:
    """Yield the verdict of each run, the gates that are the reason, and where to look."""
    for folder in folders:
        outcomes = RunOutcomes(load_decided_run(folder))
        run, decision = outcomes.run.report.run, outcomes.run.decision
        yield f"{decision.verdict_label}: run {run.run_id} (exit code {decision.exit_code} of agenteval)"
        yield from (f"  {line}" for line in outcomes.gate_lines)
        yield from outcomes.open_lines
        if run.request.get("last_failed"):  # pytest selected pairs of scenarios and agents
            yield "  only a part of the scenarios was selected, so no item checks the gates over the run"
        yield f"  show a conversation: agenteval show {run.run_id} ID"
