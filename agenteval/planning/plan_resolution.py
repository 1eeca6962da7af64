"""The third step in preparing a run. It is the only step that determines which rules apply. The suite's
policy and the selected scenarios are resolved to the ``Plan``, which all later steps read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from agenteval.adapters.agents import AGENTS
from agenteval.core.config import AgentConfig, Config
from agenteval.core.plan import ROLES, Plan, ScenarioRules, SuitePolicy, Threshold
from agenteval.core.scenario import EpochRange, Epochs, Sample, Scenario, expand_threshold
from agenteval.core.score import MetricSpec
from agenteval.core.selection import ranges_of
from agenteval.core.tool_visibility import KnownVisibility, declared_visibility
from agenteval.scoring import metrics
from agenteval.verdict.run_gates import without_concern

if TYPE_CHECKING:
    from agenteval.planning.sample_selection import SelectedSamples
    from agenteval.planning.suite import Suite

NOT_SELECTED = "applies to no selected scenario"
_DEFAULT_FAULT_TOLERANCE = 0.05
"""The proportion of samples that may be errored if errored epochs are replaced and the author does not set
``fault_tolerance``."""


def resolve(suite: Suite, selected: SelectedSamples) -> Plan:
    """Return the plan, which contains the rules for each selected sample."""
    policy, config, request = suite.settings.policy, suite.settings.config, suite.request
    missed = without_concern(policy.gates, selected.scenarios, selected.unselected_scenarios)
    visibility = request.visibility
    if visibility is None:
        visibility = {**selected.earlier_visibility, **known_visibility(selected.agents, suite.scenarios)}
    return make_plan(
        policy.model_copy(update={"gates": policy.gates.without(missed)}),
        config,
        selected.samples,
        ranges_of(selected.scenarios, config, epochs=request.epochs),
        unapplied=find_unapplied_thresholds(policy, selected.scenarios, selected.unselected_scenarios)
        | {f"gates.{name}": NOT_SELECTED for name in missed},
        needs_model=selected.needs_model,
        secrets=suite.settings.marked_secrets.placeholders,
        visibility=visibility,
    )


def known_visibility(
    agents: Mapping[str, AgentConfig], scenarios: Iterable[Scenario]
) -> dict[str, KnownVisibility]:
    """Return the tool-call visibility of each agent, to the extent that the configuration determines it.
    ``scenarios`` is the whole suite, because an agent may call any tool in the suite."""
    tools = frozenset(name for scenario in scenarios for name in scenario.tools_named)
    found = {name: _known_visibility(agent, tools) for name, agent in agents.items()}
    return {name: known for name, known in found.items() if known}


def _known_visibility(agent: AgentConfig, tools: frozenset[str]) -> KnownVisibility | None:
    if declared := declared_visibility(agent.calls):
        return declared
    if agent.mcp:
        return None  # its calls are seen by agenteval's MCP server, whatever its replies report
    adapter = AGENTS.get(agent.kind)
    return adapter.visibility(adapter.parse_options(agent), tools)


def suite_policy(
    config: Config,
    available: Iterable[MetricSpec] = (),
    judged: Iterable[MetricSpec] = (),
    *,
    no_judge: bool = False,
) -> SuitePolicy:
    """Build the suite's policy. ``available`` contains all metrics; ``judged`` contains the metrics to judge,
    which are a subset of ``available``."""
    return SuitePolicy(
        profile=config.profile,
        seed=config.seed,
        metrics=tuple(available),
        judged=tuple(spec.name for spec in judged),
        by_flag=config.is_by_flag("metrics"),
        no_judge=no_judge,
        code_only=config.code_only,
        thresholds={
            name: Threshold(rule=expand_threshold(entry), where=config.where(f"thresholds.{name}"))
            for name, entry in config.thresholds.items()
            if entry is not None
        },
        severities=config.severities,
        severity_from=config.severity_from,
        fail_on_severity=config.fail_on_severity,
        fault_tolerance=config.fault_tolerance or 0.0,
        on_undecided=config.on_undecided,
        gates=config.gates,
        accepted=config.accepted_failures,
        budget=config.budget,
        deadlines=config.deadlines,
        prices=config.prices,
        models={role: model for role in ROLES if (model := config.models.model_for(role))},
        corroborate=config.judge.corroborate,
        skips_failed_judges=config.judge.on_failure == "skip",
        shares_calls=_shares_calls(config),
        reviews_turns=config.judge.calls == "review",
        detectors=config.detectors,
        unmocked_tools=config.unmocked_tools,
        now=config.now,
        max_turns=config.max_turns,
        prompts=config.prompts,
        policies=tuple(dict.fromkeys(each.name for each in config.all_agents if (each.policy or "").strip())),
        places={key: config.where(key) for key in _reported_keys(config)},
    )


def make_plan(
    suite: SuitePolicy,
    config: Config,
    samples: Iterable[Sample],
    ranges: Mapping[str, EpochRange],
    *,
    unapplied: Mapping[str, str] | None = None,
    needs_model: Sequence[str] = (),
    secrets: Mapping[str, tuple[str, ...]] | None = None,
    visibility: Mapping[str, KnownVisibility] | None = None,
) -> Plan:
    """Build the plan of a run. If a gate decides the number of epochs of a scenario, ``ranges`` contains the
    scenario, and ``samples`` contains only its first samples. ``visibility`` maps each agent to its known
    tool-call visibility. ``unapplied`` maps each rule that does not apply to the run to the reason."""
    epochs: dict[tuple[str, str], int] = {}
    known: dict[str, Scenario] = {}
    for sample in samples:
        pairing = (sample.key.scenario, sample.key.agent)
        epochs[pairing] = epochs.get(pairing, 0) + 1
        known[sample.key.scenario] = sample.scenario
    rule_sets: dict[str, ScenarioRules] = {}
    numbers: dict[str, int] = {}
    scenarios: dict[str, dict[str, int]] = {}
    for (scenario, agent), count in epochs.items():
        rules = rules_for(known[scenario], suite, agent, epochs=ranges.get(scenario) or count)
        text = repr(rules)
        rule_sets.setdefault(text, rules)
        scenarios.setdefault(scenario, {})[agent] = numbers.setdefault(text, len(numbers))
    return Plan(
        suite=_with_fault_tolerance(suite, config) if ranges else suite,
        unapplied=dict(unapplied or {}),
        needs_model=tuple(needs_model),
        secrets=dict(secrets or {}),
        visibility=dict(visibility or {}),
        default=rules_for(Scenario(), suite, ""),
        rule_sets=tuple(rule_sets.values()),
        scenarios=scenarios,
    )


def _with_fault_tolerance(suite: SuitePolicy, config: Config) -> SuitePolicy:
    """Set the proportion of samples that may be errored in a run that replaces errored epochs."""
    key = "fault_tolerance"
    share = _DEFAULT_FAULT_TOLERANCE if config.fault_tolerance is None else config.fault_tolerance
    where = suite.where(key)
    by = f"{where} of epochs: {{max}}" if where == "default" else where
    return suite.model_copy(update={key: share, "places": {**suite.places, key: by}})


def rules_for(
    scenario: Scenario, suite: SuitePolicy, agent: str | None = None, *, epochs: Epochs = 1
) -> ScenarioRules:
    """Return the rules that apply to a scenario and an agent, or to any agent if ``agent`` is None. A
    threshold in the scenario replaces the suite's threshold on the same metric, and ``null`` removes the
    suite's threshold. ``metrics.may_apply_to_scenario`` decides whether a metric can be judged in the
    scenario at all."""
    policy = has_policy(scenario, suite, agent)
    sure_to_apply = {
        spec.name: metrics.applies_to_scenario(spec, scenario, policy=policy)
        for spec in suite.metrics
        if spec.name in suite.thresholds or spec.name in suite.judged
    }
    thresholds = {
        name: threshold.model_copy(update={"is_sure": sure_to_apply.get(name, False)})
        for name, threshold in suite.thresholds.items()
    }
    for name, entry in scenario.thresholds.items():
        if entry is None:
            thresholds.pop(name, None)
        else:
            where = scenario.where(f"thresholds.{name}")
            thresholds[name] = Threshold(rule=expand_threshold(entry), where=where)
    return ScenarioRules(
        epochs=epochs,
        max_turns=scenario.max_turns or suite.max_turns,
        unjudged=tuple(name for name in suite.judged if not sure_to_apply.get(name)),
        thresholds=thresholds,
    )


class ScenarioRulesCache:
    """Returns the rules for a conversation, or None if the suite's rules apply. Most conversations share a
    few rule sets, so equal rule sets are stored only once."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._known: dict[str, ScenarioRules | None] = {}

    def __call__(self, scenario: Scenario, agent: str) -> ScenarioRules | None:
        rules = rules_for(scenario, self._plan.suite, agent)
        return self._known.setdefault(repr(rules), None if rules == self._plan.default else rules)


