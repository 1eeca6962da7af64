"""Answers, limits, test cases and the tool world through the command line, each with its counter-example."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.front_door.test_expected_calls import PERFORMER, Outcome, Pair, Turn, call, do, run_pairs
from tests.support.kit import Project, failed_checks


def output(id: str, kind: str, value: Any, good: str, bad: str) -> Pair:
    """A pair over one answer."""
    return Pair(id, {"expect": {"output": {kind: value}}}, [[good]], [[bad]], f"output.{kind}")


def over_turns(
    id: str, expect: dict[str, Any], good: list[Turn], bad: list[Turn], check: str, turn: int | None
) -> Pair:
    """A pair over several turns; ``expect`` stands at the turn, at the scenario if ``turn`` is ``None``."""
    entry: dict[str, Any] = {"expect": expect}
    if turn is not None:
        turns: list[Any] = [f"message {index}" for index in range(len(good))]
        turns[turn] = {"user": turns[turn], "expect": expect}
        entry = {"turns": turns}
    return Pair(id, entry, good, bad, check, turn)


TEXT = [
    output("contains", "contains", ["BK-001"], "Booked: BK-001.", "Booked."),
    output("contains-all", "contains", ["BK-001", "10:30"], "BK-001 at 10:30", "BK-001 at 11:30"),
    output("contains-no-case", "contains", ["SunNY"], "sunny today", "cloudy today"),
    output("not-contains-no-case", "not_contains", ["secret"], "nothing", "the SECRET is out"),
    output("matches", "matches", "^total: [0-9]+$", "total: 12", "the total: 12"),
    output("matches-no-case", "matches", "^Done", "DONE, all of it", "not done"),
    output("number-longer", "contains", ["25"], "It is 25 degrees.", "It is 125 degrees."),
    output("number-in-year", "contains", ["25"], "25°C", "in 2025"),
    output("number-then-digits", "contains", ["25"], "(25)", "250"),
    output("number-with-separator", "contains", ["25"], "25, 30 and 40", "25,000"),
    output("number-thousands", "contains", ["10000"], "it costs $10,000.", "it costs $110,000."),
    output("number-millions", "contains", ["1234567"], "1,234,567 people", "1,234,568 people"),
    output("number-integer-part", "contains", ["333"], "about 333.33", "about 1333.33"),
    output("number-end-of-sentence", "contains", ["25"], "The answer is 25.", "The answer is 52."),
    output("number-not-the-decimals", "contains", ["25"], "25 euros", "3.25 euros"),
    output("number-in-bold", "contains", ["25"], "**2**5 degrees", "12**5** degrees"),
    output("amount-in-bold", "contains", ["$25"], "$**25**", "$**25**0"),
    output("pin-in-bold", "not_contains", ["4711"], "The PIN is 4*7*11.", "The PIN is 4**7**11."),
    output("a-range-has-no-minus", "not_contains", ["-25"], "20-25 degrees", "20 to -25 degrees"),
    output("an-underscore-is-no-separator", "contains", ["1000"], "1,000 points", "1_000 points"),
    output("a-corrected-number", "contains", ["30"], "~~25~~30", "~~25~~35"),
    output("number-absent", "not_contains", ["25"], "125 and 2025", "just 25"),
    output("number-absent-thousands", "not_contains", ["10000"], "110,000", "10,000"),
    over_turns("contains-some-answer", {"output": {"contains": ["x-ray", "yodel"]}},
               [["x-ray"], ["yodel"]], [["x-ray"], ["none"]], "output.contains", None),
    over_turns("matches-some-answer", {"output": {"matches": "^yes"}}, [["yes"], ["no"]],
               [["no"], ["no yes"]],
               "output.matches", None),
    over_turns("not-contains-every-answer", {"output": {"not_contains": ["leak"]}}, [["fine"], ["fine"]],
               [["a leak"], ["fine"]], "output.not_contains", None),
    over_turns("contains-at-turn", {"output": {"contains": ["late"]}}, [["early"], ["late"]],
               [["late"], ["early"]],
               "output.contains", 1),
    over_turns("not-contains-at-turn", {"output": {"not_contains": ["leak"]}}, [["leak"], ["fine"]],
               [["fine"], ["leak"]], "output.not_contains", 1),
    over_turns("matches-at-turn", {"output": {"matches": "^yes"}}, [["no"], ["yes"]], [["yes"], ["no"]],
               "output.matches", 1),
]  # fmt: skip

ANSWER = [
    Pair("empty-answer", {"checks": "none"}, [["hi"], ["hi"]], [["hi"], [""]], "answer", 1),
    Pair("blank-answer", {"checks": "none"}, [["hi"], ["hi"]], [["hi"], [" \n"]], "answer", 1),
    Pair("empty-allowed", {"checks": "none", "turns": ["1", {"user": "2", "expect": {"allow_empty": True}}]},
         [["hi"], [""]], [[""], [""]], "answer", 0),
    Pair("empty-allowed-anywhere", {"expect": {"allow_empty": True, "output": {"not_contains": ["no"]}}},
         [[""], [""]], [["no"], [""]], "output.not_contains"),
    Pair("crash", {"checks": "none"}, [["hi"], ["hi"]], [["hi"], ["@raise"]], "no_error"),
]  # fmt: skip


def used(input_tokens: int, output_tokens: int) -> dict[str, Any]:
    return {"text": "ok", "usage": {"input_tokens": input_tokens, "output_tokens": output_tokens}}


def asleep(sleep_s: float) -> dict[str, Any]:
    return {"text": "ok", "sleep_s": sleep_s}


STEP = call("get")
LIMITS = [
    over_turns("steps", {"limits": {"steps": 3}}, [do("ok"), do("ok", STEP)],
               [do("ok", STEP), do("ok", STEP)], "limits.steps", None),
    over_turns("steps-at-turn", {"limits": {"steps": 1}}, [do("ok", STEP), do("ok")],
               [do("ok"), do("ok", STEP)], "limits.steps", 1),
    over_turns("steps-at-once", {"limits": {"steps": 2}}, [[[STEP, STEP, STEP], "ok"]],
               [do("ok", STEP, STEP)], "limits.steps", None),
    over_turns("calls", {"limits": {"tool_calls": 1}}, [do("ok"), do("ok", STEP)],
               [do("ok", STEP), do("ok", STEP)], "limits.tool_calls", None),
    over_turns("calls-at-turn", {"limits": {"tool_calls": 0}}, [do("ok"), do("ok", STEP)],
               [do("ok", STEP), do("ok")], "limits.tool_calls", 0),
    over_turns("tokens", {"limits": {"tokens": 20}}, [[used(4, 6)], [used(9, 1)]],
               [[used(4, 6)], [used(9, 2)]], "limits.tokens", None),
    over_turns("tokens-at-turn", {"limits": {"tokens": 10}}, [[used(50, 0)], [used(9, 1)]],
               [[used(1, 1)], [used(9, 2)]], "limits.tokens", 1),
]  # fmt: skip

CASES = [
    Pair("case-tool", {"input": "weather?", "expected_tools": ["get"]}, [do("sunny", STEP)], [do("sunny")],
         "tool_calls"),
    Pair("case-tools", {"input": "both", "expected_tools": ["get", "put"]}, [do("ok", call("put"), STEP)],
         [do("ok", STEP)], "tool_calls"),
    Pair("case-words", {"input": "weather?", "expected_output_contains": ["25", "sunny"]}, [["SUNNY, 25"]],
         [["sunny, 125"]], "output.contains"),
    Pair("case-alone", {"input": "hi"}, [["hello"]], [[""]], "answer", 0),
    Pair("case-empty-input", {"input": ""}, [["You said nothing."]], [["@raise"]], "no_error"),
    Pair("case-with-expect", {"input": "hi", "expect": {"limits": {"steps": 1}, "output": {"matches": "^h"}}},
         [["hello"]], [["oh hello"]], "output.matches"),
    Pair("case-robust", {"input": "?", "category": "robustness"}, [["Sorry?"]], [["@raise"]], "no_error"),
]  # fmt: skip

PAIRS = [*TEXT, *ANSWER, *LIMITS, *CASES]


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    tools = {"get": {"returns": {"ok": True}}, "put": {"returns": {"ok": True}}}
    return run_pairs(tmp_path_factory.mktemp("output"), PAIRS, tools=tools)


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.id)
def test_the_agent_with_the_bug_is_red_and_the_fixed_one_green(pair: Pair, outcome: Outcome) -> None:
    outcome.holds(pair)


def test_cases_carry_their_three_dimensions_and_scenarios_do_not(outcome: Outcome) -> None:
    def three(id: str, agent: str) -> tuple[Any, Any, Any]:
        sample = outcome.sample(id, agent)
        return sample["tool_accuracy"], sample["output_correct"], sample["robustness_pass"]

    assert three("case-tool", "good")[0] in (True, 1)
    assert three("case-tool", "bad")[0] in (False, 0)
    assert 0 <= three("case-tools", "bad")[0] < 1
    assert three("case-words", "good")[1] is True
    assert three("case-words", "bad")[1] is False
    assert three("case-robust", "good")[2] is True
    assert three("case-robust", "bad")[2] is False
    assert three("case-empty-input", "good")[2] is True
    assert "tool_accuracy" not in outcome.sample("contains")


def test_an_empty_input_is_sent_as_it_is(outcome: Outcome) -> None:
    assert outcome.sample("case-empty-input")["turns"][0]["user"] == ""


def test_a_broken_turn_is_kept_with_its_error_and_ends_the_conversation(outcome: Outcome) -> None:
    sample = outcome.sample("crash", "bad")
    assert (sample["fault"], sample["stop"]) == ("agent", "agent_error")
    first, second = sample["turns"]
    assert first["agent"] == "hi"
    assert "the agent broke here" in second["error"]


def test_a_slow_agent_breaks_the_latency_limit(tmp_path: Path) -> None:
    pairs = [
        over_turns("slow", {"limits": {"latency_ms": 50}}, [["ok"]], [[asleep(0.1)]], "limits.latency_ms",
                   None),
        over_turns("slow-turn", {"limits": {"latency_ms": 50}}, [["ok"]] * 2, [["ok"], [asleep(0.1)]],
                   "limits.latency_ms", 1),
        over_turns("quick", {"limits": {"latency_ms": 600000}}, [["ok"]], [[asleep(0.1)]], "", None),
    ]  # fmt: skip
    outcome = run_pairs(tmp_path, pairs)
    assert failed_checks(outcome.sample("slow", "bad")) == {(None, "limits.latency_ms")}
    assert (1, "limits.latency_ms") in failed_checks(outcome.sample("slow-turn", "bad"))
    assert failed_checks(outcome.sample("quick", "bad")) == set()
    assert outcome.sample("slow-turn", "bad")["turns"][1]["latency_ms"] > 50


World = dict[str, list[dict[str, Any]]]
WORLD = r"""
defaults:
  checks: none
  tools:
    echo:
      returns: {city: "${args.city}", note: "in ${args.city}!", all: ["${args.n}"], escaped: "$${args.city}"}
    text: {returns: plain text}
    number: {returns: 3}
    nothing: {returns: null}
    "false": {returns: false}
    blank: {returns: ""}
    list: {returns: [1, "é"]}
    scalars: {returns: {a: no, b: 12:30, c: 2026-11-21, d: 1_000, e: 0x10, f: 1e3, g: ~, h: yes}}
    broken: {error: Connection timeout}
    steps: {sequence: [{error: Server busy}, {returns: "order ${args.n}"}, {returns: {last: true}}]}
    strict:
      parameters: {type: object, properties: {city: {type: string}}, required: [city]}
      sequence: [{returns: first}, {returns: second}]
    sync: {python: "mocks.py:sync"}
    later: {python: "mocks.py:later"}
    refuse: {python: "mocks.py:refuse"}
