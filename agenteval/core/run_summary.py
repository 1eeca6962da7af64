"""A summary of a run: what a later run needs to be compared with it. Values only; ``digest`` makes them."""

from __future__ import annotations

from typing import Any

from agenteval.core.score import Severity, Verdict
from agenteval.core.value import Value


class FailureSummary(Value):
    """A failure of one scenario."""

    fingerprint: str
    what: str
    metric: str
    severity: Severity | None = None
    """The severity of a finding; ``None`` for a broken check."""
    epochs: int = 0
    """The number of decided epochs in which it occurred."""


class ScenarioSummary(Value):
    """One scenario with one agent."""

    id: str
    agent: str
    content: dict[str, str]
    """A hash of each part that the agent, the user or a judge sees."""
    verdict: Verdict | None = None
    """The verdict of the scenario in its run; ``None`` before it was run."""
    simulated: bool = False
    criteria: bool = False
    successes: int = 0
    """The number of decided epochs that succeeded."""
    decided: int = 0
    """The number of planned epochs with an outcome."""
    planned: int = 0
    known: int = 0
    """The number of epochs that were not lost, so that their failures are known."""
    scores: dict[str, tuple[float, ...]] = {}
    """By metric, the mean of each of these conversations."""
    effort: dict[str, tuple[float, ...]] = {}
    """The tokens, latency and so on of each of these conversations."""
    failures: tuple[FailureSummary, ...] = ()


class RunSummary(Value):
    """A run, summarized for comparison."""

    run_id: str
    started_at: str
    prompts: dict[str, str] = {}
    """The hashes of the prompts, by name."""
    judged: tuple[str, ...] = ()
    """The metrics that were judged."""
    decisive: tuple[str, ...] = ()
    """The judged metrics that may decide whether a sample succeeds."""
    judge: dict[str, Any] = {}
    """The judge's model as configured; ``user`` likewise."""
    user: dict[str, Any] = {}
    judged_by: tuple[str, ...] = ()
    """The model names under which the judges answered; ``played_by`` likewise for the users."""
    played_by: tuple[str, ...] = ()
    settings: dict[str, Any] = {}
    """The settings that decide what fails a sample."""
    scenarios: tuple[ScenarioSummary, ...] = ()
    is_selection: bool = False
    """True if the command line selected some of the scenarios."""

    @property
    def agents(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(scenario.agent for scenario in self.scenarios))
