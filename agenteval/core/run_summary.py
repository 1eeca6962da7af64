"""A run in short: what a later run needs of it to be compared with. Values only; ``digest`` makes them."""

from __future__ import annotations

from typing import Any

from agenteval.core.score import Severity, Verdict
from agenteval.core.value import Value


class FailureSummary(Value):
    """A failure of one scenario, and in how many of its decided ``epochs`` it was met. ``severity``: of a
    finding, ``None`` for a broken check."""

    fingerprint: str
    what: str
    metric: str
    severity: Severity | None = None
    epochs: int = 0


class ScenarioSummary(Value):
    """One scenario with one agent. ``content``: a hash of each part that the agent, the user or a judge
    meets. Of ``planned`` epochs ``decided`` have an outcome and ``successes`` succeeded; ``known`` were not
    lost, so that their failures are known. ``scores`` (the mean of each conversation) and ``effort`` (tokens,
    latency …) are of these. ``verdict``: of the scenario in its run, ``None`` before it was run."""

    id: str
    agent: str
    content: dict[str, str]
    verdict: Verdict | None = None
    simulated: bool = False
    criteria: bool = False
    successes: int = 0
    decided: int = 0
    planned: int = 0
    known: int = 0
    scores: dict[str, tuple[float, ...]] = {}
    effort: dict[str, tuple[float, ...]] = {}
    failures: tuple[FailureSummary, ...] = ()


class RunSummary(Value):
    """``prompts``: hashes by name. ``judged``: the metrics that were; ``decisive``: those of them that may
    decide whether a sample succeeds. ``judge`` and ``user`` are those models as configured, ``judged_by`` and
    ``played_by`` the names under which they answered. ``settings`` decide what fails a sample.
    ``is_selection``: the command line chose some of the scenarios."""

    run_id: str
    started_at: str
    prompts: dict[str, str] = {}
    judged: tuple[str, ...] = ()
    decisive: tuple[str, ...] = ()
    judge: dict[str, Any] = {}
    user: dict[str, Any] = {}
    judged_by: tuple[str, ...] = ()
    played_by: tuple[str, ...] = ()
    settings: dict[str, Any] = {}
    scenarios: tuple[ScenarioSummary, ...] = ()
    is_selection: bool = False

    @property
    def agents(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(scenario.agent for scenario in self.scenarios))
