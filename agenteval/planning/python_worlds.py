"""Resolves ``world`` of a scenario while it is loaded: the methods of the class become tools, and the
snapshot of an instance becomes tables of the state. Nothing that comes later has to know where they are from,
and the journal holds them, so that scoring needs none of the author's code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agenteval.core.errors import AuthorError, Place, Problem
from agenteval.core.scenario import Scenario, Tool
from agenteval.core.value import compact
from agenteval.core.world_state import StateSpec, WorldTables
from agenteval.files.yaml_source import Mark

if TYPE_CHECKING:
    from agenteval.conversation.python_world import WorldClass


class WorldResolver:
    """Resolves the worlds of scenarios. ``now`` is the configured time. Scenarios that begin alike share an
    instance and its snapshot."""

    def __init__(self, now: str | None) -> None:
        self._now = now
        self._known: dict[Any, tuple[WorldClass, StateSpec | None]] = {}

    def resolve(self, scenario: Scenario, mark: Mark) -> Scenario:
        """Return the scenario with the tools and tables of its world. Raise ``AuthorError`` with all
        mistakes in the world."""
        if not scenario.world:
            return scenario
        place = mark.find(("world",)).place
        state = scenario.state
        key = (scenario.world, scenario.base, state.model_dump_json() if state else None)
        found = self._known.get(key)
        if found is None:
            world, snapshot = self._make(scenario, mark, place)
            if snapshot:
                state = state or StateSpec(snapshot=snapshot, base=scenario.base)
                state = compact(state.model_copy(update={"snapshot": snapshot}))
            found = self._known[key] = world, state
        world, state = found
        if problems := _clashes(scenario, world.tools, mark):
            raise AuthorError(*problems)
        line = scenario.lines.get("world")
        lines = {} if line is None else {f"tools.{name}": line for name in world.tools}
        return scenario.model_copy(
            update={
                "tools": {**scenario.tools, **world.tools},
                "state": state,
                "lines": {**lines, **scenario.lines},
            }
        )

    def _make(self, scenario: Scenario, mark: Mark, place: Place) -> tuple[WorldClass, WorldTables]:
        from agenteval.conversation.python_world import load_world_class, take_snapshot
        from agenteval.conversation.user_code import run_at_load
        from agenteval.planning.state_problems import world_rows

        world = load_world_class(scenario.world, scenario.base, place)
        rows = world_rows(scenario, self._now, mark) if world.takes_state else None
        if world.needs_state and rows is None:
            what = f"`world`: {world.target} takes `state`, but the scenario has none"
            raise AuthorError(Problem(what, "add `state`, or give the parameter a default", place))
        what = f"`world`: {world.target}"
        instance = run_at_load(world.constructor(rows), what=what, place=place)
        if not world.has_snapshot:
            return world, {}
        what = f"`world`: {world.type.__name__}.snapshot"
        snapshot: WorldTables = run_at_load(
            lambda: take_snapshot(instance, what, place), what=what, place=place
        )
        if not snapshot:
            raise AuthorError(Problem(f"{what} returned no table", "return {table: [rows]}", place))
        return world, snapshot


def _clashes(scenario: Scenario, methods: Mapping[str, Tool], mark: Mark) -> list[Problem]:
    return [
        Problem(
            f"the tool '{name}' is a method of the world, too",
            "remove it here, or rename one of them",
            mark.find((key, name)).place,
        )
        for key, tools in (("tools", scenario.tools), ("user_tools", scenario.user_tools))
        for name in tools
        if name in methods
    ]
