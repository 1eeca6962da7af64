"""Histories of made-up runs."""

from __future__ import annotations

from typing import Any

from agenteval.verdict.history import AgentFigures, HistoryPoint, RunHistory
from agenteval.verdict.statistics import Interval, Tally


def figures(agent: str = "bot", **more: Any) -> AgentFigures:
    """Three of four scenarios and nine of twelve conversations succeeded."""
    fields = {
        "passed": 3,
        "failed": 1,
        "inconclusive": 0,
        "tally": Tally(9, 12, 12),
        "interval": Interval(0.4677, 0.9111),
        **more,
    }
    return AgentFigures(agent, **fields)


def point(number: int = 1, *agents: AgentFigures, **more: Any) -> HistoryPoint:
    """A run with the number, from 0 to 9, in its id and its start."""
    fields = {
        "run_id": f"20261123-19012{number}-aaaaa{number}",
        "started_at": f"2026-11-23T19:01:2{number}.000Z",
        "commit": "0123456789abcdef",
        "dirty": False,
        "verdict": "passed",
        "exit_code": 0,
        "outcome": "complete",
        **more,
    }
    return HistoryPoint(agents=agents or (figures(),), **fields)


def history(*points: HistoryPoint, **more: Any) -> RunHistory:
    return RunHistory(points or (point(),), **more)
