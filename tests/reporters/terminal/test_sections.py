"""The whole report at a terminal (``-v``): what is in it, and where. The short one: ``test_screen.py``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest

from agenteval.core.decision import Decision, GateRow, SampleDecision, ScenarioDecision
from agenteval.core.event import Event, Notice, RunFinished
from agenteval.core.scenario import Category, SampleKey, Scenario
from agenteval.core.score import Check, Score, Verdict
from agenteval.core.trajectory import Step, Stop, StopReason, ToolCall, Turn, Usage
from agenteval.reporters.options import ReportOptions
from agenteval.reporters.terminal.screen import render
from agenteval.verdict.report import Report, build_report
from tests.support.report_samples import (
    CASE,
    Told,
    conversation,
    decide,
    mixed,
    passing,
    started,
    turn,
    weather_call,
)

WIDTHS = (40, 80, 120)


def shown(told: Told, *, width: int = 100, **options: object) -> str:
    return render(*told, ReportOptions(width=width, verbose=True, **options))  # type: ignore[arg-type]


def section(text: str, title: str) -> list[str]:
    """The lines below a heading up to the next empty line."""
    lines = text.splitlines()
    start = lines.index(title) + 1
    end = next((i for i in range(start, len(lines)) if not lines[i]), len(lines))
    return lines[start:end]


def row(text: str, title: str, beginning: str) -> str:
    """The row of a table whose first words are ``beginning``, with single spaces."""
    rows = [" ".join(line.split()) for line in section(text, title)]
    return next(line for line in rows if line.startswith(beginning))


def scenario(name: str, category: Category = Category.CAPABILITY, *, is_case: bool = True) -> Scenario:
    case = CASE.case if is_case else None
    return Scenario(
        id=name, name=name, category=category, case=case, source=f"scenarios/all.yaml:{len(name)}"
    )


def sample(
    name: str, *turns: Turn, agent: str = "wonderbot", epoch: int = 0, ok: bool = True
) -> Iterator[Event]:
    checks = (
        Check(name="no_error", passed=True),
        Check(name="answer", passed=ok, detail="" if ok else "empty"),
    )
    key = SampleKey(scenario=name, agent=agent, epoch=epoch)
    yield from conversation(key, turns, {None: checks})


def run(scenarios: tuple[Scenario, ...], *events: Event, agents: tuple[str, ...] = ("wonderbot",)) -> Report:
    epochs = 1 + max((event.key.epoch for event in events if hasattr(event, "key") and event.key), default=0)
    keys = tuple(
        SampleKey(scenario=s.id, agent=agent, epoch=epoch)
        for s in scenarios
        for agent in agents
        for epoch in range(epochs)
    )
    end = RunFinished(finished_at="2026-11-21T10:16:00Z", elapsed_s=2.0)
    return build_report([started(scenarios, keys), *events, end])


def costing(usage: Usage, *, latency_ms: float = 1000.0) -> Turn:
    return Turn(user="hi", steps=(Step(text="25", usage=usage),), latency_ms=latency_ms)


# Every width


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(
    "agents", [("wonderbot",), ("wonderbot", "an-agent-with-a-long-name"), tuple("abcdef")]
)
def test_nothing_is_wider_than_the_terminal_but_lines_to_copy(width: int, agents: tuple[str, ...]) -> None:
    text = shown(mixed(*agents), width=width, journal="/a/long/path/of/runs/" * 4 + "events.jsonl")
    long = [line for line in text.splitlines() if len(line) > width]
    # Those that are to be pasted back each stay a line, too.
    kept = ("    repeat: ", "journal: ", "INCOMPLETE: ", "FAILED ", "INCONCLUSIVE ", "Re-run: ", "Inspect: ")
    assert all(line.startswith(kept) for line in long)
    assert not re.search(r" $", text, flags=re.MULTILINE)


@pytest.mark.parametrize("width", WIDTHS)
def test_the_essentials_are_there_at_every_width(width: int) -> None:
    text = shown(mixed(), width=width)
    flat = " ".join(text.split())
    for words in (
        "Capability", "Robustness", "Summary", "tool_calls: missing: create_booking(time=09:00)",
        "scenarios/booking.yaml:12", "repeat: agenteval run scenarios/booking.yaml -s book-morning",
        "A cut on Tuesday morning?", 'get_weather(city="Paris")', "not the agent's fault",
        "What gated this run", "helpfulness · book-morning", "agenteval.yaml:8", "not gated",
        "agent_behavior_failure", "temperature is not supported", "≈840 tokens in",
    ):  # fmt: skip
        assert words in flat
    order = ["Did not pass", "Capability", "Robustness", "Summary", "What gated this run"]
    places = [text.splitlines().index(title) for title in order]
    assert places == sorted(places)


def test_a_passing_run_is_short_and_says_so() -> None:
    text = shown(passing(3))
    assert "Did not pass" not in text
    assert "What gated" not in text
    assert "Efficiency" not in text
    assert text.splitlines()[-1] == "PASSED: all 3 scenarios passed (exit 0)"
    assert text.endswith("\n")


# The tables


def test_capability_row_shows_tools_in_order_accuracy_output_and_checks() -> None:
    calls = (weather_call(), weather_call(), ToolCall(name="calculator", args={}))
    told = run((scenario("C-01"),), *sample("C-01", turn("hi", "it is 25", *calls), ok=False))
    text = shown((told, decide(told)))
    assert row(text, "Capability", "✗") == "✗ C-01 get_weather ×2, calculator 100% yes 1/2"


def test_efficiency_row_shows_steps_calls_tokens_and_latency() -> None:
    told = run((scenario("E-01", Category.EFFICIENCY),), *sample("E-01", turn("hi", "25", weather_call())))
    assert row(shown((told, decide(told))), "Efficiency", "✓") == "✓ E-01 get_weather 2 1 1,500 ≈300 ≈240 ≈60"


def test_robustness_row_shows_the_answer_or_the_first_reason() -> None:
    told = run(
        (scenario("R-1", Category.ROBUSTNESS), scenario("R-2", Category.ROBUSTNESS)),
        *sample("R-1", turn("hi", "Sorry, no such plan")),
        *sample("R-2", turn("hi", "x"), ok=False),
    )
    text = shown((told, decide(told)))
    assert row(text, "Robustness", "✓") == "✓ R-1 yes Sorry, no such plan"
    assert row(text, "Robustness", "✗") == "✗ R-2 no empty"
    assert row(text, "Summary", "Robustness Pass rate").endswith("50.0 % 2")


def test_a_broken_sample_has_a_cross_and_no_cost() -> None:
    key = SampleKey(scenario="E-1", agent="wonderbot")
    stop = Stop(reason=StopReason.AGENT_TIMEOUT, detail="no answer within 60 s")
    told = run(
        (scenario("E-1", Category.EFFICIENCY),),
        *conversation(key, (), stop=stop, unfinished=turn("", None, error="no answer within 60 s")),
    )
    text = shown((told, decide(told)))
    assert row(text, "Efficiency", "✗") == "✗ E-1 – – – – – – –"
    assert "(the agent failed)" in text
    assert text.count("no answer within 60 s") == 2, "where it is shown in full, and in the list at the end"
    assert "user  (empty)" in text


def test_epochs_are_counted_and_told_once_if_they_fail_alike() -> None:
    events = [e for epoch in range(3) for e in sample("C-1", turn("hi", "25"), epoch=epoch, ok=epoch == 1)]
    told = run((scenario("C-1"),), *events)
    text = shown((told, decide(told)))
    assert "1/3" in row(text, "Capability", "✗ C-1")
    assert "3/3" in row(text, "Capability", "✗ C-1")  # the output was right each time
    assert "✗ C-1 · epoch 1" in text
    assert "the same in epoch 3" in text
    assert text.count("repeat:") == 1


def test_agents_stand_side_by_side_and_below_each_other_where_there_is_no_room() -> None:
    names = ("first", "second")
    events = [e for name in names for e in sample("C-1", turn("hi", "25"), agent=name, ok=name == "first")]
    told = run((scenario("C-1"),), *events, agents=names)
    pair = (told, decide(told))
    wide = shown(pair)
    assert row(wide, "Capability", "✓").startswith("✓ C-1 first")
    assert row(wide, "Capability", "✗").startswith("✗ C-1 second")
    checks = [line for line in section(wide, "Summary") if "All checks passed" in line]
    assert [" ".join(line.split()) for line in checks] == [
        "Capability All checks passed first 100.0 % 1",
        "Capability All checks passed second 0.0 % 1",
    ]
    assert "-s C-1 --agent second" in wide
    narrow = shown(pair, width=40)
    assert narrow.index("All checks passed first") < narrow.index("All checks passed second")
    last = "FAILED: 1 of 2 results failed, 1 passed, over 1 scenario and 2 agents (exit 1)"
    assert wide.splitlines()[-1] == narrow.splitlines()[-1] == last


def test_usage_that_nobody_told_is_no_zero() -> None:
    told = run((scenario("E-1", Category.EFFICIENCY),), *sample("E-1", costing(Usage())))
    text = shown((told, decide(told)))
    assert row(text, "Efficiency", "✓") == "✓ E-1 – 1 0 1,000 – – –"
    assert "Avg tokens" not in text
    assert "usage:" not in text
    assert "≈" not in text


def test_usage_is_exact_unless_estimated_and_cost_is_told_if_known() -> None:
    usage = Usage(calls=1, input_tokens=1234, output_tokens=5, cost=0.0125)
    told = run((scenario("E-1", Category.EFFICIENCY),), *sample("E-1", costing(usage)))
    text = shown((told, decide(told)))
    assert "usage:  agent 1 call, 1,234 tokens in, 5 out, cost 0.0125" in text
    assert "≈" not in text


def test_each_category_has_what_it_took() -> None:
    told = run(
        (scenario("C-1"), scenario("E-1", Category.EFFICIENCY)),
        *sample("C-1", turn("hi", "25")),
        *sample("E-1", turn("hi", "25")),
    )
    text = shown((told, decide(told)))
    for category in ("Capability", "Efficiency"):
        took = row(text, "Summary", f"{category} Avg latency ms")
        assert took == f"{category} Avg latency ms 1,500 1,500 max 1,500 1"


# Many


def failing(count: int, passing_count: int) -> Told:
    names = [f"F-{i}" for i in range(count)] + [f"P-{i}" for i in range(passing_count)]
    events = [e for name in names for e in sample(name, turn("hi", "25"), ok=name.startswith("P"))]
    told = run(tuple(scenario(name) for name in names), *events)
    return told, decide(told)


def test_verbose_shows_every_row_and_every_conversation() -> None:
    text = shown(failing(1, 45))
    assert "that passed" not in section(text, "Capability")[-1]
    assert len([line for line in section(text, "Capability") if "✓" in line]) == 45
    assert text.count("user  hi") + text.count("user   hi") == 46


def test_ten_failures_in_full_then_a_line_each() -> None:
    text = shown(failing(150, 0))
    assert text.count("repeat: ") == 10
    assert "F-149  answer: empty" in text


# What failed


def test_only_the_turns_concerned_are_shown() -> None:
    key = SampleKey(scenario="C-1", agent="wonderbot")
    turns = tuple(turn(f"question {i}", f"answer {i}") for i in range(40))
    bad = Check(name="output.contains", passed=False, detail="expected 25", where="scenarios/all.yaml:9")
    told = run((scenario("C-1"),), *conversation(key, turns, {29: (bad,)}))
    text = shown((told, decide(told)))
    assert "output.contains (turn 30): expected 25  scenarios/all.yaml:9" in text
    assert "turn 30\n    user    question 29" in text
    assert "question 28" not in text
    assert "question 39" not in text


def test_a_rule_over_the_whole_shows_the_whole() -> None:
    told = run((scenario("C-1"),), *sample("C-1", turn("one", "1"), turn("two", "2"), ok=False))
    text = shown((told, decide(told)))
    assert text.index("turn 1") < text.index("one") < text.index("turn 2") < text.index("two")


def test_a_long_tale_is_cut() -> None:
    key = SampleKey(scenario="C-1", agent="wonderbot")
    tall = Check(name="tall", passed=False, detail="x\n" * 500)
    more = tuple(Check(name=f"check {i}", passed=False, detail=f"no {i}") for i in range(20))
    told = run((scenario("C-1"),), *conversation(key, (turn("hi", "25"),), {None: (tall, *more)}))
    pair = (told, decide(told))
    assert len(shown(pair).splitlines()) < 70
    assert "no 19" in shown(pair)


def test_what_is_tolerated_comes_last_and_says_so() -> None:
    told, _ = failing(1, 1)
    samples = {
        s.key: SampleDecision(Verdict.FAILED if s.key.scenario == "F-0" else Verdict.PASSED)
        for s in told.samples
    }
    scenarios = {(s.scenario.id, s.agent): ScenarioDecision(Verdict.PASSED) for s in told.scenarios}
    text = shown((told, Decision(Verdict.PASSED, 0, (), samples, scenarios)))
    assert "✗ F-0  scenarios/all.yaml:3  (tolerated)" in text
    ends = "1 of 2 scenarios passed no conversation, 1 passed"
    assert text.splitlines()[-1] == f"PASSED: {ends} (exit 0)"


# The end


def test_gate_figures_differ_when_they_do() -> None:
    told, _ = passing(1)
    gate = GateRow("pass_rate", 0.9996, 1.0, "2,500 samples", "agenteval.yaml:3", Verdict.FAILED)
    assert "pass_rate 0.9996 1 failed" in row(shown((told, decide(told, gate))), "What gated this run", "✗")


def test_author_errors_and_repeated_notices() -> None:
    told, decision = passing(1)
    slow = Notice(level="warning", text="slow")
    notices = (slow, slow, slow, Notice(text="for your information"))
    told = replace(told, notices=notices)
    decision = replace(decision, author_errors=("mocks.py:3: boom\n(met in C-0)",), exit_code=2)
    text = shown((told, decision), journal="runs/1/events.jsonl")
    assert "error:    mocks.py:3: boom\n          (met in C-0)" in text
    assert "slow (×3)" in text
    assert "for your information" in text
    assert text.splitlines()[-2] == "journal: runs/1/events.jsonl"
    assert text.splitlines()[-1] == "AUTHOR ERROR: 1 mistake, listed above; 1 scenario passed (exit 2)"


@pytest.mark.parametrize(
    ("outcome", "word", "why"),
    [
        ("interrupted", "INCOMPLETE", "interrupted"),
        ("budget", "INCONCLUSIVE", "the budget stopped the run"),
        ("fail_fast", "INCONCLUSIVE", "stopped at the first failure"),
        (None, "INCOMPLETE", "the run was cut off"),
    ],
)
def test_a_run_that_was_not_finished(outcome: str | None, word: str, why: str) -> None:
    scenarios = (scenario("C-1"), scenario("C-2"))
    keys = tuple(SampleKey(scenario=s.id, agent="wonderbot") for s in scenarios)
    events: list[Event] = [started(scenarios, keys), *sample("C-1", turn("hi", "25"))]
    if outcome:
        events.append(RunFinished(finished_at="", outcome=outcome))  # type: ignore[arg-type]
    told = build_report(events)
    text = shown((told, decide(told)))
    counts = "1 of 2 scenarios inconclusive, 1 passed"
    assert text.splitlines()[-1] == f"{word}: {counts}; {why}: 1 sample never ran (exit 3)"
    assert row(text, "Capability", "?").startswith("? C-2 –")
    assert "INCONCLUSIVE 1 scenario never ran: C-2" in text


def test_a_run_that_was_cut_off_at_once() -> None:
    told = build_report([started((scenario("C-1"),), (SampleKey(scenario="C-1", agent="wonderbot"),))])
    assert "1 sample never ran" in shown((told, decide(told))).splitlines()[-1]
    nothing = build_report([started((), ())])
    assert "no scenarios were run" in shown((nothing, decide(nothing)))


def test_a_cut_off_sample() -> None:
    key = SampleKey(scenario="C-1", agent="wonderbot")
    told = build_report(
        [started((scenario("C-1"),), (key,)), *conversation(key, (turn("hi", "25"),), stop=None)]
    )
    text = shown((told, decide(told)))
    assert "1 cut off" in text.splitlines()[-1]
    assert row(text, "Capability", "?").startswith("? C-1")


def test_scripted_judgements_are_said_to_be_such() -> None:
    key = SampleKey(scenario="C-1", agent="wonderbot")
    score = Score(metric="helpfulness", value=4.0, scripted=True)
    told = run((scenario("C-1"),), *conversation(key, (turn("hi", "25"),), {0: (score,)}))
    assert "scripted replies" in shown((told, decide(told)))
    assert "scripted replies" not in shown(passing())


def test_a_gate_over_the_run_alone_is_named() -> None:
    told, decision = passing(2)
    gate = GateRow("no_regression", 0.2, 0.05, "2 scenarios", "agenteval.yaml:9", Verdict.FAILED)
    told_last = shown((told, replace(decision, gates=(gate,), verdict=Verdict.FAILED, exit_code=1)))
    assert (
        told_last.splitlines()[-1] == "FAILED: no_regression failed, although all 2 scenarios passed (exit 1)"
    )
