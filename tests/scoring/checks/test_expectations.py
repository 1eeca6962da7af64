"""What ``expect`` and the short form ask of turns and conversations."""

import anyio
import pytest

from agenteval.core.protocols import Scorer
from agenteval.core.scenario import CaseSpec, Scenario, ScriptedTurn
from agenteval.core.trajectory import (
    Step,
    Stop,
    StopReason,
    ToolCall,
    Turn,
    Usage,
)
from agenteval.scoring.checks.expectations import (
    ConversationExpectations,
    TurnExpectations,
    conversation_checks,
    turn_checks,
)
from tests.support.trajectories import seen

DONE = Stop(reason=StopReason.SCRIPT_DONE)
BROKE = Stop(reason=StopReason.AGENT_TIMEOUT, detail="no reply within 60 s")


def call(name, **args):
    return ToolCall(name=name, args=args)


def turn(answer, *calls, script=None, tokens=10, latency_ms=100.0):
    usage = Usage(calls=1, input_tokens=tokens - 1, output_tokens=1) if tokens else Usage()
    rounds = [Step(tool_calls=(each,), usage=usage) for each in calls]
    steps = (*rounds, Step(text=answer, usage=usage))
    return Turn(user="hi", steps=steps, script=script, latency_ms=latency_ms)


def scenario(expect=None, *, turns=None, case=None, lines=None):
    return Scenario.model_validate(
        {"id": "s", "expect": expect or {}, "turns": turns, "case": case, "lines": lines or {}}
        | {"source": "suite.yaml:3"}
    )


def whole(*turns, stop=DONE, unfinished=None):
    return seen(turns=turns, stop=stop, unfinished=unfinished)


def by_name(checks):
    found = {check.name: check for check in checks}
    assert len(found) == len(checks), "one check per rule"
    return found


def outcomes(checks):
    return {name: check.passed for name, check in by_name(checks).items()}


# Turns ---------------------------------------------------------------------------------------------


def test_a_turn_without_an_entry_is_only_asked_for_an_answer():
    expect = {
        "output": {"contains": "x"},
        "limits": {"steps": 0},
        "tool_calls": {"forbidden": [{"name": "a"}]},
    }
    assert outcomes(turn_checks(scenario(expect), turn("ok", call("a")))) == {"answer": True}


def test_a_scripted_turn_is_held_to_its_own_entry():
    expect = {
        "tool_calls": {"calls": [{"name": "a"}]},
        "output": {"contains": ["25", "sunny"], "not_contains": "sorry", "matches": "^it"},
        "limits": {"steps": 2, "tool_calls": 1, "tokens": 20, "latency_ms": 100},
    }
    entries = [{"user": "first"}, {"user": "second", "expect": expect}]
    s = scenario(turns=entries)
    good = by_name(turn_checks(s, turn("It is SUNNY, 25°C", call("a"), script=1)))
    assert list(good) == [
        "answer",
        "tool_calls",
        "output.contains",
        "output.not_contains",
        "output.matches",
        "limits.steps",
        "limits.tool_calls",
        "limits.tokens",
        "limits.latency_ms",
    ]
    assert all(check.passed and check.detail for check in good.values())
    bad = turn("Sorry, it is 125", call("b"), call("b"), script=1, tokens=11, latency_ms=100.5)
    failed = by_name(turn_checks(s, bad))
    assert [name for name, check in failed.items() if check.passed] == ["answer"]
    assert failed["output.contains"].detail == (
        'missing "25", "sunny" in the answer "Sorry, it is 125"; "*25" would match'
    )
    assert failed["output.not_contains"].detail == 'found "sorry" in "Sorry, it is 125"'
    assert failed["output.matches"].detail == 'no match for /^it/ in the answer "Sorry, it is 125"'
    assert "missing: a(…) — never called" in failed["tool_calls"].detail
    assert failed["limits.steps"].detail == "3 steps, at most 2 allowed"
    assert failed["limits.tool_calls"].detail == "2 tool calls, at most 1 allowed"
    assert failed["limits.tokens"].detail == "33 tokens, at most 20 allowed"
    assert failed["limits.latency_ms"].detail == "100.5 ms, at most 100 allowed"
    assert outcomes(turn_checks(s, turn("x", script=0))) == {"answer": True}


