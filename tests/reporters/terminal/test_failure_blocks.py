"""Each failure in at most twelve lines: what was said, what was broken, where, and how to see it all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from agenteval.core.decision import ScenarioDecision, Violation
from agenteval.core.event import Event
from agenteval.core.scenario import SampleKey, Scenario
from agenteval.core.score import Check, Verdict
from agenteval.core.trajectory import Step, Stop, StopReason, ToolCall, ToolResult, Turn
from agenteval.reporters.options import ReportOptions
from agenteval.reporters.terminal.failure_blocks import failure_blocks
from agenteval.reporters.terminal.screen import render_parts
from agenteval.reporters.words.facts import Facts
from agenteval.verdict.gates import decide
from agenteval.verdict.report import build_report
from tests.support.report_samples import DONE, conversation, started
from tests.support.verdict_runs import (
    BEHAVIOR,
    CUT,
    FAIL,
    LOST,
    PASS,
    UNSURE,
    Played,
    judge_failed,
    report_of,
    score,
)

P, F, U = Verdict.PASSED, Verdict.FAILED, Verdict.INCONCLUSIVE
Epochs = Mapping[str, Sequence[Played | None]]
KEY = SampleKey(scenario="a", agent="wonderbot")


def facts_of(epochs: Epochs, **more: Any) -> Facts:
    report = report_of(epochs, **more)
    return Facts(report, decide(report))


def talked(*turns: Turn, said: Mapping[Any, tuple[Any, ...]], stop: Stop = DONE) -> Facts:
    """One conversation of these turns."""
    scenario = Scenario(id="a", name="a", source="s/a.yaml:1")
    events = [started((scenario,), (KEY,)), *conversation(KEY, turns, said, stop=stop)]
    report = build_report(events)
    return Facts(report, decide(report))


def shown(facts: Facts, **options: Any) -> list[list[str]]:
    """The lines of each block."""
    told = ReportOptions(**{"root": "/r", **options})
    text = render_parts(failure_blocks(facts, told), told)
    return [block.splitlines() for block in text.split("\n\n") if block.strip()]


def only(facts: Facts, **options: Any) -> list[str]:
    (block,) = shown(facts, **options)
    return block


def check(
    name: str = "output.contains", detail: str = "no", passed: bool | None = False, **more: Any
) -> Check:
    return Check(name=name, detail=detail, passed=passed, **more)


def broken(*checks: Check) -> Played:
    return Played(checks)


# Which blocks, and their heads


def test_failed_scenarios_come_before_undecided_ones_and_what_never_ran_has_no_block() -> None:
    facts = facts_of({"open": [UNSURE], "good": [PASS], "never": [None], "bad": [FAIL]})
    assert [block[0].split()[1] for block in shown(facts)] == ["bad", "open"]
    assert shown(facts_of({"good": [PASS]})) == []


def test_a_block_from_its_head_to_its_command() -> None:
    head, user, agent, rule, foot = only(facts_of({"a": [FAIL]}))
    assert head.startswith("── a ─")
    assert head.endswith("─ s/a.yaml:1")
    assert len(head) == 100
    assert (user, agent) == ("  1 user   hi 0", "    agent  hello")
    assert rule == "  ✗ output.contains  not there"
    assert foot.startswith("  agenteval show a ")
    assert foot.endswith(" output.contains")
    assert len(foot) == 100


@pytest.mark.parametrize(
    ("played", "extent"),
    [
        ([FAIL], []),
        ([PASS, FAIL], ["1 of 2 conversations", "here epoch 2"]),
        ([FAIL, FAIL, None], ["2 of 3 conversations", "here epoch 1"]),
        ([UNSURE, FAIL], ["1 of 2 conversations", "here epoch 2"]),
        ([PASS, UNSURE], ["1 of 2 conversations", "here epoch 2"]),
    ],
)
def test_how_many_conversations_and_which_is_shown(played: list[Played | None], extent: list[str]) -> None:
    name, _, _ = only(facts_of({"a": played}))[0].removeprefix("── ").partition(" ─")
    assert name.split(" · ") == ["a", *extent]


def test_a_variant_is_named_beside_its_epoch() -> None:
    scenario = Scenario(id="a", name="a", source="s/a.yaml:1")
    keys = tuple(KEY.model_copy(update={"variant": name}) for name in ("one", "two"))
    events: list[Event] = [started((scenario,), keys)]
    for key in keys:
        events += conversation(key, (Turn(user="hi"),), {None: (check(),)})
    report = build_report(events)
    assert " · here one, epoch 1 " in only(Facts(report, decide(report)))[0]


def test_several_agents_are_named_and_asked_for() -> None:
    first, second = shown(facts_of({"a": [FAIL]}, agents=("x", "y")))
    assert first[0].startswith("── a · x ─")
    assert second[-1].startswith("  agenteval show a --agent y")


def test_a_row_of_data_has_its_place_too_and_further_rows_are_named() -> None:
    epochs: dict[str, list[Played | None]] = {f"o-{n}": [FAIL] for n in range(8)}
    rows = {
        name: {"pattern": "o-$n", "source": "s/o.yaml:1", "row": f"r.csv:{n + 2}"}
        for n, name in enumerate(epochs)
    }
    block = only(
        facts_of({**epochs, "o-9": [PASS]}, scenarios={**rows, "o-9": {**rows["o-0"], "row": "r.csv:9"}})
    )
    assert block[0].startswith("── o-0 · 8 of 9 rows ")
    assert block[0].endswith(" s/o.yaml:1 · r.csv:2")
    assert block[-2] == "  further rows: o-1, o-2, o-3, o-4, o-5 and 2 more"


def test_what_is_undecided_for_one_reason_is_told_once() -> None:
    facts = facts_of({"a": [UNSURE], "b": [UNSURE], "c": [broken(check("python", "other", None))]})
    first, second = shown(facts)
    assert "  the same: b" in first
    assert second[0].startswith("── c ")
    failed = facts_of({"a": [FAIL], "b": [FAIL]})
    assert [block[0].split()[1] for block in shown(failed)] == ["a", "b"]


@pytest.mark.parametrize(("count", "rest"), [(10, []), (11, ["… and 1 more"]), (14, ["… and 4 more"])])
def test_ten_blocks_are_shown(count: int, rest: list[str]) -> None:
    epochs: dict[str, list[Played | None]] = {f"s{n}": [broken(check(detail=f"{n}"))] for n in range(count)}
    blocks = shown(facts_of(epochs))
    assert [block[0].split()[1] for block in blocks[:10]] == [f"s{n}" for n in range(10)]
    assert [line.split(",")[0] for block in blocks[10:] for line in block] == rest


def test_a_place_that_does_not_fit_stands_below() -> None:
    facts = facts_of({"a" * 30: [FAIL]}, scenarios={"a" * 30: {"source": "/elsewhere/b.yaml:1"}})
    head, place, *_ = only(facts, width=50)
    assert head == f"── {'a' * 30} ──"
    assert place == "   /elsewhere/b.yaml:1"
    assert only(facts, width=56)[0].endswith(" /elsewhere/b.yaml:1")


def test_no_block_is_wider_than_a_hundred_columns() -> None:
    assert len(only(facts_of({"a": [FAIL]}), width=300)[0]) == 100


# The conversation


ONE, TWO, THREE = (Turn(user=f"q{n}", steps=(Step(text=f"a{n}"),)) for n in (1, 2, 3))


@pytest.mark.parametrize(
    ("said", "turn"),
    [
        ({1: (check(),)}, 2),
        ({0: (check(),), 1: (check(),)}, 1),
        ({2: (check(),)}, 3),
        ({None: (check(),)}, 3),
        ({None: (check(),), 1: (check("output.equals"),)}, 2),
    ],
)
def test_the_first_turn_with_a_broken_rule_is_shown_or_the_last(
    said: Mapping[int | None, tuple[Any, ...]], turn: int
) -> None:
    _, user, agent, *_ = only(talked(ONE, TWO, THREE, said=said))
    assert (user, agent) == (f"  {turn} user   q{turn}", f"    agent  a{turn}")


def test_a_rule_of_another_turn_says_so() -> None:
    said = {0: (check(detail="x"),), 2: (check(detail="y"),)}
    block = only(talked(ONE, TWO, THREE, said=said))
    assert block[3:5] == ["  ✗ output.contains  x", "  ✗ output.contains (turn 3)  y"]


def busy(calls: int) -> Turn:
    steps = [
        Step(tool_calls=(ToolCall(name=f"f{n}", args={}, result=ToolResult(value=n)),)) for n in range(calls)
    ]
    return Turn(user="hi", steps=(*steps, Step(text="done")))


@pytest.mark.parametrize(
    ("calls", "shown_lines", "left_out"),
    [(1, 4, ""), (3, 8, ""), (4, 8, "3 more lines"), (5, 8, "5 more lines")],
)
def test_as_many_calls_as_there_is_room_for(calls: int, shown_lines: int, left_out: str) -> None:
    block = only(talked(busy(calls), said={None: (check(),)}))
    assert len(block) <= 12
    told = block[1:-2]
    assert len(told) == shown_lines
    assert [line.strip() for line in told if "more line" in line] == ([f"… {left_out}"] if left_out else [])
    assert told[0] == "  1 user   hi"
    assert told[1].split() == ["→", "f0()"]
    assert told[-1] == "    agent  done"


def test_of_an_undecided_scenario_no_conversation_is_shown() -> None:
    assert all("hello" not in line for line in only(facts_of({"a": [UNSURE]})))


def test_a_long_answer_has_two_lines_and_a_long_message_one() -> None:
    turn = Turn(user="u" * 300, steps=(Step(text="a" * 300),))
    _, user, first, second, *_ = only(talked(turn, said={None: (check(),)}))
    assert (len(user), user[-1]) == (100, "…")
    assert first == "    agent  " + "a" * 89
    assert (second[:11].strip(), second[-1], len(second)) == ("", "…", 100)


def test_the_error_of_a_turn_is_not_told_twice() -> None:
    turn = Turn(user="hi", error="it raised ValueError")
    stop = Stop(reason=StopReason.AGENT_ERROR, detail="it raised ValueError")
    block = only(talked(turn, said={}, stop=stop))
    assert sum("ValueError" in line for line in block) == 1
    assert any("(see below)" in line for line in block)
    assert any("(the agent failed)" in line for line in block)


def test_that_the_turn_limit_ended_it_is_said() -> None:
    stop = Stop(reason=StopReason.MAX_TURNS)
    assert any("turn limit of 1" in line for line in only(talked(ONE, said={None: (check(),)}, stop=stop)))


# The rules


def rules(*checks: Check, **options: Any) -> list[str]:
    return list(only(talked(ONE, said={None: checks}), **options)[3:-1])


@pytest.mark.parametrize(
    ("where", "place"),
    [
        ("s/a.yaml:9", "line 9"),
        ("s/a.yaml:1", ""),
        ("", ""),
        ("s/b.yaml:9", "s/b.yaml:9"),
        ("default", "default"),
    ],
)
def test_the_place_of_a_rule(where: str, place: str) -> None:
    (line,) = rules(check(where=where), root="")
    assert line.split()[3:] == place.split()
    assert len(line) == (100 if place else len("  ✗ output.contains  no"))


def test_the_place_is_relative_to_the_root() -> None:
    (line,) = rules(check(where="/r/b.yaml:9"))
    assert line.endswith(" b.yaml:9")


@pytest.mark.parametrize(
    ("count", "names", "more"), [(4, 4, []), (5, 4, ["… and 1 more"]), (9, 4, ["… and 5 more"])]
)
def test_four_rules_are_shown(count: int, names: int, more: list[str]) -> None:
    lines = rules(*(check(f"limits.r{n}") for n in range(count)))
    assert [line.split()[1] for line in lines[:names]] == [f"limits.r{n}" for n in range(names)]
    assert [line.strip() for line in lines[names:]] == more


def test_a_rule_has_three_lines_while_there_is_room() -> None:
    text = "\n".join(f"l{n}" for n in range(5))
    assert [line.strip() for line in rules(check("tool_calls", text))] == ["✗ tool_calls  l0", "l1", "l2"]
    four = rules(*(check(f"limits.r{n}", text) for n in range(4)))
    assert [len([line for line in four if line.startswith("      ")]), len(four)] == [3, 7]


EXPECTED = "expected (contains): f(…)"


@pytest.mark.parametrize(
    ("detail", "lines"),
    [
        (f"{EXPECTED}\ncalled: g()\nmissing: f(a=1)", ["missing: f(a=1)", "called: g()"]),
        (f"{EXPECTED}\ncalled: g()\nmissing: h()", [EXPECTED, "called: g()", "missing: h()"]),
        ("not allowed: f(…)\nforbidden: f(a=1)", ["forbidden: f(a=1)"]),
        ("not allowed: f(…)\nmissing: f(a=1)", ["not allowed: f(…)", "missing: f(a=1)"]),
        ("other: f(…)\nmissing: f(a=1)", ["other: f(…)", "missing: f(a=1)"]),
    ],
)
def test_a_fault_that_names_the_expected_call_replaces_the_expectation(detail: str, lines: list[str]) -> None:
    first, *others = rules(check("tool_calls", detail))
    assert [first.removeprefix("  ✗ tool_calls  "), *(line.strip() for line in others)] == lines


def test_an_answer_that_is_shown_above_is_not_quoted_again() -> None:
    (line,) = rules(check(detail='no x in the answer "a1"'))
    assert line == "  ✗ output.contains  no x"
    (other,) = rules(check(detail='no x in the answer "b"'))
    assert other.endswith('"b"')


def test_the_answer_of_another_turn_is_quoted() -> None:
    said = {0: (check(),), 1: (check(detail='no x in the answer "a1"'),)}
    assert any('in the answer "a1"' in line for line in only(talked(ONE, TWO, said=said)))


def test_the_lowest_scores_stand_below_their_threshold() -> None:
    low = Played((score("stars", 1.0, reason="it was rude"),), turns=((),))
    block = only(facts_of({"a": [low]}, thresholds={"stars": 3}))
    at = next(n for n, line in enumerate(block) if line.startswith("  ✗ stars"))
    assert block[at + 1].strip() == "stars 1 (epoch 1): it was rude"


def test_a_judge_that_fails_in_every_turn_is_shown_once() -> None:
    turns = tuple((judge_failed(BEHAVIOR),) for _ in range(3))
    block = only(facts_of({"a": [Played(turns=turns)]}))
    assert sum("no answer" in line for line in block) == 1
    assert any("the judge failed" in line for line in block)


@pytest.mark.parametrize(
    ("played", "text"), [(LOST, "not the agent's fault"), (CUT, "(cut off)"), (UNSURE, "(not decided")]
)
def test_whose_fault_it_is(played: Played, text: str) -> None:
    assert any(text in line for line in only(facts_of({"a": [played]})))


def test_a_rule_of_the_scenario_stands_beside_the_conversation() -> None:
    report = report_of({"a": [FAIL, PASS]})
    decided = decide(report)
    own = {
        ("a", "bot"): ScenarioDecision(F, (Violation("pass_rate", "1 of 2", ""), Violation("u", "?", "", U)))
    }
    block = only(Facts(report, replace(decided, scenarios=own)))
    assert [line.strip() for line in block[3:-1]] == [
        "✗ output.contains  not there",
        "✗ pass_rate  1 of 2",
        "? u  ?",
    ]
    alone = only(Facts(report, replace(decided, samples={}, scenarios=own)))
    assert alone[1].strip() == "✗ pass_rate  1 of 2"


@pytest.mark.parametrize(
    ("remedy", "lines"),
    [
        ("wait", ["? python  down — wait"]),
        ("set `" + "a " * 80 + "`", ["? python  down", "— set `a a"]),
        ("one\ntwo", ["? python  down", "— one", "two"]),
    ],
)
def test_a_remedy_is_never_cut(remedy: str, lines: list[str]) -> None:
    block = only(facts_of({"a": [broken(check("python", f"down — {remedy}", None))]}))
    found = [line.strip() for line in block[1 : 1 + len(lines)]]
    assert all(line.startswith(begin) for line, begin in zip(found, lines, strict=True))
    flat = " ".join(" ".join(line.split()) for line in block)
    assert " ".join(remedy.split()) in flat


def test_a_long_reason_goes_on_below() -> None:
    words = " ".join(f"w{n}" for n in range(60))
    first, second, third = rules(check(detail=words))
    assert len(first) <= 100
    assert second.startswith("      w")
    assert third.endswith("…") or third.endswith("w59")
    assert " ".join(f"{first} {second} {third}".split()).count("w") >= 50


# The command


def test_the_run_is_named_in_the_command() -> None:
    assert only(facts_of({"a": [FAIL]}), run="r1")[-1].startswith("  agenteval show r1 a")


def test_the_fingerprint_stands_beside_the_command_if_there_is_room() -> None:
    wide, narrow = (only(facts_of({"a": [FAIL]}), width=width)[-1] for width in (60, 59))
    assert "#" in wide
    assert len(wide) == 60
    assert narrow == "  agenteval show a"


def test_a_long_place_stands_below_its_rule() -> None:
    where = f"/elsewhere/{'x' * 60}.yaml:9"
    assert [line.strip() for line in rules(check(where=where))] == ["✗ output.contains  no", where]
    many = rules(*(check(f"limits.r{n}", where=where) for n in range(4)))
    assert [sum(name in line for line in many) for name in ("limits", where)] == [4, 3]


def test_what_is_said_below_fits_the_width() -> None:
    lines = only(facts_of({"a": [LOST]}), width=40)
    assert all(len(line) <= 40 for line in lines)
