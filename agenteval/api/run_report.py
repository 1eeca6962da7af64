"""The report of a run as a Python value."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

from agenteval.cli.safe_output import clean_output
from agenteval.core.errors import AgentevalError, did_you_mean
from agenteval.files.judge_request_log import read_stored_requests
from agenteval.reporters.custom_reporters import find_reporter
from agenteval.reporters.options import ReportOptions
from agenteval.reporters.results.document import results
from agenteval.reporters.results.shape import (
    GateShape,
    IssueShape,
    Results,
    RunVerdictText,
    ScenarioShape,
)
from agenteval.running.stored_runs import DecidedRun

_NAMED = 5


class VerdictError(AgentevalError):
    """Raised by ``RunReport.raise_for_verdict`` for a run that failed.

    ``InconclusiveError``, a subclass, is raised for a run that was not decided."""

    def __init__(self, message: str, report: RunReport) -> None:
        super().__init__(message)
        self.report = report
        self.exit_code = report.exit_code


class InconclusiveError(VerdictError):
    """Raised by ``RunReport.raise_for_verdict`` for a run that was not decided, for example because the agent
    could not be reached. Such a run has neither passed nor failed."""


class RunReport:
    """The report of a run. It contains what ``--report json`` writes, with the same names.

    The run is stored as well, so that ``agenteval show``, ``diff`` and ``report`` accept its ``id``."""

    def __init__(self, run: DecidedRun) -> None:
        self._run = run
        self.results: Results = results(run.report, run.decision)
        """The whole content of ``results.json``, typed."""

    @property
    def id(self) -> str:
        """The id of the run."""
        return self.results.run.id

    @property
    def folder(self) -> Path:
        """The folder in which the run is stored."""
        return self._run.folder

    @property
    def verdict(self) -> RunVerdictText:
        """The verdict of the run: ``passed``, ``failed`` or ``inconclusive``. It is ``reported`` for a log
        without expectations, which can neither pass nor fail."""
        return self.results.summary.verdict

    @property
    def exit_code(self) -> int:
        """The code with which ``agenteval run`` ends for this run. Only 0 means that the run passed."""
        return self.results.summary.exit_code

    @property
    def scenarios(self) -> Sequence[ScenarioShape]:
        """The results of each scenario with each agent."""
        return self.results.scenarios

    @property
    def failed(self) -> Sequence[ScenarioShape]:
        """The scenarios that failed. Those that were not decided are in ``undecided``."""
        return [each for each in self.scenarios if each.verdict == "failed"]

    @property
    def undecided(self) -> Sequence[ScenarioShape]:
        """The scenarios that were not decided, for example because the agent could not be reached."""
        return [each for each in self.scenarios if each.verdict == "inconclusive"]

    @property
    def gates(self) -> Sequence[GateShape]:
        """The gates of the run, each with its value, bound and verdict."""
        return self.results.summary.gates

    @property
    def issues(self) -> Sequence[IssueShape]:
        """The root causes of the failures, worst first."""
        return self.results.summary.issues

    def scenario(self, id: str, agent: str | None = None) -> ScenarioShape:
        """Return the results of one scenario. ``agent`` is needed only if several agents were compared. Raise
        ``KeyError`` if there is no such scenario."""
        named = [each for each in self.scenarios if each.id == id]
        found = [each for each in named if agent in (None, each.agent)]
        if not named:
            known = did_you_mean(id, [each.id for each in self.scenarios])
            raise KeyError(f"unknown scenario '{id}'" + (f" ({known})" if known else ""))
        if not found:
            raise KeyError(f"scenario '{id}' was not run with the agent '{agent}'")
        if len(found) > 1:
            agents = ", ".join(each.agent for each in found)
            raise KeyError(f"scenario '{id}' was run with several agents ({agents}); specify `agent`")
        return found[0]

    def raise_for_verdict(self) -> None:
        """Raise ``VerdictError`` if the run failed, and ``InconclusiveError`` if it was not decided. The
        message contains the gates and scenarios that are the reason."""
        if self.exit_code == 0:
            return
        kind = VerdictError if self.exit_code == 1 else InconclusiveError
        raise kind("\n".join(self._reasons()), self)

    def _reasons(self) -> list[str]:
        lines = [f"the run {self.id} is {self.verdict} (exit code {self.exit_code})"]
        lines += self.results.summary.author_errors
        lines += [
            f"gate {gate.name}: {gate.value} (bound: {gate.bound}) is {gate.verdict} at {gate.where}"
            for gate in self.gates
            if gate.verdict != "passed"
        ]
        open_scenarios = [*self.failed, *self.undecided]
        for each in open_scenarios[:_NAMED]:
            lines.append(f"{each.where} {each.id} is {each.verdict}{_first_reason(each)}")
        if len(open_scenarios) > _NAMED:
            lines.append(f"… and {len(open_scenarios) - _NAMED} more scenarios")
        lines.append(f"show one: agenteval show {self.id} ID")
        return lines

    def render(self, reporter: str = "terminal", *, verbose: bool = False, width: int = 100) -> str:
        """Return a report as text. ``reporter`` is a name that ``--report`` accepts, such as ``terminal``,
        ``json``, ``csv``, ``html`` or ``junit``, or a reporter of your own (``FILE.py:Class``), relative
        to the configuration's folder. Raise ``AuthorError`` for an unknown name, or if your reporter fails.
        """
        found = find_reporter(reporter, self._run.report.run.config.root)
        options = ReportOptions(
            verbose=verbose,
            width=width,
            journal=str(self.folder / "events.jsonl"),
            judge_requests=partial(read_stored_requests, self.folder),
        )
        return clean_output(found.function(self._run.report, self._run.decision, options), found.form)

    def to_dict(self) -> dict[str, Any]:
        """Return the content of ``results.json`` as a dictionary."""
        return self.results.model_dump(mode="json", exclude_unset=True)

    def __bool__(self) -> bool:
        """Raise ``TypeError``, because ``assert report`` would otherwise hold for a failed run, too."""
        raise TypeError("a report is neither true nor false; use `verdict`, or call `raise_for_verdict()`")

    def __repr__(self) -> str:
        counts = f"{len(self.scenarios)} scenarios, {len(self.failed)} failed"
        undecided = f", {len(self.undecided)} undecided" if self.undecided else ""
        return f"<RunReport {self.id}: {self.verdict}; {counts}{undecided}>"

    def __str__(self) -> str:
        return self.render()

    def _repr_html_(self) -> str:
        """Return the table that a notebook shows."""
        from html import escape

        rows = "".join(
            f"<tr><td>{_MARKS[each.verdict]}</td><td>{escape(each.id)}</td><td>{escape(each.agent)}</td>"
            f"<td>{each.statistics.successes}/{each.statistics.planned}</td>"
            f"<td style='text-align:left'>{escape(_first_reason(each).removeprefix(': '))}</td></tr>"
            for each in self.scenarios
        )
        head = "<tr><th></th><th>scenario</th><th>agent</th><th>passed</th><th>reason</th></tr>"
        cost = self.results.summary.usage
        total = [usage.cost for usage in cost.values() if usage.cost is not None]
        summary = f"{self.verdict}, {len(self.scenarios)} scenarios, {len(self.failed)} failed"
        priced = f", {sum(total):.4f} USD" if any(total) else ""
        title = f"<p><b>{escape(summary)}</b>{priced} <code>{escape(self.id)}</code></p>"
        return f"{title}<table>{head}{rows}</table>"


_MARKS: dict[Literal["passed", "failed", "inconclusive"], str] = {
    "passed": "✓ passed",
    "failed": "✗ failed",
    "inconclusive": "? undecided",
}


def _first_reason(scenario: ScenarioShape) -> str:
    """Return the first reason why a scenario did not pass, or an empty string."""
    if scenario.verdict == "passed":
        return ""
    for violation in scenario.violations:
        if violation.verdict == scenario.verdict:
            return f": {violation.name}: {violation.detail}"
    reasons = (each.reason for each in scenario.samples if each.verdict == scenario.verdict)
    return next((f": {reason}" for reason in reasons if reason), "")
