"""The plan of a run: all rules and settings that apply, as data that is determined before the run starts.
``planning.plan_resolution`` derives the plan from the configuration, the scenarios and the command line. All
later steps read only the plan.

Settings of the suite are stored once (``SuitePolicy``). Each scenario × agent refers to one of a few
``rule_sets`` (``ScenarioRules``), which ``Plan.rules_for_pairing`` returns."""

from __future__ import annotations

from collections.abc import Sized
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

from pydantic import BeforeValidator, Field, PlainSerializer

from agenteval.core.config import (
    DEFAULT_MAX_TURNS,
    AcceptedFailure,
    Allowance,
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
AllowanceT = TypeVar("AllowanceT", bound=Allowance)
ROLES: tuple[ModelRole, ...] = ("user", "judge", "dedup")
"""The roles for which agenteval uses its own models."""


# Defaults are not written, because a large suite has thousands of these.


def _rule(value: Any) -> Any:
    return {"at_least": value} if isinstance(value, int | float) else value


def _is_none(value: object) -> bool:
    return value is None


def _is_one(value: object) -> bool:
    return value == 1


def _is_usual(max_turns: int) -> bool:
    return max_turns == DEFAULT_MAX_TURNS


def _is_empty(value: Sized) -> bool:
    return not value


class Threshold(Value):
    """A threshold as it applies to a scenario or turn, with the location where it was specified."""

    rule: Annotated[ThresholdRule, BeforeValidator(_rule), PlainSerializer(compact_threshold)]
    where: str
    is_sure: Annotated[bool, Field(exclude_if=bool)] = True
    """True if the threshold must be met even if nothing was judged, because the metric is certain to be
    judged or the scenario itself sets the threshold. Any other threshold applies only if something was
    judged."""

    @property
    def bar(self) -> float:
        """The highest number in the threshold. A score below this number may count against the agent."""
        return max(self.rule.numbers)


class ScenarioRules(Value):
    """The rules for one scenario with one agent."""

    epochs: Annotated[Epochs, Field(exclude_if=_is_one)] = 1
    max_turns: Annotated[int, Field(exclude_if=_is_usual)] = DEFAULT_MAX_TURNS
    unjudged: Annotated[tuple[str, ...], Field(exclude_if=_is_empty)] = ()
    """Metrics that are requested but may remain unjudged."""
    thresholds: Annotated[dict[str, Threshold], Field(exclude_if=_is_empty)] = {}
    """The thresholds that apply, keyed by metric."""

    @property
    def range(self) -> EpochRange | None:
        """The range of epochs within which the scenario's gate decides, or ``None`` if the number of epochs
        is fixed."""
        return self.epochs if isinstance(self.epochs, EpochRange) else None

    @property
    def least(self) -> int:
        """The minimum number of epochs, which is guaranteed to be run."""
        return self.epochs.min if isinstance(self.epochs, EpochRange) else self.epochs

    @property
    def most(self) -> int:
        return self.epochs.max if isinstance(self.epochs, EpochRange) else self.epochs


class SuitePolicy(Value):
    """The requirements of an entire suite, merged from the configuration and the command line."""

    profile: str = ""
    """The selected profile of the configuration."""
    seed: int = 0
    metrics: tuple[MetricSpec, ...] = ()
    """All known metrics."""
    judged: tuple[str, ...] = ()
    """The names of the metrics to judge."""
    by_flag: bool = False
    """True if ``judged`` was set on the command line."""
    no_judge: bool = False
    """True if no judge may be called."""
    code_only: bool = False
    """True if scenarios that require a model are excluded."""
    thresholds: dict[str, Threshold] = {}
    """The thresholds, keyed by metric."""
    severities: dict[str, Severity] = {}
    """The severities that override those in the table, keyed by label."""
    severity_from: Literal["table", "model"] = "table"
    fail_on_severity: Severity | Literal["none"] = Severity.CRITICAL
    fault_tolerance: float = 0.0
    """The share of samples that may be lost."""
    max_rates: dict[Severity, float] = {}
    """The maximum share of recorded conversations that may contain a finding of a given severity or higher,
    keyed by severity."""
    on_undecided: Literal["fail", "neutral"] = "fail"
    gates: GatesConfig = GatesConfig()
    accepted: tuple[AcceptedFailure, ...] = ()
    """The accept list of known failures."""
    budget: BudgetConfig = BudgetConfig()
    deadlines: DeadlinesConfig = DeadlinesConfig()
    prices: dict[str, Price] = {}
    """The prices, keyed by model or agent."""
    models: dict[ModelRole, ModelConfig] = {}
    corroborate: bool = True
    """True if a judge's decisive verdict requires a second opinion."""
    skips_failed_judges: bool = False
    shares_calls: bool = False
    """True if several metrics share one call to a judge."""
    reviews_turns: bool = False
    """True if one call to a judge, after the last turn, labels all turns of a conversation."""
    detectors: tuple[str, ...] | None = None
    """The names of the detectors to run. ``None`` means all detectors."""
    unmocked_tools: Literal["error", "passthrough", "empty"] = "error"
    now: str | None = None
    max_turns: int = DEFAULT_MAX_TURNS
    prompts: dict[str, str] = {}
    """The author's files that replace built-in prompts, keyed by name."""
    policies: tuple[str, ...] = ()
    """The names of agents that have a policy."""
    places: dict[str, str] = {}
    """The locations of keys that are shown in reports."""

    @property
    def specs(self) -> dict[str, MetricSpec]:
        """All known metrics, keyed by name."""
        return {spec.name: spec for spec in self.metrics}

    @property
    def fail_on(self) -> Severity | None:
        """The lowest severity that fails a sample. ``None`` means that no severity fails a sample."""
        return self.fail_on_severity if isinstance(self.fail_on_severity, Severity) else None

    def model(self, role: ModelRole) -> str:
        """Return the model for a role, or an empty string if there is none."""
        return self.models[role].model if role in self.models else ""

    def where(self, key: str) -> str:
        """Return the location of a key, or ``default`` if the key is not set."""
        return self.places.get(key, "default")


class Shard(Value):
    """A part of a run that is played on its own, for example on another machine. It consists of whole
    scenarios, so everything that is decided about one scenario is decided within its shard."""

    number: int
    """The number of the shard, from 1."""
    count: int
    """The number of shards of the run."""
    scenarios: tuple[str, ...]
    """The ids of the scenarios in this shard."""
    before: int
    """The number of planned samples in the shards with a lower number."""
    samples: int
    """The number of planned samples in this shard."""
    all_samples: int
    """The number of planned samples in all shards."""

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    def part_of(self, amount: float) -> float:
        """Return this shard's part of an amount that all shards share, in proportion to its samples."""
        return amount * self.samples / self.all_samples

    def whole_part_of(self, amount: int) -> int:
        """Return this shard's part of a number of indivisible things, such as calls. The parts of all shards
        add up to the number."""
        through = amount * (self.before + self.samples) // self.all_samples
        return through - amount * self.before // self.all_samples

    def pace_from(self, limit: int) -> int:
        """Return this shard's part of a limit on how much is done at the same time or in a minute. It is at
        least 1, because a shard has to go on."""
        return max(1, self.whole_part_of(limit))

    def budget_from(self, budget: BudgetConfig) -> BudgetConfig:
        """Return this shard's part of the budget of the run."""
        by_role = {role: self._allowance_from(each) for role, each in budget.roles.items()}
        roles = budget.by_role.model_copy(update=by_role)
        return self._allowance_from(budget).model_copy(update={"by_role": roles})

    def _allowance_from(self, allowance: AllowanceT) -> AllowanceT:
        parts = {
            name: self.whole_part_of(limit) if isinstance(limit, int) else self.part_of(limit)
            for name, limit in allowance.limits.items()
        }
        return allowance.model_copy(update=parts)


class Plan(Value):
    """The samples to run, and the rules that apply to each scenario × agent."""

    suite: SuitePolicy = SuitePolicy()
    """The suite's policy for this run, excluding the ``unapplied`` gates."""
    unapplied: dict[str, str] = {}
    """The reasons why gates and thresholds do not apply to this run, keyed by the key of the gate or
    threshold. This run could never satisfy these gates, and these thresholds apply only to scenarios outside
    this run."""
    needs_model: tuple[str, ...] = ()
    """The scenarios that are excluded by ``code_only`` because they require a model."""
    secrets: Annotated[dict[str, tuple[str, ...]], Field(exclude_if=_is_empty)] = {}
    """The placeholders that replace each agent's secrets in all output, keyed by agent."""
    visibility: dict[str, KnownVisibility] = {}
    """The visibility of tool calls as known before the run, keyed by agent (``""`` for all other agents)."""
    default: ScenarioRules = ScenarioRules()
    """The rules for recorded conversations that have no rules of their own (``SampleStarted.rules``)."""
    rule_sets: tuple[ScenarioRules, ...] = ()
    """The distinct rules of all scenarios."""
    scenarios: dict[str, dict[str, int]] = {}
    """The index in ``rule_sets``, keyed by scenario id and agent."""
    shard: Annotated[Shard | None, Field(exclude_if=_is_none)] = None
    """The part of the plan that this run plays, or ``None`` if the run plays all of it. The rest of the plan
    is the same in all shards."""

    def with_suite(self, **changes: Any) -> Plan:
        """Return a copy of the plan with changes to its suite policy."""
        return self.model_copy(update={"suite": self.suite.model_copy(update=changes)})

    def rules_for_pairing(self, scenario: str, agent: str) -> ScenarioRules:
        """Return the rules for a scenario with an agent."""
        number = self.scenarios.get(scenario, {}).get(agent)
        return self.default if number is None else self.rule_sets[number]

    def known_visibility(self, agent: str) -> KnownVisibility | None:
        """Return the visibility of an agent's tool calls as known before the run."""
        return self.visibility.get(agent) or self.visibility.get("")

    @property
    def samples(self) -> tuple[SampleKey, ...]:
        """All samples that this run is planned to play, scenario by scenario. If a gate decides the number of
        epochs, only the first epochs are included."""
        played = set(self.scenarios) if self.shard is None else set(self.shard.scenarios)
        return tuple(
            SampleKey(scenario=scenario, agent=agent, epoch=epoch)
            for scenario, agents in self.scenarios.items()
            if scenario in played
            for agent, number in agents.items()
            for epoch in range(self.rule_sets[number].least)
        )

    @property
    def whole(self) -> Plan:
        """The plan of all shards together."""
        return self.model_copy(update={"shard": None}) if self.shard else self

    @property
    def pairings(self) -> int:
        """The number of pairings of scenario and agent, including those of other shards."""
        return sum(map(len, self.scenarios.values()))

    @property
    def agents(self) -> frozenset[str]:
        """The names of all agents in the plan, including those of other shards."""
        return frozenset(agent for agents in self.scenarios.values() for agent in agents)

    @property
    def budget(self) -> BudgetConfig:
        """The limits that this run must observe."""
        return self.shard.budget_from(self.suite.budget) if self.shard else self.suite.budget

    def restrict_to_pairing(self, scenario: str, agent: str, *, epochs: int = 0) -> Plan:
        """Return the plan for one scenario × agent with ``epochs`` planned epochs, regardless of the run's
        other scenarios."""
        rules = self.rules_for_pairing(scenario, agent).model_copy(update={"epochs": epochs})
        return self.model_copy(update={"rule_sets": (rules,), "scenarios": {scenario: {agent: 0}}})

    @property
    def ranges(self) -> dict[str, EpochRange]:
        """The ranges of epochs within which a gate decides, keyed by scenario."""
        return {
            scenario: ranged
            for scenario, agents in self.scenarios.items()
            for number in agents.values()
            if (ranged := self.rule_sets[number].range)
        }
