"""What applies in a run, as data that is decided before the run starts. ``planning.plan_resolution`` derives
it from the configuration, the scenarios and the command line; everything later reads the plan and none of the
three.

Settings of the suite are stored once (``SuitePolicy``). Each scenario × agent refers to one of a few
``rule_sets`` (``ScenarioRules``); ``Plan.rules_for_pairing`` returns it."""

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
"""The id of a scenario and the name of an agent."""
ModelRole: TypeAlias = Literal["user", "judge", "dedup"]
ROLES: tuple[ModelRole, ...] = ("user", "judge", "dedup")
"""The roles of agenteval's own models."""


# Defaults are not written, because a large suite has thousands of these.


def _rule(value: Any) -> Any:
    return {"at_least": value} if isinstance(value, int | float) else value


def _is_one(value: object) -> bool:
    return value == 1


def _is_usual(max_turns: int) -> bool:
    return max_turns == DEFAULT_MAX_TURNS


def _is_empty(value: Sized) -> bool:
    return not value


class Threshold(Value):
    """A threshold as it applies in one place, and where it was written."""

    rule: Annotated[ThresholdRule, BeforeValidator(_rule), PlainSerializer(compact_threshold)]
    where: str
    is_sure: Annotated[bool, Field(exclude_if=bool)] = True
    """True if it must be met even if nothing was judged there, because the metric is certain to be judged or
    the scenario itself sets the threshold. Any other threshold applies only if something was judged."""

    @property
    def bar(self) -> float:
        """The highest number in the rule: a score below it may count against the agent."""
        return max(self.rule.numbers)


class ScenarioRules(Value):
    """What applies to one scenario with one agent."""

    epochs: Annotated[Epochs, Field(exclude_if=_is_one)] = 1
    max_turns: Annotated[int, Field(exclude_if=_is_usual)] = DEFAULT_MAX_TURNS
    unjudged: Annotated[tuple[str, ...], Field(exclude_if=_is_empty)] = ()
    """Metrics that are requested but may not be judged there."""
    thresholds: Annotated[dict[str, Threshold], Field(exclude_if=_is_empty)] = {}
    """The thresholds that apply, by metric."""

    @property
    def range(self) -> EpochRange | None:
        """The range of epochs within which its gate decides, or ``None`` if the number is fixed."""
        return self.epochs if isinstance(self.epochs, EpochRange) else None

    @property
    def least(self) -> int:
        """The guaranteed number of epochs."""
        return self.epochs.min if isinstance(self.epochs, EpochRange) else self.epochs

    @property
    def most(self) -> int:
        return self.epochs.max if isinstance(self.epochs, EpochRange) else self.epochs


class SuitePolicy(Value):
    """The requirements of a whole suite: configuration and command line, merged."""

    profile: str = ""
    """The chosen profile of the configuration."""
    seed: int = 0
    metrics: tuple[MetricSpec, ...] = ()
    """All known metrics."""
    judged: tuple[str, ...] = ()
    """The names of the metrics to judge."""
    by_flag: bool = False
    """True if the command line chose ``judged``."""
    no_judge: bool = False
    """True if no judge may be called."""
    code_only: bool = False
    """True if scenarios that need a model are left out."""
    thresholds: dict[str, Threshold] = {}
    """The thresholds by metric."""
    severities: dict[str, Severity] = {}
    """The severities by label that replace those of the table."""
    severity_from: Literal["table", "model"] = "table"
    fail_on_severity: Severity | Literal["none"] = Severity.CRITICAL
    fault_tolerance: float = 0.0
    """The share of samples that may be lost."""
    max_rates: dict[Severity, float] = {}
    """By severity, the highest share of recorded conversations that may have a finding of that severity or a
    higher one."""
    on_undecided: Literal["fail", "neutral"] = "fail"
    gates: GatesConfig = GatesConfig()
    accepted: tuple[AcceptedFailure, ...] = ()
    """The accept list."""
    budget: BudgetConfig = BudgetConfig()
    deadlines: DeadlinesConfig = DeadlinesConfig()
    prices: dict[str, Price] = {}
    """The prices by model or agent."""
    models: dict[ModelRole, ModelConfig] = {}
    corroborate: bool = True
    """True if a judge's decisive opinion needs a second one."""
    skips_failed_judges: bool = False
    shares_calls: bool = False
    """True if several metrics share one call of a judge."""
    detectors: tuple[str, ...] | None = None
    """The names of the detectors; ``None`` means all."""
    unmocked_tools: Literal["error", "passthrough", "empty"] = "error"
    now: str | None = None
    max_turns: int = DEFAULT_MAX_TURNS
    prompts: dict[str, str] = {}
    """The author's files that replace shipped prompts, by name."""
    policies: tuple[str, ...] = ()
    """The agents that have a policy."""
    places: dict[str, str] = {}
    """The places of the keys that reports name."""

    @property
    def specs(self) -> dict[str, MetricSpec]:
        """All known metrics by name."""
        return {spec.name: spec for spec in self.metrics}

    @property
    def fail_on(self) -> Severity | None:
        """The least severity that fails a sample; ``None``: no severity does."""
        return self.fail_on_severity if isinstance(self.fail_on_severity, Severity) else None

    def model(self, role: ModelRole) -> str:
        """Return the model of a role, or an empty string if it has none."""
        return self.models[role].model if role in self.models else ""

    def where(self, key: str) -> str:
        """Return the place of a key, or ``default`` if it was not written."""
        return self.places.get(key, "default")


