"""The table of each dimension: which rows and columns there are, and which figure each cell shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from agenteval.core.event import Event
from agenteval.core.scenario import CaseSpec, Category, SampleKey, Scenario
from agenteval.core.score import Check, Verdict
from agenteval.core.trajectory import Step, Stop, StopReason, ToolCall, Turn, Usage
from agenteval.reporters.options import ReportOptions
from agenteval.reporters.terminal.screen import render_parts
from agenteval.reporters.terminal.tables import ScenarioRow, all_rows, dimension_tables
from agenteval.reporters.words.facts import Facts
from agenteval.verdict.gates import decide
from agenteval.verdict.report import build_report
from tests.support import report_samples
from tests.support.verdict_runs import FAIL, LOST, PASS, UNSURE, Played, report_of

P, F, U = Verdict.PASSED, Verdict.FAILED, Verdict.INCONCLUSIVE
ROBUST, EFFICIENT = {"category": Category.ROBUSTNESS}, {"category": Category.EFFICIENCY}


def facts_of(epochs: Mapping[str, Sequence[Played | None]], **more: Any) -> Facts:
    report = report_of(epochs, **more)
    return Facts(report, decide(report))


def talked(
    *turns: Turn, stop: Stop = report_samples.DONE, scenario: Mapping[str, Any] | None = None
) -> Facts:
    """One conversation of each turn."""
    spec = Scenario(**{"id": "a", "name": "a", "source": "s/a.yaml:1", **(scenario or {})})
    keys = tuple(SampleKey(scenario="a", agent="wonderbot", epoch=n) for n in range(len(turns)))
    events: list[Event] = [report_samples.started((spec,), keys)]
    for key, turn in zip(keys, turns, strict=True):
        events += report_samples.conversation(key, (turn,), stop=stop)
    report = build_report(events)
    return Facts(report, decide(report))


def shown(facts: Facts, width: int = 120) -> list[str]:
    told = ReportOptions(width=width)
    return render_parts(dimension_tables(facts, told), told).splitlines()


def table(facts: Facts, width: int = 120) -> list[dict[str, str]]:
    """The only table, with its cells by title."""
    _, head, *lines = [line for line in shown(facts, width) if line and "too narrow" not in line]
    titles = [title for title in head.strip().split("  ") if title]
    starts = [head.index(title.strip()) for title in titles]
    ends = [starts[n] + len(title.strip()) for n, title in enumerate(titles)]
    rows = []
    for line in lines:
        cells = {"": line.strip()[0]}
        for n, title in enumerate(titles):
            left = 0 if n == 0 else ends[n - 1]
            begin = starts[n] if line[left : starts[n]].strip() in ("", line.strip()[0]) else left
            stop = starts[n + 1] if n + 1 < len(titles) else len(line)
            cells[title.strip()] = line[begin:stop].strip()
        rows.append(cells)
    return rows


def words(facts: Facts, width: int = 120) -> list[str]:
    """The rows, with single spaces."""
    return [" ".join(line.split()) for line in shown(facts, width) if line[2:3] in "✓✗?" and line.strip()]


# Rows


def test_a_table_for_each_dimension_in_their_order() -> None:
    kinds = {"r": ROBUST, "e": EFFICIENT, "c": {}, "d": {}}
    facts = facts_of({"r": [PASS], "e": [PASS], "c": [PASS], "d": [FAIL]}, scenarios=kinds)
    heads = [line for line in shown(facts) if line and not line.startswith(" ")]
    assert heads == ["Capability", "Efficiency", "Robustness"]
    assert [line.split()[:2] for line in words(facts)] == [["✓", "c"], ["✗", "d"], ["✓", "e"], ["✓", "r"]]


def test_the_agents_of_a_scenario_stand_beside_each_other() -> None:
    report = report_of({"b": [PASS], "a": [PASS]}, agents=("y", "x"))
    by_agent = tuple(sorted(report.scenarios, key=lambda each: each.agent == "x"))
    assert [(each.scenario.id, each.agent) for each in by_agent] == [
        ("b", "y"),
        ("a", "y"),
        ("b", "x"),
        ("a", "x"),
    ]
    rows = all_rows(replace(report, scenarios=by_agent), decide(report))
    found = [(row.scenario.scenario.id, row.scenario.agent, row.verdict) for row in rows]
    assert found == [("b", "y", P), ("b", "x", P), ("a", "y", P), ("a", "x", P)]


def test_rows_of_data_are_one_row() -> None:
    spec = {"pattern": "o-$n", "source": "s/o.yaml:1"}
    facts = facts_of({"o-1": [PASS], "o-2": [FAIL]}, scenarios={"o-1": spec, "o-2": spec})
    (row,) = words(facts)
    assert row.startswith("✗ o-$n (2 rows) 1/2 ")


@pytest.mark.parametrize(
    ("played", "epoch"),
    [([PASS, FAIL, FAIL], 1), ([PASS, UNSURE, FAIL], 1), ([PASS, PASS], 0), ([FAIL], 0)],
)
def test_the_first_sample_that_did_not_pass_is_shown(played: list[Played], epoch: int) -> None:
    facts = facts_of({"a": played})
    (row,) = all_rows(facts.report, facts.decision)
    sample = row.deciding_sample()
    assert sample is not None
    assert sample.key.epoch == epoch


def test_without_samples_there_is_none_to_show() -> None:
    facts = facts_of({"a": [None]})
    (row,) = all_rows(facts.report, facts.decision)
    assert row.deciding_sample() is None
    (sample,) = facts_of({"a": [PASS]}).report.samples
    assert ScenarioRow(row.scenario, P, replace(facts.decision, samples={})).sample_verdict(sample) is U


# Columns


def test_agents_and_epochs_have_a_column_only_if_there_are_several() -> None:
    assert "agent" not in shown(facts_of({"a": [PASS]}))[1]
    assert "passed" not in shown(facts_of({"a": [PASS]}))[1]
    (first, second) = words(facts_of({"a": [PASS, FAIL, None]}, agents=("x", "y")))
    assert (first.split()[:4], second.split()[:4]) == (["✗", "a", "x", "1/3"], ["✗", "a", "y", "1/3"])
    assert "passed" in shown(facts_of({"a": [PASS, None]}))[1]


def calls(*names: str) -> tuple[ToolCall, ...]:
    return tuple(ToolCall(name=name, args={}) for name in names)


def test_the_row_of_a_capability() -> None:
    held, open_ = Check(name="x", passed=True), Check(name="y", passed=None)
    case = CaseSpec(expected_tools=("f", "g", "h"), expected_output_contains=("hello",))
    played = Played((held, held, open_), turns=((),), calls=calls("f", "f", "g"))
    row = table(facts_of({"a": [played]}, scenarios={"a": {"case": case}}))[0]
    assert list(row.items())[1:] == [
        ("scenario", "a"),
        ("tools called", "f ×2, g"),
        ("tool accuracy", "67%"),
        ("output ok", "yes"),
        ("checks", "2/3"),
    ]


def test_what_does_not_apply_to_a_capability() -> None:
    row = table(facts_of({"a": [LOST]}))[0]
    assert list(row.values()) == ["?", "a", "–", "–", "–", "–"]


def spent(tokens: int = 100, latency_ms: float = 1000, steps: int = 1, **more: Any) -> Turn:
    usage = Usage(calls=1, input_tokens=tokens, output_tokens=tokens // 2, **more)
    each = [Step(tool_calls=calls("f")) for _ in range(steps - 1)]
    return Turn(user="hi", steps=(*each, Step(text="x", usage=usage)), latency_ms=latency_ms)


def efficiency(*turns: Turn, stop: Stop = report_samples.DONE) -> list[str]:
    facts = talked(*turns, stop=stop, scenario=EFFICIENT)
    return words(facts)[0].split()[-6:]


@pytest.mark.parametrize(
    ("turns", "cells"),
    [
        ([spent()], ["1", "0", "1,000", "150", "100", "50"]),
        ([spent(steps=3)], ["3", "2", "1,000", "150", "100", "50"]),
        ([spent(), spent(200, 2000, 2)], ["1.5", "0.5", "1,500", "225", "150", "75"]),
        ([spent(estimated=True), spent()], ["1", "0", "1,000", "≈150", "≈100", "≈50"]),
        ([spent(0), spent(200)], ["1", "0", "1,000", "300", "200", "100"]),
        ([spent(0)], ["1", "0", "1,000", "–", "–", "–"]),
    ],
)
def test_the_row_of_an_efficiency(turns: list[Turn], cells: list[str]) -> None:
    assert efficiency(*turns) == cells


def test_only_conversations_that_ended_well_are_measured() -> None:
    assert efficiency(spent(), stop=Stop(reason=StopReason.AGENT_ERROR)) == ["–"] * 6


@pytest.mark.parametrize(
    ("played", "cells"),
    [
        ([PASS], "✓ a yes hello"),
        ([FAIL], "✗ a no not there"),
        ([PASS, FAIL], "✗ a 1/2 1/2 not there"),
        ([UNSURE], "? a – it raised"),
        ([None], "? a – did not run"),
        ([replace(LOST, stop=None)], "? a – the sample did not finish"),
    ],
)
def test_the_row_of_a_robustness(played: list[Played | None], cells: str) -> None:
    case = {**ROBUST, "case": CaseSpec(expected_output_contains=("hello",))}
    assert words(facts_of({"a": played}, scenarios={"a": case})) == [cells]


def test_the_end_is_the_reason_if_there_is_no_other() -> None:
    facts = facts_of(
        {"a": [replace(PASS, stop=StopReason.BUDGET, detail="used up")]}, scenarios={"a": ROBUST}
    )
    bare = {key: replace(each, violations=()) for key, each in facts.decision.samples.items()}
    scenarios = {key: replace(each, violations=()) for key, each in facts.decision.scenarios.items()}
    decision = replace(facts.decision, samples=bare, scenarios=scenarios)
    assert words(Facts(facts.report, decision)) == ["? a – used up"]


# What fits


def test_on_a_narrow_screen_the_titles_are_short() -> None:
    facts = facts_of({"a": [PASS]})
    assert "tool accuracy" in shown(facts, 60)[1]
    narrow = shown(facts, 59)[1]
    assert "acc." in narrow
    assert "tool accuracy" not in narrow
    measured = facts_of({"a": [PASS]}, scenarios={"a": EFFICIENT})
    assert "latency ms" in shown(measured, 60)[1]
    assert shown(measured, 59)[1].split()[-2:] == ["tokens", "in"]


def test_the_flexible_column_shrinks_and_then_goes_and_then_the_last_ones() -> None:
    facts = talked(Turn(user="hi", steps=(Step(text="x", tool_calls=calls(*"abcdefghijklmnop")),)))
    titles = ["tools called", "acc.", "ok", "checks"]
    found = {}
    for width in (59, 42, 41, 25, 20):
        lines = shown(facts, width)
        found[width] = [title for title in titles if title in lines[1]]
        flat = " ".join(" ".join(lines).split())
        left = [title for title in titles if title not in found[width]]
        assert ("too narrow to show: " + ", ".join(left) in flat) is bool(left)
        assert all(len(line) <= width for line in lines)
    assert found[59] == titles
    assert found[41] == titles[1:]
    assert found[20] == titles[1:2]


def test_long_names_take_two_fifths_of_the_width() -> None:
    facts = facts_of({"n" * 100: [PASS]})
    lines = [line for line in shown(facts, 100) if "nnn" in line]
    assert [line.split()[-1 if n else 1] for n, line in enumerate(lines)] == ["n" * 40, "n" * 40, "n" * 20]
