"""What applies in a run, decided before any of it: data. ``planning.plan_resolution`` makes it of the
configuration, the scenarios and the command line; whatever comes after reads it and asks none of the three
again.

What the suite says stands once (``SuitePolicy``); to each scenario × agent one of a few ``rule_sets`` applies
(``ScenarioRules``), and ``Plan.rules_for_pairing`` is the only question about it."""

from __future__ import annotations

from collections.abc import Sized
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Field, PlainSerializer

from agenteval.core.config import (
    DEFAULT_MAX_TURNS,
    AcceptedFailure,
    BudgetConfig,
    DeadlinesConfig,
    GatesConfig,
    ModelConfig,
    Price,
)
from agenteval.core.scenario import EpochRange, Epochs, SampleKey, ThresholdRule, compact_threshold
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
    return max_turns == DEFAULT_MAX_TURNS


def _is_empty(value: Sized) -> bool:
    return not value


class Threshold(Value):
    """A threshold as it holds in one place, and where it was written. ``is_sure``: it is to be met even if
    nothing was judged there, since the metric is sure to be, or the scenario itself asks for it; any other
    one holds where something was judged."""

    rule: Annotated[ThresholdRule, BeforeValidator(_rule), PlainSerializer(compact_threshold)]
    where: str
    is_sure: Annotated[bool, Field(exclude_if=bool)] = True

    @property
    def bar(self) -> float:
        """The highest number that it names: a score below it may count against the agent."""
        return max(self.rule.numbers)


class ScenarioRules(Value):
    """What applies to one scenario with one agent."""

    epochs: Annotated[Epochs, Field(exclude_if=_is_one)] = 1
    max_turns: Annotated[int, Field(exclude_if=_is_usual)] = DEFAULT_MAX_TURNS
    unjudged: Annotated[tuple[str, ...], Field(exclude_if=_is_empty)] = ()
    """Metrics that are asked for, and not sure to be judged there."""
    thresholds: Annotated[dict[str, Threshold], Field(exclude_if=_is_empty)] = {}
    """Those that hold, by metric."""

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


class SuitePolicy(Value):
    """What is asked of a suite as a whole: configuration and command line, merged."""

    profile: str = ""
    """The profile of the configuration that was chosen."""
    seed: int = 0
    metrics: tuple[MetricSpec, ...] = ()
    """All that are known."""
    judged: tuple[str, ...] = ()
    """The names of the metrics to judge."""
    by_flag: bool = False
    """Whether the command line chose ``judged``."""
    no_judge: bool = False
    """Whether no judge may be asked."""
    code_only: bool = False
    """Whether scenarios that need a model are left out."""
    thresholds: dict[str, Threshold] = {}
    """By metric."""
    severities: dict[str, Severity] = {}
    """By label, in place of the table's."""
    severity_from: Literal["table", "model"] = "table"
    fail_on_severity: Severity | Literal["none"] = Severity.CRITICAL
    fault_tolerance: float = 0.0
    """The share of samples that may be lost."""
    max_rates: dict[Severity, float] = {}
    """By severity, the share of recorded conversations that may have a finding as bad or worse."""
    on_undecided: Literal["fail", "neutral"] = "fail"
    gates: GatesConfig = GatesConfig()
    accepted: tuple[AcceptedFailure, ...] = ()
    """The accept list."""
    budget: BudgetConfig = BudgetConfig()
    deadlines: DeadlinesConfig = DeadlinesConfig()
    prices: dict[str, Price] = {}
    """By model or agent."""
    models: dict[ModelRole, ModelConfig] = {}
    corroborate: bool = True
    """Whether a judge's decisive opinion needs a second one."""
    skips_failed_judges: bool = False
    shares_calls: bool = False
    """Whether several metrics share one call of a judge."""
    detectors: tuple[str, ...] | None = None
    """``None``: all of them."""
    unmocked_tools: Literal["error", "passthrough", "empty"] = "error"
    now: str | None = None
    max_turns: int = DEFAULT_MAX_TURNS
    prompts: dict[str, str] = {}
    """The author's own, in the place of those that are shipped: by name, the file."""
    policies: tuple[str, ...] = ()
    """The agents that have a policy."""
    places: dict[str, str] = {}
    """Where the keys were written that reports name."""

    @property
    def specs(self) -> dict[str, MetricSpec]:
        """All known metrics by name."""
        return {spec.name: spec for spec in self.metrics}

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


class Plan(Value):
    """What is to be run, and what applies to each scenario × agent of it."""

    suite: SuitePolicy = SuitePolicy()
    """As it holds for this run: without the gates that are ``unapplied``."""
    unapplied: dict[str, str] = {}
    """By key, with the reason: gates that the run could never satisfy, and thresholds that apply to none of
    its scenarios but to others of the suite. They do not hold for it."""
    needs_model: tuple[str, ...] = ()
    """The scenarios that ``code_only`` leaves out."""
    secrets: Annotated[dict[str, tuple[str, ...]], Field(exclude_if=_is_empty)] = {}
    """By agent, what stands for the texts that it must not say in all that is written."""
    visibility: dict[str, KnownVisibility] = {}
    """By agent, what is known before the run of how its calls are seen (``""``: of all others)."""
    default: ScenarioRules = ScenarioRules()
    """What applies to a recorded conversation that does not bring its own (``SampleStarted.rules``)."""
    rule_sets: tuple[ScenarioRules, ...] = ()
    """Each that applies anywhere, once."""
    scenarios: dict[str, dict[str, int]] = {}
    """By id and agent, which of ``rule_sets`` applies there."""

    def with_suite(self, **changes: Any) -> Plan:
        """The plan with other values of its suite."""
        return self.model_copy(update={"suite": self.suite.model_copy(update=changes)})

    def rules_for_pairing(self, scenario: str, agent: str) -> ScenarioRules:
        """What applies to a scenario with an agent."""
        number = self.scenarios.get(scenario, {}).get(agent)
        return self.default if number is None else self.rule_sets[number]

    def known_visibility(self, agent: str) -> KnownVisibility | None:
        """What is known before the run of how the calls of an agent are seen."""
        return self.visibility.get(agent) or self.visibility.get("")

    @property
    def samples(self) -> tuple[SampleKey, ...]:
        """Every sample that is planned, scenario by scenario; where a gate decides how many epochs there are,
        the first ones."""
        return tuple(
            SampleKey(scenario=scenario, agent=agent, epoch=epoch)
            for scenario, agents in self.scenarios.items()
            for agent, number in agents.items()
            for epoch in range(self.rule_sets[number].least)
        )

    def restrict_to_pairing(self, scenario: str, agent: str, *, epochs: int = 0) -> Plan:
        """The plan of one scenario × agent; ``epochs``: so many of it are planned, whatever else is run."""
        rules = self.rules_for_pairing(scenario, agent).model_copy(update={"epochs": epochs})
        return self.model_copy(update={"rule_sets": (rules,), "scenarios": {scenario: {agent: 0}}})

    @property
    def ranges(self) -> dict[str, EpochRange]:
        """By scenario, where a gate decides how many epochs there are."""
        return {
            scenario: ranged
            for scenario, agents in self.scenarios.items()
            for number in agents.values()
            if (ranged := self.rule_sets[number].range)
        }
