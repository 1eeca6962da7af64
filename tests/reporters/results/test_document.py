"""The results as JSON: what is in them where, what is null, and what is left out."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf, nan
from typing import Any

import pytest

from agenteval.core.config import AcceptedFailure
from agenteval.core.decision import AcceptedState, AcceptedUse, SampleDecision, Violation
from agenteval.core.event import ModelAsked, Notice
from agenteval.core.scenario import CaseSpec, SampleKey
from agenteval.core.score import Check, Severity, Verdict
from agenteval.core.trajectory import Step, StopReason, ToolCall, ToolResult, Turn, Usage
from agenteval.reporters.options import ReportOptions
from agenteval.reporters.results.document import (
    conversation_json,
    readable,
    render,
    results,
    schema,
    stream,
    to_json,
    value_to_json,
)
from agenteval.verdict.gates import decide
from agenteval.verdict.report import Report
from tests.support.score_samples import judged_run
from tests.support.verdict_runs import (
    BEHAVIOR,
    BROKEN,
    CUT,
    FAIL,
    HELD,
    LOST,
    PASS,
    UNSURE,
    Played,
    finding,
    judge_failed,
    only_scenario,
    report_of,
    score,
    with_suite,
)

Json = dict[str, Any]


def told(report: Report, **decision: Any) -> Json:
    text = render(report, replace(decide(report), **decision), ReportOptions())
    assert text.endswith("\n")
    read: Json = json.loads(text)
    return read


def ran(played: Mapping[str, Sequence[Played | None]], **more: Any) -> Json:
    return told(report_of(played, **more))


def sample(*items: Any, **more: Any) -> Json:
    found: Json = ran({"a": [Played(items, turns=((),), **more)]})["scenarios"][0]["samples"][0]
    return found


# ── text ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 👩", "plain é 👩\n"),
        ("", "\n"),
        ("a\x7fb\x9bc", "a\\u007fb\\u009bc\n"),
        ("\u202e\u2066\u200f\ufeff\u061c", "\\u202e\\u2066\\u200f\\ufeff\\u061c\n"),
        ("x" * 5000 + "\u2028", "x" * 5000 + "\\u2028\n"),
        ("\u2070\u2029", "\u2070\\u2029\n"),
    ],
)
def test_what_a_terminal_would_hide_is_escaped(text: str, shown: str) -> None:
    assert readable(text) == shown


def calls_of(*calls: ToolCall, **turn: Any) -> Json:
    report = report_of({"a": [PASS]})
    scenario = only_scenario(report)
    (one,) = scenario.samples
    played = Turn(user="hi", steps=(Step(tool_calls=calls, text="ok"),), **turn)
    turns = (replace(one.turns[0], turn=played),)
    changed = replace(one, turns=turns, trajectory=one.trajectory.model_copy(update={"turns": (played,)}))
    report = replace(report, scenarios=(replace(scenario, samples=(changed,)),))
    found: Json = told(report)["scenarios"][0]["samples"][0]["turns"][0]
    return found


def nested(depth: int, *, in_lists: bool) -> Any:
    value: Any = "end"
    for _ in range(depth):
        value = [value] if in_lists else {"k": value}
    return value


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (float("nan"), None),
        (float("inf"), None),
        (1.5, 1.5),
        ({"a": float("-inf")}, {"a": None}),
        ("half \ud83d", "half \ufffd"),
        ({1: "\ud83d", "t": (1, 2)}, {"1": "\ufffd", "t": [1, 2]}),
    ],
)
def test_what_json_cannot_hold_becomes_what_it_can(value: Any, shown: Any) -> None:
    call = ToolCall(name="t", args={}, result=ToolResult(value=value))
    assert calls_of(call)["tool_calls"][0]["result"] == shown


@pytest.mark.parametrize("in_lists", [True, False])
@pytest.mark.parametrize(("depth", "cut"), [(50, False), (150, True)])
def test_a_value_that_is_nested_too_deeply_is_cut(depth: int, cut: bool, in_lists: bool) -> None:
    call = ToolCall(name="t", args={}, result=ToolResult(value=["\ud83d", nested(depth, in_lists=in_lists)]))
    text = json.dumps(calls_of(call)["tool_calls"][0]["result"], ensure_ascii=False)
    assert ("nested too deeply" in text) is cut
    assert ('"end"' in text) is not cut


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"a": ["é", 1], "b": {"c": None}}, '{"a":["é",1],"b":{"c":null}}'),
        ([nan, inf, -inf, 1.5, True], "[null,null,null,1.5,true]"),
        ({1: (2, "x")}, '{"1":[2,"x"]}'),
        ("a\nb\x1b\u2028", '"a\\nb\\u001b\u2028"'),
        (["half \ud83d", nan], '["half \ufffd", null]'),
        (1j, '"1j"'),
    ],
)
def test_any_value_is_one_line_of_json(value: Any, text: str) -> None:
    assert value_to_json(value) == text


# ── the run ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("outcome", "complete"), [("complete", True), ("interrupted", False), ("budget", False), (None, False)]
)
def test_a_run_says_how_it_ended(outcome: str | None, complete: bool) -> None:
    run = ran({"a": [PASS]}, outcome=outcome)["run"]
    assert (run["complete"], run["outcome"]) == (complete, outcome)
    assert run["elapsed_s"] == (None if outcome is None else 1.0)


def test_a_run_has_its_settings_but_no_folder() -> None:
    report = with_suite(
        report_of({"a": [PASS]}, run={"prompts": {"p": "hash"}}),
        prompts={"x.md": "y.md"},
        seed=7,
        no_judge=True,
    )
    run = told(report)["run"]
    assert (run["id"], run["seed"], run["no_judge"]) == (report.run.run_id, 7, True)
    assert (run["prompts"], run["prompts_overridden"]) == ({"p": "hash"}, {"x.md": "y.md"})
    assert run["judged"] == ["stars"]
    assert run["calls_seen"] == {"bot": "all"}
    assert run["config"]["agent"]["name"] == "bot"
    assert not {"root", "lines", "columns"} & set(run["config"])


# ── the summary ──────────────────────────────────────────────────────────────────────────────────


def test_a_summary_has_verdict_code_and_gates() -> None:
    summary = ran({"a": [PASS], "b": [FAIL]})["summary"]
    assert (summary["verdict"], summary["exit_code"], summary["scripted"]) == ("failed", 1, False)
    assert "every sample passes" in [row["name"] for row in summary["gates"]]
    report = report_of({"a": [PASS]})
    assert told(report, is_reported=True)["summary"]["verdict"] == "reported"


def test_what_does_not_apply_is_null() -> None:
    summary = ran({"a": [PASS]})["summary"]
    nothing = ("agents_compared", "second_opinions", "simulator", "failure_rates")
    assert [summary[name] for name in nothing] == [None] * 4
    empty = ("issues", "issue_failures", "caveats", "accepted", "notices", "author_errors")
    assert [summary[name] for name in empty] == [[]] * 6


def test_agents_are_compared_where_there_are_several() -> None:
    summary = ran({"a": [PASS, FAIL]}, agents=("bot", "new"))["summary"]
    assert summary["agents_compared"]["reference"] == "bot"
    assert [each["agent"] for each in summary["agents_compared"]["agents"]] == ["new"]
    assert set(summary["dimensions"]) == {"bot", "new"}


def test_statistics_of_repeated_runs() -> None:
    statistics = ran({"a": [PASS, FAIL], "b": [PASS, PASS]})["summary"]["statistics"]
    assert set(statistics) == {"means", "pass_hat_k", "pass_at_k", "rates"}
    assert statistics["pass_hat_k"]["1"] == 0.75
    assert statistics["pass_hat_k"]["2"] == 0.5
    assert statistics["pass_at_k"]["2"] == 1.0


def test_a_log_without_scenarios_has_its_rates() -> None:
    bad = Played(
        (score(BEHAVIOR, label="x", ok=False), finding(Severity.HIGH, None)),
        turns=((),),
        stop=StopReason.RECORDED,
        detail="l.jsonl:3: x",
    )
    rates = told(report_of({"a": [bad]}), without_scenarios=True)["summary"]["failure_rates"]
    assert (rates["records"], rates["conversations"], rates["unreadable"]) == (1, 1, [])
    (row,) = rates["rows"]
    assert (row["label"], row["conversations"], row["of"], row["rate"]) == ("false information", 1, 1, 1.0)
    assert row["quotations"][0]["where"] == "l.jsonl:3"


def test_accepted_failures_and_notices_are_listed() -> None:
    entry = AcceptedFailure(
        fingerprint="0123456789ab", owner="ana", reason="r", expires="2026-12-31", scenario="a"
    )
    key = SampleKey(scenario="a", agent="bot")
    report = replace(
        report_of({"a": [PASS]}),
        notices=(Notice(level="warning", text="slow"), Notice(level="info", text="t", key=key)),
    )
    summary = told(report, accepted=(AcceptedUse(entry, AcceptedState.EXPIRED, 3),))["summary"]
    (accepted,) = summary["accepted"]
    assert (accepted["fingerprint"], accepted["state"], accepted["samples"]) == ("0123456789ab", "expired", 3)
    assert (accepted["owner"], accepted["scenario"]) == ("ana", "a")
    assert summary["notices"] == [
        {"level": "warning", "text": "slow", "sample": None},
        {"level": "info", "text": "t", "sample": str(key)},
    ]


def test_a_judged_run_has_second_opinions_issues_and_a_simulated_user() -> None:
    report, decision = judged_run()
    summary = json.loads(render(report, decision, ReportOptions()))["summary"]
    assert summary["second_opinions"]["corroborate"] is True
    assert [each["id"] for each in summary["issues"]] == ["I1", "I2", "I3"]
    assert [each["metric"] for each in summary["issue_failures"]] == ["error_deduplication"]
    simulator = summary["simulator"]
    assert (simulator["messages"], simulator["refused"], simulator["errored"]) == (6, 2, 1)
    assert "reviews" not in simulator
    assert {line["role"] for line in summary["ledger"]} == {"agent", "user", "judge", "dedup"}
    without = told(with_suite(report, corroborate=False))["summary"]
    assert without["second_opinions"]["corroborate"] is False


# ── scenarios ────────────────────────────────────────────────────────────────────────────────────


def test_a_scenario_has_verdict_place_and_samples_in_order() -> None:
    report = report_of({"a": [PASS, None, FAIL]})
    (scenario,) = told(report)["scenarios"]
    assert (scenario["id"], scenario["agent"], scenario["where"], scenario["verdict"]) == (
        "a",
        "bot",
        "s/a.yaml:1",
        "failed",
    )
    assert [(each["epoch"], each["verdict"]) for each in scenario["samples"]] == [
        (0, "passed"),
        (1, "inconclusive"),
        (2, "failed"),
    ]
    statistics = scenario["statistics"]
    assert (statistics["successes"], statistics["decided"], statistics["planned"]) == (1, 2, 3)
    assert statistics["rate"] == 0.5
    assert 0 <= statistics["low"] < 0.5 < statistics["high"] <= 1


def test_without_a_decided_epoch_the_rate_is_null() -> None:
    (scenario,) = ran({"a": [LOST]})["scenarios"]
    assert scenario["statistics"]["rate"] is None


def test_violations_of_samples_stand_before_those_of_the_scenario() -> None:
    (scenario,) = ran({"a": [FAIL] * 20}, gates={"pass_rate": {"at_least": 0.3, "reject_below": 0.1}})[
        "scenarios"
    ]
    found = [(each["name"], each["epoch"]) for each in scenario["violations"]]
    assert found[:20] == [("output.contains", n) for n in range(20)]
    assert found[20:] == [("pass_rate", None)]


def test_issues_are_listed_where_they_occur_and_findings_name_theirs() -> None:
    report, decision = judged_run()
    booking, refund, case = json.loads(render(report, decision, ReportOptions()))["scenarios"]
    assert [[each["id"] for each in one["issues"]] for one in (booking, refund, case)] == [
        ["I1", "I2"],
        ["I3"],
        [],
    ]
    assert [each["issue"] for each in booking["samples"][1]["findings"]] == ["I1", "I2", "I1"]
    assert [each["issue"] for each in refund["samples"][0]["findings"]] == ["I3"]


def test_an_ungrouped_finding_has_no_issue() -> None:
    assert [each["issue"] for each in sample(finding(turn=None))["findings"]] == [None]


# ── samples ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("played", "verdict", "stop"),
    [
        (PASS, "passed", "script_done"),
        (FAIL, "failed", "script_done"),
        (UNSURE, "inconclusive", "script_done"),
        (LOST, "inconclusive", "infrastructure"),
        (CUT, "inconclusive", None),
        (None, "inconclusive", None),
    ],
)
def test_a_sample_has_verdict_reason_and_stop(played: Played | None, verdict: str, stop: str | None) -> None:
    (one,) = ran({"a": [played]})["scenarios"][0]["samples"]
    assert (one["verdict"], one["stop"]) == (verdict, stop)
    assert bool(one["reason"]) is (verdict != "passed")


def test_what_never_ran_has_nothing() -> None:
    (one,) = ran({"a": [None]})["scenarios"][0]["samples"]
    assert (one["steps"], one["latency_ms"], one["turns"], one["checks"]) == (0, None, [], [])
    assert one["fault"] == "interrupted"


def test_reasons_are_joined() -> None:
    assert sample(BROKEN, Check(name="other", passed=False, detail="no"))["reason"] == (
        "output.contains: not there; other: no"
    )


def test_a_sample_without_a_decision_never_ran() -> None:
    report = report_of({"a": [PASS]})
    (one,) = told(report, samples={})["scenarios"][0]["samples"]
    assert (one["verdict"], one["fault"]) == ("inconclusive", "interrupted")


def test_accepted_violations_have_their_epoch() -> None:
    report = report_of({"a": [PASS, PASS]})
    key = report.samples[1].key
    known = Violation("answer", "no answer", "w", fingerprints=("f",), covers=("c",))
    decided = {**decide(report).samples, key: SampleDecision(Verdict.PASSED, accepted=(known,))}
    first, second = told(report, samples=decided)["scenarios"][0]["samples"]
    assert "accepted" not in first
    (accepted,) = second["accepted"]
    assert (accepted["name"], accepted["epoch"], accepted["fingerprints"]) == ("answer", 1, ["f"])


@pytest.mark.parametrize("is_case", [True, False])
def test_only_a_test_case_has_its_three_measurements(is_case: bool) -> None:
    case = {"case": CaseSpec(expected_output_contains=("hello",))} if is_case else {}
    (one,) = ran({"a": [PASS]}, scenarios={"a": case})["scenarios"][0]["samples"]
    names = {"tool_accuracy", "output_correct", "robustness_pass"}
    assert names & set(one) == (names if is_case else set())


def test_scores_and_failures_of_the_whole_conversation() -> None:
    one = sample(score("stars", 4), judge_failed("relevance", raw="{"), HELD)
    assert one["scores"]["stars"]["value"] == 4
    assert one["score_failures"] == [
        {"metric": "relevance", "message": "no answer", "raw": "{", "not_asked": False}
    ]
    assert [(each["name"], each["passed"]) for each in one["checks"]] == [("output.contains", True)]


def test_checks_and_scores_of_turns_stand_with_their_turn() -> None:
    played = Played((), turns=((HELD,), (BROKEN, score("stars", 2))))
    first, second = ran({"a": [played]})["scenarios"][0]["samples"][0]["turns"]
    assert [each["passed"] for each in first["checks"]] == [True]
    assert (first["scores"], second["scores"]["stars"]["value"]) == ({}, 2)
    (broken,) = second["checks"]
    assert len(broken["fingerprints"]) == len(broken["covers"]) == 1
    assert "fingerprints" not in first["checks"][0]


# ── turns and calls ──────────────────────────────────────────────────────────────────────────────


def test_a_turn_of_people_says_nothing_of_a_simulated_user() -> None:
    turn = calls_of()
    assert (turn["user"], turn["agent"], turn["steps"]) == ("hi", "ok", 1)
    assert not {"user_model", "user_usage", "user_fault", "error", "agents"} & set(turn)
    assert turn["latency_ms"] is None


@pytest.mark.parametrize(
    "simulated", [{"user_model": "m"}, {"user_fault": "spoke as the agent"}, {"user_usage": Usage(calls=1)}]
)
def test_a_turn_of_a_simulated_user_names_it(simulated: dict[str, Any]) -> None:
    turn = calls_of(**simulated)
    assert turn["user_model"] == simulated.get("user_model", "")
    assert turn["user_fault"] == simulated.get("user_fault", "")
    assert turn["user_usage"]["calls"] == (1 if "user_usage" in simulated else 0)


OK = ToolResult(value={"temp": 20})


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (ToolCall(name="t", args={"a": 1}, result=OK), {"args": {"a": 1}, "result": {"temp": 20}}),
        (ToolCall(name="t", args={}), {"args": {}, "result": None}),
        (
            ToolCall(name="t", args=None, raw_args="{oops", result=OK),
            {"args": None, "result": {"temp": 20}, "raw_args": "{oops"},
        ),
        (
            ToolCall(name="t", args={}, result=ToolResult(value={"error": "bad"}, is_error=True)),
            {"args": {}, "result": {"error": "bad"}, "error": "bad"},
        ),
        (
            ToolCall(name="t", args={}, result=ToolResult(value={"error": 5}, is_error=True)),
            {"args": {}, "result": {"error": 5}, "error": "{'error': 5}"},
        ),
        (
            ToolCall(name="t", args={}, result=ToolResult(value="bad", is_error=True)),
            {"args": {}, "result": "bad", "error": "bad"},
        ),
        (
            ToolCall(name="t", args={}, result=ToolResult(value={"error": "bad"})),
            {"args": {}, "result": {"error": "bad"}},
        ),
        (
            ToolCall(name="t", args={}, agent="desk", attempted=True),
            {"args": {}, "result": None, "agent": "desk", "attempted": True},
        ),
    ],
    ids=["ok", "no result", "unread", "error", "odd error", "text", "no error", "agent"],
)
def test_a_call_has_arguments_result_and_error(call: ToolCall, expected: Json) -> None:
    assert calls_of(call)["tool_calls"] == [{"name": "t", "observed": False, **expected}]


def test_a_call_that_was_given_up_says_so() -> None:
    (call,) = calls_of(ToolCall(name="t", args={}, given_up=True))["tool_calls"]
    assert "did not wait" in call["error"]


def test_agents_that_spoke_are_named_and_unknown_ones_null() -> None:
    report = report_of({"a": [PASS]})
    assert "agents" not in told(report)["scenarios"][0]["samples"][0]["turns"][0]
    scenario = only_scenario(report)
    (one,) = scenario.samples
    steps = (Step(text="a"), Step(text="b", agent="desk"))
    turns = (replace(one.turns[0], turn=Turn(user="hi", steps=steps)),)
    report = replace(report, scenarios=(replace(scenario, samples=(replace(one, turns=turns),)),))
    assert told(report)["scenarios"][0]["samples"][0]["turns"][0]["agents"] == [None, "desk"]


# ── one conversation ─────────────────────────────────────────────────────────────────────────────


def shown(*epochs: int, asked: Sequence[ModelAsked] | None = None) -> Json:
    report = report_of({"a": [PASS, FAIL, PASS], "b": [PASS]})
    keys = [SampleKey(scenario="a", agent="bot", epoch=epoch) for epoch in epochs]
    read: Json = json.loads(conversation_json(report, decide(report), keys, asked))
    assert read["run"] == report.run.run_id
    return read


def test_a_conversation_is_its_scenario_with_these_samples_alone() -> None:
    read = shown(2, 0)
    assert read["scenario"]["id"] == "a"
    assert [each["epoch"] for each in read["scenario"]["samples"]] == [0, 2]
    assert "asked" not in read


def test_a_conversation_is_found_by_scenario_and_agent() -> None:
    report = report_of({"a": [PASS], "b": [FAIL]}, agents=("bot", "new"))
    for scenario, agent in (("b", "bot"), ("a", "new"), ("b", "new")):
        keys = [SampleKey(scenario=scenario, agent=agent)]
        read = json.loads(conversation_json(report, decide(report), keys))["scenario"]
        assert (read["id"], read["agent"]) == (scenario, agent)


def test_what_judges_were_asked_is_shown_if_wanted() -> None:
    assert shown(1, asked=[])["asked"] == []
    key = SampleKey(scenario="a", agent="bot", epoch=1)
    one = ModelAsked(key=key, role="judge", metric="m", turn=0, prompt="p", model="x/y", answer={"score": 4})
    (asked,) = shown(1, asked=[one])["asked"]
    assert (asked["epoch"], asked["variant"], asked["metric"], asked["turn"]) == (1, "", "m", 0)
    assert (asked["prompt"], asked["model"], asked["answer"], asked["error"]) == (
        "p",
        "x/y",
        {"score": 4},
        "",
    )


def test_the_schema_has_a_title_and_says_what_fields_mean() -> None:
    found = schema()
    assert found["title"] == "agenteval results"
    assert found["$schema"].endswith("2020-12/schema")
    assert found["$defs"]["SampleShape"]["properties"]["reason"]["description"]
    assert set(found["properties"]) == {"schema_version", "run", "summary", "scenarios"}
    assert results(report_of({"a": [PASS]}), decide(report_of({"a": [PASS]}))).schema_version == 4


# ── piece by piece ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("scenarios", [0, 1, 3])
def test_the_file_is_written_scenario_by_scenario(scenarios: int) -> None:
    report = report_of({f"s{number}": [FAIL, PASS] for number in range(scenarios)})
    decision, values = decide(report), []

    def clean(text: str) -> str:
        values.append(json.loads(text))  # each piece is a value of its own
        return text

    pieces = list(stream(report, decision, ReportOptions(), clean))
    whole = readable(to_json(results(report, decision), 2))
    assert "".join(pieces) == whole == render(report, decision, ReportOptions())
    assert [value["id"] for value in values[1:]] == [each["id"] for each in json.loads(whole)["scenarios"]]
    assert len(pieces) == scenarios + 2


def test_what_is_cleaned_in_a_piece_is_cleaned_in_the_file() -> None:
    report = report_of({"s": [FAIL]})
    found = "".join(stream(report, decide(report), ReportOptions(), lambda text: text.replace('"s"', '"*"')))
    assert json.loads(found)["scenarios"][0]["id"] == "*"
