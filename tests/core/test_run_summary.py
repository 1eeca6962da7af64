"""What a later run is compared with."""

from __future__ import annotations

from agenteval.core.run_summary import RunSummary, ScenarioSummary


def test_the_agents_of_a_run_in_order() -> None:
    pairs = (("a", "y"), ("a", "x"), ("b", "y"), ("b", "x"))
    scenarios = tuple(ScenarioSummary(id=id, agent=agent, content={}) for id, agent in pairs)
    summary = RunSummary(run_id="r", started_at="2026-11-29T00:00:00Z", scenarios=scenarios)
    assert summary.agents == ("y", "x")
    assert RunSummary(run_id="r", started_at="").agents == ()
