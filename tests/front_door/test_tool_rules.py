"""A tool's ``rules``: the answer depends on the arguments, the number of the call and the turn."""

from __future__ import annotations

import json
from typing import Any

from tests.support.kit import Project

RULES: list[dict[str, Any]] = [
    {"when": {"args": {"op": "divide", "b": 0}}, "error": "Division by zero"},
    {"when": {"args": {"op": {"$in": ["multiply", "divide"]}}, "turn": 1}, "returns": {"result": 6}},
    {"when": {"call": 2}, "python": "mocks.py:second"},
    {"when": {"args": {"op": "add"}}, "sequence": [{"error": "busy"}, {"returns": {"sum": "${args.a}"}}]},
]
AGENT = """
import json

async def agent(messages, ctx):
    calls = json.loads(messages[-1]["content"])
    return json.dumps([await ctx.call_tool("calculator", args) for args in calls])
"""


def set_up(project: Project, *turns: list[dict[str, Any]], agent: str = AGENT, **more: Any) -> None:
    project.agent(agent)
    project.write(
        "scenarios/mocks.py", "def second(args, ctx):\n    return [args, ctx.call_index, ctx.turn]\n"
    )
    project.config()
    tools = {"calculator": {"rules": RULES}}
    scenario = {"id": "s", "tools": tools, "turns": [json.dumps(turn) for turn in turns], **more}
    project.scenarios(json.dumps(scenario | ({} if "expect" in more else {"checks": "none"})))


def results(project: Project) -> list[list[Any]]:
    turns = project.results()["scenarios"][0]["samples"][0]["turns"]
    return [[call["result"] for call in turn["tool_calls"]] for turn in turns]


def test_the_first_rule_that_matches_answers(project: Project) -> None:
    divide, add = {"op": "divide", "a": 1, "b": 0}, {"op": "add", "a": 3}
    set_up(project, [divide, {"op": "power"}, add, add, add], [divide, {**divide, "b": 2}])
    assert project.run().code == 0
    assert results(project) == [
        [
            {"error": "Division by zero"},
            [{"op": "power"}, 1, 0],
            {"error": "busy"},
            {"sum": 3},
            {"sum": 3},
        ],
        [{"error": "Division by zero"}, {"result": 6}],
    ]


def test_a_call_without_a_rule_is_an_error_to_the_agent_and_a_warning_to_the_author(project: Project) -> None:
    set_up(project, [{"op": "power", "a": 2}, {"op": "power", "a": 2}, {"op": "power", "a": 2}])
    done = project.run()
    assert done.code == 0
    assert [list(each) for each in results(project)[0][::2]] == [["error"], ["error"]]
    (warning,) = (each["text"] for each in project.results()["summary"]["notices"])
    assert "calculator" in warning
    assert '{"op": "power", "a": 2}' in warning


def test_each_conversation_begins_anew(project: Project) -> None:
    add = {"op": "add", "a": 1}
    set_up(project, [add], epochs=3)
    assert project.run().code == 0
    samples = project.results()["scenarios"][0]["samples"]
    assert [each["turns"][0]["tool_calls"][0]["result"] for each in samples] == [{"error": "busy"}] * 3


def test_an_agent_that_swallows_the_error_fails_and_one_that_reports_it_passes(project: Project) -> None:
    expect = {"output": {"contains": ["cannot divide"]}}
    calls = "[await ctx.call_tool('calculator', each) for each in calls]"
    for words, code in (("I cannot divide by zero.", 0), ("It is 0.", 1)):
        agent = AGENT.replace("    return json", f"    {calls}\n    return {words!r}\n    return json")
        set_up(project, [{"op": "divide", "a": 1, "b": 0}], agent=agent, expect=expect)
        done = project.run()
        assert done.code == code, done.all


def test_a_function_of_a_rule_that_does_not_exist(project: Project) -> None:
    set_up(project, [])
    project.write("scenarios/mocks.py", "")
    project.call("validate").refuses("scenarios/suite.yaml:1", "mocks.py", "second")
