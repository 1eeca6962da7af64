"""The page of one conversation: its head, its turns with what was found in each, the judges, and its foot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from agenteval.core.decision import ScenarioDecision, Violation
from agenteval.core.event import Event, ModelAsked
from agenteval.core.sample_report import ScenarioReport
from agenteval.core.scenario import SampleKey, Scenario
from agenteval.core.score import (
    HELPED,
    Check,
    Finding,
    References,
    Score,
    Severity,
    UserReview,
    Verdict,
    Vote,
)
from agenteval.core.trajectory import Step, Stop, StopReason, ToolCall, ToolResult, Turn, Usage
from agenteval.reporters.options import ReportOptions
from agenteval.reporters.terminal.conversation_page import (
    NOT_RECORDED,
    ConversationPage,
    JudgeExchange,
    duration,
    render_page,
    sample_name,
)
from agenteval.reporters.terminal.screen import render_parts
from agenteval.verdict.gates import decide
from agenteval.verdict.report import build_report
from tests.support import report_samples
from tests.support.verdict_runs import BEHAVIOR, FAIL, GOAL, LABELS, PASS, STARS, judge_failed, report_of

P, F, U = Verdict.PASSED, Verdict.FAILED, Verdict.INCONCLUSIVE
KEY = SampleKey(scenario="a", agent="wonderbot")


def page_of(
    *turns: Turn,
    said: Mapping[Any, tuple[Any, ...]] | None = None,
    stop: Stop | None = report_samples.DONE,
    scenario: Mapping[str, Any] | None = None,
    decided: Mapping[str, Any] | None = None,
    **more: Any,
) -> ConversationPage:
    spec = Scenario(**{"id": "a", "name": "a", "source": "s/a.yaml:1", **(scenario or {})})
    begun = report_samples.started((spec,), (KEY,), metrics=(LABELS, STARS))
    events: list[Event] = [begun, *report_samples.conversation(KEY, turns, said or {}, stop=stop)]
    report = build_report(events)
    decision = decide(report)
    if decided:
        decision = replace(decision, samples={KEY: replace(decision.samples[KEY], **decided)}, scenarios={})
    (each,) = report.scenarios
    return ConversationPage(report, decision, each, KEY, each.samples[0], **more)


def planned_page(played: Sequence[Any], at: int = 0, **more: Any) -> ConversationPage:
    report = report_of({"a": played}, **more)
    scenario: ScenarioReport = report.scenarios[0]
    key = SampleKey(scenario="a", agent=scenario.agent, epoch=at)
    sample = next((each for each in scenario.samples if each.key == key), None)
    return ConversationPage(report, decide(report), scenario, key, sample)


def shown(page: ConversationPage, **options: Any) -> list[str]:
    told = ReportOptions(**{"width": 160, "root": "/r", **options})
    return render_parts(render_page(page, told), told).splitlines()


def body(page: ConversationPage, **options: Any) -> list[str]:
    """The lines of the conversation, each with single spaces."""
    return [" ".join(line.split()) for line in shown(page, **options)[2:]]


def said(text: str | None, *calls: ToolCall, user: str = "hi", **more: Any) -> Turn:
    return Turn(user=user, steps=(Step(text=text, tool_calls=calls),), script=0, **more)


def call(value: Any = 1, **more: Any) -> ToolCall:
    return ToolCall(**{"name": "f", "args": {"x": 1}, "result": ToolResult(value=value), **more})


# Head and foot


@pytest.mark.parametrize(
    ("key", "name"),
    [
        (KEY, "a@1"),
        (KEY.model_copy(update={"epoch": 2}), "a@3"),
        (KEY.model_copy(update={"variant": "v"}), "a[v]@1"),
    ],
)
def test_the_name_of_a_sample(key: SampleKey, name: str) -> None:
    assert sample_name(key) == name


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "0 ms"),
        (26.4, "26 ms"),
        (999, "999 ms"),
        (999.4, "999 ms"),
        (999.6, "1.0 s"),
        (1000, "1.0 s"),
        (3440, "3.4 s"),
        (1_234_000, "1,234.0 s"),
    ],
)
def test_a_duration(ms: float, text: str) -> None:
    assert duration(ms) == text


def test_the_head_counts_what_was_said_and_spent() -> None:
    usage = Usage(calls=1, input_tokens=1000, output_tokens=200)
    turn = Turn(user="hi", steps=(Step(text="x", tool_calls=(call(), call()), usage=usage),), latency_ms=1500)
    head = shown(page_of(turn, turn))[0]
    name, parts = head.split("   ")
    assert name == "a@1  PASSED"
    assert parts.split(" · ") == ["run 20261121-101500-ab12", "2 turns", "4 calls", "3.0 s", "2,400 tokens"]
    guessed = Turn(user="hi", steps=(Step(text="x", usage=usage.model_copy(update={"estimated": True})),))
    assert shown(page_of(guessed))[0].endswith(" · 1 turn · ≈1,200 tokens")
    assert shown(page_of(said("x")))[0].endswith(" · 1 turn")


def test_of_several_agents_the_agent_is_named() -> None:
    assert "agent" not in shown(planned_page([PASS]))[0]
    assert " agent x · run " in shown(planned_page([PASS], agents=("x", "y")))[0]


def test_that_no_model_judged_is_said_once_in_the_head() -> None:
    score = Score(metric="stars", value=4, scripted=True, by="scripted/x")
    page = page_of(said("x"), said={None: (score,)})
    assert "scripted" in shown(page)[0]
    assert "whole stars 4" in body(page)
    mixed = page_of(said("x"), said={None: (score, Score(metric=BEHAVIOR, label="no failure", ok=True))})
    assert any("stars 4ˢ" in line for line in body(mixed))


@pytest.mark.parametrize(
    ("stop", "running", "state"),
    [
        (report_samples.DONE, False, "PASSED"),
        (report_samples.DONE, True, "PASSED"),
        (None, False, "CUT OFF"),
        (None, True, "UNDER WAY"),
    ],
)
def test_the_state_of_a_conversation(stop: Stop | None, running: bool, state: str) -> None:
    assert shown(page_of(said("x"), stop=stop, running=running))[0].startswith(f"a@1  {state}  ")


@pytest.mark.parametrize(("running", "state"), [(False, "NOT RUN"), (True, "NOT STARTED")])
def test_the_state_of_a_conversation_that_did_not_run(running: bool, state: str) -> None:
    page = replace(planned_page([None]), running=running)
    assert page.verdict is U
    assert shown(page) == [f"a@1  {state}   run 20261121-101500-ab12", "s/a.yaml:1"]


@pytest.mark.parametrize(
    ("scenario", "stop", "place"),
    [
        ({}, report_samples.DONE, "s/a.yaml:1"),
        ({"name": "A refund"}, report_samples.DONE, "s/a.yaml:1  A refund"),
        ({"name": ""}, report_samples.DONE, "s/a.yaml:1"),
        ({"row": "/r/rows.csv:7"}, report_samples.DONE, "s/a.yaml:1 · rows.csv:7"),
        ({}, Stop(reason=StopReason.RECORDED, detail="/r/log.jsonl:7"), "log.jsonl:7"),
    ],
)
def test_the_place(scenario: Mapping[str, Any], stop: Stop, place: str) -> None:
    assert shown(page_of(said("x"), scenario=scenario, stop=stop))[1] == place


def test_the_foot_has_all_epochs_the_scenarios_rules_and_the_next_commands() -> None:
    page = planned_page([PASS, FAIL, None], 1)
    own = {("a", "bot"): ScenarioDecision(F, (Violation("pass_rate", "1 of 3", "s/a.yaml:9"),))}
    page = replace(
        page, decision=replace(page.decision, scenarios=own), rerun_command="again", next_command="next"
    )
    assert shown(page)[-4:] == [
        "epochs  1 ✓ 2 ✗ 3 ?",
        "✗ pass_rate  s/a.yaml:9  1 of 3",
        "repeat: again",
        "next:   next",
    ]
    assert shown(planned_page([PASS]))[-1].split() == ["whole", "✓", "1", "check"]


def test_variants_are_named_beside_their_epochs() -> None:
    page = planned_page([PASS, PASS])
    keys = tuple(page.key.model_copy(update={"variant": name}) for name in "vw")
    scenario = replace(page.scenario_report, samples=(), missing=keys)
    assert shown(replace(page, scenario_report=scenario))[-1] == "epochs  [v]1 ? [w]1 ?"


# What was said


@pytest.mark.parametrize(
    ("turn", "lines"),
    [
        (said("hello"), ["1 user hi", "agent hello"]),
        (said("", user=""), ["1 user (empty)", "agent (empty)"]),
        (said(None, call()), ["1 user hi", "→ f(x=1)", "← 1"]),
        (said("wait", call(result=None)), ["1 user hi", "agent wait", "→ f(x=1)"]),
        (
            said(None, call(result=None, given_up=True)),
            ["1 user hi", "→ f(x=1)", "← (the agent did not wait)"],
        ),
        (said("x", error="it raised"), ["1 user hi", "agent x", "error it raised"]),
        (said("\n x \n"), ["1 user hi", "agent x"]),
        (said('{"a": 1}'), ["1 user hi", 'agent {"a": 1}']),
    ],
)
def test_a_turn(turn: Turn, lines: list[str]) -> None:
    assert body(page_of(turn)) == lines


def test_turns_are_numbered_once() -> None:
    assert body(page_of(said("a"), said("b"))) == ["1 user hi", "agent a", "2 user hi", "agent b"]


def test_of_several_steps_each_call_has_its_latency() -> None:
    slow = Step(tool_calls=(call(), call()), latency_ms=1200)
    several = Turn(user="hi", steps=(slow, Step(text="x")))
    assert body(page_of(several))[1:5] == ["→ f(x=1) 1.2 s", "← 1", "→ f(x=1)", "← 1"]
    assert body(page_of(Turn(user="hi", steps=(slow,))))[1] == "→ f(x=1)"


def test_long_arguments_stand_below_the_name() -> None:
    lines = body(page_of(said(None, call(args={"text": "y" * 100, "n": 1}))), width=80)
    assert lines[1] == "→ f"
    assert (lines[2], lines[4:]) == ("{", ['"n": 1', "}", "← 1"])
    unread = body(page_of(said(None, call(args=None, raw_args="z" * 100))), width=80)
    assert unread[1].startswith("→ f(zzz")


def test_several_agents_are_named() -> None:
    turns = [
        Turn(user="q", steps=(Step(text="a", agent=name, tool_calls=(call(agent=name),)),)) for name in "xy"
    ]
    lines = body(page_of(*turns))
    assert ("agent (x) a" in lines, "→ (y) f(x=1)" in lines) == (True, True)
    assert "agent a" in body(page_of(turns[0]))


def test_a_secret_is_masked_and_a_very_long_message_is_cut() -> None:
    leak = Finding(
        detector="leak",
        metric=BEHAVIOR,
        label="unsafe state",
        severity=Severity.HIGH,
        turn=0,
        span=(3, 9),
        evidence="s…t",
        explanation="told secret",
    )
    lines = body(page_of(said("my secret", call("secret")), said={0: (leak,)}))
    assert all("secret" not in line for line in lines)
    assert "agent my s…t" in lines
    long = shown(page_of(said("x" * 20_001)), width=200)
    assert any("1 more character; --json" in line for line in long)
    assert all("more character" not in line for line in shown(page_of(said("x" * 20_000)), width=200))


# What was found


def annotated(*items: Any, **more: Any) -> list[str]:
    """The lines below the only turn."""
    return body(page_of(said("x"), said={0: items}, **more))[2:]


def test_what_held_is_one_line_with_the_scores_and_the_latency() -> None:
    held = Check(name="a", passed=True)
    stars = Score(metric="stars", value=4)
    fine = Score(metric=BEHAVIOR, label="no failure", ok=True)
    turn = said("x", latency_ms=26, user_fault="rude")
    (line,) = body(page_of(turn, said={0: (held, held, stars, fine)}))[2:]
    assert line.startswith("✓ 2 checks · stars 4 · agent_be…failure ok · 26 ms · ")
    assert line.endswith("refused: rude")
    assert annotated(held) == ["✓ 1 check"]
    assert annotated() == []


@pytest.mark.parametrize(
    ("check", "line"),
    [
        (Check(name="n", passed=False, detail="no", where="s/a.yaml:9"), "✗ n line 9 no"),
        (Check(name="n", passed=False, detail=" ", where="s/b.yaml:9"), "✗ n s/b.yaml:9"),
        (Check(name="n", passed=None, detail="no", where="s/a.yaml:1"), "? n no"),
        (Check(name="n", passed=False, where="s/a.yaml"), "✗ n s/a.yaml"),
        (Check(name="n", passed=False, where="default"), "✗ n"),
    ],
)
def test_a_check_that_did_not_hold(check: Check, line: str) -> None:
    assert annotated(check) == [line]


@pytest.mark.parametrize(("severity", "sign"), [(Severity.HIGH, "!"), (Severity.CRITICAL, "✗")])
def test_a_finding_with_its_quotation(severity: Severity, sign: str) -> None:
    found = Finding(
        detector="judge",
        metric=BEHAVIOR,
        label="lie",
        severity=severity,
        turn=0,
        call=1,
        explanation="so it is",
        evidence="Bo\noked",
    )
    bad = Score(metric=BEHAVIOR, label="lie", ok=False, reason="so it is")
    assert annotated(found, bad) == [f"{sign} {severity}: lie (judge, call 2) so it is", '"Bo oked"']
    plain = found.model_copy(update={"call": None, "explanation": "", "evidence": " "})
    assert annotated(plain) == [f"{sign} {severity}: lie (judge)"]


def test_a_finding_of_the_whole_stands_at_the_end() -> None:
    found = Finding(detector="judge", metric=BEHAVIOR, label="lie", severity=Severity.LOW)
    assert body(page_of(said("x"), said={None: (found,)}))[2:] == ["whole ! low: lie (judge)"]


@pytest.mark.parametrize(
    ("score", "lines"),
    [
        (Score(metric="stars", value=3, reason="fine"), ["stars 3"]),
        (Score(metric="stars", value=2, reason="rude"), ["stars 2", "↓ stars 2 rude"]),
        (Score(metric="stars", value=2, evidence="pah"), ["stars 2", "↓ stars 2", '"pah"']),
        (Score(metric=BEHAVIOR, label="no failure", ok=True, reason="r"), ["agent_be…failure ok"]),
        (Score(metric=BEHAVIOR, label="x", ok=False), ["agent_be…failure x", "↓ agent_be…failure x"]),
    ],
)
def test_only_a_low_score_has_its_reason(score: Score, lines: list[str]) -> None:
    assert annotated(score) == lines


def test_a_label_that_counts_neither_way_is_undecided_and_has_its_reason() -> None:
    withdrawn = Score(metric=GOAL, label="withdrawn", reason="the user gave up")
    page = page_of(said("x"), said={None: (withdrawn,)})
    line = "? goal_completion withdrawn the user gave up"
    assert line in body(page)
    own = {("a", "wonderbot"): ScenarioDecision(F, (Violation("t", "1/2, not 1", "", metric=GOAL),))}
    assert line in body(replace(page, decision=replace(page.decision, scenarios=own)))


def test_a_score_below_a_broken_threshold_is_marked() -> None:
    page = page_of(said("x"), said={0: (Score(metric="stars", value=2),)})
    own = {("a", "wonderbot"): ScenarioDecision(F, (Violation("t", "2, not 3", "", metric="stars"),))}
    assert "✗ stars 2" in body(replace(page, decision=replace(page.decision, scenarios=own)))
    other = {("a", "wonderbot"): ScenarioDecision(F, (Violation("t", "2, not 3", "", metric="x"),))}
    assert "↓ stars 2" in body(replace(page, decision=replace(page.decision, scenarios=other)))


@pytest.mark.parametrize(
    ("metric", "unclear_", "words"),
    [
        ("stars", False, "the judge failed"),
        ("stars", True, "not clear"),
        ("repeated_tool_call", False, "the detector failed"),
    ],
)
def test_a_score_that_is_missing(metric: str, unclear_: bool, words: str) -> None:
    (line,) = annotated(judge_failed(metric, unclear=unclear_))
    assert line == f"? {metric} {words}: no answer"


def test_how_it_ended_and_what_else_decided() -> None:
    stop = Stop(reason=StopReason.BUDGET, detail="used up")
    other = Violation("limits.x", "7, at most 5", "s/a.yaml:9")
    told = {
        "verdict": F,
        "violations": (other, Violation("budget", "used up", "")),
        "accepted": (Violation("n", "d", ""),),
    }
    assert body(page_of(said("x"), stop=stop, decided=told))[2:] == [
        "end (budget: used up)",
        "✗ limits.x line 9 7, at most 5",
        "accepted: n: d",
    ]
    recorded = Stop(reason=StopReason.RECORDED, detail="log.jsonl:7")
    assert body(page_of(said("x"), stop=recorded))[2:] == []


@pytest.mark.parametrize("name", ["n", "fail_on_severity", "judge"])
def test_what_is_shown_at_a_turn_is_not_told_again(name: str) -> None:
    broken = Check(name="n", passed=False, detail="no")
    told = {"verdict": F, "violations": (Violation(name, "again", ""),)}
    assert body(page_of(said("x"), said={0: (broken,)}, decided=told))[2:] == ["✗ n no"]


@pytest.mark.parametrize("detail", ["", " "])
def test_a_violation_without_a_detail_is_told_by_its_name(detail: str) -> None:
    told = {"verdict": F, "violations": (Violation("limits.x", detail, ""),)}
    assert body(page_of(said("x"), decided=told))[-1] == "✗ limits.x"


def test_an_error_of_a_turn_is_not_told_again() -> None:
    stop = Stop(reason=StopReason.AGENT_ERROR, detail="it raised")
    told = {"verdict": F, "fault": "agent", "violations": (Violation("no_error", "it raised", ""),)}
    assert body(page_of(said("x", error="it raised"), stop=stop, decided=told))[2:] == ["error it raised"]


def test_a_user_at_fault_is_told() -> None:
    review = UserReview(label=HELPED, reason="told all", evidence="the code")
    lines = body(page_of(said("x"), said={None: (review,)}))
    assert [line for line in lines if line.startswith("user?")] == [f"user? {review.sentence}"]


# Judges


def asked(**more: Any) -> ModelAsked:
    fields = {
        "key": KEY,
        "role": "judge",
        "metric": "stars",
        "turn": 0,
        "model": "m",
        "system": "SYS",
        "prompt": "RECORD\n# One\nno\n# Rules\n\nsay it\nand more",
        "record": 7,
        "answer": {"reason": "so", "value": 4},
    }
    return ModelAsked(**{**fields, **more})


def exchange(*answers: ModelAsked, metric: str = "", score: Score | None = None) -> list[str]:
    items = (score,) if score else ()
    judging = JudgeExchange(answers, metric)
    lines = body(page_of(said("x"), said={0: items}, judge_transcript=judging))[2:]
    return [line for line in lines if not line.startswith("stars")]


def test_the_question_in_short_and_the_answer_in_full() -> None:
    judge, question, *answer = exchange(asked())
    assert judge == "judge stars · m"
    assert question.startswith("asked say it … ")
    assert "--metric stars" in question
    assert answer == ["said reason: so", "value: 4"]


def test_the_whole_question_if_one_metric_is_asked_for() -> None:
    lines = exchange(asked(), asked(metric="other"), metric="stars")
    assert lines[1] == "asked SYS"
    assert all(word in " ".join(lines) for word in ("RECORD", "# Rules", "and more"))
    assert all("other" not in line for line in lines)


def test_a_model_is_named_when_it_changes() -> None:
    lines = exchange(asked(), asked(metric="b"), asked(metric="c", model="n"), asked(metric="d", model=""))
    assert [line for line in lines if line.startswith("judge")] == [
        "judge stars · m",
        "judge b",
        "judge c · n",
        "judge d",
    ]


@pytest.mark.parametrize(
    ("more", "lines"),
    [
        ({"answer": None, "error": "HTTP 500"}, ["said HTTP 500"]),
        ({"answer": None}, ["said nothing"]),
        ({"answer": {}}, ["said nothing"]),
        ({"answer": {"a": " ", "b": None, "c": [], "d": {}, "e": 0, "f": False}}, ["said e: 0", "f: false"]),
        ({"answer": {"a": [1, 2]}}, ["said a: [1, 2]"]),
    ],
)
def test_an_answer_without_what_is_empty(more: Mapping[str, Any], lines: list[str]) -> None:
    assert exchange(asked(**more))[2:] == lines


def test_only_the_answers_of_this_turn_are_shown() -> None:
    others = [asked(turn=1), asked(turn=None), asked(key=KEY.model_copy(update={"epoch": 1}))]
    assert exchange(*others)[:1] == ["judge stars · m"]  # of the whole, at the end
    assert len([line for line in exchange(*others) if line.startswith("judge")]) == 1


REFERENCES = References(call=0, other_call=1, parameter="p", tool="t", source="src", rule="r")


def test_what_an_answer_refers_to_and_how_often_it_was_asked() -> None:
    votes = (Vote(verdict=4, against=False), Vote(verdict="x", against=True))
    score = Score(metric="stars", value=4, references=REFERENCES, votes=votes)
    page = page_of(said("x", call()), said={0: (score,)}, judge_transcript=JudgeExchange((asked(),)))
    line = body(page)[-1]
    assert line.split(" · ") == [
        "stars 4 call 1 f(x=1)",
        "repeats call 2",
        "parameter p",
        "tool t, not called",
        'source "src"',
        'rule "r"',
        "asked 2 times: 4.0, x",
    ]
    assert exchange(score=score)[0].startswith("judge stars 4 call 1")
    assert exchange(metric="other", score=score) == []
    assert exchange(score=Score(metric="stars", value=4)) == []


def test_that_no_questions_were_recorded_is_said() -> None:
    page = page_of(said("x"), judge_transcript=JudgeExchange(None))
    assert NOT_RECORDED in shown(page)
    assert NOT_RECORDED not in shown(page_of(said("x"), judge_transcript=JudgeExchange(())))
    assert JudgeExchange(None).selected_answers == ()


def test_a_sample_without_a_decision_is_undecided() -> None:
    page = page_of(said("x"))
    assert page.verdict is P
    assert replace(page, decision=replace(page.decision, samples={})).verdict is U
