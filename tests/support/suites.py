"""Projects with many agents and many scenarios, to be played in one run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tests.support.kit import Done, Project

Entries = Mapping[str, str] | Iterable[str]


def write_suite(
    project: Project,
    agents: Entries,
    scenarios: Entries,
    *,
    where: str = "",
    config: str = "",
    defaults: str = "",
    file: str = "scenarios/suite.yaml",
) -> Project:
    """``agents``: what stands in the mapping of each, or names of targets in ``agent.py``; ``where`` is added
    to each, ``config`` to the configuration, ``defaults`` to the suite. ``scenarios``: by their ids; one that
    is called as an agent is played by it, if it names no other. Ids alone: with one turn and no checks."""
    named = agents if isinstance(agents, Mapping) else {each: f"target: 'agent.py:{each}'" for each in agents}
    entries = (
        scenarios if isinstance(scenarios, Mapping) else dict.fromkeys(scenarios, "turns: [x], checks: none")
    )
    lines = [f"  {name}: {{{text}{where}}}\n" for name, text in named.items()]
    project.config(f"agents:\n{''.join(lines)}{config}", target="")
    played = [
        f"- {{id: '{id}', {f'agent: {id}, ' if id in named and 'agent:' not in text else ''}{text}}}\n"
        for id, text in entries.items()
    ]
    project.scenarios(f"{defaults}scenarios:\n{''.join(played)}", file)
    return project


def samples_of(project: Project) -> dict[str, Any]:
    """The first sample of each scenario."""
    return {each["id"]: each["samples"][0] for each in project.results()["scenarios"]}


def warnings_of(done: Done) -> list[str]:
    return [line for line in done.err.splitlines() if line.startswith("warning:")]
