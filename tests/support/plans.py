"""Plans for tests that have no project: made as a run makes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from agenteval.core.config import Config
from agenteval.core.event import RunStarted
from agenteval.core.plan import Plan
from agenteval.core.scenario import EpochRange, Sample, SampleKey, Scenario
from agenteval.core.score import MetricSpec
from agenteval.core.tool_visibility import declared_visibility
from agenteval.planning.plan_resolution import make_plan, suite_policy


def plan_for(
    config: Config | None = None,
    scenarios: Iterable[Scenario] = (),
    keys: Sequence[SampleKey] = (),
    *,
    metrics: Sequence[MetricSpec] = (),
    judged: Sequence[str] = (),
    no_judge: bool = False,
    epochs: Mapping[str, EpochRange] | None = None,
    unapplied: Mapping[str, str] | None = None,
) -> Plan:
    """``judged``: names; of metrics that are not known, too."""
    config = config or Config()
    by_id = {scenario.id: scenario for scenario in scenarios}
    suite = suite_policy(config, metrics, no_judge=no_judge).model_copy(update={"judged": tuple(judged)})
    samples = [Sample(key=key, scenario=by_id[key.scenario]) for key in keys]
    declared = {agent.name: declared_visibility(agent.calls) for agent in config.all_agents}
    visibility = {name: known for name, known in declared.items() if known}
    return make_plan(suite, config, samples, epochs or {}, visibility=visibility, unapplied=unapplied)


def begun(
    config: Config | None = None,
    scenarios: Sequence[Scenario] = (),
    keys: Sequence[SampleKey] = (),
    *,
    started_at: str = "2026-11-21T00:00:00Z",
) -> RunStarted:
    """The first event of a run."""
    config = config or Config()
    return RunStarted(
        run_id="r",
        started_at=started_at,
        config=config,
        plan=plan_for(config, scenarios, keys),
        scenarios=tuple(scenarios),
    )
