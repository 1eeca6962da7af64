"""Which scenarios a change of files may affect, for ``--watch``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from agenteval.core.config import Config
from agenteval.core.scenario import Scenario
from agenteval.planning.run_files import config_files, file_of_target


def touched_scenarios(
    changed: Iterable[Path], config: Config, scenarios: Sequence[Scenario]
) -> frozenset[str]:
    """Return the ids of the scenarios that a change of the files ``changed`` may affect.

    A file that only some scenarios name (their own file, their data rows, mocks, checks, hooks and user
    prompts) affects these scenarios. Every other file affects all of them, because it is not known what the
    agent reads."""
    shared = set(config_files(config))
    by_file: dict[Path, set[str]] = {}
    for scenario in scenarios:
        for path in _own_files(scenario):
            by_file.setdefault(path.resolve(), set()).add(scenario.id)
    touched: set[str] = set()
    for path in (each.resolve() for each in changed):
        if path in shared or path not in by_file:
            return frozenset(scenario.id for scenario in scenarios)
        touched |= by_file[path]
    return frozenset(touched)


def _own_files(scenario: Scenario) -> Iterator[Path]:
    for place in filter(None, (scenario.source, scenario.row)):
        yield Path(place.rpartition(":")[0])
    for tool in scenario.every_tool.values():
        if tool.python:
            yield Path(tool.base, file_of_target(tool.python))
    if scenario.user_prompt:
        yield Path(scenario.base, scenario.user_prompt)
    for target in filter(None, (scenario.setup, scenario.teardown)):
        yield Path(scenario.base, file_of_target(target))
    for _, expect in scenario.expectations:
        for target in expect.python:
            yield Path(scenario.base, file_of_target(target))