@pytest.mark.parametrize("answer", ["", " \n", "\u200b", None])
@pytest.mark.parametrize(
    ("of_scenario", "of_turn", "passed"),
    [(None, None, False), (True, None, True), (None, True, True), (True, False, False), (False, True, True)],
)
def test_an_empty_answer(answer, of_scenario, of_turn, passed):
    entry = {"user": "hi", "expect": {"allow_empty": of_turn}}
    s = scenario({"allow_empty": of_scenario}, turns=[entry])
    empty = turn(answer, script=0)
    assert outcomes(turn_checks(s, empty)) == {"answer": passed}
    assert outcomes(conversation_checks(s, whole(empty)))["answer"] is passed


def test_the_answer_is_the_final_text_not_one_before():
    steps = (Step(text="Let me look.", tool_calls=(call("a"),)), Step(text=None))
    (check,) = turn_checks(scenario(), Turn(user="hi", steps=steps))
    assert not check.passed
    assert "after 1 tool call" in check.detail
    assert not turn_checks(scenario(), Turn(user="hi"))[0].passed


def test_where_is_the_line_of_the_rule_or_its_nearest_parent():
    lines = {"expect": 5, "expect.tool_calls": 6, "turns.0.expect": 9, "turns.0.expect.output.contains": 11}
    rules = {"tool_calls": {"forbidden": [{"name": "x"}]}, "output": {"contains": "a", "not_contains": "b"}}
    s = scenario(rules, turns=[{"user": "hi", "expect": rules}], lines=lines)
    of_turn = by_name(turn_checks(s, turn("a", script=0)))
    assert of_turn["output.contains"].where == "suite.yaml:11"
    assert of_turn["tool_calls"].where == "suite.yaml:9"
    of_whole = by_name(conversation_checks(s, whole(turn("a", script=0))))
    assert of_whole["tool_calls"].where == "suite.yaml:6"
    assert of_whole["output.contains"].where == "suite.yaml:5"
    assert of_whole["no_error"].where == "suite.yaml:3"


def test_tokens_that_nobody_counted_decide_nothing_unless_the_bound_is_broken_anyway():
    s = scenario({"limits": {"tokens": 15}})
    counted, uncounted = turn("a"), turn("b", tokens=0)
    assert outcomes(conversation_checks(s, whole(counted)))["limits.tokens"] is True
    check = by_name(conversation_checks(s, whole(counted, uncounted)))["limits.tokens"]
    assert check.passed is None
    assert "1 of 2 turns reported no usage" in check.detail
    assert outcomes(conversation_checks(s, whole(counted, counted, uncounted)))["limits.tokens"] is False


def test_estimated_tokens_are_marked():
    usage = Usage(calls=1, input_tokens=5, output_tokens=5, estimated=True)
    estimated = Turn(user="hi", steps=(Step(text="a", usage=usage),))
    s = scenario({"limits": {"tokens": 10}})
    check = by_name(conversation_checks(s, whole(estimated)))["limits.tokens"]
    assert check.passed
    assert check.detail == "10 tokens, at most 10 allowed (estimated)"


# Conversations -------------------------------------------------------------------------------------


def test_a_conversation_is_always_asked_for_no_error_and_answers():
    assert outcomes(conversation_checks(scenario(), whole(turn("a")))) == {"no_error": True, "answer": True}
    checks = by_name(conversation_checks(scenario(), whole(turn("a"), turn(""), turn(" "))))
    assert checks["answer"].passed is False
    assert checks["answer"].detail == "the final answer is empty in turn 2, 3"


def test_no_turn_at_all_is_no_pass():
    assert outcomes(conversation_checks(scenario(), whole()))["answer"] is None


