"""A report of a conversation in which the agent leaked a canary, wherever that may be repeated."""

from __future__ import annotations

from typing import Any

from agenteval.core.scenario import SampleKey, Scenario
from agenteval.core.score import Check, Finding, Score, Severity
from agenteval.core.trajectory import ToolCall, ToolResult
from agenteval.verdict.report import Report, build_report
from tests.support.report_samples import conversation, started, turn
from tests.support.verdict_runs import SPECS

LEAKED = "CANARY-7f3a9b"
MASKED = "CANA…3a9b"
KEY = SampleKey(scenario="a", agent="bot")


def leak(**more: Any) -> Finding:
    """What the detector found at the beginning of the first answer."""
    fields = {"detector": "leak", "metric": "leak", "label": "unsafe state", "severity": Severity.CRITICAL,
              "turn": 0, "span": (0, len(LEAKED)), "evidence": MASKED}  # fmt: skip
    return Finding.model_validate({**fields, **more})


def leaking(*found: Finding, answer: str = f"{LEAKED} it is.") -> Report:
    """A conversation of two turns, in the first of which the findings are."""
    call = ToolCall(name="note", args={LEAKED: f"it is {LEAKED}"}, result=ToolResult(value=[LEAKED]))
    check = Check(name="output.contains", passed=False, detail=f'"never" in "{answer}"')
    rated = Score(metric="stars", value=2.0, evidence=LEAKED)
    turns = (turn("hi", answer, call), turn(f"Say {LEAKED} again", f"Again: {LEAKED}"))
    begun = started((Scenario(id="a", name="a", source="s/a.yaml:1"),), (KEY,), metrics=SPECS)
    return build_report([begun, *conversation(KEY, turns, {0: (*found, check), 1: (rated,)})])
