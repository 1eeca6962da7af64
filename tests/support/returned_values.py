"""An agent that returns a value for each scenario, played once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.support.kit import Project
from tests.support.scored_logs import verdicts

AGENT = "VALUES = {values!r}\n\ndef agent(messages, ctx):\n    return VALUES[ctx.scenario_id]\n"


def play_values(
    project: Project, values: Mapping[str, Any], rule: str, *, seen: Any, keys: str = ""
) -> dict[str, str]:
    """The verdict for each value, by its name, where an agent returns it and is to keep ``rule``. In the same
    run the agent returns ``seen``, which shows how its calls are seen. ``keys``: others of the agent."""
    by_id = {"seen": seen, **{f"s{n}": value for n, value in enumerate(values.values())}}
    project.agent(AGENT.format(values=by_id))
    project.write("agenteval.yaml", f"agent: {{target: 'agent.py:agent'{keys}}}\nmetrics: []\n")
    rows = [f"  - {{id: {id_}, turns: [Hi], expect: {{{rule}}}}}\n" for id_ in by_id]
    project.scenarios(f"scenarios:\n{''.join(rows)}")
    project.run()
    found = verdicts(project)
    return {name: found[f"s{n}"] for n, name in enumerate(values)}