def test_output_contains_in_some_answer_and_not_contains_in_every_one():
    output = {"contains": ["red", "25"], "not_contains": ["sorry", "oops"], "matches": ["gr(ee|a)n", "^r"]}
    s = scenario({"output": output})
    apart = whole(turn("Red"), turn("25"), turn("green"))
    assert all(check.passed for check in conversation_checks(s, apart))
    checks = by_name(conversation_checks(s, whole(turn("red, sorry"), turn("125"))))
    assert checks["output.contains"].passed is False
    assert '"25"' in checks["output.contains"].detail.partition(" in ")[0]
    assert '"red"' not in checks["output.contains"].detail.partition(" in ")[0]
    assert checks["output.not_contains"].detail == 'found "sorry" in "red, sorry" (answer 1)'
    assert checks["output.matches"].detail.startswith("no match for /gr(ee|a)n/ in any of 2 answers")


def test_tool_calls_and_limits_are_over_all_turns_and_the_one_that_broke():
    rules = {
        "tool_calls": {"match": "strict", "calls": [{"name": "a"}, {"name": "b"}]},
        "limits": {"steps": 3, "tool_calls": 1, "tokens": 100, "latency_ms": 299},
    }
    broken = Turn(user="?", steps=(Step(tool_calls=(call("b"),)),), latency_ms=100, error="timeout")
    trajectory = whole(turn("ok", call("a"), tokens=40), turn("ok"), stop=BROKE, unfinished=broken)
    checks = by_name(conversation_checks(scenario(rules), trajectory))
    assert checks["tool_calls"].passed
    assert checks["limits.steps"].detail.startswith("4 steps")
    assert checks["limits.tool_calls"].detail.startswith("2 tool calls")
    assert checks["limits.latency_ms"].detail.startswith("300 ms")
    assert checks["limits.tokens"].passed is None  # 90 are known; those of the broken turn are not


def test_an_agent_that_broke_fails_and_its_answers_are_not_judged():
    rules = {
        "output": {"contains": "x", "not_contains": "y", "matches": "z"},
        "tool_calls": {"forbidden": [{"name": "rm", "args": {"path": "/"}}]},
    }
    broken = Turn(user="?", steps=(Step(tool_calls=(call("rm", path="/"),)),))
    checks = by_name(conversation_checks(scenario(rules), whole(turn(""), stop=BROKE, unfinished=broken)))
    assert {name: check.passed for name, check in checks.items()} == {"no_error": False, "tool_calls": False}
    assert checks["no_error"].detail == "turn 2: agent_timeout: no reply within 60 s"
    assert 'forbidden: rm(path="/")' in checks["tool_calls"].detail


@pytest.mark.parametrize("reason", list(StopReason))
def test_only_the_agents_faults_are_held_against_it(reason):
    stop = Stop(reason=reason)
    checks = conversation_checks(scenario({"output": {"contains": "x"}}), whole(turn("a"), stop=stop))
    if stop.fault in (None, "agent"):
        assert outcomes(checks)["no_error"] is (stop.fault is None)
    else:
        assert checks == ()


# The short form ------------------------------------------------------------------------------------

WEATHER = CaseSpec(expected_tools=("get_weather",), expected_output_contains=("25", "sunny"))
LINES = {"expected_tools": 7, "expected_output_contains": 8}


def case(spec, expect=None):
    entry = ScriptedTurn(user="What's the weather in Beijing today?").model_dump()
    return scenario(expect, turns=[entry], case=spec.model_dump(), lines=LINES)


@pytest.mark.parametrize(
    ("answer", "calls", "tools", "output"),
    [
        ("It is Sunny, 25°C.", ["get_weather"], True, True),
        ("It is sunny, 25°C.", [], False, True),
        ("It is sunny, 125°C.", ["other", "get_weather", "get_weather"], True, False),
        ("-25 and sunny", ["get_weather"], True, False),
    ],
)
def test_a_case(answer, calls, tools, output):
    made = turn(answer, *map(call, calls), script=0)
    checks = by_name(conversation_checks(case(WEATHER), whole(made)))
    assert (checks["tool_calls"].passed, checks["output.contains"].passed) == (tools, output)
    assert checks["tool_calls"].where == "suite.yaml:7"
    assert checks["output.contains"].where == "suite.yaml:8"


def test_a_tool_that_is_named_twice_is_still_asked_for_once():
    spec = CaseSpec(expected_tools=("a", "a"))
    assert outcomes(conversation_checks(case(spec), whole(turn("ok", call("a")))))["tool_calls"]


