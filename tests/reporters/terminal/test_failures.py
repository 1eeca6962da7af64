"""Each failure in full (``-v``): reasons, turns, fault and command; and the other conversations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from agenteval.core.decision import ScenarioDecision, Violation
from agenteval.core.scenario import SampleKey, Scenario
from agenteval.core.score import Check, Score, Verdict
from agenteval.core.trajectory import Step, Stop, StopReason, Turn
from agenteval.reporters.options import ReportOptions
from agenteval.reporters.terminal.failures import (
    conversation,
    failure_section,
    fault_text,
    transcripts,
    turn_lines,
    unreported_lines,
)
from agenteval.reporters.terminal.screen import Part, render_parts
from agenteval.reporters.words.facts import Facts
from agenteval.reporters.words.transcript_lines import TranscriptLine
from agenteval.verdict.gates import decide
from agenteval.verdict.report import build_report
from tests.support import report_samples
from tests.support.verdict_runs import (
    BEHAVIOR,
    FAIL,
    GOAL,
    LOST,
    PASS,
    UNSURE,
    Played,
    judge_failed,
    only_sample,
    report_of,
    score,
)

P, F, U = Verdict.PASSED, Verdict.FAILED, Verdict.INCONCLUSIVE
Epochs = Mapping[str, Sequence[Played | None]]
KEY = SampleKey(scenario="a", agent="wonderbot")


def facts_of(epochs: Epochs, **more: Any) -> Facts:
    report = report_of(epochs, **more)
    return Facts(report, decide(report))


def talked(
    turns: Sequence[Turn], said: Mapping[Any, tuple[Any, ...]], stop: Stop = report_samples.DONE
) -> Facts:
    scenario = Scenario(id="a", name="a", source="s/a.yaml:1")
    events = [report_samples.started((scenario,), (KEY,))]
    report = build_report([*events, *report_samples.conversation(KEY, tuple(turns), said, stop=stop)])
    return Facts(report, decide(report))


def lines(facts: Facts, part: Part = failure_section, **options: Any) -> list[str]:
    told = ReportOptions(**{"root": "/r", **options})
    return render_parts(part(facts, told), told).splitlines()


def blocks(facts: Facts, **options: Any) -> list[list[str]]:
    found: list[list[str]] = [[]]
    for line in lines(facts, **options)[1:]:
        found += [[]] if not line else []
        found[-1] += [line] if line else []
    return [block for block in found if block]


def check(
    name: str = "output.contains", detail: str = "no", passed: bool | None = False, **more: Any
) -> Check:
    return Check(name=name, detail=detail, passed=passed, **more)


def broken(*checks: Check) -> Played:
    return Played(checks)


# Which, and in which order


def test_a_run_in_which_all_passed_has_no_section() -> None:
    assert lines(facts_of({"a": [PASS]})) == []


def test_decisive_failures_come_first_and_failed_ones_before_undecided_ones() -> None:
    facts = facts_of({"open": [UNSURE], "bad": [FAIL], "tolerated": [FAIL], "never": [None, None]})
    scenarios = {**facts.decision.scenarios, ("tolerated", "bot"): ScenarioDecision(P)}
    told = Facts(facts.report, replace(facts.decision, scenarios=scenarios))
    heads = [block[0].split()[1] for block in blocks(told)[:-1]]
    assert heads == ["bad", "open", "tolerated"]
    assert [line.strip() for line in blocks(told)[-1]] == ["1 scenario never ran: never"]


def test_a_failure_from_its_name_to_its_command() -> None:
    (block,) = blocks(facts_of({"a": [FAIL]}))
    head, reason, covers, user, agent, repeat = block
    assert head == "  ✗ a  s/a.yaml:1"
    assert reason == "    output.contains: not there"
    assert covers.startswith("    #")
    assert covers.endswith(" covers output.contains")
    assert (user, agent) == ("    user  hi 0", "    agent hello")
    assert repeat == "    repeat: agenteval run s/a.yaml -s a"


@pytest.mark.parametrize(
    ("played", "words"),
    [
        ([FAIL, FAIL], "the same in epoch 2"),
        ([FAIL, PASS, FAIL, FAIL], "the same in epochs 3, 4"),
    ],
)
def test_epochs_that_failed_alike_are_told_once(played: list[Played | None], words: str) -> None:
    (block,) = blocks(facts_of({"a": played}))
    assert block[0].startswith("  ✗ a · epoch 1 ")
    assert any(line.strip() == words for line in block)


@pytest.mark.parametrize(
    "played",
    [[FAIL, broken(check(detail="other"))], [UNSURE, broken(check("python", "it raised"))]],
    ids=["reason", "verdict"],
)
def test_epochs_that_differ_are_told_apart(played: list[Played | None]) -> None:
    assert len(blocks(facts_of({"a": played}))) == 2


def test_scenarios_and_agents_are_told_apart() -> None:
    heads = [
        block[0].split("  ")[1] for block in blocks(facts_of({"a": [FAIL], "b": [FAIL]}, agents=("x", "y")))
    ]
    assert heads == ["✗ a · x", "✗ a · y", "✗ b · x", "✗ b · y"]


def test_ten_are_shown_in_full_and_the_others_on_a_line() -> None:
    epochs: dict[str, list[Played | None]] = {f"s{n}": [FAIL, FAIL, FAIL] for n in range(11)}
    found = blocks(facts_of(epochs))
    assert len(found) == 11
    assert found[-1] == ["  ✗ s10 · epoch 1 (and 2 more epochs)  output.contains: not there"]
    more = blocks(facts_of({**epochs, "s11": [FAIL]}))[-1]
    assert [each.split()[1] for each in more] == ["s10", "s11"]
    (long,) = blocks(facts_of({**epochs, "s10": [broken(check(detail="x" * 200))]}), width=60)[-1:]
    assert len(long[0]) <= 60
    assert long[0].endswith("…")


# Fault and tolerance


@pytest.mark.parametrize(
    ("played", "text"),
    [
        (FAIL, ""),
        (LOST, "(not the agent's fault: network, provider or agenteval itself)"),
        (replace(LOST, stop=StopReason.SIMULATOR), "(not the agent's fault: the simulated user)"),
        (replace(LOST, stop=StopReason.AGENT_ERROR), "(the agent failed)"),
        (replace(LOST, stop=StopReason.BUDGET), "(stopped by the budget)"),
        (replace(LOST, stop=None), "(cut off)"),
    ],
)
def test_whose_fault_it_is_stands_in_the_head(played: Played, text: str) -> None:
    head = blocks(facts_of({"a": [played]}), width=200)[0][0]
    assert head.partition("s/a.yaml:1")[2].strip() == text


def test_that_a_failure_is_tolerated_or_only_reported_stands_in_the_head() -> None:
    facts = facts_of({"a": [LOST]})
    tolerated = Facts(facts.report, replace(facts.decision, verdict=P))
    assert blocks(tolerated, width=200)[0][0].endswith("; tolerated)")
    reported = Facts(facts.report, replace(facts.decision, is_reported=True))
    assert blocks(reported, width=200)[0][0].endswith("; reported)")


DETECTOR, UNCLEAR = judge_failed("repeated_tool_call"), judge_failed(GOAL, unclear=True)
OPEN = check("criteria", passed=None, by="m")


@pytest.mark.parametrize(
    ("fault", "items", "fact"),
    [
        ("judge", (), "the judge failed"),
        ("judge", (judge_failed(BEHAVIOR),), "the judge failed"),
        ("judge", (DETECTOR,), "a detector failed"),
        ("judge", (DETECTOR, judge_failed(BEHAVIOR)), "the judge failed"),
        ("judge", (UNCLEAR,), "unclear to the judge"),
        ("judge", (UNCLEAR, DETECTOR), "the judge failed"),
        ("judge", (OPEN,), "unclear to the judge"),
        ("judge", (OPEN, judge_failed(BEHAVIOR)), "the judge failed"),
        ("undecided", (), "depends on something unknown"),
        ("undecided", (UNCLEAR,), "unclear to the judge"),
        ("undecided", (OPEN,), "unclear to the judge"),
        ("undecided", (check("criteria", passed=None),), "depends on something unknown"),
        ("undecided", (check("criteria", passed=False, by="m"),), "depends on something unknown"),
        ("undecided", (check("other", passed=None, by="m"),), "depends on something unknown"),
        ("agent", (UNCLEAR,), "the agent failed"),
        ("author", (), "mistake in the scenario"),
        ("recording", (), "unreadable record"),
        ("new", (), "new"),
    ],
)
def test_a_fault_in_words(fault: str, items: tuple[Any, ...], fact: str) -> None:
    sample = only_sample(report_of({"a": [Played(items, turns=((),))]}))
    assert fact in fault_text(fault, sample)


def test_a_fault_without_a_conversation() -> None:
    assert "the judge failed" in fault_text("judge", None)
    assert fault_text("interrupted", None) == "cut off"


# Reasons


def reasons(*checks: Check, **options: Any) -> list[str]:
    (block,) = blocks(talked([], {None: checks}), **options)
    shown = [line[4:] for line in block[1:-1]]
    return shown[: next(n for n, line in enumerate(shown) if line.startswith("#"))]


@pytest.mark.parametrize(
    ("where", "width", "shown"),
    [
        ("/r/b.yaml:9", 100, ["output.contains: no  b.yaml:9"]),
        ("s/a.yaml:1", 100, ["output.contains: no"]),
        ("", 100, ["output.contains: no"]),
        ("/r/b.yaml:9", 33, ["output.contains: no  b.yaml:9"]),
        ("/r/b.yaml:9", 32, ["output.contains: no", "b.yaml:9"]),
    ],
)
def test_the_place_of_a_rule(where: str, width: int, shown: list[str]) -> None:
    assert reasons(check(where=where), width=width) == shown


@pytest.mark.parametrize(("count", "last"), [(12, "l11"), (13, "… 1 more line"), (20, "… 8 more lines")])
def test_a_reason_has_twelve_lines(count: int, last: str) -> None:
    found = reasons(check(detail="\n".join(f"l{n}" for n in range(count))))
    assert found[-1] == last
    assert len(found) == min(count, 13)


def test_a_remedy_among_the_lines_that_are_left_out_is_told() -> None:
    detail = "\n".join([*(f"l{n}" for n in range(13)), "down — wait"])
    (block,) = blocks(facts_of({"a": [broken(check("python", detail, None))]}))
    told = [line.strip() for line in block]
    assert told[told.index("… 2 more lines") + 1] == "— wait"


def test_three_fingerprints_are_shown() -> None:
    facts = facts_of({"a": [FAIL]})
    key = only_sample(facts.report).key
    names = tuple(f"n{n}" for n in range(4))
    rule = Violation("tool_calls", "no", "", fingerprints=names, covers=tuple(f"c{n}" for n in range(4)))
    decided = replace(facts.decision.samples[key], violations=(rule,))
    block, _ = blocks(Facts(facts.report, replace(facts.decision, samples={key: decided})))
    assert [line.strip() for line in block if "#" in line] == [f"#n{n} covers c{n}" for n in range(3)]


def test_a_rule_over_all_conversations_shows_its_evidence() -> None:
    low = Played((score("stars", 1.0, reason="rude"),), turns=((),))
    (block,) = blocks(facts_of({"a": [low]}, thresholds={"stars": 3}))
    assert block[-2] == "    stars 1 (epoch 1): rude"
    assert all("hello" not in line for line in block)


# The conversation


TURNS = [Turn(user=f"q{n}", steps=(Step(text=f"a{n}"),)) for n in range(1, 6)]


@pytest.mark.parametrize(
    ("said", "shown", "note"),
    [
        ({1: (check(),)}, [2], ""),
        ({0: (check(),), 3: (check(),)}, [1, 4], ""),
        ({n: (check(),) for n in range(3)}, [1, 2, 3], ""),
        ({n: (check(),) for n in range(5)}, [1, 2, 3], "… and turns 4, 5"),
        ({None: (check(),)}, [1, 2, 3, 4, 5], ""),
        ({None: (check("x"),), 1: (check(),)}, [1, 2, 3, 4, 5], ""),
    ],
)
def test_the_turns_in_which_rules_were_broken(
    said: Mapping[Any, tuple[Any, ...]], shown: list[int], note: str
) -> None:
    (block,) = blocks(talked(TURNS, said))
    assert [int(line.split()[1][1:]) for line in block if line.startswith("    user")] == shown
    assert [line.strip() for line in block if "… and turns" in line] == ([note] if note else [])


def test_a_rule_of_a_turn_that_is_not_there_shows_the_whole_conversation() -> None:
    facts = talked(TURNS[:2], {1: (check(),)})
    decided = facts.decision.samples[KEY]
    gone = {KEY: replace(decided, violations=(Violation("output.contains", "no", "", turn=2),))}
    block, *_ = blocks(Facts(facts.report, replace(facts.decision, samples=gone)))
    assert [line.split()[1] for line in block if line.startswith("    user")] == ["q1", "q2"]


def test_the_scores_of_a_conversation_stand_below_it() -> None:
    low = score("stars", 2.0, reason="it was rude")
    (block,) = blocks(talked(TURNS[:1], {None: (check(), low)}))
    assert any("it was rude" in line for line in block)


def line(speaker: Any, text: str, turn: int | None = 0) -> TranscriptLine:
    return TranscriptLine(speaker, text, turn)


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ([line("error", "boom")], [line("error", "(see above)")]),
        ([line("error", "boo…")], [line("error", "(see above)")]),
        ([line("error", "other")], [line("error", "other")]),
        ([line("agent", "boom")], [line("agent", "boom")]),
        ([line("error", "x"), line("note", "(agent_error: x)")], [line("error", "x")]),
        ([line("note", "(budget: boom)")], []),
        ([line("note", "(budget: boo…)")], []),
        ([line("note", "(budget: other)")], [line("note", "(budget: other)")]),
        ([line("note", "(cut off)")], [line("note", "(cut off)")]),
        ([line("note", "… boom")], [line("note", "… boom")]),
        ([], []),
    ],
)
def test_what_repeats_a_reason_is_left_out(given: list[TranscriptLine], left: list[TranscriptLine]) -> None:
    assert unreported_lines(given, ["a\nboom", "b"]) == left


def test_the_reference_says_where_the_reason_stands() -> None:
    assert unreported_lines([line("error", "boom")], ["boom"], "below")[0].text == "(see below)"


def test_the_lines_of_one_turn_keep_its_number_and_only_the_last_says_how_it_ended() -> None:
    stop = Stop(reason=StopReason.MAX_TURNS)
    sample = only_sample(talked(TURNS[:2], {}, stop).report)
    assert [(each.text, each.turn) for each in turn_lines(sample, 0)] == [("q1", 0), ("a1", 0)]
    *_, end = turn_lines(sample, 1)
    assert (end.speaker, end.turn) == ("note", None)


def test_agents_are_named_in_one_turn_as_in_all() -> None:
    turns = [Turn(user="q", steps=(Step(text="a", agent=name),)) for name in "xy"]
    sample = only_sample(talked(turns, {}).report)
    assert [each.text for each in turn_lines(sample, 0)] == ["q", "(x) a"]


def rows(*given: TranscriptLine) -> list[str]:
    return render_parts([conversation(given)], ReportOptions()).splitlines()


def test_turns_are_numbered_if_there_are_several() -> None:
    assert rows(line("user", "a"), line("agent", "b")) == ["user  a", "agent b"]
    assert rows(line("user", "a", 0), line("user", "b", 2)) == ["turn 1", "user   a", "turn 3", "user   b"]
    assert rows(line("user", "a", 1), line("agent", "b", 1)) == ["turn 2", "user   a", "agent  b"]
    assert rows(line("user", "a", 1), line("note", "(end)", None)) == ["turn 2", "user   a", "       (end)"]


@pytest.mark.parametrize(
    ("speaker", "sign"),
    [("user", "user"), ("agent", "agent"), ("call", "→"), ("result", "←"), ("error", "error")],
)
def test_each_speaker_has_a_sign_and_an_empty_message_is_shown(speaker: Any, sign: str) -> None:
    assert rows(line(speaker, "")) == [f"{sign} (empty)"]


# The other conversations


def test_the_conversations_that_are_not_shown_above() -> None:
    facts = facts_of({"a": [FAIL, FAIL, PASS], "b": [UNSURE]})
    found = lines(facts, transcripts)
    assert found[0] == "Other conversations"
    assert [each.strip() for each in found if each[2:3] in "✓✗?" and each[:3].strip()] == [
        "✗ a · epoch 2",
        "✓ a · epoch 3",
    ]


def test_if_none_is_shown_above_they_are_all_the_conversations() -> None:
    found = lines(facts_of({"a": [PASS]}), transcripts)
    assert found[:4] == ["Conversations", "  ✓ a", "    user  hi 0", "    agent hello"]
    assert lines(facts_of({"a": [FAIL]}), transcripts) == []
    judged = facts_of({"a": [Played((Score(metric="stars", value=5, reason="kind"),))]})
    assert any("stars" in line for line in lines(judged, transcripts))
