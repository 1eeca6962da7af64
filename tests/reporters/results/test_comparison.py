"""The comparison of two runs as JSON: all of its fields, readable and escaped."""

from __future__ import annotations

import json

from agenteval.core.score import Verdict
from agenteval.reporters.options import ReportOptions
from agenteval.reporters.results.comparison import render
from agenteval.verdict.comparison import RunComparison, ScenarioState, UncomparedScenario


def test_all_fields_are_written_and_nothing_hidden() -> None:
    apart = UncomparedScenario(
        id="a\u202eb", agent="bot", state=ScenarioState.NOT_SELECTED, before=None, after=Verdict.PASSED
    )
    comparison = RunComparison(
        before="r1",
        after="r2",
        margin=0.1,
        confidence=0.95,
        verdict=Verdict.INCONCLUSIVE,
        exit_code=3,
        agents=(),
        apart=(apart,),
    )
    text = render(comparison, ReportOptions())
    assert text.endswith("}\n")
    assert "\u202e" not in text
    read = json.loads(text)
    assert read == json.loads(comparison.model_dump_json())
    assert (read["schema_version"], read["verdict"], read["exit_code"]) == (2, "inconclusive", 3)
    assert read["apart"][0]["id"] == "a\u202eb"
    assert text.startswith('{\n  "')
