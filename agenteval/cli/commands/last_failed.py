"""``--last-failed``: what did not pass in the latest run."""

from __future__ import annotations

import json
from pathlib import Path

from agenteval.core.errors import AuthorError, NothingSelectedError, Problem
from agenteval.core.plan import Pairing
from agenteval.core.score import Verdict
from agenteval.files import runs
from agenteval.verdict import gates, report


def last_failed(root: Path) -> frozenset[Pairing]:
    """The scenarios and agents of the latest run below ``root`` that failed or were not decided; what never
    ran was not. Raises ``AuthorError`` where there is no run, and ``NothingSelectedError`` where all passed.
    """
    folder = _latest(root)
    told = report.fold(runs.load_run(folder))
    decision = gates.decide(told)
    found = {pair for pair, each in decision.scenarios.items() if each.verdict is not Verdict.PASSED}
    if found:
        return frozenset(found)
    what = f"nothing failed in the latest run, {folder.name}"
    if decision.verdict is not Verdict.PASSED:
        rule = next(gate.name for gate in decision.gates if gate.verdict is decision.verdict)
        what = f"no single scenario failed in the latest run, {folder.name}, but '{rule}', over all scenarios"
    raise NothingSelectedError(Problem(what, "run without --last-failed"))


def _latest(root: Path) -> Path:
    """Runs alone: a scoring of recorded conversations says nothing of the agent as it is now."""
    for folder in reversed(runs.runs_under(root)):
        if _was_asked_for(folder / runs.JOURNAL):
            return folder
    what = f"--last-failed: there is no earlier run in {root / '.agenteval' / 'runs'}"
    raise AuthorError(Problem(what, "start with agenteval run"))


def _was_asked_for(journal: Path) -> bool:
    try:
        with journal.open("rb") as file:
            return bool(json.loads(file.readline()).get("request"))
    except (OSError, ValueError, AttributeError):
        return False
