"""Loads the latest runs of a suite for its history. Each journal is read on its own, and only the point of
its run is kept, so the number of runs hardly affects the memory used."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path, PurePath
from typing import NamedTuple

from agenteval.core.errors import AgentevalError
from agenteval.core.event import RunStarted
from agenteval.files import runs
from agenteval.files.journal import is_run_locked
from agenteval.running.stored_runs import DecidedRun, decide_stored_run, list_run_inputs
from agenteval.verdict.history import HistoryPoint, LeftOutReason, LeftOutRuns, RunHistory, point_of
from agenteval.verdict.suite_changes import RunBasis, basis_of, changes_between

MOST_RUNS = 20
"""The number of runs in a history by default."""


class LoadedHistory(NamedTuple):
    """A history, and the files that it was made from."""

    history: RunHistory
    inputs: frozenset[Path]
    """The journals and the input files of its runs."""


def load_history(root: Path, most: int = MOST_RUNS) -> LoadedHistory:
    """Load the latest ``most`` runs of the suite in the folder ``root``. A suite is a configuration file with
    a profile: those of the newest run that played all scenarios. A run that played only a selection, a
    ``score``, and a run that is in progress or unreadable are left out and counted."""
    loader = _HistoryLoader()
    folders = list(runs.find_run_folders(root))
    while folders and len(loader.points) < most:
        loader.load(folders.pop())
    config, profile = loader.suite or ("", "")
    history = RunHistory(
        points=tuple(reversed(loader.points)),
        left_out=tuple(loader.left_out),
        older=len(folders),
        config=config,
        profile=profile,
    )
    return LoadedHistory(history, frozenset(loader.inputs))


class _HistoryLoader:
    """Loads runs, newest first."""

    def __init__(self) -> None:
        self.points: list[HistoryPoint] = []
        self.suite: tuple[str, str] | None = None
        self.inputs: set[Path] = set()
        self._newer: RunBasis | None = None
        self._left_out: dict[LeftOutReason, dict[str, str]] = {}

    def load(self, folder: Path) -> None:
        """Load the next older run, or record why it is left out."""
        if is_run_locked(folder):
            self._leave_out(LeftOutReason.IN_PROGRESS, folder)
            return
        try:
            start = runs.load_run_start(folder)  # most runs that are left out need not be read completely
            if reason := self._reason_to_leave_out(start):
                detail = _suite_name(start) if reason is LeftOutReason.OTHER_SUITE else ""
                self._leave_out(reason, folder, detail)
            else:
                self._add(decide_stored_run(folder))
        except AgentevalError as error:
            self._leave_out(LeftOutReason.UNREADABLE, folder, str(error).partition("\n")[0])

    def _reason_to_leave_out(self, run: RunStarted) -> LeftOutReason | None:
        if not run.request:
            return LeftOutReason.SCORE
        if run.request.get("scenarios"):
            return LeftOutReason.GIVEN_SCENARIOS
        if run.is_selection:
            return LeftOutReason.SELECTION
        self.suite = self.suite or _suite_of(run)
        return None if _suite_of(run) == self.suite else LeftOutReason.OTHER_SUITE

    def _add(self, kept: DecidedRun) -> None:
        basis = basis_of(kept.report, kept.decision)
        if self._newer:
            self.points[-1] = replace(self.points[-1], changes=changes_between(basis, self._newer))
        self.points.append(point_of(kept.report, kept.decision, basis.summary))
        self.inputs.update(list_run_inputs(kept))
        self._newer = basis

    def _leave_out(self, reason: LeftOutReason, folder: Path, detail: str = "") -> None:
        self._left_out.setdefault(reason, {})[folder.name] = detail

    @property
    def left_out(self) -> Iterator[LeftOutRuns]:
        for reason in LeftOutReason:
            if found := self._left_out.get(reason):
                details = dict.fromkeys(filter(None, found.values()))
                yield LeftOutRuns(reason, tuple(reversed(found)), tuple(details))


def _suite_of(run: RunStarted) -> tuple[str, str]:
    """Return the name of the configuration file and the profile, which are the same on every machine."""
    return PurePath(run.config.source).name, run.plan.suite.profile


def _suite_name(run: RunStarted) -> str:
    config, profile = _suite_of(run)
    name = config or "no configuration"
    return f"{name} with the profile {profile}" if profile else name
