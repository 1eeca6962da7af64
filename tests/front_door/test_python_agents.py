"""Python agents through the command line: every return style, ``ctx``, steps, observed calls, limits."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.kit import Project, failed_checks
from tests.support.python_agents import AGENTS, MOCKS, NAMES, TOOLS
from tests.support.suites import samples_of, write_suite

LONG = ("fifty", "fifty_one", "thousand", "thousand_and_one", "observed_parallel")

OWN = "expect: {tool_calls: {match: strict, calls: [{name: own, args: {q: 1}}, {name: own, args: {q: 1}}]}}"


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Samples:
    """The sample of each agent, all run at once in one process. Those that run their own tools have a suite
    without ``tools:``; loops of very many calls are played for one turn only."""
    project = Project(tmp_path_factory.mktemp("agents"))
    project.agent(AGENTS)
    scenarios = {name: f"turns: {'[one]' if name in LONG else '[one, two]'}" for name in NAMES}
    observed = {name for name in NAMES if name.startswith("observed")}
    expects = {n: f"{scenarios.pop(n)}, {'checks: none' if n in LONG else OWN}" for n in observed}
    write_suite(project, NAMES, expects, file="scenarios/observed.yaml")
    write_suite(project, NAMES, scenarios, defaults=TOOLS)
    project.write("scenarios/mocks.py", MOCKS)
    done = project.run()
    assert done.code == 1, done.all
    return samples_of(project)


Samples = dict[str, dict[str, Any]]
GIVEN = ["some text", 7, {"sum": 3}, None, {"error": "no luck"}]
ANSWERS = {
    "text_sync": ["plain"] * 2,
    "text_async": ["plain"] * 2,
    "pieces": ["plain"] * 2,
    "pieces_async": ["some text!"] * 2,
    "one_argument": ["user said one", "user said two"],
    "message_only": ["as a message"] * 2,
    "PlainClass": ["turn 1", "turn 2"],
    "OnePerSample": ["one", "one, two"],
    "tool_reply": ["done"] * 2,
    "tool_message": ['sum {"sum": 3} and some text'] * 2,
    "observed_list": ["it is 42"] * 2,
    "observed_reply": ["it is 42"] * 2,
    "observed_reply_and_text": ["it is 42"] * 2,
    "observed_generator": ["it is 42"] * 2,
    "observed_parallel": ["all done"],
    # the value that a result stands for, also that of an error; where a call is made
    "ctx_values": [repr(GIVEN)] * 2,
    "ctx_values_sync": [repr([GIVEN[0], GIVEN[1], *GIVEN[3:]])] * 2,
    "ctx_gather": ["True"] * 2,
    "ctx_threads": ["True"] * 2,
    "ctx_sync_in_threads_of_async": [repr(["some text"] * 4)] * 2,
    "ctx_facts": [repr(["ctx_facts", turn, 0, True, ["add"]]) for turn in (0, 1)],
    # the limits of replies and of calls in a turn
    "fifty": ["done"],
    "thousand": ["done"],
}


@pytest.mark.parametrize(("name", "expected"), ANSWERS.items(), ids=ANSWERS)
def test_an_agent_gives_its_text(name: str, expected: list[str], samples: Samples) -> None:
    assert answers(samples[name]) == expected
    assert (samples[name]["verdict"], samples[name]["stop"]) == ("passed", "script_done")


def answers(sample: dict[str, Any]) -> list[str]:
    return [turn["agent"] for turn in sample["turns"]]


OWN_CALL = ("own", {"q": 1}, "42", True)
CALLS = {
    # the number of steps of the first turn, and its calls: name, arguments, result, whether it was observed
    "tool_message": (2, [("add", {"a": 1, "b": 2}, {"sum": 3}, False), ("text", {}, "some text", False)]),
    "observed_generator": (2, [OWN_CALL]),
    "observed_list": (2, [OWN_CALL]),
    "observed_reply": (2, [OWN_CALL]),
    "observed_reply_and_text": (2, [OWN_CALL]),
    "observed_parallel": (3, [("own", {}, result, True) for result in ("first", "second", "third")]),
    "three_rounds": (4, [("text", {}, "some text", False)] * 4),
    "text_sync": (1, []),
    "ctx_sync_in_threads_of_async": (2, [("text", {}, "some text", False)] * 4),
    "dict_arguments": (2, [("text", {"a": 1}, "some text", False)]),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_are_recorded_with_the_steps_that_they_take(name: str, samples: Samples) -> None:
    turns = samples[name]["turns"]
    for turn in turns:
        calls = [(c["name"], c["args"], c["result"], c["observed"]) for c in turn["tool_calls"]]
        assert (turn["steps"], calls) == CALLS[name]
    assert samples[name]["steps"] == len(turns) * CALLS[name][0]


def test_calls_through_ctx_are_recorded(samples: Samples) -> None:
    calls = samples["ctx_values"]["turns"][0]["tool_calls"]
    assert [c["name"] for c in calls] == ["text", "number", "add", "nothing", "broken"]
    assert not any(c["observed"] for c in calls)
    for name, count in (("ctx_gather", 20), ("ctx_threads", 8)):
        assert [len(turn["tool_calls"]) for turn in samples[name]["turns"]] == [count] * 2
    assert samples["ctx_gather"]["turns"][0]["steps"] == 2
    assert len(set(answers(samples["ctx_seed"]))) == 1


def test_usage_of_a_reply_is_counted_in_either_words(samples: Samples) -> None:
    keys = ("calls", "input_tokens", "output_tokens", "estimated")
    usage = samples["tool_reply"]["turns"][0]["usage"]
    assert [usage[key] for key in keys] == [2, 15, 3, False]
    assert [samples["usage_value"]["usage"][key] for key in keys] == [2, 14, 6, False]
    assert samples["text_sync"]["usage"]["estimated"] is True


def test_an_observed_call_of_the_wrong_tool_is_red(samples: Samples) -> None:
    sample = samples["observed_other_tool"]
    assert (sample["verdict"], failed_checks(sample)) == ("failed", {(None, "tool_calls")})
    assert sample["findings"] == []


def test_unreadable_arguments_are_kept_as_they_came(samples: Samples) -> None:
    (call,) = samples["bad_arguments"]["turns"][0]["tool_calls"]
    assert (call["args"], call["raw_args"]) == (None, '{"a": ')
    assert "error" in json.dumps(call["result"])


@pytest.mark.parametrize("name", ["fifty_one", "thousand_and_one"])
def test_an_endless_tool_loop_is_the_agents_fault(name: str, samples: Samples) -> None:
    red = samples[name]
    assert (red["verdict"], red["fault"], red["stop"]) == ("failed", "agent", "tool_loop")
    assert {name for _, name in failed_checks(red)} == {"no_error"}
    assert len(red["turns"]) == 1
