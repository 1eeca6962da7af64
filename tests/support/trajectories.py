"""Trajectories of agents of which all calls are seen."""

from __future__ import annotations

from collections.abc import Sequence

from agenteval.core.trajectory import Stop, ToolVisibility, Trajectory, Turn


def seen(turns: Sequence[Turn] = (), stop: Stop | None = None, unfinished: Turn | None = None) -> Trajectory:
    return Trajectory(turns=tuple(turns), stop=stop, unfinished=unfinished, visibility=ToolVisibility.ALL)