def test_a_case_that_expects_nothing_still_wants_an_answer_and_no_error():
    assert outcomes(conversation_checks(case(CaseSpec()), whole(turn("")))) == {
        "no_error": True,
        "answer": False,
    }


def test_a_case_is_about_the_final_answer():
    trajectory = whole(turn("25 and sunny", call("get_weather")), turn("You are welcome."))
    assert outcomes(conversation_checks(case(WEATHER), trajectory))["output.contains"] is False


def test_a_case_of_an_agent_that_broke_has_no_answer():
    unfinished = Turn(user="?", steps=(Step(text="25, sunny", tool_calls=(call("get_weather"),)),))
    checks = by_name(conversation_checks(case(WEATHER), whole(stop=BROKE, unfinished=unfinished)))
    assert checks["output.contains"].passed is False
    assert checks["output.contains"].detail == 'no answer; expected "25", "sunny"'
    assert checks["tool_calls"].passed


def test_a_case_may_expect_more_and_both_rules_are_checked():
    expect = {"tool_calls": {"match": "strict", "calls": [{"name": "get_weather"}]}}
    trajectory = whole(turn("25, sunny", call("get_weather"), call("get_weather")))
    checks = conversation_checks(case(WEATHER, expect), trajectory)
    assert [check.passed for check in checks if check.name == "tool_calls"] == [False, True]


# Scorers -------------------------------------------------------------------------------------------


def test_the_scorers_judge_the_last_turn_and_the_whole():
    s = scenario(turns=[{"user": "1"}, {"user": "2", "expect": {"output": {"contains": "two"}}}])
    turns = turn("one", script=0), turn("two", script=1)
    of_turn: Scorer = TurnExpectations()
    of_whole: Scorer = ConversationExpectations()
    assert (of_turn.scope, of_whole.scope) == ("turn", "conversation")

    async def judged(scorer, trajectory):
        return outcomes(await scorer(s, trajectory))

    assert anyio.run(judged, of_turn, seen(turns=turns[:1])) == {"answer": True}
    assert anyio.run(judged, of_turn, seen(turns=turns)) == {
        "answer": True,
        "output.contains": True,
    }
    assert anyio.run(judged, of_turn, seen()) == {}
    assert anyio.run(judged, of_whole, whole(*turns)) == {"no_error": True, "answer": True}


# Thoughts ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    [
        "<think>Was it refunded? No.</think>I am sorry.",
        "\n<think>\nrefunded?\n</think>\n\nI am sorry.",
        "<think>A <think>second</think> one: refunded?</think>I am sorry.",
    ],
)
def test_what_a_model_thinks_is_no_part_of_the_answer(answer):
    output = {"contains": ["refunded"], "not_contains": ["refunded"], "matches": ["refunded", "^I am"]}
    s = scenario({"output": output}, turns=[{"user": "hi", "expect": {"output": output}}])
    for checks in (turn_checks(s, turn(answer, script=0)), conversation_checks(s, whole(turn(answer)))):
        found = by_name(checks)
        assert found["output.contains"].passed is False
        assert found["output.not_contains"].passed is True
        assert found["output.matches"].parts == ("refunded",)


@pytest.mark.parametrize(
    "answer",
    [
        "I have refunded it.</think>I am sorry.",
        "I am sorry.<think>Or was it refunded",
        "<think>refunded",
        "<think>A <think>second one</think>: refunded",
        "<think>Hm.</think><think>refunded</think>I am sorry.",
        "I am sorry. <think>refunded</think>",
        "<thinking>refunded</thinking>I am sorry.",
    ],
)
def test_only_one_leading_balanced_block_is_a_thought(answer):
    s = scenario({"output": {"contains": ["refunded"], "not_contains": ["refunded"]}})
    found = outcomes(conversation_checks(s, whole(turn(answer))))
    assert (found["output.contains"], found["output.not_contains"]) == (True, False)


def test_what_a_model_thinks_holds_no_keyword_of_a_case():
    s = scenario(case=CaseSpec(expected_output_contains=("refunded",)))
    thought = turn("<think>It was refunded.</think>I am sorry.")
    assert outcomes(conversation_checks(s, whole(thought)))["output.contains"] is False