def has_policy(scenario: Scenario, suite: SuitePolicy, agent: str | None = None) -> bool:
    """Check whether the scenario or the agent with the given name has a policy. If the name is None, check
    all agents."""
    agent_has_policy = bool(suite.policies) if agent is None else agent in suite.policies
    return agent_has_policy or bool(scenario.policy.strip())


def redact_plan(plan: Plan, public: Config) -> Plan:
    """Return the plan in a form that may be written to disk. The values of environment variables are removed
    from strings. ``public`` is the redacted configuration."""
    shown = {role: model for role in ROLES if (model := public.models.model_for(role))}
    return plan.with_suite(models=shown, now=public.now, detectors=public.detectors, prompts=public.prompts)


def _shares_calls(config: Config) -> bool:
    """Check whether several judges share one call. Scripted judges never share calls, because they answer one
    metric at a time."""
    judge = config.models.model_for("judge")
    return config.judge.calls == "shared" and (judge is None or judge.provider != "scripted")


def _reported_keys(config: Config) -> Iterator[str]:
    """Yield the configuration keys whose locations are shown in reports."""
    yield from ("fail_on_severity", "fault_tolerance", "deadlines.run_s")
    for name, rule in config.gates.configured_gates.items():
        yield f"gates.{name}"
        yield from (f"gates.{name}.{key}" for key in (rule if isinstance(rule, Mapping) else ()))
    yield from (f"budget.{name}" for name in config.budget.limits)
    for role, allowance in config.budget.roles.items():
        yield from (f"budget.by_role.{role}.{name}" for name in allowance.limits)


