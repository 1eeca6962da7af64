"""The history of a suite as JSON: its fields, what is null, and its version."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agenteval.core.sample_report import Spread
from agenteval.reporters.options import ReportOptions
from agenteval.reporters.results.history import HISTORY_VERSION, render
from agenteval.verdict.history import LeftOutReason, LeftOutRuns, MetricMean, RunHistory
from agenteval.verdict.statistics import Interval, Tally
from tests.support.histories import figures, history, point


def read(shown: RunHistory) -> dict[str, Any]:
    text = render(shown, ReportOptions())
    assert text.startswith('{\n  "')
    assert text.endswith("}\n")
    found: dict[str, Any] = json.loads(text)
    return found


def test_all_fields() -> None:
    spread = Spread(2.0, 1.0, 3.0, 4)
    agent = figures(means=(MetricMean("tone", "t", 0.5, 3),), latency_ms=spread, tokens=spread, cost=spread)
    each = point(
        1, agent, dirty=True, judges=("m",), users=("u",), scripted=True, cost=0.5, tokens=7, elapsed_s=1.5,
        estimated=True, changes=("the gates differ",),
    )  # fmt: skip
    out = LeftOutRuns(LeftOutReason.UNREADABLE, ("r1",), ("why",))
    found = read(history(each, config="a.yaml", profile="ci", older=2, left_out=(out,)))
    measured = {"mean": 2.0, "p50": 1.0, "p95": 3.0, "n": 4}
    assert found == {
        "schema_version": HISTORY_VERSION,
        "config": "a.yaml",
        "profile": "ci",
        "points": [
            {
                "run": "20261123-190121-aaaaa1",
                "started_at": "2026-11-23T19:01:21.000Z",
                "commit": "0123456789abcdef",
                "dirty": True,
                "verdict": "passed",
                "exit_code": 0,
                "complete": True,
                "outcome": "complete",
                "agents": [
                    {
                        "agent": "bot",
                        "passed": 3,
                        "failed": 1,
                        "inconclusive": 0,
                        "successes": 9,
                        "decided": 12,
                        "planned": 12,
                        "rate": 0.75,
                        "low": 0.4677,
                        "high": 0.9111,
                        "means": [{"metric": "tone", "value": 0.5, "n": 3}],
                        "latency_ms": measured,
                        "tokens": measured,
                        "cost": measured,
                    }
                ],
                "judges": ["m"],
                "users": ["u"],
                "scripted": True,
                "cost": 0.5,
                "tokens": 7,
                "estimated": True,
                "elapsed_s": 1.5,
                "changes": ["the gates differ"],
            }
        ],
        "left_out": [{"reason": "unreadable", "runs": ["r1"], "details": ["why"]}],
        "older": 2,
    }


@pytest.mark.parametrize("field", ["cost", "tokens", "elapsed_s"])
def test_what_is_not_known_is_null(field: str) -> None:
    (found,) = read(history(point()))["points"]
    assert found[field] is None


def test_a_run_in_which_nothing_was_decided_and_that_was_cut_off() -> None:
    nothing = figures(tally=Tally(0, 0, 4), interval=Interval(0.0, 1.0))
    (found,) = read(history(point(1, nothing, outcome=None)))["points"]
    (agent,) = found["agents"]
    assert (found["complete"], found["outcome"]) == (False, None)
    unknown = (agent["rate"], agent["latency_ms"], agent["tokens"], agent["cost"])
    assert unknown == (None, None, None, None)


def test_nothing_hidden_is_written_and_no_number_breaks_it() -> None:
    agent = figures("a\u202eb", means=(MetricMean("m", "", float("nan"), 1),))
    text = render(history(point(1, agent)), ReportOptions())
    assert "\u202e" not in text
    (found,) = json.loads(text)["points"]
    assert found["agents"][0]["agent"] == "a\u202eb"
    assert found["agents"][0]["means"][0]["value"] is None
