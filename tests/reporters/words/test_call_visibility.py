"""How much of an agent's tool calls is seen, in words, and which setting changes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from agenteval.core.tool_visibility import KnownVisibility, VisibilitySource
from agenteval.core.trajectory import CallEvidence, ToolVisibility
from agenteval.reporters.words.call_visibility import calls_seen, describe_known_visibility, unseen_lines
from agenteval.verdict.report import Report
from tests.support.verdict_runs import PASS, report_of

ALL, PARTLY, UNSEEN = ToolVisibility.ALL, ToolVisibility.PARTLY, ToolVisibility.UNSEEN
DECLARED = ToolVisibility.DECLARED_UNSEEN
AUTHOR, ADAPTER = VisibilitySource.AUTHOR, VisibilitySource.ADAPTER
TOOLS = {"a": {"tools": {"get": {"returns": 1}}}}


def known(calls: ToolVisibility, source: VisibilitySource = ADAPTER, why: str = "") -> KnownVisibility:
    return KnownVisibility(calls=calls, source=source, why=why)


@pytest.mark.parametrize(
    ("visibility", "lists_tools", "facts", "absent"),
    [
        (None, False, ["in the run", "`calls: all`", "`calls: unseen`"], "configured"),
        (None, True, ["all calls are visible"], "calls: all"),
        (known(ALL, AUTHOR), False, ["calls: all", "configured"], "unseen"),
        (known(ALL), False, ["all calls are visible"], "configured"),
        (known(ALL), True, ["all calls are visible"], "configured"),
        (known(DECLARED, AUTHOR), False, ["calls: unseen", "configured"], "`"),
        (known(UNSEEN), False, ["not visible", "`calls: all`"], "configured"),
        (known(PARTLY), True, ["not visible", "`calls: all`"], "configured"),
        (known(UNSEEN, why="it is remote"), False, ["it is remote"], "`calls: all`"),
    ],
)
def test_what_is_known_before_a_run(
    visibility: KnownVisibility | None, lists_tools: bool, facts: list[str], absent: str
) -> None:
    text = describe_known_visibility(visibility, lists_tools=lists_tools)
    assert [fact for fact in facts if fact not in text] == []
    assert absent not in text


def run(
    visibility: Mapping[str, KnownVisibility],
    *,
    evidence: Mapping[str, frozenset[CallEvidence]] | None = None,
    agents: tuple[str, ...] = ("bot",),
    scenarios: Mapping[str, Mapping[str, Any]] = TOOLS,
) -> Report:
    report = report_of({name: [PASS] for name in scenarios}, agents=agents, scenarios=scenarios)
    plan = report.plan.model_copy(update={"visibility": dict(visibility)})
    return replace(report, run=report.run.model_copy(update={"plan": plan}), evidence=evidence or {})


ASKED = {"bot": frozenset({CallEvidence.ASKED})}


@pytest.mark.parametrize(
    ("visibility", "evidence", "seen", "head"),
    [
        (known(ALL), {}, "all", ""),
        (known(DECLARED, AUTHOR), {}, "unseen", "no calls"),
        (known(UNSEEN), {}, "unseen", "no calls"),
        (known(PARTLY), {}, "partly", "not all calls"),
        (known(PARTLY), ASKED, "partly", "not all calls"),
        (known(UNSEEN), ASKED, "all", ""),
        (None, {}, "unseen", "no calls"),
    ],
)
def test_what_was_seen_in_the_run(
    visibility: KnownVisibility | None, evidence: Any, seen: str, head: str
) -> None:
    report = run({"bot": visibility} if visibility else {}, evidence=evidence)
    assert calls_seen(report) == {"bot": seen}
    lines = list(unseen_lines(report))
    assert len(lines) == bool(head)
    assert all(line.startswith(f"{head} of 'bot' are visible: ") for line in lines)
    assert all("{calls: all}" in line for line in lines)


def test_the_adapters_reason_replaces_the_setting() -> None:
    (line,) = unseen_lines(run({"bot": known(UNSEEN, why="it is remote")}))
    assert line.endswith(": it is remote")


def test_each_agent_has_its_own_line_once_and_only_if_its_scenarios_are_about_tools() -> None:
    scenarios = {"a": {}, **dict.fromkeys("bc", TOOLS["a"])}
    report = run({"y": known(ALL)}, agents=("x", "y", "z"), scenarios=scenarios)
    assert calls_seen(report) == {"x": "unseen", "y": "all", "z": "unseen"}
    assert ["'x'" in line for line in unseen_lines(report)] == [True, False]
    assert list(unseen_lines(run({}, scenarios={"a": {}}))) == []


def test_only_the_scenarios_of_the_agent_itself_count() -> None:
    report = run({}, agents=("x", "y"), scenarios={**TOOLS, "plain": {}})
    kept = tuple(s for s in report.scenarios if (s.scenario.id, s.agent) in {("a", "y"), ("plain", "x")})
    (line,) = unseen_lines(replace(report, scenarios=kept))
    assert "'y'" in line