# ── thresholds that hold for nothing that is run ─────────────────────────────────────────────────


def has_threshold(scenario: Scenario, suite: SuitePolicy) -> bool:
    """Check whether any threshold may apply to a scenario."""
    return any(_may_apply(name, scenario, suite) for name in {**suite.thresholds, **scenario.thresholds})


def find_unapplied_thresholds(
    suite: SuitePolicy, selected: Sequence[Scenario], others: Iterable[Scenario] | None
) -> dict[str, str]:
    """Return the suite's thresholds that cannot apply to any selected scenario but may apply to a scenario in
    ``others``. The result maps configuration keys to reasons. If ``others`` is None, the unselected scenarios
    are unknown, and each of these thresholds is assumed to apply to an unselected scenario."""
    missed = find_unused_thresholds(suite, selected)
    if others is not None:
        ids = {scenario.id for scenario in selected}
        rest = [scenario for scenario in others if scenario.id not in ids]
        missed = [name for name in missed if any(_may_apply(name, each, suite) for each in rest)]
    return {f"thresholds.{name}": NOT_SELECTED for name in missed}


def find_unused_thresholds(suite: SuitePolicy, scenarios: Collection[Scenario]) -> list[str]:
    """Return the metrics whose threshold in the suite cannot apply to any of the scenarios."""
    return [
        name
        for name in suite.thresholds
        if not any(_may_apply(name, each, suite) and _is_judged(name, each, suite) for each in scenarios)
    ]


def _may_apply(name: str, scenario: Scenario, suite: SuitePolicy) -> bool:
    """Check whether a threshold on a metric may apply to a scenario. The scenario must not remove the
    threshold, and the metric must be judgeable in the scenario."""
    spec = suite.specs.get(name)
    if spec is None or scenario.thresholds.get(name, suite.thresholds.get(name)) is None:
        return False
    return metrics.may_apply_to_scenario(spec, scenario, policy=has_policy(scenario, suite))


def _is_judged(name: str, scenario: Scenario, suite: SuitePolicy) -> bool:
    return metrics.applies_to_scenario(suite.specs[name], scenario, policy=has_policy(scenario, suite))
