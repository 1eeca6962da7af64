"""A summary of a run, containing all information that is needed to compare a later run with that run. The
module contains only values, which ``digest`` creates."""

from __future__ import annotations

from typing import Any

from agenteval.core.score import Severity, Verdict
from agenteval.core.value import Value


class FailureSummary(Value):
    """A failure in one scenario."""

    fingerprint: str
    what: str
    metric: str
    severity: Severity | None = None
    """The severity of a finding, or ``None`` for a check that did not pass."""
    epochs: int = 0
    """The number of decided epochs in which the failure occurred."""


class ScenarioSummary(Value):
    """One scenario with one agent."""

    id: str
    agent: str
    content: dict[str, str]
    """A hash of each part of the scenario that is visible to the agent, the user or a judge."""
    verdict: Verdict | None = None
    """The verdict of the scenario in its run, or ``None`` if it has not been run yet."""
    simulated: bool = False
    criteria: bool = False
    successes: int = 0
    """The number of decided epochs that succeeded."""
    decided: int = 0
    """The number of planned epochs with an outcome."""
    planned: int = 0
    known: int = 0
    """The number of epochs that were not lost and whose failures are therefore known."""
    scores: dict[str, tuple[float, ...]] = {}
    """The mean score of each epoch that was not lost, keyed by metric."""
    effort: dict[str, tuple[float, ...]] = {}
    """The tokens, latency and similar numbers of each epoch that was not lost."""
    failures: tuple[FailureSummary, ...] = ()


class RunSummary(Value):
    """A summary of a run that can be compared with other runs."""

    run_id: str
    started_at: str
    prompts: dict[str, str] = {}
    """The hashes of the prompts, keyed by name."""
    judged: tuple[str, ...] = ()
    """The metrics that were judged."""
    decisive: tuple[str, ...] = ()
    """The judged metrics that may decide whether a sample succeeds."""
    judge: dict[str, Any] = {}
    """The configured model of the judge. ``user`` is the configured model of the simulated user."""
    user: dict[str, Any] = {}
    judged_by: tuple[str, ...] = ()
    """The model names reported in the judges' replies. ``played_by`` contains the model names reported in the
    simulated users' replies."""
    played_by: tuple[str, ...] = ()
    settings: dict[str, Any] = {}
    """The settings that determine which results fail a sample."""
    scenarios: tuple[ScenarioSummary, ...] = ()
    is_selection: bool = False
    """True if the command line selected only some of the scenarios."""

    @property
    def agents(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(scenario.agent for scenario in self.scenarios))
