"""Which charts a run gets, what is in them, and what each states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from agenteval.core.decision import GateRow, SampleDecision
from agenteval.core.event import TurnFinished
from agenteval.core.score import Severity, Verdict
from agenteval.core.trajectory import StopReason, Usage
from agenteval.reporters.html.figures import figures
from agenteval.reporters.words.facts import Facts
from agenteval.verdict.gates import decide
from agenteval.verdict.report import Report, build_report
from agenteval.verdict.statistics import these_scenarios, users_like_these, wilson
from tests.support.drawings import Drawn
from tests.support.verdict_runs import (
    BEHAVIOR,
    FAIL,
    LOST,
    PASS,
    UNSURE,
    Played,
    events_of,
    finding,
    lost,
    report_of,
    score,
    unclear,
    whole,
)


def charts(report: Report, *gates: GateRow, **more: Any) -> dict[str, Drawn]:
    """The charts of a run by their ids."""
    decision = decide(report)
    decision = replace(decision, gates=(*decision.gates, *gates), **more)
    drawn = [Drawn(each) for each in figures(Facts(report, decision), lambda scenario, agent: f"#{scenario}")]
    ids = [each for one in drawn for each in one.ids]
    assert len(ids) == len(set(ids))
    return {one.ids[0].removeprefix("chart-"): one for one in drawn}


def measured(
    epochs: Mapping[str, Sequence[Played]],
    latencies: Sequence[float],
    usage: Usage | None = None,
    **more: Any,
) -> Report:
    """The report of turns with these latencies, one after the other."""
    times = iter(latencies)
    events = []
    for event in events_of(epochs, **more):
        if isinstance(event, TurnFinished):
            spent = {} if usage is None else {"usage": usage}
            steps = tuple(step.model_copy(update=spent) for step in event.turn.steps)
            turn = event.turn.model_copy(update={"latency_ms": next(times), "steps": steps})
            event = event.model_copy(update={"turn": turn})
        events.append(event)
    return build_report(events)


# Outcomes


def test_a_run_of_one_conversation_has_no_chart() -> None:
    assert charts(report_of({"a": [PASS]})) == {}


def test_repeated_scenarios_have_a_pass_rate() -> None:
    report = report_of(
        {"a": [PASS, PASS, PASS], "b": [PASS, FAIL, LOST], "once": [PASS], "open": [UNSURE] * 2}
    )
    gate = GateRow("pass_rate", 0.5, 0.9, "", "", Verdict.FAILED, "b", "bot")
    drawn = charts(report, gate)["pass-rates"]
    low, high = (f"{100 * end:.1f} %" for end in wilson(1, 2))
    assert drawn.table[1:] == [
        ["b", "50.0 %", f"{low} to {high}", "1 of 2", "90.0 %", "failed"],
        ["a", "100.0 %", "43.9 % to 100.0 %", "3 of 3", "–", "passed"],
    ]  # fmt: skip
    assert "1 of 2 repeated scenarios" in drawn.sentence
    assert [each.attrib["href"] for each in drawn.svg.iter("a")] == ["#b", "#a"]


def test_scenarios_are_grouped_by_category_and_tag() -> None:
    tags = {name: {"tags": ("even",) if n % 2 == 0 else ("odd", "own" * n)} for n, name in enumerate("abcd")}
    tags["d"]["category"] = tags["c"]["category"] = "robustness"  # type: ignore[assignment]
    report = report_of({"a": [PASS], "b": [FAIL], "c": [PASS], "d": [UNSURE]}, scenarios=tags)
    drawn = charts(report)["groups"]
    assert dict(zip(drawn.column("group"), drawn.column("based on"), strict=True)) == {
        "all scenarios": "2 of 3",
        "capability": "1 of 2",
        "robustness": "1 of 1",
        "tag even": "2 of 2",
        "tag odd": "0 of 1",
    }
    assert "tag odd passed least often, 0 of 1" in drawn.sentence


def test_equal_groups_are_said_to_be_equal() -> None:
    tags = {"a": {"tags": ("x",)}, "b": {"tags": ("x",)}}
    drawn = charts(report_of({"a": [PASS], "b": [PASS], "c": [PASS]}, scenarios=tags))["groups"]
    assert "the same share, 100.0 %" in drawn.sentence


def test_groups_are_those_of_an_agent() -> None:
    drawn = charts(report_of({"a": [PASS], "b": [FAIL]}, agents=("bot", "new")))["groups"]
    assert drawn.column("group") == ["all scenarios · bot", "all scenarios · new"]


def test_flaky_scenarios_have_a_grid() -> None:
    report = report_of({"a": [PASS, PASS], "b": [PASS, FAIL, UNSURE]})
    drawn = charts(report)["epochs"]
    assert drawn.table[1:] == [["b", "1 of 3 passed", "2", "3"], ["a", "2 of 2 passed", "–", "–"]]
    assert "1 of 2 repeated scenarios" in drawn.sentence
    assert "epochs" not in charts(report_of({"a": [PASS, PASS], "b": [FAIL, FAIL, UNSURE]}))


def test_a_log_without_scenarios_has_failure_rates() -> None:
    def recorded(*items: Any, line: int) -> Played:
        return Played(items, turns=((),), stop=StopReason.RECORDED, detail=f"log.jsonl:{line}")

    bad, fine = score(BEHAVIOR, label="x", ok=False), score(BEHAVIOR, label="no failure", ok=True)
    log = {f"l{n}": [recorded(fine, line=n)] for n in range(3)}
    log["l9"] = [recorded(bad, finding(Severity.HIGH), line=9)]
    drawn = charts(report_of(log), without_scenarios=True, is_reported=True)
    assert "groups" not in drawn
    (row,) = drawn["failure-rates"].table[1:]
    assert row[:2] == [f"false information (judge of {BEHAVIOR})", "25.0 %"]
    assert row[-1] == "1 of 4"
    assert "in 1 of 4 conversations" in drawn["failure-rates"].sentence


# Scores


def test_metrics_of_one_scale_share_a_chart() -> None:
    good, bad = score(BEHAVIOR, label="no failure", ok=True), score(BEHAVIOR, label="x", ok=False)
    report = report_of(
        {
            "a": [whole(score("stars", 5.0), good)],
            "b": [whole(score("stars", 2.0), bad)],
            "c": [whole(unclear("own"))],
        },
        thresholds={"stars": 3},
    )
    drawn = charts(report)
    stars, shares = drawn["scores-1"], drawn["scores-0"]
    estimate = users_like_these([1.0, 0.25])
    assert stars.table[0][-2:] == ["bound", "verdict"]
    (row,) = stars.table[1:]
    assert row[:2] == ["stars", "3.5"]
    assert row[2] == f"{1 + 4 * estimate.low:.3g} to {1 + 4 * estimate.high:.3g}"
    assert row[3:] == ["2 scores", "3", "failed"]
    assert shares.table[1][:2] == [BEHAVIOR, "50.0 %"]
    assert "stars is lowest, 3.5" in stars.sentence
    assert "uncalibrated" in stars.sentence


def test_a_metric_of_one_scenario_has_no_interval() -> None:
    drawn = charts(report_of({"a": [whole(score("stars", 5.0)), whole(score("stars", 4.0))]}))["scores-0"]
    assert drawn.table[1][1:3] == ["4.5", "–"]
    assert drawn.paths("whisker") == []


@pytest.mark.parametrize("values", [[], [4.0]])
def test_a_metric_with_one_score_has_no_chart(values: list[float]) -> None:
    report = report_of(
        {"a": [whole(*(score("stars", value) for value in values)), lost(score("stars", 1.0))]}
    )
    assert not any(name.startswith(("scores", "metric")) for name in charts(report))


def test_thresholds_that_differ_are_no_line() -> None:
    settings = {"a": {"thresholds": {"stars": 2}}}
    report = report_of(
        {"a": [whole(score("stars", 5.0))], "b": [whole(score("stars", 4.0))]},
        scenarios=settings,
        thresholds={"stars": 3},
    )
    assert "bound" not in charts(report)["scores-0"].table[0]


def test_scores_outside_the_scale_are_drawn() -> None:
    drawn = charts(report_of({"a": [whole(score("own", 90.0))], "b": [whole(score("own", 10.0))]}))
    assert drawn["scores-0"].table[1][1] == "50"
    assert drawn["metric-1"].description.startswith("2 scores")


def test_scores_that_differ_have_a_distribution() -> None:
    values = [5.0, 5.0, 4.0, 1.0]
    report = report_of({"a": [whole(score("stars", value), score("same", 3.0)) for value in values]})
    drawn = charts(report)
    assert [name for name in drawn if name.startswith("metric")] == ["metric-0"]
    counts = dict(drawn["metric-0"].table[1:6])
    assert counts == {"1": "1", "2": "0", "3": "0", "4": "1", "5": "2"}
    assert "Most frequent score: 5, given 2 times." in drawn["metric-0"].sentence


def test_agents_have_rows_of_their_own() -> None:
    report = report_of(
        {"a": [whole(score("stars", 5.0))], "b": [whole(score("stars", 4.0))]}, agents=("bot", "new")
    )
    assert charts(report)["scores-0"].column("metric") == ["stars · bot", "stars · new"]


# Measurements


def test_an_unknown_latency_is_not_zero() -> None:
    drawn = charts(measured({"a": [PASS, PASS, PASS]}, [100, 300, 0]))["latency-0"]
    assert {"▼ median 100 ms", "▽ maximum 300 ms"} <= {*drawn.texts}
    assert drawn.note == "1 conversation without a value"
    assert "at most 100 ms, the slowest took 300 ms" in drawn.sentence
    assert "latency-0" not in charts(measured({"a": [PASS, PASS]}, [100, 0]))
    assert "latency-0" not in charts(measured({"a": [PASS, LOST]}, [100, 50]))


def test_each_agent_has_its_latencies() -> None:
    report = measured({"a": [PASS, PASS]}, [10, 20, 30, 40], agents=("bot", "new"))
    drawn = charts(report)
    assert [drawn[f"latency-{n}"].description.split(":")[0] for n in range(2)] == ["2 conversations"] * 2
    assert "Latency of new" in drawn["latency-1"].sentence


@pytest.mark.parametrize(
    ("used", "title", "rows", "words"),
    [
        (
            {"agent": Usage(calls=1, input_tokens=5, cost=0.5), "judge": Usage(output_tokens=9, cost=0.25)},
            "Cost by role",
            [["agent", "0.5000 USD"], ["judge", "0.2500 USD"]],
            "Agent is highest, 0.5000 USD.",
        ),
        (
            {"agent": Usage(calls=1, input_tokens=5), "judge": Usage(calls=2, output_tokens=9, cost=0.25)},
            "Tokens by role",
            [["agent", "5 tokens"], ["judge", "9 tokens"]],
            "The cost of agent is unknown.",
        ),
        (
            {
                "agent": Usage(calls=1, input_tokens=5, cost=0, estimated=True),
                "user": Usage(calls=2, output_tokens=9, cost=0),
                "judge": Usage(calls=2, cost=0),
            },
            "Tokens by role",
            [["agent", "≈5 tokens"], ["user", "9 tokens"]],
            "Nothing was charged.",
        ),
    ],
)  # fmt: skip
def test_spending(used: Mapping[str, Usage], title: str, rows: list[list[str]], words: str) -> None:
    drawn = charts(replace(report_of({"a": [PASS]}), usage=used, ledger=()))["spending"]
    assert title in drawn.sentence
    assert words in drawn.sentence
    assert drawn.table[1:] == rows


@pytest.mark.parametrize(
    "used",
    [
        {},
        {"agent": Usage(calls=1, input_tokens=5, cost=0.5), "judge": Usage()},
        {"agent": Usage(), "judge": Usage()},
    ],
)
def test_spending_of_one_role_has_no_chart(used: Mapping[str, Usage]) -> None:
    assert "spending" not in charts(replace(report_of({"a": [PASS]}), usage=used, ledger=()))


USED = Usage(calls=1, input_tokens=1_000_000)


def test_agents_are_placed_by_success_and_cost() -> None:
    prices = {"bot": {"input": 1, "output": 1}, "new": {"input": 3, "output": 1}}
    report = measured(
        {"a": [PASS, FAIL], "b": [PASS, PASS]}, [1.0] * 8, USED, agents=("bot", "new"), prices=prices
    )
    drawn = charts(report)["agents"]
    repeats = Facts(report, decide(report)).repeats.scenarios
    rate = these_scenarios([each.tally for (_, agent), each in repeats.items() if agent == "bot"])
    interval = f"({rate.low:.1%} to {rate.high:.1%})".replace("%", " %")
    assert drawn.table[1:] == [["bot", f"75.0 % {interval}", "1 USD"], ["new", f"75.0 % {interval}", "3 USD"]]
    (bot, y), (new, other) = drawn.starts("mark")
    assert new - 64 == pytest.approx(3 * (bot - 64), abs=0.2)
    assert y == other
    assert "that all agents ran: bot 75.0 %, new 75.0 %. bot had the lowest cost." in drawn.sentence


def test_agents_of_unknown_cost_are_placed_by_tokens() -> None:
    report = measured({"a": [PASS]}, [1.0] * 2, USED, agents=("bot", "new"))
    drawn = charts(report)["agents"]
    assert drawn.column("tokens of a conversation") == ["1,000,000", "1,000,000"]
    assert "had the fewest tokens" in drawn.sentence
    assert "agents" not in charts(measured({"a": [PASS]}, [1.0] * 2, Usage(), agents=("bot", "new")))
    assert "agents" not in charts(measured({"a": [PASS]}, [1.0], USED))


def test_agents_are_compared_over_the_scenarios_that_all_ran() -> None:
    prices = {"bot": {"input": 1, "output": 1}, "new": {"input": 3, "output": 1}}
    report = measured({"a": [PASS], "b": [FAIL]}, [1.0] * 4, USED, agents=("bot", "new"), prices=prices)
    without = tuple(each for each in report.scenarios if (each.scenario.id, each.agent) != ("b", "bot"))
    drawn = charts(replace(report, scenarios=without))["agents"]
    assert [rate.split(" (")[0] for rate in drawn.column("success rate")] == ["100.0 %", "100.0 %"]
    apart = tuple(each for each in without if (each.scenario.id, each.agent) != ("a", "new"))
    assert "agents" not in charts(replace(report, scenarios=apart))


def test_the_rates_are_named_and_not_a_best_agent() -> None:
    """Which difference is more than chance is told by the table below."""
    report = measured({"a": [PASS], "b": [PASS]}, [1.0] * 4, USED, agents=("bot", "new"))
    decision = decide(report)
    samples = dict(decision.samples)
    samples |= {key: SampleDecision(Verdict.FAILED) for key in samples if key.agent == "bot"}
    drawn = charts(report, samples=samples)["agents"]
    assert "that all agents ran: bot 0.0 %, new 100.0 %. bot had the fewest tokens." in drawn.sentence
    assert "The table below shows which differences are more than chance." in drawn.sentence
    assert "most often" not in drawn.sentence
