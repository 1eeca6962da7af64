"""What a later run needs of this one: settings, and each scenario's content, successes and failures."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.core.run_summary import RunSummary, ScenarioSummary
from agenteval.core.scenario import Scenario
from agenteval.core.score import Check, Severity, Verdict
from agenteval.verdict.digest import failures_in, hash_content, summary_of
from agenteval.verdict.fingerprints import failures_of
from agenteval.verdict.gates import decide
from agenteval.verdict.report import build_report
from tests.support.verdict_runs import (
    BEHAVIOR,
    BROKEN,
    FAIL,
    GOAL,
    HELD,
    LOST,
    PASS,
    UNSURE,
    Played,
    events_of,
    finding,
    lost,
    only_scenario,
    report_of,
    score,
    whole,
)


def summary(epochs: dict[str, list[Played | None]], **more: Any) -> RunSummary:
    report = report_of(epochs, **more)
    return summary_of(report, decide(report))


def only(epochs: list[Played | None], **more: Any) -> ScenarioSummary:
    (scenario,) = summary({"a": epochs}, **more).scenarios
    return scenario


# ── the run ──────────────────────────────────────────────────────────────────────────────────────


def test_the_run_is_named() -> None:
    found = summary({"a": [PASS]}, run={"prompts": {"judge": "1"}})
    assert (found.run_id, found.started_at) == ("20261121-101500-ab12", "2026-11-21T10:15:00Z")
    assert found.prompts == {"judge": "1"}
    assert not found.is_selection
    assert summary({"a": [PASS]}, run={"request": {"paths": ["x"]}}).is_selection


@pytest.mark.parametrize(
    ("run", "config", "judged", "decisive"),
    [
        ({"judged": ()}, {}, (), ()),
        ({"judged": ("stars", GOAL, BEHAVIOR)}, {}, (BEHAVIOR, GOAL, "stars"), (BEHAVIOR, GOAL)),
        ({"judged": ("stars",)}, {}, ("stars",), ()),
        # Labels decide nothing if no severity fails a sample, but goals do.
        ({"judged": (GOAL, BEHAVIOR)}, {"fail_on_severity": "none"}, (BEHAVIOR, GOAL), (GOAL,)),
        ({"judged": (GOAL, BEHAVIOR), "no_judge": True}, {}, (), ()),
    ],
)
def test_what_was_judged_and_may_decide(
    run: dict[str, Any], config: dict[str, Any], judged: tuple[str, ...], decisive: tuple[str, ...]
) -> None:
    found = summary({"a": [PASS]}, run=run, **config)
    assert (found.judged, found.decisive) == (judged, decisive)


PLAIN: dict[str, Any] = {"model": "openai/m", "base_url": None, "temperature": None, "extra": {}}


@pytest.mark.parametrize(
    ("models", "sources", "judge", "user"),
    [
        pytest.param({}, {}, {}, {}, id="none"),
        pytest.param({"judge": "openai/m"}, {}, PLAIN, {}, id="a judge"),
        pytest.param({"user": "openai/m"}, {}, {}, PLAIN, id="a user"),
        pytest.param(
            {
                "judge": {
                    "model": "openai/m",
                    "temperature": 0.5,
                    "base_url": "http://h/v1",
                    "extra": {"a": 1},
                }
            },
            {},
            {"model": "openai/m", "temperature": 0.5, "base_url": "http://h/v1", "extra": {"a": 1}},
            {},
            id="what changes its answers",
        ),
        pytest.param(
            {"judge": {"model": "openai/m", "timeout_s": 3, "api_key_env": "KEY", "max_tokens": 9}},
            {},
            PLAIN,
            {},
            id="not how it is reached",
        ),
        pytest.param(
            {"judge": "scripted/r.yaml"},
            {"r.yaml": "0123456789abcdef"},
            {**PLAIN, "model": "scripted/r.yaml", "replies": "0123456789ab"},
            {},
            id="scripted",
        ),
        pytest.param(
            {"judge": "scripted/r.yaml"},
            {},
            {**PLAIN, "model": "scripted/r.yaml"},
            {},
            id="scripted, unknown",
        ),
        pytest.param({"judge": "openai/m"}, {"m": "0123"}, PLAIN, {}, id="a file that has its name"),
    ],
)
def test_models(
    models: dict[str, Any], sources: dict[str, str], judge: dict[str, Any], user: dict[str, Any]
) -> None:
    found = summary({"a": [PASS]}, models=models, run={"sources": sources})
    assert (found.judge, found.user) == (judge, user)


def test_which_models_answered() -> None:
    by = [score("stars", 3, by="openai/b"), score("stars", 3, by="openai/a"), score("stars", 3)]
    check = Check(name="criteria", passed=True, by="openai/c")
    found = summary({"a": [whole(*by, check, HELD)], "b": [whole(score("stars", 1, by="openai/b"))]})
    assert found.judged_by == ("openai/a", "openai/b", "openai/c")
    assert found.played_by == ()


def test_which_models_played_the_user() -> None:
    events = []
    for event in events_of({"a": [PASS, PASS, PASS]}):
        if event.type == "turn_finished":
            name = {0: "openai/z", 1: "openai/y", 2: ""}[event.key.epoch]
            event = event.model_copy(update={"turn": event.turn.model_copy(update={"user_model": name})})
        events.append(event)
    report = build_report(events)
    assert summary_of(report, decide(report)).played_by == ("openai/y", "openai/z")


def test_the_settings_that_decide_what_fails() -> None:
    found = summary({"a": [PASS]}, fail_on_severity="high", max_turns=7, concurrency=3).settings
    assert set(found) == {
        *("fail_on_severity", "severities", "severity_from", "detectors", "unmocked_tools", "now"),
        "max_turns",
    }
    assert (found["fail_on_severity"], found["max_turns"]) == ("high", 7)


# ── the content of a scenario ────────────────────────────────────────────────────────────────────

FULL: dict[str, Any] = {
    "profile": "p",
    "goal": "g",
    "goal_outcome": "refused",
    "knowledge": ["k"],
    "facts": ["f"],
    "beliefs": ["b"],
    "tools": {"t": {"returns": 1}},
    "expect": {"output": {"contains": ["x"]}},
    "turns": ["hi"],
    "case": {"expected_tools": ["t"]},
    "max_turns": 3,
    "state": {"tables": {"orders": [{"id": 1}]}},
}
OTHER: dict[str, Any] = {
    "profile": "q",
    "goal": "h",
    "knowledge": ["k", "l"],
    "facts": ["e"],
    "beliefs": ["c"],
    "tools": {"t": {"returns": 2}},
    "expect": {"output": {"contains": ["y"]}},
    "turns": ["ho"],
    "case": {"expected_tools": ["u"]},
    "max_turns": 4,
    "state": {"tables": {"orders": [{"id": 2}]}},
}


def content(**fields: Any) -> dict[str, str]:
    turns = fields.get("turns")
    if turns is not None:
        fields["turns"] = [{"user": turn} if isinstance(turn, str) else turn for turn in turns]
    return hash_content(Scenario.model_validate({"id": "a", **fields}))


def test_all_that_the_agent_the_user_or_a_judge_sees_is_hashed() -> None:
    assert sorted(content(**FULL)) == list(content(**FULL)) == sorted(FULL)
    assert all(len(part) == 16 and int(part, 16) >= 0 for part in content(**FULL).values())


@pytest.mark.parametrize("name", list(OTHER))
def test_one_changed_part_changes_one_hash(name: str) -> None:
    before, after = content(**FULL), content(**{**FULL, name: OTHER[name]})
    assert {each for each in before if before[each] != after[each]} == {name}


@pytest.mark.parametrize(
    "more",
    [
        {"name": "n"},
        {"tags": ["t"]},
        {"epochs": 5},
        {"thresholds": {"stars": 1}},
        {"source": "s.yaml:3", "lines": {"goal": 4}, "base": "x", "row": "r", "pattern": "*"},
        {"goal_outcome": "reached"},
        {"profile": "", "knowledge": [], "tools": {}},
    ],
)
def test_what_nobody_in_the_conversation_sees_is_left_out(more: dict[str, Any]) -> None:
    assert content(goal="g", **more) == content(goal="g")


def test_parts_that_are_empty_or_usual_are_left_out() -> None:
    assert "goal_outcome" in content(goal="g", goal_outcome="refused")
    assert set(content(goal="g")) <= {"goal", "expect"}


def test_failures_come_in_the_order_of_their_fingerprints() -> None:
    checks = [
        Check(name=f"output.{name}", passed=False) for name in ("contains", "matches", "equals", "json")
    ]
    for items in (checks, checks[::-1]):
        found = [each.fingerprint for each in only([whole(*items)]).failures]
        assert found == sorted(found)
        assert len(found) == 4


def test_a_moved_tool_is_the_same() -> None:
    here = content(tools={"t": {"returns": 1, "base": "x"}})
    assert here == content(tools={"t": {"returns": 1, "base": "y"}})
    assert here != content(tools={"u": {"returns": 1}})


# ── the results of a scenario ────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("epochs", "successes", "decided", "planned", "known", "verdict"),
    [
        ([PASS], 1, 1, 1, 1, Verdict.PASSED),
        ([PASS, FAIL], 1, 2, 2, 2, Verdict.FAILED),
        ([PASS, LOST], 1, 1, 2, 1, Verdict.INCONCLUSIVE),
        ([UNSURE], 0, 0, 1, 1, Verdict.INCONCLUSIVE),
        ([PASS, None, None], 1, 1, 3, 1, Verdict.INCONCLUSIVE),
        # What had failed before it was lost has failed.
        ([Played((), ((BROKEN,),), stop=LOST.stop)], 0, 1, 1, 1, Verdict.FAILED),
    ],
)
def test_the_successes_of_a_scenario(
    epochs: list[Played | None], successes: int, decided: int, planned: int, known: int, verdict: Verdict
) -> None:
    found = only(epochs)
    assert (found.successes, found.decided, found.planned) == (successes, decided, planned)
    assert (found.known, found.verdict) == (known, verdict)
    assert (found.id, found.agent) == ("a", "bot")


@pytest.mark.parametrize(
    ("fields", "simulated", "criteria"),
    [
        ({}, True, False),
        ({"goal": "g"}, True, False),
        ({"turns": ({"user": "hi"},)}, False, False),
        ({"turns": ({"user": "hi", "expect": {"criteria": ["is kind"]}},)}, False, True),
        ({"expect": {"criteria": ["is kind"]}}, True, True),
    ],
)
def test_the_kind_of_a_scenario(fields: dict[str, Any], simulated: bool, criteria: bool) -> None:
    typed = Scenario.model_validate({"id": "a", **fields})
    scenario = {name: getattr(typed, name) for name in fields}
    found = only([PASS], scenarios={"a": scenario})
    assert (found.simulated, found.criteria) == (simulated, criteria)
    assert found.content == hash_content(typed)


def test_scores_are_the_means_of_conversations_that_were_not_lost() -> None:
    several = Played((), ((score("stars", 1),), (score("stars", 2),)))
    found = only([several, whole(score("stars", 5)), lost(score("stars", 1))])
    assert found.scores == {"stars": (1.5, 5.0)}


def test_numbers_are_of_all_conversations_or_left_out() -> None:
    two = Played((HELD,), ((HELD,), (HELD,)))
    found = only([PASS, two, LOST])
    assert found.effort == {
        "latency_ms": (1500.0, 3000.0),
        "tokens": (150, 300),
        "steps": (1, 2),
        "tool_calls": (0, 0),
    }
    priced = only([PASS], prices={"bot": {"input": 1, "output": 1}})
    assert list(priced.effort) == ["latency_ms", "tokens", "steps", "tool_calls", "cost"]
    silent = Played((HELD,), ())
    assert "tokens" not in only([PASS, silent]).effort
    assert only([LOST]).effort == {}


def test_each_failure_is_counted_by_the_conversations_that_have_it() -> None:
    high = finding(Severity.HIGH, explanation="so it is")
    twice = whole(BROKEN, high, high.model_copy(update={"explanation": "put otherwise"}))
    report = report_of({"a": [twice, FAIL, PASS, lost(finding(Severity.HIGH))]})
    scenario = only_scenario(report)
    named = {each.fingerprint: each for each in failures_of(scenario.samples[0], scenario.scenario).all}
    found = only([twice, FAIL, PASS, lost(finding(Severity.HIGH))]).failures
    assert [each.fingerprint for each in found] == sorted(named)
    for each in found:
        known = named[each.fingerprint]
        assert (each.what, each.metric, each.severity) == (known.what, known.metric, known.severity)
    assert sorted((each.metric, each.epochs) for each in found) == [(BEHAVIOR, 1), ("output.contains", 2)]
    assert failures_in((), scenario.scenario) == ()


def test_of_a_run_that_has_only_begun_there_is_what_can_be_compared() -> None:
    begun = events_of({"a": [None], "b": [None, None]}, models={"judge": "openai/m"})[0]
    found = summary_of(build_report([begun]), None)
    assert found.judge == PLAIN
    assert [(each.id, each.verdict, each.known) for each in found.scenarios] == [
        ("a", None, 0),
        ("b", None, 0),
    ]
    assert [each.planned for each in found.scenarios] == [1, 2]