class Plan(Value):
    """What is to be run, and what applies to each scenario × agent."""

    suite: SuitePolicy = SuitePolicy()
    """The suite's policy for this run, without the ``unapplied`` gates."""
    unapplied: dict[str, str] = {}
    """Gates that this run could never satisfy, and thresholds that apply to other scenarios of the suite but
    to none of this run: by key, the reason. They do not apply to this run."""
    needs_model: tuple[str, ...] = ()
    """The scenarios that ``code_only`` leaves out."""
    secrets: Annotated[dict[str, tuple[str, ...]], Field(exclude_if=_is_empty)] = {}
    """By agent, the placeholders of its secret texts in everything that is written."""
    visibility: dict[str, KnownVisibility] = {}
    """By agent, what is known before the run about the visibility of its calls (``""`` for all others)."""
    default: ScenarioRules = ScenarioRules()
    """The rules of a recorded conversation without its own (``SampleStarted.rules``)."""
    rule_sets: tuple[ScenarioRules, ...] = ()
    """The distinct rules of all scenarios."""
    scenarios: dict[str, dict[str, int]] = {}
    """By id and agent, the index in ``rule_sets``."""

    def with_suite(self, **changes: Any) -> Plan:
        """Return the plan with other values in its suite policy."""
        return self.model_copy(update={"suite": self.suite.model_copy(update=changes)})

    def rules_for_pairing(self, scenario: str, agent: str) -> ScenarioRules:
        """Return the rules for a scenario with an agent."""
        number = self.scenarios.get(scenario, {}).get(agent)
        return self.default if number is None else self.rule_sets[number]

    def known_visibility(self, agent: str) -> KnownVisibility | None:
        """Return what is known before the run about the visibility of an agent's calls."""
        return self.visibility.get(agent) or self.visibility.get("")

    @property
    def samples(self) -> tuple[SampleKey, ...]:
        """All planned samples, scenario by scenario; if a gate decides the number of epochs, the first."""
        return tuple(
            SampleKey(scenario=scenario, agent=agent, epoch=epoch)
            for scenario, agents in self.scenarios.items()
            for agent, number in agents.items()
            for epoch in range(self.rule_sets[number].least)
        )

    def restrict_to_pairing(self, scenario: str, agent: str, *, epochs: int = 0) -> Plan:
        """Return the plan of one scenario × agent with ``epochs`` planned epochs, regardless of what else
        runs."""
        rules = self.rules_for_pairing(scenario, agent).model_copy(update={"epochs": epochs})
        return self.model_copy(update={"rule_sets": (rules,), "scenarios": {scenario: {agent: 0}}})

    @property
    def ranges(self) -> dict[str, EpochRange]:
        """By scenario, the range of epochs within which a gate decides."""
        return {
            scenario: ranged
            for scenario, agents in self.scenarios.items()
            for number in agents.values()
            if (ranged := self.rule_sets[number].range)
        }