scenarios:
  - {id: results, name: results, turns: [go]}
  - {id: echo, name: echo, turns: [go]}
  - {id: sequence, name: sequence, turns: [one, two], epochs: 3}
  - {id: schema, name: schema, turns: [go]}
  - {id: python, name: python, turns: [one, two]}
  - {id: unknown, name: unknown, turns: [one, two]}
  - {id: known, name: known, turns: [one, two]}
"""

MOCKS = """
from agenteval import ToolError

def sync(args, ctx):
    return {"index": ctx.call_index, "turn": ctx.turn, "sample": ctx.sample is not None, "args": args}

async def later(args, ctx):
    return [args["x"] + 1]

def refuse(args, ctx):
    raise ToolError("no such order")

def crash(args, ctx):
    raise KeyError("a defect of the mock")
"""

PLAIN = ["text", "number", "nothing", "false", "blank", "list", "broken"]
STEPS = [call("steps", n=7), call("steps", n="8")]
PLAYS: dict[str, list[Turn]] = {
    "results": [do("@results", *(call(name) for name in PLAIN), call("scalars"))],
    "echo": [do("@results", call("echo", city="Rome", n=3), call("echo", city="Oslo", n={"a": [None]}))],
    "sequence": [do("@results", *STEPS), do("@results", *STEPS)],
    "schema": [do("@results", *(call("strict", **a) for a in ({"city": 5}, {}, *[{"city": ""}] * 2)))],
    "python": [do("@results", call("sync"), call("later", x=1)),
    do("@results", call("refuse"), call("sync", a=1))],
    "unknown": [do("ok"), do("@results", call("text"), call("txet"))],
    "known": [do("ok"), do("@results", call("text"))],
}  # fmt: skip


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """The samples of each scenario of the tool world."""
    project = Project(tmp_path_factory.mktemp("world"))
    project.agent(PERFORMER)
    project.config(target="agent.py:good")
    project.write("scripts.json", json.dumps({name: {"good": play} for name, play in PLAYS.items()}))
    project.scenarios(WORLD)
    project.write("scenarios/mocks.py", MOCKS)
    done = project.run()
    assert done.code == 1, done.all
    return {s["id"]: s["samples"] for s in project.results()["scenarios"]}


SEEN = {
    # the tools' results as the agent saw them: texts as they are, all else as JSON
    "results": [
        "plain text", "3", "null", "false", "", [1, "é"], {"error": "Connection timeout"},
        {"a": "no", "b": "12:30", "c": "2026-11-21", "d": "1_000", "e": 16, "f": 1000.0, "g": None,
         "h": "yes"},
    ],
    # arguments are echoed with their types
    "echo": [
        {"city": "Rome", "note": "in Rome!", "all": [3], "escaped": "${args.city}"},
        {"city": "Oslo", "note": "in Oslo!", "all": [{"a": [None]}], "escaped": "${args.city}"},
    ],
    # a sequence moves on with each call, and starts anew for each sample
    "sequence": [{"error": "Server busy"}, "order 8", {"last": True}, {"last": True}],
    "python": [
        {"index": 0, "turn": 0, "sample": True, "args": {}}, [2], {"error": "no such order"},
        {"index": 1, "turn": 1, "sample": True, "args": {"a": 1}},
    ],
}  # fmt: skip


def seen(sample: dict[str, Any]) -> list[Any]:
    """The results that the agent saw, one a line."""
    lines = [line for turn in sample["turns"] for line in turn["agent"].split("\n")]
    return [json.loads(line) if line.startswith(("{", "[")) else line for line in lines]


@pytest.mark.parametrize("name", SEEN)
def test_results_reach_the_agent(world: World, name: str) -> None:
    assert [sample["epoch"] for sample in world[name]] == [0, 1, 2][: 3 if name == "sequence" else 1]
    assert [seen(sample) for sample in world[name]] == [SEEN[name]] * len(world[name])


def test_results_are_recorded_with_their_types(world: World) -> None:
    recorded = [call["result"] for call in world["results"][0]["turns"][0]["tool_calls"]]
    assert recorded[:6] == ["plain text", 3, None, False, "", [1, "é"]]


def test_a_call_that_breaks_the_schema_uses_up_no_step(world: World) -> None:
    wrong, missing, first, second = seen(world["schema"][0])
    assert "error" in wrong
    assert "city" in missing["error"]
    assert (first, second) == ("first", "second")


def test_an_undeclared_tool_where_tools_are_declared_is_the_agents_fault(world: World) -> None:
    (red,), (green,) = world["unknown"], world["known"]
    (finding,) = red["findings"]
    assert (finding["detector"], finding["turn"], finding["call"]) == ("unknown_tool", 1, 1)
    assert finding["severity"] == "high"
    assert finding["label"] == "wrong tool"
    assert "txet" in json.dumps(finding)
    assert (red["verdict"], red["stop"]) == ("failed", "script_done")
    assert "error" in seen(red)[-1]
    assert (green["verdict"], green["findings"]) == ("passed", [])
