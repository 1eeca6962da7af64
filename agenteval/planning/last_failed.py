"""Implements ``--last-failed`` and ``--failed-in`` (rerun failures): selects the last failed scenarios, that
is, those that did not pass in the latest run or in a named run."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import NamedTuple

from agenteval.core.errors import AuthorError, NothingSelectedError, Problem
from agenteval.core.plan import Pairing
from agenteval.core.plurals import plural
from agenteval.core.scenario import VARIANT_SEPARATOR
from agenteval.core.score import Verdict
from agenteval.files import runs
from agenteval.verdict import gates
from agenteval.verdict.report import fold_run

_NAMED = 5
_REMEDY = "run without --last-failed or --failed-in"


class FailedScenarios(NamedTuple):
    """The scenarios and agents that failed or were undecided in a run."""

    run_id: str
    pairings: frozenset[Pairing]

    def find_removed(self, known: Iterable[str]) -> tuple[str, ...]:
        """Return the scenarios that no longer exist because they were deleted or renamed."""
        return tuple(sorted({scenario for scenario, _ in self.pairings}.difference(known)))

    def nothing_selected_error(self, gone: Collection[str]) -> NothingSelectedError:
        """Return the error for a selection that contains no failed scenario."""
        if gone and all(scenario in gone for scenario, _ in self.pairings):
            names = list_first_names(gone)
            what = f"the scenarios that failed in the run {self.run_id} no longer exist: {names}"
            remedy = f"they were renamed or deleted; {_REMEDY}"
            return NothingSelectedError(Problem(what, _of_variants(gone) or remedy))
        missing = f"; these no longer exist: {list_first_names(gone)}" if gone else ""
        return NothingSelectedError(
            Problem(f"no selected scenario failed in the run {self.run_id}{missing}", _REMEDY)
        )


def list_first_names(scenarios: Collection[str]) -> str:
    """Format the first few names, followed by the number of remaining names."""
    more = len(scenarios) - _NAMED
    return ", ".join(list(scenarios)[:_NAMED]) + (f" and {more:,} more" if more > 0 else "")


def describe_removed(gone: Collection[str]) -> str:
    are = "is" if len(gone) == 1 else "are"
    why = _of_variants(gone) or "renamed or deleted"
    what = f"{plural(len(gone), 'scenario')} that failed {are} gone ({why})"
    return f"{what}: {list_first_names(gone)}"


def _of_variants(gone: Collection[str]) -> str:
    """Return the remedy if a scenario is gone because it is a variant, or an empty string."""
    if not any(VARIANT_SEPARATOR in name for name in gone):
        return ""
    return "variants exist only with the `--faults` or `--variants` of the run that had them"


def find_last_failed(root: Path, name: str | None) -> FailedScenarios:
    """Return the scenarios that did not pass in the latest run below ``root``, or in the run with the given
    ``name``. A scenario that never ran counts as not passed. Raise ``AuthorError`` if there is no such run,
    and ``NothingSelectedError`` if all scenarios passed."""
    folder = runs.find_run(name, root) if name else find_latest_run(root)
    run = fold_run(runs.StoredRun(folder)).report()
    decision = gates.decide(run)
    found = {pair for pair, each in decision.scenarios.items() if each.verdict is not Verdict.PASSED}
    if found:
        return FailedScenarios(run.run.run_id, frozenset(found))
    which = f"in the run {run.run.run_id}" if name else f"in the latest run, {run.run.run_id}"
    what = f"nothing failed {which}"
    if decision.verdict is not Verdict.PASSED:
        rule = next(gate.name for gate in decision.gates if gate.verdict is decision.verdict)
        what = (
            f"no individual scenario failed {which}; the gate '{rule}', which covers all scenarios, did not"
            " pass"
        )
    raise NothingSelectedError(Problem(what, _REMEDY))


def find_latest_run(root: Path) -> Path:
    """Return the folder of the latest run. ``score`` runs are skipped, because recorded conversations do not
    show the current behavior of the agent."""
    for folder in reversed(runs.find_run_folders(root)):
        if _is_run_journal(folder / runs.JOURNAL_FILE):
            return folder
    what = f"--last-failed: there is no earlier run in {root / '.agenteval' / 'runs'}"
    raise AuthorError(Problem(what, "start one with `agenteval run`"))


def _is_run_journal(journal: Path) -> bool:
    try:
        with journal.open("rb") as file:
            return bool(json.loads(file.readline()).get("request"))
    except (OSError, ValueError, AttributeError):
        return False
