"""What applies in a run, decided before any of it: data. ``scoring.resolve`` makes it of the configuration,
the scenarios and the command line; whatever comes after reads it and asks none of the three again.

What the suite says stands once; for each scenario × agent, one of the few ``kinds`` of what applies there."""

from __future__ import annotations

from collections.abc import Sized
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Field, PlainSerializer

from agenteval.core.config import (
    USUAL_TURNS,
    AcceptedFailure,
    BudgetConfig,
    DeadlinesConfig,
    GatesConfig,
    ModelConfig,
    Price,
)
from agenteval.core.scenario import EpochRange, Epochs, SampleKey, ThresholdRule, short_form
from agenteval.core.score import MetricSpec, Severity
from agenteval.core.tool_visibility import KnownVisibility
from agenteval.core.value import Value

Pairing: TypeAlias = tuple[str, str]
"""A scenario's id and an agent's name."""
ModelRole: TypeAlias = Literal["user", "judge", "dedup"]
ROLES: tuple[ModelRole, ...] = ("user", "judge", "dedup")
"""Of models of our own."""


# What is as it mostly is, is not written: in a large suite there are thousands of these.


def _rule(value: Any) -> Any:
    return {"at_least": value} if isinstance(value, int | float) else value


def _is_one(value: object) -> bool:
    return value == 1


def _is_usual(max_turns: int) -> bool:
    return max_turns == USUAL_TURNS


def _is_empty(value: Sized) -> bool:
    return not value


class Threshold(Value):
    """A threshold as it holds in one place, and where it was written. ``is_sure``: it is to be met even if
    nothing was judged there, since the metric is sure to be, or the scenario itself asks for it; any other
    one holds where something was judged."""

    rule: Annotated[ThresholdRule, BeforeValidator(_rule), PlainSerializer(short_form)]
    where: str
    is_sure: Annotated[bool, Field(exclude_if=bool)] = True

    @property
    def bar(self) -> float:
        """The highest number that it names: a score below it may count against the agent."""
        return max(self.rule.numbers)


class Applies(Value):
    """What applies to one scenario with one agent. ``unjudged``: metrics that are asked for, and not sure to
    be judged there. ``thresholds``: those that hold, by metric."""

    epochs: Annotated[Epochs, Field(exclude_if=_is_one)] = 1
    max_turns: Annotated[int, Field(exclude_if=_is_usual)] = USUAL_TURNS
    unjudged: Annotated[tuple[str, ...], Field(exclude_if=_is_empty)] = ()
    thresholds: Annotated[dict[str, Threshold], Field(exclude_if=_is_empty)] = {}

    @property
    def range(self) -> EpochRange | None:
        """Between which numbers of epochs its gate decides; ``None``: the number is fixed."""
        return self.epochs if isinstance(self.epochs, EpochRange) else None

    @property
    def least(self) -> int:
        """How many epochs there are for sure."""
        return self.epochs.min if isinstance(self.epochs, EpochRange) else self.epochs

    @property
    def most(self) -> int:
        return self.epochs.max if isinstance(self.epochs, EpochRange) else self.epochs


class Plan(Value):
    """``metrics``: all that are known; ``judged``: the names of those that are asked for, ``by_flag``: by the
    command line; ``no_judge``: it said to ask no judge at all; ``code_only``: nor to want one,
    ``needs_model``: the scenarios that are left out for that. ``thresholds``: the suite's.
    ``unapplied``: gates that the run could never satisfy and thresholds that apply to none of its scenarios
    but to others of the suite, by key, with the reason: they do not hold for it. ``accepted``: the accept
    list. ``models``: by role. ``policies``: the agents that have one; ``secrets``: by agent, what stands for
    the texts that it must not say in all that is written; ``visibility``: by agent, what is known before the
    run of how its calls are seen (``""``: of all that are not named).

    ``max_rates``: by severity, in what share of recorded conversations a finding may be as bad or worse.
    ``scenarios``: by id and agent, which of ``kinds`` applies there; what a stream of recorded conversations
    holds comes with each of them (``SampleStarted.applies``), unless it is ``default``. ``places``: where the
    keys were written that reports name.
    """

    seed: int = 0
    metrics: tuple[MetricSpec, ...] = ()
    judged: tuple[str, ...] = ()
    by_flag: bool = False
    no_judge: bool = False
    code_only: bool = False
    needs_model: tuple[str, ...] = ()
    thresholds: dict[str, Threshold] = {}
    severities: dict[str, Severity] = {}
    severity_from: Literal["table", "model"] = "table"
    fail_on_severity: Severity | Literal["none"] = Severity.CRITICAL
    fault_tolerance: float = 0.0
    max_rates: dict[Severity, float] = {}
    on_undecided: Literal["fail", "neutral"] = "fail"
    gates: GatesConfig = GatesConfig()
    unapplied: dict[str, str] = {}
    accepted: tuple[AcceptedFailure, ...] = ()
    budget: BudgetConfig = BudgetConfig()
    deadlines: DeadlinesConfig = DeadlinesConfig()
    prices: dict[str, Price] = {}
    models: dict[ModelRole, ModelConfig] = {}
    corroborate: bool = True
    skips_failed_judges: bool = False
    shares_calls: bool = False
    detectors: tuple[str, ...] | None = None
    unmocked_tools: Literal["error", "passthrough", "empty"] = "error"
    now: str | None = None
    max_turns: int = USUAL_TURNS
    policies: tuple[str, ...] = ()
    secrets: Annotated[dict[str, tuple[str, ...]], Field(exclude_if=_is_empty)] = {}
    visibility: dict[str, KnownVisibility] = {}
    default: Applies = Applies()
    kinds: tuple[Applies, ...] = ()
    scenarios: dict[str, dict[str, int]] = {}
    places: dict[str, str] = {}

    @property
    def specs(self) -> dict[str, MetricSpec]:
        """All known metrics by name."""
        return {spec.name: spec for spec in self.metrics}

    def known_visibility(self, agent: str) -> KnownVisibility | None:
        """Return what is known before the run of how the calls of an agent are seen."""
        return self.visibility.get(agent) or self.visibility.get("")

    def of(self, scenario: str, agent: str) -> Applies:
        """What applies to a scenario with an agent."""
        kind = self.scenarios.get(scenario, {}).get(agent)
        return self.default if kind is None else self.kinds[kind]

    @property
    def samples(self) -> tuple[SampleKey, ...]:
        """Every sample that is planned, scenario by scenario; where a gate decides how many epochs there are,
        the first ones."""
        return tuple(
            SampleKey(scenario=scenario, agent=agent, epoch=epoch)
            for scenario, agents in self.scenarios.items()
            for agent, kind in agents.items()
            for epoch in range(self.kinds[kind].least)
        )

    def alone(self, scenario: str, agent: str, *, epochs: int = 0) -> Plan:
        """The plan of one scenario × agent; ``epochs``: so many of it are planned, whatever else is run."""
        kind = self.of(scenario, agent).model_copy(update={"epochs": epochs})
        return self.model_copy(update={"kinds": (kind,), "scenarios": {scenario: {agent: 0}}})

    @property
    def ranges(self) -> dict[str, EpochRange]:
        """By scenario, where a gate decides how many epochs there are."""
        return {
            scenario: ranged
            for scenario, agents in self.scenarios.items()
            for kind in agents.values()
            if (ranged := self.kinds[kind].range)
        }

    @property
    def fail_on(self) -> Severity | None:
        """The least severity that fails a sample; ``None``: no severity does."""
        return self.fail_on_severity if isinstance(self.fail_on_severity, Severity) else None

    def model(self, role: ModelRole) -> str:
        """The model of a role; empty if it has none."""
        return self.models[role].model if role in self.models else ""

    def where(self, key: str) -> str:
        """The place of a key; ``default`` where nobody wrote it."""
        return self.places.get(key, "default")
